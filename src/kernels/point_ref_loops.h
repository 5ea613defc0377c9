/* Included by point_ref.c once per data type: REAL is the type, NAMED(name) the name with its suffix.
 * Written for clarity: one point at a time, sums in double in the order of the points. The scratch that the fast kernels need is
 * used for the hidden layer of one point. No include guard on purpose. */

/* Entry i of an optional array. */
static double NAMED(entry)(const REAL *array, int64_t i)
{
    return array == NULL ? 0 : (double)array[i];
}

/* Output o of x W + b at one point. */
static double NAMED(linear_at)(int64_t c_in, int64_t c_out, const REAL *weight, const REAL *bias,
                               const REAL *x, int64_t o)
{
    double sum = NAMED(entry)(bias, o);
    for (int64_t i = 0; i < c_in; i++) sum += (double)x[i] * (double)weight[i * c_out + o];
    return sum;
}

static void NAMED(linear_forward)(const grvi_linear *linear, int64_t n_points, const void *x_data,
                                  void *y_data, void *pre_data, void *scratch)
{
    const REAL *const x = x_data;
    REAL *const y = y_data, *const pre = pre_data;
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    (void)scratch;
    for (int64_t p = 0; p < n_points; p++) {
        for (int64_t o = 0; o < c_out; o++) {
            const double sum =
                NAMED(linear_at)(c_in, c_out, linear->weight, linear->bias, x + p * c_in, o);
            if (pre != NULL) pre[p * c_out + o] = (REAL)sum;
            y[p * c_out + o] = (REAL)grvi_activation_value(linear->activation, sum);
        }
    }
}

static void NAMED(linear_input_gradient)(const grvi_linear *linear, int64_t n_points,
                                         const void *g_data, void *dx_data, void *scratch)
{
    const REAL *const g = g_data, *const weight = linear->weight;
    REAL *const dx = dx_data;
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    (void)scratch;
    for (int64_t p = 0; p < n_points; p++) {
        for (int64_t i = 0; i < c_in; i++) {
            double sum = 0;
            for (int64_t o = 0; o < c_out; o++)
                sum += (double)g[p * c_out + o] * (double)weight[i * c_out + o];
            dx[p * c_in + i] = (REAL)sum;
        }
    }
}

static void NAMED(linear_weight_gradient)(const grvi_linear *linear, int64_t n_points,
                                          const void *x_data, const void *g_data, double *dw,
                                          double *db, void *scratch)
{
    const REAL *const x = x_data, *const g = g_data;
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    (void)scratch;
    for (int64_t p = 0; p < n_points; p++) {
        for (int64_t o = 0; o < c_out; o++) {
            const double g_o = (double)g[p * c_out + o];
            for (int64_t i = 0; i < c_in; i++) dw[i * c_out + o] += (double)x[p * c_in + i] * g_o;
            if (db != NULL) db[o] += g_o;
        }
    }
}

/* The hidden layer before activation1 at one point. */
static void NAMED(mlp_hidden)(const grvi_mlp *mlp, const REAL *x, double *hidden)
{
    for (int64_t h = 0; h < mlp->c_hidden; h++) {
        hidden[h] = NAMED(linear_at)(mlp->c_in, mlp->c_hidden, mlp->weight1, mlp->bias1, x, h);
    }
}

/* Output o before activation2. */
static double NAMED(mlp_output)(const grvi_mlp *mlp, const double *hidden, int64_t o)
{
    const REAL *const weight2 = mlp->weight2;
    double sum = NAMED(entry)(mlp->bias2, o);
    for (int64_t h = 0; h < mlp->c_hidden; h++) {
        sum += grvi_activation_value(mlp->activation1, hidden[h]) *
               (double)weight2[h * mlp->c_out + o];
    }
    return sum;
}

