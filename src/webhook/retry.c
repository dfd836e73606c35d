/* The answer's status picks the outcome; what is neither success nor Gone waits for the next delay
 * of the schedule, or longer when the receiver asked for that. */
#include "webhook/retry.h"

#include "base/text.h"
#include "json/decimal.h"
#include "json/json.h"

#define NANOS_PER_MS INT64_C(1000000)
#define NANOS_PER_S INT64_C(1000000000)
#define DELAY_MAX_S "604800"
/* Of a wrong element, in a message. */
#define QUOTED_MAX 40
/* The most that chance lengthens a delay by, as a part of it. */
#define JITTER 0.2

static bool is_delay(struct json_value v)
{
    return json_type(v) == JSON_NUMBER && decimal_cmp(json_text(v), SPAN("0")) >= 0 &&
           decimal_cmp(json_text(v), SPAN(DELAY_MAX_S)) <= 0;
}

static struct err *parse_delay(struct json_value seconds, unsigned index, uint32_t *out_ms)
{
    struct span shown = text_cut(json_text(seconds), QUOTED_MAX);

    if (!is_delay(seconds))
        return ERR(ERR_INVALID_ENTITY,
                   "RetrySchedule: element %u is %.*s, but must be a number of seconds from 0 "
                   "to " DELAY_MAX_S ".",
                   index, SPAN_FMT(shown));
    *out_ms = (uint32_t)(decimal_to_double(json_text(seconds)) * 1000 + 0.5);
    return NULL;
}

struct err *retry_parse(struct json_value array, struct retry_policy *out_policy)
{
    struct retry_policy policy = {.delay_count = json_count(array)};
    struct json_value seconds;

    if (json_type(array) != JSON_ARRAY || policy.delay_count > RETRY_MAX_DELAYS)
        return ERR(ERR_INVALID_ENTITY,
                   "RetrySchedule must be an array of at most %d numbers of seconds.",
                   RETRY_MAX_DELAYS);
    seconds = json_first(array);
    for (unsigned i = 0; i < policy.delay_count; i++) {
        TRY(parse_delay(seconds, i, &policy.delays_ms[i]));
        seconds = json_next(array, seconds);
    }
    *out_policy = policy;
    return NULL;
}

/* What the receiver asked for: 0 when it asked for nothing, or in a way that does not count. */
static int64_t asked_hold_ns(const struct retry_answer *answer)
{
    bool counts = answer->answered && (answer->status == 429 || answer->status == 503);

    if (!counts || answer->retry_after_s <= 0)
        return 0;
    return MIN(answer->retry_after_s, RETRY_AFTER_MAX_S) * NANOS_PER_S;
}

static int64_t delay_ns(uint32_t delay_ms, double chance)
{
    return (int64_t)((double)(delay_ms * NANOS_PER_MS) * (1 + JITTER * chance));
}

struct retry_decision retry_decide(const struct retry_policy *policy, unsigned attempts,
                                   const struct retry_answer *answer, int64_t now_unix_ns,
                                   double chance)
{
    struct retry_decision decision = {.verdict = RETRY_DEAD};
    int64_t hold_ns = asked_hold_ns(answer);

    if (answer->answered && answer->status >= 200 && answer->status <= 299)
        return (struct retry_decision){.verdict = RETRY_DELIVERED};
    if (answer->answered && answer->status == 410)
        return (struct retry_decision){.verdict = RETRY_GONE};
    if (hold_ns > 0)
        decision.hold_all_until_ns = now_unix_ns + hold_ns;
    if (attempts <= policy->delay_count) {
        decision.verdict = RETRY_LATER;
        decision.at_unix_ns = now_unix_ns + delay_ns(policy->delays_ms[attempts - 1], chance);
    }
    return decision;
}

bool retry_is_refusal(int status)
{
    return status >= 400 && status < 500 && status != 409 && status != 412 && status != 429;
}
