/* Svc.Aggregator: what becomes of a template, on whose behalf, and within which bounds. */
#include "asking.h"

#include "store/turn.h"

static void begin(void)
{
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"},"
                "{\"Name\":\"Shop.Secret\",\"Kind\":\"EntityResource\"},"
                "{\"Name\":\"Shop.Rules\",\"Kind\":\"BinaryResource\",\"Content\":\"YQ==\"},"
                "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]");
    ck_asks(201, "POST", "/Person", "[{\"n\":1,\"t\":\"\\u00e4\"},{\"n\":2}]");
}

static const struct {
    const char *template, *result;
} templates[] = {
    {"{}", "[{}]"},
    {"[]", NULL},
    {"[{},{\"a\":1}]", "[{},{\"a\":1}]"},
    {" { \"a\" : [ 1.50 , null , true , \"x\\/\" ] } ", "[{\"a\":[1.50,null,true,\"x\\/\"]}]"},
    {"{\"a\":\"REPORT /Person\"}", "[{\"a\":2}]"},
    {"{\"a\":\"REPORT /Person/n=3\"}", "[{\"a\":0}]"},
    {"{\"a\":\"GET /Person/_/select=n\"}", "[{\"a\":[{\"n\":1},{\"n\":2}]}]"},
    {"{\"a\":\"GET /Person/n=1/select=t\"}", "[{\"a\":[{\"t\":\"\\u00e4\"}]}]"},
    {"{\"a\":\"GET /Person/n=3\"}", "[{\"a\":[]}]"},
    {"{\"a\":{\"b\":[\"REPORT /Person\",[\"REPORT /Secret\"]]}}", "[{\"a\":{\"b\":[2,[0]]}}]"},
    {"{\"a\":\"GET \\/Person\\/n=2\\/select=n\"}", "[{\"a\":[{\"n\":2}]}]"},
    {"{\"a\":\"GET /Echo/x=%22y\"}", "[{\"a\":[{\"x\":\"\\\"y\"}]}]"},
    /* What is no request. */
    {"{\"a\":\"GET\"}", "[{\"a\":\"GET\"}]"},
    {"{\"a\":\"GET Person\"}", "[{\"a\":\"GET Person\"}]"},
    {"{\"a\":\"get /Person\"}", "[{\"a\":\"get /Person\"}]"},
    {"{\"a\":\" GET /Person\"}", "[{\"a\":\" GET /Person\"}]"},
    {"{\"a\":\"POST /Person\"}", "[{\"a\":\"POST /Person\"}]"},
    {"{\"a\":\"DELETE /Person\"}", "[{\"a\":\"DELETE /Person\"}]"},
    {"{\"GET /Person\":1}", "[{\"GET /Person\":1}]"},
};

START_TEST(requests_are_replaced_by_their_results)
{
    ask("GET", "/Aggregator", templates[_i].template);
    if (templates[_i].result == NULL) {
        ck_status(204);
        return;
    }
    ck_status(200);
    ck_span_is(answered_body(), span_str(templates[_i].result));
    ck_assert_uint_eq(asking_count("Shop.Person"), 2);
}
END_TEST

START_TEST(meta_conditions_work_on_the_results)
{
    const char template[] = "[{\"k\":\"a\",\"n\":\"REPORT /Person\"},{\"k\":\"b\",\"n\":3}]";

    ck_asks(200, "GET", "/Aggregator/n>2/select=k", template);
    ck_body_eq("[{\"k\":\"b\"}]");
    ck_asks(200, "GET", "/Aggregator/_/order_desc=n&limit=1", template);
    ck_body_eq("[{\"k\":\"b\",\"n\":3}]");
    ck_asks(200, "REPORT", "/Aggregator/n=2", template);
    ck_body_eq("[{\"Count\":1}]");
    ask_with("Accept: text/csv", "GET", "/Aggregator", template);
    ck_body_eq("k,n\r\na,2\r\nb,3\r\n");
}
END_TEST

static const struct {
    const char *template;
    enum err_code code;
    const char *text;
} bad[] = {
    {"", ERR_NO_DATA_SOURCE, "Svc.Aggregator"},
    {"{", ERR_FAILED_JSON, "line 1"},
    {"{\"a\":1,\"a\":2}", ERR_FAILED_JSON, "\"a\""},
    {"5", ERR_INVALID_ENTITY, "a template is an object or an array of objects"},
    {"[{},\"GET /Person\"]", ERR_INVALID_ENTITY, "an array of objects"},
    {"{\"a\":{\"b\":[1,\"GET /Nobody\"]}}", ERR_UNKNOWN_RESOURCE,
     "a.b.1: 'GET /Nobody': Svc could"},
    {"[{},{\"a\":\"REPORT /Nobody\"}]", ERR_UNKNOWN_RESOURCE, "1.a: 'REPORT /Nobody': "},
    {"{\"a\":\"GET /Error/Nam=1\"}", ERR_UNKNOWN_PROPERTY, "a: 'GET /Error/Nam=1': "},
    {"{\"a\":\"GET /Person/x/y/z\"}", ERR_INVALID_URI_SYNTAX, "a: "},
    {"{\"a\":\"GET /Rules\"}", ERR_WRONG_SELECTOR_KIND,
     "'Shop.Rules' is a binary resource, it has no entities"},
    {"{\"a\":\"GET /Placed\"}", ERR_METHOD_NOT_ALLOWED, "a: 'GET /Placed': "},
    {"{\"a\":\"GET /Aggregator\"}", ERR_INFINITE_LOOP, "'Svc.Aggregator' is asked by itself"},
};

