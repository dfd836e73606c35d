/* A request that turned out long on the loop's stack: evaluated anew from its beginning, on a
 * fiber, over as many turns as it takes, others first. Nothing came of the first try.
 *
 * What it sees is one moment. A request that reads sees all entities as they were when its fiber
 * began: a snapshot (store/snapshot.h). One that writes looks for what it changes beside others
 * (scan.h), and then holds the turn (store/turn.h) until its change has been applied: who else
 * changes something waits for it, who reads sees what was before.
 *
 * An account whose change of very many objects others have waited for holds the turn again when
 * EVALUATIONS_REST times that time has gone by, however many accounts do the same: so together they
 * have it half the time at most, one alone a third. What takes no longer than a slice need not
 * rest.
 *
 * Accounts take turns, whatever number of requests each has. EVALUATIONS_MOST take turns, others
 * wait: what they keep is bounded by that. Of these an account may have EVALUATIONS_OF_ACCOUNT, and
 * its first one may always begin, as far as EVALUATIONS_FIRST. */
#ifndef REST_EVALUATION_H
#define REST_EVALUATION_H

#include "base/budget.h"
#include "base/list.h"
#include "io/loop.h"
#include "io/timer.h"
#include "rest/response.h"
#include "store/snapshot.h"
#include "store/turn.h"

#define EVALUATIONS_MOST 16u
#define EVALUATIONS_OF_ACCOUNT 8u
#define EVALUATIONS_FIRST 64u
#define EVALUATIONS_REST 2u

struct account;
struct call;
struct fiber;
struct rest;

struct evaluation {
    struct list_link link; /* in `queue` */
    struct list *queue;    /* of its account, or of those that wait; NULL: it runs, or has ended */
    struct rest *rest;
    struct account *account;
    const struct request *request;
    struct response response;
    struct fiber *fiber; /* NULL: it has not begun, or has ended */
    struct budget budget;
    struct snapshot snapshot; /* of one that changes: keeps what it has found until it is changed */
    bool has_snapshot;        /* it reads only: by its method, or evaluation_only_asks */
    bool holds_turn;          /* from evaluation_begin_change on */
    bool waits;               /* until nobody holds the turn */
    bool rests;               /* and until its account may hold it, if it is long */
    bool is_long;             /* it takes more than a slice */
    bool has_changed;         /* it is not to begin anew any more */
    bool is_wanted;           /* others have waited for the turn that it holds */
    unsigned held_slices;
    uint64_t held_since_ns;   /* monotonic */
    unsigned tries;           /* how often others who cannot wait have come before it */
    uint64_t held_serial;     /* the journal's next one then: others change it who cannot wait */
    uint64_t resources_since; /* resources.changes when it began */
    void (*on_done)(void *context);
    void *context;
};

/* Those of a service. */
struct evaluations {
    struct rest *rest;
    struct list accounts; /* struct account that has any: the first has its turn next */
    struct list waiting;  /* struct evaluation, until nobody holds the turn */
    size_t count, begun;
    struct account *next; /* evaluations_are_of */
    struct evaluation *running;
    struct evaluation *holder; /* has the turn, or is the last one that had; NULL: its account has
                                * been told to rest */
    uint64_t rests_until_ns;   /* monotonic: the latest of those of accounts */
    uint64_t tried_ns;         /* evaluations_note_try, since the last slice */
    struct timer rested;       /* somebody waits for the end of his rest */
    struct loop_task task;
    struct turn_line line;
};

void evaluations_init(struct evaluations *all, struct rest *rest);
size_t evaluations_count(const struct evaluations *all);
/* A request took so much processor time on the loop's stack: the next slice is the shorter for it.
 */
void evaluations_note_try(struct evaluations *all, uint64_t ns);
/* A request of this account gives way: the evaluation that is started next is for it. */
void evaluations_are_of(struct evaluations *all, struct account *account);

/* The request stays the caller's. Calls on_done once, from the loop; then the answer is there, and
 * the evaluation is to be freed. */
struct evaluation *evaluation_start(struct rest *rest, const struct request *request,
                                    void (*on_done)(void *context), void *context);
struct response *evaluation_response(struct evaluation *e);
/* Ends it, wherever it is; not from its own fiber. NULL is allowed. */
void evaluation_free(struct evaluation *e);

/* What the request that runs now is evaluated in; NULL: it runs on the loop's stack. */
struct evaluation *evaluation_running(const struct rest *rest);
/* Goes on when nobody else holds the turn; an evaluation that holds it gives it back. On the loop's
 * stack: begins anew on a fiber, or, if that is not possible, has what is being applied applied at
 * once. Errors of budget_check. */
struct err *evaluation_wait_turn(struct rest *rest) MUST_USE;
/* For who reads what no snapshot keeps: waits while a change is being applied. On a fiber it holds
 * the turn from then on, until evaluation_end_reading or the request's end. Errors of budget_check.
 */
struct err *evaluation_begin_reading(struct rest *rest) MUST_USE;
/* NULL is allowed. */
void evaluation_end_reading(struct evaluation *e);
/* From here on to the end of the request nobody else changes what it has found. On a fiber: if what
 * it has understood of resources is not so any more, it begins anew. */
struct err *evaluation_begin_change(struct call *call) MUST_USE;
/* Carries call->change out, in slices if it is long; errors of turn_apply, and of budget_check. */
struct err *evaluation_apply(struct call *call, uint64_t *out_serial) MUST_USE;

/* A request that could change something does not, as has turned out before it has looked at any
 * entity. On a fiber: it sees one moment, as all that read. Errors of budget_check. */
struct err *evaluation_only_asks(struct rest *rest) MUST_USE;

/* A request that reads begins anew if resources were declared anew while it gave way. */
void evaluation_check_resources(struct evaluation *e);

#endif
