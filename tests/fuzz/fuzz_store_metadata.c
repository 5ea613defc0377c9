/* zarr.json of an array: whatever the text, it is resolved or refused. */
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "fuzz.h"
#include "store/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    grvi_json *root = NULL;
    grvi_metadata metadata;
    if (grvi_json_parse((const char *)data, (int64_t)n, "fuzz", &root) != GRV_OK) return 0;
    if (grvi_metadata_parse_array(root, "fuzz", 1 << 20, &metadata) == GRV_OK)
        grvi_metadata_fini(&metadata);
    grvi_json_free(root);
    return 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const char *const codecs[] = {
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"zstd\","
        "\"configuration\":{\"level\":1,\"checksum\":true}}]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}},"
        "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":"
        "\"bitshuffle\",\"typesize\":4,\"blocksize\":0}},\"crc32c\"]",
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,2],\"codecs\":["
        "\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":9}}],"
        "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{"
        "\"name\":\"crc32c\"}],\"index_location\":\"start\"}}]"};
    static const char *const types[] = {"\"float32\",\"fill_value\":\"NaN\"",
                                        "\"uint16\",\"fill_value\":65535",
                                        "\"uint8\",\"fill_value\":0"};
    for (int i = 0; i < 3; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/document%d.json", folder, i);
        FILE *const file = fopen(path, "w");
        if (file == NULL) return 1;
        (void)fprintf(file,
                      "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[5,4],\"data_type\":%s,"
                      "\"chunk_grid\":{\"name\":\"regular\","
                      "\"configuration\":{\"chunk_shape\":[4,4]}},\"chunk_key_encoding\":{\"name\":"
                      "\"v2\",\"configuration\":{\"separator\":\"/\"}},"
                      "\"codecs\":%s,\"dimension_names\":[\"x\",null],\"attributes\":{\"a\":1},"
                      "\"storage_transformers\":[]}",
                      types[i], codecs[i]);
        if (fclose(file) != 0) return 1;
    }
    return 0;
}
