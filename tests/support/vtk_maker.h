/* Writes VTK XML files of unstructured grids in every encoding, from the description of the format only: tests read them back, fuzzing starts from them. */
#ifndef GRVI_TEST_VTK_MAKER_H
#define GRVI_TEST_VTK_MAKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <lzma.h>
#include <zlib.h>

typedef enum vtk_layout {
    VTK_INLINE,
    VTK_WRAPPED,
    VTK_APART,
    VTK_APPENDED_BASE64,
    VTK_APPENDED_RAW,
    VTK_ASCII,
    N_VTK_LAYOUTS
} vtk_layout;
typedef enum vtk_compressor {
    VTK_NONE,
    VTK_ZLIB,
    VTK_LZ4,
    VTK_XZ,
    N_VTK_COMPRESSORS
} vtk_compressor;

/* A file that is being made. */
typedef struct vtk_maker {
    vtk_layout
        layout; /* WRAPPED: inline with a line break every 76 characters; APART: header and data in streams of their own */
    vtk_compressor compressor;
    int word_bytes, big_endian;
    size_t block_bytes;
    char *text, *appended;
    size_t n_text, n_appended;
} vtk_maker;

static inline void vtk_add(char **to, size_t *n, const void *data, size_t n_data)
{
    *to = realloc(*to, *n + n_data + 1);
    if (*to == NULL) abort();
    if (n_data > 0) memcpy(*to + *n, data, n_data);
    *n += n_data;
    (*to)[*n] = '\0';
}

static inline void vtk_text(vtk_maker *m, const char *text)
{
    vtk_add(&m->text, &m->n_text, text, strlen(text));
}

static inline void vtk_word(const vtk_maker *m, uint64_t value, uint8_t *out)
{
    for (int i = 0; i < m->word_bytes; i++)
        out[m->big_endian ? m->word_bytes - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static inline void vtk_base64(vtk_maker *m, char **to, size_t *n, const uint8_t *data,
                              size_t n_data)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n_data; i += 3) {
        char group[5] = "====";
        const size_t left = n_data - i < 3 ? n_data - i : 3;
        const unsigned bits = (unsigned)data[i] << 16 |
                              (left > 1 ? (unsigned)data[i + 1] << 8 : 0) |
                              (left > 2 ? (unsigned)data[i + 2] : 0);
        for (size_t k = 0; k <= left; k++) group[k] = alphabet[bits >> (18 - 6 * k) & 63];
        vtk_add(to, n, group, 4);
        if (m->layout == VTK_WRAPPED && i % 57 == 54) vtk_add(to, n, "\n", 1);
    }
}

static inline size_t vtk_compress(const vtk_maker *m, const uint8_t *in, size_t n, uint8_t *out,
                                  size_t room)
{
    uLongf n_zlib = room;
    size_t n_xz = 0;
    switch (m->compressor) {
    case VTK_ZLIB: return compress2(out, &n_zlib, in, n, 5) == Z_OK ? n_zlib : 0;
    case VTK_LZ4:
        return (size_t)LZ4_compress_default((const char *)in, (char *)out, (int)n, (int)room);
    default:
        return lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, in, n, out, &n_xz, room) ==
                       LZMA_OK
                   ? n_xz
                   : 0;
    }
}

