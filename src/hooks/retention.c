/* A table of rules, each with an age, a number and mostly a number of bytes; what is oldest goes
 * first. Near MemoryBytes the log that takes most gives way too, down to LEAST_LOG_BYTES, so that
 * what has happened last can still be looked up. */
#include "hooks/retention.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/room.h"
#include "dispatch/error_log.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/forgotten.h"
#include "hooks/hooks.h"
#include "hooks/payload.h"
#include "io/timer.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/once.h"
#include "store/store.h"
#include "store/turn.h"
#include "store/turn_log.h"
#include "webhook/webhook_log.h"

enum {
    SLICE = 250,           /* objects that a rule takes out at once */
    SOON_MS = 20,          /* after something was stored */
    AGAIN_MS = 1,          /* while there is more to take out */
    FULL_DISK_MS = 1000,   /* when the deletions found no room */
    LATER_MS = 60 * 60000, /* ages are looked at at least this often */
    LEAST_LOG_BYTES = 1 << 20,
};

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)

struct retention {
    struct hooks *hooks;
    struct collection *errors, *log;
    struct timer timer;
    bool is_soon; /* the timer runs and is about to fire */
};

/* One kind of objects that are kept for a while. They are met oldest first. */
struct rule {
    size_t most_offset, age_offset; /* in struct retention_limits */
    int64_t age_unit_ns;
    size_t (*count)(const struct hooks *hooks);
    const void *(*next)(const struct hooks *hooks,
                        const void *previous); /* NULL: the first / none */
    int64_t (*time)(const void *object);
    void (*forget)(const void *object, struct change *change);
    /* The limit in bytes, those of all, and of one. NULL: they are small and alike, so their number
     * is enough. */
    size_t bytes_offset;
    uint64_t (*bytes)(const struct hooks *hooks);
    size_t (*size)(const void *object);
    bool makes_room; /* a log: gives way near MemoryBytes */
};

static const void *next_entity(const struct collection *c, const void *previous)
{
    return previous == NULL ? collection_first(c) : collection_next(c, previous);
}

/* Milliseconds since 1970 stand in the first 48 bits of an entity's id. */
static int64_t entity_time(const void *object)
{
    const struct entity *e = object;
    int64_t ms = 0;

    for (int i = 0; i < 6; i++)
        ms = ms << 8 | e->id.b[i];
    return ms * 1000000;
}

static void forget_entity(const void *object, struct change *change)
{
    const struct entity *e = object;

    collection_expect(e->collection, &e->id);
    change_delete_entity(change, collection_name(e->collection), &e->id);
}

static size_t entity_size(const void *object)
{
    return collection_entity_bytes(object);
}

static uint64_t bytes_of_errors(const struct hooks *hooks)
{
    return collection_bytes(hooks->retention->errors);
}

static uint64_t bytes_of_log(const struct hooks *hooks)
{
    return collection_bytes(hooks->retention->log);
}

static uint64_t bytes_of_events(const struct hooks *hooks)
{
    return events_bytes(hooks->events);
}

static size_t event_size(const void *object)
{
    return event_bytes(object);
}

static size_t count_errors(const struct hooks *hooks)
{
    return collection_count(hooks->retention->errors);
}

static const void *next_error(const struct hooks *hooks, const void *previous)
{
    return next_entity(hooks->retention->errors, previous);
}

static size_t count_log(const struct hooks *hooks)
{
    return collection_count(hooks->retention->log);
}

static const void *next_log(const struct hooks *hooks, const void *previous)
{
    return next_entity(hooks->retention->log, previous);
}

static size_t count_events(const struct hooks *hooks)
{
    return events_count(hooks->events);
}

static const void *next_event(const struct hooks *hooks, const void *previous)
{
    return previous == NULL ? events_first(hooks->events) : events_next(hooks->events, previous);
}

static int64_t event_time(const void *object)
{
    return ((const struct event *)object)->time_unix_ns;
}

static void forget_event(const void *object, struct change *change)
{
    event_forget(change, object);
}

static size_t count_ended(const struct hooks *hooks)
{
    return deliveries_count(hooks->deliveries, DELIVERY_DELIVERED) +
           deliveries_count(hooks->deliveries, DELIVERY_DEAD) +
           deliveries_count(hooks->deliveries, DELIVERY_ABORTED);
}

