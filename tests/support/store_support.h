/* What the tests of store and data share: a folder of their own that is removed at the end, files, and checks that show grove's message. */
#ifndef GRVI_TEST_STORE_SUPPORT_H
#define GRVI_TEST_STORE_SUPPORT_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grove/core.h"
#include "grove/store.h"

static char test_folder[256];

static inline int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    (void)state;
    /* thousands of small files: in memory where there is such a place (ext4 flushes each file that is replaced) */
    if (base == NULL) base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(test_folder, sizeof test_folder, "%s/grove-test-XXXXXX", base);
    return mkdtemp(test_folder) == NULL;
}

static inline int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline int remove_folder(void **state)
{
    (void)state;
    return nftw(test_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* test_folder/name; borrowed until three calls later */
static inline const char *in_folder(const char *name)
{
    static char paths[4][1024];
    static int next;
    next = (next + 1) % 4;
    (void)snprintf(paths[next], sizeof paths[next], "%s/%s", test_folder, name);
    return paths[next];
}

static inline void write_file(const char *path, const void *data, size_t n)
{
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline size_t read_file(const char *path, void *data, size_t n)
{
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    const size_t got = fread(data, 1, n, f);
    assert_int_equal(fclose(f), 0);
    return got;
}

/* fails the test with grove's own message */
#define assert_ok(expression)                                                 \
    do {                                                                      \
        const grv_status s_ = (expression);                                   \
        if (s_ != GRV_OK) fail_msg("%s: %s", #expression, grv_error_trace()); \
    } while (0)

/* the expression fails with this status, and the message holds the text */
#define assert_fails(expression, expected, text)                                            \
    do {                                                                                    \
        const grv_status s_ = (expression);                                                 \
        if (s_ != (expected) || strstr(grv_error_message(), text) == NULL)                  \
            fail_msg("%s: status %d, message \"%s\"; expected %d with \"%s\"", #expression, \
                     (int)s_, grv_error_message(), (int)(expected), text);                  \
    } while (0)

static inline grv_store *open_writable(const char *location, int n_threads)
{
    grv_store *store = NULL;
    grv_store_params params = grv_store_params_default();
    params.writable = true;
    params.n_threads = n_threads;
    assert_ok(grv_store_open(location, &params, &store));
    return store;
}

/* Row-major description; inner == NULL: not sharded. */
static inline grv_array_desc desc_of(grv_store_type type, int rank, const int64_t *shape,
                                     const int64_t *chunk, const int64_t *inner)
{
    grv_array_desc desc = grv_array_desc_default();
    desc.type = type;
    desc.rank = rank;
    for (int i = 0; i < rank; i++) {
        desc.shape[i] = shape[i];
        desc.chunk_shape[i] = chunk[i];
        if (inner != NULL) desc.inner_shape[i] = inner[i];
    }
    desc.sharded = inner != NULL;
    return desc;
}

#endif
