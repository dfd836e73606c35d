/* What the files of fetch_plain share.
 *
 *   fetch_plain.c         the way of a request: addresses, sending, what it all amounted to
 *   fetch_plain_pool.c    connections, used and kept
 *   fetch_plain_answer.c  what llhttp makes of the bytes that come */
#ifndef IO_FETCH_PLAIN_H
#define IO_FETCH_PLAIN_H

#include "fetch_private.h"

#include <llhttp.h>

enum conn_state { CONNECTING, BUSY, IDLE };

struct plain_conn {
    uv_poll_t poll;
    struct list_link link; /* in the transfer's list, or among the fetcher's idle ones */
    struct list_link kept; /* in its origin's list */
    struct plain_origin *origin;
    struct fetch_transfer *t; /* NULL: idle, or closing */
    struct fetcher *fetcher;
    int fd;
    enum conn_state state;
    int watched;
    uint64_t opened_ms, idle_since_turn;
    bool was_used;   /* has brought an answer */
    bool has_bytes;  /* of the answer at hand */
    bool has_body;   /* the last chunk has come */
    bool is_done;    /* the answer is complete */
    bool is_unclear; /* must not be used again */
    size_t sent;
    uint64_t received, trailers_at;
    llhttp_t parser;
    struct buf line;   /* the field being read, name and value */
    size_t name_bytes; /* of these */
};

/* The idle connections of one. It exists while there are any. */
struct plain_origin {
    struct list conns;
    size_t bytes;
    char text[];
};

/* fetch_plain.c */

void plain_on_poll(uv_poll_t *poll, int status, int events);
/* The request is over; `why` unless something said so before. */
void plain_finish(struct fetch_transfer *t, CURLcode code, const char *why);
/* The connection has ended, or cannot be used any more; `error`: 0, or an errno. Where it was kept
 * too long, the request is sent again. */
void plain_lose(struct plain_conn *c, int error);
bool plain_has_sent(const struct plain_conn *c);

/* fetch_plain_pool.c */

/* Over a socket that begins to connect. NULL: the loop cannot watch it, and it is closed. */
struct plain_conn *plain_new(struct fetch_transfer *t, int fd);
void plain_close(struct plain_conn *c);
void plain_watch(struct plain_conn *c, int events);
/* For the next request to this origin. */
void plain_keep(struct plain_conn *c, struct span key);
/* One that can be used for this request, in no list; NULL: there is none. */
struct plain_conn *plain_take_kept(struct fetch_transfer *t);
/* Of all connections, used and kept, there are max_connections at most. */
void plain_make_room(struct fetcher *f);

/* fetch_plain_answer.c */

/* A request is sent: its answer comes next. */
void plain_expect(struct plain_conn *c);
/* `is_last`: the socket has failed, and the loop will not look at it again. */
void plain_read(struct plain_conn *c, bool is_last);

#endif
