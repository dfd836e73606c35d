/* Records that a follower makes by itself: errors of the reads that it refuses, and times of last
 * use of keys. They are the leader's to write, so they are handed to it, many in one request, one
 * request at a time, by a path that only nodes may use.
 *
 * What cannot be handed over waits, up to HANDOVER_BYTES; what is more is dropped, and the log
 * tells how much. A batch whose answer is lost is sent again: the leader passes over what it has.
 */
#ifndef DISPATCH_HANDOVER_H
#define DISPATCH_HANDOVER_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HANDOVER_BYTES = 1048576,     /* that wait */
    HANDOVER_BATCH_BYTES = 65536, /* that are sent at once; a record is smaller */
    HANDOVER_MS = 1000            /* between two batches */
};

struct call;
struct handover;
struct request;
struct rest;
struct span;
struct uuid;

struct handover *handover_new(struct rest *rest);
/* NULL is allowed. What waits is dropped. */
void handover_free(struct handover *h);
/* Nothing more is handed over: the fetcher of the cluster's view is about to go. */
void handover_stop(struct handover *h);

/* The record of an error, all but its ObjectNo. False: there is no room. */
bool handover_add_error(struct handover *h, struct span json);
/* That a key made at run time was used in an hour. */
bool handover_add_use(struct handover *h, const struct uuid *id, int64_t hour_unix_s);
/* What waits, and what was dropped. */
size_t handover_bytes(const struct handover *h);
uint64_t handover_dropped(const struct handover *h);

/* Is it such a request, of a node that is believed? */
bool handover_is(const struct rest *rest, const struct request *request);
/* The leader's side: takes them into its own records. ERR_NO_LEADER; errors of turn_apply; of what
 * is no record ERR_INVALID_ENTITY or ERR_FAILED_JSON: then nothing was taken. */
struct err *handover_take(struct call *call) MUST_USE;

#endif
