/* What a lane remembers of outcomes, and what is told of them (notice.h). Journaled in a record of
 * its own: since when everything fails, until when its receiver asked to wait, and that the next
 * success is to be told. Kept in memory only: how the last attempts ended, for Status. */
#include "hooks/lane_record.h"
#include "base/mem.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_consent.h"
#include "hooks/lane_inner.h"
#include "hooks/notice.h"
#include "store/change.h"
#include "store/entity.h"
#include "store/record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "webhook/retry.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"

static void add_record(struct change *change, const struct record_lane *record)
{
    record_add_lane(change_begin(change), record);
    change_end(change, RECORD_LANE, 1);
}

static struct record_lane record_of(const struct lane *lane)
{
    struct record_lane record = {
        .webhook = lane->webhook_id,
        .failing_since_unix_ns = lane->failing_since_unix_ns,
        .hold_until_unix_ns = lane->hold_until_unix_ns,
        .is_troubled = lane->is_troubled,
    };

    lane_consent_note(lane, &record);
    return record;
}

void lane_add_consent(struct change *change, const struct lane *lane,
                      const struct record_lane *given)
{
    struct record_lane record = record_of(lane);

    record.has_consent = given->has_consent;
    memcpy(record.consent, given->consent, sizeof(record.consent));
    record.rate_per_minute = given->rate_per_minute;
    add_record(change, &record);
}

static struct err *apply_lane(void *context, struct span body, const struct store_origin *origin)
{
    struct deliveries *d = context;
    struct record_lane r;
    struct lane *lane;

    TRY(record_read_lane(body, &r));
    lane = lane_get(d, &r.webhook);
    lane->failing_since_unix_ns = r.failing_since_unix_ns;
    lane->is_troubled = r.is_troubled;
    lane_hold(lane, r.hold_until_unix_ns);
    lane_consent_apply(lane, &r);
    if (r.failing_since_unix_ns == 0 && r.hold_until_unix_ns == 0 && !r.is_troubled &&
        !r.has_consent)
        store_forget(d->hooks->store, &lane->stored);
    else
        store_track(d->hooks->store, &lane->stored, RECORD_LANE, origin);
    return NULL;
}

static struct err *move_lane(void *context, struct stored *stored, struct change *change)
{
    const struct record_lane record = record_of(CONTAINER_OF(stored, struct lane, stored));

    (void)context;
    add_record(change, &record);
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
    struct record_lane record = record_of(lane);

    record.failing_since_unix_ns = 0;
    if (is_other_receiver)
        record.hold_until_unix_ns = 0;
    if (lane->failing_since_unix_ns != 0 || lane->hold_until_unix_ns != record.hold_until_unix_ns)
        add_record(change, &record);
}

void lane_add_trouble(struct change *change, const struct webhook *w)
{
    struct record_lane record = {.webhook = w->entity->id, .is_troubled = true};

    if (w->lane != NULL) {
        if (w->lane->is_troubled)
            return;
        record = record_of(w->lane);
        record.is_troubled = true;
    }
    add_record(change, &record);
}

/* Without deliveries it has told nothing. */
bool lane_may_tell(const struct webhook *w, unsigned deaths)
{
    static const struct notice_hand full;

    return w->lane == NULL ? notice_hand_has(&full, deaths, 0)
                           : notice_hand_has(&w->lane->notices, deaths, lane_now_ms(w->lane));
}

bool lane_count_death(struct lane *lane)
{
    return notice_hand_take(&lane->notices, lane_now_ms(lane));
}

/* Until when it is held; 0: not at all, by the loop's clock, whatever the wall clock says. */
int64_t lane_held_until_ns(const struct lane *lane)
{
    bool is_held = lane->hold_until_ms > 0 && lane->hold_until_ms > lane_now_ms(lane);

    return is_held ? lane->hold_until_unix_ns : 0;
}

/* Absent: it is not paused by this. */
static struct span why_paused(const struct lane *lane, const struct lane_outcome *o)
{
    double failing_ns = (double)(o->ended_unix_ns - lane->failing_since_unix_ns);
    enum retry_verdict verdict = o->decision.verdict;

