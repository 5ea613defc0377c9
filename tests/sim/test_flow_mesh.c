/* Triangle surfaces as bodies: against the built-in shapes, in any pose and orientation, with holes, thin, misplaced, broken. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/flow_mesh.h"
#include "grove/flow_sample.h"
#include "store_support.h"
#include "surface_oracle.h"

static const double pi = 3.14159265358979323846;
enum { N = 24, CELLS = N * N * N };

static void expect(grv_status status, grv_status expected, const char *part)
{
    assert_int_equal(status, expected);
    if (strstr(grv_error_message(), part) == NULL)
        fail_msg("'%s' expected in: %s", part, grv_error_message());
}

static grv_flow_shape *shape_of(const test_surface *s)
{
    grv_triangles *triangles = NULL;
    grv_flow_shape *shape = NULL;
    assert_ok(grv_triangles_create(GRV_STORE_F64, s->n_vertices, s->vertices, s->n_triangles,
                                   s->triangles, &triangles));
    assert_ok(grv_flow_shape_create("test", triangles, &shape));
    grv_triangles_destroy(&triangles);
    return shape;
}

/* Frees the surface. */
static grv_flow_mesh *mesh_of(test_surface s, double half_length, double about_x, double about_y,
                              double about_z)
{
    grv_flow_mesh *mesh = NULL;
    grv_flow_shape *shape = shape_of(&s);
    surface_free(&s);
    assert_ok(grv_flow_mesh_create(
        shape, &(grv_flow_pose){half_length, {about_x, about_y, about_z}}, 1, &mesh));
    grv_flow_shape_destroy(&shape);
    return mesh;
}

static test_surface box_of(double x, double y, double z)
{
    return surface_box((double[]){-x, -y, -z}, (double[]){x, y, z});
}

static grv_flow_params params_at(double x, double y, double z)
{
    grv_flow_params p = grv_flow_params_default();
    const double centre[3] = {x, y, z};
    for (int d = 0; d < 3; d++) {
        p.n[d] = N;
        p.mesh_centre[d] = centre[d];
    }
    p.has_exit = true;
    p.precision = GRV_FLOW_FLOAT64;
    return p;
}

static grv_flow *flow_around(const grv_flow_mesh *mesh, double x, double y, double z)
{
    grv_flow *flow = NULL;
    grv_flow_params p = params_at(x, y, z);
    p.mesh = mesh;
    assert_ok(grv_flow_create(&p, &flow));
    return flow;
}

static double largest_difference(const grv_flow *a, const grv_flow *b, grv_flow_quantity quantity)
{
    double *const x = malloc(2 * CELLS * sizeof *x), most = 0;
    assert_non_null(x);
    for (int c = 0; c < 3; c++) {
        grv_flow_values(a, quantity, c, x);
        grv_flow_values(b, quantity, c, x + CELLS);
        for (int i = 0; i < CELLS; i++) most = fmax(most, fabs(x[i] - x[CELLS + i]));
    }
    free(x);
    return most;
}

/* Both ways to the force after some steps, and the field then. */
static void run_both(grv_flow *a, grv_flow *b, double tolerance)
{
    double force[2][3], pressure[2][3], viscous[2][3];
    grv_flow *const flow[2] = {a, b};
    const int64_t low[3] = {2, 2, 2}, high[3] = {20, 22, 22};
    for (int k = 0; k < 2; k++) {
        assert_ok(grv_flow_control_volume_set(flow[k], low, high));
        assert_ok(grv_flow_run_until(flow[k], 8));
        assert_ok(grv_flow_control_volume_force(flow[k], force[k]));
        grv_flow_surface_force(flow[k], pressure[k], viscous[k]);
    }
    assert_true(force[0][0] > 10 && fabs(force[1][0] / force[0][0] - 1) < tolerance);
    assert_true(pressure[0][0] > 5 && fabs(pressure[1][0] / pressure[0][0] - 1) < tolerance);
    assert_true(viscous[0][0] > 1 && fabs(viscous[1][0] / viscous[0][0] - 1) < tolerance);
    assert_true(largest_difference(a, b, GRV_FLOW_VELOCITY) < tolerance);
}

