/* Arrays out of files that other programs write: .npy (NumPy's format, versions 1 to 3) and bare float32. Internal. */
#ifndef GRVI_STORE_NPY_H
#define GRVI_STORE_NPY_H

#include <stdint.h>

#include "core/check.h"
#include "grove/store.h"

enum { GRVI_NPY_MAX_RANK = 32 };

/* What the head of a .npy file says. */
typedef struct grvi_npy {
    grv_store_type type; /* GRV_STORE_F32 or GRV_STORE_F64, little-endian, last axis fastest */
    int rank;
    int64_t shape[GRVI_NPY_MAX_RANK];
    int64_t n;       /* elements */
    int64_t data_at; /* offset of the first one; n of them end where the file ends */
} grvi_npy;

/* Reads the head of a file that is n_bytes long and checks it against that length. GRV_E_FORMAT, GRV_E_UNSUPPORTED (with what to do about it).
 * what: its name, for messages */
grv_status grvi_npy_parse(const char *bytes, int64_t n_bytes, const char *what,
                          grvi_npy *npy) GRV_MUST_CHECK;

/* Fills out with an array whose type, rank and shape are found to be those. The shape must be this one; axes of length 1 at the end may be left out.
 * what: for messages
 * data: of the type found; dense, last axis fastest, any alignment
 * type: of out, GRV_STORE_F32 or GRV_STORE_F64 */
grv_status grvi_array_take(const char *what, const grvi_npy *found, const void *data, int rank,
                           const int64_t *shape, grv_store_type type, void *out) GRV_MUST_CHECK;

/* Fills out with an array out of a file: <base>.npy, or <base>.raw (little-endian float32, last axis fastest), as grvi_array_take does.
 * GRV_E_NOT_FOUND: neither file is there */
grv_status grvi_array_file_read(const char *base, int rank, const int64_t *shape,
                                grv_store_type type, void *out) GRV_MUST_CHECK;

#endif
