/* Values of parameters: each method and distribution against what defines it, and what a newcomer gets wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "grove/sampling.h"

enum { N = 512 };

static void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

static grv_sampling *make(const char *const *lines, int n, grv_sampling_method method,
                          uint64_t seed, int64_t n_samples)
{
    grv_sampling *s = NULL;
    ok(grv_sampling_create(lines, n, method, seed, n_samples, &s));
    return s;
}

static const char *const continuous[] = {"u uniform -1 3", "l log_uniform 1e-3 10",
                                         "z normal 2 0.5", "v uniform 0 1"};
enum { N_CONTINUOUS = sizeof continuous / sizeof *continuous };

/* The share of the distribution below a value, the other way round than the code under test. */
static double share(int parameter, double x)
{
    switch (parameter) {
    case 0: return (x + 1) / 4;
    case 1: return log(x / 1e-3) / log(1e4);
    case 2: return 0.5 * erfc(-(x - 2) / 0.5 / sqrt(2));
    default: return x;
    }
}

/* Does every one of n equally likely ranges hold one of the samples? */
static bool hits_each_range(const grv_sampling *s, int parameter, int64_t first, int64_t n)
{
    bool seen[N] = {false};
    for (int64_t i = first; i < first + n; i++) {
        const double u = share(parameter, grv_sampling_number(s, i, parameter));
        const int64_t range = (int64_t)floor(u * (double)n * (1 + 1e-13) + 1e-10);
        if (range < 0 || range >= n || seen[range]) return false;
        seen[range] = true;
    }
    return true;
}

static void test_random(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    grv_sampling *s = make(continuous, N_CONTINUOUS, GRV_SAMPLING_RANDOM, 3, MANY);
    for (int p = 0; p < N_CONTINUOUS; p++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < MANY; i++) {
            const double u = share(p, grv_sampling_number(s, i, p));
            assert_true(u >= 0 && u <= 1);
            mean += u / MANY;
            square += u * u / MANY;
        }
        /* five standard deviations of each estimate */
        assert_true(fabs(mean - 0.5) < 5 * 0.2887 / sqrt(MANY));
        assert_true(fabs(square - 1.0 / 3) < 5 * 0.2981 / sqrt(MANY));
    }
    assert_false(hits_each_range(s, 0, 0, N));
    grv_sampling_destroy(&s);
}

static void test_latin_hypercube(void **state)
{
    static const int sizes[] = {1, 2, 3, 5, 17, 64, 100, N};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        grv_sampling *s =
            make(continuous, N_CONTINUOUS, GRV_SAMPLING_LATIN_HYPERCUBE, 11, sizes[k]);
        for (int p = 0; p < N_CONTINUOUS; p++) assert_true(hits_each_range(s, p, 0, sizes[k]));
        grv_sampling_destroy(&s);
    }
    /* the orders of two parameters have nothing to do with each other */
    grv_sampling *s = make(continuous, N_CONTINUOUS, GRV_SAMPLING_LATIN_HYPERCUBE, 11, N);
    double correlation = 0;
    for (int64_t i = 0; i < N; i++)
        correlation += 12.0 / N * (share(0, grv_sampling_number(s, i, 0)) - 0.5) *
                       (share(3, grv_sampling_number(s, i, 3)) - 0.5);
    assert_true(fabs(correlation) < 5 / sqrt(N));
    grv_sampling_destroy(&s);
}

/* Any aligned block of 2^k points: one in each of 2^k ranges of each parameter; of the first two parameters, also one in each of the boxes of
 * 2^a by 2^(k-a) (a (0, k, 2)-net). */
