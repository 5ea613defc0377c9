/* Log: levels and ranks, JSON lines, the unfinished line of a killed run, progress as a bar and as lines. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/log.h"

static char text[1 << 14];

/* What the stream got so far. */
static const char *read_all(FILE *file)
{
    rewind(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    return text;
}

static const char *read_path(const char *path)
{
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    (void)read_all(file);
    (void)fclose(file);
    return text;
}

static grv_log *make_log(FILE *stream, grv_log_level level, int rank, bool is_terminal)
{
    grv_log_params params = grv_log_params_default();
    params.name = "grove test";
    params.stream = stream;
    params.level = level;
    params.rank = rank;
    params.is_terminal = is_terminal;
    params.bar_interval_s = 0;
    params.line_interval_s = 0;
    grv_log *log = NULL;
    assert_int_equal(grv_log_create(&params, &log), GRV_OK);
    return log;
}

static void say_everything(grv_log *log)
{
    grv_log_message(log, GRV_LOG_ERROR, "e%d", 1);
    grv_log_message(log, GRV_LOG_WARN, "w%d", 2);
    grv_log_message(log, GRV_LOG_INFO, "two\nlines");
    grv_log_event(log, GRV_LOG_DEBUG, "d", (grv_log_field[]){grv_log_f64("x", 0.5)}, 1);
}

static void test_levels_and_ranks(void **state)
{
    (void)state;
    static const struct {
        grv_log_level level;
        int rank;
        const char *expected;
    } cases[] = {
        {GRV_LOG_ERROR, 0, "grove test: e1\n"},
        {GRV_LOG_WARN, 0, "grove test: e1\ngrove test: warning: w2\n"},
        {GRV_LOG_INFO, 0, "grove test: e1\ngrove test: warning: w2\ntwo lines\n"},
        {GRV_LOG_DEBUG, 0, "grove test: e1\ngrove test: warning: w2\ntwo lines\nd: x = 0.5\n"},
        {GRV_LOG_DEBUG, 3, "grove test: rank 3: e1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *const stream = tmpfile();
        grv_log *log = make_log(stream, cases[i].level, cases[i].rank, false);
        say_everything(log);
        assert_string_equal(read_all(stream), cases[i].expected);
        grv_log_destroy(&log);
        assert_null(log);
        (void)fclose(stream);
    }
    say_everything(NULL); /* silence */
    assert_false(grv_log_passes(NULL, GRV_LOG_ERROR));
    grv_log_destroy(NULL);
    assert_true(grv_memory_get().bytes == 0);
}

static void test_json_lines(void **state)
{
    (void)state;
    char path[] = "/tmp/grove-log-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "{\"cut", 5) == 5 && close(fd) == 0);
    FILE *const stream = tmpfile();
    for (int run = 0; run < 2; run++) { /* the second run appends */
        grv_log *log = make_log(stream, GRV_LOG_INFO, 0, false);
        assert_int_equal(grv_log_open_file(log, path), GRV_OK);
        const grv_log_field fields[] = {grv_log_i64("epoch", INT64_MAX), grv_log_f64("loss", 0.1),
                                        grv_log_f64("bad", NAN), grv_log_text("note", "a \"b\"\n")};
        grv_log_event(log, GRV_LOG_INFO, "epoch", fields, 4);
        grv_log_message(log, GRV_LOG_DEBUG, "not at this level");
        grv_log_message(log, GRV_LOG_WARN, "odd");
        grv_log_destroy(&log);
    }
    (void)read_path(path);
    static const char *const ends[] = {
        ", \"level\": \"info\", \"event\": \"epoch\", \"epoch\": 9223372036854775807, \"loss\": "
        "0.1, \"bad\": \"NaN\", \"note\": \"a \\\"b\\\"\\n\"}",
        ", \"level\": \"warning\", \"event\": \"message\", \"text\": \"odd\"}"};
    char *line = strtok(text, "\n");
    assert_string_equal(line, "{\"cut");
    for (int i = 0; i < 4; i++) {
        line = strtok(NULL, "\n");
        assert_non_null(line);
        /* {"time": "2026-01-02T03:04:05.678Z" */
        assert_true(strncmp(line, "{\"time\": \"20", 12) == 0 && line[20] == 'T' &&
                    strncmp(line + 29, ".", 1) == 0 && line[33] == 'Z');
        assert_string_equal(line + 35, ends[i % 2]);
    }
    assert_null(strtok(NULL, "\n"));
    assert_int_equal(unlink(path), 0);
    (void)fclose(stream);
}

static void test_file_that_cannot_be_written(void **state)
{
    (void)state;
    FILE *const stream = tmpfile();
    grv_log *log = make_log(stream, GRV_LOG_INFO, 0, false);
    assert_int_equal(grv_log_open_file(log, "/nonexistent/log.jsonl"), GRV_E_IO);
    char folder[] = "/tmp/grove-log-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/log.jsonl", folder);
    assert_int_equal(grv_log_open_file(log, path), GRV_OK);
    assert_true(unlink(path) == 0 && rmdir(folder) == 0);
    grv_log_message(log, GRV_LOG_INFO, "one");
    grv_log_message(log, GRV_LOG_INFO, "two");
    grv_log_destroy(&log);
    const char *const found = read_all(stream);
    assert_non_null(strstr(
        found, "one\ngrove test: warning: the log file is given up: input/output failure: "));
    assert_non_null(strstr(found, "\ntwo\n")); /* and the warning once only */
    assert_null(strstr(strstr(found, "given up") + 1, "given up"));
    (void)fclose(stream);
}

