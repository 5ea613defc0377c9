/* Values of parameters: lines of text in, then a pure function of (seed, sample, parameter).
 * Each parameter but those of the grid has a coordinate u in (0, 1), chosen by the method, which its distribution maps to a value. Random
 * streams are keyed by the parameter's name, so that the parameters do not depend on each other. */
#include "grove/sampling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/check.h"
#include "core/nearest.h"
#include "core/text.h"
#include "data/sobol.h"
#include "grove/core.h"

typedef enum kind { UNIFORM, LOG_UNIFORM, NORMAL, INTEGER, LIST, GRID, EACH, N_KINDS } kind;

/* what stands behind the name of a distribution */
static const struct distribution {
    const char *name, *usage;
    int n; /* numbers; 0: words */
} distributions[N_KINDS] = {
    [UNIFORM] = {"uniform", "LOW HIGH", 2},
    [LOG_UNIFORM] = {"log_uniform", "LOW HIGH", 2},
    [NORMAL] = {"normal", "MEAN DEVIATION", 2},
    [INTEGER] = {"integer", "FIRST LAST", 2},
    [LIST] = {"list", "WORD...", 0},
    [GRID] = {"grid", "FIRST LAST COUNT", 3},
    [EACH] = {"each", "WORD...", 0},
};

enum { STREAM_VALUE, STREAM_SHIFT, STREAM_ORDER, N_ROUNDS = 6, MOST_WORDS = 4096 };
static const double most_whole = 0x1p53;

typedef struct param {
    char *line; /* cut into words */
    const char *name;
    char **words; /* behind the distribution; into line */
    int n_words;
    bool are_numbers; /* all words */
    kind kind;
    double a, b;
    int64_t count; /* of values of a grid or each */
    int dimension; /* of the Sobol sequence */
    uint64_t stream;
} param;

struct grv_sampling {
    grv_sampling_method method;
    uint64_t seed;
    int64_t n_samples, n_combinations;
    int n;
    param parameters[GRV_SAMPLING_MAX_PARAMETERS];
};

/* ---- reading ---- */

static grv_status cut(param *p, int number)
{
    static const char blanks[] = " \t\r\n";
    GRV_TRY(GRVI_ALLOC(&p->words, (int64_t)strlen(p->line) / 2 + 1));
    for (char *at = p->line + strspn(p->line, blanks); *at != '\0';) {
        const size_t n = strcspn(at, blanks);
        GRV_CHECK(p->n_words < MOST_WORDS && n < GRV_SAMPLING_TEXT_BYTES, GRV_E_CONFIG,
                  "parameters[%d]: at most %d words of less than %d bytes expected, more found",
                  number, MOST_WORDS, GRV_SAMPLING_TEXT_BYTES);
        p->words[p->n_words++] = at;
        at += n;
        if (*at != '\0') *at++ = '\0';
        at += strspn(at, blanks);
    }
    return GRV_OK;
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return text[0] != '\0' && text[strspn(text, letters)] == '\0' &&
           !(text[0] >= '0' && text[0] <= '9');
}

