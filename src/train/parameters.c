/* Parameters between a rank's block and canonical order: initial values, files. Replicated tensors are the same in both; of owned ones
 * a rank has the modes of its |k_1|, packed (src/kernels/spectral_layout.h), which lie scattered in the canonical tensor. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "graph/graph_impl.h"
#include "kernels/mode_mix.h"
#include "train/network_impl.h"

/* The modes that a domain rank owns of parameter i, and where they lie in the canonical tensor. */
typedef struct owned_modes {
    int64_t n_modes, channels;
    int64_t *canonical; /* [n_modes] */
} owned_modes;

static grv_status owned_modes_init(owned_modes *o, const grv_network *n, int i, int domain_index)
{
    const grvi_spectral_layout *const layout = &n->graph->params[i].layout;
    const int64_t magnitudes = grvi_axis_magnitudes(&layout->axis[layout->n_axes > 1]);
    const grv_range range = grv_partition_range(magnitudes, n->params.n_domain, domain_index);
    grvi_mode_mix mix;
    GRV_TRY(grvi_mode_mix_init(&mix, layout, range.start, range.count));
    *o = (owned_modes){.n_modes = mix.n_modes, .channels = layout->channels};
    GRV_TRY(GRVI_ALLOC(&o->canonical, mix.n_modes));
    grvi_mode_mix_canonical(&mix, o->canonical);
    return GRV_OK;
}

static int my_domain_index(const grv_network *n) { return n->comm == NULL ? 0 : grv_comm_rank(n->comm) % n->params.n_domain; }

/* numbers of a mode */
static int64_t mode_numbers(const owned_modes *o) { return 2 * o->channels * o->channels; }

static float draw(const grv_param_info *info, uint64_t seed, int i, int64_t index)
{
    const double u = grv_random_uniform(seed, (uint64_t)i, (uint64_t)index);
    switch (info->init) {
    case GRV_INIT_UNIFORM_SIGNED: return (float)(info->init_scale * (2 * u - 1));
    case GRV_INIT_UNIFORM: return (float)(info->init_scale * u);
    case GRV_INIT_ZERO: break;
    }
    return 0;
}

static grv_status initialise_owned(grv_network *n, uint64_t seed, int i)
{
    const grv_param_info info = grv_graph_param(n->graph, i);
    float *const packed = n->block + grv_plan_param(n->plan, i).offset;
    owned_modes o = {0};
    float *mode = NULL;
    grv_status status = owned_modes_init(&o, n, i, my_domain_index(n));
    if (status == GRV_OK) status = GRVI_ALLOC(&mode, mode_numbers(&o));
    for (int64_t j = 0; status == GRV_OK && j < o.n_modes; j++) {
        for (int64_t k = 0; k < mode_numbers(&o); k++) mode[k] = draw(&info, seed, i, o.canonical[j] * mode_numbers(&o) + k);
        grvi_mode_weights_pack(o.channels, mode, packed + j * mode_numbers(&o));
    }
    grv_free(mode);
    grv_free(o.canonical);
    return status;
}

grv_status grv_network_initialise(grv_network *n, uint64_t seed)
{
    for (int i = 0; i < grv_graph_n_params(n->graph); i++) {
        const grv_param_info info = grv_graph_param(n->graph, i);
        const grv_param_slice slice = grv_plan_param(n->plan, i);
        if (info.owned) GRV_TRY(initialise_owned(n, seed, i));
        else
            for (int64_t k = 0; k < slice.count; k++) n->block[slice.offset + k] = draw(&info, seed, i, k);
    }
    return GRV_OK;
}

static grv_status tensor_name(const char *prefix, const grv_param_info *info, char out[160])
{
    const int n = snprintf(out, 160, "%s%s", prefix, info->name);
    GRV_CHECK(n > 0 && n < 160, GRV_E_ARG, "tensor name '%s%s' is too long", prefix, info->name);
    return GRV_OK;
}

grv_status grv_network_declare(const grv_network *n, const char *prefix, grv_safetensors_writer *writer, int64_t *first)
{
    *first = 0;
    for (int i = 0; writer != NULL && i < grv_graph_n_params(n->graph); i++) {
        const grv_param_info info = grv_graph_param(n->graph, i);
        char name[160];
        int64_t index = 0;
        GRV_TRY(tensor_name(prefix, &info, name));
        GRV_TRY(grv_safetensors_writer_declare(writer, name, GRV_SAFETENSORS_F32, info.n_dims, info.shape, &index));
        if (i == 0) *first = index;
    }
    return GRV_OK;
}

/* rank 0: puts a domain rank's packed modes to their places in the canonical tensor */
static grv_status scatter_modes(const grv_network *n, int i, int domain_index, const float *packed, float *tensor)
{
    owned_modes o = {0};
    GRV_TRY(owned_modes_init(&o, n, i, domain_index));
    for (int64_t j = 0; j < o.n_modes; j++)
        grvi_mode_weights_unpack(o.channels, packed + j * mode_numbers(&o), tensor + o.canonical[j] * mode_numbers(&o));
    grv_free(o.canonical);
    return GRV_OK;
}

