/* Agreement on the outcome of local work: one reduction when all is well, two broadcasts more when not. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm_impl.h"

enum { MESSAGE_BYTES = 2048 };

/* "rank 3: ..." : the message was agreed upon before */
static bool names_a_rank(const char *message)
{
    if (strncmp(message, "rank ", 5) != 0 || !isdigit((unsigned char)message[5])) return false;
    return strncmp(message + 5 + strspn(message + 5, "0123456789"), ": ", 2) == 0;
}

grv_status grv_comm_agree(grv_comm *comm, grv_status status)
{
    if (comm->size == 1) return status;
    /* the largest of (size - rank) belongs to the lowest failing rank */
    int64_t worst[2] = {status < 0 ? comm->size - comm->rank : 0, status};
    GRV_TRY(grv_comm_all_reduce_i64(comm, GRV_REDUCE_MAX, 2, worst));
    if (worst[0] == 0) return (grv_status)worst[1];

    const int failing = comm->size - (int)worst[0];
    struct {
        int64_t status;
        char message[MESSAGE_BYTES];
    } outcome = {.status = status};
    if (comm->rank == failing) {
        const char *const message = grv_error_message();
        const int n_head = names_a_rank(message) ? 0
                                                 : snprintf(outcome.message, sizeof outcome.message,
                                                            "rank %d: ", failing);
        (void)snprintf(outcome.message + n_head, sizeof outcome.message - (size_t)n_head, "%s",
                       message[0] != '\0' ? message : grv_status_text(status));
    }
    GRV_TRY(grv_comm_broadcast(comm, failing, &outcome, (int64_t)sizeof outcome));
    (void)grvi_fail_from((grv_status)outcome.status, outcome.message);
    grvi_frame(__FILE__, __LINE__, __func__);
    return (grv_status)outcome.status;
}
