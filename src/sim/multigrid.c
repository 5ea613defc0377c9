/* Multigrid cycle, coarsening of coefficients, coarsest level. See multigrid.h and docs/flow.md. */
#include "sim/multigrid.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "sim/coarsest.h"
#include "sim/wavefront.h"

/* Levels below this size are not worth waking a thread for. */
enum { CELLS_FOR_THREADS = 1 << 14 };

bool grvi_multigrid_coarsen(const int64_t n[3], const int64_t width[3], int64_t coarse[3])
{
    int64_t shortest = INT64_MAX;
    for (int d = 0; d < 3; d++)
        if (n[d] > 1) shortest = grvi_min_i64(shortest, width[d]);
    bool any = false;
    for (int d = 0; d < 3; d++) {
        const bool halve = n[d] % 2 == 0 && width[d] == shortest;
        coarse[d] = halve ? n[d] / 2 : n[d];
        any = any || halve;
    }
    return any;
}

static int threads_for(const grvi_multigrid *mg, const grvi_flow_grid *grid)
{
    return grid->n[0] * grid->n[1] * grid->n[2] < CELLS_FOR_THREADS ? 1 : mg->options.n_threads;
}

/* ---- memory ---- */

enum { FIELDS_PER_LEVEL = 7 }; /* x, rhs, residual, three faces, inverse diagonal */

static void place_fields(grvi_multigrid *mg)
{
    const bool is_double = mg->options.is_double;
    int64_t at = 0;
    for (int l = 0; l < mg->n_levels; l++) {
        grvi_flow_level *const level = &mg->level[l];
        void **const fields[FIELDS_PER_LEVEL] = {
            &level->x,       &level->rhs,     &level->residual,        &level->face[0],
            &level->face[1], &level->face[2], &level->inverse_diagonal};
        /* only the finest level, which starts from a guess, has a use for a residual of its own */
        for (int f = 0; f < FIELDS_PER_LEVEL; f++) {
            if (fields[f] == &level->residual && l > 0) continue;
            *fields[f] = grvi_flow_offset(mg->fields, is_double, at + level->grid.origin);
            at += level->grid.n_elements;
        }
    }
}

/* Grids of all levels, and the numbers of elements of all fields and of rows; false if a size overflows. */
static bool plan_levels(grvi_multigrid *mg, const int64_t n[3], const bool periodic[3],
                        int64_t *elements, int64_t *rows)
{
    int64_t cells[3] = {n[0], n[1], n[2]}, width[3] = {1, 1, 1};
    bool more = true;
    *elements = *rows = 0;
    for (mg->n_levels = 0; more && mg->n_levels < GRVI_MULTIGRID_LEVELS; mg->n_levels++) {
        grvi_flow_grid *const grid = &mg->level[mg->n_levels].grid;
        if (!grvi_flow_grid_init(grid, cells, periodic, mg->options.is_double)) return false;
        *elements +=
            (mg->n_levels == 0 ? FIELDS_PER_LEVEL : FIELDS_PER_LEVEL - 1) * grid->n_elements;
        *rows += grid->n[0] * grid->n[1];
        more = grvi_multigrid_coarsen(grid->n, width, cells);
        for (int d = 0; d < 3; d++) width[d] *= grid->n[d] / cells[d];
    }
    return true;
}

int64_t grvi_multigrid_bytes(const int64_t n[3], const bool periodic[3],
                             const grvi_multigrid_options *options)
{
    grvi_multigrid mg = {.options = *options};
    int64_t elements = 0, rows = 0;
    if (!plan_levels(&mg, n, periodic, &elements, &rows)) return 0;
    return elements * (int64_t)(options->is_double ? sizeof(double) : sizeof(float)) +
           rows * (int64_t)sizeof(grvi_flow_range) + n[0] * (int64_t)sizeof(grvi_flow_sums) +
           grvi_coarsest_work(&mg.level[mg.n_levels - 1].grid) * (int64_t)sizeof(double);
}

