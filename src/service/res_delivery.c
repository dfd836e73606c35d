/* Svc.Admin.Delivery: where each event stands on its way to each webhook (protocol.md, section 8).
 */
#include "base/json.h"
#include "service/builtin.h"
#include "service/crud.h"
#include "service/rendered.h"
#include "service/service.h"

static const struct property properties[] = {
    ID_PROPERTY("ID of the delivery"),
    READ_ONLY_PROPERTY("WebhookId", TYPE_STRING, 0, "The webhook"),
    READ_ONLY_PROPERTY("EventId", TYPE_STRING, 0, "The event"),
    READ_ONLY_PROPERTY("Event", TYPE_STRING, 0, "The event resource"),
    {.name = SPAN_INIT("State"),
     .type = TYPE_STRING,
     .values = &delivery_state_names,
     .meaning = SPAN_INIT("Where it stands; written as Pending it is sent again")},
    READ_ONLY_PROPERTY("Attempts", TYPE_INTEGER, 0, "Attempts made"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When the event was raised"),
    READ_ONLY_PROPERTY("NextAttemptTime", TYPE_DATETIME, 0, "When it is tried again"),
    READ_ONLY_PROPERTY("LastStatus", TYPE_INTEGER, 0, "Status of the last answer"),
    READ_ONLY_PROPERTY("LastError", TYPE_STRING, 0, "What went wrong last, in words"),
    OBJECT_NO_PROPERTY,
};

static const struct shape shape = {properties, ARRAY_LEN(properties), false};

struct cursor {
    struct lane *lane;
    struct delivery *delivery;
    bool one_lane;
};

/* Lane by lane, each in the order of events. */
static void *next_in_lanes(struct rendered *r)
{
    const struct deliveries *d = r->call->service->deliveries;
    struct cursor *at = r->cursor;

    while (at->lane != NULL) {
        at->delivery = at->delivery == NULL ? lane_first_delivery(at->lane)
                                            : lane_next_delivery(at->lane, at->delivery);
        if (at->delivery != NULL)
            return at->delivery;
        at->lane = at->one_lane ? NULL : lane_next(d, at->lane);
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

static struct err *open_source(struct call *call)
{
    const struct deliveries *d = call->service->deliveries;
    struct cursor *cursor = ARENA_NEW(call->arena, struct cursor);
    struct uuid id;

    call_shows(call, deliveries_version(d));
    if (rendered_wanted_id(call, SPAN("Id"), &id)) {
        rendered_open(call, next_single, add_json)->cursor = delivery_find(d, &id);
        return NULL;
    }
    cursor->one_lane = rendered_wanted_id(call, SPAN("WebhookId"), &id);
    cursor->lane = cursor->one_lane ? lane_find(d, &id) : lane_first(d);
    rendered_open(call, next_in_lanes, add_json)->cursor = cursor;
    return NULL;
}

static struct err *check_state(struct json_value input, struct arena *a)
{
    struct json_value state = json_member_fold(input, SPAN("State"));

    TRY(schema_check(&shape, input, a));
    if (json_type(state) == JSON_STRING && span_ieq(json_string(state, a), SPAN("Pending")))
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

static struct err *resend_all(struct call *call, const struct query_result *found,
                              struct span *out_texts)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct delivery *delivery = found->items[i].object;
        struct delivery resent;

        if (delivery->state == DELIVERY_IN_FLIGHT)
            return ERR(ERR_CONFLICT, "delivery %llu is in flight: its attempt has to end first",
                       (unsigned long long)delivery->object_no);
        resent = delivery_resend(&call->change, delivery);
        out_texts[i] = text_of(&resent, call->arena);
    }
    return NULL;
}

static struct err *patch(struct call *call)
{
    struct query_result found;
    struct json_doc doc;
    struct span *texts;

    TRY(crud_select(call, true, &found));
    TRY(crud_body(call, &doc));
    TRY(check_state(json_root(&doc), call->arena));
    if (found.count == 0)
        return ERR(ERR_UNKNOWN_ENTITY, "no entity of '%.*s' matches",
                   SPAN_FMT(call->resource->name));
    TRY(crud_check_several(call, found.count));
    texts = ARENA_ARRAY(call->arena, struct span, found.count);
    TRY(resend_all(call, &found, texts));
    crud_answer_changed(call, 200, "updated in", texts, found.count);
    return call_apply(call);
}

static void forget(struct change *change, const void *object)
{
    delivery_forget(change, object);
}

static const struct resource_ops ops = {.open = open_source, .patch = patch, .forget = forget};

const struct resource_definition res_delivery = {
    .name = SPAN_INIT("Svc.Admin.Delivery"),
    .description = SPAN_INIT("Events on their way to webhooks"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
};
