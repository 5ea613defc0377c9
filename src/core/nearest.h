/* The nearest word of a list, for messages about misspelt keys and commands. Internal. */
#ifndef GRVI_CORE_NEAREST_H
#define GRVI_CORE_NEAREST_H

#include <stddef.h>

/* Edits (insert, delete, replace, swap neighbours) that turn a into b, letters compared without case; words are looked at
 * up to 63 bytes. */
int grvi_edit_distance(const char *a, const char *b);

/* Running search: start from (grvi_nearest){.word = typed}, offer each candidate, then ask. */
typedef struct grvi_nearest {
    const char *word;
    const char *best;
    int distance;
} grvi_nearest;

/* A candidate "group.key" is also tried by its last part, which is what people remember. */
void grvi_nearest_offer(grvi_nearest *search, const char *candidate);
/* The nearest candidate offered; NULL if none resembles the word (more than about a third of its letters differ). */
const char *grvi_nearest_get(const grvi_nearest *search);

#endif
