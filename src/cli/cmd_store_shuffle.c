/* grove store shuffle: permutes arrays in tandem along their first axis. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/store_cli.h"
#include "grove/core.h"

typedef struct shuffle_config {
    int64_t seed;
    grv_string_list arrays;
    grv_i64_list chunk;
    int64_t memory;
    int threads;
} shuffle_config;

#define AT(field) offsetof(shuffle_config, field)
static const grv_option options[] = {
    {.key = "seed",
     .type = GRV_OPTION_I64,
     .offset = AT(seed),
     .fallback = "0",
     .min = 0,
     .max = 9e15,
     .help = "of the permutation"},
    {.key = "arrays",
     .type = GRV_OPTION_STRING_LIST,
     .offset = AT(arrays),
     .fallback = "[]",
     .help = "names of the arrays in the group that belong together; empty: all of them"},
    {.key = "chunk",
     .type = GRV_OPTION_I64_LIST,
     .offset = AT(chunk),
     .fallback = "[]",
     .max_items = GRV_STORE_MAX_RANK,
     .max = HUGE_VAL,
     .unit = "elements",
     .help =
         "shape of the chunks, for arrays of that many axes; 0: the whole axis; empty: as before"},
    {.key = "memory",
     .type = GRV_OPTION_I64,
     .offset = AT(memory),
     .fallback = "1024",
     .min = 1,
     .max = 1e9,
     .unit = "MiB",
     .help = "most memory"},
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

static grv_status print_result(const grvc_session *session, const grvc_node *from,
                               const grvc_node *to, const shuffle_config *config, double seconds)
{
    if (!session->json) {
        (void)printf("%s: shuffled by seed %lld; %.1f s\n", session->words[1],
                     (long long)config->seed, seconds);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", session->words[1]);
    grvc_json_integer(&w, "seed", config->seed);
    grvc_json_integer(&w, "bytes_written", grv_store_counters_get(to->store).bytes_written);
    grvc_json_reads(&w, from->store, seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static grv_status run(const grvc_session *session, const shuffle_config *config)
{
    grv_status status = GRV_OK;
    grvc_node from = {0}, to = {0};
    grvc_tool tool;
    grv_node_kind kind = GRV_NODE_NONE;
    const int n_threads = grvc_threads(config->threads);
    const char *names[GRV_LIST_MAX];
    grv_shuffle_params params = grv_shuffle_params_default();
    params.seed = (uint64_t)config->seed;
    params.memory_bytes = config->memory << 20;
    params.source_name = session->words[0];
    params.arrays = names;
    params.n_arrays = config->arrays.n;
    params.layout.chunk_rank = config->chunk.n;
    for (int i = 0; i < GRV_LIST_MAX; i++) names[i] = config->arrays.at[i];
    for (int i = 0; i < GRV_STORE_MAX_RANK; i++) params.layout.chunk[i] = config->chunk.at[i];
    GRV_TRY_GOTO(grvc_node_open(session->words[0], n_threads, &from));
    GRV_TRY_GOTO(grvc_node_kind(&from, session->words[0], &kind)); /* before a folder is made */
    GRV_TRY_GOTO(grvc_node_open_new(session->words[1], n_threads, GRV_STORE_SYNC_NONE, &to));
    grvc_tool_begin(&tool, session, "shuffle");
    params.hooks = grvc_tool_hooks(&tool);
    status = grv_store_shuffle(from.store, from.path, to.store, to.path, &params);
    const double seconds = grvc_tool_end(&tool);
    GRV_TRY_GOTO(status);
    GRV_TRY_GOTO(print_result(session, &from, &to, config, seconds));
done:
    grvc_node_close(&from);
    grvc_node_close(&to);
    return status;
}

int grvc_store_shuffle(int argc, char **argv)
{
    shuffle_config config = {0};
    grvc_session session = {.name = "grove store shuffle",
                            .about = "Permutes an array, or the arrays of a group in tandem, along "
                                     "their first axis into new ones.\n"
                                     "The order depends on the seed only. Arrays may be larger "
                                     "than memory: a temporary file beside the\n"
                                     "new arrays takes as much space as the rows. A contiguous "
                                     "window of the result is a random sample.",
                            .words_usage = "SOURCE TARGET",
                            .min_words = 2,
                            .max_words = 2,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