START_TEST(an_error_names_its_place)
{
    ck_refuses(bad[_i].code, bad[_i].text, "GET", "/Aggregator", bad[_i].template);
}
END_TEST

/* ---- on whose behalf ---- */

START_TEST(requests_have_the_rights_of_the_caller)
{
    asking_add_key("some", "[{\"Resources\":[\"Svc.Aggregator\",\"Shop.Person\"],\"Methods\":"
                           "[\"GET\"]}]");
    ask_with("Authorization: apikey some", "GET", "/Aggregator", "{\"a\":\"REPORT /Person\"}");
    ck_status(200);
    ask_with("Authorization: apikey some", "GET", "/Aggregator", "{\"a\":\"REPORT /Secret\"}");
    ck_problem(ERR_NOT_AUTHORIZED, "a: 'REPORT /Secret': the API key may not use REPORT");
}
END_TEST

START_TEST(targets_in_a_template_have_no_base_path)
{
    asking.service->rest.base_path = SPAN("/v1");
    ck_asks(200, "GET", "/v1/Aggregator", "{\"a\":\"REPORT /Person\"}");
    ck_refuses(ERR_UNKNOWN_RESOURCE, "'v1'", "GET", "/v1/Aggregator", "{\"a\":\"REPORT /v1\"}");
}
END_TEST

START_TEST(an_answer_waits_for_all_that_it_shows)
{
    uint64_t serial;

    asking_commit();
    ck_asks(201, "POST", "/Person", "{\"n\":3}");
    serial = asking.answer.serial;
    ck_asks(200, "GET", "/Aggregator", "{\"a\":\"REPORT /Person\",\"b\":\"REPORT /Secret\"}");
    ck_assert_uint_eq(asking.answer.serial, serial);
    ck_assert(!turn_is_committed(asking.service->turn, serial));
}
END_TEST

/* ---- bounds ---- */

START_TEST(a_template_has_so_many_requests)
{
    asking.service->limits.aggregated_requests = 2;
    ck_asks(200, "GET", "/Aggregator", "{\"a\":\"REPORT /Person\",\"b\":\"REPORT /Person\"}");
    ck_refuses(ERR_PAYLOAD_TOO_LARGE,
               "c.0: 'REPORT /Person': there are more requests than the "
               "limit AggregatedRequests (2)",
               "GET", "/Aggregator",
               "{\"a\":\"REPORT /Person\",\"b\":\"REPORT /Person\",\"c\":[\"REPORT /Person\"]}");
}
END_TEST

START_TEST(a_result_has_so_many_bytes)
{
    ck_asks(201, "POST", "/Person", asking_printf("{\"t\":\"%0*d\"}", 1000, 0));
    asking.service->limits.answer_bytes = 2000;
    ck_asks(200, "GET", "/Aggregator", "{\"a\":\"GET /Person\"}");
    ck_refuses(ERR_PAYLOAD_TOO_LARGE,
               "b: 'GET /Person': the answer would be larger than the limit "
               "AnswerBytes (2000 bytes)",
               "GET", "/Aggregator", "{\"a\":\"GET /Person\",\"b\":\"GET /Person\"}");
    asking.service->limits.answer_bytes = 1000;
    ck_refuses(ERR_PAYLOAD_TOO_LARGE, "a: 'GET /Person': ", "GET", "/Aggregator",
               "{\"a\":\"GET /Person\"}");
}
END_TEST

static const char *nested(size_t depth, const char *inner)
{
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    buf_add_str(&b, "{\"a\":");
    for (size_t i = 1; i < depth; i++)
        buf_add_char(&b, '[');
    buf_add_str(&b, inner);
    for (size_t i = 1; i < depth; i++)
        buf_add_char(&b, ']');
    buf_add_char(&b, '}');
    buf_add_char(&b, 0);
    return b.p;
}

/* What is stored deep, and asked for deep, is deeper than may be. */
START_TEST(a_result_is_nested_so_deep)
{
    asking.service->limits.json_depth = 900;
    ck_asks(201, "POST", "/Secret", nested(600, "\"[[[[[[[[[[[[[[[[[[[[\""));
    ck_asks(200, "GET", "/Aggregator", nested(390, "\"GET /Secret\""));
    ck_refuses(ERR_PAYLOAD_TOO_LARGE, "the answer would be nested more than 999 deep", "GET",
               "/Aggregator",
               asking_printf("{\"t\":\"\\\"\",\"n\":%s}", nested(420, "\"GET /Secret\"")));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, requests_are_replaced_by_their_results, 0, ARRAY_LEN(templates));
    tcase_add_test(tc, meta_conditions_work_on_the_results);
    tcase_add_loop_test(tc, an_error_names_its_place, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, requests_have_the_rights_of_the_caller);
    tcase_add_test(tc, targets_in_a_template_have_no_base_path);
    tcase_add_test(tc, an_answer_waits_for_all_that_it_shows);
    tcase_add_test(tc, a_template_has_so_many_requests);
    tcase_add_test(tc, a_result_has_so_many_bytes);
    tcase_add_test(tc, a_result_is_nested_so_deep);
}
