/* Sizes shared by the fast point kernels and the scratch they ask for. Internal to the point kernels. */
#ifndef GRVI_KERNELS_POINT_SIZES_H
#define GRVI_KERNELS_POINT_SIZES_H

#include <stdint.h>

enum {
    /* Points of a tile: 12 vectors of 8 or 6 of 16, which 1 to 4 channels divide into 12 or 24 accumulators (point_tile.h). */
    GRVI_TILE_POINTS = 96,
    /* Hidden channels that are in cache at once: with 20 inputs, a tile and its gradients fill 32 KiB. */
    GRVI_HIDDEN_BLOCK = 24,
    /* Tiles whose weight gradients are summed in float before they are added to the doubles: 960 points. */
    GRVI_TILES_PER_SUM = 10,
    GRVI_MAX_LANES = 16
};

/* Room of an array in scratch, so that each begins at 64 bytes. */
static inline int64_t grvi_padded_floats(int64_t n)
{
    return (n + 15) / 16 * 16;
}

#endif
