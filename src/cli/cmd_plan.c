/* grove plan: what a training run would need, for any number of ranks, before anything is allocated. */
#include <stdio.h>

#include "cli/cli.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/train.h"

static grv_status make_plan(const grv_train_config *c, int rank, grv_plan **plan)
{
    grv_dataset *data = NULL;
    grv_fno_params fno;
    grv_graph *primitive = NULL, *graph = NULL;
    GRV_TRY(grv_dataset_open(c->data, NULL, &data));
    grv_status status = grv_train_network(c, grv_dataset_get_desc(data), &fno);
    grv_dataset_close(&data);
    GRV_TRY(status);
    GRV_TRY(grv_fno_build(&fno, c->batch, true, &primitive));
    status = grv_graph_fuse(primitive, &graph);
    grv_graph_destroy(&primitive);
    GRV_TRY(status);
    const grv_plan_params params = {.dtype = GRV_F32, .n_threads = c->threads > 0 ? c->threads : 1, .n_data = c->n_data,
                                    .n_domain = c->n_domain > 0 ? c->n_domain : 1, .rank = rank, .gradients = true};
    status = grv_graph_differentiate(graph);
    if (status == GRV_OK) status = grv_plan_create(graph, &params, plan);
    grv_graph_destroy(&graph);
    return status;
}

static grv_status print_plan(const grvc_session *session, const grv_train_config *c)
{
    const int n_ranks = c->n_data * (c->n_domain > 0 ? c->n_domain : 1);
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out, .pretty = true};
    grvi_json_begin_array(&w);
    for (int rank = 0; rank < n_ranks; rank++) {
        grv_plan *plan = NULL;
        GRV_TRY(make_plan(c, rank, &plan));
        const grv_plan_summary s = grv_plan_summarise(plan);
        const double total = (double)(s.arena_bytes + s.scratch_bytes + s.buffer_bytes + 4 * s.param_bytes);
        if (!session->json) {
            if (rank == 0) (void)printf("%5s %12s %12s %12s %12s %12s %12s %10s\n", "rank", "parameters", "fields MB", "weights MB", "total MB", "GF a step", "MB sent", "messages");
            (void)printf("%5d %12lld %12.1f %12.1f %12.1f %12.2f %12.2f %10lld\n", rank, (long long)s.param_count, 1e-6 * (double)s.arena_bytes,
                         4e-6 * (double)s.param_bytes, 1e-6 * total, 1e-9 * s.flops, 1e-6 * (double)s.sent_bytes, (long long)s.n_messages);
        }
        const struct {
            const char *key;
            double value;
        } values[] = {{"parameters", (double)s.param_count}, {"arena_bytes", (double)s.arena_bytes}, {"scratch_bytes", (double)s.scratch_bytes},
                      {"buffer_bytes", (double)s.buffer_bytes}, {"parameter_bytes", (double)s.param_bytes}, {"total_bytes", total},
                      {"flops", s.flops}, {"read_bytes", s.read_bytes}, {"written_bytes", s.written_bytes}, {"sent_bytes", (double)s.sent_bytes},
                      {"messages", (double)s.n_messages}};
        grvi_json_begin_object(&w);
        grvi_json_key(&w, "rank");
        grvi_json_i64(&w, rank);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            grvi_json_key(&w, values[i].key);
            grvi_json_double(&w, values[i].value);
        }
        grvi_json_end_object(&w);
        if (!session->json && session->verbose && rank == 0) {
            char *const text = grv_plan_text(plan);
            (void)printf("%s", text == NULL ? "" : text);
            grv_free(text);
        }
        grv_plan_destroy(&plan);
    }
    grvi_json_end_array(&w);
    if (session->json) (void)printf("%s\n", grvi_text_get(&out));
    const grv_status status = grvi_text_status(&out);
    grvi_text_fini(&out);
    return status;
}

int grvc_plan(int argc, char **argv)
{
    grv_train_config config = {0};
    grvc_session session = {.name = "grove plan",
                            .about = "Says what a training step of a configuration needs on each rank of mesh.data x mesh.domain: memory, work, traffic.\n"
                                     "Nothing is allocated and no other rank is asked. -v lists the steps of rank 0. The keys are those of grove train.",
                            .table = grv_train_options(),
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, print_plan(&session, &config));
}
