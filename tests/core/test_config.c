/* Configuration: precedence, every type, messages, round trip of the resolved file, hostile YAML. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "grove/config.h"
#include "grove/core.h"

typedef struct run_params {
    char *data, *title;
    bool shuffle;
    int threads;
    int64_t seed;
    double lr, decay, limit;
    int optimizer;
    grv_i64_list modes;
    grv_f64_list betas;
    grv_string_list fields;
} run_params;

static const char *const optimizers[] = {"adam", "adamw", "sgd", NULL};
static const grv_option options[] = {
    {"data", GRV_OPTION_STRING, offsetof(run_params, data), NULL, .help = "data set to train on"},
    {"title", GRV_OPTION_STRING, offsetof(run_params, title), "",
     .help = "shown above the figures"},
    {"shuffle", GRV_OPTION_BOOL, offsetof(run_params, shuffle), "true",
     .help = "new order of the samples in each epoch"},
    {"threads", GRV_OPTION_INT, offsetof(run_params, threads), "1", .min = 1, .max = 1024,
     .help = "threads per rank"},
    {"seed", GRV_OPTION_I64, offsetof(run_params, seed), "0"},
    {"optimizer.name", GRV_OPTION_CHOICE, offsetof(run_params, optimizer), "adam",
     .choices = optimizers, .help = "update rule"},
    {"optimizer.lr", GRV_OPTION_F64, offsetof(run_params, lr), "1e-3", .min = 0, .max = 1,
     .above_min = true, .help = "step size"},
    {"optimizer.decay.rate", GRV_OPTION_F64, offsetof(run_params, decay), "0.5", .min = 0, .max = 1,
     .unit = "1/epoch",
     .help = "factor by which the step size shrinks; a longer sentence, so that the table has to "
             "wrap it at the last column"},
    {"limit", GRV_OPTION_F64, offsetof(run_params, limit), ".inf", .min = 0, .max = HUGE_VAL,
     .unit = "s"},
    {"modes", GRV_OPTION_I64_LIST, offsetof(run_params, modes), "[12, 12]", .min = 1,
     .max = HUGE_VAL, .min_items = 1, .max_items = 4},
    {"betas", GRV_OPTION_F64_LIST, offsetof(run_params, betas), "0.9,0.999", .min = 0, .max = 1,
     .min_items = 2, .max_items = 2},
    {"fields", GRV_OPTION_STRING_LIST, offsetof(run_params, fields), "[]"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

static void parse_ok(run_params *p, const char *yaml)
{
    const grv_status status = grv_config_parse(&table, p, yaml, (int64_t)strlen(yaml), "run.yaml");
    if (status != GRV_OK) fail_msg("%s", grv_error_message());
}

static void set_ok(run_params *p, const char *assignment)
{
    if (grv_config_set(&table, p, assignment) != GRV_OK) fail_msg("%s", grv_error_message());
}

static int set_up(void **state)
{
    static run_params p;
    p = (run_params){0};
    assert_int_equal(grv_config_defaults(&table, &p), GRV_OK);
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    grv_config_fini(&table, *state);
    assert_true(grv_memory_get().bytes == 0);
    return 0;
}

static void test_defaults(void **state)
{
    const run_params *const p = *state;
    assert_null(p->data);
    assert_string_equal(p->title, "");
    assert_true(p->shuffle && p->threads == 1 && p->seed == 0 && p->optimizer == 0 &&
                p->limit > 1e308);
    assert_true(fabs(p->lr - 1e-3) < 1e-18 && p->modes.n == 2 && p->modes.at[1] == 12 &&
                p->betas.n == 2 && p->fields.n == 0);
    assert_int_equal(grv_config_require(&table, p), GRV_E_CONFIG);
    assert_non_null(
        strstr(grv_error_message(), "data: a value expected (data set to train on), none given"));
}

static void test_precedence_and_types(void **state)
{
    run_params *const p = *state;
    parse_ok(p, "# a comment\n"
                "data: \"sets/a b.zarr\"   # quoted\n"
                "shuffle: no\n"
                "seed: -9223372036854775808\n"
                "optimizer: {name: adamw, lr: 1e-2}\n"
                "optimizer.decay:\n  rate: .25\n"
                "modes:\n  - 8\n  - 1e1\n  - 6\n"
                "betas: [0, 1]\n"
                "fields: [ u, 'v,w', \"x\\ty\" ]\n");
    assert_string_equal(p->data, "sets/a b.zarr");
    assert_true(!p->shuffle && p->seed == INT64_MIN && p->optimizer == 1 &&
                fabs(p->lr - 0.01) < 1e-17);
    assert_true(fabs(p->decay - 0.25) < 1e-17 && p->modes.n == 3 && p->modes.at[1] == 10 &&
                p->modes.at[2] == 6);
    assert_true(p->fields.n == 3);
    assert_string_equal(p->fields.at[1], "v,w");
    assert_string_equal(p->fields.at[2], "x\ty");

    set_ok(p, "optimizer.lr=0.5");
    set_ok(p, "modes=4,5");
    set_ok(p, "fields=[a]");
    set_ok(p, "data=k=v: {x}");
    set_ok(p, "shuffle=On");
    set_ok(p, "seed=9223372036854775807");
    set_ok(p, "title=");
    assert_true(fabs(p->lr - 0.5) < 1e-17 && p->modes.n == 2 && p->modes.at[0] == 4 &&
                p->modes.at[2] == 0 && p->fields.n == 1);
    assert_string_equal(p->data, "k=v: {x}");
    assert_true(p->shuffle && p->seed == INT64_MAX && p->optimizer == 1 /* untouched */);
    set_ok(p, "modes=7");
    assert_true(p->modes.n == 1 && p->modes.at[0] == 7);
    assert_int_equal(grv_config_require(&table, p), GRV_OK);
    /* defaults again: what the file set is forgotten */
    assert_int_equal(grv_config_defaults(&table, p), GRV_OK);
    assert_true(p->data == NULL && p->fields.n == 0 && p->modes.n == 2);
}

