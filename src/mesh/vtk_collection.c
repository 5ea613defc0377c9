/* Files that name other files: .pvd and .vtm (DataSet elements), .pvtu and its like (Piece elements with a Source). */
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"
#include "mesh/numbers.h"
#include "mesh/xml_scan.h"

static const int64_t max_members = (int64_t)1 << 20;

typedef struct collection {
    const char *path;
    int64_t n_folder; /* of the path: bytes up to the last '/' */
    grv_mesh_member *members;
    int64_t n;
} collection;

static grv_status copy_value(grvi_span value, int64_t n_before, const char *before, char **out)
{
    GRV_TRY(grvi_alloc(n_before + value.n + 1, 1, (void **)out));
    memcpy(*out, before, (size_t)n_before);
    (*out)[n_before + grvi_xml_resolve(value, *out + n_before)] = '\0';
    return GRV_OK;
}

static grv_status add_member(collection *c, const grvi_xml_tag *tag, grvi_span file)
{
    grvi_span name, time;
    GRV_CHECK(c->n < max_members, GRV_E_UNSUPPORTED, "%s: more than %lld members", c->path,
              (long long)max_members);
    if ((c->n & (c->n - 1)) == 0) GRV_TRY(GRVI_REALLOC(&c->members, c->n == 0 ? 1 : 2 * c->n));
    grv_mesh_member *const m = &c->members[c->n++];
    *m = (grv_mesh_member){0};
    GRV_TRY(copy_value(file, file.at[0] == '/' ? 0 : c->n_folder, c->path, &m->path));
    if (!grvi_xml_attribute(tag, "name", &name)) (void)grvi_xml_attribute(tag, "part", &name);
    GRV_TRY(copy_value(name, 0, "", &m->name));
    if (!grvi_xml_attribute(tag, "timestep", &time) || time.n == 0) return GRV_OK;
    const char *at = time.at;
    m->has_time = grvi_parse_double(&at, grvi_span_end(time), &m->time);
    GRV_CHECK(m->has_time && at == grvi_span_end(time), GRV_E_FORMAT, "%s: timestep '%.*s' of '%s'",
              c->path, (int)grvi_min_i64(time.n, 40), time.at, m->path);
    return GRV_OK;
}

static grv_status read_members(const grvi_mesh_file *file, collection *c)
{
    const char *const begin = (const char *)file->data;
    grvi_xml xml = {file->path, begin, begin, begin + file->n_bytes};
    grvi_xml_tag tag;
    bool is_root = true;
    for (;;) {
        grvi_span value;
        GRV_TRY(grvi_xml_next(&xml, &tag));
        if (tag.kind == GRVI_XML_END) break;
        if (is_root) {
            GRV_CHECK(grvi_span_is(tag.name, "VTKFile"), GRV_E_FORMAT,
                      "%s: root element VTKFile expected, '%.*s' found", file->path,
                      (int)grvi_min_i64(tag.name.n, 40), tag.name.at);
            (void)grvi_xml_attribute(&tag, "type", &value);
            GRV_CHECK(grvi_span_is(value, "Collection") ||
                          grvi_span_is(value, "vtkMultiBlockDataSet") ||
                          (value.n > 0 && value.at[0] == 'P' && !grvi_span_is(value, "PolyData")),
                      GRV_E_UNSUPPORTED, "%s holds %.*s, which names no other files", file->path,
                      (int)grvi_min_i64(value.n, 40), value.at);
            is_root = false;
        }
        if (tag.kind != GRVI_XML_OPEN) continue;
        if ((grvi_span_is(tag.name, "DataSet") && grvi_xml_attribute(&tag, "file", &value) &&
             value.n > 0) ||
            (grvi_span_is(tag.name, "Piece") && grvi_xml_attribute(&tag, "Source", &value) &&
             value.n > 0))
            GRV_TRY(add_member(c, &tag, value));
    }
    GRV_CHECK(!is_root, GRV_E_FORMAT, "%s: no element VTKFile", file->path);
    return GRV_OK;
}

grv_status grv_mesh_collection_read(const char *path, grv_mesh_member **members, int64_t *n)
{
    grvi_mesh_file file;
    const char *const slash = strrchr(path, '/');
    collection c = {.path = path, .n_folder = slash == NULL ? 0 : slash + 1 - path};
    *members = NULL;
    *n = 0;
    GRV_TRY(grvi_mesh_file_open(path, &file));
    const grv_status status = read_members(&file, &c);
    grvi_mesh_file_close(&file);
    if (status != GRV_OK) {
        grv_mesh_members_free(c.members, c.n);
        return status;
    }
    *members = c.members;
    *n = c.n;
    return GRV_OK;
}

void grv_mesh_members_free(grv_mesh_member *members, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        grv_free(members[i].path);
        grv_free(members[i].name);
    }
    grv_free(members);
}
