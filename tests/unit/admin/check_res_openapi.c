/* Svc.OpenApi: who may ask for the document, and when it is another. What it has, check_openapi
 * looks at. */
#include "asking.h"

static void begin(void)
{
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]");
}

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
    ck_asks(200, "GET", "/Svc.OpenApi", NULL);
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
    ck_assert_uint_ne(span_find(answered_body(), SPAN("\"/Shop.New\"")), SIZE_MAX);
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
    ck_asks(200, "GET", "/Svc.OpenApi", NULL);
    ck_assert_uint_eq(asking.answer.serial, serial);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, it_needs_the_right);
    tcase_add_test(tc, its_tag_is_as_long_as_nothing_is_declared);
    tcase_add_test(tc, an_answer_waits_for_the_declarations);
}
