/* Listen addresses: from their text to what bind takes. The forms are told apart by how they begin
 * (`unix:`, a bracket), and names are not resolved, except localhost, which is two addresses. Each
 * error says what is wrong, for the person who wrote the configuration. */
#include "tcp_private.h"

#include "base/must.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES_MOST (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)
#define SHOWN_BYTES_MOST 200u /* of an address, in messages */
#define LOCALHOST "localhost"

static struct err *bad(struct span text, const char *what)
{
    return ERR(ERR_UNKNOWN, "listen address '%.*s' %s", (int)MIN(text.n, SHOWN_BYTES_MOST), text.p,
               what);
}

static struct err *parse_path(struct span text, struct span path, struct tcp_address *a)
{
    if (path.n == 0)
        return bad(text, "lacks the path of the UNIX socket");
    if (path.n > PATH_BYTES_MOST)
        return bad(text, "is too long: the path of a UNIX socket has at most 107 bytes");
    a->is_unix = true;
    memcpy(a->host, path.p, path.n);
    snprintf(a->text, sizeof(a->text), "unix:%s", a->host);
    return NULL;
}

static bool parse_ip(int family, struct span host, struct tcp_address *a)
{
    bool is_v6 = span_find_char(host, ':', 0) < host.n;
    struct in6_addr ip;

    if (is_v6 != (family == AF_INET6) || !ip_parse(host, &ip))
        return false;
    inet_ntop(family, is_v6 ? ip.s6_addr : ip.s6_addr + IP_V4_AT, a->host, sizeof(a->host));
    a->is_loopback = is_v6 ? IN6_IS_ADDR_LOOPBACK(&ip) : ip.s6_addr[IP_V4_AT] == IN_LOOPBACKNET;
    return true;
}

/* `host:port` and `[v6]:port`, told apart by the bracket. */
static const char *split_port(struct span text, struct span *out_host, struct span *out_port)
{
    bool bracket = span_starts(text, SPAN("["));
    size_t from = bracket ? 1 : 0;
    size_t to = span_find_char(text, bracket ? ']' : ':', 0);
    size_t colon = bracket ? to + 1 : to;

    if (bracket && to == text.n)
        return "lacks a closing bracket";
    if (colon >= text.n || text.p[colon] != ':')
        return "lacks a port: HOST:PORT";
    *out_host = span_sub(text, from, to);
    *out_port = span_sub(text, colon + 1, text.n);
    if (!bracket && span_find_char(*out_port, ':', 0) < out_port->n)
        return "lacks brackets around its IPv6 address: [ADDRESS]:PORT";
    return NULL;
}

static const char *parse_host(struct span text, struct span host, struct tcp_address *a)
{
    if (text.p[0] == '[')
        return parse_ip(AF_INET6, host, a) ? NULL : "has something else than IPv6 in its brackets";
    if (span_ieq(host, SPAN(LOCALHOST))) {
        memcpy(a->host, LOCALHOST, sizeof(LOCALHOST));
        a->is_loopback = true;
        return NULL;
    }
    return parse_ip(AF_INET, host, a) ? NULL
                                      : "has a host that is neither an IP address nor localhost";
}

static struct err *parse_host_port(struct span text, struct tcp_address *a)
{
    struct span host, port;
    uint64_t number;
    const char *wrong = split_port(text, &host, &port);

    if (wrong == NULL)
        wrong = parse_host(text, host, a);
    if (wrong != NULL)
        return bad(text, wrong);
    if (!span_to_u64(port, &number) || number > UINT16_MAX)
        return bad(text, "has no port from 0 to 65535 after its colon");
    a->port = (uint16_t)number;
    snprintf(a->text, sizeof(a->text), text.p[0] == '[' ? "[%s]:%u" : "%s:%u", a->host,
             (unsigned)a->port);
    return NULL;
}

struct err *tcp_parse_address(struct span text, struct tcp_address *out_address)
{
    static const struct span scheme = SPAN_INIT("unix:");
    struct tcp_address a = {0};

    if (span_find_char(text, '\0', 0) < text.n)
        return bad(text, "is followed by a NUL byte");
    if (span_starts(text, scheme))
        TRY(parse_path(text, span_sub(text, scheme.n, text.n), &a));
    else
        TRY(parse_host_port(text, &a));
    *out_address = a;
    return NULL;
}

static struct tcp_sockaddr local_sockaddr(const char *path)
{
    struct tcp_sockaddr a = {.local.sun_family = AF_UNIX, .n = sizeof(a.local)};

    MUST(strlen(path) <= PATH_BYTES_MOST);
    memcpy(a.local.sun_path, path, strlen(path) + 1);
    return a;
}

static struct tcp_sockaddr ip_sockaddr(const char *host, uint16_t port)
{
    struct tcp_sockaddr a = {0};
    struct in6_addr ip;

    MUST(ip_parse(span_str(host), &ip));
    if (strchr(host, ':') != NULL) {
        a.n = sizeof(a.v6);
        a.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = ip};
    } else {
        a.n = sizeof(a.v4);
        a.v4.sin_family = AF_INET;
        memcpy(&a.v4.sin_addr, ip.s6_addr + IP_V4_AT, IP_V4_BYTES);
    }
    tcp_sockaddr_set_port(&a, port);
    return a;
}

unsigned tcp_sockaddrs(const struct tcp_address *address,
                       struct tcp_sockaddr out_addresses[TCP_SOCKETS_MOST])
{
    if (address->is_unix) {
        out_addresses[0] = local_sockaddr(address->host);
        return 1;
    }
    if (strcmp(address->host, LOCALHOST) != 0) {
        out_addresses[0] = ip_sockaddr(address->host, address->port);
        return 1;
    }
    out_addresses[0] = ip_sockaddr("127.0.0.1", address->port);
    out_addresses[1] = ip_sockaddr("::1", address->port);
    return 2;
}

uint16_t tcp_sockaddr_port(const struct tcp_sockaddr *address)
{
    in_port_t port = address->any.sa_family == AF_INET    ? address->v4.sin_port
                     : address->any.sa_family == AF_INET6 ? address->v6.sin6_port
                                                          : 0;

    return ntohs(port);
}

void tcp_sockaddr_set_port(struct tcp_sockaddr *address, uint16_t port)
{
    if (address->any.sa_family == AF_INET)
        address->v4.sin_port = htons(port);
    else if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = htons(port);
}
