/* In which blocks an array is copied into another layout.
 *
 * Each block is read once and consists of whole target objects, so each target object is written once. A source chunk is
 * decoded once for each block that it touches. Along one axis of n elements, with blocks of b and source chunks of s,
 * the chunks are touched ceil(n / s) times in all, once more for each edge between blocks that is no edge of a chunk:
 *     touches(b) = ceil(n / s) + (ceil(n / b) - 1) - floor((n - 1) / lcm(b, s)),
 * and the product over the axes is the number of decodings. So a chunk is decoded at most
 *     prod_i (ceil(s_i / b_i) + 1) times, which is 2 per axis where b_i >= s_i, and 1 where b_i is a multiple of s_i.
 * The block grows from one target object, always by the step that saves most decodings per memory, until nothing is saved or
 * memory is used up: for planes that become pencils the classical trade of memory against passes. */
#include "store/copy_blocks.h"

#include <math.h>

/* Smaller blocks than this are joined, if memory allows, so that each has work for all threads. */
static const int64_t enough_bytes = (int64_t)64 << 20;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Least common multiple, or `most` if that is less. */
static int64_t lcm_up_to(int64_t a, int64_t b, int64_t most)
{
    int64_t product = 0;
    return grvi_mul_i64(a / gcd(a, b), b, &product) && product < most ? product : most;
}

static double touches(int64_t n, int64_t unit, int64_t block)
{
    const int64_t common = lcm_up_to(block, unit, INT64_MAX);
    return (double)grvi_ceil_div(n, unit) + (double)(grvi_ceil_div(n, block) - 1) -
           (double)((n - 1) / common);
}

double grvi_copy_rereads(const grvi_copy_shapes *shapes, const int64_t *block)
{
    double factor = 1;
    for (int i = 0; i < shapes->rank; i++)
        factor *= touches(shapes->shape[i], shapes->unit[i], block[i]) /
                  (double)grvi_ceil_div(shapes->shape[i], shapes->unit[i]);
    return factor;
}

/* Bytes of a block, which ends with the array; as a double, because absurd chunk shapes are possible. */
static double bytes_of(const grvi_copy_shapes *shapes, const int64_t *block)
{
    double bytes = (double)shapes->item_bytes;
    for (int i = 0; i < shapes->rank; i++)
        bytes *= (double)grvi_min_i64(block[i], shapes->shape[i]);
    return bytes;
}

enum { N_CANDIDATES = 3 };

/* Longer blocks along an axis that are worth a try: the next one that ends with a source chunk, the double, the whole axis. */
static void candidates(const grvi_copy_shapes *shapes, int axis, int64_t length,
                       int64_t out[N_CANDIDATES])
{
    const int64_t whole = grvi_round_up(shapes->shape[axis], shapes->object[axis]);
    const int64_t common = lcm_up_to(shapes->object[axis], shapes->unit[axis], whole);
    out[0] = grvi_min_i64(whole, (length / common + 1) * common);
    out[1] = grvi_min_i64(whole, 2 * length);
    out[2] = whole;
}

/* Takes the step that saves most decodings for the memory it costs; false if there is none. */
static bool grow_for_reads(const grvi_copy_shapes *shapes, int64_t budget, int64_t *block)
{
    double best_gain = 0;
    int best_axis = -1;
    int64_t best_length = 0;
    const double reads = grvi_copy_rereads(shapes, block), bytes = bytes_of(shapes, block);
    for (int i = 0; i < shapes->rank; i++) {
        int64_t length[N_CANDIDATES];
        const int64_t old = block[i];
        candidates(shapes, i, old, length);
        for (int k = 0; k < N_CANDIDATES; k++) {
            block[i] = length[k];
            const double new_bytes = bytes_of(shapes, block);
            const double saved = log2(reads / grvi_copy_rereads(shapes, block));
            const double gain = saved / fmax(log2(new_bytes / bytes), 1e-6);
            block[i] = old;
            if (length[k] <= old || new_bytes > (double)budget || saved <= 1e-9) continue;
            if (gain <= best_gain) continue;
            best_gain = gain;
            best_axis = i;
            best_length = length[k];
        }
    }
    if (best_axis >= 0) block[best_axis] = best_length;
    return best_axis >= 0;
}

/* Doubles along the last axis that is not whole, which never costs a decoding; false if there is no room. */
static bool grow_for_threads(const grvi_copy_shapes *shapes, int64_t budget, int64_t *block)
{
    for (int i = shapes->rank - 1; i >= 0; i--) {
        const int64_t old = block[i];
        if (old >= shapes->shape[i]) continue;
        block[i] = grvi_min_i64(2 * old, grvi_round_up(shapes->shape[i], shapes->object[i]));
        if (bytes_of(shapes, block) <= (double)budget) return true;
        block[i] = old;
        return false;
    }
    return false;
}

grv_status grvi_copy_choose_block(const grvi_copy_shapes *shapes, int64_t budget, int64_t *block)
{
    for (int i = 0; i < shapes->rank; i++) block[i] = shapes->object[i];
    const double least = bytes_of(shapes, block);
    GRV_CHECK(least <= (double)budget, GRV_E_ARG,
              "one object of the new array has %.1f MB, %.1f MB of memory are left for it",
              least * 1e-6, (double)grvi_max_i64(budget, 0) * 1e-6);
    while (grow_for_reads(shapes, budget, block)) {
    }
    const int64_t enough = grvi_min_i64(budget, enough_bytes);
    while (grow_for_threads(shapes, enough, block)) {
    }
    return GRV_OK;
}
