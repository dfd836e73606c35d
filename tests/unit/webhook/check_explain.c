/* Explanations over a selector and a payload. Requests are tests/conformance/explain.txt. */
#include "declaring.h"
#include "testing.h"

#include "webhook/explain.h"
#include "webhook/selector.h"

static struct arena arena;
static struct resources resources;

static void begin(void)
{
    arena_init(&arena);
    resources_init(&resources, NULL, NULL);
    ck_ok(declaring(&resources,
                    "[{\"Name\":\"A.One\",\"Kind\":\"EventResource\"},"
                    "{\"Name\":\"A.Two\",\"Kind\":\"EventResource\"}]",
                    &arena));
}

static void end(void)
{
    resources_done(&resources);
    arena_done(&arena);
}

static struct explanation *asked(const char *selector_text, const char *payload,
                                 const char *refused, size_t *out_count)
{
    struct selector *selector = ARENA_NEW(&arena, struct selector);
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);
    struct explain_event event = {.resource = resource_named(&resources, SPAN("A.One"))};

    ck_ok(selector_parse(&resources, span_str(selector_text), NULL, 64, &arena, selector));
    if (payload != NULL) {
        ck_ok(json_parse(span_str(payload), NULL, &arena, doc));
        event.payload = json_root(doc);
    }
    return explain(selector, &event, refused == NULL ? SPAN("") : span_str(refused), &arena,
                   out_count);
}

START_TEST(an_explanation_an_entity)
{
    static const struct {
        const char *selector, *payload, *refused;
        const char *matches; /* y or n for each */
    } cases[] = {
        {"/One", "{}", NULL, "y"},
        {"/One", "[]", NULL, "y"},
        {"/One", "[{},{}]", NULL, "yy"},
        {"/One", NULL, NULL, "y"},
        {"/One/a=1", "{\"a\":1}", NULL, "y"},
        {"/One/a=1", "[]", NULL, "n"},
        {"/One/a=1", "[{\"a\":1},{\"a\":2},{\"a\":1.0}]", NULL, "yny"},
        {"/One/a=1", "{\"a\":1}", "It is paused.", "n"},
        {"/Two", "[{},{}]", NULL, "nn"},
        {"/Two/a=1", "{\"a\":1}", NULL, "n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t count;
        const struct explanation *all =
            asked(cases[i].selector, cases[i].payload, cases[i].refused, &count);

        ck_assert_uint_eq(count, strlen(cases[i].matches));
        for (size_t k = 0; k < count; k++)
            ck_assert_msg(all[k].matches == (cases[i].matches[k] == 'y'), "%s on %s, entity %zu",
                          cases[i].selector, cases[i].payload, k);
    }
}
END_TEST

START_TEST(conditions_are_shown_with_what_they_met)
{
    size_t count;
    const struct explanation *all =
        asked("/One/a.b>1&l.*!=2", "{\"a\":{\"b\":\"x\"},\"l\":[1,\"\\u00e4\"]}", NULL, &count);

    ck_assert_uint_eq(count, 1);
    ck_span_eq(all[0].json,
               "{\"Matches\":false,\"Reason\":\"The condition a.b>1 does not hold.\","
               "\"Selector\":\"/A.One/a.b>1&l.*!=2\",\"Conditions\":["
               "{\"Condition\":\"a.b>1\",\"Value\":\"x\",\"Holds\":false},"
               "{\"Condition\":\"l.*!=2\",\"Value\":[1,\"\xc3\xa4\"],\"Holds\":true}]}");
}
END_TEST

START_TEST(a_reason_from_outside_comes_first)
{
    size_t count;
    const struct explanation *all = asked("/One/a=1", "{\"a\":1}", "It is paused.", &count);

    ck_span_eq(all[0].json,
               "{\"Matches\":false,\"Reason\":\"It is paused.\",\"Selector\":\"/A.One/a=1\","
               "\"Conditions\":[{\"Condition\":\"a=1\",\"Value\":1,\"Holds\":true}]}");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, an_explanation_an_entity);
    tcase_add_test(tc, conditions_are_shown_with_what_they_met);
    tcase_add_test(tc, a_reason_from_outside_comes_first);
}
