/* A simulator of campaigns for their tests: returns its values, and misbehaves as the parameter `way` says. */
#include <grove/task.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* true for a way that ends here */
static int misbehaves(grv_task *task, const char *way, const double *values)
{
    const int64_t flat[] = {4};
    if (strcmp(way, "crash") == 0) *(volatile int *)16 = 1;
    else if (strcmp(way, "exit") == 0) exit(0);
    else if (strcmp(way, "exit4") == 0) exit(4);
    else if (strcmp(way, "say") == 0) grv_task_fail(task, "there is no solution");
    else if (strcmp(way, "name") == 0) grv_task_f64(task, grv_task_find(task, "wya"));
    else if (strcmp(way, "word") == 0) grv_task_f64(task, 1);
    else if (strcmp(way, "whole") == 0) grv_task_i64(task, 0);
    else if (strcmp(way, "place") == 0) grv_task_i64(task, 77);
    else if (strcmp(way, "kind") == 0) grv_task_tensor(task, 0, GRV_TASK_F32, NULL, NULL);
    else if (strcmp(way, "number") == 0) grv_task_return_f64(task, 1);
    else if (strcmp(way, "type") == 0) grv_task_return_tensor(task, GRV_TASK_I32, 1, flat, values);
    else if (strcmp(way, "shape") == 0) grv_task_return_tensor(task, GRV_TASK_F64, 1, flat, values);
    else if (strcmp(way, "hang") == 0) for (;;) {}
    else return 0;
    return 1;
}

/* x, a word and n; SCALE comes from the flags. Each value in every way to ask for it; a file beside it. */
GRV_TASK(values)
{
    const int64_t shape[] = {2, 2};
    const char *const way = grv_task_string(task, grv_task_find(task, "way"));
    const double x = grv_task_f64(task, 0),
                 input[] = {x, atof(grv_task_string(task, grv_task_find(task, "x"))),
                            (double)grv_task_i64(task, grv_task_find(task, "n")), grv_task_n_arguments(task)};
    const float target[] = {(float)x, (float)grv_task_number(task), (float)grv_task_i64(task, grv_task_find(task, "seed")), SCALE};
    FILE *const file = fopen("make.sh", "r");
    printf("way: %s\n", way);
    if (misbehaves(task, way, input)) return;
    if (file == NULL) grv_task_fail(task, "its file is not there");
    if (strcmp(way, "none") == 0) return;
    grv_task_return_tensor(task, GRV_TASK_F64, 2, shape, input);
    if (strcmp(way, "one") == 0) return;
    grv_task_return_tensor(task, GRV_TASK_F32, 2, shape, target);
    if (strcmp(way, "three") == 0) grv_task_return_tensor(task, GRV_TASK_F32, 2, shape, target);
}
