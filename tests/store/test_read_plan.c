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

enum {
    MAX_RANK = 4,
    N_ARRAYS = 6,
    MAX_REQUESTS = 7,
    MAX_ROWS = 30,
    FILL = -77,
    GUARD = 0x5a5a5a5a
};

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
        ",{\"name\":\"crc32c\"}", ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"};
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
        "\"configuration\":{\"chunk_shape\":%s,\"codecs\":[%s],\"index_codecs\":[{\"name\":"
        "\"bytes\","
        "\"configuration\":{\"endian\":\"little\"}},{\"name\":\"crc32c\"}],\"index_location\":\"%"
        "s\"}}]",
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
            r->rows[i] =
                i > 0 && pick(2) != 0 ? (r->rows[i - 1] + 1) % k->shape[0] : pick(k->shape[0]);
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

/* Ranges longer than a run is allowed to be, split along some axis, into memory of any alignment. */
static void test_long_ranges(void **state)
{
    enum { A = 23, B = 37, C = 41, TOTAL = A * B * C };
    static int32_t data[TOTAL], out[TOTAL + 64];
    const int64_t all[] = {A, B, C}, whole[] = {A, B, C}, inner[] = {A, B, C}, cells[] = {4, B, C},
                  shard[] = {24, B, C}, zero[] = {0, 0, 0};
    (void)state;
    seed = 1000;
    for (int i = 0; i < TOTAL; i++) data[i] = (int32_t)grv_random_bits(seed, 2, (uint64_t)i);
    for (int k = 0; k < 4; k++) {
        char name[32];
        grv_store *store = NULL;
        grv_array *array = NULL;
        grv_array_desc desc = desc_of(GRV_STORE_I32, 3, all, k < 3 ? whole : shard,
                                      k == 0  ? NULL
                                      : k < 3 ? inner
                                              : cells);
        desc.compressor = k < 2 ? GRV_COMPRESSOR_NONE : GRV_COMPRESSOR_ZSTD;
        desc.big_endian = k == 1;
        (void)snprintf(name, sizeof name, "long%d", k);
        store = open_writable(in_folder(name), 2);
        assert_ok(grv_array_create(store, "a", &desc, &array));
        assert_ok(grv_array_write(array, zero, all, data, NULL));
        for (int i = 0; i < 24; i++) {
            grv_read_plan_params params = grv_read_plan_params_default();
            grv_read_plan *plan = NULL;
            int64_t start[3], count[3], n = 1;
            int32_t *const place = out + pick(17);
            for (int a = 0; a < 3; a++) {
                start[a] = i % 2 == 0 && a > 0 ? 0 : pick(all[a]);
                count[a] = i % 2 == 0 && a > 0 ? all[a] : 1 + pick(all[a] - start[a]);
                n *= count[a];
            }
            const grv_read_request request = {array, start, count, NULL, 0, place, NULL};
            params.run_bytes = 1; /* that is, as short as runs get: 64 KiB */
            params.gap_bytes = i % 3 == 0 ? 0 : -1;
            memset(out, 0xee, sizeof out);
            assert_ok(grv_read_plan_create(&request, 1, &params, &plan));
            assert_ok(grv_read_plan_run(plan));
            for (int64_t e = 0; e < n; e++) {
                const int64_t c = e % count[2], b = e / count[2] % count[1],
                              a = e / count[2] / count[1];
                assert_int_equal(place[e],
                                 data[((start[0] + a) * B + start[1] + b) * C + start[2] + c]);
            }
            assert_int_equal(place[n], (int32_t)0xeeeeeeee);
            const grv_read_plan_info info = grv_read_plan_get_info(plan);
            if (k < 2 && i % 2 == 0) {
                assert_int_equal(info.bytes_read, 4 * n);
                assert_true(info.n_reads >= 4 * n / 65536);
            }
            grv_read_plan_destroy(&plan);
        }
        grv_array_close(&array);
        grv_store_close(&store);
    }
}

/* ---- what a run costs ---- */

static grv_array *make_array(grv_store **store, const char *name, const grv_array_desc *desc)
{
    grv_array *array = NULL;
    *store = open_writable(in_folder(name), 2);
    assert_ok(grv_array_create(*store, "a", desc, &array));
    return array;
}

static void close_all(grv_store **store, grv_array **array)
{
    grv_array_close(array);
    grv_store_close(store);
}

static grv_read_plan_info run_requests(const grv_read_request *requests, int64_t n)
{
    grv_read_plan *plan = NULL;
    assert_ok(grv_read_plan_create(requests, n, NULL, &plan));
    assert_ok(grv_read_plan_run(plan));
    const grv_read_plan_info info = grv_read_plan_get_info(plan);
    grv_read_plan_destroy(&plan);
    return info;
}

