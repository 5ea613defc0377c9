/* grove bench mesh: an unstructured grid of hexahedra, written once and read again and again. bench/peers/mesh_vtu.py reads the same file with meshio and VTK. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"
#include "mesh/numbers.h"

enum { MAX_REPETITIONS = 101, CORNERS = 8, BUFFER_BYTES = 1 << 22 };
static const int64_t kept_bytes = (int64_t)1 << 33;

/* A problem of grv_bench_mesh. */
typedef struct mesh_problem {
    bool base64, zlib;
    int64_t side; /* cells along an axis */
    int n_threads, n_repetitions;
} mesh_problem;

/* ---- problem ---- */

/* Next word before ':' or the end. */
static bool next_word(const char **at, const char **word, size_t *n)
{
    if (**at == '\0') return false;
    *word = *at;
    *n = strcspn(*at, ":");
    *at += *n + ((*at)[*n] == ':');
    return true;
}

static bool read_option(const char *word, size_t n, mesh_problem *p)
{
    int64_t value = 0;
    const char letter = word[0], *at = word + (letter == 't' || letter == 'r');
    if (n == 4 && memcmp(word, "zlib", n) == 0)
        p->zlib = true;
    else if (n == 6 && memcmp(word, "base64", n) == 0)
        p->base64 = true;
    else if (n == 3 && memcmp(word, "raw", n) == 0)
        p->base64 = false;
    else if (n == 4 && memcmp(word, "none", n) == 0)
        p->zlib = false;
    else if (!grvi_parse_i64(&at, word + n, &value) || at != word + n || value < 1 || value > 1000)
        return false;
    else if (letter == 't')
        p->n_threads = (int)value;
    else if (letter == 'r')
        p->n_repetitions = (int)grvi_min_i64(value, MAX_REPETITIONS);
    else
        p->side = value;
    return true;
}

static grv_status parse_problem(const char *text, mesh_problem *p)
{
    static const char prefix[] = "mesh:";
    const char *at =
                   strncmp(text, prefix, sizeof prefix - 1) == 0 ? text + sizeof prefix - 1 : text,
               *word = NULL;
    size_t n = 0;
    *p = (mesh_problem){.side = 100, .n_threads = 1, .n_repetitions = 5};
    while (next_word(&at, &word, &n))
        GRV_CHECK(read_option(word, n, p), GRV_E_ARG,
                  "mesh:<raw|base64>:<none|zlib>[:<side>][:t<threads>][:r<repetitions>] expected, "
                  "'%.80s' found",
                  text);
    return GRV_OK;
}

/* ---- data ---- */

static float value_at(int64_t i)
{
    return (float)i * 0.001F + (float)(i % 7);
}

static grv_status make_cells(int64_t side, grv_mesh *mesh)
{
    const int64_t n = side + 1, n_cells = side * side * side;
    GRV_TRY(grvi_mesh_alloc_cells(mesh, n_cells, CORNERS * n_cells));
    memset(mesh->types, GRV_CELL_HEXAHEDRON, (size_t)n_cells);
    int64_t *ids = mesh->connectivity, cell = 0;
    for (int64_t k = 0; k < side; k++)
        for (int64_t j = 0; j < side; j++)
            for (int64_t i = 0; i < side; i++, ids += CORNERS) {
                const int64_t first = (k * n + j) * n + i;
                const int64_t corners[CORNERS] = {
                    first,         first + 1,         first + n + 1,         first + n,
                    first + n * n, first + n * n + 1, first + n * n + n + 1, first + n * n + n};
                memcpy(ids, corners, sizeof corners);
                cell++;
                mesh->offsets[cell] = CORNERS * cell;
            }
    return GRV_OK;
}

static grv_status make_mesh(int64_t side, grv_mesh **mesh)
{
    static const char name[] = "Points";
    const int64_t n = side + 1, n_points = n * n * n;
    grv_status status = GRV_OK;
    grv_mesh_array *array = NULL;
    GRV_TRY(grv_mesh_create(GRV_MESH_CELLS, mesh));
    GRV_TRY_GOTO(
        grvi_mesh_array_init(name, sizeof name - 1, GRV_STORE_F32, 3, n_points, &(*mesh)->points));
    for (int64_t i = 0; i < n_points; i++) {
        float *const point = (float *)(*mesh)->points.data + 3 * i;
        point[0] = (float)(i % n) * 0.1F;
        point[1] = (float)(i / n % n) * 0.1F;
        point[2] = (float)(i / (n * n)) * 0.1F;
    }
    GRV_TRY_GOTO(make_cells(side, *mesh));
    GRV_TRY_GOTO(
        grv_mesh_add_array(&(*mesh)->point_data, "p", GRV_STORE_F32, 1, n_points, NULL, &array));
    for (int64_t i = 0; i < n_points; i++) ((float *)array->data)[i] = value_at(i);
    GRV_TRY_GOTO(
        grv_mesh_add_array(&(*mesh)->point_data, "U", GRV_STORE_F32, 3, n_points, NULL, &array));
    for (int64_t i = 0; i < 3 * n_points; i++) ((float *)array->data)[i] = value_at(3 * i);
    GRV_TRY_GOTO(grv_mesh_add_array(&(*mesh)->cell_data, "k", GRV_STORE_F32, 1, (*mesh)->n_cells,
                                    NULL, &array));
    for (int64_t i = 0; i < (*mesh)->n_cells; i++) ((float *)array->data)[i] = value_at(2 * i);
done:
    if (status != GRV_OK) grv_mesh_destroy(mesh);
    return status;
}

