/* The head of a .npy file (numpy.lib.format): magic, version, length, and a Python dictionary of three keys in any order:
 *     \x93NUMPY 01 00 76 00 {'descr': '<f4', 'fortran_order': False, 'shape': (64, 64), }      \n */
#include "store/npy.h"

#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "grove/core.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, MOST_WORD = 64 };

/* What is left of the dictionary's text, and whose it is. */
typedef struct head {
    const char *at, *end;
    const char *what;
} head;

static void skip_blanks(head *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

static bool take(head *h, char c)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != c) return false;
    h->at++;
    return true;
}

static grv_status take_word(head *h, char word[MOST_WORD])
{
    skip_blanks(h);
    const char quote = h->at < h->end ? *h->at : '\0';
    int n = 0;
    GRV_CHECK(quote == '\'' || quote == '"', GRV_E_FORMAT,
              "%s: a word in quotes expected in the head of the .npy file", h->what);
    for (h->at++; h->at < h->end && *h->at != quote && n < MOST_WORD - 1; h->at++)
        word[n++] = *h->at;
    word[n] = '\0';
    GRV_CHECK(h->at < h->end && *h->at == quote, GRV_E_FORMAT,
              "%s: the head of the .npy file has a word that does not end", h->what);
    h->at++;
    return GRV_OK;
}

static grv_status take_type(head *h, grvi_npy *npy)
{
    char word[MOST_WORD];
    skip_blanks(h);
    GRV_CHECK(h->at == h->end || *h->at != '[', GRV_E_UNSUPPORTED,
              "%s: numbers expected, records found", h->what);
    GRV_TRY(take_word(h, word));
    npy->type = strcmp(word, "<f8") == 0 ? GRV_STORE_F64 : GRV_STORE_F32;
    GRV_CHECK(npy->type == GRV_STORE_F64 || strcmp(word, "<f4") == 0, GRV_E_UNSUPPORTED,
              "%s: float32 or float64 ('<f4', '<f8') expected, '%s' found; in Python: "
              "a.astype('float32')",
              h->what, word);
    return GRV_OK;
}

static grv_status take_order(head *h)
{
    skip_blanks(h);
    if (h->end - h->at >= 5 && memcmp(h->at, "False", 5) == 0) {
        h->at += 5;
        return GRV_OK;
    }
    GRV_CHECK(h->end - h->at >= 4 && memcmp(h->at, "True", 4) == 0, GRV_E_FORMAT,
              "%s: fortran_order: True or False expected", h->what);
    GRV_FAIL(GRV_E_UNSUPPORTED,
             "%s: the last axis must be the fastest (C order), the first one is; in Python: "
             "numpy.ascontiguousarray(a)",
             h->what);
}

static grv_status take_shape(head *h, grvi_npy *npy)
{
    GRV_CHECK(take(h, '('), GRV_E_FORMAT,
              "%s: a shape such as (3, 4) expected in the head of the .npy file", h->what);
    npy->rank = 0;
    npy->n = 1;
    while (!take(h, ')')) {
        int64_t length = 0;
        const char *const begin = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            GRV_CHECK(grvi_mul_i64(length, 10, &length) &&
                          !__builtin_add_overflow(length, *h->at - '0', &length),
                      GRV_E_FORMAT, "%s: a length in the shape is too large", h->what);
        GRV_CHECK(
            h->at > begin && npy->rank < GRVI_NPY_MAX_RANK && grvi_mul_i64(npy->n, length, &npy->n),
            GRV_E_FORMAT, "%s: a shape of at most %d lengths expected in the head of the .npy file",
            h->what, GRVI_NPY_MAX_RANK);
        npy->shape[npy->rank++] = length;
        if (take(h, ',')) continue;
        GRV_CHECK(take(h, ')'), GRV_E_FORMAT,
                  "%s: the shape in the head of the .npy file does not end", h->what);
        break;
    }
    return GRV_OK;
}