/* Header and data of an array as bytes; *n_header of them are the header. */
static inline uint8_t *vtk_pack(const vtk_maker *m, const uint8_t *data, size_t n, size_t *n_header,
                                size_t *n_all)
{
    const size_t n_blocks = (n + m->block_bytes - 1) / m->block_bytes, w = (size_t)m->word_bytes;
    uint8_t *const out = malloc((3 + n_blocks) * w + n + (n_blocks + 1) * 512 + 64);
    if (out == NULL) abort();
    if (m->compressor == VTK_NONE) {
        vtk_word(m, n, out);
        memcpy(out + w, data, n);
        *n_header = w;
        *n_all = w + n;
        return out;
    }
    vtk_word(m, n_blocks, out);
    vtk_word(m, m->block_bytes, out + w);
    vtk_word(m, n % m->block_bytes, out + 2 * w);
    *n_all = *n_header = (3 + n_blocks) * w;
    for (size_t i = 0; i < n_blocks; i++) {
        const size_t at = i * m->block_bytes, k = n - at < m->block_bytes ? n - at : m->block_bytes;
        const size_t made = vtk_compress(m, data + at, k, out + *n_all, k + 512);
        vtk_word(m, made, out + (3 + i) * w);
        *n_all += made;
    }
    return out;
}

static inline void vtk_put_bytes(vtk_maker *m, char **to, size_t *n, const uint8_t *data,
                                 size_t n_data)
{
    size_t n_header = 0, n_all = 0;
    uint8_t *const bytes = vtk_pack(m, data, n_data, &n_header, &n_all);
    if (m->layout == VTK_APPENDED_RAW) {
        vtk_add(to, n, bytes, n_all);
    } else if (m->compressor == VTK_NONE && m->layout != VTK_APART) {
        vtk_base64(m, to, n, bytes, n_all);
    } else {
        vtk_base64(m, to, n, bytes, n_header);
        vtk_base64(m, to, n, bytes + n_header, n_all - n_header);
    }
    free(bytes);
}

/* type: "Float32", ...; item_bytes 1, 4 or 8, in this machine's order */
static inline void vtk_put_array(vtk_maker *m, const char *name, const char *type, int n_components,
                                 size_t item_bytes, const void *data, size_t n)
{
    char tag[256];
    uint8_t *const bytes = malloc(n * item_bytes + 1);
    if (bytes == NULL) abort();
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < item_bytes; k++)
            bytes[i * item_bytes + (m->big_endian ? item_bytes - 1 - k : k)] =
                ((const uint8_t *)data)[i * item_bytes + k];
    const int is_appended = m->layout == VTK_APPENDED_BASE64 || m->layout == VTK_APPENDED_RAW;
    (void)snprintf(tag, sizeof tag,
                   "<DataArray type='%s' Name=\"%s\" NumberOfComponents=\" %d\" format=\"%s\"",
                   type, name, n_components,
                   is_appended              ? "appended"
                   : m->layout == VTK_ASCII ? "ascii"
                                            : "binary");
    vtk_text(m, tag);
    if (is_appended) {
        (void)snprintf(tag, sizeof tag, " offset=\"%zu      \"/>\n", m->n_appended);
        vtk_text(m, tag);
        vtk_put_bytes(m, &m->appended, &m->n_appended, bytes, n * item_bytes);
    } else if (m->layout == VTK_ASCII) {
        vtk_text(m, ">\n");
        for (size_t i = 0; i < n; i++) {
            if (type[0] == 'F')
                (void)snprintf(tag, sizeof tag, " %.17g",
                               item_bytes == 4 ? (double)((const float *)data)[i]
                                               : ((const double *)data)[i]);
            else
                (void)snprintf(tag, sizeof tag, "\n%lld",
                               item_bytes == 1   ? (long long)((const uint8_t *)data)[i]
                               : item_bytes == 4 ? (long long)((const int32_t *)data)[i]
                                                 : (long long)((const int64_t *)data)[i]);
            vtk_text(m, tag);
        }
        vtk_text(m, "\n<InformationKey name=\"L2\"/></DataArray>\n");
    } else {
        vtk_text(m, ">\n  ");
        vtk_put_bytes(m, &m->text, &m->n_text, bytes, n * item_bytes);
        vtk_text(m, "\n</DataArray>\n");
    }
    free(bytes);
}

