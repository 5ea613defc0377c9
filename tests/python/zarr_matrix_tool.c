/* For test_zarr_matrix.py: does what it is told on its standard input, one request after the other, until that ends.
 * A request is one line of tab-separated words; data follow lines and answers as raw bytes. Lists are written 3,4 and - if empty.
 *   create STORE ARRAY FORMAT TYPE ITEM_BYTES SHAPE CHUNK KEYS FILL_HEX CODECS_JSON
 *          KEYS: d or v (c/0/1 or 0/1), and the separator
 *   write  STORE ARRAY START COUNT N_BYTES  and so many bytes
 *   read   STORE ARRAY START COUNT
 *   type   STORE ARRAY
 * Answers: "ok N" and N bytes, or "error MESSAGE". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grove/core.h"
#include "grove/store.h"

enum { MAX_LINE = 1 << 16, MAX_WORDS = 12, MAX_ITEM_BYTES = 256 };

typedef struct request {
    char *words[MAX_WORDS];
    int n;
    grv_store *store;
    grv_array *array;
    unsigned char *answer;
    size_t n_answer;
} request;

static int parse_list(const char *text, int64_t *out)
{
    int n = 0;
    char *end = NULL;
    if (strcmp(text, "-") == 0) return 0;
    for (const char *at = text; n < GRV_STORE_MAX_RANK; at = end + 1) {
        out[n++] = strtoll(at, &end, 10);
        if (*end != ',') break;
    }
    return n;
}

static void parse_hex(const char *text, unsigned char *out)
{
    for (size_t i = 0; i < strlen(text) / 2 && i < MAX_ITEM_BYTES; i++) {
        const char pair[] = {text[2 * i], text[2 * i + 1], '\0'};
        out[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
}

static size_t n_bytes_of(const grv_array *array, const int64_t *count)
{
    const grv_array_desc *const desc = grv_array_get_desc(array);
    size_t n = (size_t)desc->item_bytes;
    for (int i = 0; i < desc->rank; i++) n *= (size_t)count[i];
    return n;
}

static grv_status serve_create(request *r)
{
    static const char *const axis_names[GRV_STORE_MAX_RANK] = {"a", "b", "c", "d"};
    unsigned char fill[MAX_ITEM_BYTES] = {0};
    grv_array_desc desc = grv_array_desc_default();
    desc.zarr_format = (int)strtol(r->words[3], NULL, 10);
    desc.type = GRV_STORE_BOOL;
    while (desc.type < GRV_STORE_UCS4 && strcmp(grv_store_type_name(desc.type), r->words[4]) != 0)
        desc.type++;
    desc.item_bytes = strtoll(r->words[5], NULL, 10);
    desc.rank = parse_list(r->words[6], desc.shape);
    (void)parse_list(r->words[7], desc.chunk_shape);
    desc.keys_v2 = r->words[8][0] == 'v';
    desc.key_separator = r->words[8][1];
    parse_hex(r->words[9], fill);
    if (desc.item_bytes > (int64_t)sizeof desc.fill)
        desc.fill_bytes = fill;
    else
        memcpy(&desc.fill, fill, sizeof desc.fill);
    desc.codecs = r->words[10];
    /* version 2 has names for all axes or for none */
    for (int i = 0; i < desc.rank && (desc.zarr_format == 2 || i == 0); i++)
        desc.dimension_names[i] = axis_names[i];
    desc.attributes = "{\"by\": \"grove\"}";
    return grv_array_create(r->store, r->words[2], &desc, NULL);
}

static grv_status serve_write(request *r)
{
    int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK];
    const size_t n = strtoull(r->words[5], NULL, 10);
    unsigned char *const data = malloc(n + 1);
    if (data == NULL || fread(data, 1, n, stdin) != n) exit(1);
    (void)parse_list(r->words[3], start);
    (void)parse_list(r->words[4], count);
    grv_status status = grv_array_open(r->store, r->words[2], &r->array);
    if (status == GRV_OK && n_bytes_of(r->array, count) != n) exit(1);
    if (status == GRV_OK) status = grv_array_write(r->array, start, count, data, NULL);
    free(data);
    return status;
}

static grv_status serve_read(request *r)
{
    int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK];
    (void)parse_list(r->words[3], start);
    (void)parse_list(r->words[4], count);
    const grv_status status = grv_array_open(r->store, r->words[2], &r->array);
    if (status != GRV_OK) return status;
    r->n_answer = n_bytes_of(r->array, count);
    r->answer = malloc(r->n_answer + 1);
    if (r->answer == NULL) exit(1);
    memset(r->answer, 0x5a, r->n_answer); /* what is not delivered is seen */
    return grv_array_read(r->array, start, count, r->answer, NULL);
}

static grv_status serve_type(request *r)
{
    const grv_status status = grv_array_open(r->store, r->words[2], &r->array);
    if (status != GRV_OK) return status;
    const char *const name = grv_store_type_name(grv_array_get_desc(r->array)->type);
    r->n_answer = strlen(name);
    r->answer = malloc(r->n_answer + 1);
    if (r->answer == NULL) exit(1);
    memcpy(r->answer, name, r->n_answer);
    return GRV_OK;
}

static void serve(request *r)
{
    static const struct {
        const char *name;
        int n_words;
        grv_status (*run)(request *r);
    } kinds[] = {{"create", 11, serve_create},
                 {"write", 6, serve_write},
                 {"read", 5, serve_read},
                 {"type", 3, serve_type}};
    grv_store_params params = grv_store_params_default();
    grv_status status = GRV_E_ARG;
    params.writable = true;
    params.n_threads = 2;
    params.zarr_format = r->n > 3 && strcmp(r->words[0], "create") == 0 ? r->words[3][0] - '0' : 3;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, r->words[0]) != 0) continue;
        if (r->n != kinds[i].n_words) exit(2);
        status = grv_store_open(r->words[1], &params, &r->store);
        if (status == GRV_OK) status = kinds[i].run(r);
    }
    if (status == GRV_OK)
        (void)printf("ok %zu\n", r->n_answer);
    else
        (void)printf("error %s\n", grv_error_message());
    if (status == GRV_OK && r->n_answer > 0) (void)fwrite(r->answer, 1, r->n_answer, stdout);
    (void)fflush(stdout);
    free(r->answer);
    grv_array_close(&r->array);
    grv_store_close(&r->store);
}

int main(void)
{
    static char line[MAX_LINE];
    while (fgets(line, sizeof line, stdin) != NULL) {
        request r = {.n = 0};
        line[strcspn(line, "\n")] = '\0';
        char *rest = NULL;
        for (char *word = strtok_r(line, "\t", &rest); word != NULL && r.n < MAX_WORDS;
             word = strtok_r(NULL, "\t", &rest))
            r.words[r.n++] = word;
        if (r.n == 0) return 2;
        serve(&r);
    }
    return 0;
}
