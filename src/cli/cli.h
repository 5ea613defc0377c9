/* What the commands of `grove` share. Internal to src/cli.
 * A command is one file cmd_<name>.c with one function grvc_<name>: parse, call the library, print. It returns the exit code.
 * Results go to stdout, messages to stderr; main.c lists the commands. */
#ifndef GRVC_CLI_H
#define GRVC_CLI_H

#include <stdbool.h>

#include "core/json.h"
#include "grove/comm.h"
#include "grove/config.h"
#include "grove/log.h"

enum { GRVC_EXIT_OK = 0, GRVC_EXIT_FAILED = 1, GRVC_EXIT_USAGE = 2 };

/* What grvc_begin returns where the command is to go on. */
enum { GRVC_CONTINUE = -1 };

typedef struct grvc_command {
    const char *name;                  /* "train" */
    const char *summary;               /* one line for `grove --help` */
    int (*run)(int argc, char **argv); /* argv[0] is the name of the command */
} grvc_command;

/* Commands of two words: `grove store ls`. */
typedef struct grvc_group {
    const char *name;  /* "grove store" */
    const char *about; /* for --help */
    const grvc_command *commands;
    int n_commands;
} grvc_group;

/* Runs the command that argv[1] names, or tells of all. Returns the exit code. */
int grvc_run_group(const grvc_group *group, int argc, char **argv);

int grvc_batch(int argc, char **argv);
int grvc_bench(int argc, char **argv);
int grvc_evaluate(int argc, char **argv);
int grvc_generate(int argc, char **argv);
int grvc_geom(int argc, char **argv);
int grvc_info(int argc, char **argv);
int grvc_plan(int argc, char **argv);
int grvc_predict(int argc, char **argv);
int grvc_simulate(int argc, char **argv);
int grvc_store(int argc, char **argv);
int grvc_train(int argc, char **argv);

/* One call of one command. The command fills the first part and calls grvc_begin, which fills the second. */
typedef struct grvc_session {
    const char *name;              /* "grove train": before every error line */
    const char *about;             /* what it does, for --help; lines of at most 100 columns */
    const char *words_usage;       /* the words it takes, "ls|info PATH"; NULL for none */
    int min_words, max_words;      /* how many of them */
    const grv_option_table *table; /* its keys; NULL for none */
    void *params;                  /* their struct, zeroed */

    bool json;    /* --json: results for programs */
    bool verbose; /* -v: debug messages, traces of errors */
    bool quiet;   /* -q: warnings and errors only, no progress */
    int rank; /* of this process: the launcher's at first; a command that starts MPI sets it again, and then a new log */
    char *
        *words; /* [n_words] arguments that are neither options nor key=value; borrowed from argv */
    int n_words;
    grv_log *log; /* messages and progress on stderr */
} grvc_session;

/* Reads "[--config FILE]... [key=value]... [words] [--json] [-v] [-q] [--help] [--]" over the defaults, checks what is missing and
 * makes the log. Returns GRVC_CONTINUE, or the exit code after --help (printed) or an error (printed on rank 0). grvc_end is
 * called in the first case only. */
int grvc_begin(grvc_session *session, int argc, char **argv);

/* Writes an attribute of a data set, under its own name; nothing if the data set has none. */
grv_status grvc_json_attribute(grvi_json_writer *w, const char *path, const char *key) GRV_MUST_CHECK;

/* All ranks of the launcher (MPI starts, the log knows its rank), or this process alone. Collective. Afterwards grvc_ranks_end. */
grv_status grvc_ranks_begin(grvc_session *session, grv_comm **comm) GRV_MUST_CHECK;
void grvc_ranks_end(grv_comm **comm);

/* Makes the log again for this rank, which then is session->rank. */
grv_status grvc_set_rank(grvc_session *session, int rank) GRV_MUST_CHECK;

/* Writes the resolved parameters to DIRECTORY/config.yaml, atomically. Rank 0 calls. */
grv_status grvc_write_config(const grvc_session *session, const char *directory) GRV_MUST_CHECK;

/* Prints the error of a status that is not GRV_OK as one line (with its trace if -v) on rank 0, frees what the session owns, the
 * strings of the parameters included, and returns the exit code. Several ranks agree on the status before. */
int grvc_end(grvc_session *session, grv_status status);

/* "grove train: <message of the last error>" on stderr. */
void grvc_print_error(const char *name, bool with_trace);

/* Rank that the MPI launcher announces in the environment, 0 without one: known before MPI starts, so that usage errors are
 * printed once. */
int grvc_launcher_rank(void);

/* Ctrl-C and SIGTERM set a flag that long steps look at; the second signal ends the process at once. */
void grvc_interrupt_install(void);
bool grvc_interrupted(void);

/* Before anything is computed: is the folder there that a file is to be made in? */
grv_status grvc_check_folder_of(const char *path) GRV_MUST_CHECK;
/* The same of a picture, whose name ends in .png. */
grv_status grvc_check_picture(const char *path) GRV_MUST_CHECK;

#endif
