/* What an attempt sends: the payload in the format that the webhook wants, or what its custom
 * payload request answers, and the header fields, signature included. */
#include "base/blob.h"
#include "base/limits.h"
#include "base/must.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_settings.h"
#include "hooks/payload.h"
#include "hooks/sign.h"
#include "rest/formats.h"
#include "rest/negotiate.h"
#include "rest/request.h"
#include "rest/response.h"

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

struct err *attempt_take_payload(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    enum format format;
    struct blob *json;
    struct err *e;

    *out_ready = true;
    if (event->is_binary) {
        attempt->content_type = event->content_type;
        return body_take_payload(attempt);
    }
    TRY(negotiate_written_type(attempt->settings->webhook.content_type, &format));
    attempt->content_type = attempt->settings->webhook.content_type.p == NULL
                                ? SPAN("application/json")
                                : attempt->settings->webhook.content_type;
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
                       const struct fetch_header *headers, size_t count, struct span body)
{
    struct deliveries *d = attempt->deliveries;
    struct request_header *copies = ARENA_ARRAY(&attempt->arena, struct request_header, count + 2);
    struct event_chain *chain = event_chain(attempt->delivery->event);
    struct request request = {
        .method = method,
        .target = target,
        .headers = copies,
        .header_count = count,
        .body = body,
        .is_local = true,
        .depth = (uint8_t)(attempt->delivery->event->depth + 1),
        .chain = chain,
    };

    for (size_t i = 0; i < count; i++)
        copies[i] = (struct request_header){headers[i].name, headers[i].value};
    if (span_eq(method, SPAN("GET")) && request_header(&request, SPAN("Accept")).p == NULL)
        add_accept(attempt, copies, &request.header_count);
    request_run(d->hooks->rest, &request, d->response);
    event_chain_unref(chain); /* the event may be gone by now */
}

struct span attempt_error_of_response(struct attempt *attempt)
{
    struct response *response = attempt->deliveries->response;
    struct span info = response->message;

    return arena_copy(&attempt->arena, info.p == NULL ? SPAN("unknown error") : info);
}

enum { KEPT_RESPONSE_BYTES = 262144 };

/* docs/specification.md, section 8. */
void attempt_take_custom_payload(struct attempt *attempt, bool *out_ready)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;
    struct response *response = attempt->deliveries->response;

    *out_ready = false;
    attempt_run_local(attempt, SPAN("GET"), settings->custom_uri, settings->custom_headers,
                      settings->custom_header_count, settings->custom_body);
    if (response->status >= 400) {
        struct span message = attempt_error_of_response(attempt);

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
        buf_shrink(&response->body, KEPT_RESPONSE_BYTES); /* or it is there twice for a while */
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

static struct err *add_signature(struct attempt *attempt, struct span id, int64_t timestamp_s)
{
    struct lane_settings *settings = attempt->settings;
    const struct webhook_settings *webhook = &settings->webhook;
    struct buf b;

    if (webhook->secret_count == 0)
        return NULL;
    if (settings->signer == NULL)
        TRY(signer_new(webhook->secrets, webhook->secret_count, &settings->signer));
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
