/* grove predict: a network's answers to the inputs of a data set. */
#include <stdio.h>

#include "cli/cli.h"
#include "grove/core.h"
#include "grove/use.h"

int grvc_predict(int argc, char **argv)
{
    grv_predict_config config = {0};
    grv_comm *comm = NULL;
    int64_t n_done = 0;
    double seconds = 0;
    grvc_session session = {.name = "grove predict",
                            .about = "Predicts the targets for the inputs of a data set and stores both as a new data set.",
                            .table = grv_predict_options(),
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grv_status status = grvc_ranks_begin(&session, &comm);
    if (status == GRV_OK) status = grv_predict(&config, comm, session.log, &n_done, &seconds);
    if (status == GRV_OK && session.rank == 0)
        (void)printf(session.json ? "{\"samples\": %lld, \"seconds_per_sample\": %.6g}\n" : "%lld samples predicted, %.4f s each\n",
                     (long long)n_done, seconds);
    const int exit_code = grvc_end(&session, status);
    grvc_ranks_end(&comm);
    return exit_code;
}
