/* Status: how a webhook is doing, worked out when somebody asks. The state is the first of these
 * that is true: it is paused; its receiver has not agreed; its receiver asked to wait; nothing but
 * failures; it has deliveries that could start, but for a limit; otherwise it is active. */
#include "base/clock.h"
#include "base/datetime.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_consent.h"
#include "hooks/lane_inner.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "store/collection.h"
#include "store/entity.h"
#include "webhook/webhook.h"
#include "webhook/webhook_status.h"
#include "json/json.h"

static struct span reason_of_pause(const struct webhook *w, struct arena *a)
{
    struct json_value json = entity_parse(entity_json(w->entity), a);
    struct span message = json_string(json_member(json, SPAN("ErrorMessage")), a);

    return message.p != NULL ? message : SPAN("IsPaused is set");
}

/* Which limit keeps the lane from starting what is queued; absent: none, or nothing is. */
static struct span reason_of_throttle(const struct lane *lane, struct arena *a)
{
    const struct hooks *hooks = lane->deliveries->hooks;

    if (lane->pending.count == 0)
        return span_of(NULL, 0);
    switch (lane_blocked_by(lane).reason) {
    case LANE_BEFORE_RETRY: /* though others could start */
    case LANE_IN_ORDER:
        return SPAN("Ordered: the first delivery has to end before the next");
    case LANE_AT_MAX_IN_FLIGHT:
        return arena_printf(a, "Delivery.MaxInFlight (%u) is reached", lane->pacing.max_in_flight);
    case LANE_AT_WINDOW:
        return arena_printf(a, "at most %u at once until the receiver has proved that it answers",
                            pacing_most(&lane->pacing));
    case LANE_AT_RATE:
        return arena_printf(a, "Delivery.RatePerSecond (%g) is used up",
                            lane->pacing.rate_per_second);
    case LANE_AT_HOST:
        return arena_printf(a,
                            "as many attempts as may be (the configuration's "
                            "Delivery.MaxConnectionsPerHost, %u) are under way to its host",
                            hooks->connections_per_host);
    case LANE_AS_UNPROVED:
    case LANE_AS_SLOW:
        return SPAN("what receivers that are not known to answer within a second may have of the "
                    "configuration's Delivery.MaxInFlight is taken");
    case LANE_AT_BODY_BYTES:
        return arena_printf(a,
                            "bodies of attempts under way take what they may (the configuration's "
                            "Delivery.BodyBytesInFlight, %llu, within Limits.MemoryBytes)",
                            (unsigned long long)hooks->body_bytes_most);
    case LANE_UNPROVED_AT_HALF:
    case LANE_SLOW_AT_HALF:
        return SPAN("its account has half of what receivers that are not known to answer within a "
                    "second may have of the configuration's Delivery.MaxInFlight");
    case LANE_AT_HALF:
        return arena_printf(a,
                            "its account has half of the configuration's Delivery.MaxInFlight "
                            "(%u), or what is left is kept for others",
                            hooks->in_flight_most);
    case LANE_AT_ALL_SLOTS:
        return arena_printf(a, "the configuration's Delivery.MaxInFlight (%u) is reached",
                            hooks->in_flight_most);
    default:
        return span_of(NULL, 0);
    }
}

/* Without a lane there has been no delivery, and nobody asked. */
static bool verifies(const struct webhook *w, struct arena *a)
{
    struct span json = entity_json(w->entity);

    return span_find(json, SPAN("\"Verify\":\"")) != SIZE_MAX && /* as of few */
           json_type(json_member(entity_parse(json, a), SPAN("Verify"))) == JSON_STRING;
}

/* `lane`: NULL when there was no delivery. */
static struct span reason_of_unverified(const struct lane *lane, struct arena *a)
{
    int64_t asked_unix_ns = 0;
    const char *refusal = lane == NULL ? NULL : lane_consent_refusal(lane, &asked_unix_ns);
    struct buf b;

    if (refusal == NULL)
        return SPAN("the receiver has not agreed yet (Verify): it is asked before the first "
                    "delivery");
    buf_init_arena(&b, a);
    buf_add_str(&b, "the receiver has not agreed (Verify): asked at ");
    datetime_add(&b, asked_unix_ns);
    buf_printf(&b, ", %s; it is asked again every hour, and when the webhook is changed", refusal);
    return buf_span(&b);
}

static enum webhook_state find_state(const struct webhook *w, struct arena *a,
                                     struct span *out_reason)
{
    const struct lane *lane = w->lane;

