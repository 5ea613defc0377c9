/* A program as simulator: its words with the sample's values in them, run in a folder of its own, and the two arrays that it leaves there. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addchdir_np */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/nearest.h"
#include "core/text.h"
#include "data/campaign_impl.h"
#include "grove/core.h"
#include "store/npy.h"

extern char **environ;

enum { SEED_STREAM = 1 };

/* ---- the words ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

static bool is_word(const char *name, size_t n, const char *word)
{
    return strlen(word) == n && strncmp(name, word, n) == 0;
}

/* Appends the value that {name} stands for; false: there is no such name. */
static bool append_value(const grvi_campaign *c, int64_t sample, const char *name, size_t n,
                         grvi_text *out)
{
    char text[GRV_SAMPLING_TEXT_BYTES];
    if (is_word(name, n, "sample")) {
        grvi_text_printf(out, "%lld", (long long)sample);
        return true;
    }
    if (is_word(name, n, "seed")) { /* that fits an int of any language */
        grvi_text_printf(
            out, "%u",
            (unsigned)(grv_random_bits((uint64_t)c->config.seed, SEED_STREAM, (uint64_t)sample) >>
                       33));
        return true;
    }
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++) {
        if (!is_word(name, n, grv_sampling_name(c->sampling, p))) continue;
        grv_sampling_text(c->sampling, sample, p, text);
        grvi_text_append(out, text);
        return true;
    }
    return false;
}

static grv_status fail_unknown(const grvi_campaign *c, int number, const char *name, size_t n)
{
    char word[64];
    (void)snprintf(word, sizeof word, "%.*s",
                   (int)grvi_min_i64((int64_t)n, (int64_t)sizeof word - 1), name);
    grvi_nearest search = {.word = word};
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++)
        grvi_nearest_offer(&search, grv_sampling_name(c->sampling, p));
    grvi_nearest_offer(&search, "sample");
    grvi_nearest_offer(&search, "seed");
    const char *const nearest = grvi_nearest_get(&search);
    GRV_CHECK(nearest == NULL, GRV_E_CONFIG,
              "simulator[%d]: '{%s}' is no parameter; did you mean '{%s}'?", number, word, nearest);
    GRV_FAIL(GRV_E_CONFIG,
             "simulator[%d]: '{%s}' is none of the parameters (nor sample, nor seed); for a brace "
             "write {{",
             number, word);
}

/* Word `number` of the command for a sample. Braces around anything but a name stay as they are. */
static grv_status substitute(const grvi_campaign *c, int number, int64_t sample, char **out)
{
    grvi_text text = {0};
    grv_status status = GRV_OK;
    grvi_text_append(&text, "");
    for (const char *at = c->config.simulator.at[number]; *at != '\0';) {
        const size_t n = *at == '{' ? strspn(at + 1, letters) : 0;
        if (at[0] == '{' && at[1] == '{') {
            grvi_text_append(&text, "{");
            at += 2;
        } else if (n > 0 && at[n + 1] == '}' && !(at[1] >= '0' && at[1] <= '9')) {
            if (!append_value(c, sample, at + 1, n, &text)) {
                status = fail_unknown(c, number, at + 1, n);
                goto done;
            }
            at += n + 2;
        } else {
            grvi_text_append_n(&text, at++, 1);
        }
    }
    GRV_TRY_GOTO(grvi_text_status(&text));
    *out = text.data;
    return GRV_OK;
done:
    grvi_text_fini(&text);
    return status;
}

static void free_words(char **words, int n)
{
    for (int i = 0; i < n && words != NULL; i++) grv_free(words[i]);
    grv_free(words);
}

static grv_status make_words(const grvi_campaign *c, int64_t sample, char ***words)
{
    const int n = c->config.simulator.n;
    grv_status status = GRV_OK;
    GRV_TRY(GRVI_CALLOC(words, n + 1));
    for (int i = 0; i < n && status == GRV_OK; i++) status = substitute(c, i, sample, &(*words)[i]);
    if (status == GRV_OK) return GRV_OK;
    free_words(*words, n);
    *words = NULL;
    return status;
}

/* ---- checks ---- */

