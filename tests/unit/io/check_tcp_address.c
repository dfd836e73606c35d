#include "testing.h"

#include "io/tcp.h"

#include <string.h>

#define X20 "xxxxxxxxxxxxxxxxxxxx"
#define X100 X20 X20 X20 X20 X20

static const struct {
    const char *given;
    const char *text; /* NULL: as given */
    const char *host;
    uint16_t port;
    bool is_unix, is_loopback;
} good[] = {
    {"127.0.0.1:8080", NULL, "127.0.0.1", 8080, false, true},
    {"127.255.0.1:1", NULL, "127.255.0.1", 1, false, true},
    {"0.0.0.0:80", NULL, "0.0.0.0", 80, false, false},
    {"10.1.2.3:65535", NULL, "10.1.2.3", 65535, false, false},
    {"128.0.0.1:0", NULL, "128.0.0.1", 0, false, false},
    {"127.0.0.1:0080", "127.0.0.1:80", "127.0.0.1", 80, false, true},
    {"[::1]:8080", NULL, "::1", 8080, false, true},
    {"[0:0:0:0:0:0:0:1]:08", "[::1]:8", "::1", 8, false, true},
    {"[::]:8080", NULL, "::", 8080, false, false},
    {"[FD00::A]:8080", "[fd00::a]:8080", "fd00::a", 8080, false, false},
    {"[::ffff:127.0.0.1]:8080", NULL, "::ffff:127.0.0.1", 8080, false, false},
    {"localhost:8080", NULL, "localhost", 8080, false, true},
    {"LocalHost:0", "localhost:0", "localhost", 0, false, true},
    {"unix:/run/svcd.sock", NULL, "/run/svcd.sock", 0, true, false},
    {"unix:a", NULL, "a", 0, true, false},
    {"unix:" X100 "1234567", NULL, X100 "1234567", 0, true, false},
};

START_TEST(parses)
{
    struct tcp_address a;
    const char *text = good[_i].text != NULL ? good[_i].text : good[_i].given;

    ck_ok(tcp_parse_address(span_str(good[_i].given), &a));
    ck_assert_str_eq(a.text, text);
    ck_assert_str_eq(a.host, good[_i].host);
    ck_assert_uint_eq(a.port, good[_i].port);
    ck_assert_int_eq(a.is_unix, good[_i].is_unix);
    ck_assert_int_eq(a.is_loopback, good[_i].is_loopback);
}
END_TEST

START_TEST(normal_form_is_stable)
{
    struct tcp_address once, again;

    ck_ok(tcp_parse_address(span_str(good[_i].given), &once));
    ck_ok(tcp_parse_address(span_str(once.text), &again));
    ck_assert_mem_eq(&once, &again, sizeof(once));
}
END_TEST

static const struct {
    struct span given;
    const char *message;
} wrong[] = {
    {SPAN_INIT(""), "'' lacks a port"},
    {SPAN_INIT("8080"), "'8080' lacks a port"},
    {SPAN_INIT("127.0.0.1"), "'127.0.0.1' lacks a port"},
    {SPAN_INIT("127.0.0.1:"), "'127.0.0.1:' has no port from 0 to 65535"},
    {SPAN_INIT("127.0.0.1:65536"), "no port from 0 to 65535"},
    {SPAN_INIT("127.0.0.1:-1"), "no port from 0 to 65535"},
    {SPAN_INIT("127.0.0.1:80a"), "no port from 0 to 65535"},
    {SPAN_INIT("127.0.0.1: 80"), "no port from 0 to 65535"},
    {SPAN_INIT("127.0.0.1:99999999999999999999"), "no port from 0 to 65535"},
    {SPAN_INIT(":8080"), "neither an IP address nor localhost"},
    {SPAN_INIT("127.0.0:8080"), "neither an IP address nor localhost"},
    {SPAN_INIT("127.0.0.256:8080"), "neither an IP address nor localhost"},
    {SPAN_INIT("127.0.0.01:8080"), "neither an IP address nor localhost"},
    {SPAN_INIT(" 127.0.0.1:8080"), "neither an IP address nor localhost"},
    {SPAN_INIT("example.com:80"), "neither an IP address nor localhost"},
    {SPAN_INIT("*:80"), "neither an IP address nor localhost"},
    {SPAN_INIT(X100 ":80"), "neither an IP address nor localhost"},
    {SPAN_INIT("http://127.0.0.1:80"), "lacks brackets"},
    {SPAN_INIT("::1:8080"), "lacks brackets around its IPv6 address"},
    {SPAN_INIT("::1"), "lacks brackets around its IPv6 address"},
    {SPAN_INIT("[::1:8080"), "lacks a closing bracket"},
    {SPAN_INIT("[::1]"), "lacks a port"},
    {SPAN_INIT("[::1]8080"), "lacks a port"},
    {SPAN_INIT("[::1]:"), "no port from 0 to 65535"},
    {SPAN_INIT("[]:80"), "something else than IPv6"},
    {SPAN_INIT("[127.0.0.1]:80"), "something else than IPv6"},
    {SPAN_INIT("[localhost]:80"), "something else than IPv6"},
    {SPAN_INIT("[fe80::1%eth0]:80"), "something else than IPv6"},
    {SPAN_INIT("unix:"), "lacks the path"},
    {SPAN_INIT("unix:" X100 "12345678"), "at most 107 bytes"},
    {SPAN_INIT("127.0.0.1\0:80"), "NUL"},
    {SPAN_INIT("unix:a\0b"), "NUL"},
};

START_TEST(refuses)
{
    struct tcp_address a = {.port = 7};

    ck_fails(tcp_parse_address(wrong[_i].given, &a), ERR_UNKNOWN, wrong[_i].message);
    ck_assert_uint_eq(a.port, 7);
}
END_TEST

START_TEST(a_huge_address_makes_a_short_message)
{
    static char huge[100000];
    struct tcp_address a;
    struct err *e;

    memset(huge, 'x', sizeof(huge));
    e = tcp_parse_address(span_of(huge, sizeof(huge)), &a);
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_lt(err_message(e).n, 400);
    err_free(e);
}
END_TEST

START_TEST(every_reason_has_a_text)
{
    for (unsigned i = 0; i < TCP_CLOSE_REASON_COUNT; i++)
        ck_assert_uint_gt(strlen(tcp_close_reason_text((enum tcp_close_reason)i)), 0);
    ck_assert_str_eq(tcp_close_reason_text(TCP_CLOSE_IDLE), "idle");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, parses, 0, ARRAY_LEN(good));
    tcase_add_loop_test(tc, normal_form_is_stable, 0, ARRAY_LEN(good));
    tcase_add_loop_test(tc, refuses, 0, ARRAY_LEN(wrong));
    tcase_add_test(tc, a_huge_address_makes_a_short_message);
    tcase_add_test(tc, every_reason_has_a_text);
}
