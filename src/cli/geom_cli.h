/* What the commands of `grove geom` share. Internal to src/cli.
 * Each is a file cmd_geom_<name>.c with one function grvc_geom_<name>, as the commands of grove are; cmd_geom.c lists them. */
#ifndef GRVC_GEOM_CLI_H
#define GRVC_GEOM_CLI_H

#include "cli/store_cli.h"
#include "grove/geom.h"
#include "grove/triangles.h"

int grvc_geom_convert(int argc, char **argv);
int grvc_geom_info(int argc, char **argv);
int grvc_geom_knn(int argc, char **argv);
int grvc_geom_radius(int argc, char **argv);
int grvc_geom_sample(int argc, char **argv);
int grvc_geom_sdf(int argc, char **argv);

/* Keys that several of them have, for their option tables. */
#define GRVC_OPTION_AT(field_offset)                                                          \
    {                                                                                         \
        .key = "at", .type = GRV_OPTION_CHOICE, .offset = field_offset, .fallback = "points", \
        .choices = grvc_places,                                                               \
        .help = "of mesh files: their points, or the centres of their cells"                  \
    }

#define GRVC_OPTION_TYPE(field_offset, meaning)                                               \
    {                                                                                         \
        .key = "type", .type = GRV_OPTION_CHOICE, .offset = field_offset, .fallback = "keep", \
        .choices = grvc_real_types, .help = meaning                                           \
    }

/* Type of reals that are written: the input's own, or one of two. */
enum { GRVC_TYPE_KEEP, GRVC_TYPE_F32, GRVC_TYPE_F64 };
extern const char *const grvc_real_types[];
static inline grv_store_type grvc_type_of(int choice, grv_store_type own)
{
    return choice == GRVC_TYPE_KEEP ? own : choice == GRVC_TYPE_F32 ? GRV_STORE_F32 : GRV_STORE_F64;
}

/* Where in a mesh file the points are: its points, the centres of its cells. */
enum { GRVC_AT_POINTS, GRVC_AT_CELLS };
extern const char *const grvc_places[];

/* Does a name end so? Letters of either case. */
bool grvc_has_ending(const char *word, const char *ending);

/* ---- what is read: geom_input.c ---- */

/* With -v, how long a step took that shows no progress; *since_s becomes now. */
void grvc_tell_step(const grvc_session *session, const char *step, double *since_s);

/* [n, dimension], GRV_STORE_F32 or GRV_STORE_F64 */
typedef struct grvc_points {
    grv_store_type type;
    int64_t n;
    int dimension; /* 2 or 3 */
    void *data;    /* owned */
} grvc_points;

/* The points (or cell centres: at) of a mesh file, an array [n, 2 or 3] in a store (or the array `points` of a group), or a .npy file; at least one. Nothing is copied but what a file's
 * format asks for. */
grv_status grvc_points_read(const char *word, int at, int n_threads,
                            grvc_points *points) GRV_MUST_CHECK;
/* Points and queries become of one type: where they differ, the float ones become double, which changes no value. */
grv_status grvc_points_match(grvc_points *a, grvc_points *b) GRV_MUST_CHECK;
void grvc_points_fini(grvc_points *points);
static inline grv_neighbours_type grvc_points_type(const grvc_points *points)
{
    return points->type == GRV_STORE_F32 ? GRV_NEIGHBOURS_F32 : GRV_NEIGHBOURS_F64;
}

/* The triangles of a mesh file: at least one, all of their corners finite. */
grv_status grvc_surface_read(const char *word, int n_threads,
                             grv_triangles **triangles) GRV_MUST_CHECK;
grv_status grvc_surface_create(const grv_triangles *triangles, const grv_surface_params *params,
                               grv_surface **surface) GRV_MUST_CHECK;

/* ---- searches: geom_search.c ---- */

/* Points to search in, and queries: of a file of their own, or the points themselves. */
typedef struct grvc_search {
    grvc_points points, queries; /* queries.data is NULL where the points are the queries */
    int64_t n_queries;
    grv_store_type type; /* of points, queries and distances */
    int64_t n_points;
    grv_neighbours *tree;
} grvc_search;

/* Reads "POINTS [QUERIES] OUT" and builds the tree. keep_points: they are needed later on. */
grv_status grvc_search_begin(grvc_search *search, const grvc_session *session, int at,
                             bool keep_points, int n_threads) GRV_MUST_CHECK;
/* The queries from number `first` on. */
const void *grvc_search_queries(const grvc_search *search, int64_t first);
void grvc_search_fini(grvc_search *search);
/* The word that is the output. */
const char *grvc_search_output(const grvc_session *session);
/* What both searches note of themselves, into an open JSON object. */
void grvc_search_describe(const grvc_search *search, const grvc_session *session,
                          grvi_json_writer *w);

/* ---- what is written: geom_output.c ---- */

