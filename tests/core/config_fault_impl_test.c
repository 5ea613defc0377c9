/* Configuration when memory runs out at any allocation, and the search for the nearest word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/nearest.h"
#include "grove/config.h"
#include "grove/core.h"

typedef struct small_params {
    char *name;
    grv_string_list words;
    grv_i64_list sizes;
} small_params;

static const grv_option options[] = {
    {"a.name", GRV_OPTION_STRING, offsetof(small_params, name), "x", .min = 0, .help = "a name"},
    {"a.words", GRV_OPTION_STRING_LIST, offsetof(small_params, words), "[p, q]"},
    {"sizes", GRV_OPTION_I64_LIST, offsetof(small_params, sizes), "1,2", .min = 0, .max = 9},
};
static const grv_option_table table = {options, 3};

static grv_status whole_life(small_params *p)
{
    static const char yaml[] = "a: {name: long name, words: [r, s, t]}\nsizes: [3]\n";
    char *text = NULL;
    GRV_TRY(grv_config_defaults(&table, p));
    GRV_TRY(grv_config_parse(&table, p, yaml, sizeof yaml - 1, "test"));
    GRV_TRY(grv_config_set(&table, p, "sizes=4,5"));
    GRV_TRY(grv_config_to_yaml(&table, p, &text));
    grv_free(text);
    GRV_TRY(grv_config_to_json(&table, p, &text));
    grv_free(text);
    GRV_TRY(grv_config_help(&table, &text));
    grv_free(text);
    return GRV_OK;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int64_t n = 0;
    grv_status status = GRV_E_NOMEM;
    for (; status != GRV_OK; n++) {
        small_params p = {0};
        grvi_alloc_fail_after(n);
        status = whole_life(&p);
        grvi_alloc_fail_after(-1);
        assert_true(status == GRV_OK || status == GRV_E_NOMEM);
        grv_config_fini(&table, &p);
        assert_true(grv_memory_get().bytes == 0);
    }
    assert_true(n > 20);
}

/* Messages are made whole or, out of memory, at least safely. */
static void test_out_of_memory_in_messages(void **state)
{
    (void)state;
    small_params p = {0};
    assert_int_equal(grv_config_defaults(&table, &p), GRV_OK);
    for (int64_t n = 0; n < 8; n++) {
        grvi_alloc_fail_after(n);
        assert_int_not_equal(grv_config_set(&table, &p, "sizes=4,50"), GRV_OK);
        grvi_alloc_fail_after(-1);
    }
    grv_config_fini(&table, &p);
    assert_true(grv_memory_get().bytes == 0);
}

static void test_edit_distance(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int distance;
    } cases[] = {{"", "", 0},         {"", "abc", 3},           {"abc", "", 3},
                 {"lr", "lrr", 1},    {"train", "trian", 1},    {"LR", "lr", 0},
                 {"abcd", "acbd", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
                 {"flaw", "lawn", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(grvi_edit_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(grvi_edit_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
    char word[200];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    assert_int_equal(grvi_edit_distance(word, ""), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_out_of_memory_in_messages),
                                       cmocka_unit_test(test_edit_distance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
