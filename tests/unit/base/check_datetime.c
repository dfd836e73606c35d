#include "testing.h"

#include "base/datetime.h"
#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY INT64_C(86400)

static const struct {
    const char *text;
    int64_t seconds;
    uint32_t nanos;
} good[] = {
    {"1970-01-01", 0, 0},
    {"1970-01-01T00:00", 0, 0},
    {"1970-01-01T00:00:00", 0, 0},
    {"1970-01-01T00:00:00Z", 0, 0},
    {"1970-01-01t00:00:00z", 0, 0},
    {"1970-01-01 00:00:00", 0, 0},
    {"1970-01-01 00:00Z", 0, 0},
    {"1970-01-02", DAY, 0},
    {"1969-12-31", -DAY, 0},
    {"1969-12-31T23:59:59.5", -1, 500000000},
    {"2026-01-31T12:00:00.0000000Z", 1769860800, 0},
    {"2026-01-31T12:34:56", 1769862896, 0},
    {"2000-02-29", 951782400, 0},
    {"2024-02-29", 1709164800, 0},
    {"1600-02-29", -11670998400, 0},
    {"0001-01-01", -62135596800, 0},
    {"0001-01-01T00:00:00Z", -62135596800, 0},
    {"9999-12-31T23:59:59.999999999Z", 253402300799, 999999999},
    /* fractions */
    {"1970-01-01T00:00:00.1", 0, 100000000},
    {"1970-01-01T00:00:00.000000001", 0, 1},
    {"1970-01-01T00:00:00.0000000019", 0, 1},
    {"1970-01-01T00:00:00.999999999999999999Z", 0, 999999999},
    {"1970-01-01T00:00:00.120+01:00", -3600, 120000000},
    /* zones */
    {"1970-01-01T01:00:00+01:00", 0, 0},
    {"1970-01-01T01:00:00+0100", 0, 0},
    {"1970-01-01T01:00:00+01", 0, 0},
    {"1970-01-01T01:00+01:00", 0, 0},
    {"1969-12-31T23:00:00-01:00", 0, 0},
    {"1970-01-01T05:45:00+05:45", 0, 0},
    {"1969-12-31T20:30:00-0330", 0, 0},
    {"1970-01-01T00:00:00-00:00", 0, 0},
    {"1970-01-01T23:59:00+23:59", 0, 0},
    {"0001-01-01T00:00:00-00:01", -62135596740, 0},
    {"9999-12-31T23:59:59+00:01", 253402300739, 0},
};

static const char *const bad[] = {
    "",
    " ",
    "1",
    "1970",
    "1970-01",
    "1970-01-0",
    "197-01-01",
    "19700101",
    "1970-1-01",
    "1970/01/01",
    "1970-01-01 ",
    " 1970-01-01",
    "+1970-01-01",
    "-1970-01-01",
    "01970-01-01",
    "1970-01-01x",
    "1970-W01-1",
    "1970-001",
    /* calendar */
    "0000-01-01",
    "1970-00-01",
    "1970-13-01",
    "1970-01-00",
    "1970-01-32",
    "1970-02-29",
    "1900-02-29",
    "2100-02-29",
    "2023-02-29",
    "2024-02-30",
    "1970-04-31",
    "1970-06-31",
    "1970-09-31",
    "1970-11-31",
    /* time */
    "1970-01-01T",
    "1970-01-01T00",
    "1970-01-01T00:",
    "1970-01-01T00:0",
    "1970-01-01T0:00",
    "1970-01-01T24:00:00",
    "1970-01-01T00:60",
    "1970-01-01T00:00:60",
    "1970-01-01T23:59:60Z",
    "1970-01-01T00:00:",
    "1970-01-01T00:00:0",
    "1970-01-01T000000",
    "1970-01-01  00:00",
    "1970-01-01_00:00",
    "1970-01-01T 0:00",
    "1970-01-01T-1:00",
    /* fraction */
    "1970-01-01T00:00:00.",
    "1970-01-01T00:00:00.Z",
    "1970-01-01T00:00:00,5",
    "1970-01-01T00:00.5",
    "1970-01-01T00:00:00.1234567890123456789",
    "1970-01-01T00:00:00.1.1",
    /* zone */
    "1970-01-01Z",
    "1970-01-01+01:00",
    "1970-01-01T00:00:00ZZ",
    "1970-01-01T00:00:00 Z",
    "1970-01-01T00:00:00+",
    "1970-01-01T00:00:00+1",
    "1970-01-01T00:00:00+1:00",
    "1970-01-01T00:00:00+24:00",
    "1970-01-01T00:00:00+00:60",
    "1970-01-01T00:00:00+01:",
    "1970-01-01T00:00:00+01:0",
    "1970-01-01T00:00:00+010",
    "1970-01-01T00:00:00+01000",
    "1970-01-01T00:00:00UTC",
    "1970-01-01T00:00:00+01:00Z",
    "1970-01-01T00:00:00--01:00",
    /* outside of the years in UTC */
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
};

