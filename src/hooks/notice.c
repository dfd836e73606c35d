/* A notice is raised as any event is, by event_raise: with its bounds, which may refuse it. */
#include "hooks/notice.h"

#include "base/log.h"
#include "hooks/event_raise.h"
#include "hooks/hooks.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"
#include "webhook/webhook.h"
#include "json/json.h"
#include "json/member.h"

#define PAYLOAD_PROPERTY(property_name, property_type, text)                                       \
    {                                                                                              \
        .name = SPAN_INIT(property_name), .type = property_type, .meaning = SPAN_INIT(text)        \
    }

static const struct property properties[] = {
    PAYLOAD_PROPERTY("WebhookId", TYPE_STRING, "The webhook"),
    PAYLOAD_PROPERTY("Label", TYPE_STRING, "Its label"),
    PAYLOAD_PROPERTY("Owner", TYPE_STRING, "Its owner"),
    PAYLOAD_PROPERTY("Tenant", TYPE_STRING, "Its tenant"),
    PAYLOAD_PROPERTY("Reason", TYPE_STRING, "Why, in words"),
    PAYLOAD_PROPERTY("DeliveryId", TYPE_STRING, "The delivery"),
    PAYLOAD_PROPERTY("EventId", TYPE_STRING, "The event that is not delivered"),
    PAYLOAD_PROPERTY("Event", TYPE_STRING, "Its event resource"),
    PAYLOAD_PROPERTY("Attempts", TYPE_INTEGER, "Attempts made"),
    PAYLOAD_PROPERTY("LastError", TYPE_STRING, "What the last one came to"),
};
enum { WEBHOOK_PROPERTIES = 5 };

static const struct shape of_webhook = {.properties = properties, .count = WEBHOOK_PROPERTIES};
static const struct shape of_delivery = {.properties = properties, .count = ARRAY_LEN(properties)};

static const struct resource_ops ops = {.open = NULL};

const struct resource_definition notice_webhook_paused = {
    .name = SPAN_INIT("Svc.WebhookPaused"),
    .description = SPAN_INIT("The server has paused a webhook"),
    .kind = KIND_EVENT,
    .shape = &of_webhook,
    .ops = &ops,
};

const struct resource_definition notice_webhook_recovered = {
    .name = SPAN_INIT("Svc.WebhookRecovered"),
    .description =
        SPAN_INIT("A webhook delivers again, after the server paused it or a delivery of "
                  "it died"),
    .kind = KIND_EVENT,
    .shape = &of_webhook,
    .ops = &ops,
};

const struct resource_definition notice_delivery_dead = {
    .name = SPAN_INIT("Svc.DeliveryDead"),
    .description = SPAN_INIT("A delivery is given up"),
    .kind = KIND_EVENT,
    .shape = &of_delivery,
    .ops = &ops,
};

static uint64_t given_back(const struct notice_hand *hand, uint64_t now_ms)
{
    return (now_ms - hand->at_ms) / 1000 * NOTICES_PER_SECOND;
}

bool notice_hand_has(const struct notice_hand *hand, unsigned more, uint64_t now_ms)
{
    uint64_t back = given_back(hand, now_ms);

    return hand->spent - MIN(hand->spent, back) + more <= NOTICES_IN_HAND;
}

bool notice_hand_take(struct notice_hand *hand, uint64_t now_ms)
{
    uint64_t back = given_back(hand, now_ms);

    hand->at_ms += (now_ms - hand->at_ms) / 1000 * 1000;
    hand->spent -= (uint32_t)MIN(hand->spent, back);
    if (hand->spent >= NOTICES_IN_HAND)
        return false;
    hand->spent++;
    return true;
}

static void add_member(struct buf *b, struct json_value webhook, struct span name)
{
    struct json_value value = json_member(webhook, name);

    member_add_json(b, name, json_exists(value) ? json_text(value) : SPAN("null"));
}

static void add_webhook(struct buf *b, const struct notice *notice, struct arena *a)
{
    const struct entity *e = notice->webhook->entity;
    struct json_value webhook = entity_parse(entity_json(e), a);

    member_add_uuid(b, SPAN("WebhookId"), &e->id);
    add_member(b, webhook, SPAN("Label"));
    add_member(b, webhook, SPAN("Owner"));
    add_member(b, webhook, SPAN("Tenant"));
    member_add_text(b, SPAN("Reason"), notice->why);
}

static void add_delivery(struct buf *b, const struct notice_delivery *delivery)
{
    member_add_uuid(b, SPAN("DeliveryId"), &delivery->id);
    member_add_uuid(b, SPAN("EventId"), &delivery->event);
    member_add_text(b, SPAN("Event"), delivery->resource);
    member_add_u64(b, SPAN("Attempts"), delivery->attempts);
    member_add_text_or_null(b, SPAN("LastError"), delivery->last_error);
}

/* As one of `[{…}]`. */
void notice_raise(struct hooks *hooks, const struct notice *notice, struct change *change)
{
    struct event_draft draft = {
        .resource = resource_named(hooks->rest->resources, notice->of->name),
        .tenant = webhook_tenant(notice->webhook),
        .depth = (uint8_t)notice->depth,
        .chain = notice->chain,
        .most = NOTICE_WEBHOOKS_MOST,
    };
    struct event_raised raised;
    struct err *e;
    struct buf b;

    if (change->notices >= NOTICES_PER_CHANGE) {
        hooks->metrics->notices_left_out++;
        return;
    }
    if (notice->of == &notice_webhook_paused)
        draft.except = notice->webhook;
    buf_init_arena(&b, change->arena);
    buf_add_str(&b, "[{");
    add_webhook(&b, notice, change->arena);
    if (notice->dead != NULL)
        add_delivery(&b, notice->dead);
    buf_add_str(&b, "}]");
    draft.payload = buf_span(&b);
    draft.entities = entity_parse(draft.payload, change->arena);
    e = event_raise(hooks, &draft, change, &raised);
    if (e == NULL) {
        change->notices++;
        return;
    }
    log_warn("notice", "%.*s is not raised: %.*s", SPAN_FMT(notice->of->name),
             SPAN_FMT(err_message(e)));
    err_free(e);
    hooks->metrics->notices_left_out++;
}
