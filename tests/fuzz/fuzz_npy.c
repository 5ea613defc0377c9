/* The head of a .npy file: whatever the bytes, it is read or refused; what is read lies inside the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "store/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    grvi_npy npy;
    if (grvi_npy_parse((const char *)data, (int64_t)n, "fuzz", &npy) != GRV_OK) return 0;
    const int64_t size = npy.type == GRV_STORE_F64 ? 8 : 4;
    if (npy.data_at < 0 || npy.data_at > (int64_t)n || npy.n != ((int64_t)n - npy.data_at) / size)
        abort();
    return 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const struct {
        const char *head;
        int version, n_bytes;
    } files[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                              "
         "           \n",
         1, 24},
        {"{'shape': (), 'descr': '<f8', 'fortran_order': False}\n", 2, 8},
        {"{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': (1, 2, 3, 4, 5,), }\n", 3, 0}};
    for (int i = 0; i < 3; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/array%d.npy", folder, i);
        FILE *const file = fopen(path, "wb");
        if (file == NULL) return 1;
        const uint8_t head[] = {
            (uint8_t)files[i].version, 0, (uint8_t)strlen(files[i].head), 0, 0, 0};
        (void)fwrite("\x93NUMPY", 1, 6, file);
        (void)fwrite(head, 1, files[i].version == 1 ? 4 : 6, file);
        (void)fputs(files[i].head, file);
        for (int b = 0; b < files[i].n_bytes; b++) (void)fputc(b, file);
        if (fclose(file) != 0) return 1;
    }
    return 0;
}
