/* Triangles of STL and OBJ files, for tests only: no checks beyond what the test data need. */
#ifndef GRV_TEST_SURFACE_FILES_H
#define GRV_TEST_SURFACE_FILES_H

#include <stdio.h>
#include <string.h>

#include "surface_oracle.h"

static inline char *file_read(const char *path, size_t *n_bytes)
{
    char command[1200];
    const int is_packed = strlen(path) > 3 && strcmp(path + strlen(path) - 3, ".gz") == 0;
    (void)snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *const file = is_packed ? popen(command, "r") : fopen(path, "rb");
    size_t room = 1 << 16;
    char *bytes = malloc(room + 1);
    *n_bytes = 0;
    while (file != NULL) {
        const size_t n = fread(bytes + *n_bytes, 1, room - *n_bytes, file);
        *n_bytes += n;
        if (n == 0) break;
        if (*n_bytes == room) bytes = realloc(bytes, (room *= 2) + 1);
    }
    if (file != NULL) (void)(is_packed ? pclose(file) : fclose(file));
    bytes[*n_bytes] = '\0';
    return bytes;
}

static inline void surface_add_vertex(test_surface *s, const double x[3])
{
    if ((s->n_vertices & (s->n_vertices - 1)) == 0)
        s->vertices = realloc(s->vertices, (size_t)(6 * s->n_vertices + 6) * sizeof(double));
    memcpy(&s->vertices[3 * s->n_vertices++], x, 3 * sizeof(double));
}

static inline void surface_add_triangle(test_surface *s, int32_t a, int32_t b, int32_t c)
{
    if ((s->n_triangles & (s->n_triangles - 1)) == 0)
        s->triangles = realloc(s->triangles, (size_t)(6 * s->n_triangles + 6) * sizeof(int32_t));
    int32_t *const t = &s->triangles[3 * s->n_triangles++];
    t[0] = a, t[1] = b, t[2] = c;
}

static inline void surface_add_corner(test_surface *s, const double x[3])
{
    surface_add_vertex(s, x);
    const int32_t n = (int32_t)s->n_vertices;
    if (n % 3 == 0) surface_add_triangle(s, n - 3, n - 2, n - 1);
}

static inline void read_stl_binary(test_surface *s, const char *bytes, uint32_t n)
{
    for (uint32_t t = 0; t < n; t++) {
        for (int j = 0; j < 3; j++) {
            float f[3];
            memcpy(f, bytes + 84 + 50 * (size_t)t + 12 + 12 * (size_t)j, sizeof f);
            surface_add_corner(s, (const double[3]){(double)f[0], (double)f[1], (double)f[2]});
        }
    }
}

static inline void read_stl_text(test_surface *s, const char *text)
{
    for (const char *at = strstr(text, "vertex"); at != NULL; at = strstr(at + 6, "vertex")) {
        double x[3];
        if (sscanf(at + 6, "%lf %lf %lf", &x[0], &x[1], &x[2]) == 3) surface_add_corner(s, x);
    }
}

static inline void read_obj(test_surface *s, char *text)
{
    for (char *line = strtok(text, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
        double x[3];
        if (line[0] == 'v' && line[1] == ' ' &&
            sscanf(line + 2, "%lf %lf %lf", &x[0], &x[1], &x[2]) == 3)
            surface_add_vertex(s, x);
        if (line[0] != 'f' || line[1] != ' ') continue;
        int32_t first = -1, previous = -1;
        for (char *at = line + 2; *at != '\0';) {
            char *end = at;
            const long index = strtol(at, &end, 10);
            if (end == at) break;
            const long v = index < 0 ? s->n_vertices + index : index - 1;
            if (v < 0 || v >= s->n_vertices) break;
            if (first >= 0 && previous != first)
                surface_add_triangle(s, first, previous, (int32_t)v);
            previous = (int32_t)v;
            if (first < 0) first = (int32_t)v;
            while (*end != '\0' && *end != ' ' && *end != '\t') end++;
            while (*end == ' ' || *end == '\t') end++;
            at = end;
        }
    }
}

/* No triangles where the file is of another kind. */
static inline test_surface surface_read(const char *path)
{
    test_surface s = {0};
    size_t n_bytes = 0;
    char *const bytes = file_read(path, &n_bytes);
    uint32_t n = 0;
    if (n_bytes >= 84) memcpy(&n, bytes + 80, 4);
    if (n_bytes >= 84 && n_bytes == 84 + 50 * (size_t)n)
        read_stl_binary(&s, bytes, n);
    else if (strstr(path, ".obj") != NULL)
        read_obj(&s, bytes);
    else if (strstr(path, ".stl") != NULL || strstr(path, ".STL") != NULL)
        read_stl_text(&s, bytes);
    free(bytes);
    return s;
}

#endif
