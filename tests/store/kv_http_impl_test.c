/* HTTP stores: a store read by regions from nginx, with the bytes on the wire counted; and all that a server can do wrong. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "http_servers.h"
#include "store/kv.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static char address[256];
static grv_store_params quick; /* gives up soon */

static const char *address_of(int port, const char *path)
{
    (void)snprintf(address, sizeof address, "http://127.0.0.1:%d%s", port, path);
    return address;
}

static grv_store *open_store(const char *location, int n_threads)
{
    grv_store *store = NULL;
    grv_store_params params = quick;
    params.n_threads = n_threads;
    if (n_threads == 1) params.n_io = 0; /* one connection */
    assert_ok(grv_store_open(location, &params, &store));
    return store;
}

/* ---- nginx ---- */

static nginx server;

static int start_server(void **state)
{
    if (make_folder(state) != 0) return 1;
    assert_int_equal(mkdir(in_folder("www"), 0755), 0);
    (void)start_nginx(&server, in_folder("www"));
    return 0;
}

static int stop_server(void **state)
{
    stop_nginx(&server);
    return remove_folder(state);
}

static void skip_without_server(void)
{
    if (server.pid == 0) skip();
}

enum { ROWS = 256, COLUMNS = 256 };
static float values[ROWS * COLUMNS];

/* A group with an array in raw chunks and one in raw shards; names that must be encoded. */
static void write_store(const char *name)
{
    static const int64_t shape[] = {ROWS, COLUMNS}, chunk[] = {64, COLUMNS}, inner[] = {16, 64},
                         zero[] = {0, 0};
    grv_store *store = open_writable(in_folder(name), 1);
    assert_ok(grv_group_create(store, "", "{\"title\":\"served\"}"));
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (float)i;
    for (int sharded = 0; sharded < 2; sharded++) {
        grv_array_desc desc = desc_of(GRV_STORE_F32, 2, shape, chunk, sharded ? inner : NULL);
        grv_array *array = NULL;
        desc.compressor = GRV_COMPRESSOR_NONE;
        assert_ok(grv_array_create(store, sharded ? "sh#rds 100%" : "chunks", &desc, &array));
        assert_ok(grv_array_write(array, zero, shape, values, NULL));
        grv_array_close(&array);
    }
    grv_store_close(&store);
}

static void check_region(grv_array *array, int64_t row, int64_t column, int64_t n_rows,
                         int64_t n_columns)
{
    static float part[ROWS * COLUMNS];
    const int64_t start[] = {row, column}, count[] = {n_rows, n_columns};
    memset(part, 0, sizeof part);
    assert_ok(grv_array_read(array, start, count, part, NULL));
    for (int64_t i = 0; i < n_rows; i++)
        assert_memory_equal(part + i * n_columns, values + (row + i) * COLUMNS + column,
                            (size_t)n_columns * sizeof part[0]);
}

static void test_regions(void **state)
{
    (void)state;
    skip_without_server();
    write_store("www/field.zarr");
    grv_store *store = open_store(address_of(server.port, "/field.zarr/"), 1);
    grv_array *array = NULL;
    char *attributes = NULL;
    assert_ok(grv_attributes_get(store, "", &attributes));
    assert_non_null(strstr(attributes, "served"));
    grv_free(attributes);
    assert_int_equal(grv_store_counters_get(store).requests, 1); /* a document takes one */
    assert_ok(grv_array_open(store, "sh#rds 100%", &array));
    check_region(array, 0, 0, ROWS, COLUMNS);
    /* one inner chunk of 4 KiB out of a shard of 64 KiB whose index is known by now */
    nginx_log before = read_nginx_log();
    grv_store_counters seen = grv_store_counters_get(store);
    check_region(array, 64 + 16, 64, 16, 64);
    nginx_log after = read_nginx_log();
    grv_store_counters now = grv_store_counters_get(store);
    assert_int_equal(now.bytes_read - seen.bytes_read, 4096);
    assert_in_range(after.n_bytes - before.n_bytes, 4096, 4096 + 1);
    assert_int_equal(after.n_answers - before.n_answers, now.requests - seen.requests);
    assert_in_range(now.requests - seen.requests, 1, 2);
    assert_int_equal(after.n_connections, 1); /* which stays open */
    grv_array_close(&array);
    assert_ok(grv_array_open(store, "chunks", &array));
    before = read_nginx_log();
    check_region(array, 100, 3, 10, 200); /* of one chunk of 64 KiB */
    after = read_nginx_log();
    assert_in_range(after.n_bytes - before.n_bytes, 10 * 200 * 4, 65536 + 1);
    grv_array_close(&array);
    assert_int_equal(grv_store_counters_get(store).retries, 0);
    grv_store_close(&store);
}

