/* Keys that an object has twice are found, whatever stands around them; nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/json.h"
#include "grove/core.h"

static grv_status check(const char *text)
{
    grvi_json *root = NULL;
    const int64_t n = (int64_t)strlen(text);
    assert_int_equal(grvi_json_parse(text, n, "text", &root), GRV_OK);
    grvi_json_free(root);
    return grvi_json_check_keys(text, n, "text");
}

static void test_texts(void **state)
{
    static const char *const good[] = {"{}",
                                       "7",
                                       "\"a\"",
                                       "{\"a\":1,\"b\":{\"a\":2},\"c\":[{\"a\":3},{\"a\":4}]}",
                                       "{\"a\":\"b\",\"b\":\"a\"}",
                                       "{\"a\":[\"x\",\"x\"]}",
                                       "{\"a\\\"\":1,\"a\":2}",
                                       "{\"a\":{},\"ab\":\"{\\\"a\\\":1}\"}",
                                       "[\"a\",\"a\",[\"a\"]]"};
    static const char *const twice[] = {
        "{\"a\":1,\"a\":1}",         "{\"a\":{\"b\":1, \"c\":2 ,\"b\":3}}",
        "[1,{\"x\":[],\"x\":{}}]",   "{\"a\":\"}\",\"b\":\",\",\"a\":0}",
        "{\"a\\\\\":1,\"a\\\\\":2}", "{'a':1,'a':2}"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (check(good[i]) != GRV_OK) fail_msg("%s: %s", good[i], grv_error_message());
    for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++) {
        if (check(twice[i]) != GRV_E_FORMAT) fail_msg("%s: not refused", twice[i]);
        assert_non_null(strstr(grv_error_message(), "is there twice"));
    }
    assert_int_equal(check("{\"k\":1,\"k\":2}"), GRV_E_FORMAT);
    assert_non_null(
        strstr(grv_error_message(), "text: the key 'k' is there twice, again at byte 8"));
}

/* More keys than the table has room for at first. */
static void test_many(void **state)
{
    static char text[200000];
    int64_t n = 0;
    (void)state;
    for (int i = 0; i < 5000; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s\"key%d\":{\"a\":1}",
                      i == 0 ? "{" : ",", i);
    (void)snprintf(text + n, sizeof text - (size_t)n, "}");
    assert_int_equal(check(text), GRV_OK);
    (void)snprintf(text + n, sizeof text - (size_t)n, ",\"key77\":0}");
    assert_int_equal(check(text), GRV_E_FORMAT);
    assert_non_null(strstr(grv_error_message(), "'key77'"));
    assert_int_equal(grv_memory_get().bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
