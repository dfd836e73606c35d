/* Svc.Admin.ApiKey: what a request with one key may make of others. */
#include "asking.h"
#include "base/header_field.h"

#include "access/access.h"
#include "base/clock.h"
#include "dispatch/api_key.h"
#include "rest/rest.h"

#define ALL "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]"
#define RIGHTS                                                                                     \
    "[{\"Resources\":[\"Svc.Admin.ApiKey\"],\"Methods\":[\"*\"]},"                                 \
    "{\"Resources\":[\"A.*\"],\"Methods\":[\"GET\"]}]"

static const char *admin = "Authorization: apikey admin";
static const char *weak, *acme, *brief; /* lacks rights, has a tenant, expires */

static const char *make(const char *members)
{
    ask_with(admin, "POST", "/ApiKey", asking_printf("{%s}", members));
    ck_status(201);
    return asking_printf("Authorization: Bearer %s", answered_text("0.Key"));
}

static void begin(void)
{
    clock_fake(INT64_C(1800000000000000000), 1000000000); /* 2027-01-15T08:00:00Z */
    asking_open(NULL);
    asking_add_key("admin", ALL);
    weak = make("\"Name\":\"weak\",\"AllowAccess\":" RIGHTS);
    acme = make("\"Name\":\"acme\",\"Tenant\":\"acme\",\"AllowAccess\":" RIGHTS);
    brief = make("\"Name\":\"brief\",\"ExpiresAt\":\"2027-01-15T09:00Z\",\"AllowAccess\":" RIGHTS);
    make("\"Name\":\"old\",\"AllowAccess\":[]");
    make("\"Name\":\"strong\",\"AllowAccess\":" ALL ",\"ExpiresAt\":\"2027-01-15T08:30:00Z\"");
    make("\"Name\":\"theirs\",\"AllowAccess\":[],\"Tenant\":\"acme\"");
}

static void end(void)
{
    asking_close();
    clock_real();
}

#define ADD "POST", "/ApiKey"

static const struct {
    const char **key;
    const char *method, *target, *body;
    int status;
    const char *says; /* in the answer */
} cases[] = {
    {&weak, ADD, "{\"Name\":\"n\",\"AllowAccess\":" RIGHTS "}", 201, "\"CreatedBy\":\"weak\""},
    {&weak, ADD, "{\"Name\":\"n\",\"AllowAccess\":" ALL "}", 403, "rights on '*'"},
    {&weak, ADD, "[{\"Name\":\"n\",\"AllowAccess\":[]},{\"Name\":\"m\",\"AllowAccess\":" ALL "}]",
     403, "entity 1: AllowAccess"},
    {&weak, "PATCH", "/ApiKey/Name=weak", "{\"AllowAccess\":" ALL "}", 403, "rights on '*'"},
    {&weak, "PATCH", "/ApiKey/Name=strong", "{\"ExpiresAt\":\"2028-01-01\"}", 403, "rights on '*'"},
    {&weak, "PATCH", "/ApiKey/Name=strong", "{\"ExpiresAt\":null}", 403, "rights on '*'"},
    {&weak, "PATCH", "/ApiKey/Name=strong", "{\"Tenant\":\"t\"}", 403, "rights on '*'"},
    {&weak, "PATCH", "/ApiKey/Name=strong", "{\"ExpiresAt\":\"2027-01-15T08:10Z\"}", 200, "08:10Z"},
    {&weak, "PATCH", "/ApiKey/Name=strong", "{\"Name\":\"s\"}", 200, "\"Name\":\"s\""},
    {&weak, ADD, "{\"Name\":\"n\",\"AllowAccess\":[],\"Tenant\":\"any\"}", 201, "\"any\""},
    {&acme, ADD, "{\"Name\":\"n\",\"AllowAccess\":[]}", 201, "\"Tenant\":\"acme\""},
    {&acme, ADD, "{\"Name\":\"n\",\"AllowAccess\":[],\"Tenant\":null}", 201, "\"Tenant\":\"acme\""},
    {&acme, ADD, "{\"Name\":\"n\",\"AllowAccess\":[],\"Tenant\":\"ACME\"}", 403, "Tenant"},
    {&acme, "PATCH", "/ApiKey/Name=theirs", "{\"Tenant\":\"other\"}", 403, "Tenant"},
    {&acme, ADD, "{\"Name\":\"old\",\"AllowAccess\":[]}", 201, "\"Tenant\":\"acme\""},
    {&acme, ADD, "{\"Name\":\"theirs\",\"AllowAccess\":[]}", 409, "'theirs' already"},
    {&brief, ADD, "{\"Name\":\"n\",\"AllowAccess\":[]}", 201, "2027-01-15T09:00:00.0000000Z"},
    {&brief, ADD, "{\"Name\":\"n\",\"AllowAccess\":[],\"ExpiresAt\":\"2027-01-15T09:00:00Z\"}", 201,
     "09:00:00Z"},
    {&brief, ADD, "{\"Name\":\"n\",\"AllowAccess\":[],\"ExpiresAt\":\"2027-01-15T09:00:01Z\"}", 403,
     "ExpiresAt: is later"},
    {&brief, "PATCH", "/ApiKey/Name=brief", "{\"ExpiresAt\":\"2028-01-01\"}", 403, "is later"},
    {&brief, "PATCH", "/ApiKey/Name=old", "{\"Name\":\"o\"}", 200, "\"ExpiresAt\":null"},
    {&brief, "PATCH", "/ApiKey/Name=old", "{\"ExpiresAt\":null}", 200, "\"ExpiresAt\":null"},
    {&admin, ADD, "{\"Name\":\"n\",\"AllowAccess\":[],\"ExpiresAt\":\"2027-01-15T08:00:00Z\"}", 400,
     "ExpiresAt: is past"},
    {&admin, ADD, "{\"Name\":\"old\",\"AllowAccess\":[]}", 409, "'old' already"},
    {&admin, ADD, "{\"Name\":\"admin\",\"AllowAccess\":[]}", 409, "'admin' already"},
    {&admin, ADD, "[{\"Name\":\"n\",\"AllowAccess\":[]},{\"Name\":\"n\",\"AllowAccess\":[]}]", 409,
     "'n' already"},
    {&admin, "PATCH", "/ApiKey/Name=old", "{\"Name\":\"weak\"}", 409, "'weak' already"},
    {&admin, "PATCH", "/ApiKey/Name=old", "{\"Tenant\":\"acme\"}", 200, "\"Tenant\":\"acme\""},
    {&admin, "PATCH", "/ApiKey/Tenant=null/unsafe=true", "{\"Name\":\"x\"}", 409, "'x' already"},
    {&admin, "PATCH", "/ApiKey/Tenant=null/unsafe=true", "{\"AllowAccess\":[]}", 200, "weak"},
    {&admin, ADD, "{\"Name\":\"a b\",\"AllowAccess\":[]}", 400, "visible"},
    {&admin, ADD, "{\"Name\":\"n\",\"AllowAccess\":[{}]}", 400, "AllowAccess[0].Resources"},
};