static void test_rank_one_has_no_file(void **state)
{
    (void)state;
    FILE *const stream = tmpfile();
    grv_log *log = make_log(stream, GRV_LOG_INFO, 1, true);
    assert_int_equal(grv_log_open_file(log, "/nonexistent/log.jsonl"), GRV_OK);
    grv_progress progress;
    grv_progress_begin(&progress, log, "train", "steps", 3);
    grv_progress_update(&progress, 2);
    grv_progress_end(&progress);
    assert_string_equal(read_all(stream), "");
    grv_log_destroy(&log);
    (void)fclose(stream);
}

static void test_progress_lines(void **state)
{
    (void)state;
    FILE *const stream = tmpfile();
    grv_log *log = make_log(stream, GRV_LOG_INFO, 0, false);
    grv_progress progress;
    grv_progress_begin(&progress, log, "simulate", "flows", 4);
    progress.start_s -= 100; /* 100 seconds ago */
    grv_progress_update(&progress, 0);
    grv_progress_update(&progress, 1);
    progress.done = 4;
    grv_progress_end(&progress);
    assert_string_equal(read_all(stream), "simulate: 0/4 flows\n"
                                          "simulate: 1/4 flows, 100 s each, 5:00 min left\n"
                                          "simulate: 4 flows in 1:40 min (25 s each)\n");
    grv_log_destroy(&log);
    (void)fclose(stream);
}

/* A step that another run began, with words of its own in place of the numbers: what was there before says nothing about the time left. */
static void test_progress_text(void **state)
{
    (void)state;
    FILE *const stream = tmpfile();
    grv_log *log = make_log(stream, GRV_LOG_INFO, 0, false);
    grv_progress progress;
    grv_progress_begin(&progress, log, "batch", "tasks", 10);
    grv_progress_skip(&progress, 6);
    progress.start_s -= 100; /* 100 seconds ago */
    grv_progress_describe(&progress, "4 ready, 6 done");
    grv_progress_update(&progress, 6);
    grv_progress_describe(&progress, "3 ready, 7 done");
    grv_progress_update(&progress, 7);
    grv_progress_describe(&progress, "");
    grv_progress_update(&progress, 8);
    progress.done = 10;
    grv_progress_end(&progress);
    assert_string_equal(read_all(stream), "batch: 4 ready, 6 done\n"
                                          "batch: 3 ready, 7 done, 5:00 min left\n"
                                          "batch: 8/10 tasks, 50 s each, 1:40 min left\n"
                                          "batch: 4 tasks in 1:40 min (25 s each)\n");
    grv_log_destroy(&log);
    (void)fclose(stream);
}

static void test_lines_are_rare(void **state)
{
    (void)state;
    FILE *const stream = tmpfile();
    grv_log_params params = grv_log_params_default();
    grv_log *log = NULL;
    params.stream = stream;
    params.is_terminal = false;
    assert_int_equal(grv_log_create(&params, &log), GRV_OK);
    grv_progress progress;
    grv_progress_begin(&progress, log, "simulate", "flows", 100);
    for (int i = 1; i <= 50; i++) grv_progress_update(&progress, i);
    assert_string_equal(read_all(stream), "");
    progress.shown_s -= 11;
    grv_progress_update(&progress, 51);
    assert_non_null(strstr(read_all(stream), "simulate: 51/100 flows, "));
    grv_log_destroy(&log);
    (void)fclose(stream);
}

