/* How an attempt ended, recorded in one change: the delivery's next state, what its lane remembers,
 * and the entry in the log. */
#include "base/blob.h"
#include "base/clock.h"
#include "base/metric.h"
#include "base/rng.h"
#include "base/text.h"
#include "hooks/attempt_inner.h"
#include "hooks/delivery.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_record.h"
#include "hooks/lane_settings.h"
#include "hooks/webhook_sent.h"
#include "protocol/status.h"
#include "rest/metrics.h"
#include "store/change.h"
#include "store/record.h"
#include "store/turn.h"

enum { KEPT_ERROR_BYTES = 500 };

static struct lane_outcome judge(const struct attempt *attempt)
{
    const struct webhook_settings *settings = &attempt->settings->webhook;
    struct retry_decision decision =
        retry_decide(&settings->retry, attempt->outcome.attempt, &attempt->answer,
                     attempt->ended_unix_ns, rng_unit());

    bool is_refused = settings->is_local && retry_is_refusal(attempt->answer.status);

    if (is_refused)
        decision = (struct retry_decision){.verdict = RETRY_DEAD};

    return (struct lane_outcome){
        .paced = {.is_success = attempt->outcome.is_success,
                  .is_aborted = attempt->is_aborted,
                  .took_ms = attempt->outcome.duration_ms},
        .decision = decision,
        .disable_after_days = settings->disable_after_days,
        .started_unix_ns = attempt->outcome.time_unix_ns,
        .ended_unix_ns = attempt->ended_unix_ns,
        .error = text_cut_bytes(attempt->outcome.error, KEPT_ERROR_BYTES),
        .delivery = attempt->delivery,
        .is_refused = is_refused,
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
    entry->tenant = lane_tenant(delivery->lane);
    entry->attempt = delivery->attempts + 1u;
    entry->method = attempt->settings->webhook.method;
    entry->destination = attempt->settings->webhook.destination;
    entry->is_success = attempt->answer.status >= 200 && attempt->answer.status < 300;
    entry->body_bytes = blob_span(attempt->body).n;
    webhook_sent(attempt);
    if (entry->error.n == 0 && attempt->answer.answered && !entry->is_success)
        entry->error = arena_printf(&attempt->arena, "answered %d %s", attempt->answer.status,
                                    status_reason(attempt->answer.status));
    entry->error = webhook_sent_keep_error(attempt, entry->error);
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

struct err *attempt_apply_outcome(struct attempt *attempt)
{
    struct hooks *hooks = attempt->deliveries->hooks;
    struct lane_outcome outcome;
    struct change change;
    struct err *e;
    uint64_t serial;

    deliveries_expect(attempt->deliveries, attempt->delivery->object_no);
    attempt->ended_unix_ns = clock_unix_ns();
    fill_entry(attempt);
    outcome = judge(attempt);
    change_init(&change, hooks->turn, &attempt->arena);
    change.is_outcome = true;
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
