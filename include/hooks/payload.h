/* Which payloads of events are in memory. All are in the journal; up to Limits.PayloadBytes of them
 * are held here as well, so that a backlog of any length takes little memory. Those that no
 * delivery waits for go first, then those that will be needed last. */
#ifndef HOOKS_PAYLOAD_H
#define HOOKS_PAYLOAD_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct blob;
struct err;
struct event;
struct hooks;
struct share;
struct span;
struct store_origin;

struct payloads;

struct payloads *payloads_new(struct hooks *hooks);
/* All events have been removed. */
void payloads_free(struct payloads *p);

/* The event was raised, or replayed. */
void payload_add(struct payloads *p, struct event *event, struct span payload,
                 const struct store_origin *origin);
/* Its record is elsewhere now. */
void payload_moved(struct payloads *p, struct event *event, const struct store_origin *origin);
void payload_remove(struct payloads *p, struct event *event);
/* A delivery more that has not ended, or one that has. */
void payload_needed(struct payloads *p, struct event *event);
void payload_unneeded(struct payloads *p, struct event *event);

/* There is less room than before: lets go of what need not be held. */
void payloads_shrink(struct payloads *p);
/* Of those that are held. */
uint64_t payloads_bytes(const struct payloads *p);

bool payload_is_loaded(const struct event *event);
/* False: it is not in memory, the disk was asked for it, try again soon. True: payload_get will not
 * wait, or there is an error that it will tell. */
bool payload_ready(struct payloads *p, struct event *event);
/* A new reference. Waits for the disk when it has to. Errors of journal_read. */
struct err *payload_get(struct payloads *p, struct event *event, struct blob **out_blob) MUST_USE;
/* The same; NULL when the journal cannot be read, which is logged. */
struct blob *payload_or_null(struct payloads *p, struct event *event);

/* The same for an attempt, until payload_sent: all of one event have the same bytes, which count
 * for the share of the first. */
struct err *payload_send(struct payloads *p, struct event *event, struct share *share,
                         struct blob **out_blob) MUST_USE;
void payload_sent(struct payloads *p, struct event *event);
bool payload_is_sent(const struct event *event);
/* Of those that are sent. */
uint64_t payloads_sent_bytes(const struct payloads *p);

#endif
