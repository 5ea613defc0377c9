/* The simulator `flow`: the flow past a sphere or another body, as `grove simulate` makes it. Without parameters, the bodies are where that command puts them,
 * and the data set is the same to the last bit. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/nearest.h"
#include "core/text.h"
#include "data/campaign_impl.h"
#include "grove/core.h"

static grv_status check(grvi_campaign *c, grv_log *log)
{
    grv_generate_config *const flow = &c->config.flow;
    if (flow->body[0] != '\0') GRV_TRY(grvi_campaign_make_absolute("flow.body", &flow->body));
    GRV_CHECK(c->config.simulator.n == 1, GRV_E_CONFIG,
              "simulator: flow takes no further words, '%.60s' found", c->config.simulator.at[1]);
    GRV_CHECK(c->config.type == 0, GRV_E_CONFIG, "type: the simulator flow stores float32");
    GRV_CHECK(c->config.files.n == 0 && c->config.input.axes.n == 0 && c->config.target.axes.n == 0,
              GRV_E_CONFIG,
              "simulator: flow is the default; files, input and target are for a program, whose "
              "words are "
              "expected here");
    flow->samples = c->config.samples;
    flow->seed = c->config.seed;
    flow->planes_per_chunk = c->config.planes_per_chunk;
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++) {
        const char *const name = grv_sampling_name(c->sampling, p);
        grv_flow_sample_params params = grv_flow_sample_params_default();
        grvi_nearest search = {.word = name};
        for (int i = 0; grvi_flow_sample_name(i) != NULL; i++)
            grvi_nearest_offer(&search, grvi_flow_sample_name(i));
        const char *const nearest = grvi_nearest_get(&search);
        GRV_CHECK(grvi_flow_sample_set(&params, name, 1), GRV_E_CONFIG,
                  "parameter '%s': the simulator flow does not have it; %s%s%s", name,
                  nearest != NULL
                      ? "did you mean '"
                      : "radius, reynolds, velocity_x (_y, _z), centre_x, rotation_x expected",
                  nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
        GRV_CHECK(grv_sampling_n_words(c->sampling, p) == 0, GRV_E_CONFIG,
                  "parameter '%s': numbers expected, words found", name);
        GRV_CHECK(flow->body[0] != '\0' || strncmp(name, "rotation", strlen("rotation")) != 0,
                  GRV_E_CONFIG, "parameter '%s': a sphere cannot be turned; flow.body expected",
                  name);
    }
    /* flows at one place may still differ */
    return grvi_flow_set_init(flow, c->config.parameters.n > 0 ? NULL : log, &c->flows);
}

static grv_status describe(grvi_campaign *c, grv_dataset_desc *desc)
{
    GRV_TRY(grvi_flow_describe(&c->config.flow, &c->picture));
    *desc = c->picture.desc;
    return GRV_OK;
}

/* Of the sizes that occur, the smallest has the thinnest parts; those that are none fail with their sample. */
static grv_status inspect(const grvi_campaign *c, grv_log *log)
{
    double radius = c->config.flow.radius;
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++) {
        if (strcmp(grv_sampling_name(c->sampling, p), "radius") != 0) continue;
        for (int64_t i = 0; i < c->config.samples; i++) {
            const double value = grv_sampling_number(c->sampling, i, p);
            if (value > 0) radius = fmin(radius, value);
        }
    }
    return grvi_flow_set_inspect(&c->flows, radius, 1, log, c->data);
}

static grv_status make(grvi_campaign *c, int64_t sample, const char *folder, void *input,
                       void *target)
{
    (void)folder;
    grv_flow_sample_params params = grvi_flow_set_sample(&c->flows, sample);
    grv_flow_sample_report report;
    const grv_flow_sample_arrays arrays = {.input = input, .target = target};
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++)
        (void)grvi_flow_sample_set(&params, grv_sampling_name(c->sampling, p),
                                   grv_sampling_number(c->sampling, sample, p));
    return grv_flow_sample_run(&params, &arrays, NULL, NULL, &report);
}

const grvi_simulator grvi_simulator_flow = {check, describe, inspect, make};
