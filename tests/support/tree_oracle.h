/* The definition of the tree sum, written down as recursion: the oracle of its tests. */
#ifndef GRVT_TREE_ORACLE_H
#define GRVT_TREE_ORACLE_H

#include <stdint.h>

#include "grove/core.h"

/* Number i of plane p: magnitudes from 1e-8 to 1e8, so that every other order of additions shows in the bits. */
static inline double oracle_value(int64_t plane, int64_t i)
{
    static const double scales[] = {1e-8, 1e-3, 1, 1e4, 1e8};
    const uint64_t index = (uint64_t)(plane * 100003 + i);
    return (2 * grv_random_uniform(5, 1, index) - 1) * scales[grv_random_bits(5, 2, index) % 5];
}

/* node(level, l) over n_planes; level 0 is a plane */
static inline double oracle_node(int64_t n_planes, int level, int64_t l, int64_t i)
{
    if (level == 0) return oracle_value(l, i);
    const double left = oracle_node(n_planes, level - 1, 2 * l, i);
    if ((2 * l + 1) << (level - 1) >= n_planes) return left;
    return left + oracle_node(n_planes, level - 1, 2 * l + 1, i);
}

static inline double oracle_sum(int64_t n_planes, int64_t i)
{
    int level = 0;
    while ((int64_t)1 << level < n_planes) level++;
    return oracle_node(n_planes, level, 0, i);
}

#endif
