/* Lanes and the scheduler. A lane that may start a delivery stands in one ring; the starter gives
 * each lane one start and sends it to the end of the ring, a bounded number of starts a turn. So a
 * lane with a million deliveries and one with a single delivery wait equally long. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "service/delivery_inner.h"

#include <math.h>

enum {
    STARTS_PER_TURN = 32,
    STARTS_NS = 2000000,
    DROPS_PER_TURN = 1000,
    READ_AGAIN_MS = 1,
    FIRST_WINDOW = 4,
    PROMPT_MS = 1000
};

#define NEVER UINT64_MAX
/* The part of RatePerSecond by which the bucket of tokens is larger than one, and by which it fills
 * more slowly: starts that timers bring late are made up for, and still no second has more of them
 * than the rate says. */
#define RATE_SLACK 0.01
#define TOKEN_WAIT_MOST_MS 86400000.0

static struct delivery *queued_at(struct heap_node *node)
{
    return node == NULL ? NULL : CONTAINER_OF(node, struct delivery, queued);
}

static struct lane *ready_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct lane, ready_link);
}

bool lane_rank_less(const struct heap_node *a, const struct heap_node *b)
{
    const struct delivery *x = CONTAINER_OF_CONST(a, struct delivery, queued);
    const struct delivery *y = CONTAINER_OF_CONST(b, struct delivery, queued);

    return x->rank != y->rank ? x->rank < y->rank : x->object_no < y->object_no;
}

static uint64_t now_ms(const struct lane *lane)
{
    return loop_now_ms(lane->deliveries->service->loop);
}

/* The loop clock's time at a time of the wall clock, when that is at `now_unix_ns`: not a moment
 * earlier. Read once: what the wall clock does then moves nothing. */
static uint64_t ms_of_unix(const struct lane *lane, int64_t unix_ns, int64_t now_unix_ns)
{
    int64_t wait_ns = unix_ns - now_unix_ns;

    return wait_ns > 0 ? (clock_mono_ns() + (uint64_t)wait_ns) / 1000000 + 1 : now_ms(lane);
}

/* First attempts keep the order of events. Whatever comes back goes to the end, so that retries and
 * replays never starve first attempts; in an ordered lane it goes to its place. */
static uint64_t place_in_queue(const struct lane *lane, const struct delivery *delivery)
{
    struct service *s = lane->deliveries->service;

    if (lane->ordered || delivery->version == delivery->event->object_no)
        return delivery->object_no;
    return store_is_loaded(s->store) ? journal_next_serial(turn_journal(s->turn))
                                     : delivery->version;
}

/* In an ordered lane only the head's time matters, and which is the head. */
static void enqueue_waiting(struct lane *lane, struct delivery *delivery)
{
    if (lane->head_no == delivery->object_no)
        lane->head_no = 0;
    delivery->rank = lane->ordered ? delivery->object_no
                                   : ms_of_unix(lane, delivery->at_unix_ns, clock_unix_ns());
    heap_add(&lane->waiting, &delivery->queued);
}

void lane_enqueue(struct lane *lane, struct delivery *delivery)
{
    if (delivery->state == DELIVERY_PENDING) {
        delivery->rank = place_in_queue(lane, delivery);
        heap_add(&lane->pending, &delivery->queued);
    } else {
        MUST(delivery->state == DELIVERY_WAITING);
        enqueue_waiting(lane, delivery);
    }
}

void lane_hold(struct lane *lane, int64_t until_unix_ns)
{
    if (until_unix_ns == lane->hold_until_unix_ns)
        return;
    lane->hold_until_unix_ns = until_unix_ns;
    lane->hold_until_ms = ms_of_unix(lane, until_unix_ns, clock_unix_ns());
}

bool lane_is_held(const struct lane *lane)
{
    return lane->hold_until_ms > 0 && lane->hold_until_ms > now_ms(lane);
}

void lane_dequeue(struct lane *lane, struct delivery *delivery)
{
    heap_remove(delivery->state == DELIVERY_PENDING ? &lane->pending : &lane->waiting,
                &delivery->queued);
}

static void note_head(struct lane *lane, const struct delivery *head, int64_t now_unix_ns)
{
    lane->head_no = head->object_no;
    lane->head_due_ms = ms_of_unix(lane, head->at_unix_ns, now_unix_ns);
}

/* When the first of those that wait is due. */
static uint64_t due_ms(struct lane *lane)
{
    const struct delivery *first = lane_first_waiting(lane);

    MUST(first != NULL);
    if (!lane->ordered)
        return first->rank;
    if (lane->head_no != first->object_no)
        note_head(lane, first, clock_unix_ns());
    return lane->head_due_ms;
}

