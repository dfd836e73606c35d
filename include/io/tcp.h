/* Stream sockets, TCP and UNIX: listeners, and connections that are read through one shared buffer
 * and written without copying where the kernel takes all at once. Not for outgoing HTTP (see
 * fetch). */
#ifndef IO_TCP_H
#define IO_TCP_H

#include "io/ip.h"
#include "io/loop.h"

struct tcp_listener;
struct tcp_conn;
struct tcp_passed;

/* `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` (both families), `unix:PATH`. Each means itself:
 * `[::]` takes no IPv4. */
struct tcp_address {
    char text[160]; /* as given, normalised */
    bool is_unix;
    bool is_loopback; /* not set for a UNIX socket */
    bool is_proxied;  /* for who listens: each connection begins with the PROXY protocol */
    char host[128];   /* or the path */
    uint16_t port;    /* 0: the kernel chooses */
};

/* Error ERR_UNKNOWN with a message that names the address and what is wrong with it. */
struct err *tcp_parse_address(struct span text, struct tcp_address *out_address) MUST_USE;

/* Called with a connection that is accepted, not yet read. The callee owns it and must call
 * tcp_start or tcp_close. */
typedef void tcp_accept_fn(void *context, struct tcp_conn *conn);

/* Takes the address, which may need rights that the process gives up next; clients are refused
 * until tcp_listener_start. SO_REUSEADDR, TCP_NODELAY on what is accepted; a stale UNIX socket file
 * is replaced when nobody answers on it, its mode is 0660, and it is removed by tcp_listener_close.
 * A socket among `passed` that has the address is used instead of a new one, and its file left.
 * localhost with port 0 has the same port in both families; without IPv6 it is 127.0.0.1 alone.
 * ERR_UNKNOWN names the address and the reason. */
struct err *tcp_bind(struct loop *loop, const struct tcp_address *address,
                     struct tcp_passed *passed, struct tcp_listener **out_listener) MUST_USE;
/* Listens, once; backlog 1024. When accept fails for want of descriptors the listener rests 100 ms,
 * logs once a minute, and goes on; it never spins, and clients wait in the kernel's queue
 * meanwhile. Errors as tcp_bind: another process may have listened first. The listener stays the
 * caller's to close. */
struct err *tcp_listener_start(struct tcp_listener *l, tcp_accept_fn *on_accept,
                               void *context) MUST_USE;
/* The port in use, when the kernel chose it; 0 for a UNIX socket. */
uint16_t tcp_listener_port(const struct tcp_listener *l);
/* Stops accepting at once; frees when the loop has closed the handle. NULL is allowed. */
void tcp_listener_close(struct tcp_listener *l);

/* Why a connection ended: a table for the log and the counters. */
#define TCP_CLOSE_REASONS(X)                                                                       \
    X(TCP_CLOSE_NONE, "none")                                                                      \
    X(TCP_CLOSE_PEER, "closed by the client")                                                      \
    X(TCP_CLOSE_RESET, "reset by the client")                                                      \
    X(TCP_CLOSE_DONE, "answered, connection: close")                                               \
    X(TCP_CLOSE_BAD_REQUEST, "bad request")                                                        \
    X(TCP_CLOSE_HEADER_TIME, "request head took too long")                                         \
    X(TCP_CLOSE_BODY_TIME, "request body took too long")                                           \
    X(TCP_CLOSE_BODY_RATE, "request body came too slowly")                                         \
    X(TCP_CLOSE_IDLE, "idle")                                                                      \
    X(TCP_CLOSE_MADE_ROOM, "idle when the limit was reached")                                      \
    X(TCP_CLOSE_UNFINISHED, "request unfinished when the limit was reached")                       \
    X(TCP_CLOSE_NOT_READ, "client does not read its answers")                                      \
    X(TCP_CLOSE_STREAM, "stream ended")                                                            \
    X(TCP_CLOSE_CUT_OFF, "answer cannot be finished")                                              \
    X(TCP_CLOSE_TOO_MANY, "too many connections")                                                  \
    X(TCP_CLOSE_BAD_PROXY, "no PROXY header")                                                      \
    X(TCP_CLOSE_SHUTDOWN, "server is shutting down")                                               \
    X(TCP_CLOSE_ERROR, "socket error")

enum tcp_close_reason { TCP_CLOSE_REASONS(AS_SYMBOL) TCP_CLOSE_REASON_COUNT };
const char *tcp_close_reason_text(enum tcp_close_reason reason);

struct tcp_callbacks {
    /* Bytes arrived; they are valid during the call only. */
    void (*on_read)(void *context, struct span bytes);
    /* The peer sends no more (half close). Answers owed may still be written. */
    void (*on_end)(void *context);
    /* Everything written has been taken by the kernel, after tcp_pending was above zero. */
    void (*on_drain)(void *context);
    /* The last call, exactly once; `conn` is gone afterwards. Never from inside tcp_close. */
    void (*on_close)(void *context, enum tcp_close_reason reason);
};

/* Begins reading. `callbacks` are borrowed until on_close: a static table. Called again, also from
 * on_read, others take their place. */
void tcp_start(struct tcp_conn *conn, const struct tcp_callbacks *callbacks, void *context);
/* Back-pressure: no on_read until resumed. */
void tcp_pause(struct tcp_conn *conn);
void tcp_resume(struct tcp_conn *conn);
/* Sends now what the kernel takes; the rest is copied and sent when it can. Errors of the socket
 * arrive as on_close. After tcp_finish or tcp_close nothing is sent. */
void tcp_write(struct tcp_conn *conn, struct span bytes);
/* The same with what is in two places, as one. */
void tcp_write_two(struct tcp_conn *conn, struct span first, struct span second);
/* Bytes that the kernel has not taken yet. */
size_t tcp_pending(const struct tcp_conn *conn);
/* Closes after what is pending has been sent: half-closes, reads and drops for up to 1 s so that
 * the client gets the answer rather than a reset (RFC 9112 section 9.6), then closes. Only on_close
 * follows. How long to wait for a client that does not read is the owner's to say: tcp_close. */
void tcp_finish(struct tcp_conn *conn, enum tcp_close_reason reason);
/* Closes now. The first reason counts, but that of tcp_finish only once all has been sent. */
void tcp_close(struct tcp_conn *conn, enum tcp_close_reason reason);
/* The peer's address as text ("127.0.0.1", "::1", "unix"), valid as long as conn. */
const char *tcp_peer(const struct tcp_conn *conn);
/* The same as an address; false for a UNIX socket. */
bool tcp_peer_ip(const struct tcp_conn *conn, struct in6_addr *out_ip);
/* Both ends of the connection itself, whatever tcp_set_peer said; false for a UNIX socket. */
bool tcp_ends(const struct tcp_conn *conn, struct ip_ends *out_ends);
/* The peer is a proxy, which says that it is there for this address: tcp_peer from now on. */
void tcp_set_peer(struct tcp_conn *conn, const struct in6_addr *ip);

#endif
