/* Checking a store: every document, name and chunk.
 *
 * Arrays are taken one after the other. The keys below an array are listed: what is no key of its grid is a problem, and the
 * others are decoded in parallel, whole, inner chunk by inner chunk, so that one broken chunk hides no other. Memory: for each
 * thread one decoded and one encoded chunk, and 8 bytes for each object of the array. Where the back end cannot list, all keys of the
 * grid are tried instead. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_tools_impl.h"

enum { MAX_KEPT = 1000 };

typedef struct checker {
    grv_store *store;
    const char *root;
    const grv_tool_hooks *hooks;
    grv_check_report *report;
    pthread_mutex_t lock; /* of the report */
    int64_t done, total;  /* bytes of elements of the arrays */
} checker;

/* ---- the report ---- */

/* Adds a problem; the message of the thread's last failure is the reason if none is given. */
static grv_status note_problem(checker *c, const char *node, const char *object, const char *reason)
{
    grv_check_report *const report = c->report;
    grv_status status = GRV_OK;
    (void)pthread_mutex_lock(&c->lock);
    report->n_problems++;
    if (report->n_kept < MAX_KEPT) {
        grv_store_problem problem = {0};
        GRV_TRY_GOTO(GRVI_REALLOC(&report->problems, report->n_kept + 1));
        status = grvi_strdup(node[0] != '\0' ? node : "/", &problem.node);
        if (status == GRV_OK) status = grvi_strdup(object, &problem.object);
        if (status == GRV_OK) status = grvi_strdup(reason, &problem.reason);
        report->problems[report->n_kept++] = problem;
    }
done:
    (void)pthread_mutex_unlock(&c->lock);
    return status;
}

void grv_check_report_fini(grv_check_report *report)
{
    if (report == NULL) return;
    for (int64_t i = 0; i < report->n_kept; i++) {
        grv_free(report->problems[i].node);
        grv_free(report->problems[i].object);
        grv_free(report->problems[i].reason);
    }
    grv_free(report->problems);
    *report = (grv_check_report){0};
}

static int compare_problems(const void *a, const void *b)
{
    const grv_store_problem *const p = a, *const q = b;
    const int by_node = strcmp(p->node, q->node), by_object = strcmp(p->object, q->object);
    return by_node != 0 ? by_node : by_object != 0 ? by_object : strcmp(p->reason, q->reason);
}

/* A failure of this status is about the store, not about the check. */
static bool is_problem(grv_status status)
{
    return status != GRV_OK && status != GRV_E_NOMEM && status != GRV_E_INTERRUPTED;
}

/* ---- names ---- */

/* The keys of one array: numbers of those in the grid, the others are noted. */
typedef struct key_list {
    checker *checker;
    const grv_array *array;
    const char *node;
    int64_t *numbers;
    int64_t n, capacity;
} key_list;

static grv_status add_number(key_list *list, int64_t number)
{
    if (list->n == list->capacity) {
        const int64_t more = grvi_max_i64(64, 2 * list->capacity);
        GRV_TRY(GRVI_REALLOC(&list->numbers, more));
        list->capacity = more;
    }
    list->numbers[list->n++] = number;
    return GRV_OK;
}

/* Position that a key below the array names: written as grvi_array_key would, and inside the grid. */
static bool parse_key(const grv_array *array, const char *key, int64_t *position)
{
    char again[GRVI_KEY_BYTES];
    const grv_array_desc *const desc = &array->metadata.desc;
    const char *p = key;
    if (!desc->keys_v2) p += *p == 'c' ? 1 : 0;
    for (int i = 0; i < desc->rank; i++) {
        if (i > 0 || !desc->keys_v2) p += *p == desc->key_separator ? 1 : 0;
        int64_t n = 0;
        for (; *p >= '0' && *p <= '9' && n < GRVI_MAX_LENGTH; p++) n = 10 * n + (*p - '0');
        position[i] = n;
        if (n >= array->grid[i]) return false;
    }
    if (grvi_array_key(array, position, again) != GRV_OK) return false;
    const size_t n_path = array->path[0] != '\0' ? strlen(array->path) + 1 : 0;
    return strcmp(again + n_path, key) == 0;
}

