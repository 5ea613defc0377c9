/* Writer of safetensors files. Tensors lie in the file by falling element size, then as declared, so that each is aligned;
 * the header is padded with blanks to 8 bytes. Written aside, renamed when complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/safetensors.h"

enum { LENGTH_BYTES = 8, ALIGNMENT = 8 };

typedef struct declared {
    char *name;
    grv_safetensors_tensor tensor; /* file_offset is set when the header is written */
    int64_t written;               /* bytes so far */
} declared;

typedef struct text_pair {
    char *key, *value;
} text_pair;

struct grv_safetensors_writer {
    char *path;
    grvi_text aside; /* path while it is written */
    int fd;          /* -1 before the first write and after publishing */
    bool published;
    int64_t n_tensors, n_texts;
    int64_t data_bytes; /* of all tensors */
    declared *tensors;  /* [n_tensors] */
    text_pair *texts;   /* [n_texts] */
};

grv_status grv_safetensors_writer_create(const char *path, grv_safetensors_writer **writer)
{
    GRV_TRY(GRVI_CALLOC(writer, 1));
    (*writer)->fd = -1;
    const grv_status status = grvi_strdup(path, &(*writer)->path);
    if (status != GRV_OK) grv_safetensors_writer_destroy(writer);
    return status;
}

static grv_status require_open_for_declarations(const grv_safetensors_writer *writer,
                                                const char *what)
{
    GRV_CHECK(writer->fd < 0 && !writer->published, GRV_E_ARG,
              "%s: '%s' is declared after the first write", writer->path, what);
    return GRV_OK;
}

grv_status grv_safetensors_writer_set_metadata(grv_safetensors_writer *writer, const char *key,
                                               const char *value)
{
    GRV_TRY(require_open_for_declarations(writer, key));
    for (int64_t i = 0; i < writer->n_texts; i++)
        GRV_CHECK(strcmp(writer->texts[i].key, key) != 0, GRV_E_ARG,
                  "%s: metadata '%s' are set twice", writer->path, key);
    GRV_TRY(GRVI_REALLOC(&writer->texts, writer->n_texts + 1));
    text_pair *const text = &writer->texts[writer->n_texts];
    GRV_TRY(grvi_strdup(key, &text->key));
    const grv_status status = grvi_strdup(value, &text->value);
    if (status == GRV_OK)
        writer->n_texts++;
    else
        grv_free(text->key);
    return status;
}

grv_status grv_safetensors_writer_declare(grv_safetensors_writer *writer, const char *name,
                                          grv_safetensors_dtype dtype, int n_dims,
                                          const int64_t *shape, int64_t *index)
{
    GRV_TRY(require_open_for_declarations(writer, name));
    GRV_CHECK(name[0] != '\0' && strcmp(name, "__metadata__") != 0, GRV_E_ARG,
              "%s: a tensor cannot be called '%s'", writer->path, name);
    GRV_CHECK(n_dims >= 0 && n_dims <= GRV_SAFETENSORS_MAX_DIMS, GRV_E_ARG,
              "%s: tensor '%s': 0 to %d dimensions expected, %d found", writer->path, name,
              GRV_SAFETENSORS_MAX_DIMS, n_dims);
    declared entry = {
        .tensor = {.dtype = dtype, .n_dims = n_dims, .bytes = grv_safetensors_dtype_bytes(dtype)}};
    for (int d = 0; d < n_dims; d++) {
        GRV_CHECK(shape[d] >= 0 && grvi_mul_i64(entry.tensor.bytes, shape[d], &entry.tensor.bytes),
                  GRV_E_ARG, "%s: tensor '%s': shape[%d] = %lld", writer->path, name, d,
                  (long long)shape[d]);
        entry.tensor.shape[d] = shape[d];
    }
    GRV_CHECK(entry.tensor.bytes <= INT64_MAX / 2 - writer->data_bytes, GRV_E_ARG,
              "%s: with tensor '%s' the file has too many bytes", writer->path, name);
    for (int64_t i = 0; i < writer->n_tensors; i++)
        GRV_CHECK(strcmp(writer->tensors[i].tensor.name, name) != 0, GRV_E_ARG,
                  "%s: tensor '%s' is declared twice", writer->path, name);
    GRV_TRY(GRVI_REALLOC(&writer->tensors, writer->n_tensors + 1));
    GRV_TRY(grvi_strdup(name, &entry.name));
    entry.tensor.name = entry.name;
    writer->tensors[writer->n_tensors] = entry;
    writer->data_bytes += entry.tensor.bytes;
    *index = writer->n_tensors++;
    return GRV_OK;
}

