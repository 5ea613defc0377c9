/* Tables of the point kernels, scratch sizes, strided copies. */
#include <pthread.h>
#include <string.h>

#include "kernels/point_kernels.h"
#include "kernels/point_sizes.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static grvi_point_kernels tables[GRVI_ISA_COUNT], table_f64;
static bool filled[GRVI_ISA_COUNT];

static void fill_tables(void)
{
    grvi_point_kernels_fill_ref(&tables[GRVI_ISA_REF], &table_f64);
    filled[GRVI_ISA_REF] = true;
    static bool (*const fill[GRVI_ISA_COUNT])(grvi_point_kernels *) = {
        [GRVI_ISA_AVX2] = grvi_point_kernels_fill_avx2,
        [GRVI_ISA_AVX512] = grvi_point_kernels_fill_avx512,
    };
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        /* the filling function is itself compiled for its instruction set */
        if (fill[isa] != NULL && grvi_isa_usable((grvi_isa)isa))
            filled[isa] = fill[isa](&tables[isa]);
        tables[isa].name = grvi_isa_name((grvi_isa)isa);
    }
}

const grvi_point_kernels *grvi_point_kernels_for(grvi_isa isa)
{
    (void)pthread_once(&once, fill_tables);
    return filled[isa] ? &tables[isa] : NULL;
}

const grvi_point_kernels *grvi_point_kernels_f64(void)
{
    (void)pthread_once(&once, fill_tables);
    return &table_f64;
}

/* Upper bounds over all kernels and instruction sets of what point_loops.h takes, array by array. */
static int64_t packed_floats(int64_t c_in, int64_t c_out)
{
    return grvi_padded_floats(c_in * c_out) + grvi_padded_floats(c_out);
}

static int64_t sums_floats(int64_t c_in, int64_t c_out)
{
    return (c_in * c_out + c_out) * GRVI_MAX_LANES;
}

int64_t grvi_linear_scratch_bytes(const grvi_linear *linear)
{
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    const int64_t tiles = (c_in + c_out) * GRVI_TILE_POINTS;
    const int64_t packed = packed_floats(c_in, c_out) + packed_floats(c_out, c_in);
    return (tiles + packed + sums_floats(c_in, c_out)) * (int64_t)sizeof(float);
}

int64_t grvi_mlp_scratch_bytes(const grvi_mlp *mlp)
{
    const int64_t c_in = mlp->c_in, c_hidden = mlp->c_hidden, c_out = mlp->c_out;
    const int64_t tiles = 2 * (c_in + GRVI_HIDDEN_BLOCK + c_out) * GRVI_TILE_POINTS;
    const int64_t packed = packed_floats(c_in, c_hidden) + packed_floats(c_hidden, c_in) +
                           packed_floats(c_hidden, c_out) + packed_floats(c_out, c_hidden);
    const int64_t sums = sums_floats(c_in, c_hidden) + sums_floats(c_hidden, c_out);
    return (tiles + packed + sums) * (int64_t)sizeof(float);
}

void grvi_copy_rows(int64_t n_rows, int64_t row_bytes, const void *source, int64_t source_stride,
                    void *target, int64_t target_stride)
{
    const char *from = source;
    char *to = target;
    for (int64_t row = 0; row < n_rows; row++, from += source_stride, to += target_stride) {
        memcpy(to, from, (size_t)row_bytes);
    }
}