static void test_threads(void **state)
{
    (void)state;
    skip_without_server();
    write_store("www/threads.zarr");
    grv_store *store = open_store(address_of(server.port, "/threads.zarr"), 4);
    for (int sharded = 0; sharded < 2; sharded++) {
        grv_array *array = NULL;
        assert_ok(grv_array_open(store, sharded ? "sh#rds 100%" : "chunks", &array));
        for (int i = 0; i < 5; i++) check_region(array, i, 2 * i, 200, 200);
        grv_array_close(&array);
    }
    grv_store_close(&store);
}

static void test_absent(void **state)
{
    (void)state;
    skip_without_server();
    grv_node_kind kind = GRV_NODE_GROUP;
    grv_array *array = NULL;
    grv_store_child *children = NULL;
    char *data = NULL;
    int64_t n = 0;
    grv_store *store = open_store(address_of(server.port, "/nothing"), 1);
    assert_ok(grv_store_node(store, "", &kind));
    assert_int_equal(kind, GRV_NODE_NONE);
    assert_fails(grv_array_open(store, "a", &array), GRV_E_NOT_FOUND, "'a'");
    grv_store_close(&store);
    store = open_store(address_of(server.port, ""), 1);
    assert_fails(grv_store_get(store, "private/x", 100, &data, &n), GRV_E_IO,
                 "HTTP 403, not allowed (S3-like");
    write_file(in_folder("www/empty"), "", 0);
    assert_ok(grv_store_get(store, "empty", 100, &data, &n));
    assert_non_null(data);
    assert_int_equal(n, 0);
    grv_free(data);
    write_file(in_folder("www/\xc3\xbc +&?%41;="), "odd", 3); /* each byte of it arrives */
    assert_ok(grv_store_get(store, "\xc3\xbc +&?%41;=", 100, &data, &n));
    assert_non_null(data);
    assert_string_equal(data, "odd");
    grv_free(data);
    assert_fails(grv_store_get(store, "empty/../empty", 100, &data, &n), GRV_E_ARG, "dots");
    grv_store_close(&store);
    write_store("www/listed.zarr");
    store = open_store(address_of(server.port, "/listed.zarr"), 1);
    assert_fails(grv_store_list(store, "", &children, &n), GRV_E_UNSUPPORTED, "HTTP has no lists");
    grv_store_close(&store);
    grv_store_params params = quick;
    params.writable = true;
    assert_fails(grv_store_open(address, &params, &store), GRV_E_UNSUPPORTED,
                 "an HTTP server can be read only, not written");
}