grv_status grvi_multigrid_init(grvi_multigrid *mg, const int64_t n[3], const bool periodic[3],
                               grvi_isa isa, const grvi_multigrid_options *options)
{
    grv_status status = GRV_OK;
    int64_t elements = 0, rows = 0;
    *mg = (grvi_multigrid){.options = *options,
                           .kernels = grvi_flow_kernels_for(isa, options->is_double)};
    GRV_ASSERT(options->half_sweeps >= 1 && options->half_sweeps <= GRVI_MULTIGRID_MAX_HALF_SWEEPS);
    GRV_CHECK(plan_levels(mg, n, periodic, &elements, &rows), GRV_E_NOMEM,
              "a grid of %lld x %lld x %lld cells is too large to be addressed", (long long)n[0],
              (long long)n[1], (long long)n[2]);
    GRV_TRY_GOTO(
        grvi_calloc(elements, options->is_double ? sizeof(double) : sizeof(float), &mg->fields));
    GRV_TRY_GOTO(GRVI_CALLOC(&mg->ranges, rows));
    GRV_TRY_GOTO(GRVI_CALLOC(&mg->sums, n[0]));
    GRV_TRY_GOTO(GRVI_CALLOC(&mg->coarsest, grvi_coarsest_work(&mg->level[mg->n_levels - 1].grid)));
    place_fields(mg);
    rows = 0;
    for (int l = 0; l < mg->n_levels; l++) {
        mg->level[l].open = mg->ranges + rows;
        rows += mg->level[l].grid.n[0] * mg->level[l].grid.n[1];
    }
done:
    if (status != GRV_OK) grvi_multigrid_fini(mg);
    return status;
}

void grvi_multigrid_fini(grvi_multigrid *mg)
{
    grv_free(mg->fields);
    grv_free(mg->ranges);
    grv_free(mg->sums);
    grv_free(mg->coarsest);
    *mg = (grvi_multigrid){0};
}

/* ---- coefficients ---- */

/* No flow through walls; none between a single periodic cell and itself. Face n of a periodic direction is face 0. */
static void close_faces(const grvi_flow_level *level, bool is_double)
{
    const grvi_flow_grid *const g = &level->grid;
    for (int d = 0; d < 3; d++) {
        const int e = (d + 1) % 3, f = (d + 2) % 3;
        for (int64_t p = 0; p < g->n[e]; p++) {
            for (int64_t q = 0; q < g->n[f]; q++) {
                const int64_t low = p * g->stride[e] + q * g->stride[f],
                              high = low + g->n[d] * g->stride[d];
                const double value = g->periodic[d] && g->n[d] > 1
                                         ? grvi_flow_load(level->face[d], is_double, low)
                                         : 0;
                grvi_flow_store(level->face[d], is_double, low, value);
                grvi_flow_store(level->face[d], is_double, high, value);
            }
        }
    }
}

/* Coefficient of a coarse face: the sum of the fine faces on it, halved if it lies twice as far from its neighbours. */
static void coarsen_faces(const grvi_flow_level *fine, grvi_flow_level *coarse, bool is_double)
{
    const grvi_flow_grid *const f = &fine->grid, *const c = &coarse->grid;
    int64_t ratio[3];
    for (int d = 0; d < 3; d++) ratio[d] = f->n[d] / c->n[d];
    for (int d = 0; d < 3; d++) {
        const int a = (d + 1) % 3, b = (d + 2) % 3;
        coarse->uniform[d] = fine->uniform[d] * (double)(ratio[a] * ratio[b]) / (double)ratio[d];
        for (int64_t i = 0; i < c->n[0]; i++)
            for (int64_t j = 0; j < c->n[1]; j++)
                for (int64_t k = 0; k < c->n[2]; k++) {
                    const int64_t at =
                        ratio[0] * i * f->stride[0] + ratio[1] * j * f->stride[1] + ratio[2] * k;
                    double sum = 0;
                    for (int64_t p = 0; p < ratio[a]; p++)
                        for (int64_t q = 0; q < ratio[b]; q++)
                            sum += grvi_flow_load(fine->face[d], is_double,
                                                  at + p * f->stride[a] + q * f->stride[b]);
                    grvi_flow_store(coarse->face[d], is_double,
                                    i * c->stride[0] + j * c->stride[1] + k,
                                    sum / (double)ratio[d]);
                }
    }
}

/* Shortens a run to whole vectors, so that neither it nor what is left of the row ends in single cells; none if too short to pay. */
static grvi_flow_range whole_vectors(grvi_flow_range run, int64_t n)
{
    enum { VECTOR = 8, SHORTEST = 16 };
    const int32_t begin = (run.begin + VECTOR - 1) / VECTOR * VECTOR;
    const int32_t end = run.end == n ? run.end : run.end / VECTOR * VECTOR;
    return end - begin < SHORTEST ? (grvi_flow_range){0, 0} : (grvi_flow_range){begin, end};
}