typedef struct key_walk {
    key_list *list;
    const char *below; /* prefix of the array, "" at its top */
} key_walk;

/* Is this name among those of chunks? Others may keep things of their own beside them. */
static bool is_chunk_name(const grv_array_desc *desc, const char *name)
{
    return desc->keys_v2 ? name[0] >= '0' && name[0] <= '9'
                         : strcmp(name, "c") == 0 || strncmp(name, "c.", 2) == 0;
}

static grv_status visit_partial(void *argument, const char *name, bool is_prefix)
{
    const key_walk *const walk = argument;
    grv_status status = GRV_OK;
    grvi_text key = {0};
    if (is_prefix) return GRV_OK;
    grvi_join_key(&key, walk->below, name);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(note_problem(walk->list->checker, walk->list->node, key.data,
                              strcmp(name, GRVI_COPY_RECORD) == 0
                                  ? "an unfinished copy: the same copy again goes on"
                                  : "left by a writer that was killed, or being written now"));
done:
    grvi_text_fini(&key);
    return status;
}

static grv_status list_below(key_list *list, const char *below);

static grv_status visit_name(void *argument, const char *name, bool is_prefix)
{
    const key_walk *const walk = argument;
    key_list *const list = walk->list;
    const grv_array *const array = list->array;
    grv_status status = GRV_OK;
    grvi_text key = {0};
    int64_t position[GRVI_MAX_RANK] = {0};
    if (walk->below[0] == '\0' && !is_chunk_name(&array->metadata.desc, name)) return GRV_OK;
    grvi_join_key(&key, walk->below, name);
    GRV_TRY_GOTO(grvi_text_status(&key));
    if (is_prefix)
        GRV_TRY_GOTO(list_below(list, key.data));
    else if (parse_key(array, key.data, position))
        GRV_TRY_GOTO(add_number(list, grvi_array_object_number(array, position)));
    else
        GRV_TRY_GOTO(note_problem(list->checker, list->node, key.data,
                                  "no key of a chunk inside the array's shape"));
done:
    grvi_text_fini(&key);
    return status;
}

/* Everything below a prefix of the array. */
static grv_status list_below(key_list *list, const char *below)
{
    grvi_kv *const kv = list->checker->store->kv;
    grv_status status = GRV_OK;
    grvi_text prefix = {0};
    key_walk walk = {list, below};
    grvi_join_key(&prefix, list->array != NULL ? list->array->path : list->node, below);
    GRV_TRY_GOTO(grvi_text_status(&prefix));
    if (kv->class->list_partial != NULL)
        GRV_TRY_GOTO(kv->class->list_partial(kv, grvi_text_get(&prefix), visit_partial, &walk));
    if (list->array != NULL)
        GRV_TRY_GOTO(kv->class->list(kv, grvi_text_get(&prefix), visit_name, &walk));
done:
    grvi_text_fini(&prefix);
    return status;
}

/* ---- objects ---- */

typedef struct object_job {
    checker *checker;
    grv_array *array;
    const char *node;
    const int64_t *numbers; /* NULL: all of the grid */
    int64_t first;
    _Atomic int64_t n_objects, n_bytes, n_decoded;
    grvi_first_error error; /* of the check itself */
} object_job;

/* One thread's working memory. */
typedef struct object_scratch {
    grvi_scratch *scratch;
    grvi_buffer elements;
} object_scratch;

/* Decodes a whole chunk. */
static grv_status decode(const grvi_chain *chain, object_scratch *s, const uint8_t *in, int64_t n)
{
    grvi_box box;
    int64_t strides[GRVI_MAX_RANK];
    const int64_t bytes = grvi_box_bytes(chain->rank, chain->shape, chain->item_bytes);
    for (int i = 0; i < chain->rank; i++) {
        box.start[i] = 0;
        box.count[i] = chain->shape[i];
    }
    grvi_dense_strides(chain->rank, chain->shape, chain->item_bytes, strides);
    GRV_TRY(grvi_buffer_reserve(&s->elements, bytes));
    return grvi_chain_decode(chain, s->scratch, 0, in, n, &box, s->elements.data, strides);
}

