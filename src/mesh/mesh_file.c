/* Files: mapped for parsers, read where large parts are copied; gzip is unpacked. Reading and writing by format.
 * Maps cost a page fault per 64 KiB and no second copy; pages that were read can be dropped by the system at any time. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"
#include "store/block_codec.h"

static const int64_t large_bytes = (int64_t)1
                                   << 18; /* from here on reading beats faulting a map in */

/* ---- opening ---- */

static grv_status map_file(grvi_mesh_file *file)
{
    struct stat info;
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    GRV_CHECK(file->fd >= 0, errno == ENOENT ? GRV_E_NOT_FOUND : GRV_E_IO, "open %s: %s",
              file->path, strerror(errno));
    GRV_CHECK(fstat(file->fd, &info) == 0 && S_ISREG(info.st_mode), GRV_E_IO,
              "%s is not a regular file", file->path);
    file->n_bytes = info.st_size;
    file->data = (const uint8_t *)"";
    if (file->n_bytes == 0) return GRV_OK;
    void *const map = mmap(NULL, (size_t)file->n_bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
    GRV_CHECK(map != MAP_FAILED, GRV_E_IO, "map %s: %s", file->path, strerror(errno));
    file->map = map;
    file->n_map = (size_t)file->n_bytes;
    file->data = map;
    return GRV_OK;
}

static void unmap_file(grvi_mesh_file *file)
{
    if (file->map != NULL) (void)munmap(file->map, file->n_map);
    if (file->fd >= 0) (void)close(file->fd);
    file->map = NULL;
    file->fd = -1;
}

static bool begins_with(const grvi_mesh_file *file, const char *bytes, int64_t n)
{
    return file->n_bytes >= n && memcmp(file->data, bytes, (size_t)n) == 0;
}

grv_status grvi_mesh_file_open(const char *path, grvi_mesh_file *file)
{
    grv_status status = GRV_OK;
    *file = (grvi_mesh_file){.path = path, .fd = -1};
    GRV_TRY_GOTO(map_file(file));
    if (begins_with(file, "\x1f\x8b", 2)) {
        int64_t n = 0;
        GRV_TRY_GOTO(grvi_gzip_unpack(path, file->data, file->n_bytes, &file->unpacked, &n));
        unmap_file(file);
        file->data = file->unpacked;
        file->n_bytes = n;
    }
done:
    if (status != GRV_OK) grvi_mesh_file_close(file);
    return status;
}

void grvi_mesh_file_close(grvi_mesh_file *file)
{
    unmap_file(file);
    grv_free(file->unpacked);
    *file = (grvi_mesh_file){.fd = -1};
}

grv_status grvi_mesh_file_get(const grvi_mesh_file *file, int64_t offset, int64_t n, void *out)
{
    GRV_ASSERT(offset >= 0 && n >= 0 && offset <= file->n_bytes - n);
    if (file->fd < 0 || n < large_bytes) {
        memcpy(out, file->data + offset, (size_t)n);
        return GRV_OK;
    }
    for (int64_t done = 0; done < n;) {
        const ssize_t k =
            pread(file->fd, (char *)out + done, (size_t)grvi_min_i64(n - done, (int64_t)1 << 30),
                  (off_t)(offset + done));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k > 0, GRV_E_IO, "read %s, byte %lld: %s", file->path, (long long)(offset + done),
                  k < 0 ? strerror(errno) : "the file has become shorter");
        done += k;
    }
    return GRV_OK;
}

/* ---- formats ---- */

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), n_ending = strlen(ending);
    return n >= n_ending && strcasecmp(path + n - n_ending, ending) == 0;
}

static bool has_ending(const char *path, const char *ending)
{
    char packed[16] = "";
    strncat(packed, ending, 8);
    strcat(packed, ".gz");
    return ends_with(path, ending) || ends_with(path, packed);
}

/* NULL and a message for what is none of ours. */
static grv_status find_reader(const grvi_mesh_file *file, grvi_mesh_reader **reader,
                              const char **format)
{
    enum { HEAD_BYTES = 4096 }; /* licences stand before the root element of some files */
    const size_t n_head = (size_t)grvi_min_i64(file->n_bytes, HEAD_BYTES);
    static const char legacy[] = "# vtk DataFile", xml[] = "<VTKFile";
    *reader = NULL;
    if (n_head >= sizeof legacy - 1 &&
        strncasecmp((const char *)file->data, legacy, sizeof legacy - 1) == 0)
        *reader = grvi_vtk_legacy_read, *format = "VTK legacy";
    else if (memmem(file->data, n_head, xml, sizeof xml - 1) != NULL)
        *reader = grvi_vtk_xml_read, *format = "VTK XML";
    else if (grvi_stl_is(file))
        *reader = grvi_stl_read, *format = "STL";
    else if (has_ending(file->path, ".obj"))
        *reader = grvi_obj_read, *format = "OBJ";
    else if (has_ending(file->path, ".stl"))
        *reader = grvi_stl_read, *format = "STL";
    if (*reader != NULL) return GRV_OK;
    GRV_CHECK(!begins_with(file, "PK\3\4", 4), GRV_E_UNSUPPORTED,
              "%s is a zip archive: unpack it first", file->path);
    GRV_CHECK(!begins_with(file, "\x89HDF", 4), GRV_E_UNSUPPORTED,
              "%s is an HDF5 file (VTKHDF): not read", file->path);
    GRV_FAIL(GRV_E_UNSUPPORTED,
             "%s: a mesh expected: .stl, .obj, or a VTK file (\"<VTKFile\" or \"# vtk DataFile\" "
             "at its start)",
             file->path);
}

