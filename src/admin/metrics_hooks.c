/* Metrics of events, webhooks and deliveries: how many there are, how old, how much they hold, and
 * the webhooks that fail most. */
#include "admin/metrics_text.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/uuid.h"
#include "dispatch/error_log.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane.h"
#include "hooks/payload.h"
#include "query/shape.h"
#include "rest/metrics.h"
#include "store/collection.h"
#include "store/store.h"
#include "webhook/webhook_log.h"
#include "webhook/worst.h"

_Static_assert((int)METRIC_DELIVERY_STATE_COUNT == (int)DELIVERY_STATE_COUNT, "one each");
_Static_assert((int)METRIC_OUTCOME_COUNT == DELIVERY_STATE_COUNT - DELIVERY_DELIVERED, "one each");

static void collect_deliveries(const struct hooks *hooks, struct metrics *m)
{
    const struct delivery *oldest = deliveries_oldest_pending(hooks->deliveries);
    int64_t age_ns = oldest == NULL ? 0 : clock_unix_ns() - oldest->event->time_unix_ns;

    m->deliveries_pending = deliveries_pending(hooks->deliveries);
    for (unsigned i = 0; i < DELIVERY_STATE_COUNT; i++)
        m->deliveries_kept[i] = deliveries_count(hooks->deliveries, i);
    m->oldest_ns = (uint64_t)MAX(age_ns, 0);
    m->events_kept = events_count(hooks->events);
}

static uint64_t bytes_of(const struct hooks *hooks, struct span log)
{
    return collection_bytes(store_collection(hooks->store, log));
}

static void collect_ledger(const struct hooks *hooks, struct metrics *m)
{
    m->ledger[METRIC_BODIES] = deliveries_body_bytes(hooks->deliveries);
    m->ledger[METRIC_PAYLOADS] = payloads_bytes(events_payloads(hooks->events));
    m->ledger[METRIC_ERROR_LOG] = bytes_of(hooks, error_log_resource);
    m->ledger[METRIC_ATTEMPT_LOG] = bytes_of(hooks, webhook_log_resource);
    m->ledger[METRIC_EVENTS] = events_bytes(hooks->events);
}

void metrics_hooks_collect(const struct hooks *hooks, struct metrics *m)
{
    collect_deliveries(hooks, m);
    collect_ledger(hooks, m);
}

/* ---- forms ---- */

const struct metrics_form metrics_text_by_outcome = {metrics_text_by_names, &delivery_state_names,
                                                     DELIVERY_DELIVERED};
const struct metrics_form metrics_text_by_state = {metrics_text_by_names, &delivery_state_names, 0};

static void add_by_webhook(const struct metrics_text *t)
{
    const struct worst *worst = t->hooks->worst;

    for (size_t i = 0; i < worst->count; i++) {
        char id[UUID_TEXT_BYTES + 1];

        uuid_text(lane_webhook_id(lane_of_worst(worst->entries[i])), id);
        metrics_text_labelled(t, span_str(id), t->row->form->of_worst(worst->entries[i]));
    }
}

static uint64_t attempts_of(struct worst_entry *entry)
{
    return entry->attempts;
}

static uint64_t failures_of(struct worst_entry *entry)
{
    return entry->failures;
}

static uint64_t pending_of(struct worst_entry *entry)
{
    return lane_pending(lane_of_worst(entry));
}

const struct metrics_form metrics_text_worst_attempts = {add_by_webhook, .of_worst = attempts_of};
const struct metrics_form metrics_text_worst_failures = {add_by_webhook, .of_worst = failures_of};
const struct metrics_form metrics_text_worst_pending = {add_by_webhook, .of_worst = pending_of};
