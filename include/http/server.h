/* HTTP over sockets: listeners, connections, time limits. Each request goes through dispatch_run;
 * its answer waits in the connection until what it says is committed, and answers leave in the
 * order of requests, those of one read in one write. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "io/tcp.h"

struct fetcher;
struct rest;
struct http_server;

/* The service and its limits are borrowed and outlive the server. */
struct http_server *http_server_new(struct loop *loop, struct rest *rest);
/* Of requests that come from these, X-Forwarded-For says whose they are. Borrowed. */
void http_server_trust(struct http_server *s, const struct ip_ranges *proxies);
/* Connections that the fetcher has made are no proxy's, whatever their address. Borrowed. */
void http_server_distrust(struct http_server *s, const struct fetcher *own);
/* Takes the address; see tcp_bind. The port is the one in use, also where the kernel chose it; 0
 * for a UNIX socket. */
struct err *http_server_bind(struct http_server *s, const struct tcp_address *address,
                             struct tcp_passed *passed, uint16_t *out_port) MUST_USE;
/* Listens on every address that was taken, once; errors of tcp_listener_start. */
struct err *http_server_start(struct http_server *s) MUST_USE;
/* Keeps copies of its listening sockets, so that clients wait instead of being refused once it
 * drains, and who is connected then has a second for a request that may be on its way. ERR_UNKNOWN;
 * those that were kept stay. */
struct err *http_server_keep(struct http_server *s, struct tcp_passed *kept) MUST_USE;
/* Stops accepting, closes idle connections, lets answers that are owed leave, with
 * `Connection: close`. on_drained runs once, when the last connection is gone; never from here. */
void http_server_drain(struct http_server *s, void (*on_drained)(void *context), void *context);
/* Closes what is left at once. The loop must run until the sockets are closed: on_closed then
 * fires, once; the server is gone by then. */
void http_server_close(struct http_server *s, void (*on_closed)(void *context), void *context);

#endif
