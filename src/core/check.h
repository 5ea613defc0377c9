/* Raising and forwarding errors, assertions, checked conversions. Internal. */
#ifndef GRVI_CORE_CHECK_H
#define GRVI_CORE_CHECK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "grove/status.h"

/* Fills the thread's record with "<text of code>: <message>" and the first trace line; returns code. */
grv_status grvi_fail(grv_status code, const char *file, int line, const char *function,
                     const char *format, ...) __attribute__((format(printf, 5, 6), cold));
/* Adds a trace line to the record. */
void grvi_frame(const char *file, int line, const char *function) __attribute__((cold));
/* Copies a message that another thread or rank recorded into this thread's record. */
grv_status grvi_fail_from(grv_status code, const char *message) __attribute__((cold));

/* Raises: return a status with a message. */
#define GRV_FAIL(code, ...) return grvi_fail((code), __FILE__, __LINE__, __func__, __VA_ARGS__)
#define GRV_CHECK(cond, code, ...)                                                                 \
    do {                                                                                           \
        if (!(cond)) GRV_FAIL(code, __VA_ARGS__);                                                  \
    } while (0)
/* Forwards: returns any status that is not GRV_OK. */
#define GRV_TRY(expr)                                                                              \
    do {                                                                                           \
        const grv_status grv_s_ = (expr);                                                          \
        if (grv_s_ != GRV_OK) {                                                                    \
            grvi_frame(__FILE__, __LINE__, __func__);                                              \
            return grv_s_;                                                                         \
        }                                                                                          \
    } while (0)
/* The same for functions that clean up: 'grv_status status' and a label 'done' must exist. */
#define GRV_FAIL_GOTO(code, ...)                                                                   \
    do {                                                                                           \
        status = grvi_fail((code), __FILE__, __LINE__, __func__, __VA_ARGS__);                     \
        goto done;                                                                                 \
    } while (0)
#define GRV_CHECK_GOTO(cond, code, ...)                                                            \
    do {                                                                                           \
        if (!(cond)) GRV_FAIL_GOTO(code, __VA_ARGS__);                                             \
    } while (0)
#define GRV_TRY_GOTO(expr)                                                                         \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status != GRV_OK) {                                                                    \
            grvi_frame(__FILE__, __LINE__, __func__);                                              \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

/* For what only our own bug can break. Free in release builds. */
#ifdef GRVI_DEBUG
#define GRV_ASSERT(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) grvi_assert_failed(#cond, __FILE__, __LINE__, __func__);                      \
    } while (0)
#else
#define GRV_ASSERT(cond) ((void)sizeof(cond))
#endif
void grvi_assert_failed(const char *text, const char *file, int line, const char *function)
    __attribute__((noreturn, cold));

/* n * size, false on overflow or a negative n. */
static inline bool grvi_mul_size(int64_t n, size_t size, size_t *out)
{
    return n >= 0 && !__builtin_mul_overflow((size_t)n, size, out);
}

/* a * b for counts, false on overflow. */
static inline bool grvi_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* a count that must fit an int (MPI, threads); aborts nothing, saturates never: fails. */
static inline grv_status grvi_to_int(int64_t n, int *out)
{
    GRV_CHECK(n >= INT_MIN && n <= INT_MAX, GRV_E_ARG, "count %lld does not fit an int", (long long)n);
    *out = (int)n;
    return GRV_OK;
}

/* Of numbers that are no NaN: fmin and fmax are calls. */
static inline double grvi_min_f64(double a, double b) { return b < a ? b : a; }
static inline double grvi_max_f64(double a, double b) { return a < b ? b : a; }
static inline int64_t grvi_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t grvi_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t grvi_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t grvi_round_up(int64_t a, int64_t b) { return grvi_ceil_div(a, b) * b; }

#endif
