/* Truncated transforms against sums written out in double: every length, one to four axes, all instruction sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "kernels/spectral_transform.h"

static const double pi = 3.14159265358979323846;
static const float guard = -1234.5f;
static const double epsilon = 0x1p-23; /* of float */
enum { GUARDS = 40 };

/* ---- buffers with guard cells on both sides, misaligned by `shift` floats ---- */

typedef struct buffer {
    float *memory, *data;
    int64_t n;
} buffer;

static buffer buffer_create(int64_t n, int shift)
{
    buffer b = {NULL, NULL, n};
    assert_int_equal(GRVI_ALLOC(&b.memory, n + 2 * GUARDS + shift), GRV_OK);
    b.data = b.memory + GUARDS + shift;
    for (int64_t i = 0; i < n + 2 * GUARDS + shift; i++) b.memory[i] = guard;
    return b;
}

static buffer buffer_random(int64_t n, int shift, uint64_t stream)
{
    const buffer b = buffer_create(n, shift);
    for (int64_t i = 0; i < n; i++)
        b.data[i] = (float)(2 * grv_random_uniform(7, stream, (uint64_t)i) - 1);
    return b;
}

static void buffer_destroy(buffer *b)
{
    for (int64_t i = -GUARDS; i < 0; i++) assert_true(b->data[i] == guard);
    for (int64_t i = b->n; i < b->n + GUARDS; i++) assert_true(b->data[i] == guard);
    grv_free(b->memory);
    b->memory = NULL;
}

static void assert_near(double found, double expected, double tolerance, const char *what,
                        int64_t where)
{
    if (fabs(found - expected) <= tolerance) return;
    fail_msg("%s[%lld]: expected %.9g, found %.9g, tolerance %.3g", what, (long long)where,
             expected, found, tolerance);
}

/* ---- a case: layout, tables, kernels, scratch ---- */

typedef struct fixture {
    grvi_spectral_layout layout;
    grvi_transform_tables *tables;
    const grvi_spectral_kernels *kernels;
    buffer scratch;
} fixture;

static fixture fixture_create(grvi_isa isa, int d, const int64_t *n, const int64_t *modes,
                              int64_t channels)
{
    fixture f;
    assert_int_equal(grvi_spectral_layout_init(&f.layout, d, n, modes, channels), GRV_OK);
    assert_int_equal(grvi_transform_tables_create(&f.layout, &f.tables), GRV_OK);
    f.kernels = grvi_spectral_kernels_for(isa);
    assert_non_null(f.kernels);
    /* the guards around scratch are 64-byte multiples, so scratch is aligned as promised */
    f.scratch = buffer_create(f.kernels->scratch_bytes(f.tables) / 4, 2 * 64 - GUARDS);
    memset(f.scratch.data, 0xff,
           (size_t)f.scratch.n * sizeof(float)); /* NaN: contents must not matter */
    return f;
}

static void fixture_destroy(fixture *f)
{
    buffer_destroy(&f->scratch);
    grvi_transform_tables_destroy(&f->tables);
    assert_null(f->tables);
}

/* Basis function of row r at point j, written out. */
static double basis(const grvi_axis_modes *axis, int64_t r, int64_t j)
{
    const int64_t k = (r + 1) / 2;
    const double angle = 2 * pi * (double)(k * j % axis->n) / (double)axis->n;
    return r == 0 || r % 2 == 1 ? cos(angle) : sin(angle);
}

static int64_t axis_points(const grvi_spectral_layout *l, int a)
{
    return a < l->n_axes ? l->axis[a].n : 1;
}
static int64_t axis_rows(const grvi_spectral_layout *l, int a)
{
    return a < l->n_axes ? l->axis[a].n_rows : 1;
}
static int64_t plane_floats(const grvi_spectral_layout *l)
{
    return l->n_points / l->axis[0].n * l->channels;
}

