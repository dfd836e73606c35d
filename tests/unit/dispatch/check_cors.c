/* What a browser is told: by the request's Origin, the origins that are configured, and who asks.
 */
#include "asking.h"
#include "base/header_field.h"

static const char resources[] =
    "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"},"
    "{\"Name\":\"Shop.Archive\",\"Kind\":\"EntityResource\",\"Methods\":[\"GET\"]},"
    "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]";

static void begin(void)
{
    asking_open(resources);
}

static const char *none[] = {NULL};
static const char *two[] = {"https://app.example", "http://localhost:3000", NULL};
static const char *any[] = {"*", NULL};
static const char *any_too[] = {"https://app.example", "*", NULL};

static const struct {
    const char **configured, *origin;
    bool varies, is_allowed;
} origins[] = {
    {NULL, "https://app.example", false, false},
    {NULL, NULL, false, false},
    {none, "https://app.example", true, false},
    {two, NULL, true, false},
    {two, "https://app.example", true, true},
    {two, "HTTPS://App.Example", true, true},
    {two, "http://localhost:3000", true, true},
    {two, "http://localhost:3001", true, false},
    {two, "http://localhost", true, false},
    {two, "https://app.example.", true, false},
    {two, "https://app.exampl", true, false},
    {two, "null", true, false},
    {two, "*", true, false},
    {two, "", true, false},
    {any, "https://any.example", true, true},
    {any, "null", true, true},
    {any, NULL, true, false},
    {any_too, "https://any.example", true, true},
};

static const char *origin_header(const char *origin)
{
    return origin == NULL ? NULL : asking_printf("Origin: %s", origin);
}

static void check_headers(const char *varies, const char *allowed)
{
    ck_span_is(answered_header("Vary"), span_str(varies));
    ck_span_is(answered_header("Access-Control-Allow-Origin"), span_str(allowed));
    ck_assert((answered_header("Access-Control-Expose-Headers").p != NULL) == (allowed != NULL));
}

/* It is the request's own spelling that is allowed, never `*`: requests carry keys. */
START_TEST(an_origin_is_allowed_by_the_list)
{
    const char *allowed = origins[_i].is_allowed ? origins[_i].origin : NULL;
    const char *varies = origins[_i].varies ? "Accept, Origin" : "Accept";
    bool is_foreign = origins[_i].origin != NULL && allowed == NULL;

    asking.service->rest.cors_origins = origins[_i].configured;
    ask_with(origin_header(origins[_i].origin), "GET", "/Person", NULL);
    if (is_foreign) {
        ck_problem(ERR_NOT_AUTHORIZED, "pages of other sites");
        check_headers(varies, NULL);
        return;
    }
    ck_status(204);
    check_headers(varies, allowed);
    ask_with(origin_header(origins[_i].origin), "GET", "/Nobody", NULL);
    ck_problem(ERR_UNKNOWN_RESOURCE, "");
    check_headers(varies, allowed);
    ask_with(origin_header(origins[_i].origin), "OPTIONS", "/Person", NULL);
    ck_status(200);
    check_headers(varies, allowed);
    ck_assert_ptr_null(answered_header("Access-Control-Allow-Methods").p);
}
END_TEST

START_TEST(an_error_of_the_key_can_be_read_too)
{
    asking.service->rest.cors_origins = two;
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    ask_with("Origin: https://app.example", "GET", "/Person", NULL);
    ck_problem(ERR_NOT_SIGNED_IN, "");
    check_headers("Accept, Origin", "https://app.example");
}
END_TEST

START_TEST(local_requests_come_from_no_browser)
{
    const struct header_field header = {SPAN("Origin"), SPAN("https://app.example")};
    const struct request request = {
        .method = SPAN("GET"),
        .target = SPAN("/Person"),
        .headers = &header,
        .header_count = 1,
        .is_local = true,
    };

    asking.service->rest.cors_origins = two;
    ask_request(&request);
    check_headers(NULL, NULL);
}
END_TEST

static const struct {
    const char *headers, *target, *methods; /* NULL: no answer to a preflight */
} preflights[] = {
    {"Origin: https://app.example\nAccess-Control-Request-Method: PATCH", "/Person",
     "GET, POST, PATCH, PUT, DELETE, REPORT, HEAD"},
    {"Origin: https://app.example\nAccess-Control-Request-Method: PATCH", "/Archive",
     "GET, POST, PATCH, PUT, DELETE, REPORT, HEAD"},
    {"Origin: https://app.example\nAccess-Control-Request-Method: PATCH", "/Nobody/%zz",
     "GET, POST, PATCH, PUT, DELETE, REPORT, HEAD"},
    {"Origin: https://app.example", "/Person", NULL},
    {"Access-Control-Request-Method: PATCH", "/Person", NULL},
    {"Origin: https://evil.example\nAccess-Control-Request-Method: PATCH", "/Person", NULL},
};

START_TEST(a_preflight_is_told_what_may_be_sent)
{
    const char *methods = preflights[_i].methods;

    asking.service->rest.cors_origins = two;
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    ask_with(preflights[_i].headers, "OPTIONS", preflights[_i].target, NULL);
    ck_status(methods != NULL ? 200 : 401);
    ck_assert_ptr_null(answered_header("Allow").p);
    ck_span_is(answered_header("Access-Control-Allow-Methods"), span_str(methods));
    ck_span_is(answered_header("Access-Control-Max-Age"), span_str(methods != NULL ? "600" : NULL));
    ck_span_is(answered_header("Access-Control-Allow-Headers"),
               span_str(methods != NULL
                            ? "Authorization, Content-Type, Accept, If-Match, If-None-Match, "
                              "Idempotency-Key, Last-Event-ID, Prefer, Svc-min-serial"
                            : NULL));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, an_origin_is_allowed_by_the_list, 0, ARRAY_LEN(origins));
    tcase_add_test(tc, an_error_of_the_key_can_be_read_too);
    tcase_add_test(tc, local_requests_come_from_no_browser);
    tcase_add_loop_test(tc, a_preflight_is_told_what_may_be_sent, 0, ARRAY_LEN(preflights));
}
