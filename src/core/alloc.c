/* Allocation with accounting.
 * Layout of a block: a 64-byte header {magic, bytes, mapped bytes, base}, then the caller's bytes.
 * The counters and the kept blocks are the one piece of global state of the library: they are about the process, whoever asks. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "core/alloc.h"
#include "grove/core.h"

enum { HEADER_BYTES = 64 };
static const size_t huge_page_bytes = (size_t)2 << 20;
static const uint64_t magic_live = 0x67726f7665414c4cU;

typedef struct block_header {
    uint64_t magic;
    size_t bytes;              /* asked for */
    size_t mapped_bytes;       /* 0 when it came from the heap */
    void *base;                /* what the system gave */
    struct block_header *next; /* while it is kept */
} block_header;
_Static_assert(sizeof(block_header) <= HEADER_BYTES, "a header has 64 bytes");

static _Atomic int64_t held_bytes, peak_bytes, allocation_count;
static _Atomic int64_t fail_countdown = -1;

void grvi_alloc_fail_after(int64_t countdown)
{
    atomic_store(&fail_countdown, countdown);
}

static bool injected_failure(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) < 0) return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 0;
}

static void account(int64_t delta)
{
    const int64_t now = atomic_fetch_add(&held_bytes, delta) + delta;
    int64_t peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {
    }
}

static block_header *header_of(void *pointer)
{
    block_header *const header = (block_header *)((char *)pointer - HEADER_BYTES);
    if (header->magic != magic_live)
        grvi_assert_failed("freed pointer is a live grove block", __FILE__, __LINE__, __func__);
    return header;
}

/* ---- freed blocks that are kept, the last one first ---- */

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static block_header *kept;
static _Atomic int64_t kept_bytes;
static int64_t keep_limit;

/* With kept_lock. */
static block_header *unlink_kept(block_header **place)
{
    block_header *const header = *place;
    *place = header->next;
    kept_bytes -= (int64_t)header->mapped_bytes;
    return header;
}

/* The smallest kept block that holds `length` bytes and not twice that; NULL: there is none. */
static block_header *take_kept(size_t length)
{
    block_header **best = NULL;
    if (kept_bytes == 0) return NULL;
    (void)pthread_mutex_lock(&kept_lock);
    for (block_header **place = &kept; *place != NULL; place = &(*place)->next) {
        const size_t mapped = (*place)->mapped_bytes;
        if (mapped >= length && mapped / 2 <= length &&
            (best == NULL || mapped < (*best)->mapped_bytes))
            best = place;
    }
    block_header *const header = best == NULL ? NULL : unlink_kept(best);
    (void)pthread_mutex_unlock(&kept_lock);
    return header;
}

/* Gives the blocks that were freed first back to the system until at most so many bytes are kept. With kept_lock. */
static void drop_kept(int64_t limit)
{
    while (kept_bytes > limit) {
        block_header **place = &kept;
        while ((*place)->next != NULL) place = &(*place)->next;
        const block_header header = *unlink_kept(place);
        (void)munmap(header.base, header.mapped_bytes);
    }
}

/* Keeps a freed block, or gives it back. */
static void keep(block_header *header)
{
    const int64_t bytes = (int64_t)header->mapped_bytes;
    (void)pthread_mutex_lock(&kept_lock);
    const bool fits = bytes <= keep_limit;
    if (fits) {
        drop_kept(keep_limit - bytes);
        header->next = kept;
        kept = header;
        kept_bytes += bytes;
    }
    (void)pthread_mutex_unlock(&kept_lock);
    if (!fits) (void)munmap(header->base, header->mapped_bytes);
}

void grv_memory_keep(int64_t bytes)
{
    (void)pthread_mutex_lock(&kept_lock);
    keep_limit = bytes;
    drop_kept(bytes);
    (void)pthread_mutex_unlock(&kept_lock);
}

/* ---- taking and giving back ---- */

/* Where the header goes; NULL: there is no memory. */
static void *take_block(size_t total, size_t *mapped, void **base, bool *is_fresh)
{
    *mapped = 0;
    *is_fresh = true;
    if (total < huge_page_bytes) {
        *base = aligned_alloc(64, (total + 63) & ~(size_t)63);
        return *base;
    }
    /* one huge page more, so that the block can start on a huge-page border */
    const size_t length =
        ((total + huge_page_bytes - 1) & ~(huge_page_bytes - 1)) + huge_page_bytes;
    block_header *const again = take_kept(length);
    if (again != NULL) {
        *base = again->base;
        *mapped = again->mapped_bytes;
        *is_fresh = false;
        return again;
    }
    void *const p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    *base = p;
    *mapped = length;
    char *const aligned =
        (char *)(((uintptr_t)p + huge_page_bytes - 1) & ~(uintptr_t)(huge_page_bytes - 1));
    (void)madvise(aligned, length - huge_page_bytes,
                  MADV_HUGEPAGE); /* a hint: failure costs speed only */
    return aligned;
}

static grv_status take(int64_t n, size_t size, bool zero, void **out)
{
    *out = NULL;
    size_t bytes = 0, total = 0;
    GRV_CHECK(grvi_mul_size(n, size, &bytes) && bytes <= (size_t)PTRDIFF_MAX - 2 * huge_page_bytes,
              GRV_E_NOMEM, "%lld elements of %zu bytes asked for", (long long)n, size);
    total = bytes + HEADER_BYTES;
    size_t mapped = 0;
    void *base = NULL;
    bool is_fresh = true;
    char *const block = injected_failure() ? NULL : take_block(total, &mapped, &base, &is_fresh);
    GRV_CHECK(block != NULL, GRV_E_NOMEM, "%zu bytes asked for, %lld held", bytes,
              (long long)atomic_load(&held_bytes));
    block_header *const header = (block_header *)block;
    *header =
        (block_header){.magic = magic_live, .bytes = bytes, .mapped_bytes = mapped, .base = base};
    if (zero && (mapped == 0 || !is_fresh)) memset(block + HEADER_BYTES, 0, bytes);
    account((int64_t)bytes);
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    *out = block + HEADER_BYTES;
    return GRV_OK;
}

grv_status grvi_alloc(int64_t n, size_t size, void **out)
{
    return take(n, size, false, out);
}

grv_status grvi_calloc(int64_t n, size_t size, void **out)
{
    return take(n, size, true, out);
}

grv_status grvi_realloc(int64_t n, size_t size, void **block)
{
    void *fresh = NULL;
    GRV_TRY(take(n, size, false, &fresh));
    if (*block != NULL) {
        const size_t old_bytes = header_of(*block)->bytes, new_bytes = header_of(fresh)->bytes;
        memcpy(fresh, *block, old_bytes < new_bytes ? old_bytes : new_bytes);
        grv_free(*block);
    }
    *block = fresh;
    return GRV_OK;
}

grv_status grvi_strdup(const char *text, char **out)
{
    const size_t n = strlen(text) + 1;
    GRV_TRY(grvi_alloc((int64_t)n, 1, (void **)out));
    memcpy(*out, text, n);
    return GRV_OK;
}

void grv_free(void *pointer)
{
    if (pointer == NULL) return;
    block_header *const header = header_of(pointer);
    header->magic = 0;
    account(-(int64_t)header->bytes);
    if (header->mapped_bytes != 0)
        keep(header);
    else
        free(header->base);
}

grv_memory grv_memory_get(void)
{
    return (grv_memory){.bytes = atomic_load(&held_bytes),
                        .peak_bytes = atomic_load(&peak_bytes),
                        .kept_bytes = atomic_load(&kept_bytes),
                        .n_allocations = atomic_load(&allocation_count)};
}