/* Offsets from the first data byte. */
static void place_tensors(grv_safetensors_writer *writer)
{
    int64_t next = 0;
    for (int64_t element_bytes = 8; element_bytes >= 1; element_bytes /= 2)
        for (int64_t i = 0; i < writer->n_tensors; i++) {
            grv_safetensors_tensor *const tensor = &writer->tensors[i].tensor;
            if (grv_safetensors_dtype_bytes(tensor->dtype) != element_bytes) continue;
            tensor->file_offset = next;
            next += tensor->bytes;
        }
}

static void print_tensor(grvi_json_writer *json, const grv_safetensors_tensor *tensor)
{
    grvi_json_key(json, tensor->name);
    grvi_json_begin_object(json);
    grvi_json_key(json, "dtype");
    grvi_json_string(json, grv_safetensors_dtype_name(tensor->dtype));
    grvi_json_key(json, "shape");
    grvi_json_begin_array(json);
    for (int d = 0; d < tensor->n_dims; d++) grvi_json_i64(json, tensor->shape[d]);
    grvi_json_end_array(json);
    grvi_json_key(json, "data_offsets");
    grvi_json_begin_array(json);
    grvi_json_i64(json, tensor->file_offset);
    grvi_json_i64(json, tensor->file_offset + tensor->bytes);
    grvi_json_end_array(json);
    grvi_json_end_object(json);
}

/* Length and header, as they are in the file. */
static grv_status print_header(const grv_safetensors_writer *writer, grvi_text *out)
{
    static const char blanks[] = "        ";
    grvi_text_append_n(out, blanks, LENGTH_BYTES); /* filled in below */
    grvi_json_writer json = {.out = out};
    grvi_json_begin_object(&json);
    if (writer->n_texts > 0) {
        grvi_json_key(&json, "__metadata__");
        grvi_json_begin_object(&json);
        for (int64_t i = 0; i < writer->n_texts; i++) {
            grvi_json_key(&json, writer->texts[i].key);
            grvi_json_string(&json, writer->texts[i].value);
        }
        grvi_json_end_object(&json);
    }
    for (int64_t i = 0; i < writer->n_tensors; i++) print_tensor(&json, &writer->tensors[i].tensor);
    grvi_json_end_object(&json);
    grvi_text_append_n(out, blanks, grvi_round_up(out->n, ALIGNMENT) - out->n);
    GRV_TRY(grvi_text_status(out));
    for (int i = 0; i < LENGTH_BYTES; i++)
        out->data[i] = (char)((uint64_t)(out->n - LENGTH_BYTES) >> (8 * i) & 0xFF);
    return GRV_OK;
}

static grv_status write_at(const grv_safetensors_writer *writer, int64_t offset, int64_t bytes,
                           const void *data)
{
    int64_t done = 0;
    while (done < bytes) {
        const size_t n = (size_t)grvi_min_i64(bytes - done, (int64_t)1 << 30);
        const ssize_t k = pwrite(writer->fd, (const char *)data + done, n, (off_t)(offset + done));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k > 0, GRV_E_IO, "write %s at byte %lld: %s", writer->path,
                  (long long)(offset + done), strerror(errno));
        done += k;
    }
    return GRV_OK;
}

static void discard_file(grv_safetensors_writer *writer)
{
    if (writer->fd < 0) return;
    (void)close(writer->fd);
    (void)unlink(writer->aside.data);
    writer->fd = -1;
}