/* An object that is replaced, or removed, between opening and reading is an error, never a mixture. */
static void test_replaced(void **state)
{
    char part[10];
    grvi_kv *kv = NULL;
    grvi_object object;
    bool found = false;
    (void)state;
    skip_without_server();
    for (int i = 0; i < 3; i++) {
        write_file(in_folder("www/object"), "0123456789", 10);
        assert_ok(grvi_kv_create(address_of(server.port, ""), &quick, &kv));
        assert_ok(kv->class->open_object(kv, "object", &object, &found));
        assert_true(found && object.n_bytes == 10);
        assert_ok(kv->class->read_object(kv, &object, "object", 2, 5, part));
        assert_memory_equal(part, "23456", 5);
        const uint64_t version = object.identity[1];
        if (i == 0) write_file(in_folder("www/object"), "abcdefghijkl", 12);
        if (i == 1) { /* of the same size, at another time */
            const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
            write_file(in_folder("www/object"), "abcdefghij", 10);
            assert_int_equal(utimensat(AT_FDCWD, in_folder("www/object"), times, 0), 0);
        }
        if (i == 2) assert_int_equal(unlink(in_folder("www/object")), 0);
        assert_fails(kv->class->read_object(kv, &object, "object", 2, 5, part), GRV_E_IO,
                     i < 2 ? "has changed while it was being read"
                           : "has been removed while it was being read");
        kv->class->close_object(kv, &object);
        if (i < 2) {
            assert_ok(kv->class->open_object(kv, "object", &object, &found));
            assert_true(found && object.identity[1] != version);
            kv->class->close_object(kv, &object);
        }
        grvi_kv_destroy(&kv);
    }
}

/* What is read next comes with the answer to opening: from the front, from the end, all of it. */
static void test_ahead(void **state)
{
    static const struct {
        grvi_byte_range ahead;
        int64_t offset, n; /* what costs no request then */
    } cases[] = {{{0, 4}, 0, 4},   {{-3, 3}, 7, 3},       {{2, 5}, 2, 5},
                 {{0, 10}, 0, 10}, {{0, 1 << 20}, 0, 10}, {{-99, 99}, 0, 10}};
    (void)state;
    skip_without_server();
    write_file(in_folder("www/ahead"), "0123456789", 10);
    for (size_t i = 0; i < N_OF(cases); i++) {
        char part[16];
        grvi_kv *kv = NULL;
        grvi_object object;
        bool found = false;
        assert_ok(grvi_kv_create(address_of(server.port, ""), &quick, &kv));
        assert_ok(grvi_kv_open(kv, "ahead", cases[i].ahead, &object, &found));
        assert_true(found && object.n_bytes == 10);
        assert_ok(kv->class->read_object(kv, &object, "ahead", cases[i].offset, cases[i].n, part));
        assert_memory_equal(part, "0123456789" + cases[i].offset, (size_t)cases[i].n);
        assert_int_equal(kv->requests, 1);
        for (int64_t from = 0; from < 10; from++) {
            assert_ok(kv->class->read_object(kv, &object, "ahead", from, 10 - from, part));
            assert_memory_equal(part, "0123456789" + from, (size_t)(10 - from));
        }
        assert_fails(kv->class->read_object(kv, &object, "ahead", 5, 6, part), GRV_E_IO, "of 10");
        kv->class->close_object(kv, &object);
        grvi_kv_destroy(&kv);
    }
}

/* A certificate that nobody has signed is refused, and taken once it is named as an authority. */
static void test_certificates(void **state)
{
    char *data = NULL;
    int64_t n = 0;
    char location[64];
    (void)state;
    skip_without_server();
    if (server.tls_port == 0) {
        print_message("skipped: no openssl\n");
        skip();
    }
    write_file(in_folder("www/secret"), "hidden", 6);
    (void)snprintf(location, sizeof location, "https://127.0.0.1:%d", server.tls_port);
    grv_store *store = open_store(location, 1);
    assert_fails(grv_store_get(store, "secret", 100, &data, &n), GRV_E_IO, "certificate");
    grv_store_close(&store);
    assert_int_equal(setenv("CURL_CA_BUNDLE", in_folder("certificate.pem"), 1), 0);
    store = open_store(location, 1);
    assert_int_equal(unsetenv("CURL_CA_BUNDLE"), 0);
    assert_ok(grv_store_get(store, "secret", 100, &data, &n));
    assert_string_equal(data, "hidden");
    grv_free(data);
    grv_store_close(&store);
}

