/* Arrays: opening, making, and the arithmetic of the grid of stored objects. Reading and writing are in array_read.c and array_write.c. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_impl.h"

grv_array_desc grv_array_desc_default(void)
{
    return (grv_array_desc){
        .type = GRV_STORE_F32, .zarr_format = 3, .compressor = GRV_COMPRESSOR_ZSTD, .level = 1};
}

static grv_status note_number(void *has_number, const char *name, bool is_prefix)
{
    if (is_prefix && name[strspn(name, "0123456789")] == '\0') *(bool *)has_number = true;
    return GRV_OK;
}

/* Version 2 had nested chunks ("0/0") before it had a member that says so: they are there if the first chunk is, or if anything
 * below the array is a number that has something below it. */
static grv_status find_separator(grv_array *array)
{
    static const int64_t first[GRVI_MAX_RANK] = {0};
    char *const separator = &array->metadata.desc.key_separator;
    grvi_kv *const kv = array->store->kv;
    char key[GRVI_KEY_BYTES];
    bool exists = false, is_nested = false;
    GRV_TRY(grvi_array_key(array, first, key));
    GRV_TRY(grvi_kv_exists(kv, key, &exists));
    if (exists) return GRV_OK;
    *separator = '/';
    GRV_TRY(grvi_array_key(array, first, key));
    GRV_TRY(grvi_kv_exists(kv, key, &is_nested));
    if (!is_nested) {
        const grv_status status = kv->class->list(kv, array->path, note_number, &is_nested);
        /* a back end that cannot list */
        if (status != GRV_OK && status != GRV_E_UNSUPPORTED) return status;
    }
    *separator = is_nested ? '/' : '.';
    return GRV_OK;
}

/* Resolves a document into a new array object. */
static grv_status array_from_document(grv_store *store, const char *path, const grvi_json *document,
                                      grv_array **out)
{
    grv_status status = GRV_OK;
    grv_array *array = NULL;
    int64_t n_objects = 0;
    GRV_TRY(GRVI_CALLOC(&array, 1));
    array->store = store;
    array->id = atomic_fetch_add(&store->next_array_id, 1U);
    GRV_TRY_GOTO(grvi_strdup(path, &array->path));
    GRV_TRY_GOTO(grvi_metadata_parse_array(document, grvi_array_name(array),
                                           store->params.max_chunk_bytes, &array->metadata));
    const grv_array_desc *const desc = &array->metadata.desc;
    for (int i = 0; i < desc->rank; i++)
        array->grid[i] = grvi_ceil_div(desc->shape[i], desc->chunk_shape[i]);
    GRV_CHECK_GOTO(grvi_count_elements(desc->rank, array->grid, &n_objects), GRV_E_UNSUPPORTED,
                   "'%s': more than 2^63 chunks", grvi_array_name(array));
    if (array->metadata.has_no_separator && desc->zarr_format == 2 && desc->rank > 1)
        GRV_TRY_GOTO(find_separator(array));
    *out = array;
done:
    if (status != GRV_OK) grv_array_close(&array);
    return status;
}

/* What is to be stored for a description, and the array as the reader will understand it. */
static grv_status make_array(grv_store *store, const char *path, const grv_array_desc *desc,
                             grvi_node_text *node, grv_array **array)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json *document = NULL;
    GRV_TRY_GOTO(grvi_metadata_make_array(desc, &text));
    GRV_TRY_GOTO(grvi_node_text_make(GRV_NODE_ARRAY, &text, path, node));
    GRV_TRY_GOTO(grvi_node_text_read(node, path, &document));
    GRV_TRY_GOTO(array_from_document(store, path, document, array));
done:
    grvi_json_free(document);
    grvi_text_fini(&text);
    return status;
}

grv_status grvi_array_prepare(grv_store *store, const char *path, const grv_array_desc *desc,
                              grv_array **out)
{
    grvi_node_text node = {0};
    *out = NULL;
    const grv_status status = make_array(store, path, desc, &node, out);
    grvi_node_text_fini(&node);
    return status;
}

