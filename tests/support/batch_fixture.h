/* Jobs of a few tasks on two local workers: what tests of the batch engine share. Include after cmocka.h;
 * make_root and remove_root are for cmocka_run_group_tests. */
#ifndef GRVI_TEST_BATCH_FIXTURE_H
#define GRVI_TEST_BATCH_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grove/batch.h"
#include "grove/core.h"

static char root[64]; /* folder of the test */
static int n_folders;

static inline void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

static inline const char *fresh_folder(void)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/job %d", root, n_folders++);
    return path;
}

static inline grv_batch_params quick(void)
{
    grv_batch_params p = grv_batch_params_default();
    p.n_workers = 2;
    p.idle_s = 1;
    return p;
}

static inline grv_batch *open_job(const char *folder, const grv_batch_params *params)
{
    grv_batch *batch = NULL;
    const grv_batch_params p = quick();
    ok(grv_batch_open(folder, params != NULL ? params : &p, &batch));
    return batch;
}

static inline grv_batch_function function_of(grv_batch *batch, const char *name)
{
    const char *const sources[] = {GRVI_TEST_SOURCE_DIR "/tests/batch/tasks.c"};
    grv_batch_function function = -1;
    ok(grv_batch_source(batch, name, sources, 1, "-O1", &function));
    return function;
}

static inline double fetch_f64(grv_batch *batch, int64_t task)
{
    grv_batch_value value;
    ok(grv_batch_fetch(batch, task, 0, &value));
    assert_int_equal(value.kind, GRV_BATCH_F64);
    return value.f64;
}

/* Calls of one function of one argument. */
static inline int64_t map_one(grv_batch *batch, const char *name, const grv_batch_value *values,
                              int n)
{
    const grv_batch_column column = {values, true};
    int64_t first = -1;
    ok(grv_batch_map(batch, function_of(batch, name), n, &column, 1, &first));
    return first;
}

static inline void expect_reason(grv_batch *batch, int64_t task, const char *part)
{
    grv_batch_value value;
    assert_int_equal(grv_batch_fetch(batch, task, 0, &value), GRV_E_NOT_FOUND);
    if (strstr(grv_error_message(), part) == NULL)
        fail_msg("'%s' expected, found: %s", part, grv_error_message());
}

/* A program of the test's own, such as one in the place of another. */
static inline void write_script(const char *name, const char *text, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s", root, name);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static inline int make_root(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/grove-batch-XXXXXX");
    if (mkdtemp(root) == NULL) return 1;
    (void)setenv("XDG_CACHE_HOME", root, 1);
    (void)setenv("ASAN_OPTIONS", "handle_segv=0:handle_abort=0",
                 1); /* of the workers: crashes are wanted */
    return 0;
}

static inline int remove_root(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) != 0;
}

#endif
