#include "testing.h"

#include "access/mask.h"
#include "json/json.h"

static struct arena arena;
static const char *const configured[] = {"X-Auth-Token", "Api-Key", NULL};
static const struct mask mask = {configured};

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

static struct json_value parse(const char *text)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(span_str(text), NULL, &arena, doc));
    return json_root(doc);
}

static const struct {
    const char *name, *value, *shown;
} headers[] = {
    {"Authorization", "value", "apikey *******"},
    {"AUTHORIZATION", "value", "apikey *******"},
    {"Proxy-Authorization", "value", "*******"},
    {"cookie", "value", "*******"},
    {"X-Api-Key", "value", "*******"},
    {"X-Api-Keys", "value", "value"},
    {"x-auth-token", "value", "*******"},
    {"API-KEY", "value", "*******"},
    {"Accept", "value", "value"},
    {"X-Other", "bearer value", "*******"},
    {"Referer", "http://me:pw@host/x@y", "http://*******@host/x@y"},
};

START_TEST(header_values)
{
    ck_span_is(
        mask_header_value(&mask, span_str(headers[_i].name), span_str(headers[_i].value), &arena),
        span_str(headers[_i].shown));
}
END_TEST

START_TEST(names_of_the_configuration_count_where_there_are_any)
{
    const struct mask none = {NULL};

    ck_assert(mask_is_secret_header(&mask, SPAN("api-key")));
    ck_assert(!mask_is_secret_header(&none, SPAN("api-key")));
    ck_assert(mask_is_secret_header(&none, SPAN("x-api-key")));
}
END_TEST

/* A value as it is shown; the same as a body, when NULL. */
static const struct {
    const char *in, *value, *body;
} values[] = {
    {"5", "5", NULL},
    {"[]", "[]", NULL},
    {"{}", "{}", NULL},
    {"[1, 2]", "[1,2]", "[1, 2]"},
    {"{\"a\":[1,{\"Cookie\":\"x\"}]}", "{\"a\":[1,{\"Cookie\":\"*******\"}]}", NULL},
    {"{\"h\":{\"authorization\":\"x\",\"b\":\"y\"}}",
     "{\"h\":{\"authorization\":\"*******\",\"b\":\"y\"}}", NULL},
    {"{\"Api-Key\":7}", "{\"Api-Key\":\"*******\"}", NULL},
    {"{\"Signing\":{\"Secrets\":[\"a\",2,null]}}",
     "{\"Signing\":{\"Secrets\":[\"*******\",\"*******\",null]}}", NULL},
    {"{\"secrets\":\"a\"}", "{\"secrets\":\"*******\"}", NULL},
    {"{\"Secrets\":[]}", "{\"Secrets\":[]}", NULL},
    {"{\"Authorization\":null}", "{\"Authorization\":null}", NULL},
    {"{\"Authorization\":{\"a\":\"x\"}}", "{\"Authorization\":\"*******\"}", NULL},
    {"{\"Author\\u0069zation\":\"x\"}", "{\"Author\\u0069zation\":\"*******\"}", NULL},
    {"{ \"cookie\"\n:\n\"x\" }", "{\"cookie\":\"*******\"}", NULL},
    {"[\"whsec_a\",\"whsk_\",\"svck_b\",\"APIKEY c\",\"bearer d\",\"Basic e\"]",
     "[\"*******\",\"*******\",\"*******\",\"*******\",\"*******\",\"*******\"]", NULL},
    {"[\"whs\",\"basic\",\"\"]", "[\"whs\",\"basic\",\"\"]", NULL},
    {"[\"a\\u00e4\\n\"]", "[\"a\\u00e4\\n\"]", NULL},
    {"{\"a\":\"say apikey x\"}", "{\"a\":\"say apikey x\"}", "{\"a\":\"say *******\"}"},
    {"{\"a\":\"{\\\"Cookie\\\":\\\"x\\\"}\"}", "{\"a\":\"{\\\"Cookie\\\":\\\"x\\\"}\"}",
     "{\"a\":\"{\\\"Cookie\\\":\\\"*******\\\"}\"}"},
};

