/* Listening sockets that the service manager has opened and passed on (systemd's socket
 * activation), so that no client is refused during a restart. A listener takes the one that has its
 * address; what is passed and cannot be listened on is refused at once, rather than left to fail
 * later. */
#include "io/tcp_passed.h"

#include "tcp_private.h"

#include "base/must.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool address_of(int fd, struct tcp_sockaddr *out_address)
{
    memset(out_address, 0,
           sizeof(*out_address)); /* the path of a UNIX socket need not end in NUL */
    out_address->n = sizeof(out_address->local);
    return getsockname(fd, &out_address->any, &out_address->n) == 0;
}

static int option(int fd, int name)
{
    int value = 0;
    socklen_t n = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, name, &value, &n) == 0 ? value : 0;
}

/* As tcp_parse_address will read it. */
static bool has_usable_path(const struct tcp_sockaddr *a)
{
    const char *path = a->local.sun_path;

    return path[0] == '/' && strnlen(path, sizeof(a->local.sun_path)) < sizeof(a->local.sun_path);
}

static const char *what_is_wrong(int fd)
{
    struct tcp_sockaddr a;

    if (!address_of(fd, &a))
        return "it is no socket";
    if (option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_ACCEPTCONN) == 0)
        return "it is no stream socket that listens";
    if (a.any.sa_family == AF_UNIX)
        return has_usable_path(&a) ? NULL : "it is a UNIX socket without an absolute path";
    if (a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6)
        return "it is neither TCP nor UNIX";
    return NULL;
}

/* What a socket of our own has from the start (tcp_listener.c). */
static bool set_up(int fd)
{
    static const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* not of a UNIX socket */
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

struct err *tcp_passed_add(struct tcp_passed *passed, int fd, enum tcp_passed_kind kind)
{
    const char *wrong = passed->count == TCP_PASSED_MOST ? "too many" : what_is_wrong(fd);

    if (wrong == NULL && !set_up(fd))
        wrong = strerror(errno);
    if (wrong != NULL) {
        close(fd);
        return ERR(ERR_UNKNOWN, "a socket that was passed cannot be listened on: %s", wrong);
    }
    passed->kinds[passed->count] = (uint8_t)kind;
    passed->fds[passed->count++] = fd;
    return NULL;
}

bool tcp_passed_has(const struct tcp_passed *passed, enum tcp_passed_kind kind)
{
    bool has = false;

    for (unsigned i = 0; i < passed->count; i++)
        has = has || passed->kinds[i] == kind;
    return has;
}

/* Takes the one at a place out. */
static int take(struct tcp_passed *passed, unsigned i)
{
    int fd = passed->fds[i];

    passed->count--;
    passed->fds[i] = passed->fds[passed->count];
    passed->kinds[i] = passed->kinds[passed->count];
    return fd;
}

void tcp_passed_close_own(struct tcp_passed *passed)
{
    for (unsigned i = passed->count; i-- > 0;)
        if (passed->kinds[i] != TCP_PASSED_BY_OTHERS)
            close(take(passed, i));
}

enum { TEXT_BYTES = sizeof(((struct tcp_address *)NULL)->text) };

static void describe(const struct tcp_sockaddr *a, char out_text[TEXT_BYTES])
{
    char ip[INET6_ADDRSTRLEN];

    if (a->any.sa_family == AF_UNIX) {
        snprintf(out_text, TEXT_BYTES, "unix:%s", a->local.sun_path);
    } else if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, ip, sizeof(ip));
        snprintf(out_text, TEXT_BYTES, "%s:%u", ip, tcp_sockaddr_port(a));
    } else {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
        snprintf(out_text, TEXT_BYTES, "[%s]:%u", ip, tcp_sockaddr_port(a));
    }
}

bool tcp_passed_any(const struct tcp_passed *passed, struct tcp_address *out_address)
{
    struct tcp_sockaddr a;
    char text[TEXT_BYTES];

    if (passed->count == 0 || !address_of(passed->fds[0], &a))
        return false;
    describe(&a, text);
    MUST(tcp_parse_address(span_str(text), out_address) == NULL);
    return true;
}

/* `wanted` without a port is any of its address that the kernel chose a port for. */
static bool is_wanted(struct tcp_sockaddr a, enum tcp_passed_kind kind,
                      const struct tcp_sockaddr *wanted)
{
    char text[TEXT_BYTES], wanted_text[TEXT_BYTES];

    if (kind == TCP_PASSED_OWN_ANY_PORT && tcp_sockaddr_port(wanted) == 0)
        tcp_sockaddr_set_port(&a, 0);
    describe(&a, text);
    describe(wanted, wanted_text);
    return strcmp(text, wanted_text) == 0;
}

int tcp_passed_take(struct tcp_passed *passed, const struct tcp_sockaddr *address,
                    enum tcp_passed_kind *out_kind)
{
    struct tcp_sockaddr a;

    for (unsigned i = 0; i < passed->count; i++) {
        if (!address_of(passed->fds[i], &a) || !is_wanted(a, passed->kinds[i], address))
            continue;
        *out_kind = passed->kinds[i];
        return take(passed, i);
    }
    return -1;
}

void tcp_passed_done(struct tcp_passed *passed)
{
    while (passed->count > 0)
        close(passed->fds[--passed->count]);
}
