/* Resolves the `codecs` list of an array's metadata into a chain. What is not known is refused by name. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/chain.h"

static const int64_t limit_slack_bytes = 65536; /* foreign writers may exceed our bounds a little */
static const int64_t huge_bytes = INT64_MAX / 4;          /* bounds saturate here */
static const int64_t max_inner_chunks = (int64_t)1 << 26; /* of one shard: an index of 1 GiB */

/* One element of a `codecs` list. */
typedef struct codec_spec {
    const char *name;
    const grvi_json *configuration; /* NULL if absent */
    bool must_understand;
} codec_spec;

static grv_status read_spec(const grvi_json *node, const char *what, codec_spec *spec)
{
    spec->name = grvi_json_as_string(node); /* the short form */
    spec->configuration = NULL;
    spec->must_understand = true;
    if (spec->name != NULL) return GRV_OK;
    spec->name = grvi_json_as_string(grvi_json_get(node, "name"));
    GRV_CHECK(spec->name != NULL, GRV_E_FORMAT, "'%s': a codec without a name", what);
    spec->configuration = grvi_json_get(node, "configuration");
    (void)grvi_json_as_bool(grvi_json_get(node, "must_understand"), &spec->must_understand);
    return GRV_OK;
}

static bool order_from_text(const char *text, int rank, int *order)
{
    if (text == NULL || (strcmp(text, "C") != 0 && strcmp(text, "F") != 0)) return false;
    for (int i = 0; i < rank; i++) order[i] = text[0] == 'C' ? i : rank - 1 - i;
    return true;
}

static grv_status add_transpose(grvi_chain *chain, const codec_spec *spec, const char *what)
{
    int order[GRVI_MAX_RANK] = {0}, composed[GRVI_MAX_RANK] = {0};
    const grvi_json *const node = grvi_json_get(spec->configuration, "order");
    if (!order_from_text(grvi_json_as_string(node), chain->rank, order)) {
        unsigned seen = 0;
        GRV_CHECK(grvi_json_length(node) == chain->rank, GRV_E_FORMAT,
                  "'%s': codec 'transpose': order must have %d entries", what, chain->rank);
        for (int i = 0; i < chain->rank; i++) {
            int64_t axis = -1;
            GRV_CHECK(grvi_json_as_i64(grvi_json_at(node, i), &axis) && axis >= 0 &&
                          axis < chain->rank && (seen >> axis & 1U) == 0,
                      GRV_E_FORMAT, "'%s': codec 'transpose': order is no permutation of 0..%d",
                      what, chain->rank - 1);
            seen |= 1U << axis;
            order[i] = (int)axis;
        }
    }
    for (int i = 0; i < chain->rank; i++) composed[i] = chain->order[order[i]];
    for (int i = 0; i < chain->rank; i++) {
        chain->order[i] = composed[i];
        chain->stored_shape[i] = chain->shape[composed[i]];
    }
    return GRV_OK;
}

static grv_status read_endian(const codec_spec *spec, int64_t swap_bytes, const char *what,
                              bool *big_endian)
{
    const char *const endian = grvi_json_as_string(grvi_json_get(spec->configuration, "endian"));
    *big_endian = endian != NULL && strcmp(endian, "big") == 0;
    if (endian == NULL && swap_bytes == 1) return GRV_OK;
    GRV_CHECK(endian != NULL, GRV_E_FORMAT,
              "'%s': codec '%s': no byte order ('endian') for words of %lld bytes", what,
              spec->name, (long long)swap_bytes);
    GRV_CHECK(*big_endian || strcmp(endian, "little") == 0, GRV_E_FORMAT,
              "'%s': codec '%s': endian must be little or big, found '%.32s'", what, spec->name,
              endian);
    return GRV_OK;
}

/* What the elements are after the filters. */
static grvi_item stored_item(const grvi_chain *chain, const grvi_chain_params *params)
{
    return chain->n_filters > 0 ? chain->filters[chain->n_filters - 1].encoded : params->item;
}

