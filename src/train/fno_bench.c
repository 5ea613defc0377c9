/* grove bench fno:... and machine: a training step against the floor of the machine that it runs on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/median.h"
#include "graph/plan_impl.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "grove/optimizer.h"
#include "kernels/machine_kernels.h"
#include "kernels/point_kernels.h"
#include "train/network_impl.h"

/* --- machine --- */

enum { MEMORY_FLOATS = 64 << 20, ROUNDS = 5 };

typedef struct machine_call {
    const grvi_machine_kernels *kernels;
    float *memory;
    int what; /* 0 multiply-add, 1 read, 2 write */
    int64_t flops; /* of one thread */
    float *sink;    /* [threads] keeps the loops alive */
} machine_call;

static void machine_range(void *argument, int thread, int64_t begin, int64_t end)
{
    machine_call *const call = argument;
    if (call->what == 0) {
        const int64_t flops = grvi_point_kernels_for(grvi_isa_chosen())->peak_loop(4000000);
        if (thread == 0) call->flops = flops;
    } else if (call->what == 1) {
        call->sink[thread] = call->kernels->read(end - begin, call->memory + begin);
    } else {
        call->kernels->write(end - begin, 1.0f, call->memory + begin);
    }
}

grv_status grv_bench_machine(int n_threads, grv_machine *out)
{
    machine_call call = {.kernels = grvi_machine_kernels_for(grvi_isa_chosen())};
    double seconds[3][ROUNDS];
    grv_status status = GRVI_ALLOC(&call.memory, MEMORY_FLOATS);
    if (status == GRV_OK) status = GRVI_CALLOC(&call.sink, n_threads);
    for (int round = -1; status == GRV_OK && round < ROUNDS; round++)
        for (int what = 2; what >= 0; what--) {
            const double begin = grv_clock_seconds();
            call.what = what;
            grv_parallel_for(n_threads, what == 0 ? n_threads : MEMORY_FLOATS, machine_range, &call);
            if (round >= 0) seconds[what][round] = grv_clock_seconds() - begin; /* the first round touches the memory */
        }
    const double bytes = (double)MEMORY_FLOATS * sizeof(float);
    if (status == GRV_OK)
        *out = (grv_machine){.n_threads = n_threads, .flops = (double)call.flops * n_threads / grvi_median(ROUNDS, seconds[0]),
                             .read_bytes = bytes / grvi_median(ROUNDS, seconds[1]), .write_bytes = bytes / grvi_median(ROUNDS, seconds[2])};
    grv_free(call.memory);
    grv_free(call.sink);
    return status;
}

/* --- problem --- */

typedef struct problem {
    grv_fno_params fno;
    int64_t batch;
    int threads, repetitions;
    bool is_paper;
} problem;

static bool number(const char **p, int64_t *out)
{
    char *end = NULL;
    *out = strtoll(*p, &end, 10);
    if (end == *p || *out < 1 || *out > 1000000) return false;
    *p = end;
    return true;
}

static bool list(const char **p, char separator, int64_t out[GRV_MAX_AXES], int *n)
{
    for (*n = 0; *n < GRV_MAX_AXES;) {
        if (!number(p, &out[*n])) return false;
        (*n)++;
        if (**p != separator) return true;
        (*p)++;
    }
    return false;
}