START_TEST(values_however_deep)
{
    const char *body = values[_i].body != NULL ? values[_i].body : values[_i].value;
    struct buf b;

    buf_init_arena(&b, &arena);
    mask_add_value(&b, &mask, parse(values[_i].in), &arena);
    if (!mask_may_find(&mask, span_str(values[_i].in))) {
        struct buf compact;

        buf_init_arena(&compact, &arena);
        json_add_compact(&compact, parse(values[_i].in));
        ck_span_is(buf_span(&b), buf_span(&compact));
    }
    ck_span_is(buf_span(&b), span_str(values[_i].value));
    ck_span_is(mask_body(&mask, span_str(values[_i].in), NULL, &arena), span_str(body));
}
END_TEST

static const struct {
    const char *in, *out;
} texts[] = {
    {"", ""},
    {"no secret in it", "no secret in it"},
    {"Authorization required, as is a cookie", "Authorization required, as is a cookie"},
    {"Authorization: apikey a\r\nHost: b", "Authorization: *******\r\nHost: b"},
    {"Cookie: a=1; b=2\nX: y", "Cookie: *******\nX: y"},
    {"Set-Cookie: a", "Set-Cookie: *******"},
    {"x-auth-token=a&b=c", "x-auth-token=*******&b=c"},
    {"api-key='a b' c", "api-key='*******' c"},
    {"{\"Api-Key\":\"a\\\"b\",\"c\":1", "{\"Api-Key\":\"*******\",\"c\":1"},
    {"{\"Api-Key\": \"not ended", "{\"Api-Key\": \"*******"},
    {"{\"Secrets\":[\"a\",\"b\"],", "{\"Secrets\":*******"},
    {"Headers.Cookie!=a/b", "Headers.Cookie!=*******"},
    {"Headers.Cookie>a&b=1", "Headers.Cookie>*******&b=1"},
    {"<Cookie>a</Cookie>", "<Cookie>*******</Cookie>"},
    {"the secret whsec_YWJj, or svck_x-y.", "the secret *******, or *******"},
    {"begins with whsec_ or whsk_.", "begins with whsec_ or whsk_."},
    {"'apikey <KEY>', or Basic, with it", "'apikey <KEY>', or Basic, with it"},
    {"say apikey a, BEARER  b; basic c=", "say *******, *******; *******"},
    {"myapikey a", "myapikey a"},
    {"search=apikey%20a&x", "search=*******&x"},
    {"search=apikey+a&x", "search=*******&x"},
    {"at https://a:b@c.example/d and //e@f", "at https://*******@c.example/d and //*******@f"},
    {"http://a.example/b@c", "http://a.example/b@c"},
    {"Cookie:", "Cookie:"},
    {"Cookie: \"\"", "Cookie: \"\""},
    {"apikey", "apikey"},
    {"//", "//"},
    {"Cookie: a \xff\xfe", "Cookie: *******"},
    {"\xff apikey \xc3\xa4", "\xff *******"},
};

START_TEST(running_text)
{
    struct span in = span_str(texts[_i].in), out = mask_text(&mask, in, &arena);

    ck_span_is(out, span_str(texts[_i].out));
    ck_assert_int_eq(out.p == in.p, span_eq(in, out));
    /* Cut anywhere, it does not show what follows a name or a scheme. */
    for (size_t n = 0; n < in.n; n++)
        (void)mask_text(&mask, arena_copy(&arena, span_sub(in, 0, n)), &arena);
    ck_span_is(mask_text(&mask, out, &arena), out);
}
END_TEST