static void test_sobol(void **state)
{
    (void)state;
    grv_sampling *s = make(continuous, N_CONTINUOUS, GRV_SAMPLING_SOBOL, 5, N);
    for (int p = 0; p < N_CONTINUOUS; p++) {
        assert_true(hits_each_range(s, p, 0, N));
        assert_true(hits_each_range(s, p, 64, 64));
        assert_true(hits_each_range(s, p, 320, 64));
    }
    for (int a = 0; a <= 6; a++) {
        bool seen[64] = {false};
        for (int64_t i = 0; i < 64; i++) {
            const int rows = 1 << a, columns = 64 >> a;
            const int row = (int)(share(0, grv_sampling_number(s, i, 0)) * rows),
                      column = (int)(share(1, grv_sampling_number(s, i, 1)) * columns + 1e-10);
            assert_false(seen[row * columns + column]);
            seen[row * columns + column] = true;
        }
    }
    grv_sampling *other = make(continuous, N_CONTINUOUS, GRV_SAMPLING_SOBOL, 6, 2 * N);
    assert_true(grv_sampling_number(s, 0, 0) !=
                grv_sampling_number(other, 0, 0)); /* the seed shifts */
    grv_sampling_destroy(&other);
    other = make(continuous, N_CONTINUOUS, GRV_SAMPLING_SOBOL, 5, 2 * N);
    for (int64_t i = 0; i < N; i++)
        assert_true(grv_sampling_number(s, i, 3) ==
                    grv_sampling_number(other, i, 3)); /* it may be continued */
    grv_sampling_destroy(&other);
    grv_sampling_destroy(&s);
}

static void test_grid(void **state)
{
    static const char *const lines[] = {"a grid 0 1 5", "x uniform 0 1", "b each red 2.5",
                                        "c grid 7 7 1", "d grid 3 1 3"};
    static const double a[] = {0, 0.25, 0.5, 0.75, 1}, d[] = {3, 2, 1};
    char text[GRV_SAMPLING_TEXT_BYTES];
    (void)state;
    grv_sampling *s = make(lines, 5, GRV_SAMPLING_RANDOM, 1, 0);
    assert_int_equal(grv_sampling_n_samples(s), 30);
    for (int64_t i = 0; i < 30; i++) { /* each combination once, the last parameter the fastest */
        assert_true(grv_sampling_number(s, i, 0) == a[i / 6]);
        assert_true(grv_sampling_number(s, i, 2) == (double)(i / 3 % 2));
        assert_true(grv_sampling_number(s, i, 3) == 7);
        assert_true(grv_sampling_number(s, i, 4) == d[i % 3]);
    }
    assert_int_equal(grv_sampling_n_words(s, 2), 2);
    assert_int_equal(grv_sampling_n_words(s, 0), 0);
    assert_string_equal(grv_sampling_word(s, 2, 0), "red");
    grv_sampling_text(s, 3, 2, text);
    assert_string_equal(text, "2.5");
    grv_sampling_text(s, 6, 0, text);
    assert_string_equal(text, "0.25");
    grv_sampling_text(s, 0, 3, text);
    assert_string_equal(text, "7");
    grv_sampling_destroy(&s);
    s = make(lines, 5, GRV_SAMPLING_RANDOM, 1, 60); /* twice, with other x */
    assert_true(grv_sampling_number(s, 31, 0) == grv_sampling_number(s, 1, 0) &&
                grv_sampling_number(s, 31, 4) == grv_sampling_number(s, 1, 4));
    assert_true(grv_sampling_number(s, 31, 1) != grv_sampling_number(s, 1, 1));
    grv_sampling_destroy(&s);
}

static void test_integers_and_lists(void **state)
{
    static const char *const lines[] = {"n integer -1 2", "w list one two three", "q list 0.1 1e3"};
    char text[GRV_SAMPLING_TEXT_BYTES];
    int n_of[4] = {0}, w_of[3] = {0};
    (void)state;
    grv_sampling *s = make(lines, 3, GRV_SAMPLING_LATIN_HYPERCUBE, 9, 120);
    for (int64_t i = 0; i < 120; i++) {
        n_of[(int)grv_sampling_number(s, i, 0) + 1]++;
        w_of[(int)grv_sampling_number(s, i, 1)]++;
        grv_sampling_text(s, i, 1, text);
        assert_string_equal(text, grv_sampling_word(s, 1, (int)grv_sampling_number(s, i, 1)));
        assert_true(grv_sampling_number(s, i, 2) == 0.1 || grv_sampling_number(s, i, 2) == 1000);
    }
    /* a Latin hypercube shares them out evenly */
    for (int k = 0; k < 4; k++) assert_int_equal(n_of[k], 30);
    for (int k = 0; k < 3; k++) assert_int_equal(w_of[k], 40);
    assert_int_equal(grv_sampling_n_words(s, 2), 0);
    grv_sampling_destroy(&s);
}