/* A result that is seen as a whole or not at all: made under a temporary name beside its place, then renamed. A Zarr group, or a mesh file. */
typedef struct grvc_output {
    char *place;    /* where it is to be; owned */
    bool is_file;   /* a mesh file; else a Zarr group */
    bool overwrite; /* what is there may be replaced */
    char *aside;    /* of a group: its temporary name; owned */
    grvc_node node; /* of a group: where it is made */
} grvc_output;

/* Before anything is read or computed: may it be made there?
 * endings: of mesh files that the command writes, " .vtp .vtu"; "" for none */
grv_status grvc_output_check(const char *word, const char *endings, bool overwrite,
                             grvc_output *output) GRV_MUST_CHECK;
/* Opens the store for a group, which is still to be made at node.path. */
grv_status grvc_output_open(grvc_output *output, int n_threads) GRV_MUST_CHECK;
/* Begins the attributes of a result's group with how it was made: two objects, which the caller closes. */
void grvc_description_begin(grvi_json_writer *w, const char *command);
/* Makes the group, or the one of that name in it; the attributes are released. */
grv_status grvc_output_group(const grvc_output *output, const char *name,
                             grvi_text *attributes) GRV_MUST_CHECK;
/* The group becomes visible; its arrays must have been closed. */
grv_status grvc_output_publish(grvc_output *output) GRV_MUST_CHECK;
/* The same, or the mesh is written if it is to be a file. */
grv_status grvc_output_finish(grvc_output *output, const grv_mesh *mesh,
                              int n_threads) GRV_MUST_CHECK;
/* Afterwards, in any case: what was not published is removed. */
void grvc_output_fini(grvc_output *output);
/* An array in the group: chunks of chunk_rows rows, whole along the other axes. */
grv_status grvc_output_array(grvc_output *output, const char *name, grv_array_desc *desc,
                             int64_t chunk_rows, grv_array **array) GRV_MUST_CHECK;
/* Is this a place for a picture? */
grv_status grvc_picture_check(const char *path, bool overwrite) GRV_MUST_CHECK;

/* ---- tables: geom_table.c ---- */

enum { GRVC_MAX_COLUMNS = 24 };

/* One named array of a table. The first three are given, the rest is the table's. */
typedef struct grvc_column {
    const char *name; /* in a group, the path of the array */
    grv_store_type type;
    int64_t n_components; /* 0: single values, without an axis of their own */
    int64_t step_bytes;   /* of one step along the rows' first axis */
    uint8_t *buffer;      /* of a batch, or of all rows where the table is in memory */
    grv_array *array;
} grvc_column;

/* Columns over the same rows, computed and written a batch at a time: into arrays of a group, which takes memory for a batch only, or into the data of a mesh. */
typedef struct grvc_table {
    int rank;               /* 1: a list of rows, 3: the points of a grid */
    int64_t shape[3];       /* of the rows, slowest axis first */
    const char *axes[3];    /* their names */
    const char *components; /* name of the last axis of columns with components */
    const char *attributes; /* of each array, JSON; NULL: none */
    int64_t steps_a_batch;  /* 0: as fits; else that many steps along the first axis */
    int n_columns;
    grvc_column columns[GRVC_MAX_COLUMNS];
    grvc_output *output; /* of a group; or: */
    grv_mesh *
        mesh; /* whose point data the columns become. Of an image: x is the slowest axis of the rows, the fastest of the mesh */
} grvc_table;

void grvc_table_add(grvc_table *table, const char *name, grv_store_type type, int64_t n_components);
/* Where the batch that begins at step `first` of a column is to be computed; NULL if there is no such column. */
void *grvc_table_rows(const grvc_table *table, const char *name, int64_t first);
/* Computes steps [first, first + count) into grvc_table_rows. */
typedef grv_status grvc_table_body(void *argument, const grvc_table *table, int64_t first,
                                   int64_t count);
/* Makes the arrays, calls the body for every batch and writes it, with progress in rows of this unit; Ctrl-C ends it with
 * GRV_E_INTERRUPTED. */
grv_status grvc_table_run(grvc_table *table, grvc_table_body *body, void *argument,
                          const grvc_session *session, const char *unit) GRV_MUST_CHECK;
/* A mesh of points, which viewers show as dots, for a table in memory; its column `points`, if there is one, is where the points are.
 * points: [n, 3], taken in any case; NULL: uninitialised ones are made */
grv_status grvc_cloud_create(grv_store_type type, int64_t n, void *points,
                             grv_mesh **mesh) GRV_MUST_CHECK;
/* Afterwards, in any case. */
void grvc_table_fini(grvc_table *table);

/* ---- pictures: geom_picture.c ---- */

/* A plane through a box, perpendicular to an axis. */
typedef struct grvc_slice_plane {
    int axis;
    double position;
    double lower[3], upper[3]; /* of the box */
} grvc_slice_plane;

/* Signed distances in a plane as a PNG file, on a grid of its own; the surface is a line.
 * The box has a size along both axes of the plane. unit: "" for none */
grv_status grvc_picture_write(const char *path, const char *title, const char *unit,
                              const grv_surface *surface, const grvc_slice_plane *plane,
                              const grv_surface_query *query) GRV_MUST_CHECK;

#endif
