/* Commands of two words, `grove store ls`: finds the second one. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/nearest.h"

static void print_help(const grvc_group *group, FILE *stream)
{
    (void)fprintf(stream, "usage: %s COMMAND [arguments]\n\n%s\n\ncommands:\n", group->name,
                  group->about);
    for (int i = 0; i < group->n_commands; i++)
        (void)fprintf(stream, "  %-8s %s\n", group->commands[i].name, group->commands[i].summary);
    (void)fprintf(stream, "\n`%s COMMAND --help` lists the arguments and keys of a command.\n",
                  group->name);
}

static int usage_error(const grvc_group *group, const char *word)
{
    grvi_nearest search = {.word = word};
    if (grvc_launcher_rank() != 0) return GRVC_EXIT_USAGE;
    for (int i = 0; i < group->n_commands; i++)
        grvi_nearest_offer(&search, group->commands[i].name);
    const char *const nearest = grvi_nearest_get(&search);
    (void)fprintf(stderr, "%s: unknown command '%.80s'; ", group->name, word);
    if (nearest != NULL)
        (void)fprintf(stderr, "did you mean '%s'?\n", nearest);
    else
        (void)fprintf(stderr, "`%s --help` lists all\n", group->name);
    return GRVC_EXIT_USAGE;
}

int grvc_run_group(const grvc_group *group, int argc, char **argv)
{
    if (argc < 2) {
        print_help(group, stderr);
        return GRVC_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(group, stdout);
        return GRVC_EXIT_OK;
    }
    for (int i = 0; i < group->n_commands; i++)
        if (strcmp(argv[1], group->commands[i].name) == 0)
            return group->commands[i].run(argc - 1, argv + 1);
    return usage_error(group, argv[1]);
}
