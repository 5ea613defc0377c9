/* Functions that the tests of the batch engine run. */
#include <grove/task.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

GRV_TASK(square)
{
    const double x = grv_task_f64(task, 0);
    printf("squaring %g\n", x);
    grv_task_return_f64(task, x * x);
}

GRV_TASK(add) { grv_task_return_f64(task, grv_task_f64(task, 0) + grv_task_f64(task, 1)); }

GRV_TASK(nothing) { (void)task; }

/* arguments have names in campaigns only */
GRV_TASK(named) { grv_task_return_f64(task, grv_task_f64(task, grv_task_find(task, "x"))); }

/* crashes while its attempt is at most argument 1 */
GRV_TASK(fragile)
{
    if (grv_task_attempt(task) <= grv_task_i64(task, 1)) {
        fprintf(stderr, "about to crash\n");
        if (grv_task_i64(task, 2) == 0) raise(SIGSEGV);
        if (grv_task_i64(task, 2) == 1) exit(3);
        if (grv_task_i64(task, 2) == 2) abort();
        grv_task_fail(task, "it did not want to");
        return;
    }
    grv_task_return_i64(task, grv_task_i64(task, 0));
}

GRV_TASK(nap)
{
    const double seconds = grv_task_f64(task, 0);
    const struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
    grv_task_return_i64(task, grv_task_number(task));
}

GRV_TASK(eat)
{
    const size_t n = (size_t)grv_task_i64(task, 0);
    volatile char *p = malloc(n);
    for (size_t i = 0; p != NULL && i < n; i += 4096) p[i] = 1;
    sleep(2);
    grv_task_return_i64(task, p != NULL);
}

/* every kind of value, there and back */
GRV_TASK(echo)
{
    int rank = 0;
    const int64_t *shape = NULL;
    grv_task_return_i64(task, grv_task_i64(task, 0));
    grv_task_return_f64(task, grv_task_f64(task, 1));
    grv_task_return_string(task, grv_task_string(task, 2));
    const float *const data = grv_task_tensor(task, 3, GRV_TASK_F32, &rank, &shape);
    if (data != NULL) grv_task_return_tensor(task, GRV_TASK_F32, rank, shape, data);
    grv_task_return_file(task, grv_task_file(task, 4));
}

GRV_TASK(sum)
{
    int rank = 0;
    const int64_t *shape = NULL;
    const double *const x = grv_task_tensor(task, 0, GRV_TASK_F64, &rank, &shape);
    double total = 0;
    for (int64_t i = 0; x != NULL && i < shape[0]; i++) total += x[i];
    grv_task_return_f64(task, total + grv_task_f64(task, 1));
}

/* the process that it runs in; crashes the first time if argument 0 is 1 */
GRV_TASK(process)
{
    if (grv_task_i64(task, 0) == 1 && grv_task_attempt(task) == 1) raise(SIGSEGV);
    grv_task_return_i64(task, getpid());
}

/* stops its worker the first time, if argument 0 says so, and waits */
GRV_TASK(stop_worker)
{
    if (grv_task_i64(task, 0) != 0 && grv_task_attempt(task) == 1) {
        kill(getppid(), SIGSTOP);
        sleep(60);
    }
    grv_task_return_i64(task, grv_task_number(task));
}

/* a text of so many bytes, which it prints, too */
GRV_TASK(text)
{
    const size_t n = (size_t)grv_task_i64(task, 0);
    char *const text = malloc(n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    printf("%s\n", text);
    grv_task_return_string(task, text);
    free(text);
}
