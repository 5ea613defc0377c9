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
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "data/campaign_impl.h"
#include "grove/core.h"
#include "store/npy.h"

extern char **environ;

/* ---- the words ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

/* Appends what {name} stands for in word `number`. */
static grv_status append_value(const grvi_campaign *c, int number, int64_t sample, const char *name,
                               size_t n, grvi_text *out)
{
    char text[GRV_SAMPLING_TEXT_BYTES];
    const char *nearest = NULL;
    (void)snprintf(text, sizeof text, "%.*s", (int)n, name);
    const int value = grvi_sample_find_value(c, text, &nearest);
    GRV_CHECK(value >= 0 || nearest == NULL, GRV_E_CONFIG,
              "simulator[%d]: '{%s}' is no parameter; did you mean '{%s}'?", number, text, nearest);
    GRV_CHECK(value >= 0, GRV_E_CONFIG,
              "simulator[%d]: '{%s}' is none of the parameters (nor sample, nor seed); for a brace "
              "write {{",
              number, text);
    grvi_sample_value(c, sample, value, text);
    grvi_text_append(out, text);
    return GRV_OK;
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
            GRV_TRY_GOTO(append_value(c, number, sample, at + 1, n, &text));
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

static void free_words(char ***words)
{
    for (int i = 0; *words != NULL && (*words)[i] != NULL; i++) grv_free((*words)[i]);
    grv_free(*words);
    *words = NULL;
}

/* The launcher's words, then the program's for a sample; NULL at the end. */
static grv_status make_words(const grvi_campaign *c, int64_t sample, char ***words)
{
    const int n_before = c->n_launcher, n = n_before + c->config.simulator.n;
    grv_status status = GRV_OK;
    GRV_TRY(GRVI_CALLOC(words, n + 1));
    for (int i = 0; i < n && status == GRV_OK; i++)
        status = i < n_before ? grvi_strdup(c->launcher[i], &(*words)[i])
                              : substitute(c, i - n_before, sample, &(*words)[i]);
    if (status != GRV_OK) free_words(words);
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

/* A word that is a file here, but will not be one where the program runs. */
static grv_status check_word(const grvi_campaign *c, int number)
{
    const char *const word = c->config.simulator.at[number];
    bool is_given = word[0] == '/' || !is_regular(word);
    for (int i = 0; i < c->config.files.n && !is_given; i++)
        is_given = strcmp(grvi_fs_base_name(c->config.files.at[i]), word) == 0;
    GRV_CHECK(is_given, GRV_E_CONFIG,
              "simulator[%d]: '%s' is a file here, but the program runs in a folder of its own: "
              "list it in files (files: [%s]) and name it without a folder, or "
              "give its whole path",
              number, word, word);
    return GRV_OK;
}

static grv_status check(grvi_campaign *c, grv_log *log)
{
    grv_campaign_config *const config = &c->config;
    char **words = NULL;
    GRV_TRY(grvi_simulator_check(c));
    GRV_TRY(make_words(c, 0, &words)); /* all names are known */
    free_words(&words);
    const char *const program = config->simulator.at[0], *const dot = strrchr(program, '.');
    GRV_CHECK(dot == NULL || (strcmp(dot, ".c") != 0 && strcmp(dot, ".so") != 0), GRV_E_CONFIG,
              "function: the name of the GRV_TASK in %s that makes a sample expected, none given",
              program);
    GRV_CHECK(config->simulator.n > 1 || strchr(program, ' ') == NULL || is_regular(program),
              GRV_E_CONFIG,
              "simulator: each word by itself expected ([python3, solver.py, \"{x}\"]), '%s' found",
              program);
    if (strchr(program, '/') != NULL) {
        GRV_TRY(grvi_campaign_make_absolute("simulator", &config->simulator.at[0]));
        GRV_CHECK(access(config->simulator.at[0], X_OK) == 0, GRV_E_CONFIG,
                  "simulator: %s cannot be run: chmod +x it, or name what runs it first (such as "
                  "[python3, solver.py])",
                  config->simulator.at[0]);
    } else {
        GRV_CHECK(is_on_path(program), GRV_E_CONFIG,
                  "simulator: 'flow', a program on PATH or its path with a '/', or C sources and "
                  "their function expected, '%s' found",
                  program);
    }
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

/* ---- one sample ---- */

/* In this process's group, so that whoever ends that ends the program too. */
static grv_status run(const char *name, char *const *words, const char *folder)
{
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, 2,
                                           1); /* results of grove go to stdout, this does not */
    (void)posix_spawn_file_actions_addchdir_np(&actions, folder);
    (void)fflush(NULL);
    const int64_t printed = grvi_simulator_printed();
    const int error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    GRV_CHECK(error == 0, GRV_E_NOT_FOUND, "run %s: %s", words[0], strerror(error));
    return grvi_simulator_wait(name, pid, printed);
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
    const int rank = grvi_simulator_shape(f, shape);
    GRV_TRY(grvi_fs_join(folder, name, &base));
    grv_status status =
        grvi_array_file_read(base, rank, shape, grv_dataset_get_desc(c->data)->type, out);
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
    grv_status status = grvi_simulator_link_files(c, folder);
    if (status == GRV_OK) status = run(c->config.simulator.at[0], words, folder);
    free_words(&words);
    GRV_TRY(status);
    GRV_TRY(read_field(c, folder, "input", &c->config.input, input));
    return read_field(c, folder, "target", &c->config.target, target);
}

const grvi_simulator grvi_simulator_program = {check, grvi_simulator_describe, NULL, make};
