/* The list of byte codecs. */
#include <string.h>

#include "store/codec.h"

static const grvi_codec_class *const classes[] = {&grvi_codec_zstd, &grvi_codec_blosc,
                                                  &grvi_codec_gzip, &grvi_codec_crc32c};

const grvi_codec_class *grvi_codec_find(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    }
    return NULL;
}

void grvi_codec_state_fini(grvi_codec_state *state)
{
    grvi_codec_zstd_fini(state);
}

grv_status grvi_codec_integer(const grvi_json *configuration, const char *codec, const char *key,
                              int64_t low, int64_t high, int64_t *value)
{
    const grvi_json *const node = grvi_json_get(configuration, key);
    if (node == NULL) return GRV_OK;
    GRV_CHECK(grvi_json_as_i64(node, value) && *value >= low && *value <= high, GRV_E_FORMAT,
              "codec '%s': %s must be an integer from %lld to %lld", codec, key, (long long)low,
              (long long)high);
    return GRV_OK;
}
