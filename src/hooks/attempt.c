/* One attempt, in order: settings are read from the webhook, a body is made (the event's payload,
 * or the result of the custom payload request), the request is signed and sent (by fetch, or
 * evaluated in process for a local destination), the outcome decides the delivery's next state, and
 * one change records it with an entry of Svc.Admin.WebhookLog. */
#include "hooks/attempt.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "fetch/fetch.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_host.h"
#include "hooks/lane_settings.h"
#include "hooks/retention.h"
#include "hooks/webhook_sent.h"
#include "io/timer.h"
#include "store/turn.h"
#include "webhook/signings.h"

enum {
    IDLE_ATTEMPTS = 256,
    AGAIN_MS = 1000 /* when an outcome finds no room on the disk */
};

struct sending {
    struct attempt attempt;
    struct signing_job signing; /* of a large body, before it is sent */
    struct fetch fetch;
    struct timer again; /* the outcome could not be recorded yet */
};

static struct sending *sending_of(struct attempt *attempt)
{
    return CONTAINER_OF(attempt, struct sending, attempt);
}

static void record_outcome(struct attempt *attempt);

static void on_again(struct timer *timer)
{
    record_outcome(&CONTAINER_OF(timer, struct sending, again)->attempt);
}

/* The first of these, taken out; NULL: there is none. */
static struct attempt *pop(struct list *attempts)
{
    return LIST_OBJECT(list_pop_front(attempts), struct attempt, link);
}

static struct attempt *attempt_get(struct deliveries *d)
{
    struct attempt *attempt = pop(&d->idle_attempts);

    if (attempt != NULL)
        return attempt;
    attempt = &NEW(struct sending)->attempt;
    attempt->deliveries = d;
    timer_init(&sending_of(attempt)->again, on_again);
    arena_init(&attempt->arena);
    return attempt;
}

static void attempt_free(struct attempt *attempt)
{
    arena_done(&attempt->arena);
    mem_free(sending_of(attempt));
}

void attempt_put(struct attempt *attempt)
{
    struct deliveries *d = attempt->deliveries;

    body_leave(attempt);
    blob_unref(TAKE(attempt->asked_body));
    attempt->delivery = NULL;
    event_chain_unref(TAKE(attempt->chain));
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

    if (attempt->is_evaluating || attempt_is_answering(attempt)) {
        attempt->is_cancelled = true;
        body_leave(attempt); /* its event may go too */
        return;
    }
    attempt_forget_request(attempt);
    signings_cancel(&sending_of(attempt)->signing);
    fetch_cancel(d->hooks->fetcher, &sending_of(attempt)->fetch);
    if (list_linked(&attempt->link))
        list_remove(&d->stopped_attempts, &attempt->link);
    timer_stop(d->hooks->loop, &sending_of(attempt)->again);
    attempt_put(attempt);
}

void attempts_init(struct deliveries *d)
{
    list_init(&d->idle_attempts);
    list_init(&d->stopped_attempts);
    d->signings = signings_new(d->hooks->rest);
    attempt_requests_init(d);
}

void attempts_done(struct deliveries *d)
{
    struct attempt *idle;

    while ((idle = pop(&d->idle_attempts)) != NULL)
        attempt_free(idle);
    signings_free(d->signings);
    attempt_requests_done(d);
}

/* The attempt is over while it is started; `why` is in its arena or static. */
void attempt_stop(struct attempt *attempt, struct span why)
{
    attempt->outcome.error = why;
    list_push_back(&attempt->deliveries->stopped_attempts, &attempt->link);
}

void attempts_record(struct deliveries *d)
{
    struct attempt *attempt;

    while (!turn_is_held(d->hooks->turn) && (attempt = pop(&d->stopped_attempts)) != NULL)
        record_outcome(attempt);
}

void attempt_abort(struct attempt *attempt, struct span why)
{
    attempt->is_aborted = true;
    attempt_stop(attempt, why);
}

