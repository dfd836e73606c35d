/* What a lane remembers of outcomes. Journaled in a record of its own: since when everything fails,
 * and until when its receiver asked to wait. Kept in memory only: how the last attempts ended, for
 * Status. */
#include "hooks/lane_record.h"
#include "base/mem.h"
#include "hooks/hooks.h"
#include "hooks/lane_inner.h"
#include "hooks/retry.h"
#include "hooks/webhook.h"
#include "store/change.h"
#include "store/record.h"
#include "store/store.h"

static void add_record(struct change *change, const struct lane *lane,
                       int64_t failing_since_unix_ns, int64_t hold_until_unix_ns)
{
    const struct record_lane record = {
        .webhook = lane->webhook_id,
        .failing_since_unix_ns = failing_since_unix_ns,
        .hold_until_unix_ns = hold_until_unix_ns,
    };

    record_add_lane(change_begin(change), &record);
    change_end(change, RECORD_LANE, 1);
}

static struct err *apply_lane(void *context, struct span body, const struct store_origin *origin)
{
    struct deliveries *d = context;
    struct record_lane r;
    struct lane *lane;

    TRY(record_read_lane(body, &r));
    lane = lane_get(d, &r.webhook);
    lane->failing_since_unix_ns = r.failing_since_unix_ns;
    lane_hold(lane, r.hold_until_unix_ns);
    if (r.failing_since_unix_ns == 0 && r.hold_until_unix_ns == 0)
        store_forget(d->hooks->store, &lane->stored);
    else
        store_track(d->hooks->store, &lane->stored, RECORD_LANE, origin);
    return NULL;
}

static struct err *move_lane(void *context, struct stored *stored, struct change *change)
{
    const struct lane *lane = CONTAINER_OF(stored, struct lane, stored);

    (void)context;
    add_record(change, lane, lane->failing_since_unix_ns, lane->hold_until_unix_ns);
    return NULL;
}

const struct store_kind lane_kind = {
    .kind = RECORD_LANE,
    .apply = apply_lane,
    .move = move_lane,
    .loaded = lanes_loaded,
};

void lane_start_over(struct change *change, const struct lane *lane, bool is_other_receiver)
{
    int64_t hold_until_unix_ns = is_other_receiver ? 0 : lane->hold_until_unix_ns;

    if (lane->failing_since_unix_ns != 0 || lane->hold_until_unix_ns != hold_until_unix_ns)
        add_record(change, lane, 0, hold_until_unix_ns);
}

/* Until when it is held; 0: not at all, by the loop's clock, whatever the wall clock says. */
static int64_t held_until_ns(const struct lane *lane)
{
    bool is_held = lane->hold_until_ms > 0 && lane->hold_until_ms > lane_now_ms(lane);

    return is_held ? lane->hold_until_unix_ns : 0;
}

static void add_pause(struct change *change, const struct lane *lane, const struct lane_outcome *o)
{
    double failing_ns = (double)(o->ended_unix_ns - lane->failing_since_unix_ns);
    enum retry_verdict verdict = o->decision.verdict;
    struct span why;

    if (lane->webhook->is_paused)
        return;
    if (verdict == RETRY_GONE)
        why = SPAN("paused: the receiver answered 410 Gone");
    else if (verdict != RETRY_DELIVERED && lane->failing_since_unix_ns != 0 &&
             o->disable_after_days > 0 && failing_ns >= o->disable_after_days * 86400e9)
        why = SPAN("paused: nothing but failures for DisableAfterDays");
    else
        return;
    webhook_pause(lane->webhook, why, change);
}

void lane_add_outcome(struct change *change, const struct lane *lane, const struct lane_outcome *o)
{
    int64_t failing_since = lane->failing_since_unix_ns;
    int64_t hold_until = MAX(held_until_ns(lane), o->decision.hold_all_until_ns);

    if (o->paced.is_aborted) /* which says nothing about the receiver */
        return;
    if (o->decision.verdict == RETRY_DELIVERED)
        failing_since = 0;
    else if (failing_since == 0)
        failing_since = o->started_unix_ns;
    if (failing_since != lane->failing_since_unix_ns || hold_until != lane->hold_until_unix_ns)
        add_record(change, lane, failing_since, hold_until);
    add_pause(change, lane, o);
}

void lane_note_outcome(struct lane *lane, const struct lane_outcome *o)
{
    struct lane_history *history = &lane->history;
    bool is_success = o->paced.is_success && !o->paced.is_aborted;

    history->recent = history->recent << 1 | is_success;
    history->recent_count = MIN(history->recent_count + 1, LANE_RECENT_MOST);
    if (is_success) {
        history->success_unix_ns = o->ended_unix_ns;
    } else {
        history->failure_unix_ns = o->ended_unix_ns;
        mem_free(history->error);
        history->error = mem_string(o->error);
    }
    worst_note(&lane->deliveries->hooks->worst, &lane->worst, !is_success);
    lane_pace(lane, &o->paced);
}

size_t lane_unended(const struct lane *lane)
{
    return lane->pending.count + lane->waiting.count + lane->in_flight;
}

struct lane *lane_of_worst(struct worst_entry *entry)
{
    return CONTAINER_OF(entry, struct lane, worst);
}

struct lane_facts lane_facts(const struct lane *lane)
{
    static const struct lane_history none;
    const struct delivery *oldest = lane == NULL ? NULL : lane_first_delivery(lane);

    if (lane == NULL)
        return (struct lane_facts){.block = {LANE_EMPTY, LANE_NEVER}, .history = &none};
    while (oldest != NULL && delivery_has_ended(oldest))
        oldest = lane_next_delivery(lane, oldest);
    return (struct lane_facts){
        .state = lane->state,
        .block = lane_blocked_by(lane),
        .pending = lane->pending.count,
        .waiting = lane->waiting.count,
        .in_flight = lane->in_flight,
        .max_in_flight = lane->pacing.max_in_flight,
        .window = pacing_most(&lane->pacing),
        .rate_per_second = lane->pacing.rate_per_second,
        .failing_since_unix_ns = lane->failing_since_unix_ns,
        .held_until_unix_ns = held_until_ns(lane),
        .oldest = oldest,
        .next_wait = lane_first_waiting(lane),
        .history = &lane->history,
    };
}
