/* Reader of safetensors files. The header is not trusted: every number in it is checked against the file before use.
 * As in the reference reader, data must follow each other without holes or overlap and end with the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/safetensors.h"

static const int64_t max_header_bytes = 100000000; /* as the reference reader */
enum { LENGTH_BYTES = 8 };

struct grv_safetensors {
    int fd;
    char *path;
    int64_t file_bytes, header_bytes;
    grvi_json *header;
    int64_t n;
    grv_safetensors_tensor *tensors; /* [n] by name */
};

static grv_status read_at(const grv_safetensors *file, int64_t offset, int64_t bytes, void *data)
{
    int64_t done = 0;
    while (done < bytes) {
        const int64_t at = offset + done;
        const ssize_t k = pread(file->fd, (char *)data + done,
                                (size_t)grvi_min_i64(bytes - done, (int64_t)1 << 30), (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k >= 0, GRV_E_IO, "read %s at byte %lld: %s", file->path, (long long)at,
                  strerror(errno));
        GRV_CHECK(k > 0, GRV_E_FORMAT, "%s ends at byte %lld, %lld more expected", file->path,
                  (long long)at, (long long)(bytes - done));
        done += k;
    }
    return GRV_OK;
}

/* JSON's members as they are written, before the parser folds equal names into one. */
typedef struct key_text {
    int64_t offset, n; /* in the header, without quotes */
} key_text;

typedef struct key_scan {
    key_text *keys; /* of the outer object, [n_keys] */
    int64_t n_keys, capacity;
    int64_t n_members; /* on all levels */
} key_scan;

/* The parser took the text, but it also takes what is not quite JSON. */
static grv_status scan_keys(const char *text, int64_t n, key_scan *scan)
{
    int depth = 0;
    key_text last = {0};
    for (int64_t i = 0; i < n; i++) {
        if (text[i] == '"') {
            last.offset = ++i;
            while (i < n && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
            last.n = grvi_min_i64(i, n) - last.offset;
        } else if (text[i] == ':') {
            scan->n_members++;
            if (depth != 1) continue;
            if (scan->n_keys == scan->capacity) {
                GRV_TRY(GRVI_REALLOC(&scan->keys, 2 * scan->capacity + 16));
                scan->capacity = 2 * scan->capacity + 16;
            }
            scan->keys[scan->n_keys++] = last;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            depth--;
        }
    }
    return GRV_OK;
}

static grv_status count_member(void *argument, const char *key, grvi_json *value)
{
    (void)key;
    ++*(int64_t *)argument;
    return grvi_json_for_each(value, count_member, argument);
}

/* a name and where it is, to find equal ones */
typedef struct named_offset {
    const char *text;
    int64_t n, offset;
} named_offset;

static int by_text(const void *a, const void *b)
{
    const named_offset *const x = a, *const y = b;
    const int order = memcmp(x->text, y->text, (size_t)grvi_min_i64(x->n, y->n));
    if (order != 0) return order;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n)
                        : (x->offset > y->offset) - (x->offset < y->offset);
}

static grv_status report_duplicate(const grv_safetensors *file, const char *text,
                                   const key_scan *scan)
{
    named_offset *names = NULL, twice = {0};
    GRV_TRY(GRVI_ALLOC(&names, scan->n_keys));
    for (int64_t i = 0; i < scan->n_keys; i++)
        names[i] = (named_offset){.text = text + scan->keys[i].offset,
                                  .n = scan->keys[i].n,
                                  .offset = scan->keys[i].offset};
    qsort(names, (size_t)scan->n_keys, sizeof *names, by_text);
    for (int64_t i = 1; i < scan->n_keys && twice.text == NULL; i++)
        if (names[i].n == names[i - 1].n &&
            memcmp(names[i].text, names[i - 1].text, (size_t)names[i].n) == 0)
            twice = names[i];
    grv_free(names);
    GRV_CHECK(twice.text == NULL, GRV_E_FORMAT, "%s, byte %lld: '%.*s' is in the header twice",
              file->path, (long long)(LENGTH_BYTES + twice.offset), (int)grvi_min_i64(twice.n, 200),
              twice.text);
    GRV_FAIL(GRV_E_FORMAT, "%s: the header repeats a name, or has objects inside of lists",
             file->path);
}

static grv_status check_unique_names(const grv_safetensors *file, const char *text)
{
    key_scan scan = {0};
    int64_t n_kept = 0;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(scan_keys(text, file->header_bytes, &scan));
    GRV_TRY_GOTO(grvi_json_for_each(file->header, count_member, &n_kept));
    if (n_kept != scan.n_members) status = report_duplicate(file, text, &scan);
done:
    grv_free(scan.keys);
    return status;
}

static grv_status read_header(grv_safetensors *file)
{
    unsigned char length[LENGTH_BYTES];
    uint64_t header_bytes = 0;
    char *text = NULL;
    grv_status status = GRV_OK;
    GRV_TRY(read_at(file, 0, LENGTH_BYTES, length));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) header_bytes = header_bytes << 8 | length[i];
    GRV_CHECK(
        header_bytes <= (uint64_t)grvi_min_i64(max_header_bytes, file->file_bytes - LENGTH_BYTES),
        GRV_E_FORMAT,
        "%s, byte 0: header of at most %lld bytes expected, %llu found: no safetensors file, or a "
        "truncated one",
        file->path, (long long)grvi_min_i64(max_header_bytes, file->file_bytes - LENGTH_BYTES),
        (unsigned long long)header_bytes);
    file->header_bytes = (int64_t)header_bytes;
    GRV_TRY(GRVI_ALLOC(&text, file->header_bytes + 1));
    text[file->header_bytes] = '\0';
    GRV_TRY_GOTO(read_at(file, LENGTH_BYTES, file->header_bytes, text));
    GRV_CHECK_GOTO(text[0] == '{', GRV_E_FORMAT, "%s, byte 8: '{' expected", file->path);
    GRV_CHECK_GOTO(strstr(text, "\\u0000") == NULL, GRV_E_FORMAT,
                   "%s, byte %lld: a name or text with a zero character", file->path,
                   (long long)(LENGTH_BYTES + (strstr(text, "\\u0000") - text)));
    GRV_TRY_GOTO(grvi_json_parse(text, file->header_bytes, file->path, &file->header));
    GRV_TRY_GOTO(check_unique_names(file, text));
done:
    grv_free(text);
    return status;
}

