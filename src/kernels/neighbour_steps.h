/* Sixteen points or boxes at once; included once per type with REAL, KEY and NAME, after the vectors (neighbour_vectors.h, or neighbour_ref.c's of one lane). */

GRVI_STEP NAME(vec) NAME(sum_of_squares)(NAME(vec) x, NAME(vec) y, NAME(vec) z)
{
    return NAME(vec_add)(NAME(vec_add)(NAME(vec_mul)(x, x), NAME(vec_mul)(y, y)),
                         NAME(vec_mul)(z, z));
}

/* Squared distances of 16 points; the mask of those <= bound. */
GRVI_STEP unsigned NAME(block_distances)(const REAL *q, const REAL *x, const REAL *y, const REAL *z,
                                         REAL bound, REAL *squared)
{
    const NAME(vec) qx = NAME(vec_set1)(q[0]), qy = NAME(vec_set1)(q[1]), qz = NAME(vec_set1)(q[2]),
                    limit = NAME(vec_set1)(bound);
    unsigned mask = 0;
#pragma GCC unroll 16
    for (int i = 0; i < GRVI_TREE_WIDTH; i += NAME(LANES)) {
        const NAME(vec) s = NAME(sum_of_squares)(NAME(vec_sub)(qx, NAME(vec_load)(x + i)),
                                                 NAME(vec_sub)(qy, NAME(vec_load)(y + i)),
                                                 NAME(vec_sub)(qz, NAME(vec_load)(z + i)));
        NAME(vec_store)(squared + i, s);
        mask |= NAME(vec_up_to)(s, limit) << i;
    }
    return mask;
}

/* Distance of a coordinate to intervals; missing children stay NaN. */
GRVI_STEP NAME(vec) NAME(gap)(NAME(vec) q, const REAL *lower, const REAL *upper)
{
    return NAME(vec_max)(NAME(vec_set1)(0), NAME(vec_max)(NAME(vec_sub)(NAME(vec_load)(lower), q),
                                                          NAME(vec_sub)(q, NAME(vec_load)(upper))));
}

/* Keys of 16 boxes; the mask of those whose bound is <= bound. */
GRVI_STEP unsigned NAME(block_bounds)(const REAL *q, const REAL *box, REAL bound, KEY *keys)
{
    enum { UPPER = 3 * GRVI_TREE_WIDTH };
    const NAME(vec) qx = NAME(vec_set1)(q[0]), qy = NAME(vec_set1)(q[1]), qz = NAME(vec_set1)(q[2]),
                    limit = NAME(vec_set1)(bound);
    unsigned mask = 0;
#pragma GCC unroll 16
    for (int i = 0; i < GRVI_TREE_WIDTH; i += NAME(LANES)) {
        const REAL *const x = box + i, *const y = x + GRVI_TREE_WIDTH,
                          *const z = y + GRVI_TREE_WIDTH;
        const NAME(vec) s = NAME(sum_of_squares)(
            NAME(gap)(qx, x, x + UPPER), NAME(gap)(qy, y, y + UPPER), NAME(gap)(qz, z, z + UPPER));
        NAME(vec_store_keys)(keys + i, s, i);
        mask |= NAME(vec_up_to)(s, limit) << i;
    }
    return mask;
}
