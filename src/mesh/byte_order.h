/* Words of the other byte order. Internal. */
#ifndef GRVI_MESH_BYTE_ORDER_H
#define GRVI_MESH_BYTE_ORDER_H

#include <stdint.h>

/* Reverses the bytes of each of n words of 1, 2, 4 or 8 bytes, in place. */
void grvi_swap_words(void *data, int64_t n, int64_t word_bytes);
/* Widens n integers of word_bytes each that stand at the end of room for n int64_t, in place. is_signed: 8-byte unsigned ones above INT64_MAX become negative. */
void grvi_widen_integers(int64_t *room, int64_t n, int64_t word_bytes, int is_signed);

#endif
