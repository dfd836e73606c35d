/* What an attempt sends: the payload in the format that the webhook wants, or what its custom
 * payload request answers, and the header fields, signature included.
 *
 * As a CloudEvent (docs/specification.md, section 13) an event that came as one goes on with its
 * own id, source, time, subject and extensions; any other gets the event's Id and time, and the
 * configuration's source. In binary mode the attributes are header fields and the body is the data;
 * that of a custom payload request too. */
#include "base/blob.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "base/limits.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_inner.h"
#include "hooks/lane_settings.h"
#include "hooks/payload.h"
#include "protocol/cloudevents.h"
#include "protocol/formats.h"
#include "protocol/negotiate.h"
#include "resource/resource.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "webhook/sign.h"
#include "json/json.h"
#include "json/member.h"

#include <string.h>

bool attempt_take_made(struct attempt *attempt, struct span made)
{
    attempt->has_no_room = !body_take_made(attempt, made);
    return !attempt->has_no_room;
}

/* In another format. CSV has a column for every member that there
 * is anywhere, so it may be many times as large. */
static struct err *reformat(struct attempt *attempt, struct blob *json, enum format format,
                            bool *out_ready)
{
    size_t most = (size_t)attempt->deliveries->hooks->limits->answer_bytes;
    struct err *e = NULL;
    struct buf b;

    buf_init(&b, most);
    formats_add_array(&b, blob_span(json), format, &attempt->arena);
    if (buf_over(&b))
        e = ERR(ERR_PAYLOAD_TOO_LARGE,
                "as %.*s the body would be larger than the limit AnswerBytes (%zu bytes)",
                SPAN_FMT(format_media_types[format]), most);
    else
        *out_ready = attempt_take_made(attempt, buf_span(&b));
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

static struct err *take_standard(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    struct blob *json;

    TRY(payload_get(events_payloads(attempt->deliveries->hooks->events), event, &json));
    *out_ready = attempt_take_made(attempt, standard_body(event, blob_span(json), &attempt->arena));
    blob_unref(json);
    return NULL;
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

static void add_cloud_headers(struct attempt *attempt)
{
    const struct cloudevent_out out = out_of(attempt);

    cloudevents_each_field(&out, &attempt->arena, add_field, attempt);
}

/* Each attempt of a delivery makes the same bytes. */
static void take_structured(struct attempt *attempt, struct span payload, bool *out_ready)
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
    *out_ready = attempt_take_made(attempt, buf_span(&b));
}

static void take_binary(struct attempt *attempt, struct span payload, bool *out_ready)
{
    *out_ready = attempt_take_made(attempt, data_of(payload, &attempt->arena));
}

static struct err *take_cloud(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    bool is_structured = attempt->settings->webhook.format == WEBHOOK_CLOUD_STRUCTURED;
    struct blob *payload;

    attempt->content_type = data_type_of(attempt);
    *out_ready = true;
    if (!is_structured && event->is_binary)
        return body_take_payload(attempt);
    TRY(payload_get(events_payloads(attempt->deliveries->hooks->events), event, &payload));
    if (is_structured)
        take_structured(attempt, blob_span(payload), out_ready);
    else
        take_binary(attempt, blob_span(payload), out_ready);
    blob_unref(payload);
    return NULL;
}

bool attempt_lacks_source(const struct attempt *attempt)
{
    return attempt->settings->webhook.format >= WEBHOOK_CLOUD_BINARY &&
           attempt->delivery->event->ce.n == 0 &&
           attempt->deliveries->hooks->cloudevents_source.n == 0;
}

/* Bodies, by their format. ------------------------------------------------------------------ */

struct err *attempt_take_payload(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    enum format format;
    struct blob *json;
    struct err *e;

    *out_ready = true;
    if (attempt->settings->webhook.format >= WEBHOOK_CLOUD_BINARY)
        return take_cloud(attempt, out_ready);
    if (event->is_binary && attempt->settings->webhook.format == WEBHOOK_STANDARD) {
        *out_ready = false;
        attempt_abort(attempt, SPAN("the payload is binary, which StandardWebhooks cannot hold"));
        return NULL;
    }
    if (event->is_binary) {
        attempt->content_type = event->content_type;
        return body_take_payload(attempt);
    }
    TRY(negotiate_written_type(attempt->settings->webhook.content_type, &format));
    attempt->content_type = attempt->settings->webhook.content_type.p == NULL
                                ? SPAN("application/json")
                                : attempt->settings->webhook.content_type;
    if (attempt->settings->webhook.format == WEBHOOK_STANDARD)
        return take_standard(attempt, out_ready);
    if (format == FORMAT_JSON)
        return body_take_payload(attempt);
    TRY(payload_get(events_payloads(attempt->deliveries->hooks->events), event, &json));
    e = reformat(attempt, json, format, out_ready);
    blob_unref(json);
    return e;
}

/* The webhook's Content-Type says in which format the local request is to answer. */
static void add_accept(struct attempt *attempt, struct request_header *headers, size_t *count)
{
    if (attempt->settings->webhook.content_type.p != NULL)
        headers[(*count)++] =
            (struct request_header){SPAN("Accept"), attempt->settings->webhook.content_type};
}

void attempt_run_local(struct attempt *attempt, struct span method, struct span target,
                       const struct fetch_header *headers, size_t count, struct span body,
                       attempt_answered_fn *answered)
{
    struct request *request = ARENA_NEW(&attempt->arena, struct request);
    struct request_header *copies = ARENA_ARRAY(&attempt->arena, struct request_header, count + 2);

    event_chain_unref(attempt->chain);
    attempt->chain = event_chain(attempt->delivery->event);
    *request = (struct request){
        .method = method,
        .target = target,
        .headers = copies,
        .header_count = count,
        .body = body,
        .is_local = true,
        .gives_way = true,
        .depth = (uint8_t)(attempt->delivery->event->depth + 1),
        .chain = attempt->chain,
    };

    for (size_t i = 0; i < count; i++)
        copies[i] = (struct request_header){headers[i].name, headers[i].value};
    if (span_eq(method, SPAN("GET")) && request_header(request, SPAN("Accept")).p == NULL)
        add_accept(attempt, copies, &request->header_count);
    attempt_evaluate(attempt, request, answered);
}

struct span attempt_error_of_response(struct attempt *attempt, const struct response *response)
{
    struct span info = response->message;

    return arena_copy(&attempt->arena, info.p == NULL ? SPAN("unknown error") : info);
}

enum { NO_ROOM_MS = 1000 };

void attempt_ask_custom_payload(struct attempt *attempt, attempt_answered_fn *answered)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;

    attempt_run_local(attempt, SPAN("GET"), settings->custom_uri, settings->custom_headers,
                      settings->custom_header_count, settings->custom_body, answered);
}

