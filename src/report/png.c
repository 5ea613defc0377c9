/* PNG output over libpng's simplified interface (the only file that includes it). */
#include <string.h>

#include <png.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "report/report_impl.h"

grv_status grv_image_write_png(const grv_image *image, const char *path)
{
    grv_status status = GRV_OK;
    char *bytes = NULL;
    png_image png;
    memset(&png, 0, sizeof png);
    png.version = PNG_IMAGE_VERSION;
    png.width = (png_uint_32)image->width;
    png.height = (png_uint_32)image->height;
    png.format = PNG_FORMAT_RGB;
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(png);
    GRV_TRY_GOTO(GRVI_ALLOC(&bytes, (int64_t)n));
    GRV_CHECK_GOTO(png_image_write_to_memory(&png, bytes, &n, 0, image->pixels, 0, NULL), GRV_E_IO,
                   "encode %s: %s", path, png.message);
    GRV_TRY_GOTO(grvi_fs_write_atomic(path, bytes, (int64_t)n, false));
done:
    png_image_free(&png);
    grv_free(bytes);
    return status;
}