/* Calls visit for every (coefficient, point) of a plane with the product of the local basis functions. */
typedef void pair_visitor(void *argument, int64_t r1, int64_t column, int64_t value, double factor);
static void visit_pairs(const grvi_spectral_layout *l, pair_visitor *visit, void *argument)
{
    int64_t r[4] = {0}, j[4] = {0};
    for (r[1] = 0; r[1] < axis_rows(l, 1); r[1]++)
        for (r[2] = 0; r[2] < axis_rows(l, 2); r[2]++)
            for (r[3] = 0; r[3] < axis_rows(l, 3); r[3]++)
                for (j[1] = 0; j[1] < axis_points(l, 1); j[1]++)
                    for (j[2] = 0; j[2] < axis_points(l, 2); j[2]++)
                        for (j[3] = 0; j[3] < axis_points(l, 3); j[3]++) {
                            double factor = 1;
                            for (int a = 1; a < l->n_axes; a++)
                                factor *= basis(&l->axis[a], r[a], j[a]);
                            const int64_t column = (r[3] * axis_rows(l, 2) + r[2]) * l->channels;
                            const int64_t point =
                                (j[1] * axis_points(l, 2) + j[2]) * axis_points(l, 3) + j[3];
                            for (int64_t c = 0; c < l->channels; c++)
                                visit(argument, r[1], column + c, point * l->channels + c, factor);
                        }
}

/* Coefficients as [r_1][n_blocks * block] doubles, and a plane. */
typedef struct naive {
    const grvi_spectral_layout *layout;
    double *coefficients, *plane;
} naive;

static int64_t padded_columns(const grvi_spectral_layout *l)
{
    return l->n_blocks * l->block;
}
static void add_to_coefficient(void *argument, int64_t r1, int64_t column, int64_t value,
                               double factor)
{
    const naive *const t = argument;
    t->coefficients[r1 * padded_columns(t->layout) + column] += factor * t->plane[value];
}
static void add_to_plane(void *argument, int64_t r1, int64_t column, int64_t value, double factor)
{
    const naive *const t = argument;
    t->plane[value] += factor * t->coefficients[r1 * padded_columns(t->layout) + column];
}

static naive naive_create(const grvi_spectral_layout *l)
{
    naive t = {l, NULL, NULL};
    assert_int_equal(GRVI_CALLOC(&t.coefficients, axis_rows(l, 1) * padded_columns(l)), GRV_OK);
    assert_int_equal(GRVI_CALLOC(&t.plane, plane_floats(l)), GRV_OK);
    return t;
}

static void naive_destroy(naive *t)
{
    grv_free(t->coefficients);
    grv_free(t->plane);
}

/* ---- A with n_0 = 3 planes, of which a call may touch the middle one only ---- */

typedef struct slab {
    buffer a;
    grvi_slab_plane plane;
} slab;

enum { SLAB_PLANES = 3 };

static slab slab_create(const grvi_spectral_layout *l, int shift)
{
    slab s;
    s.a = buffer_create(axis_rows(l, 1) * l->n_blocks * SLAB_PLANES * l->block, shift);
    s.plane = (grvi_slab_plane){s.a.data + l->block, l->n_blocks * SLAB_PLANES * l->block,
                                SLAB_PLANES * l->block};
    return s;
}

static float *slab_at(const grvi_spectral_layout *l, const slab *s, int64_t r1, int64_t column)
{
    return s->plane.data + r1 * s->plane.stride_r1 + column / l->block * s->plane.stride_qb +
           column % l->block;
}

static void slab_fill(const grvi_spectral_layout *l, slab *s, uint64_t stream)
{
    for (int64_t r = 0; r < axis_rows(l, 1); r++)
        for (int64_t q = 0; q < padded_columns(l); q++)
            *slab_at(l, s, r, q) =
                q < l->n_columns
                    ? (float)(2 * grv_random_uniform(8, stream, (uint64_t)(r * 100000 + q)) - 1)
                    : 0;
}

static void slab_destroy(const grvi_spectral_layout *l, slab *s)
{
    for (int64_t i = 0; i < s->a.n; i++)
        if (i / l->block % SLAB_PLANES != 1) assert_true(s->a.data[i] == guard);
    buffer_destroy(&s->a);
}

static grvi_slab_plane_const readable(const slab *s)
{
    return (grvi_slab_plane_const){s->plane.data, s->plane.stride_r1, s->plane.stride_qb};
}

