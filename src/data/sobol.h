/* Points of a Sobol sequence. Internal. */
#ifndef GRVI_DATA_SOBOL_H
#define GRVI_DATA_SOBOL_H

#include <stdint.h>

/* as many as grv_sampling has parameters */
enum { GRVI_SOBOL_DIMENSIONS = 32 };

/* Coordinate of point `index` along a dimension, in units of 2^-32. The first 2^k points of any dimension hit each of 2^k equal
 * intervals once. */
uint32_t grvi_sobol(int dimension, uint32_t index);

#endif
