/** @file store.h
 * Chunked arrays on disk: groups and arrays of Zarr version 3 and version 2.
 *
 * A store holds a tree of groups and arrays; it is a folder, or, for reading only, a zip archive or an address on an HTTP server. An array is cut into a regular grid of *stored objects*:
 * plain chunks, or shards that hold many inner chunks and an index. One stored object is one file, is published by
 * rename, and is the unit of concurrent writing: any number of threads and processes may write different objects of
 * one array at the same time, while readers see each object as it was before or as it is after, never a part.
 *
 * Threads: reads are concurrent-safe on one array and on one store; so are writes. Two writers of one stored object, be they
 * threads or processes of one machine, wait for each other, so that what they write into different parts of it is kept; of
 * the same elements the later value stays. (On network file systems as far as these lock files: see docs/store.md.)
 *
 * None of these calls is collective: each process acts for itself.
 */
#ifndef GROVE_STORE_H
#define GROVE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most axes of an array. */
#define GRV_STORE_MAX_RANK 16

/** Data types: enumerator, Zarr name, bytes of an element (0: told by grv_array_desc.item_bytes). float16 and bfloat16 are
 * moved as raw 16-bit words; complex numbers are pairs, real part first. Elements of the last three types:
 * GRV_STORE_RAW any bytes (version 3 `r<bits>`, version 2 `|V<n>`); GRV_STORE_BYTES characters padded with NULs (version 2
 * `|S<n>`); GRV_STORE_UCS4 32-bit code points in the machine's byte order padded with zeros (version 2 `<U<n>`). */
#define GRV_STORE_TYPE_LIST(X)                     \
    X(GRV_STORE_BOOL, "bool", 1)                   \
    X(GRV_STORE_I8, "int8", 1)                     \
    X(GRV_STORE_I16, "int16", 2)                   \
    X(GRV_STORE_I32, "int32", 4)                   \
    X(GRV_STORE_I64, "int64", 8)                   \
    X(GRV_STORE_U8, "uint8", 1)                    \
    X(GRV_STORE_U16, "uint16", 2)                  \
    X(GRV_STORE_U32, "uint32", 4)                  \
    X(GRV_STORE_U64, "uint64", 8)                  \
    X(GRV_STORE_F16, "float16", 2)                 \
    X(GRV_STORE_F32, "float32", 4)                 \
    X(GRV_STORE_F64, "float64", 8)                 \
    X(GRV_STORE_BF16, "bfloat16", 2)               \
    X(GRV_STORE_C64, "complex64", 8)               \
    X(GRV_STORE_C128, "complex128", 16)            \
    X(GRV_STORE_RAW, "raw_bytes", 0)               \
    X(GRV_STORE_BYTES, "null_terminated_bytes", 0) \
    X(GRV_STORE_UCS4, "fixed_length_utf32", 0)

/** Type of an array's elements, in memory and in the file. */
typedef enum grv_store_type {
#define GRV_STORE_TYPE_ENUM(name, text, bytes) name,
    GRV_STORE_TYPE_LIST(GRV_STORE_TYPE_ENUM)
#undef GRV_STORE_TYPE_ENUM
} grv_store_type;

/** Zarr's name of a type, such as "float32". A constant. */
GRV_API const char *grv_store_type_name(grv_store_type type);
/** Bytes of one element; 0 for the types of variable size, whose arrays tell it in grv_array_desc.item_bytes. */
GRV_API int64_t grv_store_type_bytes(grv_store_type type);

/** When what was written is forced to the disk. Atomic publication holds under each of them. */
typedef enum grv_store_sync {
    GRV_STORE_SYNC_NONE,   /**< never: the system decides */
    GRV_STORE_SYNC_COMMIT, /**< by grv_store_commit and grv_store_close */
    GRV_STORE_SYNC_EACH    /**< each object before it is published, and its folder after */
} grv_store_sync;

