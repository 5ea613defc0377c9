/* Elements of an array as bytes and as .npy files, a bounded part at a time. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/store_print.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "store/store_type.h"

static const int64_t part_bytes = (int64_t)64 << 20;

static grv_status write_bytes(FILE *file, const char *name, const void *data, int64_t n)
{
    GRV_CHECK(fwrite(data, 1, (size_t)n, file) == (size_t)n, GRV_E_IO, "write %s: %s", name,
              strerror(errno));
    return GRV_OK;
}

/* The part that is written at once: whole along the axes after `axis`, as many as fit along it, one element along those before. */
static int choose_part(const grvc_slice *slice, int64_t item_bytes, int64_t *part)
{
    int64_t bytes = item_bytes;
    int axis = slice->rank - 1;
    for (int i = 0; i < slice->rank; i++) part[i] = 1;
    for (; axis >= 0; axis--) {
        part[axis] = grvi_max_i64(1, grvi_min_i64(slice->count[axis], part_bytes / bytes));
        if (part[axis] < slice->count[axis]) break;
        bytes *= part[axis];
    }
    return axis;
}

grv_status grvc_write_raw(FILE *file, const char *name, grv_array *array, const grvc_slice *slice)
{
    const int64_t item_bytes = grv_array_get_desc(array)->item_bytes;
    int64_t part[GRV_STORE_MAX_RANK], at[GRV_STORE_MAX_RANK] = {0};
    void *elements = NULL;
    grv_status status = GRV_OK;
    (void)choose_part(slice, item_bytes, part);
    int64_t n = 1;
    for (int i = 0; i < slice->rank; i++) {
        if (slice->count[i] == 0) return GRV_OK;
        n *= part[i];
    }
    GRV_TRY(grvi_alloc(n, (size_t)item_bytes, &elements));
    for (bool more = true; more;) {
        int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK];
        n = item_bytes;
        for (int i = 0; i < slice->rank; i++) {
            start[i] = slice->start[i] + at[i];
            count[i] = grvi_min_i64(part[i], slice->count[i] - at[i]);
            n *= count[i];
        }
        GRV_TRY_GOTO(grv_array_read(array, start, count, elements, NULL));
        GRV_TRY_GOTO(write_bytes(file, name, elements, n));
        int axis = slice->rank - 1;
        for (; axis >= 0; axis--) {
            at[axis] += part[axis];
            if (at[axis] < slice->count[axis]) break;
            at[axis] = 0;
        }
        more = axis >= 0;
    }
done:
    grv_free(elements);
    return status;
}

/* Magic, version 1.0, length of the header, header: a Python dictionary padded with blanks to a multiple of 64 bytes. */
grv_status grvc_write_npy_header(FILE *file, const char *name, const grv_array_desc *desc,
                                 const grvc_slice *slice)
{
    enum { PREFIX = 10, ALIGNMENT = 64 };
    grvi_text header = {0};
    int rank = 0;
    char type[GRVI_NUMPY_TEXT];
    /* NumPy itself has no bfloat16: two bytes */
    const grv_store_type known = desc->type == GRV_STORE_BF16 ? GRV_STORE_RAW : desc->type;
    grvi_item_to_numpy((grvi_item){known, desc->item_bytes}, false, type);
    grvi_text_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < slice->rank; i++) {
        if (slice->is_dropped[i]) continue;
        grvi_text_printf(&header, rank++ > 0 ? ", %lld" : "%lld", (long long)slice->count[i]);
    }
    grvi_text_append(&header, rank == 1 ? ",), }" : "), }");
    while ((header.n + PREFIX + 1) % ALIGNMENT != 0 && !header.failed)
        grvi_text_append(&header, " ");
    grvi_text_append(&header, "\n");
    grv_status status = grvi_text_status(&header);
    const uint8_t prefix[PREFIX] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(header.n & 0xFF), (uint8_t)(header.n >> 8)};
    if (status == GRV_OK) status = write_bytes(file, name, prefix, PREFIX);
    if (status == GRV_OK) status = write_bytes(file, name, header.data, header.n);
    grvi_text_fini(&header);
    return status;
}

grv_status grvc_write_npy(const char *path, grv_array *array, const grvc_slice *slice)
{
    grv_status status = GRV_OK;
    grvi_text aside = {0};
    FILE *file = NULL;
    grvi_text_printf(&aside, "%s.partial-%ld", path, (long)getpid());
    GRV_TRY_GOTO(grvi_text_status(&aside));
    file = fopen(aside.data, "wb");
    GRV_CHECK_GOTO(file != NULL, GRV_E_IO, "create %s: %s", aside.data, strerror(errno));
    GRV_TRY_GOTO(grvc_write_npy_header(file, path, grv_array_get_desc(array), slice));
    GRV_TRY_GOTO(grvc_write_raw(file, path, array, slice));
    const int closed = fclose(file);
    file = NULL;
    GRV_CHECK_GOTO(closed == 0, GRV_E_IO, "write %s: %s", path, strerror(errno));
    GRV_TRY_GOTO(grvi_fs_rename(aside.data, path));
done:
    if (file != NULL) (void)fclose(file);
    if (status != GRV_OK && aside.data != NULL) (void)unlink(aside.data);
    grvi_text_fini(&aside);
    return status;
}