/* The chords of 96 triangles around are at most 0.003 cells inside of the sphere. */
static void test_sphere(void **state)
{
    (void)state;
    grv_flow_sphere sphere = {.centre = {9, 12.2, 11.7}, .radius = 5};
    grv_flow_params p = params_at(0, 0, 0);
    grv_flow *analytic = NULL;
    p.distance = grv_flow_sphere_distance;
    p.body = &sphere;
    assert_ok(grv_flow_create(&p, &analytic));
    grv_flow_mesh *mesh = mesh_of(surface_sphere(63, 96, 1), 5, 0, 0, 0);
    grv_flow *flow = flow_around(mesh, 9, 12.2, 11.7);
    const grv_flow_mesh_info info = grv_flow_mesh_info_get(mesh);
    const double volume = 4 * pi / 3 * 125;
    assert_int_equal(info.n_open_edges, 0);
    assert_true(fabs(info.volume / volume - 1) < 2e-3 && fabs(info.area / (pi * 100) - 1) < 2e-3);
    /* the smoothed edge of a sphere adds a part of order 1 / radius^2 */
    assert_true(fabs(grv_flow_body_volume(analytic) / volume - 1) < 0.03);
    assert_true(fabs(grv_flow_body_volume(flow) / grv_flow_body_volume(analytic) - 1) < 3e-3);
    assert_true(largest_difference(analytic, flow, GRV_FLOW_FACE_OPEN) < 5e-3);
    run_both(analytic, flow, 0.01);
    grv_flow_destroy(&analytic);
    grv_flow_destroy(&flow);
    grv_flow_mesh_destroy(&mesh);
}

/* A box with all faces in planes of cell faces, where the distance is 0 and the direction to the closest point says nothing. */
static void test_box(void **state)
{
    (void)state;
    grv_flow_box box = {.centre = {8, 12, 12}, .half_size = {3, 5, 4}};
    grv_flow_params p = params_at(0, 0, 0);
    grv_flow *analytic = NULL;
    p.distance = grv_flow_box_distance;
    p.body = &box;
    assert_ok(grv_flow_create(&p, &analytic));
    grv_flow_mesh *mesh = mesh_of(box_of(3, 5, 4), 5, 0, 0, 0);
    grv_flow *flow = flow_around(mesh, 8, 12, 12);
    /* inside, near its edges, the built-in shape's distance has two gradients */
    assert_true(largest_difference(analytic, flow, GRV_FLOW_FACE_OPEN) < 0.08);
    assert_true(fabs(grv_flow_body_volume(flow) / 480 - 1) < 0.03);
    run_both(analytic, flow, 0.03);
    grv_flow_destroy(&analytic);
    grv_flow_destroy(&flow);
    grv_flow_mesh_destroy(&mesh);
}

static void assert_same_body(grv_flow_mesh *a, grv_flow_mesh *b, double tolerance)
{
    grv_flow *one = flow_around(a, 11.3, 12.1, 12.75), *two = flow_around(b, 11.3, 12.1, 12.75);
    assert_true(largest_difference(one, two, GRV_FLOW_FACE_OPEN) <= tolerance);
    assert_true(grv_flow_body_volume(one) > 100);
    assert_ok(grv_flow_step(one));
    assert_ok(grv_flow_step(two));
    assert_true(largest_difference(one, two, GRV_FLOW_VELOCITY) <= 100 * tolerance);
    grv_flow_destroy(&one);
    grv_flow_destroy(&two);
    grv_flow_mesh_destroy(&a);
    grv_flow_mesh_destroy(&b);
}

static test_surface turned(test_surface s, int axis, double degrees)
{
    const int e = (axis + 1) % 3, f = (axis + 2) % 3;
    const double c = cos(degrees * pi / 180), sine = sin(degrees * pi / 180);
    for (int64_t i = 0; i < s.n_vertices; i++) {
        double *const x = &s.vertices[3 * i], y = c * x[e] - sine * x[f];
        x[f] = sine * x[e] + c * x[f];
        x[e] = y;
    }
    return s;
}