void lane_count_waits_from(struct lane *lane, int64_t now_unix_ns)
{
    const struct delivery *first = lane_first_waiting(lane);

    lane->hold_until_ms = ms_of_unix(lane, lane->hold_until_unix_ns, now_unix_ns);
    if (lane->ordered && first != NULL)
        note_head(lane, first, now_unix_ns);
    if (lane->ordered || first == NULL)
        return;
    LIST_EACH(&lane->all, at) {
        struct delivery *delivery = CONTAINER_OF(at, struct delivery, lane_link);

        if (delivery->state != DELIVERY_WAITING)
            continue;
        delivery->rank = ms_of_unix(lane, delivery->at_unix_ns, now_unix_ns);
        heap_update(&lane->waiting, &delivery->queued);
    }
}

/* Waiting ones whose time has come join the queue. */
static void promote_due(struct lane *lane, uint64_t now)
{
    struct delivery *first;

    while ((first = lane_first_waiting(lane)) != NULL && due_ms(lane) <= now)
        delivery_set_state(first, DELIVERY_PENDING);
}

/* What the process before has used up of the rate is not known: of attempts that were under way
 * when it ended the journal has nothing. So the bucket was empty when this one started; that of a
 * newer webhook was full. */
static void begin_rate(struct lane *lane)
{
    lane->tokens = lane->webhook->entity->object_no >= lane->deliveries->first_no;
    lane->tokens_at_ms = lane->deliveries->started_ms;
}

static double tokens_now(const struct lane *lane)
{
    double passed_s = (double)(now_ms(lane) - lane->tokens_at_ms) / 1000;
    double added = passed_s * lane->rate_per_second * (1 - RATE_SLACK);

    return fmin(1 + lane->rate_per_second * RATE_SLACK, lane->tokens + added);
}

static void take_token(struct lane *lane)
{
    if (lane->rate_per_second <= 0)
        return;
    lane->tokens = tokens_now(lane) - 1;
    lane->tokens_at_ms = now_ms(lane);
}

uint64_t lane_token_wait_ms(const struct lane *lane)
{
    double rate = lane->rate_per_second * (1 - RATE_SLACK);
    double missing = lane->rate_per_second > 0 ? 1 - tokens_now(lane) : 0;

    return missing <= 0 ? 0 : (uint64_t)fmin(ceil(missing / rate * 1000), TOKEN_WAIT_MOST_MS);
}

uint32_t lane_most_in_flight(const struct lane *lane)
{
    return MIN(lane->window, lane->max_in_flight);
}

void lane_note_outcome(struct lane *lane, bool is_success)
{
    if (is_success)
        lane->window = MIN(lane_most_in_flight(lane) * 2, lane->max_in_flight);
    else
        lane->window = MAX(lane_most_in_flight(lane) / 2, 1);
}

bool lane_head_waits(const struct lane *lane)
{
    const struct delivery *waiting = queued_at(heap_first(&lane->waiting));
    const struct delivery *pending = queued_at(heap_first(&lane->pending));

    if (waiting == NULL || pending == NULL)
        return waiting != NULL;
    return lane->ordered && waiting->object_no < pending->object_no;
}

/* When the lane may start its next delivery: a time that has passed, one to come, or NEVER (until
 * something changes). */
static uint64_t next_start_ms(struct lane *lane, uint64_t now)
{
    if (lane->webhook == NULL || lane->webhook->is_paused)
        return NEVER;
    promote_due(lane, now);
    if (lane->in_flight >= lane_most_in_flight(lane))
        return NEVER;
    if (lane_head_waits(lane))
        return MAX(due_ms(lane), lane->hold_until_ms);
    if (heap_first(&lane->pending) == NULL)
        return NEVER;
    return MAX(lane->hold_until_ms, now + lane_token_wait_ms(lane));
}

static void post_starter(struct deliveries *d)
{
    if (!loop_posted(&d->starter))
        loop_post(d->service->loop, &d->starter);
}

static void join(struct lane *lane, struct list *list)
{
    lane->ready_in = list;
    list_push_back(list, &lane->ready_link);
}

static void take_out(struct lane *lane)
{
    if (lane->ready_in != NULL)
        list_remove(lane->ready_in, &lane->ready_link);
    lane->ready_in = NULL;
}

static void leave(struct lane *lane)
{
    take_out(lane);
    host_uncall(lane);
}

bool lane_is_parked(const struct lane *lane)
{
    return lane->host != NULL && lane->ready_in == host_parked(lane->host);
}

/* Where it stands when too many like it have slots; NULL: it may have any. A request to ourselves
 * holds none. */