enum { N_ROWS = 4096, ROW = 3, PER_CHUNK = 64, PER_SHARD = 1024 };

/* [N_ROWS, ROW], element = its number */
static grv_array *make_rows(grv_store **store, const char *name, bool sharded)
{
    static int32_t data[N_ROWS * ROW];
    const int64_t shape[] = {N_ROWS, ROW}, shard[] = {PER_SHARD, ROW}, chunk[] = {PER_CHUNK, ROW},
                  zero[] = {0, 0};
    const grv_array_desc desc =
        desc_of(GRV_STORE_I32, 2, shape, sharded ? shard : chunk, sharded ? chunk : NULL);
    grv_array *const array = make_array(store, name, &desc);
    for (int i = 0; i < N_ROWS * ROW; i++) data[i] = i;
    assert_ok(grv_array_write(array, zero, shape, data, NULL));
    return array;
}

static void check_rows(const int32_t *out, const int64_t *rows, int64_t n)
{
    for (int64_t i = 0; i < n * ROW; i++) assert_int_equal(out[i], rows[i / ROW] * ROW + i % ROW);
}

/* rows of two requests in three chunks of two objects: three chunks are decoded */
static void test_chunks_are_decoded_once(void **state)
{
    const int64_t first[] = {70, 3, 1030, 5, 5, 64, 127, 0}, second[] = {1087, 63, 70},
                  zero[] = {0, 0}, count[] = {0, ROW};
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        grv_store *store = NULL;
        grv_array *array = make_rows(&store, sharded ? "once-s" : "once", sharded != 0);
        int32_t out[8 * ROW], other[3 * ROW];
        const grv_read_request requests[] = {
            {array, zero, count, first, 8, out, NULL},
            {array, zero, count, second, 3, other, NULL},
        };
        const grv_store_counters before = grv_store_counters_get(store);
        const grv_read_plan_info info = run_requests(requests, 2);
        const grv_store_counters after = grv_store_counters_get(store);
        check_rows(out, first, 8);
        check_rows(other, second, 3);
        assert_int_equal(info.n_chunks, 3);
        assert_int_equal(info.bytes_decoded, 3 * PER_CHUNK * ROW * 4);
        assert_int_equal(after.bytes_decoded - before.bytes_decoded, info.bytes_decoded);
        assert_int_equal(info.bytes_wanted, (int64_t)(sizeof out + sizeof other));
        assert_int_equal(info.n_objects, sharded ? 2 : 3);
        assert_int_equal(after.objects_opened - before.objects_opened, info.n_objects);
        /* two neighbours of a shard are one read */
        assert_int_equal(info.n_reads, sharded ? 2 : 3);
        close_all(&store, &array);
    }
}

static void test_warm_plan_allocates_nothing(void **state)
{
    const int64_t rows[] = {4000, 1, 2, 3, 900, 17, 2000, 64}, zero[] = {0, 0}, count[] = {0, ROW},
                  all[] = {N_ROWS, ROW};
    static int32_t out[8 * ROW], second_out[8 * ROW], everything[N_ROWS * ROW];
    grv_store *store = NULL;
    grv_array *array = make_rows(&store, "warm", true);
    grv_read_plan_params params = grv_read_plan_params_default();
    params.n_threads = 1; /* which thread meets which chunk is chance */
    const grv_read_request requests[] = {{array, zero, count, rows, 8, out, NULL},
                                         {array, zero, all, NULL, 0, everything, NULL}};
    grv_read_plan *plan = NULL;
    (void)state;
    assert_ok(grv_read_plan_create(requests, 1, &params, &plan));
    assert_ok(grv_read_plan_run(plan));
    assert_ok(grv_read_plan_set(plan, requests, 2));
    assert_ok(grv_read_plan_run(plan));
    const int64_t n_allocations = grv_memory_get().n_allocations;
    assert_ok(grv_read_plan_set_out(plan, 0, second_out));
    for (int pass = 0; pass < 3; pass++) {
        assert_ok(grv_read_plan_run(plan));
        check_rows(second_out, rows, 8);
        assert_ok(grv_read_plan_set(plan, requests, 2 - pass % 2));
        assert_ok(grv_read_plan_run(plan));
        check_rows(out, rows, 8);
        assert_ok(grv_read_plan_set(plan, requests, 2));
        assert_ok(grv_read_plan_set_out(plan, 0, second_out));
    }
    assert_int_equal(grv_memory_get().n_allocations, n_allocations);
    assert_fails(grv_read_plan_set_out(plan, 2, out), GRV_E_ARG,
                 "request 2 asked for, the plan has 2");
    grv_read_plan_destroy(&plan);
    close_all(&store, &array);
}

