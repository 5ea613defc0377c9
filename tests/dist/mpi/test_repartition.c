/* Repartition between random tilings, exact; its adjoint; empty ranks; truncation and replication; several threads.
 * The tilings are random bisections, so ranks without data and boxes that form no grid are common. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/dist.h"
#include "mpi_test.h"

enum { MAX_RANKS = 4, GUARD = 0xEE };
static grv_comm *world;
static int rank, size;
static uint64_t draw_seed, draw_index; /* equal on all ranks */

static int64_t draw(int64_t n)
{
    return (int64_t)(grv_random_bits(draw_seed, 1, draw_index++) % (uint64_t)n);
}

typedef struct tiling {
    grv_box boxes[MAX_RANKS];
} tiling;

static void box_in(void *argument, int r, grv_box *box)
{
    *box = ((const tiling *)argument)->boxes[r];
}

static void bisect(tiling *t, grv_box box, int first, int n)
{
    if (n == 1) {
        t->boxes[first] = box;
        return;
    }
    const int d = (int)draw(box.n_dims), n_left = 1 + (int)draw(n - 1);
    const int64_t cut = draw(box.count[d] + 1);
    grv_box left = box, right = box;
    left.count[d] = cut;
    right.start[d] += cut;
    right.count[d] -= cut;
    bisect(t, left, first, n_left);
    bisect(t, right, first + n_left, n - n_left);
}

static grv_box random_box(const grv_box *in)
{
    grv_box out = *in;
    for (int d = 0; d < in->n_dims; d++) {
        out.count[d] = draw(in->count[d] + 1);
        out.start[d] += draw(in->count[d] - out.count[d] + 1);
    }
    return out;
}

/* Memory of one rank's box: dimensions in random order, with gaps. Ranks differ. */
typedef struct local_array {
    grv_box box;
    int64_t stride[GRV_BOX_MAX_DIMS];
    int64_t bytes, element_bytes;
    unsigned char *data;
} local_array;

static void make_array(local_array *a, const tiling *t, int64_t element_bytes, uint64_t salt)
{
    a->box = t->boxes[rank];
    a->element_bytes = element_bytes;
    int order[GRV_BOX_MAX_DIMS];
    const bool plain = grv_random_bits(draw_seed, 3 + salt, (uint64_t)rank) % 3 == 0;
    int64_t stride = 1;
    for (int d = 0; d < a->box.n_dims; d++) order[d] = a->box.n_dims - 1 - d;
    for (int d = 0; d < a->box.n_dims; d++) {
        const uint64_t bits =
            grv_random_bits(draw_seed, 4 + salt, (uint64_t)(rank * GRV_BOX_MAX_DIMS + d));
        const int other = plain ? d : d + (int)(bits % (uint64_t)(a->box.n_dims - d)),
                  kept = order[d];
        order[d] = order[other];
        order[other] = kept;
        a->stride[order[d]] = stride;
        stride = stride * (a->box.count[order[d]] > 0 ? a->box.count[order[d]] : 1) +
                 (plain ? 0 : (int64_t)(bits >> 32 & 1));
    }
    a->bytes = stride * element_bytes;
    assert_int_equal(GRVI_ALLOC(&a->data, a->bytes), GRV_OK);
    memset(a->data, GUARD, (size_t)a->bytes);
}

/* Visits the elements of the box: global number and address. */
typedef void visit(void *argument, int64_t number, unsigned char *element, int64_t bytes);

static void for_each(const local_array *a, const grv_box *global, visit *f, void *argument)
{
    const int64_t n = grv_box_size(&a->box);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, number = 0, offset = 0, weight = 1;
        for (int d = a->box.n_dims - 1; d >= 0; d--) {
            const int64_t k = rest % a->box.count[d];
            rest /= a->box.count[d];
            offset += k * a->stride[d];
            number += (a->box.start[d] - global->start[d] + k) * weight;
            weight *= global->count[d];
        }
        f(argument, number, a->data + offset * a->element_bytes, a->element_bytes);
    }
}

static unsigned char byte_of(int64_t number, int64_t b)
{
    return (unsigned char)(number * 7 + b * 31 + (number >> 8));
}