/* Answers. ---------------------------------------------------------------------------------- */

void attempt_note_answer(struct attempt *attempt, int status, int64_t retry_after_s,
                         struct span body, uint32_t took_ms)
{
    struct webhook_log_entry *outcome = &attempt->outcome;

    attempt->answer = (struct retry_answer){status != 0, status, retry_after_s};
    outcome->status = status;
    outcome->duration_ms = took_ms;
    outcome->response_body = webhook_sent_keep_answer(attempt, body);
}

static void on_connected(struct fetch *fetch)
{
    lane_origin_connected(CONTAINER_OF(fetch, struct sending, fetch)->attempt.origin);
}

static void on_fetched(struct fetch *fetch, const struct fetch_result *result)
{
    struct attempt *attempt = &CONTAINER_OF(fetch, struct sending, fetch)->attempt;
    struct webhook_log_entry *outcome = &attempt->outcome;

    attempt_note_answer(attempt, result->status, result->retry_after_s, result->body,
                        result->total_ms);
    outcome->error = arena_copy(&attempt->arena, span_str(result->why));
    outcome->dns_ms = result->dns_ms;
    outcome->connect_ms = result->connect_ms;
    outcome->tls_ms = result->tls_ms;
    outcome->first_byte_ms = result->first_byte_ms;
    record_outcome(attempt);
}

static void send_remote(struct attempt *attempt)
{
    struct fetch *fetch = &sending_of(attempt)->fetch;

    *fetch = (struct fetch){
        .origin = attempt->origin->fetch,
        .method = attempt->settings->webhook.method,
        .url = attempt->settings->webhook.destination,
        .headers = attempt->headers,
        .header_count = attempt->header_count,
        .body = attempt->body,
        .timeout_ms = attempt->settings->webhook.timeout_ms,
        .keep_bytes = WEBHOOK_LOG_BODY_BYTES + 1, /* which tells where a character ends */
        .on_connected = on_connected,
        .on_done = on_fetched,
    };
    fetch_start(attempt->deliveries->hooks->fetcher, fetch);
}

/* Takes the error. */
static void fail(struct attempt *attempt, struct err *e)
{
    attempt->is_aborted = err_code(e) == ERR_PAYLOAD_TOO_LARGE; /* as it would be next time */
    attempt_stop(attempt, arena_copy(&attempt->arena, err_message(e)));
    err_free(e);
}

/* The signature is in its arena; empty: there is none. Takes the error, when it failed. */
static void send_signed(struct attempt *attempt, struct span signature, struct err *e)
{
    if (signature.n > 0)
        attempt_add_header(attempt, SPAN("webhook-signature"), signature);
    if (e != NULL)
        fail(attempt, e);
    else if (attempt->settings->webhook.is_local)
        attempt_send_local(attempt);
    else
        send_remote(attempt);
}

static void on_signed(struct signing_job *job, struct err *e, struct span value)
{
    struct attempt *attempt = &CONTAINER_OF(job, struct sending, signing)->attempt;
    struct deliveries *d = attempt->deliveries;

    send_signed(attempt, arena_copy(&attempt->arena, value), e);
    attempts_record(d);
}

/* A large body's signature comes later: then it is under way. */
static struct err *sign(struct attempt *attempt, struct span *out_signature)
{
    struct lane_settings *settings = attempt->settings;
    struct signing_job *job = &sending_of(attempt)->signing;
    char id[UUID_TEXT_BYTES + 1];
    struct buf b;

    if (settings->webhook.secret_count == 0)
        return NULL;
    TRY(webhook_keep_signer(&settings->signer, &settings->webhook, attempt->outcome.time_unix_ns,
                            &attempt->arena));
    uuid_text(&attempt->delivery->event->id, id);
    buf_init_arena(&b, &attempt->arena);
    job->on_done = on_signed;
    TRY(signings_sign(attempt->deliveries->signings, job, lane_account(attempt->delivery->lane),
                      settings->signer.keys, span_str(id),
                      attempt->outcome.time_unix_ns / 1000000000, blob_span(attempt->body), &b));
    *out_signature = buf_span(&b);
    return NULL;
}

