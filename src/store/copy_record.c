/* What an unfinished copy leaves in its target: the record that says what is being made and how far it is, and files that a killed
 * writer left aside. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/copy_impl.h"
#include "store/store_type.h"

static const int64_t max_record_bytes = (int64_t)64 << 20;

static void write_lengths(grvi_json_writer *w, const char *key, int rank, const int64_t *lengths)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < rank; i++) grvi_json_i64(w, lengths[i]);
    grvi_json_end_array(w);
}

static void write_text(grvi_json_writer *w, const char *key, const char *text)
{
    grvi_json_key(w, key);
    grvi_json_string(w, text);
}

/* What is to be the same when a copy goes on: where it is from, and the array as it will be read. */
static grv_status write_description(grvi_json_writer *w, const grvi_array_copy *c,
                                    const grv_array *array)
{
    const char *const source = c->copier->params->source_name;
    const grv_array_desc *const d = &array->metadata.desc;
    write_text(w, "source", source != NULL ? source : "");
    grvi_json_key(w, "zarr_format");
    grvi_json_i64(w, d->zarr_format);
    write_text(w, "type", grv_store_type_name(d->type));
    write_lengths(w, "shape", d->rank, d->shape);
    write_lengths(w, d->sharded ? "shard" : "chunk", d->rank, d->chunk_shape);
    if (d->sharded) write_lengths(w, "chunk", d->rank, d->inner_shape);
    grvi_json_key(w, "fill");
    GRV_TRY(grvi_fill_to_json(w, (grvi_item){d->type, d->item_bytes}, grvi_fill_of(d), 3));
    grvi_json_key(w, "codecs");
    grvi_json_raw(w, d->codecs);
    grvi_json_key(w, "attributes");
    grvi_json_raw(w, c->attributes);
    return GRV_OK;
}

grv_status grvi_copy_put_record(grvi_copier *c, const char *path, const grvi_text *members)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    grvi_join_key(&key, path, GRVI_COPY_RECORD);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(grv_store_put(c->target, key.data, members->data, members->n));
done:
    grvi_text_fini(&key);
    return status;
}

grv_status grvi_copy_remove_record(grvi_copier *c, const char *path)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    grvi_join_key(&key, path, GRVI_COPY_RECORD);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(grv_store_remove(c->target, key.data));
done:
    grvi_text_fini(&key);
    return status;
}

/* The record at a path; NULL if there is none. */
grv_status grvi_copy_load_record(grvi_copier *c, const char *path, grvi_json **record)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    char *data = NULL;
    int64_t n = 0;
    *record = NULL;
    grvi_join_key(&key, path, GRVI_COPY_RECORD);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(grv_store_get(c->target, key.data, max_record_bytes, &data, &n));
    if (data != NULL) GRV_TRY_GOTO(grvi_json_parse(data, n, key.data, record));
done:
    grv_free(data);
    grvi_text_fini(&key);
    return status;
}

/* The description, the block and what is done of it. After what it tells is safe. */
grv_status grvi_copy_put_progress(grvi_array_copy *c)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    GRV_TRY_GOTO(write_description(&w, c, c->to));
    write_lengths(&w, "step", c->desc.rank, c->block);
    grvi_json_key(&w, "steps_done");
    grvi_json_i64(&w, c->n_done);
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grv_store_commit(c->copier->target));
    GRV_TRY_GOTO(grvi_copy_put_record(c->copier, c->path, &text));
    c->recorded_s = grv_clock_seconds();
done:
    grvi_text_fini(&text);
    return status;
}

typedef struct record_comparison {
    const grvi_json *found;
    const char *path;
} record_comparison;

static grv_status compare_member(void *argument, const char *key, grvi_json *wanted)
{
    const record_comparison *const c = argument;
    grv_status status = GRV_OK;
    grvi_text want = {0}, have = {0};
    grvi_json_print(wanted, &want);
    grvi_json_print(grvi_json_get(c->found, key), &have);
    GRV_TRY_GOTO(grvi_text_status(&want));
    GRV_TRY_GOTO(grvi_text_status(&have));
    GRV_CHECK_GOTO(strcmp(want.data, have.data) == 0, GRV_E_EXISTS,
                   "'%s' is of another copy: its %s is %.200s, this copy's is %.200s; remove "
                   "it, or copy to another place",
                   c->path, key, have.data, want.data);
done:
    grvi_text_fini(&want);
    grvi_text_fini(&have);
    return status;
}

