/* Files of a run directory beside the checkpoints. Internal to src/train; rank 0 only. */
#ifndef GRVI_RUN_FILES_H
#define GRVI_RUN_FILES_H

#include "grove/train.h"

/* Makes the directory, writes config.yaml and plan.txt, sends the log to log.jsonl. */
grv_status grvi_run_open(const grv_train_config *config, const grv_network *network, grv_log *log) GRV_MUST_CHECK;
/* metrics.csv, whole and atomically, from the history: a resumed run has no row twice. */
grv_status grvi_run_metrics(const grv_train_config *config, const grv_train_state *state) GRV_MUST_CHECK;
/* trace.json: the steps of the last run of the network, in the format of Perfetto and chrome://tracing. */
grv_status grvi_run_trace(const grv_train_config *config, const grv_network *network, int rank) GRV_MUST_CHECK;

#endif
