/* Runs of planes of a batch on a process mesh. */
#include "core/check.h"
#include "grove/dist.h"

bool grv_plane_layout_run(void *argument, int rank, int64_t i, grv_range *run)
{
    const grv_plane_layout *const layout = argument;
    const grv_range samples =
        grv_partition_range(layout->n_samples, layout->n_data, rank / layout->n_domain);
    const grv_range planes =
        grv_partition_range(layout->n_planes, layout->n_domain, rank % layout->n_domain);
    if (i >= samples.count) return false;
    *run = (grv_range){.start = (samples.start + i) * layout->n_planes + planes.start,
                       .count = planes.count};
    return true;
}
