/* Loops of hash_grid.c; included once per type with REAL and NAME. */

/* Number of a cell along an axis, as the hash grid counts: saturated where an int32 would overflow. */
static int64_t NAME(cell)(REAL x, REAL width_inverse)
{
    const double cell = floor((double)(REAL)(x * width_inverse));
    return cell < -(double)FAR_CELL  ? -FAR_CELL
           : cell > (double)FAR_CELL ? FAR_CELL
                                     : (int64_t)cell;
}

static void NAME(fill_grid)(const REAL *points, int64_t n, int dimension, grvi_hash_grid *grid)
{
    const REAL inverse = (REAL)grid->width_inverse;
    REAL *const x = grid->coordinates[0], *const y = grid->coordinates[1],
                *const z = grid->coordinates[2];
    int32_t *const next =
        grid->starts + 1; /* starts[b + 1] counts bucket b, then says where its next point goes */
    memset(grid->starts, 0, (N_BUCKETS + 1) * sizeof *grid->starts);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n; i++) {
            const REAL *const p = points + i * dimension;
            const REAL third = dimension == 3 ? p[2] : 0;
            const int64_t b = bucket(NAME(cell)(p[0], inverse), NAME(cell)(p[1], inverse),
                                     NAME(cell)(third, inverse));
            const int32_t place = next[b]++;
            if (pass == 0) continue;
            x[place] = p[0];
            y[place] = p[1];
            z[place] = third;
            grid->indices[place] = (int32_t)i;
        }
        if (pass == 1) break;
        int32_t total = 0;
        for (int64_t b = 0; b < N_BUCKETS; b++) {
            const int32_t count = next[b];
            next[b] = total;
            total += count;
        }
    }
    for (int64_t i = n; i < n + GRVI_TREE_WIDTH - 1; i++)
        x[i] = y[i] = z[i] = 0; /* read by whole blocks, never kept */
}

static int64_t NAME(first_of_grid)(const grvi_hash_grid *grid,
                                   const grvi_neighbour_kernels *kernels, const REAL *q,
                                   REAL radius, int64_t limit, int32_t *indices, REAL *squared)
{
    const void *const points[3] = {grid->coordinates[0], grid->coordinates[1],
                                   grid->coordinates[2]};
    const REAL inverse = (REAL)grid->width_inverse;
    const double bound = (double)(REAL)(radius * radius);
    int64_t begin[3], end[3], n = 0;
    for (int d = 0; d < 3; d++) {
        begin[d] = NAME(cell)(q[d] - radius, inverse);
        end[d] = grvi_min_i64(NAME(cell)(q[d] + radius, inverse), begin[d] + GRID_SIDE - 1);
    }
    for (int64_t cz = begin[2]; cz <= end[2] && n < limit; cz++) {
        for (int64_t cy = begin[1]; cy <= end[1] && n < limit; cy++) {
            /* cells along x are neighbours in memory, up to where they wrap around */
            for (int64_t cx = begin[0], stop; cx <= end[0] && n < limit; cx = stop) {
                const int64_t first = bucket(cx, cy, cz);
                stop = grvi_min_i64(cx + GRID_SIDE - wrap(cx), end[0] + 1);
                const int64_t found =
                    kernels->run(points, grid->starts[first], grid->starts[first + stop - cx], q,
                                 bound, limit - n, indices + n, squared + n);
                for (int64_t i = n; i < n + found; i++) indices[i] = grid->indices[indices[i]];
                n += found;
            }
        }
    }
    return n;
}
