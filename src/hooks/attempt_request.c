/* What an attempt sends: the payload in the format that the webhook wants, or what its custom
 * payload request answers, and the header fields, signature included. */
#include "base/blob.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/member.h"
#include "base/must.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_inner.h"
#include "hooks/lane_settings.h"
#include "hooks/payload.h"
#include "hooks/sign.h"
#include "rest/formats.h"
#include "rest/negotiate.h"
#include "rest/request.h"
#include "rest/response.h"
#include "store/entity.h"

#include <string.h>

static bool take_made(struct attempt *attempt, struct span made)
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
                SPAN_FMT(format_media_type(format)), most);
    else
        *out_ready = take_made(attempt, buf_span(&b));
    buf_done(&b);
    return e;
}

/* The envelope of Standard Webhooks. Each attempt of a delivery sends the same bytes. A payload is
 * kept as an array; one entity alone was, or might have been, raised without. */
static struct span standard_body(const struct event *event, struct span payload, struct arena *a)
{
    struct json_value entities = entity_parse(payload, a);
    struct buf b;

    buf_init_arena(&b, a);
    buf_add_char(&b, '{');
    member_add_text(&b, SPAN("type"), event->resource);
    member_add_time(&b, SPAN("timestamp"), event->time_unix_ns);
    member_add_json(&b, SPAN("data"),
                    json_count(entities) == 1 ? json_text(json_first(entities)) : payload);
    buf_add_char(&b, '}');
    return buf_span(&b);
}

static struct err *take_standard(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    struct blob *json;

    TRY(payload_get(events_payloads(attempt->deliveries->hooks->events), event, &json));
    *out_ready = take_made(attempt, standard_body(event, blob_span(json), &attempt->arena));
    blob_unref(json);
    return NULL;
}

struct err *attempt_take_payload(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    enum format format;
    struct blob *json;
    struct err *e;

    *out_ready = true;
    if (event->is_binary && attempt->settings->webhook.is_standard) {
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
    if (attempt->settings->webhook.is_standard)
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
void attempt_take_custom_payload(struct attempt *attempt, const struct response *response,
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
        *out_ready = take_made(attempt, message);
    } else if (response->status == 204) {
        if (settings->break_on_no_content) {
            attempt_abort(attempt, SPAN("custom payload request has no content"));
            return;
        }
        *out_ready = take_made(attempt, SPAN(""));
    } else {
        attempt->content_type = arena_copy(&attempt->arena, response->content_type);
        *out_ready = take_made(attempt, buf_span(&response->body));
    }
}

/* Headers. --------------------------------------------------------------------------------- */

static void add_header(struct attempt *attempt, struct span name, struct span value)
{
    MUST(attempt->header_count < ATTEMPT_HEADERS_MOST);
    attempt->headers[attempt->header_count++] = (struct fetch_header){name, value};
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
    add_header(attempt, SPAN("webhook-signature"), buf_span(&b));
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
    for (size_t i = 0; i < settings->header_count; i++)
        if (!span_ieq(settings->headers[i].name, SPAN("Content-Type")))
            add_header(attempt, settings->headers[i].name, settings->headers[i].value);
    if (attempt->content_type.p != NULL)
        add_header(attempt, SPAN("Content-Type"), attempt->content_type);
    add_header(attempt, SPAN("Svc-webhook-id"),
               uuid_span(attempt, lane_webhook_id(delivery->lane)));
    add_header(attempt, SPAN("Svc-event"), delivery->event->resource);
    add_header(attempt, SPAN("Svc-attempt"), arena_u64(a, delivery->attempts + 1u));
    add_header(attempt, SPAN("Svc-depth"), arena_u64(a, delivery->event->depth + 1u));
    add_header(attempt, SPAN("webhook-id"), event_id);
    add_header(attempt, SPAN("webhook-timestamp"), arena_u64(a, (uint64_t)timestamp_s));
    return add_signature(attempt, event_id, timestamp_s);
}

/* Sending. --------------------------------------------------------------------------------- */
