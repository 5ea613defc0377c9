/* grove geom sample: random points on or inside a surface, and points spread evenly over it. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "grove/core.h"

enum { KIND_SURFACE, KIND_VOLUME, KIND_FARTHEST };
static const char *const kinds[] = {"surface", "volume", "farthest", NULL};

typedef struct sample_config {
    int64_t n, seed, candidates;
    int kind, type, threads;
    bool either_orientation, overwrite;
} sample_config;

#define AT(field) offsetof(sample_config, field)
static const grv_option options[] = {
    {.key = "n",
     .type = GRV_OPTION_I64,
     .offset = AT(n),
     .fallback = "10000",
     .min = 1,
     .max = 2147483647,
     .help = "points"},
    {.key = "kind",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(kind),
     .fallback = "surface",
     .choices = kinds,
     .help = "surface: uniform over the area; volume: inside; farthest: each far from all before"},
    {.key = "seed",
     .type = GRV_OPTION_I64,
     .offset = AT(seed),
     .fallback = "1",
     .min = 0,
     .max = HUGE_VAL,
     .help = "of the random numbers"},
    {.key = "candidates",
     .type = GRV_OPTION_I64,
     .offset = AT(candidates),
     .fallback = "0",
     .min = 0,
     .max = 2147483647,
     .help = "farthest: chosen of so many random points of the surface; 0: of the file's points"},
    {.key = "either_orientation",
     .type = GRV_OPTION_BOOL,
     .offset = AT(either_orientation),
     .fallback = "false",
     .help = "volume: surfaces with normals inwards count too"},
    GRVC_OPTION_TYPE(AT(type), "of points and normals; keep: that of the file's points"),
    GRVC_OPTION_OVERWRITE(AT(overwrite)),
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

/* Points with what is known of each; arrays that are not there are NULL. */
typedef struct samples {
    void *points, *normals; /* [n][3] */
    int32_t *triangles;     /* [n] */
} samples;

typedef struct sample_job {
    const grvc_session *session;
    const sample_config *config;
    int n_threads;
    grv_store_type type;
    grv_triangles *triangles;
    grvc_points cloud;            /* farthest: the file's points */
    grv_surface *surface;         /* volume */
    grv_surface_sampler *sampler; /* surface, candidates */
    samples candidates;
    int64_t *order; /* farthest: [n] numbers of points or candidates */
    double *distances;
} sample_job;

/* ---- drawing ---- */

static grv_status draw_surface(const sample_job *job, int64_t first, int64_t n, const samples *out)
{
    const grv_surface_samples_f32 narrow = {out->points, out->normals, NULL, out->triangles};
    const grv_surface_samples_f64 wide = {out->points, out->normals, NULL, out->triangles};
    const uint64_t seed = (uint64_t)job->config->seed;
    return job->type == GRV_STORE_F32
               ? grv_surface_sampler_draw_f32(job->sampler, seed, first, n, job->n_threads, &narrow)
               : grv_surface_sampler_draw_f64(job->sampler, seed, first, n, job->n_threads, &wide);
}

static grv_status draw_inside(const sample_job *job, int64_t first, int64_t n, void *points)
{
    const uint64_t seed = (uint64_t)job->config->seed;
    return job->type == GRV_STORE_F32
               ? grv_sample_inside_f32(job->surface, seed, first, n, job->n_threads, points)
               : grv_sample_inside_f64(job->surface, seed, first, n, job->n_threads, points);
}

static grv_status make_sampler(sample_job *job)
{
    const grv_triangles *const t = job->triangles;
    return t->type == GRV_STORE_F32
               ? grv_surface_sampler_create_f32(t->n_points, t->points, t->n_triangles,
                                                t->triangles, &job->sampler)
               : grv_surface_sampler_create_f64(t->n_points, t->points, t->n_triangles,
                                                t->triangles, &job->sampler);
}

/* ---- farthest points ---- */

static grv_status draw_candidates(sample_job *job)
{
    const int64_t n = job->config->candidates;
    const size_t n_bytes = (size_t)(3 * grv_store_type_bytes(job->type));
    GRV_TRY(make_sampler(job));
    GRV_TRY(grvi_alloc(n, n_bytes, &job->candidates.points));
    GRV_TRY(grvi_alloc(n, n_bytes, &job->candidates.normals));
    GRV_TRY(GRVI_ALLOC(&job->candidates.triangles, n));
    return draw_surface(job, 0, n, &job->candidates);
}

