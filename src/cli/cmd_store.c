/* grove store: finds the command among those for stores. */
#include "cli/store_cli.h"

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

int grvc_store(int argc, char **argv)
{
    static const grvc_group group = {
        .name = "grove store",
        .about = "Looks into, copies and checks stores of chunked arrays (Zarr) and data sets.\n"
                 "PATH is a folder (a store, or a group or array in one), a zip archive "
                 "(ARCHIVE.zip/NAME for\n"
                 "what is in it), or an address http://...; what is written is a folder.",
        .commands = commands,
        .n_commands = sizeof commands / sizeof *commands};
    return grvc_run_group(&group, argc, argv);
}
