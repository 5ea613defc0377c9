/** @file sampling.h
 * Values of a campaign's parameters: which ones each sample gets.
 *
 * A parameter is a line of text, its name, its distribution and numbers or words:
 *
 *     velocity uniform 0.5 2          equally likely from 0.5 to 2
 *     viscosity log_uniform 1e-4 1e-2 its logarithm is
 *     angle normal 0 5                mean and standard deviation
 *     blades integer 2 6              a whole number, both ends included
 *     shape list round square         one of these, equally likely
 *     height grid 0 1 5               0, 0.25, 0.5, 0.75, 1: in all combinations with the other grid and each parameters
 *     model each k-epsilon les        the same for words
 *
 * A value is a function of the seed, the method, these lines, the number of samples and the sample alone (counter-based), so
 * that the order in which samples are made does not matter, nor who makes them. Parameters that are no part of the grid do not change when others
 * are added or taken away (but with the method GRV_SAMPLING_SOBOL, where their order counts).
 *
 * Thread-safe: a sampling does not change. Nothing here is collective.
 */
#ifndef GROVE_SAMPLING_H
#define GROVE_SAMPLING_H

#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most parameters. */
#define GRV_SAMPLING_MAX_PARAMETERS 32

/** How the points lie. It concerns all distributions but grid and each. */
typedef enum grv_sampling_method {
    GRV_SAMPLING_RANDOM, /**< independent */
    GRV_SAMPLING_LATIN_HYPERCUBE, /**< n equally likely ranges of each parameter, each hit by one of the n samples */
    GRV_SAMPLING_SOBOL /**< a Sobol sequence, shifted by the seed: most even for powers of two, and may be continued */
} grv_sampling_method;

/** Parsed parameters. */
typedef struct grv_sampling grv_sampling;

/** Reads the lines of parameters.
 * @param lines  [n] as above; copied
 * @param n_samples  in all: a multiple of the number of combinations, if there is a grid; 0: each combination once
 * @param sampling  on success; release with grv_sampling_destroy
 * @errors GRV_E_CONFIG naming the line, what was expected and what was found; GRV_E_NOMEM */
GRV_API grv_status grv_sampling_create(const char *const *lines, int n, grv_sampling_method method,
                                       uint64_t seed, int64_t n_samples,
                                       grv_sampling **sampling) GRV_MUST_CHECK;

/** Releases it. NULL is allowed. */
GRV_API void grv_sampling_destroy(grv_sampling **sampling);

/** Samples in all. */
GRV_API int64_t grv_sampling_n_samples(const grv_sampling *sampling);
/** Number of parameters. */
GRV_API int grv_sampling_n_parameters(const grv_sampling *sampling);
/** Name of a parameter. Borrowed until the sampling is destroyed. */
GRV_API const char *grv_sampling_name(const grv_sampling *sampling, int parameter);

/** Value of a parameter as a number; of words: the number itself if all words of the parameter are numbers, else the word's place, from 0 on.
 * @param sample  from 0 on */
GRV_API double grv_sampling_number(const grv_sampling *sampling, int64_t sample, int parameter);

/** Number of words among which a parameter is chosen by place (see grv_sampling_number), 0 for a number. */
GRV_API int grv_sampling_n_words(const grv_sampling *sampling, int parameter);
/** Word i of such a parameter. Borrowed until the sampling is destroyed. */
GRV_API const char *grv_sampling_word(const grv_sampling *sampling, int parameter, int i);

/** Most bytes of a value as text, with the zero at the end. */
#define GRV_SAMPLING_TEXT_BYTES 256
/** Value of a parameter as text: words as they were given, numbers by the fewest digits that read back to the same double.
 * @param text  [GRV_SAMPLING_TEXT_BYTES], written */
GRV_API void grv_sampling_text(const grv_sampling *sampling, int64_t sample, int parameter,
                               char *text);

#ifdef __cplusplus
}
#endif
#endif