static void test_nothing_is_defaults(void **state)
{
    run_params *const p = *state;
    const char *const empty[] = {"",
                                 "\n",
                                 "# only a comment\n",
                                 "---\n",
                                 "{}",
                                 "optimizer: {}\n",
                                 "\xEF\xBB\xBF"
                                 "seed: 0\n"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) parse_ok(p, empty[i]);
    assert_true(p->seed == 0 && p->modes.n == 2);
}

typedef struct bad_case {
    const char *text, *message;
} bad_case;

/* Each one fails, with this text in the message; file cases come first. */
static void test_file_messages(void **state)
{
    static const bad_case cases[] = {
        {"seed: 1\noptimizer:\n  lr: 5\n",
         "optimizer.lr: above 0, at most 1 expected, 5 found (run.yaml line 3)"},
        {"optimizer: {lr: 0}",
         "optimizer.lr: above 0, at most 1 expected, 0 found (run.yaml line 1)"},
        {"optimizer.decay.rate: 2", "optimizer.decay.rate: 0 to 1 1/epoch expected, 2 found"},
        {"threads: 0", "threads: 1 to 1024 expected, 0 found"},
        {"limit: -1", "limit: at least 0 s expected, -1 found"},
        {"optimzer: {lr: 1}", "unknown key 'optimzer' (run.yaml line 1)"},
        {"optimizer: {lrr: 1}",
         "unknown key 'optimizer.lrr' (run.yaml line 1); did you mean 'optimizer.lr'?"},
        {"lr: 1", "did you mean 'optimizer.lr'?"},
        {"zzzzzzzzz: 1", "unknown key 'zzzzzzzzz' (run.yaml line 1); --help lists all keys"},
        {"shuffle: maybe", "shuffle: true or false expected, 'maybe' found"},
        {"shuffle: 'true'", "shuffle: true or false expected, 'true' found"},
        {"seed: 1.5", "seed: a whole number expected, '1.5' found"},
        {"seed: 9223372036854775808", "seed: a whole number expected"},
        {"seed: 0x10", "seed: a whole number expected"},
        {"seed: \"3\"", "seed: a whole number expected"},
        {"threads: 1e10", "threads: 1 to 1024 expected"},
        {"optimizer: {lr: fast}", "optimizer.lr: a number expected, 'fast' found"},
        {"optimizer: {lr: .nan}", "optimizer.lr: a number expected"},
        {"optimizer: {lr: 1e999}", "optimizer.lr: a number expected"},
        {"optimizer: {lr: 1e-3x}", "optimizer.lr: a number expected"},
        {"optimizer: {name: adagrad}",
         "optimizer.name: one of adam, adamw, sgd expected, 'adagrad' found"},
        {"optimizer: 3", "optimizer: a mapping of keys expected"},
        {"seed: {a: 1}", "seed: one value expected, a mapping found"},
        {"seed: [1]", "seed: one value expected, a list found"},
        {"modes: {a: 1}", "modes: a list expected, a mapping found"},
        {"modes: [1, 2, 3, 4, 5]", "modes: at most 4 items expected, more found"},
        {"modes: []", "modes: at least 1 item expected, 0 found"},
        {"modes: [1, [2]]", "modes: a list of single values expected"},
        {"modes: [4, 0]", "modes[1]: at least 1 expected, 0 found"},
        {"betas: [0.9]", "betas: exactly 2 items expected, 1 found"},
        {"seed:\n", "seed: a value expected, nothing found (run.yaml line 1)"},
        {"seed: ~\n", "seed: a value expected, nothing found"},
        {"seed: 1\nseed: 2\n",
         "key 'seed' once expected, again found (run.yaml line 2; first line 1)"},
        {"optimizer: {lr: 1}\noptimizer.lr: 1\n", "key 'optimizer.lr' once expected, again found"},
        {"optimizer: {lr: 1}\noptimizer: {name: sgd}\n",
         "key 'optimizer' once expected, again found"},
        {"data: &a x\n", "anchor '&a' found"},
        {"modes: &a [1]\n", "anchor '&a' found"},
        {"modes: [1, *b]\n", "alias '*b' found"},
        {"<<: *a\n", "unknown key '<<'"},
        {"seed: !!str 3\n", "tag 'tag:yaml.org,2002:str' found"},
        {"!thing {seed: 3}\n", "tag '!thing' found"},
        {"- seed\n", "a mapping \"key: value\" expected"},
        {"seed\n", "a mapping \"key: value\" expected"},
        {"? [seed]\n: 1\n", "a key expected"},
        {"seed: 1\n---\nseed: 2\n", "one document expected"},
        {"data: \"a\\0b\"\n", "a NUL byte found"},
        {"\"se\\0ed\": 1\n", "a NUL byte found"},
    };
    run_params *const p = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const text = cases[i].text;
        assert_int_equal(grv_config_parse(&table, p, text, (int64_t)strlen(text), "run.yaml"),
                         GRV_E_CONFIG);
        if (strstr(grv_error_message(), cases[i].message) == NULL)
            fail_msg("%s\n  gives %s", text, grv_error_message());
    }
}

