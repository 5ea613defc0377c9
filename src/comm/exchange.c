/* Neighbour exchange with requests that are reused.
 * Messages longer than MPI can count are cut into pieces, which MPI keeps in order between two ranks.
 * Messages to oneself become copies: the k-th one sent is copied to the k-th one received. */
#include <string.h>

#include "comm/comm_impl.h"
#include "core/alloc.h"
#include "grove/core.h"

struct grv_exchange {
    grv_comm *comm;
    int64_t n_sends, n_receives, n_copies; /* pieces to and from others; copies inside this rank */
    grv_message *sends, *receives, *copy_from, *copy_to;
    int n_requests;
    MPI_Request *requests; /* [n_receives + n_sends] */
    bool running;
};

/* Sorts messages into pieces for MPI and copies; with pieces == NULL only counts. */
static void cut(const grv_comm *comm, int64_t n, const grv_message *messages, grv_message *pieces,
                int64_t *n_pieces, grv_message *own, int64_t *n_own)
{
    *n_pieces = *n_own = 0;
    for (int64_t i = 0; i < n; i++) {
        const grv_message *const m = &messages[i];
        if (m->bytes == 0) continue;
        if (m->peer == comm->rank) {
            if (own != NULL) own[*n_own] = *m;
            ++*n_own;
            continue;
        }
        for (int64_t done = 0; done < m->bytes; done += comm->max_bytes) {
            if (pieces != NULL)
                pieces[*n_pieces] =
                    (grv_message){.peer = m->peer,
                                  .buffer = m->buffer,
                                  .offset = m->offset + done,
                                  .bytes = grvi_min_i64(m->bytes - done, comm->max_bytes)};
            ++*n_pieces;
        }
    }
}

static grv_status check_messages(const grv_comm *comm, const char *what, int64_t n,
                                 const grv_message *messages)
{
    GRV_CHECK(n >= 0, GRV_E_ARG, "%lld messages %s", (long long)n, what);
    for (int64_t i = 0; i < n; i++) {
        const grv_message *const m = &messages[i];
        GRV_CHECK(m->peer >= 0 && m->peer < comm->size, GRV_E_ARG,
                  "message %lld %s: rank 0..%d expected, %d found", (long long)i, what,
                  comm->size - 1, m->peer);
        GRV_CHECK(m->bytes >= 0 && m->offset >= 0 && m->buffer >= 0, GRV_E_ARG,
                  "message %lld %s: negative buffer %d, offset %lld or length %lld", (long long)i,
                  what, m->buffer, (long long)m->offset, (long long)m->bytes);
    }
    return GRV_OK;
}

static grv_status fill(grv_exchange *x, int64_t n_sends, const grv_message *sends,
                       int64_t n_receives, const grv_message *receives)
{
    int64_t n_copies_to = 0, n_requests = 0;
    GRV_TRY(check_messages(x->comm, "to send", n_sends, sends));
    GRV_TRY(check_messages(x->comm, "to receive", n_receives, receives));
    cut(x->comm, n_sends, sends, NULL, &x->n_sends, NULL, &x->n_copies);
    cut(x->comm, n_receives, receives, NULL, &x->n_receives, NULL, &n_copies_to);
    GRV_CHECK(x->n_copies == n_copies_to, GRV_E_ARG,
              "rank %d sends itself %lld messages and receives %lld", x->comm->rank,
              (long long)x->n_copies, (long long)n_copies_to);
    n_requests = x->n_sends + x->n_receives;
    GRV_TRY(grvi_to_int(n_requests, &x->n_requests));
    GRV_TRY(GRVI_ALLOC(&x->sends, x->n_sends));
    GRV_TRY(GRVI_ALLOC(&x->receives, x->n_receives));
    GRV_TRY(GRVI_ALLOC(&x->copy_from, x->n_copies));
    GRV_TRY(GRVI_ALLOC(&x->copy_to, x->n_copies));
    GRV_TRY(GRVI_ALLOC(&x->requests, n_requests));
    cut(x->comm, n_sends, sends, x->sends, &x->n_sends, x->copy_from, &x->n_copies);
    cut(x->comm, n_receives, receives, x->receives, &x->n_receives, x->copy_to, &n_copies_to);
    for (int64_t i = 0; i < x->n_copies; i++)
        GRV_CHECK(x->copy_from[i].bytes == x->copy_to[i].bytes, GRV_E_ARG,
                  "rank %d sends itself %lld bytes and receives %lld", x->comm->rank,
                  (long long)x->copy_from[i].bytes, (long long)x->copy_to[i].bytes);
    return GRV_OK;
}

