/** @file geom.h
 * Searches in space, all of them: nearest neighbours and radii, distances to surfaces, sampling. Plain arrays in, plain arrays out.
 */
#ifndef GROVE_GEOM_H
#define GROVE_GEOM_H

#include "grove/neighbours.h"
#include "grove/point_sampling.h"
#include "grove/surface_distance.h"

#endif
