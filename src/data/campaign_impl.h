/* What the files of campaigns share. Internal. */
#ifndef GRVI_DATA_CAMPAIGN_IMPL_H
#define GRVI_DATA_CAMPAIGN_IMPL_H

#include <sys/types.h>

#include "core/check.h"
#include "data/flow_set.h"
#include "grove/campaign.h"
#include "grove/dataset.h"
#include "grove/sampling.h"

struct grv_task; /* grove/task.h */

typedef struct grvi_campaign grvi_campaign;

/* A simulator. To add one: a file simulator_<name>.c, chosen in `prepare` of campaign.c. */
typedef struct grvi_simulator {
    /* Is what the configuration says enough, and right? GRV_E_CONFIG. May complete it (absolute paths), so that it holds in any folder. */
    grv_status (*check)(grvi_campaign *campaign, grv_log *log);
    /* What the data set is; all but n_samples, planes_per_chunk, seed and the generator's text. Pointers into the campaign. */
    grv_status (*describe)(grvi_campaign *campaign, grv_dataset_desc *desc);
    /* Before the first sample that is to be made, once, where the campaign is driven: looks at what all samples share. NULL: nothing. */
    grv_status (*inspect)(const grvi_campaign *campaign, grv_log *log);
    /* Makes one sample.
     * folder: empty, for files; input, target: dense, of the data set's type, written */
    grv_status (*make)(grvi_campaign *campaign, int64_t sample, const char *folder, void *input,
                       void *target);
} grvi_simulator;

extern const grvi_simulator grvi_simulator_flow, grvi_simulator_function, grvi_simulator_program;

struct grvi_campaign {
    grv_campaign_config config; /* a copy of its own, complete */
    const grvi_simulator *simulator;
    grv_sampling *sampling;
    grvi_flow_set flows;                 /* simulator_flow */
    grvi_flow_description picture;       /* simulator_flow */
    void (*function)(struct grv_task *); /* simulator_function: loaded */
    const char *const
        *launcher; /* simulator_program: [n_launcher] words before its own; borrowed */
    int n_launcher;
    bool only_continues; /* a data set that is there */
    grv_dataset *data;
};

/* Checks the configuration, and opens its data set or makes it. campaign: zeroed, but for the launcher and only_continues */
grv_status grvi_campaign_open(const grv_campaign_config *config, grv_log *log,
                              grvi_campaign *campaign) GRV_MUST_CHECK;
void grvi_campaign_close(grvi_campaign *campaign);

/* Replaces a path by its absolute form; it must be there. what: the key, for messages */
grv_status grvi_campaign_make_absolute(const char *what, char **path) GRV_MUST_CHECK;

/* ---- simulator_shared.c: what simulators of somebody else's have in common ---- */

/* A sample's values: its parameters, in order, then `sample`, its number, and `seed`, a random number of its own. */
int grvi_sample_n_values(const grvi_campaign *campaign);
const char *grvi_sample_value_name(const grvi_campaign *campaign, int value);
/* Place of a value, or -1, with the name that resembles it or NULL. */
int grvi_sample_find_value(const grvi_campaign *campaign, const char *name, const char **nearest);
/* text: [GRV_SAMPLING_TEXT_BYTES], written */
void grvi_sample_value(const grvi_campaign *campaign, int64_t sample, int value, char *text);

/* Are both fields described, all names free, and all files there, whose paths are made absolute? */
grv_status grvi_simulator_check(grvi_campaign *campaign) GRV_MUST_CHECK;
/* As `describe`: a data set of the fields input and target. */
grv_status grvi_simulator_describe(grvi_campaign *campaign, grv_dataset_desc *desc) GRV_MUST_CHECK;
/* Lengths of a field's axes, then of its channels. shape: [GRV_DATASET_MAX_AXES + 1]. Returns how many */
int grvi_simulator_shape(const grv_campaign_field *field, int64_t *shape);

grv_status grvi_simulator_link_files(const grvi_campaign *campaign,
                                     const char *folder) GRV_MUST_CHECK;
/* How much stderr holds: the process that begins now prints behind it. */
int64_t grvi_simulator_printed(void);
/* Waits for a process; GRV_E_NUMERIC, with the last line that it printed, if it did not end well. name: for messages */
grv_status grvi_simulator_wait(const char *name, pid_t process, int64_t printed) GRV_MUST_CHECK;

#endif
