#include "asking.h"

#include "dispatch/probe.h"
#include "rest/cluster_view.h"
#include "rest/rest.h"

static void setup(void)
{
    asking_open(NULL);
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
}

static const struct {
    const char *method, *target;
    int status;
} asked[] = {
    {"GET", "/livez", 200},        {"HEAD", "/livez", 200},     {"GET", "/readyz?leader", 200},
    {"GET", "/readyz?", 200},      {"GET", "/robots.txt", 200}, {"GET", "/favicon.ico", 204},
    {"POST", "/livez", 405},       {"OPTIONS", "/readyz", 405}, {"REPORT", "/robots.txt", 405},
    {"GET", "/Livez", 401},        {"GET", "/livez/", 401},     {"GET", "/livez/_", 401},
    {"GET", "/%6civez", 401},      {"GET", "/x/livez", 401},    {"GET", "?/livez", 401},
    {"PUT", "/openapi.json", 405},
};

START_TEST(they_are_exact_paths)
{
    ask(asked[_i].method, asked[_i].target, NULL);
    ck_assert_int_eq(asking.answer.status, asked[_i].status);
    if (asked[_i].status == 405)
        ck_header_eq("Allow", "GET, HEAD");
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
}
END_TEST

START_TEST(they_are_below_the_base_path)
{
    asking_below("/v1");
    ck_asks(200, "GET", "/v1/livez", NULL);
    ck_asks(401, "GET", "/livez", NULL);
    ck_asks(401, "GET", "/v1livez", NULL);
}
END_TEST

/* Browsers and robots look for these at the root of a host, whatever serves it. */
START_TEST(a_hosts_own_are_at_the_root_too)
{
    asking_below("/v1");
    ck_asks(204, "GET", "/favicon.ico?v=2", NULL);
    ck_asks(204, "GET", "/v1/favicon.ico", NULL);
    ck_asks(200, "GET", "/robots.txt", NULL);
    ck_asks(405, "POST", "/favicon.ico", NULL);
    ck_header_eq("Allow", "GET, HEAD");
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
    ck_asks(401, "GET", "/favicon.ico/", NULL);
    ck_asks(401, "GET", "/readyz", NULL);
}
END_TEST

START_TEST(who_drains_is_not_ready)
{
    ck_asks(200, "GET", "/readyz", NULL);
    service_drain(asking.service);
    ck_asks(503, "GET", "/readyz", NULL);
    ck_header_eq("Retry-After", "1");
    ck_asks(200, "GET", "/livez", NULL);
}
END_TEST

/* Of a cluster, changes go to one node. A server that is alone leads: asked[]. */
START_TEST(only_the_leader_is_ready_to_lead)
{
    struct cluster_view view = {.node = SPAN("a"), .is_ready = true};

    asking.service->rest.cluster = &view;
    ck_asks(200, "GET", "/readyz", NULL);
    ck_asks(200, "GET", "/readyz?leaders", NULL);
    ck_asks(503, "GET", "/readyz?leader", NULL);
    ck_header_eq("Retry-After", "1");
    ck_body_eq("not the leader\n");
    ck_asks(200, "GET", "/livez?leader", NULL);
    view.leads = true;
    ck_asks(200, "GET", "/readyz?leader", NULL);
    service_drain(asking.service);
    ck_asks(503, "GET", "/readyz?leader", NULL);
    ck_body_eq("not ready\n");
    asking.service->rest.cluster = NULL;
}
END_TEST

/* It is answered as the resource is: who has no key is told so. */
START_TEST(a_document_needs_a_key)
{
    ck_asks(401, "GET", "/openapi.json", NULL);
    ask_with("Authorization: apikey admin", "GET", "/openapi.json?x=1", NULL);
    ck_status(200);
    ck_member_eq("openapi", "\"3.1.0\"");
    asking_below("/v1");
    ask_with("Authorization: apikey admin", "HEAD", "/v1/openapi.json", NULL);
    ck_status(200);
    ask_with("Authorization: apikey admin", "GET", "/openapi.json", NULL);
    ck_status(400);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, asking_close);
    tcase_add_loop_test(tc, they_are_exact_paths, 0, ARRAY_LEN(asked));
    tcase_add_test(tc, they_are_below_the_base_path);
    tcase_add_test(tc, a_hosts_own_are_at_the_root_too);
    tcase_add_test(tc, who_drains_is_not_ready);
    tcase_add_test(tc, only_the_leader_is_ready_to_lead);
    tcase_add_test(tc, a_document_needs_a_key);
}
