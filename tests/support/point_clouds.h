/* Point clouds for tests of searches, and brute force with the documented expression. Include after cmocka.h and guarded.h. */
#ifndef GRVI_TEST_POINT_CLOUDS_H
#define GRVI_TEST_POINT_CLOUDS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    CLOUD_UNIFORM,
    CLOUD_CLUSTERS,
    CLOUD_LINE,
    CLOUD_TWINS,
    CLOUD_LATTICE,
    CLOUD_FAR,
    CLOUD_ONE_PLACE,
    CLOUD_HUGE,
    CLOUD_COUNT
};

static inline double cloud_coordinate(int kind, int64_t stream, int64_t i, int d)
{
    const double u = test_number(stream + d, i);
    switch (kind) {
    case CLOUD_CLUSTERS: return floor(3 * test_number(stream + d, i % 7)) + 1e-3 * u * u * u;
    case CLOUD_LINE: return (d + 1) * test_number(stream, i); /* along (1, 2, 3) */
    case CLOUD_TWINS: return test_number(stream + d, i / 5);
    case CLOUD_LATTICE: return floor(4 * u);
    case CLOUD_FAR: return 1e7 + floor(16 * u);
    case CLOUD_ONE_PLACE: return 0.1;
    case CLOUD_HUGE: return 1e30 * u; /* squares overflow a float */
    default: return u;
    }
}

/* [n][dimension] float or double, to be freed. */
static inline void *cloud_make(int kind, int64_t stream, int64_t n, int dimension, bool is_double)
{
    void *const cloud = malloc((size_t)(n + 1) * (size_t)dimension * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < dimension; d++) {
            const double x = cloud_coordinate(kind, stream, i, d);
            if (is_double)
                ((double *)cloud)[i * dimension + d] = x;
            else
                ((float *)cloud)[i * dimension + d] = (float)x;
        }
    }
    return cloud;
}

typedef struct brute_neighbour {
    double squared; /* holds a float exactly */
    int32_t index;
} brute_neighbour;

static inline float brute_f32(const float *q, const float *p, int dimension)
{
    float sum = 0;
    for (int d = 0; d < dimension; d++) {
        const float difference = q[d] - p[d];
        sum += difference * difference;
    }
    return sum;
}

static inline double brute_f64(const double *q, const double *p, int dimension)
{
    double sum = 0;
    for (int d = 0; d < dimension; d++) {
        const double difference = q[d] - p[d];
        sum += difference * difference;
    }
    return sum;
}

static inline int brute_compare(const void *a, const void *b)
{
    const brute_neighbour *const x = a, *const y = b;
    if (x->squared < y->squared || x->squared > y->squared) return x->squared < y->squared ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* All points by (squared distance, index). sorted [n], written */
static inline void brute_sort(const void *points, int64_t n, const void *queries, int64_t query,
                              int dimension, bool is_double, brute_neighbour *sorted)
{
    for (int64_t i = 0; i < n; i++) {
        sorted[i].index = (int32_t)i;
        sorted[i].squared =
            is_double ? brute_f64((const double *)queries + query * dimension,
                                  (const double *)points + i * dimension, dimension)
                      : (double)brute_f32((const float *)queries + query * dimension,
                                          (const float *)points + i * dimension, dimension);
    }
    qsort(sorted, (size_t)n, sizeof *sorted, brute_compare);
}

/* Distance as a search gives it. */
static inline double brute_distance(double squared, bool keep_squared, bool is_double)
{
    if (keep_squared) return squared;
    return is_double ? sqrt(squared) : (double)sqrtf((float)squared);
}

static inline double real_at(const void *array, int64_t i, bool is_double)
{
    return is_double ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

#endif
