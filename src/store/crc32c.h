/* CRC-32C (Castagnoli), as Zarr's crc32c codec, iSCSI and ext4 use it. Internal. */
#ifndef GRVI_STORE_CRC32C_H
#define GRVI_STORE_CRC32C_H

#include <stdint.h>

uint32_t grvi_crc32c(const void *data, int64_t n);

#endif
