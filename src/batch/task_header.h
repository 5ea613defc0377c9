/* include/grove/task.h as bytes, made by the build: workers put it beside the sources that they compile. Internal. */
#ifndef GRVI_BATCH_TASK_HEADER_H
#define GRVI_BATCH_TASK_HEADER_H

#include <stdint.h>

extern const char grvi_task_header[];
extern const int64_t grvi_task_header_bytes;

#endif
