/* A file of 320 MB is read into its arrays with a few blocks of memory besides: stored raw, and in compressed blocks. The files themselves are small: one is
 * full of holes, the other repeats a block. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <zlib.h>

#include "mesh_support.h"

enum { N_POINTS = 10000000, BLOCK = 1 << 20, BESIDE = 8 << 20 };

static const struct {
    const char *tag;
    int64_t n_bytes;
} arrays[] = {{"<DataArray type=\"Float64\" Name=\"p\" format=\"appended\" offset=\"%lld\"/>",
               (int64_t)N_POINTS * 8},
              {"<DataArray type=\"Float32\" Name=\"U\" NumberOfComponents=\"3\" "
               "format=\"appended\" offset=\"%lld\"/></PointData><Points>",
               (int64_t)N_POINTS * 12},
              {"<DataArray type=\"Float32\" Name=\"Points\" NumberOfComponents=\"3\" "
               "format=\"appended\" offset=\"%lld\"/></Points>",
               (int64_t)N_POINTS * 12}};

static void put(FILE *file, const void *data, size_t n)
{
    assert_int_equal(fwrite(data, 1, n, file), n);
}

/* Bytes of zeros as they are stored. */
static int64_t stored_bytes(bool compressed, int64_t n, size_t block, size_t rest)
{
    return compressed
               ? (3 + (n + BLOCK - 1) / BLOCK) * 8 + n / BLOCK * (int64_t)block + (int64_t)rest
               : 8 + n;
}

static void put_zeros(FILE *file, bool compressed, int64_t n, const uint8_t *block, size_t n_block)
{
    const int64_t n_blocks = (n + BLOCK - 1) / BLOCK;
    if (!compressed) {
        const uint64_t header = (uint64_t)n;
        put(file, &header, sizeof header);
        assert_int_equal(fseek(file, n, SEEK_CUR), 0);
        return;
    }
    /* the last block is the same: only its header says how much of it there is */
    static const uint8_t zeros[BLOCK];
    uint8_t last[8192];
    uLongf n_last = sizeof last;
    assert_int_equal(compress(last, &n_last, zeros, (uLong)(n % BLOCK)), Z_OK);
    const uint64_t header[3] = {(uint64_t)n_blocks, BLOCK, (uint64_t)(n % BLOCK)};
    put(file, header, sizeof header);
    for (int64_t i = 0; i < n_blocks; i++) {
        const uint64_t size = i < n_blocks - 1 ? n_block : n_last;
        put(file, &size, sizeof size);
    }
    for (int64_t i = 0; i < n_blocks - 1; i++) put(file, block, n_block);
    put(file, last, n_last);
}

static void make_file(const char *path, bool compressed)
{
    static const uint8_t zeros[BLOCK];
    uint8_t block[8192], rest[8192];
    uLongf n_block = sizeof block;
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(compress(block, &n_block, zeros, BLOCK), Z_OK);
    (void)fprintf(file,
                  "<VTKFile type=\"PolyData\" header_type=\"UInt64\"%s><PolyData><Piece "
                  "NumberOfPoints=\"%d\"><PointData>",
                  compressed ? " compressor=\"vtkZLibDataCompressor\"" : "", N_POINTS);
    int64_t offset = 0;
    for (int i = 0; i < 3; i++) {
        uLongf n_rest = sizeof rest;
        assert_int_equal(compress(rest, &n_rest, zeros, (uLong)(arrays[i].n_bytes % BLOCK)), Z_OK);
        (void)fprintf(file, arrays[i].tag, (long long)offset);
        offset += stored_bytes(compressed, arrays[i].n_bytes, n_block, n_rest);
    }
    (void)fprintf(file, "</Piece></PolyData><AppendedData encoding=\"raw\">_");
    for (int i = 0; i < 3; i++) put_zeros(file, compressed, arrays[i].n_bytes, block, n_block);
    (void)fprintf(file, "</AppendedData></VTKFile>");
    assert_int_equal(fclose(file), 0);
}

static void test_large(void **state)
{
    (void)state;
    for (int compressed = 0; compressed < 2; compressed++) {
        grv_mesh *mesh = NULL;
        make_file(in_folder("large.vtp"), compressed != 0);
        const grv_mesh_read_params params = {.n_threads = 2};
        const int64_t held = grv_memory_get().bytes;
        const double start = grv_clock_seconds();
        assert_ok(grv_mesh_read(in_folder("large.vtp"), &params, &mesh));
        const int64_t of_arrays = grv_memory_get().bytes - held,
                      peak = grv_memory_get().peak_bytes - held;
        print_message("%s: %.2f s, %lld MB of arrays, %lld KB more at the peak\n",
                      compressed ? "zlib" : "raw", grv_clock_seconds() - start,
                      (long long)(of_arrays >> 20), (long long)((peak - of_arrays) >> 10));
        assert_int_equal(grv_mesh_n_points(mesh), N_POINTS);
        assert_true(peak - of_arrays < BESIDE);
        assert_true(of_arrays < (int64_t)N_POINTS * 32 + BESIDE);
        assert_true(value_of(&mesh->points, 3 * (int64_t)N_POINTS - 1) == 0);
        grv_mesh_destroy(&mesh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