static grv_status read_part(object_job *job, const grvi_object *object, const char *key,
                            int64_t offset, int64_t n, object_scratch *s)
{
    grv_store *const store = job->checker->store;
    GRV_TRY(grvi_buffer_reserve(&s->scratch->encoded, n));
    GRV_TRY(
        store->kv->class->read_object(store->kv, object, key, offset, n, s->scratch->encoded.data));
    (void)atomic_fetch_add(&store->bytes_read, n);
    (void)atomic_fetch_add(&store->read_calls, 1);
    return GRV_OK;
}

static grv_status check_chunk(object_job *job, const grvi_object *object, const char *key,
                              object_scratch *s)
{
    const grvi_chain *const chain = job->array->metadata.chain;
    const int64_t most = chain->limit[chain->n_codecs];
    GRV_CHECK(object->n_bytes <= most, GRV_E_FORMAT, "at most %lld bytes expected, %lld found",
              (long long)most, (long long)object->n_bytes);
    GRV_TRY(read_part(job, object, key, 0, object->n_bytes, s));
    return decode(chain, s, s->scratch->encoded.data, object->n_bytes);
}

typedef struct numbered_entry {
    grvi_shard_entry entry;
    int64_t cell;
} numbered_entry;

static int compare_entries(const void *a, const void *b)
{
    const numbered_entry *const p = a, *const q = b;
    if (p->entry.offset != q->entry.offset) return p->entry.offset < q->entry.offset ? -1 : 1;
    return (p->cell > q->cell) - (p->cell < q->cell);
}

/* The entries that are not empty, by offset. */
static grv_status read_entries(object_job *job, const grvi_object *object, const char *key,
                               object_scratch *s, numbered_entry **out, int64_t *n)
{
    const grvi_sharding *const sharding = job->array->metadata.chain->sharding;
    grv_status status = GRV_OK;
    grvi_shard_entry *entries = NULL;
    int64_t offset = 0;
    *out = NULL;
    *n = 0;
    GRV_TRY(grvi_shard_index_place(sharding, object->n_bytes, &offset));
    GRV_TRY(read_part(job, object, key, offset, sharding->index_bytes, s));
    GRV_TRY_GOTO(GRVI_ALLOC(&entries, sharding->n_inner));
    GRV_TRY_GOTO(
        grvi_shard_index_decode(sharding, s->scratch->encoded.data, object->n_bytes, entries));
    GRV_TRY_GOTO(GRVI_ALLOC(out, sharding->n_inner));
    for (int64_t i = 0; i < sharding->n_inner; i++) {
        if (!grvi_shard_entry_is_empty(&entries[i]))
            (*out)[(*n)++] = (numbered_entry){entries[i], i};
    }
    if (*n > 1) qsort(*out, (size_t)*n, sizeof **out, compare_entries);
done:
    grv_free(entries);
    return status;
}

/* One inner chunk, and that it does not begin before the one before it ends. */
static grv_status check_cell(object_job *job, const grvi_object *object, const char *key,
                             object_scratch *s, const numbered_entry *e)
{
    const grvi_chain *const inner = job->array->metadata.chain->sharding->inner;
    const int64_t n = (int64_t)e->entry.n_bytes;
    GRV_CHECK(inner->sharding != NULL || n <= inner->limit[inner->n_codecs], GRV_E_FORMAT,
              "at most %lld bytes expected, %lld found", (long long)inner->limit[inner->n_codecs],
              (long long)n);
    GRV_TRY(read_part(job, object, key, (int64_t)e->entry.offset, n, s));
    return decode(inner, s, s->scratch->encoded.data, n);
}

static grv_status note_cell(object_job *job, const char *object, const numbered_entry *e,
                            const char *reason)
{
    const grvi_sharding *const sharding = job->array->metadata.chain->sharding;
    const int rank = job->array->metadata.desc.rank;
    int64_t cell[GRVI_MAX_RANK];
    char text[256];
    grv_status status = GRV_OK;
    grvi_text message = {0};
    grvi_grid_position(rank, sharding->grid, e->cell, cell);
    grvi_position_text(rank, cell, text, sizeof text);
    grvi_text_printf(&message, "inner chunk %s, %lld bytes at byte %lld: %s", text,
                     (long long)e->entry.n_bytes, (long long)e->entry.offset, reason);
    GRV_TRY_GOTO(grvi_text_status(&message));
    GRV_TRY_GOTO(note_problem(job->checker, job->node, object, message.data));
done:
    grvi_text_fini(&message);
    return status;
}

