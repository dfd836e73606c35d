/* What is kept of an operation that failed. */
#include "asking.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "access/mask.h"
#include "base/clock.h"
#include "base/text.h"
#include "dispatch/error_log.h"
#include "io/fault.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"

#include <string.h>

enum { TEXT_MOST = 10000 };

static void begin(void)
{
    clock_fake(INT64_C(1700000000123456789), UINT64_C(1000000000));
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":["
                "{\"Name\":\"Name\",\"Type\":\"string\"}]}]");
}

/* The only error, or the last one, as the answer. */
static void look(void)
{
    ck_asks(200, "GET", "/Svc.Admin.Error/_/offset=-1", NULL);
}

/* ---- which ---- */

static const enum err_code passing[] = {ERR_NOT_SIGNED_IN, ERR_NOT_AUTHORIZED,
                                        ERR_TOO_MANY_REQUESTS, ERR_OVERLOADED, ERR_NO_LEADER};

START_TEST(all_but_a_few_are_kept)
{
    size_t kept = 0;

    for (unsigned code = 0; code < ERR_CODE_COUNT; code++)
        kept += error_log_keeps(code);
    ck_assert_uint_eq(kept, ERR_CODE_COUNT - ARRAY_LEN(passing));
    for (size_t i = 0; i < ARRAY_LEN(passing); i++)
        ck_assert(!error_log_keeps(passing[i]));
}
END_TEST

/* ---- what ---- */

START_TEST(an_error_says_what_was_asked)
{
    uint64_t serial = asking_serial();

    ask_with("Accept: */*\nX-Trace: a|b", "POST", "/person/name=A%2Fb/", "{\"Nme\":\"\\u00e4\"}");
    ck_problem(ERR_UNKNOWN_MEMBER, "Nme");
    look();
    ck_member_eq("0.Time", "\"2023-11-14T22:13:20.1234567Z\"");
    ck_member_eq("0.ResourceName", "\"Shop.Person\"");
    ck_member_eq("0.Action", "\"POST\"");
    ck_member_eq("0.ErrorCode", "\"UnknownProperty\"");
    ck_member_eq("0.Message", "\"Nme: there is no such member, is 'Name' meant?\"");
    ck_member_eq("0.Uri", "\"/Shop.Person/name=A%2Fb/_\"");
    ck_member_eq("0.Headers", "\"Accept: */* | X-Trace: a|b\"");
    ck_member_eq("0.Body", "\"{\\\"Nme\\\":\\\"\\\\u00e4\\\"}\"");
    ck_span_is(answered("0.ObjectNo"), arena_u64(&asking.arena, serial));
    ck_assert(span_starts(span_str(answered_text("0.StackTrace")), SPAN("at ")));
    ck_assert(span_find(span_str(answered_text("0.StackTrace")),
                        SPAN("at dispatch_run (src/dispatch/dispatch.c:")) == SIZE_MAX);
    ck_assert(span_find(span_str(answered_text("0.StackTrace")),
                        SPAN("\nat crud_insert (src/rest/crud.c:")) != SIZE_MAX);
}
END_TEST

/* Target, and what Uri says; the resource. */
static const struct {
    const char *target, *uri, *resource;
} targets[] = {
    {"/Nobody", "/Nobody/_/_", "<unknown>"},
    {"/Nobody/a=1", "/Nobody/a=1/_", "<unknown>"},
    {"/Nobody/a>1&b=x%26y/limit=1", "/Nobody/a>1&b=x%26y/limit=1", "<unknown>"},
    {"/Nobody/a%3E1&%62=%61/", "/Nobody/a>1&b=a/_", "<unknown>"},
    {"/Nobody/a/limit", "/Nobody/a/limit", "<unknown>"},
    {"/person/Nme=1", "/Shop.Person/Nme=1/_", "Shop.Person"},
    {"/person/_/limt=1", "/Shop.Person/_/limt=1", "Shop.Person"},
    {"/person/Name/limit=1", "/Shop.Person/Name/limit=1", "Shop.Person"},
    {"/a/b/c/d", "/a/b/c/d", "<unknown>"},
    {"/a%", "/a%", "<unknown>"},
    {"x", "x", "<unknown>"},
    /* Without the secrets in it. */
    {"/Nobody/Headers.Cookie=sesame&b=1", "/Nobody/Headers.Cookie=*******&b=1/_", "<unknown>"},
    {"/Nobody/Signing.Secrets.0=sesame", "/Nobody/Signing.Secrets.0=*******/_", "<unknown>"},
    {"/person/Nme=apikey%20sesame/search=whsec_sesame", "/Shop.Person/Nme=*******/search=*******",
     "Shop.Person"},
    {"/person/Cookie=sesame/limit", "/Shop.Person/Cookie=*******", "Shop.Person"},
    {"/apikey%20sesame", "/*******/_/_", "<unknown>"},
    {"/a/b/c/d/Bearer%20sesame", "/a/b/c/d/*******", "<unknown>"},
};

