/* What the fuzz targets of mesh share: bytes become a file, the file a mesh, and the mesh is used. */
#ifndef GRVI_TEST_MESH_FUZZ_H
#define GRVI_TEST_MESH_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "fuzz.h"
#include "grove/core.h"
#include "grove/triangles.h"
#include "mesh/mesh_impl.h"

/* What holds of every mesh that was read: indices in range, tuples as many as points and cells. */
static inline void check_mesh(const grv_mesh *mesh)
{
    const int64_t n_points = grv_mesh_n_points(mesh), n_cells = grv_mesh_n_cells(mesh);
    if (mesh->kind == GRV_MESH_SURFACE || mesh->kind == GRV_MESH_CELLS) {
        for (int64_t i = 0; i < mesh->n_cells; i++)
            if (mesh->offsets[i + 1] < mesh->offsets[i]) abort();
        for (int64_t i = 0; mesh->n_cells > 0 && i < mesh->offsets[mesh->n_cells]; i++)
            if (mesh->connectivity[i] < 0 || mesh->connectivity[i] >= n_points) abort();
    }
    for (int64_t i = 0; i < mesh->point_data.n; i++)
        if (mesh->point_data.items[i].n_tuples != n_points) abort();
    for (int64_t i = 0; i < mesh->cell_data.n; i++)
        if (mesh->cell_data.items[i].n_tuples != n_cells) abort();
}

static inline void use_triangles(const grv_mesh *mesh)
{
    grv_triangles *t = NULL;
    grv_triangles_measure measure;
    if (grv_triangles_from_mesh(mesh, &t) != GRV_OK) return;
    if (grv_triangles_weld(t, 1e-3, NULL) != GRV_OK || grv_triangles_clean(t, NULL) != GRV_OK ||
        grv_triangles_orient(t, true, NULL) != GRV_OK ||
        grv_triangles_measure_get(t, &measure) != GRV_OK)
        grv_error_clear();
    grv_triangles_destroy(&t);
}

/* Reads bytes with one of the readers. */
static inline void fuzz_reader(grvi_mesh_reader *reader, const uint8_t *data, size_t n)
{
    const grvi_mesh_file file = {.path = "fuzz", .data = data, .n_bytes = (int64_t)n, .fd = -1};
    grv_mesh *mesh = NULL;
    if (grv_mesh_create(GRV_MESH_SURFACE, &mesh) != GRV_OK) abort();
    if (reader(&file, 1, mesh) == GRV_OK) {
        check_mesh(mesh);
        use_triangles(mesh);
    }
    grv_error_clear();
    grv_mesh_destroy(&mesh);
}

static inline int write_corpus(const char *folder, const char *name, const void *data, size_t n)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "wb");
    if (file == NULL) return 1;
    (void)fwrite(data, 1, n, file);
    return fclose(file) != 0;
}

#endif
