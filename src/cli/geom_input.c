/* What the commands of `grove geom` read: points and surfaces. */
#include <math.h>
#include <string.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "store/npy.h"

const char *const grvc_places[] = {"points", "cells", NULL};
const char *const grvc_real_types[] = {"keep", "float32", "float64", NULL};

bool grvc_has_ending(const char *word, const char *ending)
{
    const size_t n = strlen(word), m = strlen(ending);
    if (n < m) return false;
    for (size_t i = 0; i < m; i++) {
        const char c = word[n - m + i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != ending[i]) return false;
    }
    return true;
}

void grvc_tell_step(const grvc_session *session, const char *step, double *since_s)
{
    const double now_s = grv_clock_seconds();
    grv_log_message(session->log, GRV_LOG_DEBUG, "%s: %.2f s", step, now_s - *since_s);
    *since_s = now_s;
}

/* ---- points ---- */

static grv_status read_mesh(const char *word, int n_threads, grv_mesh **mesh)
{
    const grv_mesh_read_params params = {.n_threads = n_threads};
    return grv_mesh_read(word, &params, mesh);
}

static grv_status points_of_mesh(const char *word, int at, int n_threads, grvc_points *points)
{
    grv_mesh *mesh = NULL;
    grv_status status = GRV_OK;
    GRV_TRY(read_mesh(word, n_threads, &mesh));
    GRV_CHECK_GOTO(mesh->points.data != NULL || mesh->kind == GRV_MESH_SURFACE ||
                       mesh->kind == GRV_MESH_CELLS,
                   GRV_E_ARG, "%s: a list of points expected, a regular grid found", word);
    *points = (grvc_points){.type = mesh->points.type, .dimension = 3};
    if (at == GRVC_AT_CELLS) {
        points->n = mesh->n_cells;
        GRV_TRY_GOTO(
            grvi_alloc(3 * points->n, (size_t)grv_store_type_bytes(points->type), &points->data));
        GRV_TRY_GOTO(grv_mesh_cell_centres(mesh, points->data));
    } else {
        points->n = mesh->points.n_tuples;
        points->data = mesh->points.data;
        mesh->points.data = NULL;
    }
done:
    grv_mesh_destroy(&mesh);
    return status;
}

static grv_status check_shape(const char *word, int rank, const int64_t *shape)
{
    if (rank == 2 && (shape[1] == 2 || shape[1] == 3)) return GRV_OK;
    grvi_text text = {0};
    for (int i = 0; i < rank; i++)
        grvi_text_printf(&text, i > 0 ? ", %lld" : "%lld", (long long)shape[i]);
    const grv_status status =
        grvi_fail(GRV_E_SHAPE, __FILE__, __LINE__, __func__,
                  "%s: points [n, 3] or [n, 2] expected, [%s] found", word, grvi_text_get(&text));
    grvi_text_fini(&text);
    return status;
}

static grv_status points_of_array(const char *word, grv_array *array, grvc_points *points)
{
    static const int64_t origin[2] = {0, 0};
    const grv_array_desc *const desc = grv_array_get_desc(array);
    GRV_TRY(check_shape(word, desc->rank, desc->shape));
    GRV_CHECK(desc->type == GRV_STORE_F32 || desc->type == GRV_STORE_F64, GRV_E_UNSUPPORTED,
              "%s: points of float32 or float64 expected, %s found", word,
              grv_store_type_name(desc->type));
    *points = (grvc_points){desc->type, desc->shape[0], (int)desc->shape[1], NULL};
    GRV_TRY(grvi_alloc(desc->shape[0] * desc->shape[1], (size_t)desc->item_bytes, &points->data));
    return grv_array_read(array, origin, desc->shape, points->data, NULL);
}

static grv_status points_of_store(const char *word, int n_threads, grvc_points *points)
{
    grv_status status = GRV_OK;
    grvc_node node = {0};
    grv_node_kind kind = GRV_NODE_NONE;
    grv_array *array = NULL;
    char *path = NULL;
    GRV_TRY(grvc_node_open(word, n_threads, &node));
    GRV_TRY_GOTO(grvc_node_kind(&node, word, &kind));
    if (kind == GRV_NODE_GROUP) {
        GRV_TRY_GOTO(grv_store_node(node.store, "points", &kind));
        GRV_CHECK_GOTO(kind == GRV_NODE_ARRAY, GRV_E_NOT_FOUND,
                       "%s is a group without an array 'points'; `grove store ls` lists what is in "
                       "it",
                       word);
        GRV_TRY_GOTO(grvi_strdup("points", &path));
    } else {
        GRV_TRY_GOTO(grvi_strdup(node.path, &path));
    }
    GRV_TRY_GOTO(grv_array_open(node.store, path, &array));
    GRV_TRY_GOTO(points_of_array(word, array, points));
done:
    grv_array_close(&array);
    grvc_node_close(&node);
    grv_free(path);
    return status;
}

