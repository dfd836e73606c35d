/* When to send again: a pure function of policy, history, answer, time and chance
 * (docs/specification.md, section 8, "Outcome"). */
#ifndef WEBHOOK_RETRY_H
#define WEBHOOK_RETRY_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct json_value;

#define RETRY_MAX_DELAYS 32
#define RETRY_AFTER_MAX_S 86400

struct retry_policy {
    uint32_t delays_ms[RETRY_MAX_DELAYS]; /* before the second, third, ... attempt */
    unsigned delay_count;
};

/* From a JSON array of seconds (0 to 604 800, decimals allowed, at most 32). ERR_INVALID_ENTITY. */
struct err *retry_parse(struct json_value array, struct retry_policy *out_policy) MUST_USE;

struct retry_answer {
    bool answered; /* false: no status came (time-out, refused, reset, ...) */
    int status;
    int64_t retry_after_s; /* -1: none */
};

enum retry_verdict {
    RETRY_DELIVERED, /* 2xx */
    RETRY_LATER,     /* send again at out->at_unix_ns */
    RETRY_DEAD,      /* the schedule is used up */
    RETRY_GONE       /* 410: as dead, and the webhook pauses */
};

/* Is this our own refusal of a local request, which would be the same next time? 4xx but for what
 * may pass: 409, 412 and 429. */
bool retry_is_refusal(int status);

struct retry_decision {
    enum retry_verdict verdict;
    int64_t at_unix_ns;        /* RETRY_LATER: not before this, by the schedule */
    int64_t hold_all_until_ns; /* 429 or 503 with Retry-After: nothing of this webhook is sent
                                  before this, while it goes to this receiver; 0: no hold */
};

/* `attempts` counts the one just made (>= 1). `chance` in [0, 1) lengthens the delay by up to a
 * fifth. Retry-After is never shortened, and at most a day. */
struct retry_decision retry_decide(const struct retry_policy *policy, unsigned attempts,
                                   const struct retry_answer *answer, int64_t now_unix_ns,
                                   double chance);

#endif
