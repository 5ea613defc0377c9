/* Key-value interface of the store: a key is names joined by '/', a value is an immutable object of bytes. Internal.
 * A back end is one file that fills a grvi_kv_class: folders, zip archives, HTTP servers; S3 fits behind the same calls.
 * An opened object is a snapshot: after a writer replaced the key, reads through it still give the old bytes, or fail and
 * say so, so that a shard's index and its chunks always belong together. All calls are thread-safe. */
#ifndef GRVI_STORE_KV_H
#define GRVI_STORE_KV_H

#include <stdatomic.h>

#include "core/check.h"
#include "grove/store.h"

/* An object opened for range reads; lives in the caller's storage. */
typedef struct grvi_object {
    int64_t n_bytes;
    uint64_t identity[3]; /* changes when the key is published anew */
    int64_t handle;       /* the back end's, like `state` */
    void *state;
} grvi_object;

/* Held by the writer of an object; lives in the caller's storage. */
typedef struct grvi_lock {
    int handle; /* the back end's; -1: nothing is held */
} grvi_lock;
/* n_bytes > 0 from offset on, as far as the object goes; offset == -n_bytes: the last n_bytes bytes. */
typedef struct grvi_byte_range {
    int64_t offset, n_bytes;
} grvi_byte_range;

typedef struct grvi_kv grvi_kv;

/* Called with the name of each child of a prefix, and whether further names may follow below it. */
typedef grv_status grvi_kv_visit(void *argument, const char *name, bool is_prefix);

/* A back end that only reads leaves put, remove and commit NULL; one that cannot list fails with GRV_E_UNSUPPORTED. */
typedef struct grvi_kv_class {
    const char *name; /* "a folder", in messages */
    /* What suits reading from it, where the caller does not say: threads that wait at a time beside those that decode, bytes
     * that are read in vain rather than asking twice, and bytes asked for at a time. 0: as for local files */
    int n_io;
    int64_t gap_bytes, run_bytes;
    /* *found = false and GRV_OK if the key is absent */
    grv_status (*open_object)(grvi_kv *kv, const char *key, grvi_object *object, bool *found);
    /* The same, and the bytes `ahead`, which the caller reads next, come with the answer. NULL where opening costs no round trip */
    grv_status (*open_ahead)(grvi_kv *kv, const char *key, grvi_byte_range ahead,
                             grvi_object *object, bool *found);
    /* exactly n bytes from offset, or an error that says how many there were */
    grv_status (*read_object)(grvi_kv *kv, const grvi_object *object, const char *key,
                              int64_t offset, int64_t n, void *out);
    /* This range will be read soon: may begin to fetch it, does not wait. NULL: nothing can be done */
    void (*will_read)(grvi_kv *kv, const grvi_object *object, int64_t offset, int64_t n);
    /* The whole object for reading, shared with other processes that map it; outlives its closing. NULL: read it instead. Where there is none: both NULL */
    const void *(*map_object)(grvi_kv *kv, const grvi_object *object);
    void (*unmap_object)(grvi_kv *kv, const void *data, int64_t n_bytes);
    void (*close_object)(grvi_kv *kv, grvi_object *object);
    /* atomic publication */
    grv_status (*put)(grvi_kv *kv, const char *key, const void *data, int64_t n);
    /* an absent key is no error */
    grv_status (*remove)(grvi_kv *kv, const char *key);
    /* children of a prefix in any order, but not those whose name starts with a dot; an absent prefix has none */
    grv_status (*list)(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit, void *argument);
    /* what was put is on the disk afterwards */
    grv_status (*commit)(grvi_kv *kv);
    void (*destroy)(grvi_kv *kv);
    /* Waits until no other thread or process holds the lock of this number (an object's, in an array's grid) at a prefix (the
     * array), and takes it. One at a time for each thread. It ends with the process, however that ends. */
    grv_status (*lock)(grvi_kv *kv, const char *prefix, int64_t number, grvi_lock *lock);
    /* of one that is not held: does nothing */
    void (*unlock)(grvi_kv *kv, grvi_lock *lock);
    /* names directly below a prefix that `list` hides: what writers put aside, and left if they were killed. NULL: there are none */
    grv_status (*list_partial)(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit,
                               void *argument);
} grvi_kv_class;

struct grvi_kv {
    const grvi_kv_class *class;
    _Atomic int64_t requests, retries; /* of a back end that asks a server */
};

/* The back end that a location asks for: http:// or https://, a zip archive (or a folder in one), else a folder.
 * GRV_E_UNSUPPORTED if it only reads and params say writable. */
grv_status grvi_kv_create(const char *location, const grv_store_params *params,
                          grvi_kv **kv) GRV_MUST_CHECK;
/* Back end on a folder; made if `create`, else GRV_E_NOT_FOUND when absent. */
grv_status grvi_kv_fs_create(const char *root, bool create, grv_store_sync sync,
                             grvi_kv **kv) GRV_MUST_CHECK;
/* Back end on a zip archive, read-only; `inner` is a folder in it, "" for the whole. Deflated entries of more than
 * max_inflated_bytes are refused. */
grv_status grvi_kv_zip_create(const char *path, const char *inner, int64_t max_inflated_bytes,
                              grvi_kv **kv) GRV_MUST_CHECK;
/* Back end on an HTTP server, read-only, without lists. Asks nothing yet. */
grv_status grvi_kv_http_create(const char *url, const grv_store_params *params,
                               grvi_kv **kv) GRV_MUST_CHECK;
void grvi_kv_destroy(grvi_kv **kv);

/* open_ahead where the back end has it, else open_object. {0, most} for a caller that reads the whole. */
grv_status grvi_kv_open(grvi_kv *kv, const char *key, grvi_byte_range ahead, grvi_object *object,
                        bool *found) GRV_MUST_CHECK;

/* Keys come from users and files: no empty, "." or ".." names, no leading or trailing slash, no backslash or control character. */
grv_status grvi_kv_check_key(const char *key) GRV_MUST_CHECK;

/* The whole value, NUL-terminated one past its end; *data = NULL if the key is absent. Free with grv_free. */
grv_status grvi_kv_get(grvi_kv *kv, const char *key, int64_t max_bytes, char **data,
                       int64_t *n) GRV_MUST_CHECK;
/* Exactly n bytes of a file from offset; `what` names it in messages. */
grv_status grvi_kv_pread(int fd, const char *what, int64_t offset, int64_t n,
                         void *out) GRV_MUST_CHECK;
grv_status grvi_kv_exists(grvi_kv *kv, const char *key, bool *exists) GRV_MUST_CHECK;

#endif
