/* For test_zarr.py: writes an array from raw bytes, dumps one to raw bytes, makes a small data set.
 *   zarr_tool dump FOLDER ARRAY OUT
 *   zarr_tool write FOLDER ARRAY IN TYPE SHAPE CHUNK INNER|- COMPRESSOR FILL_HEX FLAGS ROWS   (lists as 3,4; flags: b big-endian, c checksum, k v2 keys)
 *   zarr_tool dataset FOLDER
 * Of an array, the first ROWS rows are written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grove/dataset.h"
#include "grove/store.h"

static void must(grv_status status)
{
    if (status == GRV_OK) return;
    (void)fprintf(stderr, "zarr_tool: %s\n", grv_error_message());
    exit(1);
}

static int parse_list(char *text, int64_t *out)
{
    int n = 0;
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ","))
        out[n++] = strtoll(word, NULL, 10);
    return n;
}

static size_t n_bytes_of(const grv_array_desc *desc)
{
    const int64_t fixed = grv_store_type_bytes(desc->type);
    size_t n = (size_t)(fixed > 0 ? fixed : desc->item_bytes);
    for (int i = 0; i < desc->rank; i++) n *= (size_t)desc->shape[i];
    return n;
}

static void dump(const char *folder, const char *name, const char *path)
{
    const int64_t zero[GRV_STORE_MAX_RANK] = {0};
    grv_store *store = NULL;
    grv_array *array = NULL;
    must(grv_store_open(folder, NULL, &store));
    must(grv_array_open(store, name, &array));
    const grv_array_desc *const desc = grv_array_get_desc(array);
    const size_t n = n_bytes_of(desc);
    void *const data = malloc(n + 1);
    must(grv_array_read(array, zero, desc->shape, data, NULL));
    FILE *const file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, n, file) != n || fclose(file) != 0) exit(1);
    free(data);
    grv_array_close(&array);
    grv_store_close(&store);
}

static grv_store_type type_of(const char *name)
{
    int type = GRV_STORE_BOOL;
    while (type < GRV_STORE_UCS4 && strcmp(grv_store_type_name((grv_store_type)type), name) != 0)
        type++;
    return (grv_store_type)type;
}

static void write_array(char **arguments)
{
    const int64_t zero[GRV_STORE_MAX_RANK] = {0};
    int64_t count[GRV_STORE_MAX_RANK];
    grv_store_params params = grv_store_params_default();
    grv_store *store = NULL;
    grv_array *array = NULL;
    grv_array_desc desc = grv_array_desc_default();
    params.writable = true;
    params.n_threads = 2;
    desc.type = type_of(arguments[3]);
    desc.rank = parse_list(arguments[4], desc.shape);
    (void)parse_list(arguments[5], desc.chunk_shape);
    desc.sharded = strcmp(arguments[6], "-") != 0;
    if (desc.sharded) (void)parse_list(arguments[6], desc.inner_shape);
    desc.compressor = (grv_compressor)strtol(arguments[7], NULL, 10);
    desc.fill = strtoull(arguments[8], NULL, 16);
    desc.big_endian = strchr(arguments[9], 'b') != NULL;
    desc.checksum = strchr(arguments[9], 'c') != NULL;
    desc.keys_v2 = strchr(arguments[9], 'k') != NULL;
    desc.dimension_names[0] = "row";
    desc.attributes = "{\"by\": \"grove\"}";
    memcpy(count, desc.shape, sizeof count);
    count[0] = strtoll(arguments[10], NULL, 10);
    must(grv_store_open(arguments[0], &params, &store));
    must(grv_array_create(store, arguments[1], &desc, &array));
    const size_t n = n_bytes_of(&desc);
    void *const data = malloc(n + 1);
    FILE *const file = fopen(arguments[2], "rb");
    if (file == NULL || fread(data, 1, n, file) != n || fclose(file) != 0) exit(1);
    must(grv_array_write(array, zero, count, data, NULL));
    free(data);
    grv_array_close(&array);
    grv_store_close(&store);
}

enum { NX = 6, NY = 4, NT = 3, N_IN = 2, N_OUT = 1 };

static void make_dataset(const char *folder)
{
    static const char *const names[] = {"vorticity"}, *const units[] = {"1/s"};
    grv_dataset *dataset = NULL;
    grv_dataset_desc desc = grv_dataset_desc_default();
    desc.n_samples = 3;
    desc.input = (grv_dataset_field){
        .n_axes = 2, .axis_names = {"x", "y"}, .shape = {NX, NY}, .n_channels = N_IN};
    desc.target = (grv_dataset_field){.n_axes = 3,
                                      .axis_names = {"x", "y", "t"},
                                      .shape = {NX, NY, NT},
                                      .n_channels = N_OUT,
                                      .channel_names = names,
                                      .channel_units = units};
    desc.planes_per_chunk = 4; /* does not divide the six planes */
    desc.seed = 7;
    desc.generator = "{\"problem\": \"sphere\"}";
    desc.units = "{\"x\": \"m\"}";
    must(grv_dataset_create(folder, &desc, NULL, &dataset));
    for (int64_t sample = 0; sample < 3; sample += 2) {
        float input[NX * NY * N_IN], target[NX * NY * NT * N_OUT];
        for (int i = 0; i < NX * NY * N_IN; i++) input[i] = (float)(100 * sample + i);
        for (int i = 0; i < NX * NY * NT * N_OUT; i++) target[i] = (float)(1000 * sample + i);
        must(grv_dataset_write_sample(dataset, sample, input, target));
    }
    must(grv_dataset_mark_failed(dataset, 1, "diverged"));
    grv_dataset_close(&dataset);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "dump") == 0)
        dump(argv[2], argv[3], argv[4]);
    else if (argc == 13 && strcmp(argv[1], "write") == 0)
        write_array(argv + 2);
    else if (argc == 3 && strcmp(argv[1], "dataset") == 0)
        make_dataset(argv[2]);
    else
        return 2;
    return 0;
}
