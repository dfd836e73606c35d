/* One slice of one evaluation a turn: between two of them the loop serves whoever is there. Its
 * fiber runs what evaluations are for; what that comes to when it has to begin anew, as resources
 * were declared anew meanwhile or others who cannot wait have changed something before it, is
 * thrown away.
 *
 * Who holds the turn is not waited for on the loop's stack: what would have to wait becomes an
 * evaluation, which is put aside until the turn is free. */
#include "rest/evaluation.h"

#include "access/account.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/room.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "protocol/method.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/evaluation_state.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/change.h"

/* Then it holds up others, rather than begin anew again. */
enum { TRIES_MOST = 3 };

/* How often those that rest are looked at. */
enum { REST_MS = 5 };

static bool only_reads(const struct request *r)
{
    enum method method = method_parse(r->method);

    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_REPORT;
}

static uint64_t next_serial(const struct evaluation *e)
{
    return journal_next_serial(turn_journal(e->rest->turn));
}

/* ---- the turn ---- */

/* Somebody of this account has to wait, while the turn is held. */
static void note_wanted(struct evaluations *all, const struct account *account)
{
    if (all->holder != NULL && all->holder->account != account)
        all->holder->is_wanted = true;
}

/* Whoever held the turn last, and does not any more, rests if others waited. `own`: so many of
 * those that were in line are evaluations. */
static void let_rest(struct evaluations *all, size_t own)
{
    struct evaluation *e = TAKE(all->holder);
    uint64_t now_ns = clock_mono_ns();

    if (e == NULL || !e->is_long || (!e->is_wanted && turn_left_waiting(all->rest->turn) <= own))
        return;
    all->rests_until_ns =
        MAX(all->rests_until_ns, now_ns) + EVALUATIONS_REST * (now_ns - e->held_since_ns);
    e->account->rests_until_ns = all->rests_until_ns;
}

static void release_turn(struct evaluation *e)
{
    size_t own = list_linked(&e->rest->evaluations->line.link);

    if (!e->holds_turn)
        return;
    e->holds_turn = false;
    turn_release(e->rest->turn);
    let_rest(e->rest->evaluations, own);
}

/* That of a change which is applied is released by itself. It waits in line for that. */
static void let_applied_rest(struct evaluations *all)
{
    let_rest(all, 1);
}

static void hold_turn(struct evaluation *e)
{
    turn_hold(e->rest->turn);
    e->holds_turn = true;
    e->held_serial = next_serial(e);
    e->held_since_ns = clock_mono_ns();
    e->held_slices = 0;
    let_applied_rest(e->rest->evaluations);
    e->rest->evaluations->holder = e;
    e->is_wanted = false;
    if (!e->has_snapshot)
        snapshot_open(&e->snapshot, e->rest->store, e->held_serial - 1);
    if (e->tries > TRIES_MOST)
        budget_hold();
}

/* As far as is known. */
static bool must_rest(const struct evaluation *e)
{
    return e->is_long && clock_mono_ns() < e->account->rests_until_ns;
}

static bool may_go_on(const struct evaluation *e)
{
    return !turn_is_held(e->rest->turn) && !(e->rests && must_rest(e));
}

/* Until it is resumed, which is not before the turn is free, or nobody wants it any more. */
static void yield_until_free(struct evaluation *e)
{
    e->waits = true;
    budget_yield();
    e->waits = false;
}

static bool is_wanted(const struct evaluation *e)
{
    return e->budget.state != BUDGET_ENDED;
}

static void begin_anew(struct evaluation *e)
{
    if (e->budget.state != BUDGET_GOOD)
        return;
    e->budget.state = BUDGET_NEEDS_FIBER;
    e->tries++;
}

/* There is no moment to see while a change is applied. */
static void wait_for_moment(struct evaluation *e)
{
    while (turn_is_applying(e->rest->turn) && is_wanted(e))
        yield_until_free(e);
}

static void take_snapshot(struct evaluation *e)
{
    wait_for_moment(e);
    snapshot_open(&e->snapshot, e->rest->store, next_serial(e) - 1);
}