static struct list *slot_queue(const struct lane *lane)
{
    struct deliveries *d = lane->deliveries;

    if (lane->pace == LANE_PROMPT || lane->host == NULL)
        return NULL;
    return lane->pace == LANE_SLOW ? &d->slow : &d->unknown;
}

bool lane_waits_for_slot(const struct lane *lane)
{
    return lane->ready_in != NULL && lane->ready_in == slot_queue(lane);
}

void lane_call(struct lane *lane)
{
    take_out(lane);
    join(lane, &lane->deliveries->ready);
    post_starter(lane->deliveries);
}

/* Has one of those that stand in this queue a slot? */
static bool has_slot(const struct deliveries *d, const struct list *queue)
{
    size_t all = d->service->delivery_in_flight;
    size_t kept = queue == &d->slow ? all / 4 : queue == &d->unknown ? all / 8 : 0;

    return kept == 0 || d->unproved_in_flight < all - kept;
}

static struct lane *next_lane(struct deliveries *d)
{
    struct list *queues[] = {&d->unknown, &d->slow, &d->ready};

    for (size_t i = 0; i < ARRAY_LEN(queues); i++)
        if (!list_empty(queues[i]) && has_slot(d, queues[i]))
            return ready_at(list_first(queues[i]));
    return NULL;
}

static void look_for_starts(struct deliveries *d)
{
    if (d->is_started && next_lane(d) != NULL)
        post_starter(d);
}

void lane_take_slot(struct lane *lane)
{
    lane->in_flight++;
    lane->deliveries->unproved_in_flight += lane->pace != LANE_PROMPT;
}

void lane_free_slot(struct lane *lane)
{
    lane->in_flight--;
    lane->deliveries->unproved_in_flight -= lane->pace != LANE_PROMPT;
    look_for_starts(lane->deliveries);
}

void lane_note_time(struct lane *lane, uint64_t ms)
{
    struct deliveries *d = lane->deliveries;
    enum lane_pace pace = ms < PROMPT_MS ? LANE_PROMPT : LANE_SLOW;
    bool is_queued = lane_waits_for_slot(lane);

    if (pace == lane->pace)
        return;
    d->unproved_in_flight -= lane->pace != LANE_PROMPT ? lane->in_flight : 0;
    d->unproved_in_flight += pace != LANE_PROMPT ? lane->in_flight : 0;
    lane->pace = pace;
    if (is_queued) /* it may belong elsewhere now */
        lane_call(lane);
    look_for_starts(d);
}

void lane_update(struct lane *lane)
{
    struct deliveries *d = lane->deliveries;
    struct loop *loop = d->service->loop;
    uint64_t now, at;

    if (!d->is_started || lane->ready_in != NULL)
        return;
    now = now_ms(lane);
    at = next_start_ms(lane, now);
    if (at == NEVER) {
        timer_stop(loop, &lane->timer);
    } else if (at <= now) {
        timer_stop(loop, &lane->timer);
        join(lane, &d->ready);
        post_starter(d);
    } else {
        timer_start(loop, &lane->timer, at - now);
    }
}

static void on_time(struct timer *timer)
{
    lane_update(CONTAINER_OF(timer, struct lane, timer));
}

static void on_committed(struct turn_wait *wait)
{
    struct deliveries *d = CONTAINER_OF(wait, struct deliveries, commit);
    struct list_link *link;

    while ((link = list_first(&d->uncommitted)) != NULL) {
        leave(ready_at(link));
        join(ready_at(link), &d->ready);
    }
    post_starter(d);
}

/* A delivery must not leave before its event is on disk. */
static void wait_for_commit(struct deliveries *d, struct lane *lane, uint64_t serial)
{
    join(lane, &d->uncommitted);
    if (!heap_holds(&d->commit.node))
        turn_wait(d->service->turn, &d->commit, serial);
}

/* True when it started one. */
static bool start_one(struct deliveries *d, struct lane *lane)
{
    uint64_t now = now_ms(lane);
    struct delivery *next;

    if (next_start_ms(lane, now) > now) {
        lane_update(lane); /* it was paused or held meanwhile */
        return false;
    }
    next = queued_at(heap_first(&lane->pending));
    if (!turn_is_committed(d->service->turn, next->version)) {
        wait_for_commit(d, lane, next->version);
        return false;
    }
    if (!payload_ready(events_payloads(d->service->events), next->event)) {
        timer_start(d->service->loop, &lane->timer, READ_AGAIN_MS);
        return false;
    }
    if (!host_admits(lane)) {
        join(lane, host_parked(lane->host));
        return false;
    }
    take_token(lane);
    attempt_start(d, next);
    lane_update(lane);
    return true;
}