grv_status grv_array_create(grv_store *store, const char *path, const grv_array_desc *desc,
                            grv_array **out)
{
    grv_status status = GRV_OK;
    grvi_node_text node = {0};
    grv_array *array = NULL;
    if (out != NULL) *out = NULL;
    /* what is written is what the reader understands: the new document is resolved before it is published */
    GRV_TRY_GOTO(make_array(store, path, desc, &node, &array));
    GRV_TRY_GOTO(grvi_store_publish_node(store, path, &node));
    if (out != NULL) {
        *out = array;
        array = NULL;
    }
done:
    grv_array_close(&array);
    grvi_node_text_fini(&node);
    return status;
}

grv_status grv_array_open(grv_store *store, const char *path, grv_array **out)
{
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    *out = NULL;
    GRV_TRY(grvi_store_load(store, path, &document, &kind));
    GRV_CHECK(kind != GRV_NODE_NONE, GRV_E_NOT_FOUND,
              "no array '%s' (neither zarr.json nor .zarray)", path[0] != '\0' ? path : "/");
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(kind == GRV_NODE_ARRAY, GRV_E_ARG, "'%s' is a group, not an array",
                   path[0] != '\0' ? path : "/");
    GRV_TRY_GOTO(array_from_document(store, path, document, out));
done:
    grvi_json_free(document);
    return status;
}

void grv_array_close(grv_array **array)
{
    if (array == NULL || *array == NULL) return;
    grvi_metadata_fini(&(*array)->metadata);
    grv_free((*array)->path);
    grv_free(*array);
    *array = NULL;
}

const grv_array_desc *grv_array_get_desc(const grv_array *array)
{
    return &array->metadata.desc;
}

const char *grvi_array_name(const grv_array *array)
{
    return array->path[0] != '\0' ? array->path : "/";
}

grv_status grvi_array_key(const grv_array *array, const int64_t *position, char key[GRVI_KEY_BYTES])
{
    const grvi_metadata *const m = &array->metadata;
    const char *const slash = array->path[0] != '\0' ? "/" : "";
    const char *const scalar = m->desc.rank == 0 && m->desc.keys_v2 ? "0" : "";
    int n = snprintf(key, GRVI_KEY_BYTES, "%s%s%s%s", array->path, slash,
                     m->desc.keys_v2 ? "" : "c", scalar);
    for (int i = 0; i < m->desc.rank && n < GRVI_KEY_BYTES; i++) {
        const bool is_bare = i == 0 && m->desc.keys_v2;
        n += snprintf(key + n, (size_t)(GRVI_KEY_BYTES - n), is_bare ? "%.0s%lld" : "%.1s%lld",
                      &m->desc.key_separator, (long long)position[i]);
    }
    GRV_CHECK(n < GRVI_KEY_BYTES, GRV_E_ARG, "'%s': the key of a chunk is longer than %d bytes",
              array->path, GRVI_KEY_BYTES - 1);
    return GRV_OK;
}

int64_t grvi_array_object_number(const grv_array *array, const int64_t *position)
{
    int64_t number = 0;
    for (int i = 0; i < array->metadata.desc.rank; i++)
        number = number * array->grid[i] + position[i];
    return number;
}

grv_status grvi_array_check_region(const grv_array *array, const int64_t *start,
                                   const int64_t *count)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    for (int i = 0; i < desc->rank; i++)
        GRV_CHECK(start[i] >= 0 && count[i] >= 0 && start[i] <= desc->shape[i] &&
                      count[i] <= desc->shape[i] - start[i],
                  GRV_E_ARG, "'%s', axis %d: elements %lld to %lld asked for, there are %lld",
                  grvi_array_name(array), i, (long long)start[i],
                  (long long)start[i] + (long long)grvi_min_i64(count[i], GRVI_MAX_LENGTH),
                  (long long)desc->shape[i]);
    return GRV_OK;
}

void grvi_position_text(int rank, const int64_t *position, char *text, size_t n_text)
{
    size_t n = (size_t)snprintf(text, n_text, "(");
    for (int i = 0; i < rank && n < n_text; i++)
        n += (size_t)snprintf(text + n, n_text - n, i == 0 ? "%lld" : ",%lld",
                              (long long)position[i]);
    if (n < n_text) (void)snprintf(text + n, n_text - n, ")");
}

