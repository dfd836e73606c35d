#include "receivers.h"

#include "clients.h"
#include "network.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/macros.h"
#include "base/must.h"
#include "base/rng.h"
#include "hooks/lane.h"
#include "webhook/retry.h"

#include <stdio.h>
#include <string.h>

static struct span header_of(const struct fetch *f, const char *name)
{
    for (size_t i = 0; i < f->header_count; i++)
        if (span_ieq(f->headers[i].name, span_str(name)))
            return f->headers[i].value;
    return (struct span){NULL, 0};
}

static size_t pair_of(const struct world *w, const struct fetch *f)
{
    size_t hook = ledger_find_hook(w->ledger, header_of(f, "Svc-webhook-id"));
    size_t event = ledger_find_event(w->ledger, header_of(f, "webhook-id"));
    size_t pair;

    MUST(hook != SIZE_MAX && event != SIZE_MAX);
    pair = ledger_find_pair(w->ledger, event, hook);
    MUST(pair != SIZE_MAX);
    return pair;
}

/* Its delivery's number, by which clients get at it. */
static void learn_delivery(const struct world *w, struct pair *pair)
{
    struct uuid hook, event;

    MUST(uuid_parse(span_str(w->ledger->hooks[pair->hook].id), &hook));
    MUST(uuid_parse(span_str(w->ledger->events[pair->event].id), &event));
    for (const struct delivery *d =
             lane_first_delivery(lane_find(w->service->hooks.deliveries, &hook));
         d != NULL && pair->object_no == 0; d = lane_next_delivery(d->lane, d))
        if (uuid_eq(&d->event->id, &event))
            pair->object_no = d->object_no;
    MUST(pair->object_no != 0);
}

/* Outcomes. --------------------------------------------------------------------------------- */

static bool is_accepted(const struct fetch_result *r)
{
    return r->status >= 200 && r->status < 300;
}

/* What the delivery is now: service/retry.h in other words. */
static struct pair_state pair_after(const struct pair *pair, const struct fetch_result *r)
{
    const struct schedule *schedule = &schedules[pair->started.schedule];
    struct pair_state state = pair->now;

    state.attempts++;
    state.is_ended = is_accepted(r) || r->status == 410 || state.attempts > schedule->count;
    if (!state.is_ended)
        state.not_before_ms =
            clock_mono_ms() + (uint64_t)schedule->seconds[state.attempts - 1] * 1000;
    return state;
}

static struct hook_state hook_after(const struct hook *hook, const struct pair *pair,
                                    const struct fetch_result *r)
{
    unsigned disable_days = pair->started.disable_days;
    struct hook_state state = hook->now;
    int64_t failing_ns = clock_unix_ns() - state.failing_since_unix_ns;
    bool is_asked = (r->status == 429 || r->status == 503) && r->retry_after_s > 0;

    if (is_asked)
        state.hold_until_ms =
            MAX(state.hold_until_ms,
                clock_mono_ms() + (uint64_t)MIN(r->retry_after_s, RETRY_AFTER_MAX_S) * 1000);
    if (is_accepted(r)) {
        state.failing_since_unix_ns = 0;
        return state;
    }
    if (r->status == 410 || (state.failing_since_unix_ns != 0 && disable_days > 0 &&
                             failing_ns >= disable_days * INT64_C(86400000000000)))
        state.is_paused = true;
    return state;
}

static void note_outcome(struct world *w, struct pair *pair, const struct fetch_result *r)
{
    struct ledger *l = w->ledger;
    struct pair_state state = pair_after(pair, r);
    struct hook_state hook = hook_after(&l->hooks[pair->hook], pair, r);

    if (!is_accepted(r) && hook.failing_since_unix_ns == 0)
        hook.failing_since_unix_ns = pair->started_unix_ns;
    ledger_set_pair(l, (size_t)(pair - l->pairs), &state, world_serial(w));
    ledger_set_hook(l, pair->hook, &hook, world_serial(w));
}