/* The last of nginx: it dies, and reads end soon with one message. */
static void test_server_dies(void **state)
{
    float part[16];
    const int64_t start[] = {0, 0}, count[] = {1, 16};
    (void)state;
    skip_without_server();
    write_store("www/dying.zarr");
    grv_store *store = open_store(address_of(server.port, "/dying.zarr"), 1);
    grv_array *array = NULL;
    assert_ok(grv_array_open(store, "chunks", &array));
    assert_ok(grv_array_read(array, start, count, part, NULL));
    stop_nginx(&server);
    const double begin = grv_clock_seconds();
    assert_fails(grv_array_read(array, start, count, part, NULL), GRV_E_IO, "tried 3 times");
    assert_true(grv_clock_seconds() - begin < 3);
    assert_int_equal(grv_store_counters_get(store).retries, 2);
    grv_array_close(&array);
    grv_store_close(&store);
}

/* ---- a server that misbehaves ---- */

static bad_server bad;

static int start_bad(void **state)
{
    (void)state;
    start_bad_server(&bad);
    return 0;
}

static int stop_bad(void **state)
{
    (void)state;
    stop_bad_server(&bad);
    return 0;
}

static void good_headers(int fd, const bad_request *r)
{
    send_text(fd,
              "HTTP/1.1 206 Partial Content\r\nContent-Length: %lld\r\nContent-Range: bytes "
              "%lld-%lld/%d\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n",
              r->last - r->first + 1, r->first, r->last, BAD_BYTES);
}

static void good(int fd, const bad_request *r)
{
    good_headers(fd, r);
    send_object(fd, r->first, r->last);
}

static void status_only(int fd, int code, const char *headers)
{
    send_text(fd, "HTTP/1.1 %d X\r\n%sContent-Length: 4\r\nConnection: close\r\n\r\noops", code,
              headers);
}

static void busy(int fd, const bad_request *r)
{
    (void)r;
    status_only(fd, 503, "");
}

static void busy_twice(int fd, const bad_request *r)
{
    if (r->number < 2)
        status_only(fd, r->number == 0 ? 503 : 429, "");
    else
        good(fd, r);
}

static void asks_to_wait(int fd, const bad_request *r)
{
    if (r->number == 0)
        status_only(fd, 429, "Retry-After: 1\r\n");
    else
        good(fd, r);
}

static void asks_to_wait_for_ever(int fd, const bad_request *r)
{
    (void)r;
    status_only(fd, 503, "Retry-After: 100000000\r\n");
}

static void whole(int fd, const bad_request *r)
{
    (void)r;
    send_text(fd,
              "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n",
              BAD_BYTES);
    send_object(fd, 0, BAD_BYTES - 1);
}

static void whole_without_length(int fd, const bad_request *r)
{
    (void)r;
    send_text(fd, "HTTP/1.0 200 OK\r\n\r\n");
    send_object(fd, 0, BAD_BYTES - 1);
}

/* Opens well, then ignores ranges. */
static void whole_later(int fd, const bad_request *r)
{
    if (r->number == 0)
        good(fd, r);
    else
        whole(fd, r);
}

static void whole_and_huge(int fd, const bad_request *r)
{
    (void)r;
    send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
    send_object(fd, 0, 99);
}

static void whole_without_end(int fd, const bad_request *r)
{
    (void)r;
    send_text(fd, "HTTP/1.0 200 OK\r\n\r\n");
    for (int i = 0; i < 2000; i++) send_object(fd, 0, BAD_BYTES - 1);
}

static void cut_short(int fd, const bad_request *r)
{
    good_headers(fd, r);
    send_object(fd, r->first, r->first + (r->last - r->first + 1) / 2 - 1);
}

static void cut_short_once(int fd, const bad_request *r)
{
    if (r->number == 0)
        cut_short(fd, r);
    else
        good(fd, r);
}

