/* Accounts: in whose name work is bounded (docs/specification.md, section 6, "Shares"). A tenant;
 * else a key, or the one that made it; else everybody who has neither.
 *
 * An account is there for as long as somebody refers to it: a key, a webhook, a request. What is
 * counted on it is its own to see; the bounds are with those who count. */
#ifndef ACCESS_ACCOUNT_H
#define ACCESS_ACCOUNT_H

#include "base/list.h"
#include "base/span.h"

#include <stdint.h>

/* A tenant and a key's name are shorter. */
enum { ACCOUNT_NAME_BYTES = 257 };

struct account {
    struct span name; /* "t" and the tenant, "k" and the key's name, or "" for everybody */
    uint32_t refs;
    uint32_t webhooks;
    uint32_t streams;
    uint32_t in_flight;          /* attempts under way */
    size_t pending;              /* deliveries that have not ended */
    size_t bytes;                /* that its requests, answers and attempts hold now */
    struct list coming, going;   /* its evaluations (evaluation.h) that have not begun, or have */
    struct list_link in_turn;    /* while there are such: among the accounts that take turns */
    uint32_t evaluations_begun;  /* those that wait for something included */
    struct list signing;         /* its large bodies (webhook/signings.h) that are being signed */
    struct list_link in_signing; /* while there are such: among the accounts that take turns */
    struct list passing;         /* its passages (dispatch/passage.h) that wait for a place */
    struct list_link in_line;    /* while it has such, and may have a place */
    uint32_t passing_count;      /* those that have one */
    uint64_t rests_until_ns;     /* monotonic: before, it makes no long change (evaluation.h) */
    uint64_t paid_until_ns; /* loop clock: the requests that it made so far, one after the other */
};

struct accounts;

struct accounts *accounts_new(void);
/* Nobody refers to any. NULL is allowed. */
void accounts_free(struct accounts *a);
size_t accounts_count(const struct accounts *a);
/* A new reference to the account of a tenant, or of a key without one. Either may be absent. */
struct account *account_ref(struct accounts *a, struct span tenant, struct span key);
/* The same as account_ref without the reference; NULL when nobody refers to it. */
struct account *account_find(struct accounts *a, struct span tenant, struct span key);
/* Takes one of the `per_second` requests that it may make a second, in the mean: at rest it has a
 * second's in hand. Returns in how many seconds there is one again; 0: it was taken. */
unsigned account_take_request(struct account *account, int64_t per_second, uint64_t now_ms);
/* One more reference. */
struct account *account_keep(struct account *account);
/* NULL is allowed. */
void account_unref(struct accounts *a, struct account *account);

#endif