/* Checks of a start. ------------------------------------------------------------------------ */

static void check_rate(struct hook *hook)
{
    double rate = hook->now.rate_per_second, most = 1 + rate / 100;

    if (rate == 0)
        return;
    if (hook->tokens_at_ms == 0)
        hook->tokens = most;
    else
        hook->tokens += (double)(clock_mono_ms() - hook->tokens_at_ms) / 1000 * rate;
    hook->tokens = MIN(hook->tokens, most) - 1;
    hook->tokens_at_ms = clock_mono_ms();
    MUST(hook->tokens > -0.01);
}

/* When an outcome was recorded late, the ledger knows only a bound of its serial, and may have
 * taken back what a loss of power left. */
static bool has_ended(const struct pair *pair)
{
    return pair->now.is_ended || pair->was_late;
}

/* In an ordered webhook whatever came earlier has ended. */
static void check_order(const struct ledger *l, const struct pair *pair)
{
    if (!l->hooks[pair->hook].now.is_ordered)
        return;
    MUST(l->hooks[pair->hook].in_flight == 0);
    for (const struct pair *other = l->pairs; other < pair; other++)
        MUST(other->hook != pair->hook || !other->now.exists || has_ended(other));
}

static void check_body(const struct world *w, const struct pair *pair, const struct fetch *f)
{
    const struct raised *event = &w->ledger->events[pair->event];
    struct buf body = {.max = BUF_NO_CAP};

    event_add_body(&body, event->n, event->padding);
    MUST(span_eq(blob_span(f->body), buf_span(&body)));
    buf_done(&body);
}

static void check_receiver(const struct world *w, const struct hook *hook, const struct fetch *f)
{
    MUST(span_eq(f->url, span_str(sim_network_url(hook->now.receiver))));
    MUST(sim_network_count() <= w->service->hooks.in_flight_most);
    MUST(sim_network_count_beside(f) <= w->service->hooks.connections_per_host);
}

static void check_times(const struct world *w, const struct pair *pair)
{
    if (w->clock_jumps)
        return;
    MUST(clock_mono_ms() >= pair->now.not_before_ms);
    MUST(clock_mono_ms() >= w->ledger->hooks[pair->hook].now.hold_until_ms);
}

/* Of an outcome that was recorded late the ledger may learn only now, or have taken it back though
 * a loss of power left it (has_ended). */
static void check_attempt(struct world *w, struct pair *pair, const struct fetch *f)
{
    uint64_t attempt;

    MUST(span_to_u64(header_of(f, "Svc-attempt"), &attempt));
    if (pair->is_late && attempt == pair->now.attempts + 2) {
        pair->is_late = false;
        note_outcome(w, pair, &pair->late);
    }
    if (pair->was_late && attempt > pair->now.attempts + 1)
        pair->now.attempts = (unsigned)attempt - 1;
    MUST(attempt == pair->now.attempts + 1);
}

static void on_start(void *context, struct fetch *f)
{
    struct world *w = context;
    struct ledger *l = w->ledger;
    struct pair *pair = &l->pairs[pair_of(w, f)];
    struct hook *hook = &l->hooks[pair->hook];

    receivers_look(w);
    MUST(turn_is_committed(w->service->turn, l->events[pair->event].now.serial));
    check_attempt(w, pair, f);
    MUST(!hook->now.is_paused && pair->fetch == NULL && !pair->is_late && !pair->now.is_ended);
    MUST(hook->in_flight < hook->now.max_in_flight);
    check_times(w, pair);
    check_order(l, pair);
    check_rate(hook);
    check_body(w, pair, f);
    check_receiver(w, hook, f);
    learn_delivery(w, pair);
    pair->fetch = f;
    pair->started_unix_ns = clock_unix_ns();
    pair->started = hook->now;
    hook->in_flight++;
    w->attempts++;
}

