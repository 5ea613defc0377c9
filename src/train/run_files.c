/* Files of a run directory. */
#include "train/run_files.h"

#include <math.h>
#include <string.h>

#include "core/fs.h"
#include "core/json.h"
#include "grove/core.h"

static grv_status write_text(const grv_train_config *config, const char *name, const char *text)
{
    char *path = NULL;
    GRV_TRY(grvi_fs_join(config->run, name, &path));
    const grv_status status = grvi_fs_write_atomic(path, text, (int64_t)strlen(text), false);
    grv_free(path);
    return status;
}

grv_status grvi_run_open(const grv_train_config *config, const grv_network *network, grv_log *log)
{
    char *path = NULL, *yaml = NULL;
    GRV_TRY(grvi_fs_make_directory(config->run));
    GRV_TRY(grvi_fs_join(config->run, "log.jsonl", &path));
    grv_status status = log == NULL ? GRV_OK : grv_log_open_file(log, path);
    grv_free(path);
    GRV_TRY(status);
    GRV_TRY(grv_config_to_yaml(grv_train_options(), config, &yaml));
    status = write_text(config, "config.yaml", yaml);
    grv_free(yaml);
    GRV_TRY(status);
    char *const plan = grv_plan_text(grv_network_plan(network));
    GRV_CHECK(plan != NULL, GRV_E_NOMEM, "text of the plan");
    status = write_text(config, "plan.txt", plan);
    grv_free(plan);
    return status;
}

grv_status grvi_run_metrics(const grv_train_config *config, const grv_train_state *state)
{
    grvi_text text = {0};
    grvi_text_append(&text, "epoch,step,learning_rate,train_loss,validation_loss,seconds,wait_seconds\n");
    for (int64_t i = 0; i < state->n_history; i++) {
        const grv_epoch *const e = &state->history[i];
        grvi_text_printf(&text, "%lld,%lld,%.9g,%.17g,", (long long)e->epoch + 1, (long long)e->step, e->learning_rate, e->train_loss);
        if (isfinite(e->validation_loss)) grvi_text_printf(&text, "%.17g", e->validation_loss);
        grvi_text_printf(&text, ",%.6g,%.6g\n", e->seconds, e->wait_seconds);
    }
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = write_text(config, "metrics.csv", text.data);
    grvi_text_fini(&text);
    return status;
}

grv_status grvi_run_trace(const grv_train_config *config, const grv_network *network, int rank)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    const grv_exec *const exec = grv_network_exec(network);
    const int64_t n = grv_plan_summarise(grv_network_plan(network)).n_steps;
    const double origin = n > 0 ? grv_exec_step_begin(exec, 0) : 0;
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "displayTimeUnit");
    grvi_json_string(&w, "ms");
    grvi_json_key(&w, "traceEvents");
    grvi_json_begin_array(&w);
    for (int64_t i = 0; i < n; i++) {
        const char *name = NULL;
        const double seconds = grv_exec_step_seconds(exec, i, &name);
        grvi_json_begin_object(&w);
        grvi_json_key(&w, "name");
        grvi_json_string(&w, name);
        grvi_json_key(&w, "ph");
        grvi_json_string(&w, "X");
        grvi_json_key(&w, "pid");
        grvi_json_i64(&w, rank);
        grvi_json_key(&w, "tid");
        grvi_json_i64(&w, 0);
        grvi_json_key(&w, "ts");
        grvi_json_double(&w, 1e6 * (grv_exec_step_begin(exec, i) - origin));
        grvi_json_key(&w, "dur");
        grvi_json_double(&w, 1e6 * seconds);
        grvi_json_end_object(&w);
    }
    grvi_json_end_array(&w);
    grvi_json_end_object(&w);
    grvi_text_append(&text, "\n");
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = write_text(config, "trace.json", text.data);
    grvi_text_fini(&text);
    return status;
}
