#include "fetch/fetch.h"

#include "testing.h"

#include "base/arena.h"
#include "base/macros.h"
#include "fetch/egress.h"
#include "fetch/fetch_url.h"

#include <string.h>

static struct egress_rules rules;
static struct arena arena;

static void begin(void)
{
    egress_init(&rules);
    arena_init(&arena);
}

static void end(void)
{
    egress_done(&rules);
    arena_done(&arena);
}

START_TEST(normal_forms)
{
    static const char *const cases[][2] = {
        {"http://a.test", "http://a.test/"},
        {"https://a.test/", "https://a.test/"},
        {"HTTP://A.Test/Path", "http://a.test/Path"},
        {"http://a.test:80/", "http://a.test/"},
        {"https://a.test:443/", "https://a.test/"},
        {"https://a.test:80/", "https://a.test:80/"},
        {"http://a.test:8080", "http://a.test:8080/"},
        {"http://a.test:0080/", "http://a.test/"},
        {"http://a.test./x", "http://a.test/x"},
        {"http://a.test?q=1", "http://a.test/?q=1"},
        {"http://a.test/?", "http://a.test/?"},
        {"http://a.test/p?q=a/b?c#part", "http://a.test/p?q=a/b?c"},
        {"http://a.test#part", "http://a.test/"},
        {"http://a.test/a/./b/../c", "http://a.test/a/c"},
        {"http://a.test/../..", "http://a.test/"},
        {"http://a.test/%41%2f%2F", "http://a.test/%41%2f%2F"},
        {"http://a.test/\xc3\xbc?\xc3\xbc", "http://a.test/%c3%bc?%c3%bc"},
        {"http://a_b-c.test/", "http://a_b-c.test/"},
        {"http://1.2a/", "http://1.2a/"},
        {"http://192.0.2.1./", "http://192.0.2.1/"},
        {"http://192.0.2.1:81/", "http://192.0.2.1:81/"},
        {"http://3221225985/", "http://192.0.2.1/"},
        {"http://0xc0.0.0x201/", "http://192.0.2.1/"},
        {"http://127.1/", "http://127.0.0.1/"},
        {"http://[2001:DB8:0:0::A]:81/", "http://[2001:db8::a]:81/"},
        {"http://[::1]/", "http://[::1]/"},
        {"http://localhost/", "http://localhost/"},
    };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct span normal, again;

        ck_ok(fetch_check_url(&rules, span_str(cases[i][0]), &arena, &normal));
        ck_span_is(normal, span_str(cases[i][1]));
        ck_ok(fetch_check_url(&rules, normal, &arena, &again));
        ck_span_is(again, normal);
    }
    end();
}
END_TEST

START_TEST(refused)
{
    static const char *const cases[][2] = {
        {"", "http:// or https://"},
        {"a.test/x", "http:// or https://"},
        {"//a.test/x", "http:// or https://"},
        {"/Svc.Echo/x=1", "http:// or https://"},
        {"ftp://a.test/", "http:// or https://"},
        {"file:///etc/passwd", "http:// or https://"},
        {"javascript:alert(1)", "http:// or https://"},
        {"socks5h://a.test:1/", "http:// or https://"},
        {"http:/a.test/", "http:// or https://"},
        {"http:a.test", "http:// or https://"},
        {"http:///a.test/", "no host"},
        {"http://", "no host"},
        {"http://?x", ""},
        {"http://:80/", ""},
        {"http://user@a.test/", "user name or password"},
        {"http://user:pass@a.test/", "user name or password"},
        {"http://@a.test/", ""},
        {"http://a.test:0/", "port"},
        {"http://a.test:65536/", "port"},
        {"http://a.test:99999999999999999999/", "port"},
        {"http://a.test:http/", "port"},
        {"http://a.test:-1/", "port"},
        {"http://a b.test/", "byte 8"},
        {"http://a.test/a b", "byte 15"},
        {" http://a.test/", "byte 0"},
        {"http://a.test/\n", "byte 14"},
        {"http://a.test/\x7f", "byte 14"},
        {"http://a..test/", "host"},
        {"http://.test/", "host"},
        {"http://./", "host"},
        {"http://a\\b.test/", "host"},
        {"http://a,b.test/", "host"},
        {"http://a*.test/", "host"},
        {"http://%61.test/", "host"},
        {"http://a.test\xff/", "punycode"},
        {"http://\xc3\xbc.test/", "punycode"},
        {"http://[::1/", ""},
        {"http://[1.2.3.4]/", ""},
        {"http://[fe80::1%25lo]/", "host"},
        {"http://[fe80::1]/", "link-local"},
        {"http://::1/", ""},
        {"http://169.254.169.254/latest", "169.254.169.254"},
        {"http://2852039166/latest", "169.254.169.254"},
        {"http://[::ffff:169.254.169.254]/", "169.254.169.254"},
        {"http://0.0.0.0/", "0.0.0.0"},
        {"http://0/", "0.0.0.0"},
        {"http://0x7f.1./", "host"},
        {"http://017700000001./", "host"},
        {"http://1.2.3.4.5/", "host"},
        {"http://a.0x/", "host"},
        {"http://a.256/", "host"},
    };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct span normal;
        struct err *e = fetch_check_url(&rules, span_str(cases[i][0]), &arena, &normal);

        ck_assert_msg(e != NULL, "'%s' is accepted", cases[i][0]);
        ck_assert_int_eq(err_code(e), ERR_INVALID_ENTITY);
        ck_assert_msg(span_find(err_message(e), span_str(cases[i][1])) != SIZE_MAX,
                      "'%s': '%.*s' lacks '%s'", cases[i][0], SPAN_FMT(err_message(e)),
                      cases[i][1]);
        err_free(e);
    }
    end();
}
END_TEST

