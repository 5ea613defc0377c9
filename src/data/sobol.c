/* Sobol sequences by the direction numbers of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections",
 * SIAM J. Sci. Comput. 30 (2008), their set new-joe-kuo-6.21201, in the order of the Gray code (Antonov and Saleev). */
#include "data/sobol.h"

enum { BITS = 32, MOST_DEGREE = 7 };

/* Of dimensions 1 on: degree s and inner coefficients a of the primitive polynomial, and the first s direction numbers m. */
typedef struct direction_numbers {
    uint8_t degree, coefficients;
    uint8_t m[MOST_DEGREE];
} direction_numbers;

static const direction_numbers table[GRVI_SOBOL_DIMENSIONS - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
    {7, 7, {1, 1, 3, 13, 7, 35, 63}},
    {7, 8, {1, 3, 5, 9, 1, 25, 53}},
    {7, 14, {1, 3, 1, 13, 9, 35, 107}},
    {7, 19, {1, 3, 1, 5, 27, 61, 31}},
    {7, 21, {1, 1, 5, 11, 19, 41, 61}},
    {7, 28, {1, 3, 5, 3, 3, 13, 69}},
    {7, 31, {1, 1, 7, 13, 1, 19, 1}},
    {7, 32, {1, 3, 7, 5, 13, 19, 59}},
    {7, 37, {1, 1, 3, 9, 25, 29, 41}},
    {7, 41, {1, 3, 5, 13, 23, 1, 55}},
    {7, 42, {1, 3, 7, 3, 13, 59, 17}},
};

/* v[k] = m[k] / 2^(k+1) as a fraction of 2^32, by the recurrence of the polynomial. */
static void directions(int dimension, uint32_t v[BITS])
{
    const direction_numbers *const d = &table[dimension - 1];
    for (int k = 0; k < BITS; k++) {
        if (k < d->degree) {
            v[k] = (uint32_t)d->m[k] << (BITS - 1 - k);
            continue;
        }
        v[k] = v[k - d->degree] ^ (v[k - d->degree] >> d->degree);
        for (int j = 1; j < d->degree; j++)
            if (d->coefficients >> (d->degree - 1 - j) & 1) v[k] ^= v[k - j];
    }
}

uint32_t grvi_sobol(int dimension, uint32_t index)
{
    uint32_t v[BITS], x = 0;
    const uint32_t gray = index ^ index >> 1;
    if (dimension > 0) directions(dimension, v);
    for (int k = 0; k < BITS; k++)
        if (gray >> k & 1) x ^= dimension > 0 ? v[k] : UINT32_C(1) << (BITS - 1 - k);
    return x;
}