static void test_broken_yaml(void **state)
{
    static const char *const texts[] = {
        "seed: [1, 2",   "seed: \"x",      "{seed: 1",          "a: b: c",         "\tseed: 1",
        "seed: 1\n bad", "%YAML 9.9\n---", "seed: \xFF\xFE",    "\x01seed: 1",     "modes: [1, 2}",
        "? ? ? :",       "data: |9999999", "data: \"\\uD800\"", "data: \"\\xZZ\"", "@seed: 1"};
    run_params *const p = *state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const grv_status status =
            grv_config_parse(&table, p, texts[i], (int64_t)strlen(texts[i]), "run.yaml");
        if (status != GRV_E_FORMAT && status != GRV_E_CONFIG) fail_msg("accepted: %s", texts[i]);
        assert_non_null(strstr(grv_error_message(), "run.yaml"));
    }
}

/* Deep nesting, long keys and large files end in a message, not in the stack or the memory. */
static void test_extreme_sizes(void **state)
{
    run_params *const p = *state;
    static char text[1 << 20];
    memset(text, '{', sizeof text);
    assert_int_equal(grv_config_parse(&table, p, text, sizeof text, "deep"), GRV_E_CONFIG);
    memset(text, '[', sizeof text);
    assert_int_equal(grv_config_parse(&table, p, text, sizeof text, "deep"), GRV_E_CONFIG);
    memset(text, 'a', sizeof text);
    memcpy(text + 1000, ": 1", 3);
    assert_int_equal(grv_config_parse(&table, p, text, 1003, "long key"), GRV_E_CONFIG);
    assert_true(strlen(grv_error_message()) < 300);
    memset(text, 'a', sizeof text);
    memcpy(text, "data: ", 6);
    assert_int_equal(grv_config_parse(&table, p, text, sizeof text, "long value"), GRV_OK);
    assert_int_equal(strlen(p->data), sizeof text - 6);
    assert_int_equal(grv_config_parse(&table, p, text, sizeof text + 1, "large"), GRV_E_FORMAT);
    assert_int_equal(grv_config_load(&table, p, "/nonexistent/run.yaml"), GRV_E_NOT_FOUND);
}

