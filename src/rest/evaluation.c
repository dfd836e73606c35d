/* One slice of one evaluation a turn: between two of them the loop serves whoever is there. The
 * fiber runs request_run; what that comes to when it has to begin anew, as resources were declared
 * anew meanwhile, is thrown away. */
#include "rest/evaluation.h"

#include "base/fiber.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "journal/journal.h"
#include "rest/call.h"
#include "rest/method.h"
#include "rest/metrics.h"
#include "rest/resource.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/turn.h"

static bool only_reads(const struct request *r)
{
    enum method method = method_parse(r->method);

    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_REPORT;
}

static void take_snapshot(struct evaluation *e)
{
    struct rest *rest = e->rest;

    snapshot_open(&e->snapshot, rest->store, journal_next_serial(turn_journal(rest->turn)) - 1);
}

static void run_once(struct evaluation *e)
{
    struct rest *rest = e->rest;

    e->resources_since = rest->resources->changes;
    if (e->has_snapshot)
        take_snapshot(e);
    request_run(rest, e->request, &e->response);
    snapshot_close(&e->snapshot);
}

static void run(void *evaluation)
{
    struct evaluation *e = evaluation;

    do {
        if (e->budget.state == BUDGET_NEEDS_FIBER)
            e->budget.state = BUDGET_GOOD;
        e->budget.holds = 0;
        run_once(e);
    } while (e->budget.state == BUDGET_NEEDS_FIBER);
}

/* Until it gives way or ends. One that a request gives up, by deleting what it was for, ends within
 * that request. */
static void run_slice(struct evaluation *e)
{
    struct evaluations *all = e->rest->evaluations;
    struct evaluation *outer = all->running;
    struct budget_now outer_budget = budget_now;

    e->rest->metrics->scan_slices++;
    all->running = e;
    budget_enter(&e->budget);
    if (!fiber_resume(e->fiber))
        e->fiber = NULL;
    budget_leave(&e->budget);
    budget_now = outer_budget;
    all->running = outer;
}

static void queue(struct evaluation *e)
{
    struct evaluations *all = e->rest->evaluations;
    struct list_link *at = e->fiber != NULL ? list_first(&all->queue) : NULL;

    for (unsigned i = 1; at != NULL && i < EVALUATIONS_MOST; i++)
        at = list_next(&all->queue, at);
    if (at == NULL)
        list_push_back(&all->queue, &e->link);
    else
        list_insert_before(&all->queue, at, &e->link);
    loop_post(all->loop, &all->task);
}

static void on_turn(struct loop_task *task)
{
    struct evaluations *all = CONTAINER_OF(task, struct evaluations, task);
    struct evaluation *e = CONTAINER_OF(list_pop_front(&all->queue), struct evaluation, link);

    if (!list_empty(&all->queue))
        loop_post(all->loop, task);
    if (e->fiber == NULL)
        e->fiber = fiber_new(run, e);
    run_slice(e);
    if (e->fiber != NULL) {
        queue(e);
        return;
    }
    metrics_note_turn(e->rest->metrics, e->budget.longest_ns);
    e->on_done(e->context);
}

void evaluations_init(struct evaluations *all, struct loop *loop)
{
    all->loop = loop;
    list_init(&all->queue);
    all->task.run = on_turn;
}

size_t evaluations_count(const struct evaluations *all)
{
    return list_count(&all->queue);
}

struct evaluation *evaluation_start(struct rest *rest, const struct request *request,
                                    void (*on_done)(void *context), void *context)
{
    struct evaluation *e = NEW(struct evaluation);

    e->rest = rest;
    e->request = request;
    response_init(&e->response, (size_t)rest->limits->answer_bytes);
    budget_init(&e->budget, (uint64_t)rest->limits->request_cpu_ms * 1000000);
    e->budget.is_on_fiber = true;
    e->has_snapshot = only_reads(request);
    e->on_done = on_done;
    e->context = context;
    rest->metrics->gave_way++;
    queue(e);
    return e;
}

struct response *evaluation_response(struct evaluation *e)
{
    return &e->response;
}

/* One that is in the midst of its work is told to stop, and frees what it has on its way out. */
void evaluation_free(struct evaluation *e)
{
    struct evaluations *all;

    if (e == NULL)
        return;
    all = e->rest->evaluations;
    MUST(all->running != e);
    if (list_linked(&e->link))
        list_remove(&all->queue, &e->link);
    if (list_empty(&all->queue))
        loop_unpost(all->loop, &all->task);
    e->budget.state = BUDGET_ENDED;
    while (e->fiber != NULL)
        run_slice(e);
    response_done(&e->response);
    mem_free(e);
}

struct evaluation *evaluation_running(const struct rest *rest)
{
    return rest->evaluations->running;
}

void evaluation_check_resources(struct evaluation *e)
{
    if (e != NULL && e->has_snapshot && e->resources_since != e->rest->resources->changes &&
        e->budget.state == BUDGET_GOOD)
        e->budget.state = BUDGET_NEEDS_FIBER;
}

void evaluation_begin_reading(struct call *call)
{
    struct evaluation *e = evaluation_running(call->rest);

    if (e == NULL || e->has_snapshot)
        return;
    e->has_snapshot = true;
    take_snapshot(e);
}

struct err *evaluation_begin_change(struct call *call)
{
    struct evaluation *e = evaluation_running(call->rest);

    budget_hold();
    if (e == NULL)
        return NULL;
    if (e->resources_since != call->rest->resources->changes && e->budget.state == BUDGET_GOOD)
        e->budget.state = BUDGET_NEEDS_FIBER;
    TRY(budget_check());
    change_done(call->change);
    change_init(call->change, call->rest->turn, call->arena);
    return NULL;
}
