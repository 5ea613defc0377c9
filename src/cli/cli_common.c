/* Arguments, help and errors, the same for every command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "grove/core.h"
#include "grove/dataset.h"

static const grv_option_table no_options = {NULL, 0};

int grvc_launcher_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const text = getenv(names[i]);
        if (text != NULL) return (int)strtol(text, NULL, 10);
    }
    return 0;
}

static void print_one_line(const char *name, const char *text)
{
    (void)fprintf(stderr, "%s: ", name);
    for (const char *p = text; *p != '\0'; p++)
        (void)fputc((unsigned char)*p < ' ' ? ' ' : *p, stderr);
    (void)fputc('\n', stderr);
}

void grvc_print_error(const char *name, bool with_trace)
{
    print_one_line(name, grv_error_message());
    if (with_trace) (void)fprintf(stderr, "%s\n", grv_error_trace());
}

static grv_status print_help(const grvc_session *s)
{
    (void)printf("usage: %s%s%s%s [--json] [-v | -q] [--help]\n\n%s\n", s->name,
                 s->words_usage != NULL ? " " : "", s->words_usage != NULL ? s->words_usage : "",
                 s->table->n > 0 ? " [--config FILE] [key=value ...]" : "", s->about);
    if (s->table->n > 0) {
        char *keys = NULL;
        GRV_TRY(grv_config_help(s->table, &keys));
        (void)printf("\nkeys, in the YAML file given by --config or as key=value (which wins; "
                     "lists as key=1,2,3):\n%s",
                     keys);
        grv_free(keys);
    }
    (void)printf("\noptions:\n");
    if (s->table->n > 0)
        (void)printf(
            "  --config FILE  read keys from this YAML file; may be repeated, later files win\n"
            "  --KEY=VALUE    the same as KEY=VALUE; --KEY the same as KEY=true\n");
    (void)printf("  --json         print results as JSON\n"
                 "  -v, --verbose  more messages, and traces of errors\n"
                 "  -q, --quiet    warnings and errors only\n"
                 "  --             the rest are words, even with '=' or '-'\n");
    return GRV_OK;
}

/* Whether argument i is this option; with a value it is the rest after '=' or the next argument, and *i moves past it. */
static grv_status take_value(const char *option, int argc, char **argv, int *i, const char **value)
{
    const size_t n = strlen(option);
    *value = NULL;
    if (strncmp(argv[*i], option, n) != 0) return GRV_OK;
    if (argv[*i][n] == '=') {
        *value = argv[*i] + n + 1;
    } else if (argv[*i][n] == '\0') {
        GRV_CHECK(*i + 1 < argc, GRV_E_ARG, "%s: a value expected after it, none found", option);
        *value = argv[++*i];
    }
    return GRV_OK;
}

static bool is_either(const char *argument, const char *a, const char *b)
{
    return strcmp(argument, a) == 0 || strcmp(argument, b) == 0;
}

/* Is this option a key of the command: "--KEY=VALUE", or "--KEY" for a key that is true or false? */
static bool is_key(const grvc_session *s, const char *argument)
{
    const char *const key = argument + 2;
    const size_t n = strcspn(key, "=");
    if (strncmp(argument, "--", 2) != 0) return false;
    for (int i = 0; i < s->table->n; i++) {
        const grv_option *const option = &s->table->options[i];
        if (strlen(option->key) == n && strncmp(option->key, key, n) == 0)
            return key[n] == '=' || option->type == GRV_OPTION_BOOL;
    }
    return false;
}

/* A negative number, as a slice begins with: no option has such a name. */
static bool is_number(const char *argument)
{
    return argument[0] == '-' && argument[1] >= '0' && argument[1] <= '9';
}

/* Options and words; loads configuration files as it meets them and collects overrides for after. */
static grv_status read_arguments(grvc_session *s, int argc, char **argv, const char **overrides,
                                 int *n_overrides)
{
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *const argument = argv[i];
        const char *path = NULL;
        if (!only_words && argument[0] == '-' && s->table->n > 0)
            GRV_TRY(take_value("--config", argc, argv, &i, &path));
        if (path != NULL)
            GRV_TRY(grv_config_load(s->table, s->params, path));
        else if (only_words || argument[0] != '-' || is_number(argument)) {
            if (!only_words && s->table->n > 0 && strchr(argument, '=') != NULL)
                overrides[(*n_overrides)++] = argument;
            else
                s->words[s->n_words++] = argv[i];
        } else if (strcmp(argument, "--") == 0)
            only_words = true;
        else if (strcmp(argument, "--json") == 0)
            s->json = true;
        else if (is_either(argument, "-v", "--verbose"))
            s->verbose = true;
        else if (is_either(argument, "-q", "--quiet"))
            s->quiet = true;
        else if (is_key(s, argument))
            overrides[(*n_overrides)++] = argument + 2;
        else
            GRV_FAIL(GRV_E_ARG, "unknown option '%.80s'; --help lists all", argument);
    }
    return GRV_OK;
}

static grv_status check_words(const grvc_session *s)
{
    const char *const usage = s->words_usage != NULL ? s->words_usage : "no further words";
    if (s->n_words > s->max_words)
        GRV_FAIL(GRV_E_ARG, "%s expected, '%.80s' found%s", usage, s->words[s->max_words],
                 s->table->n > 0 ? " (keys are key=value)" : "");
    GRV_CHECK(s->n_words >= s->min_words, GRV_E_ARG, "%s expected, %d word%s found", usage,
              s->n_words, s->n_words == 1 ? "" : "s");
    return GRV_OK;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_either(argv[i], "-h", "--help")) return true;
    return false;
}

