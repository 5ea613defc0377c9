/* The FNO as operations of a graph; fusion and placement are the planner's. */
#include <math.h>
#include <stdio.h>

#include "core/check.h"
#include "grove/fno.h"

grv_fno_params grv_fno_params_default(void)
{
    return (grv_fno_params){.n_axes = 4,
                            .axis_names = {"x", "y", "z", "t"},
                            .n = {34, 34, 34, 16},
                            .modes = {5, 5, 5, 3},
                            .padding = {0, 0, 0, 4},
                            .width = 8,
                            .c_in = 3,
                            .c_out = 1,
                            .lift_hidden = 4,
                            .projection_hidden = 32,
                            .n_blocks = 4,
                            .activation = GRV_ACTIVATION_RELU,
                            .activation_after_last = true,
                            .loss = GRV_LOSS_RELATIVE_L2};
}

static grv_status check_params(const grv_fno_params *p)
{
    GRV_CHECK(p->n_axes >= 1 && p->n_axes <= GRV_MAX_AXES, GRV_E_ARG, "network: 1 to %d axes expected, %d found", GRV_MAX_AXES, p->n_axes);
    GRV_CHECK(p->n_blocks >= 1, GRV_E_ARG, "network: at least 1 block expected, %d found", p->n_blocks);
    GRV_CHECK(p->width >= 1 && p->lift_hidden >= 0 && p->projection_hidden >= 0, GRV_E_ARG, "network: a width of at least 1 expected, %lld found",
              (long long)p->width);
    for (int a = 0; a < p->n_axes; a++)
        GRV_CHECK(p->padding[a] >= 0 && p->padding_fraction[a] >= 0 && p->padding_fraction[a] <= 8, GRV_E_ARG,
                  "network: axis '%s': padding of at least 0 and a fraction of at most 8 expected, %lld and %g found", grv_fno_axis_name(p, a),
                  (long long)p->padding[a], p->padding_fraction[a]);
    GRV_CHECK(!p->static_input || p->n_axes > 1, GRV_E_ARG, "network: a static input needs a second axis");
    return GRV_OK;
}

const char *grv_fno_axis_name(const grv_fno_params *p, int axis)
{
    static const char *const names[GRV_MAX_AXES] = {"x", "y", "z", "t"};
    return p->axis_names[0][0] != '\0' ? p->axis_names[axis] : names[axis];
}

static grv_value input(grv_graph *g, const grv_fno_params *p, const char *name, const int64_t *n, int64_t channels)
{
    grv_axis axes[GRV_MAX_AXES];
    for (int a = 0; a < p->n_axes; a++) axes[a] = (grv_axis){grv_fno_axis_name(p, a), n[a]};
    return grv_graph_input(g, name, p->n_axes, axes, channels);
}

static grv_value lift(grv_graph *g, const grv_fno_params *p, grv_value x)
{
    if (p->lift_hidden == 0) return grv_graph_linear(g, x, "lift.0", p->width, true);
    x = grv_graph_activation(g, grv_graph_linear(g, x, "lift.0", p->lift_hidden, true), p->activation);
    return grv_graph_activation(g, grv_graph_linear(g, x, "lift.1", p->width, true), p->activation);
}

static grv_value block(grv_graph *g, const grv_fno_params *p, grv_value v, int index)
{
    char name[48];
    grv_value s = v;
    for (int a = p->n_axes - 1; a >= 0; a--) s = grv_graph_analyse(g, s, grv_fno_axis_name(p, a), p->modes[a]);
    (void)snprintf(name, sizeof name, "block.%d.spectral", index);
    s = grv_graph_mode_mix(g, s, name);
    for (int a = 0; a < p->n_axes; a++) s = grv_graph_synthesise(g, s, grv_fno_axis_name(p, a));
    (void)snprintf(name, sizeof name, "block.%d.skip", index);
    v = grv_graph_add(g, s, grv_graph_linear(g, v, name, p->width, true));
    return index < p->n_blocks - 1 || p->activation_after_last ? grv_graph_activation(g, v, p->activation) : v;
}

static grv_value projection(grv_graph *g, const grv_fno_params *p, grv_value v)
{
    if (p->projection_hidden == 0) return grv_graph_linear(g, v, "projection.0", p->c_out, true);
    v = grv_graph_activation(g, grv_graph_linear(g, v, "projection.0", p->projection_hidden, true), p->activation);
    return grv_graph_linear(g, v, "projection.1", p->c_out, true);
}

grv_status grv_fno_build(const grv_fno_params *p, int64_t n_samples, bool with_loss, grv_graph **out)
{
    *out = NULL;
    GRV_TRY(check_params(p));
    grv_graph *g = NULL;
    GRV_TRY(grv_graph_create(n_samples, &g));
    const int last = p->n_axes - 1;
    int64_t n_input[GRV_MAX_AXES], padded[GRV_MAX_AXES];
    for (int a = 0; a < p->n_axes; a++) {
        n_input[a] = p->n[a];
        padded[a] = p->n[a] + p->padding[a] + (int64_t)ceil(p->padding_fraction[a] * (double)p->n[a]);
    }
    if (p->static_input) n_input[last] = 1;
    grv_value v = input(g, p, "input", n_input, p->c_in);
    if (p->coordinates != GRV_COORDINATES_NONE) {
        /* the last coordinate changes along an axis that a static input does not have */
        if (p->static_input) v = grv_graph_repeat(g, v, grv_fno_axis_name(p, last), p->n[last]);
        v = grv_graph_coordinates(g, v, p->coordinates);
        v = lift(g, p, v);
    } else {
        /* the lift acts on points alone, so it may come before the repetition: n times less work, the same numbers */
        v = lift(g, p, v);
        if (p->static_input) v = grv_graph_repeat(g, v, grv_fno_axis_name(p, last), p->n[last]);
    }
    v = grv_graph_resize(g, v, padded);
    for (int i = 0; i < p->n_blocks; i++) v = block(g, p, v, i);
    v = projection(g, p, grv_graph_resize(g, v, p->n));
    grv_graph_mark_output(g, v, "output");
    if (with_loss) (void)grv_graph_loss(g, v, input(g, p, "target", p->n, p->c_out), p->loss);
    const grv_status status = grv_graph_status(g);
    if (status != GRV_OK) {
        grv_graph_destroy(&g);
        return status;
    }
    *out = g;
    return GRV_OK;
}
