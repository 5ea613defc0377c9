/* Benchmark of the flow solver: periodic Taylor-Green vortex
 *   u = sin kx cos ky, v = -cos kx sin ky, w = 0, k = 2 pi / N,
 * an exact solution whose energy decays as exp(-4 nu k^2 t), on the grid with a three-dimensional flow's cost: nothing in the solver knows
 * that it is plane. The floor counts the bytes of a good implementation at the bandwidth of a copy (docs/flow.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "grove/flow.h"

static const double pi = 3.14159265358979323846;
enum { MIN_STEPS = 5, MAX_STEPS = 101, WARM_UP_STEPS = 2, COPY_REPEATS = 7 };
static const int64_t copy_elements = (int64_t)8 << 20; /* of each array; out of cache together */

typedef struct tgv_problem {
    int64_t n;
    bool is_double;
    int n_threads, cycles, half_sweeps, steps; /* steps 0: by time */
} tgv_problem;

/* ---- the problem language ---- */

/* Reads a count of at least 1 after a letter. */
static bool read_count(const char **text, int *value)
{
    char *end = NULL;
    const long number = strtol(*text, &end, 10);
    if (end == *text || **text < '0' || **text > '9' || number < 1 || number > 1 << 20)
        return false;
    *text = end;
    *value = (int)number;
    return true;
}

static grv_status parse_problem(const char *text, tgv_problem *problem)
{
    const char *at = strncmp(text, "flow:", 5) == 0 ? text + 5 : text;
    int n = 0;
    *problem = (tgv_problem){.n_threads = 1, .cycles = 2, .half_sweeps = 4};
    bool is_known = strncmp(at, "tgv", 3) == 0;
    if (is_known) at += 3;
    is_known = is_known && read_count(&at, &n);
    while (is_known && *at != '\0') {
        const char option = *at++;
        switch (option) {
        case 'd': problem->is_double = true; break;
        case 't': is_known = read_count(&at, &problem->n_threads); break;
        case 'v': is_known = read_count(&at, &problem->cycles); break;
        case 'h': is_known = read_count(&at, &problem->half_sweeps); break;
        case 'r': is_known = read_count(&at, &problem->steps); break;
        default: is_known = false;
        }
    }
    problem->n = n;
    GRV_CHECK(is_known, GRV_E_ARG,
              "flow problem '%s': tgv<cells>[d][t<threads>][v<cycles>][h<half sweeps>][r<steps>] "
              "expected, e.g. tgv128t2",
              text);
    return GRV_OK;
}

/* ---- the floor ---- */

typedef struct copy_call {
    const float *from;
    float *to;
} copy_call;

static void copy_part(void *argument, int thread, int64_t begin, int64_t end)
{
    const copy_call *const call = argument;
    (void)thread;
    memcpy(call->to + begin, call->from + begin, (size_t)(end - begin) * sizeof(float));
}

/* Bytes read and written a second by the fastest of several copies. */
static grv_status copy_bandwidth(int n_threads, double *bytes_per_second)
{
    float *block = NULL;
    GRV_TRY(GRVI_ALLOC(&block, 2 * copy_elements));
    memset(block, 0, (size_t)(2 * copy_elements) * sizeof(float));
    copy_call call = {block, block + copy_elements};
    double best = (double)INFINITY;
    for (int i = 0; i < COPY_REPEATS; i++) {
        const double start = grv_clock_seconds();
        grv_parallel_for(n_threads, copy_elements, copy_part, &call);
        best = fmin(best, grv_clock_seconds() - start);
    }
    grv_free(block);
    *bytes_per_second = 2 * (double)copy_elements * sizeof(float) / best;
    return GRV_OK;
}

/* ---- the run ---- */

