/* Agreement on errors raised on one rank, on several, on none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/check.h"
#include "grove/comm.h"
#include "mpi_test.h"

static grv_comm *world;
static int rank, size;

static grv_status fail_as(int r)
{
    GRV_FAIL(r % 2 == 0 ? GRV_E_FORMAT : GRV_E_IO, "file %d is broken", r);
}

/* lowest = first rank that fails; all above fail as well if many */
static void check_failure(int lowest, bool many)
{
    const bool fails = rank == lowest || (many && rank > lowest);
    grv_error_clear();
    const grv_status expected = lowest % 2 == 0 ? GRV_E_FORMAT : GRV_E_IO;
    char message[200], head[32] = "";
    if (size > 1) (void)snprintf(head, sizeof head, "rank %d: ", lowest);
    (void)snprintf(message, sizeof message, "%s%s: file %d is broken", head,
                   grv_status_text(expected), lowest);
    grv_status status = grv_comm_agree(world, fails ? fail_as(rank) : GRV_OK);
    assert_int_equal(status, expected);
    assert_string_equal(grv_error_message(), message);
    /* agreed upon once more, further up: the message stays */
    status = grv_comm_agree(world, status);
    assert_int_equal(status, expected);
    assert_string_equal(grv_error_message(), message);
}

static void test_failures(void **state)
{
    (void)state;
    for (int lowest = 0; lowest < size; lowest++) {
        check_failure(lowest, false);
        check_failure(lowest, true);
    }
}

static void test_success(void **state)
{
    (void)state;
    assert_int_equal(grv_comm_agree(world, GRV_OK), GRV_OK);
    assert_int_equal(grv_comm_agree(world, rank == size - 1 ? GRV_END : GRV_OK), GRV_END);
}

/* a status without a message, and one whose message is as long as the record allows */
static void test_odd_messages(void **state)
{
    (void)state;
    grv_error_clear();
    assert_int_equal(grv_comm_agree(world, rank == size - 1 ? GRV_E_NUMERIC : GRV_OK),
                     GRV_E_NUMERIC);
    if (size > 1) assert_non_null(strstr(grv_error_message(), "numerical failure"));
    char text[4000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(
        grv_comm_agree(world, rank == size - 1 ? grvi_fail_from(GRV_E_IO, text) : GRV_OK),
        GRV_E_IO);
    assert_non_null(strstr(grv_error_message(), "xxxxxxxx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_success),
                                       cmocka_unit_test(test_odd_messages)};
    world = mpi_test_begin();
    rank = grv_comm_rank(world);
    size = grv_comm_size(world);
    return mpi_test_end(&world, cmocka_run_group_tests(tests, NULL, NULL));
}
