/* Whose document has what. What generators make of it, the black-box tests look at. */
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

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, it_is_made_of_the_tables);
    tcase_add_loop_test(tc, a_key_is_told_what_it_may_use, 0, ARRAY_LEN(keys));
}
