/* The `grove` program: finds the command. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/nearest.h"
#include "grove/core.h"

/* In the order in which a user meets them. */
static const grvc_command commands[] = {
    {"simulate", "makes a data set of flows around a sphere", grvc_simulate},
    {"generate", "makes a data set by any simulator, over a sample of its parameters", grvc_generate},
    {"train", "trains a network on a data set, on any number of ranks", grvc_train},
    {"evaluate", "a run's error on samples it never saw, with pictures", grvc_evaluate},
    {"predict", "a network's answers to the inputs of a data set", grvc_predict},
    {"plan", "memory, work and traffic of a training step on any number of ranks", grvc_plan},
    {"batch", "runs a function or a program many times, on workers that come and go", grvc_batch},
    {"geom", "searches in space, distances to surfaces, mesh files", grvc_geom},
    {"store", "lists and describes stored arrays and data sets", grvc_store},
    {"bench", "times against the floor of this machine", grvc_bench},
    {"info", "version, build, libraries, instruction set, cores", grvc_info},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *stream)
{
    (void)fprintf(stream, "usage: grove COMMAND [arguments]\n\n"
                          "Simulate, store, train and use deep-learning surrogates of physical "
                          "simulations.\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        (void)fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(stream, "\n`grove COMMAND --help` lists the arguments and keys of a command; "
                          "`grove --version` prints the version.\n");
}

static const grvc_command *find_command(const char *name)
{
    grvi_nearest search = {.word = name};
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
        grvi_nearest_offer(&search, commands[i].name);
    }
    const char *const nearest = grvi_nearest_get(&search);
    if (grvc_launcher_rank() != 0) return NULL;
    (void)fprintf(stderr, "grove: unknown command '%.80s'; ", name);
    if (nearest != NULL)
        (void)fprintf(stderr, "did you mean '%s'?\n", nearest);
    else
        (void)fprintf(stderr, "`grove --help` lists all\n");
    return NULL;
}

static int run_command(const char *name, int argc, char **argv)
{
    const grvc_command *const command = find_command(name);
    return command != NULL ? command->run(argc, argv) : GRVC_EXIT_USAGE;
}

/* `grove help train` is `grove train --help`. */
static int run_help(int argc, char **argv)
{
    char option[] = "--help";
    if (argc > 2) return run_command(argv[2], 2, (char *[]){argv[2], option, NULL});
    print_help(stdout);
    return GRVC_EXIT_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return GRVC_EXIT_USAGE;
    }
    const char *const word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return run_help(argc, argv);
    if (strcmp(word, "--version") == 0) {
        (void)printf("grove %s (%s)\n", grv_version(), grv_git_hash());
        return GRVC_EXIT_OK;
    }
    return run_command(word, argc - 1, argv + 1);
}
