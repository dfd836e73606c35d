/* Listening sockets, accepted from by hand when uv_poll says so. libuv's own listener breaks the
 * contract when descriptors run out: it accepts every waiting client with a descriptor kept in
 * reserve and closes the connection without a word, or, without that reserve, calls back for ever
 * (1.44.2, uv__server_io). Here the sockets rest; clients wait in the kernel's queue meanwhile. */
#include "tcp_private.h"

#include "io/timer.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 1024
#define ACCEPTS_PER_TURN 64
#define REST_MS 100
#define COMPLAINT_MS 60000 /* from one line in the log to the next */
#define PORT_TRIES 16      /* to find one that is free in both families */

struct listening {
    uv_poll_t poll;
    int fd;
    struct tcp_listener *listener;
};

struct tcp_listener {
    struct loop *loop;
    struct tcp_address address; /* port: the one in use */
    tcp_accept_fn *on_accept;
    void *context;
    struct listening sockets[TCP_SOCKETS_MOST];
    unsigned count;
    unsigned handles; /* of libuv's, that are not closed yet */
    bool closing;
    bool is_passed;   /* then the file is not ours */
    bool is_any_port; /* the kernel chose it */
    bool is_kept;     /* copies of the sockets go on */
    struct stat file; /* of the UNIX socket */
    struct timer rest;
    uint64_t silent_until_ms; /* loop clock */
};

/* Errors of accept that belong to the one client, who is out of the queue then (accept(2)). */
static bool is_of_client(int error)
{
    static const int errors[] = {ECONNABORTED, EINTR,       EPROTO, ENETDOWN,
                                 ENOPROTOOPT,  EHOSTDOWN,   ENONET, EHOSTUNREACH,
                                 EOPNOTSUPP,   ENETUNREACH, EPERM};

    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i] == error)
            return true;
    return false;
}

static void rest(struct tcp_listener *l, int error)
{
    uint64_t now_ms = loop_now_ms(l->loop);

    for (unsigned i = 0; i < l->count; i++)
        uv_poll_stop(&l->sockets[i].poll);
    timer_start(l->loop, &l->rest, REST_MS);
    if (now_ms < l->silent_until_ms)
        return;
    l->silent_until_ms = now_ms + COMPLAINT_MS;
    log_warn("tcp", "%s: no connection accepted for %d ms: %s", l->address.text, REST_MS,
             strerror(error));
}

/* A socket that was passed may take IPv4 too; to those who look at the peer that is IPv4. */
static void unmap(struct tcp_sockaddr *peer)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    if (peer->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&peer->v6.sin6_addr))
        return;
    v4.sin_port = peer->v6.sin6_port;
    memcpy(&v4.sin_addr, &peer->v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
    peer->v4 = v4;
    peer->n = sizeof(v4);
}

/* False when the queue is empty, or the listener rests. */
static bool accept_one(struct tcp_listener *l, int listening_fd)
{
    struct tcp_sockaddr peer = {.n = sizeof(peer.local)};
    int fd = accept4(listening_fd, &peer.any, &peer.n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct tcp_conn *conn;

    if (fd >= 0) {
        unmap(&peer);
        conn = tcp_conn_new(l->loop, fd, &peer);
        if (conn != NULL)
            l->on_accept(l->context, conn);
        else
            rest(l, errno);
        return conn != NULL;
    }
    if (errno == EAGAIN)
        return false;
    if (is_of_client(errno))
        return true;
    rest(l, errno);
    return false;
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct listening *s = CONTAINER_OF(poll, struct listening, poll);
    struct tcp_listener *l = s->listener;

    (void)events;
    if (status != 0) { /* libuv polls no longer */
        rest(l, -status);
        return;
    }
    for (unsigned n = 0; n < ACCEPTS_PER_TURN && !l->closing; n++)
        if (!accept_one(l, s->fd))
            return;
}

static void start_polling(struct tcp_listener *l)
{
    for (unsigned i = 0; i < l->count; i++)
        uv_poll_start(&l->sockets[i].poll, UV_READABLE, on_acceptable);
}

static void on_rested(struct timer *timer)
{
    start_polling(CONTAINER_OF(timer, struct tcp_listener, rest));
}

/* What accept returns inherits TCP_NODELAY (Linux), which saves a system call a connection. Each
 * address means itself: `[::]` takes no IPv4. */
static bool set_options(int fd, int family)
{
    static const int on = 1;

    if (family == AF_UNIX)
        return true;
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0)
        return false;
    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

/* Nobody can connect before listen, so the mode is set in time. */
static bool bind_socket(int fd, const struct tcp_sockaddr *a)
{
    return set_options(fd, a->any.sa_family) && bind(fd, &a->any, a->n) == 0 &&
           (a->any.sa_family != AF_UNIX || chmod(a->local.sun_path, 0660) == 0);
}

/* A descriptor, or a negative errno. */
static int open_socket(const struct tcp_sockaddr *a)
{
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    if (bind_socket(fd, a))
        return fd;
    error = errno;
    close(fd);
    return -error;
}

/* A file that is no socket refuses connections as well: that one is not ours to remove. */
static bool is_stale(const struct tcp_sockaddr *a)
{
    struct stat file;
    bool refused;
    int fd;

    if (a->any.sa_family != AF_UNIX || lstat(a->local.sun_path, &file) != 0 ||
        !S_ISSOCK(file.st_mode))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    refused = connect(fd, &a->any, a->n) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int open_replacing_stale(const struct tcp_sockaddr *a)
{
    int fd = open_socket(a);

    if (fd == -EADDRINUSE && is_stale(a) && unlink(a->local.sun_path) == 0)
        fd = open_socket(a);
    return fd;
}

static uint16_t port_of(int fd)
{
    struct tcp_sockaddr a = {.n = sizeof(a.local)};

    return getsockname(fd, &a.any, &a.n) == 0 ? tcp_sockaddr_port(&a) : 0;
}

static void close_sockets(struct tcp_listener *l)
{
    while (l->count > 0)
        close(l->sockets[--l->count].fd);
}

static int take_or_open(struct tcp_listener *l, const struct tcp_sockaddr *a,
                        struct tcp_passed *passed)
{
    enum tcp_passed_kind kind;
    int fd = tcp_passed_take(passed, a, &kind);

    if (fd < 0)
        return open_replacing_stale(a);
    l->is_passed = kind == TCP_PASSED_BY_OTHERS;
    return fd;
}

/* 0, or a negative errno; then nothing is open. Where the machine has no IPv6, localhost is
 * 127.0.0.1 alone. */
static int open_sockets(struct tcp_listener *l, struct tcp_sockaddr *addresses, unsigned count,
                        struct tcp_passed *passed)
{
    for (unsigned i = 0; i < count; i++) {
        int fd;

        if (i > 0)
            tcp_sockaddr_set_port(&addresses[i], l->address.port);
        fd = take_or_open(l, &addresses[i], passed);
        if (i > 0 && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL))
            break;
        if (fd < 0) {
            close_sockets(l);
            return fd;
        }
        l->sockets[l->count++] = (struct listening){.fd = fd, .listener = l};
        l->address.port = port_of(fd);
    }
    return 0;
}

/* The port that the kernel chose for one family may be taken in the other: then another. */
static int open_address(struct tcp_listener *l, const struct tcp_address *address,
                        struct tcp_passed *passed)
{
    struct tcp_sockaddr addresses[TCP_SOCKETS_MOST];
    unsigned count = tcp_sockaddrs(address, addresses);
    unsigned tries = count > 1 && address->port == 0 ? PORT_TRIES : 1;
    int status;

    do
        status = open_sockets(l, addresses, count, passed);
    while (status == -EADDRINUSE && --tries > 0);
    if (status == 0 && address->is_unix && !l->is_passed && lstat(address->host, &l->file) != 0)
        status = -errno;
    return status;
}

static int poll_sockets(struct tcp_listener *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        int status = uv_poll_init(&l->loop->uv, &l->sockets[i].poll, l->sockets[i].fd);

        if (status != 0)
            return status;
        l->handles++;
    }
    return 0;
}