/* A bounded number of starts, which take a bounded time: those with a local request may take long.
 */
static void on_start(struct loop_task *task)
{
    struct deliveries *d = CONTAINER_OF(task, struct deliveries, starter);
    uint64_t until_ns = clock_mono_ns() + STARTS_NS;
    unsigned started = 0;
    struct lane *lane;

    /* With every slot taken, the one that is free first comes here again (lane_free_slot). */
    while (d->is_started && d->count[DELIVERY_IN_FLIGHT] < d->service->delivery_in_flight &&
           (lane = next_lane(d)) != NULL) {
        if (started == STARTS_PER_TURN || clock_mono_ns() > until_ns) {
            post_starter(d);
            break;
        }
        take_out(lane);
        lane->is_starting = true;
        if (has_slot(d, slot_queue(lane)))
            started += start_one(d, lane);
        else
            join(lane, slot_queue(lane));
        lane->is_starting = false;
        host_uncall(lane);
        lane_release(lane);
    }
}

/* The lane has become an ordered one, or is one no more. What had gone to the end of the queue
 * takes its place. */
static void rank_again(struct lane *lane)
{
    LIST_EACH(&lane->all, at) {
        struct delivery *delivery = CONTAINER_OF(at, struct delivery, lane_link);
        bool is_out_of_order = delivery->state == DELIVERY_PENDING && lane->ordered &&
                               delivery->rank != delivery->object_no;

        if (delivery->state != DELIVERY_WAITING && !is_out_of_order)
            continue;
        lane_dequeue(lane, delivery);
        lane_enqueue(lane, delivery);
    }
}

static void set_host(struct lane *lane, const struct webhook_settings *settings)
{
    struct delivery_host *host =
        settings->is_local ? NULL
                           : host_get(lane->deliveries, fetch_url_origin(settings->destination));

    if (host != lane->host && (lane->is_called || lane_is_parked(lane)))
        leave(lane);
    host_put(lane->host);
    lane->host = host;
}

void lane_configure(struct lane *lane)
{
    struct webhook_settings settings;
    bool was_ordered = lane->ordered;
    struct arena a;
    struct err *e;

    arena_init(&a);
    e = webhook_read(lane->webhook, &a, &settings);
    MUST(e == NULL); /* it was checked when it was written */
    lane->max_in_flight = settings.ordered ? 1 : settings.max_in_flight;
    lane->ordered = settings.ordered;
    lane->rate_per_second = settings.rate_per_second;
    set_host(lane, &settings);
    arena_done(&a);
    if (lane->ordered != was_ordered)
        rank_again(lane);
}

static struct span lane_key(const void *item)
{
    const struct lane *lane = item;

    return uuid_key(&lane->webhook_id);
}

struct lane *lane_get(struct deliveries *d, const struct uuid *webhook_id)
{
    struct lane *lane = map_find(&d->lanes_by_id, uuid_key(webhook_id));

    if (lane != NULL)
        return lane;
    lane = NEW(struct lane);
    lane->deliveries = d;
    lane->webhook_id = *webhook_id;
    list_init(&lane->all);
    heap_init(&lane->pending, lane_rank_less);
    heap_init(&lane->waiting, lane_rank_less);
    timer_init(&lane->timer, on_time);
    lane->window = FIRST_WINDOW;
    list_push_back(&d->lanes, &lane->link);
    map_add(&d->lanes_by_id, lane);
    if (store_is_loaded(d->service->store)) {
        lane->webhook = webhook_find(d->service->webhooks, webhook_id);
        MUST(lane->webhook != NULL);
        lane->webhook->lane = lane;
        lane_configure(lane);
        begin_rate(lane);
    }
    return lane;
}

static void lane_free(struct lane *lane, struct list *in)
{
    struct deliveries *d = lane->deliveries;

    leave(lane);
    host_put(lane->host);
    settings_forget(lane);
    timer_stop(d->service->loop, &lane->timer);
    store_forget(d->service->store, &lane->stored);
    if (lane->webhook != NULL)
        lane->webhook->lane = NULL;
    list_remove(in, &lane->link);
    map_remove(&d->lanes_by_id, lane_key(lane));
    heap_done(&lane->pending);
    heap_done(&lane->waiting);
    mem_free(lane->history.error);
    mem_free(lane);
}

/* One with a rate stays: it knows how much of it is used up. */
void lane_release(struct lane *lane)
{
    if (!lane->is_dying && !lane->is_starting && list_empty(&lane->all) &&
        !list_linked(&lane->stored.link) && lane->rate_per_second <= 0)
        lane_free(lane, &lane->deliveries->lanes);
}

