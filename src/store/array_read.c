/* Reading one region: a read plan of one request, out of the store's pool of plans, so that warm reads allocate nothing. */
#include "store/read_plan_impl.h"

grv_status grv_array_read(grv_array *array, const int64_t *start, const int64_t *count, void *out,
                          const int64_t *strides)
{
    grv_status status = GRV_OK;
    grv_read_plan *plan = NULL;
    const grv_read_request request = {
        .array = array, .start = start, .count = count, .out = out, .strides = strides};
    GRV_TRY_GOTO(grvi_plan_take(array->store, &plan));
    GRV_TRY_GOTO(grv_read_plan_set(plan, &request, 1));
    GRV_TRY_GOTO(grv_read_plan_run(plan));
done:
    grvi_plan_give(array->store, plan);
    return status;
}
