/* Shared by the files of attempt: attempt.c (its life), attempt_body.c (the body that is sent),
 * attempt_request.c (local requests, header fields) and attempt_outcome.c (how it ended). */
#ifndef HOOKS_ATTEMPT_INNER_H
#define HOOKS_ATTEMPT_INNER_H

#include "base/arena.h"
#include "base/header_field.h"
#include "base/list.h"
#include "webhook/retry.h"
#include "webhook/webhook_log.h"

/* Nearly all attempts have fewer header fields. */
enum { ATTEMPT_FEW_HEADERS = 32 };

struct attempt;
struct deliveries;
struct evaluation;
struct event_chain;
struct request;
struct response;

/* What is done with the answer to a local request. */
typedef void attempt_answered_fn(struct attempt *attempt, struct response *response);

/* What it is sent by lies beside it, in attempt.c. */
struct attempt {
    struct list_link link; /* among those that are idle, or that have stopped */
    struct deliveries *deliveries;
    struct delivery *delivery;
    struct lane_settings *settings;
    struct lane_origin *origin; /* has a place for it; NULL: the destination is local */
    struct header_field few_headers[ATTEMPT_FEW_HEADERS];
    struct header_field *headers; /* these, or when they are more, in the arena */
    size_t header_size;           /* places there */
    size_t header_count;          /* 0: nothing is sent */
    size_t known_headers;         /* of the webhook, and those that tell what the log does */
    struct blob *body;
    struct body *made;  /* whose bytes it has, when they were made for it */
    bool sends_payload; /* they are its event's, as they are */
    bool has_no_room;   /* for what was made: the delivery waits its turn */
    struct span content_type;
    uint64_t started_ns;
    int64_t ended_unix_ns;            /* when its outcome is recorded */
    struct webhook_log_entry outcome; /* whose time is not before 1970 */
    struct retry_answer answer;
    struct event_chain *chain;     /* that its local requests belong to, should the event go */
    struct evaluation *evaluation; /* of a local request that gave way to others; or NULL */
    attempt_answered_fn *answered; /* when it has ended */
    uint64_t asked_ns;             /* when the local request began */
    struct blob *asked_body;       /* its body, should the event go; or NULL */
    bool is_evaluating; /* a local request, which may delete the attempt's own delivery */
    bool is_cancelled;  /* meanwhile */
    bool is_aborted;    /* the custom payload request said so */
    struct arena arena;
};

/* attempt.c */
/* It is over. */
void attempt_put(struct attempt *attempt);
/* Of the answer; status 0: there was none. */
void attempt_note_answer(struct attempt *attempt, int status, int64_t retry_after_s,
                         struct span body, uint32_t took_ms);
/* Ends without a fetch: recorded when the scheduler has done its work. */
void attempt_stop(struct attempt *attempt, struct span why);
/* The same, and the delivery is over. */
void attempt_abort(struct attempt *attempt, struct span why);

/* attempt_body.c */
/* The event's payload becomes the body, unless the attempt has stopped, or has_no_room. */
struct err *attempt_take_payload(struct attempt *attempt) MUST_USE;
/* Is it to be a CloudEvent whose event has no source to go with: the configuration's has gone
 * since? */
bool attempt_lacks_source(const struct attempt *attempt);
/* The attributes, of one in binary mode. */
void attempt_add_cloud_headers(struct attempt *attempt);

/* attempt_request.c */
/* Its local request cannot be ended from where its delivery goes: it, or another, is just changing
 * what is stored. Then it is left to end by itself. */
bool attempt_is_answering(const struct attempt *attempt);
/* It is ended, if there is one. */
void attempt_forget_request(struct attempt *attempt);
/* What the custom payload request answers. */
void attempt_ask_custom_payload(struct attempt *attempt, attempt_answered_fn *answered);
/* Becomes the body, unless the attempt has stopped, or has_no_room. */
void attempt_take_custom_payload(struct attempt *attempt, struct response *response);
/* Sends it to the local destination. */
void attempt_send_local(struct attempt *attempt);
void attempt_requests_init(struct deliveries *d);
void attempt_requests_done(struct deliveries *d);
void attempt_add_headers(struct attempt *attempt); /* all but the signature */
void attempt_make_room_for_headers(struct attempt *attempt);
static inline void attempt_add_header(struct attempt *attempt, struct span name, struct span value)
{
    if (attempt->header_count == attempt->header_size)
        attempt_make_room_for_headers(attempt);
    attempt->headers[attempt->header_count++] = (struct header_field){name, value};
}

/* attempt_outcome.c */
/* Records it. An error: nothing is recorded, for want of room on the disk. */
struct err *attempt_apply_outcome(struct attempt *attempt) MUST_USE;

#endif
