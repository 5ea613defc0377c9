/* grove batch: jobs of many tasks. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "grove/batch.h"

int grvc_batch(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "worker") == 0) return grv_batch_worker(argv[2], atoi(argv[3])) == GRV_OK ? 0 : 1;
    return 2;
}
