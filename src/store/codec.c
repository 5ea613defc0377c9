/* The list of byte codecs. */
#include <string.h>

#include "store/codec.h"

static const grvi_codec_class *const classes[] = {
    &grvi_codec_zstd,  &grvi_codec_blosc,   &grvi_codec_gzip,      &grvi_codec_zlib,
    &grvi_codec_lz4,   &grvi_codec_bz2,     &grvi_codec_shuffle,   &grvi_codec_crc32c,
    &grvi_codec_crc32, &grvi_codec_adler32, &grvi_codec_fletcher32};

static const grvi_codec_class *find_exactly(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    }
    return NULL;
}

const grvi_codec_class *grvi_codec_find(const char *name)
{
    static const char prefix[] = "numcodecs.";
    const size_t n_prefix = sizeof prefix - 1;
    const grvi_codec_class *const class = find_exactly(name);
    if (class != NULL || strncmp(name, prefix, n_prefix) != 0) return class;
    /* the registered codecs exist under both names, with the same bytes */
    const char *const registered = name + n_prefix;
    return strchr(registered, '.') == NULL ? find_exactly(registered) : NULL;
}

void grvi_codec_state_fini(grvi_codec_state *state)
{
    grvi_codec_zstd_fini(state);
    grvi_buffer_fini(&state->block);
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