/* A message names members, and quotes. */
static const struct {
    const char *in, *out;
} messages[] = {
    {"Signing.Secrets: is missing", "Signing.Secrets: is missing"},
    {"Headers.Cookie: is not a string", "Headers.Cookie: is not a string"},
    {"Headers.Cookie is *******, but none is stored",
     "Headers.Cookie is *******, but none is stored"},
    {"no operator in 'Cookie:x'", "no operator in 'Cookie:*******'"},
    {"no operator in 'Headers.Cookie=x/y'", "no operator in 'Headers.Cookie=*******'"},
    {"no resource 'apikey x'", "no resource '*******'"},
    {"must be 'apikey <KEY>', 'Bearer <KEY>', or Basic, with",
     "must be 'apikey <KEY>', 'Bearer <KEY>', or Basic, with"},
    {"{\"Cookie\": \"x\"}: no comma", "{\"Cookie\": \"*******\"}: no comma"},
};

START_TEST(messages_of_the_server)
{
    ck_span_is(mask_message(&mask, span_str(messages[_i].in), &arena), span_str(messages[_i].out));
}
END_TEST

/* What is no JSON is running text; what has none of it stays as it came. */
static const struct {
    const char *in, *out;
} bodies[] = {
    {"", ""},
    {"{ \"a\" : [ 1 ] }", "{ \"a\" : [ 1 ] }"},
    {"{ \"a\" : \"\\\\\" }", "{ \"a\" : \"\\\\\" }"},
    {"{\"Cookie\":null, \"a\":1}", "{\"Cookie\":null, \"a\":1}"},
    {"{\"svck_a\" : 1,\"b Bearer c\":{\"Secrets\":null}}",
     "{\"*******\":1,\"b *******\":{\"Secrets\":null}}"},
    {"{\"Cookie\":\"a\"", "{\"Cookie\":\"*******\""},
    {"{\"Cookie\":\"a\"}\n{\"Cookie\":\"b\"}",
     "{\"Cookie\":\"*******\"}\n{\"Cookie\":\"*******\"}"},
};

START_TEST(bodies_of_every_kind)
{
    ck_span_is(mask_body(&mask, span_str(bodies[_i].in), NULL, &arena), span_str(bodies[_i].out));
}
END_TEST

START_TEST(most_texts_need_not_be_read)
{
    static const struct {
        const char *json;
        bool may;
    } cases[] = {
        {"{\"Id\":\"1\",\"Headers\":{\"X\":\"y\"},\"Signing\":null}", false},
        {"{\"Destination\":\"http://a.test/basic/bearer\"}", false},
        {"{\"a\":\"Basic \"}", true},
        {"{\"COOKIE\":\"\"}", true},
        {"{\"api-key\":1}", true},
        {"{\"secrets\":[]}", true},
        {"{\"\\u0063ookie\":1}", true},
        {"{\"a\":\"whsk_\"}", true},
        {"", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_msg(mask_may_find(&mask, span_str(cases[i].json)) == cases[i].may, "%s",
                      cases[i].json);
}
END_TEST

START_TEST(the_mask_is_one_text)
{
    ck_assert(mask_is(parse("\"*******\""), &arena));
    ck_assert(mask_is(parse("\"\\u002a******\""), &arena));
    ck_assert(!mask_is(parse("\"********\""), &arena));
    ck_assert(!mask_is(parse("[\"*******\"]"), &arena));
    ck_assert(!mask_is((struct json_value){NULL, NULL}, &arena));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, header_values, 0, ARRAY_LEN(headers));
    tcase_add_test(tc, names_of_the_configuration_count_where_there_are_any);
    tcase_add_loop_test(tc, values_however_deep, 0, ARRAY_LEN(values));
    tcase_add_loop_test(tc, running_text, 0, ARRAY_LEN(texts));
    tcase_add_loop_test(tc, messages_of_the_server, 0, ARRAY_LEN(messages));
    tcase_add_loop_test(tc, bodies_of_every_kind, 0, ARRAY_LEN(bodies));
    tcase_add_test(tc, most_texts_need_not_be_read);
    tcase_add_test(tc, the_mask_is_one_text);
}
