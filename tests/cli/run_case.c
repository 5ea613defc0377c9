/* Runs one case file (README.md): creates its files in an empty folder, runs its command, compares output and exit code. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LINES = 400, LINE_BYTES = 1024 };

typedef struct lines {
    char *line[MAX_LINES];
    int n;
} lines;

static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "run_case: %s: %s\n", what, which);
    exit(2);
}

static void append_line(lines *to, const char *text)
{
    if (to->n == MAX_LINES) die("too many lines", text);
    char *const copy = malloc(strlen(text) + 1);
    if (copy == NULL) die("out of memory", text);
    (void)strcpy(copy, text);
    to->line[to->n++] = copy;
}

static void free_lines(lines *of)
{
    for (int i = 0; i < of->n; i++) free(of->line[i]);
    of->n = 0;
}

static bool read_line(FILE *file, char text[LINE_BYTES])
{
    if (fgets(text, LINE_BYTES, file) == NULL) return false;
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* '*' matches any text */
static bool matches(const char *pattern, const char *text)
{
    for (; *pattern != '*'; pattern++, text++) {
        if (*pattern != *text) return false;
        if (*pattern == '\0') return true;
    }
    for (;; text++) {
        if (matches(pattern + 1, text)) return true;
        if (*text == '\0') return false;
    }
}

/* a line "..." matches any number of lines */
static bool all_match(char *const *expected, int n_expected, char *const *found, int n_found)
{
    for (; n_expected > 0 && strcmp(expected[0], "...") != 0;
         expected++, n_expected--, found++, n_found--)
        if (n_found == 0 || !matches(expected[0], found[0])) return false;
    if (n_expected == 0) return n_found == 0;
    for (int skip = 0; skip <= n_found; skip++)
        if (all_match(expected + 1, n_expected - 1, found + skip, n_found - skip)) return true;
    return false;
}

typedef struct test_case {
    char command[LINE_BYTES];
    int exit_code;
    lines out, err;
} test_case;

/* Reads the case and creates its files in the current folder. */
static void read_case(const char *path, FILE *file, test_case *it)
{
    char text[LINE_BYTES], name[LINE_BYTES];
    lines *section = NULL;
    FILE *input = NULL;
    while (read_line(file, text)) {
        const char *const bar = strchr(text, '|');
        if (text[0] == ' ' && bar != NULL && (section != NULL || input != NULL)) {
            const char *const content = bar + (bar[1] == ' ' ? 2 : 1);
            if (section != NULL)
                append_line(section, content);
            else if (fprintf(input, "%s\n", content) < 0)
                die("cannot write", name);
            continue;
        }
        if (input != NULL && fclose(input) != 0) die("cannot write", name);
        input = NULL;
        section = NULL;
        if (text[0] == '\0' || text[0] == '#') continue;
        if (strncmp(text, "run: ", 5) == 0)
            (void)strcpy(it->command, text + 5);
        else if (strncmp(text, "exit: ", 6) == 0)
            it->exit_code = (int)strtol(text + 6, NULL, 10);
        else if (strcmp(text, "stdout:") == 0)
            section = &it->out;
        else if (strcmp(text, "stderr:") == 0)
            section = &it->err;
        else if (sscanf(text, "file %1000[^:]:", name) == 1) {
            if ((input = fopen(name, "w")) == NULL) die("cannot create", name);
        } else
            die(path, text);
    }
    if (input != NULL && fclose(input) != 0) die("cannot write", name);
    if (it->command[0] == '\0') die(path, "no run: line");
}

static int run(const char *command)
{
    char line[LINE_BYTES + 64];
    (void)snprintf(line, sizeof line, "{ %s ; } >.stdout 2>.stderr", command);
    const int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void read_output(const char *path, lines *found)
{
    char text[LINE_BYTES];
    FILE *const file = fopen(path, "r");
    if (file == NULL) die("cannot open", path);
    while (read_line(file, text)) append_line(found, text);
    (void)fclose(file);
}

static bool check_output(const char *title, const char *path, const lines *expected)
{
    lines found = {.n = 0};
    read_output(path, &found);
    const bool same = all_match(expected->line, expected->n, found.line, found.n);
    if (!same) {
        (void)printf("%s expected:\n", title);
        for (int i = 0; i < expected->n; i++) (void)printf("  | %s\n", expected->line[i]);
        (void)printf("%s found:\n", title);
        for (int i = 0; i < found.n; i++) (void)printf("  | %s\n", found.line[i]);
    }
    free_lines(&found);
    return same;
}

/* GROVE_TEST_PATH comes before PATH, so that the command finds the programs just built. */
static void set_path(void)
{
    const char *const front = getenv("GROVE_TEST_PATH"), *const rest = getenv("PATH");
    if (front == NULL || rest == NULL) die("GROVE_TEST_PATH and PATH expected", "not set");
    const size_t n = strlen(front) + strlen(rest) + 2;
    char *const path = malloc(n);
    if (path == NULL) die("out of memory", front);
    (void)snprintf(path, n, "%s:%s", front, rest);
    if (setenv("PATH", path, 1) != 0) die("cannot set", "PATH");
    free(path);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/grove-case-XXXXXX";
    test_case it = {.command = ""};
    if (argc != 2) die("one case file expected", argc > 2 ? argv[2] : "none found");
    FILE *const file = fopen(argv[1], "r");
    if (file == NULL) die("cannot open", argv[1]);
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) die("cannot enter", folder);
    read_case(argv[1], file, &it);
    (void)fclose(file);
    set_path();
    const int exit_code = run(it.command);
    bool same = check_output("stdout", ".stdout", &it.out);
    same = check_output("stderr", ".stderr", &it.err) && same;
    if (exit_code != it.exit_code)
        (void)printf("exit code %d expected, %d found\n", it.exit_code, exit_code);
    char clean[64];
    (void)snprintf(clean, sizeof clean, "rm -r %s", folder);
    if (system(clean) != 0) die("cannot remove", folder);
    free_lines(&it.out);
    free_lines(&it.err);
    return same && exit_code == it.exit_code ? 0 : 1;
}
