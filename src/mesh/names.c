/* Names and their numbers: a list, and an open-addressed table over it. */
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "mesh/names.h"

static uint64_t hash_of(const char *name, int64_t n)
{
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a */
    for (int64_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3U;
    return hash ^ hash >> 29;
}

/* Place of a name in the table: its number stands there, or -1 */
static int64_t place_of(const grvi_names *names, const char *name, int64_t n)
{
    int64_t place = (int64_t)(hash_of(name, n) & (uint64_t)(names->n_table - 1));
    for (;; place = (place + 1) & (names->n_table - 1)) {
        const int32_t number = names->table[place];
        if (number < 0 ||
            (names->lengths[number] == n && memcmp(names->at[number], name, (size_t)n) == 0))
            return place;
    }
}

grv_status grvi_names_add(grvi_names *names, const char *name, int64_t n_name)
{
    GRV_CHECK(names->n < INT32_MAX, GRV_E_UNSUPPORTED, "more than %d names", INT32_MAX);
    if ((names->n & (names->n - 1)) == 0) {
        const int64_t room = names->n == 0 ? 1 : 2 * names->n;
        GRV_TRY(grvi_realloc(room, sizeof *names->at, (void **)&names->at));
        GRV_TRY(GRVI_REALLOC(&names->lengths, room));
    }
    names->at[names->n] = name;
    names->lengths[names->n++] = n_name;
    return GRV_OK;
}

static grv_status rebuild(grvi_names *names)
{
    const int64_t n_table = names->n_table == 0 ? 16 : 2 * names->n_table;
    grv_free(names->table);
    names->table = NULL;
    GRV_TRY(GRVI_ALLOC(&names->table, n_table));
    memset(names->table, 0xff, (size_t)n_table * sizeof *names->table);
    names->n_table = n_table;
    for (int64_t i = 0; i < names->n; i++)
        names->table[place_of(names, names->at[i], names->lengths[i])] = (int32_t)i;
    return GRV_OK;
}

grv_status grvi_names_number(grvi_names *names, const char *name, int64_t n_name, int32_t *number)
{
    if (2 * (names->n + 1) > names->n_table) GRV_TRY(rebuild(names));
    const int64_t place = place_of(names, name, n_name);
    *number = names->table[place];
    if (*number >= 0) return GRV_OK;
    GRV_TRY(grvi_names_add(names, name, n_name));
    *number = names->table[place] = (int32_t)(names->n - 1);
    return GRV_OK;
}

void grvi_names_fini(grvi_names *names)
{
    grv_free((void *)names->at);
    grv_free(names->lengths);
    grv_free(names->table);
    *names = (grvi_names){0};
}

grv_status grvi_names_to_texts(const grvi_names *names, const char *array_name, grv_mesh *mesh)
{
    grvi_text all = {0};
    for (int64_t i = 0; i < names->n; i++) {
        /* a NUL would end the name early */
        const char *const nul = memchr(names->at[i], '\0', (size_t)names->lengths[i]);
        grvi_text_append_n(&all, names->at[i],
                           nul == NULL ? names->lengths[i] : nul - names->at[i]);
        grvi_text_append_n(&all, "", 1);
    }
    grv_status status = grvi_text_status(&all);
    if (status == GRV_OK)
        status =
            grv_mesh_add_texts(&mesh->field_data, array_name, names->n, grvi_text_get(&all), all.n);
    grvi_text_fini(&all);
    return status;
}
