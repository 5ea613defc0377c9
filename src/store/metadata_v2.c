/* Zarr version 2 in the words of version 3, and back, so that one reader resolves both.
 *   .zarray: order F = `transpose` with the axes reversed, then `filters`, then `compressor`. Filters of numbers come before
 *   `bytes`, whose byte order is that of the last type string; codecs of bytes come after it.
 *   .zattrs: attributes; of an array, `_ARRAY_DIMENSIONS` (xarray's convention) are the dimension names.
 * Unknown members are ignored, as version 2 asks for; unknown codecs are refused by the reader of the chain. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/filter.h"
#include "store/metadata.h"
#include "store/store_type.h"

static const char dimensions_key[] = "_ARRAY_DIMENSIONS";

/* A codec's names in both versions, and the members of its configuration. */
typedef struct codec_words {
    const char *id, *name;
    const char *members[5];
} codec_words;

static const codec_words known_codecs[] = {
    {"blosc", "blosc", {"cname", "clevel", "shuffle", "blocksize"}},
    {"zstd", "zstd", {"level", "checksum"}},
    {"gzip", "gzip", {"level"}},
    {"crc32c", "crc32c", {NULL}},
    {"zlib", "numcodecs.zlib", {"level"}},
    {"lz4", "numcodecs.lz4", {"acceleration"}},
    {"bz2", "numcodecs.bz2", {"level"}},
    {"shuffle", "numcodecs.shuffle", {"elementsize"}},
    {"crc32", "numcodecs.crc32", {"location"}},
    {"adler32", "numcodecs.adler32", {"location"}},
    {"fletcher32", "numcodecs.fletcher32", {NULL}},
    {"delta", "numcodecs.delta", {"dtype", "astype"}},
    {"fixedscaleoffset", "numcodecs.fixedscaleoffset", {"offset", "scale", "dtype", "astype"}},
    {"astype", "numcodecs.astype", {"encode_dtype", "decode_dtype"}},
    {"bitround", "numcodecs.bitround", {"keepbits"}}};
enum { N_CODECS = sizeof known_codecs / sizeof known_codecs[0], MAX_MEMBERS = 5 };

/* A value of another document. */
static grv_status write_value(grvi_json_writer *w, const grvi_json *value)
{
    grvi_text text = {0};
    if (value == NULL) {
        grvi_json_null(w);
        return GRV_OK;
    }
    grvi_json_print(value, &text);
    const grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) grvi_json_raw(w, text.data);
    grvi_text_fini(&text);
    return status;
}

static grv_status write_member(grvi_json_writer *w, const char *key, const grvi_json *value)
{
    grvi_json_key(w, key);
    return write_value(w, value);
}

static void write_text(grvi_json_writer *w, const char *key, const char *value)
{
    grvi_json_key(w, key);
    grvi_json_string(w, value);
}

static void begin_object_member(grvi_json_writer *w, const char *key)
{
    grvi_json_key(w, key);
    grvi_json_begin_object(w);
}

/* ---- version 2 read ---- */

/* A `codecs` list that is being written, and what the elements are by now. */
typedef struct codec_list {
    grvi_json_writer *w;
    const char *what;
    grvi_item item;
    bool big_endian;
    bool has_bytes;
} codec_list;

static void add_bytes(codec_list *list)
{
    if (list->has_bytes) return;
    list->has_bytes = true;
    grvi_json_begin_object(list->w);
    write_text(list->w, "name", "bytes");
    begin_object_member(list->w, "configuration");
    write_text(list->w, "endian", list->big_endian ? "big" : "little");
    grvi_json_end_object(list->w);
    grvi_json_end_object(list->w);
}

/* Follows the type of the elements through a filter of numbers. */
static grv_status follow_filter(codec_list *list, const grvi_filter_class *class,
                                const grvi_json *node)
{
    grvi_filter filter;
    GRV_CHECK(!list->has_bytes, GRV_E_UNSUPPORTED, "'%s': filter '%s' after a codec of bytes",
              list->what, class->name);
    GRV_TRY(grvi_filter_parse(class, node, list->item, list->big_endian, list->what, &filter));
    GRV_CHECK(
        filter.decoded_big_endian == list->big_endian || grvi_item_swap_bytes(filter.decoded) == 1,
        GRV_E_UNSUPPORTED, "'%s': filter '%s' takes another byte order than that of the array",
        list->what, class->name);
    list->item = filter.encoded;
    list->big_endian = filter.encoded_big_endian;
    return GRV_OK;
}