/* Somebody who could not wait has changed something that it may have built on. */
static void look_for_others(struct evaluation *e)
{
    if (e->holds_turn && !e->has_changed && e->held_serial != next_serial(e))
        begin_anew(e);
}

/* One that was let hold the turn, as nobody knew that it is long, while its account is to rest,
 * rests after its first slice: that is all that is lost. */
static void look_at_length(struct evaluation *e)
{
    if (!e->holds_turn || e->is_long || e->held_slices++ == 0)
        return;
    e->is_long = true;
    if (must_rest(e) && !e->has_changed && e->budget.holds == 0 && e->budget.state == BUDGET_GOOD)
        e->budget.state = BUDGET_NEEDS_FIBER;
}

/* Others have taken room since it began to make its answer, and so has it. What changes something
 * has looked for room before. */
static void look_at_room(struct evaluation *e)
{
    const struct limits *limits = e->rest->limits;
    struct response *answer = &e->response;
    uint64_t made = answer->arena.used_bytes + answer->body.size;

    if (!e->has_snapshot || e->budget.state != BUDGET_GOOD || mem_has_to_give_back())
        return; /* more goes back in a turn than is made in one */
    response_bound(answer, (size_t)room_most(limits, answer->body.size, limits->answer_bytes));
    if (made <= room_most(limits, made, INT64_MAX))
        return;
    e->budget.state = BUDGET_NO_ROOM;
    e->rest->metrics->limit_hits[METRIC_MEMORY_BYTES]++;
}

/* ---- on its fiber ---- */

static void run_once(struct evaluation *e)
{
    struct rest *rest = e->rest;

    if (e->has_snapshot)
        take_snapshot(e);
    e->resources_since = rest->resources->changes;
    rest->evaluations->run(rest, e->request, &e->response);
    snapshot_close(&e->snapshot);
    release_turn(e);
}

static void run_tries(void *evaluation)
{
    struct evaluation *e = evaluation;

    do {
        if (e->budget.state == BUDGET_NEEDS_FIBER)
            e->budget.state = BUDGET_GOOD;
        e->budget.holds = 0;
        run_once(e);
    } while (e->budget.state == BUDGET_NEEDS_FIBER);
}

/* What first tries have taken is not there any more. Who holds the turn has its slice whole: others
 * wait for it, and by its slices one knows that it is long. */
static uint64_t slice_ns(const struct evaluation *e)
{
    struct evaluations *all = e->rest->evaluations;
    uint64_t tried_ns = MIN(all->tried_ns, BUDGET_SLICE_NS - BUDGET_LEAST_SLICE_NS);

    all->tried_ns = 0;
    return e->holds_turn ? BUDGET_SLICE_NS : BUDGET_SLICE_NS - tried_ns;
}

/* Until it gives way or ends. One that a request gives up, by deleting what it was for, ends within
 * that request. */
static void run_slice(struct evaluation *e)
{
    struct evaluations *all = e->rest->evaluations;
    struct evaluation *outer = all->rest->running;
    struct budget_now outer_budget = budget_now;

    e->rest->metrics->scan_slices++;
    e->budget.slice_ns = slice_ns(e);
    all->rest->running = e;
    look_for_others(e);
    look_at_length(e);
    look_at_room(e);
    budget_enter(&e->budget);
    if (!fiber_resume(e->fiber)) {
        e->fiber = NULL;
        all->begun--;
        e->account->evaluations_begun--;
    }
    budget_leave(&e->budget);
    budget_now = outer_budget;
    all->rest->running = outer;
}

/* ---- turns ---- */

/* While a change is applied nobody begins: there would be no moment to see. */
static bool may_begin(const struct evaluations *all, const struct account *account)
{
    if (list_empty(&account->coming) || turn_is_applying(all->rest->turn))
        return false;
    if (account->evaluations_begun == 0)
        return all->begun < EVALUATIONS_FIRST;
    return account->evaluations_begun < EVALUATIONS_OF_ACCOUNT && all->begun < EVALUATIONS_MOST;
}

