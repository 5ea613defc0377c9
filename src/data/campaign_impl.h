/* What the files of campaigns share. Internal. */
#ifndef GRVI_DATA_CAMPAIGN_IMPL_H
#define GRVI_DATA_CAMPAIGN_IMPL_H

#include "core/check.h"
#include "data/flow_set.h"
#include "grove/campaign.h"
#include "grove/dataset.h"
#include "grove/sampling.h"

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

extern const grvi_simulator grvi_simulator_flow, grvi_simulator_program;

struct grvi_campaign {
    grv_campaign_config config; /* a copy of its own, complete */
    const grvi_simulator *simulator;
    grv_sampling *sampling;
    grvi_flow_set flows;           /* simulator_flow */
    grvi_flow_description picture; /* simulator_flow */
    grv_dataset *data;
};

/* Checks the configuration, and opens its data set or makes it. */
grv_status grvi_campaign_open(const grv_campaign_config *config, grv_log *log,
                              grvi_campaign *campaign) GRV_MUST_CHECK;
void grvi_campaign_close(grvi_campaign *campaign);

/* Replaces a path by its absolute form; it must be there. what: the key, for messages */
grv_status grvi_campaign_make_absolute(const char *what, char **path) GRV_MUST_CHECK;

#endif
