/* Writes an example file, or prints what a file holds, for test_safetensors.py.
 * safetensors_tool write PATH | safetensors_tool print PATH */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grove/safetensors.h"

/* weight[i][j] = i + j/8 (3 x 50 float32, in two pieces), moments[i] = 1/(i+1) (float64), step = -12345678901 (int64, a number),
 * mask[i] = i (uint8), none (0 x 3 float32) */
static grv_status write_example(const char *path, grv_safetensors_writer **w)
{
    float weight[3][50];
    double moments[4];
    unsigned char mask[5];
    const int64_t step = -12345678901;
    int64_t index[5];
    grv_status status = grv_safetensors_writer_create(path, w);
    for (int i = 0; i < 150; i++) weight[i / 50][i % 50] = (float)(i / 50) + (float)(i % 50) / 8;
    for (int i = 0; i < 4; i++) moments[i] = 1 / (double)(i + 1);
    for (int i = 0; i < 5; i++) mask[i] = (unsigned char)i;
    if (status == GRV_OK)
        status = grv_safetensors_writer_set_metadata(*w, "producer", "grove \"test\"");
    if (status == GRV_OK)
        status = grv_safetensors_writer_declare(*w, "mask", GRV_SAFETENSORS_U8, 1, (int64_t[]){5},
                                                &index[0]);
    if (status == GRV_OK)
        status = grv_safetensors_writer_declare(*w, "weight", GRV_SAFETENSORS_F32, 2,
                                                (int64_t[]){3, 50}, &index[1]);
    if (status == GRV_OK)
        status =
            grv_safetensors_writer_declare(*w, "step", GRV_SAFETENSORS_I64, 0, NULL, &index[2]);
    if (status == GRV_OK)
        status = grv_safetensors_writer_declare(*w, "moments", GRV_SAFETENSORS_F64, 1,
                                                (int64_t[]){4}, &index[3]);
    if (status == GRV_OK)
        status = grv_safetensors_writer_declare(*w, "none", GRV_SAFETENSORS_F32, 2,
                                                (int64_t[]){0, 3}, &index[4]);
    if (status == GRV_OK) status = grv_safetensors_writer_write(*w, index[1], 200, 400, weight[1]);
    if (status == GRV_OK) status = grv_safetensors_writer_write(*w, index[0], 0, 5, mask);
    if (status == GRV_OK) status = grv_safetensors_writer_write(*w, index[1], 0, 200, weight[0]);
    if (status == GRV_OK) status = grv_safetensors_writer_write(*w, index[2], 0, 8, &step);
    if (status == GRV_OK) status = grv_safetensors_writer_write(*w, index[3], 0, 32, moments);
    if (status == GRV_OK) status = grv_safetensors_writer_publish(*w, false);
    return status;
}

/* one line a tensor: name dtype shape bytes-in-hexadecimal */
static grv_status print_tensors(const grv_safetensors *file)
{
    for (int64_t i = 0; i < grv_safetensors_count(file); i++) {
        const grv_safetensors_tensor *const tensor = grv_safetensors_get(file, i);
        (void)printf("%s %s ", tensor->name, grv_safetensors_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->n_dims; d++)
            (void)printf("%s%" PRId64, d > 0 ? "x" : "", tensor->shape[d]);
        (void)printf(" ");
        for (int64_t k = 0; k < tensor->bytes; k++) {
            unsigned char byte = 0;
            const grv_status status = grv_safetensors_read(file, tensor, k, 1, &byte);
            if (status != GRV_OK) return status;
            (void)printf("%02x", byte);
        }
        (void)printf("\n");
    }
    return GRV_OK;
}

int main(int argc, char **argv)
{
    grv_safetensors_writer *writer = NULL;
    grv_safetensors *file = NULL;
    grv_status status = GRV_E_ARG;
    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        status = write_example(argv[2], &writer);
        grv_safetensors_writer_destroy(&writer);
    } else if (argc == 3 && strcmp(argv[1], "print") == 0) {
        status = grv_safetensors_open(argv[2], &file);
        if (status == GRV_OK) status = print_tensors(file);
        grv_safetensors_close(&file);
    }
    if (status != GRV_OK) (void)fprintf(stderr, "%s\n", grv_error_message());
    return status == GRV_OK ? 0 : 1;
}