/* The elements move to the start of the memory that the file was read into. */
static grv_status points_of_npy(const char *word, grvc_points *points)
{
    static const int64_t most_bytes = (int64_t)1 << 40;
    char *bytes = NULL;
    int64_t n_bytes = 0;
    grvi_npy npy;
    GRV_TRY(grvi_fs_read(word, most_bytes, &bytes, &n_bytes));
    grv_status status = grvi_npy_parse(bytes, n_bytes, word, &npy);
    if (status == GRV_OK) status = check_shape(word, npy.rank, npy.shape);
    if (status != GRV_OK) {
        grv_free(bytes);
        return status;
    }
    memmove(bytes, bytes + npy.data_at, (size_t)(n_bytes - npy.data_at));
    *points = (grvc_points){npy.type, npy.shape[0], (int)npy.shape[1], bytes};
    return GRV_OK;
}

grv_status grvc_points_read(const char *word, int at, int n_threads, grvc_points *points)
{
    grv_status status = GRV_OK;
    *points = (grvc_points){0};
    if (grvi_fs_is_directory(word) || strstr(word, "://") != NULL || strstr(word, ".zip") != NULL)
        status = points_of_store(word, n_threads, points);
    else if (grvc_has_ending(word, ".npy"))
        status = points_of_npy(word, points);
    else
        status = points_of_mesh(word, at, n_threads, points);
    if (status == GRV_OK && points->n == 0)
        status = grvi_fail(GRV_E_ARG, __FILE__, __LINE__, __func__, "%s has no %s", word,
                           grvc_places[at]);
    if (status != GRV_OK) grvc_points_fini(points);
    return status;
}

static grv_status widen(grvc_points *points)
{
    double *wide = NULL;
    const float *const narrow = points->data;
    const int64_t n = points->n * points->dimension;
    GRV_TRY(GRVI_ALLOC(&wide, n));
    for (int64_t i = 0; i < n; i++) wide[i] = (double)narrow[i];
    grv_free(points->data);
    points->data = wide;
    points->type = GRV_STORE_F64;
    return GRV_OK;
}

grv_status grvc_points_match(grvc_points *a, grvc_points *b)
{
    GRV_CHECK(a->dimension == b->dimension, GRV_E_SHAPE,
              "points and queries of the same dimension expected, %d and %d found", a->dimension,
              b->dimension);
    return a->type == b->type ? GRV_OK : widen(a->type == GRV_STORE_F32 ? a : b);
}

void grvc_points_fini(grvc_points *points)
{
    grv_free(points->data);
    *points = (grvc_points){0};
}

/* ---- surfaces ---- */

static grv_status check_surface(const char *word, const grv_triangles *triangles)
{
    double lower[3], upper[3];
    GRV_CHECK(triangles->n_triangles > 0, GRV_E_ARG,
              "%s: a surface expected, there are no triangles or polygons in it", word);
    grv_triangles_box(triangles, lower, upper);
    for (int i = 0; i < 3; i++)
        GRV_CHECK(isfinite(lower[i]) && isfinite(upper[i]), GRV_E_ARG,
                  "%s: triangles with NaN or infinite coordinates; `grove geom convert %s OUT "
                  "clean=true` drops them",
                  word, word);
    return GRV_OK;
}

grv_status grvc_surface_read(const char *word, int n_threads, grv_triangles **triangles)
{
    grv_mesh *mesh = NULL;
    *triangles = NULL;
    GRV_CHECK(!grvi_fs_is_directory(word), GRV_E_ARG,
              "%s: a mesh file (STL, OBJ, VTK) expected, a folder found", word);
    GRV_TRY(read_mesh(word, n_threads, &mesh));
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(mesh->kind == GRV_MESH_SURFACE || mesh->kind == GRV_MESH_CELLS, GRV_E_ARG,
                   "%s: a surface expected, a regular grid found", word);
    GRV_TRY_GOTO(grv_triangles_from_mesh(mesh, triangles));
    GRV_TRY_GOTO(check_surface(word, *triangles));
done:
    grv_mesh_destroy(&mesh);
    if (status != GRV_OK) grv_triangles_destroy(triangles);
    return status;
}

grv_status grvc_surface_create(const grv_triangles *t, const grv_surface_params *params,
                               grv_surface **surface)
{
    return t->type == GRV_STORE_F32 ? grv_surface_create_f32(t->n_points, t->points, t->n_triangles,
                                                             t->triangles, params, surface)
                                    : grv_surface_create_f64(t->n_points, t->points, t->n_triangles,
                                                             t->triangles, params, surface);
}