static grv_status add_filter(grvi_chain *chain, const codec_spec *spec,
                             const grvi_filter_class *class, const grvi_chain_params *params)
{
    GRV_CHECK(chain->n_filters < GRVI_MAX_FILTERS, GRV_E_UNSUPPORTED, "'%s': more than %d filters",
              params->what, GRVI_MAX_FILTERS);
    GRV_TRY(grvi_filter_parse(class, spec->configuration, stored_item(chain, params), false,
                              params->what, &chain->filters[chain->n_filters]));
    chain->n_filters++;
    return GRV_OK;
}

static grv_status set_bytes(grvi_chain *chain, const codec_spec *spec,
                            const grvi_chain_params *params)
{
    int64_t n = 0;
    const grvi_item stored = stored_item(chain, params);
    const int64_t swap_bytes = grvi_item_swap_bytes(stored);
    GRV_TRY(read_endian(spec, swap_bytes, params->what, &chain->big_endian));
    chain->swap_bytes = chain->big_endian ? swap_bytes : 1;
    GRV_CHECK(grvi_count_elements(chain->rank, chain->shape, &n) &&
                  grvi_mul_i64(n, chain->item_bytes, &chain->n_bytes) &&
                  chain->n_bytes <= params->max_chunk_bytes,
              GRV_E_UNSUPPORTED, "'%s': a chunk has more than %lld bytes", params->what,
              (long long)params->max_chunk_bytes);
    /* a number has at most eight times the bytes of another: no overflow */
    for (int i = 0; i < chain->n_filters; i++)
        GRV_CHECK(n * chain->filters[i].encoded.n_bytes <= params->max_chunk_bytes,
                  GRV_E_UNSUPPORTED, "'%s': a filtered chunk has more than %lld bytes",
                  params->what, (long long)params->max_chunk_bytes);
    chain->n_filtered_bytes = n * stored.n_bytes;
    chain->limit[0] = chain->n_filtered_bytes;
    return GRV_OK;
}

static grv_status read_index_codecs(grvi_sharding *sharding, const grvi_json *list,
                                    const char *what)
{
    GRV_CHECK(grvi_json_length(list) >= 1, GRV_E_FORMAT,
              "'%s': codec 'sharding_indexed': index_codecs is missing or empty", what);
    for (int64_t i = 0; i < grvi_json_length(list); i++) {
        codec_spec spec;
        GRV_TRY(read_spec(grvi_json_at(list, i), what, &spec));
        if (i == 0 && (strcmp(spec.name, "bytes") == 0 || strcmp(spec.name, "endian") == 0)) {
            GRV_TRY(read_endian(&spec, 8, what, &sharding->index_big_endian));
            continue;
        }
        GRV_CHECK(
            i > 0 && strcmp(spec.name, "crc32c") == 0 && i <= GRVI_MAX_CODECS, GRV_E_UNSUPPORTED,
            "'%s': index codec '%.64s' at place %lld: only 'bytes' and then 'crc32c' are supported",
            what, spec.name, (long long)i);
        sharding->n_index_checksums++;
    }
    return GRV_OK;
}

static grv_status read_inner_shape(grvi_chain *chain, const grvi_json *list, const char *what,
                                   int64_t *inner_shape)
{
    grvi_sharding *const sharding = chain->sharding;
    GRV_CHECK(grvi_json_length(list) == chain->rank && (chain->rank == 0 || list != NULL),
              GRV_E_FORMAT, "'%s': codec 'sharding_indexed': chunk_shape must have %d entries",
              what, chain->rank);
    for (int i = 0; i < chain->rank; i++) {
        GRV_CHECK(grvi_json_as_i64(grvi_json_at(list, i), &inner_shape[i]) && inner_shape[i] > 0 &&
                      chain->stored_shape[i] % inner_shape[i] == 0,
                  GRV_E_FORMAT,
                  "'%s': codec 'sharding_indexed': inner chunk length along axis %d does not "
                  "divide the shard's %lld",
                  what, i, (long long)chain->stored_shape[i]);
        sharding->grid[i] = chain->stored_shape[i] / inner_shape[i];
    }
    GRV_CHECK(grvi_count_elements(chain->rank, sharding->grid, &sharding->n_inner) &&
                  sharding->n_inner <= max_inner_chunks,
              GRV_E_UNSUPPORTED, "'%s': a shard has more than %lld inner chunks", what,
              (long long)max_inner_chunks);
    return GRV_OK;
}