/* Nothing was sent, and it counts as not made. A request that gave way may end while its lane
 * rests: what is queued again is looked at then. */
static void put_back(struct attempt *attempt)
{
    struct lane *lane = attempt->delivery->lane;

    delivery_move(attempt->deliveries, attempt->delivery, DELIVERY_PENDING);
    attempt_put(attempt);
    lane_update(lane);
}

static void send_body(struct attempt *attempt)
{
    struct span signature = SPAN("");
    struct err *e;

    if (span_eq(attempt->settings->webhook.method, SPAN("HEAD"))) {
        body_leave(attempt); /* none is signed, counted, or said to be of a type */
        attempt->content_type = (struct span){NULL, 0};
    }
    attempt_add_headers(attempt);
    e = sign(attempt, &signature);
    if (sending_of(attempt)->signing.signing == NULL)
        send_signed(attempt, signature, e);
}

/* The body is there, unless the attempt has stopped, or there is no room for it. */
static void go_on(struct attempt *attempt)
{
    if (attempt->has_no_room)
        put_back(attempt);
    else if (!list_linked(&attempt->link))
        send_body(attempt);
}

static void take_custom_payload(struct attempt *attempt, struct response *response)
{
    attempt_take_custom_payload(attempt, response);
    go_on(attempt);
}

static void take_payload(struct attempt *attempt)
{
    struct err *e = attempt_take_payload(attempt);

    if (e != NULL)
        fail(attempt, e);
    else
        go_on(attempt);
}

void attempt_start(struct deliveries *d, struct delivery *delivery, struct lane_origin *origin)
{
    struct attempt *attempt = attempt_get(d);
    int64_t now_unix_ns = clock_unix_ns();

    attempt->delivery = delivery;
    attempt->settings = lane_settings_get(delivery->lane);
    attempt->origin = origin;
    attempt->started_ns = clock_mono_ns();
    attempt->header_count = 0;
    attempt->content_type = (struct span){NULL, 0};
    attempt->is_aborted = attempt->is_cancelled = attempt->has_no_room = false;
    attempt->answer = (struct retry_answer){.retry_after_s = -1};
    attempt->outcome = (struct webhook_log_entry){.time_unix_ns = MAX(now_unix_ns, 0)};
    delivery_move(d, delivery, DELIVERY_IN_FLIGHT);
    delivery->attempt = attempt;
    if (attempt_lacks_source(attempt))
        attempt_abort(attempt, SPAN("the event has no source, and the configuration's "
                                    "CloudEventsSource is no more"));
    else if (attempt->settings->webhook.has_custom)
        attempt_ask_custom_payload(attempt, take_custom_payload);
    else
        take_payload(attempt);
}

/* The outcome. ----------------------------------------------------------------------------- */

static void record_outcome(struct attempt *attempt)
{
    struct hooks *hooks = attempt->deliveries->hooks;
    struct lane *lane = attempt->delivery->lane;
    struct err *e;

    if (turn_is_held(hooks->turn)) {
        list_push_back(&attempt->deliveries->stopped_attempts, &attempt->link);
        lanes_wake(attempt->deliveries);
        return;
    }
    if (lane_is_dying(lane)) { /* the reaper drops the delivery */
        attempt->delivery->attempt = NULL;
        attempt_put(attempt);
        return;
    }
    e = attempt_apply_outcome(attempt);
    if (e != NULL) {
        log_warn("delivery", "an outcome is not recorded yet: %.*s", SPAN_FMT(err_message(e)));
        err_free(e);
        timer_start(hooks->loop, &sending_of(attempt)->again, AGAIN_MS);
        return;
    }
    attempt_put(attempt);
    lane_update(lane);
    retention_wake(hooks->retention);
}