START_TEST(nobody_grants_what_he_lacks)
{
    ask_with(*cases[_i].key, cases[_i].method, cases[_i].target, cases[_i].body);
    ck_assert_msg(asking.answer.status == cases[_i].status, "%s %s: %d: %.*s", cases[_i].target,
                  cases[_i].body, asking.answer.status, SPAN_FMT(answered_body()));
    ck_assert_msg(span_find(answered_body(), span_str(cases[_i].says)) != SIZE_MAX, "%s: %.*s",
                  cases[_i].body, SPAN_FMT(answered_body()));
}
END_TEST

/* What is refused changes nothing, and nobody can sign in. */
START_TEST(what_is_refused_leaves_no_key)
{
    size_t before = access_count(asking.service->rest.access);
    struct span entities = asking_entities("Svc.Admin.ApiKey");

    ask_with(weak, "POST", "/ApiKey",
             "[{\"Name\":\"n\",\"AllowAccess\":[]},{\"Name\":\"m\",\"AllowAccess\":" ALL "}]");
    ck_status(403);
    ck_assert_uint_eq(access_count(asking.service->rest.access), before);
    ck_span_is(asking_entities("Svc.Admin.ApiKey"), entities);
}
END_TEST

START_TEST(a_local_request_is_shown_no_key)
{
    struct header_field header = {SPAN("Authorization"), SPAN("apikey admin")};
    const struct request request = {.method = SPAN("POST"),
                                    .target = SPAN("/Svc.Admin.ApiKey"),
                                    .headers = &header,
                                    .header_count = 1,
                                    .body = SPAN("{\"Name\":\"n\",\"AllowAccess\":[]}"),
                                    .is_local = true};

    ask_request(&request);
    ck_status(201);
    ck_member_eq("0.Key", "\"*******\"");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, nobody_grants_what_he_lacks, 0, ARRAY_LEN(cases));
    tcase_add_test(tc, what_is_refused_leaves_no_key);
    tcase_add_test(tc, a_local_request_is_shown_no_key);
}