static grv_status write_blosc_shuffle(codec_list *list, const grvi_json *node)
{
    static const char *const names[] = {"noshuffle", "shuffle", "bitshuffle"};
    int64_t shuffle = 1;
    const int64_t item_bytes = list->item.n_bytes <= UINT8_MAX ? list->item.n_bytes : 1;
    GRV_CHECK(node == NULL || (grvi_json_as_i64(node, &shuffle) && shuffle >= -1 && shuffle <= 2),
              GRV_E_FORMAT, "'%s': codec 'blosc': shuffle must be an integer from -1 to 2",
              list->what);
    if (shuffle < 0) shuffle = item_bytes == 1 ? 2 : 1;
    write_text(list->w, "shuffle", names[shuffle]);
    grvi_json_key(list->w, "typesize");
    grvi_json_i64(list->w, item_bytes);
    return GRV_OK;
}

static grv_status add_codec(codec_list *list, const grvi_json *node)
{
    const char *const id = grvi_json_as_string(grvi_json_get(node, "id"));
    char name[96];
    GRV_CHECK(id != NULL && strlen(id) < 64, GRV_E_FORMAT,
              "'%s': a filter or compressor without an id", list->what);
    (void)snprintf(name, sizeof name, "numcodecs.%s", id);
    const codec_words *words = NULL;
    for (int i = 0; i < N_CODECS && words == NULL; i++) {
        if (strcmp(known_codecs[i].id, id) == 0) words = &known_codecs[i];
    }
    const grvi_filter_class *const filter = words != NULL ? grvi_filter_find(words->name) : NULL;
    if (filter != NULL)
        GRV_TRY(follow_filter(list, filter, node));
    else
        add_bytes(list);
    grvi_json_begin_object(list->w);
    write_text(list->w, "name", words != NULL ? words->name : name);
    begin_object_member(list->w, "configuration");
    for (int i = 0; words != NULL && i < MAX_MEMBERS && words->members[i] != NULL; i++) {
        const char *const key = words->members[i];
        if (strcmp(key, "shuffle") == 0)
            GRV_TRY(write_blosc_shuffle(list, grvi_json_get(node, key)));
        else if (grvi_json_get(node, key) != NULL)
            GRV_TRY(write_member(list->w, key, grvi_json_get(node, key)));
    }
    grvi_json_end_object(list->w);
    grvi_json_end_object(list->w);
    return GRV_OK;
}

static grv_status write_order(grvi_json_writer *w, const grvi_json *zarray, const char *what)
{
    const char *const order = grvi_json_as_string(grvi_json_get(zarray, "order"));
    const int64_t rank = grvi_json_length(grvi_json_get(zarray, "shape"));
    GRV_CHECK(order != NULL && (strcmp(order, "C") == 0 || strcmp(order, "F") == 0), GRV_E_FORMAT,
              "'%s': order must be C or F, found '%.32s'", what,
              order != NULL ? order : "(nothing)");
    if (order[0] == 'C' || rank < 2) return GRV_OK;
    grvi_json_begin_object(w);
    write_text(w, "name", "transpose");
    begin_object_member(w, "configuration");
    grvi_json_key(w, "order");
    grvi_json_begin_array(w);
    for (int64_t i = rank - 1; i >= 0; i--) grvi_json_i64(w, i);
    grvi_json_end_array(w);
    grvi_json_end_object(w);
    grvi_json_end_object(w);
    return GRV_OK;
}

static grv_status write_codecs(grvi_json_writer *w, const grvi_json *zarray, grvi_item item,
                               bool big_endian, const char *what)
{
    const grvi_json *const filters = grvi_json_get(zarray, "filters"), *const compressor =
                                                                           grvi_json_get(
                                                                               zarray,
                                                                               "compressor");
    GRV_CHECK(grvi_json_has(zarray, "compressor"), GRV_E_FORMAT, "'%s': compressor is missing",
              what);
    GRV_CHECK(filters == NULL || grvi_json_kind_of(filters) == GRVI_JSON_ARRAY, GRV_E_FORMAT,
              "'%s': filters is neither a list nor null", what);
    grvi_json_key(w, "codecs");
    grvi_json_begin_array(w);
    GRV_TRY(write_order(w, zarray, what));
    codec_list list = {.w = w, .what = what, .item = item, .big_endian = big_endian};
    for (int64_t i = 0; i < grvi_json_length(filters); i++)
        GRV_TRY(add_codec(&list, grvi_json_at(filters, i)));
    if (compressor != NULL) GRV_TRY(add_codec(&list, compressor));
    add_bytes(&list);
    grvi_json_end_array(w);
    return GRV_OK;
}

