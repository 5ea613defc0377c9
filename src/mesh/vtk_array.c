/* Values of one array of a VTK XML file, however they are stored. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/byte_order.h"
#include "mesh/numbers.h"
#include "mesh/vtk_xml.h"

static grv_status open_payload(const grvi_vtk_document *d, const grvi_vtk_array *a,
                               grvi_vtk_payload *payload)
{
    const char *const begin = (const char *)d->file->data;
    if (!a->is_appended) {
        const int64_t at = a->text.n == 0 ? 0 : a->text.at - begin;
        return grvi_vtk_payload_open(d->file, &d->encoding, &a->where, true, at, at + a->text.n,
                                     payload);
    }
    *payload = (grvi_vtk_payload){0};
    GRV_CHECK(d->appended_at >= 0 && a->offset <= d->file->n_bytes - d->appended_at, GRV_E_FORMAT,
              GRVI_WHERE "its data at offset %lld are not in the file", GRVI_WHERE_OF(&a->where),
              (long long)a->offset);
    return grvi_vtk_payload_open(d->file, &d->encoding, &a->where, d->appended_base64,
                                 d->appended_at + a->offset, d->file->n_bytes, payload);
}

/* ---- ASCII ---- */

/* Words of a text in ASCII. */
static int64_t count_words(grvi_span text)
{
    const char *const end = grvi_span_end(text);
    int64_t n = 0;
    for (const char *p = grvi_skip_blanks(text.at, end); p < end; p = grvi_skip_blanks(p, end)) {
        while (p < end && !grvi_is_blank(*p)) p++;
        n++;
    }
    return n;
}

static grv_status decode_ascii(const grvi_vtk_array *a, int64_t n_values, void *out)
{
    const char *const end = grvi_span_end(a->text);
    const char *at = a->text.at;
    for (int64_t i = 0; i < n_values; i++) {
        at = grvi_skip_blanks(at, end);
        GRV_CHECK(at < end, GRV_E_FORMAT, GRVI_WHERE "%lld values expected, %lld found",
                  GRVI_WHERE_OF(&a->where), (long long)n_values, (long long)i);
        const char *const word = at;
        GRV_CHECK(grvi_parse_value(a->type, &at, end, out, i) && (at == end || grvi_is_blank(*at)),
                  GRV_E_FORMAT, GRVI_WHERE "value %lld: '%.*s' is no %s", GRVI_WHERE_OF(&a->where),
                  (long long)i, (int)grvi_min_i64(end - word, 24), word,
                  grv_store_type_name(a->type));
    }
    return GRV_OK;
}

/* ---- any ---- */

grv_status grvi_vtk_array_count(const grvi_vtk_document *d, const grvi_vtk_array *a,
                                int64_t *n_values)
{
    grvi_vtk_payload payload;
    const int64_t item_bytes = grvi_mesh_item_bytes(a->type);
    if (a->is_ascii) {
        *n_values = count_words(a->text);
        return GRV_OK;
    }
    grv_status status = open_payload(d, a, &payload);
    *n_values = payload.n_bytes / item_bytes;
    if (status == GRV_OK && payload.n_bytes % item_bytes != 0)
        status =
            grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                      GRVI_WHERE "%lld bytes are no whole number of %s", GRVI_WHERE_OF(&a->where),
                      (long long)payload.n_bytes, grv_store_type_name(a->type));
    grvi_vtk_payload_close(&payload);
    return status;
}

grv_status grvi_vtk_array_check(const grvi_vtk_document *d, const grvi_vtk_array *a,
                                int64_t n_values)
{
    int64_t n = 0;
    if (a->is_ascii) {
        GRV_CHECK(n_values <= a->text.n / 2 + 1, GRV_E_FORMAT,
                  GRVI_WHERE "%lld values expected in %lld characters", GRVI_WHERE_OF(&a->where),
                  (long long)n_values, (long long)a->text.n);
        return GRV_OK;
    }
    GRV_TRY(grvi_vtk_array_count(d, a, &n));
    GRV_CHECK(n >= n_values, GRV_E_FORMAT, GRVI_WHERE "%lld values expected, %lld found",
              GRVI_WHERE_OF(&a->where), (long long)n_values, (long long)n);
    return GRV_OK;
}

typedef struct swap_job {
    uint8_t *data;
    int64_t item_bytes;
} swap_job;

static void swap_part(void *argument, int thread, int64_t begin, int64_t end)
{
    const swap_job *const job = argument;
    (void)thread;
    grvi_swap_words(job->data + begin * job->item_bytes, end - begin, job->item_bytes);
}

/* Decodes the first n_bytes of a payload; writers that state fewer tuples than they write exist. */
static grv_status decode_front(grvi_vtk_payload *payload, int n_threads, int64_t n_bytes,
                               uint8_t *out)
{
    uint8_t *all = NULL;
    if (payload->n_bytes == n_bytes) return grvi_vtk_payload_decode(payload, n_threads, out);
    GRV_CHECK(payload->n_bytes > n_bytes, GRV_E_FORMAT,
              GRVI_WHERE "%lld bytes expected, %lld found", GRVI_WHERE_OF(payload->where),
              (long long)n_bytes, (long long)payload->n_bytes);
    GRV_TRY(GRVI_ALLOC(&all, payload->n_bytes));
    const grv_status status = grvi_vtk_payload_decode(payload, n_threads, all);
    if (status == GRV_OK) memcpy(out, all, (size_t)n_bytes);
    grv_free(all);
    return status;
}

grv_status grvi_vtk_array_decode(const grvi_vtk_document *d, const grvi_vtk_array *a, int n_threads,
                                 int64_t n_values, void *out)
{
    if (a->is_ascii) return decode_ascii(a, n_values, out);
    grvi_vtk_payload payload;
    swap_job job = {out, grvi_mesh_item_bytes(a->type)};
    grv_status status = open_payload(d, a, &payload);
    if (status == GRV_OK)
        status = decode_front(&payload, n_threads, n_values * job.item_bytes, out);
    grvi_vtk_payload_close(&payload);
    if (status == GRV_OK && d->encoding.big_endian)
        grv_parallel_for(n_threads, n_values, swap_part, &job);
    return status;
}

grv_status grvi_vtk_array_decode_i64(const grvi_vtk_document *d, const grvi_vtk_array *a,
                                     int n_threads, int64_t n_values, int64_t *out)
{
    const int64_t item_bytes = grvi_mesh_item_bytes(a->type);
    const bool is_signed = a->type == GRV_STORE_I8 || a->type == GRV_STORE_I16 ||
                           a->type == GRV_STORE_I32 || a->type == GRV_STORE_I64;
    GRV_CHECK(a->type != GRV_STORE_F32 && a->type != GRV_STORE_F64 && !a->is_text, GRV_E_FORMAT,
              GRVI_WHERE "integers expected, %s found", GRVI_WHERE_OF(&a->where),
              a->is_text ? "strings" : grv_store_type_name(a->type));
    /* into the end of the room, and from there to its beginning */
    GRV_TRY(grvi_vtk_array_decode(d, a, n_threads, n_values,
                                  (uint8_t *)out + n_values * (8 - item_bytes)));
    grvi_widen_integers(out, n_values, item_bytes, is_signed);
    return GRV_OK;
}