/* The account whose turn it is, of those with one that can go on; NULL: there is none. */
static struct account *next_account(const struct evaluations *all)
{
    LIST_EACH(&all->accounts, at) {
        struct account *account = CONTAINER_OF(at, struct account, in_turn);

        if (!list_empty(&account->going) || may_begin(all, account))
            return account;
    }
    return NULL;
}

static void wake(struct evaluations *all)
{
    if (next_account(all) != NULL)
        loop_post(all->rest->loop, &all->task);
    else if (turn_is_held(all->rest->turn) && all->count > 0)
        turn_line_up(all->rest->turn, &all->line);
}

static void queue(struct evaluation *e)
{
    struct account *account = e->account;
    struct evaluations *all = e->rest->evaluations;

    e->queue = e->fiber != NULL ? &account->going : &account->coming;
    list_push_back(e->queue, &e->link);
    if (!list_linked(&account->in_turn))
        list_push_back(&all->accounts, &account->in_turn);
}

static void take_out(struct evaluation *e)
{
    struct evaluations *all = e->rest->evaluations;
    struct account *account = e->account;

    list_remove(TAKE(e->queue), &e->link);
    if (list_linked(&account->in_turn) && list_empty(&account->going) &&
        list_empty(&account->coming))
        list_remove(&all->accounts, &account->in_turn);
}

/* The account goes to the end of the ring. */
static struct evaluation *take_next(struct evaluations *all, struct account *account)
{
    const struct list *from = may_begin(all, account) ? &account->coming : &account->going;
    struct evaluation *e = CONTAINER_OF(list_first(from), struct evaluation, link);

    take_out(e);
    if (list_linked(&account->in_turn)) {
        list_remove(&all->accounts, &account->in_turn);
        list_push_back(&all->accounts, &account->in_turn);
    }
    return e;
}

static void begin(struct evaluation *e)
{
    e->fiber = fiber_new(run_tries, e);
    e->rest->evaluations->begun++;
    e->account->evaluations_begun++;
}

/* Until the turn is free, or has been long enough. */
static void wait_aside(struct evaluation *e)
{
    struct evaluations *all = e->rest->evaluations;

    e->queue = &all->waiting;
    list_push_back(e->queue, &e->link);
    if (turn_is_held(e->rest->turn)) {
        turn_line_up(e->rest->turn, &all->line);
        note_wanted(all, e->account);
    }
    if (e->rests && must_rest(e) && !timer_running(&all->rested))
        timer_start(all->rest->loop, &all->rested, REST_MS);
}

static void put_aside(struct evaluation *e)
{
    if (e->waits && !may_go_on(e))
        wait_aside(e);
    else
        queue(e);
}

static void on_turn(struct loop_task *task)
{
    struct evaluations *all = CONTAINER_OF(task, struct evaluations, task);
    struct account *account = next_account(all);
    struct evaluation *e;

    if (account == NULL) {
        wake(all);
        return;
    }
    e = take_next(all, account);
    if (e->fiber == NULL)
        begin(e);
    run_slice(e);
    if (e->fiber != NULL)
        put_aside(e);
    else
        all->count--;
    wake(all);
    if (e->fiber != NULL)
        return;
    metrics_note_turn(e->rest->metrics, e->budget.longest_ns);
    e->on_done(e->context);
}

static void look_at_waiting(struct evaluations *all)
{
    struct list waiting;
    struct list_link *at;

    list_init(&waiting);
    list_take_all(&waiting, &all->waiting);
    while ((at = list_pop_front(&waiting)) != NULL)
        put_aside(CONTAINER_OF(at, struct evaluation, link));
    wake(all);
}

static void on_free(struct turn_line *line)
{
    look_at_waiting(CONTAINER_OF(line, struct evaluations, line));
}

static void on_rested(struct timer *timer)
{
    look_at_waiting(CONTAINER_OF(timer, struct evaluations, rested));
}

struct evaluations *evaluations_new(struct rest *rest, evaluation_run_fn *run)
{
    struct evaluations *all = NEW(struct evaluations);

