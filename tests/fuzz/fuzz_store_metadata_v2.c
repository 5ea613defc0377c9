/* .zarray and, after a NUL byte, .zattrs: whatever the texts, they become a document in the words of version 3 that is resolved, or they
 * are refused; and what is resolved can be written again. */
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "fuzz.h"
#include "store/metadata.h"

static grvi_json *parse(const uint8_t *data, size_t n)
{
    grvi_json *json = NULL;
    return grvi_json_parse((const char *)data, (int64_t)n, "fuzz", &json) == GRV_OK &&
                   grvi_json_check_keys((const char *)data, (int64_t)n, "fuzz") == GRV_OK
               ? json
               : (grvi_json_free(json), NULL);
}

static void resolve(const grvi_json *document)
{
    grvi_metadata metadata;
    grvi_text text = {0};
    grvi_node_text node = {0};
    if (grvi_metadata_parse_array(document, "fuzz", 1 << 20, &metadata) != GRV_OK) return;
    grvi_json_print(document, &text);
    if (grvi_text_status(&text) == GRV_OK &&
        grvi_node_text_make(GRV_NODE_ARRAY, &text, "fuzz", &node) == GRV_OK)
        grvi_node_text_fini(&node);
    grvi_text_fini(&text);
    grvi_metadata_fini(&metadata);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *const end = n > 0 ? memchr(data, 0, n) : NULL;
    const size_t n_array = end != NULL ? (size_t)(end - data) : n;
    grvi_json *const zarray = parse(data, n_array);
    grvi_json *const zattrs = end != NULL ? parse(end + 1, n - n_array - 1) : NULL;
    for (int kind = GRV_NODE_GROUP; kind <= GRV_NODE_ARRAY; kind++) {
        grvi_json *document = NULL;
        if (grvi_v2_read_node((grv_node_kind)kind, zarray, zattrs, "fuzz", &document) == GRV_OK &&
            kind == GRV_NODE_ARRAY)
            resolve(document);
        grvi_json_free(document);
    }
    grvi_json_free(zattrs);
    grvi_json_free(zarray);
    return 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const char *const documents[] = {
        "\"dtype\":\"<f4\",\"fill_value\":\"NaN\",\"order\":\"F\",\"filters\":null,\"compressor\":{"
        "\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":-1,\"blocksize\":0}",
        "\"dtype\":\">i2\",\"fill_value\":-7,\"order\":\"C\",\"filters\":[{\"id\":\"delta\","
        "\"dtype\":"
        "\">i2\",\"astype\":\">i4\"},{\"id\":\"shuffle\",\"elementsize\":4}],\"compressor\":{"
        "\"id\":"
        "\"zlib\",\"level\":1},\"dimension_separator\":\"/\"",
        "\"dtype\":\"|S7\",\"fill_value\":\"aGVsbG8AAA==\",\"order\":\"C\",\"filters\":[],"
        "\"compressor\":{\"id\":\"zstd\",\"level\":3}",
        "\"dtype\":\"<U3\",\"fill_value\":\"\xc3\xa4\",\"order\":\"C\",\"filters\":null,"
        "\"compressor\":null",
        "\"dtype\":\"<c8\",\"fill_value\":[1.0,\"-Infinity\"],\"order\":\"C\",\"filters\":null,"
        "\"compressor\":{\"id\":\"lz4\",\"acceleration\":1}",
        "\"dtype\":\"<f4\",\"fill_value\":null,\"order\":\"C\",\"filters\":[{\"id\":"
        "\"fixedscaleoffset\",\"offset\":1000,\"scale\":10,\"dtype\":\"<f4\",\"astype\":\"<i2\"}],"
        "\"compressor\":{\"id\":\"bz2\",\"level\":1}"};
    for (int i = 0; i < 6; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/document%d", folder, i);
        FILE *const file = fopen(path, "wb");
        if (file == NULL) return 1;
        (void)fprintf(file, "{\"zarr_format\":2,\"shape\":[5,4],\"chunks\":[4,4],%s}",
                      documents[i]);
        (void)fputc(0, file);
        (void)fputs("{\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"],\"a\":[1,{\"b\":null}]}", file);
        if (fclose(file) != 0) return 1;
    }
    return 0;
}