static grv_status create_at(const grvi_json *codecs, const int64_t *shape,
                            const grvi_chain_params *params, int depth, grvi_chain **out);

static grv_status set_sharding(grvi_chain *chain, const codec_spec *spec,
                               const grvi_chain_params *params, int depth)
{
    int64_t inner_shape[GRVI_MAX_RANK] = {0}, most = 0;
    const char *const what = params->what;
    GRV_CHECK(depth + 1 < GRVI_MAX_DEPTH, GRV_E_UNSUPPORTED,
              "'%s': shards nest deeper than %d levels", what, GRVI_MAX_DEPTH - 1);
    GRV_TRY(GRVI_CALLOC(&chain->sharding, 1));
    grvi_sharding *const sharding = chain->sharding;
    GRV_TRY(read_inner_shape(chain, grvi_json_get(spec->configuration, "chunk_shape"), what,
                             inner_shape));
    GRV_TRY(read_index_codecs(sharding, grvi_json_get(spec->configuration, "index_codecs"), what));
    sharding->index_bytes = 16 * sharding->n_inner + 4 * sharding->n_index_checksums;
    const grvi_json *const location_node = grvi_json_get(spec->configuration, "index_location");
    const char *const location = location_node != NULL ? grvi_json_as_string(location_node) : "end";
    GRV_CHECK(location != NULL && (strcmp(location, "end") == 0 || strcmp(location, "start") == 0),
              GRV_E_FORMAT, "'%s': codec 'sharding_indexed': index_location must be start or end",
              what);
    sharding->index_at_start = strcmp(location, "start") == 0;
    GRV_TRY(create_at(grvi_json_get(spec->configuration, "codecs"), inner_shape, params, depth + 1,
                      &sharding->inner));
    if (!grvi_mul_i64(sharding->n_inner, sharding->inner->limit[sharding->inner->n_codecs], &most))
        most = huge_bytes;
    chain->limit[0] = grvi_min_i64(most, huge_bytes) + sharding->index_bytes;
    return GRV_OK;
}

static grv_status add_byte_codec(grvi_chain *chain, const codec_spec *spec,
                                 const grvi_chain_params *params)
{
    const grvi_codec_class *const class = grvi_codec_find(spec->name);
    GRV_ASSERT(class != NULL);
    GRV_CHECK(chain->n_codecs < GRVI_MAX_CODECS, GRV_E_UNSUPPORTED, "'%s': more than %d codecs",
              params->what, GRVI_MAX_CODECS);
    const int i = chain->n_codecs++;
    chain->codecs[i].class = class;
    chain->codecs[i].item_bytes = stored_item(chain, params).n_bytes;
    const grv_status status = class->parse(spec->configuration, &chain->codecs[i]);
    if (status != GRV_OK) GRV_FAIL(status, "'%s': %s", params->what, grvi_reason(status));
    const int64_t bound = class->bound(chain->limit[i]);
    GRV_CHECK(bound >= 0 || i > 0, GRV_E_UNSUPPORTED,
              "'%s': codec '%s' cannot take chunks of %lld bytes", params->what, spec->name,
              (long long)chain->limit[0]);
    chain->limit[i + 1] =
        bound < 0 || bound > huge_bytes / 2 ? huge_bytes : 2 * bound + limit_slack_bytes;
    return GRV_OK;
}

