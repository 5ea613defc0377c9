/* What config.c (values), config_yaml.c (reading) and config_print.c (writing) share. Internal. */
#ifndef GRVI_CORE_CONFIG_IMPL_H
#define GRVI_CORE_CONFIG_IMPL_H

#include "core/check.h"
#include "core/text.h"
#include "grove/config.h"

/* Type of one item of a list type, or the type itself. */
grv_option_type grvi_option_item_type(const grv_option *option);
bool grvi_option_is_list(const grv_option *option);
/* "0 to 1", "at least 1", "above 0", "at most 5", "any"; without the unit. */
void grvi_option_append_range(const grv_option *option, grvi_text *out);
/* Items in use: 1 for what is no list. */
int grvi_option_n_items(const grv_option *option, const void *params);
/* Address of item i (0 for what is no list). */
const void *grvi_option_item(const grv_option *option, const void *params, int i);

/* Index of a key in the table; GRV_E_CONFIG names the nearest key. */
grv_status grvi_config_find(const grv_option_table *table, const char *key, const char *where,
                            int *index) GRV_MUST_CHECK;

/* One assignment: begin, then append each item, then end. `where` is for messages: "run.yaml line 12".
 * is_list: the source wrote a list. quoted: the source quoted the item, so it is text and nothing else. */
grv_status grvi_config_begin(const grv_option *option, void *params, bool is_list,
                             const char *where) GRV_MUST_CHECK;
grv_status grvi_config_append(const grv_option *option, void *params, const char *text, bool quoted,
                              const char *where) GRV_MUST_CHECK;
grv_status grvi_config_end(const grv_option *option, const void *params,
                           const char *where) GRV_MUST_CHECK;

/* Reads `text` as the YAML value of one list option: "[1, 2]". */
grv_status grvi_config_parse_list(const grv_option *option, void *params, const char *text,
                                  const char *where) GRV_MUST_CHECK;

#endif