START_TEST(a_uri_is_in_normal_form_where_it_has_one)
{
    ask("GET", targets[_i].target, NULL);
    ck_assert_int_ge(asking.answer.status, 400);
    look();
    ck_assert_str_eq(answered_text("0.Uri"), targets[_i].uri);
    ck_assert_str_eq(answered_text("0.ResourceName"), targets[_i].resource);
}
END_TEST

START_TEST(the_method_is_as_it_came)
{
    ask("BREW\"", "/person", NULL);
    ck_status(501);
    look();
    ck_member_eq("0.Action", "\"BREW\\\"\"");
    ck_member_eq("0.Body", "null");
    ck_member_eq("0.Headers", "\"\"");
}
END_TEST

/* ---- secrets ---- */

START_TEST(secret_headers_are_masked)
{
    ask_with("authorization: apikey sesame\nCookie: a=sesame\nX-API-Key: sesame\n"
             "Proxy-Authorization: Basic sesame\nX-Other: open",
             "GET", "/Nobody", NULL);
    ck_problem(ERR_NOT_SIGNED_IN, "");
    asking_add_key("sesame", "[]");
    ask_with("authorization: apikey sesame\nCookie: a=sesame\nX-API-Key: sesame\n"
             "Proxy-Authorization: Basic sesame\nX-Other: open",
             "GET", "/Nobody", NULL);
    ck_problem(ERR_UNKNOWN_RESOURCE, "");
    asking.service->rest.access->required = false;
    look();
    ck_member_eq("0.Headers", "\"authorization: apikey ******* | Cookie: ******* | X-API-Key: "
                              "******* | Proxy-Authorization: ******* | X-Other: open\"");
}
END_TEST

static const struct {
    const char *target, *body, *shown;
} bodies[] = {
    /* Of a resource with secrets. */
    {"/Webhook/x", "{\"Headers\":{\"authorization\":\"sesame\",\"a\":1}}",
     "{\"Headers\":{\"authorization\":\"" MASK "\",\"a\":1}}"},
    {"/Webhook/x", "{\"Signing\":{\"secrets\":[\"sesame\",\"sesame\"]}}",
     "{\"Signing\":{\"secrets\":[\"" MASK "\",\"" MASK "\"]}}"},
    {"/Webhook/x", "{\"Cookie\":\"sesame", "{\"Cookie\":\"" MASK},
    {"/Webhook/x", "{\"Headers\":\"open", "{\"Headers\":\"open"},
    {"/Webhook/x", "[]", "[]"},
    /* Of one that is not known. */
    {"/Webhok", "{\"X-Api-Key\":\"sesame\"}", "{\"X-Api-Key\":\"" MASK "\"}"},
    {"/Webhok", "cookie: sesame", "cookie: " MASK},
    {"/Webhok", "a cookie", "a cookie"},
    {"/Webhok", "[\"apikey sesame\"]", "[\"" MASK "\"]"},
    {"/Webhok", "[\"https://me:sesame@a.test/\"]", "[\"https://" MASK "@a.test/\"]"},
    {"/Webhok", "{ \"a\" : [ 1 ] }", "{ \"a\" : [ 1 ] }"},
    {"/Webhok", "no JSON", "no JSON"},
    /* Of one without secrets of its own. */
    {"/Person/x", "{ \"Authorization\":\"sesame\" }", "{\"Authorization\":\"" MASK "\"}"},
    {"/Person/x", "{ \"Name\":\"basic\" }", "{ \"Name\":\"basic\" }"},
    /* Bytes that are no text. */
    {"/Person/x", "\xff\x01z", "base64:/wF6"},
};

START_TEST(bodies_are_shown_without_their_secrets)
{
    ask("POST", bodies[_i].target, bodies[_i].body);
    ck_assert_int_ge(asking.answer.status, 400);
    look();
    ck_assert_str_eq(answered_text("0.Body"), bodies[_i].shown);
}
END_TEST

/* ---- how much ---- */

static const char *repeated(const char *what, size_t count)
{
    size_t n = strlen(what);
    char *text = arena_alloc(&asking.arena, n * count + 1);

    for (size_t i = 0; i < count; i++)
        memcpy(text + i * n, what, n);
    text[n * count] = 0;
    return text;
}

START_TEST(long_texts_are_cut_between_characters)
{
    ask("POST", "/Person/x", repeated("\xc3\xa4", TEXT_MOST));
    look();
    ck_assert_uint_eq(text_scalar_count(span_str(answered_text("0.Body"))), TEXT_MOST);
    ask("POST", "/Person/x", repeated("\xc3\xa4", TEXT_MOST + 1));
    look();
    ck_assert_uint_eq(text_scalar_count(span_str(answered_text("0.Body"))), TEXT_MOST);
    ask("POST", "/Person/x", repeated("\xff", TEXT_MOST));
    look();
    ck_assert_uint_le(strlen(answered_text("0.Body")), TEXT_MOST);
    ck_assert_uint_gt(strlen(answered_text("0.Body")), TEXT_MOST - 8);
    ck_assert_uint_eq(strlen(answered_text("0.Body")) % 4, 7 % 4);
    ask_with(asking_printf("A: %s", repeated("a", 3000)), "GET",
             asking_printf("/%s", repeated("b", 3000)), NULL);
    look();
    ck_assert_uint_eq(strlen(answered_text("0.Headers")), 3003);
    ck_assert_uint_eq(strlen(answered_text("0.Uri")), 3000 + sizeof("//_/_") - 1);
}
END_TEST

