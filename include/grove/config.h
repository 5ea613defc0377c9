/** @file config.h
 * Configuration: one option table drives the YAML file, `key=value` overrides, --help, validation and the resolved file.
 *
 * A command has a plain struct of parameters and a table that says, per key, which field it fills:
 *
 *     typedef struct train_params { double lr; grv_i64_list modes; char *data; int optimizer; } train_params;
 *     static const char *const optimizers[] = {"adam", "adamw", NULL};
 *     static const grv_option options[] = {
 *         {"data", GRV_OPTION_STRING, offsetof(train_params, data), NULL, .help = "data set to train on"},
 *         {"optimizer.name", GRV_OPTION_CHOICE, offsetof(train_params, optimizer), "adam", .choices = optimizers},
 *         {"optimizer.lr", GRV_OPTION_F64, offsetof(train_params, lr), "1e-3", .min = 0, .max = 1, .help = "step size"},
 *         {"modes", GRV_OPTION_I64_LIST, offsetof(train_params, modes), "[12, 12]", .min = 1, .max = HUGE_VAL},
 *     };
 *     static const grv_option_table table = {options, sizeof options / sizeof *options};
 *
 * Order of precedence: grv_config_defaults, then grv_config_load, then grv_config_set; each overwrites the one before.
 * Messages name key, what was expected, what was found and where: "lr: 0 to 1 expected, 5 found (run.yaml line 12)".
 * After an error the parameters may be partly changed; grv_config_fini is always allowed. Nothing here is collective.
 */
#ifndef GROVE_CONFIG_H
#define GROVE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most items of a list option. */
#define GRV_LIST_MAX 64

/** Field of a GRV_OPTION_I64_LIST: the first n of at. */
typedef struct grv_i64_list {
    int n;                    /**< items in use */
    int64_t at[GRV_LIST_MAX]; /**< the items; the rest is 0 */
} grv_i64_list;

/** Field of a GRV_OPTION_F64_LIST: the first n of at. */
typedef struct grv_f64_list {
    int n;                   /**< items in use */
    double at[GRV_LIST_MAX]; /**< the items; the rest is 0 */
} grv_f64_list;

/** Field of a GRV_OPTION_STRING_LIST: the first n of at. */
typedef struct grv_string_list {
    int n; /**< items in use */
    char
        *at[GRV_LIST_MAX]; /**< owned by the parameters (grv_config_fini frees); the rest is NULL */
} grv_string_list;

/** What a key holds, and the C type of its field. */
typedef enum grv_option_type {
    GRV_OPTION_BOOL, /**< bool: true/false, yes/no, on/off */
    GRV_OPTION_INT,  /**< int: counts of ranks, threads, dimensions */
    GRV_OPTION_I64,  /**< int64_t; "1e6" is taken too where it is a whole number */
    GRV_OPTION_F64,  /**< double; never NaN; .inf and -.inf are infinite */
    GRV_OPTION_STRING, /**< char *, UTF-8, owned by the parameters; NULL until a required key is given */
    GRV_OPTION_CHOICE,     /**< int (or an enum of that size): index of the word in `choices` */
    GRV_OPTION_I64_LIST,   /**< grv_i64_list; a single number is a list of one */
    GRV_OPTION_F64_LIST,   /**< grv_f64_list */
    GRV_OPTION_STRING_LIST /**< grv_string_list */
} grv_option_type;

/** One key. Fields that are left out (zero) mean "no limit" or "none". */
typedef struct grv_option {
    const char *
        key; /**< lower case; a dot nests: "optimizer.lr" is {optimizer: {lr: ...}}; one group stands together */
    grv_option_type type; /**< what it holds */
    size_t offset;        /**< offsetof(params, field) */
    const char *
        fallback; /**< the default, as it would be written in the file; NULL (strings only): must be given */
    double min;     /**< numbers and items of lists: smallest allowed; min == max means unlimited */
    double max;     /**< largest allowed; HUGE_VAL for no upper limit */
    bool above_min; /**< min itself is not allowed: "more than 0" */
    int min_items;  /**< lists: fewest items */
    int max_items;  /**< lists: most items; 0 means GRV_LIST_MAX */
    bool pairs;     /**< lists of strings: a mapping of single values is taken too, each pair as an item "name value" */
    const char *const *choices; /**< GRV_OPTION_CHOICE: the words, NULL at the end */
    const char *unit;           /**< "m", "s", "cells"; NULL for none */
    const char *help;           /**< one sentence for --help */
} grv_option;

/** The keys of a command. */
typedef struct grv_option_table {
    const grv_option *options; /**< [n], borrowed */
    int n;                     /**< number of keys */
} grv_option_table;

/** Sets every field to its default and checks the table itself.
 * @param params  zeroed, or set by an earlier call (its strings are freed then)
 * @errors GRV_E_ARG a broken table: keys twice, groups apart, a default outside its range; GRV_E_NOMEM */
GRV_API grv_status grv_config_defaults(const grv_option_table *table, void *params) GRV_MUST_CHECK;

/** Applies a YAML file: a mapping of keys to scalars and lists; nested mappings address dotted keys.
 * Anchors, aliases and tags are refused, keys must not repeat; at most 1 MiB.
 * @errors GRV_E_NOT_FOUND, GRV_E_IO; GRV_E_FORMAT broken YAML; GRV_E_CONFIG unknown key, wrong type, out of range; GRV_E_NOMEM */
GRV_API grv_status grv_config_load(const grv_option_table *table, void *params,
                                   const char *path) GRV_MUST_CHECK;

/** The same from memory.
 * @param text  [n_bytes] YAML, no NUL needed
 * @param name  where it is from, for messages */
GRV_API grv_status grv_config_parse(const grv_option_table *table, void *params, const char *text,
                                    int64_t n_bytes, const char *name) GRV_MUST_CHECK;

/** Applies one override "key=value"; lists are "1,2,3" or "[1, 2, 3]". Text is taken as it stands, without quotes.
 * @errors GRV_E_CONFIG, GRV_E_FORMAT, GRV_E_NOMEM */
GRV_API grv_status grv_config_set(const grv_option_table *table, void *params,
                                  const char *assignment) GRV_MUST_CHECK;

/** Checks that every key without default was given. Call it after file and overrides.
 * @errors GRV_E_CONFIG names the first that is missing */
GRV_API grv_status grv_config_require(const grv_option_table *table,
                                      const void *params) GRV_MUST_CHECK;

/** Frees the strings that the parameters own and sets them to NULL; the other fields stay. Zeroed parameters are allowed. */
GRV_API void grv_config_fini(const grv_option_table *table, void *params);

/** The parameters as YAML, nested, with unit and help as comments. Loading it gives the same parameters, bit for bit;
 * keys that are still missing are left out.
 * @param text  owned by the caller, free with grv_free
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_config_to_yaml(const grv_option_table *table, const void *params,
                                      char **text) GRV_MUST_CHECK;

/** The parameters as one JSON object, nested as the YAML; infinite numbers are strings, missing keys null.
 * @param text  owned by the caller, free with grv_free
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_config_to_json(const grv_option_table *table, const void *params,
                                      char **text) GRV_MUST_CHECK;

/** Table of all keys for --help: key, type, default, range, unit, help; at most 100 columns where the keys allow it.
 * @param text  owned by the caller, free with grv_free
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_config_help(const grv_option_table *table, char **text) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