/* A quarter turn swaps sides; turns follow each other about axes that stay; size and place in the file do not matter. */
static void test_pose(void **state)
{
    (void)state;
    assert_same_body(mesh_of(box_of(2, 3, 6), 6, 0, 0, 90), mesh_of(box_of(3, 2, 6), 6, 0, 0, 0),
                     1e-9);
    assert_same_body(mesh_of(box_of(2, 3, 6), 6, 90, 0, 0), mesh_of(box_of(2, 6, 3), 6, 0, 0, 0),
                     1e-9);
    test_surface box = turned(turned(turned(box_of(2, 3, 5), 0, 20), 1, -35), 2, 50);
    double half = 0;
    for (int i = 0; i < 24; i++) half = fmax(half, box.vertices[i]);
    assert_same_body(mesh_of(box_of(2, 3, 5), 5, 20, -35, 50), mesh_of(box, half, 0, 0, 0), 1e-9);
    test_surface torus = surface_torus(40, 24, 4, 2);
    for (int64_t i = 0; i < 3 * torus.n_vertices; i++)
        torus.vertices[i] = 1e-3 * torus.vertices[i] + 7;
    assert_same_body(mesh_of(torus, 6, 0, 0, 0), mesh_of(surface_torus(40, 24, 4, 2), 6, 0, 0, 0),
                     1e-9);
}

static test_surface reversed(test_surface s, int64_t step)
{
    for (int64_t t = 0; t < s.n_triangles; t += step) {
        const int32_t kept = s.triangles[3 * t];
        s.triangles[3 * t] = s.triangles[3 * t + 1];
        s.triangles[3 * t + 1] = kept;
    }
    return s;
}

/* All triangles inwards, or every third. The box lies on the faces of cells, where normals come from the triangles. */
static void test_orientation(void **state)
{
    (void)state;
    assert_same_body(mesh_of(surface_torus(40, 24, 4, 2), 6, 0, 0, 0),
                     mesh_of(reversed(surface_torus(40, 24, 4, 2), 1), 6, 0, 0, 0), 1e-12);
    assert_same_body(mesh_of(surface_torus(40, 24, 4, 2), 6, 0, 0, 0),
                     mesh_of(reversed(surface_torus(40, 24, 4, 2), 3), 6, 0, 0, 0), 1e-12);
    grv_flow_mesh *const a = mesh_of(box_of(3, 5, 4), 5, 0, 0, 0), *const b = mesh_of(
                                                                       reversed(box_of(3, 5, 4), 1),
                                                                       5, 0, 0, 0);
    grv_flow *one = flow_around(a, 8, 12, 12), *two = flow_around(b, 8, 12, 12);
    assert_ok(grv_flow_step(one));
    assert_ok(grv_flow_step(two));
    assert_true(largest_difference(one, two, GRV_FLOW_VELOCITY) < 1e-12);
    grv_flow_destroy(&one);
    grv_flow_destroy(&two);
    grv_flow_mesh *meshes[2] = {a, b};
    for (int k = 0; k < 2; k++) grv_flow_mesh_destroy(&meshes[k]);
}

static void test_holes(void **state)
{
    (void)state;
    test_surface s = surface_sphere(31, 48, 1);
    s.n_triangles -= 2 * 48; /* the northern cap */
    grv_flow_mesh *mesh = mesh_of(s, 5, 0, 0, 0);
    assert_int_equal(grv_flow_mesh_info_get(mesh).n_open_edges, 96);
    grv_flow *flow = flow_around(mesh, 9, 12, 12);
    assert_true(fabs(grv_flow_body_volume(flow) / (4 * pi / 3 * 125) - 1) < 0.04);
    grv_flow_destroy(&flow);
    grv_flow_mesh_destroy(&mesh);
}