static void fill(void *argument, int64_t number, unsigned char *element, int64_t bytes)
{
    (void)argument;
    for (int64_t b = 0; b < bytes; b++) element[b] = byte_of(number, b);
}

static void check_and_erase(void *argument, int64_t number, unsigned char *element, int64_t bytes)
{
    (void)argument;
    for (int64_t b = 0; b < bytes; b++) {
        assert_int_equal(element[b], byte_of(number, b));
        element[b] = GUARD;
    }
}

static grv_repartition_params params_of(tiling *from, const local_array *a, tiling *to,
                                        const local_array *b, int n_threads)
{
    grv_repartition_params params = {.n_dims = a->box.n_dims,
                                     .element_bytes = a->element_bytes,
                                     .source = {.box_of = box_in, .argument = from},
                                     .destination = {.box_of = box_in, .argument = to},
                                     .n_threads = n_threads};
    memcpy(params.source.stride, a->stride, sizeof a->stride);
    memcpy(params.destination.stride, b->stride, sizeof b->stride);
    return params;
}

static void run(const grv_repartition_params *params, const void *from, void *to)
{
    grv_repartition *plan = NULL;
    unsigned char *scratch = NULL;
    assert_int_equal(grv_repartition_create(world, params, &plan), GRV_OK);
    const grv_traffic traffic = grv_repartition_traffic(plan);
    int64_t sums[] = {traffic.bytes_sent, traffic.bytes_received, traffic.n_messages_sent,
                      traffic.n_messages_received};
    assert_int_equal(grv_comm_all_reduce_i64(world, GRV_REDUCE_SUM, 4, sums), GRV_OK);
    assert_true(sums[0] == sums[1] && sums[2] == sums[3]);
    assert_int_equal(GRVI_ALLOC(&scratch, traffic.scratch_bytes), GRV_OK);
    const int64_t n_allocations = grv_memory_get().n_allocations;
    assert_int_equal(grv_repartition_run(plan, from, to, scratch), GRV_OK);
    grv_status status = GRV_AGAIN;
    assert_int_equal(grv_repartition_begin(plan, from, to, scratch), GRV_OK);
    while (status == GRV_AGAIN) status = grv_repartition_poll(plan);
    assert_int_equal(grv_repartition_end(plan), GRV_OK);
    assert_int_equal(grv_memory_get().n_allocations, n_allocations);
    grv_free(scratch);
    grv_repartition_destroy(&plan);
}

static void test_random_boxes(void **state)
{
    (void)state;
    static const int64_t element_bytes[] = {1, 4, 8, 12, 16};
    for (uint64_t seed = 0; seed < 150; seed++) {
        draw_seed = seed;
        draw_index = 0;
        grv_box global = {.n_dims = 1 + (int)draw(5)};
        for (int d = 0; d < global.n_dims; d++) {
            global.start[d] = draw(9) - 4;
            global.count[d] = 1 + draw(global.n_dims > 3 ? 6 : 12);
        }
        tiling from, to;
        bisect(&from, global, 0, size);
        const int64_t kind = draw(3); /* all of it; a part of it; any boxes, which may overlap */
        bisect(&to, kind == 0 ? global : random_box(&global), 0, size);
        for (int r = 0; r < size && kind == 2; r++) to.boxes[r] = random_box(&global);
        local_array a, b;
        const int64_t bytes = element_bytes[draw(5)];
        make_array(&a, &from, bytes, 0);
        make_array(&b, &to, bytes, 10);
        for_each(&a, &global, fill, NULL);
        const grv_repartition_params params = params_of(&from, &a, &to, &b, 1);
        run(&params, a.data, b.data);
        for_each(&b, &global, check_and_erase, NULL);
        for (int64_t i = 0; i < b.bytes; i++)
            assert_int_equal(b.data[i], GUARD); /* gaps were not touched */
        grv_free(a.data);
        grv_free(b.data);
    }
}

static void number_with(void *argument, int64_t number, unsigned char *element, int64_t bytes)
{
    const int64_t value =
        (int64_t)(grv_random_bits(draw_seed, *(const uint64_t *)argument, (uint64_t)number) %
                  2001) -
        1000;
    memcpy(element, &value, (size_t)bytes);
}

typedef struct product {
    uint64_t stream;
    int64_t sum;
} product;

