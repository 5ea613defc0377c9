/* Every surface of the shared test data: distances against brute force, signs against the sum of all solid angles, both in double. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/surface_distance.h"
#include "surface_files.h"

/* Closed surfaces without crossings: pseudo-normals must agree. */
static const char *const clean[] = {"unit_cube.STL", "unit_sphere.STL", "torus.STL",
                                    "sphere.stl",    "box.stl",         "fandisk.obj"};

typedef struct tally {
    int n_files, n_closed, n_points, n_signs, n_wrong, n_clean;
} tally;

static bool is_clean(const char *name)
{
    for (size_t i = 0; i < sizeof clean / sizeof clean[0]; i++)
        if (strcmp(name, clean[i]) == 0) return true;
    return false;
}

static void look_up(const test_surface *s, grv_surface_sign sign, int64_t n, const double *points,
                    double *distance, int64_t *n_open)
{
    grv_surface_params params = grv_surface_params_default();
    params.sign = sign;
    grv_surface *surface = NULL;
    assert_int_equal(grv_surface_create_f64(s->n_vertices, s->vertices, s->n_triangles,
                                            s->triangles, &params, &surface),
                     GRV_OK);
    assert_int_equal(grv_surface_points_f64(surface, n, points, NULL,
                                            &(grv_surface_result_f64){.distance = distance}),
                     GRV_OK);
    *n_open = grv_surface_info_get(surface).n_open_edges;
    grv_surface_destroy(&surface);
}

static void check_file(const char *path, const char *name, tally *sum)
{
    test_surface s = surface_read(path);
    bool is_finite = s.n_triangles > 0;
    for (int64_t i = 0; i < 3 * s.n_triangles; i++)
        for (int k = 0; k < 3; k++)
            is_finite = is_finite && isfinite(s.vertices[3 * (int64_t)s.triangles[i] + k]);
    if (!is_finite) {
        surface_free(&s);
        return;
    }
    /* 36,000 points take 10 s: by GROVE_LONG_TESTS=1 */
    const double work = getenv("GROVE_LONG_TESTS") != NULL ? 2e6 : 4e5;
    const int64_t n = (int64_t)fmax(32, fmin(1000, work / (double)s.n_triangles));
    const double diagonal = surface_diagonal(&s);
    double *const points = surface_points(&s, 77, n, 1.2),
                  *const distance = malloc(2 * (size_t)n * sizeof(double)),
                  *const by_normal = distance + n;
    int64_t n_open = 0;
    look_up(&s, GRV_SURFACE_WINDING, n, points, distance, &n_open);
    const bool check_normals = is_clean(name);
    if (check_normals) look_up(&s, GRV_SURFACE_PSEUDONORMAL, n, points, by_normal, &n_open);
    int n_wrong = 0, n_signs = 0;
    for (int64_t i = 0; i < n; i++) {
        const double expected = oracle_distance(&s, &points[3 * i]);
        if (fabs(fabs(distance[i]) - expected) > 1e-7 * diagonal)
            fail_msg("%s: distance %.17g, %.17g expected", path, distance[i], expected);
        if (check_normals) assert_true(by_normal[i] == distance[i] || expected < 1e-5 * diagonal);
        const double winding = oracle_winding(&s, &points[3 * i]);
        if (expected <= 1e-5 * diagonal || fabs(winding - 0.5) < 1e-9) continue;
        n_signs++;
        n_wrong += (distance[i] < 0) != (winding > 0.5);
    }
    print_message("%-32s %7lld triangles, %5lld open edges, %4d signs, %d wrong\n", name,
                  (long long)s.n_triangles, (long long)n_open, n_signs, n_wrong);
    sum->n_files++;
    sum->n_closed += n_open == 0;
    sum->n_points += (int)n;
    sum->n_signs += n_signs;
    sum->n_wrong += n_wrong;
    sum->n_clean += check_normals;
    free(points);
    free(distance);
    surface_free(&s);
}

static void test_every_file(void **state)
{
    (void)state;
    static const char *const folders[] = {"trimesh", "waterlily", "assimp", "openfoam"};
    tally sum = {0};
    for (int f = 0; f < 4; f++) {
        char folder[600], path[900];
        (void)snprintf(folder, sizeof folder, "%s/data/geometry/%s", GRVI_TEST_SHARED_DIR,
                       folders[f]);
        DIR *const list = opendir(folder);
        if (list == NULL) skip();
        for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
            if (entry->d_name[0] == '.') continue;
            (void)snprintf(path, sizeof path, "%s/%.255s", folder, entry->d_name);
            check_file(path, entry->d_name, &sum);
        }
        (void)closedir(list);
    }
    print_message("%d files, %d closed, %d points, %d signs, %d wrong\n", sum.n_files, sum.n_closed,
                  sum.n_points, sum.n_signs, sum.n_wrong);
    assert_true(sum.n_files >= 30 && sum.n_closed >= 12);
    assert_int_equal(sum.n_clean, sizeof clean / sizeof clean[0]);
    assert_int_equal(sum.n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
