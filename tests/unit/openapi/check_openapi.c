/* Svc.OpenApi: whose document has what, and when it is another. What generators make of it, the
 * black-box tests look at. */
#include "asking.h"

static void begin(void)
{
    asking_open(
        "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":["
        "{\"Name\":\"Name\",\"Type\":\"string\",\"Required\":true},"
        "{\"Name\":\"Born\",\"Type\":\"datetime\"},{\"Name\":\"Age\",\"Type\":\"integer\"}]},"
        "{\"Name\":\"Shop.Message\",\"Kind\":\"EntityResource\",\"Methods\":[\"GET\"]},"
        "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"},"
        "{\"Name\":\"Shop.Made\",\"Kind\":\"EventResource\","
        "\"Payload\":{\"Resource\":\"Shop.Person\"}}]");
}

static void read_document(const char *key)
{
    ask_with(key == NULL ? NULL : asking_printf("Authorization: apikey %s", key), "GET",
             "/Svc.OpenApi", NULL);
    ck_status(200);
    ck_span_eq(asking.answer.content_type, "application/json");
    ck_member_eq("openapi", "\"3.1.0\"");
}

static bool has(const char *text)
{
    return span_find(answered_body(), span_str(text)) != SIZE_MAX;
}

#define ck_has(text) ck_assert_msg(has(text), "lacks %s", text)
#define ck_lacks(text) ck_assert_msg(!has(text), "has %s", text)

START_TEST(it_is_made_of_the_tables)
{
    read_document(NULL);
    ck_has("\"Svc.Input.Shop.Person\":{\"type\":\"object\",\"properties\":{");
    ck_has("\"required\":[\"Name\"],\"additionalProperties\":false}");
    ck_has("\"Name\":{\"type\":\"string\"}");
    ck_has("\"Age\":{\"type\":[\"integer\",\"null\"]}");
    ck_has("\"Tags\":{\"type\":[\"array\",\"null\"],\"description\":\"The owner's own labels\","
           "\"items\":{\"type\":\"string\"}}");
    ck_has("\"minimum\":0.1,\"maximum\":3600");
    ck_has("\"UnsupportedContent\",\"NotAcceptable\""); /* codes of two rows come once */
    ck_has("\"/Svc.Event/Resource={Event}\"");
    ck_lacks("\"/Shop.Placed\"");
    ck_lacks("\"/Shop.Message/Id={Id}\":{\"patch\"");
}
END_TEST

static const struct {
    const char *allow, *has, *lacks;
} keys[] = {
    {"[]", "\"/Svc.AvailableResource\":{\"get\"", "Shop."},
    {"[{\"Resources\":[\"Shop.Person\"],\"Methods\":[\"GET\"]}]",
     "\"/Shop.Person\":{\"get\":{\"operationId\":\"get_Shop.Person\"", "Svc.Input."},
    {"[{\"Resources\":[\"Shop.Person\"],\"Methods\":[\"PATCH\"]}]", "\"/Shop.Person/Id={Id}\":{",
     "\"Shop.Person\":{\"type\""},
    {"[{\"Resources\":[\"Shop.Made\"],\"Methods\":[\"GET\"]}]",
     "\"Svc.Payload.Shop.Made\":{\"type\":\"object\",\"properties\":{\"Id\"", "/Shop.Person"},
    {"[{\"Resources\":[\"Svc.Aggregator\"],\"Methods\":[\"GET\"]}]", "\"Svc.Aggregator\"",
     "\"/Svc.Aggregator\""},
    {"[{\"Resources\":[\"Svc.Aggregator\"],\"Methods\":[\"POST\"]}]",
     "\"/Svc.Aggregator\":{\"post\"", "\"Svc.Input"},
};

START_TEST(a_key_is_told_what_it_may_use)
{
    asking_add_key("other", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("key", asking_printf("[{\"Resources\":[\"Svc.OpenApi\"],\"Methods\":[\"GET\"]}"
                                        "%s%s",
                                        keys[_i].allow[1] == ']' ? "" : ",", keys[_i].allow + 1));
    read_document("key");
    ck_has(keys[_i].has);
    ck_lacks(keys[_i].lacks);
}
END_TEST

START_TEST(it_needs_the_right)
{
    asking_add_key("other", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("key", "[{\"Resources\":[\"Shop.*\"],\"Methods\":[\"*\"]}]");
    ask_with("Authorization: apikey key", "GET", "/openapi.json", NULL);
    ck_status(403);
    ask("GET", "/openapi.json", NULL);
    ck_status(401);
}
END_TEST

static const char *tag(void)
{
    read_document(NULL);
    return asking_printf("If-None-Match: %.*s", SPAN_FMT(answered_header("ETag")));
}

START_TEST(its_tag_is_as_long_as_nothing_is_declared)
{
    const char *known = tag();

    ask_with(known, "GET", "/Svc.OpenApi", NULL);
    ck_status(304);
    ck_assert_uint_eq(answered_body().n, 0);
    ck_asks(201, "POST", "/Shop.Person", "{\"Name\":\"Ada\"}");
    ask_with(known, "HEAD", "/openapi.json", NULL);
    ck_status(304);
    ck_asks(201, "POST", "/Svc.Admin.Resource",
            "{\"Name\":\"Shop.New\",\"Kind\":\"EntityResource\"}");
    ask_with(known, "GET", "/Svc.OpenApi", NULL);
    ck_status(200);
    ck_has("\"/Shop.New\"");
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/Name=Shop.New", NULL);
    ask_with(known, "GET", "/Svc.OpenApi", NULL);
    ck_status(304);
}
END_TEST

START_TEST(an_answer_waits_for_the_declarations)
{
    uint64_t serial;

    asking_commit();
    serial = asking_serial();
    ck_asks(201, "POST", "/Svc.Admin.Resource",
            "{\"Name\":\"Shop.New\",\"Kind\":\"EntityResource\"}");
    read_document(NULL);
    ck_assert_uint_eq(asking.answer.serial, serial);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, it_is_made_of_the_tables);
    tcase_add_loop_test(tc, a_key_is_told_what_it_may_use, 0, ARRAY_LEN(keys));
    tcase_add_test(tc, it_needs_the_right);
    tcase_add_test(tc, its_tag_is_as_long_as_nothing_is_declared);
    tcase_add_test(tc, an_answer_waits_for_the_declarations);
}