static bool parse(const char *text, problem *out)
{
    const char *p = strncmp(text, "fno:", 4) == 0 ? text + 4 : text;
    int n_modes = 0;
    int64_t value = 0;
    *out = (problem){.fno = {.n_blocks = 4, .c_in = 1, .c_out = 1, .projection_hidden = 128, .activation = GRV_ACTIVATION_GELU, .loss = GRV_LOSS_MSE},
                     .batch = 1, .threads = 1, .repetitions = 5};
    if (!list(&p, 'x', out->fno.n, &out->fno.n_axes) || *p++ != 'w' || !number(&p, &out->fno.width) || *p++ != 'm' ||
        !list(&p, ',', out->fno.modes, &n_modes) || n_modes != out->fno.n_axes)
        return false;
    while (*p != '\0') {
        if (strncmp(p, ":peer", 5) == 0) {
            p += 5;
            continue;
        }
        if (strncmp(p, ":paper", 6) == 0) {
            out->is_paper = true;
            p += 6;
            continue;
        }
        const char key = *p++;
        if (strchr("kbtr", key) == NULL || !number(&p, &value) || value > 1024) return false;
        if (key == 'k') out->fno.n_blocks = (int)value;
        if (key == 'b') out->batch = value;
        if (key == 't') out->threads = (int)value;
        if (key == 'r') out->repetitions = (int)value;
    }
    if (out->is_paper) {
        out->fno.lift_hidden = (out->fno.width + 1) / 2;
        out->fno.projection_hidden = 32;
        out->fno.activation = GRV_ACTIVATION_RELU;
        out->fno.activation_after_last = true;
        out->fno.c_in = 3;
        out->fno.loss = GRV_LOSS_RELATIVE_L2;
    }
    return true;
}

static void write_problem(const problem *p, char *out)
{
    int n = snprintf(out, GRV_BENCH_NAME_BYTES, "fno:");
    for (int a = 0; a < p->fno.n_axes; a++) n += snprintf(out + n, (size_t)(GRV_BENCH_NAME_BYTES - n), "%s%lld", a > 0 ? "x" : "", (long long)p->fno.n[a]);
    n += snprintf(out + n, (size_t)(GRV_BENCH_NAME_BYTES - n), "w%lldm", (long long)p->fno.width);
    for (int a = 0; a < p->fno.n_axes; a++) n += snprintf(out + n, (size_t)(GRV_BENCH_NAME_BYTES - n), "%s%lld", a > 0 ? "," : "", (long long)p->fno.modes[a]);
    (void)snprintf(out + n, (size_t)(GRV_BENCH_NAME_BYTES - n), ":%sk%db%lldt%dr%d", p->is_paper ? "paper" : "peer", p->fno.n_blocks, (long long)p->batch,
                   p->threads, p->repetitions);
}

/* --- measuring --- */

enum { MAX_REPETITIONS = 1024 };
/* Changes of the loss that are tried: large against rounding, and small against curvature and kinks. */
static const double loss_changes[] = {1e-6, 1e-7, 1e-5, 1e-8};

typedef struct bench {
    problem p;
    grv_network *network;
    grv_optimizer *optimizer;
    float *input, *target;
    double *stages; /* [n_steps][repetitions] */
    double steps[MAX_REPETITIONS], adam[MAX_REPETITIONS];
} bench;

static grv_status set_up(bench *b)
{
    const grv_network_params params = {.fno = b->p.fno, .batch = b->p.batch, .n_data = 1, .n_domain = 1, .n_threads = b->p.threads, .gradients = true,
                                       .loss = true};
    const grv_optimizer_params optimizer = grv_optimizer_params_default();
    GRV_TRY(grv_network_create(&params, NULL, NULL, &b->network));
    GRV_TRY(grv_network_initialise(b->network, 1));
    GRV_TRY(grv_optimizer_create(&optimizer, b->network, NULL, &b->optimizer));
    const int64_t n_input = grv_network_input_count(b->network) * b->p.batch, n_target = grv_network_output_count(b->network) * b->p.batch;
    GRV_TRY(GRVI_ALLOC(&b->input, n_input));
    GRV_TRY(GRVI_ALLOC(&b->target, n_target));
    GRV_TRY(GRVI_CALLOC(&b->stages, grv_plan_summarise(b->network->plan).n_steps * b->p.repetitions));
    for (int64_t i = 0; i < n_input; i++) b->input[i] = (float)grv_random_normal(1, 1, (uint64_t)i);
    for (int64_t i = 0; i < n_target; i++) b->target[i] = (float)grv_random_normal(1, 2, (uint64_t)i);
    return GRV_OK;
}

