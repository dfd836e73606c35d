/* Requests as they arrive. */
#include "fetch_testing.h"

#include "testing.h"

#include "base/blob.h"

#include <stdlib.h>
#include <string.h>

struct request_case {
    const char *method;
    const char *body;  /* NULL: none */
    const char *first; /* the request begins with it */
    const char *has[3];
    const char *lacks[3];
};

static const struct request_case cases[] = {
    {"GET",
     NULL,
     "GET /x?y=z HTTP/1.1\r\n",
     {"\r\nUser-Agent: svcd/0.1.0\r\n"},
     {"Content-Length", "Content-Type", "Transfer-Encoding"}},
    {"DELETE", NULL, "DELETE /x?y=z HTTP/1.1\r\n", {NULL}, {"Content-Length", "Content-Type"}},
    {"REPORT", NULL, "REPORT /x?y=z HTTP/1.1\r\n", {NULL}, {"Content-Length"}},
    {"HEAD", NULL, "HEAD /x?y=z HTTP/1.1\r\n", {NULL}, {"Content-Length"}},
    {"HEAD", "[1]", "HEAD /x?y=z HTTP/1.1\r\n", {NULL}, {"Content-Length", "[1]"}},
    {"POST",
     NULL,
     "POST /x?y=z HTTP/1.1\r\n",
     {"\r\nContent-Length: 0\r\n"},
     {"Content-Type", "Expect"}},
    {"PUT", NULL, "PUT /x?y=z HTTP/1.1\r\n", {"\r\nContent-Length: 0\r\n"}, {"Content-Type"}},
    {"PATCH", NULL, "PATCH /x?y=z HTTP/1.1\r\n", {"\r\nContent-Length: 0\r\n"}, {"Content-Type"}},
    {"POST", "", "POST /x?y=z HTTP/1.1\r\n", {"\r\nContent-Length: 0\r\n"}, {"Content-Type"}},
    {"POST",
     "[{\"a\":1}]",
     "POST /x?y=z HTTP/1.1\r\n",
     {"\r\nContent-Length: 9\r\n", "\r\n\r\n[{\"a\":1}]"},
     {"Content-Type", "Expect"}},
    {"PATCH",
     "[]",
     "PATCH /x?y=z HTTP/1.1\r\n",
     {"\r\nContent-Length: 2\r\n", "\r\n\r\n[]"},
     {NULL}},
    {"GET", "[]", "GET /x?y=z HTTP/1.1\r\n", {"\r\nContent-Length: 2\r\n", "\r\n\r\n[]"}, {NULL}},
    {"DELETE",
     "[]",
     "DELETE /x?y=z HTTP/1.1\r\n",
     {"\r\nContent-Length: 2\r\n", "\r\n\r\n[]"},
     {NULL}},
};

static void expect_request(const struct request_case *c)
{
    const char *request = buf_text(&receiver.last);

    ck_assert_msg(strncmp(request, c->first, strlen(c->first)) == 0, "%s", request);
    for (size_t i = 0; i < ARRAY_LEN(c->has); i++)
        if (c->has[i] != NULL)
            ck_assert_msg(strstr(request, c->has[i]) != NULL, "'%s' lacks '%s'", request,
                          c->has[i]);
    for (size_t i = 0; i < ARRAY_LEN(c->lacks); i++)
        if (c->lacks[i] != NULL)
            ck_assert_msg(strstr(request, c->lacks[i]) == NULL, "'%s' has '%s'", request,
                          c->lacks[i]);
}

static void send_case(const struct request_case *c)
{
    struct blob *body = c->body != NULL ? blob_new(span_str(c->body)) : NULL;
    struct job job;

    job_init(&job, "http://127.0.0.1:%u/x?y=z");
    job.fetch.method = span_str(c->method);
    job.fetch.body = body;
    job_start(&job);
    blob_unref(body); /* the fetch has its own */
    job_await(&job);
    expect_ok(&job, 204);
    expect_request(c);
}

/* On one connection, in every order of two: what one request sets must not reach the next. */
START_TEST(methods_and_bodies)
{
    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
            send_case(&cases[i]);
            send_case(&cases[k]);
        }
    }
    ck_assert_uint_eq(receiver.connections, 1);
    end_fetching();
}
END_TEST

