/* How long a piece of work, a request, may take: in one turn of the loop, and in all, by the
 * processor's clock and not by counting, because what a step costs is up to whoever thinks of the
 * input.
 *
 * Whatever loops over input says what it has done, in units of about a nanosecond. Most of the time
 * that is a subtraction; now and then the clock is looked at. Then, on a fiber, it gives way to
 * others when the time of the turn is up, and goes on in a later turn as if nothing had happened.
 * On the loop's own stack, from which nothing can go on later, the work is told to stop: all that
 * it made is thrown away, and it begins anew on a fiber. It is told to stop too when it has taken
 * what it may take in all, or when nobody wants it any more.
 *
 * To stop is to leave loops early, wherever they ask; what they return then is as good as any, for
 * who began the work looks at budget_check before anything comes of it.
 *
 * There is one current budget, or none: as with memory accounting, it would otherwise be an
 * argument of every function that loops. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include "base/err.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

/* Of the turn, on the loop's stack and on a fiber. */
#define BUDGET_FIRST_NS UINT64_C(2000000)
#define BUDGET_SLICE_NS UINT64_C(2000000)
/* On a fiber, however much others have taken of the turn. */
#define BUDGET_LEAST_SLICE_NS UINT64_C(500000)
/* What a change may take on the loop's stack: to begin it anew costs it all that it has done. */
#define BUDGET_CHANGE_NS UINT64_C(5000000)

enum budget_state {
    BUDGET_GOOD,
    BUDGET_NEEDS_FIBER, /* to be begun anew, on a fiber */
    BUDGET_SPENT,       /* more than it may take in all */
    BUDGET_NO_ROOM,     /* for what it makes; who began it says so between two turns */
    BUDGET_ENDED        /* nobody wants it any more */
};

struct budget {
    uint64_t most_ns;    /* in all; 0: no bound */
    uint64_t first_ns;   /* on the loop's stack, if it may begin anew */
    uint64_t slice_ns;   /* of a turn, on a fiber */
    uint64_t used_ns;    /* in turns before */
    uint64_t longest_ns; /* in one turn */
    uint64_t began_ns;   /* this turn's part, by the processor's clock; 0: not looked at yet */
    unsigned turns;      /* in which it gave way */
    unsigned holds;      /* it does not give way: budget_hold */
    bool may_begin_anew; /* not on a fiber, but could be */
    bool is_on_fiber;
    enum budget_state state;
    volatile sig_atomic_t is_interruptible; /* in budget_run_pure */
    sigjmp_buf *left;                       /* where that is left to */
};

/* In units: how much is done between two looks at the clock. */
#define BUDGET_STEP 65536

struct budget_now {
    int64_t left; /* until the clock is looked at */
    struct budget *current;
};
extern struct budget_now budget_now;

void budget_init(struct budget *b, uint64_t most_ns);
/* What is done from here to budget_leave is on this budget. There is no other then. */
static inline void budget_enter(struct budget *b)
{
    b->began_ns = 0;
    budget_now = (struct budget_now){BUDGET_STEP, b};
}
void budget_leave_slowly(struct budget *b);
static inline void budget_leave(struct budget *b)
{
    budget_now.current = NULL;
    if (b->began_ns != 0)
        budget_leave_slowly(b);
}

/* Looks at the clock; budget_ask. */
bool budget_look(void);
/* Go on? It may have given way in between. */
MUST_USE static inline bool budget_ask(size_t units)
{
    budget_now.left -= (int64_t)units;
    return budget_now.left > 0 || budget_look();
}
/* The same where there is nothing to be left. */
static inline void budget_spend(size_t units)
{
    if (!budget_ask(units))
        return;
}
/* Go on with a piece of so many units that gives way, but cannot be left? On the loop's stack,
 * where it would run to its end, not if that is too much. */
bool budget_may_begin(size_t units);
/* Gives way at once, whatever the time. The answer of budget_ask. */
bool budget_give_way(void);
/* From here to budget_release it does not give way: what it works on can change. Counts. */
void budget_hold(void);
void budget_release(void);
/* On a fiber: gives way whatever its state, though it does not otherwise. */
void budget_yield(void);
/* What has been done cannot be undone: from here on it may give way, but is not told to stop. */
static inline void budget_commit(void)
{
    if (budget_now.current == NULL)
        return;
    budget_now.current->most_ns = 0;
    budget_now.current->may_begin_anew = false;
}
/* Has it been told to stop? budget_check, without an error. */
static inline bool budget_stopped(void)
{
    return budget_now.current != NULL && budget_now.current->state != BUDGET_GOOD;
}
/* How often it gave way: unchanged, nothing else has run since. */
unsigned budget_turns(void);
/* When it has been told to stop: ERR_REQUEST_TOO_COSTLY or ERR_OVERLOADED naming the limit, or
 * ERR_GIVES_WAY. */
struct err *budget_check(void) MUST_USE;

/* Runs what the clock can interrupt at any instruction, to go on later or never: it holds nothing,
 * and touches nothing of others, nor the heap but between budget_uninterrupted and
 * budget_interruptible. False: it was left for good, and what it made is to be thrown away; then
 * budget_ask says to stop. */
bool budget_run_pure(void (*run)(void *arg), void *arg) MUST_USE;
void budget_uninterrupted(void);
void budget_interruptible(void);

#endif