static grv_status write_fill(grvi_json_writer *w, const grvi_json *zarray, grvi_item item,
                             const char *what)
{
    const grvi_json *const node = grvi_json_get(zarray, "fill_value");
    uint8_t *zero = NULL;
    GRV_CHECK(grvi_json_has(zarray, "fill_value"), GRV_E_FORMAT, "'%s': fill_value is missing",
              what);
    grvi_json_key(w, "fill_value");
    if (node != NULL) return write_value(w, node);
    /* null: undefined; zero, as zarr-python has it */
    GRV_TRY(GRVI_CALLOC(&zero, item.n_bytes));
    const grv_status status = grvi_fill_to_json(w, item, zero, 3);
    grv_free(zero);
    return status;
}

/* A chunk of length 0 along an axis of length 0 is met; it holds nothing. */
static grv_status write_chunk_grid(grvi_json_writer *w, const grvi_json *zarray, const char *what)
{
    const grvi_json *const chunks = grvi_json_get(zarray, "chunks"), *const shape = grvi_json_get(
                                                                         zarray, "shape");
    GRV_CHECK(grvi_json_kind_of(chunks) == GRVI_JSON_ARRAY, GRV_E_FORMAT,
              "'%s': chunks is missing or no list", what);
    begin_object_member(w, "chunk_grid");
    write_text(w, "name", "regular");
    begin_object_member(w, "configuration");
    grvi_json_key(w, "chunk_shape");
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < grvi_json_length(chunks); i++) {
        int64_t chunk = 1, length = 1;
        (void)grvi_json_as_i64(grvi_json_at(chunks, i), &chunk);
        (void)grvi_json_as_i64(grvi_json_at(shape, i), &length);
        if (chunk == 0 && length == 0)
            grvi_json_i64(w, 1);
        else
            GRV_TRY(write_value(w, grvi_json_at(chunks, i)));
    }
    grvi_json_end_array(w);
    grvi_json_end_object(w);
    grvi_json_end_object(w);
    return GRV_OK;
}

static void write_key_encoding(grvi_json_writer *w, const char *separator)
{
    begin_object_member(w, "chunk_key_encoding");
    write_text(w, "name", "v2");
    if (separator != NULL) {
        begin_object_member(w, "configuration");
        write_text(w, "separator", separator);
        grvi_json_end_object(w);
    }
    grvi_json_end_object(w);
}

/* Are these the names of an array's axes? */
static bool are_dimension_names(const grvi_json *node, int64_t rank)
{
    bool good = grvi_json_kind_of(node) == GRVI_JSON_ARRAY && grvi_json_length(node) == rank;
    for (int64_t i = 0; i < rank && good; i++)
        good = grvi_json_as_string(grvi_json_at(node, i)) != NULL;
    return good;
}

typedef struct attribute_copy {
    grvi_json_writer *w;
    const char *left_out; /* NULL: none */
} attribute_copy;

static grv_status copy_attribute(void *argument, const char *key, grvi_json *value)
{
    const attribute_copy *const copy = argument;
    if (copy->left_out != NULL && strcmp(key, copy->left_out) == 0) return GRV_OK;
    return write_member(copy->w, key, value);
}

/* The attributes but the dimension names of an array of `rank` axes (-1: of a group), which become `dimension_names`. */
static grv_status write_attributes(grvi_json_writer *w, const grvi_json *zattrs, int64_t rank,
                                   const char *what)
{
    const grvi_json *const names = grvi_json_get(zattrs, dimensions_key);
    const bool has_names = rank >= 0 && are_dimension_names(names, rank);
    attribute_copy copy = {w, has_names ? dimensions_key : NULL};
    if (zattrs == NULL) return GRV_OK;
    GRV_CHECK(grvi_json_kind_of(zattrs) == GRVI_JSON_OBJECT, GRV_E_FORMAT,
              "'%s': .zattrs is no JSON object", what);
    if (has_names) GRV_TRY(write_member(w, "dimension_names", names));
    begin_object_member(w, "attributes");
    GRV_TRY(grvi_json_for_each(zattrs, copy_attribute, &copy));
    grvi_json_end_object(w);
    return GRV_OK;
}

