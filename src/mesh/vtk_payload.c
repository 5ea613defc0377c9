/* Headers and blocks of VTK's binary arrays. Blocks are decoded by all threads straight into the result. Base64 without white space, which is
 * what everybody writes, can be entered anywhere; other base64 is decoded from front to back by one thread. */
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/vtk_payload.h"

enum { HEADER_WORDS = 3, WORDS_AT_A_TIME = 512 };

/* ---- header ---- */

/* Takes bytes behind those taken before. */
static grv_status take(grvi_vtk_payload *p, int64_t n, void *out)
{
    if (p->base64) {
        const int64_t got = grvi_base64_read(&p->stream, n, out);
        GRV_CHECK(got == n, GRV_E_FORMAT, GRVI_WHERE "%lld bytes of base64 expected, %lld found",
                  GRVI_WHERE_OF(p->where), (long long)n, (long long)got);
        return GRV_OK;
    }
    GRV_CHECK(n <= p->end - p->at, GRV_E_FORMAT,
              GRVI_WHERE "%lld bytes expected at byte %lld, the data end %lld bytes later",
              GRVI_WHERE_OF(p->where), (long long)n, (long long)p->at, (long long)(p->end - p->at));
    GRV_TRY(grvi_mesh_file_get(p->file, p->at, n, out));
    p->at += n;
    return GRV_OK;
}

static uint64_t word(const grvi_vtk_encoding *e, const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < e->word_bytes; i++)
        value = value << 8 | bytes[e->big_endian ? i : e->word_bytes - 1 - i];
    return value;
}

static grv_status take_words(grvi_vtk_payload *p, int64_t n, int64_t *out)
{
    uint8_t bytes[WORDS_AT_A_TIME * 8];
    for (int64_t done = 0; done < n;) {
        const int64_t k = grvi_min_i64(n - done, WORDS_AT_A_TIME);
        GRV_TRY(take(p, k * p->encoding->word_bytes, bytes));
        for (int64_t i = 0; i < k; i++) {
            const uint64_t value = word(p->encoding, bytes + i * p->encoding->word_bytes);
            GRV_CHECK(value <= (uint64_t)INT64_MAX / 4, GRV_E_FORMAT,
                      GRVI_WHERE "a size of %llu bytes in its header", GRVI_WHERE_OF(p->where),
                      (unsigned long long)value);
            out[done + i] = (int64_t)value;
        }
        done += k;
    }
    return GRV_OK;
}

/* Bytes that can still be taken, at most. */
static int64_t available(const grvi_vtk_payload *p)
{
    return p->base64 ? (p->stream.end - p->stream.at) / 4 * 3 + p->stream.n_pending
                     : p->end - p->at;
}

static grv_status check_room(const grvi_vtk_payload *p, int64_t n)
{
    GRV_CHECK(n <= available(p), GRV_E_FORMAT,
              GRVI_WHERE "its header announces %lld bytes, at most %lld follow",
              GRVI_WHERE_OF(p->where), (long long)n, (long long)available(p));
    return GRV_OK;
}

static int64_t bytes_of_block(const grvi_vtk_payload *p, int64_t block)
{
    return block == p->n_blocks - 1 && p->last_bytes > 0 ? p->last_bytes : p->block_bytes;
}