static inline void vtk_begin(vtk_maker *m)
{
    static const char *const compressors[] = {"", " compressor=\"vtkZLibDataCompressor\"",
                                              " compressor=\"vtkLZ4DataCompressor\"",
                                              " compressor=\"vtkLZMADataCompressor\""};
    vtk_text(
        m,
        "<!-- a > comment -->\n<VTKFile type=\"UnstructuredGrid\" version=\"0.1\" byte_order=\"");
    vtk_text(m, m->big_endian ? "BigEndian\"" : "LittleEndian\"");
    if (m->word_bytes == 8) vtk_text(m, " header_type='UInt64'");
    vtk_text(m, compressors[m->compressor]);
    vtk_text(m, ">\n<UnstructuredGrid>\n");
}

static inline void vtk_end(vtk_maker *m)
{
    vtk_text(m, "</UnstructuredGrid>\n");
    if (m->n_appended > 0) {
        vtk_text(m, m->layout == VTK_APPENDED_RAW ? "<AppendedData encoding=\"raw\">\n _"
                                                  : "<AppendedData encoding=\"base64\">_");
        vtk_add(&m->text, &m->n_text, m->appended, m->n_appended);
        if (m->layout == VTK_APPENDED_RAW) return; /* as some leave it */
        vtk_text(m, "</AppendedData>\n");
    }
    vtk_text(m, "</VTKFile>\n");
}

static inline void vtk_free(vtk_maker *m)
{
    free(m->text);
    free(m->appended);
    m->text = m->appended = NULL;
    m->n_text = m->n_appended = 0;
}

/* A piece of n points and n - 3 tetrahedra of points i to i + 3, point data "u" (double, 3), cell data "id" (Int64). */
static inline void vtk_put_piece(vtk_maker *m, int32_t n, int with_data)
{
    char tag[128];
    const size_t n_points = (size_t)n, n_cells = (size_t)n - 3;
    float *const points = malloc(3 * n_points * sizeof *points);
    double *const u = malloc(3 * n_points * sizeof *u);
    int32_t *const ids = malloc(4 * n_cells * sizeof *ids);
    int64_t *const offsets = malloc(n_cells * sizeof *offsets);
    uint8_t *const types = malloc(n_cells);
    if (points == NULL || u == NULL || ids == NULL || offsets == NULL || types == NULL) abort();
    for (size_t i = 0; i < 3 * n_points; i++) {
        points[i] = (float)(i * 7919 % 1009) / 16;
        u[i] = (double)i / 3 + (i % 5 == 0 ? 1e-7 : 0);
    }
    for (size_t i = 0; i < n_cells; i++) {
        for (size_t k = 0; k < 4; k++) ids[4 * i + k] = (int32_t)(i + k);
        offsets[i] = (int64_t)(4 * (i + 1));
        types[i] = 10;
    }
    (void)snprintf(tag, sizeof tag, "<Piece NumberOfPoints=\"%d  \" NumberOfCells=\"%zu\">\n", n,
                   n_cells);
    vtk_text(m, tag);
    if (with_data) {
        vtk_text(m, "<CellData Scalars=\"id\">\n");
        vtk_put_array(m, "id", "Int64", 1, 8, offsets, n_cells);
        vtk_text(m, "</CellData>\n<PointData>\n");
        vtk_put_array(m, "u", "Float64", 3, 8, u, 3 * n_points);
        vtk_text(m, "</PointData>\n");
    }
    vtk_text(m, "<Points>\n");
    vtk_put_array(m, "Points", "Float32", 3, 4, points, 3 * n_points);
    vtk_text(m, "</Points>\n<Cells>\n");
    vtk_put_array(m, "connectivity", "Int32", 1, 4, ids, 4 * n_cells);
    vtk_put_array(m, "offsets", "Int64", 1, 8, offsets, n_cells);
    vtk_put_array(m, "types", "UInt8", 1, 1, types, n_cells);
    vtk_text(m, "</Cells>\n</Piece>\n");
    free(points);
    free(u);
    free(ids);
    free(offsets);
    free(types);
}

#endif