static grv_status read_dictionary(head *h, grvi_npy *npy)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false};
    char word[MOST_WORD];
    GRV_CHECK(take(h, '{'), GRV_E_FORMAT, "%s: the head of the .npy file is no dictionary",
              h->what);
    while (!take(h, '}')) {
        int key = 0;
        GRV_TRY(take_word(h, word));
        while (key < 3 && strcmp(word, keys[key]) != 0) key++;
        GRV_CHECK(
            key < 3 && !seen[key] && take(h, ':'), GRV_E_FORMAT,
            "%s: descr, fortran_order and shape expected in the head of the .npy file, '%s' found",
            h->what, word);
        seen[key] = true;
        GRV_TRY(key == 0 ? take_type(h, npy) : key == 1 ? take_order(h) : take_shape(h, npy));
        if (take(h, ',')) continue;
        GRV_CHECK(take(h, '}'), GRV_E_FORMAT, "%s: the head of the .npy file does not end",
                  h->what);
        break;
    }
    GRV_CHECK(seen[0] && seen[1] && seen[2], GRV_E_FORMAT,
              "%s: the head of the .npy file lacks descr, fortran_order or shape", h->what);
    skip_blanks(h);
    GRV_CHECK(h->at == h->end, GRV_E_FORMAT, "%s: the head of the .npy file goes on behind its end",
              h->what);
    return GRV_OK;
}

grv_status grvi_npy_parse(const char *bytes, int64_t n_bytes, const char *what, grvi_npy *npy)
{
    const uint8_t *const b = (const uint8_t *)bytes;
    int64_t n_data = 0;
    *npy = (grvi_npy){.rank = 0};
    GRV_CHECK(n_bytes >= MAGIC_BYTES + 4 && memcmp(bytes, magic, MAGIC_BYTES) == 0, GRV_E_FORMAT,
              "%s: a .npy file expected, other bytes found", what);
    const int version = b[6];
    GRV_CHECK(version >= 1 && version <= 3, GRV_E_UNSUPPORTED,
              "%s: version 1 to 3 of the .npy format expected, %d found", what, version);
    const int64_t head_at = version == 1 ? 10 : 12;
    GRV_CHECK(n_bytes >= head_at, GRV_E_FORMAT, "%s: the .npy file ends in its head", what);
    const int64_t n_head =
        b[8] | b[9] << 8 | (version == 1 ? 0 : (int64_t)b[10] << 16 | (int64_t)b[11] << 24);
    GRV_CHECK(n_head <= n_bytes - head_at, GRV_E_FORMAT, "%s: the .npy file ends in its head",
              what);
    head h = {bytes + head_at, bytes + head_at + n_head, what};
    GRV_TRY(read_dictionary(&h, npy));
    npy->data_at = head_at + n_head;
    const int64_t size = npy->type == GRV_STORE_F64 ? 8 : 4;
    GRV_CHECK(grvi_mul_i64(npy->n, size, &n_data) && n_data == n_bytes - npy->data_at, GRV_E_FORMAT,
              "%s: %lld elements of %lld bytes expected behind the head, %lld bytes found", what,
              (long long)npy->n, (long long)size, (long long)(n_bytes - npy->data_at));
    return GRV_OK;
}

/* ---- files ---- */

static void append_shape(grvi_text *text, int rank, const int64_t *shape)
{
    grvi_text_append(text, "(");
    for (int i = 0; i < rank; i++)
        grvi_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)shape[i]);
    grvi_text_append(text, ")");
}