/* Declarations end here. */
static grv_status begin_file(grv_safetensors_writer *writer)
{
    static _Atomic unsigned counter; /* unique per process and call, as in fs.c */
    grvi_text header = {0};
    grv_status status = GRV_OK;
    place_tensors(writer);
    GRV_TRY_GOTO(print_header(writer, &header));
    writer->aside.n = 0;
    grvi_text_printf(&writer->aside, "%s.partial-%ld-%u", writer->path, (long)getpid(),
                     atomic_fetch_add(&counter, 1U));
    GRV_TRY_GOTO(grvi_text_status(&writer->aside));
    writer->fd = open(writer->aside.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    GRV_CHECK_GOTO(writer->fd >= 0, GRV_E_IO, "create %s: %s", writer->aside.data, strerror(errno));
    for (int64_t i = 0; i < writer->n_tensors; i++)
        writer->tensors[i].tensor.file_offset += header.n;
    status = write_at(writer, 0, header.n, header.data);
done:
    grvi_text_fini(&header);
    if (status != GRV_OK) discard_file(writer);
    return status;
}

grv_status grv_safetensors_writer_write(grv_safetensors_writer *writer, int64_t index,
                                        int64_t offset, int64_t bytes, const void *data)
{
    GRV_CHECK(index >= 0 && index < writer->n_tensors && !writer->published, GRV_E_ARG,
              "%s: tensor %lld of %lld cannot be written", writer->path, (long long)index,
              (long long)writer->n_tensors);
    declared *const entry = &writer->tensors[index];
    GRV_CHECK(offset >= 0 && bytes >= 0 && offset <= entry->tensor.bytes &&
                  bytes <= entry->tensor.bytes - offset,
              GRV_E_ARG, "%s: tensor '%s' has %lld bytes, %lld from byte %lld were given",
              writer->path, entry->tensor.name, (long long)entry->tensor.bytes, (long long)bytes,
              (long long)offset);
    if (writer->fd < 0) GRV_TRY(begin_file(writer));
    GRV_TRY(write_at(writer, entry->tensor.file_offset + offset, bytes, data));
    entry->written += bytes;
    return GRV_OK;
}

grv_status grv_safetensors_writer_publish(grv_safetensors_writer *writer, bool durable)
{
    GRV_CHECK(!writer->published, GRV_E_ARG, "%s is published already", writer->path);
    for (int64_t i = 0; i < writer->n_tensors; i++) {
        const declared *const entry = &writer->tensors[i];
        GRV_CHECK(entry->written == entry->tensor.bytes, GRV_E_ARG,
                  "%s: tensor '%s': %lld bytes expected, %lld written", writer->path,
                  entry->tensor.name, (long long)entry->tensor.bytes, (long long)entry->written);
    }
    if (writer->fd < 0) GRV_TRY(begin_file(writer)); /* nothing but empty tensors */
    GRV_CHECK(!durable || fsync(writer->fd) == 0, GRV_E_IO, "fsync %s: %s", writer->path,
              strerror(errno));
    const int fd = writer->fd;
    writer->fd = -1;
    writer->published = true; /* or failed for good: either way nothing more can be written */
    grv_status status = GRV_OK;
    if (close(fd) != 0)
        status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "close %s: %s", writer->path,
                           strerror(errno));
    if (status == GRV_OK) status = grvi_fs_rename(writer->aside.data, writer->path);
    if (status != GRV_OK) (void)unlink(writer->aside.data);
    return status;
}

void grv_safetensors_writer_destroy(grv_safetensors_writer **writer)
{
    if (writer == NULL || *writer == NULL) return;
    grv_safetensors_writer *const w = *writer;
    discard_file(w);
    for (int64_t i = 0; i < w->n_texts; i++) {
        grv_free(w->texts[i].key);
        grv_free(w->texts[i].value);
    }
    for (int64_t i = 0; i < w->n_tensors; i++) grv_free(w->tensors[i].name);
    grv_free(w->texts);
    grv_free(w->tensors);
    grv_free(w->path);
    grvi_text_fini(&w->aside);
    grv_free(w);
    *writer = NULL;
}
