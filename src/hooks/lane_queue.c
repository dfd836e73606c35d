/* Which delivery of a lane is next, and when: two heaps, of those that could be attempted and of
 * those that wait for their time. The rank of what is PENDING is its place in the queue: first
 * attempts keep the order of events, what comes back goes to the end, so that retries and replays
 * never starve them. The rank of what is WAITING is when it is due, by the loop's clock: the wall
 * clock is read once, what it does then moves nothing. In an ordered lane both heaps are in the
 * order of events, and only when the first is due matters. */
#include "access/account.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_inner.h"
#include "hooks/share.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "store/store.h"
#include "store/turn.h"

/* What it costs to put one in its place, among very many. */
enum { QUEUE_UNITS = 256 };

static struct delivery *first_of(const struct heap *heap)
{
    struct heap_node *node = heap_first(heap);

    return node == NULL ? NULL : CONTAINER_OF(node, struct delivery, queued);
}

bool lane_rank_less(const struct heap_node *a, const struct heap_node *b)
{
    const struct delivery *x = CONTAINER_OF_CONST(a, struct delivery, queued);
    const struct delivery *y = CONTAINER_OF_CONST(b, struct delivery, queued);

    return x->rank != y->rank && !x->lane->ordered ? x->rank < y->rank
                                                   : x->object_no < y->object_no;
}

size_t lane_pending(const struct lane *lane)
{
    return lane->pending.count + lane->waiting.count + lane->in_flight;
}

void lane_add(struct lane *lane, struct delivery *delivery)
{
    list_push_back(&lane->all, &delivery->lane_link);
}

void lane_remove(struct lane *lane, struct delivery *delivery)
{
    list_remove(&lane->all, &delivery->lane_link);
}

/* Times. ----------------------------------------------------------------------------------- */

uint64_t lane_now_ms(const struct lane *lane)
{
    return loop_now_ms(lane->deliveries->hooks->loop);
}

/* The loop clock's time at a time of the wall clock, when that is at `now_unix_ns`: not a moment
 * earlier. */
static uint64_t ms_of_unix(const struct lane *lane, int64_t unix_ns, int64_t now_unix_ns)
{
    int64_t wait_ns = unix_ns - now_unix_ns;

    return wait_ns > 0 ? (clock_mono_ns() + (uint64_t)wait_ns) / 1000000 + 1 : lane_now_ms(lane);
}

void lane_hold(struct lane *lane, int64_t until_unix_ns)
{
    if (until_unix_ns == lane->hold_until_unix_ns)
        return;
    lane->hold_until_unix_ns = until_unix_ns;
    lane->hold_until_ms = ms_of_unix(lane, until_unix_ns, clock_unix_ns());
}

static void count_waits_from(struct lane *lane, int64_t now_unix_ns)
{
    lane->hold_until_ms = ms_of_unix(lane, lane->hold_until_unix_ns, now_unix_ns);
    LIST_EACH(&lane->all, at) {
        struct delivery *delivery = CONTAINER_OF(at, struct delivery, lane_link);

        if (delivery->state != DELIVERY_WAITING)
            continue;
        delivery->rank = ms_of_unix(lane, delivery->at_unix_ns, now_unix_ns);
        heap_update(&lane->waiting, &delivery->queued);
    }
}

struct err *lane_check_events(const struct lane *lane, int64_t *latest_unix_ns)
{
    *latest_unix_ns = MAX(*latest_unix_ns, lane->failing_since_unix_ns);
    for (const struct delivery *x = lane_first_delivery(lane); x != NULL;
         x = lane_next_delivery(lane, x)) {
        *latest_unix_ns = MAX(*latest_unix_ns, x->event->time_unix_ns);
        if (!x->event->is_known)
            return ERR(ERR_STORAGE_FAILURE, "the journal has delivery %llu but not its event %llu",
                       (unsigned long long)x->object_no, (unsigned long long)x->event->object_no);
    }
    return NULL;
}

/* A wall clock that the journal is ahead of was set back, or is not set yet. By it, all waits would
 * be longer by what it lacks: they count from the latest time that is known. */
