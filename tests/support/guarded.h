/* Arrays with guard cells and a chosen misalignment, and deterministic data for kernel tests. Include after cmocka.h. */
#ifndef GRVI_TEST_GUARDED_H
#define GRVI_TEST_GUARDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `bytes` at `data`, which is `misalign` bytes past a multiple of 64, between two guards. The block ends with the second guard, so
 * that the address sanitizer sees what goes beyond. Filled with 0xff: not-a-number in float and double. */
typedef struct guarded {
    unsigned char *block;
    void *data;
    int64_t bytes, misalign;
} guarded;

enum { GUARD_BYTES = 64, GUARD_VALUE = 0xa5 };

static inline guarded guarded_create(int64_t bytes, int64_t misalign)
{
    guarded g = {.bytes = bytes, .misalign = misalign};
    const size_t size = (size_t)(GUARD_BYTES + misalign + bytes + GUARD_BYTES);
    void *block = NULL;
    if (posix_memalign(&block, 64, size) != 0)
        fail_msg("no memory for %lld bytes", (long long)bytes);
    g.block = block;
    memset(g.block, GUARD_VALUE, size);
    g.data = g.block + GUARD_BYTES + misalign;
    memset(g.data, 0xff, (size_t)bytes);
    return g;
}

static inline bool guarded_intact(const guarded *g)
{
    for (int64_t i = 0; i < GUARD_BYTES + g->misalign; i++) {
        if (g->block[i] != GUARD_VALUE) return false;
    }
    for (int64_t i = 0; i < GUARD_BYTES; i++) {
        if (((const unsigned char *)g->data)[g->bytes + i] != GUARD_VALUE) return false;
    }
    return true;
}

/* Checks the guards and frees. */
static inline void guarded_destroy(guarded *g)
{
    const bool intact = guarded_intact(g);
    free(g->block);
    assert_true(intact);
}

/* Number i of stream s, in [-1, 1). */
static inline double test_number(int64_t s, int64_t i)
{
    uint64_t z = (uint64_t)s * 0x9e3779b97f4a7c15U + (uint64_t)i * 0xbf58476d1ce4e5b9U + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return (double)(int64_t)z / 9223372036854775808.0;
}

static inline void fill_f32(float *x, int64_t n, int64_t stream, double size)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)(size * test_number(stream, i));
}

static inline void fill_f64(double *x, int64_t n, int64_t stream, double size)
{
    for (int64_t i = 0; i < n; i++) x[i] = size * test_number(stream, i);
}

#endif
