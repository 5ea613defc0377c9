/* Immersed bodies: built-in shapes, measuring a signed distance on the grid, and its effect on a velocity (spec 7.3). */
#include <math.h>

#include "core/alloc.h"
#include "sim/flow_impl.h"
#include "sim/flow_mesh_impl.h"

static const double pi = 3.14159265358979323846;
static const double measured_distance =
    3; /* from a cell's centre: beyond, no face is within the smoothed surface */
static const double gradient_step =
    1e-3; /* cells, of the central differences that give the normal */
static const double closed_below =
    1e-6; /* mu0 that counts as 0: such a face would only spoil the pressure equation */

/* ---- shapes ---- */

static double round_distance(const double *centre, const double *velocity, double radius, int axis,
                             const double position[3], double time, double body_velocity[3])
{
    double squares = 0;
    for (int d = 0; d < 3; d++) {
        const double x = position[d] - centre[d] - time * velocity[d];
        body_velocity[d] = velocity[d];
        if (d != axis) squares += x * x;
    }
    return sqrt(squares) - radius;
}

double grv_flow_sphere_distance(void *sphere, const double position[3], double time,
                                double velocity[3])
{
    const grv_flow_sphere *const s = sphere;
    return round_distance(s->centre, s->velocity, s->radius, -1, position, time, velocity);
}

double grv_flow_circle_distance(void *circle, const double position[3], double time,
                                double velocity[3])
{
    const grv_flow_circle *const c = circle;
    return round_distance(c->centre, c->velocity, c->radius, c->axis, position, time, velocity);
}

double grv_flow_box_distance(void *box, const double position[3], double time, double velocity[3])
{
    const grv_flow_box *const b = box;
    double outside = 0, inside = -(double)INFINITY;
    for (int d = 0; d < 3; d++) {
        const double over =
            fabs(position[d] - b->centre[d] - time * b->velocity[d]) - b->half_size[d];
        velocity[d] = b->velocity[d];
        if (over > 0) outside += over * over;
        inside = fmax(inside, over);
    }
    return outside > 0 ? sqrt(outside) : inside;
}

/* ---- measuring ---- */

static double distance_at(const grv_flow *flow, const double position[3], double time,
                          double velocity[3])
{
    for (int d = 0; d < 3; d++) velocity[d] = 0;
    return flow->params.distance(flow->params.body, position, time, velocity);
}

/* Distance divided by the length of its gradient, and the unit normal. */
static double scaled_distance(const grv_flow *flow, const double position[3], double time,
                              double normal[3], double velocity[3])
{
    double squares = 0, unused[3];
    for (int d = 0; d < 3; d++) {
        double low[3] = {position[0], position[1], position[2]},
               high[3] = {position[0], position[1], position[2]};
        low[d] -= gradient_step;
        high[d] += gradient_step;
        normal[d] = (distance_at(flow, high, time, unused) - distance_at(flow, low, time, unused)) /
                    (2 * gradient_step);
        squares += normal[d] * normal[d];
    }
    const double length = sqrt(squares), distance = distance_at(flow, position, time, velocity);
    if (length < 0.1) return distance; /* a ridge or a centre: there is no normal */
    for (int d = 0; d < 3; d++) normal[d] /= length;
    return distance / length;
}

/* A body at a time: a distance function, or a mesh that was measured. */
typedef struct probe {
    const grv_flow *flow;
    double time;
    grvi_flow_mesh_samples mesh;
} probe;

static void position_of(const int64_t cell[3], int place, double position[3])
{
    for (int d = 0; d < 3; d++) position[d] = (double)cell[d] + (d == place ? 0 : 0.5);
}

/* Distance, unit normal and the body's velocity at a place of a cell. */
static double look(const probe *p, const int64_t cell[3], int place, double normal[3],
                   double velocity[3])
{
    double position[3];
    if (p->flow->params.mesh != NULL) {
        for (int d = 0; d < 3; d++) velocity[d] = 0;
        return grvi_flow_mesh_samples_get(&p->mesh, cell, place, normal);
    }
    position_of(cell, place, position);
    return scaled_distance(p->flow, position, p->time, normal, velocity);
}

/* Difference of a component of the body's velocity, from a cell before a face to a cell behind it along d. */
static double velocity_difference(const probe *p, const int64_t cell[3], int component, int d)
{
    double low[3], high[3], low_velocity[3], high_velocity[3];
    if (p->flow->params.mesh != NULL) return 0;
    position_of(cell, component, low);
    position_of(cell, component, high);
    low[d] -= 1;
    high[d] += 1;
    (void)distance_at(p->flow, low, p->time, low_velocity);
    (void)distance_at(p->flow, high, p->time, high_velocity);
    return high_velocity[component] - low_velocity[component];
}

static grv_status reserve_face(grvi_flow_faces *faces)
{
    if (faces->n < faces->capacity) return GRV_OK;
    const int64_t capacity = grvi_max_i64(256, 2 * faces->capacity);
    GRV_TRY(GRVI_REALLOC(&faces->face, capacity));
    faces->capacity = capacity;
    return GRV_OK;
}