/* Float sums of n random terms of size one: the partial sums reach sqrt(n), and so do the number of their independent errors. */
static double tolerance(int64_t n)
{
    return epsilon * (2 + (double)n);
}

/* ---- one axis, every length ---- */

/* Both directions along axis 0 against direct sums, whole columns including padding. */
static void check_first_axis(const fixture *f, uint64_t stream)
{
    const grvi_spectral_layout *const l = &f->layout;
    const grvi_axis_modes *const x = &l->axis[0];
    const int64_t columns = padded_columns(l);
    double *table = NULL;
    assert_int_equal(GRVI_ALLOC(&table, x->n_rows * x->n), GRV_OK);
    for (int64_t r = 0; r < x->n_rows; r++)
        for (int64_t j = 0; j < x->n; j++) table[r * x->n + j] = basis(x, r, j);

    buffer a = buffer_random(x->n * columns, 1, stream), p = buffer_create(x->n_rows * columns, 3);
    f->kernels->first_axis_forward(f->tables, a.data, p.data, 0, l->n_blocks, f->scratch.data);
    for (int64_t q = 0; q < columns; q++)
        for (int64_t r = 0; r < x->n_rows; r++) {
            const float *const column = a.data + q / l->block * x->n * l->block + q % l->block;
            double sum = 0;
            for (int64_t j = 0; j < x->n; j++)
                sum += table[r * x->n + j] * (double)column[j * l->block];
            assert_near((double)p.data[r * columns + q], sum, tolerance(x->n), "forward",
                        r * columns + q);
        }
    buffer back = buffer_create(x->n * columns, 2);
    f->kernels->first_axis_inverse(f->tables, p.data, back.data, 0, l->n_blocks, f->scratch.data);
    for (int64_t q = 0; q < columns; q++)
        for (int64_t j = 0; j < x->n; j++) {
            double sum = 0, size = 0;
            for (int64_t r = 0; r < x->n_rows; r++) {
                const double term = table[r * x->n + j] * (double)p.data[r * columns + q];
                sum += term;
                size = fmax(size, fabs(term));
            }
            const int64_t where = (q / l->block * x->n + j) * l->block + q % l->block;
            assert_near((double)back.data[where], sum, size * tolerance(x->n_rows), "inverse",
                        where);
        }
    buffer_destroy(&a);
    buffer_destroy(&p);
    buffer_destroy(&back);
    grv_free(table);
}

static void test_every_length(void **state)
{
    (void)state;
    static const int64_t channels[] = {3, 20, 33, 70};
    for (int isa = GRVI_ISA_AVX2; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        for (int64_t n = 1; n <= 300; n++) {
            const int64_t c = channels[(n + isa) % (n > 100 ? 2 : 4)];
            /* one-sided with every mode, Nyquist included, and with few */
            const int64_t one_sided[] = {n / 2 + 1, 1 + n / 7};
            for (int i = 0; i < 2; i++) {
                fixture f = fixture_create((grvi_isa)isa, 1, &n, &one_sided[i], c);
                check_first_axis(&f, (uint64_t)n);
                fixture_destroy(&f);
            }
            /* two-sided with the most modes (2m = n for even n) and with few */
            const int64_t two_sided[] = {n / 2, 1 + n / 9};
            for (int i = 0; i < 2 && n >= 2; i++) {
                fixture f = fixture_create((grvi_isa)isa, 2, (int64_t[]){n, 1},
                                           (int64_t[]){two_sided[i], 1}, c);
                check_first_axis(&f, (uint64_t)n + 1000);
                fixture_destroy(&f);
            }
        }
    }
}

/* ---- whole planes ---- */

typedef struct shape {
    int d;
    int64_t n[4], modes[4];
} shape;