static grv_status check_shape(const grvi_npy *npy, int rank, const int64_t *shape, const char *what)
{
    bool is_same = npy->rank <= rank;
    for (int i = 0; i < rank && is_same; i++)
        is_same = shape[i] == (i < npy->rank ? npy->shape[i] : 1);
    if (is_same) return GRV_OK;
    grvi_text wanted = {0}, found = {0};
    append_shape(&wanted, rank, shape);
    append_shape(&found, npy->rank, npy->shape);
    const grv_status status =
        grvi_fail(GRV_E_SHAPE, __FILE__, __LINE__, __func__,
                  "%s: shape %s expected (the axes of the campaign, then the channels), %s found",
                  what, grvi_text_get(&wanted), grvi_text_get(&found));
    grvi_text_fini(&wanted);
    grvi_text_fini(&found);
    return status;
}

static void convert(int64_t n, const char *from, grv_store_type from_type, void *to,
                    grv_store_type to_type)
{
    const size_t size = from_type == GRV_STORE_F64 ? 8 : 4;
    if (from_type == to_type) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float narrow = 0;
        double wide = 0;
        if (from_type == GRV_STORE_F64) {
            memcpy(&wide, from + i * 8, sizeof wide);
            ((float *)to)[i] = (float)wide;
        } else {
            memcpy(&narrow, from + i * 4, sizeof narrow);
            ((double *)to)[i] = (double)narrow;
        }
    }
}

grv_status grvi_array_take(const char *what, const grvi_npy *found, const void *data, int rank,
                           const int64_t *shape, grv_store_type type, void *out)
{
    int64_t n = 1;
    GRV_TRY(check_shape(found, rank, shape, what));
    for (int i = 0; i < rank; i++) n *= shape[i]; /* that many elements are in memory already */
    convert(n, data, found->type, out, type);
    return GRV_OK;
}

static grv_status read_npy(const char *path, int rank, const int64_t *shape, grv_store_type type,
                           void *out)
{
    char *bytes = NULL;
    int64_t n_bytes = 0;
    grvi_npy npy;
    GRV_TRY(grvi_fs_read(path, INT64_MAX / 2, &bytes, &n_bytes));
    grv_status status = grvi_npy_parse(bytes, n_bytes, grvi_fs_base_name(path), &npy);
    if (status == GRV_OK)
        status = grvi_array_take(grvi_fs_base_name(path), &npy, bytes + npy.data_at, rank, shape,
                                 type, out);
    grv_free(bytes);
    return status;
}

static grv_status read_raw(const char *path, int rank, const int64_t *shape, grv_store_type type,
                           void *out)
{
    char *bytes = NULL;
    int64_t n_bytes = 0, n = 1;
    grv_status status = GRV_OK;
    for (int i = 0; i < rank; i++) n *= shape[i]; /* that many elements are in memory already */
    GRV_TRY(grvi_fs_read(path, INT64_MAX / 2, &bytes, &n_bytes));
    GRV_CHECK_GOTO(n_bytes == 4 * n, GRV_E_SHAPE,
                   "%s: %lld float32 values of 4 bytes expected, %lld bytes found",
                   grvi_fs_base_name(path), (long long)n, (long long)n_bytes);
    convert(n, bytes, GRV_STORE_F32, out, type);
done:
    grv_free(bytes);
    return status;
}

grv_status grvi_array_file_read(const char *base, int rank, const int64_t *shape,
                                grv_store_type type, void *out)
{
    grvi_text path = {0};
    grvi_text_printf(&path, "%s.npy", base);
    grv_status status = grvi_text_status(&path);
    if (status == GRV_OK && grvi_fs_exists(path.data)) {
        status = read_npy(path.data, rank, shape, type, out);
    } else if (status == GRV_OK) {
        memcpy(path.data + path.n - 4, ".raw", 4);
        status = grvi_fs_exists(path.data)
                     ? read_raw(path.data, rank, shape, type, out)
                     : grvi_fail(GRV_E_NOT_FOUND, __FILE__, __LINE__, __func__,
                                 "a file %s.npy (or %s.raw, float32) expected",
                                 grvi_fs_base_name(base), grvi_fs_base_name(base));
    }
    grvi_text_fini(&path);
    return status;
}