static bool is_on_path(const char *program)
{
    const char *at = getenv("PATH");
    grvi_text text = {0};
    bool found = false;
    while (!found && at != NULL && *at != '\0') {
        const size_t n = strcspn(at, ":");
        text.n = 0;
        grvi_text_printf(&text, "%.*s/%s", (int)n, at, program);
        found = grvi_text_status(&text) == GRV_OK && access(text.data, X_OK) == 0;
        at += n + (at[n] == ':');
    }
    grvi_text_fini(&text);
    return found;
}

static bool is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static const char *name_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* A word that is a file here, but will not be one where the program runs. */
static grv_status check_word(const grvi_campaign *c, int number)
{
    const char *const word = c->config.simulator.at[number];
    bool is_given = word[0] == '/' || !is_regular(word);
    for (int i = 0; i < c->config.files.n && !is_given; i++)
        is_given = strcmp(name_of(c->config.files.at[i]), word) == 0;
    GRV_CHECK(is_given, GRV_E_CONFIG,
              "simulator[%d]: '%s' is a file here, but the program runs in a folder of its own: "
              "list it in files (files: [%s]) and name it without a folder, or "
              "give its whole path",
              number, word, word);
    return GRV_OK;
}

static grv_status check_field(const char *which, const grv_campaign_field *f)
{
    GRV_CHECK(f->axes.n > 0, GRV_E_CONFIG,
              "%s.axes: the names of the axes of what the program leaves in %s.npy expected (such "
              "as [x, y]), none given",
              which, which);
    GRV_CHECK(f->axes.n <= GRV_DATASET_MAX_AXES, GRV_E_CONFIG,
              "%s.axes: at most %d axes expected, %d found", which, GRV_DATASET_MAX_AXES,
              f->axes.n);
    GRV_CHECK(f->axes.n == f->shape.n, GRV_E_CONFIG,
              "%s.shape: one length for each of the %d axes expected, %d found", which, f->axes.n,
              f->shape.n);
    return GRV_OK;
}

static grv_status check(grvi_campaign *c, grv_log *log)
{
    grv_campaign_config *const config = &c->config;
    char **words = NULL;
    GRV_TRY(check_field("input", &config->input));
    GRV_TRY(check_field("target", &config->target));
    GRV_TRY(make_words(c, 0, &words)); /* all names are known */
    free_words(words, config->simulator.n);
    if (strchr(config->simulator.at[0], '/') != NULL)
        GRV_TRY(grvi_campaign_make_absolute("simulator", &config->simulator.at[0]));
    else
        GRV_CHECK(
            is_on_path(config->simulator.at[0]), GRV_E_CONFIG,
            "simulator: 'flow', or a program on PATH, or its path with a '/' expected, '%s' found",
            config->simulator.at[0]);
    for (int i = 0; i < config->files.n; i++)
        GRV_TRY(grvi_campaign_make_absolute("files", &config->files.at[i]));
    for (int i = 1; i < config->simulator.n; i++) GRV_TRY(check_word(c, i));
    for (int p = 0; p < grv_sampling_n_parameters(c->sampling); p++) {
        char name[GRV_SAMPLING_TEXT_BYTES + 2];
        bool is_used = false;
        (void)snprintf(name, sizeof name, "{%s}", grv_sampling_name(c->sampling, p));
        for (int i = 0; i < config->simulator.n; i++)
            is_used = is_used || strstr(config->simulator.at[i], name) != NULL;
        if (!is_used)
            grv_log_message(log, GRV_LOG_WARN, "parameter '%s': no word of the simulator holds %s",
                            grv_sampling_name(c->sampling, p), name);
    }
    return GRV_OK;
}

/* ---- the data set ---- */

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

static grv_status describe(grvi_campaign *c, grv_dataset_desc *desc)
{
    *desc = grv_dataset_desc_default();
    desc->input = field_of(&c->config.input);
    desc->target = field_of(&c->config.target);
    desc->type = c->config.type == 1 ? GRV_STORE_F64 : GRV_STORE_F32;
    return GRV_OK;
}

/* ---- one sample ---- */

