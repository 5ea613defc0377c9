/* grove store cat: elements of an array. */
#include <stddef.h>
#include <stdio.h>

#include "cli/store_cli.h"
#include "cli/store_print.h"
#include "grove/core.h"

typedef struct cat_config {
    bool all, raw;
    char *npy;
    int threads;
} cat_config;

#define AT(field) offsetof(cat_config, field)
static const grv_option options[] = {
    {.key = "all",
     .type = GRV_OPTION_BOOL,
     .offset = AT(all),
     .fallback = "false",
     .help = "print every element; else more than 1000 are summarised"},
    {.key = "raw",
     .type = GRV_OPTION_BOOL,
     .offset = AT(raw),
     .fallback = "false",
     .help = "the bytes of the elements on standard output"},
    {.key = "npy",
     .type = GRV_OPTION_STRING,
     .offset = AT(npy),
     .fallback = "",
     .help = "write them to this NumPy file"},
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

static void write_shape(grvi_json_writer *w, const grvc_slice *slice)
{
    int64_t shape[GRV_STORE_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < slice->rank; i++) {
        if (!slice->is_dropped[i]) shape[rank++] = slice->count[i];
    }
    grvc_json_lengths(w, "shape", rank, shape);
}

/* values: also the elements */
static grv_status print_json(const grvc_node *node, grv_array *array, const grvc_slice *slice,
                             bool values, double start_s)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grv_status status = GRV_OK;
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "type", grv_store_type_name(grv_array_get_desc(array)->type));
    write_shape(&w, slice);
    if (values) {
        grvi_json_key(&w, "values");
        GRV_TRY_GOTO(grvc_print_json(&w, array, slice));
    }
    grvc_json_reads(&w, node->store, grv_clock_seconds() - start_s);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
done:
    grvi_text_fini(&text);
    return status;
}

static grv_status print_region(const grvc_session *session, const cat_config *config,
                               const grvc_node *node, grv_array *array, const grvc_slice *slice)
{
    const double start_s = grv_clock_seconds();
    const bool to_file = config->npy[0] != '\0';
    if (to_file) GRV_TRY(grvc_write_npy(config->npy, array, slice));
    if (config->raw) return grvc_write_raw(stdout, "standard output", array, slice);
    if (session->json) return print_json(node, array, slice, !to_file, start_s);
    return to_file ? GRV_OK : grvc_print_text(array, slice, config->all);
}

static grv_status run(const grvc_session *session, const cat_config *config)
{
    const char *const word = session->words[0];
    grv_status status = GRV_OK;
    grv_array *array = NULL;
    grvc_slice slice;
    grvc_node node;
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_CHECK(!config->raw || (!session->json && config->npy[0] == '\0'), GRV_E_ARG,
              "raw bytes on standard output exclude --json and npy");
    GRV_TRY(grvc_node_open(word, grvc_threads(config->threads), &node));
    GRV_TRY_GOTO(grvc_node_kind(&node, word, &kind));
    GRV_CHECK_GOTO(kind == GRV_NODE_ARRAY, GRV_E_ARG,
                   "%s is a group; `grove store ls` lists its arrays", word);
    GRV_TRY_GOTO(grv_array_open(node.store, node.path, &array));
    const grv_array_desc *const desc = grv_array_get_desc(array);
    GRV_TRY_GOTO(grvc_slice_parse(session->n_words > 1 ? session->words[1] : NULL, desc->rank,
                                  desc->shape, &slice));
    GRV_TRY_GOTO(print_region(session, config, &node, array, &slice));
done:
    grv_array_close(&array);
    grvc_node_close(&node);
    return status;
}

int grvc_store_cat(int argc, char **argv)
{
    cat_config config = {0};
    grvc_session session = {.name = "grove store cat",
                            .about =
                                "Prints elements of an array. SLICES are those of NumPy, one for "
                                "each axis: 0,2:5,-1 or ...,0;\n"
                                "steps are 1. Only the chunks that hold the elements are read.",
                            .words_usage = "PATH [SLICES]",
                            .min_words = 1,
                            .max_words = 2,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
