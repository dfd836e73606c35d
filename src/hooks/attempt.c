/* One attempt, in order: settings are read from the webhook, a body is made (the event's payload,
 * or the result of the custom payload request), the request is sent (by fetch, or evaluated in
 * process for a local destination), the outcome decides the delivery's next state, and one change
 * records it with an entry of Svc.Admin.WebhookLog. */
#include "hooks/attempt.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/text.h"
#include "fetch/fetch.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_host.h"
#include "hooks/lane_record.h"
#include "hooks/lane_settings.h"
#include "hooks/payload.h"
#include "hooks/retry.h"
#include "hooks/sign.h"
#include "hooks/webhook_log.h"
#include "io/timer.h"
#include "rest/formats.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/status.h"
#include "store/change.h"
#include "store/record.h"

#include <string.h>

enum {
    MAX_HEADERS = 128,
    IDLE_ATTEMPTS = 256,
    KEPT_BODY_BYTES = 4096,
    KEPT_ERROR_BYTES = 500,
    AGAIN_MS = 1000 /* when an outcome finds no room on the disk */
};

struct attempt {
    struct list_link link; /* among those that are idle, or that have stopped */
    struct fetch fetch;
    struct deliveries *deliveries;
    struct delivery *delivery;
    struct lane_settings *settings;
    struct lane_origin *origin; /* has a place for it; NULL: the destination is local */
    struct fetch_header headers[MAX_HEADERS];
    size_t header_count;
    struct blob *body;
    struct span content_type;
    uint64_t started_ns;
    int64_t ended_unix_ns; /* when its outcome is recorded */
    struct webhook_log_entry outcome;
    struct retry_answer answer;
    bool is_evaluating; /* a local request, which may delete the attempt's own delivery */
    bool is_cancelled;  /* meanwhile */
    bool is_aborted;    /* the custom payload request said so */
    struct timer again; /* the outcome could not be recorded yet */
    struct arena arena;
};

static void record_outcome(struct attempt *attempt);

static void on_again(struct timer *timer)
{
    record_outcome(CONTAINER_OF(timer, struct attempt, again));
}

/* The first of these, taken out; NULL: there is none. */
static struct attempt *pop(struct list *attempts)
{
    struct list_link *link = list_pop_front(attempts);

    return link == NULL ? NULL : CONTAINER_OF(link, struct attempt, link);
}

static struct attempt *attempt_get(struct deliveries *d)
{
    struct attempt *attempt = pop(&d->idle_attempts);

    if (attempt != NULL)
        return attempt;
    attempt = NEW(struct attempt);
    attempt->deliveries = d;
    timer_init(&attempt->again, on_again);
    arena_init(&attempt->arena);
    return attempt;
}

static void attempt_free(struct attempt *attempt)
{
    arena_done(&attempt->arena);
    mem_free(attempt);
}

static void attempt_put(struct attempt *attempt)
{
    struct deliveries *d = attempt->deliveries;

    blob_unref(attempt->body);
    attempt->body = NULL;
    attempt->delivery = NULL;
    lane_settings_put(TAKE(attempt->settings));
    lane_origin_leave(TAKE(attempt->origin));
    arena_reset(&attempt->arena);
    if (list_count(&d->idle_attempts) < IDLE_ATTEMPTS)
        list_push_back(&d->idle_attempts, &attempt->link);
    else
        attempt_free(attempt);
}

void attempt_cancel(struct attempt *attempt)
{
    struct deliveries *d = attempt->deliveries;

    if (attempt->is_evaluating) {
        attempt->is_cancelled = true;
        return;
    }
    fetch_cancel(d->hooks->fetcher, &attempt->fetch);
    if (list_linked(&attempt->link))
        list_remove(&d->stopped_attempts, &attempt->link);
    timer_stop(d->hooks->loop, &attempt->again);
    attempt_put(attempt);
}

void attempts_done(struct deliveries *d)
{
    struct attempt *idle;

    while ((idle = pop(&d->idle_attempts)) != NULL)
        attempt_free(idle);
}

/* The attempt is over while it is started; `why` is in its arena or static. */
static void stop(struct attempt *attempt, struct span why)
{
    attempt->outcome.error = why;
    list_push_back(&attempt->deliveries->stopped_attempts, &attempt->link);
}

void attempts_record(struct deliveries *d)
{
    struct attempt *attempt;

    while ((attempt = pop(&d->stopped_attempts)) != NULL)
        record_outcome(attempt);
}

static void abort_delivery(struct attempt *attempt, struct span why)
{
    attempt->is_aborted = true;
    stop(attempt, why);
}

/* Bodies. ---------------------------------------------------------------------------------- */

/* In another format: the attempt's body is replaced. CSV has a column for every member that there
 * is anywhere, so it may be many times as large. */
