/* Reading counts days since 1970-01-01; a year here begins in March, so that the leap day is its
 * last and the months before it have a regular pattern. It is done for each value that is compared:
 * timegm would cost several times as much. What is written is told by gmtime_r, once a second. */
#include "base/datetime.h"

#include <string.h>
#include <time.h>

#include "base/must.h"

#define NANOS_PER_SECOND INT64_C(1000000000)
#define SECONDS_PER_DAY INT64_C(86400)
#define DAYS_PER_ERA 146097        /* 400 years */
#define DAYS_BEFORE_1970 719468    /* since 0000-03-01 */
#define LEAST_DAY INT64_C(-719162) /* 0001-01-01 */
#define MOST_DAY INT64_C(2932896)  /* 9999-12-31 */

/* ---- calendar ---- */

static bool is_in_calendar(int64_t seconds)
{
    return seconds >= LEAST_DAY * SECONDS_PER_DAY && seconds < (MOST_DAY + 1) * SECONDS_PER_DAY;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

static int64_t days_from_date(int year, int month, int day)
{
    int march_year = year - (month <= 2);
    int march_month = (month + 9) % 12;
    int era = march_year / 400, year_of_era = march_year % 400;
    int day_of_year = (153 * march_month + 2) / 5 + day - 1;
    int day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return (int64_t)era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970;
}

/* ---- reading; each takes what it reads off the front of *s ---- */

static bool take_char(struct span *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = span_sub(*s, 1, s->n);
    return true;
}

static bool take_digit(struct span *s, int *out_digit)
{
    if (s->n == 0 || s->p[0] < '0' || s->p[0] > '9')
        return false;
    *out_digit = s->p[0] - '0';
    *s = span_sub(*s, 1, s->n);
    return true;
}

/* A number of exactly `digits` digits from least to most. */
static bool take_number(struct span *s, unsigned digits, int least, int most, int *out_number)
{
    int number = 0, digit;

    for (unsigned i = 0; i < digits; i++) {
        if (!take_digit(s, &digit))
            return false;
        number = 10 * number + digit;
    }
    *out_number = number;
    return number >= least && number <= most;
}

static bool take_date(struct span *s, int64_t *out_days)
{
    int year, month, day;

    if (!take_number(s, 4, 1, 9999, &year) || !take_char(s, '-') ||
        !take_number(s, 2, 1, 12, &month) || !take_char(s, '-') ||
        !take_number(s, 2, 1, days_of_month(year, month), &day))
        return false;
    *out_days = days_from_date(year, month, day);
    return true;
}

static bool take_fraction(struct span *s, uint32_t *out_nanos)
{
    uint32_t nanos = 0, weight = NANOS_PER_SECOND / 10;
    unsigned digits = 0;
    int digit;

    for (; take_digit(s, &digit); digits++, weight /= 10)
        nanos += weight * (uint32_t)digit;
    *out_nanos = nanos;
    return digits >= 1 && digits <= 18;
}

static bool take_time(struct span *s, struct instant *out_time)
{
    int hour, minute, second = 0;
    uint32_t nanos = 0;

    if (!take_number(s, 2, 0, 23, &hour) || !take_char(s, ':') ||
        !take_number(s, 2, 0, 59, &minute))
        return false;
    if (take_char(s, ':')) {
        if (!take_number(s, 2, 0, 59, &second))
            return false;
        if (take_char(s, '.') && !take_fraction(s, &nanos))
            return false;
    }
    *out_time = (struct instant){(hour * 60 + minute) * 60 + second, nanos};
    return true;
}

/* Seconds that local time is ahead of UTC. Nothing means UTC. */
static bool take_zone(struct span *s, int *out_seconds)
{
    int sign, hours, minutes = 0;

    *out_seconds = 0;
    if (s->n == 0 || take_char(s, 'Z') || take_char(s, 'z'))
        return true;
    sign = take_char(s, '-') ? -1 : 1;
    if (sign > 0 && !take_char(s, '+'))
        return false;
    if (!take_number(s, 2, 0, 23, &hours))
        return false;
    if (s->n > 0) {
        (void)take_char(s, ':');
        if (!take_number(s, 2, 0, 59, &minutes))
            return false;
    }
    *out_seconds = sign * (hours * 60 + minutes) * 60;
    return true;
}

bool datetime_parse(struct span s, struct instant *out_instant)
{
    struct instant time = {0, 0};
    int64_t days, seconds;
    int zone = 0;

    if (!take_date(&s, &days))
        return false;
    if (s.n > 0) {
        if (!take_char(&s, 'T') && !take_char(&s, 't') && !take_char(&s, ' '))
            return false;
        if (!take_time(&s, &time) || !take_zone(&s, &zone) || s.n > 0)
            return false;
    }
    seconds = days * SECONDS_PER_DAY + time.seconds - zone;
    if (!is_in_calendar(seconds))
        return false; /* the zone leads out of the years 0001 to 9999 */
    *out_instant = (struct instant){seconds, time.nanos};
    return true;
}

/* ---- instants ---- */

int datetime_cmp(struct instant a, struct instant b)
{
    if (a.seconds != b.seconds)
        return a.seconds < b.seconds ? -1 : 1;
    return (a.nanos > b.nanos) - (a.nanos < b.nanos);
}

void datetime_parts(struct instant at, struct datetime_parts *out_parts)
{
    time_t seconds = at.seconds;
    struct tm tm;

    MUST(is_in_calendar(at.seconds) && gmtime_r(&seconds, &tm) != NULL);
    *out_parts = (struct datetime_parts){tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                                         tm.tm_min,         tm.tm_sec,     tm.tm_wday};
}

static void put_digits(char *to, unsigned value, size_t digits)
{
    for (; digits-- > 0; value /= 10)
        to[digits] = (char)('0' + value % 10);
}

/* Most are of the second of the one before. */
static struct {
    int64_t seconds;
    char text[sizeof("0000-00-00T00:00:00.0000000Z")];
} written = {.seconds = INT64_MIN};

static void put_second(struct instant at)
{
    char *text = written.text;
    struct datetime_parts parts;

    datetime_parts(at, &parts);
    memcpy(text, "0000-00-00T00:00:00.0000000Z", sizeof(written.text));
    put_digits(text, (unsigned)parts.year, 4);
    put_digits(text + 5, (unsigned)parts.month, 2);
    put_digits(text + 8, (unsigned)parts.day, 2);
    put_digits(text + 11, (unsigned)parts.hour, 2);
    put_digits(text + 14, (unsigned)parts.minute, 2);
    put_digits(text + 17, (unsigned)parts.second, 2);
    written.seconds = at.seconds;
}

/* Every log entry has some: printf would cost more than the rest of the entry. */
void datetime_add(struct buf *b, int64_t unix_ns)
{
    struct instant at = datetime_from_unix_ns(unix_ns);

    if (at.seconds != written.seconds)
        put_second(at);
    put_digits(written.text + 20, at.nanos / 100, 7);
    buf_add(b, span_of(written.text, sizeof(written.text) - 1));
}

struct instant datetime_from_unix_ns(int64_t unix_ns)
{
    int64_t seconds = unix_ns / NANOS_PER_SECOND, nanos = unix_ns % NANOS_PER_SECOND;

    if (nanos < 0) {
        seconds--;
        nanos += NANOS_PER_SECOND;
    }
    return (struct instant){seconds, (uint32_t)nanos};
}
