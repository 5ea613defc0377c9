/* VTP, VTU and VTI with appended data, 64-bit headers and little-endian words. Tags are written first, with blanks where the offsets of the arrays belong; these are
 * filled in when the arrays have been written. The same is done with the sizes of compressed blocks, so that nothing is held back in memory. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "mesh/base64.h"
#include "mesh/mesh_impl.h"
#include "mesh/mesh_out.h"
#include "store/block_codec.h"

enum { OFFSET_WIDTH = 24, BLOCK_BYTES = 1 << 17, BLOCKS_PER_THREAD = 8, WORD_BYTES = 8 };

/* An array whose tag has been written. */
typedef struct appended_array {
    const void *data;
    int64_t n_bytes;
    int64_t place; /* byte of the file where its offset belongs */
    bool is_ours;  /* release data */
} appended_array;

typedef struct vtk_writer {
    const grv_mesh *mesh;
    const grv_mesh_write_params *params;
    grvi_out out;
    appended_array *arrays;
    int64_t n_arrays;
} vtk_writer;

static void put(vtk_writer *w, const char *text)
{
    grvi_out_put(&w->out, text, (int64_t)strlen(text));
}

static void put_escaped(vtk_writer *w, const char *text)
{
    static const char *const entities[][2] = {
        {"<", "&lt;"}, {">", "&gt;"}, {"&", "&amp;"}, {"\"", "&quot;"}};
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < 4 && *text != entities[i][0][0]) i++;
        if (i < 4)
            put(w, entities[i][1]);
        else
            grvi_out_put(&w->out, text, 1);
    }
}

static const char *type_name(grv_store_type type)
{
    switch (type) {
    case GRV_STORE_I8: return "Int8";
    case GRV_STORE_U8: return "UInt8";
    case GRV_STORE_I16: return "Int16";
    case GRV_STORE_U16: return "UInt16";
    case GRV_STORE_I32: return "Int32";
    case GRV_STORE_U32: return "UInt32";
    case GRV_STORE_I64: return "Int64";
    case GRV_STORE_U64: return "UInt64";
    case GRV_STORE_F32: return "Float32";
    default: return "Float64";
    }
}

/* ---- tags ---- */

/* Tag of an array; n_tuples < 0: not stated. `data` are written later. */
static grv_status put_array(vtk_writer *w, const char *name, const char *type, int n_components,
                            int64_t n_tuples, const void *data, int64_t n_bytes, bool is_ours)
{
    static const char blanks[] = "                        ";
    const bool is_text = strcmp(type, "String") == 0;
    if ((w->n_arrays & (w->n_arrays - 1)) == 0) {
        const grv_status status = GRVI_REALLOC(&w->arrays, w->n_arrays == 0 ? 1 : 2 * w->n_arrays);
        if (status != GRV_OK && is_ours) grv_free((void *)(uintptr_t)data);
        GRV_TRY(status);
    }
    grvi_out_printf(&w->out, "<%s type=\"%s\" Name=\"", is_text ? "Array" : "DataArray", type);
    put_escaped(w, name);
    put(w, "\"");
    if (n_components != 1) grvi_out_printf(&w->out, " NumberOfComponents=\"%d\"", n_components);
    if (n_tuples >= 0) grvi_out_printf(&w->out, " NumberOfTuples=\"%lld\"", (long long)n_tuples);
    put(w, " format=\"appended\" offset=");
    w->arrays[w->n_arrays++] = (appended_array){data, n_bytes, w->out.at, is_ours};
    grvi_out_printf(&w->out, "%s/>\n", blanks);
    return GRV_OK;
}

static grv_status put_list(vtk_writer *w, const char *element, const grv_mesh_arrays *list,
                           bool with_tuples)
{
    grvi_out_printf(&w->out, "<%s>\n", element);
    for (int64_t i = 0; i < list->n; i++) {
        const grv_mesh_array *const a = &list->items[i];
        GRV_TRY(put_array(w, a->name, a->is_text ? "String" : type_name(a->type), a->n_components,
                          with_tuples ? a->n_tuples : -1, a->data, a->n_bytes, false));
    }
    grvi_out_printf(&w->out, "</%s>\n", element);
    return GRV_OK;
}

static grv_status put_field_data(vtk_writer *w)
{
    const grv_mesh *const mesh = w->mesh;
    if (mesh->field_data.n > 0) return put_list(w, "FieldData", &mesh->field_data, true);
    if (!mesh->has_time) return GRV_OK;
    put(w, "<FieldData>\n");
    GRV_TRY(put_array(w, "TimeValue", "Float64", 1, 1, &mesh->time, sizeof mesh->time, false));
    put(w, "</FieldData>\n");
    return GRV_OK;
}

