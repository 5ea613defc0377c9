/* The directory of a zip archive: its entries by name. Internal. */
#ifndef GRVI_STORE_ZIP_DIRECTORY_H
#define GRVI_STORE_ZIP_DIRECTORY_H

#include <stdatomic.h>

#include "core/check.h"

/* Compression methods of an entry that can be read. */
enum { GRVI_ZIP_STORED = 0, GRVI_ZIP_DEFLATED = 8 };

typedef struct grvi_zip_entry {
    const char *name; /* a valid key */
    int64_t n_stored; /* bytes in the archive */
    int64_t n_bytes;  /* of the value */
    int64_t header_offset;
    _Atomic int64_t data_offset; /* 0: the local header has not been read yet */
    uint32_t crc;                /* of the value */
    uint16_t method;
    bool encrypted;
} grvi_zip_entry;

typedef struct grvi_zip_directory {
    grvi_zip_entry *entries; /* [n] sorted by name, each name once */
    int64_t n;
    int64_t end; /* the entries' data lie before this byte of the archive */
    char *names;
} grvi_zip_directory;

/* Reads the directory of the archive in a file. Memory is bounded by a small multiple of the directory's bytes.
 * GRV_E_FORMAT or GRV_E_UNSUPPORTED naming `what` (the archive) and the reason. */
grv_status grvi_zip_directory_read(int fd, int64_t n_file, const char *what,
                                   grvi_zip_directory *directory) GRV_MUST_CHECK;
/* Safe on a zeroed one. */
void grvi_zip_directory_fini(grvi_zip_directory *directory);

/* Sets data_offset of an entry from its local header, whose name and extra fields have lengths of their own. Thread-safe. */
grv_status grvi_zip_entry_locate(int fd, const char *what, const grvi_zip_directory *directory,
                                 grvi_zip_entry *entry) GRV_MUST_CHECK;

#endif