START_TEST(headers)
{
    static const struct header_field list[] = {
        {SPAN_INIT("X-One"), SPAN_INIT("1")},
        {SPAN_INIT("X-Empty"), SPAN_INIT("")},
        {SPAN_INIT("content-type"), SPAN_INIT("application/json")},
        {SPAN_INIT("User-Agent"), SPAN_INIT("other/1")},
        {SPAN_INIT("X-Colons"), SPAN_INIT("a: b; c")},
        {SPAN_INIT("X-One"), SPAN_INIT("2")},
    };
    static const struct request_case expected = {
        .first = "POST / HTTP/1.1\r\n",
        .has = {"\r\nX-One: 1\r\nX-Empty:\r\ncontent-type: application/json\r\n"
                "User-Agent: other/1\r\nX-Colons: a: b; c\r\nX-One: 2\r\n"},
        .lacks = {"Expect", "svcd/", "urlencoded"}};
    struct job job;

    begin_fetching();
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.method = SPAN("POST");
    job.fetch.headers = list;
    job.fetch.header_count = ARRAY_LEN(list);
    job_start(&job);
    job_await(&job);
    expect_ok(&job, 204);
    expect_request(&expected);
    end_fetching();
}
END_TEST

START_TEST(headers_that_break_lines)
{
    static const struct header_field list[] = {
        {SPAN_INIT("X"), SPAN_INIT("a\r\nY: b")},
        {SPAN_INIT("X"), SPAN_INIT("a\nb")},
        {SPAN_INIT("X"), SPAN_INIT("a\0b")},
        {SPAN_INIT("X\rY"), SPAN_INIT("a")},
        {SPAN_INIT("X"), SPAN_INIT("\n2345678")},
        {SPAN_INIT("X"), SPAN_INIT("1234567\n")},
        {SPAN_INIT("X"), SPAN_INIT("12345678\n")},
        {SPAN_INIT("X"), SPAN_INIT("\t2345678\xc3\xa4\xc3\xa4\xc3\xa4\xc3\n1234567")},
        {SPAN_INIT("X"), SPAN_INIT("1234567890123456789\0")},
    };

    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        struct job job;

        job_init(&job, "http://127.0.0.1:%u/");
        job.fetch.headers = &list[i];
        job.fetch.header_count = 1;
        job_start(&job);
        job_await(&job);
        expect_error(&job, FETCH_OTHER, "line break");
    }
    ck_assert_uint_eq(receiver.connections, 0);
    end_fetching();
}
END_TEST

START_TEST(large_body)
{
    size_t n = 3 * 1024 * 1024 + 17;
    struct blob *body = blob_alloc(n);
    struct span sent;
    struct job job;

    for (size_t i = 0; i < n; i++)
        body->p[i] = (char)(i * 31 + (i >> 12));
    begin_fetching();
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.method = SPAN("POST");
    job.fetch.body = body;
    job_start(&job);
    job_await(&job);
    expect_ok(&job, 204);
    sent = buf_span(&receiver.last);
    ck_assert(span_find(span_sub(sent, 0, 1000), SPAN("Expect")) == SIZE_MAX);
    ck_assert(span_eq(span_sub(sent, sent.n - n, sent.n), blob_span(body)));
    blob_unref(body);
    end_fetching();
}
END_TEST

/* The answer comes, and the connection ends, while the body is still being sent. */
START_TEST(answer_before_the_body_is_sent)
{
    struct blob *body = blob_alloc(8 * 1024 * 1024);
    struct job job;

    memset(body->p, 'x', body->n);
    begin_fetching();
    receiver.answer_at_once = true;
    receiver.script = (struct receiver_script){
        .bytes = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"};
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.method = SPAN("POST");
    job.fetch.body = body;
    job.fetch.timeout_ms = 3000;
    job_start(&job);
    job_await(&job);
    expect_ok(&job, 413);
    blob_unref(body);
    end_fetching();
}
END_TEST

START_TEST(path_is_sent_as_it_is)
{
    struct job job;

    begin_fetching();
    job_run(&job, "http://127.0.0.1:%u/a/../b%2f./?q=%41&r=[]{}|\"<>");
    expect_ok(&job, 204);
    ck_assert(span_starts(buf_span(&receiver.last),
                          SPAN("GET /a/../b%2f./?q=%41&r=[]{}|\"<> HTTP/1.1\r\n")));
    end_fetching();
}
END_TEST

START_TEST(urls_that_cannot_be_used)
{
    static const char *const urls[] = {"",
                                       "a.test",
                                       "ftp://a.test/",
                                       "http://user@127.0.0.1/",
                                       "http://127.0.0.1:99999/",
                                       "http://a,b.test/",
                                       "http://%31.test/",
                                       "http:///"};

    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct job job;

        job_run(&job, urls[i]);
        expect_error(&job, FETCH_OTHER, "the URL cannot be used");
    }
    ck_assert_uint_eq(fetch_active(fetcher), 0);
    end_fetching();
}
END_TEST