static grv_status loss_at(bench *b, double h, const float *gradients, double *loss)
{
    const int64_t n = grv_plan_summarise(b->network->plan).param_count;
    for (int64_t i = 0; i < n; i++) b->network->block[i] += (float)(h * (double)gradients[i]);
    GRV_TRY(grv_network_run(b->network, b->input, b->target));
    *loss = grv_exec_loss(b->network->exec);
    return GRV_OK;
}

/* Along the gradient the loss changes by h |g|^2 to first order; both sides of the point, so that curvature, which is large where many
 * positive weights add up, drops out. 10 % is allowed for what remains and for rounding; a wrong gradient fits at no step length. */
static grv_status check_gradient(bench *b, bool *correct)
{
    const int64_t n = grv_plan_summarise(b->network->plan).param_count;
    float *gradients = NULL; /* every run overwrites the network's own */
    double norm2 = 0;
    GRV_TRY(grv_network_run(b->network, b->input, b->target));
    GRV_TRY(GRVI_ALLOC(&gradients, n));
    memcpy(gradients, b->network->gradients, sizeof *gradients * (size_t)n);
    for (int64_t i = 0; i < n; i++) norm2 += (double)gradients[i] * (double)gradients[i];
    const double loss = grv_exec_loss(b->network->exec);
    grv_status status = GRV_OK;
    *correct = false;
    for (size_t k = 0; status == GRV_OK && !*correct && k < sizeof loss_changes / sizeof *loss_changes; k++) {
        double above = 0, below = 0, back = 0;
        const double change = loss_changes[k] * loss, h = change / norm2;
        status = loss_at(b, h, gradients, &above);
        if (status == GRV_OK) status = loss_at(b, -2 * h, gradients, &below);
        const double ratio = (above - below) / (2 * change);
        *correct = ratio > 0.9 && ratio < 1.1;
        if (status == GRV_OK && !*correct) status = loss_at(b, h, gradients, &back);
    }
    grv_free(gradients);
    return status;
}

static grv_status measure(bench *b)
{
    const int64_t n_steps = grv_plan_summarise(b->network->plan).n_steps;
    for (int r = -1; r < b->p.repetitions; r++) { /* the first step touches the moments */
        const double begin = grv_clock_seconds();
        GRV_TRY(grv_network_run(b->network, b->input, b->target));
        const double ran = grv_clock_seconds();
        GRV_TRY(grv_optimizer_step(b->optimizer, 1e-4, NULL));
        if (r < 0) continue;
        b->adam[r] = grv_clock_seconds() - ran;
        b->steps[r] = grv_clock_seconds() - begin;
        for (int64_t i = 0; i < n_steps; i++) b->stages[i * b->p.repetitions + r] = grv_exec_step_seconds(b->network->exec, i, NULL);
    }
    return GRV_OK;
}

static double floor_of(const grvi_cost *cost, const grv_machine *m)
{
    return fmax(cost->flops / m->flops, fmax(cost->read_bytes / m->read_bytes, cost->written_bytes / m->write_bytes));
}

