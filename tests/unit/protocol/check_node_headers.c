#include "testing.h"

#include "protocol/node_headers.h"

#include <string.h>

#define NOW INT64_C(1800000000123)

static const struct span secret = SPAN_INIT("0123456789abcdef0123456789abcdef");
static const struct passed_request request = {SPAN_INIT("POST"), SPAN_INIT("/Shop.Person/Name=Ann"),
                                              SPAN_INIT("{\"Name\":\"Ann\"}")};

static const struct passed_on askers[] = {
    {SPAN_INIT("a"), SPAN_INIT("10.0.0.7"), SPAN_INIT("acme/portal"), NOW},
    {SPAN_INIT("node-2.b_c"), SPAN_INIT("2001:db8::1"), {NULL, 0}, NOW - 30000},
    {SPAN_INIT("a"), SPAN_INIT("unix"), SPAN_INIT("/"), NOW + 30000},
    {SPAN_INIT("a"), SPAN_INIT(""), SPAN_INIT(";\x01\xff-"), NOW},
};

static void check_same(struct span a, struct span b)
{
    ck_assert_msg(span_eq(a, b) && (a.p == NULL) == (b.p == NULL), "'%.*s' is not '%.*s'",
                  SPAN_FMT(a), SPAN_FMT(b));
}

START_TEST(what_is_told_is_read)
{
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        struct passed_on who;
        struct arena a;
        struct buf b;

        arena_init(&a);
        buf_init(&b, BUF_NO_CAP);
        passed_on_add(&b, secret, &askers[i], &request);
        for (size_t k = 0; k < b.n; k++)
            ck_assert_msg(b.p[k] > ' ' && b.p[k] < 0x7f, "a header value is visible ASCII");
        ck_ok(passed_on_read(buf_span(&b), secret, &request, NOW, &a, &who));
        check_same(who.node, askers[i].node);
        check_same(who.client, askers[i].client);
        check_same(who.key, askers[i].key);
        ck_assert_int_eq(who.at_unix_ms, askers[i].at_unix_ms);
        buf_done(&b);
        arena_done(&a);
    }
}
END_TEST

static void refused(struct span value, struct span with, const struct passed_request *of,
                    int64_t now_unix_ms, const char *says)
{
    struct passed_on who;
    struct arena a;

    arena_init(&a);
    ck_fails(passed_on_read(value, with, of, now_unix_ms, &a, &who), ERR_NOT_AUTHORIZED, says);
    arena_done(&a);
}

START_TEST(it_is_good_for_that_request_alone)
{
    static const struct passed_request others[] = {
        {SPAN_INIT("PUT"), SPAN_INIT("/Shop.Person/Name=Ann"), SPAN_INIT("{\"Name\":\"Ann\"}")},
        {SPAN_INIT("POST"), SPAN_INIT("/Shop.Person/Name=Ann "), SPAN_INIT("{\"Name\":\"Ann\"}")},
        {SPAN_INIT("POST"), SPAN_INIT("/Shop.Person/Name=Ann"), SPAN_INIT("{\"Name\":\"Bob\"}")},
        {SPAN_INIT("POST"), SPAN_INIT("/Shop.Person/Name=Ann"), SPAN_INIT("")},
        {SPAN_INIT("POST/"), SPAN_INIT("Shop.Person/Name=Ann"), SPAN_INIT("{\"Name\":\"Ann\"}")},
    };
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    passed_on_add(&b, secret, &askers[0], &request);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        refused(buf_span(&b), secret, &others[i], NOW, "for this request");
    refused(buf_span(&b), SPAN("0123456789abcdef0123456789abcdeF"), &request, NOW,
            "a node of this cluster");
    buf_done(&b);
}
END_TEST

/* Any byte changed, left out or doubled. */
START_TEST(nothing_in_it_can_be_changed)
{
    struct buf b, other;

    buf_init(&b, BUF_NO_CAP);
    buf_init(&other, BUF_NO_CAP);
    passed_on_add(&b, secret, &askers[0], &request);
    for (size_t i = 0; i < b.n; i++) {

        b.p[i] ^= 1;
        refused(buf_span(&b), secret, &request, NOW, "Svc-cluster: ");
        b.p[i] ^= 1;
        buf_clear(&other);
        buf_add(&other, span_of(b.p, i));
        refused(buf_span(&other), secret, &request, NOW, "Svc-cluster: ");
        buf_add(&other, span_of(b.p + i + 1, b.n - i - 1));
        refused(buf_span(&other), secret, &request, NOW, "Svc-cluster: ");
    }
    buf_add_char(&b, ';');
    refused(buf_span(&b), secret, &request, NOW, "not of this version");
    buf_done(&b);
    buf_done(&other);
}
END_TEST

START_TEST(it_is_good_for_a_moment)
{
    static const struct {
        int64_t now;
        bool is_good;
    } cases[] = {
        {NOW, true},          {NOW + 30000, true}, {NOW + 30001, false},   {NOW - 30000, true},
        {NOW - 30001, false}, {0, false},          {NOW + 86400000, false}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct passed_on who;
        struct arena a;
        struct buf b;

        arena_init(&a);
        buf_init(&b, BUF_NO_CAP);
        passed_on_add(&b, secret, &askers[0], &request);
        if (cases[i].is_good)
            ck_ok(passed_on_read(buf_span(&b), secret, &request, cases[i].now, &a, &who));
        else
            refused(buf_span(&b), secret, &request, cases[i].now, "at another time");
        buf_done(&b);
        arena_done(&a);
    }
}
END_TEST

START_TEST(what_is_none)
{
    static const char *const texts[] = {
        "",
        "1",
        "1;2;3;4;5",
        "2;1;a;b;-;00",
        ";;;;;",
        "1;;;;;",
        "1;1;a;b;-;0000000000000000000000000000000000000000000000000"
        "000000000000000"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        refused(span_str(texts[i]), secret, &request, NOW, "Svc-cluster: ");
}
END_TEST

START_TEST(least_serials)
{
    static const struct {
        const char *text;
        uint64_t serial;
        bool is_good;
    } cases[] = {{"0", 0, true},
                 {"17", 17, true},
                 {"18446744073709551615", UINT64_MAX, true},
                 {"18446744073709551616", 0, false},
                 {"", 0, false},
                 {"-1", 0, false},
                 {"+1", 0, false},
                 {"1.0", 0, false},
                 {"0x10", 0, false},
                 {"1, 2", 0, false},
                 {" 1", 0, false}};
    uint64_t serial = 99;

    ck_ok(min_serial_read(span_of(NULL, 0), &serial));
    ck_assert_uint_eq(serial, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (!cases[i].is_good) {
            ck_fails(min_serial_read(span_str(cases[i].text), &serial), ERR_INVALID_CONDITION_VALUE,
                     "Svc-min-serial");
            continue;
        }
        ck_ok(min_serial_read(span_str(cases[i].text), &serial));
        ck_assert_uint_eq(serial, cases[i].serial);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, what_is_told_is_read);
    tcase_add_test(tc, it_is_good_for_that_request_alone);
    tcase_add_test(tc, nothing_in_it_can_be_changed);
    tcase_add_test(tc, it_is_good_for_a_moment);
    tcase_add_test(tc, what_is_none);
    tcase_add_test(tc, least_serials);
}