grv_mesh_read_params grv_mesh_read_params_default(void)
{
    return (grv_mesh_read_params){.n_threads = 1};
}

grv_status grv_mesh_read(const char *path, const grv_mesh_read_params *params, grv_mesh **mesh)
{
    grv_status status = GRV_OK;
    grvi_mesh_file file;
    grvi_mesh_reader *reader = NULL;
    const int n_threads = params != NULL ? params->n_threads : 1;
    *mesh = NULL;
    GRV_CHECK(n_threads >= 1, GRV_E_ARG, "n_threads must be >= 1, got %d", n_threads);
    GRV_TRY(grvi_mesh_file_open(path, &file));
    const char *format = NULL;
    GRV_TRY_GOTO(find_reader(&file, &reader, &format));
    GRV_TRY_GOTO(grv_mesh_create(GRV_MESH_SURFACE, mesh));
    (*mesh)->format = format;
    GRV_TRY_GOTO(reader(&file, n_threads, *mesh));
    grvi_mesh_find_time(*mesh);
done:
    grvi_mesh_file_close(&file);
    if (status != GRV_OK) grv_mesh_destroy(mesh);
    return status;
}

/* ---- writing ---- */

grv_mesh_write_params grv_mesh_write_params_default(void)
{
    return (grv_mesh_write_params){.encoding = GRV_MESH_BINARY, .n_threads = 1};
}

static grv_status check_list(const grv_mesh_arrays *list, const char *what, int64_t n)
{
    for (int64_t i = 0; i < list->n; i++) {
        const grv_mesh_array *const a = &list->items[i];
        GRV_CHECK(n < 0 || (a->n_tuples == n && !a->is_text), GRV_E_SHAPE,
                  "%s data '%s': %lld tuples expected, %lld found", what, a->name, (long long)n,
                  (long long)a->n_tuples);
        GRV_CHECK(a->is_text ||
                      (grvi_mesh_item_bytes(a->type) > 0 && a->n_components > 0 &&
                       a->n_bytes == a->n_tuples * a->n_components * grvi_mesh_item_bytes(a->type)),
                  GRV_E_SHAPE, "%s data '%s': type, counts and bytes do not agree", what, a->name);
    }
    return GRV_OK;
}

grv_status grvi_mesh_check_data(const grv_mesh *mesh)
{
    GRV_TRY(check_list(&mesh->point_data, "point", grv_mesh_n_points(mesh)));
    GRV_TRY(check_list(&mesh->cell_data, "cell", grv_mesh_n_cells(mesh)));
    return check_list(&mesh->field_data, "field", -1);
}

static grv_status find_writer(const grv_mesh *mesh, const grv_mesh_write_params *params,
                              const char *path, grvi_mesh_writer **writer)
{
    static const struct {
        const char *ending, *holds;
        grvi_mesh_writer *writer;
        unsigned kinds; /* bit per grv_mesh_kind */
    } formats[] = {
        {".stl", "surfaces", grvi_stl_write, 1U << GRV_MESH_SURFACE},
        {".vtp", "surfaces", grvi_vtk_xml_write, 1U << GRV_MESH_SURFACE},
        {".vtu", "surfaces and cells", grvi_vtk_xml_write,
         1U << GRV_MESH_SURFACE | 1U << GRV_MESH_CELLS},
        {".vti", "images (grids of equal spacing)", grvi_vtk_xml_write, 1U << GRV_MESH_IMAGE}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!ends_with(path, formats[i].ending)) continue;
        GRV_CHECK((formats[i].kinds >> mesh->kind & 1) != 0, GRV_E_ARG,
                  "%s: a %s file holds %s, not this kind of mesh", path, formats[i].ending,
                  formats[i].holds);
        GRV_CHECK(params->encoding != (i == 0 ? GRV_MESH_BASE64 : GRV_MESH_ASCII), GRV_E_ARG,
                  "%s: %s", path,
                  i == 0 ? "STL is written as binary or text"
                         : "VTK files are written as binary or base64");
        *writer = formats[i].writer;
        return GRV_OK;
    }
    GRV_FAIL(GRV_E_ARG, "%s: a name ending in .stl, .vtp, .vtu or .vti expected", path);
}

grv_status grv_mesh_write(const grv_mesh *mesh, const char *path,
                          const grv_mesh_write_params *params)
{
    grv_status status = GRV_OK;
    const grv_mesh_write_params defaults = grv_mesh_write_params_default();
    grvi_mesh_writer *writer = NULL;
    grvi_text aside = {0};
    int fd = -1;
    if (params == NULL) params = &defaults;
    GRV_CHECK(params->n_threads >= 1 && params->zlib_level >= 0 && params->zlib_level <= 9,
              GRV_E_ARG, "n_threads >= 1 and zlib_level 0 to 9 expected, got %d and %d",
              params->n_threads, params->zlib_level);
    GRV_TRY(find_writer(mesh, params, path, &writer));
    GRV_TRY(grvi_mesh_check_data(mesh));
    grvi_text_printf(&aside, "%s.partial-%ld", path, (long)getpid());
    GRV_TRY_GOTO(grvi_text_status(&aside));
    fd = open(aside.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    GRV_CHECK_GOTO(fd >= 0, GRV_E_IO, "create %s: %s", aside.data, strerror(errno));
    status = writer(mesh, params, fd, path);
    if (close(fd) != 0 && status == GRV_OK)
        status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "close %s: %s", path,
                           strerror(errno));
    if (status == GRV_OK) status = grvi_fs_rename(aside.data, path);
    if (status != GRV_OK) (void)unlink(aside.data);
done:
    grvi_text_fini(&aside);
    return status;
}
