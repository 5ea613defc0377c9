/* Inside of a network. Internal to src/train. */
#ifndef GRVI_NETWORK_IMPL_H
#define GRVI_NETWORK_IMPL_H

#include "grove/network.h"

struct grv_network {
    grv_network_params params;
    grv_comm *comm; /* borrowed; NULL for a single rank */
    grv_graph *graph;
    grv_plan *plan;
    grv_exec *exec;
    grv_value input, output;
    float *block;     /* the parameters: own_block, or another network's */
    float *own_block;
    float *gradients;
};

#endif
