/* grove bench: a problem in, time, floor and a checked answer out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/json.h"
#include "grove/bench.h"
#include "grove/core.h"

static grv_status print_json(const grv_bench_result *r)
{
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out, .pretty = true};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "problem");
    grvi_json_string(&w, r->problem);
    grvi_json_key(&w, "median_seconds");
    grvi_json_double(&w, r->median_seconds);
    grvi_json_key(&w, "floor_seconds");
    grvi_json_double(&w, r->floor_seconds);
    grvi_json_key(&w, "floor_ratio");
    grvi_json_double(&w, r->floor_ratio);
    grvi_json_key(&w, "correct");
    grvi_json_bool(&w, r->correct);
    for (int i = 0; i < r->n_values; i++) {
        grvi_json_key(&w, r->values[i].name);
        grvi_json_double(&w, r->values[i].value);
    }
    grvi_json_end_object(&w);
    (void)printf("%s\n", grvi_text_get(&out));
    const grv_status status = grvi_text_status(&out);
    grvi_text_fini(&out);
    return status;
}

static grv_status print_result(const grvc_session *session, const grv_bench_result *r)
{
    if (session->json) return print_json(r);
    (void)printf("%s: %.6g s", r->problem, r->median_seconds);
    if (r->floor_seconds > 0) (void)printf(", floor %.6g s, ratio %.2f", r->floor_seconds, r->floor_ratio);
    (void)printf(", %s\n", r->correct ? "correct" : "WRONG");
    for (int i = 0; i < r->n_values; i++) (void)printf("  %-36s %.6g\n", r->values[i].name, r->values[i].value);
    return GRV_OK;
}

static grv_status print_machine(const grvc_session *session)
{
    grv_machine m;
    for (int threads = 1; threads <= grv_threads_available(); threads *= 2) {
        GRV_TRY(grv_bench_machine(threads, &m));
        if (session->json)
            (void)printf("{\"threads\": %d, \"peak_flops_per_second\": %.6g, \"read_bytes_per_second\": %.6g, \"write_bytes_per_second\": %.6g}\n",
                         threads, m.flops, m.read_bytes, m.write_bytes);
        else
            (void)printf("%d thread%s: peak %.1f GF/s, read %.1f GB/s, write %.1f GB/s\n", threads, threads > 1 ? "s" : "", 1e-9 * m.flops,
                         1e-9 * m.read_bytes, 1e-9 * m.write_bytes);
    }
    return GRV_OK;
}

static bool progress(void *user, double done, const char *what)
{
    grv_progress_update(user, (int64_t)(100 * done));
    (void)what;
    return !grvc_interrupted();
}

static grv_status validate_flow(const grvc_session *session, grv_bench_result *result)
{
    grv_progress bar;
    grv_progress_begin(&bar, session->log, "flow validate", "%", 100);
    const grv_status status = grv_flow_validate(16, grv_threads_available(), progress, &bar, result);
    grv_progress_end(&bar);
    return status;
}

static grv_status run(const grvc_session *session)
{
    const char *const problem = session->words[0];
    grv_bench_result result;
    if (strcmp(problem, "machine") == 0) return print_machine(session);
    if (strcmp(problem, "flow") == 0) {
        GRV_CHECK(session->n_words == 2 && strcmp(session->words[1], "validate") == 0, GRV_E_ARG, "flow validate, or flow:<problem>, expected");
        GRV_TRY(validate_flow(session, &result));
    } else if (strncmp(problem, "fno:", 4) == 0) {
        GRV_TRY(grv_bench_fno(problem, &result));
    } else if (strncmp(problem, "flow:", 5) == 0) {
        GRV_TRY(grv_bench_flow(problem, &result));
    } else if (strncmp(problem, "store:", 6) == 0) {
        GRV_CHECK(session->n_words == 2, GRV_E_ARG, "a folder for the data expected after '%.80s'", problem);
        GRV_TRY(grv_bench_store(problem, session->words[1], &result));
    } else if (strncmp(problem, "sdf:", 4) == 0) {
        GRV_CHECK(session->n_words == 2, GRV_E_ARG, "a folder with the surface expected after '%.80s'", problem);
        GRV_TRY(grv_bench_sdf(problem, session->words[1], &result));
    } else if (strncmp(problem, "mesh:", 5) == 0) {
        GRV_CHECK(session->n_words == 2, GRV_E_ARG, "a folder for the file expected after '%.80s'", problem);
        GRV_TRY(grv_bench_mesh(problem, session->words[1], &result));
    } else if (strncmp(problem, "neighbours:", 11) == 0) {
        GRV_TRY(grv_bench_neighbours(problem, session->n_words == 2 ? session->words[1] : NULL, &result));
    } else if (strncmp(problem, "batch:campaign:", 15) == 0) {
        GRV_TRY(grv_bench_campaign(problem, session->n_words == 2 ? session->words[1] : NULL, &result));
    } else if (strncmp(problem, "batch:", 6) == 0) {
        GRV_TRY(grv_bench_batch(problem, session->n_words == 2 ? session->words[1] : NULL, &result));
    } else {
        GRV_FAIL(GRV_E_ARG, "machine, fno:<problem>, flow:<problem>, flow validate, store:<problem> FOLDER, sdf:<problem> FOLDER, mesh:<problem> FOLDER, neighbours:<problem> [FOLDER], or batch:<problem> [FOLDER] expected, '%.80s' found", problem);
    }
    GRV_TRY(print_result(session, &result));
    GRV_CHECK(result.correct, GRV_E_NUMERIC, "the answer of %s is wrong", result.problem);
    return GRV_OK;
}

int grvc_bench(int argc, char **argv)
{
    grvc_session session = {.name = "grove bench",
                            .about = "Measures on this machine; give it alone to the benchmark.\n"
                                     "  machine                        peak and bandwidths\n"
                                     "  fno:64x64x64x16w20m12,12,12,6  a training step (include/grove/bench.h has the problem language;\n"
                                     "                                 t2: two threads, k4: blocks, b1: batch, :paper: the parallel FNO)\n"
                                     "  flow:tgv128                    a time step of the flow solver\n"
                                     "  batch:call:100000              tasks without work on a worker per core; also batch:program:1000, batch:sleep:100,\n"
                                     "                                 batch:broadcast:8:m1024, batch:campaign:100:s2, batch:slurm:1024 DIR\n"
                                     "  neighbours:uniform:1000000:k7:t2  build and queries of nearest neighbours; also surface, file with a folder\n"
                                     "  flow validate                  drag and Strouhal numbers against literature; minutes\n"
                                     "  store:fields:zstd:1024:t2 DIR  reads and writes of a store of 1024 MiB that is made in DIR\n"
                                     "  sdf:points:n1000000:t2 DIR     distances to the surface in DIR; also sdf:grid\n"
                                     "  mesh:raw:zlib:100:t2 DIR       reads a VTU of 100^3 cells that is made in DIR",
                            .words_usage = "PROBLEM [FOLDER]",
                            .min_words = 1,
                            .max_words = 2};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grvc_interrupt_install();
    return grvc_end(&session, run(&session));
}