static void expect_no_shape(const test_surface *s, const char *part)
{
    grv_triangles *triangles = NULL;
    grv_flow_shape *shape = NULL;
    assert_ok(grv_triangles_create(GRV_STORE_F64, s->n_vertices, s->vertices, s->n_triangles,
                                   s->triangles, &triangles));
    expect(grv_flow_shape_create("flat.stl", triangles, &shape), GRV_E_ARG, part);
    assert_null(shape);
    grv_triangles_destroy(&triangles);
}

static void test_encloses_nothing(void **state)
{
    (void)state;
    test_surface s = box_of(1, 1, 1);
    s.n_triangles = 2; /* one side */
    expect_no_shape(&s, "body flat.stl: it encloses no volume: 100 %");
    s.n_triangles = 12; /* all sides, pressed flat */
    for (int v = 0; v < 8; v++) s.vertices[3 * v + 2] = 1e-12 * v;
    expect_no_shape(&s, "it encloses no volume");
    for (int i = 0; i < 24; i++) s.vertices[i] = 1; /* all at one place */
    expect_no_shape(&s, "body flat.stl: triangles with an area expected, none of 12");
    s.n_triangles = 0;
    expect_no_shape(&s, "triangles with an area expected, none of 0");
    surface_free(&s);
}

static void test_bad_pose(void **state)
{
    (void)state;
    grv_flow_mesh *mesh = NULL;
    test_surface s = box_of(1, 1, 1);
    grv_flow_shape *shape = shape_of(&s);
    surface_free(&s);
    expect(grv_flow_mesh_create(shape, &(grv_flow_pose){0, {0, 0, 0}}, 1, &mesh), GRV_E_ARG,
           "half_length");
    expect(grv_flow_mesh_create(shape, &(grv_flow_pose){1, {0, NAN, 0}}, 1, &mesh), GRV_E_ARG,
           "rotation[1]");
    assert_null(mesh);
    grv_flow_shape_destroy(&shape);
}

static test_surface joined(test_surface a, test_surface b, double dx)
{
    test_surface s = surface_alloc(a.n_vertices + b.n_vertices, a.n_triangles + b.n_triangles);
    for (int64_t i = 0; i < 3 * s.n_vertices; i++)
        s.vertices[i] = i < 3 * a.n_vertices
                            ? a.vertices[i]
                            : b.vertices[i - 3 * a.n_vertices] + (i % 3 == 0 ? dx : 0);
    for (int64_t i = 0; i < 3 * s.n_triangles; i++)
        s.triangles[i] = i < 3 * a.n_triangles
                             ? a.triangles[i]
                             : b.triangles[i - 3 * a.n_triangles] + (int32_t)a.n_vertices;
    surface_free(&a);
    surface_free(&b);
    return s;
}

static grv_flow_thin thin_of(grv_flow_mesh *mesh)
{
    grv_flow_thin one, two;
    assert_ok(grv_flow_mesh_thin_get(mesh, 1, &one));
    assert_ok(grv_flow_mesh_thin_get(mesh, 2, &two));
    assert_true(one.share == two.share && one.n_parts == two.n_parts &&
                one.thinnest == two.thinnest);
    grv_flow_mesh_destroy(&mesh);
    return one;
}

static void test_thin(void **state)
{
    (void)state;
    /* right angles are not thin, nor are two cells */
    grv_flow_thin thin = thin_of(mesh_of(box_of(5, 5, 1), 5, 0, 0, 0));
    assert_true(thin.share <= 0 && thin.n_parts == 0 && thin.thinnest >= GRV_FLOW_THIN_CELLS);
    /* a plate: all but its rim */
    thin = thin_of(mesh_of(box_of(8, 8, 0.25), 8, 30, 0, 0));
    assert_true(thin.share > 0.9 && thin.share < 1 && thin.n_parts == 1);
    assert_true(fabs(thin.thinnest - 0.5) < 0.06);
    /* the same plate on a grid four times as fine */
    thin = thin_of(mesh_of(box_of(8, 8, 0.25), 33, 0, 0, 0));
    assert_true(thin.share <= 0);
    /* a wedge: the part of its length where it is thinner than two cells, and not its edges of 83 degrees */
    test_surface wedge = box_of(8, 5, 2);
    for (int v = 0; v < 8; v++)
        if (wedge.vertices[3 * v] > 0) wedge.vertices[3 * v + 2] = 0;
    thin = thin_of(mesh_of(wedge, 8, 0, 0, 0));
    assert_true(thin.share > 0.3 && thin.share < 0.55 && thin.n_parts == 1 && thin.thinnest < 0.06);
    /* a block between two plates */
    thin = thin_of(
        mesh_of(joined(joined(box_of(0.3, 3, 3), box_of(3, 3, 3), 6), box_of(0.3, 3, 3), 12), 6.3,
                0, 0, 0));
    assert_true(thin.n_parts == 2 && thin.share > 0.3 && thin.share < 0.6);
}

