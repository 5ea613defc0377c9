/* grove batch: jobs of many tasks. Finds the command. */
#include "cli/batch_cli.h"

/* In the order in which a user meets them; the last two are for the engine itself. */
static const grvc_command commands[] = {
    {"run", "a function or a program, once for each row of a table", grvc_batch_run},
    {"status", "how many tasks wait, run, are done, failed", grvc_batch_status},
    {"explain", "why a task waits or failed", grvc_batch_explain},
    {"logs", "what a task printed", grvc_batch_logs},
    {"stats", "seconds, attempts and bytes of every task", grvc_batch_stats},
    {"fetch", "the files and tensors that tasks returned, into a folder", grvc_batch_fetch},
    {"resume", "goes on with a job that was interrupted", grvc_batch_resume},
    {"retry", "gives failed tasks their attempts back", grvc_batch_retry},
    {"cancel", "cancels tasks that have not ended", grvc_batch_cancel},
    {"clean", "deletes a job", grvc_batch_clean},
    {"worker", "(started by the engine)", grvc_batch_worker},
    {"node", "(started by the engine)", grvc_batch_node},
};

int grvc_batch(int argc, char **argv)
{
    static const grvc_group group = {
        .name = "grove batch",
        .about = "Runs a C function or any program many times on workers that come and go. A job is a folder; it\n"
                 "survives its driver: see docs/batch.md.",
        .commands = commands,
        .n_commands = sizeof commands / sizeof *commands};
    return grvc_run_group(&group, argc, argv);
}