static void NAMED(mlp_forward)(const grvi_mlp *mlp, int64_t n_points, const void *x_data,
                               void *y_data, void *scratch)
{
    const REAL *const x = x_data;
    REAL *const y = y_data;
    double *const hidden = scratch;
    for (int64_t p = 0; p < n_points; p++) {
        NAMED(mlp_hidden)(mlp, x + p * mlp->c_in, hidden);
        for (int64_t o = 0; o < mlp->c_out; o++) {
            const double sum = NAMED(mlp_output)(mlp, hidden, o);
            y[p * mlp->c_out + o] = (REAL)grvi_activation_value(mlp->activation2, sum);
        }
    }
}

static void NAMED(mlp_backward)(const grvi_mlp *mlp, int64_t n_points, const void *x_data,
                                const void *dy_data, void *dx_data,
                                const grvi_mlp_gradients *gradients, void *scratch)
{
    const REAL *const weight1 = mlp->weight1, *const weight2 = mlp->weight2;
    const int64_t c_in = mlp->c_in, c_hidden = mlp->c_hidden, c_out = mlp->c_out;
    double *const hidden = scratch, *const g2 = hidden + c_hidden, *const dx_sum = g2 + c_out;
    for (int64_t p = 0; p < n_points; p++) {
        const REAL *const x = (const REAL *)x_data + p * c_in, *const dy = (const REAL *)dy_data +
                                                                           p * c_out;
        NAMED(mlp_hidden)(mlp, x, hidden);
        for (int64_t o = 0; o < c_out; o++) {
            g2[o] = (double)dy[o];
            if (mlp->activation2 != GRVI_ACT_NONE) {
                g2[o] *=
                    grvi_activation_derivative(mlp->activation2, NAMED(mlp_output)(mlp, hidden, o));
            }
            if (gradients->bias2 != NULL) gradients->bias2[o] += g2[o];
        }
        for (int64_t i = 0; i < c_in; i++) dx_sum[i] = 0;
        for (int64_t h = 0; h < c_hidden; h++) {
            const double value = grvi_activation_value(mlp->activation1, hidden[h]);
            double g1 = 0;
            for (int64_t o = 0; o < c_out; o++) {
                if (gradients->weight2 != NULL) gradients->weight2[h * c_out + o] += value * g2[o];
                g1 += g2[o] * (double)weight2[h * c_out + o];
            }
            g1 *= grvi_activation_derivative(mlp->activation1, hidden[h]);
            if (gradients->bias1 != NULL) gradients->bias1[h] += g1;
            for (int64_t i = 0; i < c_in; i++) {
                if (gradients->weight1 != NULL)
                    gradients->weight1[i * c_hidden + h] += (double)x[i] * g1;
                dx_sum[i] += (double)weight1[i * c_hidden + h] * g1;
            }
        }
        if (dx_data == NULL) continue;
        for (int64_t i = 0; i < c_in; i++) ((REAL *)dx_data)[p * c_in + i] = (REAL)dx_sum[i];
    }
}

static void NAMED(act_forward)(grvi_activation kind, int64_t n, const void *x, void *y)
{
    for (int64_t i = 0; i < n; i++)
        ((REAL *)y)[i] = (REAL)grvi_activation_value(kind, (double)((const REAL *)x)[i]);
}

static void NAMED(act_gradient)(grvi_activation kind, int64_t n, const void *dy_data,
                                const void *pre_data, void *g)
{
    const REAL *const dy = dy_data, *const pre = pre_data;
    for (int64_t i = 0; i < n; i++) {
        ((REAL *)g)[i] = (REAL)((double)dy[i] * grvi_activation_derivative(kind, (double)pre[i]));
    }
}

static void NAMED(add)(int64_t n, const void *a_data, const void *b_data, void *y)
{
    const REAL *const a = a_data, *const b = b_data;
    for (int64_t i = 0; i < n; i++) ((REAL *)y)[i] = (REAL)((double)a[i] + (double)b[i]);
}