static void report(bench *b, const grv_machine *m, grv_bench_result *out)
{
    const grv_plan *const plan = b->network->plan;
    double forward = 0, block = 0;
    bool in_forward = true;
    /* Adam: 12 flops a parameter, 16 bytes read and 12 written (spec performance.md 2) */
    const double n = (double)plan->param_count;
    const grvi_cost adam = {.flops = 12 * n, .read_bytes = 16 * n, .written_bytes = 12 * n};
    out->median_seconds = grvi_median(b->p.repetitions, b->steps);
    out->floor_seconds = floor_of(&adam, m);
    for (int i = 0; i < plan->n_steps; i++) {
        const grvi_step *const step = &plan->steps[i];
        const double seconds = grvi_median(b->p.repetitions, b->stages + (int64_t)i * b->p.repetitions);
        out->floor_seconds += floor_of(&step->cost, m);
        if (step->node.op == &grvi_op_loss) in_forward = false;
        const bool is_spectral = step->node.op == &grvi_op_analysis || step->node.op == &grvi_op_synthesis || step->node.op == &grvi_op_mode_mix ||
                                 step->node.op == &grvi_op_first_axis_analyse || step->node.op == &grvi_op_first_axis_synthesise;
        if (in_forward) forward += seconds;
        if (in_forward && is_spectral) block += seconds / b->p.fno.n_blocks;
        /* one row per kind of operation: the same in forward and backward are told apart */
        static const char *const names[][2] = {{"mlp_stream", "mlp_stream_seconds"}, {"spectral_analysis", "spectral_analysis_seconds"},
            {"first_axis_analyse", "first_axis_analyse_seconds"}, {"mode_mix", "mode_mix_seconds"},
            {"first_axis_synthesise", "first_axis_synthesise_seconds"}, {"spectral_synthesis", "spectral_synthesis_seconds"},
            {"linear", "linear_seconds"}, {"resize", "resize_seconds"}, {"loss", "loss_seconds"}, {"loss_gradient", "loss_gradient_seconds"},
            {"mlp_stream_gradient", "mlp_stream_gradient_seconds"}, {"spectral_analysis_gradient", "spectral_analysis_gradient_seconds"},
            {"linear_weight_gradient", "linear_weight_gradient_seconds"}, {"mode_mix_gradient", "mode_mix_gradient_seconds"}};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            if (strcmp(names[k][0], step->node.op->name) != 0) continue;
            int at = 0;
            while (at < out->n_values && strcmp(out->values[at].name, names[k][1]) != 0) at++;
            if (at == out->n_values) grv_bench_result_add(out, names[k][1], seconds);
            else out->values[at].value += seconds;
        }
    }
    out->floor_ratio = out->median_seconds / out->floor_seconds;
    grv_bench_result_add(out, "optimizer_seconds", grvi_median(b->p.repetitions, b->adam));
    grv_bench_result_add(out, "forward_seconds", forward);
    grv_bench_result_add(out, "block_forward_seconds", block);
    const grv_plan_summary s = grv_plan_summarise(plan);
    grv_bench_result_add(out, "parameters", n);
    grv_bench_result_add(out, "memory_bytes", (double)(s.arena_bytes + s.scratch_bytes + s.buffer_bytes + 4 * s.param_bytes));
    grv_bench_result_add(out, "peak_flops_per_second", m->flops);
    grv_bench_result_add(out, "read_bytes_per_second", m->read_bytes);
    grv_bench_result_add(out, "write_bytes_per_second", m->write_bytes);
}

grv_status grv_bench_fno(const char *text, grv_bench_result *result)
{
    bench *b = NULL;
    grv_machine machine = {0};
    *result = (grv_bench_result){0};
    GRV_TRY(GRVI_CALLOC(&b, 1));
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(parse(text, &b->p), GRV_E_ARG, "fno problem 'n0xn1..w<width>m<m0>,<m1>..[:peer|:paper][k..][b..][t..][r..]' expected, '%s' found", text);
    write_problem(&b->p, result->problem);
    GRV_TRY_GOTO(grv_bench_machine(b->p.threads, &machine));
    GRV_TRY_GOTO(set_up(b));
    GRV_TRY_GOTO(check_gradient(b, &result->correct));
    GRV_TRY_GOTO(measure(b));
    report(b, &machine, result);
done:
    grv_optimizer_destroy(&b->optimizer);
    grv_network_destroy(&b->network);
    grv_free(b->input);
    grv_free(b->target);
    grv_free(b->stages);
    grv_free(b);
    return status;
}