/* The terminal after the control characters: what is on its last line, and the lines above it. */
static void render(const char *stream, char *screen)
{
    size_t n = 0, line = 0;
    for (const char *p = stream; *p != '\0'; p++) {
        if (*p == '\r')
            n = line;
        else if (strncmp(p, "\033[K", 3) == 0)
            screen[n] = '\0', p += 2;
        else {
            screen[n++] = *p;
            screen[n] = '\0';
            if (*p == '\n') line = n;
        }
    }
}

static bool starts_with(const char *string, const char *start)
{
    return strncmp(string, start, strlen(start)) == 0;
}

static void test_progress_bar(void **state)
{
    (void)state;
    static char screen[sizeof text];
    FILE *const stream = tmpfile();
    grv_log *log = make_log(stream, GRV_LOG_INFO, 0, true);
    grv_progress outer, inner;
    grv_progress_begin(&outer, log, "train", "epochs", 10);
    outer.start_s -= 40;
    grv_progress_update(&outer, 5);
    render(read_all(stream), screen);
    assert_string_equal(
        screen, "train [###############................] 5/10 epochs, 0.125 epochs/s, 40 s left");
    assert_true(strlen(screen) <= 79);
    grv_log_message(log, GRV_LOG_INFO, "between");
    render(read_all(stream), screen);
    assert_true(starts_with(screen, "between\ntrain [###"));
    grv_progress_begin(&inner, log, "validate", "flows", 2);
    render(read_all(stream), screen);
    assert_true(starts_with(screen, "between\nvalidate [..."));
    inner.start_s -= 2;
    grv_progress_update(&inner, 2);
    grv_progress_end(&inner);
    render(read_all(stream), screen);
    assert_true(starts_with(screen, "between\nvalidate: 2 flows in 2.0 s (1 flows/s)\ntrain [###"));
    grv_progress_end(&outer);
    render(read_all(stream), screen);
    assert_string_equal(screen, "between\nvalidate: 2 flows in 2.0 s (1 flows/s)\ntrain: 5 epochs "
                                "in 40 s (0.125 epochs/s)\n");
    grv_log_destroy(&log);
    (void)fclose(stream);
}

static void say_numbers(void *log, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        grv_log_event(log, GRV_LOG_INFO, "count", (grv_log_field[]){grv_log_i64("i", i)}, 1);
}

/* Lines of several threads do not mix, and none is lost. */
static void test_threads(void **state)
{
    (void)state;
    enum { N = 200 };
    char path[] = "/tmp/grove-log-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    FILE *const stream = tmpfile();
    grv_log *log = make_log(stream, GRV_LOG_INFO, 0, true);
    assert_int_equal(grv_log_open_file(log, path), GRV_OK);
    grv_parallel_for(4, N, say_numbers, log);
    grv_log_destroy(&log);
    int64_t sum = 0, n = 0, i = 0;
    for (char *line = strtok((read_all(stream), text), "\n"); line != NULL;
         line = strtok(NULL, "\n"), n++) {
        assert_int_equal(sscanf(line, "count: i = %" SCNd64, &i), 1);
        sum += i;
    }
    assert_true(n == N && sum == N * (N - 1) / 2);
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    for (n = 0; fgets(text, sizeof text, file) != NULL; n++)
        assert_true(strncmp(text, "{\"time\"", 7) == 0 &&
                    strcmp(text + strlen(text) - 2, "}\n") == 0);
    assert_int_equal(n, N);
    (void)fclose(file);
    (void)fclose(stream);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels_and_ranks),
                                       cmocka_unit_test(test_json_lines),
                                       cmocka_unit_test(test_file_that_cannot_be_written),
                                       cmocka_unit_test(test_rank_one_has_no_file),
                                       cmocka_unit_test(test_progress_lines),
                                       cmocka_unit_test(test_progress_text),
                                       cmocka_unit_test(test_lines_are_rare),
                                       cmocka_unit_test(test_progress_bar),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
