/* Shared by the files of attempt: attempt.c (its life), attempt_request.c (what is sent) and
 * attempt_outcome.c (how it ended). */
#ifndef HOOKS_ATTEMPT_INNER_H
#define HOOKS_ATTEMPT_INNER_H

#include "fetch/fetch.h"
#include "hooks/retry.h"
#include "hooks/webhook_log.h"
#include "io/timer.h"

enum { ATTEMPT_HEADERS_MOST = 128 };

struct attempt {
    struct list_link link; /* among those that are idle, or that have stopped */
    struct fetch fetch;
    struct deliveries *deliveries;
    struct delivery *delivery;
    struct lane_settings *settings;
    struct lane_origin *origin; /* has a place for it; NULL: the destination is local */
    struct fetch_header headers[ATTEMPT_HEADERS_MOST];
    size_t header_count;
    struct blob *body;
    struct body *made;  /* whose bytes it has, when they were made for it */
    bool sends_payload; /* they are its event's, as they are */
    bool has_no_room;   /* for what was made: the delivery waits its turn */
    struct span content_type;
    uint64_t started_ns;
    int64_t ended_unix_ns; /* when its outcome is recorded */
    struct webhook_log_entry outcome;
    struct retry_answer answer;
    bool is_evaluating; /* a local request, which may delete the attempt's own delivery */
    bool is_cancelled;  /* meanwhile */
    bool is_aborted;    /* the custom payload request said so */
    struct timer again; /* the outcome could not be recorded yet */
    struct arena arena;
};

/* attempt.c */
/* Ends without a fetch: recorded when the scheduler has done its work. */
void attempt_stop(struct attempt *attempt, struct span why);
/* The same, and the delivery is over. */
void attempt_abort(struct attempt *attempt, struct span why);

/* attempt_request.c */
/* The event's payload becomes the body. *out_ready false: it is not in memory yet, or the attempt
 * has stopped. */
struct err *attempt_take_payload(struct attempt *attempt, bool *out_ready) MUST_USE;
/* What the custom payload request answers becomes the body. */
void attempt_take_custom_payload(struct attempt *attempt, bool *out_ready);
/* Evaluates a request to ourselves: the answer is in deliveries->response. */
void attempt_run_local(struct attempt *attempt, struct span method, struct span target,
                       const struct fetch_header *headers, size_t count, struct span body);
struct span attempt_error_of_response(struct attempt *attempt);
struct err *attempt_add_headers(struct attempt *attempt) MUST_USE;

/* attempt_outcome.c */
/* Records it. An error: nothing is recorded, for want of room on the disk. */
struct err *attempt_apply_outcome(struct attempt *attempt) MUST_USE;

#endif
