/* Svc.Admin.Delivery: where each event stands on its way to each webhook (docs/specification.md,
 * section 8).
 */
#include "admin/builtin.h"
#include "base/budget.h"
#include "base/sm.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "query/shape.h"
#include "rest/crud.h"
#include "rest/evaluation.h"
#include "rest/rendered.h"
#include "rest/rest.h"
#include "rest/tenant.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/turn.h"
#include "webhook/webhook.h"
#include "json/json.h"

static const struct span written_states[] = {SPAN_INIT("Pending")};
static const struct enumeration written_state_names = {"State", written_states,
                                                       ARRAY_LEN(written_states)};

static const struct property properties[] = {
    ID_PROPERTY("ID of the delivery"),
    READ_ONLY_PROPERTY("WebhookId", TYPE_STRING, 0, "The webhook"),
    READ_ONLY_PROPERTY("Tenant", TYPE_STRING, 0, "The webhook's tenant"),
    READ_ONLY_PROPERTY("EventId", TYPE_STRING, 0, "The event"),
    READ_ONLY_PROPERTY("Event", TYPE_STRING, 0, "The event resource"),
    {.name = SPAN_INIT("State"),
     .type = TYPE_STRING,
     .values = &delivery_state_names,
     .written = &written_state_names,
     .meaning = SPAN_INIT("Where it stands; written as Pending it is sent again")},
    READ_ONLY_PROPERTY("Attempts", TYPE_INTEGER, 0, "Attempts made"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When the event was raised"),
    READ_ONLY_PROPERTY("NextAttemptTime", TYPE_DATETIME, 0, "When it is tried again"),
    READ_ONLY_PROPERTY("LastStatus", TYPE_INTEGER, 0, "Status of the last answer"),
    READ_ONLY_PROPERTY("LastError", TYPE_STRING, 0, "What went wrong last, in words"),
    OBJECT_NO_PROPERTY,
};

static const struct shape shape = {.properties = properties,
                                   .count = ARRAY_LEN(properties),
                                   .name = SPAN_INIT("Svc.Admin.Delivery")};

/* What it costs to look at one that is not wanted. */
enum { LOOK_UNITS = 32 };

struct cursor {
    struct lane *lane;
    struct collection_walk *webhooks; /* of one tenant: whose lanes they are; NULL: those of all */
    struct delivery *delivery;
    bool one_lane;
    unsigned states; /* one bit a state: those that the conditions allow */
};

static struct lane *next_lane(const struct deliveries *d, struct cursor *at)
{
    struct entity *e = NULL;
    const struct webhook *w = NULL;

    if (at->one_lane)
        return NULL;
    if (at->webhooks == NULL)
        return lane_next(d, at->lane);
    do {
        e = collection_walk_next(at->webhooks);
        w = e == NULL ? NULL : e->attached;
    } while (w != NULL && w->lane == NULL);
    return w == NULL ? NULL : w->lane;
}

/* Lane by lane, each in the order of events. What is in another state need not be written to be
 * found out. */
static void *next_in_lanes(struct rendered *r)
{
    const struct deliveries *d = hooks_of(r->call)->deliveries;
    struct cursor *at = r->cursor;

    while (at->lane != NULL && budget_ask(LOOK_UNITS)) {
        at->delivery = at->delivery == NULL ? lane_first_delivery(at->lane)
                                            : lane_next_delivery(at->lane, at->delivery);
        if (at->delivery == NULL)
            at->lane = next_lane(d, at);
        else if ((at->states & SM_TO(at->delivery->state)) != 0)
            return at->delivery;
    }
    return NULL;
}

struct event_cursor {
    const struct event *event;
    uint32_t place;
};

/* Deliveries have the numbers behind their event's. */
static void *next_of_event(struct rendered *r)
{
    const struct deliveries *d = hooks_of(r->call)->deliveries;
    struct event_cursor *at = r->cursor;

    while (at->place < at->event->webhooks && budget_ask(LOOK_UNITS)) {
        struct delivery *delivery = delivery_find_no(d, at->event->object_no + ++at->place);

        if (delivery != NULL && !lane_is_dying(delivery->lane))
            return delivery;
    }
    return NULL;
}

static void *next_single(struct rendered *r)
{
    return TAKE(r->cursor);
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    (void)r;
    delivery_add_json(object, b);
}

static struct conditions conditions_on_state(const struct call *call)
{
    return conditions_on(&call->query->conditions, SPAN("State"), call->arena);
}

/* One bit a state. */
static unsigned states_that_hold(const struct call *call, const struct conditions *on_state)
{
    unsigned states = 0;

    for (unsigned i = 0; i < DELIVERY_STATE_COUNT; i++) {
        struct span json = arena_printf(call->arena, "{\"State\":\"%.*s\"}",
                                        SPAN_FMT(delivery_state_names.values[i]));

        if (conditions_hold(on_state, entity_parse(json, call->arena), call->arena))
            states |= SM_TO(i);
    }
    return states;
}

/* By the index on their Tenant. */
static struct collection_walk *webhooks_of(struct call *call, struct span tenant)
{
    const struct resource *webhooks =
        resource_named(call->rest->resources, SPAN("Svc.Admin.Webhook"));
    struct collection_walk *walk = ARENA_NEW(call->arena, struct collection_walk);
    struct conditions of_tenant = {NULL, 0};

    tenant_add_condition(&of_tenant, webhooks->shape, tenant, call->arena);
    collection_walk(webhooks->collection, &of_tenant, walk);
    return walk;
}

static void open_lanes(struct call *call)
{
    const struct deliveries *d = hooks_of(call)->deliveries;
    const struct conditions on_state = conditions_on_state(call);
    struct cursor *cursor = ARENA_NEW(call->arena, struct cursor);
    struct span tenant;
    bool is_given = conditions_string(&call->query->conditions, SPAN("Tenant"), &tenant);
    struct uuid id;

    cursor->one_lane = rendered_wanted_id(call, SPAN("WebhookId"), &id);
    if (cursor->one_lane) {
        cursor->lane = lane_find(d, &id);
        if (cursor->lane != NULL && is_given && !span_eq(lane_tenant(cursor->lane), tenant))
            cursor->lane = NULL;
    } else if (is_given) {
        cursor->webhooks = webhooks_of(call, tenant);
        cursor->lane = next_lane(d, cursor);
    } else {
        cursor->lane = lane_first(d);
    }
    cursor->states = states_that_hold(call, &on_state);
    rendered_open(call, next_in_lanes, add_json)->cursor = cursor;
}

static void open_event(struct call *call, const struct event *event)
{
    struct event_cursor *cursor = ARENA_NEW(call->arena, struct event_cursor);

    cursor->event = event;
    rendered_open(call, next_of_event, add_json)->cursor = cursor;
}

static struct err *open_source(struct call *call)
{
    const struct deliveries *d = hooks_of(call)->deliveries;
    const struct event *event = NULL;
    struct uuid id;

    TRY(evaluation_begin_reading(call->rest));
    crud_shows(call, deliveries_version(d));
    if (rendered_wanted_id(call, SPAN("Id"), &id)) {
        rendered_open(call, next_single, add_json)->cursor = delivery_find(d, &id);
        return NULL;
    }
    if (rendered_wanted_id(call, SPAN("EventId"), &id))
        event = events_find(hooks_of(call)->events, &id);
    if (event != NULL)
        open_event(call, event);
    else
        open_lanes(call);
    return NULL;
}

static bool count(struct call *call, size_t *out_count)
{
    const struct deliveries *d = hooks_of(call)->deliveries;
    const struct conditions on_state = conditions_on_state(call);
    unsigned states;
    size_t found = 0;

    if (on_state.count < call->query->conditions.count || deliveries_are_dropped(d) ||
        turn_is_applying(call->rest->turn))
        return false;
    states = states_that_hold(call, &on_state);
    for (unsigned i = 0; i < DELIVERY_STATE_COUNT; i++)
        if ((states & SM_TO(i)) != 0)
            found += deliveries_count(d, i);
    crud_shows(call, deliveries_version(d));
    *out_count = found;
    return true;
}

/* Without a State nothing is to change. */
static struct err *check_state(struct json_value input, struct arena *a, bool *out_resends)
{
    struct json_value state = json_member_fold(input, SPAN("State"));

    TRY(json_check_unique(input, true, a));
    TRY(schema_check_input(&shape, input, a));
    *out_resends = json_exists(state);
    if (!*out_resends ||
        (json_type(state) == JSON_STRING && span_ieq(json_string(state, a), SPAN("Pending"))))
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "State can only be written as \"Pending\": to send again");
}