/* docs/specification.md, section 8. */
void attempt_take_custom_payload(struct attempt *attempt, struct response *response,
                                 bool *out_ready)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;

    *out_ready = false;
    /* No fault of the webhook's: it waits its turn, and a while in case nothing is given back. */
    if (response->error == ERR_OVERLOADED) {
        attempt->has_no_room = true;
        lane_hold(attempt->delivery->lane, clock_unix_ns() + NO_ROOM_MS * INT64_C(1000000));
        return;
    }
    if (response->status >= 400) {
        struct span message = attempt_error_of_response(attempt, response);

        if (settings->break_on_error) {
            attempt_abort(attempt, arena_printf(&attempt->arena,
                                                "custom payload request failed with status %d: "
                                                "%.*s",
                                                response->status, SPAN_FMT(message)));
            return;
        }
        attempt->content_type = SPAN("text/plain");
        *out_ready = attempt_take_made(attempt, message);
    } else if (response->status == 204 || response->status == 304) { /* nothing to send */
        if (settings->break_on_no_content) {
            attempt_abort(attempt, SPAN("custom payload request has no content"));
            return;
        }
        *out_ready = attempt_take_made(attempt, SPAN(""));
    } else {
        attempt->content_type = arena_copy(&attempt->arena, response->content_type);
        attempt->has_no_room = !body_take_answer(attempt, &response->body);
        *out_ready = !attempt->has_no_room;
    }
}

/* Headers. --------------------------------------------------------------------------------- */

