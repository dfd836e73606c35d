/* One attempt, in order: settings are read from the webhook, a body is made (the event's payload,
 * or the result of the custom payload request), the request is sent (by fetch, or evaluated in
 * process for a local destination), the outcome decides the delivery's next state, and one change
 * records it with an entry of Svc.Admin.WebhookLog. */
#include "hooks/attempt.h"
#include "access/mask.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "fetch/fetch.h"
#include "hooks/attempt_inner.h"
#include "hooks/body.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_host.h"
#include "hooks/lane_settings.h"
#include "hooks/retention.h"
#include "io/timer.h"
#include "rest/evaluation.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"

#include <string.h>

enum {
    KEPT_RESPONSE_BYTES = 262144,
    IDLE_ATTEMPTS = 256,
    KEPT_BODY_BYTES = 4096,
    AGAIN_MS = 1000 /* when an outcome finds no room on the disk */
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

/* Its local request cannot be ended from where its delivery goes: it, or another, is just changing
 * what is stored. Then it is left to end by itself. */
static bool is_answering(const struct attempt *attempt)
{
    return attempt->evaluation != NULL && fiber_is_inside();
}

void attempt_cancel(struct attempt *attempt)
{
    struct deliveries *d = attempt->deliveries;

    if (attempt->is_evaluating || is_answering(attempt)) {
        attempt->is_cancelled = true;
        body_leave(attempt); /* its event may go too */
        return;
    }
    evaluation_free(TAKE(attempt->evaluation));
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

/* Bodies. ---------------------------------------------------------------------------------- */

/* A receiver may send back what it was sent. A mask can be longer than what it stands for. */
static struct span kept_body(struct attempt *attempt, struct span body)
{
    const struct mask *m = attempt->deliveries->hooks->rest->mask;

    body = mask_body(m, text_cut_bytes(body, KEPT_BODY_BYTES), NULL, &attempt->arena);
    return arena_copy(&attempt->arena, text_cut_bytes(body, KEPT_BODY_BYTES));
}

static void note_answer(struct attempt *attempt, int status, int64_t retry_after_s,
                        struct span body, uint32_t took_ms)
{
    struct webhook_log_entry *outcome = &attempt->outcome;

    attempt->answer = (struct retry_answer){status != 0, status, retry_after_s};
    outcome->status = status;
    outcome->duration_ms = took_ms;
    outcome->response_body = kept_body(attempt, body);
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

static void answered(struct attempt *attempt, struct response *response)
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

    answered(attempt, evaluation_response(e));
    evaluation_free(e);
    attempts_record(d);
}

void attempt_evaluate(struct attempt *attempt, const struct request *request,
                      attempt_answered_fn *answered_fn)
{
    struct deliveries *d = attempt->deliveries;

    attempt->asked_ns = clock_mono_ns();
    attempt->answered = answered_fn;
    attempt->is_evaluating = true;
    request_run(d->hooks->rest, request, d->response);
    attempt->is_evaluating = false;
    if (d->response->gives_way) {
        attempt->evaluation = evaluation_start(d->hooks->rest, request, on_evaluated, attempt);
        return;
    }
    answered(attempt, d->response);
    buf_shrink(&d->response->body, KEPT_RESPONSE_BYTES); /* what became a body is there twice */
}

static void take_local_answer(struct attempt *attempt, struct response *response)
{
    struct span body = buf_span(&response->body);

    if (span_eq(attempt->settings->webhook.method, SPAN("HEAD")))
        body = SPAN(""); /* it is made for its length alone */
    note_answer(attempt, response->status, -1, body,
                (uint32_t)((clock_mono_ns() - attempt->asked_ns) / 1000000));
    if (response->error == ERR_INFINITE_LOOP)
        attempt->is_aborted = true;
    attempt_stop(attempt,
                 response->status >= 400 ? attempt_error_of_response(attempt, response) : SPAN(""));
}

static void send_local(struct attempt *attempt)
{
    if (attempt->body != NULL)
        attempt->asked_body = blob_ref(attempt->body);
    attempt_run_local(attempt, attempt->settings->webhook.method,
                      attempt->settings->webhook.destination, attempt->headers,
                      attempt->header_count, blob_span(attempt->body), take_local_answer);
}

/* Takes the error. */
static void fail(struct attempt *attempt, struct err *e)
{
    attempt->is_aborted = err_code(e) == ERR_PAYLOAD_TOO_LARGE; /* as it would be next time */
    attempt_stop(attempt, arena_copy(&attempt->arena, err_message(e)));
    err_free(e);
}

/* HEAD has no body: none is signed, counted, or said to be of a type. */
static void drop_body(struct attempt *attempt)
{
    body_leave(attempt);
    attempt->content_type = (struct span){NULL, 0};
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

/* The body is there. */
static void send_body(struct attempt *attempt)
{
    struct err *e;

    if (span_eq(attempt->settings->webhook.method, SPAN("HEAD")))
        drop_body(attempt);
    e = attempt_add_headers(attempt);
    if (e != NULL)
        fail(attempt, e);
    else if (attempt->settings->webhook.is_local)
        send_local(attempt);
    else
        send_remote(attempt);
}

static void take_custom_payload(struct attempt *attempt, struct response *response)
{
    bool ready;

    attempt_take_custom_payload(attempt, response, &ready);
    if (ready)
        send_body(attempt);
    else if (attempt->has_no_room)
        put_back(attempt);
}

static void take_payload(struct attempt *attempt)
{
    bool ready;
    struct err *e = attempt_take_payload(attempt, &ready);

    if (e != NULL)
        fail(attempt, e);
    else if (ready)
        send_body(attempt);
    else if (attempt->has_no_room)
        put_back(attempt);
}

void attempt_start(struct deliveries *d, struct delivery *delivery, struct lane_origin *origin)
{
    struct attempt *attempt = attempt_get(d);

    attempt->delivery = delivery;
    attempt->settings = lane_settings_get(delivery->lane);
    attempt->origin = origin;
    attempt->started_ns = clock_mono_ns();
    attempt->header_count = 0;
    attempt->content_type = (struct span){NULL, 0};
    attempt->is_aborted = attempt->is_cancelled = attempt->has_no_room = false;
    attempt->answer = (struct retry_answer){.retry_after_s = -1};
    attempt->outcome = (struct webhook_log_entry){.time_unix_ns = clock_unix_ns()};
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
        turn_line_up(hooks->turn, &attempt->deliveries->line);
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
        timer_start(hooks->loop, &attempt->again, AGAIN_MS);
        return;
    }
    attempt_put(attempt);
    lane_update(lane);
    retention_wake(hooks->retention);
}
