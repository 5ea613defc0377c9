/* Allocation with accounting.
 * Layout of a block: a 64-byte header {magic, bytes, mapped bytes, base}, then the caller's bytes.
 * The counters are the one piece of global state of the library: they count what the process holds, whoever asks. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
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
    size_t bytes;        /* asked for */
    size_t mapped_bytes; /* 0 when it came from the heap */
    void *base;          /* what the system gave */
} block_header;

static _Atomic int64_t held_bytes, peak_bytes, allocation_count;
static _Atomic int64_t fail_countdown = -1;

void grvi_alloc_fail_after(int64_t countdown) { atomic_store(&fail_countdown, countdown); }

static bool injected_failure(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) < 0) return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 0;
}

static void account(int64_t delta)
{
    const int64_t now = atomic_fetch_add(&held_bytes, delta) + delta;
    int64_t peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {}
}

static block_header *header_of(void *pointer)
{
    block_header *const header = (block_header *)((char *)pointer - HEADER_BYTES);
    if (header->magic != magic_live)
        grvi_assert_failed("freed pointer is a live grove block", __FILE__, __LINE__, __func__);
    return header;
}

static void *take_from_system(size_t total, size_t *mapped, void **base)
{
    *mapped = 0;
    if (total < huge_page_bytes) {
        *base = aligned_alloc(64, (total + 63) & ~(size_t)63);
        return *base;
    }
    /* one huge page more, so that the block can start on a huge-page border */
    const size_t length = ((total + huge_page_bytes - 1) & ~(huge_page_bytes - 1)) + huge_page_bytes;
    void *const p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    *base = p;
    *mapped = length;
    char *const aligned = (char *)(((uintptr_t)p + huge_page_bytes - 1) & ~(uintptr_t)(huge_page_bytes - 1));
    (void)madvise(aligned, length - huge_page_bytes, MADV_HUGEPAGE); /* a hint: failure costs speed only */
    return aligned;
}

static grv_status take(int64_t n, size_t size, bool zero, void **out)
{
    *out = NULL;
    size_t bytes = 0, total = 0;
    GRV_CHECK(grvi_mul_size(n, size, &bytes) && bytes <= (size_t)PTRDIFF_MAX - 2 * huge_page_bytes, GRV_E_NOMEM,
              "%lld elements of %zu bytes asked for", (long long)n, size);
    total = bytes + HEADER_BYTES;
    size_t mapped = 0;
    void *base = NULL;
    char *const block = injected_failure() ? NULL : take_from_system(total, &mapped, &base);
    GRV_CHECK(block != NULL, GRV_E_NOMEM, "%zu bytes asked for, %lld held", bytes, (long long)atomic_load(&held_bytes));
    block_header *const header = (block_header *)block;
    *header = (block_header){.magic = magic_live, .bytes = bytes, .mapped_bytes = mapped, .base = base};
    if (zero && mapped == 0) memset(block + HEADER_BYTES, 0, bytes);
    account((int64_t)bytes);
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    *out = block + HEADER_BYTES;
    return GRV_OK;
}

grv_status grvi_alloc(int64_t n, size_t size, void **out) { return take(n, size, false, out); }

grv_status grvi_calloc(int64_t n, size_t size, void **out) { return take(n, size, true, out); }

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
    const block_header copy = *header;
    header->magic = 0;
    account(-(int64_t)copy.bytes);
    if (copy.mapped_bytes != 0) (void)munmap(copy.base, copy.mapped_bytes);
    else free(copy.base);
}

grv_memory grv_memory_get(void)
{
    return (grv_memory){.bytes = atomic_load(&held_bytes),
                        .peak_bytes = atomic_load(&peak_bytes),
                        .n_allocations = atomic_load(&allocation_count)};
}