    if (lane->webhook->is_paused)
        return span_of(NULL, 0);
    if (verdict == RETRY_GONE)
        return SPAN("paused: the receiver answered 410 Gone");
    if (verdict != RETRY_DELIVERED && lane->failing_since_unix_ns != 0 &&
        o->disable_after_days > 0 && failing_ns >= o->disable_after_days * 86400e9)
        return SPAN("paused: nothing but failures for DisableAfterDays");
    return span_of(NULL, 0);
}

static bool is_dead(const struct lane_outcome *o)
{
    return o->decision.verdict == RETRY_DEAD || o->decision.verdict == RETRY_GONE;
}

static void tell_of_death(struct hooks *hooks, struct change *change, struct lane *lane,
                          const struct lane_outcome *o, struct notice notice)
{
    const struct event *event = o->delivery->event;
    struct notice_delivery dead = {
        .event = event->id,
        .resource = event->resource,
        .attempts = o->delivery->attempts + 1u,
        .last_error = o->error,
    };

    if (!lane_may_tell(lane->webhook, 1))
        return;
    delivery_id(o->delivery, &dead.id);
    notice.of = &notice_delivery_dead;
    notice.dead = &dead;
    notice.why = o->decision.verdict == RETRY_GONE ? SPAN("the receiver answered 410 Gone")
                 : o->is_refused ? SPAN("the request to the server itself was refused")
                                 : SPAN("the retry schedule is used up");
    notice_raise(hooks, &notice, change);
}

static void tell(struct change *change, struct lane *lane, const struct lane_outcome *o,
                 struct span why_paused, bool is_recovered)
{
    struct hooks *hooks = lane->deliveries->hooks;
    struct event *event = o->delivery->event;
    struct notice notice = {
        .webhook = lane->webhook, .depth = event->depth + 1u, .chain = event_chain(event)};

    if (is_dead(o))
        tell_of_death(hooks, change, lane, o, notice);
    notice.of = &notice_webhook_paused;
    notice.why = why_paused;
    if (why_paused.p != NULL)
        notice_raise(hooks, &notice, change);
    notice.of = &notice_webhook_recovered;
    notice.why = SPAN("a delivery has succeeded again");
    if (is_recovered)
        notice_raise(hooks, &notice, change);
    event_chain_unref(notice.chain);
}

void lane_add_outcome(struct change *change, struct lane *lane, const struct lane_outcome *o)
{
    struct record_lane record = record_of(lane);
    struct span paused;
    bool is_told;

    if (o->paced.is_aborted) /* which says nothing about the receiver */
        return;
    record.hold_until_unix_ns = MAX(lane_held_until_ns(lane), o->decision.hold_all_until_ns);
    if (o->decision.verdict == RETRY_DELIVERED)
        record.failing_since_unix_ns = 0;
    else if (lane->failing_since_unix_ns == 0)
        record.failing_since_unix_ns = o->started_unix_ns;
    paused = why_paused(lane, o);
    if (o->decision.verdict == RETRY_DELIVERED)
        record.is_troubled = false;
    else if (is_dead(o) || paused.p != NULL)
        record.is_troubled = true;
    is_told = (lane->is_troubled != record.is_troubled || is_dead(o) || paused.p != NULL) &&
              !selector_is_notice(o->delivery->event->resource);
    if (!is_told)
        record.is_troubled = lane->is_troubled;
    if (record.failing_since_unix_ns != lane->failing_since_unix_ns ||
        record.hold_until_unix_ns != lane->hold_until_unix_ns ||
        record.is_troubled != lane->is_troubled)
        add_record(change, &record);
    if (paused.p != NULL)
        webhook_pause(lane->webhook, paused, change);
    if (is_told)
        tell(change, lane, o, paused, lane->is_troubled && !record.is_troubled);
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
    worst_note(lane->deliveries->hooks->worst, &lane->worst, !is_success);
    lane_pace(lane, &o->paced);
}

struct lane *lane_of_worst(struct worst_entry *entry)
{
    return CONTAINER_OF(entry, struct lane, worst);
}
