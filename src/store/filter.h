/* Filters: codecs that turn elements into elements, before the `bytes` codec of a chain. Internal.
 * They work on a dense chunk in stored order and the machine's byte order, with the results of numcodecs bit by bit.
 * filter.c lists them. */
#ifndef GRVI_STORE_FILTER_H
#define GRVI_STORE_FILTER_H

#include "store/store_type.h"

typedef struct grvi_filter_class grvi_filter_class;

/* A filter with its configuration; a plain value. */
typedef struct grvi_filter {
    const grvi_filter_class *class;
    grvi_item decoded, encoded; /* elements before and after it */
    /* byte order that the configuration's type strings name: of no meaning in version 3, where `bytes` tells the order */
    bool decoded_big_endian, encoded_big_endian;
    double scale, offset;
    int keep_bits;
} grvi_filter;

struct grvi_filter_class {
    const char *name;
    /* reads `configuration` (NULL if there is none); filter->decoded is given, filter->encoded is preset to it */
    grv_status (*parse)(const grvi_json *configuration, grvi_filter *filter);
    /* n elements; in and out do not overlap */
    grv_status (*encode)(const grvi_filter *filter, const uint8_t *in, int64_t n, uint8_t *out);
    void (*decode)(const grvi_filter *filter, const uint8_t *in, int64_t n, uint8_t *out);
};

/* The class of a name as in version 3 ("numcodecs.delta"), NULL if there is none. */
const grvi_filter_class *grvi_filter_find(const char *name);
/* Resolves a filter for elements (big_endian: their byte order where the filter names none); what: the array's name, for messages. */
grv_status grvi_filter_parse(const grvi_filter_class *class, const grvi_json *configuration,
                             grvi_item decoded, bool big_endian, const char *what,
                             grvi_filter *filter) GRV_MUST_CHECK;

#endif
