/* Words and values of legacy VTK files. */
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/byte_order.h"
#include "mesh/numbers.h"
#include "mesh/vtk_legacy.h"

grvi_span grvi_legacy_word(grvi_legacy *r)
{
    r->at = grvi_skip_blanks(r->at, r->end);
    grvi_span word = {r->at, 0};
    while (r->at < r->end && !grvi_is_blank(*r->at)) r->at++;
    word.n = r->at - word.at;
    return word;
}

void grvi_legacy_end_line(grvi_legacy *r)
{
    const char *const newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->at = newline == NULL ? r->end : newline + 1;
}

bool grvi_legacy_is(grvi_span word, const char *expected)
{
    return (int64_t)strlen(expected) == word.n &&
           strncasecmp(word.at, expected, (size_t)word.n) == 0;
}

grv_status grvi_legacy_count(grvi_legacy *r, const char *what, int64_t most, int64_t *value)
{
    const grvi_span word = grvi_legacy_word(r);
    const char *at = word.at;
    GRV_CHECK(grvi_parse_i64(&at, grvi_span_end(word), value) && at == grvi_span_end(word) &&
                  *value >= 0 && *value <= most,
              GRV_E_FORMAT, "%s: %s expected at byte %lld, '%.*s' found", r->path, what,
              grvi_legacy_byte(r, word.at), (int)grvi_min_i64(word.n, 24), word.at);
    return GRV_OK;
}

grv_status grvi_legacy_type_get(grvi_legacy *r, grvi_legacy_type *type)
{
    static const struct {
        const char *name;
        grvi_legacy_type type;
    } types[] = {{"float", {GRV_STORE_F32}},
                 {"double", {GRV_STORE_F64}},
                 {"int", {GRV_STORE_I32}},
                 {"vtkIdType", {GRV_STORE_I32}},
                 {"vtktypeint64", {GRV_STORE_I64}},
                 {"vtktypeuint64", {GRV_STORE_U64}},
                 {"unsigned_int", {GRV_STORE_U32}},
                 {"long", {GRV_STORE_I64}},
                 {"unsigned_long", {GRV_STORE_U64}},
                 {"short", {GRV_STORE_I16}},
                 {"unsigned_short", {GRV_STORE_U16}},
                 {"char", {GRV_STORE_I8}},
                 {"signed_char", {GRV_STORE_I8}},
                 {"unsigned_char", {GRV_STORE_U8}},
                 {"bit", {GRV_STORE_U8, GRVI_LEGACY_BITS}},
                 {"string", {GRV_STORE_U8, GRVI_LEGACY_STRINGS}}};
    const grvi_span word = grvi_legacy_word(r);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *type = types[i].type;
        if (grvi_legacy_is(word, types[i].name)) return GRV_OK;
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, "%s: type '%.*s' at byte %lld", r->path,
             (int)grvi_min_i64(word.n, 40), word.at, grvi_legacy_byte(r, word.at));
}

/* Bytes that n values take at least. */
static bool bytes_of(const grvi_legacy *r, grvi_legacy_type type, int64_t n, int64_t *n_bytes)
{
    if (type.form == GRVI_LEGACY_BITS && r->is_binary)
        *n_bytes = n / 8 + (n % 8 != 0);
    else if (type.form == GRVI_LEGACY_STRINGS)
        *n_bytes = n;
    else
        return grvi_mul_i64(n, r->is_binary ? grvi_mesh_item_bytes(type.type) : 2, n_bytes);
    return true;
}

grv_status grvi_legacy_room(const grvi_legacy *r, grvi_legacy_type type, int64_t n,
                            const char *what)
{
    int64_t n_bytes = 0;
    /* the last value of a text needs no blank behind it */
    GRV_CHECK(bytes_of(r, type, n, &n_bytes) && n_bytes <= r->end - r->at + 1, GRV_E_FORMAT,
              "%s: %lld values of %s announced before byte %lld, but %lld bytes follow", r->path,
              (long long)n, what, grvi_legacy_byte(r, r->at), (long long)(r->end - r->at));
    return GRV_OK;
}

static grv_status read_binary(grvi_legacy *r, grvi_legacy_type type, int64_t n, const char *what,
                              void *out)
{
    int64_t n_bytes = 0;
    GRV_CHECK(bytes_of(r, type, n, &n_bytes) && n_bytes <= r->end - r->at, GRV_E_FORMAT,
              "%s: %lld bytes of %s expected at byte %lld, %lld follow", r->path,
              (long long)n_bytes, what, grvi_legacy_byte(r, r->at), (long long)(r->end - r->at));
    if (type.form == GRVI_LEGACY_BITS) {
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = (uint8_t)((uint8_t)r->at[i / 8] >> (7 - i % 8) & 1);
    } else {
        memcpy(out, r->at, (size_t)n_bytes);
        grvi_swap_words(out, n, grvi_mesh_item_bytes(type.type));
    }
    r->at += n_bytes;
    return GRV_OK;
}

grv_status grvi_legacy_values(grvi_legacy *r, grvi_legacy_type type, int64_t n, const char *what,
                              void *out)
{
    if (r->is_binary) return read_binary(r, type, n, what, out);
    for (int64_t i = 0; i < n; i++) {
        const char *const word = r->at = grvi_skip_blanks(r->at, r->end);
        GRV_CHECK(grvi_parse_value(type.type, &r->at, r->end, out, i) &&
                      (r->at == r->end || grvi_is_blank(*r->at)),
                  GRV_E_FORMAT, "%s: value %lld of %lld of %s at byte %lld: '%.*s' is no %s",
                  r->path, (long long)i, (long long)n, what, grvi_legacy_byte(r, word),
                  (int)grvi_min_i64(r->end - word, 24), word, grv_store_type_name(type.type));
    }
    return GRV_OK;
}

grv_status grvi_legacy_integers(grvi_legacy *r, grvi_legacy_type type, int64_t n, const char *what,
                                int64_t *out)
{
    const int64_t item_bytes = grvi_mesh_item_bytes(type.type);
    GRV_CHECK(type.form == GRVI_LEGACY_PLAIN && type.type != GRV_STORE_F32 &&
                  type.type != GRV_STORE_F64,
              GRV_E_FORMAT, "%s: %s before byte %lld must be integers", r->path, what,
              grvi_legacy_byte(r, r->at));
    GRV_TRY(grvi_legacy_values(r, type, n, what, (uint8_t *)out + n * (8 - item_bytes)));
    grvi_widen_integers(out, n, item_bytes,
                        type.type == GRV_STORE_I8 || type.type == GRV_STORE_I16 ||
                            type.type == GRV_STORE_I32);
    return GRV_OK;
}
