/* The body of an attempt: the payload in the format that the webhook wants.
 *
 * As a CloudEvent (docs/specification.md, section 13) an event that came as one goes on with its
 * own id, source, time, subject and extensions; any other gets the event's Id and time, and the
 * configuration's source. In binary mode the attributes are header fields and the body is the data;
 * that of a custom payload request too. */
#include "base/blob.h"
#include "base/datetime.h"
#include "base/limits.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_settings.h"
#include "hooks/payload.h"
#include "protocol/cloudevents.h"
#include "protocol/formats.h"
#include "protocol/negotiate.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "json/json.h"
#include "json/member.h"

/* In another format. CSV has a column for every member that there
 * is anywhere, so it may be many times as large. */
static struct err *reformat(struct attempt *attempt, struct span json, enum format format)
{
    size_t most = (size_t)attempt->deliveries->hooks->limits->answer_bytes;
    struct err *e = NULL;
    struct buf b;

    buf_init(&b, most);
    formats_add_array(&b, json, format, &attempt->arena);
    if (buf_over(&b))
        e = ERR(ERR_PAYLOAD_TOO_LARGE,
                "as %.*s the body would be larger than the limit AnswerBytes (%zu bytes)",
                SPAN_FMT(format_media_types[format]), most);
    else
        body_take_made(attempt, buf_span(&b));
    buf_done(&b);
    return e;
}

/* A payload is kept as an array; one entity alone was, or might have been, raised without. */
static struct span data_of(struct span payload, struct arena *a)
{
    struct json_value entities = entity_parse(payload, a);

    return json_count(entities) == 1 ? json_text(json_first(entities)) : payload;
}

/* The envelope of Standard Webhooks. Each attempt of a delivery sends the same bytes. */
static struct span standard_body(const struct event *event, struct span payload, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    buf_add_char(&b, '{');
    member_add_text(&b, SPAN("type"), event->resource);
    member_add_time(&b, SPAN("timestamp"), event->time_unix_ns);
    member_add_json(&b, SPAN("data"), data_of(payload, a));
    buf_add_char(&b, '}');
    return buf_span(&b);
}

/* CloudEvents. ------------------------------------------------------------------------------ */

static struct span type_of(const struct attempt *attempt)
{
    const struct event *event = attempt->delivery->event;
    const struct resource *resource =
        resource_named(attempt->deliveries->hooks->rest->resources, event->resource);

    return resource == NULL || resource->cloudevents_type.p == NULL ? event->resource
                                                                    : resource->cloudevents_type;
}

/* Of the data. What came as a form of JSON keeps its type; what came as lines is an array now. */
static struct span data_type_of(struct attempt *attempt)
{
    const struct event *event = attempt->delivery->event;
    struct span set = attempt->settings->webhook.content_type, kept = {NULL, 0};

    if (event->is_binary)
        return event->content_type;
    if (event->ce.n > 0)
        kept = json_string(
            json_member(entity_parse(event->ce, &attempt->arena), SPAN("datacontenttype")),
            &attempt->arena);
    if (kept.p != NULL && cloudevents_is_json(kept))
        return kept;
    return set.p != NULL ? set : SPAN("application/json");
}

static struct cloudevent_out out_of(struct attempt *attempt)
{
    const struct event *event = attempt->delivery->event;
    char id[UUID_TEXT_BYTES + 1];
    struct buf time;

    uuid_text(&event->id, id);
    buf_init_arena(&time, &attempt->arena);
    datetime_add(&time, event->time_unix_ns);
    return (struct cloudevent_out){
        .kept = event->ce,
        .id = arena_copy(&attempt->arena, span_str(id)),
        .source = attempt->deliveries->hooks->cloudevents_source,
        .time = buf_span(&time),
        .type = type_of(attempt),
        .is_other_data = attempt->settings->webhook.has_custom,
    };
}

static void add_field(void *attempt, struct span name, struct span value)
{
    attempt_add_header(attempt, name, value);
}

void attempt_add_cloud_headers(struct attempt *attempt)
{
    const struct cloudevent_out out = out_of(attempt);

    cloudevents_each_field(&out, &attempt->arena, add_field, attempt);
}

/* Each attempt of a delivery makes the same bytes. */
static void take_structured(struct attempt *attempt, struct span payload)
{
    const struct span none = {NULL, 0};
    struct cloudevent_out out = out_of(attempt);
    bool is_binary = attempt->delivery->event->is_binary;
    struct buf b;

    out.data_type = data_type_of(attempt);
    buf_init_arena(&b, &attempt->arena);
    cloudevents_add_structured(&b, &out, is_binary ? none : data_of(payload, &attempt->arena),
                               payload, &attempt->arena);
    attempt->content_type = cloudevents_structured_type;
    body_take_made(attempt, buf_span(&b));
}

bool attempt_lacks_source(const struct attempt *attempt)
{
    return attempt->settings->webhook.format >= WEBHOOK_CLOUD_BINARY &&
           attempt->delivery->event->ce.n == 0 &&
           attempt->deliveries->hooks->cloudevents_source.n == 0;
}

/* Bodies, by their format. ------------------------------------------------------------------ */

static struct err *make_body(struct attempt *attempt, enum format format, struct span payload)
{
    struct arena *a = &attempt->arena;

    switch (attempt->settings->webhook.format) {
    case WEBHOOK_STANDARD:
        body_take_made(attempt, standard_body(attempt->delivery->event, payload, a));
        return NULL;
    case WEBHOOK_CLOUD_BINARY:
        body_take_made(attempt, data_of(payload, a));
        return NULL;
    case WEBHOOK_CLOUD_STRUCTURED:
        take_structured(attempt, payload);
        return NULL;
    default:
        return reformat(attempt, payload, format);
    }
}

struct err *attempt_take_payload(struct attempt *attempt)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;
    struct event *event = attempt->delivery->event;
    enum format format = FORMAT_JSON;
    struct blob *payload;
    struct err *e;

    if (event->is_binary && settings->format == WEBHOOK_STANDARD) {
        attempt_abort(attempt, SPAN("the payload is binary, which StandardWebhooks cannot hold"));
        return NULL;
    }
    if (!event->is_binary && settings->format < WEBHOOK_CLOUD_BINARY) {
        TRY(negotiate_written_type(settings->content_type, &format));
        attempt->content_type =
            settings->content_type.p == NULL ? SPAN("application/json") : settings->content_type;
    } else {
        attempt->content_type = data_type_of(attempt);
    }
    if (event->is_binary ? settings->format != WEBHOOK_CLOUD_STRUCTURED
                         : settings->format == WEBHOOK_ARRAY && format == FORMAT_JSON)
        return body_take_payload(attempt);
    TRY(payload_get(events_payloads(attempt->deliveries->hooks->events), event, &payload));
    e = make_body(attempt, format, blob_span(payload));
    blob_unref(payload);
    return e;
}
