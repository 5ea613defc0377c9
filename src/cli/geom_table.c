/* Tables: columns over the same rows, computed and written a batch at a time.
 * A batch holds whole chunks, so that each chunk is written once. */
#include <string.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "grove/core.h"

static const int64_t chunk_bytes = (int64_t)4 << 20; /* of the widest column, about */
static const int64_t batch_rows = (int64_t)1 << 20;  /* a second of work: what Ctrl-C waits for */
enum { CHUNKS_A_BATCH = 16, BRICK = 8 /* grids are looked up in bricks of that side */ };

void grvc_table_add(grvc_table *table, const char *name, grv_store_type type, int64_t n_components)
{
    GRV_ASSERT(table->n_columns < GRVC_MAX_COLUMNS);
    table->columns[table->n_columns++] =
        (grvc_column){.name = name, .type = type, .n_components = n_components};
}

static const grvc_column *find(const grvc_table *table, const char *name)
{
    for (int i = 0; i < table->n_columns; i++)
        if (strcmp(table->columns[i].name, name) == 0) return &table->columns[i];
    return NULL;
}

void *grvc_table_rows(const grvc_table *table, const char *name, int64_t first)
{
    const grvc_column *const c = find(table, name);
    if (c == NULL) return NULL;
    return c->buffer + (table->mesh != NULL ? first * c->step_bytes : 0);
}

/* Rows of one step along the first axis. */
static int64_t rows_a_step(const grvc_table *table)
{
    return table->rank == 3 ? table->shape[1] * table->shape[2] : 1;
}

/* Steps of a chunk; a batch becomes a multiple of it. */
static int64_t choose_batch(grvc_table *table)
{
    int64_t widest = 1, chunk;
    const int64_t least = table->rank == 3 ? BRICK : 1;
    for (int i = 0; i < table->n_columns; i++)
        widest = grvi_max_i64(widest, table->columns[i].step_bytes);
    chunk = grvi_min_i64(chunk_bytes / widest, batch_rows / rows_a_step(table));
    chunk = grvi_max_i64(chunk / least, 1) * least;
    if (table->steps_a_batch == 0) {
        const int64_t most = batch_rows / (chunk * rows_a_step(table));
        table->steps_a_batch = chunk * grvi_max_i64(1, grvi_min_i64(most, CHUNKS_A_BATCH));
    }
    return chunk;
}

/* The array of a column in the group, and memory for a batch. */
static grv_status begin_column(grvc_table *table, grvc_column *c, int64_t chunk)
{
    grv_array_desc desc = grv_array_desc_default();
    desc.type = c->type;
    desc.rank = table->rank;
    desc.attributes = table->attributes;
    for (int i = 0; i < table->rank; i++) {
        desc.shape[i] = table->shape[i];
        desc.dimension_names[i] = table->axes[i];
    }
    if (c->n_components > 0) {
        desc.dimension_names[desc.rank] = table->components;
        desc.shape[desc.rank++] = c->n_components;
    }
    GRV_TRY(grvc_output_array(table->output, c->name, &desc, chunk, &c->array));
    return grvi_alloc(grvi_min_i64(table->steps_a_batch, table->shape[0]), (size_t)c->step_bytes,
                      (void **)&c->buffer);
}

static grv_status begin(grvc_table *table)
{
    const int64_t n = rows_a_step(table);
    for (int i = 0; i < table->n_columns; i++) {
        grvc_column *const c = &table->columns[i];
        c->step_bytes = n * grvi_max_i64(c->n_components, 1) * grv_store_type_bytes(c->type);
    }
    const int64_t chunk = choose_batch(table);
    for (int i = 0; i < table->n_columns; i++) {
        grvc_column *const c = &table->columns[i];
        if (table->mesh == NULL) {
            GRV_TRY(begin_column(table, c, chunk));
            continue;
        }
        grv_mesh_array *added = NULL;
        if (strcmp(c->name, "points") == 0) {
            c->buffer = table->mesh->points.data;
            continue;
        }
        GRV_TRY(grv_mesh_add_array(&table->mesh->point_data, c->name, c->type,
                                   (int)grvi_max_i64(c->n_components, 1), table->shape[0] * n, NULL,
                                   &added));
        c->buffer = added->data;
    }
    return GRV_OK;
}