/* A plate half a cell thick still hinders the flow, but is nowhere closed. */
static void test_plate_leaks(void **state)
{
    (void)state;
    static double open[CELLS], u[CELLS];
    grv_flow_mesh *mesh = mesh_of(box_of(0.25, 6, 6), 6, 0, 0, 0);
    grv_flow *flow = flow_around(mesh, 9, 12, 12);
    grv_flow_values(flow, GRV_FLOW_FACE_OPEN, 0, open);
    const int at = (9 * N + 12) * N + 12;
    assert_true(open[at] > 0.2 && open[at] < 0.5);
    assert_ok(grv_flow_run_until(flow, 4));
    grv_flow_values(flow, GRV_FLOW_VELOCITY, 0, u);
    assert_true(u[at] > 0 && u[at] < 0.5);
    grv_flow_destroy(&flow);
    grv_flow_mesh_destroy(&mesh);
}

static void test_misplaced(void **state)
{
    (void)state;
    grv_flow *flow = NULL;
    grv_flow_mesh *mesh = mesh_of(surface_sphere(15, 24, 1), 3, 0, 0, 0);
    grv_flow_params p = params_at(12, 30, 12);
    p.mesh = mesh;
    expect(grv_flow_create(&p, &flow), GRV_E_ARG,
           "along y, outside of the domain, 0..24");
    grv_flow_sphere sphere = {.radius = 1};
    p = params_at(12, 12, 12);
    p.mesh = mesh;
    p.distance = grv_flow_sphere_distance;
    p.body = &sphere;
    expect(grv_flow_create(&p, &flow), GRV_E_ARG, "got both");
    assert_null(flow);
    /* partly outside is allowed here */
    flow = flow_around(mesh, 0, 12, 12);
    assert_true(fabs(grv_flow_body_volume(flow) / (2 * pi / 3 * 27) - 1) < 0.15);
    grv_flow_destroy(&flow);
    grv_flow_mesh_destroy(&mesh);
}

/* A plane flow cuts a disc out of a long cylinder. */
static void test_plane_flow(void **state)
{
    (void)state;
    grv_flow_circle circle = {.centre = {10, 0, 12}, .radius = 4, .axis = 1};
    grv_flow_params p = params_at(10, 0.5, 12);
    p.n[1] = 1;
    p.periodic[1] = true;
    p.distance = grv_flow_circle_distance;
    p.body = &circle;
    grv_flow *analytic = NULL, *flow = NULL;
    assert_ok(grv_flow_create(&p, &analytic));
    /* a torus so large that it is straight here would need many triangles: a prism of 96 sides */
    test_surface prism = surface_sphere(2, 96, 1);
    for (int64_t i = 0; i < prism.n_vertices; i++) {
        double *const x = &prism.vertices[3 * i];
        const double r = hypot(x[0], x[1]);
        if (r > 0.1) x[0] *= 4 / r, x[1] *= 4 / r;
        x[2] = x[2] > 0 ? 20 : -20;
    }
    grv_flow_mesh *mesh = mesh_of(prism, 20, 90, 0, 0);
    p.distance = NULL;
    p.mesh = mesh;
    assert_ok(grv_flow_create(&p, &flow));
    static double open[2][N * N];
    for (int c = 0; c < 3; c++) {
        grv_flow_values(analytic, GRV_FLOW_FACE_OPEN, c, open[0]);
        grv_flow_values(flow, GRV_FLOW_FACE_OPEN, c, open[1]);
        for (int i = 0; i < N * N; i++) assert_true(fabs(open[0][i] - open[1][i]) < 5e-3);
    }
    grv_flow_destroy(&analytic);
    grv_flow_destroy(&flow);
    grv_flow_mesh_destroy(&mesh);
}