/* Every prefix of a valid file, and the file with each byte replaced: accepted or refused, never a crash (run under asan). */
static void test_mutations(void **state)
{
    run_params *const p = *state;
    static const char text[] = "data: \"a\\tb\"\nshuffle: yes\noptimizer: {name: sgd, lr: "
                               "1e-2}\nmodes:\n  - 8\n  - 3\nfields: [u, 'v']\n";
    static const char replacements[] = "\0\n:{}[],&*!|>'\"%@`#-?x\xFF\x80";
    char mutated[sizeof text];
    int n_refused = 0, n_accepted = 0;
    for (size_t i = 0; i < sizeof text; i++)
        n_refused += grv_config_parse(&table, p, text, (int64_t)i, "prefix") != GRV_OK;
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        for (size_t k = 0; k < sizeof replacements; k++) {
            memcpy(mutated, text, sizeof text);
            mutated[i] = replacements[k];
            const grv_status status =
                grv_config_parse(&table, p, mutated, sizeof text - 1, "mutated");
            assert_true(status == GRV_OK || status == GRV_E_CONFIG || status == GRV_E_FORMAT);
            n_refused += status != GRV_OK;
            n_accepted += status == GRV_OK;
        }
    }
    assert_true(n_refused > 1000 && n_accepted > 50);
}

static void test_override_messages(void **state)
{
    static const bad_case cases[] = {
        {"optimizer.lr=5", "optimizer.lr: above 0, at most 1 expected, 5 found (command line)"},
        {"optimiser.lr=5",
         "unknown key 'optimiser.lr' (command line); did you mean 'optimizer.lr'?"},
        {"sede=1", "did you mean 'seed'?"},
        {"seed", "key=value expected, 'seed' found"},
        {"=1", "key=value expected, '=1' found"},
        {"seed=", "seed: a whole number expected, '' found"},
        {"seed= 1", "seed: a whole number expected, ' 1' found"},
        {"modes=[1,2", "(command line)"},
        {"modes=1,2]", "(command line)"},
        {"modes=1,x", "modes[1]: a whole number expected, 'x' found (command line)"},
        {"modes=", "modes: at least 1 item expected, 0 found (command line)"},
        {"data=\xFF", "data: text in UTF-8 expected"},
        {"data=\xED\xA0\x80", "data: text in UTF-8 expected"},
        {"data=\xC0\x80", "data: text in UTF-8 expected"},
    };
    run_params *const p = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_not_equal(grv_config_set(&table, p, cases[i].text), GRV_OK);
        if (strstr(grv_error_message(), cases[i].message) == NULL)
            fail_msg("%s\n  gives %s", cases[i].text, grv_error_message());
    }
}

static void assert_same(const run_params *a, const run_params *b)
{
    assert_string_equal(a->data, b->data);
    assert_string_equal(a->title, b->title);
    assert_true(a->shuffle == b->shuffle && a->threads == b->threads && a->seed == b->seed &&
                a->optimizer == b->optimizer);
    assert_memory_equal(&a->lr, &b->lr, sizeof a->lr);
    assert_memory_equal(&a->decay, &b->decay, sizeof a->decay);
    assert_memory_equal(&a->limit, &b->limit, sizeof a->limit);
    assert_memory_equal(&a->modes, &b->modes, sizeof a->modes);
    assert_memory_equal(&a->betas, &b->betas, sizeof a->betas);
    assert_int_equal(a->fields.n, b->fields.n);
    for (int i = 0; i < a->fields.n; i++) assert_string_equal(a->fields.at[i], b->fields.at[i]);
}

static const char *const nasty_texts[] = {"plain/path-1.zarr",
                                          "",
                                          " ",
                                          "yes",
                                          "NULL",
                                          "~",
                                          "1e5",
                                          "- x",
                                          "a: b",
                                          "a #b",
                                          "#",
                                          "'",
                                          "\"",
                                          "\\",
                                          "{",
                                          "[a, b]",
                                          "*a",
                                          "&a",
                                          "!x",
                                          "| ",
                                          "tab\there",
                                          "line\nbreak\r\n",
                                          "\x01\x1f\x7f",
                                          "\xC2\x80\xC2\x85\xC2\xA0",
                                          "\xE2\x80\xA8\xE2\x80\xA9",
                                          "\xEF\xBB\xBF",
                                          "\xEF\xBF\xBE",
                                          "\xF0\x9F\x8C\xB3 t\xC3\xA4st",
                                          "\xF4\x8F\xBF\xBF",
                                          "true",
                                          "on",
                                          ".inf",
                                          "---",
                                          "...",
                                          "%",
                                          "@",
                                          "`",
                                          ",",
                                          "?",
                                          ":"};

