/* Large values: blobs as workers see them, and more of them than a worker keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "batch/blobs.h"
#include "batch_fixture.h"

enum { N_LARGE = 3 << 20 };

static void damage(const char *folder, const grvi_blob *blob, long at, const char *bytes)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, blob->hash);
    FILE *const file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    (void)fputs(bytes, file);
    assert_int_equal(fclose(file), 0);
    if (bytes[0] == '\0') assert_int_equal(truncate(path, at), 0);
}

/* A large blob is mapped, a small one read; what is damaged or cut is refused. */
static void test_views(void **state)
{
    static char content[N_LARGE];
    (void)state;
    char folder[128];
    grvi_kv *kv = NULL;
    grvi_blob blob;
    grvi_blob_view view;
    const int64_t held = grv_memory_get().bytes;
    (void)snprintf(folder, sizeof folder, "%s/blobs", root);
    ok(grvi_kv_fs_create(folder, true, GRV_STORE_SYNC_NONE, &kv));
    for (int i = 0; i < N_LARGE; i++) content[i] = (char)(i * 2654435761U >> 24);
    for (int large = 0; large < 2; large++) {
        const int64_t n = large ? N_LARGE : 1000;
        ok(grvi_blob_put(kv, content, n, &blob));
        ok(grvi_blob_view_open(kv, &blob, &view));
        assert_int_equal(view.n_bytes, n);
        assert_memory_equal(view.data, content, (size_t)n);
        assert_int_equal(view.owned == NULL, large);
        grvi_blob_view_close(kv, &view);
        assert_null(view.data);
    }
    damage(folder, &blob, 2000000, "damage");
    assert_int_equal(grvi_blob_view_open(kv, &blob, &view), GRV_E_FORMAT);
    assert_null(view.data);
    damage(folder, &blob, 2000000, "");
    assert_int_equal(grvi_blob_view_open(kv, &blob, &view), GRV_E_FORMAT);
    memcpy(blob.hash, "00", 2);
    assert_int_equal(grvi_blob_view_open(kv, &blob, &view), GRV_E_NOT_FOUND);
    grvi_kv_destroy(&kv);
    assert_int_equal(grv_memory_get().bytes, held);
}

/* Each task has a tensor of its own and one that all share: each is there when its task runs, whatever was let go before. */
static void test_many(void **state)
{
    enum { N_TASKS = 150, N_OWN = 3000, N_SHARED = 200000 };
    static double own[N_TASKS][N_OWN], all[N_SHARED];
    static grv_batch_value tensors[N_TASKS], number[N_TASKS];
    (void)state;
    const int64_t own_shape[] = {N_OWN}, shared_shape[] = {N_SHARED};
    int64_t first = 0, of_shared = 0;
    grv_batch_value shared;
    grv_batch_params params = quick();
    params.n_workers = 1;
    grv_batch *batch = open_job(fresh_folder(), &params);
    const grv_batch_function sum = function_of(batch, "sum");
    for (int i = 0; i < N_SHARED; i++) all[i] = 1;
    const grv_batch_value value = grv_batch_tensor(GRV_STORE_F64, 1, shared_shape, all);
    ok(grv_batch_broadcast(batch, &value, &shared));
    for (int t = 0; t < N_TASKS; t++) {
        for (int i = 0; i < N_OWN; i++) own[t][i] = t;
        tensors[t] = t % 3 == 2 ? shared : grv_batch_tensor(GRV_STORE_F64, 1, own_shape, own[t]);
        number[t] = grv_batch_f64(t);
    }
    const grv_batch_column columns[] = {{tensors, true}, {number, true}}, again[] = {{&shared, false}, {number, true}};
    ok(grv_batch_map(batch, sum, N_TASKS, columns, 2, &first));
    ok(grv_batch_map(batch, sum, N_TASKS, again, 2, &of_shared));
    ok(grv_batch_wait(batch, 60));
    for (int t = 0; t < N_TASKS; t++) {
        const double expected = t % 3 == 2 ? N_SHARED : (double)N_OWN * t;
        assert_true(fabs(fetch_f64(batch, first + t) - expected - t) < 1e-9);
        assert_true(fabs(fetch_f64(batch, of_shared + t) - N_SHARED - t) < 1e-9);
    }
    grv_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_views), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
