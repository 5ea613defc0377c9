/* Optimal string alignment distance (Levenshtein with swaps), three rows of the usual table. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/nearest.h"

enum { MAX_WORD = 63 };

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

int grvi_edit_distance(const char *a, const char *b)
{
    const int n_a = min_int((int)strnlen(a, MAX_WORD), MAX_WORD);
    const int n_b = min_int((int)strnlen(b, MAX_WORD), MAX_WORD);
    int row[3][MAX_WORD + 1] = {{0}};
    for (int j = 0; j <= n_b; j++) row[0][j] = j;
    for (int i = 1; i <= n_a; i++) {
        int *const now = row[i % 3];
        const int *const before = row[(i + 2) % 3], *const before2 = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= n_b; j++) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            now[j] = min_int(before[j - 1] + !same, min_int(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = min_int(now[j], before2[j - 2] + 1);
        }
    }
    return row[n_a % 3][n_b];
}

void grvi_nearest_offer(grvi_nearest *search, const char *candidate)
{
    int distance = grvi_edit_distance(search->word, candidate);
    const char *const dot = strrchr(candidate, '.');
    if (dot != NULL) distance = min_int(distance, grvi_edit_distance(search->word, dot + 1));
    if (search->best == NULL || distance < search->distance) {
        search->best = candidate;
        search->distance = distance;
    }
}

const char *grvi_nearest_get(const grvi_nearest *search)
{
    const int limit = 1 + (int)strnlen(search->word, MAX_WORD) / 3;
    return search->best != NULL && search->distance <= limit ? search->best : NULL;
}
