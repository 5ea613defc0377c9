/* What the commands of `grove store` share. Internal to src/cli.
 * Each is a file cmd_store_<name>.c with one function grvc_store_<name>, as the commands of grove are; cmd_store.c lists them. */
#ifndef GRVC_STORE_CLI_H
#define GRVC_STORE_CLI_H

#include "cli/cli.h"
#include "core/json.h"
#include "grove/store_tools.h"

int grvc_store_bench(int argc, char **argv);
int grvc_store_cat(int argc, char **argv);
int grvc_store_check(int argc, char **argv);
int grvc_store_convert(int argc, char **argv);
int grvc_store_copy(int argc, char **argv);
int grvc_store_info(int argc, char **argv);
int grvc_store_ls(int argc, char **argv);
int grvc_store_shuffle(int argc, char **argv);

/* A node that a word of the command line names: a store, and the path in it. */
typedef struct grvc_node {
    grv_store *store;
    char *path; /* "" for the store's own node; owned */
    char *
        folder; /* that was made for it; owned, NULL if there was one. Removed again if nothing came into it */
} grvc_node;

/* Threads of a key `threads`, where 0 stands for all that there are. */
int grvc_threads(int threads);

/* Are there metadata of a group or an array in it? */
bool grvc_is_zarr_folder(const char *folder);
/* Opens for reading: a folder (any group or array is a store), a zip archive or a path in one, an address. */
grv_status grvc_node_open(const char *word, int n_threads, grvc_node *node) GRV_MUST_CHECK;
/* Opens for writing what is to be made: as part of the group that the folder above belongs to, if there is one. */
grv_status grvc_node_open_new(const char *word, int n_threads, grv_store_sync sync,
                              grvc_node *node) GRV_MUST_CHECK;
void grvc_node_close(grvc_node *node);
/* What is there; an error that helps where nothing is. */
grv_status grvc_node_kind(const grvc_node *node, const char *word,
                          grv_node_kind *kind) GRV_MUST_CHECK;

/* Progress of a tool on the session's log, begun when a step takes long enough to wonder; Ctrl-C ends it. */
typedef struct grvc_tool {
    grv_log *log;
    const char *label, *unit;
    int64_t unit_size; /* what is counted, in units: 1000000 bytes are a MB */
    double start_s;
    bool is_shown;
    grv_progress progress;
} grvc_tool;

void grvc_tool_begin(grvc_tool *tool, const grvc_session *session, const char *label);
/* The same for other things than bytes. */
void grvc_tool_begin_counting(grvc_tool *tool, const grvc_session *session, const char *label,
                              const char *unit);
/* Shows how far it is; false after Ctrl-C. */
bool grvc_tool_advance(grvc_tool *tool, int64_t done, int64_t total);
grv_tool_hooks grvc_tool_hooks(grvc_tool *tool);
/* Ends the progress; seconds since the beginning. */
double grvc_tool_end(grvc_tool *tool);

/* Members of an open JSON object. */
void grvc_json_text(grvi_json_writer *w, const char *key, const char *value);
void grvc_json_integer(grvi_json_writer *w, const char *key, int64_t value);
void grvc_json_number(grvi_json_writer *w, const char *key, double value);
void grvc_json_numbers(grvi_json_writer *w, const char *key, int n, const double *values);
void grvc_json_lengths(grvi_json_writer *w, const char *key, int rank, const int64_t *lengths);
void grvc_json_reads(grvi_json_writer *w, const grv_store *store, double seconds);
/* Prints the document and frees it. */
grv_status grvc_json_print(grvi_text *document) GRV_MUST_CHECK;

/* "group", "array" or "unreadable" */
const char *grvc_kind_name(grv_node_kind kind);
/* Members that tell about an array, into an object that is open. */
grv_status grvc_json_array(grvi_json_writer *w, grv_array *array, bool in_full) GRV_MUST_CHECK;

/* Keys that several commands have, for their option tables; `at` is the offset of the field. */
#define GRVC_OPTION_THREADS(at)                                                            \
    {                                                                                      \
        .key = "threads", .type = GRV_OPTION_INT, .offset = at, .fallback = "0", .min = 0, \
        .max = 1024, .help = "0: as many as the machine has"                               \
    }
#define GRVC_OPTION_OVERWRITE(at)                                                       \
    {                                                                                   \
        .key = "overwrite", .type = GRV_OPTION_BOOL, .offset = at, .fallback = "false", \
        .help = "replace what is there already"                                         \
    }

#endif