static void too_long(int fd, const bad_request *r)
{
    send_text(fd, "HTTP/1.0 206 Partial Content\r\nContent-Range: bytes %lld-%lld/%d\r\n\r\n",
              r->first, r->last, BAD_BYTES);
    send_object(fd, 0, BAD_BYTES - 1);
    send_object(fd, 0, BAD_BYTES - 1);
}

static void too_short_without_length(int fd, const bad_request *r)
{
    send_text(fd, "HTTP/1.0 206 Partial Content\r\nContent-Range: bytes %lld-%lld/%d\r\n\r\n",
              r->first, r->last, BAD_BYTES);
    send_object(fd, 0, (r->last - r->first) / 2);
}

static void slow(int fd, const bad_request *r)
{
    good_headers(fd, r);
    for (int i = 0; i < 50 && !atomic_load(&bad.stops); i++) {
        const ssize_t n = send(fd, "x", 1, MSG_NOSIGNAL);
        if (n <= 0) return;
        sleep_ms(60);
    }
}

static void silent(int fd, const bad_request *r)
{
    char byte;
    struct pollfd wait = {fd, POLLIN, 0};
    (void)r;
    (void)poll(&wait, 1, 4000); /* until the other side gives up */
    (void)recv(fd, &byte, 1, 0);
}

static void wrong_range(int fd, const bad_request *r)
{
    bad_request shifted = *r;
    if (r->number > 0) shifted.first++;
    good(fd, &shifted);
}

static void no_range(int fd, const bad_request *r)
{
    send_text(fd, "HTTP/1.1 206 Partial Content\r\nContent-Length: %lld\r\n\r\n",
              r->last - r->first + 1);
    send_object(fd, r->first, r->last);
}

static void absurd_range(int fd, const bad_request *r)
{
    send_text(fd, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99999999999999999999/"
                  "99999999999999999999\r\nContent-Length: 10\r\n\r\n");
    send_object(fd, r->first, r->first + 9);
}

static void huge_range(int fd, const bad_request *r)
{
    send_text(fd, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4611686018427387903/"
                  "4611686018427387904\r\nContent-Length: 10\r\n\r\n");
    send_object(fd, r->first, r->first + 9);
}

static void garbage(int fd, const bad_request *r)
{
    (void)r;
    send_all(fd, "\0\1\2 garbage\r\n\r\n\xff\xfe", 18);
}

static void hangs_up(int fd, const bad_request *r)
{
    (void)fd;
    (void)r;
}

/* Each answer is of another version, though the request asks for one. */
static void other_versions(int fd, const bad_request *r)
{
    send_text(fd,
              "HTTP/1.1 206 Partial Content\r\nContent-Length: %lld\r\nContent-Range: bytes "
              "%lld-%lld/%d\r\nETag: \"v%lld\"\r\nConnection: close\r\n\r\n",
              r->last - r->first + 1, r->first, r->last, BAD_BYTES, r->number);
    send_object(fd, r->first, r->last);
}

static void compressed(int fd, const bad_request *r)
{
    (void)r;
    send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nabcd");
}

static void to_a_file(int fd, const bad_request *r)
{
    (void)r;
    status_only(fd, 302, "Location: file:///etc/passwd\r\n");
}

static void in_circles(int fd, const bad_request *r)
{
    (void)r;
    status_only(fd, 302, "Location: /again\r\n");
}

static void moved(int fd, const bad_request *r)
{
    if (strcmp(r->path, "/moved/there") == 0)
        good(fd, r);
    else
        status_only(fd, 307, "Location: /moved/there\r\nETag: \"of the redirection\"\r\n");
}

static void endless_error_page(int fd, const bad_request *r)
{
    (void)r;
    send_text(fd, "HTTP/1.0 400 Bad\r\n\r\n");
    for (int i = 0; i < 2000; i++) send_object(fd, 0, BAD_BYTES - 1);
}

