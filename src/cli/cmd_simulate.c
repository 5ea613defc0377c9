/* grove simulate: makes or completes a data set of flows. */
#include <stdio.h>

#include "cli/cli.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/generate.h"
#include "grove/report.h"

static bool stop(void *argument)
{
    (void)argument;
    return grvc_interrupted();
}

static grv_status print_result(const grvc_session *session, const grv_generate_config *config, const grv_generate_result *r)
{
    if (!session->json) {
        (void)printf("%s: %lld of %lld flows done, %lld made now in %.1f s, %lld failed; %.2f s a flow\n", config->output, (long long)r->n_done,
                     (long long)config->samples, (long long)r->n_made, r->seconds, (long long)r->n_failed, r->seconds_per_sample);
        return GRV_OK;
    }
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "output");
    grvi_json_string(&w, config->output);
    grvi_json_key(&w, "done");
    grvi_json_i64(&w, r->n_done);
    grvi_json_key(&w, "made");
    grvi_json_i64(&w, r->n_made);
    grvi_json_key(&w, "failed");
    grvi_json_i64(&w, r->n_failed);
    grvi_json_key(&w, "seconds");
    grvi_json_double(&w, r->seconds);
    grvi_json_key(&w, "seconds_per_flow");
    grvi_json_double(&w, r->seconds_per_sample);
    grv_status status = grvc_json_attribute(&w, config->output, "body");
    grvi_json_end_object(&w);
    if (status == GRV_OK) status = grvi_text_status(&out);
    if (status == GRV_OK) (void)printf("%s\n", grvi_text_get(&out));
    grvi_text_fini(&out);
    return status;
}

int grvc_simulate(int argc, char **argv)
{
    grv_generate_config config = {0};
    grv_generate_result result;
    grvc_session session = {.name = "grove simulate",
                            .about = "Simulates flows around a sphere, or the body of a mesh file, at different places and stores them as a data set:\n"
                                     "input = fluid fraction of the cell faces, target = vorticity about z over time.\n"
                                     "What is there already is not made again, so an interrupted call is simply repeated.",
                            .table = grv_generate_options(),
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grvc_interrupt_install();
    grv_status status = config.picture[0] != '\0' ? grvc_check_picture(config.picture) : GRV_OK;
    if (status == GRV_OK) status = grv_generate(&config, session.log, stop, NULL, &result);
    if (status == GRV_OK && config.picture[0] != '\0') status = grv_report_flow(config.output, 0, config.picture);
    if (status == GRV_OK) status = print_result(&session, &config, &result);
    return grvc_end(&session, status);
}
