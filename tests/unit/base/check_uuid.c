#include "testing.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/uuid.h"

#include <string.h>

#define MS INT64_C(1000000)
#define NOON INT64_C(1769860800000000000) /* 2026-01-31T12:00:00Z */
#define SERIAL_MOST ((UINT64_C(1) << 62) - 1)

static uint64_t milliseconds(const struct uuid *u)
{
    uint64_t ms = 0;

    for (size_t i = 0; i < 6; i++)
        ms = ms << 8 | u->b[i];
    return ms;
}

static void ck_is_version_7(const struct uuid *u)
{
    ck_assert_uint_eq(u->b[6] >> 4, 7);
    ck_assert_uint_eq(u->b[8] >> 6, 2);
}

static void ck_less(const struct uuid *a, const struct uuid *b)
{
    ck_assert_int_lt(memcmp(a->b, b->b, sizeof(a->b)), 0);
}

START_TEST(new_ones_carry_version_and_time)
{
    struct uuid u;

    clock_fake(NOON + 7 * MS + 999999, 0);
    u = uuid_new();
    ck_is_version_7(&u);
    ck_assert_uint_eq(milliseconds(&u), (NOON / MS) + 7);
}
END_TEST

START_TEST(each_is_greater_within_a_millisecond)
{
    struct uuid before, u;

    clock_fake(NOON, 0);
    before = uuid_new();
    for (int i = 0; i < 20000; i++, before = u) {
        u = uuid_new();
        ck_is_version_7(&u);
        ck_less(&before, &u);
    }
    ck_assert_uint_eq(milliseconds(&u), NOON / MS);
}
END_TEST

START_TEST(each_is_greater_when_the_clock_goes_back)
{
    struct uuid before, u;

    clock_fake(NOON, 0);
    before = uuid_new();
    for (int64_t back = 1; back < 1000; back++, before = u) {
        clock_fake(NOON - back * 3600 * 1000 * MS, 0);
        u = uuid_new();
        ck_less(&before, &u);
    }
    clock_fake(NOON + MS, 0);
    u = uuid_new();
    ck_less(&before, &u);
    ck_assert_uint_eq(milliseconds(&u), NOON / MS + 1);
}
END_TEST

START_TEST(each_is_greater_as_time_goes_on)
{
    struct uuid before, u;

    clock_fake(NOON, 0);
    before = uuid_new();
    for (int i = 0; i < 10000; i++, before = u) {
        clock_advance(rng_below(3 * MS));
        u = uuid_new();
        ck_less(&before, &u);
    }
}
END_TEST

/* Steps must not give away the next: no difference comes twice. */
START_TEST(steps_are_random)
{
    struct uuid before, u;
    uint64_t last_step = 0;

    clock_fake(NOON, 0);
    before = uuid_new();
    for (int i = 0; i < 1000; i++, before = u) {
        uint64_t step;

        u = uuid_new();
        step = uuid_serial(&u) - uuid_serial(&before);
        ck_assert_uint_ne(step, last_step);
        last_step = step;
    }
}
END_TEST

static const uint64_t serials[] = {0,
                                   1,
                                   255,
                                   256,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   UINT64_C(0x123456789abcdef),
                                   SERIAL_MOST - 1,
                                   SERIAL_MOST};

START_TEST(serials_come_back)
{
    for (size_t i = 0; i < ARRAY_LEN(serials); i++) {
        struct uuid u = uuid_from_serial(NOON, 0xfabc, serials[i]);
        struct uuid again = uuid_from_serial(NOON + 1, 0x0abc, serials[i]);

        ck_is_version_7(&u);
        ck_assert_uint_eq(uuid_serial(&u), serials[i]);
        ck_assert_uint_eq(milliseconds(&u), NOON / MS);
        ck_assert_uint_eq((u.b[6] & 15u) << 8 | u.b[7], 0xabc);
        ck_assert(uuid_eq(&u, &again));
    }
    for (int i = 0; i < 10000; i++) {
        uint64_t serial = rng_u64() >> (2 + rng_below(62));
        struct uuid u = uuid_from_serial((int64_t)(rng_u64() >> 1), (uint16_t)rng_u64(), serial);

        ck_is_version_7(&u);
        ck_assert_uint_eq(uuid_serial(&u), serial);
    }
}
END_TEST

START_TEST(serials_order_within_a_millisecond)
{
    struct uuid before = uuid_from_serial(NOON, 5, 0);

    for (uint64_t serial = 1; serial < SERIAL_MOST / 3; serial *= 3) {
        struct uuid u = uuid_from_serial(NOON, 5, serial);

        ck_less(&before, &u);
        before = u;
    }
}
END_TEST