/* The longest run of cells of a row whose six coefficients are the uniform ones, and the inverse diagonals of the row. */
static grvi_flow_range scan_row(const grvi_flow_level *level, bool is_double, int64_t row)
{
    const grvi_flow_grid *const g = &level->grid;
    const double normal = 2 * (level->uniform[0] + level->uniform[1] + level->uniform[2]);
    grvi_flow_range best = {0, 0}, run = {0, 0};
    for (int64_t k = 0; k < g->n[2]; k++) {
        const int64_t at = row + k;
        double sum = 0;
        bool is_open = normal > 0;
        for (int d = 0; d < 3; d++) {
            const double low = grvi_flow_load(level->face[d], is_double, at);
            const double high = grvi_flow_load(level->face[d], is_double, at + g->stride[d]);
            sum += low + high;
            is_open = is_open && fabs(low - level->uniform[d]) <= 0 &&
                      fabs(high - level->uniform[d]) <= 0;
        }
        grvi_flow_store(level->inverse_diagonal, is_double, at, sum > 1e-6 * normal ? 1 / sum : 0);
        if (!is_open) run.begin = (int32_t)(k + 1);
        run.end = (int32_t)(k + 1);
        if (run.end - run.begin > best.end - best.begin) best = run;
    }
    return whole_vectors(best, g->n[2]);
}

static void scan_level(grvi_flow_level *level, grvi_flow_range *open, bool is_double)
{
    const grvi_flow_grid *const g = &level->grid;
    for (int64_t i = 0; i < g->n[0]; i++)
        for (int64_t j = 0; j < g->n[1]; j++)
            open[i * g->n[1] + j] = scan_row(level, is_double, i * g->stride[0] + j * g->stride[1]);
}

void grvi_multigrid_update(grvi_multigrid *mg)
{
    const bool is_double = mg->options.is_double;
    grvi_flow_range *open = mg->ranges;
    for (int l = 0; l < mg->n_levels; l++) {
        grvi_flow_level *const level = &mg->level[l];
        if (l > 0) coarsen_faces(&mg->level[l - 1], level, is_double);
        for (int d = 0; d < 3 && l == 0; d++) level->uniform[d] = 1;
        for (int d = 0; d < 3; d++)
            if (level->grid.n[d] == 1) level->uniform[d] = 0;
        close_faces(level, is_double);
        scan_level(level, open, is_double);
        open += level->grid.n[0] * level->grid.n[1];
    }
    const grvi_flow_grid *const g = &mg->level[0].grid;
    mg->n_open_cells = 0;
    for (int64_t i = 0; i < g->n[0]; i++)
        for (int64_t j = 0; j < g->n[1]; j++)
            for (int64_t k = 0; k < g->n[2]; k++)
                mg->n_open_cells += grvi_flow_load(mg->level[0].inverse_diagonal, is_double,
                                                   i * g->stride[0] + j * g->stride[1] + k) > 0;
}

/* ---- one cycle ---- */

typedef struct plane_call {
    const grvi_multigrid *mg;
    const grvi_flow_level *level, *other;
    const void *values;
    const void *const *velocity;
    double scale;
    bool has_residual;
} plane_call;

static void restrict_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    const plane_call *const call = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        call->mg->kernels->restrict_sum(call->level, call->values, call->other, i);
}

static void residual_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    const plane_call *const call = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        call->mg->kernels->residual(call->level, call->velocity, call->scale, i,
                                    &call->mg->sums[i]);
}

static void shift_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    const plane_call *const call = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) call->mg->kernels->shift_rhs(call->level, call->scale, i);
}

/* Stage 0: correction from below; then the half sweeps; last, on the finest level, the residual. */
static void climb_stage(void *argument, int stage, int64_t plane)
{
    const plane_call *const call = argument;
    const grvi_flow_kernels *const kernels = call->mg->kernels;
    if (stage == 0)
        kernels->prolong(call->level, call->other, call->scale, plane);
    else if (stage <= call->mg->options.half_sweeps)
        kernels->half_sweep(call->level, (stage - 1) & 1, plane);
    else
        kernels->residual(call->level, NULL, 1, plane, &call->mg->sums[plane]);
}