static grv_status choose_farthest(sample_job *job)
{
    const sample_config *const c = job->config;
    const bool from_file = c->candidates == 0;
    const int64_t n = from_file ? job->cloud.n : c->candidates;
    if (!from_file) GRV_TRY(draw_candidates(job));
    GRV_CHECK(c->n <= n, GRV_E_CONFIG, "n: at most the %lld %s expected, %lld found", (long long)n,
              from_file ? "points of the file" : "candidates", (long long)c->n);
    const void *const points = from_file ? job->cloud.data : job->candidates.points;
    GRV_TRY(GRVI_ALLOC(&job->order, c->n));
    GRV_TRY(GRVI_ALLOC(&job->distances, c->n));
    return job->type == GRV_STORE_F32 ? grv_sample_farthest_f32(n, points, 0, c->n, job->n_threads,
                                                                job->order, job->distances)
                                      : grv_sample_farthest_f64(n, points, 0, c->n, job->n_threads,
                                                                job->order, job->distances);
}

static void gather(const int64_t *order, int64_t n, const void *from, size_t n_bytes, void *to)
{
    for (int64_t i = 0; i < n; i++)
        memcpy((uint8_t *)to + (size_t)i * n_bytes,
               (const uint8_t *)from + (size_t)order[i] * n_bytes, n_bytes);
}

/* ---- the table ---- */

static void add_columns(const sample_job *job, grvc_table *t)
{
    const sample_config *const c = job->config;
    grvc_table_add(t, "points", job->type, 3);
    if (c->kind == KIND_SURFACE || c->candidates > 0) {
        grvc_table_add(t, "normals", job->type, 3);
        grvc_table_add(t, "triangle", GRV_STORE_I32, 0);
    }
    if (c->kind != KIND_FARTHEST) return;
    if (c->candidates == 0) grvc_table_add(t, "index", GRV_STORE_I64, 0);
    grvc_table_add(t, "distance", GRV_STORE_F64, 0);
}

static grv_status compute(void *argument, const grvc_table *t, int64_t first, int64_t count)
{
    const sample_job *const job = argument;
    const sample_config *const c = job->config;
    const samples out = {grvc_table_rows(t, "points", first), grvc_table_rows(t, "normals", first),
                         grvc_table_rows(t, "triangle", first)};
    if (c->kind == KIND_SURFACE) return draw_surface(job, first, count, &out);
    if (c->kind == KIND_VOLUME) return draw_inside(job, first, count, out.points);
    const size_t n_bytes = (size_t)(3 * grv_store_type_bytes(job->type));
    const int64_t *const order = job->order + first;
    memcpy(grvc_table_rows(t, "distance", first), job->distances + first,
           (size_t)count * sizeof *job->distances);
    if (c->candidates == 0) {
        gather(order, count, job->cloud.data, n_bytes, out.points);
        memcpy(grvc_table_rows(t, "index", first), order, (size_t)count * sizeof *order);
        return GRV_OK;
    }
    gather(order, count, job->candidates.points, n_bytes, out.points);
    gather(order, count, job->candidates.normals, n_bytes, out.normals);
    gather(order, count, job->candidates.triangles, sizeof *out.triangles, out.triangles);
    return GRV_OK;
}

static grv_status make_group(const sample_job *job, grvc_output *output)
{
    const sample_config *const c = job->config;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grvc_description_begin(&w, "sample");
    grvc_json_text(&w, "surface", job->session->words[0]);
    grvc_json_text(&w, "kind", kinds[c->kind]);
    grvc_json_integer(&w, "seed", c->seed);
    if (c->candidates > 0) grvc_json_integer(&w, "candidates", c->candidates);
    grvi_json_end_object(&w);
    grvi_json_end_object(&w);
    return grvc_output_group(output, "", &text);
}

static grv_status write_table(sample_job *job, grvc_output *output)
{
    grv_status status = GRV_OK;
    grv_mesh *mesh = NULL;
    grvc_table t = {
        .rank = 1, .shape = {job->config->n}, .axes = {"point"}, .components = "component"};
    add_columns(job, &t);
    if (output->is_file) {
        GRV_TRY_GOTO(grvc_cloud_create(job->type, job->config->n, NULL, &mesh));
    } else {
        GRV_TRY_GOTO(grvc_output_open(output, job->n_threads));
        GRV_TRY_GOTO(make_group(job, output));
    }
    t.output = output;
    t.mesh = mesh;
    GRV_TRY_GOTO(grvc_table_run(&t, compute, job, job->session, "points"));
    GRV_TRY_GOTO(grvc_output_finish(output, mesh, job->n_threads));
done:
    grvc_table_fini(&t);
    grv_mesh_destroy(&mesh);
    return status;
}

/* ---- the command ---- */