START_TEST(times_before_1970_count_as_1970)
{
    struct uuid u = uuid_from_serial(-1, 0, 1);

    ck_assert_uint_eq(milliseconds(&u), 0);
}
END_TEST

static const struct uuid sample = {{0x01, 0x9c, 0x13, 0xa4, 0x5b, 0xef, 0x7c, 0xd0, 0x9a, 0x10,
                                    0x20, 0x30, 0x40, 0x50, 0x60, 0xff}};

START_TEST(text_form_is_canonical)
{
    char text[UUID_TEXT_BYTES + 1];
    struct buf b;

    uuid_text(&sample, text);
    ck_assert_str_eq(text, "019c13a4-5bef-7cd0-9a10-2030405060ff");
    buf_init(&b, BUF_NO_CAP);
    uuid_add(&b, &sample);
    ck_span_eq(buf_span(&b), "019c13a4-5bef-7cd0-9a10-2030405060ff");
    buf_done(&b);
}
END_TEST

START_TEST(either_case_is_read)
{
    struct uuid u;

    ck_assert(uuid_parse(SPAN("019c13a4-5bef-7cd0-9a10-2030405060ff"), &u));
    ck_assert(uuid_eq(&u, &sample));
    ck_assert(uuid_parse(SPAN("019C13A4-5Bef-7cD0-9A10-2030405060FF"), &u));
    ck_assert(uuid_eq(&u, &sample));
    ck_span_is(uuid_key(&u), span_of((const char *)sample.b, 16));
    u.b[15] ^= 1;
    ck_assert(!uuid_eq(&u, &sample));
}
END_TEST

START_TEST(other_forms_are_refused)
{
    static const char *const bad[] = {
        "",
        "019c13a4",
        "019c13a45bef7cd09a102030405060ff",
        "019c13a4-5bef-7cd0-9a10-2030405060f",
        "019c13a4-5bef-7cd0-9a10-2030405060ff0",
        "{019c13a4-5bef-7cd0-9a10-2030405060ff}",
        "019c13a45-bef-7cd0-9a10-2030405060ff",
        "019c13a4-5bef-7cd0-9a10_2030405060ff",
        "019c13a4-5bef-7cd09-a10-2030405060ff",
        "019c13a4-5bef-7cd0-9a10-2030405060fg",
        "g19c13a4-5bef-7cd0-9a10-2030405060ff",
        "019c13a4-5bef-7cd0-9a10-20304050-0ff",
        " 19c13a4-5bef-7cd0-9a10-2030405060ff",
    };
    struct uuid u = sample;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!uuid_parse(span_str(bad[i]), &u), "%s", bad[i]);
    ck_assert(uuid_eq(&u, &sample));
}
END_TEST

/* Every byte in the place of each digit and hyphen. */
START_TEST(each_place_takes_its_characters_only)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    char text[UUID_TEXT_BYTES + 1];
    struct uuid u;

    for (size_t at = 0; at < UUID_TEXT_BYTES; at++) {
        bool is_hyphen = at == 8 || at == 13 || at == 18 || at == 23;

        for (int c = 0; c < 256; c++) {
            bool fits = is_hyphen ? c == '-' : c != 0 && strchr(digits, c) != NULL;
            bool is_own = fits && (c < 'A' || c > 'F');

            uuid_text(&sample, text);
            text[at] = (char)c;
            ck_assert_int_eq(uuid_parse(span_of(text, UUID_TEXT_BYTES), &u), fits);
            ck_assert_int_eq(uuid_parse_own(span_of(text, UUID_TEXT_BYTES), &u), is_own);
        }
    }
    ck_assert(!uuid_parse_own(span_of(NULL, 0), &u));
}
END_TEST

START_TEST(random_ones_come_back)
{
    for (int i = 0; i < 10000; i++) {
        char text[UUID_TEXT_BYTES + 1];
        struct uuid u, back;

        rng_secret(u.b, sizeof(u.b));
        uuid_text(&u, text);
        ck_assert(uuid_parse(span_str(text), &back));
        ck_assert(uuid_eq(&u, &back));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, new_ones_carry_version_and_time);
    tcase_add_test(tc, each_is_greater_within_a_millisecond);
    tcase_add_test(tc, each_is_greater_when_the_clock_goes_back);
    tcase_add_test(tc, each_is_greater_as_time_goes_on);
    tcase_add_test(tc, steps_are_random);
    tcase_add_test(tc, serials_come_back);
    tcase_add_test(tc, serials_order_within_a_millisecond);
    tcase_add_test(tc, times_before_1970_count_as_1970);
    tcase_add_test(tc, text_form_is_canonical);
    tcase_add_test(tc, either_case_is_read);
    tcase_add_test(tc, other_forms_are_refused);
    tcase_add_test(tc, each_place_takes_its_characters_only);
    tcase_add_test(tc, random_ones_come_back);
}
