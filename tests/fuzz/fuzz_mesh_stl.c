/* A file that might be STL, binary or text. */
#include "mesh_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_reader(grvi_stl_read, data, n);
    return 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const char text[] =
        "solid facet in the name\nfacet normal 0 0 1\n outer loop\n  vertex 0 0 0\n  vertex 1,5 0 "
        "0\n  vertex 0 1.0D0 0\n endloop\nendfacet\nendsolid\n"
        "solid\nendsolid\nSOLID b\nFACET NORMAL nan -inf x\nOUTER LOOP\nVERTEX 1 2 3\nVERTEX 1e3 "
        "-2 +3\nVERTEX 7 8 .9\nENDLOOP\nENDFACET\nENDSOLID b";
    uint8_t binary[84 + 2 * 50 + 3];
    for (size_t i = 0; i < sizeof binary; i++) binary[i] = (uint8_t)(i * 37);
    memcpy(binary, "solid liar", 10);
    memcpy(binary + 80, "\2\0\0\0", 4);
    return write_corpus(folder, "text.stl", text, sizeof text - 1) +
           write_corpus(folder, "exact.stl", binary, sizeof binary - 3) +
           write_corpus(folder, "longer.stl", binary, sizeof binary);
}