static double vortex(void *user, int component, const double position[3])
{
    const double k = 2 * pi / (double)*(const int64_t *)user, x = k * position[0],
                 y = k * position[1];
    return component == 0 ? sin(x) * cos(y) : component == 1 ? -cos(x) * sin(y) : 0;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static grv_status create_flow(tgv_problem *problem, double viscosity, grv_flow **flow)
{
    grv_flow_params params = grv_flow_params_default();
    for (int d = 0; d < 3; d++) {
        params.n[d] = problem->n;
        params.periodic[d] = true;
        params.velocity[d] = 0;
    }
    params.viscosity = viscosity;
    params.precision = problem->is_double ? GRV_FLOW_FLOAT64 : GRV_FLOW_FLOAT32;
    params.n_threads = problem->n_threads;
    params.fixed_cycles = problem->cycles;
    params.half_sweeps = problem->half_sweeps;
    GRV_TRY(grv_flow_create(&params, flow));
    grv_flow_velocity_set(*flow, vortex, &problem->n);
    return GRV_OK;
}

/* Fills seconds[] and the number of steps timed; the mean residual ratio of the last solve of each. */
static grv_status time_steps(grv_flow *flow, int asked, double *seconds, int *n_steps,
                             double *residual_ratio)
{
    double total = 0;
    *residual_ratio = 0;
    for (int i = 0; i < WARM_UP_STEPS; i++) GRV_TRY(grv_flow_step(flow));
    const int limit = asked > 0 ? asked : MAX_STEPS;
    for (*n_steps = 0; *n_steps < limit; (*n_steps)++) {
        if (asked == 0 && *n_steps >= MIN_STEPS && total > 2) break;
        const double start = grv_clock_seconds();
        GRV_TRY(grv_flow_step(flow));
        seconds[*n_steps] = grv_clock_seconds() - start;
        total += seconds[*n_steps];
        *residual_ratio += grv_flow_state_get(flow).last_residual_ratio;
    }
    *residual_ratio /= *n_steps;
    qsort(seconds, (size_t)*n_steps, sizeof *seconds, ascending);
    return GRV_OK;
}

static void fill_result(const tgv_problem *problem, double viscosity, double start_energy,
                        const grv_flow *flow, grv_bench_result *result)
{
    const double n = (double)problem->n, cells = n * n * n, k = 2 * pi / n;
    const grv_flow_state state = grv_flow_state_get(flow);
    const double bytes = (230 + 150.0 * problem->cycles) * (problem->is_double ? 2 : 1);
    const double exact = start_energy * exp(-4 * viscosity * k * k * state.time);
    const double energy_error = fabs(grv_flow_kinetic_energy(flow) - exact) / exact;
    double largest = 0;
    /* divergence against the velocity's own gradient, k: what the fixed number of cycles leaves */
    const double divergence = grv_flow_divergence(flow, &largest) / (0.5 * k);
    double bandwidth = 0;
    for (int i = 0; i < result->n_values; i++)
        if (strcmp(result->values[i].name, "copy_bytes_per_second") == 0)
            bandwidth = result->values[i].value;
    result->floor_seconds = bytes * cells / bandwidth;
    result->floor_ratio = result->median_seconds / result->floor_seconds;
    grv_bench_result_add(result, "ns_per_cell_step", 1e9 * result->median_seconds / cells);
    grv_bench_result_add(result, "cycles_per_solve",
                         (double)state.n_cycles / (double)state.n_solves);
    grv_bench_result_add(result, "bytes_per_cell", bytes);
    grv_bench_result_add(result, "energy_error", energy_error);
    grv_bench_result_add(result, "divergence_ratio", divergence);
    /* second order in the grid and growing with time in units of 1/k; the limited scheme stays below a third of it */
    const double energy_bound = 1e-5 + 0.1 * k * k * (k * state.time);
    result->correct = energy_error < energy_bound && divergence < 1e-2;
}

grv_status grv_bench_flow(const char *text, grv_bench_result *result)
{
    grv_status status = GRV_OK;
    grv_flow *flow = NULL;
    double *seconds = NULL, bandwidth = 0, residual_ratio = 0;
    tgv_problem problem;
    int n_steps = 0;
    *result = (grv_bench_result){0};
    GRV_TRY(parse_problem(text, &problem));
    const double viscosity =
        (double)problem.n / (2 * pi * 1600); /* Re 1600 built on velocity 1 and length 1/k */
    GRV_TRY_GOTO(GRVI_ALLOC(&seconds, problem.steps > 0 ? problem.steps : MAX_STEPS));
    GRV_TRY_GOTO(copy_bandwidth(problem.n_threads, &bandwidth));
    GRV_TRY_GOTO(create_flow(&problem, viscosity, &flow));
    const double start_energy = grv_flow_kinetic_energy(flow);
    GRV_TRY_GOTO(time_steps(flow, problem.steps, seconds, &n_steps, &residual_ratio));
    result->median_seconds = seconds[n_steps / 2];
    (void)snprintf(result->problem, sizeof result->problem, "flow:tgv%lld%st%dv%dh%dr%d",
                   (long long)problem.n, problem.is_double ? "d" : "", problem.n_threads,
                   problem.cycles, problem.half_sweeps, n_steps);
    grv_bench_result_add(result, "copy_bytes_per_second", bandwidth);
    grv_bench_result_add(result, "residual_ratio", residual_ratio);
    fill_result(&problem, viscosity, start_energy, flow, result);
done:
    grv_flow_destroy(&flow);
    grv_free(seconds);
    return status;
}