/* A shard inner chunk by inner chunk. Only failures of the check itself, and of the index, are returned. */
static grv_status check_shard(object_job *job, const grvi_object *object, const char *key,
                              const char *object_name, object_scratch *s)
{
    grv_status status = GRV_OK;
    numbered_entry *entries = NULL;
    int64_t n = 0;
    GRV_TRY(read_entries(job, object, key, s, &entries, &n));
    for (int64_t i = 0; i < n; i++) {
        const grvi_shard_entry *const before = i > 0 ? &entries[i - 1].entry : NULL;
        if (before != NULL && entries[i].entry.offset < before->offset + before->n_bytes)
            GRV_TRY_GOTO(note_cell(job, object_name, &entries[i], "overlaps another inner chunk"));
        status = check_cell(job, object, key, s, &entries[i]);
        if (is_problem(status))
            status = note_cell(job, object_name, &entries[i], grvi_reason(status));
        GRV_TRY_GOTO(status);
    }
done:
    grv_free(entries);
    return status;
}

static grv_status check_object(object_job *job, int64_t number, object_scratch *s)
{
    grv_array *const array = job->array;
    grv_store *const store = array->store;
    int64_t position[GRVI_MAX_RANK] = {0};
    char key[GRVI_KEY_BYTES];
    grvi_object object;
    bool found = false;
    grvi_grid_position(array->metadata.desc.rank, array->grid, number, position);
    GRV_TRY(grvi_array_key(array, position, key));
    const char *const name = key + (array->path[0] != '\0' ? strlen(array->path) + 1 : 0);
    grv_status status = grvi_open_whole(array, key, &object, &found);
    if (status == GRV_OK && found) {
        (void)atomic_fetch_add(&job->n_objects, 1);
        (void)atomic_fetch_add(&job->n_bytes, object.n_bytes);
        (void)atomic_fetch_add(&store->objects_opened, 1);
        status = grvi_chain_is_plain_shard(array->metadata.chain)
                     ? check_shard(job, &object, key, name, s)
                     : check_chunk(job, &object, key, s);
        store->kv->class->close_object(store->kv, &object);
    }
    if (is_problem(status)) return note_problem(job->checker, job->node, name, grvi_reason(status));
    return status;
}

static void check_objects(void *argument, int thread, int64_t begin, int64_t end)
{
    object_job *const job = argument;
    object_scratch s = {0};
    (void)thread;
    const grv_status status = grvi_scratch_take(&job->checker->store->scratches, &s.scratch);
    grvi_first_error_note(&job->error, begin, status);
    for (int64_t i = begin; i < end && status == GRV_OK && !grvi_first_error_is_set(&job->error);
         i++) {
        const int64_t at = job->first + i;
        grvi_first_error_note(&job->error, i,
                              check_object(job, job->numbers != NULL ? job->numbers[at] : at, &s));
    }
    if (s.scratch != NULL) {
        (void)atomic_fetch_add(&job->n_decoded, s.scratch->bytes_decoded);
        grvi_store_count_decoded(job->checker->store, s.scratch);
    }
    grvi_buffer_fini(&s.elements);
    grvi_scratch_give(s.scratch);
}

static grv_status check_all_objects(checker *c, grv_array *array, const char *node,
                                    const int64_t *numbers, int64_t n)
{
    enum { OBJECTS_PER_THREAD = 16 };
    object_job job = {.checker = c, .array = array, .node = node, .numbers = numbers};
    const int n_threads = (int)grvi_max_i64(1, c->store->params.n_threads);
    const int64_t bytes = grvi_array_bytes(array);
    for (; job.first < n; job.first += (int64_t)OBJECTS_PER_THREAD * n_threads) {
        const int64_t part = grvi_min_i64(n - job.first, (int64_t)OBJECTS_PER_THREAD * n_threads);
        grvi_first_error_init(&job.error);
        grv_parallel_for(n_threads, part, check_objects, &job);
        GRV_TRY(grvi_first_error_fini(&job.error));
        GRV_TRY(grvi_tool_report(
            c->hooks,
            grvi_add_bytes(c->done, (int64_t)((double)job.first / (double)n * (double)(bytes / 2))),
            c->total));
    }
    c->report->n_objects += job.n_objects;
    c->report->n_bytes += job.n_bytes;
    c->report->n_decoded_bytes += job.n_decoded;
    c->done = grvi_add_bytes(c->done, bytes);
    return GRV_OK;
}