static const shape shapes[] = {
    {1, {9}, {5}},
    {2, {4, 8}, {2, 5}}, /* one-sided with Nyquist */
    {2, {3, 31}, {1, 9}},
    {2, {2, 1}, {1, 1}},
    {3, {2, 7, 6}, {1, 3, 4}}, /* odd: all modes; Nyquist of the last axis */
    {3, {2, 22, 5}, {1, 4, 2}},
    {3, {2, 2, 1}, {1, 1, 1}},
    {4, {2, 6, 5, 7}, {1, 3, 2, 3}}, /* 2m = n */
    {4, {2, 3, 8, 4}, {1, 1, 4, 3}},
    {4, {2, 2, 3, 1}, {1, 1, 1, 1}},
    {4, {2, 5, 4, 18}, {1, 2, 1, 4}},
};
static const int64_t channel_counts[] = {1, 3, 4, 8, 10, 12, 20};
enum {
    N_SHAPES = sizeof shapes / sizeof shapes[0],
    N_CHANNELS = sizeof channel_counts / sizeof channel_counts[0]
};

typedef void plane_check(fixture *f, int variant);
static void for_all_planes(plane_check *check)
{
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        for (int s = 0; s < N_SHAPES; s++)
            for (int c = 0; c < N_CHANNELS; c++) {
                fixture f = fixture_create((grvi_isa)isa, shapes[s].d, shapes[s].n, shapes[s].modes,
                                           channel_counts[c]);
                check(&f, s + c);
                fixture_destroy(&f);
            }
    }
}

static void check_analysis(fixture *f, int variant)
{
    const grvi_spectral_layout *const l = &f->layout;
    buffer v = buffer_random(plane_floats(l), variant % 4, 1);
    naive t = naive_create(l);
    for (int64_t i = 0; i < v.n; i++) t.plane[i] = (double)v.data[i];
    if (l->n_axes == 1)
        memcpy(t.coefficients, t.plane, (size_t)l->channels * sizeof(double));
    else
        visit_pairs(l, add_to_coefficient, &t);
    slab a = slab_create(l, variant % 3);
    f->kernels->analyse_plane(f->tables, v.data, a.plane, f->scratch.data);
    for (int64_t r = 0; r < axis_rows(l, 1); r++)
        for (int64_t q = 0; q < padded_columns(l); q++)
            assert_near((double)*slab_at(l, &a, r, q), t.coefficients[r * padded_columns(l) + q],
                        q < l->n_columns ? tolerance(v.n / l->channels) : 0, "coefficient",
                        r * padded_columns(l) + q);
    naive_destroy(&t);
    slab_destroy(l, &a);
    buffer_destroy(&v);
}

static void test_analysis(void **state)
{
    (void)state;
    for_all_planes(check_analysis);
}

/* All combinations of skip product, bias, activation and stored pre-activation. */
static void check_synthesis(fixture *f, int variant)
{
    const grvi_spectral_layout *const l = &f->layout;
    const int64_t n = plane_floats(l), c = l->channels;
    slab a = slab_create(l, variant % 3);
    slab_fill(l, &a, 2);
    naive t = naive_create(l);
    for (int64_t r = 0; r < axis_rows(l, 1); r++)
        for (int64_t q = 0; q < padded_columns(l); q++)
            t.coefficients[r * padded_columns(l) + q] = (double)*slab_at(l, &a, r, q);
    if (l->n_axes == 1)
        memcpy(t.plane, t.coefficients, (size_t)c * sizeof(double));
    else
        visit_pairs(l, add_to_plane, &t);
    buffer u = buffer_random(n, 1 + variant % 2, 3), w = buffer_random(c * c, variant % 2, 4),
           b = buffer_random(c, 1, 5);
    for (int options = variant % 2; options < 24;
         options += 2) { /* half of them, each shape and the next channels the other half */
        const bool with_skip = options & 4, with_bias = options & 2, with_pre = options & 1;
        const grvi_activation activation = (grvi_activation)(options / 8);
        const grvi_synthesis_end end = {with_skip ? u.data : NULL, w.data,
                                        with_bias ? b.data : NULL, activation};
        buffer y = buffer_create(n, variant % 3), pre = buffer_create(n, variant % 5);
        f->kernels->synthesise_plane(f->tables, readable(&a), &end, y.data,
                                     with_pre ? pre.data : NULL, f->scratch.data);
        for (int64_t i = 0; i < n; i++) {
            double sum = t.plane[i] + (with_bias ? (double)b.data[i % c] : 0);
            for (int64_t k = 0; k < c && with_skip; k++)
                sum += (double)u.data[i / c * c + k] * (double)w.data[k * c + i % c];
            const double allowed =
                tolerance(axis_rows(l, 1) * l->n_columns / c + (with_skip ? c : 0));
            assert_near((double)y.data[i], grvi_activation_value(activation, sum), allowed, "y", i);
            if (with_pre)
                assert_near((double)pre.data[i], sum, allowed, "pre", i);
            else
                assert_true(pre.data[i] == guard);
        }
        buffer_destroy(&y);
        buffer_destroy(&pre);
    }
    buffer_destroy(&u);
    buffer_destroy(&w);
    buffer_destroy(&b);
    naive_destroy(&t);
    slab_destroy(l, &a);
}