static bool same_array(const grv_mesh_array *a, const grv_mesh_array *b)
{
    return a != NULL && b != NULL && a->type == b->type && a->n_bytes == b->n_bytes &&
           memcmp(a->data, b->data, (size_t)a->n_bytes) == 0;
}

static bool same_mesh(const grv_mesh *a, const grv_mesh *b)
{
    return a->n_cells == b->n_cells && same_array(&a->points, &b->points) &&
           memcmp(a->offsets, b->offsets, (size_t)(a->n_cells + 1) * sizeof *a->offsets) == 0 &&
           memcmp(a->connectivity, b->connectivity,
                  (size_t)a->offsets[a->n_cells] * sizeof *a->connectivity) == 0 &&
           memcmp(a->types, b->types, (size_t)a->n_cells) == 0 &&
           same_array(grv_mesh_find(&a->point_data, "p"), grv_mesh_find(&b->point_data, "p")) &&
           same_array(grv_mesh_find(&a->point_data, "U"), grv_mesh_find(&b->point_data, "U")) &&
           same_array(grv_mesh_find(&a->cell_data, "k"), grv_mesh_find(&b->cell_data, "k"));
}

/* ---- measuring ---- */

/* Seconds to read all bytes of the file into a buffer that is used again: what the system asks. */
static grv_status time_bytes(const char *path, int64_t *n_bytes, double *seconds)
{
    grv_status status = GRV_OK;
    char *buffer = NULL;
    ssize_t k = 1;
    *n_bytes = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s", path);
    GRV_TRY_GOTO(GRVI_ALLOC(&buffer, BUFFER_BYTES));
    memset(buffer, 0, BUFFER_BYTES);
    const double start = grv_clock_seconds();
    while ((k = read(fd, buffer, BUFFER_BYTES)) > 0) *n_bytes += k;
    *seconds = grv_clock_seconds() - start;
    GRV_CHECK_GOTO(k == 0, GRV_E_IO, "read %s", path);
done:
    grv_free(buffer);
    (void)close(fd);
    return status;
}

static grv_status measure(const mesh_problem *p, const char *path, const grv_mesh *made,
                          grv_bench_result *result)
{
    double seconds[MAX_REPETITIONS], floors[MAX_REPETITIONS];
    const grv_mesh_read_params params = {.n_threads = p->n_threads};
    const int64_t held = grv_memory_get().bytes;
    int64_t file_bytes = 0, mesh_bytes = 0;
    result->correct = true;
    grv_memory_keep(kept_bytes); /* as a program does that reads many files */
    for (int i = 0; i < p->n_repetitions; i++) {
        grv_mesh *mesh = NULL;
        GRV_TRY(time_bytes(path, &file_bytes, &floors[i]));
        const double start = grv_clock_seconds();
        GRV_TRY(grv_mesh_read(path, &params, &mesh));
        seconds[i] = grv_clock_seconds() - start;
        mesh_bytes = grv_memory_get().bytes - held;
        result->correct = result->correct && same_mesh(mesh, made);
        grv_mesh_destroy(&mesh);
    }
    result->median_seconds = grvi_median(p->n_repetitions, seconds);
    result->floor_seconds = grvi_median(p->n_repetitions, floors);
    result->floor_ratio = result->median_seconds / result->floor_seconds;
    grv_bench_result_add(result, "file_bytes", (double)file_bytes);
    grv_bench_result_add(result, "mesh_bytes", (double)mesh_bytes);
    grv_bench_result_add(result, "mesh_bytes_per_second",
                         (double)mesh_bytes / result->median_seconds);
    grv_bench_result_add(result, "peak_bytes", (double)grv_memory_get().peak_bytes);
    return GRV_OK;
}

grv_status grv_bench_mesh(const char *problem, const char *folder, grv_bench_result *result)
{
    grv_status status = GRV_OK;
    mesh_problem p;
    char name[GRV_BENCH_NAME_BYTES], *path = NULL;
    grv_mesh *made = NULL;
    *result = (grv_bench_result){0};
    GRV_TRY(parse_problem(problem, &p));
    (void)snprintf(result->problem, sizeof result->problem, "mesh:%s:%s:%lld:t%d:r%d",
                   p.base64 ? "base64" : "raw", p.zlib ? "zlib" : "none", (long long)p.side,
                   p.n_threads, p.n_repetitions);
    (void)snprintf(name, sizeof name, "%s_%s_%lld.vtu", p.base64 ? "base64" : "raw",
                   p.zlib ? "zlib" : "none", (long long)p.side);
    GRV_TRY(grvi_fs_make_directory(folder));
    GRV_TRY_GOTO(grvi_fs_join(folder, name, &path));
    GRV_TRY_GOTO(make_mesh(p.side, &made));
    if (!grvi_fs_exists(path)) {
        const grv_mesh_write_params params = {.encoding =
                                                  p.base64 ? GRV_MESH_BASE64 : GRV_MESH_BINARY,
                                              .zlib_level = p.zlib ? 6 : 0,
                                              .n_threads = p.n_threads};
        GRV_TRY_GOTO(grv_mesh_write(made, path, &params));
    }
    GRV_TRY_GOTO(measure(&p, path, made, result));
done:
    grv_memory_keep(0);
    grv_mesh_destroy(&made);
    grv_free(path);
    return status;
}
