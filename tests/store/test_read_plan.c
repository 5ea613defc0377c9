/* Read plans against a brute-force oracle: random regions, rows and strides over random arrays of two stores. What they decode
 * and read, what they refuse, how they are cancelled, and that a warm one allocates nothing. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grove/read_plan.h"
#include "store_support.h"

enum { MAX_RANK = 4, N_ARRAYS = 6, MAX_REQUESTS = 7, MAX_ROWS = 30, FILL = -77, GUARD = 0x5a5a5a5a };

static uint64_t seed, counter;

/* 0..n-1 */
static int64_t pick(int64_t n)
{
    return (int64_t)(grv_random_bits(seed, 1, counter++) % (uint64_t)n);
}

/* An array, and all its values. */
typedef struct known_array {
    grv_array *array;
    int rank;
    int64_t shape[MAX_RANK], n;
    int32_t *values;
} known_array;

/* "[2,0,1]" of numbers, which are returned in order */
static void print_list(char *text, size_t n_text, int rank, const int64_t *numbers)
{
    size_t n = (size_t)snprintf(text, n_text, "[");
    for (int i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, n_text - n, i == 0 ? "%lld" : ",%lld",
                              (long long)numbers[i]);
    (void)snprintf(text + n, n_text - n, "]");
}

static void random_order(int rank, int64_t *order)
{
    for (int i = 0; i < rank; i++) order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int64_t j = pick(i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* transpose, bytes, and a compressor or a checksum or nothing */
static void print_chain(char *text, size_t n_text, int rank)
{
    static const char *const last[] = {
        "", ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}",
        ",{\"name\":\"crc32c\"}",
        ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"};
    char order_text[64];
    int64_t order[MAX_RANK];
    random_order(rank, order);
    print_list(order_text, sizeof order_text, rank, order);
    (void)snprintf(text, n_text,
                   "{\"name\":\"transpose\",\"configuration\":{\"order\":%s}},{\"name\":\"bytes\","
                   "\"configuration\":{\"endian\":\"%s\"}}%s",
                   order_text, pick(2) != 0 ? "little" : "big", last[pick(4)]);
}

/* The codecs of an array, with a transposition outside the shard too. */
static void print_codecs(char *text, size_t n_text, const grv_array_desc *desc)
{
    char chain[512], order_text[64], inner_text[64];
    int64_t order[MAX_RANK], inner[MAX_RANK];
    print_chain(chain, sizeof chain, desc->rank);
    if (!desc->sharded) {
        (void)snprintf(text, n_text, "[%s]", chain);
        return;
    }
    random_order(desc->rank, order);
    for (int i = 0; i < desc->rank; i++) inner[i] = desc->inner_shape[order[i]];
    print_list(order_text, sizeof order_text, desc->rank, order);
    print_list(inner_text, sizeof inner_text, desc->rank, inner);
    (void)snprintf(
        text, n_text,
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":%s}},{\"name\":\"sharding_indexed\","
        "\"configuration\":{\"chunk_shape\":%s,\"codecs\":[%s],\"index_codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"little\"}},{\"name\":\"crc32c\"}],\"index_location\":\"%s\"}}]",
        order_text, inner_text, chain, pick(2) != 0 ? "start" : "end");
}

static void random_description(grv_array_desc *desc, int rank, char *codecs, size_t n_codecs)
{
    static const grv_compressor compressors[] = {GRV_COMPRESSOR_NONE, GRV_COMPRESSOR_BLOSC_LZ4,
                                                 GRV_COMPRESSOR_ZSTD};
    *desc = grv_array_desc_default();
    desc->type = GRV_STORE_I32;
    desc->rank = rank;
    desc->fill = (uint32_t)FILL;
    desc->sharded = pick(2) != 0;
    for (int i = 0; i < rank; i++) {
        desc->inner_shape[i] = 1 + pick(4);
        desc->chunk_shape[i] = desc->sharded ? desc->inner_shape[i] * (1 + pick(4)) : 1 + pick(7);
        desc->shape[i] = 1 + pick(13);
    }
    desc->compressor = compressors[pick(3)];
    desc->checksum = pick(3) == 0;
    desc->big_endian = pick(3) == 0;
    if (pick(2) == 0) return;
    print_codecs(codecs, n_codecs, desc);
    desc->codecs = codecs;
}

/* writes some boxes of it; the rest stays at the fill value */
static void write_boxes(known_array *k)
{
    int32_t *const box = malloc(sizeof *box * (size_t)k->n);
    assert_non_null(box);
    for (int64_t i = 0; i < k->n; i++) k->values[i] = FILL;
    for (int64_t b = pick(4); b > 0; b--) {
        int64_t start[MAX_RANK], count[MAX_RANK], n = 1;
        for (int i = 0; i < k->rank; i++) {
            start[i] = pick(k->shape[i]);
            count[i] = 1 + pick(k->shape[i] - start[i]);
            n *= count[i];
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, at = 0, stride = 1;
            for (int a = k->rank - 1; a >= 0; a--) {
                at += (start[a] + rest % count[a]) * stride;
                rest /= count[a];
                stride *= k->shape[a];
            }
            box[i] = k->values[at] = (int32_t)pick(1 << 30);
        }
        assert_ok(grv_array_write(k->array, start, count, box, NULL));
    }
    free(box);
}

static void make_known(grv_store *store, const char *name, known_array *k)
{
    char codecs[2048];
    grv_array_desc desc;
    k->rank = (int)pick(MAX_RANK + 1);
    random_description(&desc, k->rank, codecs, sizeof codecs);
    k->n = 1;
    for (int i = 0; i < k->rank; i++) k->n *= k->shape[i] = desc.shape[i];
    k->values = malloc(sizeof *k->values * (size_t)k->n);
    assert_non_null(k->values);
    assert_ok(grv_array_create(store, name, &desc, &k->array));
    write_boxes(k);
}

/* A request with its own memory, in which it may use every second place only, or axes in another order. */
typedef struct known_request {
    const known_array *known;
    int64_t start[MAX_RANK], count[MAX_RANK], strides[MAX_RANK], rows[MAX_ROWS];
    int64_t n_out, n;
    int32_t *out;
    bool has_rows;
} known_request;

static void random_request(const known_array *k, known_request *r, grv_read_request *request)
{
    int64_t order[MAX_RANK], stride = 1 + pick(2);
    *r = (known_request){.known = k, .n = 1, .has_rows = k->rank > 0 && pick(2) != 0};
    random_order(k->rank, order);
    for (int i = 0; i < k->rank; i++) {
        r->start[i] = pick(k->shape[i]);
        r->count[i] = pick(8) == 0 ? 0 : 1 + pick(k->shape[i] - r->start[i]);
    }
    if (r->has_rows) {
        r->count[0] = pick(MAX_ROWS);
        for (int64_t i = 0; i < r->count[0]; i++)
            r->rows[i] = i > 0 && pick(2) != 0 ? (r->rows[i - 1] + 1) % k->shape[0]
                                               : pick(k->shape[0]);
    }
    const bool is_dense = pick(3) == 0;
    for (int i = k->rank - 1; i >= 0; i--) {
        const int64_t axis = is_dense ? i : order[i];
        r->n *= r->count[i];
        r->strides[axis] = is_dense && i == k->rank - 1 ? (stride = 1) : stride;
        stride *= r->count[axis] + (is_dense ? 0 : pick(2));
    }
    r->n_out = stride + 8;
    r->out = malloc(sizeof *r->out * (size_t)r->n_out);
    assert_non_null(r->out);
    const int64_t garbage = INT64_MIN;
    if (r->has_rows) r->start[0] = garbage;
    *request = (grv_read_request){.array = k->array,
                                  .start = r->start,
                                  .count = r->count,
                                  .rows = r->has_rows ? r->rows : NULL,
                                  .n_rows = r->count[0],
                                  .out = r->out,
                                  .strides = is_dense ? NULL : r->strides};
}

static void clear_request(const known_request *r)
{
    for (int64_t i = 0; i < r->n_out; i++) r->out[i] = GUARD;
}

/* every wanted element is there, and nothing else was touched */
static void check_request(const known_request *r)
{
    const known_array *const k = r->known;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t rest = i, at = 0, place = 0, stride = 1;
        for (int a = k->rank - 1; a >= 0; a--) {
            const int64_t index = rest % r->count[a];
            rest /= r->count[a];
            at += (a == 0 && r->has_rows ? r->rows[index] : r->start[a] + index) * stride;
            place += index * r->strides[a];
            stride *= k->shape[a];
        }
        if (r->out[place] != k->values[at])
            fail_msg("seed %llu: element %lld: %d expected, %d found", (unsigned long long)seed,
                     (long long)i, k->values[at], r->out[place]);
        r->out[place] = GUARD;
    }
    for (int64_t i = 0; i < r->n_out; i++) assert_int_equal(r->out[i], GUARD);
}

static void check_plan(const known_array *arrays)
{
    known_request known[MAX_REQUESTS];
    grv_read_request requests[MAX_REQUESTS];
    grv_read_plan_params params = grv_read_plan_params_default();
    grv_read_plan *plan = NULL;
    const int64_t n = 1 + pick(MAX_REQUESTS), gaps[] = {0, 20, 4096};
    params.gap_bytes = gaps[pick(3)];
    params.n_threads = (int)pick(4);
    params.n_io = (int)pick(3);
    params.max_open = 1 + (int)pick(5);
    if (pick(4) == 0) params.memory_bytes = 1;
    for (int64_t i = 0; i < n; i++)
        random_request(&arrays[pick(N_ARRAYS)], &known[i], &requests[i]);
    assert_ok(grv_read_plan_create(requests, n, &params, &plan));
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n; i++) clear_request(&known[i]);
        assert_ok(grv_read_plan_run(plan));
        for (int64_t i = 0; i < n; i++) check_request(&known[i]);
    }
    grv_read_plan_destroy(&plan);
    for (int64_t i = 0; i < n; i++) {
        if (!known[i].has_rows) {
            clear_request(&known[i]);
            assert_ok(grv_array_read(requests[i].array, requests[i].start, requests[i].count,
                                     requests[i].out, requests[i].strides));
            check_request(&known[i]);
        }
        free(known[i].out);
    }
}

static void test_oracle(void **state)
{
    (void)state;
    for (seed = 1; seed <= 60; seed++) {
        known_array arrays[N_ARRAYS];
        char name[64];
        counter = 0;
        grv_store *stores[2];
        for (int s = 0; s < 2; s++) {
            (void)snprintf(name, sizeof name, "oracle-%d-%d", (int)seed, s);
            stores[s] = open_writable(in_folder(name), 1 + s);
        }
        for (int i = 0; i < N_ARRAYS; i++) {
            (void)snprintf(name, sizeof name, "a%d", i);
            make_known(stores[i % 2], name, &arrays[i]);
        }
        for (int i = 0; i < 12; i++) check_plan(arrays);
        for (int i = 0; i < N_ARRAYS; i++) {
            grv_array_close(&arrays[i].array);
            free(arrays[i].values);
        }
        for (int s = 0; s < 2; s++) grv_store_close(&stores[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