static void test_synthesis(void **state)
{
    (void)state;
    for_all_planes(check_synthesis);
}

/* <analyse v, a> = <v, synthesise a> */
static void check_adjoint(fixture *f, int variant)
{
    (void)variant;
    const grvi_spectral_layout *const l = &f->layout;
    const int64_t n = plane_floats(l);
    buffer v = buffer_random(n, 1, 11), back = buffer_create(n, 0);
    slab a = slab_create(l, 0), analysed = slab_create(l, 1);
    slab_fill(l, &a, 12);
    f->kernels->analyse_plane(f->tables, v.data, analysed.plane, f->scratch.data);
    f->kernels->synthesise_plane(f->tables, readable(&a),
                                 &(grvi_synthesis_end){.activation = GRVI_ACT_NONE}, back.data,
                                 NULL, f->scratch.data);
    double left = 0, right = 0, size = 0;
    for (int64_t r = 0; r < axis_rows(l, 1); r++)
        for (int64_t q = 0; q < l->n_columns; q++)
            left += (double)*slab_at(l, &a, r, q) * (double)*slab_at(l, &analysed, r, q);
    for (int64_t i = 0; i < n; i++) {
        right += (double)v.data[i] * (double)back.data[i];
        size += fabs((double)v.data[i] * (double)back.data[i]);
    }
    assert_near(left, right, 4 * epsilon * size, "inner product", n);
    buffer_destroy(&v);
    buffer_destroy(&back);
    slab_destroy(l, &a);
    slab_destroy(l, &analysed);
}

static void test_adjoint(void **state)
{
    (void)state;
    for_all_planes(check_adjoint);
}

/* g = dy act'(pre), and then exactly what analysing g gives. */
static void check_gradient(fixture *f, int variant)
{
    const grvi_spectral_layout *const l = &f->layout;
    const int64_t n = plane_floats(l);
    buffer dy = buffer_random(n, variant % 3, 21), pre = buffer_random(n, variant % 2, 22);
    for (int64_t i = 0; i < n; i++) pre.data[i] *= 4;
    for (int activation = 0; activation < 3; activation++) {
        buffer g = buffer_create(n, variant % 4);
        slab a = slab_create(l, 1), expected = slab_create(l, 2);
        f->kernels->analyse_gradient_plane(f->tables, dy.data, pre.data,
                                           (grvi_activation)activation, g.data, a.plane,
                                           f->scratch.data);
        for (int64_t i = 0; i < n; i++)
            assert_near((double)g.data[i],
                        (double)dy.data[i] * grvi_activation_derivative((grvi_activation)activation,
                                                                        (double)pre.data[i]),
                        4e-7, "g", i);
        f->kernels->analyse_plane(f->tables, g.data, expected.plane, f->scratch.data);
        for (int64_t r = 0; r < axis_rows(l, 1); r++)
            for (int64_t q = 0; q < padded_columns(l); q++)
                assert_true(*slab_at(l, &a, r, q) == *slab_at(l, &expected, r, q));
        slab_destroy(l, &a);
        slab_destroy(l, &expected);
        buffer_destroy(&g);
    }
    buffer_destroy(&dy);
    buffer_destroy(&pre);
}

static void test_gradient(void **state)
{
    (void)state;
    for_all_planes(check_gradient);
}