static struct err *reformat(struct attempt *attempt, enum format format)
{
    size_t most = (size_t)attempt->deliveries->hooks->limits->answer_bytes;
    struct blob *json = TAKE(attempt->body);
    struct err *e = NULL;
    struct buf b;

    buf_init(&b, most);
    payload_add_as(&b, blob_span(json), format, &attempt->arena);
    blob_unref(json);
    if (buf_over(&b))
        e = ERR(ERR_PAYLOAD_TOO_LARGE,
                "as %.*s the body would be larger than the limit AnswerBytes (%zu bytes)",
                SPAN_FMT(format_media_type(format)), most);
    else
        attempt->body = blob_new(buf_span(&b));
    buf_done(&b);
    return e;
}

static struct err *body_of_payload(struct attempt *attempt, bool *out_ready)
{
    struct event *event = attempt->delivery->event;
    enum format format;

    *out_ready = true;
    TRY(payload_get(events_payloads(attempt->deliveries->hooks->events), event, &attempt->body));
    if (event->is_binary) {
        attempt->content_type = event->content_type;
        return NULL;
    }
    TRY(negotiate_written_type(attempt->settings->webhook.content_type, &format));
    attempt->content_type = attempt->settings->webhook.content_type.p == NULL
                                ? SPAN("application/json")
                                : attempt->settings->webhook.content_type;
    return format == FORMAT_JSON ? NULL : reformat(attempt, format);
}

/* The webhook's Content-Type says in which format the local request is to answer. */
static void add_accept(struct attempt *attempt, struct request_header *headers, size_t *count)
{
    if (attempt->settings->webhook.content_type.p != NULL)
        headers[(*count)++] =
            (struct request_header){SPAN("Accept"), attempt->settings->webhook.content_type};
}

static void run_local(struct attempt *attempt, struct span method, struct span target,
                      const struct fetch_header *headers, size_t count, struct span body)
{
    struct deliveries *d = attempt->deliveries;
    struct request_header *copies = ARENA_ARRAY(&attempt->arena, struct request_header, count + 2);
    struct request request = {
        .method = method,
        .target = target,
        .headers = copies,
        .header_count = count,
        .body = body,
        .is_local = true,
        .depth = (uint8_t)(attempt->delivery->event->depth + 1),
    };

    for (size_t i = 0; i < count; i++)
        copies[i] = (struct request_header){headers[i].name, headers[i].value};
    if (span_eq(method, SPAN("GET")) && request_header(&request, SPAN("Accept")).p == NULL)
        add_accept(attempt, copies, &request.header_count);
    request_run(d->hooks->rest, &request, d->response);
}

static struct span error_of_response(struct attempt *attempt)
{
    struct response *response = attempt->deliveries->response;
    struct span info = response_header(response, SPAN("Svc-info"));

    return arena_copy(&attempt->arena, info.p == NULL ? SPAN("unknown error") : info);
}

/* docs/specification.md, section 8. */
static void body_of_custom_request(struct attempt *attempt, bool *out_ready)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;
    struct response *response = attempt->deliveries->response;

    *out_ready = false;
    run_local(attempt, SPAN("GET"), settings->custom_uri, settings->custom_headers,
              settings->custom_header_count, settings->custom_body);
    if (response->status >= 400) {
        struct span message = error_of_response(attempt);

        if (settings->break_on_error) {
            abort_delivery(attempt, arena_printf(&attempt->arena,
                                                 "custom payload request failed with status %d: "
                                                 "%.*s",
                                                 response->status, SPAN_FMT(message)));
            return;
        }
        attempt->content_type = SPAN("text/plain");
        attempt->body = blob_new(message);
    } else if (response->status == 204) {
        if (settings->break_on_no_content) {
            abort_delivery(attempt, SPAN("custom payload request has no content"));
            return;
        }
        attempt->body = blob_new(SPAN(""));
    } else {
        attempt->content_type = arena_copy(&attempt->arena, response->content_type);
        attempt->body = blob_new(buf_span(&response->body));
    }
    *out_ready = true;
}

/* Headers. --------------------------------------------------------------------------------- */

