/* Ticks of axes and colour bars. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_impl.h"

/* Smallest of 1, 2, 5 x 10^k that is at least `least`. */
static double nice_step(double least)
{
    const double power = pow(10, floor(log10(least)));
    const double mantissa = least / power;
    return power * (mantissa <= 1.0000001   ? 1
                    : mantissa <= 2.0000001 ? 2
                    : mantissa <= 5.0000001 ? 5
                                            : 10);
}

/* Decimals that multiples of a nice step need; negative where whole tens, hundreds, ... are enough. */
static int decimals_of(double step)
{
    return (int)ceil(-log10(step) - 1e-9);
}

/* "0.25", "1500"; very large and small ones "2.5x10^{6}", with the digits that tell neighbours apart. */
static void put_label(char label[32], double value, double step)
{
    if (fabs(value) < step * 1e-6) {
        (void)snprintf(label, 32, "0");
    } else if (fabs(value) >= 1e5 || step < 1e-4) {
        const int exponent = (int)floor(log10(fabs(value)) + 1e-9);
        const double mantissa = value / pow(10, exponent);
        if (fabs(fabs(mantissa) - 1) < 1e-12)
            (void)snprintf(label, 32, "%s10^{%d}", mantissa < 0 ? "-" : "", exponent);
        else
            (void)snprintf(label, 32, "%.*fx10^{%d}", decimals_of(step) + exponent, mantissa,
                           exponent);
    } else {
        const int decimals = decimals_of(step);
        (void)snprintf(label, 32, "%.*f", decimals > 0 ? decimals : 0, value);
    }
}

static void ticks_of_step(grvi_ticks *ticks, double min, double max, double step)
{
    ticks->n = 0;
    for (double k = ceil(min / step - 1e-9);
         k * step <= max + step * 1e-9 && ticks->n < GRVI_MAX_TICKS; k++) {
        ticks->at[ticks->n] = k * step;
        put_label(ticks->label[ticks->n], k * step, step);
        ticks->n++;
    }
}

void grvi_ticks_linear(grvi_ticks *ticks, double min, double max, int wanted)
{
    /* two ticks do not show a scale: a range just short of the next multiple gets the finer step */
    do {
        ticks_of_step(ticks, min, max, nice_step((max - min) / wanted));
        wanted++;
    } while (ticks->n < 3 && wanted <= 12);
}

void grvi_ticks_logarithmic(grvi_ticks *ticks, double min, double max, int wanted)
{
    const int first = (int)ceil(log10(min) - 1e-9), last = (int)floor(log10(max) + 1e-9);
    /* with up to two powers of ten in the range, 1, 2 and 5 of each decade; with many, every second, third, ... power */
    const bool is_short = last - first < 2;
    const int stride = (last - first) / wanted + 1;
    static const int digits[] = {1, 2, 5};
    ticks->n = 0;
    for (int k = is_short ? first - 1 : first; k <= last; k += is_short ? 1 : stride) {
        for (int d = 0; d < (is_short ? 3 : 1); d++) {
            const double value = digits[d] * pow(10, k);
            if (value < min * (1 - 1e-9) || value > max * (1 + 1e-9) || ticks->n == GRVI_MAX_TICKS)
                continue;
            ticks->at[ticks->n] = value;
            if (k >= -2 && k <= 3)
                (void)snprintf(ticks->label[ticks->n], 32, "%g", value);
            else if (digits[d] == 1)
                (void)snprintf(ticks->label[ticks->n], 32, "10^{%d}", k);
            else
                (void)snprintf(ticks->label[ticks->n], 32, "%dx10^{%d}", digits[d], k);
            ticks->n++;
        }
    }
}
