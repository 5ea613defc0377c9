/* Reads a mesh and writes it: python_mesh_tool IN OUT binary|base64|ascii LEVEL, for test_mesh.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grove/mesh.h"

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    grv_mesh *mesh = NULL;
    grv_mesh_write_params params = grv_mesh_write_params_default();
    params.encoding = strcmp(argv[3], "ascii") == 0    ? GRV_MESH_ASCII
                      : strcmp(argv[3], "base64") == 0 ? GRV_MESH_BASE64
                                                       : GRV_MESH_BINARY;
    params.zlib_level = (int)strtol(argv[4], NULL, 10);
    params.n_threads = 2;
    const int failed = grv_mesh_read(argv[1], NULL, &mesh) != GRV_OK ||
                       grv_mesh_write(mesh, argv[2], &params) != GRV_OK;
    if (failed) (void)fprintf(stderr, "%s\n", grv_error_trace());
    grv_mesh_destroy(&mesh);
    return failed;
}