static void add_header(struct attempt *attempt, struct span name, struct span value)
{
    MUST(attempt->header_count < MAX_HEADERS);
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

static struct err *add_headers(struct attempt *attempt)
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

static void note_answer(struct attempt *attempt, int status, int64_t retry_after_s,
                        struct span body, uint32_t took_ms)
{
    struct webhook_log_entry *outcome = &attempt->outcome;

    attempt->answer = (struct retry_answer){status != 0, status, retry_after_s};
    outcome->status = status;
    outcome->duration_ms = took_ms;
    outcome->response_body = arena_copy(&attempt->arena, text_cut_bytes(body, KEPT_BODY_BYTES));
}

static void on_connected(struct fetch *fetch)
{
    lane_origin_connected(CONTAINER_OF(fetch, struct attempt, fetch)->origin);
}

static void on_fetched(struct fetch *fetch, const struct fetch_result *result)
{
    struct attempt *attempt = CONTAINER_OF(fetch, struct attempt, fetch);
    struct webhook_log_entry *outcome = &attempt->outcome;

    note_answer(attempt, result->status, result->retry_after_s, result->body, result->total_ms);
    outcome->error = arena_copy(&attempt->arena, span_str(result->why));
    outcome->dns_ms = result->dns_ms;
    outcome->connect_ms = result->connect_ms;
    outcome->tls_ms = result->tls_ms;
    outcome->first_byte_ms = result->first_byte_ms;
    record_outcome(attempt);
}

static void send_remote(struct attempt *attempt)
{
    struct fetch *fetch = &attempt->fetch;

    memset(fetch, 0, sizeof(*fetch));
    fetch->origin = lane_origin_fetch(attempt->origin);
    fetch->method = attempt->settings->webhook.method;
    fetch->url = attempt->settings->webhook.destination;
    fetch->headers = attempt->headers;
    fetch->header_count = attempt->header_count;
    fetch->body = attempt->body;
    fetch->timeout_ms = attempt->settings->webhook.timeout_ms;
    fetch->keep_bytes = KEPT_BODY_BYTES + 1; /* which tells where a character ends */
    fetch->on_connected = on_connected;
    fetch->on_done = on_fetched;
    fetch_start(attempt->deliveries->hooks->fetcher, fetch);
}

static void send_local(struct attempt *attempt)
{
    struct response *response = attempt->deliveries->response;
    uint64_t began_ns = clock_mono_ns();

    attempt->is_evaluating = true;
    run_local(attempt, attempt->settings->webhook.method, attempt->settings->webhook.destination,
              attempt->headers, attempt->header_count, blob_span(attempt->body));
    attempt->is_evaluating = false;
    if (attempt->is_cancelled) {
        attempt_put(attempt);
        return;
    }
    note_answer(attempt, response->status, -1, buf_span(&response->body),
                (uint32_t)((clock_mono_ns() - began_ns) / 1000000));
    if (response->error == ERR_INFINITE_LOOP)
        attempt->is_aborted = true;
    stop(attempt, response->status >= 400 ? error_of_response(attempt) : SPAN(""));
}

/* HEAD has no body: none is signed, counted, or said to be of a type. */
static void drop_body(struct attempt *attempt)
{
    blob_unref(attempt->body);
    attempt->body = NULL;
    attempt->content_type = (struct span){NULL, 0};
}

static struct err *prepare(struct attempt *attempt, bool *out_ready)
{
    if (attempt->settings->webhook.has_custom)
        body_of_custom_request(attempt, out_ready);
    else
        TRY(body_of_payload(attempt, out_ready));
    if (span_eq(attempt->settings->webhook.method, SPAN("HEAD")))
        drop_body(attempt);
    return *out_ready ? add_headers(attempt) : NULL;
}

void attempt_start(struct deliveries *d, struct delivery *delivery, struct lane_origin *origin)
{
    struct attempt *attempt = attempt_get(d);
    struct err *e;
    bool ready = false;

    attempt->delivery = delivery;
    attempt->settings = lane_settings_get(delivery->lane);
    attempt->origin = origin;
    attempt->started_ns = clock_mono_ns();
    attempt->content_type = (struct span){NULL, 0};
    attempt->is_aborted = attempt->is_cancelled = false;
    attempt->answer = (struct retry_answer){.retry_after_s = -1};
    attempt->outcome = (struct webhook_log_entry){.time_unix_ns = clock_unix_ns()};
    delivery_move(d, delivery, DELIVERY_IN_FLIGHT);
    delivery->attempt = attempt;
    e = prepare(attempt, &ready);
    if (e != NULL) {
        attempt->is_aborted = err_code(e) == ERR_PAYLOAD_TOO_LARGE; /* as it would be next time */
        stop(attempt, arena_copy(&attempt->arena, err_message(e)));
        err_free(e);
    } else if (ready && attempt->settings->webhook.is_local) {
        send_local(attempt);
    } else if (ready) {
        send_remote(attempt);
    }
}

/* The outcome. ----------------------------------------------------------------------------- */

static struct lane_outcome judge(const struct attempt *attempt)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;

    return (struct lane_outcome){
        .paced = {.is_success = attempt->outcome.is_success,
                  .is_aborted = attempt->is_aborted,
                  .took_ms = attempt->outcome.duration_ms},
        .decision = retry_decide(&settings->retry, attempt->outcome.attempt, &attempt->answer,
                                 attempt->ended_unix_ns, rng_unit()),
        .disable_after_days = settings->disable_after_days,
        .started_unix_ns = attempt->outcome.time_unix_ns,
        .ended_unix_ns = attempt->ended_unix_ns,
        .error = text_cut_bytes(attempt->outcome.error, KEPT_ERROR_BYTES),
    };
}

