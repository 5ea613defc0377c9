/* What a search keeps: candidates ordered by squared distance, ties by index. Internal to src/kernels.
 * Squared distances are not negative, so that their bits as an integer order as they do: a float and its index are one 64-bit number. */
#ifndef GRVI_KERNELS_NEIGHBOUR_CANDIDATES_H
#define GRVI_KERNELS_NEIGHBOUR_CANDIDATES_H

#include <stdint.h>
#include <string.h>

#define GRVI_STEP static inline __attribute__((always_inline, unused))

typedef uint64_t candidate_f32;

typedef struct candidate_f64 {
    double squared;
    int64_t index;
} candidate_f64;

GRVI_STEP int32_t bits_f32(float a)
{
    int32_t b;
    memcpy(&b, &a, sizeof b);
    return b;
}
GRVI_STEP int64_t bits_f64(double a)
{
    int64_t b;
    memcpy(&b, &a, sizeof b);
    return b;
}

GRVI_STEP candidate_f32 candidate_make_f32(float squared, int32_t index)
{
    return (uint64_t)(uint32_t)bits_f32(squared) << 32 | (uint32_t)index;
}
GRVI_STEP int32_t candidate_index_f32(candidate_f32 a)
{
    return (int32_t)(uint32_t)a;
}
GRVI_STEP float candidate_squared_f32(candidate_f32 a)
{
    const uint32_t b = (uint32_t)(a >> 32);
    float squared;
    memcpy(&squared, &b, sizeof squared);
    return squared;
}
GRVI_STEP _Bool candidate_less_f32(candidate_f32 a, candidate_f32 b)
{
    return a < b;
}

GRVI_STEP candidate_f64 candidate_make_f64(double squared, int32_t index)
{
    return (candidate_f64){squared, index};
}
GRVI_STEP int32_t candidate_index_f64(candidate_f64 a)
{
    return (int32_t)a.index;
}
GRVI_STEP double candidate_squared_f64(candidate_f64 a)
{
    return a.squared;
}
GRVI_STEP _Bool candidate_less_f64(candidate_f64 a, candidate_f64 b)
{
    return (a.squared < b.squared) | ((a.squared == b.squared) & (a.index < b.index));
}

enum {
    GRVI_FEW = 8, /* up to so many are kept sorted by an unrolled pass */
    GRVI_SEVERAL =
        16, /* up to so many by a longer one; more are collected and cut back now and then */
    GRVI_BLOCK_POINTS = 16
};

/* Room that keeping the first k takes. */
static inline int64_t grvi_candidates_capacity(int64_t k)
{
    return k <= GRVI_SEVERAL ? GRVI_SEVERAL : 2 * k + GRVI_BLOCK_POINTS;
}

#endif