static grv_status link_files(const grvi_campaign *c, const char *folder)
{
    for (int i = 0; i < c->config.files.n; i++) {
        char *path = NULL;
        GRV_TRY(grvi_fs_join(folder, name_of(c->config.files.at[i]), &path));
        const bool linked = symlink(c->config.files.at[i], path) == 0;
        grv_free(path);
        GRV_CHECK(linked, GRV_E_IO, "files: link %s into %s: %s", c->config.files.at[i], folder,
                  strerror(errno));
    }
    return GRV_OK;
}

/* In this process's group, so that whoever ends that ends the program too. */
static grv_status spawn_and_wait(char *const *words, const char *folder, int *code)
{
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, 2,
                                           1); /* results of grove go to stdout, this does not */
    (void)posix_spawn_file_actions_addchdir_np(&actions, folder);
    (void)fflush(NULL);
    const int error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    GRV_CHECK(error == 0, GRV_E_NOT_FOUND, "run %s: %s", words[0], strerror(error));
    while (waitpid(pid, code, 0) < 0)
        GRV_CHECK(errno == EINTR, GRV_E_IO, "wait for %s: %s", words[0], strerror(errno));
    return GRV_OK;
}

static grv_status run(char *const *words, const char *folder)
{
    int code = 0;
    char line[512];
    const int64_t printed = lseek(2, 0, SEEK_END); /* of a file; else -1 */
    GRV_TRY(spawn_and_wait(words, folder, &code));
    grvi_fs_last_line(2, printed < 0 ? INT64_MAX : printed, line, sizeof line);
    const char *const colon = line[0] != '\0' ? ": " : "";
    GRV_CHECK(!WIFSIGNALED(code), GRV_E_NUMERIC, "%s crashed: signal %d, %s%s%s", words[0],
              WTERMSIG(code), strsignal(WTERMSIG(code)), colon, line);
    GRV_CHECK(WEXITSTATUS(code) == 0, GRV_E_NUMERIC, "%s ended with exit code %d%s%s", words[0],
              WEXITSTATUS(code), colon, line);
    return GRV_OK;
}

/* "a, b, c": what is in a folder, a few of it. */
static void append_listing(const char *folder, grvi_text *out)
{
    enum { MOST = 8 };
    int n = 0;
    DIR *const directory = opendir(folder);
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL && n <= MOST) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        grvi_text_printf(out, "%s%s", n > 0 ? ", " : "", n < MOST ? entry->d_name : "...");
        n++;
    }
    if (n == 0) grvi_text_append(out, "nothing");
    if (directory != NULL) (void)closedir(directory);
}

static grv_status read_field(const grvi_campaign *c, const char *folder, const char *name,
                             const grv_campaign_field *f, void *out)
{
    int64_t shape[GRV_DATASET_MAX_AXES + 1];
    char *base = NULL;
    for (int a = 0; a < f->axes.n; a++) shape[a] = f->shape.at[a];
    shape[f->axes.n] = grvi_max_i64(1, f->channels.n);
    GRV_TRY(grvi_fs_join(folder, name, &base));
    grv_status status = grvi_array_file_read(
        base, f->axes.n + 1, shape, c->config.type == 1 ? GRV_STORE_F64 : GRV_STORE_F32, out);
    grv_free(base);
    if (status != GRV_E_NOT_FOUND) return status;
    grvi_text there = {0};
    append_listing(folder, &there);
    status = grvi_fail(GRV_E_NOT_FOUND, __FILE__, __LINE__, __func__,
                       "%s left no %s.npy (or %s.raw, float32); in its folder: %s",
                       c->config.simulator.at[0], name, name, grvi_text_get(&there));
    grvi_text_fini(&there);
    return status;
}

static grv_status make(grvi_campaign *c, int64_t sample, const char *folder, void *input,
                       void *target)
{
    char **words = NULL;
    GRV_TRY(make_words(c, sample, &words));
    grv_status status = link_files(c, folder);
    if (status == GRV_OK) status = run(words, folder);
    free_words(words, c->config.simulator.n);
    GRV_TRY(status);
    GRV_TRY(read_field(c, folder, "input", &c->config.input, input));
    return read_field(c, folder, "target", &c->config.target, target);
}

const grvi_simulator grvi_simulator_program = {check, describe, NULL, make};