static bool read_number(const char *text, double *out)
{
    char *end = NULL;
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static grv_status find_distribution(const param *p, const char *word, kind *out)
{
    grvi_nearest search = {.word = word};
    for (int k = 0; k < N_KINDS; k++) {
        *out = (kind)k;
        if (strcmp(word, distributions[k].name) == 0) return GRV_OK;
        grvi_nearest_offer(&search, distributions[k].name);
    }
    const char *const nearest = grvi_nearest_get(&search);
    GRV_CHECK(nearest == NULL, GRV_E_CONFIG,
              "parameter '%s': unknown distribution '%.60s'; did you mean '%s'?", p->name, word,
              nearest);
    GRV_FAIL(GRV_E_CONFIG,
             "parameter '%s': a distribution (uniform, log_uniform, normal, integer, list, grid, "
             "each) expected, '%.60s' found",
             p->name, word);
}

static grv_status check_numbers(param *p, const double *x)
{
    const char *const name = distributions[p->kind].name;
    p->a = x[0];
    p->b = x[1];
    GRV_CHECK(p->kind != NORMAL || p->b >= 0, GRV_E_CONFIG,
              "parameter '%s': a standard deviation of at least 0 expected, %g found", p->name,
              p->b);
    GRV_CHECK(p->kind == NORMAL || p->kind == GRID || p->a <= p->b, GRV_E_CONFIG,
              "parameter '%s': %s LOW HIGH expected, %g is above %g", p->name, name, p->a, p->b);
    GRV_CHECK(p->kind != LOG_UNIFORM || p->a > 0, GRV_E_CONFIG,
              "parameter '%s': %s above 0 expected, %g found", p->name, name, p->a);
    GRV_CHECK(p->kind != INTEGER || (floor(p->a) >= p->a && floor(p->b) >= p->b &&
                                     fabs(p->a) < most_whole && fabs(p->b) < most_whole),
              GRV_E_CONFIG, "parameter '%s': whole numbers expected, %g and %g found", p->name,
              p->a, p->b);
    GRV_CHECK(isfinite(p->b - p->a), GRV_E_CONFIG, "parameter '%s': %g to %g is too far", p->name,
              p->a, p->b);
    if (p->kind != GRID) return GRV_OK;
    GRV_CHECK(x[2] >= 1 && x[2] <= 1e9 && floor(x[2]) >= x[2], GRV_E_CONFIG,
              "parameter '%s': grid FIRST LAST COUNT expected, %g is no count", p->name, x[2]);
    p->count = (int64_t)x[2];
    return GRV_OK;
}

static grv_status read_values(param *p)
{
    const struct distribution *const d = &distributions[p->kind];
    double x[3] = {0};
    p->are_numbers = true;
    GRV_CHECK(d->n == 0 ? p->n_words >= 1 : p->n_words == d->n, GRV_E_CONFIG,
              "parameter '%s': %s %s expected, %d value%s found", p->name, d->name, d->usage,
              p->n_words, p->n_words == 1 ? "" : "s");
    for (int i = 0; i < p->n_words; i++) {
        double number = 0;
        const bool is_number = read_number(p->words[i], &number);
        GRV_CHECK(is_number || d->n == 0, GRV_E_CONFIG,
                  "parameter '%s': %s %s expected, '%.60s' is no number", p->name, d->name,
                  d->usage, p->words[i]);
        p->are_numbers = p->are_numbers && is_number;
        if (d->n > 0) x[i] = number;
    }
    p->count = p->n_words;
    return d->n > 0 ? check_numbers(p, x) : GRV_OK;
}

static grv_status read_parameter(const char *line, int number, param *p)
{
    GRV_TRY(grvi_strdup(line, &p->line));
    GRV_TRY(cut(p, number));
    GRV_CHECK(p->n_words >= 2 && is_name(p->words[0]), GRV_E_CONFIG,
              "parameters[%d]: NAME DISTRIBUTION VALUES expected (such as 'velocity uniform 0.5 "
              "2'), '%.60s' found",
              number, line);
    p->name = p->words[0];
    GRV_TRY(find_distribution(p, p->words[1], &p->kind));
    p->n_words -= 2;
    memmove(p->words, p->words + 2, sizeof *p->words * (size_t)p->n_words);
    GRV_TRY(read_values(p));
    p->stream = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = p->name; *c != '\0'; c++)
        p->stream = (p->stream ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    p->stream &= ~UINT64_C(3); /* four streams for each */
    return GRV_OK;
}

static grv_status count_combinations(grv_sampling *s)
{
    int n_dimensions = 0;
    s->n_combinations = 1;
    for (int i = 0; i < s->n; i++) {
        param *const p = &s->parameters[i];
        if (p->kind != GRID && p->kind != EACH)
            p->dimension = n_dimensions++;
        else
            GRV_CHECK(grvi_mul_i64(s->n_combinations, p->count, &s->n_combinations), GRV_E_CONFIG,
                      "the grid has too many combinations");
        for (int j = 0; j < i; j++)
            GRV_CHECK(strcmp(s->parameters[j].name, p->name) != 0, GRV_E_CONFIG,
                      "parameter '%s' once expected, again found", p->name);
    }
    if (s->n_samples == 0 && n_dimensions < s->n) s->n_samples = s->n_combinations;
    GRV_CHECK(s->n_samples >= 1, GRV_E_CONFIG,
              "samples: a number of at least 1 expected, %lld found%s", (long long)s->n_samples,
              s->n_samples == 0 ? " (0 is for parameters of a grid: each combination once)" : "");
    GRV_CHECK(s->n_samples % s->n_combinations == 0, GRV_E_CONFIG,
              "samples: a multiple of the %lld combinations of the grid expected, %lld found",
              (long long)s->n_combinations, (long long)s->n_samples);
    GRV_CHECK(s->method != GRV_SAMPLING_SOBOL || s->n_samples <= (int64_t)1 << 32, GRV_E_CONFIG,
              "a Sobol sequence has 2^32 points, %lld are wanted", (long long)s->n_samples);
    return GRV_OK;
}

grv_status grv_sampling_create(const char *const *lines, int n, grv_sampling_method method,
                               uint64_t seed, int64_t n_samples, grv_sampling **sampling)
{
    grv_status status = GRV_OK;
    grv_sampling *s = NULL;
    *sampling = NULL;
    GRV_CHECK(n >= 0 && n <= GRV_SAMPLING_MAX_PARAMETERS, GRV_E_CONFIG,
              "0 to %d parameters expected, %d found", GRV_SAMPLING_MAX_PARAMETERS, n);
    GRV_TRY(GRVI_CALLOC(&s, 1));
    s->method = method;
    s->seed = seed;
    s->n_samples = n_samples;
    for (s->n = 0; s->n < n;) {
        s->n++; /* what is begun is released */
        GRV_TRY_GOTO(read_parameter(lines[s->n - 1], s->n - 1, &s->parameters[s->n - 1]));
    }
    GRV_TRY_GOTO(count_combinations(s));
    *sampling = s;
    return GRV_OK;
done:
    grv_sampling_destroy(&s);
    return status;
}

void grv_sampling_destroy(grv_sampling **sampling)
{
    if (sampling == NULL || *sampling == NULL) return;
    for (int i = 0; i < (*sampling)->n; i++) {
        grv_free((*sampling)->parameters[i].words);
        grv_free((*sampling)->parameters[i].line);
    }
    grv_free(*sampling);
    *sampling = NULL;
}

int64_t grv_sampling_n_samples(const grv_sampling *s)
{
    return s->n_samples;
}
int grv_sampling_n_parameters(const grv_sampling *s)
{
    return s->n;
}
const char *grv_sampling_name(const grv_sampling *s, int parameter)
{
    return s->parameters[parameter].name;
}

static bool has_words(const param *p)
{
    return (p->kind == LIST || p->kind == EACH) && !p->are_numbers;
}
int grv_sampling_n_words(const grv_sampling *s, int parameter)
{
    return has_words(&s->parameters[parameter]) ? s->parameters[parameter].n_words : 0;
}
const char *grv_sampling_word(const grv_sampling *s, int parameter, int i)
{
    return s->parameters[parameter].words[i];
}

/* ---- coordinates ---- */

/* Place of i in a permutation of 0..n-1: a Feistel network over the next power of four, applied until it falls below n. */
static int64_t permute(uint64_t seed, uint64_t stream, int64_t n, int64_t i)
{
    int half = 1;
    while (half < 31 && INT64_C(1) << (2 * half) < n) half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t x = (uint64_t)i;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (uint64_t round = 0; round < N_ROUNDS; round++) {
            const uint64_t next =
                left ^ (grv_random_bits(seed, stream, round << 32 | right) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}

/* In (0, 1), never an end. */
static double random_unit(uint64_t seed, uint64_t stream, int64_t i)
{
    return ((double)(grv_random_bits(seed, stream, (uint64_t)i) >> 12) + 0.5) * 0x1p-52;
}

static double coordinate(const grv_sampling *s, const param *p, int64_t sample)
{
    if (s->method == GRV_SAMPLING_SOBOL) {
        const uint32_t shift = (uint32_t)grv_random_bits(s->seed, p->stream + STREAM_SHIFT, 0);
        return ((double)(grvi_sobol(p->dimension, (uint32_t)sample) ^ shift) + 0.5) * 0x1p-32;
    }
    const double u = random_unit(s->seed, p->stream + STREAM_VALUE, sample);
    if (s->method == GRV_SAMPLING_RANDOM) return u;
    const double place = (double)permute(s->seed, p->stream + STREAM_ORDER, s->n_samples, sample);
    return fmin((place + u) / (double)s->n_samples, 1 - 0x1p-53);
}

/* The number below which a share p of the normal distribution lies: an estimate (Abramowitz and Stegun 26.2.23), then two steps of Halley's
 * method on the complementary error function, which is exact in the tails too. */
static double normal_quantile(double p)
{
    const double tail = fmin(p, 1 - p), t = sqrt(-2 * log(tail)),
                 root_half = 0.70710678118654752440, root_2pi = 2.50662827463100050242;
    double x = t - ((0.010328 * t + 0.802853) * t + 2.515517) /
                       (((0.001308 * t + 0.189269) * t + 1.432788) * t + 1);
    for (int i = 0; i < 2; i++) {
        const double step = (tail - 0.5 * erfc(x * root_half)) * root_2pi * exp(0.5 * x * x);
        x -= step / (1 + 0.5 * x * step);
    }
    return p < 0.5 ? -x : x;
}

/* ---- values ---- */

/* Place of the value of a grid's parameter: the last one goes fastest. */
static int64_t grid_place(const grv_sampling *s, int parameter, int64_t sample)
{
    int64_t rest = sample % s->n_combinations;
    for (int i = s->n - 1; i > parameter; i--)
        if (s->parameters[i].kind == GRID || s->parameters[i].kind == EACH)
            rest /= s->parameters[i].count;
    return rest % s->parameters[parameter].count;
}

static int64_t place_of(const grv_sampling *s, int parameter, int64_t sample)
{
    const param *const p = &s->parameters[parameter];
    if (p->kind != LIST) return grid_place(s, parameter, sample);
    return grvi_min_i64((int64_t)(coordinate(s, p, sample) * p->n_words), p->n_words - 1);
}

double grv_sampling_number(const grv_sampling *s, int64_t sample, int parameter)
{
    const param *const p = &s->parameters[parameter];
    double number = 0;
    switch (p->kind) {
    case UNIFORM: return p->a + coordinate(s, p, sample) * (p->b - p->a);
    case LOG_UNIFORM:
        return fmin(
            p->b, fmax(p->a, exp(log(p->a) + coordinate(s, p, sample) * (log(p->b) - log(p->a)))));
    case NORMAL: return p->a + p->b * normal_quantile(coordinate(s, p, sample));
    case INTEGER: return fmin(p->b, floor(p->a + coordinate(s, p, sample) * (p->b - p->a + 1)));
    case GRID: {
        const int64_t i = place_of(s, parameter, sample);
        if (i == p->count - 1 && i > 0) return p->b; /* to the last bit */
        return p->a + (p->count > 1 ? (double)i * ((p->b - p->a) / (double)(p->count - 1)) : 0);
    }
    default: break;
    }
    const int64_t i = place_of(s, parameter, sample);
    return p->are_numbers && read_number(p->words[i], &number) ? number : (double)i;
}

void grv_sampling_text(const grv_sampling *s, int64_t sample, int parameter, char *text)
{
    const param *const p = &s->parameters[parameter];
    if (p->kind == LIST || p->kind == EACH) {
        (void)snprintf(text, GRV_SAMPLING_TEXT_BYTES, "%s",
                       p->words[place_of(s, parameter, sample)]);
        return;
    }
    const double number = grv_sampling_number(s, sample, parameter);
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, GRV_SAMPLING_TEXT_BYTES, "%.*g", digits, number);
        if (!(strtod(text, NULL) < number) && !(strtod(text, NULL) > number)) return;
    }
}