static struct pair *pair_under_way(struct ledger *l, const struct fetch *f)
{
    for (size_t i = l->pair_count; i-- > 0;)
        if (l->pairs[i].fetch == f)
            return &l->pairs[i];
    MUST_NOT_REACH();
}

static void end_flight(struct ledger *l, struct pair *pair)
{
    pair->fetch = NULL;
    l->hooks[pair->hook].in_flight--;
}

static void on_cancel(void *context, struct fetch *f)
{
    struct ledger *l = ((struct world *)context)->ledger;

    end_flight(l, pair_under_way(l, f));
}

void receivers_watch(struct world *w)
{
    sim_network_watch(on_start, on_cancel, w);
}

/* Answers. ---------------------------------------------------------------------------------- */

static struct fetch_result any_result(bool is_well)
{
    static const int statuses[] = {200, 204, 299, 200, 301, 400, 410, 429, 500, 503};
    static const enum fetch_error errors[] = {FETCH_TIMEOUT, FETCH_CONNECT, FETCH_CLOSED,
                                              FETCH_NAME, FETCH_TLS};
    struct fetch_result result = {.retry_after_s = -1, .total_ms = rng_below(4) == 0 ? 1500 : 3};

    if (is_well || rng_below(2) == 0) {
        result.status = 200;
    } else if (rng_below(3) > 0) {
        result.status = statuses[rng_below(rng_below(8) == 0 ? 10 : 6)];
        if (rng_below(4) == 0)
            result.retry_after_s = (int64_t)rng_below(100000);
    } else {
        result.error = errors[rng_below(ARRAY_LEN(errors))];
        snprintf(result.why, sizeof(result.why), "it was not to be");
    }
    return result;
}

void receivers_connect(struct world *w)
{
    (void)w;
    if (sim_network_count() > 0)
        sim_network_connect(sim_network_at((size_t)rng_below(sim_network_count())));
}

void receivers_answer(struct world *w, bool is_well)
{
    struct fetch_result result = any_result(is_well);
    uint64_t before = world_serial(w);
    struct pair *pair;
    struct fetch *f;

    if (sim_network_count() == 0)
        return;
    f = sim_network_at((size_t)rng_below(sim_network_count()));
    pair = pair_under_way(w->ledger, f);
    pair->is_accepted = pair->is_accepted || is_accepted(&result);
    end_flight(w->ledger, pair);
    sim_network_answer(f, &result);
    if (world_serial(w) != before) {
        note_outcome(w, pair, &result);
        return;
    }
    pair->late = result;
    pair->is_late = pair->was_late = true;
    w->ledger->hooks[pair->hook].was_late = true;
}

static void look(struct world *w, struct pair *pair)
{
    const struct delivery *d = delivery_find_no(w->service->hooks.deliveries, pair->object_no);

    if (d != NULL && d->state == DELIVERY_IN_FLIGHT)
        return;
    pair->is_late = false;
    if (d != NULL)
        note_outcome(w, pair, &pair->late);
}

void receivers_look(struct world *w)
{
    for (size_t i = 0; i < w->ledger->pair_count; i++)
        if (w->ledger->pairs[i].is_late)
            look(w, &w->ledger->pairs[i]);
}

/* The end. ---------------------------------------------------------------------------------- */

void receivers_check_end(struct world *w)
{
    const struct ledger *l = w->ledger;

    MUST(deliveries_pending(w->service->hooks.deliveries) == 0);
    MUST(deliveries_count(w->service->hooks.deliveries, DELIVERY_IN_FLIGHT) == 0);
    for (size_t i = 0; i < l->pair_count; i++) {
        const struct pair *pair = &l->pairs[i];
        const struct hook *hook = &l->hooks[pair->hook];

        MUST(pair->fetch == NULL && !pair->is_late);
        if (!pair->now.exists || !hook->now.exists)
            continue;
        if (hook->is_local)
            MUST(w->has_been_full || pair->now.is_ended ||
                 clients_count_in_sink(w, l->events[pair->event].n) > 0);
        else
            MUST(has_ended(pair));
    }
}
