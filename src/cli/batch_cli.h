/* What the commands of `grove batch` share. Internal to src/cli.
 * Each is a function grvc_batch_<name>; cmd_batch.c lists them. */
#ifndef GRVC_BATCH_CLI_H
#define GRVC_BATCH_CLI_H

#include "cli/cli.h"
#include "core/json.h"
#include "grove/batch.h"

int grvc_batch_run(int argc, char **argv);
int grvc_batch_resume(int argc, char **argv);
int grvc_batch_status(int argc, char **argv);
int grvc_batch_explain(int argc, char **argv);
int grvc_batch_logs(int argc, char **argv);
int grvc_batch_stats(int argc, char **argv);
int grvc_batch_fetch(int argc, char **argv);
int grvc_batch_retry(int argc, char **argv);
int grvc_batch_cancel(int argc, char **argv);
int grvc_batch_clean(int argc, char **argv);
int grvc_batch_worker(int argc, char **argv);
int grvc_batch_node(int argc, char **argv);

/* A command that opens the job of its first word for looking. */
typedef grv_status grvc_batch_look_body(const grvc_session *session, grv_batch *batch);
int grvc_batch_look_at(grvc_session *session, int argc, char **argv, grvc_batch_look_body *body);

/* A number of a task out of a word. */
grv_status grvc_batch_task_number(const char *word, int64_t *task) GRV_MUST_CHECK;
/* Members of a job's counts into an open JSON object. */
void grvc_batch_json_counts(grvi_json_writer *w, const grv_batch_counts *counts);
/* One line of counts. */
void grvc_batch_print_counts(const grv_batch_counts *counts);

/* Arguments of tasks out of a CSV file: the first row names the columns, each further row is a task; blank lines are none. A field is a whole number, a
 * real number, the path of a file ("file:..."), or text. */
typedef struct grvc_batch_table {
    char *text;               /* what the values point into */
    int n_columns;
    int64_t n_rows;
    char **names;             /* [n_columns] */
    grv_batch_value *columns; /* [n_columns][n_rows] */
} grvc_batch_table;
/* are_numbers: false: numbers are texts, too, for a program that is to get them as they are written */
grv_status grvc_batch_table_read(const char *path, bool are_numbers, grvc_batch_table *table) GRV_MUST_CHECK;
void grvc_batch_table_fini(grvc_batch_table *table);

#endif
