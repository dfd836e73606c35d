/* Status: how a webhook is doing, worked out when somebody asks. The state is the first of these
 * that is true: it is paused; its receiver asked to wait; nothing but failures; it has deliveries
 * that could start, but for a limit; otherwise it is active. */
#include "base/clock.h"
#include "base/json.h"
#include "base/member.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane.h"
#include "hooks/webhook.h"
#include "io/loop.h"
#include "query/shape.h"
#include "store/entity.h"

#define STATUS_PROPERTY(property_name, property_type, text)                                        \
    {                                                                                              \
        .name = SPAN_INIT(property_name), .type = property_type, .flags = PROPERTY_READ_ONLY,      \
        .meaning = SPAN_INIT(text)                                                                 \
    }

#define STATES(X)                                                                                  \
    X(STATUS_ACTIVE, "Active")                                                                     \
    X(STATUS_PAUSED, "Paused")                                                                     \
    X(STATUS_HELD_BACK, "HeldBack")                                                                \
    X(STATUS_FAILING, "Failing")                                                                   \
    X(STATUS_THROTTLED, "Throttled")

enum status_state {
#define STATUS_AS_ENUM(symbol, name) symbol,
    STATES(STATUS_AS_ENUM)
#undef STATUS_AS_ENUM
};

static const struct span state_texts[] = {
#define STATUS_AS_NAME(symbol, name) SPAN_INIT(name),
    STATES(STATUS_AS_NAME)
#undef STATUS_AS_NAME
};

static const struct enumeration state_names = {"State", state_texts, ARRAY_LEN(state_texts)};

