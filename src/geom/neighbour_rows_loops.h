/* Loops of neighbour_rows.c; included once per type with REAL and NAME. */

static void NAME(finish)(bool keep_squared, int64_t n, int64_t n_places, REAL pad, REAL *distances)
{
    for (int64_t j = 0; j < n && !keep_squared; j++) distances[j] = NAME(square_root)(distances[j]);
    for (int64_t j = n; j < n_places; j++) distances[j] = pad;
}

/* squared[j] becomes what squared was at place words[j] & UINT32_MAX. */
static void NAME(permute)(int64_t n, const uint64_t *words, REAL *squared, REAL *scratch)
{
    for (int64_t j = 0; j < n; j++) scratch[j] = squared[words[j] & UINT32_MAX];
    memcpy(squared, scratch, (size_t)n * sizeof *squared);
}
