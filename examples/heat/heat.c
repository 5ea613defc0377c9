/* Heat spreads from a warm spot in a cold plate: the simulator of heat.py as a C function for `grove generate`. */
#include <grove/task.h>
#include <math.h>

enum { N = 16, STEPS = 50 };

static int inside(int i)
{
    return i < 0 ? 0 : i < N ? i : N - 1;
}

/* One step of the five-point stencil; no heat leaves the plate. */
static void step(const double u[N][N], double next[N][N], double diffusivity)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            next[i][j] = u[i][j] + diffusivity * (u[inside(i - 1)][j] + u[inside(i + 1)][j] + u[i][inside(j - 1)] +
                                                  u[i][inside(j + 1)] - 4 * u[i][j]);
}

/* Arguments are the campaign's parameters, results its input and then its target. */
GRV_TASK(heat)
{
    double u[2][N][N];
    const int64_t shape[] = {N, N};
    const double x = grv_task_f64(task, 0), y = grv_task_f64(task, 1);                /* in their order, */
    const double diffusivity = grv_task_f64(task, grv_task_find(task, "diffusivity")); /* or by name */
    if (diffusivity > 0.25) {
        grv_task_fail(task, "the diffusivity is too large for this step");
        return;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[0][i][j] = exp(-(pow((double)i / N - x, 2) + pow((double)j / N - y, 2)) / 0.01);
    grv_task_return_tensor(task, GRV_TASK_F64, 2, shape, u[0]);
    for (int s = 0; s < STEPS; s++) step(u[s % 2], u[(s + 1) % 2], diffusivity);
    grv_task_return_tensor(task, GRV_TASK_F64, 2, shape, u[STEPS % 2]);
}
