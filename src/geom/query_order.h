/* An order of queries along a space-filling curve, so that consecutive ones touch the same part of a tree. Internal. */
#ifndef GRVI_GEOM_QUERY_ORDER_H
#define GRVI_GEOM_QUERY_ORDER_H

#include "core/check.h"

/* Queries that are ordered together. */
enum { GRVI_QUERY_BATCH = 1 << 22 };

/* 64-bit words of scratch for n < 2^31 queries. */
int64_t grvi_query_order_words(int64_t n, int n_threads);

/* Writes a permutation of 0 .. n - 1 into the first n words of scratch. queries [n][dimension] float or double; those that are not
 * finite may stand anywhere. The order is the same for any number of threads. */
void grvi_query_order(const void *queries, int64_t n, int dimension, bool is_double, int n_threads,
                      uint64_t *scratch);

#endif
