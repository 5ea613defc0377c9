/* grove geom: finds the command among those for geometry. */
#include "cli/geom_cli.h"

/* In the order in which a user meets them. */
static const grvc_command commands[] = {
    {"info", "what is in mesh files, and whether their surfaces are sound", grvc_geom_info},
    {"convert", "a mesh as another format; repaired, scaled, moved", grvc_geom_convert},
    {"sdf", "signed distances to a surface, on a grid or at points; a picture", grvc_geom_sdf},
    {"knn", "the k nearest points of each query", grvc_geom_knn},
    {"radius", "the points within one or several radii of each query", grvc_geom_radius},
    {"sample", "random points on or inside a surface; evenly spread points", grvc_geom_sample},
};

int grvc_geom(int argc, char **argv)
{
    static const grvc_group group = {
        .name = "grove geom",
        .about =
            "Searches in space, distances to surfaces, mesh files: docs/geometry.md.\n"
            "Read are STL, OBJ, VTK's XML files and legacy VTK; points also from a Zarr array\n"
            "(FOLDER.zarr/NAME) or a .npy file. Written are Zarr, STL, VTP, VTU, VTI. A result is "
            "seen as a\n"
            "whole or not at all.",
        .commands = commands,
        .n_commands = sizeof commands / sizeof *commands};
    return grvc_run_group(&group, argc, argv);
}