static struct span text_of(const struct delivery *delivery, struct arena *a)
{
    struct span text;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    delivery_add_json(delivery, &b);
    text = arena_copy(a, buf_span(&b));
    buf_done(&b);
    return text;
}

/* What it costs to send one again, with its text. */
enum { RESEND_UNITS = 1024 };

/* *delivery becomes what it will be. */
static struct err *resend(struct call *call, struct delivery *delivery)
{
    if (delivery->state == DELIVERY_IN_FLIGHT)
        return ERR(ERR_CONFLICT, "delivery %llu is in flight: its attempt has to end first",
                   (unsigned long long)delivery->object_no);
    if (delivery_has_ended(delivery))
        TRY(delivery_check_resend(hooks_of(call)->deliveries, delivery, call->change));
    *delivery = delivery_resend(call->change, delivery);
    return NULL;
}

static struct err *patch_all(struct call *call, const struct query_result *found, bool resends,
                             struct span *out_texts, uint64_t *out_version)
{
    for (size_t i = 0; i < found->count; i++) {
        struct delivery patched = *(const struct delivery *)found->items[i].object;

        TRY(crud_check_preconditions(call, &found->items[i]));
        if (resends)
            TRY(resend(call, &patched));
        out_texts[i] = text_of(&patched, call->arena);
        *out_version = patched.version;
        if (!budget_ask(RESEND_UNITS))
            break;
    }
    return budget_check();
}

static struct err *patch(struct call *call)
{
    struct query_result found;
    struct json_value input;
    struct span *texts;
    uint64_t latest = 0;
    bool resends;

    TRY(crud_select(call, true, &found));
    TRY(crud_body_object(call, &input));
    TRY(check_state(input, call->arena, &resends));
    TRY(crud_check_found(call, found.count));
    texts = ARENA_ARRAY(call->arena, struct span, found.count);
    TRY(patch_all(call, &found, resends, texts, &latest));
    if (found.count == 1)
        crud_add_text_tag(call, texts[0], latest);
    crud_answer_changed(call, 200, "updated in", texts, found.count);
    return crud_apply(call);
}

static void forget(struct change *change, const void *object)
{
    delivery_forget(change, object);
}

static uint64_t version(const void *object)
{
    return ((const struct delivery *)object)->version;
}

static const struct resource_ops ops = {
    .open = open_source, .count = count, .patch = patch, .forget = forget, .version = version};

const struct resource_definition res_delivery = {
    .name = SPAN_INIT("Svc.Admin.Delivery"),
    .description = SPAN_INIT("Events on their way to webhooks"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
};
