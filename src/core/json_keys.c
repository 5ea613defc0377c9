/* Duplicate keys of JSON objects: json-c keeps the last value in silence, other readers the first, so that one text can mean two
 * things. One pass over the text; the keys seen are in a hash table with the number of their object. */
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "grove/core.h"

enum { MAX_DEPTH = 64, FIRST_SLOTS = 64 };

typedef struct seen_key {
    int64_t object; /* number of its object, from 1; 0: free */
    int64_t at, n;  /* its bytes in the text */
} seen_key;

typedef struct key_table {
    const char *bytes;
    seen_key *slots;
    int64_t n_slots, n_keys; /* n_slots is a power of two */
} key_table;

static uint64_t hash_of(const key_table *table, const seen_key *key)
{
    uint64_t hash = 0xcbf29ce484222325U ^ (uint64_t)key->object * 0x9e3779b97f4a7c15U; /* FNV-1a */
    for (int64_t i = 0; i < key->n; i++)
        hash = (hash ^ (uint8_t)table->bytes[key->at + i]) * 0x100000001b3U;
    return hash ^ hash >> 32;
}

/* The slot of a key, or the free one where it belongs. */
static seen_key *slot_of(const key_table *table, const seen_key *key)
{
    uint64_t i = hash_of(table, key);
    for (;; i++) {
        seen_key *const slot = &table->slots[i & (uint64_t)(table->n_slots - 1)];
        if (slot->object == 0) return slot;
        if (slot->object == key->object && slot->n == key->n &&
            memcmp(table->bytes + slot->at, table->bytes + key->at, (size_t)key->n) == 0)
            return slot;
    }
}

static grv_status grow(key_table *table)
{
    key_table larger = *table;
    larger.n_slots = table->n_slots > 0 ? 4 * table->n_slots : FIRST_SLOTS;
    GRV_TRY(GRVI_CALLOC(&larger.slots, larger.n_slots));
    for (int64_t i = 0; i < table->n_slots; i++) {
        if (table->slots[i].object != 0) *slot_of(&larger, &table->slots[i]) = table->slots[i];
    }
    grv_free(table->slots);
    *table = larger;
    return GRV_OK;
}

static grv_status add_key(key_table *table, const seen_key *key, const char *what)
{
    if (2 * (table->n_keys + 1) > table->n_slots) GRV_TRY(grow(table));
    seen_key *const slot = slot_of(table, key);
    GRV_CHECK(slot->object == 0, GRV_E_FORMAT, "%s: the key '%.*s' is there twice, again at byte %lld",
              what, (int)grvi_min_i64(key->n, 64), table->bytes + key->at, (long long)key->at);
    *slot = *key;
    table->n_keys++;
    return GRV_OK;
}

/* End of the string that begins after its quote. */
static int64_t string_end(const char *bytes, int64_t n, int64_t at, char quote)
{
    while (at < n && bytes[at] != quote) at += bytes[at] == '\\' ? 2 : 1;
    return grvi_min_i64(at, n);
}

static grv_status scan(key_table *table, int64_t n, const char *what)
{
    int64_t objects[MAX_DEPTH + 1] = {0}, n_objects = 0; /* 0: a list */
    int depth = 0;
    bool expects_key = false;
    for (int64_t i = 0; i < n; i++) {
        const char c = table->bytes[i];
        if (c == '"' || c == '\'') {
            const int64_t end = string_end(table->bytes, n, i + 1, c);
            const seen_key key = {objects[depth], i + 1, end - i - 1};
            if (expects_key) GRV_TRY(add_key(table, &key, what));
            expects_key = false;
            i = end;
        } else if (c == '{' || c == '[') {
            GRV_CHECK(depth < MAX_DEPTH, GRV_E_FORMAT, "%s: nested deeper than %d levels", what,
                      MAX_DEPTH);
            objects[++depth] = c == '{' ? ++n_objects : 0;
            expects_key = c == '{';
        } else if (c == '}' || c == ']') {
            if (depth > 0) depth--;
            expects_key = false;
        } else if (c == ',') {
            expects_key = objects[depth] != 0;
        }
    }
    return GRV_OK;
}

grv_status grvi_json_check_keys(const char *bytes, int64_t n, const char *what)
{
    key_table table = {.bytes = bytes};
    const grv_status status = scan(&table, n, what);
    grv_free(table.slots);
    return status;
}