static struct err *failure(const struct tcp_address *address, int status)
{
    return ERR(ERR_UNKNOWN, "listen address '%s': %s", address->text, strerror(-status));
}

struct err *tcp_bind(struct loop *loop, const struct tcp_address *address,
                     struct tcp_passed *passed, struct tcp_listener **out_listener)
{
    struct tcp_listener *l = NEW(struct tcp_listener);
    int status;

    l->loop = loop;
    l->address = *address;
    l->is_any_port = !address->is_unix && address->port == 0;
    timer_init(&l->rest, on_rested);
    status = open_address(l, address, passed);
    if (status == 0)
        status = poll_sockets(l);
    if (status != 0) {
        tcp_listener_close(l);
        return failure(address, status);
    }
    *out_listener = l;
    return NULL;
}

struct err *tcp_listener_start(struct tcp_listener *l, tcp_accept_fn *on_accept, void *context)
{
    l->on_accept = on_accept;
    l->context = context;
    for (unsigned i = 0; i < l->count; i++)
        if (listen(l->sockets[i].fd, BACKLOG) != 0)
            return failure(&l->address, -errno);
    start_polling(l);
    return NULL;
}

uint16_t tcp_listener_port(const struct tcp_listener *l)
{
    return l->address.port;
}

struct err *tcp_passed_keep(struct tcp_passed *passed, struct tcp_listener *l)
{
    enum tcp_passed_kind kind = l->is_passed     ? TCP_PASSED_BY_OTHERS
                                : l->is_any_port ? TCP_PASSED_OWN_ANY_PORT
                                                 : TCP_PASSED_OWN;

    for (unsigned i = 0; i < l->count; i++) {
        int fd = fcntl(l->sockets[i].fd, F_DUPFD_CLOEXEC, 0);

        if (fd < 0)
            return failure(&l->address, -errno);
        TRY(tcp_passed_add(passed, fd, kind));
    }
    l->is_kept = true;
    return NULL;
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct tcp_listener *l = CONTAINER_OF(handle, struct listening, poll)->listener;

    if (--l->handles == 0)
        mem_free(l);
}

/* Only the file that this listener made: another process may have put its own there since. */
static void remove_file(const struct tcp_listener *l)
{
    struct stat now;

    if (l->address.is_unix && !l->is_passed && !l->is_kept && lstat(l->address.host, &now) == 0 &&
        now.st_dev == l->file.st_dev && now.st_ino == l->file.st_ino)
        unlink(l->address.host);
}

void tcp_listener_close(struct tcp_listener *l)
{
    unsigned handles;

    if (l == NULL)
        return;
    MUST(!l->closing);
    l->closing = true;
    timer_stop(l->loop, &l->rest);
    remove_file(l);
    handles = l->handles;
    for (unsigned i = 0; i < handles; i++)
        uv_close((uv_handle_t *)&l->sockets[i].poll, on_poll_closed);
    close_sockets(l);
    if (handles == 0)
        mem_free(l);
}