    *all = (struct evaluations){
        .rest = rest, .run = run, .task.run = on_turn, .line.on_free = on_free};
    list_init(&all->accounts);
    list_init(&all->waiting);
    timer_init(&all->rested, on_rested);
    return all;
}

void evaluations_free(struct evaluations *all)
{
    mem_free(all);
    fiber_forget_stacks();
}

size_t evaluations_count(const struct evaluations *all)
{
    return all->count;
}

void evaluations_note_try(struct evaluations *all, uint64_t ns)
{
    metrics_note_turn(all->rest->metrics, ns);
    all->tried_ns += ns;
}

void evaluations_are_of(struct evaluations *all, struct account *account)
{
    all->next = account;
}

struct evaluation *evaluation_start(struct rest *rest, const struct request *request,
                                    void (*on_done)(void *context), void *context)
{
    struct evaluations *all = rest->evaluations;
    struct account *account = TAKE(all->next);
    struct evaluation *e = NEW(struct evaluation);

    e->rest = rest;
    e->account = account_keep(account != NULL ? account : rest->everybody);
    e->request = request;
    response_init(&e->response, (size_t)rest->limits->answer_bytes);
    budget_init(&e->budget, (uint64_t)rest->limits->request_cpu_ms * 1000000);
    e->budget.is_on_fiber = true;
    e->has_snapshot = only_reads(request);
    e->on_done = on_done;
    e->context = context;
    rest->metrics->gave_way++;
    all->count++;
    if (turn_is_applying(rest->turn)) /* it cannot begin */
        note_wanted(all, e->account);
    queue(e);
    wake(all);
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
    MUST(all->rest->running != e);
    if (e->queue != NULL) {
        take_out(e);
        all->count--;
    }
    e->budget.state = BUDGET_ENDED;
    while (e->fiber != NULL)
        run_slice(e);
    if (all->holder == e)
        all->holder = NULL;
    account_unref(e->rest->accounts, e->account);
    response_done(&e->response);
    mem_free(e);
    if (all->count == 0) {
        loop_unpost(all->rest->loop, &all->task);
        timer_stop(all->rest->loop, &all->rested);
        turn_line_leave(all->rest->turn, &all->line);
    } else {
        wake(all);
    }
}

/* ---- what a request asks ---- */

bool evaluation_is_of(const struct evaluation *e, const struct request *request)
{
    return e->request == request;
}

struct snapshot *evaluation_snapshot(struct evaluation *e)
{
    return e->has_snapshot ? &e->snapshot : NULL;
}

bool evaluation_holds_turn(const struct evaluation *e)
{
    return e->holds_turn;
}

void evaluation_check_resources(struct evaluation *e)
{
    if (e->has_snapshot && e->resources_since != e->rest->resources->changes &&
        e->budget.state == BUDGET_GOOD)
        e->budget.state = BUDGET_NEEDS_FIBER;
}

static struct err *wait_on_loop(struct rest *rest)
{
    struct err *e;

    if (budget_give_way()) { /* it cannot */
        turn_settle(rest->turn);
        return NULL;
    }
    e = budget_check();
    if (e != NULL && err_code(e) != ERR_GIVES_WAY)
        turn_settle(rest->turn);
    return e;
}

struct err *evaluation_wait_turn(struct rest *rest)
{
    struct evaluation *e = rest->running;

    if (!turn_is_held(rest->turn))
        return NULL;
    if (e == NULL)
        return wait_on_loop(rest);
    release_turn(e);
    while (turn_is_held(rest->turn) && is_wanted(e))
        yield_until_free(e);
    return budget_check();
}

/* What it has taken until here tells that there is much of it. */
static struct err *wait_and_hold(struct evaluation *e)
{
    e->is_long |= e->budget.used_ns > BUDGET_CHANGE_NS;
    e->rests = true;
    while (!may_go_on(e) && is_wanted(e))
        yield_until_free(e);
    e->rests = false;
    TRY(budget_check());
    hold_turn(e);
    return NULL;
}

