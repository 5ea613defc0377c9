/* grove store copy, grove store convert: a group or array to another place, as it is or with another layout. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/store_cli.h"
#include "grove/core.h"

enum { KEEP_CODECS = 0 };
static const char *const compressors[] = {"keep",       "none", "zstd", "blosc_lz4",
                                          "blosc_zstd", "gzip", NULL};
static const char *const formats[] = {"keep", "2", "3", NULL};
static const char *const syncs[] = {"none", "commit", "each", NULL};

typedef struct copy_config {
    int zarr_format; /* 0: keep, 1: 2, 2: 3 */
    grv_i64_list chunk, shard;
    bool unshard;
    int compressor; /* KEEP_CODECS, or grv_compressor + 1 */
    int level;
    bool checksum;
    bool verify, resume, consolidate;
    int64_t memory;
    int threads, sync;
} copy_config;

#define AT(field) offsetof(copy_config, field)
/* The keys of copy come last, so that both commands use one list. */
static const grv_option options[] = {
    {.key = "zarr_format",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(zarr_format),
     .fallback = "3",
     .choices = formats,
     .help = "version of the new arrays and groups"},
    {.key = "chunk",
     .type = GRV_OPTION_I64_LIST,
     .offset = AT(chunk),
     .fallback = "[]",
     .max_items = GRV_STORE_MAX_RANK,
     .max = HUGE_VAL,
     .unit = "elements",
     .help =
         "shape of the chunks, of the inner ones in shards; 0: the whole axis; empty: as before"},
    {.key = "shard",
     .type = GRV_OPTION_I64_LIST,
     .offset = AT(shard),
     .fallback = "[]",
     .max_items = GRV_STORE_MAX_RANK,
     .max = HUGE_VAL,
     .unit = "elements",
     .help = "shape of the shards, multiples of the chunks; 0: the whole axis; empty: as before"},
    {.key = "unshard",
     .type = GRV_OPTION_BOOL,
     .offset = AT(unshard),
     .fallback = "false",
     .help = "each inner chunk becomes a file of its own"},
    {.key = "compressor",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(compressor),
     .fallback = "keep",
     .choices = compressors,
     .help = "of the chunks; keep: the codecs as before"},
    {.key = "level",
     .type = GRV_OPTION_INT,
     .offset = AT(level),
     .fallback = "1",
     .min = 0,
     .max = 22,
     .help = "of the compressor"},
    {.key = "checksum",
     .type = GRV_OPTION_BOOL,
     .offset = AT(checksum),
     .fallback = "false",
     .help = "CRC-32C after each chunk"},
    {.key = "verify",
     .type = GRV_OPTION_BOOL,
     .offset = AT(verify),
     .fallback = "false",
     .help = "decode every chunk, also where bytes could be copied as they are"},
    {.key = "resume",
     .type = GRV_OPTION_BOOL,
     .offset = AT(resume),
     .fallback = "true",
     .help = "go on with an unfinished copy of the same"},
    {.key = "consolidate",
     .type = GRV_OPTION_BOOL,
     .offset = AT(consolidate),
     .fallback = "false",
     .help = "also one document of all metadata in the new group, for readers over HTTP"},
    {.key = "memory",
     .type = GRV_OPTION_I64,
     .offset = AT(memory),
     .fallback = "1024",
     .min = 1,
     .max = 1e9,
     .unit = "MiB",
     .help = "most memory for elements and their encoding"},
    GRVC_OPTION_THREADS(AT(threads)),
    {.key = "sync",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(sync),
     .fallback = "none",
     .choices = syncs,
     .help = "when the copy is forced to the disk: never, at its end, each file"},
};
enum { N_OPTIONS = sizeof options / sizeof *options, N_LAYOUT = 7 };
static const grv_option_table convert_table = {options, N_OPTIONS};
static const grv_option_table copy_table = {options + N_LAYOUT, N_OPTIONS - N_LAYOUT};

static grv_store_layout layout_of(const copy_config *config)
{
    grv_store_layout layout = {.zarr_format = config->zarr_format > 0 ? config->zarr_format + 1 : 0,
                               .chunk_rank = config->chunk.n,
                               .shard_rank = config->shard.n,
                               .unshard = config->unshard,
                               .recode = config->compressor != KEEP_CODECS,
                               .level = config->level,
                               .checksum = config->checksum};
    if (layout.recode) layout.compressor = (grv_compressor)(config->compressor - 1);
    for (int i = 0; i < GRV_STORE_MAX_RANK; i++) {
        layout.chunk[i] = config->chunk.at[i];
        layout.shard[i] = config->shard.at[i];
    }
    return layout;
}