static void add_delivery(struct change *change, const struct attempt *attempt,
                         const struct lane_outcome *outcome)
{
    static const uint8_t states[] = {
        [RETRY_DELIVERED] = DELIVERY_DELIVERED,
        [RETRY_LATER] = DELIVERY_WAITING,
        [RETRY_DEAD] = DELIVERY_DEAD,
        [RETRY_GONE] = DELIVERY_DEAD,
    };
    struct record_delivery record = delivery_record(attempt->delivery);

    record.state = attempt->is_aborted ? DELIVERY_ABORTED : states[outcome->decision.verdict];
    record.attempts++;
    record.last_status = (uint16_t)attempt->answer.status;
    record.next_unix_ns =
        record.state == DELIVERY_WAITING ? outcome->decision.at_unix_ns : attempt->ended_unix_ns;
    record.last_error = outcome->error;
    record.version = change_next_serial(change);
    delivery_add_record(change, &record);
}

static void fill_entry(struct attempt *attempt)
{
    struct webhook_log_entry *entry = &attempt->outcome;
    const struct delivery *delivery = attempt->delivery;

    entry->webhook = *lane_webhook_id(delivery->lane);
    delivery_id(delivery, &entry->delivery);
    entry->event = delivery->event->id;
    entry->attempt = delivery->attempts + 1u;
    entry->method = attempt->settings->webhook.method;
    entry->destination = attempt->settings->webhook.destination;
    entry->is_success = attempt->answer.status >= 200 && attempt->answer.status < 300;
    entry->body_bytes = blob_span(attempt->body).n;
    if (entry->error.n == 0 && attempt->answer.answered && !entry->is_success)
        entry->error = arena_printf(&attempt->arena, "answered %d %s", attempt->answer.status,
                                    status_reason(attempt->answer.status));
}

static enum metric_result result_of(const struct attempt *attempt)
{
    if (attempt->is_aborted)
        return METRIC_ABORTED;
    if (attempt->outcome.is_success)
        return METRIC_SUCCESS;
    return attempt->answer.answered ? METRIC_REJECTED : METRIC_NO_ANSWER;
}

static void count_outcome(const struct attempt *attempt)
{
    struct metrics *m = attempt->deliveries->hooks->metrics;
    const struct delivery *delivery = attempt->delivery;
    int64_t lag_ns = attempt->ended_unix_ns - delivery->event->time_unix_ns;

    m->attempts[result_of(attempt)]++;
    histogram_add(&m->attempt_time, clock_mono_ns() - attempt->started_ns);
    if (delivery->state >= DELIVERY_DELIVERED)
        m->deliveries[delivery->state - DELIVERY_DELIVERED]++;
    if (delivery->state == DELIVERY_DELIVERED)
        histogram_add(&m->delivery_lag, (uint64_t)MAX(lag_ns, 0));
}

static struct err *apply_outcome(struct attempt *attempt)
{
    struct hooks *hooks = attempt->deliveries->hooks;
    struct lane_outcome outcome;
    struct change change;
    struct err *e;
    uint64_t serial;

    attempt->ended_unix_ns = clock_unix_ns();
    fill_entry(attempt);
    outcome = judge(attempt);
    change_init(&change, hooks->turn, &attempt->arena);
    change.frees_space = true;
    webhook_log_add(&change, &attempt->outcome);
    add_delivery(&change, attempt, &outcome);
    lane_add_outcome(&change, attempt->delivery->lane, &outcome);
    e = turn_apply(hooks->turn, &change, &serial);
    change_done(&change);
    if (e != NULL)
        return e;
    lane_note_outcome(attempt->delivery->lane, &outcome);
    count_outcome(attempt);
    return NULL;
}

static void record_outcome(struct attempt *attempt)
{
    struct hooks *hooks = attempt->deliveries->hooks;
    struct lane *lane = attempt->delivery->lane;
    struct err *e;

    if (lane_is_dying(lane)) { /* the reaper drops the delivery */
        attempt->delivery->attempt = NULL;
        attempt_put(attempt);
        return;
    }
    e = apply_outcome(attempt);
    if (e != NULL) {
        log_warn("delivery", "an outcome is not recorded yet: %.*s", SPAN_FMT(err_message(e)));
        err_free(e);
        timer_start(hooks->loop, &attempt->again, AGAIN_MS);
        return;
    }
    attempt_put(attempt);
    lane_update(lane);
}