/* 150 million rows, stored sparsely: raw chunks of nothing but zeros take no room on the disk. */
static void test_window_of_many_rows(void **state)
{
    enum { COLUMNS = 4, N_CHUNKS = 30 };
    const int64_t shape[] = {150000000, COLUMNS}, chunk[] = {5000000, COLUMNS},
                  start[] = {77345678, 0}, count[] = {1000000, COLUMNS};
    const int64_t chunk_bytes = 2 * 5000000 * COLUMNS, total_bytes = N_CHUNKS * chunk_bytes;
    uint16_t *const out = malloc(2 * 1000000 * COLUMNS);
    grv_array_desc desc = desc_of(GRV_STORE_F16, 2, shape, chunk, NULL);
    grv_store *store = NULL;
    (void)state;
    desc.compressor = GRV_COMPRESSOR_NONE;
    desc.keys_v2 = true;
    desc.fill = 0x7e00;
    grv_array *array = make_array(&store, "many", &desc);
    for (int i = 0; i < N_CHUNKS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "many/a/%d.0", i);
        write_file(in_folder(name), "\0", 1);
        assert_int_equal(truncate(in_folder(name), chunk_bytes), 0);
    }
    assert_non_null(out);
    memset(out, 0xff, 2 * 1000000 * COLUMNS);
    const grv_store_counters before = grv_store_counters_get(store);
    assert_ok(grv_array_read(array, start, count, out, NULL));
    const grv_store_counters after = grv_store_counters_get(store);
    for (int64_t i = 0; i < 1000000 * COLUMNS; i++) assert_true(out[i] == 0);
    assert_true((double)(after.bytes_read - before.bytes_read) <= 0.011 * (double)total_bytes);
    assert_int_equal(after.bytes_decoded - before.bytes_decoded, 2 * 1000000 * COLUMNS);
    free(out);
    close_all(&store, &array);
}

/* The same of compressed rows: whole inner chunks are read, which is little more than the window. */
static void test_window_of_compressed_rows(void **state)
{
    enum { ROWS = 15000000, WINDOW = 100000 };
    const int64_t shape[] = {ROWS}, shard[] = {3000000}, inner[] = {6000}, zero[] = {0},
                  start[] = {7654321}, count[] = {WINDOW};
    uint8_t *const data = malloc(ROWS);
    struct stat info;
    int64_t total_bytes = 0;
    grv_store *store = NULL;
    const grv_array_desc desc = desc_of(GRV_STORE_U8, 1, shape, shard, inner);
    (void)state;
    assert_non_null(data);
    for (int i = 0; i < ROWS; i++) data[i] = (uint8_t)(1 + i / 1000 % 200);
    grv_array *array = make_array(&store, "compressed", &desc);
    assert_ok(grv_array_write(array, zero, shape, data, NULL));
    for (int i = 0; i < 5; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "compressed/a/c/%d", i);
        assert_int_equal(stat(in_folder(name), &info), 0);
        total_bytes += info.st_size;
    }
    const grv_store_counters before = grv_store_counters_get(store);
    assert_ok(grv_array_read(array, start, count, data, NULL));
    const grv_store_counters after = grv_store_counters_get(store);
    for (int i = 0; i < WINDOW; i++)
        assert_int_equal(data[i], (uint8_t)(1 + (start[0] + i) / 1000 % 200));
    /* the window is 0.67 % of the rows; beside it there are two inner chunks and the index of a shard */
    const int64_t index_bytes = 16 * 500 + 4, read_bytes = after.bytes_read - before.bytes_read;
    assert_true((double)(read_bytes - index_bytes) <= 0.011 * (double)total_bytes);
    assert_true(after.bytes_decoded - before.bytes_decoded <= WINDOW + 2 * 6000);
    free(data);
    close_all(&store, &array);
}

