/* grove geom: finds the command among those for geometry. */
#include <stdio.h>
#include <string.h>

#include "cli/geom_cli.h"
#include "core/nearest.h"

/* In the order in which a user meets them. */
static const grvc_command commands[] = {
    {"info", "what is in mesh files, and whether their surfaces are sound", grvc_geom_info},
    {"convert", "a mesh as another format; repaired, scaled, moved", grvc_geom_convert},
    {"sdf", "signed distances to a surface, on a grid or at points; a picture", grvc_geom_sdf},
    {"knn", "the k nearest points of each query", grvc_geom_knn},
    {"radius", "the points within one or several radii of each query", grvc_geom_radius},
    {"sample", "random points on or inside a surface; evenly spread points", grvc_geom_sample},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *stream)
{
    (void)fprintf(
        stream, "usage: grove geom COMMAND [arguments]\n\n"
                "Searches in space, distances to surfaces, mesh files: docs/geometry.md.\n"
                "Read are STL, OBJ, VTK's XML files and legacy VTK; points also from a Zarr array "
                "(FOLDER.zarr/NAME)\nor a .npy file. Written are Zarr, STL, VTP, VTU, VTI. "
                "A result is seen as a whole or not at all.\n\n"
                "commands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        (void)fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(stream, "\n`grove geom COMMAND --help` lists the arguments and keys of a "
                          "command.\n");
}

static int usage_error(const char *word)
{
    grvi_nearest search = {.word = word};
    if (grvc_launcher_rank() != 0) return GRVC_EXIT_USAGE;
    for (int i = 0; i < N_COMMANDS; i++) grvi_nearest_offer(&search, commands[i].name);
    const char *const nearest = grvi_nearest_get(&search);
    (void)fprintf(stderr, "grove geom: unknown command '%.80s'; ", word);
    if (nearest != NULL)
        (void)fprintf(stderr, "did you mean '%s'?\n", nearest);
    else
        (void)fprintf(stderr, "`grove geom --help` lists all\n");
    return GRVC_EXIT_USAGE;
}

int grvc_geom(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return GRVC_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return GRVC_EXIT_OK;
    }
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    return usage_error(argv[1]);
}