    *out_reason = span_of(NULL, 0);
    if (w->is_paused) {
        *out_reason = reason_of_pause(w, a);
        return WEBHOOK_PAUSED;
    }
    if (lane == NULL ? verifies(w, a) : lane->needs_consent) {
        *out_reason = reason_of_unverified(lane, a);
        return WEBHOOK_UNVERIFIED;
    }
    if (lane == NULL)
        return WEBHOOK_ACTIVE;
    if (lane_held_until_ns(lane) != 0) {
        *out_reason = SPAN("the receiver asked to wait (Retry-After)");
        return WEBHOOK_HELD_BACK;
    }
    if (lane->failing_since_unix_ns != 0) {
        *out_reason = SPAN("nothing but failures since FailingSince");
        return WEBHOOK_FAILING;
    }
    *out_reason = reason_of_throttle(lane, a);
    return out_reason->p == NULL ? WEBHOOK_ACTIVE : WEBHOOK_THROTTLED;
}

/* By the wall clock, where it has set the time: the loop's clock knows no dates. */
static int64_t next_attempt_ns(const struct lane *lane)
{
    const struct lane_block block = lane_blocked_by(lane);
    uint64_t now_ms = lane_now_ms(lane);

    if (block.reason == LANE_BEFORE_RETRY)
        return lane_first_waiting(lane)->at_unix_ns;
    if (block.reason == LANE_ON_HOLD)
        return lane_held_until_ns(lane);
    if (block.at_ms == LANE_NEVER)
        return 0;
    return clock_unix_ns() + (int64_t)(MAX(block.at_ms, now_ms) - now_ms) * 1000000;
}

/* When the event of the oldest that has not ended was raised; 0: all have. */
static int64_t oldest_ns(const struct lane *lane)
{
    const struct delivery *oldest = lane_pending(lane) == 0 ? NULL : lane_first_delivery(lane);

    while (oldest != NULL && delivery_has_ended(oldest))
        oldest = lane_next_delivery(lane, oldest);
    return oldest == NULL ? 0 : oldest->event->time_unix_ns;
}

static struct webhook_status status_of(const struct lane *lane)
{
    const struct lane_history *h = &lane->history;

    return (struct webhook_status){
        .held_until_unix_ns = lane_held_until_ns(lane),
        .failing_since_unix_ns = lane->failing_since_unix_ns,
        .pending = lane->pending.count,
        .waiting = lane->waiting.count,
        .in_flight = lane->in_flight,
        .oldest_unix_ns = oldest_ns(lane),
        .next_attempt_unix_ns = next_attempt_ns(lane),
        .recent = h->recent,
        .recent_count = h->recent_count,
        .success_unix_ns = h->success_unix_ns,
        .failure_unix_ns = h->failure_unix_ns,
        .error = span_str(h->error),
    };
}

void lane_add_status(const struct webhook *w, struct buf *b)
{
    struct webhook_status status = {.pending = 0};
    struct arena a;

    if (w->lane != NULL)
        status = status_of(w->lane);
    arena_init(&a);
    status.state = find_state(w, &a, &status.reason);
    webhook_status_add(&status, b);
    arena_done(&a);
}

/* ---- counting ---- */

/* In one turn, at a fraction of a microsecond each. */
enum { COUNTED_MOST = 20000 };

static bool are_on_state(const struct conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++)
        if (!span_ieq(conditions->items[i].path.text, SPAN("Status.State")))
            return false;
    return conditions->count > 0;
}

/* One bit a state: those for which they hold. */
static unsigned states_that_hold(const struct conditions *conditions, struct arena *a)
{
    unsigned states = 0;

    for (unsigned i = 0; i < webhook_state_names.count; i++) {
        struct span json = arena_printf(a, "{\"Status\":{\"State\":\"%.*s\"}}",
                                        SPAN_FMT(webhook_state_names.values[i]));

        if (conditions_hold(conditions, entity_parse(json, a), a))
            states |= 1U << i;
    }
    return states;
}

bool lanes_count_states(struct collection *webhooks, const struct conditions *conditions,
                        struct arena *a, size_t *out_count)
{
    struct collection_walk walk;
    struct arena reasons; /* which nobody reads */
    unsigned states;
    size_t found = 0;

    if (!are_on_state(conditions) || collection_count(webhooks) > COUNTED_MOST)
        return false;
    states = states_that_hold(conditions, a);
    arena_init(&reasons);
    collection_walk(webhooks, &(struct conditions){NULL, 0}, &walk);
    for (struct entity *e = collection_walk_next(&walk); e != NULL;
         e = collection_walk_next(&walk)) {
        struct span reason;

        if ((states & 1U << find_state(e->attached, &reasons, &reason)) != 0)
            found++;
        arena_reset(&reasons);
    }
    arena_done(&reasons);
    *out_count = found;
    return true;
}