static grv_status read_dtype(const grv_safetensors *file, const grvi_json *entry,
                             grv_safetensors_tensor *tensor)
{
    const char *const name = grvi_json_as_string(grvi_json_get(entry, "dtype"));
    GRV_CHECK(name != NULL, GRV_E_FORMAT, "%s: tensor '%s' has no dtype", file->path, tensor->name);
    for (int d = 0; d <= GRV_SAFETENSORS_F64; d++) {
        tensor->dtype = (grv_safetensors_dtype)d;
        if (strcmp(name, grv_safetensors_dtype_name(tensor->dtype)) == 0) return GRV_OK;
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, "%s: tensor '%s' has elements of type '%.40s'", file->path,
             tensor->name, name);
}

static grv_status read_shape(const grv_safetensors *file, const grvi_json *entry,
                             grv_safetensors_tensor *tensor)
{
    const grvi_json *const shape = grvi_json_get(entry, "shape");
    const int64_t n_dims = grvi_json_length(shape);
    GRV_CHECK(grvi_json_kind_of(shape) == GRVI_JSON_ARRAY, GRV_E_FORMAT,
              "%s: tensor '%s' has no shape", file->path, tensor->name);
    GRV_CHECK(n_dims <= GRV_SAFETENSORS_MAX_DIMS, GRV_E_UNSUPPORTED,
              "%s: tensor '%s': at most %d dimensions expected, %lld found", file->path,
              tensor->name, GRV_SAFETENSORS_MAX_DIMS, (long long)n_dims);
    tensor->n_dims = (int)n_dims;
    tensor->bytes = grv_safetensors_dtype_bytes(tensor->dtype);
    for (int d = 0; d < tensor->n_dims; d++)
        GRV_CHECK(grvi_json_as_i64(grvi_json_at(shape, d), &tensor->shape[d]) &&
                      tensor->shape[d] >= 0 &&
                      grvi_mul_i64(tensor->bytes, tensor->shape[d], &tensor->bytes),
                  GRV_E_FORMAT, "%s: tensor '%s': shape[%d] is no size that fits 64 bits",
                  file->path, tensor->name, d);
    return GRV_OK;
}

