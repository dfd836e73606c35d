#include "hooks/retention.h"

#include "admin/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum {
    SLICE = 250,           /* objects that a rule takes out at once */
    SOON_MS = 20,          /* after something was stored */
    AGAIN_MS = 1,          /* while there is more to take out */
    FULL_DISK_MS = 1000,   /* when the deletions found no room */
    LATER_MS = 60 * 60000, /* ages are looked at at least this often */
};

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)

/* One kind of objects that are kept for a while. They are met oldest first. */
struct rule {
    size_t most_offset, age_offset; /* of the limits, in struct retention */
    int64_t age_unit_ns;
    size_t (*count)(const struct service *s);
    const void *(*next)(const struct service *s, const void *previous); /* NULL: the first / none */
    int64_t (*time)(const void *object);
    void (*forget)(const void *object, struct change *change);
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

    change_delete_entity(change, collection_name(e->collection), &e->id);
}

static size_t count_errors(const struct service *s)
{
    return collection_count(s->stored_errors);
}

static const void *next_error(const struct service *s, const void *previous)
{
    return next_entity(s->stored_errors, previous);
}

static size_t count_log(const struct service *s)
{
    return collection_count(s->stored_log);
}

static const void *next_log(const struct service *s, const void *previous)
{
    return next_entity(s->stored_log, previous);
}

static size_t count_events(const struct service *s)
{
    return events_count(s->events);
}

static const void *next_event(const struct service *s, const void *previous)
{
    return previous == NULL ? events_first(s->events) : events_next(s->events, previous);
}

static int64_t event_time(const void *object)
{
    return ((const struct event *)object)->time_unix_ns;
}

static void forget_event(const void *object, struct change *change)
{
    event_forget(change, object);
}

static size_t count_ended(const struct service *s)
{
    return deliveries_count(s->deliveries, DELIVERY_DELIVERED) +
           deliveries_count(s->deliveries, DELIVERY_DEAD) +
           deliveries_count(s->deliveries, DELIVERY_ABORTED);
}

static const void *next_ended(const struct service *s, const void *previous)
{
    return previous == NULL ? deliveries_oldest_ended(s->deliveries)
                            : deliveries_next_ended(s->deliveries, previous);
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

static size_t count_once(const struct service *s)
{
    return once_count(s->once);
}

static const void *next_once(const struct service *s, const void *previous)
{
    return previous == NULL ? once_first(s->once) : once_next(s->once, previous);
}

static int64_t once_time(const void *object)
{
    return ((const struct once_entry *)object)->record.time_unix_ns;
}

static void forget_once(const void *object, struct change *change)
{
    once_forget(change, object);
}

#define LIMITED_BY(most, age, unit_ns)                                                             \
    offsetof(struct retention, most), offsetof(struct retention, age), unit_ns

static const struct rule rules[] = {
    {LIMITED_BY(errors, error_days, DAY_NS), count_errors, next_error, entity_time, forget_entity},
    {LIMITED_BY(log_entries, log_days, DAY_NS), count_log, next_log, entity_time, forget_entity},
    {LIMITED_BY(log_entries, log_days, DAY_NS), count_ended, next_ended, ended_time, forget_ended},
    {LIMITED_BY(events, event_days, DAY_NS), count_events, next_event, event_time, forget_event},
    {LIMITED_BY(idempotency_keys, idempotency_seconds, SECOND_NS), count_once, next_once, once_time,
     forget_once},
};

static int64_t limit_at(const struct service *s, size_t offset)
{
    return *(const int64_t *)(const void *)((const char *)&s->retention + offset);
}

/* When the rule's oldest object has to go for its age; INT64_MAX without one. */
static int64_t due_at(const struct service *s, const struct rule *rule, const void *oldest)
{
    int64_t unit_ns = rule->age_unit_ns;
    int64_t age = MIN(limit_at(s, rule->age_offset), INT64_MAX / unit_ns / 2);

    return oldest == NULL ? INT64_MAX : rule->time(oldest) + age * unit_ns;
}

/* Adds the deletion of what has to go, a slice at most. */
static size_t expire(const struct service *s, const struct rule *rule, struct change *change)
{
    int64_t most = limit_at(s, rule->most_offset);
    int64_t count = (int64_t)rule->count(s);
    size_t taken = 0;

    for (const void *object = rule->next(s, NULL); object != NULL && taken < SLICE;
         object = rule->next(s, object)) {
        if (count <= most && due_at(s, rule, object) > clock_unix_ns())
            break;
        rule->forget(object, change);
        count--;
        taken++;
    }
    return taken;
}

static uint64_t ms_until_next(const struct service *s)
{
    uint64_t ms = LATER_MS;

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        int64_t due = due_at(s, &rules[i], rules[i].next(s, NULL));
        int64_t now = clock_unix_ns();

        if (due != INT64_MAX)
            ms = MIN(ms, due <= now ? AGAIN_MS : (uint64_t)(due - now) / 1000000 + 1);
    }
    return ms;
}

static bool is_empty(const struct service *s)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].count(s) > 0)
            return false;
    return true;
}

/* One slice of every rule in one change; how long to wait for the next in *out_ms. */
static struct err *take_out(struct service *s, struct arena *a, uint64_t *out_ms)
{
    struct change change;
    struct err *e;
    uint64_t serial;
    bool more = false;

    change_init(&change, s->turn, a);
    change.frees_space = true;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        more = expire(s, &rules[i], &change) == SLICE || more;
    e = turn_apply(s->turn, &change, &serial);
    change_done(&change);
    if (e == NULL)
        *out_ms = more ? AGAIN_MS : ms_until_next(s);
    return e;
}

static void on_time(struct timer *timer)
{
    struct service *s = CONTAINER_OF(timer, struct service, retention_timer);
    uint64_t ms = FULL_DISK_MS;
    struct arena a;
    struct err *e;

    arena_init(&a);
    e = take_out(s, &a, &ms);
    if (e != NULL) {
        log_warn("retention", "nothing is taken out now: %.*s", SPAN_FMT(err_message(e)));
        err_free(e);
    }
    arena_done(&a);
    /* What is stored meanwhile puts nothing off. */
    s->retention_is_soon = !is_empty(s) && ms <= SOON_MS;
    if (!is_empty(s))
        timer_start(s->loop, &s->retention_timer, ms);
}

void retention_init(struct service *s)
{
    s->stored_errors = store_collection(s->store, SPAN("Svc.Admin.Error"));
    s->stored_log = store_collection(s->store, SPAN("Svc.Admin.WebhookLog"));
    timer_init(&s->retention_timer, on_time);
}

void retention_stop(struct service *s)
{
    timer_stop(s->loop, &s->retention_timer);
}

void retention_wake(struct service *s)
{
    if (s->retention_is_soon)
        return;
    s->retention_is_soon = true;
    timer_start(s->loop, &s->retention_timer, SOON_MS);
}