static const struct property properties[] = {
    {.name = SPAN_INIT("State"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .values = &state_names,
     .meaning = SPAN_INIT("Active, Paused, HeldBack, Failing or Throttled")},
    STATUS_PROPERTY("Reason", TYPE_STRING, "Why it is not Active, in words"),
    STATUS_PROPERTY("HeldBackUntil", TYPE_DATETIME, "What the receiver asked for (Retry-After)"),
    STATUS_PROPERTY("FailingSince", TYPE_DATETIME, "Nothing but failures since then"),
    STATUS_PROPERTY("Pending", TYPE_INTEGER, "Deliveries that could be attempted now"),
    STATUS_PROPERTY("InFlight", TYPE_INTEGER, "Deliveries being attempted"),
    STATUS_PROPERTY("Waiting", TYPE_INTEGER, "Deliveries that wait for their next attempt"),
    STATUS_PROPERTY("OldestTime", TYPE_DATETIME,
                    "When the event of the one that has waited for longest was raised"),
    STATUS_PROPERTY("NextAttemptTime", TYPE_DATETIME,
                    "When the next attempt may start; null: none is due, or all may not"),
    STATUS_PROPERTY("RecentAttempts", TYPE_INTEGER,
                    "How many of the last 64 attempts SuccessRate is about; since the start"),
    STATUS_PROPERTY("SuccessRate", TYPE_NUMBER, "Part of these that succeeded, 0 to 1"),
    STATUS_PROPERTY("LastSuccessTime", TYPE_DATETIME, "Since the start of the server"),
    STATUS_PROPERTY("LastFailureTime", TYPE_DATETIME, "Since the start of the server"),
    STATUS_PROPERTY("LastError", TYPE_STRING, "What went wrong then, in words"),
};

const struct shape webhook_status_shape = {properties, ARRAY_LEN(properties), false};

static struct span reason_of_pause(const struct webhook *w, struct arena *a)
{
    struct json_value json = entity_parse(entity_json(w->entity), a);
    struct json_value message = json_member(json, SPAN("ErrorMessage"));

    return json_type(message) == JSON_STRING ? json_string(message, a) : SPAN("IsPaused is set");
}

/* Which limit keeps the lane from starting what is queued; absent: none, or nothing is. */
static struct span reason_of_throttle(const struct hooks *hooks, const struct lane_facts *facts,
                                      struct arena *a)
{
    if (facts->pending == 0)
        return span_of(NULL, 0);
    switch (facts->block.reason) {
    case LANE_BEFORE_RETRY: /* though others could start */
    case LANE_IN_ORDER:
        return SPAN("Ordered: the first delivery has to end before the next");
    case LANE_AT_MAX_IN_FLIGHT:
        return arena_printf(a, "Delivery.MaxInFlight (%u) is reached", facts->max_in_flight);
    case LANE_AT_WINDOW:
        return arena_printf(a, "at most %u at once until the receiver has proved that it answers",
                            facts->window);
    case LANE_AT_RATE:
        return arena_printf(a, "Delivery.RatePerSecond (%g) is used up", facts->rate_per_second);
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

static enum status_state find_state(const struct hooks *hooks, const struct webhook *w,
                                    const struct lane_facts *facts, struct arena *a,
                                    struct span *out_reason)
{
    if (w->is_paused) {
        *out_reason = reason_of_pause(w, a);
        return STATUS_PAUSED;
    }
    if (facts->held_until_unix_ns != 0) {
        *out_reason = SPAN("the receiver asked to wait (Retry-After)");
        return STATUS_HELD_BACK;
    }
    if (facts->failing_since_unix_ns != 0) {
        *out_reason = SPAN("nothing but failures since FailingSince");
        return STATUS_FAILING;
    }
    *out_reason = reason_of_throttle(hooks, facts, a);
    return out_reason->p == NULL ? STATUS_ACTIVE : STATUS_THROTTLED;
}

/* By the wall clock, where it has set the time: the loop's clock knows no dates. */
static int64_t next_attempt_ns(const struct hooks *hooks, const struct lane_facts *facts)
{
    uint64_t now_ms = loop_now_ms(hooks->loop), at_ms = facts->block.at_ms;

    if (facts->block.reason == LANE_BEFORE_RETRY)
        return facts->next_wait->at_unix_ns;
    if (facts->block.reason == LANE_ON_HOLD)
        return facts->held_until_unix_ns;
    return at_ms == LANE_NEVER ? 0
                               : clock_unix_ns() + (int64_t)(MAX(at_ms, now_ms) - now_ms) * 1000000;
}

static void add_history(const struct lane_history *h, struct buf *b)
{
    int succeeded = __builtin_popcountll(h->recent);

    member_add_u64(b, SPAN("RecentAttempts"), h->recent_count);
    json_add_name(b, SPAN("SuccessRate"));
    if (h->recent_count == 0)
        buf_add_str(b, "null");
    else
        buf_printf(b, "%g", (double)succeeded / h->recent_count);
    member_add_time(b, SPAN("LastSuccessTime"), h->success_unix_ns);
    member_add_time(b, SPAN("LastFailureTime"), h->failure_unix_ns);
    member_add_text_or_null(b, SPAN("LastError"), span_str(h->error));
}

void webhook_add_status(const struct hooks *hooks, const struct webhook *w, struct buf *b)
{
    const struct lane_facts facts = lane_facts(w->lane);
    struct span reason;
    enum status_state state;
    struct arena a;

    arena_init(&a);
    state = find_state(hooks, w, &facts, &a, &reason);
    buf_add_char(b, '{');
    member_add_text(b, SPAN("State"), state_texts[state]);
    member_add_text_or_null(b, SPAN("Reason"), reason);
    member_add_time(b, SPAN("HeldBackUntil"), facts.held_until_unix_ns);
    member_add_time(b, SPAN("FailingSince"), facts.failing_since_unix_ns);
    member_add_u64(b, SPAN("Pending"), facts.pending);
    member_add_u64(b, SPAN("InFlight"), facts.in_flight);
    member_add_u64(b, SPAN("Waiting"), facts.waiting);
    member_add_time(b, SPAN("OldestTime"),
                    facts.oldest == NULL ? 0 : facts.oldest->event->time_unix_ns);
    member_add_time(b, SPAN("NextAttemptTime"), next_attempt_ns(hooks, &facts));
    add_history(facts.history, b);
    buf_add_char(b, '}');
    arena_done(&a);
}