START_TEST(good_forms_are_read)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct instant at = {0, 7};

        ck_assert_msg(datetime_parse(span_str(good[i].text), &at), "%s", good[i].text);
        ck_assert_msg(at.seconds == good[i].seconds && at.nanos == good[i].nanos,
                      "%s: %" PRId64 " and %" PRIu32, good[i].text, at.seconds, at.nanos);
    }
}
END_TEST

START_TEST(bad_forms_are_refused)
{
    struct instant at = {42, 42};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!datetime_parse(span_str(bad[i]), &at), "%s", bad[i]);
    ck_assert_int_eq(at.seconds, 42);
    ck_assert(!datetime_parse(SPAN("1970-01-01\0"), &at));
}
END_TEST

static int naive_month_days(int year, int month)
{
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    if (month == 2)
        return leap ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static bool day_comes_back(const struct datetime_parts *date, int64_t days)
{
    struct datetime_parts parts;
    struct instant at;
    char text[32];

    snprintf(text, sizeof(text), "%04d-%02d-%02d", date->year, date->month, date->day);
    if (!datetime_parse(span_str(text), &at) || at.seconds != days * DAY)
        return false;
    datetime_parts((struct instant){days * DAY + DAY - 1, 0}, &parts);
    return parts.year == date->year && parts.month == date->month && parts.day == date->day &&
           parts.day_of_week == date->day_of_week && parts.hour == 23 && parts.second == 59;
}

static void next_day(struct datetime_parts *date)
{
    date->day_of_week = (date->day_of_week + 1) % 7;
    if (date->day++ < naive_month_days(date->year, date->month))
        return;
    date->day = 1;
    if (date->month++ < 12)
        return;
    date->month = 1;
    date->year++;
}

/* Against a calendar that counts along from the Monday 0001-01-01. */
START_TEST(every_day_comes_back)
{
    struct datetime_parts date = {.year = 1, .month = 1, .day = 1, .day_of_week = 1};
    int64_t days = -719162;

    for (; date.year <= 9999; next_day(&date), days++)
        if (!day_comes_back(&date, days))
            ck_abort_msg("%04d-%02d-%02d", date.year, date.month, date.day);
    ck_assert_int_eq(days, 2932897);
}
END_TEST

START_TEST(parts_are_taken_apart)
{
    struct datetime_parts parts;
    struct instant at;

    ck_assert(datetime_parse(SPAN("2026-02-01T01:02:03.9+02:00"), &at));
    datetime_parts(at, &parts);
    ck_assert_int_eq(parts.year, 2026);
    ck_assert_int_eq(parts.month, 1);
    ck_assert_int_eq(parts.day, 31);
    ck_assert_int_eq(parts.hour, 23);
    ck_assert_int_eq(parts.minute, 2);
    ck_assert_int_eq(parts.second, 3);
    ck_assert_int_eq(parts.day_of_week, 6);
    datetime_parts((struct instant){-1, 0}, &parts);
    ck_assert_int_eq(parts.second, 59);
    ck_assert_int_eq(parts.day_of_week, 3);
}
END_TEST

/* Each later than the one before. */
static const char *const ascending[] = {
    "0001-01-01",
    "1969-12-31T23:59:59.999999999Z",
    "1970-01-01",
    "1970-01-01T00:00:00.000000001",
    "2026-01-31T12:00:00+01:00",
    "2026-01-31T12:00:00Z",
    "2026-01-31T12:00:00.5Z",
    "2026-01-31T12:00:00-01:00",
    "9999-12-31T23:59:59.999999999",
};

START_TEST(instants_are_ordered)
{
    for (size_t i = 0; i < ARRAY_LEN(ascending); i++)
        for (size_t j = 0; j < ARRAY_LEN(ascending); j++) {
            struct instant a, b;
            int order;

            ck_assert(datetime_parse(span_str(ascending[i]), &a));
            ck_assert(datetime_parse(span_str(ascending[j]), &b));
            order = datetime_cmp(a, b);
            ck_assert_msg(i < j   ? order < 0
                          : i > j ? order > 0
                                  : order == 0,
                          "%s, %s", ascending[i], ascending[j]);
        }
}
END_TEST

static const struct {
    int64_t unix_ns;
    const char *text;
} written[] = {
    {0, "1970-01-01T00:00:00.0000000Z"},
    {99, "1970-01-01T00:00:00.0000000Z"},
    {100, "1970-01-01T00:00:00.0000001Z"},
    {-1, "1969-12-31T23:59:59.9999999Z"},
    {INT64_C(1769860800123456789), "2026-01-31T12:00:00.1234567Z"},
    {INT64_MAX, "2262-04-11T23:47:16.8547758Z"},
    {INT64_MIN, "1677-09-21T00:12:43.1452241Z"},
};

START_TEST(instants_are_written)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        buf_clear(&b);
        datetime_add(&b, written[i].unix_ns);
        ck_span_is(buf_span(&b), span_str(written[i].text));
    }
    buf_done(&b);
}
END_TEST