static grv_status put_points(vtk_writer *w)
{
    const grv_mesh_array *const points = &w->mesh->points;
    put(w, "<Points>\n");
    GRV_TRY(put_array(w, "Points", type_name(points->type), 3, -1, points->data, points->n_bytes,
                      false));
    put(w, "</Points>\n");
    return GRV_OK;
}

/* Connectivity and offsets of cells [begin, end). */
static grv_status put_cells(vtk_writer *w, int64_t begin, int64_t end)
{
    static const int64_t none = 0;
    const grv_mesh *const mesh = w->mesh;
    const int64_t n = end - begin, first = n > 0 ? mesh->offsets[begin] : 0;
    const int64_t *ends = n > 0 ? mesh->offsets + begin + 1 : &none, *const ids =
                                                                         n > 0
                                                                             ? mesh->connectivity +
                                                                                   first
                                                                             : &none;
    int64_t *shifted = NULL;
    if (first > 0) {
        GRV_TRY(GRVI_ALLOC(&shifted, n));
        for (int64_t i = 0; i < n; i++) shifted[i] = ends[i] - first;
        ends = shifted;
    }
    GRV_TRY(put_array(w, "offsets", "Int64", 1, -1, ends, n * WORD_BYTES, shifted != NULL));
    return put_array(w, "connectivity", "Int64", 1, -1, ids,
                     (n > 0 ? mesh->offsets[end] - first : 0) * WORD_BYTES, false);
}

static grv_status put_faces(vtk_writer *w)
{
    const grv_mesh *const mesh = w->mesh;
    int64_t *ends = NULL;
    GRV_TRY(put_array(w, "faces", "Int64", 1, -1, mesh->faces,
                      mesh->face_offsets[mesh->n_cells] * WORD_BYTES, false));
    GRV_TRY(GRVI_ALLOC(&ends, mesh->n_cells));
    for (int64_t i = 0; i < mesh->n_cells; i++)
        ends[i] = mesh->types[i] == GRV_CELL_POLYHEDRON ? mesh->face_offsets[i + 1] : -1;
    return put_array(w, "faceoffsets", "Int64", 1, -1, ends, mesh->n_cells * WORD_BYTES, true);
}

/* ---- kinds ---- */

static grv_status put_grid(vtk_writer *w)
{
    const grv_mesh *const mesh = w->mesh;
    grvi_out_printf(&w->out, "<Piece NumberOfPoints=\"%lld\" NumberOfCells=\"%lld\">\n",
                    (long long)mesh->points.n_tuples, (long long)mesh->n_cells);
    GRV_TRY(put_list(w, "PointData", &mesh->point_data, false));
    GRV_TRY(put_list(w, "CellData", &mesh->cell_data, false));
    GRV_TRY(put_points(w));
    put(w, "<Cells>\n");
    GRV_TRY(put_cells(w, 0, mesh->n_cells));
    GRV_TRY(put_array(w, "types", "UInt8", 1, -1, mesh->types, mesh->n_cells, false));
    if (mesh->face_offsets != NULL) GRV_TRY(put_faces(w));
    put(w, "</Cells>\n</Piece>\n");
    return GRV_OK;
}

static grv_status put_surface(vtk_writer *w)
{
    static const char *const names[] = {"Verts", "Lines", "Polys", "Strips"};
    const grv_mesh *const mesh = w->mesh;
    int64_t begins[5] = {0};
    int last = 0;
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const int list = grvi_surface_list(mesh->types[i]);
        GRV_CHECK(list >= last, GRV_E_ARG,
                  "%s: cell %lld of type %d: a .vtp file holds vertices, then lines, polygons and "
                  "strips (.vtu takes any)",
                  w->out.path, (long long)i, mesh->types[i]);
        begins[list + 1]++;
        last = list;
    }
    for (int i = 0; i < 4; i++) begins[i + 1] += begins[i];
    grvi_out_printf(&w->out, "<Piece NumberOfPoints=\"%lld\"", (long long)mesh->points.n_tuples);
    for (int i = 0; i < 4; i++)
        grvi_out_printf(&w->out, " NumberOf%s=\"%lld\"", names[i],
                        (long long)(begins[i + 1] - begins[i]));
    put(w, ">\n");
    GRV_TRY(put_list(w, "PointData", &mesh->point_data, false));
    GRV_TRY(put_list(w, "CellData", &mesh->cell_data, false));
    GRV_TRY(put_points(w));
    for (int i = 0; i < 4; i++) {
        grvi_out_printf(&w->out, "<%s>\n", names[i]);
        GRV_TRY(put_cells(w, begins[i], begins[i + 1]));
        grvi_out_printf(&w->out, "</%s>\n", names[i]);
    }
    put(w, "</Piece>\n");
    return GRV_OK;
}

