/* Runs a fuzz target over every file of a corpus, and over mutations of each: bits flipped, bytes replaced, cut, repeated.
 * The mutations depend on the file and their number only.
 * usage: fuzz_<name> FOLDER MUTATIONS | fuzz_<name> --make FOLDER */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "grove/core.h"

enum { MAX_BYTES = 1 << 16 };

static uint64_t draw(uint64_t *counter, uint64_t below)
{
    return grv_random_bits(1, 77, (*counter)++) % below;
}

static size_t mutate(uint8_t *data, size_t n, uint64_t *counter)
{
    const uint64_t n_changes = 1 + draw(counter, 4);
    for (uint64_t i = 0; i < n_changes && n > 0; i++) {
        const size_t at = (size_t)draw(counter, n);
        switch (draw(counter, 5)) {
        case 0: data[at] = (uint8_t)(data[at] ^ (1U << draw(counter, 8))); break;
        case 1: data[at] = (uint8_t)draw(counter, 256); break;
        case 2: n = at; break;
        case 3: memset(data + at, draw(counter, 2) != 0 ? 0xff : 0, n - at < 8 ? n - at : 8); break;
        default:
            if (n + (n - at) > MAX_BYTES) break;
            memmove(data + at + (n - at), data + at, n - at);
            n += n - at;
            break;
        }
    }
    return n;
}

static int run_file(const char *path, long n_mutations)
{
    static uint8_t whole[MAX_BYTES];
    uint64_t counter = 0;
    FILE *const file = fopen(path, "rb");
    if (file == NULL) return 1;
    const size_t n = fread(whole, 1, sizeof whole, file);
    (void)fclose(file);
    for (const char *p = path; *p != '\0'; p++) counter = counter * 31 + (uint8_t)*p;
    (void)LLVMFuzzerTestOneInput(whole, n);
    for (long i = 0; i < n_mutations; i++) {
        /* of exact size, so that a read past the end is seen */
        uint8_t *const room = malloc(MAX_BYTES);
        if (room == NULL) return 1;
        memcpy(room, whole, n);
        const size_t changed = mutate(room, n, &counter);
        uint8_t *const exact = malloc(changed + 1);
        if (exact == NULL) return 1;
        memcpy(exact, room, changed);
        (void)LLVMFuzzerTestOneInput(exact, changed);
        free(exact);
        free(room);
    }
    return 0;
}

int main(int argc, char **argv)
{
    long n_files = 0;
    if (argc == 3 && strcmp(argv[1], "--make") == 0) return fuzz_make_corpus(argv[2]);
    DIR *const folder = argc == 3 ? opendir(argv[1]) : NULL;
    if (folder == NULL) return 2;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (run_file(path, strtol(argv[2], NULL, 10)) != 0) return 1;
        n_files++;
    }
    (void)closedir(folder);
    (void)printf("%ld files, %s mutations of each\n", n_files, argv[2]);
    return n_files > 0 ? 0 : 1;
}