/* A slab of a raw sample reads its planes only, sharded or not; a few columns read no more than they must. */
static void test_raw_parts(void **state)
{
    enum { N = 16, PLANE = 1024 };
    static float data[N * PLANE], out[N * PLANE];
    const int64_t shape[] = {1, N, PLANE}, inner[] = {1, 8, PLANE}, zero[] = {0, 0, 0},
                  slab[] = {0, 5, 0}, slab_count[] = {1, 6, PLANE}, column[] = {0, 2, 100},
                  column_count[] = {1, 3, 7};
    (void)state;
    for (int i = 0; i < N * PLANE; i++) data[i] = (float)i;
    for (int sharded = 0; sharded < 2; sharded++) {
        grv_store *store = NULL;
        grv_array_desc desc = desc_of(GRV_STORE_F32, 3, shape, shape, sharded ? inner : NULL);
        desc.compressor = GRV_COMPRESSOR_NONE;
        grv_array *array = make_array(&store, sharded ? "raw-s" : "raw", &desc);
        assert_ok(grv_array_write(array, zero, shape, data, NULL));
        const grv_read_request planes = {array, slab, slab_count, NULL, 0, out, NULL};
        grv_read_plan_info info = run_requests(&planes, 1);
        assert_memory_equal(out, data + 5 * PLANE, 6 * PLANE * 4);
        assert_int_equal(info.bytes_read, 6 * PLANE * 4);
        assert_int_equal(info.n_reads, 1);
        /* rows are 4 KiB apart: by default the gap between them is read too, without one each is a read */
        const grv_read_request columns = {array, column, column_count, NULL, 0, out, NULL};
        info = run_requests(&columns, 1);
        assert_int_equal(info.bytes_read, (2 * PLANE + 7) * 4);
        assert_int_equal(info.n_reads, 1);
        grv_read_plan_params params = grv_read_plan_params_default();
        grv_read_plan *plan = NULL;
        params.gap_bytes = 0;
        assert_ok(grv_read_plan_create(&columns, 1, &params, &plan));
        assert_ok(grv_read_plan_run(plan));
        info = grv_read_plan_get_info(plan);
        assert_int_equal(info.bytes_read, 3 * 7 * 4);
        assert_int_equal(info.n_reads, 3);
        for (int i = 0; i < 21; i++) assert_true(out[i] == data[(2 + i / 7) * PLANE + 100 + i % 7]);
        grv_read_plan_destroy(&plan);
        close_all(&store, &array);
    }
}

/* ---- refusals ---- */

static void test_refusals(void **state)
{
    const int64_t zero[] = {0, 0}, count[] = {1, ROW}, wide[] = {1, ROW + 1}, bad[] = {3, N_ROWS},
                  negative[] = {-1};
    int32_t out[ROW];
    int64_t scalar_shape[1] = {0};
    grv_store *store = NULL;
    grv_array *array = make_rows(&store, "refused", true), *scalar = NULL;
    grv_read_plan *plan = NULL;
    (void)state;
    const grv_array_desc desc = desc_of(GRV_STORE_I32, 0, scalar_shape, scalar_shape, NULL);
    assert_ok(grv_array_create(store, "scalar", &desc, &scalar));
    grv_read_request request = {array, zero, count, bad, 2, out, NULL};
    assert_fails(grv_read_plan_create(&request, 1, NULL, &plan), GRV_E_ARG,
                 "'a': row 4096 (entry 1 of the list) asked for, there are 4096");
    assert_null(plan);
    request.rows = negative;
    request.n_rows = 1;
    assert_fails(grv_read_plan_create(&request, 1, NULL, &plan), GRV_E_ARG, "row -1");
    request.n_rows = -1;
    assert_fails(grv_read_plan_create(&request, 1, NULL, &plan), GRV_E_ARG, "-1 rows");
    request = (grv_read_request){array, zero, wide, NULL, 0, out, NULL};
    assert_fails(grv_read_plan_create(&request, 1, NULL, &plan), GRV_E_ARG,
                 "'a', axis 1: elements 0 to 4 asked for, there are 3");
    request = (grv_read_request){scalar, zero, zero, zero, 1, out, NULL};
    assert_fails(grv_read_plan_create(&request, 1, NULL, &plan), GRV_E_ARG, "no rows");
    request.array = NULL;
    assert_fails(grv_read_plan_create(&request, 1, NULL, &plan), GRV_E_ARG, "request 0: no array");
    /* after a refusal a plan is empty and can be used again */
    assert_ok(grv_read_plan_create(NULL, 0, NULL, &plan));
    assert_ok(grv_read_plan_run(plan));
    request = (grv_read_request){array, zero, wide, NULL, 0, out, NULL};
    assert_int_equal(grv_read_plan_set(plan, &request, 1), GRV_E_ARG);
    assert_ok(grv_read_plan_run(plan));
    request.count = count;
    assert_ok(grv_read_plan_set(plan, &request, 1));
    assert_ok(grv_read_plan_run(plan));
    for (int i = 0; i < ROW; i++) assert_int_equal(out[i], i);
    grv_read_plan_destroy(&plan);
    grv_read_plan_destroy(&plan);
    grv_read_plan_destroy(NULL);
    grv_array_close(&scalar);
    close_all(&store, &array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle),
                                       cmocka_unit_test(test_long_ranges),
                                       cmocka_unit_test(test_chunks_are_decoded_once),
                                       cmocka_unit_test(test_warm_plan_allocates_nothing),
                                       cmocka_unit_test(test_window_of_many_rows),
                                       cmocka_unit_test(test_window_of_compressed_rows),
                                       cmocka_unit_test(test_raw_parts),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
