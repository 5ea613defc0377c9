/* grove batch: jobs of many tasks. Finds the command. */
#include <stdio.h>
#include <string.h>

#include "cli/batch_cli.h"
#include "core/nearest.h"

/* In the order in which a user meets them; the last two are for the engine itself. */
static const grvc_command commands[] = {
    {"run", "a function or a program, once for each row of a table", grvc_batch_run},
    {"status", "how many tasks wait, run, are done, failed", grvc_batch_status},
    {"explain", "why a task waits or failed", grvc_batch_explain},
    {"logs", "what a task printed", grvc_batch_logs},
    {"stats", "seconds, attempts and bytes of every task", grvc_batch_stats},
    {"resume", "goes on with a job that was interrupted", grvc_batch_resume},
    {"retry", "gives failed tasks their attempts back", grvc_batch_retry},
    {"cancel", "cancels tasks that have not ended", grvc_batch_cancel},
    {"clean", "deletes a job", grvc_batch_clean},
    {"worker", "(started by the engine)", grvc_batch_worker},
    {"node", "(started by the engine)", grvc_batch_node},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *stream)
{
    (void)fprintf(stream, "usage: grove batch COMMAND [arguments]\n\n"
                          "Runs a C function or any program many times on workers that come and go. A job is a folder; it\n"
                          "survives its driver: see docs/batch.md.\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++) (void)fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(stream, "\n`grove batch COMMAND --help` lists the arguments and keys of a command.\n");
}

static int usage_error(const char *word)
{
    grvi_nearest search = {.word = word};
    for (int i = 0; i < N_COMMANDS; i++) grvi_nearest_offer(&search, commands[i].name);
    const char *const nearest = grvi_nearest_get(&search);
    (void)fprintf(stderr, "grove batch: unknown command '%.80s'; ", word);
    if (nearest != NULL) (void)fprintf(stderr, "did you mean '%s'?\n", nearest);
    else (void)fprintf(stderr, "`grove batch --help` lists all\n");
    return GRVC_EXIT_USAGE;
}

int grvc_batch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return GRVC_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return GRVC_EXIT_OK;
    }
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    return usage_error(argv[1]);
}
