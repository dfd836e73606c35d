/* Deliveries as objects: made by event records, changed by delivery records, live and on replay
 * alike. */
#include "hooks/delivery.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/sm.h"
#include "hooks/attempt.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/payload.h"
#include "query/shape.h"
#include "rest/metrics.h"
#include "store/change.h"
#include "store/record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "json/member.h"

#include <string.h>

static const struct span state_names[DELIVERY_STATE_COUNT] = {
#define DELIVERY_AS_NAME(symbol, name) SPAN_INIT(name),
    DELIVERY_STATES(DELIVERY_AS_NAME)
#undef DELIVERY_AS_NAME
};

const struct enumeration delivery_state_names = {"State", state_names, DELIVERY_STATE_COUNT};

#define ENDED (SM_TO(DELIVERY_DELIVERED) | SM_TO(DELIVERY_DEAD) | SM_TO(DELIVERY_ABORTED))

static const struct sm_state states[DELIVERY_STATE_COUNT] = {
    [DELIVERY_PENDING] = {"Pending", SM_TO(DELIVERY_IN_FLIGHT) | SM_TO(DELIVERY_PENDING) |
                                         SM_TO(DELIVERY_DEAD)},
    [DELIVERY_IN_FLIGHT] = {"InFlight", SM_TO(DELIVERY_WAITING) | SM_TO(DELIVERY_PENDING) | ENDED},
    [DELIVERY_WAITING] = {"Waiting", SM_TO(DELIVERY_PENDING)},
    [DELIVERY_DELIVERED] = {"Delivered", SM_TO(DELIVERY_PENDING)},
    [DELIVERY_DEAD] = {"Dead", SM_TO(DELIVERY_PENDING)},
    [DELIVERY_ABORTED] = {"Aborted", SM_TO(DELIVERY_PENDING)},
};

const struct sm_table delivery_machine = {"delivery", states, DELIVERY_STATE_COUNT};

static bool has_ended(enum delivery_state state)
{
    return (SM_TO(state) & ENDED) != 0;
}

static struct span no_span(const uint64_t *object_no)
{
    return span_of((const char *)object_no, sizeof(*object_no));
}

static struct span no_key(const void *item)
{
    return no_span(&((const struct delivery *)item)->object_no);
}

/* Takes the delivery out of the list of its state. One that has not ended keeps its place among
 * those, whatever happens to it. */
static void leave_state(struct deliveries *d, struct delivery *delivery)
{
    d->count[delivery->state]--;
    if (has_ended(delivery->state))
        list_remove(&d->ended, &delivery->age_link);
    else
        lane_leave(delivery->lane, delivery);
}

static void stop_aging(struct deliveries *d, struct delivery *delivery)
{
    if (!list_linked(&delivery->age_link))
        return;
    list_remove(&d->not_ended, &delivery->age_link);
    payload_unneeded(events_payloads(d->hooks->events), delivery->event);
}

/* Puts it into the list of its state. */
static void enter_state(struct deliveries *d, struct delivery *delivery)
{
    d->count[delivery->state]++;
    if (has_ended(delivery->state)) {
        stop_aging(d, delivery);
        list_push_back(&d->ended, &delivery->age_link);
        return;
    }
    if (!list_linked(&delivery->age_link)) {
        list_push_back(&d->not_ended, &delivery->age_link);
        payload_needed(events_payloads(d->hooks->events), delivery->event);
    }
    lane_enter(delivery->lane, delivery);
}

bool delivery_has_ended(const struct delivery *delivery)
{
    return has_ended(delivery->state);
}

/* What lies between two records of a delivery neither a replay sees nor a node that follows
 * another: that its time has come and that it is attempted is not journaled, and the record of a
 * move from which others have followed may be cleaned away. So it makes these moves itself: every
 * state can be reached from every other. */
static void catch_up(struct delivery *delivery, enum delivery_state next)
{
    while (!sm_allows(&delivery_machine, delivery->state, next))
        sm_move(&delivery_machine, &delivery->state,
                delivery->state == DELIVERY_PENDING ? DELIVERY_IN_FLIGHT : DELIVERY_PENDING);
}

void delivery_move(struct deliveries *d, struct delivery *delivery, enum delivery_state next)
{
    leave_state(d, delivery);
    if (!store_is_loaded(d->hooks->store) || !d->is_started)
        catch_up(delivery, next);
    sm_move(&delivery_machine, &delivery->state, next);
    enter_state(d, delivery);
}