void lanes_count_waits(struct deliveries *d, int64_t latest_unix_ns)
{
    int64_t lacking_ns = latest_unix_ns - clock_unix_ns();

    if (lacking_ns <= 0)
        return;
    log_warn("delivery",
             "the clock is %lld s behind the journal's last event; retries do not wait for it",
             (long long)(lacking_ns / 1000000000));
    LIST_EACH(&d->lanes, at)
        count_waits_from(CONTAINER_OF(at, struct lane, link), latest_unix_ns);
}

/* Order. ----------------------------------------------------------------------------------- */

uint64_t lanes_next_serial(const struct deliveries *d)
{
    return journal_next_serial(turn_journal(d->hooks->turn));
}

static uint64_t place_in_queue(const struct delivery *delivery, struct hooks *hooks)
{
    if (delivery->version == delivery->event->object_no)
        return delivery->object_no;
    return store_is_loaded(hooks->store) ? lanes_next_serial(hooks->deliveries) : delivery->version;
}

/* NULL: it is in none. */
static struct heap *queue_of(struct lane *lane, const struct delivery *delivery)
{
    if (delivery->state == DELIVERY_PENDING)
        return &lane->pending;
    return delivery->state == DELIVERY_WAITING ? &lane->waiting : NULL;
}

void lane_enter(struct lane *lane, struct delivery *delivery)
{
    if (lane->share != NULL)
        lane->share->account->pending++;
    if (delivery->state == DELIVERY_IN_FLIGHT) {
        delivery->attempt = NULL; /* attempt_start knows it */
        lane_take_slots(lane, 1);
        return;
    }
    delivery->rank = delivery->state == DELIVERY_WAITING
                         ? ms_of_unix(lane, delivery->at_unix_ns, clock_unix_ns())
                         : place_in_queue(delivery, lane->deliveries->hooks);
    heap_add(queue_of(lane, delivery), &delivery->queued);
}

void lane_leave(struct lane *lane, struct delivery *delivery)
{
    if (lane->share != NULL)
        lane->share->account->pending--;
    if (delivery->state == DELIVERY_IN_FLIGHT)
        lane_take_slots(lane, -1);
    else
        heap_remove(queue_of(lane, delivery), &delivery->queued);
}

static void empty(struct heap *queue)
{
    struct heap_node *first;

    while ((first = heap_first(queue)) != NULL) {
        heap_remove(queue, first);
        budget_spend(QUEUE_UNITS);
    }
}

/* It may give way, while the turn is held: nothing is started then, but what is under way may come
 * back to its queue. */
void lane_set_ordered(struct lane *lane, bool ordered)
{
    if (lane->ordered == ordered)
        return;
    while (lane->pending.count + lane->waiting.count > 0) {
        empty(&lane->pending);
        empty(&lane->waiting);
    }
    lane->ordered = ordered;
    LIST_EACH(&lane->all, at) {
        struct delivery *delivery = CONTAINER_OF(at, struct delivery, lane_link);
        struct heap *queue = queue_of(lane, delivery);

        if (queue != NULL && !heap_contains(&delivery->queued))
            heap_add(queue, &delivery->queued);
        budget_spend(QUEUE_UNITS);
    }
}

/* What is next. ---------------------------------------------------------------------------- */

struct delivery *lane_first_waiting(const struct lane *lane)
{
    return first_of(&lane->waiting);
}

const struct delivery *lane_head(const struct lane *lane)
{
    const struct delivery *waiting = first_of(&lane->waiting), *pending = first_of(&lane->pending);

    if (waiting == NULL || pending == NULL)
        return pending != NULL ? pending : waiting;
    return lane->ordered && waiting->object_no < pending->object_no ? waiting : pending;
}

void lane_promote(struct lane *lane)
{
    struct delivery *first;

    if (lane_first_waiting(lane) == NULL || lane->hold_until_ms > lane_now_ms(lane))
        return; /* until then they wait, whatever their own time */
    while ((first = lane_first_waiting(lane)) != NULL && first->rank <= lane_now_ms(lane))
        delivery_move(lane->deliveries, first, DELIVERY_PENDING);
}

static struct delivery *in_lane(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct delivery, lane_link);
}

struct delivery *lane_first_delivery(const struct lane *lane)
{
    return in_lane(list_first(&lane->all));
}

struct delivery *lane_next_delivery(const struct lane *lane, const struct delivery *delivery)
{
    return in_lane(list_next(&lane->all, &delivery->lane_link));
}