/** How a store is opened. */
typedef struct grv_store_params {
    bool writable; /**< writing is allowed; the folder is made if it is absent. Default false */
    grv_store_sync sync; /**< durability of writes. Default GRV_STORE_SYNC_NONE */
    int n_threads; /**< threads that one read or write uses; for writes 1 inside a parallel region. Default 1 */
    int n_io; /**< threads beside those that may wait for the back end in a read; -1 (default): as suits it, 0 for files */
    int64_t index_cache_bytes; /**< most memory of cached shard indices. Default 64 MiB */
    int64_t
        max_chunk_bytes; /**< larger decoded chunks (inner chunks), and larger deflated entries of a zip archive, are refused. Default 2^31 - 1 */
    int http_retries; /**< how often a request is repeated that failed for a reason that may pass: no connection, a broken or stalled answer, status 408, 429 or 5xx. Default 4 */
    double
        http_timeout_s; /**< longest silence of a server (less than 1000 bytes/s) before a request counts as failed; no repetition starts later than this after the first try. Default 30 */
    int zarr_format; /**< version (3 or 2) of groups that are made where no group above tells. Default 3 */
} grv_store_params;

/** The defaults above. */
GRV_API grv_store_params grv_store_params_default(void);

/** What reads of a store have done since it was opened. */
typedef struct grv_store_counters {
    int64_t bytes_read;     /**< from the back end, shard indices included, metadata not */
    int64_t bytes_decoded;  /**< produced by decoding chunks */
    int64_t objects_opened; /**< stored objects opened for reading */
    int64_t read_calls;     /**< range reads issued to the back end */
    int64_t bytes_written;  /**< published as stored objects */
    int64_t requests;       /**< sent to a server, repetitions included; 0 for stores in files */
    int64_t retries;        /**< repetitions among them */
} grv_store_counters;

/** An opened store. */
typedef struct grv_store grv_store;

/** Opens the store at a location. Copied; what it names is the root group, or any group or array below it:
 * - the path of a folder;
 * - the path of a zip archive (its name ends in ".zip", or it starts like one), or ARCHIVE.zip/PATH for a folder in it.
 *   Read only. Where the archive holds one folder at its top and the metadata lie in there, that folder is the root;
 * - "http://..." or "https://...". Read only, and without lists: children of groups come from consolidated metadata or from
 *   knowing their names. Nothing is asked of the server yet. Certificates are always verified, by the system's list or by
 *   the file that the environment variable CURL_CA_BUNDLE names at this time. An object that is replaced while it is read is an error.
 * @param params  NULL for the defaults
 * @param store  on success; close with grv_store_close. Not collective
 * @errors GRV_E_NOT_FOUND if the folder is absent and params do not say writable, GRV_E_UNSUPPORTED if params say writable
 *   for a location that can only be read, GRV_E_FORMAT for a damaged archive, GRV_E_NOMEM */
GRV_API grv_status grv_store_open(const char *location, const grv_store_params *params,
                                  grv_store **store) GRV_MUST_CHECK;

/** Forces everything written through this store to the disk, whatever the policy (GRV_STORE_SYNC_NONE: does nothing).
 * Not collective. @errors GRV_E_IO */
GRV_API grv_status grv_store_commit(grv_store *store) GRV_MUST_CHECK;

/** Closes the store; its arrays must have been closed before. NULL is allowed. Not collective.
 * A failed commit is not reported: call grv_store_commit before where it matters. */
GRV_API void grv_store_close(grv_store **store);

/** The counters now. Thread-safe. Not collective. */
GRV_API grv_store_counters grv_store_counters_get(const grv_store *store);

/** What is found under a path. */
typedef enum grv_node_kind {
    GRV_NODE_NONE,
    GRV_NODE_GROUP,
    GRV_NODE_ARRAY,
    GRV_NODE_UNREADABLE /**< in lists only: metadata that are broken or not supported; grv_store_node tells why */
} grv_node_kind;

/** Kind of the node at a path.
 * @param path  names joined by '/', relative to the store; "" is the store's own node
 * @param kind  GRV_NODE_NONE if there is none. Not collective
 * @errors GRV_E_FORMAT for broken metadata, GRV_E_UNSUPPORTED for another Zarr version than 2 and 3 */
GRV_API grv_status grv_store_node(grv_store *store, const char *path,
                                  grv_node_kind *kind) GRV_MUST_CHECK;

/** One child of a group. */
typedef struct grv_store_child {
    char *name; /**< last part of its path */
    grv_node_kind kind;
} grv_store_child;

/** The children of a group, sorted by name; folders without metadata are left out.
 * @param children  [*n], owned by the caller: free with grv_store_children_free. Not collective
 * @errors as grv_store_node, GRV_E_NOT_FOUND if there is no group at the path */