static grv_status check_version(const grvi_json *document, const char *what, const char *name)
{
    int64_t version = 0;
    GRV_CHECK(grvi_json_kind_of(document) == GRVI_JSON_OBJECT, GRV_E_FORMAT,
              "'%s': %s is no JSON object", what, name);
    GRV_CHECK(grvi_json_as_i64(grvi_json_get(document, "zarr_format"), &version) && version == 2,
              GRV_E_UNSUPPORTED, "'%s': zarr_format 2 expected in %s, found %lld", what, name,
              (long long)version);
    return GRV_OK;
}

static void begin_document(grvi_json_writer *w, const char *node_type)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "zarr_format");
    grvi_json_i64(w, 2);
    write_text(w, "node_type", node_type);
}

static grv_status read_array(const grvi_json *zarray, const grvi_json *zattrs, const char *what,
                             grvi_text *out)
{
    grvi_json_writer w = {.out = out};
    const grvi_json *const shape = grvi_json_get(zarray, "shape"), *const separator = grvi_json_get(
                                                                       zarray,
                                                                       "dimension_separator");
    grvi_item item;
    bool big_endian = false;
    GRV_TRY(check_version(zarray, what, ".zarray"));
    GRV_CHECK(grvi_json_kind_of(shape) == GRVI_JSON_ARRAY, GRV_E_FORMAT,
              "'%s': shape is missing or no list", what);
    GRV_CHECK(separator == NULL || grvi_json_as_string(separator) != NULL, GRV_E_FORMAT,
              "'%s': dimension_separator is no string", what);
    GRV_CHECK(grvi_json_has(zarray, "dtype"), GRV_E_FORMAT, "'%s': dtype is missing", what);
    GRV_TRY(grvi_item_from_numpy(grvi_json_as_string(grvi_json_get(zarray, "dtype")), what, &item,
                                 &big_endian));
    begin_document(&w, "array");
    GRV_TRY(write_member(&w, "shape", shape));
    grvi_json_key(&w, "data_type");
    grvi_item_to_json(&w, item);
    GRV_TRY(write_chunk_grid(&w, zarray, what));
    write_key_encoding(&w, grvi_json_as_string(separator));
    GRV_TRY(write_fill(&w, zarray, item, what));
    GRV_TRY(write_codecs(&w, zarray, item, big_endian, what));
    GRV_TRY(write_attributes(&w, zattrs, grvi_json_length(shape), what));
    grvi_json_end_object(&w);
    return grvi_text_status(out);
}

static grv_status read_group(const grvi_json *zgroup, const grvi_json *zattrs, const char *what,
                             grvi_text *out)
{
    grvi_json_writer w = {.out = out};
    GRV_TRY(check_version(zgroup, what, ".zgroup"));
    begin_document(&w, "group");
    GRV_TRY(write_attributes(&w, zattrs, -1, what));
    grvi_json_end_object(&w);
    return grvi_text_status(out);
}

grv_status grvi_v2_read_node(grv_node_kind kind, const grvi_json *node, const grvi_json *zattrs,
                             const char *what, grvi_json **document)
{
    grvi_text text = {0};
    *document = NULL;
    grv_status status = kind == GRV_NODE_ARRAY ? read_array(node, zattrs, what, &text)
                                               : read_group(node, zattrs, what, &text);
    if (status == GRV_OK) status = grvi_json_parse(text.data, text.n, what, document);
    grvi_text_fini(&text);
    return status;
}

/* ---- version 2 written ---- */

static const codec_words *words_of_name(const char *name)
{
    static const char prefix[] = "numcodecs.";
    const size_t n_prefix = sizeof prefix - 1;
    for (int i = 0; i < N_CODECS; i++) {
        if (strcmp(known_codecs[i].name, name) == 0) return &known_codecs[i];
        if (strncmp(name, prefix, n_prefix) == 0 &&
            strcmp(known_codecs[i].id, name + n_prefix) == 0)
            return &known_codecs[i];
    }
    return NULL;
}

static const char *codec_name(const grvi_json *node)
{
    const char *const name = grvi_json_as_string(node);
    return name != NULL ? name : grvi_json_as_string(grvi_json_get(node, "name"));
}

