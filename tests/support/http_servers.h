/* Servers for the tests of HTTP stores, all on the loopback interface: Debian's nginx, and one that misbehaves as told. */
#ifndef GRVI_TEST_HTTP_SERVERS_H
#define GRVI_TEST_HTTP_SERVERS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store_support.h"

static inline void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

static inline struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A socket that listens on a free port. */
static inline int listen_anywhere(int *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t n = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* ---- nginx ---- */

typedef struct nginx {
    pid_t pid;
    int port, tls_port; /* tls_port: 0 without certificate */
} nginx;

static inline const char *nginx_program(void)
{
    static const char *const places[] = {"/usr/sbin/nginx", "/usr/bin/nginx", "/sbin/nginx"};
    for (int i = 0; i < 3; i++) {
        if (access(places[i], X_OK) == 0) return places[i];
    }
    return NULL;
}

static inline pid_t start_program(const char *const *words)
{
    const pid_t pid = fork();
    if (pid != 0) return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
    const int nowhere = open("/dev/null", O_RDWR);
    (void)dup2(nowhere, 0);
    (void)dup2(nowhere, 1);
    (void)dup2(nowhere, 2);
    (void)execvp(words[0], (char *const *)(uintptr_t)words);
    _exit(127);
}

/* A certificate for 127.0.0.1 that no one has signed; false without the program openssl. */
static inline bool make_certificate(const char *key, const char *certificate)
{
    const char *const words[] = {
        "openssl", "req", "-x509", "-newkey",        "rsa:2048", "-nodes",
        "-days",   "2",   "-subj", "/CN=grove test", "-addext",  "subjectAltName=IP:127.0.0.1",
        "-keyout", key,   "-out",  certificate,      NULL};
    int status = 0;
    const pid_t pid = start_program(words);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static inline void write_nginx_configuration(const nginx *server, const char *root)
{
    char tls[2048] = "";
    FILE *const file = fopen(in_folder("nginx.conf"), "w");
    assert_non_null(file);
    if (server->tls_port != 0)
        (void)snprintf(tls, sizeof tls,
                       "listen 127.0.0.1:%d ssl; ssl_certificate %s/certificate.pem; "
                       "ssl_certificate_key %s/key.pem;",
                       server->tls_port, test_folder, test_folder);
    (void)fprintf(file,
                  "daemon off; master_process off; pid nginx.pid; error_log error.log;\n"
                  "events { worker_connections 64; }\n"
                  "http { client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; "
                  "uwsgi_temp_path t4; scgi_temp_path t5;\n"
                  "log_format short '$status $body_bytes_sent $connection $uri'; access_log "
                  "access.log short;\n"
                  "server { listen 127.0.0.1:%d; %s root %s; location /private { deny all; } } }\n",
                  server->port, tls, root);
    assert_int_equal(fclose(file), 0);
}

static inline bool is_answering(int port)
{
    const struct sockaddr_in address = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const bool good = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd);
    return good;
}

static inline void stop_nginx(nginx *server)
{
    if (server->pid <= 0) return;
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

/* Starts nginx, serving a folder. False with a message if it is not there. */
static inline bool start_nginx(nginx *server, const char *root)
{
    char prefix[512];
    const char *const program = nginx_program();
    *server = (nginx){0};
    if (program == NULL) {
        print_message("skipped: no nginx\n");
        return false;
    }
    const bool tls = make_certificate(in_folder("key.pem"), in_folder("certificate.pem"));
    (void)snprintf(prefix, sizeof prefix, "%s/", test_folder);
    const char *const words[] = {program, "-p", prefix, "-c", "nginx.conf", NULL};
    for (int i = 0; i < 3; i++) { /* another may take the port meanwhile */
        const int fd = listen_anywhere(&server->port);
        const int tls_fd = tls ? listen_anywhere(&server->tls_port) : -1;
        (void)close(fd);
        if (tls) (void)close(tls_fd);
        write_nginx_configuration(server, root);
        server->pid = start_program(words);
        for (int k = 0; k < 300 && waitpid(server->pid, NULL, WNOHANG) == 0; k++) {
            if (is_answering(server->port)) return true;
            sleep_ms(10);
        }
        stop_nginx(server);
    }
    print_message("skipped: nginx does not start\n");
    return false;
}

/* What nginx has logged: answers, bytes of their bodies, connections that were used. */
typedef struct nginx_log {
    int n_answers, n_connections;
    long long n_bytes;
} nginx_log;

static inline nginx_log read_nginx_log_now(void)
{
    nginx_log log = {0};
    int status = 0;
    long long n_bytes = 0, connection = 0, last = -1;
    char uri[512];
    FILE *const file = fopen(in_folder("access.log"), "r");
    assert_non_null(file);
    while (fscanf(file, "%d %lld %lld %511[^\n]", &status, &n_bytes, &connection, uri) == 4) {
        log.n_answers++;
        log.n_bytes += n_bytes;
        log.n_connections += connection != last;
        last = connection;
    }
    assert_int_equal(fclose(file), 0);
    return log;
}

/* A client may have an answer before its line is in the log: the log when nothing has been added for a while. */
static inline nginx_log read_nginx_log(void)
{
    nginx_log last, log = read_nginx_log_now();
    do {
        last = log;
        sleep_ms(20);
        log = read_nginx_log_now();
    } while (log.n_answers != last.n_answers);
    return log;
}

/* ---- the server that misbehaves ---- */

typedef struct bad_request {
    char text[2048];
    char path[256];
    long long first, last; /* of the range asked for; last is cut at the object's end */
    long long number;      /* of the request since the behaviour was set */
} bad_request;

/* Answers one request on a connection, which is closed afterwards. */
typedef void bad_behaviour(int fd, const bad_request *request);

enum { BAD_BYTES = 10000 };

typedef struct bad_server {
    int fd, port;
    pthread_t thread;
    _Atomic bool stops;
    _Atomic(bad_behaviour *) behaviour;
    _Atomic long long n_requests;
    bad_request latest; /* read it when no request is under way */
} bad_server;

static inline uint8_t bad_byte(long long i)
{
    return (uint8_t)(i * 7 + i / 256);
}

static inline void send_all(int fd, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t k = send(fd, (const char *)data + done, n - done, MSG_NOSIGNAL);
        if (k <= 0) return;
        done += (size_t)k;
    }
}

__attribute__((format(printf, 2, 3))) static inline void send_text(int fd, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    send_all(fd, text, (size_t)n);
}

static inline void send_object(int fd, long long first, long long last)
{
    uint8_t bytes[BAD_BYTES];
    for (long long i = first; i <= last; i++) bytes[i - first] = bad_byte(i);
    send_all(fd, bytes, (size_t)(last - first + 1));
}

static inline bool read_request(int fd, bad_request *request)
{
    size_t n = 0;
    *request = (bad_request){.first = 0, .last = BAD_BYTES - 1};
    while (strstr(request->text, "\r\n\r\n") == NULL) {
        struct pollfd wait = {fd, POLLIN, 0};
        if (n + 1 == sizeof request->text || poll(&wait, 1, 2000) <= 0) return false;
        const ssize_t k = recv(fd, request->text + n, sizeof request->text - 1 - n, 0);
        if (k <= 0) return false;
        n += (size_t)k;
    }
    const char *const range = strstr(request->text, "Range: bytes=");
    if (range != NULL && sscanf(range + 13, "%lld-%lld", &request->first, &request->last) == 1 &&
        request->first < 0) { /* the last bytes */
        request->first += BAD_BYTES;
        request->last = BAD_BYTES - 1;
    }
    if (request->last >= BAD_BYTES) request->last = BAD_BYTES - 1;
    return sscanf(request->text, "GET %255s", request->path) == 1;
}

static inline void *serve_badly(void *argument)
{
    bad_server *const server = argument;
    while (!atomic_load(&server->stops)) {
        struct pollfd wait = {server->fd, POLLIN, 0};
        if (poll(&wait, 1, 20) <= 0) continue;
        const int fd = accept(server->fd, NULL, NULL);
        if (fd >= 0 && read_request(fd, &server->latest)) {
            server->latest.number = atomic_fetch_add(&server->n_requests, 1);
            atomic_load (&server->behaviour)(fd, &server->latest);
        }
        if (fd >= 0) (void)close(fd);
    }
    return NULL;
}

static inline void start_bad_server(bad_server *server)
{
    *server = (bad_server){0};
    server->fd = listen_anywhere(&server->port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve_badly, server), 0);
}

static inline void behave(bad_server *server, bad_behaviour *behaviour)
{
    atomic_store(&server->behaviour, behaviour);
    atomic_store(&server->n_requests, 0);
}

static inline void stop_bad_server(bad_server *server)
{
    atomic_store(&server->stops, true);
    (void)pthread_join(server->thread, NULL);
    (void)close(server->fd);
}

#endif
