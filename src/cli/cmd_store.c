/* grove store: finds the command among those for stores. */
#include <stdio.h>
#include <string.h>

#include "cli/store_cli.h"
#include "core/nearest.h"

/* In the order in which a user meets them. */
static const grvc_command commands[] = {
    {"ls", "the groups and arrays in a group", grvc_store_ls},
    {"info", "one group, data set or array", grvc_store_info},
    {"cat", "elements of an array: as text, JSON, bytes, or into an .npy file", grvc_store_cat},
    {"copy", "a group or array to another place, as it is", grvc_store_copy},
    {"convert", "the same as Zarr version 3 (or 2), with other chunks, shards, codecs",
     grvc_store_convert},
    {"check", "decodes every chunk, verifies checksums, metadata and names", grvc_store_check},
    {"shuffle", "permutes arrays in tandem along their first axis", grvc_store_shuffle},
    {"bench", "how fast an array is read: whole, by windows, by random rows", grvc_store_bench},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *stream)
{
    (void)fprintf(stream, "usage: grove store COMMAND [arguments]\n\n"
                          "Looks into, copies and checks stores of chunked arrays (Zarr) and data "
                          "sets.\nPATH is a folder (a store, or a group or array in one), a zip "
                          "archive (ARCHIVE.zip/NAME for\nwhat is in it), or an address "
                          "http://...; what is written is a folder.\n\n"
                          "commands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        (void)fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(stream, "\n`grove store COMMAND --help` lists the arguments and keys of a "
                          "command.\n");
}

static int usage_error(const char *word)
{
    grvi_nearest search = {.word = word};
    if (grvc_launcher_rank() != 0) return GRVC_EXIT_USAGE;
    for (int i = 0; i < N_COMMANDS; i++) grvi_nearest_offer(&search, commands[i].name);
    const char *const nearest = grvi_nearest_get(&search);
    (void)fprintf(stderr, "grove store: unknown command '%.80s'; ", word);
    if (nearest != NULL)
        (void)fprintf(stderr, "did you mean '%s'?\n", nearest);
    else
        (void)fprintf(stderr, "`grove store --help` lists all\n");
    return GRVC_EXIT_USAGE;
}

int grvc_store(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return GRVC_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return GRVC_EXIT_OK;
    }
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    return usage_error(argv[1]);
}