static grv_status open_blocks(grvi_vtk_payload *p)
{
    int64_t header[HEADER_WORDS], n_table = 0;
    GRV_TRY(take_words(p, HEADER_WORDS, header));
    p->n_blocks = header[0];
    p->block_bytes = header[1];
    p->last_bytes = header[2];
    if (p->n_blocks == 0) return GRV_OK;
    GRV_CHECK(p->block_bytes > 0 && p->last_bytes <= p->block_bytes &&
                  grvi_mul_i64(p->n_blocks, p->block_bytes, &p->n_bytes) &&
                  grvi_mul_i64(p->n_blocks, p->encoding->word_bytes, &n_table),
              GRV_E_FORMAT, GRVI_WHERE "a header of %lld blocks of %lld bytes, the last of %lld",
              GRVI_WHERE_OF(p->where), (long long)p->n_blocks, (long long)p->block_bytes,
              (long long)p->last_bytes);
    p->n_bytes += bytes_of_block(p, p->n_blocks - 1) - p->block_bytes;
    GRV_TRY(check_room(p, n_table));
    GRV_TRY(GRVI_ALLOC(&p->ends, p->n_blocks + 1));
    p->ends[0] = 0;
    GRV_TRY(take_words(p, p->n_blocks, p->ends + 1));
    for (int64_t i = 0; i < p->n_blocks; i++) {
        const int64_t n = p->ends[i + 1];
        GRV_CHECK(bytes_of_block(p, i) <= grvi_block_max_decoded(p->encoding->block, n),
                  GRV_E_FORMAT, GRVI_WHERE "block %lld: %lld bytes cannot decode to %lld",
                  GRVI_WHERE_OF(p->where), (long long)i, (long long)n,
                  (long long)bytes_of_block(p, i));
        GRV_CHECK(n <= available(p) - p->ends[i], GRV_E_FORMAT,
                  GRVI_WHERE "block %lld ends behind the data", GRVI_WHERE_OF(p->where),
                  (long long)i);
        p->ends[i + 1] = p->ends[i] + n;
    }
    return GRV_OK;
}

static bool is_blank(const grvi_base64_stream *stream)
{
    const uint8_t *at = stream->at;
    while (at < stream->end && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) at++;
    return at == stream->end;
}

grv_status grvi_vtk_payload_open(const grvi_mesh_file *file, const grvi_vtk_encoding *encoding,
                                 const grvi_vtk_where *where, bool base64, int64_t at, int64_t end,
                                 grvi_vtk_payload *p)
{
    *p = (grvi_vtk_payload){
        .file = file, .encoding = encoding, .where = where, .base64 = base64, .at = at, .end = end};
    p->stream = (grvi_base64_stream){.at = file->data + at, .end = file->data + end};
    if (base64 && is_blank(&p->stream)) return GRV_OK; /* how some write empty arrays */
    if (encoding->compressed) return open_blocks(p);
    GRV_TRY(take_words(p, 1, &p->n_bytes));
    return check_room(p, p->n_bytes);
}

void grvi_vtk_payload_close(grvi_vtk_payload *p)
{
    grv_free(p->ends);
    p->ends = NULL;
}

/* ---- data ---- */

/* Decoding by many threads. */
typedef struct decode_job {
    grvi_vtk_payload *payload;
    const uint8_t *text; /* base64: clean text that begins `shift` bytes before the data */
    int64_t n_text, shift;
    bool in_order;         /* base64: from the stream, by one thread */
    int64_t scratch_bytes; /* per thread */
    uint8_t *scratch, *out;
    _Atomic bool not_clean;    /* the text is not what in_order == false needs */
    _Atomic int64_t bad_block; /* -1: none */
} decode_job;

/* Bytes of the encoded data (behind the header). */
static bool fetch(decode_job *job, int64_t first, int64_t n, uint8_t *out)
{
    if (job->in_order) return grvi_base64_read(&job->payload->stream, n, out) == n;
    if (grvi_base64_range(job->text, job->n_text, job->shift + first, n, out)) return true;
    atomic_store(&job->not_clean, true);
    return false;
}

static void decode_blocks(void *argument, int thread, int64_t begin, int64_t end)
{
    decode_job *const job = argument;
    const grvi_vtk_payload *const p = job->payload;
    grvi_block_state state = {0};
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = p->ends[i + 1] - p->ends[i];
        const uint8_t *in = p->file->data + p->at + p->ends[i];
        if (p->base64) {
            uint8_t *const scratch = job->scratch + thread * job->scratch_bytes;
            in = fetch(job, p->ends[i], n, scratch) ? scratch : NULL;
        }
        if (in != NULL &&
            grvi_block_decode(p->encoding->block, &state, in, n, job->out + i * p->block_bytes,
                              bytes_of_block(p, i)) == GRV_OK)
            continue;
        atomic_store(&job->bad_block, i);
        break;
    }
    grvi_block_state_fini(&state);
}