/* Proxies. */

static void begin_proxied(const char *url)
{
    static char proxy[64];
    struct fetch_options options = {.proxy = proxy};
    struct resolve_options names = {
        .hosts_file = hosts_path, .resolv_file = settings_path, .servers = "127.0.0.1:1"};

    begin_fetching();
    fetcher_free(fetcher);
    resolver_free(resolver);
    ck_ok(resolver_new(&loop, &names, &resolver));
    with_port(proxy, sizeof(proxy), url);
    ck_ok(fetcher_new(&loop, resolver, &rules, &options, &fetcher));
}

START_TEST(through_a_proxy)
{
    static const char *const proxies[] = {"http://127.0.0.1:%u", "http://name.test:%u/",
                                          "http://user:secret@localhost:%u"};

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
        struct job job;

        begin_proxied(proxies[i]);
        job_run(&job, "http://unknown.invalid/x");
        expect_ok(&job, 204);
        ck_assert(span_starts(buf_span(&receiver.last),
                              SPAN("GET http://unknown.invalid/x HTTP/1.1\r\n")));
        ck_assert_int_eq(i == 2, span_find(buf_span(&receiver.last),
                                           SPAN("Proxy-Authorization: Basic")) != SIZE_MAX);
        end_fetching();
    }
}
END_TEST

START_TEST(a_tunnel_through_a_proxy)
{
    struct job job;

    begin_proxied("http://127.0.0.1:%u");
    receiver.script = (struct receiver_script){
        .bytes = "HTTP/1.1 403 No\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"};
    job_run(&job, "https://unknown.invalid/x");
    ck_assert(job.result.error != FETCH_OK);
    ck_assert_int_eq(job.result.status, 0);
    ck_assert_int_eq(job.result.retry_after_s, -1);
    ck_assert(
        span_starts(buf_span(&receiver.last), SPAN("CONNECT unknown.invalid:443 HTTP/1.1\r\n")));
    end_fetching();
}
END_TEST

START_TEST(a_proxy_is_no_way_around_the_rules)
{
    struct job job;

    begin_proxied("http://127.0.0.1:%u");
    job_run(&job, "http://169.254.169.254/");
    expect_error(&job, FETCH_REFUSED_ADDRESS, "169.254.169.254");
    ck_assert_uint_eq(receiver.connections, 0);
    end_fetching();
}
END_TEST

START_TEST(the_environment_is_not_read)
{
    struct job job;

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    begin_fetching();
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    end_fetching();
    setenv("no_proxy", "*", 1);
    begin_proxied("http://127.0.0.1:%u");
    job_run(&job, "http://unknown.invalid/x");
    expect_ok(&job, 204);
    end_fetching();
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    unsetenv("no_proxy");
}
END_TEST

START_TEST(bad_options)
{
    static const char *const proxies[] = {"",
                                          "127.0.0.1:80",
                                          "http://127.0.0.1",
                                          "http://127.0.0.1:0",
                                          "socks5://127.0.0.1:1080",
                                          "socks4://127.0.0.1:1080",
                                          "http://a b:1"};
    struct fetch_options options = {0};
    struct fetcher *other;

    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
        options.proxy = proxies[i];
        ck_fails(fetcher_new(&loop, resolver, &rules, &options, &other), ERR_UNKNOWN,
                 "Proxy: should");
    }
    options = (struct fetch_options){.ca_file = "/nonexistent/ca.pem"};
    ck_fails(fetcher_new(&loop, resolver, &rules, &options, &other), ERR_UNKNOWN,
             "/nonexistent/ca.pem");
    end_fetching();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, methods_and_bodies);
    tcase_add_test(tc, headers);
    tcase_add_test(tc, headers_that_break_lines);
    tcase_add_test(tc, large_body);
    tcase_add_test(tc, answer_before_the_body_is_sent);
    tcase_add_test(tc, path_is_sent_as_it_is);
    tcase_add_test(tc, urls_that_cannot_be_used);
    tcase_add_test(tc, through_a_proxy);
    tcase_add_test(tc, a_tunnel_through_a_proxy);
    tcase_add_test(tc, a_proxy_is_no_way_around_the_rules);
    tcase_add_test(tc, the_environment_is_not_read);
    tcase_add_test(tc, bad_options);
}