static struct delivery *delivery_new(struct deliveries *d, struct lane *lane, struct event *event,
                                     uint64_t object_no)
{
    struct delivery *delivery = NEW(struct delivery);

    delivery->event = event;
    delivery->lane = lane;
    delivery->object_no = object_no;
    lane_add(lane, delivery);
    map_add(&d->by_no, delivery);
    return delivery;
}

void delivery_drop(struct deliveries *d, struct delivery *delivery)
{
    if (delivery->state == DELIVERY_IN_FLIGHT && delivery->attempt != NULL)
        attempt_cancel(delivery->attempt);
    leave_state(d, delivery);
    stop_aging(d, delivery);
    lane_remove(delivery->lane, delivery);
    map_remove(&d->by_no, no_key(delivery));
    store_forget(d->hooks->store, &delivery->stored);
    event_unref(d->hooks->events, delivery->event);
    mem_free(delivery->last_error);
    mem_free(delivery);
}

/* What it costs to make one. */
enum { DELIVERY_UNITS = 512 };

/* Of a record of its own, which it gets when it is moved. */
#define MOVED_BYTES 80u

void delivery_create(struct deliveries *d, const struct uuid *webhook_id, struct event *event,
                     uint64_t object_no, const struct store_origin *origin)
{
    struct store_origin within = *origin;
    struct delivery *delivery;
    struct lane *lane;

    deliveries_expect(d, object_no);
    lane = lane_get(d, webhook_id);
    delivery = delivery_new(d, lane, event_ref(d->hooks->events, event->object_no), object_no);
    within.bytes = MOVED_BYTES; /* the event's record holds it with less */
    delivery->version = origin->serial;
    store_track(d->hooks->store, &delivery->stored, RECORD_DELIVERY, &within);
    d->version = MAX(d->version, origin->serial);
    enter_state(d, delivery);
    lane_update(lane);
    budget_spend(DELIVERY_UNITS);
}

static void take_fields(struct delivery *delivery, const struct record_delivery *r)
{
    delivery->version = r->version;
    delivery->attempts = r->attempts;
    delivery->last_status = r->last_status;
    delivery->at_unix_ns = r->next_unix_ns;
    mem_free(delivery->last_error);
    delivery->last_error = r->last_error.n == 0 ? NULL : mem_string(r->last_error);
}

/* At once; others are counted with their attempts. */
static void count_dead(struct deliveries *d)
{
    if (store_is_loaded(d->hooks->store))
        d->hooks->metrics->deliveries[DELIVERY_DEAD - DELIVERY_DELIVERED]++;
}

static void count_untold(struct deliveries *d, const struct delivery *delivery)
{
    if (store_is_loaded(d->hooks->store) && !lane_count_death(delivery->lane) &&
        !event_is_notice(delivery->event))
        d->hooks->metrics->notices_left_out++;
}

static struct err *apply_delivery(void *context, struct span body,
                                  const struct store_origin *origin)
{
    struct deliveries *d = context;
    struct record_delivery r;
    struct delivery *delivery;

    TRY(record_read_delivery(body, &r));
    if (r.state >= DELIVERY_STATE_COUNT || r.state == DELIVERY_IN_FLIGHT)
        return ERR(ERR_STORAGE_FAILURE, "journal record %llu: no delivery is recorded in state %u",
                   (unsigned long long)origin->serial, r.state);
    delivery = delivery_find_no(d, r.object_no);
    if (delivery == NULL) { /* the record that made it was cleaned away */
        delivery = delivery_new(d, lane_get(d, &r.webhook), event_ref(d->hooks->events, r.event_no),
                                r.object_no);
        delivery->state = r.state;
        take_fields(delivery, &r);
        enter_state(d, delivery);
    } else if (delivery->version != r.version) { /* else it was only moved */
        if (delivery->state == DELIVERY_PENDING && r.state == DELIVERY_DEAD)
            count_dead(d);
        if (r.state == DELIVERY_DEAD)
            count_untold(d, delivery);
        take_fields(delivery, &r);
        delivery_move(d, delivery, r.state);
    }
    store_track(d->hooks->store, &delivery->stored, RECORD_DELIVERY, origin);
    d->version = MAX(d->version, r.version);
    lane_update(delivery->lane);
    return NULL;
}

