/* The local halves of a tree sum, so that tests and dry plans can play all ranks in one process. Internal. */
#ifndef GRVI_DIST_TREE_SUM_H
#define GRVI_DIST_TREE_SUM_H

#include "grove/dist.h"

/* The plan of `rank` of `n_ranks` without a communicator; grv_tree_sum_run refuses it if n_ranks > 1. */
grv_status grvi_tree_sum_create_dry(int n_ranks, int rank, const grv_tree_sum_params *params,
                                    grv_tree_sum **plan) GRV_MUST_CHECK;
/* Sums that rank contributes, and sums of all ranks. */
int64_t grvi_tree_sum_own_nodes(const grv_tree_sum *plan);
int64_t grvi_tree_sum_all_nodes(const grv_tree_sum *plan);
/* Adds up this rank's subtrees; their sums move to planes [own nodes][n]. */
void grvi_tree_sum_reduce(const grv_tree_sum *plan, double *planes);
/* Finishes the tree over nodes [all nodes][length], rank after rank (destroyed), where length is n or a part of it. */
void grvi_tree_sum_finish(const grv_tree_sum *plan, int64_t length, double *nodes, double *result);

#endif