static void put_extent(vtk_writer *w, const char *name)
{
    const int64_t *const e = w->mesh->extent;
    grvi_out_printf(&w->out, " %s=\"%lld %lld %lld %lld %lld %lld\"", name, (long long)e[0],
                    (long long)e[1], (long long)e[2], (long long)e[3], (long long)e[4],
                    (long long)e[5]);
}

static void put_numbers(vtk_writer *w, const char *name, int n, const double *values)
{
    grvi_out_printf(&w->out, " %s=\"", name);
    for (int i = 0; i < n; i++) grvi_out_printf(&w->out, "%s%.17g", i == 0 ? "" : " ", values[i]);
    put(w, "\"");
}

static grv_status put_image(vtk_writer *w)
{
    put(w, "<Piece");
    put_extent(w, "Extent");
    put(w, ">\n");
    GRV_TRY(put_list(w, "PointData", &w->mesh->point_data, false));
    GRV_TRY(put_list(w, "CellData", &w->mesh->cell_data, false));
    put(w, "</Piece>\n");
    return GRV_OK;
}

/* ---- data ---- */

static void put_encoded(vtk_writer *w, const void *data, int64_t n)
{
    if (w->params->encoding == GRV_MESH_BASE64)
        grvi_out_put_base64(&w->out, data, n);
    else
        grvi_out_put(&w->out, data, n);
}

/* Compression of a wave of blocks. */
typedef struct wave {
    const uint8_t *in;
    int64_t n_in, first; /* block number of the wave's first */
    int level;
    uint8_t *out;          /* [blocks of the wave][bound] */
    int64_t bound, *sizes; /* [all blocks] */
    bool *failed;          /* [threads] */
} wave;

static void compress_blocks(void *argument, int thread, int64_t begin, int64_t end)
{
    const wave *const v = argument;
    grvi_block_state state = {0};
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = (v->first + i) * BLOCK_BYTES;
        if (grvi_block_encode(&state, v->level, v->in + at, grvi_min_i64(BLOCK_BYTES, v->n_in - at),
                              v->out + i * v->bound, &v->sizes[v->first + i]) != GRV_OK)
            v->failed[thread] = true;
    }
    grvi_block_state_fini(&state);
}

/* Header of a compressed array: as it stands before the sizes are known, or afterwards. */
static void put_header(vtk_writer *w, const uint64_t *header, int64_t n_words, int64_t patch_at)
{
    const int64_t at = w->out.at;
    if (patch_at < 0) {
        put_encoded(w, header, n_words * WORD_BYTES);
        grvi_out_end_base64(&w->out);
        return;
    }
    if (w->params->encoding != GRV_MESH_BASE64) {
        grvi_out_patch(&w->out, patch_at, header, n_words * WORD_BYTES);
        return;
    }
    /* three words are four times eight characters: strips can be encoded by themselves */
    for (int64_t i = 0; i < n_words; i += 3) {
        uint8_t text[32];
        const int64_t n = grvi_min_i64(3, n_words - i) * WORD_BYTES;
        grvi_base64_encode((const uint8_t *)(header + i), n, text);
        grvi_out_patch(&w->out, patch_at + i / 3 * 32, text, grvi_base64_length(n));
    }
    GRV_ASSERT(w->out.at == at);
}

static grv_status run_waves(vtk_writer *w, const appended_array *a, int64_t n_blocks,
                            int64_t *sizes)
{
    grv_status status = GRV_OK;
    const int n_threads = w->params->n_threads;
    const int64_t room = grvi_min_i64((int64_t)n_threads * BLOCKS_PER_THREAD, n_blocks);
    wave v = {.in = a->data,
              .n_in = a->n_bytes,
              .level = w->params->zlib_level,
              .bound = grvi_block_bound(BLOCK_BYTES),
              .sizes = sizes};
    GRV_TRY_GOTO(grvi_alloc(room, (size_t)v.bound, (void **)&v.out));
    GRV_TRY_GOTO(GRVI_CALLOC(&v.failed, n_threads));
    for (; v.first < n_blocks; v.first += room) {
        const int64_t n = grvi_min_i64(room, n_blocks - v.first);
        grv_parallel_for(n_threads, n, compress_blocks, &v);
        for (int i = 0; i < n_threads; i++)
            GRV_CHECK_GOTO(!v.failed[i], GRV_E_NOMEM, "%s: compressing failed", w->out.path);
        for (int64_t i = 0; i < n; i++) put_encoded(w, v.out + i * v.bound, sizes[v.first + i]);
    }
    grvi_out_end_base64(&w->out);
done:
    grv_free(v.out);
    grv_free(v.failed);
    return status;
}

