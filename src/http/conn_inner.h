/* What the files of `conn` share: conn.c reads requests and keeps time, conn_hold.c keeps one that
 * is evaluated over several turns, conn_output.c sends answers, conn_stream.c those without an end.
 */
#ifndef HTTP_CONN_INNER_H
#define HTTP_CONN_INNER_H

#include "base/limits.h"
#include "http/conn.h"
#include "http/h1.h"
#include "io/timer.h"
#include "rest/rest.h"
#include "store/turn.h"
#include "store/turn_wait.h"

/* An answer's end in the output, and the serial that must be committed before it leaves. */
struct mark {
    size_t end;
    uint64_t serial;
    uint64_t began_ns;     /* its evaluation */
    struct client *client; /* that it counts for; NULL: nobody */
    enum err_code error;
    uint16_t status;
    uint8_t method; /* enum method, METHOD_OTHER for what is no request */
    bool is_http10;
};

/* What each request looks at stands together, for the sake of the processor's cache. */
struct conn {
    struct http_server *server;
    struct tcp_conn *tcp;
    struct client *client; /* NULL: a proxy, whose requests are other clients' */
    struct h1 *h1;         /* NULL between requests */
    struct buf output, input;
    struct held *held; /* the request whose answer comes next, when that takes time; or NULL */
    size_t mark_count;
    uint64_t held_bytes; /* of the output, as the server counts them */
    uint64_t phase_since_ms;
    enum h1_phase phase;
    enum tcp_close_reason close_reason;
    bool is_paused, is_closing, is_ended;
    bool closes_when_sent;
    bool has_flow;                /* a stream or a download is its last answer */
    bool is_http10, is_streaming; /* of it, which has begun */
    bool is_known, is_own;        /* whether it is our own, which is looked at once */
    bool is_admitted;             /* the request whose body is awaited */
    struct list_link idle;        /* linked: nothing is under way */
    uint64_t idle_since_ms;       /* then, to within IDLE_ORDER_MS */
    struct heap_node incoming;    /* in the heap: a request has not come whole */
    struct list_link unread;      /* linked: the client has not taken all that was sent */

    struct list_link link;
    struct stream *stream;     /* its answer, for as long as the connection lasts; or NULL */
    struct download *download; /* the same; or NULL */
    uint64_t incoming_bytes;   /* of the request that has not come whole */
    uint64_t unread_bytes;     /* of what the client has not taken */
    uint64_t unread_since_ms;
    struct mark *marks; /* of answers that wait, first in first out; grown on demand */
    size_t mark_size;
    size_t first_begin;    /* in the output: of the first mark's answer */
    struct turn_wait wait; /* for the first mark */
    struct timer timer;
    struct loop_task more; /* goes on with `input` in the next turn */
};

/* What is answered. */
struct asked {
    enum method method; /* METHOD_OTHER: none of ours, or what came is no request */
    bool is_http10;
    uint64_t began_ns;
    const struct in6_addr *client; /* NULL: nobody's that could be told */
    uint64_t
        applied; /* in a cluster: the serial that the node was at then; 0: look when answered */
};

static inline uint64_t conn_now_ms(const struct conn *c)
{
    return loop_now_ms(c->server->loop);
}

static inline uint64_t conn_idle_ms(const struct conn *c)
{
    return (uint64_t)c->server->limits->idle_seconds * 1000;
}

/* One timer a connection, not touched while whole requests come and go: this moves it only where it
 * would fire too late. */
void conn_look_within(struct conn *c, uint64_t ms);
/* A parser, and memory for answers, where there is none. */
void conn_equip(struct conn *c);
/* Appends an answer; what can leave at once may do so. */
void conn_add_reply(struct conn *c, const struct response *response, const struct asked *asked);
/* For a cluster: notes the serial that the node is at now. */
void conn_look_at_serial(const struct conn *c, struct asked *asked);
/* Holds the request that gave way to others, and has it evaluated beside them. */
void conn_hold(struct conn *c, const struct request *request, const struct asked *asked,
               bool keep_alive);
/* Its answer is there, and the connection goes on with what came behind it. */
void conn_answer_held(struct conn *c, struct response *response, const struct asked *asked,
                      bool keep_alive);
/* It need not be answered any more. */
void conn_drop_held(struct conn *c);
/* Sends what may leave, and waits for what may not yet; finishes the connection that was to be
 * closed when all has been sent; gives back what is not needed any more. */
void conn_flush(struct conn *c);
bool conn_owes_answers(const struct conn *c);
/* Nobody knows whether what the first mark waits for will be committed: 503 takes the place of that
 * answer, what comes behind it is dropped, and the connection ends. */
void conn_give_up_waiting(struct conn *c);
/* conn_stream.c: takes the answer's stream, or download, over, behind its head. */
void conn_take_flow(struct conn *c, struct response *response, const struct asked *asked);
/* The head has left: what was written before is out of the way. */
void conn_start_flow(struct conn *c);
/* The client has taken what was written of it. */
void conn_go_on(struct conn *c);
/* Nobody reads it any more. */
void conn_drop_flow(struct conn *c);
/* The client has not taken so many bytes. */
void conn_note_unread(struct conn *c, uint64_t bytes);
/* The client has taken all that was sent. */
void conn_note_taken(struct conn *c);
/* No further request is read; what is owed still leaves. */
void conn_close_when_sent(struct conn *c, enum tcp_close_reason reason);
void conn_close_now(struct conn *c, enum tcp_close_reason reason);
/* Of a connection that is gone. */
void conn_drop_output(struct conn *c);

#endif
