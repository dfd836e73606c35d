/* A request that turned out long on the loop's stack: evaluated anew from its beginning, on a
 * fiber, over as many turns as it takes, others first. Nothing came of the first try.
 *
 * What it sees is one moment. A request that reads sees all entities as they were when its fiber
 * began: a snapshot (store/snapshot.h). One that writes looks for what it changes beside others
 * (scan.h), and does the rest, which includes the change, in one turn.
 *
 * EVALUATIONS_MOST take turns, others wait: what they keep is bounded by that. */
#ifndef REST_EVALUATION_H
#define REST_EVALUATION_H

#include "base/budget.h"
#include "base/list.h"
#include "io/loop.h"
#include "rest/response.h"
#include "store/snapshot.h"

#define EVALUATIONS_MOST 16u

struct call;
struct fiber;
struct rest;

struct evaluation {
    struct list_link link; /* in the queue, but while it runs */
    struct rest *rest;
    const struct request *request;
    struct response response;
    struct fiber *fiber; /* NULL: it has not begun, or has ended */
    struct budget budget;
    struct snapshot snapshot;
    bool has_snapshot;        /* it reads only: by its method, or evaluation_begin_reading */
    uint64_t resources_since; /* resources.changes when it began */
    void (*on_done)(void *context);
    void *context;
};

/* Those of a service. */
struct evaluations {
    struct loop *loop;
    struct list queue; /* struct evaluation: the first goes on next */
    struct evaluation *running;
    struct loop_task task;
};

void evaluations_init(struct evaluations *all, struct loop *loop);
size_t evaluations_count(const struct evaluations *all);

/* The request stays the caller's. Calls on_done once, from the loop; then the answer is there, and
 * the evaluation is to be freed. */
struct evaluation *evaluation_start(struct rest *rest, const struct request *request,
                                    void (*on_done)(void *context), void *context);
struct response *evaluation_response(struct evaluation *e);
/* Ends it, wherever it is; not from its own fiber. NULL is allowed. */
void evaluation_free(struct evaluation *e);

/* What the request that runs now is evaluated in; NULL: it runs on the loop's stack. */
struct evaluation *evaluation_running(const struct rest *rest);
/* From here on to the end of the request it does not give way, since it changes what it has found.
 * On a fiber: if what it has understood of resources is not so any more, it begins anew. */
struct err *evaluation_begin_change(struct call *call) MUST_USE;

/* A request that could change something does not, as has turned out before it has looked at any
 * entity. On a fiber: it sees one moment, as all that read. */
void evaluation_begin_reading(struct call *call);

/* A request that reads begins anew if resources were declared anew while it gave way. NULL: it runs
 * on the loop's stack. */
void evaluation_check_resources(struct evaluation *e);

#endif
