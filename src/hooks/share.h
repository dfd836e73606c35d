/* An account's share of the deliveries: what it has of them, and which of its lanes stand in line
 * for a slot. The starter goes round the accounts, and each has its own line of lanes: one with ten
 * thousand webhooks has as many turns as one with a single webhook.
 *
 * A ring for each pace, as there are slots for each (pacing.h): of accounts that have lanes that
 * are UNPROVED, SLOW, and READY, CALLED or SATED. What is SATED comes first when its account may
 * start again; what is READY or CALLED is looked at even if it may not: it may hold a place of its
 * host that others wait for.
 *
 * An account that has its half is passed over, and starts nothing while others want slots. No more
 * than three can have it, so few are ever passed over. When nobody else wants any, receivers that
 * are known to be prompt go on, as their slots come back soon; others only when nobody else has
 * webhooks, as theirs would not, when somebody comes. Either way a part is kept for who does. */
#ifndef HOOKS_SHARE_H
#define HOOKS_SHARE_H

#include "base/list.h"
#include "base/map.h"
#include "webhook/pacing.h"

struct account;
struct change;
struct hooks;

/* Lines of lanes: one for each ring, and those that are SATED, in the ring of the prompt. */
enum share_line {
    LINE_UNPROVED = PACE_UNPROVED,
    LINE_SLOW = PACE_SLOW,
    LINE_READY = PACE_PROMPT,
    LINE_SATED,
    SHARE_LINES,
    SHARE_RINGS = LINE_SATED
};

struct shares {
    struct hooks *hooks;
    struct map by_account;         /* struct share: accounts that have webhooks, or had */
    struct list ring[SHARE_RINGS]; /* the one whose turn it is first */
    size_t wanting;                /* shares that have lanes in line, or attempts under way */
    size_t not_prompt_in_flight;   /* attempts of lanes that are slow or unproved */
};

struct share {
    struct shares *shares;
    struct account *account;
    uint32_t refs; /* webhooks and lanes */
    bool is_wanting;
    uint32_t lanes_in_line;
    struct list line[SHARE_LINES];      /* struct lane, by state_link */
    struct list_link turn[SHARE_RINGS]; /* while it has such */
    size_t not_prompt_in_flight;        /* of those of all */
    uint64_t change_no;                 /* a change, and the deliveries that are counted for it */
    size_t change_deliveries;
};

struct shares *shares_new(struct hooks *hooks);
/* Nobody refers to any. NULL is allowed. */
void shares_free(struct shares *s);
/* Gives a reference to the account's share, which has one to the account. */
struct share *share_get(struct shares *s, struct account *account);
struct share *share_ref(struct share *share);
/* NULL is allowed. */
void share_unref(struct share *share);

/* May another attempt of this pace start, for all that its account has to do with it? */
bool share_admits(const struct share *share, enum pace pace);
/* The lane whose turn it is in the ring of a pace, as it stands in its line; NULL: none may start.
 */
struct list_link *share_next(const struct shares *s, enum pace pace);
/* A lane in this line has had its turn: its account goes to the end of the ring. */
void share_had_turn(struct share *share, enum share_line line);
/* A lane has come into one of the lines, or has left it. */
void share_line_up(struct share *share, enum share_line line, int more);
/* So many attempts more, or fewer, of lanes of this pace. */
void share_take_slots(struct share *share, enum pace pace, int more);

#endif
