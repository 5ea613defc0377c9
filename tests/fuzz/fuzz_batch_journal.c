/* Bytes that might be the journal of a batch job: looked at, with every task's state, results and log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "core/fs.h"
#include "fuzz.h"
#include "grove/core.h"
#include "kernels/crc32c.h"

enum { MOST_TASKS = 200 };

static void remove_folder(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/grove-fuzz-%ld", (long)getpid());
    if (grvi_fs_remove_tree(path) != GRV_OK) grv_error_clear();
}

static const char *folder(void)
{
    static char path[64];
    if (path[0] != '\0') return path;
    (void)atexit(remove_folder);
    (void)snprintf(path, sizeof path, "/tmp/grove-fuzz-%ld", (long)getpid());
    char blobs[96];
    (void)snprintf(blobs, sizeof blobs, "%s/blobs", path);
    if (grvi_fs_make_directory(blobs) != GRV_OK) abort();
    return path;
}

static void look_at(grv_batch *batch, int64_t task)
{
    grv_batch_task info;
    grv_batch_value value;
    char *log = NULL;
    if (grv_batch_task_get(batch, task, &info) != GRV_OK) grv_error_clear();
    if (grv_batch_fetch(batch, task, 0, &value) == GRV_OK) grv_batch_value_fini(&value);
    if (grv_batch_log(batch, task, &log) == GRV_OK) grv_free(log);
    grv_error_clear();
}

/* Gives every record that is there its checksum, or nothing behind a changed byte would ever be read. */
static void mend_checksums(uint8_t *data, size_t n)
{
    for (size_t at = 0; at + GRVI_RECORD_HEAD <= n;) {
        uint32_t length = 0;
        memcpy(&length, data + at, sizeof length);
        if (length % 8 != 0 || length > n - at - GRVI_RECORD_HEAD) return;
        const uint32_t crc = grvi_crc32c(data + at + GRVI_RECORD_HEAD, length);
        memcpy(data + at + sizeof length, &crc, sizeof crc);
        at += GRVI_RECORD_HEAD + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[96];
    grv_batch *batch = NULL;
    uint8_t *const mended = malloc(n + 1);
    if (mended == NULL) return 0;
    memcpy(mended, data, n);
    mend_checksums(mended, n);
    (void)snprintf(path, sizeof path, "%s/journal", folder());
    if (grvi_fs_write_atomic(path, mended, (int64_t)n, false) != GRV_OK) abort();
    free(mended);
    if (grv_batch_look(folder(), &batch) == GRV_OK) {
        const int64_t n_tasks = grv_batch_counts_get(batch).n_tasks;
        for (int64_t t = 0; t < n_tasks && t < MOST_TASKS; t++) look_at(batch, t);
        grv_batch_close(&batch);
    }
    grv_error_clear();
    return 0;
}

/* A journal with every kind of record, written as the driver does. */
static void put_tasks(grvi_text *out, int64_t first, int64_t n, int64_t following, bool needs_first)
{
    const int64_t begin = grvi_record_begin(out, GRVI_R_SUBMIT);
    const grvi_wire_value number = {.kind = GRV_BATCH_F64, .f64 = 1.5}, text = {.kind = GRV_BATCH_STRING, .data = "text", .n_bytes = 5},
                          tensor = {.kind = GRV_BATCH_TENSOR, .type = GRV_STORE_F32, .rank = 1, .shape = {2}, .data = "12345678", .n_bytes = 8},
                          future = {.kind = GRV_BATCH_FUTURE};
    grvi_put_i64(out, following);
    grvi_put_f64(out, 1.0);
    grvi_put_i64(out, 0);
    grvi_put_i64(out, first);
    grvi_put_i64(out, n);
    grvi_put_i64(out, 3);
    grvi_put_i64(out, 0);
    grvi_put_i64(out, 1);
    grvi_put_i64(out, 1);
    grvi_put_value(out, &number);
    for (int64_t i = 0; i < n; i++) {
        grvi_put_value(out, needs_first ? &future : &text);
        grvi_put_value(out, &tensor);
    }
    grvi_record_end(out, begin);
}

static void put_outcome(grvi_text *out, int64_t task, int64_t attempt, grvi_outcome outcome)
{
    grvi_text values = {0};
    const grvi_wire_value number = {.kind = GRV_BATCH_I64, .i64 = 7};
    grvi_put_value(&values, &number);
    const int64_t begin = grvi_record_begin(out, GRVI_R_OUTCOME);
    const bool is_good = outcome == GRVI_OUTCOME_OK;
    const grvi_outcome_record r = {.task = task, .attempt = attempt, .outcome = outcome, .n_values = is_good, .start = 1, .end = 2, .log_end = 10,
                                   .is_final = !is_good, .reason = is_good ? "" : "why"};
    grvi_put_outcome(out, &r, values.data, is_good ? values.n : 0);
    grvi_record_end(out, begin);
    grvi_text_fini(&values);
}

static void put_number(grvi_text *out, int64_t kind, int64_t a, int64_t b)
{
    const int64_t begin = grvi_record_begin(out, kind);
    grvi_put_i64(out, a);
    grvi_put_i64(out, b);
    grvi_record_end(out, begin);
}

int fuzz_make_corpus(const char *to)
{
    grvi_text out = {0};
    char *path = NULL;
    char name[] = "area", flags[] = "-O2", file[] = "area.c";
    grvi_named_blob blob = {.name = file, .blob = {.hash = "0123456789abcdef0123456789abcdef", .n_bytes = 3}};
    const grvi_function function = {.kind = GRVI_FUNCTION_SOURCE, .name = name, .flags = flags, .n_files = 1, .files = &blob};
    put_number(&out, GRVI_R_JOB, GRVI_FORMAT_VERSION, 0);
    int64_t begin = grvi_record_begin(&out, GRVI_R_FUNCTION);
    grvi_put_function(&out, 0, &function);
    grvi_record_end(&out, begin);
    put_tasks(&out, 0, 2, 1, false);
    put_tasks(&out, 2, 1, 0, false);
    put_tasks(&out, 3, 2, 0, true);
    begin = grvi_record_begin(&out, GRVI_R_WORKER);
    grvi_put_i64(&out, 0);
    grvi_put_f64(&out, 1.0);
    grvi_put_string(&out, "1 1");
    grvi_record_end(&out, begin);
    begin = grvi_record_begin(&out, GRVI_R_HELLO);
    grvi_put_i64(&out, 0);
    grvi_put_f64(&out, 1.0);
    grvi_put_f64(&out, 100.0);
    grvi_put_string(&out, "node");
    grvi_record_end(&out, begin);
    put_outcome(&out, 0, 1, GRVI_OUTCOME_OK);
    put_outcome(&out, 1, 1, GRVI_OUTCOME_CRASHED);
    put_outcome(&out, 2, 1, GRVI_OUTCOME_REQUEUED);
    put_number(&out, GRVI_R_RETRY, 1, 1);
    put_number(&out, GRVI_R_CANCEL, 2, 0);
    put_number(&out, GRVI_R_GONE, 0, 0);
    int failed = grvi_fs_make_directory(to) != GRV_OK || grvi_fs_join(to, "every_kind", &path) != GRV_OK ||
                 grvi_fs_write_atomic(path, out.data, out.n, false) != GRV_OK;
    grvi_text_fini(&out);
    grv_free(path);
    return failed;
}