static grv_status check_config(const sample_config *c)
{
    GRV_CHECK(c->candidates == 0 || c->kind == KIND_FARTHEST, GRV_E_CONFIG,
              "candidates: for kind=farthest only");
    GRV_CHECK(c->kind != KIND_FARTHEST || c->candidates > 0 || c->type == GRVC_TYPE_KEEP,
              GRV_E_CONFIG, "type: the file's points are kept as they are");
    return GRV_OK;
}

/* What the points are drawn from. */
static grv_status prepare(sample_job *job)
{
    const sample_config *const c = job->config;
    const char *const word = job->session->words[0];
    double since_s = grv_clock_seconds();
    if (c->kind == KIND_FARTHEST && c->candidates == 0) {
        GRV_TRY(grvc_points_read(word, GRVC_AT_POINTS, job->n_threads, &job->cloud));
        GRV_CHECK(job->cloud.dimension == 3, GRV_E_SHAPE,
                  "%s: points [n, 3] expected, [n, 2] found", word);
        job->type = job->cloud.type;
        grvc_tell_step(job->session, "points read", &since_s);
        return choose_farthest(job);
    }
    GRV_TRY(grvc_surface_read(word, job->n_threads, &job->triangles));
    job->type = grvc_type_of(c->type, job->triangles->type);
    grvc_tell_step(job->session, "surface read", &since_s);
    if (c->kind == KIND_SURFACE) return make_sampler(job);
    if (c->kind == KIND_FARTHEST) return choose_farthest(job);
    grv_surface_params params = grv_surface_params_default();
    params.either_orientation = c->either_orientation;
    params.n_threads = job->n_threads;
    GRV_TRY(grvc_surface_create(job->triangles, &params, &job->surface));
    grv_triangles_destroy(&job->triangles);
    grvc_tell_step(job->session, "surface prepared", &since_s);
    return GRV_OK;
}

static grv_status print_result(const sample_job *job, double seconds)
{
    const sample_config *const c = job->config;
    const char *const place = job->session->words[1];
    if (!job->session->json) {
        (void)printf("%s: %lld points, kind %s, seed %lld", place, (long long)c->n, kinds[c->kind],
                     (long long)c->seed);
        if (job->distances != NULL) (void)printf(", at least %.6g apart", job->distances[c->n - 1]);
        (void)printf("; %.1f s\n", seconds);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", place);
    grvc_json_integer(&w, "points", c->n);
    grvc_json_text(&w, "kind", kinds[c->kind]);
    grvc_json_text(&w, "type", grv_store_type_name(job->type));
    if (job->sampler != NULL) grvc_json_number(&w, "area", grv_surface_sampler_area(job->sampler));
    if (job->distances != NULL) grvc_json_number(&w, "least_distance", job->distances[c->n - 1]);
    grvc_json_number(&w, "seconds", seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static void job_fini(sample_job *job)
{
    grv_triangles_destroy(&job->triangles);
    grvc_points_fini(&job->cloud);
    grv_surface_destroy(&job->surface);
    grv_surface_sampler_destroy(&job->sampler);
    grv_free(job->candidates.points);
    grv_free(job->candidates.normals);
    grv_free(job->candidates.triangles);
    grv_free(job->order);
    grv_free(job->distances);
}

static grv_status run(const grvc_session *session, const sample_config *c)
{
    grv_status status = GRV_OK;
    grvc_output output = {0};
    const double start_s = grv_clock_seconds();
    sample_job job = {.session = session, .config = c, .n_threads = grvc_threads(c->threads)};
    GRV_TRY_GOTO(check_config(c));
    GRV_TRY_GOTO(grvc_output_check(session->words[1], " .vtp", c->overwrite, &output));
    GRV_TRY_GOTO(prepare(&job));
    GRV_TRY_GOTO(write_table(&job, &output));
    GRV_TRY_GOTO(print_result(&job, grv_clock_seconds() - start_s));
done:
    grvc_output_fini(&output);
    job_fini(&job);
    return status;
}

int grvc_geom_sample(int argc, char **argv)
{
    sample_config config = {0};
    grvc_session session = {
        .name = "grove geom sample",
        .about = "Random points on a surface (uniform over its area, with normals and triangles) "
                 "or inside it, or\n"
                 "points spread evenly: farthest point sampling. Point i depends on the seed and i "
                 "only. OUT.zarr\n"
                 "becomes a group of points [n, 3], normals [n, 3], triangle [n]; OUT.vtp is for "
                 "ParaView.\n"
                 "  grove geom sample car.stl car_points.zarr n=100000\n"
                 "  grove geom sample car.stl even.vtp kind=farthest n=2000 candidates=40000",
        .words_usage = "SURFACE OUT",
        .min_words = 2,
        .max_words = 2,
        .table = &table,
        .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
