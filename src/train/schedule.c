/* Learning-rate schedules. */
#include "grove/schedule.h"

#include <math.h>

#include "core/check.h"

grv_schedule grv_schedule_default(void)
{
    return (grv_schedule){
        .kind = GRV_SCHEDULE_CONSTANT, .rate = 1e-3, .factor = 0.5, .period_epochs = 100};
}

grv_status grv_schedule_check(const grv_schedule *s)
{
    /* written so that NaN fails */
    GRV_CHECK(s->rate >= 0 && s->rate < (double)INFINITY, GRV_E_CONFIG,
              "learning rate >= 0 expected, %g found", s->rate);
    GRV_CHECK(s->warmup_steps >= 0, GRV_E_CONFIG, "warm-up of >= 0 steps expected, %lld found",
              (long long)s->warmup_steps);
    switch (s->kind) {
    case GRV_SCHEDULE_CONSTANT: return GRV_OK;
    case GRV_SCHEDULE_STEP:
        GRV_CHECK(s->factor > 0 && s->factor < (double)INFINITY, GRV_E_CONFIG,
                  "factor > 0 expected, %g found", s->factor);
        GRV_CHECK(s->period_epochs >= 1, GRV_E_CONFIG, "period of >= 1 epochs expected, %lld found",
                  (long long)s->period_epochs);
        return GRV_OK;
    case GRV_SCHEDULE_COSINE:
        GRV_CHECK(s->min_rate >= 0 && s->min_rate <= s->rate, GRV_E_CONFIG,
                  "lowest learning rate in 0 .. %g expected, %g found", s->rate, s->min_rate);
        GRV_CHECK(s->total_steps > s->warmup_steps, GRV_E_CONFIG,
                  "more than %lld steps expected after a warm-up of that length, %lld found",
                  (long long)s->warmup_steps, (long long)s->total_steps);
        return GRV_OK;
    }
    GRV_FAIL(GRV_E_CONFIG, "unknown schedule %d", (int)s->kind);
}

static double rate_after_warmup(const grv_schedule *s, int64_t step, int64_t epoch)
{
    switch (s->kind) {
    case GRV_SCHEDULE_STEP: return s->rate * pow(s->factor, (double)(epoch / s->period_epochs));
    case GRV_SCHEDULE_COSINE: {
        const double pi = 3.14159265358979323846;
        const double done =
            (double)(step - s->warmup_steps) / (double)(s->total_steps - s->warmup_steps);
        if (done >= 1) return s->min_rate;
        return s->min_rate + (s->rate - s->min_rate) * (1 + cos(pi * done)) / 2;
    }
    case GRV_SCHEDULE_CONSTANT: break;
    }
    return s->rate;
}

double grv_schedule_rate(const grv_schedule *s, int64_t step, int64_t epoch)
{
    if (step < s->warmup_steps) return s->rate * (double)(step + 1) / (double)s->warmup_steps;
    return rate_after_warmup(s, step, epoch);
}
