/* One client connection: bytes to requests, answers in their order. Private to the floor. */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include "base/heap.h"
#include "http/server.h"
#include "rest/response.h"

struct client;
struct limits;
struct metrics;

/* As many as have an answer under way on a busy day; each holds a few KiB at most. */
enum { HTTP_SPARE_OUTPUTS = 64 };

/* What the connections of a server share. Parsers and output buffers are lent to those that have a
 * request under way: ten thousand that have none cost little, and a busy few allocate nothing. */
struct http_server {
    struct loop *loop;
    struct rest *rest;
    const struct limits *limits; /* the rest's */
    struct metrics *metrics;     /* likewise */
    struct list listeners;       /* struct http_listener */
    struct list conns;           /* struct conn */
    struct list proxied;         /* struct proxied */
    struct list idle;            /* struct conn that have nothing under way, longest first */
    struct heap incoming;     /* struct conn whose request has not come whole, most bytes first */
    struct list unread;       /* struct conn that have not taken their answers, longest first */
    struct response response; /* requests are evaluated one at a time */
    struct arena passed_on;   /* who asks, of a request that another node passed on */
    struct h1 *spare_h1;      /* NULL: lent */
    struct buf spare_outputs[HTTP_SPARE_OUTPUTS];
    size_t spare_output_count;
    struct buf common; /* reply_add_common of common_s: see conn_look_at_clocks */
    int64_t common_s;
    uint64_t wait;   /* of the loop, since which the clocks were looked at; UINT64_MAX: never */
    uint64_t now_ns; /* monotonic clock when the first bytes came after it, or when an answer was
                        ready since: where the next request's time begins */
    size_t connections, refused;     /* the latter among the former */
    uint64_t held_bytes;             /* of answers that wait for a commit */
    const struct ip_ranges *proxies; /* that are trusted, besides UNIX sockets */
    const struct fetcher *own;       /* that is none of those; NULL: there is none */
    uint64_t silent_until_ms;        /* about what clients do */
    bool is_draining, is_closing;
    bool is_patient; /* its sockets are kept: while it drains, whoever has not asked yet may */
    struct loop_task ended; /* tells the owner that the last connection is gone */
    void (*on_drained)(void *context);
    void *drained_context;
    void (*on_closed)(void *context);
    void *closed_context;
};

/* Takes the connection over and begins to read, after what was read before: `first`. `client` is
 * counted already; NULL: the peer is a proxy that is trusted to say whose requests it passes on. */
void conn_new(struct http_server *server, struct tcp_conn *tcp, struct client *client,
              struct span first);
/* Answers what is owed, then closes; at once when nothing is. */
void conn_drain(struct list_link *link);
/* Closes the connection that has been idle for longest, unless that is not long: somebody may be
 * about to use it. */
bool conn_make_room(struct http_server *server);
/* The order of `incoming`. */
bool conn_holds_more(const struct heap_node *a, const struct heap_node *b);
/* Looks at the clocks, once after each sleep of the loop: then `common` is that of now. */
void conn_look_at_clocks(struct http_server *server);
/* Closes at once. */
void conn_close(struct list_link *link, enum tcp_close_reason reason);

/* refusal.c: what is one too many. */
enum refusal {
    REFUSAL_CONNECTIONS,
    REFUSAL_CONNECTIONS_OF_ONE,
    REFUSAL_REQUESTS,
    REFUSAL_REQUESTS_OF_ONE,
    REFUSAL_HELD
};
/* Counts it and fills the server's response. */
void refusal_answer(struct http_server *server, enum refusal refusal);
/* Takes the connection over, answers without reading unless there are too many of these, and
 * closes. */
void refusal_send(struct http_server *server, struct tcp_conn *tcp, enum refusal refusal);

/* proxied.c: takes a connection over that the PROXY protocol comes first on. */
void proxied_new(struct http_server *server, struct tcp_conn *tcp, bool is_trusted);
/* Closes at once. */
void proxied_close(struct list_link *link);

/* server.c: takes a connection over whose peer is known. */
void server_admit(struct http_server *server, struct tcp_conn *tcp, struct span first);
/* A connection is gone. */
void server_conn_gone(struct http_server *server, enum tcp_close_reason reason);
/* For a cluster: the value of Svc-applied of an answer that leaves when this serial is committed,
 * and whose request was evaluated when the node was at `since`, or later. */
struct span server_applied(const struct http_server *server, uint64_t serial, uint64_t since,
                           char room[SPAN_U64_BYTES]);
/* Whether a line in the log may be had about what a client does: one a second. */
bool server_may_complain(struct http_server *server);

#endif
