/* Dry repartition plans: the traffic of the paper's network, bookkeeping over all ranks, errors. No communicator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grove/dist.h"

/* A global box split along one dimension. */
typedef struct slabs {
    grv_box global;
    int dim, n_ranks;
} slabs;

static void slab_of(void *argument, int rank, grv_box *box)
{
    const slabs *const s = argument;
    *box = grv_box_split(&s->global, s->dim, s->n_ranks, rank);
}

static void set_stride(const grv_box *box, int64_t *stride)
{
    int64_t product = 1;
    for (int d = box->n_dims - 1; d >= 0; d--) {
        stride[d] = product;
        product *= box->count[d];
    }
}

static grv_traffic traffic_of(int rank, slabs *from, slabs *to)
{
    grv_repartition_params params = {.n_dims = from->global.n_dims,
                                     .element_bytes = 8,
                                     .source = {.box_of = slab_of, .argument = from},
                                     .destination = {.box_of = slab_of, .argument = to}};
    grv_box box;
    slab_of(from, rank, &box);
    set_stride(&box, params.source.stride);
    slab_of(to, rank, &box);
    set_stride(&box, params.destination.stride);
    grv_repartition *plan = NULL;
    assert_int_equal(grv_repartition_create_dry(from->n_ranks, rank, &params, &plan), GRV_OK);
    const grv_traffic traffic = grv_repartition_traffic(plan);
    grv_repartition_destroy(&plan);
    assert_null(plan);
    return traffic;
}

/* Truncated spectrum of the Navier-Stokes network, [kx, y, kz, kt, channel] complex64 on 8 ranks: about 21 MB sent by each;
 * the Sleipner one: about 7.9 MB. */
static void test_published_traffic(void **state)
{
    (void)state;
    const grv_box boxes[] = {{.n_dims = 5, .count = {36, 130, 36, 12, 12}},
                             {.n_dims = 5, .count = {32, 118, 24, 10, 10}}};
    const double published_mb[] = {21, 7.9};
    for (int c = 0; c < 2; c++) {
        slabs by_y = {.global = boxes[c], .dim = 1, .n_ranks = 8},
              by_kx = {.global = boxes[c], .dim = 0, .n_ranks = 8};
        int64_t sent = 0, received = 0, kept = 0;
        for (int rank = 0; rank < 8; rank++) {
            const grv_traffic t = traffic_of(rank, &by_y, &by_kx);
            assert_true(t.n_messages_sent == 7 && t.n_messages_received == 7);
            sent += t.bytes_sent;
            received += t.bytes_received;
            kept += t.bytes_kept;
            /* a slab of kx lies in one piece in the source, so nothing is packed; what arrives is unpacked */
            assert_true(t.scratch_bytes >= t.bytes_received &&
                        t.scratch_bytes < t.bytes_received + 7 * 64);
        }
        assert_int_equal(sent, received);
        assert_int_equal(sent + kept, 8 * grv_box_size(&boxes[c]));
        const double megabytes = (double)(sent / 8) / 1e6;
        assert_true(megabytes > 0.99 * published_mb[c] && megabytes < 1.015 * published_mb[c]);
    }
}

static void test_identity_sends_nothing(void **state)
{
    (void)state;
    slabs by_x = {.global = {.n_dims = 3, .count = {7, 4, 3}}, .dim = 0, .n_ranks = 3};
    const grv_traffic t = traffic_of(1, &by_x, &by_x);
    assert_true(t.n_messages_sent == 0 && t.bytes_sent == 0 && t.bytes_received == 0 &&
                t.scratch_bytes == 0);
    assert_int_equal(t.bytes_kept, 8 * 2 * 4 * 3);
}

static void expect_failure(const grv_repartition_params *params, int n_ranks, int rank,
                           grv_status status, const char *text)
{
    grv_repartition *plan = NULL;
    assert_int_equal(grv_repartition_create_dry(n_ranks, rank, params, &plan), status);
    assert_non_null(strstr(grv_error_message(), text));
    assert_null(plan);
}

static void test_errors(void **state)
{
    (void)state;
    slabs whole = {.global = {.n_dims = 2, .count = {6, 5}}, .n_ranks = 2};
    slabs larger = whole, negative = whole, huge = whole;
    larger.global.count[1] = 6;
    negative.global.count[1] = -1;
    huge.global.count[1] = INT64_MAX / 4;
    const grv_repartition_params good = {
        .n_dims = 2,
        .element_bytes = 4,
        .source = {.box_of = slab_of, .argument = &whole, .stride = {5, 1}},
        .destination = {.box_of = slab_of, .argument = &whole, .stride = {5, 1}}};
    grv_repartition_params bad = good;
    bad.destination.argument = &larger;
    expect_failure(&bad, 2, 1, GRV_E_SHAPE,
                   "destination box of rank 1: 72 bytes expected from the sources, 60 found");
    bad = good;
    bad.source.argument = &negative;
    expect_failure(&bad, 2, 1, GRV_E_ARG, "box of rank 1");
    bad.source.argument = &huge;
    expect_failure(&bad, 2, 0, GRV_E_ARG, "box of rank 0");
    bad = good;
    bad.n_dims = GRV_BOX_MAX_DIMS + 1;
    expect_failure(&bad, 2, 0, GRV_E_ARG, "1 to 8 dimensions expected, 9 found");
    expect_failure(&good, 2, 2, GRV_E_ARG, "rank 2 of 2");
    grv_repartition *plan = NULL;
    assert_int_equal(grv_repartition_create_dry(2, 0, &good, &plan), GRV_OK);
    assert_int_equal(grv_repartition_run(plan, NULL, NULL, NULL), GRV_E_ARG);
    assert_int_equal(grv_repartition_poll(plan), GRV_E_ARG);
    assert_int_equal(grv_repartition_end(plan), GRV_E_ARG);
    grv_repartition_destroy(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_traffic),
                                       cmocka_unit_test(test_identity_sends_nothing),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
