/* One element of an array as text and JSON. */
#include "cli/store_element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static int64_t integer_of(grvi_item item, const uint8_t *p)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        uint32_t u32;
    } u = {.i64 = 0};
    memcpy(&u, p, (size_t)item.n_bytes);
    switch (item.type) {
    case GRV_STORE_I8: return u.i8;
    case GRV_STORE_I16: return u.i16;
    case GRV_STORE_I32: return u.i32;
    case GRV_STORE_U16: return u.u16;
    case GRV_STORE_U32: return u.u32;
    case GRV_STORE_I64: return u.i64;
    default: return *p; /* uint8 */
    }
}

/* A real number, and whether a text reads back to the same one of its type. */
static double real_of(grv_store_type type, const uint8_t *p)
{
    uint16_t half = 0;
    float single = 0;
    double value = 0;
    switch (type) {
    case GRV_STORE_F16: memcpy(&half, p, sizeof half); return grvi_half_to_double(half);
    case GRV_STORE_BF16: memcpy(&half, p, sizeof half); return grvi_bfloat_to_double(half);
    case GRV_STORE_F32: memcpy(&single, p, sizeof single); return (double)single;
    default: memcpy(&value, p, sizeof value); return value;
    }
}

static bool reads_back(grv_store_type type, double value, const char *text)
{
    const double back = strtod(text, NULL);
    switch (type) {
    case GRV_STORE_F16: return grvi_half_from_double(back) == grvi_half_from_double(value);
    case GRV_STORE_BF16: return grvi_bfloat_from_double(back) == grvi_bfloat_from_double(value);
    case GRV_STORE_F32: return (float)back == (float)value;
    default: return back == value;
    }
}

/* Shortest decimal text that reads back to the same number of this type, with a point; is_named: of one that JSON has not. */
static void append_real(grvi_text *out, grv_store_type type, const uint8_t *p, bool *is_named)
{
    enum { MOST_DIGITS = 17 };
    const double value = real_of(type, p);
    char text[64];
    *is_named = !isfinite(value);
    if (*is_named) {
        grvi_text_append(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    for (int digits = 1; digits <= MOST_DIGITS; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (reads_back(type, value, text)) break;
    }
    grvi_text_append(out, text);
    if (strpbrk(text, ".e") == NULL) grvi_text_append(out, ".0");
}

static grv_store_type part_type(grv_store_type type)
{
    return type == GRV_STORE_C64 ? GRV_STORE_F32 : GRV_STORE_F64;
}

/* ---- characters and bytes ---- */

static void append_code_point(grvi_text *out, uint32_t c)
{
    if (c >= 0x80 && (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))) {
        grvi_text_printf(out, "\\U%08x", c); /* no character */
        return;
    }
    char bytes[4];
    int n = 0;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xE0 | c >> 12);
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3F));
    } else {
        bytes[n++] = (char)(0xF0 | c >> 18);
        bytes[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3F));
    }
    if (c >= 0x80) bytes[n++] = (char)(0x80 | (c & 0x3F));
    grvi_text_append_n(out, bytes, n);
}

/* The characters, without the padding at the end; bytes beyond ASCII and control characters as escapes. */
static void append_characters(grvi_text *out, grvi_item item, const uint8_t *p)
{
    const int64_t width = item.type == GRV_STORE_UCS4 ? 4 : 1;
    int64_t n = item.n_bytes;
    while (n >= width && (width == 1 ? p[n - 1] == 0 : memcmp(p + n - 4, "\0\0\0\0", 4) == 0))
        n -= width;
    for (int64_t i = 0; i < n; i += width) {
        uint32_t c = p[i];
        if (width == 4) memcpy(&c, p + i, sizeof c);
        if (c < 0x20 || c == 0x7F || (width == 1 && c > 0x7F))
            grvi_text_printf(out, "\\x%02x", c);
        else
            append_code_point(out, c);
    }
}

static void append_bytes(grvi_text *out, grvi_item item, const uint8_t *p)
{
    grvi_text_append(out, "0x");
    for (int64_t i = 0; i < item.n_bytes; i++) grvi_text_printf(out, "%02x", p[i]);
}

/* ---- elements ---- */

void grvc_element_text(grvi_text *out, grvi_item item, const uint8_t *p)
{
    bool is_named = false;
    uint64_t word = 0;
    switch (item.type) {
    case GRV_STORE_BOOL: grvi_text_append(out, *p != 0 ? "true" : "false"); break;
    case GRV_STORE_U64:
        memcpy(&word, p, sizeof word);
        grvi_text_printf(out, "%llu", (unsigned long long)word);
        break;
    case GRV_STORE_F16:
    case GRV_STORE_BF16:
    case GRV_STORE_F32:
    case GRV_STORE_F64: append_real(out, item.type, p, &is_named); break;
    case GRV_STORE_C64:
    case GRV_STORE_C128:
        append_real(out, part_type(item.type), p, &is_named);
        if (!signbit(real_of(part_type(item.type), p + item.n_bytes / 2)))
            grvi_text_append(out, "+");
        append_real(out, part_type(item.type), p + item.n_bytes / 2, &is_named);
        grvi_text_append(out, "j");
        break;
    case GRV_STORE_RAW: append_bytes(out, item, p); break;
    case GRV_STORE_BYTES:
    case GRV_STORE_UCS4:
        grvi_text_append(out, "'");
        append_characters(out, item, p);
        grvi_text_append(out, "'");
        break;
    default: grvi_text_printf(out, "%lld", (long long)integer_of(item, p));
    }
}

static void write_real(grvi_json_writer *w, grv_store_type type, const uint8_t *p)
{
    grvi_text text = {0};
    bool is_named = false;
    append_real(&text, type, p, &is_named);
    if (is_named)
        grvi_json_string(w, grvi_text_get(&text));
    else
        grvi_json_raw(w, grvi_text_get(&text));
    w->out->failed = w->out->failed || text.failed;
    grvi_text_fini(&text);
}

void grvc_element_json(grvi_json_writer *w, grvi_item item, const uint8_t *p)
{
    grvi_text text = {0};
    switch (item.type) {
    case GRV_STORE_F16:
    case GRV_STORE_BF16:
    case GRV_STORE_F32:
    case GRV_STORE_F64: write_real(w, item.type, p); return;
    case GRV_STORE_C64:
    case GRV_STORE_C128:
        grvi_json_begin_array(w);
        write_real(w, part_type(item.type), p);
        write_real(w, part_type(item.type), p + item.n_bytes / 2);
        grvi_json_end_array(w);
        return;
    case GRV_STORE_RAW: append_bytes(&text, item, p); break;
    case GRV_STORE_BYTES:
    case GRV_STORE_UCS4: append_characters(&text, item, p); break;
    default:
        grvc_element_text(&text, item, p);
        grvi_json_raw(w, grvi_text_get(&text));
        grvi_text_fini(&text);
        return;
    }
    grvi_json_string(w, grvi_text_get(&text));
    w->out->failed = w->out->failed || text.failed;
    grvi_text_fini(&text);
}
