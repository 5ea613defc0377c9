/* The bytes of one array in a VTK XML file: raw or base64, with or without compression. Internal.
 * Layout (all words of `word_bytes` in the file's byte order):
 *   not compressed: number of bytes, then the bytes; base64 encodes both as one stream, some writers as two
 *   compressed:     blocks, bytes of a block, bytes of a partial last block (0: it is whole), compressed bytes of each block, then the blocks;
 *                   base64 encodes the header and the blocks as two streams */
#ifndef GRVI_MESH_VTK_PAYLOAD_H
#define GRVI_MESH_VTK_PAYLOAD_H

#include "mesh/base64.h"
#include "mesh/mesh_impl.h"
#include "mesh/xml_scan.h"
#include "store/block_codec.h"

/* How all arrays of a file are stored. */
typedef struct grvi_vtk_encoding {
    bool big_endian, compressed;
    grvi_block_kind block;
    int word_bytes; /* 4 or 8 */
} grvi_vtk_encoding;

/* What an array is called in messages. */
typedef struct grvi_vtk_where {
    const char *path;
    grvi_span name;
    int64_t at; /* byte of its tag */
} grvi_vtk_where;
#define GRVI_WHERE "%s: array '%.*s' at byte %lld: "
#define GRVI_WHERE_OF(where) \
    (where)->path, (int)grvi_min_i64((where)->name.n, 80), (where)->name.at, (long long)(where)->at

typedef struct grvi_vtk_payload {
    const grvi_mesh_file *file;
    const grvi_vtk_encoding *encoding;
    const grvi_vtk_where *where;
    bool base64;
    int64_t at, end;           /* raw: where the data stand in the file, behind the header */
    grvi_base64_stream stream; /* base64: what is behind the header */
    int64_t n_bytes;           /* decoded */
    int64_t n_blocks, block_bytes, last_bytes;
    int64_t *ends; /* [n_blocks + 1], from 0: where the blocks lie in the compressed data; owned */
} grvi_vtk_payload;

/* Reads the header of what stands in [at, end) of the file and checks what it claims. Release with grvi_vtk_payload_close, also after a failure. */
grv_status grvi_vtk_payload_open(const grvi_mesh_file *file, const grvi_vtk_encoding *encoding,
                                 const grvi_vtk_where *where, bool base64, int64_t at, int64_t end,
                                 grvi_vtk_payload *payload) GRV_MUST_CHECK;
void grvi_vtk_payload_close(grvi_vtk_payload *payload);
/* Decodes all of it, in the file's byte order; out [n_bytes]. */
grv_status grvi_vtk_payload_decode(grvi_vtk_payload *payload, int n_threads,
                                   uint8_t *out) GRV_MUST_CHECK;

#endif