/* A type string in the byte order of the array; "shuffle" as Blosc's number; anything else as it is. */
static grv_status write_setting(grvi_json_writer *w, const char *key, const grvi_json *value,
                                bool big_endian, const char *what)
{
    const char *const text = grvi_json_as_string(value);
    grvi_json_key(w, key);
    if (text != NULL && strstr(key, "type") != NULL) {
        char type[GRVI_NUMPY_TEXT];
        grvi_item item;
        bool any_order = false;
        GRV_TRY(grvi_item_from_numpy(text, what, &item, &any_order));
        grvi_item_to_numpy(item, big_endian, type);
        grvi_json_string(w, type);
        return GRV_OK;
    }
    if (text != NULL && strcmp(key, "shuffle") == 0) {
        grvi_json_i64(w, text[0] == 'n' ? 0 : text[0] == 's' ? 1 : 2);
        return GRV_OK;
    }
    return write_value(w, value);
}

static grv_status write_v2_codec(grvi_json_writer *w, const grvi_json *node, bool big_endian,
                                 const char *what)
{
    const codec_words *const words = words_of_name(codec_name(node));
    const grvi_json *const configuration = grvi_json_get(node, "configuration");
    GRV_CHECK(words != NULL, GRV_E_UNSUPPORTED, "'%s': Zarr version 2 has no codec '%.64s'", what,
              codec_name(node));
    grvi_json_begin_object(w);
    write_text(w, "id", words->id);
    for (int i = 0; i < MAX_MEMBERS && words->members[i] != NULL; i++) {
        const grvi_json *const value = grvi_json_get(configuration, words->members[i]);
        bool truth = true;
        /* older readers stop at a `checksum` in zstd */
        if (value == NULL || (grvi_json_as_bool(value, &truth) && !truth)) continue;
        GRV_TRY(write_setting(w, words->members[i], value, big_endian, what));
    }
    grvi_json_end_object(w);
    return GRV_OK;
}

/* What the chain of a document says in version 2. */
typedef struct v2_chain {
    const grvi_json *codecs;
    int64_t first, bytes; /* places in the list: of what follows transposition, of `bytes` */
    bool big_endian;
    char order;
} v2_chain;

static grv_status split_chain(const grvi_json *codecs, int64_t rank, const char *what,
                              v2_chain *chain)
{
    int64_t axes[GRVI_MAX_RANK] = {0}, composed[GRVI_MAX_RANK] = {0};
    *chain = (v2_chain){.codecs = codecs, .bytes = -1};
    for (int64_t i = 0; i < rank; i++) axes[i] = i;
    for (int64_t i = 0; i < grvi_json_length(codecs) && chain->bytes < 0; i++) {
        const grvi_json *const node = grvi_json_at(codecs, i), *const configuration = grvi_json_get(
                                                                   node, "configuration");
        const char *const name = codec_name(node);
        const grvi_json *const order = grvi_json_get(configuration, "order");
        GRV_CHECK(name != NULL, GRV_E_FORMAT, "'%s': a codec without a name", what);
        if (strcmp(name, "bytes") == 0) {
            const char *const endian = grvi_json_as_string(grvi_json_get(configuration, "endian"));
            chain->bytes = i;
            chain->big_endian = endian != NULL && strcmp(endian, "big") == 0;
        } else if (strcmp(name, "transpose") == 0) {
            chain->first = i + 1;
            for (int64_t k = 0; k < rank; k++) {
                int64_t axis = -1;
                GRV_CHECK(grvi_json_as_i64(grvi_json_at(order, k), &axis) && axis >= 0 &&
                              axis < rank,
                          GRV_E_FORMAT, "'%s': codec 'transpose': order is no permutation", what);
                composed[k] = axes[axis];
            }
            memcpy(axes, composed, sizeof axes);
        }
    }
    GRV_CHECK(chain->bytes >= 0, GRV_E_UNSUPPORTED, "'%s': Zarr version 2 has no codec '%.64s'",
              what, codec_name(grvi_json_at(codecs, grvi_json_length(codecs) - 1)));
    bool is_c = true, is_f = true;
    for (int64_t i = 0; i < rank; i++) {
        is_c = is_c && axes[i] == i;
        is_f = is_f && axes[i] == rank - 1 - i;
    }
    GRV_CHECK(is_c || is_f, GRV_E_UNSUPPORTED,
              "'%s': Zarr version 2 stores axes as they are or reversed, not in another order",
              what);
    chain->order = is_c ? 'C' : 'F';
    return GRV_OK;
}