static grv_status write_batch(const grvc_table *table, int64_t first, int64_t count)
{
    for (int i = 0; i < table->n_columns && table->mesh == NULL; i++) {
        const grvc_column *const c = &table->columns[i];
        int64_t start[GRV_STORE_MAX_RANK] = {first},
                n[GRV_STORE_MAX_RANK] = {count, table->shape[1], table->shape[2]};
        n[table->rank] = c->n_components; /* not looked at without components */
        GRV_TRY(grv_array_write(c->array, start, n, c->buffer, NULL));
    }
    return GRV_OK;
}

/* The data of an image: x becomes the fastest axis. One array at a time is held twice. */
static grv_status turn_column(const grvc_table *table, int column)
{
    const int64_t nx = table->shape[0], ny = table->shape[1], nz = table->shape[2];
    const size_t n_bytes = (size_t)(table->columns[column].step_bytes / (ny * nz));
    grv_mesh_array *const array = &table->mesh->point_data.items[column];
    const uint8_t *const rows = array->data;
    uint8_t *turned = NULL;
    GRV_TRY(grvi_alloc(array->n_bytes, 1, (void **)&turned));
    for (int64_t k = 0; k < nz; k++)
        for (int64_t j = 0; j < ny; j++)
            for (int64_t i = 0; i < nx; i++)
                memcpy(turned + (size_t)((k * ny + j) * nx + i) * n_bytes,
                       rows + (size_t)((i * ny + j) * nz + k) * n_bytes, n_bytes);
    grv_free(array->data);
    array->data = turned;
    return GRV_OK;
}

static grv_status run_batches(const grvc_table *table, grvc_table_body *body, void *argument,
                              grvc_tool *tool)
{
    const int64_t n = table->shape[0], rows = rows_a_step(table);
    for (int64_t first = 0; first < n; first += table->steps_a_batch) {
        const int64_t count = grvi_min_i64(table->steps_a_batch, n - first);
        GRV_TRY(body(argument, table, first, count));
        GRV_TRY(write_batch(table, first, count));
        GRV_CHECK(grvc_tool_advance(tool, (first + count) * rows, n * rows), GRV_E_INTERRUPTED,
                  "stopped after %lld of %lld %s; nothing is kept",
                  (long long)((first + count) * rows), (long long)(n * rows), tool->unit);
    }
    return GRV_OK;
}

grv_status grvc_table_run(grvc_table *table, grvc_table_body *body, void *argument,
                          const grvc_session *session, const char *unit)
{
    grvc_tool tool;
    GRV_TRY(begin(table));
    grvc_tool_begin_counting(&tool, session, strrchr(session->name, ' ') + 1, unit);
    const grv_status status = run_batches(table, body, argument, &tool);
    (void)grvc_tool_end(&tool);
    GRV_TRY(status);
    for (int i = 0; i < table->n_columns; i++) {
        if (table->mesh != NULL && table->rank == 3) GRV_TRY(turn_column(table, i));
        grv_array_close(&table->columns[i].array);
    }
    return GRV_OK;
}

grv_status grvc_cloud_create(grv_store_type type, int64_t n, void *points, grv_mesh **mesh)
{
    grv_status status = GRV_OK;
    int64_t *connectivity = NULL;
    const int64_t offsets[2] = {0, n};
    const uint8_t cell = GRV_CELL_POLY_VERTEX;
    *mesh = NULL;
    GRV_TRY_GOTO(grv_mesh_create(GRV_MESH_SURFACE, mesh));
    grv_mesh_array *const p = &(*mesh)->points;
    *p = (grv_mesh_array){.type = type, .n_components = 3, .n_tuples = n, .data = points};
    p->n_bytes = 3 * n * grv_store_type_bytes(type);
    points = NULL;
    GRV_TRY_GOTO(grvi_strdup("Points", &p->name));
    if (p->data == NULL) GRV_TRY_GOTO(grvi_alloc(p->n_bytes, 1, &p->data));
    GRV_TRY_GOTO(GRVI_ALLOC(&connectivity, n));
    for (int64_t i = 0; i < n; i++) connectivity[i] = i;
    GRV_TRY_GOTO(grv_mesh_set_cells(*mesh, 1, offsets, connectivity, &cell));
done:
    grv_free(connectivity);
    grv_free(points);
    if (status != GRV_OK) grv_mesh_destroy(mesh);
    return status;
}

void grvc_table_fini(grvc_table *table)
{
    for (int i = 0; i < table->n_columns; i++) {
        grv_array_close(&table->columns[i].array);
        if (table->mesh == NULL) grv_free(table->columns[i].buffer);
    }
    *table = (grvc_table){0};
}