static void run_cycle(const grvi_multigrid *mg, double scale)
{
    for (int l = 0; l + 1 < mg->n_levels; l++) {
        const grvi_flow_level *const fine = &mg->level[l], *const coarse = &mg->level[l + 1];
        plane_call call = {.mg = mg,
                           .level = fine,
                           .other = coarse,
                           .values = l == 0 ? fine->residual : fine->rhs};
        grv_parallel_for(threads_for(mg, &coarse->grid), coarse->grid.n[0], restrict_planes, &call);
    }
    const grvi_flow_level *const last = &mg->level[mg->n_levels - 1];
    const bool is_alone = mg->n_levels == 1;
    grvi_coarsest_solve(last, mg->options.is_double, is_alone ? last->residual : last->rhs,
                        is_alone ? scale : 0, mg->coarsest);
    if (is_alone) {
        plane_call call = {.mg = mg, .level = last, .scale = 1};
        residual_planes(&call, 0, 0, last->grid.n[0]);
    }
    for (int l = mg->n_levels - 2; l >= 0; l--) {
        const grvi_flow_level *const fine = &mg->level[l];
        plane_call call = {
            .mg = mg, .level = fine, .other = &mg->level[l + 1], .scale = l == 0 ? scale : 0};
        const int n_stages = 1 + mg->options.half_sweeps + (l == 0);
        grvi_wavefront_run(threads_for(mg, &fine->grid), fine->grid.n[0], fine->grid.periodic[0],
                           n_stages, climb_stage, &call);
    }
}

static grvi_flow_sums total_of(const grvi_multigrid *mg)
{
    grvi_flow_sums total = {0};
    for (int64_t i = 0; i < mg->level[0].grid.n[0]; i++) {
        total.rhs_squares += mg->sums[i].rhs_squares;
        total.rhs_sum += mg->sums[i].rhs_sum;
        total.residual_squares += mg->sums[i].residual_squares;
    }
    return total;
}

/* The first residual. A right side whose sum is not zero has no solution: its mean is taken away where it would be noticed. */
static grvi_flow_sums begin_solve(const grvi_multigrid *mg, const void *const *velocity,
                                  double scale)
{
    const grvi_flow_level *const finest = &mg->level[0];
    const int n_threads = threads_for(mg, &finest->grid);
    plane_call call = {.mg = mg, .level = finest, .velocity = velocity, .scale = scale};
    grv_parallel_for(n_threads, finest->grid.n[0], residual_planes, &call);
    const grvi_flow_sums total = total_of(mg);
    const double cells = (double)mg->n_open_cells, tolerance = mg->options.tolerance;
    const double noticed = 0.01 * tolerance * tolerance * total.rhs_squares;
    if (!(total.rhs_sum * total.rhs_sum > noticed * cells) || mg->n_open_cells == 0) return total;
    plane_call shift = {.mg = mg, .level = finest, .scale = total.rhs_sum / cells};
    grv_parallel_for(n_threads, finest->grid.n[0], shift_planes, &shift);
    call.velocity = NULL;
    grv_parallel_for(n_threads, finest->grid.n[0], residual_planes, &call);
    return total_of(mg);
}

grv_status grvi_multigrid_solve(grvi_multigrid *mg, const void *const *velocity, double scale,
                                double noise, grvi_multigrid_result *result)
{
    const grvi_multigrid_options *const o = &mg->options;
    const grvi_flow_sums first = begin_solve(mg, velocity, scale);
    *result = (grvi_multigrid_result){.rhs_norm = sqrt(first.rhs_squares),
                                      .residual_norm = sqrt(first.residual_squares)};
    const double goal =
        fmax(o->tolerance * result->rhs_norm, noise * sqrt((double)mg->n_open_cells));
    int slow_cycles = 0;
    while (isfinite(result->residual_norm) && isfinite(result->rhs_norm)) {
        run_cycle(mg, result->cycles == 0 ? scale : 1);
        result->cycles++;
        const double before = result->residual_norm;
        result->residual_norm = sqrt(total_of(mg).residual_squares);
        if (o->fixed_cycles > 0 ? result->cycles >= o->fixed_cycles : result->residual_norm <= goal)
            return GRV_OK;
        slow_cycles = result->residual_norm > 0.9 * before ? slow_cycles + 1 : 0;
        result->stagnated = slow_cycles == 2;
        if (o->fixed_cycles <= 0 && (result->stagnated || result->cycles >= o->max_cycles))
            return GRV_OK;
    }
    GRV_FAIL(GRV_E_NUMERIC,
             "the pressure equation has a residual of %g for a right side of %g after %d cycles",
             result->residual_norm, result->rhs_norm, result->cycles);
}