static void test_round_trip(void **state)
{
    run_params *const p = *state;
    for (uint64_t k = 0; k < 200; k++) {
        const char *const nasty = nasty_texts[k % (sizeof nasty_texts / sizeof *nasty_texts)];
        char text[128], *yaml = NULL;
        (void)snprintf(text, sizeof text, "data=%s", nasty);
        set_ok(p, text);
        (void)snprintf(text, sizeof text, "title=%s%s", nasty, nasty);
        set_ok(p, text);
        p->lr = ldexp(1 - grv_random_uniform(k, 1, 0), -(int)(grv_random_bits(k, 2, 0) % 1000));
        p->betas.at[0] = grv_random_uniform(k, 3, 0);
        p->seed = (int64_t)grv_random_bits(k, 4, 0);
        p->modes.at[0] = (int64_t)(grv_random_bits(k, 5, 0) >> 2) + 1;
        p->limit = k % 2 ? (double)k : HUGE_VAL;
        p->optimizer = (int)(k % 3);
        p->shuffle = k % 2;
        for (int i = 0; i < 3; i++) {
            (void)snprintf(text, sizeof text, "fields=['%s', x, y]", k % 2 ? "a,b" : "c");
            set_ok(p, text);
        }
        assert_int_equal(grv_config_to_yaml(&table, p, &yaml), GRV_OK);
        run_params q = {0};
        assert_int_equal(grv_config_defaults(&table, &q), GRV_OK);
        if (grv_config_parse(&table, &q, yaml, (int64_t)strlen(yaml), "again") != GRV_OK)
            fail_msg("%s\n%s", grv_error_message(), yaml);
        assert_same(p, &q);
        grv_config_fini(&table, &q);
        grv_free(yaml);
    }
}

static void test_resolved_texts(void **state)
{
    run_params *const p = *state;
    char *text = NULL;
    set_ok(p, "data=sets/flow.zarr");
    set_ok(p, "fields=u,v");
    assert_int_equal(grv_config_to_yaml(&table, p, &text), GRV_OK);
    assert_non_null(strstr(text, "data: sets/flow.zarr                # data set to train on\n"));
    assert_non_null(strstr(text, "optimizer:\n  name: adam"));
    assert_non_null(strstr(text, "  lr: 0.001"));
    assert_non_null(strstr(text, "  decay:\n    rate: 0.5                       # factor"));
    assert_non_null(strstr(text, "\nlimit: .inf"));
    assert_non_null(strstr(text, "\nmodes: [12, 12]\n"));
    grv_free(text);
    assert_int_equal(grv_config_to_json(&table, p, &text), GRV_OK);
    assert_non_null(strstr(text, "\"optimizer\": {\n    \"name\": \"adam\",\n    \"lr\": 0.001,\n  "
                                 "  \"decay\": {\n      \"rate\": 0.5\n    }\n  },"));
    assert_non_null(strstr(text, "\"limit\": \"Infinity\""));
    grv_free(text);
}

static void test_help(void **state)
{
    (void)state;
    char *text = NULL;
    assert_int_equal(grv_config_help(&table, &text), GRV_OK);
    int column = 0;
    for (const char *p = text; *p != '\0'; p++) {
        column = *p == '\n' ? 0 : column + 1;
        assert_true(column <= 100);
        if (*p == '\n') assert_true(p[-1] != ' ');
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        assert_non_null(strstr(text, options[i].key));
    assert_non_null(strstr(text, "adam, adamw, sgd"));
    assert_non_null(strstr(text, "required"));
    assert_non_null(strstr(text, "1/epoch"));
    grv_free(text);
}

static void test_load_file(void **state)
{
    run_params *const p = *state;
    char path[] = "/tmp/grove-config-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "seed: 4\nmodes: [0]\n", 19) == 19);
    assert_int_equal(close(fd), 0);
    char expected[128];
    (void)snprintf(expected, sizeof expected, "modes[0]: at least 1 expected, 0 found (%s line 2)",
                   path);
    assert_int_equal(grv_config_load(&table, p, path), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), expected));
    assert_true(p->seed == 4);
    assert_int_equal(unlink(path), 0);
}

static void assert_broken_table(const grv_option *list, int n)
{
    run_params p = {0};
    const grv_option_table broken = {list, n};
    const grv_status status = grv_config_defaults(&broken, &p);
    assert_true(status == GRV_E_ARG || status == GRV_E_CONFIG);
    grv_config_fini(&broken, &p);
}

