/* A mesh scaled and moved; the range of its values, the centres of its cells. */
#include <math.h>

#include "mesh/mesh_impl.h"

void grv_mesh_array_range(const grv_mesh_array *array, int component, double *min, double *max,
                          int64_t *n_not_finite)
{
    int64_t n_left_out = 0;
    *min = *max = NAN;
    for (int64_t i = 0; i < array->n_tuples && !array->is_text; i++) {
        const double value = grvi_mesh_value(array, i * array->n_components + component);
        if (!isfinite(value)) {
            n_left_out++;
            continue;
        }
        if (!(*min <= value)) *min = value;
        if (!(*max >= value)) *max = value;
    }
    if (n_not_finite != NULL) *n_not_finite = n_left_out;
}

/* Component c of each tuple belongs to axis first_axis + c. */
static void transform_values(grv_mesh_array *array, int first_axis, const double *scale,
                             const double *translate)
{
    const int64_t n = array->n_tuples * array->n_components;
    for (int64_t i = 0; i < n; i++) {
        const int axis = first_axis + (int)(i % array->n_components);
        const double value = grvi_mesh_value(array, i) * scale[axis] + translate[axis];
        if (array->type == GRV_STORE_F32)
            ((float *)array->data)[i] = (float)value;
        else
            ((double *)array->data)[i] = value;
    }
}

static grv_status transform_image(grv_mesh *mesh, const double *scale, const double *translate)
{
    const bool is_uniform = scale[0] == scale[1] && scale[1] == scale[2];
    for (int i = 0; i < 9; i++)
        GRV_CHECK(is_uniform || i % 4 == 0 || mesh->direction[i] == 0, GRV_E_ARG,
                  "the axes of the image are turned: the same scale on all of them expected");
    for (int i = 0; i < 3; i++) {
        mesh->origin[i] = mesh->origin[i] * scale[i] + translate[i];
        mesh->spacing[i] *= scale[i];
    }
    return GRV_OK;
}

grv_status grv_mesh_transform(grv_mesh *mesh, const double scale[3], const double translate[3])
{
    for (int i = 0; i < 3; i++)
        GRV_CHECK(scale[i] > 0 && isfinite(scale[i]) && isfinite(translate[i]), GRV_E_ARG,
                  "a finite scale > 0 and a finite translation expected, got %g and %g", scale[i],
                  translate[i]);
    if (mesh->kind == GRV_MESH_IMAGE) return transform_image(mesh, scale, translate);
    for (int axis = 0; axis < 3; axis++)
        if (mesh->coordinates[axis].data != NULL)
            GRV_TRY(grvi_mesh_points_to_real(&mesh->coordinates[axis]));
    transform_values(&mesh->points, 0, scale, translate);
    for (int axis = 0; axis < 3; axis++)
        if (mesh->coordinates[axis].data != NULL)
            transform_values(&mesh->coordinates[axis], axis, scale, translate);
    return GRV_OK;
}

grv_status grv_mesh_cell_centres(const grv_mesh *mesh, void *centres)
{
    GRV_CHECK(mesh->kind == GRV_MESH_SURFACE || mesh->kind == GRV_MESH_CELLS, GRV_E_ARG,
              "a mesh with a list of cells expected, this one is a grid");
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const int64_t begin = mesh->offsets[i], end = mesh->offsets[i + 1];
        for (int axis = 0; axis < 3; axis++) {
            double sum = 0;
            for (int64_t j = begin; j < end; j++)
                sum += grvi_mesh_value(&mesh->points, 3 * mesh->connectivity[j] + axis);
            const double mean = sum / (double)(end - begin);
            if (mesh->points.type == GRV_STORE_F32)
                ((float *)centres)[3 * i + axis] = (float)mean;
            else
                ((double *)centres)[3 * i + axis] = mean;
        }
    }
    return GRV_OK;
}
