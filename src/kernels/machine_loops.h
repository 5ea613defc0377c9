/* Loops of machine_kernels.h on vectors of simd.h; included once per instruction set. */
#include "kernels/machine_kernels.h"
#include "kernels/simd.h"

enum { STREAMS = 4 };

static float read_memory(int64_t n, const float *x)
{
    const int64_t stream = n / STREAMS / (2 * GRVI_LANES) * (2 * GRVI_LANES);
    vf a[2 * STREAMS];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * STREAMS; i++) a[i] = vf_zero();
    for (int64_t k = 0; k < stream; k += 2 * GRVI_LANES) {
#pragma GCC unroll 4
        for (int s = 0; s < STREAMS; s++) {
            const float *const p = x + s * stream + k;
            __builtin_prefetch(p + 1024);
            a[2 * s] = vf_add(a[2 * s], vf_load(p));
            a[2 * s + 1] = vf_add(a[2 * s + 1], vf_load(p + GRVI_LANES));
        }
    }
    float lane[GRVI_LANES], sum = 0;
    for (int i = 1; i < 2 * STREAMS; i++) a[0] = vf_add(a[0], a[i]);
    vf_store(lane, a[0]);
    for (int i = 0; i < GRVI_LANES; i++) sum += lane[i];
    return sum;
}

static void write_memory(int64_t n, float value, float *x)
{
    const vf v = vf_set1(value);
    for (int64_t k = 0; k + GRVI_LANES <= n; k += GRVI_LANES) vf_store(x + k, v);
}

static const grvi_machine_kernels machine_table = {read_memory, write_memory};
