/* Deliveries as objects: made by event records, changed by delivery records, live and on replay
 * alike. */
#include "service/delivery.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/must.h"
#include "service/delivery_inner.h"

#include <string.h>

static const struct span state_names[DELIVERY_STATE_COUNT] = {
#define DELIVERY_AS_NAME(symbol, name) SPAN_INIT(name),
    DELIVERY_STATES(DELIVERY_AS_NAME)
#undef DELIVERY_AS_NAME
};

const struct enumeration delivery_state_names = {"State", state_names, DELIVERY_STATE_COUNT};

#define ENDED (SM_TO(DELIVERY_DELIVERED) | SM_TO(DELIVERY_DEAD) | SM_TO(DELIVERY_ABORTED))

static const struct sm_state states[DELIVERY_STATE_COUNT] = {
    [DELIVERY_PENDING] = {"Pending", SM_TO(DELIVERY_IN_FLIGHT) | SM_TO(DELIVERY_PENDING)},
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

static struct span no_key(const void *item)
{
    const struct delivery *delivery = item;

    return span_of((const char *)&delivery->object_no, sizeof(delivery->object_no));
}

/* Takes the delivery out of the list of its state. One that has not ended keeps its place among
 * those, whatever happens to it. */
static void leave_state(struct delivery *delivery)
{
    struct deliveries *d = delivery->lane->deliveries;

    d->count[delivery->state]--;
    if (delivery->state == DELIVERY_IN_FLIGHT) {
        lane_free_slot(delivery->lane);
    } else if (has_ended(delivery->state)) {
        list_remove(&d->ended, &delivery->age_link);
    } else {
        lane_dequeue(delivery->lane, delivery);
    }
}

static void stop_aging(struct delivery *delivery)
{
    struct deliveries *d = delivery->lane->deliveries;

    if (!list_linked(&delivery->age_link))
        return;
    list_remove(&d->not_ended, &delivery->age_link);
    payload_unneeded(events_payloads(d->service->events), delivery->event);
}

/* Puts it into the list of its state. */
static void enter_state(struct delivery *delivery)
{
    struct deliveries *d = delivery->lane->deliveries;

    d->count[delivery->state]++;
    if (has_ended(delivery->state)) {
        stop_aging(delivery);
        list_push_back(&d->ended, &delivery->age_link);
        return;
    }
    if (!list_linked(&delivery->age_link)) {
        list_push_back(&d->not_ended, &delivery->age_link);
        payload_needed(events_payloads(d->service->events), delivery->event);
    }
    if (delivery->state == DELIVERY_IN_FLIGHT) {
        lane_take_slot(delivery->lane);
        delivery->attempt = NULL; /* attempt_start knows it */
    } else {
        lane_enqueue(delivery->lane, delivery);
    }
}

bool delivery_has_ended(const struct delivery *delivery)
{
    return has_ended(delivery->state);
}

void delivery_set_state(struct delivery *delivery, enum delivery_state next)
{
    leave_state(delivery);
    sm_move(&delivery_machine, &delivery->state, next);
    enter_state(delivery);
}

static struct delivery *delivery_new(struct deliveries *d, struct lane *lane, struct event *event,
                                     uint64_t object_no)
{
    struct delivery *delivery = NEW(struct delivery);

    delivery->event = event;
    delivery->lane = lane;
    delivery->object_no = object_no;
    list_push_back(&lane->all, &delivery->lane_link);
    map_add(&d->by_no, delivery);
    return delivery;
}

void delivery_drop(struct delivery *delivery)
{
    struct lane *lane = delivery->lane;
    struct deliveries *d = lane->deliveries;

    if (delivery->state == DELIVERY_IN_FLIGHT && delivery->attempt != NULL)
        attempt_cancel(delivery->attempt);
    leave_state(delivery);
    stop_aging(delivery);
    list_remove(&lane->all, &delivery->lane_link);
    map_remove(&d->by_no, no_key(delivery));
    store_forget(d->service->store, &delivery->stored);
    event_unref(d->service->events, delivery->event);
    mem_free(delivery->last_error);
    mem_free(delivery);
}

void delivery_create(struct deliveries *d, const struct uuid *webhook_id, struct event *event,
                     uint64_t object_no, const struct store_origin *origin)
{
    struct lane *lane = lane_get(d, webhook_id);
    struct delivery *delivery =
        delivery_new(d, lane, event_ref(d->service->events, event->object_no), object_no);
    struct store_origin within = *origin;

    within.bytes = 0; /* the event's record holds it */
    delivery->version = origin->serial;
    store_track(d->service->store, &delivery->stored, RECORD_DELIVERY, &within);
    d->version = MAX(d->version, origin->serial);
    enter_state(delivery);
    lane_update(lane);
}

/* The fields that a record carries; the state is the caller's to move. */
static void take_fields(struct delivery *delivery, const struct record_delivery *r)
{
    delivery->version = r->version;
    delivery->attempts = r->attempts;
    delivery->last_status = r->last_status;
    delivery->at_unix_ns = r->next_unix_ns;
    mem_free(delivery->last_error);
    delivery->last_error = r->last_error.n == 0 ? NULL : mem_string(r->last_error);
}

static struct err *apply_delivery(void *context, struct span body,
                                  const struct store_origin *origin)
{
    struct deliveries *d = context;
    struct record_delivery r;
    struct delivery *delivery;

    TRY(record_read_delivery(body, &r));
    if (r.state >= DELIVERY_STATE_COUNT)
        return ERR(ERR_STORAGE_FAILURE, "journal record %llu: no delivery state %u",
                   (unsigned long long)origin->serial, r.state);
    delivery = delivery_find_no(d, r.object_no);
    if (delivery == NULL) {
        delivery = delivery_new(d, lane_get(d, &r.webhook),
                                event_ref(d->service->events, r.event_no), r.object_no);
        delivery->state = r.state;
        take_fields(delivery, &r);
        enter_state(delivery);
    } else if (delivery->version != r.version) {
        MUST(!store_is_loaded(d->service->store) ||
             sm_allows(&delivery_machine, delivery->state, r.state));
        leave_state(delivery);
        take_fields(delivery, &r);
        delivery->state = r.state;
        enter_state(delivery);
    }
    store_track(d->service->store, &delivery->stored, RECORD_DELIVERY, origin);
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
    delivery_drop(delivery);
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
        .webhook = delivery->lane->webhook_id,
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

static struct err *apply_lane(void *context, struct span body, const struct store_origin *origin)
{
    struct deliveries *d = context;
    struct record_lane r;
    struct lane *lane;

    TRY(record_read_lane(body, &r));
    lane = lane_get(d, &r.webhook);
    lane->failing_since_unix_ns = r.failing_since_unix_ns;
    lane_hold(lane, r.hold_until_unix_ns);
    if (r.failing_since_unix_ns == 0 && r.hold_until_unix_ns == 0)
        store_forget(d->service->store, &lane->stored);
    else
        store_track(d->service->store, &lane->stored, RECORD_LANE, origin);
    return NULL;
}

void lane_add_record(struct change *change, const struct lane *lane, int64_t failing_since_unix_ns,
                     int64_t hold_until_unix_ns)
{
    const struct record_lane record = {
        .webhook = lane->webhook_id,
        .failing_since_unix_ns = failing_since_unix_ns,
        .hold_until_unix_ns = hold_until_unix_ns,
    };

    record_add_lane(change_begin(change), &record);
    change_end(change, RECORD_LANE, 1);
}

void lane_start_over(struct change *change, const struct lane *lane, bool is_other_receiver)
{
    int64_t hold_until_unix_ns = is_other_receiver ? 0 : lane->hold_until_unix_ns;

    if (lane->failing_since_unix_ns != 0 || lane->hold_until_unix_ns != hold_until_unix_ns)
        lane_add_record(change, lane, 0, hold_until_unix_ns);
}

static struct err *move_lane(void *context, struct stored *stored, struct change *change)
{
    const struct lane *lane = CONTAINER_OF(stored, struct lane, stored);

    (void)context;
    lane_add_record(change, lane, lane->failing_since_unix_ns, lane->hold_until_unix_ns);
    return NULL;
}

/* Deliveries of deleted webhooks do not count: they are being dropped, and a replay drops them. */
static void digest_deliveries(void *context, struct store_digest *digest)
{
    struct deliveries *d = context;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    LIST_EACH(&d->lanes, at) {
        struct lane *lane = CONTAINER_OF(at, struct lane, link);

        if (lane->webhook == NULL)
            continue;
        for (struct delivery *x = lane_first_delivery(lane); x != NULL;
             x = lane_next_delivery(lane, x)) {
            const struct record_delivery record = delivery_record(x);

            buf_clear(&b);
            record_add_delivery(&b, &record);
            store_digest_add(digest, buf_span(&b));
        }
    }
    buf_done(&b);
}

static bool came_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct delivery, lane_link)->object_no <
           CONTAINER_OF_CONST(b, struct delivery, lane_link)->object_no;
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

/* Also notes the latest time that the journal knows of. */
static struct err *check_events(const struct lane *lane, int64_t *latest_unix_ns)
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
static void count_waits(struct deliveries *d, int64_t latest_unix_ns)
{
    int64_t lacking_ns = latest_unix_ns - clock_unix_ns();

    if (lacking_ns <= 0)
        return;
    log_warn("delivery",
             "the clock is %lld s behind the journal's last event; retries do not wait for it",
             (long long)(lacking_ns / 1000000000));
    LIST_EACH(&d->lanes, at)
        lane_count_waits_from(CONTAINER_OF(at, struct lane, link), latest_unix_ns);
}

/* After a replay, which met moved records late: order, and lanes find their webhooks. Those of
 * deleted webhooks go now; of their events the journal may have none any more. */
static struct err *loaded(void *context)
{
    struct deliveries *d = context;
    int64_t latest_unix_ns = 0;

    list_sort(&d->ended, ended_before);
    list_sort(&d->not_ended, is_older);
    LIST_EACH(&d->lanes, at) {
        struct lane *lane = CONTAINER_OF(at, struct lane, link);

        lane->webhook = webhook_find(d->service->webhooks, &lane->webhook_id);
        if (lane->webhook == NULL) {
            lane_discard(lane);
            continue;
        }
        TRY(check_events(lane, &latest_unix_ns));
        list_sort(&lane->all, came_before);
        lane->webhook->lane = lane;
        lane_configure(lane);
        lane_release(lane);
    }
    count_waits(d, latest_unix_ns);
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

static const struct store_kind lane_kind = {
    .kind = RECORD_LANE,
    .apply = apply_lane,
    .move = move_lane,
};

struct deliveries *deliveries_new(struct service *service)
{
    struct deliveries *d = NEW(struct deliveries);

    d->service = service;
    map_init_own(&d->by_no, no_key);
    list_init(&d->ended);
    list_init(&d->not_ended);
    list_init(&d->idle_attempts);
    list_init(&d->settings);
    response_init(&d->response, (size_t)service->limits.answer_bytes);
    lanes_init(d);
    store_register(service->store, &delivery_kind, d);
    store_register(service->store, &delivery_gone_kind, d);
    store_register(service->store, &lane_kind, d);
    return d;
}

void deliveries_free(struct deliveries *d)
{
    if (d == NULL)
        return;
    lanes_done(d);
    attempts_done(d);
    MUST(map_count(&d->by_no) == 0);
    map_done(&d->by_no);
    response_done(&d->response);
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
    return !list_empty(&d->dying);
}

uint64_t deliveries_version(const struct deliveries *d)
{
    return d->version;
}

struct delivery *delivery_find_no(const struct deliveries *d, uint64_t object_no)
{
    return map_find(&d->by_no, span_of((const char *)&object_no, sizeof(object_no)));
}

/* The id is made of what never changes, so that it need not be kept. */
void delivery_id(const struct delivery *delivery, struct uuid *out_id)
{
    const struct event *event = delivery->event;
    uint16_t salt = (uint16_t)(event->id.b[14] << 8 | event->id.b[15]);

    *out_id = uuid_from_serial(event->time_unix_ns, salt, delivery->object_no);
}

struct delivery *delivery_find(const struct deliveries *d, const struct uuid *id)
{
    struct delivery *delivery = delivery_find_no(d, uuid_serial(id));
    struct uuid own;

    if (delivery == NULL || delivery->lane->is_dying)
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

struct delivery *lane_oldest_pending(const struct lane *lane)
{
    struct delivery *delivery = lane_first_delivery(lane);

    while (delivery != NULL && has_ended(delivery->state))
        delivery = lane_next_delivery(lane, delivery);
    return delivery;
}

struct err *deliveries_check_room(const struct deliveries *d, struct change *change, size_t more)
{
    struct service *s = d->service;
    int64_t most = s->limits.pending_deliveries;
    struct err *e;

    if (deliveries_pending(d) + change->deliveries + more <= (size_t)most) {
        change->deliveries += more;
        return NULL;
    }
    s->metrics.limit_hits[METRIC_PENDING_DELIVERIES]++;
    e = ERR(ERR_OVERLOADED, "the limit PendingDeliveries (%lld) is reached", (long long)most);
    err_set_retry_after(e, 5);
    return e;
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

void delivery_add_json(const struct delivery *delivery, struct buf *b)
{
    const struct event *event = delivery->event;
    struct uuid id;

    delivery_id(delivery, &id);
    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), &id);
    member_add_uuid(b, SPAN("WebhookId"), &delivery->lane->webhook_id);
    member_add_uuid(b, SPAN("EventId"), &event->id);
    member_add_text(b, SPAN("Event"), event->resource);
    member_add_text(b, SPAN("State"), state_names[delivery->state]);
    member_add_u64(b, SPAN("Attempts"), delivery->attempts);
    member_add_time(b, SPAN("Time"), event->time_unix_ns);
    member_add_time(b, SPAN("NextAttemptTime"),
                    has_ended(delivery->state) ? 0 : delivery->at_unix_ns);
    member_add_u64_or_null(b, SPAN("LastStatus"), delivery->last_status);
    member_add_text_or_null(b, SPAN("LastError"), span_str(delivery->last_error));
    member_add_u64(b, SPAN("ObjectNo"), delivery->object_no);
    buf_add_char(b, '}');
}