struct err *evaluation_only_asks(struct rest *rest)
{
    struct evaluation *e = rest->running;

    if (e == NULL || e->has_snapshot || e->holds_turn)
        return NULL;
    take_snapshot(e);
    e->has_snapshot = true;
    return budget_check();
}

struct err *evaluation_begin_reading(struct rest *rest)
{
    struct evaluation *e = rest->running;

    if (e == NULL)
        return turn_is_applying(rest->turn) ? wait_on_loop(rest) : NULL;
    return e->holds_turn ? NULL : wait_and_hold(e);
}

void evaluation_end_reading(struct evaluation *e)
{
    if (e != NULL && e->has_snapshot)
        release_turn(e);
}

static struct err *begin_on_loop(struct call *call)
{
    if (turn_is_held(call->rest->turn))
        TRY(wait_on_loop(call->rest));
    budget_now.current->first_ns = BUDGET_CHANGE_NS;
    if (call->change->turn == NULL)
        change_init(call->change, call->rest->turn, call->arena);
    return NULL;
}

struct err *evaluation_begin_change(struct call *call)
{
    struct evaluation *e = call->evaluation;

    if (e == NULL)
        return begin_on_loop(call);
    if (!e->holds_turn)
        TRY(wait_and_hold(e));
    if (e->resources_since != call->rest->resources->changes && e->budget.state == BUDGET_GOOD)
        e->budget.state = BUDGET_NEEDS_FIBER;
    TRY(budget_check());
    if (call->change->turn != NULL)
        change_done(call->change);
    change_init(call->change, call->rest->turn, call->arena);
    return NULL;
}

static struct err *apply_at_once(struct call *call, uint64_t *out_serial)
{
    struct evaluation *e = call->evaluation;

    budget_commit();
    if (e != NULL)
        e->has_changed = true;
    return turn_apply(call->rest->turn, call->change, out_serial);
}

/* The answer leaves when everybody can see what it says. */
static struct err *apply_in_slices(struct evaluation *e, struct call *call, uint64_t *out_serial)
{
    struct turn *turn = e->rest->turn;

    TRY(turn_apply_long(turn, call->change, out_serial));
    if (*out_serial == 0) {
        begin_anew(e); /* others have come before it */
        return budget_check();
    }
    budget_commit();
    e->has_changed = true;
    e->holds_turn = false;
    e->is_long = true;
    while (turn_is_applying_to(turn, *out_serial) && is_wanted(e))
        yield_until_free(e);
    e->is_wanted |= !is_wanted(e); /* it is not known, as it goes on alone */
    if (e->rest->evaluations->holder == e)
        let_applied_rest(e->rest->evaluations);
    return NULL;
}

struct err *evaluation_apply(struct call *call, uint64_t *out_serial)
{
    struct evaluation *e = call->evaluation;

    if (e == NULL) {
        if (turn_is_long(call->change) && !budget_give_way())
            return budget_check();
        return apply_at_once(call, out_serial);
    }
    look_for_others(e);
    TRY(budget_check());
    snapshot_close(&e->snapshot); /* it is not to keep what is changed now */
    if (e->budget.holds > 0 || !turn_is_long(call->change))
        return apply_at_once(call, out_serial);
    return apply_in_slices(e, call, out_serial);
}

struct err *evaluation_check_rate(const struct call *call)
{
    struct rest *rest = call->rest;
    int64_t most = rest->limits->account_requests_per_second;
    unsigned wait_s;

    if (call->request->is_local ||
        (call->evaluation != NULL && evaluation_is_of(call->evaluation, call->request)))
        return NULL;
    wait_s = account_take_request(call->account, most, loop_now_ms(rest->loop));
    if (wait_s == 0)
        return NULL;
    rest->metrics->limit_hits[METRIC_ACCOUNT_REQUESTS]++;
    return err_set_retry_after(ERR(ERR_TOO_MANY_REQUESTS,
                                   "the limit AccountRequestsPerSecond (%lld) is reached",
                                   (long long)most),
                               wait_s);
}
