/* Svc.Admin.WebhookLog: one entry an attempt, written by webhook_log (docs/specification.md,
 * section 8). Bodies are shown to who may GET the event's resource, which its delivery knows: both
 * are kept as long. Where the delivery was deleted, only to who may GET everything. */
#include "access/access.h"
#include "admin/builtin.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/forgotten.h"
#include "hooks/hooks.h"
#include "hooks/webhook_sent.h"
#include "query/shape.h"
#include "rest/crud.h"
#include "rest/stream.h"
#include "store/collection.h"
#include "store/entity.h"
#include "webhook/webhook_log.h"
#include "json/json.h"

static bool may_read_bodies(const struct hooks *hooks, const struct access_key *key,
                            struct json_value entry, struct arena *a)
{
    const struct delivery *delivery = NULL;
    struct uuid id;

    if (uuid_parse(json_string(json_member(entry, SPAN("DeliveryId")), a), &id))
        delivery = delivery_find(hooks->deliveries, &id);
    return delivery != NULL && access_allows(key, delivery->event->resource, METHOD_GET);
}

static bool is_body(struct span name)
{
    return span_eq(name, SPAN("ResponseBody"));
}

static bool may_read_body(const struct call *call, const struct entity *e)
{
    struct arena a;
    bool may;

    if (access_reads_all(call->key))
        return true;
    arena_init(&a);
    may = may_read_bodies(hooks_of(call), call->key, entity_parse(entity_json(e), &a), &a);
    arena_done(&a);
    return may;
}

/* RequestHeaders and RequestBody. */
static void add_hidden(const struct call *call, const struct entity *e, const struct property *p,
                       struct buf *b)
{
    struct hooks *hooks = hooks_of(call);

    if (span_eq(p->name, SPAN("RequestHeaders")))
        webhook_sent_add_headers(hooks, e, b);
    else if (may_read_body(call, e))
        webhook_sent_add_body(hooks, e, b);
    else
        buf_add_str(b, "null");
}

static void limit(void *context, const struct access_key *key, struct buf *b, struct span json,
                  struct arena *a)
{
    struct json_value entry = entity_parse(json, a);

    if (may_read_bodies(hooks_of_service(context), key, entry, a)) {
        buf_add(b, json);
        return;
    }
    buf_add_char(b, '{');
    for (struct json_member m = json_first_member(entry); json_exists(m.name);
         m = json_next_member(entry, m)) {
        struct span name = json_string(m.name, a);

        json_add_name(b, name);
        buf_add(b, is_body(name) ? SPAN("null") : json_text(m.value));
    }
    buf_add_char(b, '}');
}

/* Streams. --------------------------------------------------------------------------------- */

static struct span stream_name(const void *object)
{
    (void)object;
    return SPAN("WebhookLog");
}

static uint64_t stream_number(const void *object)
{
    return ((const struct entity *)object)->object_no;
}

static size_t stream_bytes(const void *object)
{
    return collection_entity_bytes(object);
}

static uint64_t stream_last(const struct call *call)
{
    const struct entity *last = collection_last(call->resource->collection);

    return last == NULL ? 0 : last->object_no;
}

static uint64_t stream_forgotten(const struct call *call)
{
    return forgotten_entry(hooks_of(call)->forgotten);
}

static void *stream_after(const struct call *call, uint64_t number)
{
    return collection_above(call->resource->collection, number);
}

static void *stream_next(const struct call *call, const void *object)
{
    return collection_next(call->resource->collection, object);
}

static void stream_add_json(const struct call *call, void *object, struct arena *a, struct buf *b)
{
    buf_add(b, crud_show(call, object, a));
}

static const struct stream_source stream = {
    .name = stream_name,
    .number = stream_number,
    .bytes = stream_bytes,
    .last = stream_last,
    .forgotten = stream_forgotten,
    .after = stream_after,
    .next = stream_next,
    .add_json = stream_add_json,
};

static const struct resource_ops ops = {
    .apply = builtin_apply_forgotten,
    .limit = limit,
    .stream = &stream,
    .stored_shape = &webhook_log_stored_shape,
    .hidden = add_hidden,
};

const struct resource_definition res_webhook_log = {
    .name = SPAN_INIT("Svc.Admin.WebhookLog"),
    .description = SPAN_INIT("Attempts to deliver events, and how they went"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_DELETE),
    .shape = &webhook_log_shape,
    .ops = &ops,
    .is_stored = true,
};