/* bytes of parameter i that each rank sends: the first data group has all of it */
static void gather_sizes(const grv_network *n, int i, int64_t *bytes)
{
    const grvi_spectral_layout *const layout = &n->graph->params[i].layout;
    const int64_t magnitudes = grvi_axis_magnitudes(&layout->axis[layout->n_axes > 1]);
    for (int r = 0; r < n->params.n_data * n->params.n_domain; r++) {
        const grv_range range = grv_partition_range(magnitudes, n->params.n_domain, r % n->params.n_domain);
        const int64_t modes = grvi_spectral_modes_before(layout, range.start + range.count) - grvi_spectral_modes_before(layout, range.start);
        bytes[r] = r < n->params.n_domain ? modes * 2 * layout->channels * layout->channels * (int64_t)sizeof(float) : 0;
    }
}

static grv_status write_owned(grv_network *n, int i, const float *block, grv_safetensors_writer *writer, int64_t index)
{
    const grv_param_info info = grv_graph_param(n->graph, i);
    const float *const mine = block + grv_plan_param(n->plan, i).offset;
    float *gathered = NULL, *tensor = NULL;
    int64_t *bytes = NULL;
    grv_status status = GRVI_ALLOC(&bytes, n->params.n_data * n->params.n_domain);
    if (status == GRV_OK && writer != NULL) status = GRVI_ALLOC(&tensor, info.count);
    if (status == GRV_OK && writer != NULL && n->comm != NULL) status = GRVI_ALLOC(&gathered, info.count);
    if (n->comm != NULL) status = grv_comm_agree(n->comm, status);
    if (status == GRV_OK && n->comm != NULL) {
        gather_sizes(n, i, bytes);
        status = grv_comm_gather(n->comm, 0, mine, bytes, gathered);
    }
    const float *from = n->comm == NULL ? mine : gathered;
    for (int d = 0; status == GRV_OK && writer != NULL && d < n->params.n_domain; d++) {
        status = scatter_modes(n, i, d, from, tensor);
        if (n->comm != NULL) from += bytes[d] / (int64_t)sizeof(float);
    }
    if (status == GRV_OK && writer != NULL) status = grv_safetensors_writer_write(writer, index, 0, info.count * (int64_t)sizeof(float), tensor);
    grv_free(bytes);
    grv_free(tensor);
    grv_free(gathered);
    return status;
}

grv_status grv_network_write(grv_network *n, const float *block, grv_safetensors_writer *writer, int64_t first)
{
    grv_status status = GRV_OK;
    for (int i = 0; status == GRV_OK && i < grv_graph_n_params(n->graph); i++) {
        const grv_param_slice slice = grv_plan_param(n->plan, i);
        if (grv_graph_param(n->graph, i).owned) status = write_owned(n, i, block, writer, first + i);
        else if (writer != NULL)
            status = grv_safetensors_writer_write(writer, first + i, 0, slice.count * (int64_t)sizeof(float), block + slice.offset);
        if (n->comm != NULL) status = grv_comm_agree(n->comm, status);
    }
    return status;
}

static grv_status read_owned(const grv_network *n, int i, const grv_safetensors *file, const grv_safetensors_tensor *t, float *packed)
{
    owned_modes o = {0};
    float *tensor = NULL;
    grv_status status = owned_modes_init(&o, n, i, my_domain_index(n));
    if (status == GRV_OK) status = GRVI_ALLOC(&tensor, t->bytes / (int64_t)sizeof(float));
    if (status == GRV_OK) status = grv_safetensors_read(file, t, 0, t->bytes, tensor);
    for (int64_t j = 0; status == GRV_OK && j < o.n_modes; j++)
        grvi_mode_weights_pack(o.channels, tensor + o.canonical[j] * mode_numbers(&o), packed + j * mode_numbers(&o));
    grv_free(tensor);
    grv_free(o.canonical);
    return status;
}

static grv_status check_tensor(const grv_safetensors_tensor *t, const grv_param_info *info, const char *name)
{
    GRV_CHECK(t != NULL, GRV_E_NOT_FOUND, "tensor '%s' is missing", name);
    bool same = t->dtype == GRV_SAFETENSORS_F32 && t->n_dims == info->n_dims;
    for (int d = 0; same && d < info->n_dims; d++) same = t->shape[d] == info->shape[d];
    char found[160] = "", expected[160] = "";
    for (int d = 0; d < t->n_dims; d++) (void)snprintf(found + strlen(found), 24, " %lld", (long long)t->shape[d]);
    for (int d = 0; d < info->n_dims; d++) (void)snprintf(expected + strlen(expected), 24, " %lld", (long long)info->shape[d]);
    GRV_CHECK(same, GRV_E_SHAPE, "tensor '%s': F32 [%s ] expected, %s [%s ] found", name, expected, grv_safetensors_dtype_name(t->dtype), found);
    return GRV_OK;
}

grv_status grv_network_read(const grv_network *n, const grv_safetensors *file, const char *prefix, float *block)
{
    for (int i = 0; i < grv_graph_n_params(n->graph); i++) {
        const grv_param_info info = grv_graph_param(n->graph, i);
        const grv_param_slice slice = grv_plan_param(n->plan, i);
        char name[160];
        GRV_TRY(tensor_name(prefix, &info, name));
        const grv_safetensors_tensor *const t = grv_safetensors_find(file, name);
        GRV_TRY(check_tensor(t, &info, name));
        if (info.owned) GRV_TRY(read_owned(n, i, file, t, block + slice.offset));
        else GRV_TRY(grv_safetensors_read(file, t, 0, t->bytes, block + slice.offset));
    }
    return GRV_OK;
}