/* Drops up to `max` deliveries; true when the lane is empty. */
static bool drop_some(struct lane *lane, size_t max)
{
    while (!list_empty(&lane->all) && max-- > 0)
        delivery_drop(lane_first_delivery(lane));
    return list_empty(&lane->all);
}

static void on_reap(struct loop_task *task)
{
    struct deliveries *d = CONTAINER_OF(task, struct deliveries, reaper);
    struct list_link *first = list_first(&d->dying);

    if (first == NULL)
        return;
    if (drop_some(CONTAINER_OF(first, struct lane, link), DROPS_PER_TURN))
        lane_free(CONTAINER_OF(first, struct lane, link), &d->dying);
    loop_post(d->service->loop, &d->reaper);
}

void lanes_init(struct deliveries *d)
{
    list_init(&d->lanes);
    list_init(&d->ready);
    list_init(&d->unknown);
    list_init(&d->slow);
    list_init(&d->uncommitted);
    list_init(&d->dying);
    map_init_own(&d->lanes_by_id, lane_key);
    hosts_init(d);
    d->starter.run = on_start;
    d->reaper.run = on_reap;
    d->commit.on_committed = on_committed;
}

static void discard(struct lane *lane, struct list *in)
{
    drop_some(lane, SIZE_MAX);
    lane_free(lane, in);
}

void lane_discard(struct lane *lane)
{
    discard(lane, &lane->deliveries->lanes);
}

static void free_all(struct list *lanes)
{
    LIST_EACH(lanes, at)
        discard(CONTAINER_OF(at, struct lane, link), lanes);
}

void lanes_done(struct deliveries *d)
{
    deliveries_stop(d);
    free_all(&d->lanes);
    free_all(&d->dying);
    loop_unpost(d->service->loop, &d->reaper);
    map_done(&d->lanes_by_id);
    hosts_done(d);
}

void deliveries_start(struct deliveries *d)
{
    d->is_started = true;
    d->started_ms = loop_now_ms(d->service->loop);
    d->first_no = journal_next_serial(turn_journal(d->service->turn));
    LIST_EACH(&d->lanes, at) {
        begin_rate(CONTAINER_OF(at, struct lane, link));
        lane_update(CONTAINER_OF(at, struct lane, link));
    }
}

void deliveries_stop(struct deliveries *d)
{
    d->is_started = false;
    loop_unpost(d->service->loop, &d->starter);
    turn_unwait(d->service->turn, &d->commit);
    LIST_EACH(&d->lanes, at) {
        struct lane *lane = CONTAINER_OF(at, struct lane, link);

        leave(lane);
        timer_stop(d->service->loop, &lane->timer);
    }
}

void deliveries_webhook_changed(struct deliveries *d, struct webhook *w)
{
    (void)d;
    if (w->lane == NULL)
        return;
    lane_configure(w->lane);
    lane_update(w->lane);
    lane_release(w->lane);
}

void deliveries_webhook_gone(struct deliveries *d, struct webhook *w)
{
    struct lane *lane = w->lane;

    if (lane == NULL)
        return;
    w->lane = NULL;
    lane->webhook = NULL;
    leave(lane);
    timer_stop(d->service->loop, &lane->timer);
    lane->is_dying = true;
    list_remove(&d->lanes, &lane->link);
    list_push_back(&d->dying, &lane->link);
    if (!loop_posted(&d->reaper))
        loop_post(d->service->loop, &d->reaper);
}

struct lane *lane_find(const struct deliveries *d, const struct uuid *webhook_id)
{
    struct lane *lane = map_find(&d->lanes_by_id, uuid_key(webhook_id));

    return lane == NULL || lane->is_dying ? NULL : lane;
}

struct lane *lane_first(const struct deliveries *d)
{
    struct list_link *first = list_first(&d->lanes);

    return first == NULL ? NULL : CONTAINER_OF(first, struct lane, link);
}

struct lane *lane_next(const struct deliveries *d, const struct lane *lane)
{
    struct list_link *next = list_next(&d->lanes, &lane->link);

    return next == NULL ? NULL : CONTAINER_OF(next, struct lane, link);
}

static struct delivery *in_lane(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct delivery, lane_link);
}

struct delivery *lane_first_delivery(const struct lane *lane)
{
    return in_lane(list_first(&lane->all));
}

struct delivery *lane_first_waiting(const struct lane *lane)
{
    return queued_at(heap_first(&lane->waiting));
}

struct delivery *lane_next_delivery(const struct lane *lane, const struct delivery *delivery)
{
    return in_lane(list_next(&lane->all, &delivery->lane_link));
}
