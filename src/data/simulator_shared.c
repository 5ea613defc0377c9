/* What simulators of somebody else's have in common, programs and functions: the values of a sample by their names, the two fields that it is made of, the
 * files in its folder, and how its process ended. */
#define _XOPEN_SOURCE 700 /* strsignal, symlink */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/nearest.h"
#include "data/campaign_impl.h"
#include "grove/core.h"

enum { SEED_STREAM = 1, N_OWN = 2 };
static const char *const own_names[N_OWN] = {"sample", "seed"};

/* ---- values ---- */

const char *grvi_sample_value_name(const grvi_campaign *c, int i)
{
    const int n = grv_sampling_n_parameters(c->sampling);
    return i < n ? grv_sampling_name(c->sampling, i) : own_names[i - n];
}

int grvi_sample_n_values(const grvi_campaign *c)
{
    return grv_sampling_n_parameters(c->sampling) + N_OWN;
}

int grvi_sample_find_value(const grvi_campaign *c, const char *name, const char **nearest)
{
    grvi_nearest search = {.word = name};
    for (int i = 0; i < grvi_sample_n_values(c); i++) {
        if (strcmp(grvi_sample_value_name(c, i), name) == 0) return i;
        grvi_nearest_offer(&search, grvi_sample_value_name(c, i));
    }
    *nearest = grvi_nearest_get(&search);
    return -1;
}

void grvi_sample_value(const grvi_campaign *c, int64_t sample, int i, char *text)
{
    const int n = grv_sampling_n_parameters(c->sampling);
    if (i < n)
        grv_sampling_text(c->sampling, sample, i, text);
    else if (i == n)
        (void)snprintf(text, GRV_SAMPLING_TEXT_BYTES, "%lld", (long long)sample);
    else /* fits an int of any language */
        (void)snprintf(
            text, GRV_SAMPLING_TEXT_BYTES, "%u",
            (unsigned)(grv_random_bits((uint64_t)c->config.seed, SEED_STREAM, (uint64_t)sample) >>
                       33));
}

/* ---- fields ---- */

static grv_status check_field(const char *which, const grv_campaign_field *f)
{
    GRV_CHECK(f->axes.n > 0, GRV_E_CONFIG,
              "%s.axes: the names of the axes of each sample's %s expected (such as [x, y]), none "
              "given",
              which, which);
    GRV_CHECK(f->axes.n <= GRV_DATASET_MAX_AXES, GRV_E_CONFIG,
              "%s.axes: at most %d axes expected, %d found", which, GRV_DATASET_MAX_AXES,
              f->axes.n);
    GRV_CHECK(f->axes.n == f->shape.n, GRV_E_CONFIG,
              "%s.shape: one length for each of the %d axes expected, %d found", which, f->axes.n,
              f->shape.n);
    return GRV_OK;
}

grv_status grvi_simulator_check(grvi_campaign *c)
{
    GRV_TRY(check_field("input", &c->config.input));
    GRV_TRY(check_field("target", &c->config.target));
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++)
        for (int i = 0; i < N_OWN; i++)
            GRV_CHECK(strcmp(grv_sampling_name(c->sampling, p), own_names[i]) != 0, GRV_E_CONFIG,
                      "parameter '%s': each sample has a %s of its own already; another name "
                      "expected",
                      own_names[i], i == 0 ? "number" : "random number");
    for (int i = 0; i < c->config.files.n; i++)
        GRV_TRY(grvi_campaign_make_absolute("files", &c->config.files.at[i]));
    return GRV_OK;
}

static grv_dataset_field field_of(const grv_campaign_field *f)
{
    grv_dataset_field field = {.n_axes = f->axes.n, .n_channels = grvi_max_i64(1, f->channels.n)};
    for (int a = 0; a < f->axes.n; a++) {
        field.axis_names[a] = f->axes.at[a];
        field.shape[a] = f->shape.at[a];
    }
    if (f->channels.n > 0) field.channel_names = (const char *const *)f->channels.at;
    return field;
}

grv_status grvi_simulator_describe(grvi_campaign *c, grv_dataset_desc *desc)
{
    *desc = grv_dataset_desc_default();
    desc->input = field_of(&c->config.input);
    desc->target = field_of(&c->config.target);
    desc->type = c->config.type == 1 ? GRV_STORE_F64 : GRV_STORE_F32;
    return GRV_OK;
}

int grvi_simulator_shape(const grv_campaign_field *f, int64_t *shape)
{
    for (int a = 0; a < f->axes.n; a++) shape[a] = f->shape.at[a];
    shape[f->axes.n] = grvi_max_i64(1, f->channels.n);
    return f->axes.n + 1;
}

/* ---- the folder, and the process in it ---- */

grv_status grvi_simulator_link_files(const grvi_campaign *c, const char *folder)
{
    for (int i = 0; i < c->config.files.n; i++) {
        char *path = NULL;
        GRV_TRY(grvi_fs_join(folder, grvi_fs_base_name(c->config.files.at[i]), &path));
        const bool linked = symlink(c->config.files.at[i], path) == 0;
        grv_free(path);
        GRV_CHECK(linked, GRV_E_IO, "files: link %s into %s: %s", c->config.files.at[i], folder,
                  strerror(errno));
    }
    return GRV_OK;
}

int64_t grvi_simulator_printed(void)
{
    return lseek(2, 0, SEEK_END); /* of a file; else -1 */
}

grv_status grvi_simulator_wait(const char *name, pid_t process, int64_t printed)
{
    int code = 0;
    char line[512];
    while (waitpid(process, &code, 0) < 0)
        GRV_CHECK(errno == EINTR, GRV_E_IO, "wait for %s: %s", name, strerror(errno));
    grvi_fs_last_line(2, printed < 0 ? INT64_MAX : printed, line, sizeof line);
    const char *const colon = line[0] != '\0' ? ": " : "";
    GRV_CHECK(!WIFSIGNALED(code), GRV_E_NUMERIC, "%s crashed: signal %d, %s%s%s", name,
              WTERMSIG(code), strsignal(WTERMSIG(code)), colon, line);
    GRV_CHECK(WEXITSTATUS(code) == 0, GRV_E_NUMERIC, "%s ended with exit code %d%s%s", name,
              WEXITSTATUS(code), colon, line);
    return GRV_OK;
}