static void decode_text(void *argument, int thread, int64_t begin, int64_t end)
{
    decode_job *const job = argument;
    const int64_t first = 3 * begin, last = grvi_min_i64(3 * end, job->payload->n_bytes);
    (void)thread;
    if (!fetch(job, first, last - first, job->out + first)) atomic_store(&job->bad_block, 0);
}

typedef struct read_job {
    const grvi_vtk_payload *payload;
    uint8_t *out;
    _Atomic bool failed;
} read_job;

static void read_part(void *argument, int thread, int64_t begin, int64_t end)
{
    read_job *const job = argument;
    (void)thread;
    if (grvi_mesh_file_get(job->payload->file, job->payload->at + begin, end - begin,
                           job->out + begin) != GRV_OK)
        atomic_store(&job->failed, true);
}

static grv_status read_raw(const grvi_vtk_payload *p, int n_threads, uint8_t *out)
{
    read_job job = {.payload = p, .out = out};
    grv_parallel_for(n_threads, p->n_bytes, read_part, &job);
    GRV_CHECK(!job.failed, GRV_E_IO, GRVI_WHERE "%lld bytes at byte %lld could not be read",
              GRVI_WHERE_OF(p->where), (long long)p->n_bytes, (long long)p->at);
    return GRV_OK;
}

static void run(decode_job *job, int n_threads)
{
    const grvi_vtk_payload *const p = job->payload;
    atomic_store(&job->bad_block, -1);
    if (p->encoding->compressed)
        grv_parallel_for(n_threads, p->n_blocks, decode_blocks, job);
    else
        grv_parallel_for(n_threads, grvi_ceil_div(p->n_bytes, 3), decode_text, job);
}

static grv_status alloc_scratch(decode_job *job, int n_threads)
{
    const grvi_vtk_payload *const p = job->payload;
    for (int64_t i = 0; i < p->n_blocks; i++)
        job->scratch_bytes = grvi_max_i64(job->scratch_bytes, p->ends[i + 1] - p->ends[i]);
    job->scratch_bytes = grvi_round_up(job->scratch_bytes, 64);
    return p->base64 ? grvi_alloc(n_threads, (size_t)job->scratch_bytes, (void **)&job->scratch)
                     : GRV_OK;
}

grv_status grvi_vtk_payload_decode(grvi_vtk_payload *p, int n_threads, uint8_t *out)
{
    grv_status status = GRV_OK;
    if (p->n_bytes == 0) return GRV_OK;
    if (!p->base64 && !p->encoding->compressed) return read_raw(p, n_threads, out);
    decode_job job = {.payload = p, .out = out};
    /* a group that the header shares with the data is decoded again */
    const int shared = p->stream.n_pending > 0;
    while (!shared && p->stream.at < p->stream.end &&
           (*p->stream.at == ' ' || *p->stream.at == '\n'))
        p->stream.at++;
    job.text = p->stream.at - 4 * shared;
    job.n_text = p->stream.end - job.text;
    job.shift = shared ? 3 - p->stream.n_pending : 0;
    GRV_TRY_GOTO(alloc_scratch(&job, n_threads));
    run(&job, n_threads);
    if (job.not_clean) {
        job.in_order = true;
        run(&job, 1);
    }
    GRV_CHECK_GOTO(job.bad_block < 0, GRV_E_FORMAT, GRVI_WHERE "block %lld of %lld is broken",
                   GRVI_WHERE_OF(p->where), (long long)job.bad_block,
                   (long long)grvi_max_i64(p->n_blocks, 1));
done:
    grv_free(job.scratch);
    return status;
}