static const void *next_ended(const struct hooks *hooks, const void *previous)
{
    return previous == NULL ? deliveries_oldest_ended(hooks->deliveries)
                            : deliveries_next_ended(hooks->deliveries, previous);
}

/* Journals of older versions do not tell when a delivery ended. */
static int64_t ended_time(const void *object)
{
    const struct delivery *delivery = object;

    return MAX(delivery->at_unix_ns, delivery->event->time_unix_ns);
}

static void forget_ended(const void *object, struct change *change)
{
    delivery_forget(change, object);
}

static size_t count_once(const struct hooks *hooks)
{
    return once_count(hooks->once);
}

static const void *next_once(const struct hooks *hooks, const void *previous)
{
    return previous == NULL ? once_first(hooks->once) : once_next(hooks->once, previous);
}

static int64_t once_time(const void *object)
{
    return ((const struct once_entry *)object)->record.time_unix_ns;
}

static void forget_once(const void *object, struct change *change)
{
    once_forget(change, object);
}

#define LIMIT(member) offsetof(struct retention_limits, member)

static const struct rule rules[] = {
    {LIMIT(errors), LIMIT(error_days), DAY_NS, count_errors, next_error, entity_time, forget_entity,
     LIMIT(error_bytes), bytes_of_errors, entity_size, true},
    {LIMIT(log_entries), LIMIT(log_days), DAY_NS, count_log, next_log, entity_time, forget_entity,
     LIMIT(log_bytes), bytes_of_log, entity_size, true},
    {LIMIT(log_entries), LIMIT(log_days), DAY_NS, count_ended, next_ended, ended_time, forget_ended,
     0, NULL, NULL, false},
    {LIMIT(events), LIMIT(event_days), DAY_NS, count_events, next_event, event_time, forget_event,
     LIMIT(event_bytes), bytes_of_events, event_size, false},
    {LIMIT(idempotency_keys), LIMIT(idempotency_seconds), SECOND_NS, count_once, next_once,
     once_time, forget_once, 0, NULL, NULL, false},
};

static int64_t limit_at(const struct hooks *hooks, size_t offset)
{
    return *(const int64_t *)(const void *)((const char *)hooks->retention_limits + offset);
}

/* When the rule's oldest object has to go for its age; INT64_MAX without one. */
static int64_t due_at(const struct hooks *hooks, const struct rule *rule, const void *oldest)
{
    int64_t unit_ns = rule->age_unit_ns;
    int64_t age = MIN(limit_at(hooks, rule->age_offset), INT64_MAX / unit_ns / 2);

    return oldest == NULL ? INT64_MAX : rule->time(oldest) + age * unit_ns;
}

static uint64_t bytes_of(const struct hooks *hooks, const struct rule *rule)
{
    return rule->bytes == NULL ? 0 : rule->bytes(hooks);
}

/* The log that is to give way, because the heap is near to MemoryBytes: the one that takes most.
 * NULL: none has to, or none can. */
static const struct rule *log_to_shorten(const struct hooks *hooks)
{
    const struct rule *largest = NULL;

    if (room_short(hooks->limits) == 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].makes_room && bytes_of(hooks, &rules[i]) > LEAST_LOG_BYTES &&
            (largest == NULL || bytes_of(hooks, &rules[i]) > bytes_of(hooks, largest)))
            largest = &rules[i];
    return largest;
}

/* The most bytes that the rule leaves now. */
static uint64_t most_bytes(const struct hooks *hooks, const struct rule *rule)
{
    uint64_t own = rule->bytes == NULL ? UINT64_MAX : (uint64_t)limit_at(hooks, rule->bytes_offset);
    uint64_t bytes = bytes_of(hooks, rule), missing = room_short(hooks->limits);

    if (rule != log_to_shorten(hooks))
        return own;
    return MIN(own, MAX(bytes - MIN(bytes, missing), LEAST_LOG_BYTES));
}

/* Adds the deletion of what has to go, a slice at most. */
static size_t expire(const struct hooks *hooks, const struct rule *rule, int64_t now,
                     struct change *change)
{
    int64_t most = limit_at(hooks, rule->most_offset);
    int64_t count = (int64_t)rule->count(hooks);
    uint64_t bytes_most = most_bytes(hooks, rule), bytes = bytes_of(hooks, rule);
    size_t taken = 0;

