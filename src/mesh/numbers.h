/* Numbers in text that need not end with a NUL. Internal. */
#ifndef GRVI_MESH_NUMBERS_H
#define GRVI_MESH_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/store.h"

static inline bool grvi_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static inline const char *grvi_skip_blanks(const char *at, const char *end)
{
    while (at < end && grvi_is_blank(*at)) at++;
    return at;
}

/* Reads a number at *at and moves *at behind it; false, *at unchanged, if there is none. Rounded correctly. Exponents by e, E, d or D, a comma as decimal point,
 * "nan" and "inf..." in any case are taken. */
bool grvi_parse_double(const char **at, const char *end, double *value);
/* The same for integers; false also for those that do not fit. Numbers followed by '.' or an exponent are none. */
bool grvi_parse_i64(const char **at, const char *end, int64_t *value);
bool grvi_parse_u64(const char **at, const char *end, uint64_t *value);

/* Reads a number of a type that meshes have into out[i]; false if it is none or does not fit. */
bool grvi_parse_value(grv_store_type type, const char **at, const char *end, void *out, int64_t i);

#endif
