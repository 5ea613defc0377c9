/* grove train: trains a network on a data set. */
#include <stdio.h>

#include "cli/cli.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/train.h"

static bool stop(void *argument)
{
    (void)argument;
    return grvc_interrupted();
}

static grv_status print_result(const grvc_session *session, const grv_train_config *config, const grv_train_result *r)
{
    if (session->rank != 0) return GRV_OK;
    if (!session->json) {
        (void)printf("%s: %lld epochs%s, train loss %.4g, validation loss %.4g; best %.4g after epoch %lld; %.1f s\n", config->run,
                     (long long)r->epochs, r->stopped_early ? " (no improvement, stopped early)" : "", r->train_loss, r->validation_loss,
                     r->best_loss, (long long)r->best_epoch + 1, r->seconds);
        return GRV_OK;
    }
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "run");
    grvi_json_string(&w, config->run);
    grvi_json_key(&w, "epochs");
    grvi_json_i64(&w, r->epochs);
    grvi_json_key(&w, "train_loss");
    grvi_json_double(&w, r->train_loss);
    grvi_json_key(&w, "validation_loss");
    grvi_json_double(&w, r->validation_loss);
    grvi_json_key(&w, "best_loss");
    grvi_json_double(&w, r->best_loss);
    grvi_json_key(&w, "best_epoch");
    grvi_json_i64(&w, r->best_epoch + 1);
    grvi_json_key(&w, "seconds");
    grvi_json_double(&w, r->seconds);
    grvi_json_end_object(&w);
    (void)printf("%s\n", grvi_text_get(&out));
    const grv_status status = grvi_text_status(&out);
    grvi_text_fini(&out);
    return status;
}

int grvc_train(int argc, char **argv)
{
    grv_train_config config = {0};
    grv_train_result result;
    grv_comm *comm = NULL;
    grvc_session session = {.name = "grove train",
                            .about = "Trains a Fourier neural operator on a data set; `mpirun -n N grove train ...` trains on N ranks.\n"
                                     "Ctrl-C writes a checkpoint; the same command goes on from it, with the same numbers.",
                            .table = grv_train_options(),
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grvc_interrupt_install();
    grv_status status = grvc_ranks_begin(&session, &comm);
    if (status == GRV_OK) status = grv_train(&config, comm, session.log, stop, NULL, &result);
    if (status == GRV_OK) status = print_result(&session, &config, &result);
    const int exit_code = grvc_end(&session, status);
    grvc_ranks_end(&comm);
    return exit_code;
}