static grv_status add_codec(grvi_chain *chain, const codec_spec *spec,
                            const grvi_chain_params *params, int depth, bool *has_bytes)
{
    const bool is_bytes = strcmp(spec->name, "bytes") == 0 ||
                          strcmp(spec->name, "endian") == 0; /* the name before 2023 */
    const bool is_sharding = strcmp(spec->name, "sharding_indexed") == 0,
               is_transpose = strcmp(spec->name, "transpose") == 0;
    const grvi_filter_class *const filter = grvi_filter_find(spec->name);
    const bool is_known = is_bytes || is_sharding || is_transpose || filter != NULL ||
                          grvi_codec_find(spec->name) != NULL;
    if (!is_known && !spec->must_understand) return GRV_OK;
    GRV_CHECK(is_known, GRV_E_UNSUPPORTED, "'%s': codec '%.64s' is not supported", params->what,
              spec->name);
    const bool comes_after_bytes = !is_bytes && !is_sharding && !is_transpose && filter == NULL;
    GRV_CHECK(*has_bytes == comes_after_bytes, GRV_E_FORMAT,
              "'%s': codec '%s' is out of order: transpose and filters, then one of bytes and "
              "sharding_indexed, then compressors and checksums",
              params->what, spec->name);
    GRV_CHECK((!is_transpose && !is_sharding) || chain->n_filters == 0, GRV_E_UNSUPPORTED,
              "'%s': codec '%s' after '%s'", params->what, spec->name,
              chain->n_filters > 0 ? chain->filters[0].class->name : "");
    if (is_transpose) return add_transpose(chain, spec, params->what);
    if (filter != NULL) return add_filter(chain, spec, filter, params);
    if (comes_after_bytes) return add_byte_codec(chain, spec, params);
    *has_bytes = true;
    return is_bytes ? set_bytes(chain, spec, params) : set_sharding(chain, spec, params, depth);
}

static grv_status create_at(const grvi_json *codecs, const int64_t *shape,
                            const grvi_chain_params *params, int depth, grvi_chain **out)
{
    grv_status status = GRV_OK;
    grvi_chain *chain = NULL;
    bool has_bytes = false;
    *out = NULL;
    GRV_CHECK(grvi_json_length(codecs) > 0, GRV_E_FORMAT,
              "'%s': codecs is missing, empty or no list", params->what);
    GRV_TRY(GRVI_CALLOC(&chain, 1));
    chain->rank = params->rank;
    chain->item_bytes = params->item.n_bytes;
    chain->swap_bytes = 1;
    if (chain->item_bytes > (int64_t)sizeof chain->fill.bits)
        chain->fill.bytes = params->fill;
    else
        memcpy(&chain->fill.bits, params->fill, (size_t)chain->item_bytes);
    for (int i = 0; i < chain->rank; i++) {
        chain->order[i] = i;
        chain->shape[i] = chain->stored_shape[i] = shape[i];
    }
    for (int64_t i = 0; i < grvi_json_length(codecs); i++) {
        codec_spec spec;
        GRV_TRY_GOTO(read_spec(grvi_json_at(codecs, i), params->what, &spec));
        GRV_TRY_GOTO(add_codec(chain, &spec, params, depth, &has_bytes));
    }
    GRV_CHECK_GOTO(has_bytes, GRV_E_FORMAT,
                   "'%s': codecs has neither 'bytes' nor 'sharding_indexed'", params->what);
    *out = chain;
done:
    if (status != GRV_OK) grvi_chain_destroy(&chain);
    return status;
}

grv_status grvi_chain_create(const grvi_json *codecs, const int64_t *shape,
                             const grvi_chain_params *params, grvi_chain **chain)
{
    return create_at(codecs, shape, params, 0, chain);
}

void grvi_chain_destroy(grvi_chain **chain)
{
    if (chain == NULL || *chain == NULL) return;
    if ((*chain)->sharding != NULL) grvi_chain_destroy(&(*chain)->sharding->inner);
    grv_free((*chain)->sharding);
    grv_free(*chain);
    *chain = NULL;
}

void grvi_chain_permute(const grvi_chain *chain, const int64_t *in, int64_t *out)
{
    for (int i = 0; i < chain->rank; i++) out[i] = in[chain->order[i]];
}

void grvi_chain_permute_box(const grvi_chain *chain, const grvi_box *box, const int64_t *strides,
                            grvi_box *stored_box, int64_t *stored_strides)
{
    grvi_chain_permute(chain, box->start, stored_box->start);
    grvi_chain_permute(chain, box->count, stored_box->count);
    grvi_chain_permute(chain, strides, stored_strides);
}