/* ---- nodes ---- */

static grv_status check_array(checker *c, grv_array *array, const char *node)
{
    key_list list = {.checker = c, .array = array, .node = node};
    grv_status status = list_below(&list, "");
    int64_t n_grid = 1;
    for (int i = 0; i < array->metadata.desc.rank; i++) n_grid *= array->grid[i];
    if (status == GRV_OK)
        status = check_all_objects(c, array, node, list.numbers, list.n);
    else if (status == GRV_E_UNSUPPORTED)
        status = check_all_objects(c, array, node, NULL, n_grid);
    grv_free(list.numbers);
    return status;
}

static grv_status full_path(const checker *c, const char *path, grvi_text *out)
{
    grvi_join_key(out, c->root, path);
    return grvi_text_status(out);
}

static grv_status check_node(checker *c, const grvi_tree_node *node)
{
    grv_status status = GRV_OK;
    grvi_text path = {0};
    grv_node_kind kind = GRV_NODE_NONE;
    grv_array *array = NULL;
    GRV_TRY_GOTO(full_path(c, node->path, &path));
    const char *const at = grvi_text_get(&path);
    status = grv_store_node(c->store, at, &kind);
    if (status == GRV_OK && kind == GRV_NODE_ARRAY) status = grv_array_open(c->store, at, &array);
    if (is_problem(status)) {
        status = note_problem(c, at, "", grvi_reason(status));
        goto done;
    }
    GRV_TRY_GOTO(status);
    if (array != NULL) {
        c->report->n_arrays++;
        status = check_array(c, array, at);
    } else {
        key_list names = {.checker = c, .node = at};
        c->report->n_groups++;
        status = list_below(&names, "");
    }
    if (is_problem(status)) status = note_problem(c, at, "", grvi_reason(status));
done:
    grv_array_close(&array);
    grvi_text_fini(&path);
    return status;
}

/* Bytes of all elements, for the progress; arrays that cannot be opened are met again later. */
static void add_up(checker *c, const grvi_tree *tree)
{
    for (int64_t i = 0; i < tree->n; i++) {
        grvi_text path = {0};
        grv_array *array = NULL;
        if (tree->nodes[i].kind == GRV_NODE_ARRAY &&
            full_path(c, tree->nodes[i].path, &path) == GRV_OK &&
            grv_array_open(c->store, grvi_text_get(&path), &array) == GRV_OK)
            c->total = grvi_add_bytes(c->total, grvi_array_bytes(array));
        grv_array_close(&array);
        grvi_text_fini(&path);
    }
    grv_error_clear();
}

grv_status grv_store_check(grv_store *store, const char *path, const grv_tool_hooks *hooks,
                           grv_check_report *report)
{
    checker c = {.store = store, .root = path, .hooks = hooks, .report = report};
    grv_status status = GRV_OK;
    grvi_tree tree = {0};
    *report = (grv_check_report){0};
    (void)pthread_mutex_init(&c.lock, NULL);
    status = grvi_tree_list(store, path, &tree);
    if (status == GRV_E_FORMAT || status == GRV_E_UNSUPPORTED) {
        status = note_problem(&c, path, "", grvi_reason(status)); /* the node itself is broken */
        goto done;
    }
    GRV_TRY_GOTO(status);
    add_up(&c, &tree);
    for (int64_t i = 0; i < tree.n; i++) GRV_TRY_GOTO(check_node(&c, &tree.nodes[i]));
    if (report->n_kept > 1)
        qsort(report->problems, (size_t)report->n_kept, sizeof *report->problems, compare_problems);
done:
    (void)pthread_mutex_destroy(&c.lock);
    grvi_tree_fini(&tree);
    if (status != GRV_OK) grv_check_report_fini(report);
    return status;
}
