/* How many attempts a receiver is trusted with, and how soon: what its webhook allows and what it
 * has shown so far go in with the time and outcomes, decisions come out. Times are milliseconds of
 * one clock that only goes forward, whichever it is.
 *
 * Window: a receiver that hangs or refuses holds few of the slots that all webhooks share, and one
 * that comes back meets its backlog a little at a time. It begins with 4 attempts at once; each
 * success doubles that, up to MaxInFlight, and each failure halves it, down to 1.
 *
 * Rate: a bucket of tokens, one a start, that holds hardly more than one, so that RatePerSecond is
 * spread evenly and no second exceeds it.
 *
 * Pace: a quarter of all slots is not for receivers whose last attempt took long, an eighth neither
 * for those that have made none: however many hang or are slow, those that answer promptly are not
 * held up.
 *
 * Accounts: where there are several, each may have half of what there is for a pace, and when one
 * has more, because nobody else wants any, an eighth stays free for whoever comes next. */
#ifndef WEBHOOK_PACING_H
#define WEBHOOK_PACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pace { PACE_UNPROVED, PACE_SLOW, PACE_PROMPT };

enum { PACING_PROMPT_MS = 1000 };

struct pacing {
    uint32_t max_in_flight;
    double rate_per_second; /* 0: none */
    uint32_t prompt_ms;     /* an attempt that takes as long is not prompt */
    uint32_t window;
    enum pace pace; /* by how long the last attempt took */
    double tokens;  /* there were, */
    uint64_t tokens_at_ms;
};

struct pacing_outcome {
    bool is_success;
    bool is_aborted; /* which says nothing about the receiver */
    uint32_t took_ms;
};

/* Limit, rate and prompt_ms, which is PACING_PROMPT_MS at first, are the caller's to set, whenever
 * they change. */
void pacing_init(struct pacing *p);
/* The bucket is full or empty now. */
void pacing_fill(struct pacing *p, bool is_full, uint64_t now_ms);
/* Attempts that may be under way at once. */
uint32_t pacing_most(const struct pacing *p);
/* How long the rate keeps the next start back; 0: not at all. At most a day. */
uint64_t pacing_wait_ms(const struct pacing *p, uint64_t now_ms);
/* An attempt starts: it takes a token. */
void pacing_start(struct pacing *p, uint64_t now_ms);
void pacing_end(struct pacing *p, const struct pacing_outcome *outcome);
/* Of so many slots in all, how many attempts that are not of prompt receivers may hold for another
 * of this pace to start; SIZE_MAX: it does not matter. */
size_t pacing_slots(enum pace pace, size_t all);
/* Of so many slots in all, how many an account may have under way for another attempt of this pace
 * to start: of attempts that are not prompt, when that is not prompt; 1 at least. */
size_t pacing_half(enum pace pace, size_t all);
/* Of so many slots, how many stay free where one account may have more than half; 1 at least. */
size_t pacing_spare(size_t all);

#endif