static struct err *apply_delivery_gone(void *context, struct span body,
                                       const struct store_origin *origin)
{
    struct deliveries *d = context;
    uint64_t object_no;
    struct delivery *delivery;
    struct lane *lane;

    TRY(record_read_number(body, &object_no));
    d->version = MAX(d->version, origin->serial);
    delivery = delivery_find_no(d, object_no);
    if (delivery == NULL)
        return NULL;
    lane = delivery->lane;
    delivery_drop(d, delivery);
    lane_update(lane);
    lane_release(lane);
    return NULL;
}

/* Neither that a delivery's time has come nor that an attempt is under way is journaled: until its
 * outcome it is what it was before. */
static uint8_t recorded_state(const struct delivery *delivery)
{
    if (has_ended(delivery->state))
        return delivery->state;
    return delivery->at_unix_ns != 0 ? DELIVERY_WAITING : DELIVERY_PENDING;
}

struct record_delivery delivery_record(const struct delivery *delivery)
{
    return (struct record_delivery){
        .object_no = delivery->object_no,
        .event_no = delivery->event->object_no,
        .webhook = *lane_webhook_id(delivery->lane),
        .state = recorded_state(delivery),
        .attempts = delivery->attempts,
        .last_status = delivery->last_status,
        .next_unix_ns = delivery->at_unix_ns,
        .version = delivery->version,
        .last_error = span_str(delivery->last_error),
    };
}

void delivery_add_record(struct change *change, const struct record_delivery *record)
{
    record_add_delivery(change_begin(change), record);
    change_end(change, RECORD_DELIVERY, 1);
}

static struct err *move_delivery(void *context, struct stored *stored, struct change *change)
{
    const struct record_delivery record =
        delivery_record(CONTAINER_OF(stored, struct delivery, stored));

    (void)context;
    delivery_add_record(change, &record);
    return NULL;
}

/* Deliveries of deleted webhooks do not count: they are being dropped, and a replay drops them. */
static void digest_deliveries(void *context, struct store_digest *digest)
{
    struct deliveries *d = context;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (const struct lane *lane = lane_first(d); lane != NULL; lane = lane_next(d, lane))
        for (struct delivery *x = lane_first_delivery(lane); x != NULL;
             x = lane_next_delivery(lane, x)) {
            const struct record_delivery record = delivery_record(x);

            buf_clear(&b);
            record_add_delivery(&b, &record);
            store_digest_add(digest, buf_span(&b));
        }
    buf_done(&b);
}

static bool ended_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct delivery, age_link)->version <
           CONTAINER_OF_CONST(b, struct delivery, age_link)->version;
}

static bool is_older(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct delivery, age_link)->object_no <
           CONTAINER_OF_CONST(b, struct delivery, age_link)->object_no;
}

/* A replay meets moved records late. */
static struct err *loaded(void *context)
{
    struct deliveries *d = context;

    list_sort(&d->ended, ended_before);
    list_sort(&d->not_ended, is_older);
    return NULL;
}

static const struct store_kind delivery_kind = {
    .kind = RECORD_DELIVERY,
    .apply = apply_delivery,
    .move = move_delivery,
    .digest = digest_deliveries,
    .loaded = loaded,
};

static const struct store_kind delivery_gone_kind = {
    .kind = RECORD_DELIVERY_GONE,
    .apply = apply_delivery_gone,
};

struct deliveries *deliveries_new(struct hooks *hooks)
{
    struct deliveries *d = NEW(struct deliveries);

    d->hooks = hooks;
    map_init_own(&d->by_no, no_key);
    list_init(&d->ended);
    list_init(&d->not_ended);
    attempts_init(d);
    store_register(hooks->store, &delivery_kind, d);
    store_register(hooks->store, &delivery_gone_kind, d);
    lanes_init(d);
    bodies_init(d);
    return d;
}

void deliveries_free(struct deliveries *d)
{
    if (d == NULL)
        return;
    lanes_done(d);
    attempts_done(d);
    bodies_done(d);
    MUST(map_count(&d->by_no) == 0);
    map_done(&d->by_no);
    mem_free(d);
}

size_t deliveries_in_flight(const struct deliveries *d)
{
    return d->count[DELIVERY_IN_FLIGHT];
}

size_t deliveries_pending(const struct deliveries *d)
{
    return d->count[DELIVERY_PENDING] + d->count[DELIVERY_WAITING] + d->count[DELIVERY_IN_FLIGHT];
}

size_t deliveries_count(const struct deliveries *d, enum delivery_state state)
{
    return d->count[state];
}

