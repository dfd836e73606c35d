/* The rule, on shapes and drafts. That whatever goes by a query keeps to it is shown from outside:
 * tests/blackbox/test_tenants.py. */
#include "testing.h"

#include "access/access.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/tenant.h"
#include "store/entity.h"
#include "json/json.h"

static const struct property properties[] = {
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Tenant"), .type = TYPE_STRING},
};
static const struct property odd_properties[] = {
    {.name = SPAN_INIT("Tenant"), .type = TYPE_INTEGER},
};
static const struct shape with = {properties, 2, false}, without = {properties, 1, false};
static const struct shape odd = {odd_properties, 1, false}, dynamic = {properties, 2, true};
static struct access_key acme = {.name = SPAN_INIT("k"), .tenant = SPAN_INIT("2026")};
static struct access_key free_key = {.name = SPAN_INIT("k")};

static struct arena arena;
static struct query query;
static struct resource resource;
static struct call call;

static void begin(const struct shape *shape, struct access_key *key)
{
    arena_init(&arena);
    query = (struct query){.shape = shape};
    resource = (struct resource){.name = SPAN("A.B"), .shape = shape};
    call = (struct call){.arena = &arena, .key = key, .resource = &resource, .query = &query};
}

START_TEST(only_keys_with_a_tenant_are_confined_and_only_by_a_declared_property)
{
    begin(&with, &acme);
    ck_span_eq(tenant_of(&call), "2026");
    begin(&odd, &acme);
    ck_span_eq(tenant_of(&call), "2026");
    begin(&with, &free_key);
    ck_assert_uint_eq(tenant_of(&call).n, 0);
    begin(&with, NULL);
    ck_assert_uint_eq(tenant_of(&call).n, 0);
    tenant_confine(&call);
    ck_assert_uint_eq(query.conditions.count, 0);
    begin(&without, &acme);
    ck_assert_uint_eq(tenant_of(&call).n, 0);
    begin(&dynamic, &acme);
    ck_assert_uint_eq(tenant_of(&call).n, 0);
}
END_TEST

static const struct {
    const char *json;
    bool is_own;
} stored[] = {
    {"{\"Name\":\"a\",\"Tenant\":\"2026\"}", true},
    {"{\"Name\":\"a\",\"Tenant\":\"2027\"}", false},
    {"{\"Name\":\"a\",\"Tenant\":2026}", false},
    {"{\"Name\":\"a\",\"Tenant\":null}", false},
    {"{\"Name\":\"a\"}", false},
    {"{\"Name\":\"b\",\"Tenant\":\"2026\"}", false},
};

/* Beside what was asked for: Name is `a`. The last one is the tenant's. */
START_TEST(a_condition_more)
{
    static const struct uri_condition asked = {SPAN_INIT("Name"), URI_EQ, SPAN_INIT("a")};
    struct span json = span_str(stored[_i].json);

    begin(&with, &acme);
    ck_ok(conditions_parse(&asked, 1, &with, &arena, &query.conditions));
    tenant_confine(&call);
    ck_assert_uint_eq(query.conditions.count, 2);
    ck_assert(conditions_hold(&query.conditions, entity_parse(json, &arena), &arena) ==
              stored[_i].is_own);
    if (_i + 1u < ARRAY_LEN(stored))
        ck_assert(tenant_covers(&call, json) == stored[_i].is_own);
    arena_done(&arena);
}
END_TEST

static const struct {
    const struct shape *shape;
    const char *input, *tenant; /* NULL: it is refused */
} written[] = {
    {&with, "{}", "\"2026\""},
    {&with, "{\"Tenant\":null}", "\"2026\""},
    {&with, "{\"Tenant\":\"2026\"}", "\"2026\""},
    {&with, "{\"Tenant\":\"2027\"}", NULL},
    {&with, "{\"Tenant\":\"\"}", NULL},
    {&odd, "{\"Tenant\":2026}", NULL},
    {&odd, "{}", NULL},
};

START_TEST(what_is_written_is_the_keys)
{
    const struct json_value none = {NULL, NULL};
    struct draft draft;
    struct err *e;

    begin(written[_i].shape, &acme);
    ck_ok(schema_decode(written[_i].shape, entity_parse(span_str(written[_i].input), &arena), none,
                        SCHEMA_INSERT, &arena, &draft));
    e = tenant_check_draft(&call, &draft);
    if (written[_i].tenant == NULL)
        ck_fails(e, ERR_NOT_AUTHORIZED, "Tenant: the API key may write none but '2026'");
    else
        ck_ok(e);
    if (written[_i].tenant != NULL)
        ck_span_is(draft_get(&draft, SPAN("Tenant")), span_str(written[_i].tenant));
    call.key = &free_key;
    ck_ok(tenant_check_draft(&call, &draft));
    arena_done(&arena);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, only_keys_with_a_tenant_are_confined_and_only_by_a_declared_property);
    tcase_add_loop_test(tc, a_condition_more, 0, ARRAY_LEN(stored));
    tcase_add_loop_test(tc, what_is_written_is_the_keys, 0, ARRAY_LEN(written));
}
