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

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVALUATIONS_MOST 16u
#define EVALUATIONS_OF_ACCOUNT 8u
#define EVALUATIONS_FIRST 64u
#define EVALUATIONS_REST 2u

struct account;
struct call;
struct evaluation;
struct evaluations; /* those of a service */
struct request;
struct response;
struct rest;
struct snapshot;

/* Evaluates a request, on the stack and the budget that it is called on: empties the response and
 * fills it, unless that gives way, when nothing has happened. */
typedef void evaluation_run_fn(struct rest *rest, const struct request *request,
                               struct response *response);

/* `run` is what each of them does. */
struct evaluations *evaluations_new(struct rest *rest, evaluation_run_fn *run);
/* There is none left. NULL is allowed. */
void evaluations_free(struct evaluations *all);
size_t evaluations_count(const struct evaluations *all);
/* A request took so much processor time on the loop's stack, which is counted: the next slice is
 * the shorter for it. */
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

/* Counts the request for its account: ERR_TOO_MANY_REQUESTS past AccountRequestsPerSecond. Those
 * that the service makes itself are a part of what somebody asked for, or have limits of their own;
 * one that gave way has been counted. */
struct err *evaluation_check_rate(const struct call *call) MUST_USE;
/* Is it one of this request itself, not of one that the request is a part of? */
bool evaluation_is_of(const struct evaluation *e, const struct request *request);
/* What it sees in place of what is stored now; NULL: nothing, it is one that changes something. */
struct snapshot *evaluation_snapshot(struct evaluation *e);
/* Does nobody else change anything until it gives the turn back? */
bool evaluation_holds_turn(const struct evaluation *e);
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