static void unknown_caller(int fd, const bad_request *r)
{
    (void)r;
    status_only(fd, 401, "");
}

static void unsatisfiable(int fd, const bad_request *r)
{
    (void)r;
    status_only(fd, 416, "");
}

/* Opens an object of the server and reads a part of it. */
static grv_status read_part(int64_t offset, int64_t n, uint8_t *part, int64_t *n_requests)
{
    grvi_kv *kv = NULL;
    grvi_object object;
    bool found = false;
    assert_ok(grvi_kv_create(address_of(bad.port, "/store?key=1"), &quick, &kv));
    grv_status status = kv->class->open_object(kv, "object", &object, &found);
    if (status == GRV_OK) {
        assert_true(found);
        assert_int_equal(object.n_bytes, BAD_BYTES);
        status = kv->class->read_object(kv, &object, "object", offset, n, part);
        kv->class->close_object(kv, &object);
    }
    *n_requests = kv->requests;
    grvi_kv_destroy(&kv);
    return status;
}

static void test_survived(void **state)
{
    static const struct {
        bad_behaviour *behaviour;
        int64_t n_requests;
    } cases[] = {{good, 2},  {busy_twice, 4},           {asks_to_wait, 3}, {cut_short_once, 3},
                 {whole, 1}, {whole_without_length, 1}, {whole_later, 2},  {moved, 2}};
    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        uint8_t part[5000];
        int64_t n_requests = 0;
        behave(&bad, cases[i].behaviour);
        const grv_status status = read_part(1234, sizeof part, part, &n_requests);
        if (status != GRV_OK) fail_msg("case %zu: %s", i, grv_error_message());
        for (size_t k = 0; k < sizeof part; k++)
            assert_int_equal(part[k], bad_byte(1234 + (long long)k));
        if (n_requests != cases[i].n_requests)
            fail_msg("case %zu: %lld requests", i, (long long)n_requests);
    }
    /* the version that was opened is asked for, and the location's query goes with each key */
    behave(&bad, good);
    uint8_t byte = 0;
    int64_t n_requests = 0;
    assert_ok(read_part(77, 1, &byte, &n_requests));
    assert_non_null(strstr(bad.latest.text, "If-Match: \"v1\"\r\n"));
    assert_string_equal(bad.latest.path, "/store/object?key=1");
}

static void test_refused(void **state)
{
    static const struct {
        bad_behaviour *behaviour;
        const char *message;
    } cases[] = {
        {busy, "HTTP 503 (tried 3 times"},
        {asks_to_wait_for_ever, "HTTP 503 (tried 1 times"},
        {whole_and_huge, "the server ignores ranges, and the object has 1000000000000 bytes"},
        {whole_without_end, "the server ignores ranges, and the object has more than"},
        {cut_short, "(tried 3 times"},
        {too_long, "more than the 1 bytes came"},
        {slow, "Operation too slow"},
        {silent, "Operation too slow"},
        {wrong_range, "bytes 1235 to 6233 of 10000 came where 5000 from byte 1234"},
        {no_range, "without a Content-Range"},
        {absurd_range, "without a Content-Range"},
        {huge_range, "came where 1 from byte 0 were asked for"},
        {garbage, "HTTP/0.9"},
        {hangs_up, "Empty reply from server (tried 3 times"},
        {other_versions, "has changed while it was being read"},
        {compressed, "Content-Encoding 'gzip' is not supported"},
        {to_a_file, "file"},
        {in_circles, "redirects"},
        {endless_error_page, "HTTP 400 with an endless page"},
        {unknown_caller, "HTTP 401"},
        {unsatisfiable, "HTTP 416"},
    };
    const double begin = grv_clock_seconds();
    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        uint8_t part[5000];
        int64_t n_requests = 0;
        behave(&bad, cases[i].behaviour);
        const grv_status status = read_part(1234, sizeof part, part, &n_requests);
        if (status == GRV_OK || strstr(grv_error_message(), cases[i].message) == NULL)
            fail_msg("case %zu: status %d, \"%s\"; expected \"%s\"", i, (int)status,
                     grv_error_message(), cases[i].message);
    }
    assert_true(grv_clock_seconds() - begin < 12);
}

