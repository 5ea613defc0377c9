/* Base64 as VTK's files hold it: long runs without white space, and whatever else others wrote. Internal. */
#ifndef GRVI_MESH_BASE64_H
#define GRVI_MESH_BASE64_H

#include <stdbool.h>
#include <stdint.h>

/* Decodes n_groups groups of four characters to three bytes each; false at a character that is none of the alphabet's 64. */
bool grvi_base64_groups(const uint8_t *text, int64_t n_groups, uint8_t *out);

/* Decodes bytes [first, first + n) of text that has no white space; padding may stand at the end of the last group only.
 * False if the text is otherwise, or too short. */
bool grvi_base64_range(const uint8_t *text, int64_t n_text, int64_t first, int64_t n, uint8_t *out);

/* Text with white space, and with padding in the middle where streams follow each other. */
typedef struct grvi_base64_stream {
    const uint8_t *at, *end;
    uint8_t pending[3]; /* decoded and not taken yet: the last n_pending */
    int n_pending;
} grvi_base64_stream;

/* Takes up to n bytes; returns how many there were before the text ended, or something that is not base64. */
int64_t grvi_base64_read(grvi_base64_stream *stream, int64_t n, uint8_t *out);

/* Characters of n bytes, padding included. */
static inline int64_t grvi_base64_length(int64_t n)
{
    return (n + 2) / 3 * 4;
}
/* Encodes n bytes, the last group padded; out [grvi_base64_length(n)]. */
void grvi_base64_encode(const uint8_t *in, int64_t n, uint8_t *out);

#endif