/* Same numbers whatever the alignment and whichever blocks one call handles. */
static void test_independence(void **state)
{
    (void)state;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        fixture f = fixture_create((grvi_isa)isa, 4, (int64_t[]){13, 6, 10, 7},
                                   (int64_t[]){4, 2, 3, 3}, 12);
        const grvi_spectral_layout *const l = &f.layout;
        const int64_t n = plane_floats(l), columns = padded_columns(l), n0 = l->axis[0].n,
                      r0 = l->axis[0].n_rows;
        assert_true(l->n_blocks > 3);
        buffer v[2], p[2], line[2], y[2];
        slab a[2];
        for (int i = 0; i < 2; i++) {
            v[i] = buffer_random(n, 3 * i, 31);
            a[i] = slab_create(l, 1 - i);
            f.kernels->analyse_plane(f.tables, v[i].data, a[i].plane, f.scratch.data);
            line[i] = buffer_random(n0 * columns, 1 - i, 32);
            p[i] = buffer_create(r0 * columns, 2 * i);
            y[i] = buffer_create(n, 5 * i);
            const grvi_synthesis_end end = {
                .skip_input = v[i].data, .weight = line[0].data, .activation = GRVI_ACT_GELU};
            f.kernels->synthesise_plane(f.tables, readable(&a[i]), &end, y[i].data, NULL,
                                        f.scratch.data);
        }
        f.kernels->first_axis_forward(f.tables, line[0].data, p[0].data, 0, l->n_blocks,
                                      f.scratch.data);
        for (int64_t b = l->n_blocks - 1; b >= 0; b--)
            f.kernels->first_axis_forward(f.tables, line[1].data, p[1].data, b, b + 1,
                                          f.scratch.data);
        f.kernels->first_axis_inverse(f.tables, p[0].data, line[0].data, 0, l->n_blocks,
                                      f.scratch.data);
        for (int64_t b = 0; b < l->n_blocks; b++)
            f.kernels->first_axis_inverse(f.tables, p[1].data, line[1].data, b, b + 1,
                                          f.scratch.data);
        assert_memory_equal(p[0].data, p[1].data, (size_t)(r0 * columns) * sizeof(float));
        assert_memory_equal(line[0].data, line[1].data, (size_t)(n0 * columns) * sizeof(float));
        assert_memory_equal(y[0].data, y[1].data, (size_t)n * sizeof(float));
        for (int64_t r = 0; r < axis_rows(l, 1); r++)
            for (int64_t q = 0; q < columns; q++)
                assert_true(*slab_at(l, &a[0], r, q) == *slab_at(l, &a[1], r, q));
        for (int i = 0; i < 2; i++) {
            buffer_destroy(&v[i]);
            buffer_destroy(&p[i]);
            buffer_destroy(&line[i]);
            buffer_destroy(&y[i]);
            slab_destroy(l, &a[i]);
        }
        fixture_destroy(&f);
    }
}

/* Longer axes, many channels, rows in several groups of chunks. */
static void test_large(void **state)
{
    (void)state;
    static const shape large[] = {
        {2, {2, 1500}, {1, 40}},
        {3, {2, 40, 96}, {1, 3, 3}},
        {4, {2, 3, 130, 20}, {1, 1, 3, 2}},
        {4, {2, 2, 9, 70}, {1, 1, 2, 3}},
        {2, {2, 70}, {1, 36}}}; /* rows 1 KiB multiples apart, both ways */
    static const int64_t channels[] = {64, 20, 12, 33, 256};
    for (int isa = GRVI_ISA_AVX2; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        for (int i = 0; i < 4; i++) {
            fixture f =
                fixture_create((grvi_isa)isa, large[i].d, large[i].n, large[i].modes, channels[i]);
            check_analysis(&f, i);
            check_synthesis(&f, i);
            check_adjoint(&f, i);
            fixture_destroy(&f);
        }
    }
}

