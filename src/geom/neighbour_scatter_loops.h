/* Loop of neighbour_scatter.c; included once per type with REAL and NAME. */

/* Adds to points [begin, end). */
static void NAME(add_range)(void *argument, int thread, int64_t begin, int64_t end)
{
    const scatter *const call = argument;
    const grv_gathered_gradients *const g = call->gathered;
    const REAL *const gradients = g->gradients;
    const int dimension = g->dimension;
    (void)thread;
    for (int64_t row = 0; row < g->n_rows; row++) {
        const int64_t last = row_end(g, row);
        for (int64_t e = row_begin(g, row); e < last; e++) {
            const int64_t point = g->indices[e];
            if (point < begin || point >= end) continue;
            REAL *const sum = (REAL *)call->sums + point * dimension;
            for (int d = 0; d < dimension; d++) sum[d] += gradients[e * dimension + d];
        }
    }
}