static void NAMED(axpby)(int64_t n, double alpha, const void *x_data, double beta, void *y_data)
{
    const REAL *const x = x_data;
    REAL *const y = y_data;
    for (int64_t i = 0; i < n; i++) y[i] = (REAL)(alpha * (double)x[i] + beta * (double)y[i]);
}

static void NAMED(scale)(int64_t n, double alpha, void *x_data)
{
    REAL *const x = x_data;
    for (int64_t i = 0; i < n; i++) x[i] = (REAL)(alpha * (double)x[i]);
}

static void NAMED(loss_gradient)(int64_t n, double scale, const void *prediction,
                                 const void *target, void *g)
{
    const REAL *const p = prediction, *const y = target;
    for (int64_t i = 0; i < n; i++) ((REAL *)g)[i] = (REAL)(scale * ((double)p[i] - (double)y[i]));
}

static grvi_loss_sums NAMED(loss_sums)(int64_t n, const void *prediction, const void *target)
{
    const REAL *const p = prediction, *const y = target;
    grvi_loss_sums sums = {0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        const double error = (double)p[i] - (double)y[i];
        sums.error2 += error * error;
        sums.target2 += (double)y[i] * (double)y[i];
        if (fabs(error) > sums.max_abs_error) sums.max_abs_error = fabs(error);
    }
    return sums;
}

static double NAMED(sum_squares)(int64_t n, const void *x_data)
{
    const REAL *const x = x_data;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static int64_t NAMED(first_nonfinite)(int64_t n, const void *x_data)
{
    const REAL *const x = x_data;
    int64_t i = 0;
    while (i < n && isfinite(x[i])) i++;
    return i;
}

static void NAMED(adam)(const grvi_adam *step, int64_t n, const void *g_data, void *p_data,
                        void *m_data, void *v_data)
{
    const REAL *const g_in = g_data;
    REAL *const p = p_data, *const m = m_data, *const v = v_data;
    for (int64_t i = 0; i < n; i++) {
        double g = step->gradient_scale * (double)g_in[i], p_i = (double)p[i];
        if (step->decoupled) p_i -= step->learning_rate * step->weight_decay * p_i;
        if (!step->decoupled) g += step->weight_decay * p_i;
        const double m_i = (double)m[i] + (1 - step->beta1) * (g - (double)m[i]);
        const double v_i = step->beta2 * (double)v[i] + (1 - step->beta2) * g * g;
        m[i] = (REAL)m_i;
        v[i] = (REAL)v_i;
        p[i] = (REAL)(p_i - step->learning_rate / step->correction1 * m_i /
                                (sqrt(v_i / step->correction2) + step->epsilon));
    }
}

static int64_t NAMED(peak_loop)(int64_t n)
{
    double sum[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < 8; j++) sum[j] = sum[j] * 0.999 + 1e-3;
    }
    /* the sum decides nothing, but the compiler cannot know that */
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7] < 0 ? 0
                                                                                     : n * 8 * 2;
}

static void NAMED(fill)(grvi_point_kernels *kernels)
{
    *kernels = (grvi_point_kernels){
        .name = "ref",
        .linear_forward = NAMED(linear_forward),
        .linear_input_gradient = NAMED(linear_input_gradient),
        .linear_weight_gradient = NAMED(linear_weight_gradient),
        .mlp_forward = NAMED(mlp_forward),
        .mlp_backward = NAMED(mlp_backward),
        .act_forward = NAMED(act_forward),
        .act_gradient = NAMED(act_gradient),
        .add = NAMED(add),
        .axpby = NAMED(axpby),
        .scale = NAMED(scale),
        .loss_gradient = NAMED(loss_gradient),
        .loss_sums = NAMED(loss_sums),
        .sum_squares = NAMED(sum_squares),
        .first_nonfinite = NAMED(first_nonfinite),
        .adam = NAMED(adam),
        .peak_loop = NAMED(peak_loop),
    };
}
