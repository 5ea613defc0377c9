/* Tags of XML as VTK's files have it: elements, attributes, comments, the five entities; no namespaces, no DTD. Internal.
 * The text is not copied: spans point into it. What stands between tags is the caller's. */
#ifndef GRVI_MESH_XML_SCAN_H
#define GRVI_MESH_XML_SCAN_H

#include "core/check.h"

/* A piece of the text. */
typedef struct grvi_span {
    const char *at;
    int64_t n;
} grvi_span;

static inline const char *grvi_span_end(grvi_span span)
{
    return span.at + span.n;
}
bool grvi_span_is(grvi_span span, const char *text);

typedef enum grvi_xml_kind { GRVI_XML_OPEN, GRVI_XML_CLOSE, GRVI_XML_END } grvi_xml_kind;

typedef struct grvi_xml_tag {
    grvi_xml_kind kind;
    bool is_empty; /* <a/>: no closing tag follows */
    grvi_span name;
    grvi_span attributes; /* text between name and '>' */
    const char *at;       /* the '<' */
} grvi_xml_tag;

typedef struct grvi_xml {
    const char *path; /* for messages */
    const char *begin, *at, *end;
} grvi_xml;

/* Next tag; comments, declarations and processing instructions are passed over. At the end of the text: GRVI_XML_END. */
grv_status grvi_xml_next(grvi_xml *xml, grvi_xml_tag *tag) GRV_MUST_CHECK;
/* Value of an attribute, blanks around it cut off, entities as they stand; false if it is absent. */
bool grvi_xml_attribute(const grvi_xml_tag *tag, const char *name, grvi_span *value);
/* Copies a value with its entities resolved into out [value.n]; returns the bytes written. */
int64_t grvi_xml_resolve(grvi_span value, char *out);

#endif