GRV_API grv_status grv_store_list(grv_store *store, const char *path, grv_store_child **children,
                                  int64_t *n) GRV_MUST_CHECK;

/** Frees what grv_store_list gave. Not collective. */
GRV_API void grv_store_children_free(grv_store_child *children, int64_t n);

/** Makes a group, and the groups above it that are absent: of the version of the nearest group above, else
 * of grv_store_params.zarr_format. Not collective.
 * @param attributes  a JSON object as text, or NULL for none
 * @errors GRV_E_EXISTS if a node is there, GRV_E_FORMAT if the attributes are no JSON object, GRV_E_ARG for a bad name */
GRV_API grv_status grv_group_create(grv_store *store, const char *path,
                                    const char *attributes) GRV_MUST_CHECK;

/** Attributes of the group or array at a path as JSON text, "{}" if there are none. Not collective.
 * @param attributes  owned by the caller, free with grv_free */
GRV_API grv_status grv_attributes_get(grv_store *store, const char *path,
                                      char **attributes) GRV_MUST_CHECK;

/** Replaces the attributes of the node at a path; all other metadata is kept, consolidated copies above are dropped.
 * One writer at a time. Not collective.
 * @param attributes  a JSON object as text */
GRV_API grv_status grv_attributes_set(grv_store *store, const char *path,
                                      const char *attributes) GRV_MUST_CHECK;

/** Copies all metadata below a group into one document of the group (version 2: `.zmetadata`), for readers that cannot list, such
 * as those through HTTP. It is dropped when a group, an array or attributes below are written through this library.
 * One writer at a time. Not collective.
 * @errors GRV_E_NOT_FOUND if there is no group at the path, GRV_E_FORMAT if a node below cannot be read */
GRV_API grv_status grv_store_consolidate(grv_store *store, const char *path) GRV_MUST_CHECK;

/** Publishes a small object of the caller's own, such as a log beside an array's chunks. Zarr readers do not see objects
 * below an array. Not collective.
 * @param key  names joined by '/', relative to the store
 * @errors GRV_E_ARG for a bad key, GRV_E_IO */
GRV_API grv_status grv_store_put(grv_store *store, const char *key, const void *data,
                                 int64_t n_bytes) GRV_MUST_CHECK;

/** Reads an object whole. Not collective.
 * @param data  NUL-terminated one past *n_bytes, owned by the caller, free with grv_free; NULL if the key is absent
 * @errors GRV_E_FORMAT if it is larger than max_bytes */
GRV_API grv_status grv_store_get(grv_store *store, const char *key, int64_t max_bytes, char **data,
                                 int64_t *n_bytes) GRV_MUST_CHECK;

/** Removes an object; an absent key is no error. Not collective. */
GRV_API grv_status grv_store_remove(grv_store *store, const char *key) GRV_MUST_CHECK;

/** Compressors of grv_array_desc. */
typedef enum grv_compressor {
    GRV_COMPRESSOR_NONE,
    GRV_COMPRESSOR_ZSTD,
    GRV_COMPRESSOR_BLOSC_LZ4,  /**< Blosc with byte shuffle and LZ4: fast, for fields */
    GRV_COMPRESSOR_BLOSC_ZSTD, /**< Blosc with byte shuffle and Zstandard: smaller */
    GRV_COMPRESSOR_GZIP
} grv_compressor;

/** Description of an array: given to grv_array_create, and handed out by grv_array_get_desc. Start from
 * grv_array_desc_default. Pointers are copied by grv_array_create; those of grv_array_get_desc are the array's. */