/* Coefficient and update rule of the lower face of a cell near or inside the body. */
static grv_status measure_face(grv_flow *flow, const probe *p, const int64_t cell[3], int component,
                               int64_t at)
{
    double normal[3], velocity[3];
    const double distance = look(p, cell, component, normal, velocity);
    const double s = fmin(1, fmax(-1, distance));
    const double open = (1 + s + sin(pi * s) / pi) / 2, mu0 = open < closed_below ? 0 : open;
    const double mu1 = (1 - s * s) / 4 - (s * sin(pi * s) + (1 + cos(pi * s)) / pi) / (2 * pi);
    grvi_flow_store(flow->multigrid.level[0].face[component], flow->is_double, at, mu0);
    if (s >= 1) return GRV_OK;
    grvi_flow_faces *const faces = &flow->faces[component];
    GRV_TRY(reserve_face(faces));
    grvi_flow_body_face face = {.at = at, .mu0 = mu0, .constant = (1 - mu0) * velocity[component]};
    for (int d = 0; d < 3; d++) {
        if (flow->grid.n[d] == 1 || s <= -1) continue;
        face.half_mu1[d] = mu1 * normal[d] / 2;
        face.constant -= face.half_mu1[d] * velocity_difference(p, cell, component, d);
    }
    faces->face[faces->n++] = face;
    return GRV_OK;
}

static grv_status measure_surface(grv_flow *flow, const probe *p, const int64_t cell[3])
{
    double normal[3], velocity[3];
    const double distance = look(p, cell, GRVI_FLOW_CENTRE, normal, velocity);
    if (!(fabs(distance) < 1)) return GRV_OK;
    if (flow->n_surface == flow->surface_capacity) {
        const int64_t capacity = grvi_max_i64(256, 2 * flow->surface_capacity);
        GRV_TRY(GRVI_REALLOC(&flow->surface, capacity));
        flow->surface_capacity = capacity;
    }
    grvi_flow_surface_cell *const s = &flow->surface[flow->n_surface++];
    for (int d = 0; d < 3; d++) {
        s->cell[d] = cell[d];
        s->area[d] = normal[d] * (1 + cos(pi * distance)) / 2;
    }
    return GRV_OK;
}

/* How far a cell is from the body: enough to tell whether its faces are to be looked at. */
static grv_status distance_of_cell(const probe *p, const int64_t cell[3], double *distance)
{
    double centre[3], unused[3];
    *distance = (double)INFINITY;
    if (p->flow->params.mesh != NULL)
        *distance = grvi_flow_mesh_samples_get(&p->mesh, cell, GRVI_FLOW_CENTRE, unused);
    if (p->flow->params.distance == NULL) return GRV_OK;
    position_of(cell, GRVI_FLOW_CENTRE, centre);
    *distance = distance_at(p->flow, centre, p->time, unused);
    GRV_CHECK(isfinite(*distance), GRV_E_NUMERIC,
              "the body's distance at (%g, %g, %g), time %g is %g", centre[0], centre[1], centre[2],
              p->time, *distance);
    return GRV_OK;
}

static grv_status measure_cell(grv_flow *flow, const probe *p, const int64_t cell[3])
{
    const int64_t at = cell[0] * flow->grid.stride[0] + cell[1] * flow->grid.stride[1] + cell[2];
    double distance;
    GRV_TRY(distance_of_cell(p, cell, &distance));
    for (int c = 0; c < 3; c++) {
        if (distance < measured_distance)
            GRV_TRY(measure_face(flow, p, cell, c, at));
        else
            grvi_flow_store(flow->multigrid.level[0].face[c], flow->is_double, at, 1);
    }
    if (fabs(distance) < measured_distance) GRV_TRY(measure_surface(flow, p, cell));
    return GRV_OK;
}

static grv_status measure_cells(grv_flow *flow, const probe *p)
{
    const int64_t *const n = flow->grid.n;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++)
                GRV_TRY(measure_cell(flow, p, (const int64_t[3]){i, j, k}));
    return GRV_OK;
}

grv_status grvi_flow_measure(grv_flow *flow, double time)
{
    const grv_flow_params *const params = &flow->params;
    probe p = {.flow = flow, .time = time};
    flow->n_surface = 0;
    for (int c = 0; c < 3; c++) flow->faces[c].n = 0;
    if (params->mesh != NULL)
        GRV_TRY(grvi_flow_mesh_sample(params->mesh, params->mesh_centre, flow->grid.n,
                                      params->n_threads, &p.mesh));
    const grv_status status = measure_cells(flow, &p);
    grvi_flow_mesh_samples_fini(&p.mesh);
    GRV_TRY(status);
    int64_t largest = 1;
    for (int c = 0; c < 3; c++) largest = grvi_max_i64(largest, flow->faces[c].n);
    GRV_TRY(GRVI_REALLOC(&flow->immersed, largest));
    grvi_multigrid_update(&flow->multigrid);
    return GRV_OK;
}

double grv_flow_body_volume(const grv_flow *flow)
{
    double closed = 0;
    for (int c = 0; c < 3; c++)
        for (int64_t m = 0; m < flow->faces[c].n; m++) closed += 1 - flow->faces[c].face[m].mu0;
    return closed / 3;
}

/* All new values of a component are found before the first is written: faces read their neighbours. */
void grvi_flow_immerse(const grv_flow *flow, void *const *first, double first_weight,
                       void *const *second, double second_weight)
{
    const double weight = 1 / first_weight;
    for (int c = 0; c < 3; c++) {
        const grvi_flow_faces *const faces = &flow->faces[c];
        flow->kernels->immerse(&flow->grid, faces->face, faces->n, first[c], first_weight,
                               second[c], second_weight, flow->immersed);
        for (int64_t m = 0; m < faces->n; m++) {
            const int64_t at = faces->face[m].at;
            const double other = grvi_flow_load(second[c], flow->is_double, at);
            grvi_flow_store(first[c], flow->is_double, at,
                            (1 - weight) * other + weight * flow->immersed[m]);
        }
    }
}
