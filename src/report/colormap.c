/* Colour scales made in OKLCH (B. Ottosson, "A perceptual color space for image processing", 2020): lightness, chroma, hue.
 * Equal steps of lightness look equal, which is what makes a scale honest; where a colour is outside sRGB its chroma is
 * reduced, which keeps lightness and hue. */
#include <math.h>
#include <pthread.h>

#include "report/report_impl.h"

typedef struct linear_rgb {
    double r, g, b;
} linear_rgb;

static linear_rgb from_oklch(double lightness, double chroma, double hue_degrees)
{
    const double hue = hue_degrees * 0.017453292519943295;
    const double a = chroma * cos(hue), b = chroma * sin(hue);
    const double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    const double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    const double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    return (linear_rgb){4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
                        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
                        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

static bool in_gamut(linear_rgb c)
{
    return c.r >= 0 && c.r <= 1 && c.g >= 0 && c.g <= 1 && c.b >= 0 && c.b <= 1;
}

static uint8_t encode(double linear)
{
    const double c = linear < 0 ? 0 : linear > 1 ? 1 : linear;
    return (uint8_t)lround(255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * pow(c, 1 / 2.4) - 0.055));
}

static grv_color oklch(double lightness, double chroma, double hue_degrees)
{
    double low = 0, high = chroma;
    if (!in_gamut(from_oklch(lightness, chroma, hue_degrees))) {
        for (int i = 0; i < 20; i++) {
            const double middle = (low + high) / 2;
            if (in_gamut(from_oklch(lightness, middle, hue_degrees)))
                low = middle;
            else
                high = middle;
        }
        chroma = low;
    }
    const linear_rgb c = from_oklch(lightness, chroma, hue_degrees);
    return (grv_color){encode(c.r), encode(c.g), encode(c.b)};
}

grv_color grv_colormap_missing(void)
{
    return (grv_color){150, 150, 150};
}

static grv_color sequential_at(double t)
{
    /* hues: violet 305, blue 255, teal 205, green 155, yellow 105; the chroma stays under what sRGB has on this path, least in
     * the teal, so that no clipping makes an edge */
    return oklch(0.27 + 0.66 * t, 0.13 - 0.182 * t + 0.242 * t * t, 305 - 200 * t);
}

static grv_color diverging_at(double t)
{
    const double signed_part = 2 * t - 1, strength = fabs(signed_part);
    return oklch(0.985 - 0.585 * strength, (0.29 - 0.145 * strength) * strength,
                 signed_part < 0 ? 258 : 26);
}

/* Made once: a colour costs as much as the rest of drawing a hundred pixels. An even number of steps has 0.5 among them. */
enum { N_STEPS = 512 };
static grv_color sequential_colors[N_STEPS + 1], diverging_colors[N_STEPS + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (int i = 0; i <= N_STEPS; i++) {
        sequential_colors[i] = sequential_at((double)i / N_STEPS);
        diverging_colors[i] = diverging_at((double)i / N_STEPS);
    }
}

static grv_color look_up(const grv_color *table, double t)
{
    if (isnan(t)) return grv_colormap_missing();
    (void)pthread_once(&once, make_tables);
    return table[t <= 0 ? 0 : t >= 1 ? N_STEPS : (int)(t * N_STEPS + 0.5)];
}

grv_color grv_colormap_sequential(double t)
{
    return look_up(sequential_colors, t);
}

grv_color grv_colormap_diverging(double t)
{
    return look_up(diverging_colors, t);
}