static grv_status print_result(const grvc_session *session, const grvc_node *from,
                               const grvc_node *to, const grv_copy_report *r, double seconds)
{
    if (!session->json) {
        (void)printf("%s: %lld array%s, %.1f MB", session->words[1], (long long)r->n_arrays,
                     r->n_arrays == 1 ? "" : "s", (double)r->n_bytes * 1e-6);
        if (r->n_bytes_skipped > 0)
            (void)printf(", %.1f MB of them there already", (double)r->n_bytes_skipped * 1e-6);
        (void)printf("; %.1f s\n", seconds);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", session->words[1]);
    grvc_json_integer(&w, "groups", r->n_groups);
    grvc_json_integer(&w, "arrays", r->n_arrays);
    grvc_json_integer(&w, "arrays_copied_as_bytes", r->n_byte_copied);
    grvc_json_integer(&w, "bytes", r->n_bytes);
    grvc_json_integer(&w, "bytes_skipped", r->n_bytes_skipped);
    grvc_json_integer(&w, "bytes_written", grv_store_counters_get(to->store).bytes_written);
    grvc_json_reads(&w, from->store, seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static grv_status run(const grvc_session *session, const copy_config *config)
{
    grv_status status = GRV_OK;
    grvc_node from = {0}, to = {0};
    grvc_tool tool;
    grv_node_kind kind = GRV_NODE_NONE;
    grv_copy_report report;
    const int n_threads = grvc_threads(config->threads);
    grv_copy_params params = grv_copy_params_default();
    params.layout = layout_of(config);
    params.memory_bytes = config->memory << 20;
    params.resume = config->resume;
    params.verify = config->verify;
    params.source_name = session->words[0];
    GRV_TRY_GOTO(grvc_node_open(session->words[0], n_threads, &from));
    GRV_TRY_GOTO(grvc_node_kind(&from, session->words[0], &kind)); /* before a folder is made */
    GRV_TRY_GOTO(
        grvc_node_open_new(session->words[1], n_threads, (grv_store_sync)config->sync, &to));
    grvc_tool_begin(&tool, session, "copy");
    params.hooks = grvc_tool_hooks(&tool);
    status = grv_store_copy(from.store, from.path, to.store, to.path, &params, &report);
    const double seconds = grvc_tool_end(&tool);
    if (status == GRV_E_INTERRUPTED)
        GRV_FAIL_GOTO(status, "%s; run it again to go on", strstr(grv_error_message(), "stopped"));
    GRV_TRY_GOTO(status);
    if (config->consolidate && kind == GRV_NODE_GROUP)
        GRV_TRY_GOTO(grv_store_consolidate(to.store, to.path));
    GRV_TRY_GOTO(print_result(session, &from, &to, &report, seconds));
done:
    grvc_node_close(&from);
    grvc_node_close(&to);
    return status;
}

static int run_command(grvc_session *session, int argc, char **argv)
{
    copy_config config = {0};
    session->words_usage = "SOURCE TARGET";
    session->min_words = session->max_words = 2;
    session->params = &config;
    const int code = grvc_begin(session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(session, run(session, &config));
}

int grvc_store_copy(int argc, char **argv)
{
    grvc_session session = {.name = "grove store copy",
                            .about = "Copies an array, or a group with everything below it, as it "
                                     "is: chunks, codecs, attributes.\n"
                                     "An interrupted copy goes on when the call is repeated; until "
                                     "an array is complete it is not seen.",
                            .table = &copy_table};
    return run_command(&session, argc, argv);
}

int grvc_store_convert(int argc, char **argv)
{
    grvc_session session = {
        .name = "grove store convert",
        .about =
            "Copies an array, or a group with everything below it, as Zarr version 3 (or 2), with "
            "other chunks,\n"
            "shards or codecs. "
            "chunk and shard are for arrays of that many axes; others in the group keep theirs.\n"
            "Arrays may be larger than memory. An interrupted call goes on when it is repeated.",
        .table = &convert_table};
    return run_command(&session, argc, argv);
}