/* A CloudEvent may have very many attributes, and a webhook many fields of its own. */
void attempt_make_room_for_headers(struct attempt *attempt)
{
    struct fetch_header *larger =
        ARENA_ARRAY(&attempt->arena, struct fetch_header, attempt->header_size * 2);

    memcpy(larger, attempt->headers, attempt->header_size * sizeof(*larger));
    attempt->headers = larger;
    attempt->header_size *= 2;
}

static struct span uuid_span(struct attempt *attempt, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES + 1];

    uuid_text(id, text);
    return arena_copy(&attempt->arena, span_str(text));
}

/* Of the secrets that sign now. */
static struct err *make_signer(struct lane_settings *settings, int64_t now_unix_ns, struct arena *a)
{
    const struct webhook_settings *webhook = &settings->webhook;
    struct span *active = ARENA_ARRAY(a, struct span, webhook->secret_count);
    size_t count = 0;

    signer_free(TAKE(settings->signer));
    settings->signer_until_unix_ns = WEBHOOK_SIGNS_ALWAYS;
    for (size_t i = 0; i < webhook->secret_count; i++) {
        int64_t expires_unix_ns = webhook->secrets[i].expires_unix_ns;

        if (expires_unix_ns <= now_unix_ns)
            continue;
        active[count++] = webhook->secrets[i].text;
        settings->signer_until_unix_ns = MIN(settings->signer_until_unix_ns, expires_unix_ns);
    }
    return signer_new(active, count, &settings->signer);
}

static struct err *add_signature(struct attempt *attempt, struct span id, int64_t timestamp_s)
{
    struct lane_settings *settings = attempt->settings;
    const struct webhook_settings *webhook = &settings->webhook;
    int64_t now_unix_ns = attempt->outcome.time_unix_ns;
    struct buf b;

    if (webhook->secret_count == 0)
        return NULL;
    if (settings->signer == NULL || now_unix_ns >= settings->signer_until_unix_ns)
        TRY(make_signer(settings, now_unix_ns, &attempt->arena));
    buf_init_arena(&b, &attempt->arena);
    TRY(signer_add(settings->signer, &b, id, timestamp_s, blob_span(attempt->body)));
    attempt_add_header(attempt, SPAN("webhook-signature"), buf_span(&b));
    return NULL;
}

struct err *attempt_add_headers(struct attempt *attempt)
{
    const struct delivery *delivery = attempt->delivery;
    const struct webhook_settings *settings = &attempt->settings->webhook;
    struct arena *a = &attempt->arena;
    struct span event_id = uuid_span(attempt, &delivery->event->id);
    int64_t timestamp_s = MAX(attempt->outcome.time_unix_ns, 0) / 1000000000;

    attempt->header_count = 0;
    attempt->headers = attempt->few_headers;
    attempt->header_size = ATTEMPT_FEW_HEADERS;
    for (size_t i = 0; i < settings->header_count; i++)
        if (!span_ieq(settings->headers[i].name, SPAN("Content-Type")))
            attempt_add_header(attempt, settings->headers[i].name, settings->headers[i].value);
    if (attempt->content_type.p != NULL)
        attempt_add_header(attempt, SPAN("Content-Type"), attempt->content_type);
    attempt_add_header(attempt, SPAN("Svc-webhook-id"),
                       uuid_span(attempt, lane_webhook_id(delivery->lane)));
    attempt_add_header(attempt, SPAN("Svc-event"), delivery->event->resource);
    attempt_add_header(attempt, SPAN("Svc-attempt"), arena_u64(a, delivery->attempts + 1u));
    attempt_add_header(attempt, SPAN("Svc-depth"), arena_u64(a, delivery->event->depth + 1u));
    attempt_add_header(attempt, SPAN("webhook-id"), event_id);
    attempt_add_header(attempt, SPAN("webhook-timestamp"), arena_u64(a, (uint64_t)timestamp_s));
    attempt->known_headers = attempt->header_count;
    if (settings->format == WEBHOOK_CLOUD_BINARY)
        add_cloud_headers(attempt);
    if (settings->verifies)
        attempt_add_header(attempt, SPAN("WebHook-Request-Origin"),
                           attempt->deliveries->hooks->cloudevents_origin);
    return add_signature(attempt, event_id, timestamp_s);
}

/* Sending. --------------------------------------------------------------------------------- */
