/* STL: binary, and text with a solid per part. Normals are those of the points; a triangle without area has the normal 0. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/triangles.h"
#include "mesh/mesh_impl.h"
#include "mesh/mesh_out.h"

enum { HEADER_BYTES = 80, FACET_BYTES = 50 };

static void corner(const grv_triangles *t, int64_t triangle, int k, double out[3])
{
    const int64_t point = t->triangles[3 * triangle + k];
    for (int i = 0; i < 3; i++)
        out[i] = t->type == GRV_STORE_F32 ? (double)((const float *)t->points)[3 * point + i]
                                          : ((const double *)t->points)[3 * point + i];
}

/* Corners and, first, the unit normal. */
static void facet_of(const grv_triangles *t, int64_t triangle, double facet[12])
{
    double *const n = facet, *const a = facet + 3, *const b = facet + 6, *const c = facet + 9;
    for (int k = 0; k < 3; k++) corner(t, triangle, k, facet + 3 + 3 * k);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        n[i] = (b[j] - a[j]) * (c[k] - a[k]) - (b[k] - a[k]) * (c[j] - a[j]);
    }
    const double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    for (int i = 0; i < 3; i++) n[i] = length > 0 ? n[i] / length : 0;
}

static void write_binary(const grv_triangles *t, grvi_out *out)
{
    char header[HEADER_BYTES] = "grove: binary STL"; /* never "solid" */
    const uint32_t n = (uint32_t)t->n_triangles;
    grvi_out_put(out, header, sizeof header);
    grvi_out_put(out, &n, sizeof n);
    for (int64_t i = 0; i < t->n_triangles; i++) {
        double facet[12];
        float values[12];
        uint8_t bytes[FACET_BYTES] = {0};
        facet_of(t, i, facet);
        for (int k = 0; k < 12; k++) values[k] = (float)facet[k];
        memcpy(bytes, values, sizeof values);
        grvi_out_put(out, bytes, sizeof bytes);
    }
}

/* Triangles by part, stable: order [n_triangles], begins [n_parts + 1]. parts == NULL: one. */
static void sort_by_part(const grv_triangles *t, const int32_t *parts, int64_t n_parts,
                         int64_t *begins, int32_t *order)
{
    memset(begins, 0, (size_t)(n_parts + 1) * sizeof *begins);
    for (int64_t i = 0; i < t->n_triangles; i++)
        begins[1 + (parts == NULL ? 0 : parts[t->faces[i]])]++;
    for (int64_t i = 0; i < n_parts; i++) begins[i + 1] += begins[i];
    for (int64_t i = 0; i < t->n_triangles; i++)
        order[begins[parts == NULL ? 0 : parts[t->faces[i]]]++] = (int32_t)i;
    for (int64_t i = n_parts; i > 0; i--) begins[i] = begins[i - 1];
    begins[0] = 0;
}

static void put_vector(grvi_out *out, const char *before, int n_digits, const double v[3])
{
    grvi_out_printf(out, "%s %.*g %.*g %.*g\n", before, n_digits, v[0], n_digits, v[1], n_digits,
                    v[2]);
}

static void write_solid(const grv_triangles *t, const char *name, const int32_t *order, int64_t n,
                        grvi_out *out)
{
    const int n_digits = t->type == GRV_STORE_F32 ? 9 : 17;
    grvi_out_put(out, "solid ", 6);
    grvi_out_put(out, name, (int64_t)strcspn(name, "\r\n"));
    grvi_out_put(out, "\n", 1);
    for (int64_t i = 0; i < n; i++) {
        double facet[12];
        facet_of(t, order[i], facet);
        put_vector(out, " facet normal", 9, facet);
        grvi_out_printf(out, "  outer loop\n");
        for (int k = 1; k < 4; k++) put_vector(out, "   vertex", n_digits, facet + 3 * k);
        grvi_out_printf(out, "  endloop\n endfacet\n");
    }
    grvi_out_put(out, "endsolid ", 9);
    grvi_out_put(out, name, (int64_t)strcspn(name, "\r\n"));
    grvi_out_put(out, "\n", 1);
}

/* Array of parts and their names, NULL where the mesh has none. */
static grv_status find_parts(const grv_mesh *mesh, const int32_t **parts, const char **names,
                             int64_t *n_parts)
{
    const grv_mesh_array *const array = grv_mesh_find(&mesh->cell_data, "part"),
                                *const texts = grv_mesh_find(&mesh->field_data, "part_names");
    *parts = NULL;
    *names = "";
    *n_parts = 1;
    if (array == NULL || texts == NULL || array->type != GRV_STORE_I32 ||
        array->n_components != 1 || !texts->is_text || texts->n_tuples < 1)
        return GRV_OK;
    *parts = array->data;
    *names = texts->data;
    *n_parts = texts->n_tuples;
    for (int64_t i = 0; i < array->n_tuples; i++)
        GRV_CHECK((*parts)[i] >= 0 && (*parts)[i] < *n_parts, GRV_E_ARG,
                  "part of cell %lld is %d, there are %lld names", (long long)i, (*parts)[i],
                  (long long)*n_parts);
    return GRV_OK;
}

static grv_status write_text(const grv_mesh *mesh, const grv_triangles *t, grvi_out *out)
{
    grv_status status = GRV_OK;
    const int32_t *parts = NULL;
    const char *name = NULL;
    int64_t n_parts = 0, *begins = NULL;
    int32_t *order = NULL;
    GRV_TRY(find_parts(mesh, &parts, &name, &n_parts));
    GRV_TRY_GOTO(GRVI_ALLOC(&begins, n_parts + 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&order, t->n_triangles));
    sort_by_part(t, parts, n_parts, begins, order);
    for (int64_t i = 0; i < n_parts; i++) {
        if (begins[i + 1] > begins[i] || n_parts == 1)
            write_solid(t, name, order + begins[i], begins[i + 1] - begins[i], out);
        name += strlen(name) + 1;
    }
done:
    grv_free(begins);
    grv_free(order);
    return status;
}

grv_status grvi_stl_write(const grv_mesh *mesh, const grv_mesh_write_params *params, int fd,
                          const char *path)
{
    grv_status status = GRV_OK;
    grv_triangles *t = NULL;
    grvi_out out = {0};
    GRV_TRY_GOTO(grv_triangles_from_mesh(mesh, &t));
    GRV_TRY_GOTO(grvi_out_init(&out, fd, path));
    if (params->encoding == GRV_MESH_ASCII)
        GRV_TRY_GOTO(write_text(mesh, t, &out));
    else
        write_binary(t, &out);
    GRV_TRY_GOTO(grvi_out_flush(&out));
done:
    grvi_out_fini(&out);
    grv_triangles_destroy(&t);
    return status;
}
