/* Records with more than a few fields: functions and outcomes. */
#include <string.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "grove/core.h"

enum { MAX_LIST = 4096 };

static void put_list(grvi_text *out, int n, char *const *texts)
{
    grvi_put_i64(out, n);
    for (int i = 0; i < n; i++) grvi_put_string(out, texts[i]);
}

void grvi_put_function(grvi_text *out, int64_t number, const grvi_function *f)
{
    grvi_put_i64(out, number);
    grvi_put_i64(out, (int64_t)f->kind);
    grvi_put_string(out, f->name);
    grvi_put_string(out, f->flags);
    grvi_put_i64(out, f->n_files);
    for (int i = 0; i < f->n_files; i++) {
        grvi_put_string(out, f->files[i].name);
        grvi_put_string(out, f->files[i].blob.hash);
        grvi_put_i64(out, f->files[i].blob.n_bytes);
    }
    put_list(out, f->n_argv, f->argv);
    put_list(out, f->n_outputs, f->outputs);
}

static grv_status get_list(grvi_fields *in, int *n, char ***texts)
{
    const int64_t count = grvi_get_i64(in);
    GRV_CHECK(!in->failed && count >= 0 && count <= MAX_LIST, GRV_E_FORMAT, "a list of %lld texts", (long long)count);
    GRV_TRY(GRVI_CALLOC(texts, count));
    for (int64_t i = 0; i < count; i++) {
        *n = (int)i + 1;
        GRV_TRY(grvi_strdup(grvi_get_string(in), &(*texts)[i]));
    }
    return GRV_OK;
}

static grv_status get_files(grvi_fields *in, grvi_function *f)
{
    const int64_t count = grvi_get_i64(in);
    GRV_CHECK(!in->failed && count >= 0 && count <= MAX_LIST, GRV_E_FORMAT, "a list of %lld files", (long long)count);
    GRV_TRY(GRVI_CALLOC(&f->files, count));
    for (int64_t i = 0; i < count; i++) {
        f->n_files = (int)i + 1;
        GRV_TRY(grvi_strdup(grvi_get_string(in), &f->files[i].name));
        const char *const hash = grvi_get_string(in);
        GRV_CHECK(strlen(hash) == GRVI_HASH_BYTES - 1, GRV_E_FORMAT, "a hash of %zu digits", strlen(hash));
        memcpy(f->files[i].blob.hash, hash, GRVI_HASH_BYTES);
        f->files[i].blob.n_bytes = grvi_get_i64(in);
    }
    return GRV_OK;
}

grv_status grvi_get_function(grvi_fields *in, int64_t *number, grvi_function *f)
{
    grv_status status = GRV_OK;
    *f = (grvi_function){0};
    *number = grvi_get_i64(in);
    const int64_t kind = grvi_get_i64(in);
    f->kind = (grvi_function_kind)kind;
    GRV_TRY_GOTO(grvi_strdup(grvi_get_string(in), &f->name));
    GRV_TRY_GOTO(grvi_strdup(grvi_get_string(in), &f->flags));
    GRV_TRY_GOTO(get_files(in, f));
    GRV_TRY_GOTO(get_list(in, &f->n_argv, &f->argv));
    GRV_TRY_GOTO(get_list(in, &f->n_outputs, &f->outputs));
    GRV_CHECK_GOTO(!in->failed && *number >= 0 && kind >= GRVI_FUNCTION_SOURCE && kind <= GRVI_FUNCTION_PROGRAM, GRV_E_FORMAT,
                   "a broken record of a function");
done:
    if (status != GRV_OK) grvi_function_fini(f);
    return status;
}

void grvi_function_fini(grvi_function *f)
{
    for (int i = 0; i < f->n_files; i++) grv_free(f->files[i].name);
    for (int i = 0; i < f->n_argv; i++) grv_free(f->argv[i]);
    for (int i = 0; i < f->n_outputs; i++) grv_free(f->outputs[i]);
    grv_free(f->files);
    grv_free(f->argv);
    grv_free(f->outputs);
    grv_free(f->name);
    grv_free(f->flags);
    *f = (grvi_function){0};
}

void grvi_put_outcome(grvi_text *out, const grvi_outcome_record *r, const void *values, int64_t n_values_bytes)
{
    grvi_put_i64(out, r->task);
    grvi_put_i64(out, r->attempt);
    grvi_put_i64(out, r->worker);
    grvi_put_i64(out, (int64_t)r->outcome);
    grvi_put_f64(out, r->start);
    grvi_put_f64(out, r->end);
    grvi_put_i64(out, r->log_begin);
    grvi_put_i64(out, r->log_end);
    grvi_put_i64(out, r->is_final);
    grvi_put_string(out, r->reason);
    grvi_put_i64(out, r->n_values);
    if (n_values_bytes > 0) grvi_text_append_n(out, values, n_values_bytes);
}

bool grvi_get_outcome(grvi_fields *in, grvi_outcome_record *r)
{
    grvi_wire_value value;
    *r = (grvi_outcome_record){.task = grvi_get_i64(in), .reason = ""};
    r->attempt = grvi_get_i64(in);
    r->worker = grvi_get_i64(in);
    const int64_t outcome = grvi_get_i64(in);
    r->start = grvi_get_f64(in);
    r->end = grvi_get_f64(in);
    r->log_begin = grvi_get_i64(in);
    r->log_end = grvi_get_i64(in);
    r->is_final = grvi_get_i64(in) != 0;
    r->reason = grvi_get_string(in);
    r->n_values = grvi_get_i64(in);
    r->values = *in;
    if (in->failed || outcome < 0 || outcome >= GRVI_OUTCOME_COUNT || r->n_values < 0 || r->n_values > GRV_BATCH_MAX_VALUES) return false;
    r->outcome = (grvi_outcome)outcome;
    for (int64_t i = 0; i < r->n_values; i++) {
        grvi_get_value(in, &value);
        if (value.kind == GRV_BATCH_FUTURE) in->failed = true;
        r->bytes += value.kind == GRV_BATCH_I64 || value.kind == GRV_BATCH_F64 ? 8 : value.n_bytes;
    }
    return !in->failed;
}