START_TEST(what_is_written_is_read)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < 20000; i++) {
        int64_t unix_ns = (int64_t)rng_u64();
        struct instant at;

        buf_clear(&b);
        datetime_add(&b, unix_ns);
        ck_assert(datetime_parse(buf_span(&b), &at));
        ck_assert_int_eq(at.seconds, datetime_from_unix_ns(unix_ns).seconds);
        ck_assert_uint_eq(at.nanos, datetime_from_unix_ns(unix_ns).nanos / 100 * 100);
    }
    buf_done(&b);
}
END_TEST

static __int128 nanoseconds(struct instant at)
{
    return (__int128)at.seconds * 1000000000 + at.nanos;
}

START_TEST(nanoseconds_come_back)
{
    static const int64_t edges[] = {0,           1,           -1,        999999999, 1000000000,
                                    -1000000000, -1000000001, INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < ARRAY_LEN(edges); i++)
        ck_assert(nanoseconds(datetime_from_unix_ns(edges[i])) == edges[i]);
    for (int i = 0; i < 20000; i++) {
        int64_t unix_ns = (int64_t)rng_u64();
        struct instant at = datetime_from_unix_ns(unix_ns);

        ck_assert_uint_lt(at.nanos, 1000000000);
        ck_assert(nanoseconds(at) == unix_ns);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, good_forms_are_read);
    tcase_add_test(tc, bad_forms_are_refused);
    tcase_add_test(tc, every_day_comes_back);
    tcase_add_test(tc, parts_are_taken_apart);
    tcase_add_test(tc, instants_are_ordered);
    tcase_add_test(tc, instants_are_written);
    tcase_add_test(tc, what_is_written_is_read);
    tcase_add_test(tc, nanoseconds_come_back);
}