static void test_broken_tables(void **state)
{
    (void)state;
    const size_t at = offsetof(run_params, seed);
    assert_broken_table(
        (grv_option[]){{"a", GRV_OPTION_I64, at, "0"}, {"a", GRV_OPTION_I64, at, "0"}}, 2);
    assert_broken_table(
        (grv_option[]){{"a", GRV_OPTION_I64, at, "0"}, {"a.b", GRV_OPTION_I64, at, "0"}}, 2);
    assert_broken_table((grv_option[]){{"a.b", GRV_OPTION_I64, at, "0"},
                                       {"c", GRV_OPTION_I64, at, "0"},
                                       {"a.d", GRV_OPTION_I64, at, "0"}},
                        3);
    assert_broken_table((grv_option[]){{"a", GRV_OPTION_I64, at, NULL}}, 1);
    assert_broken_table((grv_option[]){{"a", GRV_OPTION_I64, at, "x"}}, 1);
    assert_broken_table((grv_option[]){{"a", GRV_OPTION_I64, at, "5", .min = 0, .max = 1}}, 1);
    assert_broken_table(
        (grv_option[]){{"a", GRV_OPTION_CHOICE, offsetof(run_params, optimizer), "x"}}, 1);
}

/* A list whose items are pairs is a mapping too, and is written as a list. */
static void test_pairs(void **state)
{
    static const grv_option pair_options[] = {
        {"fields", GRV_OPTION_STRING_LIST, offsetof(run_params, fields), "[]", .max_items = 3, .pairs = true}};
    static const grv_option_table pair_table = {pair_options, 1};
    static const struct {
        const char *yaml, *message;
    } wrong[] = {
        {"fields: {a: [1, 2]}", "fields: a mapping of single values expected, a list or mapping in it found (run.yaml line 1)"},
        {"fields:\n  a: {b: 1}\n", "a list or mapping in it found (run.yaml line 2)"},
        {"fields: {[a]: b}", "a list or mapping in it found"},
        {"fields: {a: &x 1}", "anchor '&x' found"},
        {"fields: {a: 1, b: 2, c: 3, d: 4}", "at most 3 items expected"},
        {"fields: {a: 1", "run.yaml line"},
    };
    run_params p = {0};
    char *yaml = NULL;
    (void)state;
    assert_int_equal(grv_config_defaults(&pair_table, &p), GRV_OK);
    static const char text[] = "fields:\n  u: uniform 0 1\n  \"two words\": 3\n";
    assert_int_equal(grv_config_parse(&pair_table, &p, text, sizeof text - 1, "run.yaml"), GRV_OK);
    assert_int_equal(p.fields.n, 2);
    assert_string_equal(p.fields.at[0], "u uniform 0 1");
    assert_string_equal(p.fields.at[1], "two words 3");
    assert_int_equal(grv_config_to_yaml(&pair_table, &p, &yaml), GRV_OK);
    assert_int_equal(grv_config_parse(&pair_table, &p, yaml, (int64_t)strlen(yaml), "again"), GRV_OK);
    assert_int_equal(p.fields.n, 2);
    assert_string_equal(p.fields.at[0], "u uniform 0 1");
    grv_free(yaml);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(grv_config_parse(&pair_table, &p, wrong[i].yaml, (int64_t)strlen(wrong[i].yaml), "run.yaml") != GRV_OK);
        if (strstr(grv_error_message(), wrong[i].message) == NULL) fail_msg("%s: %s", wrong[i].yaml, grv_error_message());
    }
    grv_config_fini(&pair_table, &p);
    /* other lists take none */
    assert_int_equal(grv_config_parse(&table, &p, "fields: {a: 1}", 14, "run.yaml"), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), "fields: a list expected, a mapping found"));
}

int main(void)
{
#define CONFIG_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {CONFIG_TEST(test_defaults),
                                       CONFIG_TEST(test_precedence_and_types),
                                       CONFIG_TEST(test_nothing_is_defaults),
                                       CONFIG_TEST(test_file_messages),
                                       CONFIG_TEST(test_broken_yaml),
                                       CONFIG_TEST(test_extreme_sizes),
                                       CONFIG_TEST(test_mutations),
                                       CONFIG_TEST(test_override_messages),
                                       CONFIG_TEST(test_round_trip),
                                       CONFIG_TEST(test_resolved_texts),
                                       CONFIG_TEST(test_load_file),
                                       cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_help),
                                       cmocka_unit_test(test_broken_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