static grv_status read_offsets(const grv_safetensors *file, const grvi_json *entry,
                               grv_safetensors_tensor *tensor)
{
    const grvi_json *const offsets = grvi_json_get(entry, "data_offsets");
    const int64_t data_start = LENGTH_BYTES + file->header_bytes,
                  data_bytes = file->file_bytes - data_start;
    int64_t begin = 0, end = 0;
    GRV_CHECK(
        grvi_json_length(offsets) == 2 && grvi_json_as_i64(grvi_json_at(offsets, 0), &begin) &&
            grvi_json_as_i64(grvi_json_at(offsets, 1), &end),
        GRV_E_FORMAT, "%s: tensor '%s' has no data_offsets [begin, end]", file->path, tensor->name);
    GRV_CHECK(begin >= 0 && begin <= end && end <= data_bytes, GRV_E_FORMAT,
              "%s: tensor '%s' is at data bytes [%lld, %lld), %lld data bytes are in the file",
              file->path, tensor->name, (long long)begin, (long long)end, (long long)data_bytes);
    GRV_CHECK(end - begin == tensor->bytes, GRV_E_FORMAT,
              "%s: tensor '%s' at byte %lld: %lld bytes expected by its shape, %lld found",
              file->path, tensor->name, (long long)(data_start + begin), (long long)tensor->bytes,
              (long long)(end - begin));
    tensor->file_offset = data_start + begin;
    return GRV_OK;
}

static grv_status check_text(void *argument, const char *key, grvi_json *value)
{
    const grv_safetensors *const file = argument;
    GRV_CHECK(grvi_json_as_string(value) != NULL, GRV_E_FORMAT, "%s: metadata '%s' are no text",
              file->path, key);
    return GRV_OK;
}

static grv_status read_entry(void *argument, const char *key, grvi_json *value)
{
    grv_safetensors *const file = argument;
    if (strcmp(key, "__metadata__") == 0) {
        GRV_CHECK(grvi_json_kind_of(value) == GRVI_JSON_OBJECT, GRV_E_FORMAT,
                  "%s: __metadata__ is no object", file->path);
        return grvi_json_for_each(value, check_text, file);
    }
    GRV_CHECK(grvi_json_kind_of(value) == GRVI_JSON_OBJECT, GRV_E_FORMAT,
              "%s: tensor '%s' is no object", file->path, key);
    grv_safetensors_tensor *const tensor = &file->tensors[file->n];
    *tensor = (grv_safetensors_tensor){.name = key};
    GRV_TRY(read_dtype(file, value, tensor));
    GRV_TRY(read_shape(file, value, tensor));
    GRV_TRY(read_offsets(file, value, tensor));
    file->n++;
    return GRV_OK;
}

static int by_offset(const void *a, const void *b)
{
    const grv_safetensors_tensor *const x = a, *const y = b;
    if (x->file_offset != y->file_offset) return x->file_offset < y->file_offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const grv_safetensors_tensor *)a)->name,
                  ((const grv_safetensors_tensor *)b)->name);
}