bool deliveries_are_dropped(const struct deliveries *d)
{
    return !list_empty(&d->lanes_in[LANE_DYING]);
}

uint64_t deliveries_version(const struct deliveries *d)
{
    return d->version;
}

void deliveries_expect(const struct deliveries *d, uint64_t object_no)
{
    map_expect(&d->by_no, no_span(&object_no));
}

struct delivery *delivery_find_no(const struct deliveries *d, uint64_t object_no)
{
    return map_find(&d->by_no, no_span(&object_no));
}

/* The id is made of what never changes, so that it need not be kept. */
void delivery_id_of(int64_t time_unix_ns, const struct uuid *event, uint64_t object_no,
                    struct uuid *out_id)
{
    *out_id =
        uuid_from_serial(time_unix_ns, (uint16_t)(event->b[14] << 8 | event->b[15]), object_no);
}

void delivery_id(const struct delivery *delivery, struct uuid *out_id)
{
    const struct event *event = delivery->event;

    delivery_id_of(event->time_unix_ns, &event->id, delivery->object_no, out_id);
}

struct delivery *delivery_find(const struct deliveries *d, const struct uuid *id)
{
    struct delivery *delivery = delivery_find_no(d, uuid_serial(id));
    struct uuid own;

    if (delivery == NULL || lane_is_dying(delivery->lane))
        return NULL;
    delivery_id(delivery, &own);
    return uuid_eq(&own, id) ? delivery : NULL;
}

static struct delivery *at_age(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct delivery, age_link);
}

struct delivery *deliveries_oldest_ended(const struct deliveries *d)
{
    return at_age(list_first(&d->ended));
}

struct delivery *deliveries_next_ended(const struct deliveries *d, const struct delivery *delivery)
{
    return at_age(list_next(&d->ended, &delivery->age_link));
}

struct delivery *deliveries_oldest_pending(const struct deliveries *d)
{
    return at_age(list_first(&d->not_ended));
}

void delivery_add_dead(struct change *change, const struct uuid *webhook_id, uint64_t event_no,
                       uint64_t object_no, int64_t now_unix_ns, struct span why)
{
    const struct record_delivery record = {
        .object_no = object_no,
        .event_no = event_no,
        .webhook = *webhook_id,
        .state = DELIVERY_DEAD,
        .next_unix_ns = now_unix_ns,
        .version = change_next_serial(change),
        .last_error = why,
    };

    delivery_add_record(change, &record);
}

struct delivery delivery_resend(struct change *change, const struct delivery *delivery)
{
    struct record_delivery record;
    struct delivery resent = *delivery;

    resent.state = DELIVERY_PENDING;
    resent.attempts = 0;
    resent.at_unix_ns = 0;
    resent.version = change_next_serial(change);
    record = delivery_record(&resent);
    delivery_add_record(change, &record);
    return resent;
}

void delivery_forget(struct change *change, const struct delivery *delivery)
{
    record_add_number(change_begin(change), delivery->object_no);
    change_end(change, RECORD_DELIVERY_GONE, 1);
}

/* 0: it has no time of its own. */
static int64_t next_attempt_ns(const struct delivery *delivery)
{
    if (has_ended(delivery->state) || delivery->at_unix_ns == 0)
        return 0;
    return MAX(delivery->at_unix_ns, lane_held_until_ns(delivery->lane));
}

void delivery_add_json(const struct delivery *delivery, struct buf *b)
{
    const struct event *event = delivery->event;
    struct uuid id;

    delivery_id(delivery, &id);
    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), &id);
    member_add_uuid(b, SPAN("WebhookId"), lane_webhook_id(delivery->lane));
    member_add_text_or_null(b, SPAN("Tenant"), lane_tenant(delivery->lane));
    member_add_uuid(b, SPAN("EventId"), &event->id);
    member_add_text(b, SPAN("Event"), event->resource);
    member_add_text(b, SPAN("State"), state_names[delivery->state]);
    member_add_u64(b, SPAN("Attempts"), delivery->attempts);
    member_add_time(b, SPAN("Time"), event->time_unix_ns);
    member_add_time(b, SPAN("NextAttemptTime"), next_attempt_ns(delivery));
    member_add_u64_or_null(b, SPAN("LastStatus"), delivery->last_status);
    member_add_text_or_null(b, SPAN("LastError"), span_str(delivery->last_error));
    member_add_u64(b, SPAN("ObjectNo"), delivery->object_no);
    buf_add_char(b, '}');
}
