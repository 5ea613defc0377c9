/* The program grove, which workers run. Internal. */
#ifndef GRVI_BATCH_GROVE_PROGRAM_H
#define GRVI_BATCH_GROVE_PROGRAM_H

#include "core/check.h"

/* Its path: what was asked for (NULL: nothing), the variable GROVE_PROGRAM, this process, beside it, or on PATH. Free with grv_free. GRV_E_NOT_FOUND. */
grv_status grvi_find_program(const char *asked, char **path) GRV_MUST_CHECK;

#endif