grv_status grvi_array_byte_strides(const grv_array *array, const int64_t *count,
                                   const int64_t *strides, int64_t *byte_strides)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    const int64_t item_bytes = desc->item_bytes;
    int64_t n_bytes = 0;
    GRV_CHECK(grvi_count_elements(desc->rank, count, &n_bytes) &&
                  grvi_mul_i64(n_bytes, item_bytes, &n_bytes),
              GRV_E_ARG, "'%s': the region has more than 2^63 bytes", grvi_array_name(array));
    if (n_bytes == 0) {
        /* nothing is moved; strides of an empty box could overflow */
        for (int i = 0; i < desc->rank; i++) byte_strides[i] = 0;
        return GRV_OK;
    }
    if (strides == NULL) {
        grvi_dense_strides(desc->rank, count, item_bytes, byte_strides);
        return GRV_OK;
    }
    for (int i = 0; i < desc->rank; i++)
        GRV_CHECK(grvi_mul_i64(strides[i], item_bytes, &byte_strides[i]), GRV_E_ARG,
                  "'%s': stride %d overflows", grvi_array_name(array), i);
    return GRV_OK;
}

void grvi_array_object_part(const grv_array *array, const int64_t *position, const int64_t *start,
                            const int64_t *count, const int64_t *byte_strides, grvi_box *box,
                            int64_t *offset)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    *offset = 0;
    for (int i = 0; i < desc->rank; i++) {
        const int64_t first = position[i] * desc->chunk_shape[i];
        const int64_t low = grvi_max_i64(first, start[i]),
                      high = grvi_min_i64(first + desc->chunk_shape[i], start[i] + count[i]);
        box->start[i] = low - first;
        box->count[i] = high - low;
        *offset += (low - start[i]) * byte_strides[i];
    }
}

static grv_status open_object(grv_array *array, const int64_t *position, grvi_object *object,
                              bool *found)
{
    char key[GRVI_KEY_BYTES];
    GRV_TRY(grvi_array_key(array, position, key));
    return array->store->kv->class->open_object(array->store->kv, key, object, found);
}

grv_status grv_array_has_object(grv_array *array, const int64_t *element, bool *present)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    int64_t position[GRVI_MAX_RANK] = {0};
    grvi_object object;
    for (int i = 0; i < desc->rank; i++) {
        GRV_CHECK(element[i] >= 0 && element[i] < desc->shape[i], GRV_E_ARG,
                  "'%s', axis %d: element %lld asked for, there are %lld", grvi_array_name(array),
                  i, (long long)element[i], (long long)desc->shape[i]);
        position[i] = element[i] / desc->chunk_shape[i];
    }
    GRV_TRY(open_object(array, position, &object, present));
    if (*present) array->store->kv->class->close_object(array->store->kv, &object);
    return GRV_OK;
}

/* Walks the keys below an array and counts the stored objects. */
typedef struct object_walk {
    const grv_array *array;
    const char *prefix;
    bool at_top; /* directly below the array's own key */
    int64_t *n_objects, *n_bytes;
} object_walk;

static grv_status count_object(void *argument, const char *name, bool is_prefix)
{
    const object_walk *const walk = argument;
    grvi_kv *const kv = walk->array->store->kv;
    grv_status status = GRV_OK;
    grvi_text key = {0};
    /* beside zarr.json, others may keep things of their own below an array */
    const bool is_ours =
        !walk->at_top ||
        (walk->array->metadata.desc.keys_v2 ? name[0] >= '0' && name[0] <= '9' : name[0] == 'c');
    if (!is_ours) return GRV_OK;
    grvi_text_printf(&key, walk->prefix[0] != '\0' ? "%s/%s" : "%s%s", walk->prefix, name);
    GRV_TRY_GOTO(grvi_text_status(&key));
    if (is_prefix) {
        object_walk below = {walk->array, key.data, false, walk->n_objects, walk->n_bytes};
        GRV_TRY_GOTO(kv->class->list(kv, key.data, count_object, &below));
    } else {
        grvi_object object;
        bool found = false;
        GRV_TRY_GOTO(kv->class->open_object(kv, key.data, &object, &found));
        if (!found) goto done;
        kv->class->close_object(kv, &object);
        *walk->n_objects += 1;
        *walk->n_bytes += object.n_bytes;
    }
done:
    grvi_text_fini(&key);
    return status;
}

grv_status grv_array_stored(grv_array *array, int64_t *n_objects, int64_t *n_bytes)
{
    object_walk walk = {array, array->path, true, n_objects, n_bytes};
    *n_objects = *n_bytes = 0;
    return array->store->kv->class->list(array->store->kv, array->path, count_object, &walk);
}
