/* What an attempt asks and sends beside its body: local requests, which are evaluated in process (a
 * local destination, the custom payload request), and the header fields. */
#include "base/blob.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/limits.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "hooks/attempt.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_settings.h"
#include "rest/evaluation.h"
#include "rest/request.h"
#include "rest/response.h"

#include <string.h>

enum { KEPT_RESPONSE_BYTES = 262144, NO_ROOM_MS = 1000 };

/* Local requests. -------------------------------------------------------------------------- */

static void take_answer(struct attempt *attempt, struct response *response)
{
    attempt_answered_fn *take = TAKE(attempt->answered);

    blob_unref(TAKE(attempt->asked_body));
    if (attempt->is_cancelled)
        attempt_put(attempt);
    else
        take(attempt, response);
}

static void on_evaluated(void *context)
{
    struct attempt *attempt = context;
    struct deliveries *d = attempt->deliveries;
    struct evaluation *e = TAKE(attempt->evaluation);

    take_answer(attempt, evaluation_response(e));
    evaluation_free(e);
    attempts_record(d);
}

/* Has the request evaluated; it lives as long as the attempt. */
static void evaluate(struct attempt *attempt, const struct request *request,
                     attempt_answered_fn *answered_fn)
{
    struct deliveries *d = attempt->deliveries;

    attempt->asked_ns = clock_mono_ns();
    attempt->answered = answered_fn;
    attempt->is_evaluating = true;
    dispatch_run(d->hooks->rest, request, d->response);
    attempt->is_evaluating = false;
    if (d->response->gives_way) {
        attempt->evaluation = evaluation_start(d->hooks->rest, request, on_evaluated, attempt);
        return;
    }
    take_answer(attempt, d->response);
    buf_shrink(&d->response->body, KEPT_RESPONSE_BYTES); /* what became a body is there twice */
}

bool attempt_is_answering(const struct attempt *attempt)
{
    return attempt->evaluation != NULL && fiber_is_inside();
}

void attempt_forget_request(struct attempt *attempt)
{
    evaluation_free(TAKE(attempt->evaluation));
}

/* Evaluates a request to ourselves, and calls `answered` once: at once, unless it gives way to
 * others. The webhook's Content-Type says in which format it is to answer. */
static void run_local(struct attempt *attempt, struct span method, struct span target,
                      const struct header_field *headers, size_t count, struct span body,
                      attempt_answered_fn *answered)
{
    struct request *request = ARENA_NEW(&attempt->arena, struct request);
    struct header_field *fields = ARENA_ARRAY(&attempt->arena, struct header_field, count + 1);
    const struct header_field accept = {SPAN("Accept"), attempt->settings->webhook.content_type};
    bool has_accept = header_field_find(headers, count, accept.name) != NULL;

    for (size_t i = 0; i < count; i++)
        fields[i] = headers[i];
    if (span_eq(method, SPAN("GET")) && accept.value.p != NULL && !has_accept)
        fields[count++] = accept;
    event_chain_unref(attempt->chain);
    attempt->chain = event_chain(attempt->delivery->event);
    *request = (struct request){
        .method = method,
        .target = target,
        .headers = fields,
        .header_count = count,
        .body = body,
        .is_local = true,
        .gives_way = true,
        .depth = (uint8_t)(attempt->delivery->event->depth + 1),
        .chain = attempt->chain,
    };
    evaluate(attempt, request, answered);
}

static struct span error_of(struct attempt *attempt, const struct response *response)
{
    struct span info = response->message;

    return arena_copy(&attempt->arena, info.p == NULL ? SPAN("unknown error") : info);
}

static void take_local_answer(struct attempt *attempt, struct response *response)
{
    struct span body = buf_span(&response->body);

    if (span_eq(attempt->settings->webhook.method, SPAN("HEAD")))
        body = SPAN(""); /* it is made for its length alone */
    attempt_note_answer(attempt, response->status, -1, body,
                        (uint32_t)((clock_mono_ns() - attempt->asked_ns) / 1000000));
    if (response->error == ERR_INFINITE_LOOP)
        attempt->is_aborted = true;
    attempt_stop(attempt, response->status >= 400 ? error_of(attempt, response) : SPAN(""));
}

void attempt_send_local(struct attempt *attempt)
{
    if (attempt->body != NULL)
        attempt->asked_body = blob_ref(attempt->body);
    run_local(attempt, attempt->settings->webhook.method, attempt->settings->webhook.destination,
              attempt->headers, attempt->header_count, blob_span(attempt->body), take_local_answer);
}

void attempt_requests_init(struct deliveries *d)
{
    d->response = NEW(struct response);
    response_init(d->response, (size_t)d->hooks->limits->answer_bytes);
}

void attempt_requests_done(struct deliveries *d)
{
    response_done(d->response);
    mem_free(d->response);
}

void attempt_ask_custom_payload(struct attempt *attempt, attempt_answered_fn *answered)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;

    run_local(attempt, SPAN("GET"), settings->custom_uri, settings->custom_headers,
              settings->custom_header_count, settings->custom_body, answered);
}

/* docs/specification.md, section 8. */
void attempt_take_custom_payload(struct attempt *attempt, struct response *response)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;

    /* No fault of the webhook's: it waits its turn, and a while in case nothing is given back. */
    if (response->error == ERR_OVERLOADED) {
        attempt->has_no_room = true;
        lane_hold(attempt->delivery->lane, clock_unix_ns() + NO_ROOM_MS * INT64_C(1000000));
        return;
    }
    if (response->status >= 400) {
        struct span message = error_of(attempt, response);

        if (settings->break_on_error) {
            attempt_abort(attempt, arena_printf(&attempt->arena,
                                                "custom payload request failed with status %d: "
                                                "%.*s",
                                                response->status, SPAN_FMT(message)));
            return;
        }
        attempt->content_type = SPAN("text/plain");
        body_take_made(attempt, message);
    } else if (response->status == 204 || response->status == 304) { /* nothing to send */
        if (settings->break_on_no_content) {
            attempt_abort(attempt, SPAN("custom payload request has no content"));
            return;
        }
        body_take_made(attempt, SPAN(""));
    } else {
        attempt->content_type = arena_copy(&attempt->arena, response->content_type);
        body_take_answer(attempt, &response->body);
    }
}

/* Headers. --------------------------------------------------------------------------------- */

/* A CloudEvent may have very many attributes, and a webhook many fields of its own. */
void attempt_make_room_for_headers(struct attempt *attempt)
{
    struct header_field *larger =
        ARENA_ARRAY(&attempt->arena, struct header_field, attempt->header_size * 2);

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

void attempt_add_headers(struct attempt *attempt)
{
    const struct delivery *delivery = attempt->delivery;
    const struct webhook_settings *settings = &attempt->settings->webhook;
    struct arena *a = &attempt->arena;

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
    attempt_add_header(attempt, SPAN("webhook-id"), uuid_span(attempt, &delivery->event->id));
    attempt_add_header(attempt, SPAN("webhook-timestamp"),
                       arena_u64(a, (uint64_t)attempt->outcome.time_unix_ns / 1000000000));
    attempt->known_headers = attempt->header_count;
    if (settings->format == WEBHOOK_CLOUD_BINARY)
        attempt_add_cloud_headers(attempt);
    if (settings->verifies)
        attempt_add_header(attempt, SPAN("WebHook-Request-Origin"),
                           attempt->deliveries->hooks->cloudevents_origin);
}
