/* Slices of an array as people write them. */
#include "cli/store_slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "[3, 4]" */
static const char *shape_text(int rank, const int64_t *shape, char *text, size_t n_text)
{
    size_t n = (size_t)snprintf(text, n_text, "[");
    for (int i = 0; i < rank && n < n_text; i++)
        n += (size_t)snprintf(text + n, n_text - n, i > 0 ? ", %lld" : "%lld", (long long)shape[i]);
    if (n < n_text) (void)snprintf(text + n, n_text - n, "]");
    return text;
}

/* A number up to the end of the part, or nothing at all (then *value stays). */
static grv_status read_number(const char *part, const char **at, int64_t *value)
{
    char *end = NULL;
    while (**at == ' ') ++*at;
    if (**at == ':' || **at == '\0') return GRV_OK;
    errno = 0;
    const long long number = strtoll(*at, &end, 10);
    while (*end == ' ') end++;
    GRV_CHECK(end != *at && errno == 0 && (*end == ':' || *end == '\0'), GRV_E_ARG,
              "'%.40s' is no slice: an index (3), a range (2:5), all (:) or the rest (...) "
              "expected",
              part);
    *at = end;
    *value = number;
    return GRV_OK;
}

static int64_t clamp(int64_t value, int64_t n)
{
    if (value < 0) value += n;
    return grvi_max_i64(0, grvi_min_i64(value, n));
}

static grv_status read_range(const char *part, const char *at, int64_t first, int64_t n,
                             grvc_slice *slice, int axis)
{
    int64_t last = n, step = 1;
    at++;
    GRV_TRY(read_number(part, &at, &last));
    if (*at == ':') {
        at++;
        GRV_TRY(read_number(part, &at, &step));
    }
    GRV_CHECK(*at == '\0', GRV_E_ARG, "'%.40s' is no slice: more than two colons", part);
    GRV_CHECK(step == 1, GRV_E_ARG, "'%.40s': a step of %lld; only steps of 1 are read", part,
              (long long)step);
    slice->start[axis] = clamp(first, n);
    slice->count[axis] = grvi_max_i64(0, clamp(last, n) - slice->start[axis]);
    return GRV_OK;
}

static grv_status read_part(const char *part, const int64_t *shape, grvc_slice *slice, int axis)
{
    const char *at = part;
    const int64_t n = shape[axis];
    int64_t first = INT64_MIN;
    GRV_TRY(read_number(part, &at, &first));
    if (*at == ':') return read_range(part, at, first == INT64_MIN ? 0 : first, n, slice, axis);
    GRV_CHECK(first != INT64_MIN, GRV_E_ARG, "axis %d: an empty slice; ':' is the whole axis",
              axis);
    if (n == 0)
        GRV_FAIL(GRV_E_ARG, "axis %d: index %lld, but the axis has no elements", axis,
                 (long long)first);
    GRV_CHECK(first >= -n && first < n, GRV_E_ARG,
              "axis %d: index %lld is out of range; 0 to %lld, or -%lld to -1 from the end", axis,
              (long long)first, (long long)(n - 1), (long long)n);
    slice->start[axis] = first < 0 ? first + n : first;
    slice->count[axis] = 1;
    slice->is_dropped[axis] = true;
    return GRV_OK;
}

/* Parts without the ellipsis, and whether there is one. */
static int count_parts(const char *text, bool *has_ellipsis)
{
    int n = 1;
    for (const char *p = text; *p != '\0'; p++) n += *p == ',';
    *has_ellipsis = strstr(text, "...") != NULL;
    return n - *has_ellipsis;
}

grv_status grvc_slice_parse(const char *text, int rank, const int64_t *shape, grvc_slice *slice)
{
    enum { PART_BYTES = 64 };
    char part[PART_BYTES], shape_of[512];
    bool has_ellipsis = false;
    *slice = (grvc_slice){.rank = rank};
    for (int i = 0; i < rank; i++) slice->count[i] = shape[i];
    if (text == NULL || text[0] == '\0') return GRV_OK;
    const int n_parts = count_parts(text, &has_ellipsis);
    GRV_CHECK(n_parts <= rank, GRV_E_ARG, "%d slices in '%.80s', but the array's shape is %s",
              n_parts, text, shape_text(rank, shape, shape_of, sizeof shape_of));
    int axis = 0;
    for (const char *p = text; p != NULL;) {
        const size_t n = strcspn(p, ",");
        GRV_CHECK(n < PART_BYTES, GRV_E_ARG, "'%.40s...' is no slice", p);
        memcpy(part, p, n);
        part[n] = '\0';
        if (strcmp(part, "...") == 0) {
            GRV_CHECK(has_ellipsis, GRV_E_ARG, "'%.80s': one '...' is allowed", text);
            has_ellipsis = false;
            axis += rank - n_parts;
        } else {
            GRV_CHECK(axis < rank, GRV_E_ARG, "'%.80s': one '...' is allowed", text);
            GRV_TRY(read_part(part, shape, slice, axis++));
        }
        p = p[n] == ',' ? p + n + 1 : NULL;
    }
    return GRV_OK;
}
