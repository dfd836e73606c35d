/* What the files of `tcp` share: tcp_address.c reads addresses, tcp_listener.c listens and accepts,
 * tcp_passed.c keeps sockets that others opened, tcp.c holds the connections. */
#ifndef IO_TCP_PRIVATE_H
#define IO_TCP_PRIVATE_H

#include "io/tcp_passed.h"

#include <netinet/in.h>
#include <sys/un.h>

#define TCP_SOCKETS_MOST 2 /* of one address: localhost is two families */

struct tcp_sockaddr {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local; /* the largest */
    };
    socklen_t n;
};

/* The addresses to bind for one of tcp_parse_address. Returns how many. */
unsigned tcp_sockaddrs(const struct tcp_address *address,
                       struct tcp_sockaddr out_addresses[TCP_SOCKETS_MOST]);
/* 0 of a UNIX socket, of which none is set. */
uint16_t tcp_sockaddr_port(const struct tcp_sockaddr *address);
void tcp_sockaddr_set_port(struct tcp_sockaddr *address, uint16_t port);

/* The listening socket that has this address, the caller's from now on; -1: none was passed. Port 0
 * is that of one which the kernel chose a port for. */
int tcp_passed_take(struct tcp_passed *passed, const struct tcp_sockaddr *address,
                    enum tcp_passed_kind *out_kind);

/* A connection over an accepted socket, which is its own from now on. NULL with errno when the
 * kernel does not watch it: it is closed then. */
struct tcp_conn *tcp_conn_new(struct loop *loop, int fd, const struct tcp_sockaddr *peer);

#endif
