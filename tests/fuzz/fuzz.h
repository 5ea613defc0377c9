/* A fuzz target is one file fuzz_<name>.c with these two functions. Built with clang's -fsanitize=fuzzer the first is libFuzzer's;
 * with replay.c it runs over tests/corpus/<name> in ctest. */
#ifndef GRVI_TEST_FUZZ_H
#define GRVI_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feeds bytes to the parser; must not crash, leak, or take much memory, whatever they are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
/* Writes the corpus of the target into a folder (replay --make FOLDER). */
int fuzz_make_corpus(const char *folder);

#endif
