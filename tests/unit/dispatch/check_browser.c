#include "asking.h"
#include "base/header_field.h"

#include "dispatch/browser.h"
#include "rest/rest.h"

static const char resources[] = "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]";

static const char *hosts[] = {"svc.example", "fd00::5", NULL};

static void setup(void)
{
    asking_open(resources);
    asking.service->rest.hosts = hosts;
}

static const struct {
    const char *host;
    bool is_own;
} named[] = {
    {"localhost", true},
    {"LOCALHOST:8080", true},
    {"a.b.localhost:1", true},
    {"127.0.0.1", true},
    {"127.9.9.9:80", true},
    {"[::1]", true},
    {"[::1]:8080", true},
    {"[::ffff:127.0.0.1]", true},
    {"svc.example", true},
    {"Svc.Example:443", true},
    {"[fd00::5]:1", true},
    {"evil.example", false},
    {"xlocalhost", false},
    {"localhost.evil", false},
    {".localhost", false},
    {"10.0.0.1", false},
    {"[fd00::6]", false},
    {"127.0.0.1.evil.example", false},
    {"svc.example.", false},
    {"[::ffff:10.0.0.1]:80", false},
    {"", false},
};

START_TEST(a_host_is_ours_or_not)
{
    struct request request = {
        .method = SPAN("GET"),
        .target = SPAN("/Person"),
        .host = span_str(named[_i].host),
    };

    ask_request(&request);
    ck_assert_int_eq(asking.answer.status, named[_i].is_own ? 204 : 403);
    request.is_local = true;
    ask_request(&request);
    ck_status(204);
    asking.service->rest.hosts = NULL; /* any */
    request.is_local = false;
    ask_request(&request);
    ck_status(204);
}
END_TEST

static const struct {
    const char *headers;
    bool is_foreign;
} sent[] = {
    {NULL, false},
    {"Origin: http://localhost:8080", false},
    {"Origin: https://LOCALHOST:8080", false},
    {"Origin: http://localhost", true},
    {"Origin: http://localhost:3000", true},
    {"Origin: ftp://localhost:8080", true},
    {"Origin: null", true},
    {"Origin: ", true},
    {"Sec-Fetch-Site: cross-site", true},
    {"Sec-Fetch-Site: same-site", false},
    {"Sec-Fetch-Site: same-origin", false},
    {"Sec-Fetch-Site: none", false},
};

START_TEST(a_page_is_ours_or_not)
{
    struct span line = span_str(sent[_i].headers);
    struct span name = line.p == NULL ? line : span_split(&line, ':');
    const struct header_field header = {name, span_trim(line)};
    const struct request request = {
        .method = SPAN("POST"),
        .target = SPAN("/Person"),
        .host = SPAN("localhost:8080"),
        .headers = &header,
        .header_count = name.p != NULL ? 1 : 0,
        .body = SPAN("{\"Name\":\"Ann\"}"),
    };

    ask_request(&request);
    ck_assert_int_eq(asking.answer.status, sent[_i].is_foreign ? 403 : 201);
    ck_assert_uint_eq(asking_count("Shop.Person"), sent[_i].is_foreign ? 0 : 1);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
}
END_TEST

START_TEST(bytes_are_confined)
{
    ask("GET", "/Svc.Health", NULL);
    ck_header_eq("Content-Security-Policy", "sandbox");
    ask("GET", "/Person", NULL);
    ck_assert_ptr_null(answered_header("Content-Security-Policy").p);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, asking_close);
    tcase_add_loop_test(tc, a_host_is_ours_or_not, 0, ARRAY_LEN(named));
    tcase_add_loop_test(tc, a_page_is_ours_or_not, 0, ARRAY_LEN(sent));
    tcase_add_test(tc, bytes_are_confined);
}