static grv_status put_compressed(vtk_writer *w, const appended_array *a)
{
    const int64_t n_blocks = grvi_ceil_div(a->n_bytes, BLOCK_BYTES),
                  n_words = n_blocks == 0 ? 1 : 3 + n_blocks;
    uint64_t *header = NULL;
    GRV_TRY(GRVI_CALLOC(&header, 3 + n_blocks));
    header[0] = (uint64_t)n_blocks;
    header[1] = BLOCK_BYTES;
    header[2] = (uint64_t)(a->n_bytes % BLOCK_BYTES);
    const int64_t at = w->out.at;
    put_header(w, header, n_blocks == 0 ? 3 : n_words, -1);
    grv_status status = n_blocks == 0 ? GRV_OK : run_waves(w, a, n_blocks, (int64_t *)header + 3);
    if (status == GRV_OK && n_blocks > 0) put_header(w, header, n_words, at);
    grv_free(header);
    return status;
}

static grv_status put_data(vtk_writer *w)
{
    const bool base64 = w->params->encoding == GRV_MESH_BASE64;
    grvi_out_printf(&w->out, "<AppendedData encoding=\"%s\">\n_", base64 ? "base64" : "raw");
    const int64_t begin = w->out.at;
    for (int64_t i = 0; i < w->n_arrays; i++) {
        const appended_array *const a = &w->arrays[i];
        char offset[OFFSET_WIDTH + 1];
        /* what is not needed of the room stays blank behind the value: meshio takes no blanks inside */
        const int n = snprintf(offset, sizeof offset, "\"%lld\"", (long long)(w->out.at - begin));
        grvi_out_patch(&w->out, a->place, offset, n);
        if (w->params->zlib_level > 0) {
            GRV_TRY(put_compressed(w, a));
            continue;
        }
        const uint64_t header = (uint64_t)a->n_bytes;
        put_encoded(w, &header, sizeof header);
        put_encoded(w, a->data, a->n_bytes);
        grvi_out_end_base64(&w->out);
    }
    put(w, "\n</AppendedData>\n</VTKFile>\n");
    return GRV_OK;
}

/* ---- file ---- */

static grv_status put_file(vtk_writer *w)
{
    const grv_mesh *const mesh = w->mesh;
    const size_t n_path = strlen(w->out.path);
    const bool is_image = mesh->kind == GRV_MESH_IMAGE,
               is_vtp = w->out.path[n_path - 1] == 'p' || w->out.path[n_path - 1] == 'P';
    const char *const type = is_image ? "ImageData" : is_vtp ? "PolyData" : "UnstructuredGrid";
    put(w, "<?xml version=\"1.0\"?>\n");
    grvi_out_printf(&w->out,
                    "<VTKFile type=\"%s\" version=\"1.0\" byte_order=\"LittleEndian\" "
                    "header_type=\"UInt64\"%s>\n<%s",
                    type, w->params->zlib_level > 0 ? " compressor=\"vtkZLibDataCompressor\"" : "",
                    type);
    if (is_image) {
        put_extent(w, "WholeExtent");
        put_numbers(w, "Origin", 3, mesh->origin);
        put_numbers(w, "Spacing", 3, mesh->spacing);
        put_numbers(w, "Direction", 9, mesh->direction);
    }
    put(w, ">\n");
    GRV_TRY(put_field_data(w));
    GRV_TRY(is_image ? put_image(w) : is_vtp ? put_surface(w) : put_grid(w));
    grvi_out_printf(&w->out, "</%s>\n", type);
    GRV_TRY(put_data(w));
    return grvi_out_flush(&w->out);
}

grv_status grvi_vtk_xml_write(const grv_mesh *mesh, const grv_mesh_write_params *params, int fd,
                              const char *path)
{
    vtk_writer w = {.mesh = mesh, .params = params};
    grv_status status = grvi_out_init(&w.out, fd, path);
    if (status == GRV_OK) status = put_file(&w);
    for (int64_t i = 0; i < w.n_arrays; i++)
        if (w.arrays[i].is_ours) grv_free((void *)(uintptr_t)w.arrays[i].data);
    grv_free(w.arrays);
    grvi_out_fini(&w.out);
    return status;
}
