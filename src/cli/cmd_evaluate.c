/* grove evaluate: the error of a run on samples that it never saw, with pictures. */
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "grove/core.h"
#include "grove/use.h"

static void print_table(const grv_evaluate_config *config, const grv_evaluate_result *r)
{
    const grv_evaluation *const e = &r->evaluation;
    (void)printf("%s, %lld samples\n", config->run, (long long)e->n_samples);
    (void)printf("  %-34s %10s\n", "predictor", "error");
    (void)printf("  %-34s %10.4f\n", "network", e->relative_l2);
    (void)printf("  %-34s %10.4f\n", "mean of the training fields", e->relative_l2_mean_field);
    (void)printf("  %-34s %10.4f\n", "zero", e->relative_l2_zero);
    (void)printf("  %-34s %10s\n", "answer", "seconds");
    (void)printf("  %-34s %10.4f\n", "simulator (one core)", r->simulator_seconds);
    (void)printf("  %-34s %10.4f\n", "network (these ranks)", r->surrogate_seconds);
    (void)printf("  %-34s %9.1fx\n", "speed-up", r->simulator_seconds / r->surrogate_seconds);
    (void)printf("error = mean over samples of ||p - y|| / ||y||; files in %s: metrics.json, test_losses.csv, loss.png, sample_*.png\n", config->run);
}

static void print_json(const grv_evaluate_result *r)
{
    /* finite numbers only; what is not known is null */
    const double values[] = {r->evaluation.relative_l2, r->evaluation.relative_l2_mean_field, r->evaluation.relative_l2_zero, r->simulator_seconds,
                             r->surrogate_seconds};
    static const char *const keys[] = {"relative_l2", "relative_l2_mean_field", "relative_l2_zero", "simulator_seconds", "surrogate_seconds"};
    (void)printf("{");
    for (int i = 0; i < 5; i++) {
        (void)printf("%s\"%s\": ", i > 0 ? ", " : "", keys[i]);
        if (isfinite(values[i])) (void)printf("%.9g", values[i]);
        else (void)printf("null");
    }
    (void)printf("}\n");
}

int grvc_evaluate(int argc, char **argv)
{
    grv_evaluate_config config = {0};
    grv_evaluate_result result;
    grv_comm *comm = NULL;
    grvc_session session = {.name = "grove evaluate",
                            .about = "Evaluates a run on samples that it never saw, against two trivial predictors, and draws them.",
                            .table = grv_evaluate_options(),
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grv_status status = grvc_ranks_begin(&session, &comm);
    if (status == GRV_OK) status = grv_evaluate_run(&config, comm, session.log, &result);
    if (status == GRV_OK && session.rank == 0) {
        if (session.json) print_json(&result);
        else print_table(&config, &result);
    }
    const int exit_code = grvc_end(&session, status);
    grvc_ranks_end(&comm);
    return exit_code;
}
