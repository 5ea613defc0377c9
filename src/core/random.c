/* Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * counter = (index low, index high, stream low, stream high), key = seed. */
#include <math.h>

#include "core/alloc.h"
#include "grove/core.h"

static void philox_round(uint32_t counter[4], const uint32_t key[2])
{
    const uint64_t product0 = (uint64_t)0xD2511F53U * counter[0];
    const uint64_t product1 = (uint64_t)0xCD9E8D57U * counter[2];
    const uint32_t next0 = (uint32_t)(product1 >> 32) ^ counter[1] ^ key[0];
    const uint32_t next2 = (uint32_t)(product0 >> 32) ^ counter[3] ^ key[1];
    counter[0] = next0;
    counter[1] = (uint32_t)product1;
    counter[2] = next2;
    counter[3] = (uint32_t)product0;
}

static void philox(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    out[0] = (uint32_t)index;
    out[1] = (uint32_t)(index >> 32);
    out[2] = (uint32_t)stream;
    out[3] = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++) {
        philox_round(out, key);
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
}

static double to_uniform(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

uint64_t grv_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t word[4];
    philox(seed, stream, index, word);
    return (uint64_t)word[1] << 32 | word[0];
}

double grv_random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return to_uniform(grv_random_bits(seed, stream, index));
}

double grv_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    static const double two_pi = 6.283185307179586476925;
    uint32_t word[4];
    philox(seed, stream, index, word);
    const double u = 1.0 - to_uniform((uint64_t)word[1] << 32 | word[0]); /* (0, 1]: the logarithm is finite */
    const double v = to_uniform((uint64_t)word[3] << 32 | word[2]);
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

typedef struct keyed_index {
    uint64_t key;
    int64_t index;
} keyed_index;

static int compare_keyed(const void *a, const void *b)
{
    const keyed_index *const p = a, *const q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

grv_status grv_random_permutation(uint64_t seed, uint64_t stream, int64_t n, int64_t *order)
{
    keyed_index *items = NULL;
    GRV_TRY(GRVI_ALLOC(&items, n));
    for (int64_t i = 0; i < n; i++) items[i] = (keyed_index){grv_random_bits(seed, stream, (uint64_t)i), i};
    qsort(items, (size_t)n, sizeof *items, compare_keyed);
    for (int64_t i = 0; i < n; i++) order[i] = items[i].index;
    grv_free(items);
    return GRV_OK;
}
