/* A file that might be OBJ. */
#include "mesh_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_reader(grvi_obj_read, data, n);
    return 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const char plain[] =
        "# c\nmtllib a.mtl\no body\nv 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 0 1 0 0 0 1\nv 1 1 0 nan 0 "
        "0\nvt 0 0\nvn 0 0 1\ng wheels left\nusemtl red\nf 1/1/1 2/1/1 3/1/1\n"
        "f -1//1 -2//1 -3//1 1\\\n//1\ng body\nf 1 2\nl 1 2\np 1\nf 1 2 4 3 # no\n";
    char wide[2 * 64];
    static const char narrow[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
    wide[0] = (char)0xff;
    wide[1] = (char)0xfe;
    for (size_t i = 0; i + 1 < sizeof narrow; i++) {
        wide[2 * i + 2] = narrow[i];
        wide[2 * i + 3] = 0;
    }
    return write_corpus(folder, "plain.obj", plain, sizeof plain - 1) +
           write_corpus(folder, "utf16.obj", wide, 2 * sizeof narrow);
}
