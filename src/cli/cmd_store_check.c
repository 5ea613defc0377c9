/* grove store check: decodes every chunk and lists what is wrong. */
#include <stddef.h>
#include <stdio.h>

#include "cli/store_cli.h"
#include "grove/core.h"

typedef struct check_config {
    int threads;
} check_config;

static const grv_option options[] = {
    GRVC_OPTION_THREADS(offsetof(check_config, threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

static grv_status print_json(const grv_store *store, const grv_check_report *r, double seconds)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_integer(&w, "groups", r->n_groups);
    grvc_json_integer(&w, "arrays", r->n_arrays);
    grvc_json_integer(&w, "objects", r->n_objects);
    grvc_json_integer(&w, "object_bytes", r->n_bytes);
    grvc_json_reads(&w, store, seconds);
    grvc_json_integer(&w, "problem_count", r->n_problems);
    grvi_json_key(&w, "problems");
    grvi_json_begin_array(&w);
    for (int64_t i = 0; i < r->n_kept; i++) {
        grvi_json_begin_object(&w);
        grvc_json_text(&w, "node", r->problems[i].node);
        grvc_json_text(&w, "object", r->problems[i].object);
        grvc_json_text(&w, "reason", r->problems[i].reason);
        grvi_json_end_object(&w);
    }
    grvi_json_end_array(&w);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static void print_text(const char *word, const grv_check_report *r, double seconds)
{
    for (int64_t i = 0; i < r->n_kept; i++) {
        const grv_store_problem *const p = &r->problems[i];
        (void)printf("%s%s%s: %s\n", p->node, p->object[0] != '\0' ? "  " : "", p->object,
                     p->reason);
    }
    if (r->n_problems > r->n_kept)
        (void)printf("and %lld more\n", (long long)(r->n_problems - r->n_kept));
    (void)printf("%s: %lld array%s, %lld objects, %.1f MB stored, %.1f MB decoded in %.1f s: ",
                 word, (long long)r->n_arrays, r->n_arrays == 1 ? "" : "s", (long long)r->n_objects,
                 (double)r->n_bytes * 1e-6, (double)r->n_decoded_bytes * 1e-6, seconds);
    if (r->n_problems == 0)
        (void)printf("no problems\n");
    else
        (void)printf("%lld problem%s\n", (long long)r->n_problems, r->n_problems == 1 ? "" : "s");
}

static grv_status run(const grvc_session *session, const check_config *config, bool *is_right)
{
    grv_status status = GRV_OK;
    grvc_node node;
    grvc_tool tool;
    grv_check_report report = {0};
    *is_right = true;
    GRV_TRY(grvc_node_open(session->words[0], grvc_threads(config->threads), &node));
    grvc_tool_begin(&tool, session, "check");
    const grv_tool_hooks hooks = grvc_tool_hooks(&tool);
    status = grv_store_check(node.store, node.path, &hooks, &report);
    const double seconds = grvc_tool_end(&tool);
    GRV_TRY_GOTO(status);
    *is_right = report.n_problems == 0;
    if (session->json)
        GRV_TRY_GOTO(print_json(node.store, &report, seconds));
    else
        print_text(session->words[0], &report, seconds);
done:
    grv_check_report_fini(&report);
    grvc_node_close(&node);
    return status;
}

int grvc_store_check(int argc, char **argv)
{
    check_config config = {0};
    bool is_right = false;
    grvc_session session = {.name = "grove store check",
                            .about = "Checks a store, group or array: every chunk is decoded "
                                     "(checksums, sizes, shard indices), metadata\n"
                                     "are read, and files among the chunks that do not belong "
                                     "there are named. Exit code 1 if there are problems.",
                            .words_usage = "PATH",
                            .min_words = 1,
                            .max_words = 1,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    const int exit_code = grvc_end(&session, run(&session, &config, &is_right));
    return exit_code == GRVC_EXIT_OK && !is_right ? GRVC_EXIT_FAILED : exit_code;
}