/* Bodies that end early without a length: noticed where the range tells how many bytes there must be. */
static void test_short_range(void **state)
{
    grvi_kv *kv = NULL;
    grvi_object object;
    bool found = false;
    (void)state;
    behave(&bad, too_short_without_length);
    assert_ok(grvi_kv_create(address_of(bad.port, ""), &quick, &kv));
    assert_fails(grvi_kv_open(kv, "object", (grvi_byte_range){0, 100}, &object, &found), GRV_E_IO,
                 "50 bytes came of 100 (tried 3 times");
    grvi_kv_destroy(&kv);
}

static void test_no_memory(void **state)
{
    int n_failures = 0;
    (void)state;
    behave(&bad, good);
    const int64_t held = grv_memory_get().bytes;
    for (grv_status status = GRV_E_NOMEM; status != GRV_OK; n_failures++) {
        uint8_t part[10];
        grvi_kv *kv = NULL;
        grvi_object object;
        bool found = false;
        (void)address_of(bad.port, "/store");
        grvi_alloc_fail_after(n_failures);
        status = grvi_kv_create(address, &quick, &kv);
        if (status == GRV_OK)
            status = grvi_kv_open(kv, "object", (grvi_byte_range){-9, 9}, &object, &found);
        if (status == GRV_OK) status = kv->class->read_object(kv, &object, "", 5, 10, part);
        grvi_alloc_fail_after(-1);
        if (found) kv->class->close_object(kv, &object);
        grvi_kv_destroy(&kv);
        if (status != GRV_OK) assert_int_equal(status, GRV_E_NOMEM);
        assert_int_equal(grv_memory_get().bytes, held);
    }
    assert_true(n_failures > 5);
}

static void test_locations(void **state)
{
    grv_store *store = NULL;
    (void)state;
    assert_fails(grv_store_open("http://me:secret@127.0.0.1/", NULL, &store), GRV_E_UNSUPPORTED,
                 "user's name");
    assert_null(strstr(grv_error_message(), "secret"));
    assert_fails(grv_store_open("http://127.0.0.1/x#y", NULL, &store), GRV_E_ARG, "'#'");
    assert_fails(grv_store_open("http://", NULL, &store), GRV_E_ARG, "no address");
    assert_fails(grv_store_open("http://127.0.0.1:99999/", NULL, &store), GRV_E_ARG, "no address");
    assert_fails(grv_store_open("ftp://127.0.0.1/", NULL, &store), GRV_E_NOT_FOUND,
                 "no such folder");
    grv_store_params params = quick;
    params.http_timeout_s = 0;
    assert_fails(grv_store_open("http://127.0.0.1/", &params, &store), GRV_E_ARG, "http_timeout_s");
    params = quick;
    params.http_retries = -1;
    assert_fails(grv_store_open("http://127.0.0.1/", &params, &store), GRV_E_ARG, "http_retries");
}

int main(void)
{
    const struct CMUnitTest served[] = {
        cmocka_unit_test(test_regions),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_absent),     cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_ahead),      cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_server_dies)};
    const struct CMUnitTest misserved[] = {
        cmocka_unit_test(test_survived), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_short_range), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_locations)};
    static const char *const proxies[] = {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < N_OF(proxies); i++) (void)unsetenv(proxies[i]);
    quick = grv_store_params_default();
    quick.http_retries = 2;
    quick.http_timeout_s = 2;
    const int n_failed = cmocka_run_group_tests(served, start_server, stop_server);
    quick.http_timeout_s = 1.5;
    return n_failed + cmocka_run_group_tests(misserved, start_bad, stop_bad);
}
