/* What every key-value back end shares: key checks and whole-object reads on top of the range interface. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/kv.h"

void grvi_kv_destroy(grvi_kv **kv)
{
    if (kv == NULL || *kv == NULL) return;
    (*kv)->class->destroy(*kv);
    *kv = NULL;
}

grv_status grvi_kv_check_key(const char *key)
{
    const char *name = key;
    for (const char *p = key;; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c != '/' && c != '\0') {
            GRV_CHECK(c >= 0x20 && c != '\\', GRV_E_ARG,
                      "name '%s': character 0x%02x at byte %lld is not allowed", key, c,
                      (long long)(p - key));
            continue;
        }
        const int64_t n = p - name;
        GRV_CHECK(n > 0, GRV_E_ARG, "name '%s': empty part at byte %lld", key,
                  (long long)(name - key));
        GRV_CHECK(strspn(name, ".") < (size_t)n, GRV_E_ARG,
                  "name '%s': a part of nothing but dots at byte %lld", key,
                  (long long)(name - key));
        if (c == '\0') return GRV_OK;
        name = p + 1;
    }
}

grv_status grvi_kv_get(grvi_kv *kv, const char *key, int64_t max_bytes, char **data, int64_t *n)
{
    grv_status status = GRV_OK;
    grvi_object object;
    bool found = false;
    *data = NULL;
    *n = 0;
    GRV_TRY(kv->class->open_object(kv, key, &object, &found));
    if (!found) return GRV_OK;
    GRV_CHECK_GOTO(object.n_bytes <= max_bytes, GRV_E_FORMAT,
                   "%s: at most %lld bytes expected, %lld found", key, (long long)max_bytes,
                   (long long)object.n_bytes);
    GRV_TRY_GOTO(GRVI_ALLOC(data, object.n_bytes + 1));
    GRV_TRY_GOTO(kv->class->read_object(kv, &object, key, 0, object.n_bytes, *data));
    (*data)[object.n_bytes] = '\0';
    *n = object.n_bytes;
done:
    kv->class->close_object(kv, &object);
    if (status != GRV_OK) {
        grv_free(*data);
        *data = NULL;
    }
    return status;
}

grv_status grvi_kv_exists(grvi_kv *kv, const char *key, bool *exists)
{
    grvi_object object;
    GRV_TRY(kv->class->open_object(kv, key, &object, exists));
    if (*exists) kv->class->close_object(kv, &object);
    return GRV_OK;
}
