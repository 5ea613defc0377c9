/* Another program, run beside the driver: a scheduler's command may take long, and the driver has other things to do. Internal. */
#ifndef GRVI_BATCH_COMMAND_H
#define GRVI_BATCH_COMMAND_H

#include <sys/types.h>

#include "core/check.h"
#include "core/text.h"

/* Start from (grvi_command){0}. */
typedef struct grvi_command {
    pid_t pid;         /* 0: none runs */
    int pipes[2];      /* its output and its messages */
    grvi_text text[2]; /* what it wrote there */
    double begun_s;
    int code; /* exit code once it has ended; -1: killed, or out of time */
} grvi_command;

/* Starts argv[0], found on PATH, without a shell, in a session of its own, so that Ctrl-C does not reach it. GRV_E_NOT_FOUND if it cannot be run. */
grv_status grvi_command_start(grvi_command *command, char *const *argv) GRV_MUST_CHECK;
/* Reads what it wrote. True once it has ended; after timeout_s seconds it is made to. */
bool grvi_command_has_ended(grvi_command *command, double timeout_s);
/* Starts it and waits for its end. GRV_E_IO with its messages if its exit code is not 0. */
grv_status grvi_command_run(char *const *argv, double timeout_s) GRV_MUST_CHECK;
/* Its messages in one line, without the line's end. "" if it wrote none. */
const char *grvi_command_messages(grvi_command *command);
/* Kills it if it still runs. */
void grvi_command_fini(grvi_command *command);

#endif