/* The last codec of bytes is the compressor, all before it are filters. */
static grv_status write_v2_codecs(grvi_json_writer *w, const v2_chain *chain, const char *what)
{
    const int64_t n = grvi_json_length(chain->codecs);
    const bool has_compressor = n - 1 > chain->bytes;
    const int64_t end = has_compressor ? n - 1 : n;
    grvi_json_key(w, "compressor");
    if (has_compressor)
        GRV_TRY(write_v2_codec(w, grvi_json_at(chain->codecs, n - 1), chain->big_endian, what));
    else
        grvi_json_null(w);
    grvi_json_key(w, "filters");
    if (end - chain->first == 1) { /* nothing but `bytes` */
        grvi_json_null(w);
        return GRV_OK;
    }
    grvi_json_begin_array(w);
    for (int64_t i = chain->first; i < end; i++) {
        if (i != chain->bytes)
            GRV_TRY(write_v2_codec(w, grvi_json_at(chain->codecs, i), chain->big_endian, what));
    }
    grvi_json_end_array(w);
    return GRV_OK;
}

static grv_status write_v2_fill(grvi_json_writer *w, const grvi_json *node, grvi_item item,
                                const char *what)
{
    uint8_t *fill = NULL;
    GRV_TRY(GRVI_ALLOC(&fill, item.n_bytes));
    grvi_json_key(w, "fill_value");
    grv_status status = grvi_fill_from_json(node, item, what, fill);
    if (status == GRV_OK) status = grvi_fill_to_json(w, item, fill, 2);
    grv_free(fill);
    return status;
}

static grv_status write_zarray(const grvi_json *document, const char *what, grvi_text *out)
{
    grvi_json_writer w = {.out = out, .pretty = true};
    const grvi_json *const shape = grvi_json_get(document, "shape"),
                           *const grid = grvi_json_get(document, "chunk_grid"),
                           *const keys = grvi_json_get(document, "chunk_key_encoding");
    char text[GRVI_NUMPY_TEXT];
    grvi_item item;
    v2_chain chain;
    GRV_TRY(split_chain(grvi_json_get(document, "codecs"), grvi_json_length(shape), what, &chain));
    GRV_TRY(grvi_item_from_json(grvi_json_get(document, "data_type"), what, &item));
    GRV_CHECK(item.type != GRV_STORE_BF16 || !chain.big_endian, GRV_E_UNSUPPORTED,
              "'%s': bfloat16 in Zarr version 2 is little-endian", what);
    grvi_item_to_numpy(item, chain.big_endian, text);
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "zarr_format");
    grvi_json_i64(&w, 2);
    GRV_TRY(write_member(&w, "shape", shape));
    GRV_TRY(write_member(&w, "chunks",
                         grvi_json_get(grvi_json_get(grid, "configuration"), "chunk_shape")));
    write_text(&w, "dtype", text);
    GRV_TRY(write_v2_fill(&w, grvi_json_get(document, "fill_value"), item, what));
    write_text(&w, "order", (const char[]){chain.order, '\0'});
    GRV_TRY(write_v2_codecs(&w, &chain, what));
    GRV_TRY(write_member(&w, "dimension_separator",
                         grvi_json_get(grvi_json_get(keys, "configuration"), "separator")));
    grvi_json_end_object(&w);
    grvi_text_append(out, "\n");
    return grvi_text_status(out);
}

grv_status grvi_v2_make_attributes(const grvi_json *document, const grvi_json *attributes,
                                   const char *what, grvi_text *out)
{
    const grvi_json *const names = grvi_json_get(document, "dimension_names");
    grvi_json_writer w = {.out = out, .pretty = true};
    attribute_copy copy = {&w, NULL};
    const bool has_names = names != NULL && !grvi_json_has(attributes, dimensions_key);
    if (attributes == NULL && !has_names) return GRV_OK;
    GRV_CHECK(!has_names || are_dimension_names(names, grvi_json_length(names)), GRV_E_UNSUPPORTED,
              "'%s': Zarr version 2 has names for all dimensions or for none", what);
    grvi_json_begin_object(&w);
    GRV_TRY(grvi_json_for_each(attributes, copy_attribute, &copy));
    if (has_names) GRV_TRY(write_member(&w, dimensions_key, names));
    grvi_json_end_object(&w);
    grvi_text_append(out, "\n");
    return grvi_text_status(out);
}

grv_status grvi_v2_make_node(const grvi_json *document, const char *what, grvi_node_text *node)
{
    node->zarr_format = 2;
    GRV_TRY(grvi_v2_make_attributes(document, grvi_json_get(document, "attributes"), what,
                                    &node->attributes));
    if (node->kind == GRV_NODE_ARRAY) return write_zarray(document, what, &node->document);
    grvi_text_append(&node->document, "{\n  \"zarr_format\": 2\n}\n");
    return grvi_text_status(&node->document);
}
