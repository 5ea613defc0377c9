/* Elements of one numeric type from elements of another, as NumPy's astype does it. Internal. */
#ifndef GRVI_STORE_CONVERT_H
#define GRVI_STORE_CONVERT_H

#include "store/store_type.h"

enum { GRVI_CONVERT_BLOCK = 512 }; /* elements that are held as words between load and store */

/* Elements as words: of one of three kinds, so that 64-bit integers keep all their bits. */
typedef struct grvi_words {
    enum { GRVI_WORDS_SIGNED, GRVI_WORDS_UNSIGNED, GRVI_WORDS_FLOAT } kind;
    union {
        int64_t s[GRVI_CONVERT_BLOCK];
        uint64_t u[GRVI_CONVERT_BLOCK];
        double f[GRVI_CONVERT_BLOCK];
    };
} grvi_words;

/* integers and floating-point numbers, not bool, not complex */
bool grvi_is_number(grv_store_type type);
bool grvi_is_float(grv_store_type type);
/* Floating-point value rounded to a type; as it is for integers. */
double grvi_round_to(grv_store_type type, double value);
/* n <= GRVI_CONVERT_BLOCK dense elements into words, and words into elements. Integers wrap around; of a value that an integer
 * cannot hold, the result is what x86 gives: the low bits of the 64-bit conversion. */
void grvi_words_load(grv_store_type type, const uint8_t *in, int64_t n, grvi_words *words);
void grvi_words_store(grv_store_type type, const grvi_words *words, int64_t n, uint8_t *out);
/* n elements of any number; no overlap */
void grvi_convert(grv_store_type from, const uint8_t *in, grv_store_type to, int64_t n,
                  uint8_t *out);

#endif