typedef struct grv_array_desc {
    grv_store_type type;
    int64_t
        item_bytes; /**< bytes of an element. To be given for types of variable size only; after opening: of any type */
    int zarr_format;                   /**< 3 (default) or 2 */
    int rank;                          /**< 0 (a scalar) to GRV_STORE_MAX_RANK */
    int64_t shape[GRV_STORE_MAX_RANK]; /**< elements along each axis, slowest first; may be 0 */
    int64_t chunk_shape
        [GRV_STORE_MAX_RANK]; /**< of a stored object (chunk or shard); need not divide the shape */
    bool sharded;             /**< stored objects are shards of inner chunks */
    int64_t inner_shape
        [GRV_STORE_MAX_RANK]; /**< of an inner chunk, divides chunk_shape; only if sharded */
    const char *dimension_names[GRV_STORE_MAX_RANK]; /**< NULL: no name */
    uint64_t
        fill; /**< bit pattern of the value of what was never written, in the low bytes. Default 0 */
    const void *
        fill_bytes; /**< [item_bytes] the same for elements of more than 8 bytes; NULL: `fill`, then zeros */
    grv_compressor
        compressor; /**< of the (inner) chunks. Default GRV_COMPRESSOR_ZSTD; unused after opening */
    int level;      /**< of the compressor. Default 1; unused after opening */
    bool checksum;  /**< CRC-32C after each (inner) chunk; shard indices always have one */
    bool big_endian; /**< byte order in the file */
    bool keys_v2;    /**< chunk keys "0.1" rather than "c/0/1"; always so in version 2 */
    char
        key_separator; /**< '.' or '/' between the numbers of a chunk key; 0: '.' for keys_v2, else '/' */
    const char *
        codecs; /**< a Zarr `codecs` list as JSON text, used instead of the seven fields from `sharded`
                                    on that speak of coding; NULL: made from them. After opening: what the file says, that of version 2 in the words of version 3 */
    const char *
        attributes; /**< JSON object as text, or NULL. After opening: NULL, see grv_attributes_get */
} grv_array_desc;

/** The defaults: float32, rank 0, Zstandard level 1, fill 0. */
GRV_API grv_array_desc grv_array_desc_default(void);

/** An opened array. */
typedef struct grv_array grv_array;

/** Makes an array (and the groups above it that are absent, of the same version) and opens it. A tree is of one version:
 * an array of another version than a group above it is refused. Not collective.
 * @param array  NULL to create only; close with grv_array_close before the store
 * @errors GRV_E_EXISTS if a node is there, GRV_E_ARG or GRV_E_UNSUPPORTED for a description that cannot be */
GRV_API grv_status grv_array_create(grv_store *store, const char *path, const grv_array_desc *desc,
                                    grv_array **array) GRV_MUST_CHECK;

/** Opens the array at a path. Not collective.
 * @errors GRV_E_NOT_FOUND, GRV_E_FORMAT for broken metadata, GRV_E_UNSUPPORTED naming what is not supported */
GRV_API grv_status grv_array_open(grv_store *store, const char *path,
                                  grv_array **array) GRV_MUST_CHECK;

/** Closes an array. NULL is allowed. Not collective. */
GRV_API void grv_array_close(grv_array **array);

/** What the array is. Borrowed until the array is closed. Not collective. */
GRV_API const grv_array_desc *grv_array_get_desc(const grv_array *array);

/** Reads a region into the caller's memory. Only the stored objects that it touches are opened; of a shard, only the
 * index (cached, checked against size and time of the file) and the inner chunks that it touches are read.
 * What was never written reads as the fill value. After an error `out` is partly written. Thread-safe. Not collective.
 * @param start, count  [rank] first element and number of elements along each axis, inside the shape; counts may be 0
 * @param out  elements of the array's type in the machine's byte order
 * @param strides  [rank] distance between neighbours along each axis of `out`, in elements; NULL: dense, last axis fastest
 * @errors GRV_E_ARG, GRV_E_IO, GRV_E_FORMAT naming array, chunk and byte offset, GRV_E_NOMEM */
GRV_API grv_status grv_array_read(grv_array *array, const int64_t *start, const int64_t *count,
                                  void *out, const int64_t *strides) GRV_MUST_CHECK;

/** Writes a region from the caller's memory; arguments as grv_array_read. A stored object that the region covers only
 * in part is read, changed and published again; other writers of it wait meanwhile. A covered shard is
 * built in memory from inner chunks that are encoded in parallel. Chunks of nothing but the fill value are not
 * stored. After an error each object is as it was or as it was to be. Thread-safe. Not collective. */
GRV_API grv_status grv_array_write(grv_array *array, const int64_t *start, const int64_t *count,
                                   const void *in, const int64_t *strides) GRV_MUST_CHECK;

/** Is the stored object (chunk or shard) present that holds an element? Not collective.
 * @param element  [rank] its index */
GRV_API grv_status grv_array_has_object(grv_array *array, const int64_t *element,
                                        bool *present) GRV_MUST_CHECK;

/** Number of stored objects present and their bytes, by walking what is stored below it. Not collective. */
GRV_API grv_status grv_array_stored(grv_array *array, int64_t *n_objects,
                                    int64_t *n_bytes) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