    for (const void *object = rule->next(hooks, NULL); object != NULL && taken < SLICE;
         object = rule->next(hooks, object)) {
        if (count <= most && bytes <= bytes_most && due_at(hooks, rule, object) > now)
            break;
        bytes -= rule->size == NULL ? 0 : rule->size(object);
        rule->forget(object, change);
        count--;
        taken++;
    }
    return taken;
}

static uint64_t ms_until_next(const struct hooks *hooks, int64_t now)
{
    uint64_t ms = LATER_MS;

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        int64_t due = due_at(hooks, &rules[i], rules[i].next(hooks, NULL));

        if (due != INT64_MAX)
            ms = MIN(ms, due <= now ? AGAIN_MS : (uint64_t)(due - now) / 1000000 + 1);
    }
    return ms;
}

static bool is_empty(const struct hooks *hooks)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].count(hooks) > 0)
            return false;
    return true;
}

/* One slice of every rule in one change; how long to wait for the next in *out_ms. */
static struct err *take_out(struct hooks *hooks, struct arena *a, uint64_t *out_ms)
{
    struct change change;
    struct err *e;
    uint64_t serial;
    int64_t now = clock_unix_ns();
    bool more = false;

    change_init(&change, hooks->turn, a);
    change.frees_space = true;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        more = expire(hooks, &rules[i], now, &change) == SLICE || more;
    forgotten_add(hooks->forgotten, &change);
    e = turn_apply(hooks->turn, &change, &serial);
    change_done(&change);
    if (e == NULL)
        *out_ms = more || log_to_shorten(hooks) != NULL ? AGAIN_MS : ms_until_next(hooks, now);
    return e;
}

/* What the journal has too is let go before anything is lost. */
static void shed_payloads(const struct hooks *hooks)
{
    if (room_short(hooks->limits) > 0)
        payloads_shrink(events_payloads(hooks->events));
}

static void take_out_or_warn(struct retention *r, uint64_t *ms)
{
    struct arena a;
    struct err *e;

    shed_payloads(r->hooks);
    if (!turn_takes_changes(r->hooks->turn))
        return; /* what the leader takes out comes with its changes */
    arena_init(&a);
    e = take_out(r->hooks, &a, ms);
    if (e != NULL) {
        log_warn("retention", "nothing is taken out now: %.*s", SPAN_FMT(err_message(e)));
        err_free(e);
    }
    arena_done(&a);
}

static void on_time(struct timer *timer)
{
    struct retention *r = CONTAINER_OF(timer, struct retention, timer);
    uint64_t ms = FULL_DISK_MS;

    if (turn_is_held(r->hooks->turn)) {
        timer_start(r->hooks->loop, &r->timer, SOON_MS);
        return;
    }
    take_out_or_warn(r, &ms);
    /* What is stored meanwhile puts nothing off. */
    r->is_soon = !is_empty(r->hooks) && ms <= SOON_MS;
    if (!is_empty(r->hooks))
        timer_start(r->hooks->loop, &r->timer, ms);
    else
        timer_stop(r->hooks->loop, &r->timer);
}

void retention_wake(struct retention *r)
{
    if (r->is_soon)
        return;
    r->is_soon = true;
    timer_start(r->hooks->loop, &r->timer, SOON_MS);
}

void retention_make_room(struct retention *r)
{
    uint64_t ms = FULL_DISK_MS;

    take_out_or_warn(r, &ms);
    retention_wake(r);
}

bool retention_idle(const struct retention *r)
{
    return !r->is_soon;
}

struct retention *retention_new(struct hooks *hooks)
{
    struct retention *r = NEW(struct retention);

    r->hooks = hooks;
    r->errors = store_collection(hooks->store, error_log_resource);
    r->log = store_collection(hooks->store, webhook_log_resource);
    timer_init(&r->timer, on_time);
    return r;
}

void retention_free(struct retention *r)
{
    if (r == NULL)
        return;
    timer_stop(r->hooks->loop, &r->timer);
    mem_free(r);
}