/* ---- where ---- */

START_TEST(it_can_be_read_at_once_and_after_a_restart)
{
    struct span stored;

    ask("GET", "/Nobody", NULL);
    ck_problem(ERR_UNKNOWN_RESOURCE, "");
    ck_asks(
        200, "GET",
        asking_printf("%.*s", SPAN_FMT(arena_copy(&asking.arena, answered_header("ErrorInfo")))),
        NULL);
    stored = asking_entities("Svc.Admin.Error");
    asking_reload();
    ck_span_is(asking_entities("Svc.Admin.Error"), stored);
    ck_asks(200, "DELETE", "/Svc.Admin.Error/ErrorCode=UnknownResource", NULL);
    ck_member_eq("0.Count", "1");
}
END_TEST

#ifdef SVCD_FAULTS

START_TEST(an_error_that_cannot_be_stored_is_answered_all_the_same)
{
    ck_assert(fault_set("disk.allocate:1+"));
    /* Each is larger than the one segment there is has room for, in the end. */
    for (int i = 0; answered_header("ErrorInfo").p != NULL || i == 0; i++) {
        ck_assert_int_lt(i, 100);
        ask("POST", "/Person/x", repeated("x", TEXT_MOST));
        ck_problem(ERR_INVALID_CONDITION_SYNTAX, "'x'");
    }
    ck_assert_ptr_null(answered("instance").p);
    ck_assert_uint_eq(asking.answer.serial, 0);
    ck_assert(fault_set(NULL));
}
END_TEST

#endif

/* ---- how large ---- */

enum { MOST_BYTES = 32768 };

/* Of a text so many times. */
static char *times(const char *text, size_t count)
{
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    for (size_t i = 0; i < count; i++)
        buf_add_str(&b, text);
    return (char *)(uintptr_t)buf_text(&b);
}

static struct span the_entity(void)
{
    struct collection *errors = store_collection(asking.service->store, error_log_resource);

    return entity_json(collection_first(errors));
}

/* URI, a header's value, body: a text and how often. */
static const struct {
    const char *uri, *header, *body;
    size_t uris, headers, bodies;
} hogs[] = {
    {"a", "\xe2\x82\xac", "\x01", 8000, 9800, 10000},
    {"a", "a", "\x01", 1, 1, 10000},
    {"a", "\"", "a", 1, 30000, 1},
    {"%01", "\\", "\\", 2000, 10000, 10000},
    {"a", "a", "\xff", 8000, 20000, 10000},
    {"a", "a", "\xf0\x9f\x98\x80", 8000, 10000, 10000},
};

START_TEST(an_error_is_bounded_as_it_is_written)
{
    struct span json;

    ask_with(arena_printf(&asking.arena, "X: %s", times(hogs[_i].header, hogs[_i].headers)).p,
             "POST", arena_printf(&asking.arena, "/%s", times(hogs[_i].uri, hogs[_i].uris)).p,
             times(hogs[_i].body, hogs[_i].bodies));
    ck_assert_int_ge(asking.answer.status, 400);
    json = the_entity();
    ck_assert_uint_le(json.n, MOST_BYTES);
    ck_assert_uint_gt(json.n, MOST_BYTES / 2); /* and no more is lost than must be */
    look();
    ck_assert(span_starts(span_str(answered_text("0.StackTrace")), SPAN("at ")));
}
END_TEST

START_TEST(a_long_text_is_kept_when_the_others_are_short)
{
    ask("POST", "/Shop.Person", times("a", 20000));
    ck_assert_int_ge(asking.answer.status, 400);
    look();
    ck_assert_uint_eq(strlen(answered_text("0.Body")), TEXT_MOST);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, all_but_a_few_are_kept);
    tcase_add_test(tc, an_error_says_what_was_asked);
    tcase_add_loop_test(tc, a_uri_is_in_normal_form_where_it_has_one, 0, ARRAY_LEN(targets));
    tcase_add_test(tc, the_method_is_as_it_came);
    tcase_add_test(tc, secret_headers_are_masked);
    tcase_add_loop_test(tc, bodies_are_shown_without_their_secrets, 0, ARRAY_LEN(bodies));
    tcase_add_test(tc, long_texts_are_cut_between_characters);
    tcase_add_test(tc, it_can_be_read_at_once_and_after_a_restart);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, an_error_that_cannot_be_stored_is_answered_all_the_same);
#endif
    tcase_add_loop_test(tc, an_error_is_bounded_as_it_is_written, 0, ARRAY_LEN(hogs));
    tcase_add_test(tc, a_long_text_is_kept_when_the_others_are_short);
}
