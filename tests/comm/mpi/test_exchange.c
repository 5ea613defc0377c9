/* Neighbour exchange: random message lists that every rank derives from one seed, empty and cut messages, wrong use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/comm_limits.h"
#include "core/alloc.h"
#include "grove/comm.h"
#include "grove/core.h"
#include "mpi_test.h"

enum {
    MAX_MESSAGES = 8,
    MAX_LENGTH = 41,
    N_BUFFERS = 2,
    BUFFER_BYTES = 4 * MAX_MESSAGES * MAX_LENGTH
};
static grv_comm *world;
static int rank, size;

typedef struct case_lists {
    int64_t n_sends, n_receives;
    grv_message sends[4 * MAX_MESSAGES], receives[4 * MAX_MESSAGES];
    unsigned char
        first[4 * MAX_MESSAGES]; /* content of received message i: first, first + 1, ... */
    unsigned char sent[N_BUFFERS][BUFFER_BYTES], received[N_BUFFERS][BUFFER_BYTES];
} case_lists;

/* Every rank walks over the messages of the whole job and picks its own. */
static void make_case(uint64_t seed, case_lists *c)
{
    int64_t used_sent[N_BUFFERS] = {0}, used_received[N_BUFFERS] = {0};
    memset(c, 0, sizeof *c);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < MAX_MESSAGES; i++) {
            const uint64_t bits = grv_random_bits(seed, 1, (uint64_t)(from * MAX_MESSAGES + i));
            const int to = (int)(bits % (uint64_t)size), b = (int)(bits >> 8 & 1),
                      b2 = (int)(bits >> 9 & 1);
            const int64_t bytes = (bits >> 10 & 3) == 0 ? 0 : (int64_t)(bits >> 16) % MAX_LENGTH;
            if (from == rank) {
                c->sends[c->n_sends++] =
                    (grv_message){.peer = to, .buffer = b, .offset = used_sent[b], .bytes = bytes};
                for (int64_t k = 0; k < bytes; k++)
                    c->sent[b][used_sent[b]++] = (unsigned char)(bits + (uint64_t)k);
            }
            if (to == rank) {
                c->first[c->n_receives] = (unsigned char)bits;
                c->receives[c->n_receives++] = (grv_message){
                    .peer = from, .buffer = b2, .offset = used_received[b2], .bytes = bytes};
                used_received[b2] += bytes;
            }
        }
}

static void check_received(const case_lists *c)
{
    int64_t used[N_BUFFERS] = {0};
    for (int64_t i = 0; i < c->n_receives; i++) {
        const grv_message *const m = &c->receives[i];
        for (int64_t k = 0; k < m->bytes; k++)
            assert_int_equal(c->received[m->buffer][m->offset + k],
                             (unsigned char)(c->first[i] + k));
        used[m->buffer] += m->bytes;
    }
    for (int b = 0; b < N_BUFFERS; b++)
        assert_int_equal(c->received[b][used[b]], 0); /* nothing beyond */
}

static void test_random_messages(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        static case_lists c;
        make_case(seed, &c);
        grv_exchange *exchange = NULL;
        assert_int_equal(
            grv_exchange_create(world, c.n_sends, c.sends, c.n_receives, c.receives, &exchange),
            GRV_OK);
        const int64_t n_allocations = grv_memory_get().n_allocations;
        for (int repeat = 0; repeat < 3; repeat++) {
            memset(c.received, 0, sizeof c.received);
            assert_int_equal(grv_exchange_begin(exchange, (const void *[]){c.sent[0], c.sent[1]},
                                                (void *[]){c.received[0], c.received[1]}),
                             GRV_OK);
            grv_status status = GRV_AGAIN;
            while (repeat == 1 && status == GRV_AGAIN) status = grv_exchange_poll(exchange);
            assert_int_equal(grv_exchange_end(exchange), GRV_OK);
            check_received(&c);
        }
        assert_int_equal(grv_memory_get().n_allocations, n_allocations);
        grv_exchange_destroy(&exchange);
        assert_null(exchange);
    }
}

static void test_only_empty_messages(void **state)
{
    (void)state;
    const grv_message to_next = {.peer = (rank + 1) % size},
                      from_previous = {.peer = (rank + size - 1) % size};
    grv_exchange *exchange = NULL;
    assert_int_equal(grv_exchange_create(world, 1, &to_next, 1, &from_previous, &exchange), GRV_OK);
    assert_int_equal(grv_exchange_begin(exchange, (const void *[]){NULL}, (void *[]){NULL}),
                     GRV_OK);
    assert_int_equal(grv_exchange_poll(exchange), GRV_OK);
    assert_int_equal(grv_exchange_end(exchange), GRV_OK);
    grv_exchange_destroy(&exchange);
}

/* what one rank does wrong, every rank hears */
static void test_bad_messages(void **state)
{
    (void)state;
    const bool bad = rank == size - 1;
    grv_exchange *exchange = NULL;
    const grv_message far = {.peer = bad ? size : 0}, negative = {.bytes = bad ? -1 : 0},
                      own = {.peer = rank, .bytes = 3};
    assert_int_equal(grv_exchange_create(world, 1, &far, 0, NULL, &exchange), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "message 0 to send: rank 0.."));
    assert_null(exchange);
    assert_int_equal(grv_exchange_create(world, 0, NULL, 1, &negative, &exchange), GRV_E_ARG);
    assert_null(exchange);
    assert_int_equal(grv_exchange_create(world, bad, &own, 0, NULL, &exchange), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "sends itself 1 messages and receives 0"));
    grvi_alloc_fail_after(bad ? 2 : -1);
    assert_int_equal(grv_exchange_create(world, 0, NULL, 0, NULL, &exchange), GRV_E_NOMEM);
    grvi_alloc_fail_after(-1);
    assert_null(exchange);
}

static void test_wrong_order(void **state)
{
    (void)state;
    grv_exchange *exchange = NULL;
    assert_int_equal(grv_exchange_create(world, 0, NULL, 0, NULL, &exchange), GRV_OK);
    assert_int_equal(grv_exchange_end(exchange), GRV_E_ARG);
    assert_int_equal(grv_exchange_begin(exchange, NULL, NULL), GRV_OK);
    assert_int_equal(grv_exchange_begin(exchange, NULL, NULL), GRV_E_ARG);
    assert_int_equal(grv_exchange_end(exchange), GRV_OK);
    grv_exchange_destroy(&exchange);
}

#ifdef GRVI_DEBUG
static void test_unequal_lengths_are_found(void **state)
{
    (void)state;
    if (size == 1) return;
    const grv_message send = {.peer = 1, .bytes = 16}, receive = {.peer = 0, .bytes = 24};
    grv_exchange *exchange = NULL;
    assert_int_equal(grv_exchange_create(world, rank == 0, &send, rank == 1, &receive, &exchange),
                     GRV_E_COMM);
    assert_non_null(strstr(grv_error_message(), "rank 0 sends rank 1 -8 bytes more"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_messages),
        cmocka_unit_test(test_only_empty_messages),
        cmocka_unit_test(test_bad_messages),
        cmocka_unit_test(test_wrong_order),
#ifdef GRVI_DEBUG
        cmocka_unit_test(test_unequal_lengths_are_found),
#endif
    };
    world = mpi_test_begin();
    rank = grv_comm_rank(world);
    size = grv_comm_size(world);
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    grvi_comm_set_max_bytes(world, 8);
    n_failed += cmocka_run_group_tests_name("messages cut at 8 bytes", tests, NULL, NULL);
    return mpi_test_end(&world, n_failed);
}
