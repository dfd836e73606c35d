/* A server on the same loop that answers as a script says. */
#ifndef RECEIVER_H
#define RECEIVER_H

#include "base/buf.h"
#include "io/loop.h"
#include "io/timer.h"

enum { RECEIVER_CONNS = 1200 };

/* What follows the script's bytes. SHUT: it sends no more, and still counts what it is sent. */
enum receiver_then {
    THEN_KEEP,
    THEN_CLOSE,
    THEN_SHUT,
    THEN_RESET,
    THEN_HANG,
    THEN_REPEAT,
    THEN_TRICKLE
};

struct receiver_script {
    const char *bytes;
    size_t n; /* 0: up to the NUL */
    enum receiver_then then;
    const char *again; /* for REPEAT at full speed, for TRICKLE a byte each 10 ms */
};

struct receiver_conn {
    uv_tcp_t tcp;
    uv_write_t write;
    bool writing, closing, delayed;
    struct receiver *receiver;
    struct timer timer;
    struct buf in;
    unsigned requests;
    size_t trickled;
};

struct receiver {
    struct loop *loop;
    uv_tcp_t tcp;
    uint16_t port;
    struct receiver_script script;
    bool reset_at_accept;
    bool speaks_first;    /* without having read anything */
    bool answer_at_once;  /* to the head, and reads no more */
    bool close_at_second; /* a second request on a connection gets no answer but its end */
    uint64_t delay_ms;    /* before an answer */
    unsigned connections, requests, open, waiting, most_waiting;
    struct buf last; /* the last request, head and body */
    struct receiver_conn *conns[RECEIVER_CONNS];
    char chunk[65536];
};

/* Port 0: any, then r->port says which. */
void receiver_listen(struct receiver *r, struct loop *loop, const char *ip, uint16_t port);
/* Nothing else may be on its way. */
void receiver_write(struct receiver_conn *c, struct span bytes);
/* Closes the connections. */
void receiver_drop_all(struct receiver *r);
/* Closes everything; the loop has to run once more. */
void receiver_close(struct receiver *r);

#endif
