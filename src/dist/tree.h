/* Sums that do not depend on ranks or threads. Internal.
 *
 * P units (planes) are numbered globally. The sum is defined by the binary tree over their numbers: node (level, i) =
 * node(level-1, 2i) + node(level-1, 2i+1); a missing right child passes the left one on. Whoever holds some units adds what
 * the tree lets him add, keeps the nodes that need others, and hands them on; additions happen in the tree's order everywhere.
 *
 * A stack takes units (or nodes of others) in ascending order and merges siblings at once, so that it holds at most about
 * 2 log2(P) vectors per contiguous run, however many units pass through. */
#ifndef GRVI_DIST_TREE_H
#define GRVI_DIST_TREE_H

#include <stdint.h>

#include "core/check.h"

typedef struct grvi_tree_node {
    int64_t first; /* first unit below */
    int level;     /* it stands for the units [first, first + 2^level), as far as they exist */
} grvi_tree_node;

typedef struct grvi_tree_stack {
    int n, capacity;
    int64_t n_values;      /* doubles of a vector; 0: only the nodes are followed (planning) */
    grvi_tree_node *nodes; /* [capacity] */
    double *vectors;       /* [capacity][n_values] */
    int most;              /* largest n seen */
} grvi_tree_stack;

/* Vector of a fresh top, uninitialised; fill it, then call grvi_tree_push. */
double *grvi_tree_top(grvi_tree_stack *stack);
/* Makes the fresh top the given node and merges. Nodes come in ascending order. */
void grvi_tree_push(grvi_tree_stack *stack, grvi_tree_node node);
/* Adds what is left over, right to left, once all P units are there: the sum is vectors[0]. */
void grvi_tree_finish(grvi_tree_stack *stack);

#endif