/* sum += element * the number that number_with would give */
static void multiply(void *argument, int64_t number, unsigned char *element, int64_t bytes)
{
    product *const p = argument;
    int64_t mine, other;
    memcpy(&mine, element, (size_t)bytes);
    number_with(&p->stream, number, (unsigned char *)&other, bytes);
    p->sum += mine * other;
}

/* <R x, y> = <x, R* y> in integers, exactly */
static void test_adjoint(void **state)
{
    (void)state;
    uint64_t stream_x = 100, stream_y = 101;
    for (uint64_t seed = 1000; seed < 1040; seed++) {
        draw_seed = seed;
        draw_index = 0;
        const grv_box global = {
            .n_dims = 3, .start = {0, 2, 0}, .count = {1 + draw(9), 1 + draw(9), 1 + draw(9)}};
        tiling from, to;
        local_array x, rx, y, ry;
        bisect(&from, global, 0, size);
        bisect(&to, global, 0, size);
        make_array(&x, &from, 8, 0);
        make_array(&ry, &from, 8, 0);
        make_array(&rx, &to, 8, 10);
        make_array(&y, &to, 8, 10);
        for_each(&x, &global, number_with, &stream_x);
        for_each(&y, &global, number_with, &stream_y);
        const grv_repartition_params forward = params_of(&from, &x, &to, &y, 1),
                                     backward = grv_repartition_adjoint(&forward);
        run(&forward, x.data, rx.data);
        run(&backward, y.data, ry.data);
        product left = {.stream = stream_y}, right = {.stream = stream_x};
        for_each(&rx, &global, multiply, &left);
        for_each(&ry, &global, multiply, &right);
        int64_t sums[] = {left.sum, right.sum};
        assert_int_equal(grv_comm_all_reduce_i64(world, GRV_REDUCE_SUM, 2, sums), GRV_OK);
        assert_int_equal(sums[0], sums[1]);
        grv_free(x.data);
        grv_free(rx.data);
        grv_free(y.data);
        grv_free(ry.data);
    }
}

/* large enough that several threads pack */
static void test_threads(void **state)
{
    (void)state;
    draw_seed = 77;
    draw_index = 0;
    const grv_box global = {.n_dims = 4, .count = {24, 31, 29, 12}};
    tiling from, to;
    for (int r = 0; r < size; r++) {
        from.boxes[r] = grv_box_split(&global, 1, size, r);
        to.boxes[r] = grv_box_split(&global, 2, size, r);
    }
    local_array a, b;
    make_array(&a, &from, 8, 0);
    make_array(&b, &to, 8, 10);
    for_each(&a, &global, fill, NULL);
    const grv_repartition_params params = params_of(&from, &a, &to, &b, 3);
    run(&params, a.data, b.data);
    for_each(&b, &global, check_and_erase, NULL);
    grv_free(a.data);
    grv_free(b.data);
}

/* a gap in the sources is found by one rank and heard by all; so is lack of memory */
static void test_errors(void **state)
{
    (void)state;
    const grv_box global = {.n_dims = 1, .count = {10}};
    tiling from, to;
    for (int r = 0; r < size; r++) from.boxes[r] = to.boxes[r] = grv_box_split(&global, 0, size, r);
    local_array a;
    make_array(&a, &to, 4, 0);
    grv_repartition_params params = params_of(&from, &a, &to, &a, 1);
    grv_repartition *plan = NULL;
    for (int64_t countdown = 0; countdown < 9; countdown++) {
        grvi_alloc_fail_after(rank == size - 1 ? countdown : -1);
        assert_int_equal(grv_repartition_create(world, &params, &plan), GRV_E_NOMEM);
        assert_null(plan);
    }
    grvi_alloc_fail_after(-1);
    from.boxes[size - 1].count[0]--;
    assert_int_equal(grv_repartition_create(world, &params, &plan), GRV_E_SHAPE);
    assert_null(plan);
    if (size > 1) assert_int_equal(grv_error_message()[5], '0' + size - 1);
    grv_free(a.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_boxes), cmocka_unit_test(test_adjoint),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_errors)};
    world = mpi_test_begin();
    rank = grv_comm_rank(world);
    size = grv_comm_size(world);
    return mpi_test_end(&world, cmocka_run_group_tests(tests, NULL, NULL));
}
