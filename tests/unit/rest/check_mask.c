#include "testing.h"

#include "rest/mask.h"

static struct arena arena;

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

START_TEST(header_values)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {
        {"Authorization", "apikey *******"},
        {"AUTHORIZATION", "apikey *******"},
        {"Proxy-Authorization", "*******"},
        {"cookie", "*******"},
        {"X-Api-Key", "*******"},
        {"X-Api-Keys", "value"},
        {"Accept", "value"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_span_is(mask_header_value(span_str(cases[i].name), SPAN("value")),
                   span_str(cases[i].shown));
}
END_TEST

START_TEST(values_however_deep)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"5", "5"},
        {"[]", "[]"},
        {"{\"a\":[1,{\"Cookie\":\"x\"}]}", "{\"a\":[1,{\"Cookie\":\"*******\"}]}"},
        {"{\"headers\":{\"authorization\":\"x\",\"b\":\"y\"}}",
         "{\"headers\":{\"authorization\":\"*******\",\"b\":\"y\"}}"},
        {"{\"Signing\":{\"Secrets\":[\"a\",\"b\"]}}", "{\"Signing\":{\"Secrets\":\"*******\"}}"},
        {"{\"Authorization\":null}", "{\"Authorization\":null}"},
        {"{\"Authorization\":{\"a\":\"x\"}}", "{\"Authorization\":\"*******\"}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;

        buf_init(&b, 4096);
        mask_add_value(&b, parse(cases[i].in), &arena);
        ck_span_is(buf_span(&b), span_str(cases[i].out));
        buf_done(&b);
    }
}
END_TEST

START_TEST(the_mask_keeps_what_is_stored)
{
    struct json_value old = parse("{\"authorization\":\"secret\"}");
    struct json_value mask = parse("\"*******\""), fresh = parse("\"new\"");

    ck_span_eq(json_text(mask_restore(SPAN("Authorization"), mask, old, &arena)), "\"secret\"");
    ck_span_eq(json_text(mask_restore(SPAN("Authorization"), fresh, old, &arena)), "\"new\"");
    ck_span_eq(json_text(mask_restore(SPAN("Cookie"), mask, old, &arena)), "\"*******\"");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, header_values);
    tcase_add_test(tc, values_however_deep);
    tcase_add_test(tc, the_mask_keeps_what_is_stored);
}
