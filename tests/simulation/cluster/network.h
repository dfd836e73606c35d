/* The network of the simulation: fetch/fetch.h of several nodes, without sockets, in place of
 * src/fetch/fetch.c. What is sent arrives later, or never; so does the answer. Between two ends a
 * link may be cut, in one direction or both: what would arrive then is lost, and so is what comes
 * behind it on the same connection. A request that may be sent twice on a kept connection sometimes
 * is. */
#ifndef SIMULATION_CLUSTER_NETWORK_H
#define SIMULATION_CLUSTER_NETWORK_H

#include "base/arena.h"
#include "base/list.h"
#include "fetch/fetch.h"
#include "io/timer.h"

enum { NETWORK_NODES = 5, NETWORK_MEMBERS = 3, NETWORK_RECEIVERS = 2 };

enum network_place { AT_ETCD, AT_NODE, AT_RECEIVER };

/* A request on its way, and what comes back. */
struct exchange {
    struct list_link link;
    uint64_t number;
    unsigned refs;
    struct fetcher *fetcher;
    struct fetch *fetch; /* NULL: whoever asked has gone, or knows the end */
    unsigned client;     /* the node that asks */
    enum network_place place;
    unsigned server; /* there */
    struct arena arena;
    struct span method, target, body;
    const struct header_field *headers;
    size_t header_count;
    struct timer timer;
    bool is_broken;        /* nothing comes back any more, and nobody says so */
    bool is_paused;        /* by fetch_pause */
    bool is_stream;        /* the body goes to on_body */
    struct list kept_back; /* struct message, while it is paused */
    uint64_t back_ns;      /* when the last of what comes back does */
    int status;            /* of the answer, when its head has come */
    struct buf answer;
    uint64_t answer_bytes;
    void *served; /* what the other end has made of it; NULL: nothing, or it has ended */
};

void network_open(void);
void network_close(void);

/* The other end answers. Bytes are copied. */
void network_answer(struct exchange *x, int status, const struct header_field *headers,
                    size_t count, struct span body);
/* The same, later by so much. */
void network_answer_later(struct exchange *x, int status, struct span body, uint64_t later_ns);
/* In pieces: the head, pieces of the body, the end. */
void network_begin_answer(struct exchange *x, int status);
void network_send(struct exchange *x, struct span bytes);
void network_end_answer(struct exchange *x, bool is_whole);
/* The connection has ended without an answer. */
void network_drop(struct exchange *x);
/* How much is on its way back. */
size_t network_on_way(const struct exchange *x);
struct exchange *network_ref(struct exchange *x);
void network_unref(struct exchange *x);

/* Links of a node to a member of etcd, and from a node to another. */
void network_cut(unsigned node, enum network_place place, unsigned server, bool requests,
                 bool answers);
void network_heal(void);
/* One in so many requests to etcd arrives so late that whoever sent it has given up; 0: none. */
void network_set_late(unsigned one_in);
/* A connection, by chance, says nothing any more, or ends. */
void network_spoil_one(void);
/* A node ends, in which case others see their connections close, or do not. */
void network_node_ended(unsigned node, bool is_seen);
/* What waited for a node that was stopped comes now. */
void network_node_goes_on(unsigned node);

/* The true time of what comes next; UINT64_MAX: nothing is on its way. */
uint64_t network_next_ns(void);
/* It comes. */
void network_step(void);

/* For nodes. */
const char *network_node_url(unsigned node);
const char *network_member_url(unsigned member);
const char *network_receiver_url(unsigned receiver);

#endif