#ifdef GRVI_DEBUG
/* Every rank tells every other how much it will send; quadratic in total, so in debug builds only. */
static grv_status verify_lengths(const grv_exchange *x)
{
    grv_status status = GRV_OK;
    const int size = x->comm->size;
    int64_t *sent = NULL, *announced = NULL;
    status = GRVI_CALLOC(&sent, size);
    if (status == GRV_OK) status = GRVI_CALLOC(&announced, size);
    GRV_TRY_GOTO(grv_comm_agree(x->comm, status));
    for (int64_t i = 0; i < x->n_sends; i++) sent[x->sends[i].peer] += x->sends[i].bytes;
    GRV_TRY_GOTO(
        grvi_mpi_check(MPI_Alltoall(sent, 1, MPI_INT64_T, announced, 1, MPI_INT64_T, x->comm->mpi),
                       "MPI_Alltoall"));
    for (int64_t i = 0; i < x->n_receives; i++)
        announced[x->receives[i].peer] -= x->receives[i].bytes;
    for (int r = 0; r < size; r++)
        GRV_CHECK_GOTO(announced[r] == 0, GRV_E_COMM,
                       "rank %d sends rank %d %lld bytes more than are expected", r, x->comm->rank,
                       (long long)announced[r]);
done:
    grv_free(sent);
    grv_free(announced);
    return status;
}
#else
static grv_status verify_lengths(const grv_exchange *x)
{
    (void)x;
    return GRV_OK;
}
#endif

grv_status grv_exchange_create(grv_comm *comm, int64_t n_sends, const grv_message *sends,
                               int64_t n_receives, const grv_message *receives,
                               grv_exchange **exchange)
{
    grv_status status = GRVI_CALLOC(exchange, 1);
    if (status == GRV_OK) {
        (*exchange)->comm = comm;
        status = fill(*exchange, n_sends, sends, n_receives, receives);
    }
    status = grv_comm_agree(comm, status);
    if (status == GRV_OK && comm->size > 1)
        status = grv_comm_agree(comm, verify_lengths(*exchange));
    if (status != GRV_OK) grv_exchange_destroy(exchange);
    return status;
}

void grv_exchange_destroy(grv_exchange **exchange)
{
    if (exchange == NULL || *exchange == NULL) return;
    grv_exchange *const x = *exchange;
    GRV_ASSERT(!x->running);
    grv_free(x->sends);
    grv_free(x->receives);
    grv_free(x->copy_from);
    grv_free(x->copy_to);
    grv_free(x->requests);
    grv_free(x);
    *exchange = NULL;
}

grv_status grv_exchange_begin(grv_exchange *x, const void *const *send_buffers,
                              void *const *receive_buffers)
{
    GRV_CHECK(!x->running, GRV_E_ARG, "the exchange runs already: grv_exchange_end comes first");
    x->running = true;
    MPI_Request *request = x->requests;
    for (int64_t i = 0; i < x->n_receives; i++) {
        const grv_message *const m = &x->receives[i];
        char *const to = (char *)receive_buffers[m->buffer] + m->offset;
        GRVI_MPI_TRY(MPI_Irecv(to, (int)m->bytes, MPI_BYTE, m->peer, GRVI_TAG_EXCHANGE,
                               x->comm->mpi, request++));
    }
    for (int64_t i = 0; i < x->n_sends; i++) {
        const grv_message *const m = &x->sends[i];
        const char *const from = (const char *)send_buffers[m->buffer] + m->offset;
        GRVI_MPI_TRY(MPI_Isend(from, (int)m->bytes, MPI_BYTE, m->peer, GRVI_TAG_EXCHANGE,
                               x->comm->mpi, request++));
    }
    for (int64_t i = 0; i < x->n_copies; i++) {
        const grv_message *const from = &x->copy_from[i], *const to = &x->copy_to[i];
        memcpy((char *)receive_buffers[to->buffer] + to->offset,
               (const char *)send_buffers[from->buffer] + from->offset, (size_t)from->bytes);
    }
    return GRV_OK;
}

grv_status grv_exchange_poll(grv_exchange *x)
{
    int all_done = 1;
    if (x->running && x->n_requests > 0)
        GRVI_MPI_TRY(MPI_Testall(x->n_requests, x->requests, &all_done, MPI_STATUSES_IGNORE));
    return all_done ? GRV_OK : GRV_AGAIN;
}

grv_status grv_exchange_end(grv_exchange *x)
{
    GRV_CHECK(x->running, GRV_E_ARG, "the exchange does not run: grv_exchange_begin comes first");
    x->running = false;
    if (x->n_requests > 0)
        GRVI_MPI_TRY(MPI_Waitall(x->n_requests, x->requests, MPI_STATUSES_IGNORE));
    return GRV_OK;
}
