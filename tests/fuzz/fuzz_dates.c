/* Dates, and waits that depend on them. The input is read as a datetime, as the value of a
 * Retry-After header, as a schedule of retries, and its first bytes as a moment. The calendar is
 * compared with that of the C library; what is written is read as the same again. */
#include "../../src/fetch/fetch_answer.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "fuzzing.h"
#include "http/reply.h"
#include "webhook/retry.h"
#include "json/json.h"

#include <stdio.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define NOW_NS (INT64_C(1800000000) * NS_PER_S)

enum { DATE_BYTES = 10, YEAR_S = 365 * 86400, DAY_S = 86400 };

/* ---- datetimes ---- */

static struct tm tm_of(struct instant at)
{
    struct datetime_parts parts;

    datetime_parts(at, &parts);
    return (struct tm){.tm_year = parts.year - 1900,
                       .tm_mon = parts.month - 1,
                       .tm_mday = parts.day,
                       .tm_hour = parts.hour,
                       .tm_min = parts.minute,
                       .tm_sec = parts.second};
}

static void check_calendar(struct instant at)
{
    struct datetime_parts parts;
    struct tm tm = tm_of(at);

    datetime_parts(at, &parts);
    MUST(timegm(&tm) == at.seconds);
    MUST(tm.tm_wday == parts.day_of_week && tm.tm_mday == parts.day);
    MUST(at.nanos < NS_PER_S);
}

static int number_at(struct span text, size_t at, size_t digits)
{
    uint64_t number;

    MUST(span_to_u64(span_sub(text, at, at + digits), &number));
    return (int)number;
}

/* The day as written may differ from the instant's by the zone: at most a day. */
static void check_written_day(struct span text, struct instant at)
{
    struct tm tm = {.tm_year = number_at(text, 0, 4) - 1900,
                    .tm_mon = number_at(text, 5, 2) - 1,
                    .tm_mday = number_at(text, 8, 2)};
    int64_t day = timegm(&tm);

    MUST(tm.tm_mday == number_at(text, 8, 2)); /* no 30th of February */
    if (text.n == DATE_BYTES)
        MUST(at.seconds == day && at.nanos == 0);
    MUST(at.seconds > day - DAY_S && at.seconds < day + 2 * DAY_S);
}

static void check_datetime(struct span text)
{
    struct instant at, again;
    char out[48];
    struct tm tm;

    if (!datetime_parse(text, &at))
        return;
    check_calendar(at);
    check_written_day(text, at);
    tm = tm_of(at);
    snprintf(out, sizeof(out), "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, at.nanos);
    MUST(datetime_parse(span_str(out), &again) && datetime_cmp(at, again) == 0);
}

/* Seven digits are written of nine. */
static void check_moment(int64_t unix_ns)
{
    struct instant at = datetime_from_unix_ns(unix_ns), again;
    struct buf b;

    MUST((__int128)at.seconds * 1000000000 + at.nanos == unix_ns);
    buf_init(&b, BUF_NO_CAP);
    datetime_add(&b, unix_ns);
    MUST(datetime_parse(buf_span(&b), &again));
    at.nanos -= at.nanos % 100;
    MUST(datetime_cmp(at, again) == 0);
    buf_done(&b);
}

/* ---- Retry-After ---- */

static int64_t retry_after(struct span value)
{
    struct fetch_answer answer = {.status = 0};
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    buf_add_str(&b, "HTTP/1.1 429 Wait\r\nRetry-After: ");
    buf_add(&b, value);
    buf_add_str(&b, "\r\n\r\n");
    fetch_answer_begin(&answer, &(struct fetch){.method = SPAN("POST")});
    (void)fetch_answer_feed(&answer, buf_span(&b));
    buf_done(&b);
    fetch_answer_done(&answer);
    return answer.retry_after_s;
}

static void check_retry_after(struct span value)
{
    int64_t seconds = retry_after(value);
    uint64_t number;

    MUST(seconds >= -1 && seconds <= YEAR_S);
    if (value.n < 20 && span_to_u64(value, &number))
        MUST(seconds == (int64_t)MIN(number, (uint64_t)YEAR_S));
}

/* The date that we would send is understood. */
static void check_retry_date(uint32_t seconds)
{
    struct span line;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    reply_add_common(&b, NOW_NS / NS_PER_S + seconds);
    line = span_sub(buf_span(&b), 0, span_find_char(buf_span(&b), '\r', 0));
    MUST(span_starts(line, SPAN("Date: ")));
    MUST(retry_after(span_sub(line, strlen("Date: "), line.n)) == MIN(seconds, YEAR_S));
    buf_done(&b);
}

/* ---- retries ---- */

static void check_decisions(const struct retry_policy *policy, int64_t retry_after_s)
{
    struct retry_answer answer = {true, 503, retry_after_s};
    int64_t hold_ns = MIN(MAX(retry_after_s, 0), RETRY_AFTER_MAX_S) * NS_PER_S;

    for (unsigned attempts = 1; attempts <= policy->delay_count + 1; attempts++) {
        struct retry_decision d = retry_decide(policy, attempts, &answer, NOW_NS, 0.999);
        int64_t least_ns;

        MUST(d.hold_all_until_ns == (hold_ns > 0 ? NOW_NS + hold_ns : 0));
        MUST((d.verdict == RETRY_LATER) == (attempts <= policy->delay_count));
        if (d.verdict != RETRY_LATER)
            continue;
        least_ns = (int64_t)policy->delays_ms[attempts - 1] * 1000000;
        MUST(least_ns <= 604800 * NS_PER_S);
        MUST(d.at_unix_ns >= NOW_NS + least_ns); /* whatever the webhook's hold is */
        MUST(d.at_unix_ns <= NOW_NS + least_ns / 5 * 6);
    }
}

static void check_schedule(struct span text, int64_t retry_after_s)
{
    struct retry_policy policy;
    struct json_doc doc;
    struct arena a;
    struct err *e;

    arena_init(&a);
    e = json_parse(text, NULL, &a, &doc);
    if (e == NULL)
        e = retry_parse(json_root(&doc), &policy);
    if (e == NULL)
        check_decisions(&policy, retry_after_s);
    err_free(e);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span text = span_of((const char *)data, n);
    int64_t moment = 0;

    clock_fake(NOW_NS, 1);
    memcpy(&moment, data, MIN(n, sizeof(moment)));
    check_datetime(text);
    check_moment(moment);
    check_retry_after(text);
    check_retry_date((uint32_t)moment);
    check_schedule(text, moment);
    return 0;
}