START_TEST(zero_byte)
{
    struct span normal;

    begin();
    ck_fails(fetch_check_url(&rules, SPAN("http://a.test/\0x"), &arena, &normal),
             ERR_INVALID_ENTITY, "byte 14");
    end();
}
END_TEST

static struct span url_of(struct buf *b, size_t host_bytes, size_t label_bytes, size_t path_bytes)
{
    buf_clear(b);
    buf_add_str(b, "http://");
    for (size_t i = 1; i <= host_bytes; i++)
        buf_add_char(b, i % (label_bytes + 1) == 0 ? '.' : 'a');
    for (size_t i = 0; i < path_bytes; i++)
        buf_add_char(b, '/');
    return buf_span(b);
}

START_TEST(lengths)
{
    struct buf b = {.max = 100000};
    struct span normal;

    begin();
    ck_ok(fetch_check_url(&rules, url_of(&b, 253, 63, 1), &arena, &normal));
    ck_fails(fetch_check_url(&rules, url_of(&b, 254, 63, 1), &arena, &normal), ERR_INVALID_ENTITY,
             "host");
    ck_fails(fetch_check_url(&rules, url_of(&b, 64, 64, 1), &arena, &normal), ERR_INVALID_ENTITY,
             "host");
    ck_ok(fetch_check_url(&rules, url_of(&b, 5, 63, 8192 - 12), &arena, &normal));
    ck_fails(fetch_check_url(&rules, url_of(&b, 5, 63, 8192 - 11), &arena, &normal),
             ERR_INVALID_ENTITY, "longer than 8192 bytes");
    url_of(&b, 5, 63, 1);
    for (size_t i = 0; i < 8190 / 3; i++)
        buf_add_char(&b, '\xff');
    ck_fails(fetch_check_url(&rules, buf_span(&b), &arena, &normal), ERR_INVALID_ENTITY,
             "longer than 8192 bytes");
    buf_truncate(&b, b.n - 5); /* 13 bytes, and 2725 times `%ff` */
    ck_ok(fetch_check_url(&rules, buf_span(&b), &arena, &normal));
    ck_assert_uint_eq(normal.n, 8188);
    buf_done(&b);
    end();
}
END_TEST

START_TEST(rules_count)
{
    static const char *const local[] = {"http://127.0.0.1/", "http://[::1]/", "http://localhost/",
                                        "http://a.LOCALHOST./", "http://10.0.0.1/"};
    struct span normal;

    begin();
    rules.preset = EGRESS_PUBLIC_ONLY;
    for (size_t i = 0; i < ARRAY_LEN(local); i++)
        ck_fails(fetch_check_url(&rules, span_str(local[i]), &arena, &normal), ERR_INVALID_ENTITY,
                 "not allowed");
    ck_ok(fetch_check_url(&rules, SPAN("http://a.test/"), &arena, &normal));
    ck_ok(ip_ranges_add(&rules.allow, SPAN("127.0.0.1")));
    ck_ok(fetch_check_url(&rules, SPAN("http://127.0.0.1/"), &arena, &normal));
    ck_ok(fetch_check_url(&rules, SPAN("http://localhost/"), &arena, &normal));
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, normal_forms);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, zero_byte);
    tcase_add_test(tc, lengths);
    tcase_add_test(tc, rules_count);
}
