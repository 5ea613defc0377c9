/* CRC-32C (Castagnoli), as Zarr's crc32c codec, iSCSI and ext4 use it. Internal. */
#ifndef GRVI_KERNELS_CRC32C_H
#define GRVI_KERNELS_CRC32C_H

#include <stdint.h>

#include "kernels/isa.h"

/* Checksum of n bytes, initial value and final inversion included. */
typedef uint32_t grvi_crc32c_function(const void *data, int64_t n);

grvi_crc32c_function grvi_crc32c;     /* the best that this machine runs */
grvi_crc32c_function grvi_crc32c_ref; /* tables */
grvi_crc32c_function
    grvi_crc32c_avx2; /* the processor's instruction; the tables where it was not compiled in */

/* The one of an instruction set, for tests. */
grvi_crc32c_function *grvi_crc32c_for(grvi_isa isa);

#endif
