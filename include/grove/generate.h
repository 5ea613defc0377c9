/** @file generate.h
 * Making a data set: flows around a sphere, or another body, at different places (the SciAI4Industry paper's Navier-Stokes set at any size).
 */
#ifndef GROVE_GENERATE_H
#define GROVE_GENERATE_H

#include "grove/config.h"
#include "grove/flow_sample.h"
#include "grove/log.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What to make; the keys are in grv_generate_options. */
typedef struct grv_generate_config {
    char *output;             /**< path of the data set */
    int64_t samples;          /**< flows */
    int64_t seed;             /**< of the places */
    grv_i64_list grid;        /**< cells in x, y, z */
    double radius;            /**< of the sphere, cells; of a body half its longest side, before it is turned */
    char *body;               /**< mesh file; "": a sphere */
    grv_f64_list rotation;    /**< of the body about x, then y, then z, degrees */
    grv_f64_list velocity;    /**< on the boundary */
    bool has_exit;            /**< the upper x face lets the flow out */
    double reynolds;          /**< radius / viscosity: unit velocity, as the paper defines it */
    grv_f64_list centre_min;  /**< smallest coordinates of the centre, as a fraction of the grid */
    grv_f64_list centre_max;  /**< largest */
    int64_t snapshots;        /**< times stored */
    double interval;          /**< between them, in radius / |velocity| */
    double clip;              /**< vorticity is clipped to +-clip and divided by it */
    double tolerance;         /**< of the pressure */
    int precision;            /**< grv_flow_precision */
    int threads;              /**< flows at a time, each on one thread; 0: as many as the machine has */
    int planes_per_chunk;     /**< thickness of the stored pieces */
    char *picture;            /**< PNG that the command draws of the first flow when all are there; "": none */
} grv_generate_config;

/** Keys, defaults, ranges and help of grv_generate_config. A constant. Not collective. */
GRV_API const grv_option_table *grv_generate_options(void);

/** What was made. */
typedef struct grv_generate_result {
    int64_t n_made;            /**< in this call */
    int64_t n_failed;          /**< in this call; their reasons are in the data set */
    int64_t n_done;            /**< in the data set now */
    double seconds;            /**< wall time of this call */
    double seconds_per_sample; /**< mean of one simulation on one thread, over all that the data set has */
} grv_generate_result;

/** Says whether to stop after the flows that are running. Called from any thread. */
typedef bool grv_generate_stop(void *argument);

/** Makes what is missing of a data set: a call that was stopped, or killed, is simply repeated. Sample i depends on the configuration and i
 * only. A flow that fails is marked and the others go on. Not collective.
 * @param log  may be NULL; @param stop  may be NULL
 * @errors GRV_E_CONFIG (also when the data set there was made otherwise), errors of the body (grv_flow_shape_read, grv_flow_mesh_create), GRV_E_IO, GRV_E_INTERRUPTED (what is done is kept) */
GRV_API grv_status grv_generate(const grv_generate_config *config, grv_log *log, grv_generate_stop *stop, void *stop_argument,
                                grv_generate_result *result) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
