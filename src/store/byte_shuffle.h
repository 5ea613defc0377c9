/* The transpositions of bytes and bits before compression, as Blosc and numcodecs do them. Internal. No overlap. */
#ifndef GRVI_STORE_BYTE_SHUFFLE_H
#define GRVI_STORE_BYTE_SHUFFLE_H

#include <stdint.h>

/* out[j * n + i] = in[i * item_bytes + j], and back: n elements */
void grvi_byte_shuffle(int64_t item_bytes, int64_t n, const uint8_t *in, uint8_t *out);
void grvi_byte_unshuffle(int64_t item_bytes, int64_t n, const uint8_t *in, uint8_t *out);
/* Undoes Blosc's shuffle of bits: in[(8 * j + b) * n / 8 + i / 8] holds bit b of byte j of the elements i / 8 * 8 on, one bit for
 * each of eight. n is a multiple of 8 */
void grvi_bit_unshuffle(int64_t item_bytes, int64_t n, const uint8_t *in, uint8_t *out);

#endif