/* Neither the other parameters nor their order matter, and text reads back to the number. */
static void test_by_name(void **state)
{
    static const char *const turned[] = {"v uniform 0 1", "new normal 0 1", "z normal 2 0.5",
                                         "l log_uniform 1e-3 10", "u uniform -1 3"};
    static const int place[N_CONTINUOUS] = {4, 3, 2, 0};
    char text[GRV_SAMPLING_TEXT_BYTES];
    (void)state;
    for (int method = GRV_SAMPLING_RANDOM; method <= GRV_SAMPLING_LATIN_HYPERCUBE; method++) {
        grv_sampling *s = make(continuous, N_CONTINUOUS, (grv_sampling_method)method, 2, 40),
                     *t = make(turned, 5, (grv_sampling_method)method, 2, 40);
        for (int64_t i = 40; i-- > 0;)
            for (int p = 0; p < N_CONTINUOUS; p++) {
                assert_true(grv_sampling_number(s, i, p) == grv_sampling_number(t, i, place[p]));
                grv_sampling_text(s, i, p, text);
                assert_true(strtod(text, NULL) == grv_sampling_number(s, i, p));
            }
        assert_string_equal(grv_sampling_name(t, 1), "new");
        grv_sampling_destroy(&s);
        grv_sampling_destroy(&t);
    }
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *line, *message;
        int64_t n_samples;
    } cases[] = {
        {"velocity", "NAME DISTRIBUTION VALUES expected", 1},
        {"", "NAME DISTRIBUTION VALUES expected", 1},
        {"2u uniform 0 1", "NAME DISTRIBUTION VALUES expected", 1},
        {"u uniforn 0 1", "parameter 'u': unknown distribution 'uniforn'; did you mean 'uniform'?",
         1},
        {"u 0 1", "parameter 'u': a distribution (uniform,", 1},
        {"u uniform 0", "parameter 'u': uniform LOW HIGH expected, 1 value found", 1},
        {"u uniform 0 one", "'one' is no number", 1},
        {"u uniform 0, 1", "'0,' is no number", 1},
        {"u uniform 2 1", "2 is above 1", 1},
        {"u uniform 0 nan", "'nan' is no number", 1},
        {"u uniform -1.7e308 1.7e308", "is too far", 1},
        {"u log_uniform 0 1", "above 0 expected, 0 found", 1},
        {"u normal 0 -1", "standard deviation", 1},
        {"u integer 0.5 2", "whole numbers expected", 1},
        {"u list", "list WORD... expected, 0 values found", 1},
        {"u grid 0 1 2.5", "2.5 is no count", 1},
        {"u grid 0 1 4", "a multiple of the 4 combinations of the grid expected, 6 found", 6},
        {"u uniform 0 1", "a number of at least 1 expected, 0 found", 0},
        {"u grid 0 1 1000000000", "a multiple of the 1000000000 combinations", 6},
    };
    grv_sampling *s = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            grv_sampling_create(&cases[i].line, 1, GRV_SAMPLING_RANDOM, 1, cases[i].n_samples, &s),
            GRV_E_CONFIG);
        assert_null(s);
        if (strstr(grv_error_message(), cases[i].message) == NULL)
            fail_msg("'%s': %s", cases[i].line, grv_error_message());
    }
    const char *const twice[] = {"u uniform 0 1", "u list a b"};
    assert_int_equal(grv_sampling_create(twice, 2, GRV_SAMPLING_RANDOM, 1, 1, &s), GRV_E_CONFIG);
    const char *huge[4];
    for (int i = 0; i < 4; i++)
        huge[i] = (const char *const[]){"a grid 0 1 1000000000", "b grid 0 1 1000000000",
                                        "c grid 0 1 1000000000", "d grid 0 1 9"}[i];
    assert_int_equal(grv_sampling_create(huge, 4, GRV_SAMPLING_RANDOM, 1, 0, &s), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), "too many combinations"));
    assert_int_equal(grv_sampling_create(continuous, N_CONTINUOUS, GRV_SAMPLING_SOBOL, 1,
                                         ((int64_t)1 << 32) + 1, &s),
                     GRV_E_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_latin_hypercube),
        cmocka_unit_test(test_sobol),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_integers_and_lists),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
