/* The member Status of a webhook: its table, and how it is written. What is told is worked out by
 * who keeps the deliveries. */
#include "webhook/webhook_status.h"

#include "query/shape.h"
#include "json/json.h"
#include "json/member.h"

static const struct span state_texts[] = {WEBHOOK_STATES(AS_SPAN)};

const struct enumeration webhook_state_names = {"State", state_texts, ARRAY_LEN(state_texts)};

static const struct property properties[] = {
    READ_ONLY_PROPERTY("State", TYPE_STRING, 0,
                       "Active, Paused, Unverified, HeldBack, Failing or Throttled",
                       .values = &webhook_state_names),
    READ_ONLY_PROPERTY("Reason", TYPE_STRING, 0, "Why it is not Active, in words"),
    READ_ONLY_PROPERTY("HeldBackUntil", TYPE_DATETIME, 0,
                       "What the receiver asked for (Retry-After)"),
    READ_ONLY_PROPERTY("FailingSince", TYPE_DATETIME, 0, "Nothing but failures since then"),
    READ_ONLY_PROPERTY("Pending", TYPE_INTEGER, 0, "Deliveries that could be attempted now"),
    READ_ONLY_PROPERTY("InFlight", TYPE_INTEGER, 0, "Deliveries being attempted"),
    READ_ONLY_PROPERTY("Waiting", TYPE_INTEGER, 0, "Deliveries that wait for their next attempt"),
    READ_ONLY_PROPERTY("OldestTime", TYPE_DATETIME, 0,
                       "When the event of the one that has waited for longest was raised"),
    READ_ONLY_PROPERTY("NextAttemptTime", TYPE_DATETIME, 0,
                       "When the next attempt may start; null: none is due, or all may not"),
    READ_ONLY_PROPERTY("RecentAttempts", TYPE_INTEGER, 0,
                       "How many of the last 64 attempts SuccessRate is about; since the start"),
    READ_ONLY_PROPERTY("SuccessRate", TYPE_NUMBER, 0, "Part of these that succeeded, 0 to 1"),
    READ_ONLY_PROPERTY("LastSuccessTime", TYPE_DATETIME, 0, "Since the start of the server"),
    READ_ONLY_PROPERTY("LastFailureTime", TYPE_DATETIME, 0, "Since the start of the server"),
    READ_ONLY_PROPERTY("LastError", TYPE_STRING, 0, "What went wrong then, in words"),
};

const struct shape webhook_status_shape = {properties, ARRAY_LEN(properties), false};

static void add_history(const struct webhook_status *s, struct buf *b)
{
    int succeeded = __builtin_popcountll(s->recent);

    member_add_u64(b, SPAN("RecentAttempts"), s->recent_count);
    json_add_name(b, SPAN("SuccessRate"));
    if (s->recent_count == 0)
        buf_add_str(b, "null");
    else
        buf_printf(b, "%g", (double)succeeded / s->recent_count);
    member_add_time(b, SPAN("LastSuccessTime"), s->success_unix_ns);
    member_add_time(b, SPAN("LastFailureTime"), s->failure_unix_ns);
    member_add_text_or_null(b, SPAN("LastError"), s->error);
}

void webhook_status_add(const struct webhook_status *s, struct buf *b)
{
    buf_add_char(b, '{');
    member_add_text(b, SPAN("State"), state_texts[s->state]);
    member_add_text_or_null(b, SPAN("Reason"), s->reason);
    member_add_time(b, SPAN("HeldBackUntil"), s->held_until_unix_ns);
    member_add_time(b, SPAN("FailingSince"), s->failing_since_unix_ns);
    member_add_u64(b, SPAN("Pending"), s->pending);
    member_add_u64(b, SPAN("InFlight"), s->in_flight);
    member_add_u64(b, SPAN("Waiting"), s->waiting);
    member_add_time(b, SPAN("OldestTime"), s->oldest_unix_ns);
    member_add_time(b, SPAN("NextAttemptTime"), s->next_attempt_unix_ns);
    add_history(s, b);
    buf_add_char(b, '}');
}
