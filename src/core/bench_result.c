/* The record that every benchmark fills. */
#include "grove/bench.h"

void grv_bench_result_add(grv_bench_result *result, const char *name, double value)
{
    if (result->n_values == GRV_BENCH_MAX_VALUES) return;
    result->values[result->n_values++] = (grv_bench_value){.name = name, .value = value};
}