/* The vector activations through a plane of one point: y = act(bias). */
static void test_activations(void **state)
{
    (void)state;
    const int64_t n = 3, modes = 1, c = 1000;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        fixture f = fixture_create((grvi_isa)isa, 1, &n, &modes, c);
        slab a = slab_create(&f.layout, 0);
        slab_fill(&f.layout, &a, 0);
        for (int64_t q = 0; q < c; q++) *slab_at(&f.layout, &a, 0, q) = 0;
        buffer x = buffer_create(c, 0), y = buffer_create(c, 0), g = buffer_create(c, 0),
               ones = buffer_create(c, 0);
        for (int64_t i = 0; i < c; i++) ones.data[i] = 1;
        for (int pass = 0; pass < 60; pass++) {
            for (int64_t i = 0; i < c; i++) {
                const double u = 2 * grv_random_uniform(9, (uint64_t)pass, (uint64_t)i) - 1;
                x.data[i] = (float)(pass % 3 == 0   ? 0.01 * u
                                    : pass % 3 == 1 ? 8 * u
                                                    : 40 * u * u * u);
            }
            const grvi_synthesis_end end = {.bias = x.data, .activation = GRVI_ACT_GELU};
            f.kernels->synthesise_plane(f.tables, readable(&a), &end, y.data, NULL, f.scratch.data);
            slab unused = slab_create(&f.layout, 0);
            f.kernels->analyse_gradient_plane(f.tables, ones.data, x.data, GRVI_ACT_GELU, g.data,
                                              unused.plane, f.scratch.data);
            for (int64_t i = 0; i < c; i++) {
                const double at = (double)x.data[i];
                assert_near((double)y.data[i], grvi_activation_value(GRVI_ACT_GELU, at),
                            4e-7 + epsilon * fmax(0, fabs(at) - 4), "gelu", i);
                assert_near((double)g.data[i], grvi_activation_derivative(GRVI_ACT_GELU, at), 4e-7,
                            "gelu'", i);
            }
            slab_destroy(&f.layout, &unused);
        }
        for (int activation = 0; activation < 3;
             activation++) { /* not a number stays so; infinity and zero are exact */
            x.data[0] = NAN, x.data[1] = INFINITY, x.data[2] = 0, x.data[3] = -INFINITY;
            f.kernels->synthesise_plane(
                f.tables, readable(&a),
                &(grvi_synthesis_end){.bias = x.data, .activation = (grvi_activation)activation},
                y.data, NULL, f.scratch.data);
            assert_true(isnan(y.data[0]) && isinf(y.data[1]) && y.data[2] == 0);
        }
        buffer_destroy(&x);
        buffer_destroy(&y);
        buffer_destroy(&g);
        buffer_destroy(&ones);
        slab_destroy(&f.layout, &a);
        fixture_destroy(&f);
    }
}

static void test_tables(void **state)
{
    (void)state;
    grvi_spectral_layout l;
    assert_int_equal(
        grvi_spectral_layout_init(&l, 3, (int64_t[]){12, 7, 8}, (int64_t[]){3, 2, 5}, 4), GRV_OK);
    const int64_t before = grv_memory_get().bytes;
    grvi_transform_tables *t = NULL;
    for (int countdown = 0; countdown < 2; countdown++) {
        t = (grvi_transform_tables *)&l;
        grvi_alloc_fail_after(countdown);
        assert_int_equal(grvi_transform_tables_create(&l, &t), GRV_E_NOMEM);
        grvi_alloc_fail_after(-1);
        assert_null(t);
        assert_true(grv_memory_get().bytes == before);
    }
    assert_int_equal(grvi_transform_tables_create(&l, &t), GRV_OK);
    assert_true(grv_memory_get().bytes - before == t->n_bytes + (int64_t)sizeof *t);
    assert_true((uintptr_t)t->memory % 64 == 0 && (uintptr_t)t->axis[2].inverse_sin % 64 == 0);
    /* multiples of a quarter turn are exact */
    assert_true(t->axis[0].unit_cos[3] == 0 && t->axis[0].unit_sin[3] == 1 &&
                t->axis[0].unit_cos[6] == -1 && t->axis[0].unit_sin[6] == 0);
    grvi_transform_tables_destroy(&t);
    assert_null(t);
    grvi_transform_tables_destroy(&t);
    assert_true(grv_memory_get().bytes == before);
    l.axis[1].n = (int64_t)1 << 25;
    assert_int_equal(grvi_transform_tables_create(&l, &t), GRV_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),       cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_analysis),     cmocka_unit_test(test_synthesis),
        cmocka_unit_test(test_adjoint),      cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_independence), cmocka_unit_test(test_large),
        cmocka_unit_test(test_activations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