static void test_threads(void **state)
{
    (void)state;
    grv_flow *flow[2] = {NULL, NULL};
    grv_flow_mesh *mesh = mesh_of(surface_torus(40, 24, 4, 2), 6, 10, 20, 30);
    grv_flow_params p = params_at(10, 12, 12);
    p.mesh = mesh;
    for (int k = 0; k < 2; k++) {
        p.n_threads = k + 1;
        assert_ok(grv_flow_create(&p, &flow[k]));
        assert_ok(grv_flow_step(flow[k]));
    }
    assert_true(largest_difference(flow[0], flow[1], GRV_FLOW_VELOCITY) <= 0);
    for (int k = 0; k < 2; k++) grv_flow_destroy(&flow[k]);
    grv_flow_mesh_destroy(&mesh);
}

static void test_sample(void **state)
{
    (void)state;
    static float input[2][3 * CELLS], target[2][2 * CELLS];
    grv_flow_sample_params p = grv_flow_sample_params_default();
    grv_flow_sample_report report[2];
    test_surface s = surface_sphere(63, 96, 1);
    grv_flow_shape *shape = shape_of(&s);
    surface_free(&s);
    p.n_snapshots = 2;
    p.has_exit = true;
    for (int d = 0; d < 3; d++) {
        p.n[d] = N;
        p.centre[d] = d == 0 ? 7 : 12;
    }
    for (int k = 0; k < 2; k++) {
        const grv_flow_sample_arrays arrays = {.input = input[k], .target = target[k]};
        p.shape = k == 1 ? shape : NULL;
        p.rotation[0] = k * 33;
        assert_ok(grv_flow_sample_run(&p, &arrays, NULL, NULL, &report[k]));
    }
    for (int i = 0; i < 3 * CELLS; i++)
        assert_true(fabs((double)input[0][i] - (double)input[1][i]) < 5e-3);
    for (int i = 0; i < 2 * CELLS; i++)
        assert_true(fabs((double)target[0][i] - (double)target[1][i]) < 0.05);
    assert_true(fabs(report[1].body_volume / report[0].body_volume - 1) < 3e-3);
    assert_true(report[1].set_up_seconds > 0 && report[1].set_up_seconds < report[1].seconds);
    const grv_flow_sample_arrays arrays = {.input = input[0], .target = target[0]};
    p.centre[1] = 3.5;
    expect(grv_flow_sample_run(&p, &arrays, NULL, NULL, NULL), GRV_E_ARG,
           "centre[1] = 3.5 reaches from 0.500257 to 6.49974 there, it must lie within 1..23");
    p.centre[1] = 12;
    p.velocity[0] = -1;
    expect(grv_flow_sample_run(&p, &arrays, NULL, NULL, NULL), GRV_E_ARG, "velocity[0]");
    grv_flow_shape_destroy(&shape);
}

static void test_files(void **state)
{
    (void)state;
    grv_flow_shape *shape = NULL;
    expect(grv_flow_shape_read("/nowhere/car.stl", &shape), GRV_E_NOT_FOUND, "car.stl");
    assert_null(shape);
    static const char text[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n";
    write_file(in_folder("bad.obj"), text, sizeof text - 1);
    expect(grv_flow_shape_read(in_folder("bad.obj"), &shape), GRV_E_FORMAT, "bad.obj");
    assert_null(shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sphere),      cmocka_unit_test(test_box),
        cmocka_unit_test(test_pose),        cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_holes),       cmocka_unit_test(test_encloses_nothing),
        cmocka_unit_test(test_bad_pose),    cmocka_unit_test(test_thin),
        cmocka_unit_test(test_plate_leaks), cmocka_unit_test(test_misplaced),
        cmocka_unit_test(test_plane_flow),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_sample),      cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
