/* What the files of the data set share. Internal. */
#ifndef GRVI_DATA_DATASET_IMPL_H
#define GRVI_DATA_DATASET_IMPL_H

#include <stdatomic.h>

#include "core/check.h"
#include "core/json.h"
#include "grove/dataset.h"

/* version of the contract, attribute "grove_dataset" of the group */
enum { GRVI_DATASET_VERSION = 1 };

/* A double buffer for float64 data, kept between reads. */
typedef struct grvi_wide_buffer {
    int64_t n;
    double values[];
} grvi_wide_buffer;

/* A sample that was once seen done is not asked for again. */
typedef struct grvi_done_flag {
    _Atomic bool is_set;
} grvi_done_flag;

struct grv_dataset {
    grv_store *store;
    grv_array *input, *target, *status;
    grv_dataset_desc desc;
    bool check_finite;
    grvi_done_flag *done;              /* [n_samples] */
    _Atomic(grvi_wide_buffer *) spare; /* taken by a read, given back after it */
};

/* Makes group and arrays in an opened, empty store. */
grv_status grvi_dataset_make(grv_store *store, const grv_dataset_desc *desc) GRV_MUST_CHECK;
/* Checks a description. */
grv_status grvi_dataset_check_desc(const grv_dataset_desc *desc) GRV_MUST_CHECK;
/* Does an opened data set fit a description? GRV_E_CONFIG naming what differs. */
grv_status grvi_dataset_compare(grv_dataset *dataset, const grv_dataset_desc *desc) GRV_MUST_CHECK;
/* Opens a data set to go on with it, and compares. Errors of grv_dataset_open and grvi_dataset_compare */
grv_status grvi_dataset_continue(const char *path, const grv_dataset_desc *desc,
                                 const grv_store_params *params,
                                 grv_dataset **dataset) GRV_MUST_CHECK;
/* "sample 3 of 'target'" belongs to the range of samples? */
grv_status grvi_dataset_check_sample(const grv_dataset *dataset, int64_t sample) GRV_MUST_CHECK;

#endif