grv_status grvi_copy_describe(const grvi_array_copy *c, const grv_array *other,
                              grvi_json **description)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    *description = NULL;
    grvi_json_begin_object(&w);
    GRV_TRY_GOTO(write_description(&w, c, other != NULL ? other : c->to));
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grvi_json_parse(text.data, text.n, "description", description));
done:
    grvi_text_fini(&text);
    return status;
}

grv_status grvi_copy_compare_record(const grvi_array_copy *c, const grvi_json *found)
{
    grvi_json *wanted = NULL;
    record_comparison comparison = {found, grvi_array_name(c->to)};
    GRV_TRY(grvi_copy_describe(c, NULL, &wanted));
    const grv_status status = grvi_json_for_each(wanted, compare_member, &comparison);
    grvi_json_free(wanted);
    return status;
}

/* ---- what killed writers left aside ---- */

static grv_status collect_partial(void *argument, const char *name, bool is_prefix)
{
    grvi_text *const keys = argument;
    if (is_prefix || strcmp(name, GRVI_COPY_RECORD) == 0) return GRV_OK;
    grvi_text_append_n(keys, name, (int64_t)strlen(name) + 1);
    return grvi_text_status(keys);
}

grv_status grvi_copy_has_leftovers(grvi_copier *c, const char *prefix, bool *has)
{
    grvi_kv *const kv = c->target->kv;
    grvi_text names = {0};
    *has = false;
    if (kv->class->list_partial == NULL) return GRV_OK;
    const grv_status status = kv->class->list_partial(kv, prefix, collect_partial, &names);
    *has = names.n > 0;
    grvi_text_fini(&names);
    return status;
}

/* What a killed call left aside in one folder. */
grv_status grvi_copy_clean_folder(grvi_copier *c, const char *prefix)
{
    grv_status status = GRV_OK;
    grvi_text names = {0}, key = {0};
    grvi_kv *const kv = c->target->kv;
    if (kv->class->list_partial == NULL) return GRV_OK;
    GRV_TRY_GOTO(kv->class->list_partial(kv, prefix, collect_partial, &names));
    for (int64_t at = 0; at < names.n; at += (int64_t)strlen(names.data + at) + 1) {
        key.n = 0;
        grvi_join_key(&key, prefix, names.data + at);
        GRV_TRY_GOTO(grvi_text_status(&key));
        GRV_TRY_GOTO(kv->class->remove(kv, key.data));
    }
done:
    grvi_text_fini(&key);
    grvi_text_fini(&names);
    return status;
}

typedef struct folder_walk {
    grvi_copier *copier;
    const char *prefix;
} folder_walk;

static grv_status clean_tree(void *argument, const char *name, bool is_prefix)
{
    const folder_walk *const walk = argument;
    grv_status status = GRV_OK;
    grvi_text prefix = {0};
    if (!is_prefix) return GRV_OK;
    grvi_join_key(&prefix, walk->prefix, name);
    folder_walk below = {walk->copier, grvi_text_get(&prefix)};
    GRV_TRY_GOTO(grvi_text_status(&prefix));
    GRV_TRY_GOTO(grvi_copy_clean_folder(walk->copier, below.prefix));
    GRV_TRY_GOTO(walk->copier->target->kv->class->list(walk->copier->target->kv, below.prefix,
                                                       clean_tree, &below));
done:
    grvi_text_fini(&prefix);
    return status;
}

/* A killed call may have left files aside anywhere among the chunks. */
grv_status grvi_copy_clean_array(grvi_array_copy *c)
{
    folder_walk walk = {c->copier, c->path};
    GRV_TRY(grvi_copy_clean_folder(c->copier, c->path));
    return c->copier->target->kv->class->list(c->copier->target->kv, c->path, clean_tree, &walk);
}