grv_status grvc_set_rank(grvc_session *session, int rank)
{
    grv_log_params params = grv_log_params_default();
    params.name = session->name;
    params.rank = rank;
    params.level = session->verbose ? GRV_LOG_DEBUG : session->quiet ? GRV_LOG_WARN : GRV_LOG_INFO;
    session->rank = rank;
    grv_log_destroy(&session->log);
    return grv_log_create(&params, &session->log);
}

/* "key=value", or a key alone that becomes true. */
static grv_status apply_override(const grvc_session *s, const char *override)
{
    grvi_text text = {0};
    if (strchr(override, '=') != NULL) return grv_config_set(s->table, s->params, override);
    grvi_text_printf(&text, "%s=true", override);
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = grv_config_set(s->table, s->params, text.data);
    grvi_text_fini(&text);
    return status;
}

static grv_status begin(grvc_session *s, int argc, char **argv)
{
    grv_status status = GRV_OK;
    const char **overrides = NULL;
    int n_overrides = 0;
    GRV_TRY_GOTO(GRVI_ALLOC(&overrides, argc));
    GRV_TRY_GOTO(GRVI_ALLOC(&s->words, argc));
    GRV_TRY_GOTO(grv_config_defaults(s->table, s->params));
    GRV_TRY_GOTO(read_arguments(s, argc, argv, overrides, &n_overrides));
    for (int i = 0; i < n_overrides; i++)
        GRV_TRY_GOTO(apply_override(s, overrides[i]));
    GRV_TRY_GOTO(check_words(s));
    GRV_TRY_GOTO(grv_config_require(s->table, s->params));
    GRV_TRY_GOTO(grvc_set_rank(s, s->rank));
done:
    grv_free(overrides);
    return status;
}

static void release(grvc_session *s)
{
    grv_log_destroy(&s->log);
    grv_config_fini(s->table, s->params);
    grv_free(s->words);
    s->words = NULL;
}

/* Results that did not arrive (a full disk behind a redirection) are a failure. */
static grv_status flush_results(void)
{
    GRV_CHECK(fflush(stdout) == 0 && ferror(stdout) == 0, GRV_E_IO,
              "standard output cannot be written");
    return GRV_OK;
}

int grvc_begin(grvc_session *session, int argc, char **argv)
{
    if (session->table == NULL) session->table = &no_options;
    session->rank = grvc_launcher_rank();
    const bool help = asks_for_help(argc, argv);
    grv_status status = GRV_OK;
    if (help) {
        status = print_help(session);
        if (status == GRV_OK) status = flush_results();
    } else {
        status = begin(session, argc, argv);
        if (status == GRV_OK) return GRVC_CONTINUE;
    }
    if (status != GRV_OK && session->rank == 0) grvc_print_error(session->name, session->verbose);
    release(session);
    if (status == GRV_OK) return GRVC_EXIT_OK;
    return help || status == GRV_E_NOMEM ? GRVC_EXIT_FAILED : GRVC_EXIT_USAGE;
}

grv_status grvc_write_config(const grvc_session *session, const char *directory)
{
    grv_status status = GRV_OK;
    char *text = NULL, *path = NULL;
    GRV_TRY_GOTO(grv_config_to_yaml(session->table, session->params, &text));
    GRV_TRY_GOTO(grvi_fs_join(directory, "config.yaml", &path));
    GRV_TRY_GOTO(grvi_fs_write_atomic(path, text, (int64_t)strlen(text), false));
done:
    grv_free(text);
    grv_free(path);
    return status;
}

int grvc_end(grvc_session *session, grv_status status)
{
    if (status == GRV_OK) status = flush_results();
    if (status != GRV_OK && session->rank == 0) grvc_print_error(session->name, session->verbose);
    release(session);
    return status == GRV_OK ? GRVC_EXIT_OK : GRVC_EXIT_FAILED;
}

grv_status grvc_json_attribute(grvi_json_writer *w, const char *path, const char *key)
{
    grv_dataset *data = NULL;
    char *json = NULL;
    GRV_TRY(grv_dataset_open(path, NULL, &data));
    const grv_status status = grv_dataset_get_attribute(data, key, &json);
    if (json != NULL) {
        grvi_json_key(w, key);
        grvi_json_raw(w, json);
    }
    grv_free(json);
    grv_dataset_close(&data);
    return status;
}

grv_status grvc_check_folder_of(const char *path)
{
    const int n = (int)(grvi_fs_base_name(path) - path);
    grvi_text folder = {0};
    if (n <= 1) return GRV_OK; /* here, or the root */
    grvi_text_printf(&folder, "%.*s", n - 1, path);
    grv_status status = grvi_text_status(&folder);
    if (status == GRV_OK && !grvi_fs_is_directory(folder.data))
        status = grvi_fail(GRV_E_NOT_FOUND, __FILE__, __LINE__, __func__, "%s: there is no folder '%s' to make it in", path, folder.data);
    grvi_text_fini(&folder);
    return status;
}

grv_status grvc_check_picture(const char *path)
{
    const size_t n = strlen(path);
    GRV_CHECK(n > 4 && strcasecmp(path + n - 4, ".png") == 0, GRV_E_ARG, "picture: a name ending in .png expected, '%s' found", path);
    return grvc_check_folder_of(path);
}
