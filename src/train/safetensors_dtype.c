/* Element types of safetensors files. */
#include "grove/safetensors.h"

int64_t grv_safetensors_dtype_bytes(grv_safetensors_dtype dtype)
{
    switch (dtype) {
#define BYTES_CASE(name, bytes) \
    case GRV_SAFETENSORS_##name: return bytes;
        GRV_SAFETENSORS_DTYPE_LIST(BYTES_CASE)
#undef BYTES_CASE
    }
    return 0;
}

const char *grv_safetensors_dtype_name(grv_safetensors_dtype dtype)
{
    switch (dtype) {
#define NAME_CASE(name, bytes) \
    case GRV_SAFETENSORS_##name: return #name;
        GRV_SAFETENSORS_DTYPE_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "?";
}
