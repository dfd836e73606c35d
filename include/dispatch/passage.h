/* What a request on a node of a cluster waits for, when it cannot be evaluated at once: a record
 * that it is to have seen, or the leader, who answers in place of this node. It is no evaluation:
 * it has no stack of its own, and takes no place among those.
 *
 * To the leader a request goes once: in one hop, over a connection that may have been used before,
 * but never a second time once a byte of it has gone out. What becomes of it then is the leader's
 * answer as it came, or 503 NoLeader, which says whether the change may have been done.
 *
 * PassedOnRequests have a place at once; others wait in line, where accounts take turns, and of the
 * places an account has half at most. What they hold counts for their clients, as with all requests
 * that wait (http/conn_hold.c). */
#ifndef DISPATCH_PASSAGE_H
#define DISPATCH_PASSAGE_H

#include "base/span.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PASSAGE_MORE_MS = 10000, /* for the leader's answer, besides CommitSeconds */
    PASSAGE_LAST_MS = 1000,  /* for the answer of who leads no more */
};

struct call;
struct passage;
struct passages;
struct request;
struct response;
struct rest;

struct passages *passages_new(struct rest *rest);
/* There is none left. NULL is allowed. */
void passages_free(struct passages *all);
/* Those that have a place, and those in line for one. */
size_t passages_under_way(const struct passages *all);
size_t passages_in_line(const struct passages *all);
/* Whoever led does so no more, as etcd says: what it has not confirmed by now it never will, and
 * what it has is answered within PASSAGE_LAST_MS, or not at all. It may be cut off, and its
 * connections never end. */
void passages_led(struct passages *all);
/* Since the start: those that were sent to a leader. */
uint64_t passages_sent(const struct passages *all);

/* Until this record is committed here, for MinSerialMs at most. */
struct passage *passage_to_serial(struct rest *rest, uint64_t serial);
/* To the leader, for the call's key and client. */
struct passage *passage_to_leader(const struct call *call);
/* The request stays the caller's. Calls on_done once, from the loop. */
void passage_start(struct passage *p, const struct request *request, void (*on_done)(void *context),
                   void *context);
/* In on_done: the answer; NULL: the request is to be evaluated now, from its beginning. */
struct response *passage_response(struct passage *p);
/* Wherever it is; what the leader does with it, it does. NULL is allowed. */
void passage_free(struct passage *p);

#endif
