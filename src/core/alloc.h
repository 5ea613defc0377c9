/* The only way to take memory: checked sizes, 64-byte alignment, accounting, fault injection. Internal.
 * Blocks of 2 MiB and more come from the system in huge pages (fresh 4 KiB pages cost 10 us each on virtual machines)
 * which come zeroed; take them once and reuse them. */
#ifndef GRVI_CORE_ALLOC_H
#define GRVI_CORE_ALLOC_H

#include <stdint.h>

#include "core/check.h"

/* n * size bytes, uninitialised, 64-byte aligned; *out = NULL and GRV_E_NOMEM on failure. n == 0 gives a valid pointer. */
grv_status grvi_alloc(int64_t n, size_t size, void **out) GRV_MUST_CHECK;
/* The same, zeroed. */
grv_status grvi_calloc(int64_t n, size_t size, void **out) GRV_MUST_CHECK;
/* Grows or shrinks *block, keeping min(old, new) bytes; *block may be NULL. On failure *block is unchanged. */
grv_status grvi_realloc(int64_t n, size_t size, void **block) GRV_MUST_CHECK;
/* Copy of a string; free with grv_free. */
grv_status grvi_strdup(const char *text, char **out) GRV_MUST_CHECK;

/* Typed forms: GRVI_ALLOC(&pointer, n). */
#define GRVI_ALLOC(pointer, n)  grvi_alloc((n), sizeof **(pointer), (void **)(pointer))
#define GRVI_CALLOC(pointer, n) grvi_calloc((n), sizeof **(pointer), (void **)(pointer))
#define GRVI_REALLOC(pointer, n) grvi_realloc((n), sizeof **(pointer), (void **)(pointer))

/* Tests: the allocation number `countdown` from now on fails (0 = the next one), and only that one; -1 switches it off. */
void grvi_alloc_fail_after(int64_t countdown);

#endif