static grv_status check_coverage(const grv_safetensors *file)
{
    int64_t next = LENGTH_BYTES + file->header_bytes;
    for (int64_t i = 0; i < file->n; i++) {
        const grv_safetensors_tensor *const tensor = &file->tensors[i];
        GRV_CHECK(tensor->file_offset == next, GRV_E_FORMAT,
                  "%s: tensor '%s' begins at byte %lld, %s byte %lld", file->path, tensor->name,
                  (long long)tensor->file_offset,
                  tensor->file_offset > next ? "behind a hole from" : "inside another that ends at",
                  (long long)next);
        next += tensor->bytes;
    }
    GRV_CHECK(next == file->file_bytes, GRV_E_FORMAT, "%s: %lld bytes expected, %lld found",
              file->path, (long long)next, (long long)file->file_bytes);
    return GRV_OK;
}

static grv_status read_tensors(grv_safetensors *file)
{
    int64_t n_members = 0;
    GRV_TRY(grvi_json_for_each(file->header, count_member,
                               &n_members)); /* at least the number of tensors */
    GRV_TRY(GRVI_ALLOC(&file->tensors, n_members));
    GRV_TRY(grvi_json_for_each(file->header, read_entry, file));
    qsort(file->tensors, (size_t)file->n, sizeof *file->tensors, by_offset);
    GRV_TRY(check_coverage(file));
    qsort(file->tensors, (size_t)file->n, sizeof *file->tensors, by_name);
    return GRV_OK;
}

static grv_status open_file(grv_safetensors *file, const char *path)
{
    struct stat info;
    GRV_TRY(grvi_strdup(path, &file->path));
    file->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0)
        GRV_FAIL(errno == ENOENT ? GRV_E_NOT_FOUND : GRV_E_IO, "open %s: %s", path,
                 strerror(errno));
    GRV_CHECK(fstat(file->fd, &info) == 0 && S_ISREG(info.st_mode), GRV_E_IO,
              "%s is not a regular file", path);
    file->file_bytes = info.st_size;
    GRV_TRY(read_header(file));
    GRV_TRY(read_tensors(file));
    return GRV_OK;
}

grv_status grv_safetensors_open(const char *path, grv_safetensors **file)
{
    GRV_TRY(GRVI_CALLOC(file, 1));
    (*file)->fd = -1;
    const grv_status status = open_file(*file, path);
    if (status != GRV_OK) grv_safetensors_close(file);
    return status;
}

void grv_safetensors_close(grv_safetensors **file)
{
    if (file == NULL || *file == NULL) return;
    if ((*file)->fd >= 0) (void)close((*file)->fd);
    grvi_json_free((*file)->header);
    grv_free((*file)->tensors);
    grv_free((*file)->path);
    grv_free(*file);
    *file = NULL;
}

int64_t grv_safetensors_count(const grv_safetensors *file)
{
    return file->n;
}

const grv_safetensors_tensor *grv_safetensors_get(const grv_safetensors *file, int64_t i)
{
    GRV_ASSERT(i >= 0 && i < file->n);
    return &file->tensors[i];
}

const grv_safetensors_tensor *grv_safetensors_find(const grv_safetensors *file, const char *name)
{
    const grv_safetensors_tensor key = {.name = name};
    return bsearch(&key, file->tensors, (size_t)file->n, sizeof key, by_name);
}

const char *grv_safetensors_metadata(const grv_safetensors *file, const char *key)
{
    return grvi_json_as_string(grvi_json_get(grvi_json_get(file->header, "__metadata__"), key));
}

grv_status grv_safetensors_read(const grv_safetensors *file, const grv_safetensors_tensor *tensor,
                                int64_t offset, int64_t bytes, void *data)
{
    GRV_CHECK(
        offset >= 0 && bytes >= 0 && offset <= tensor->bytes && bytes <= tensor->bytes - offset,
        GRV_E_ARG, "%s: tensor '%s' has %lld bytes, %lld from byte %lld asked for", file->path,
        tensor->name, (long long)tensor->bytes, (long long)bytes, (long long)offset);
    GRV_TRY(read_at(file, tensor->file_offset + offset, bytes, data));
    return GRV_OK;
}
