#include "testing.h"

#include "declaring.h"
#include "webhook/selector.h"

static struct resources resources;
static struct arena arena;

static const char declarations[] =
    "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":["
    "{\"Name\":\"Name\",\"Type\":\"string\"},{\"Name\":\"Age\",\"Type\":\"integer\"}]},"
    "{\"Name\":\"Shop.PersonCreated\",\"Kind\":\"EventResource\","
    "\"Payload\":{\"Resource\":\"Shop.Person\"}},"
    "{\"Name\":\"Shop.Anything\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Other.Anything\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Shop.Report\",\"Kind\":\"EventResource\","
    "\"Payload\":{\"ContentType\":\"application/pdf\"}}]";

static void set_up(void)
{
    arena_init(&arena);
    resources_init(&resources, NULL, NULL);
    ck_ok(declaring(&resources, declarations, &arena));
}

static void tear_down(void)
{
    resources_done(&resources);
    arena_done(&arena);
}

START_TEST(good_selectors)
{
    static const struct {
        const char *text, *normal;
    } cases[] = {
        {"/Shop.PersonCreated", "/Shop.PersonCreated"},
        {"/personcreated", "/Shop.PersonCreated"},
        {"/personcreated/", "/Shop.PersonCreated"},
        {"/personcreated/_", "/Shop.PersonCreated"},
        {"/PersonCreated/name.length>10&AGE!=null", "/Shop.PersonCreated/Name.Length>10&Age!=null"},
        {"/PersonCreated/Name=''", "/Shop.PersonCreated/Name=''"},
        {"/Shop.Anything/a.b.0>=1&a.b.0<%202", NULL},
        {"/Shop.Anything/x=true", "/Shop.Anything/x=true"},
        {"/Shop.Report", "/Shop.Report"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct selector selector, again;

        ck_ok(selector_parse(&resources, span_str(cases[i].text), NULL, 64, &arena, &selector));
        if (cases[i].normal != NULL)
            ck_span_is(selector.normal, span_str(cases[i].normal));
        ck_ok(selector_parse(&resources, selector.normal, NULL, 64, &arena, &again));
        ck_span_is(again.normal, selector.normal);
        ck_assert_ptr_eq(again.resource, selector.resource);
    }
}
END_TEST

START_TEST(patterns)
{
    static const struct {
        const char *text, *pattern, *normal, *name;
    } cases[] = {
        {"/*", "*", "/*", "*"},
        {"/%2a", "*", "/*", "*"},
        {"/Shop.*", "shop.*", "/Shop.*", "Shop.*"},
        {"/Shop.Inner_1.x-y.*/_/", "shop.inner_1.x-y.*", "/Shop.Inner_1.x-y.*",
         "Shop.Inner_1.x-y.*"},
        {"/shop.*/a=1&B.Length>2", "shop.*", "/shop.*/a=1&B.Length>2", "shop.*"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct selector selector;

        ck_ok(selector_parse(&resources, span_str(cases[i].text), NULL, 64, &arena, &selector));
        ck_assert_ptr_null(selector.resource);
        ck_span_is(selector.pattern, span_str(cases[i].pattern));
        ck_span_is(selector.normal, span_str(cases[i].normal));
        ck_span_is(selector_name(&selector), span_str(cases[i].name));
        ck_assert_int_eq(
            selector_covers(&selector, resource_named(&resources, SPAN("Shop.PersonCreated"))),
            i != 3);
        ck_assert(!selector_covers(&selector, resource_named(&resources, SPAN("Shop.Person"))));
    }
}
END_TEST

START_TEST(bad_selectors)
{
    static const struct {
        const char *text;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"", ERR_INVALID_EVENT_SELECTOR, "does not begin with '/'"},
        {"PersonCreated", ERR_INVALID_EVENT_SELECTOR, "does not begin with '/'"},
        {"/", ERR_INVALID_EVENT_SELECTOR, "names no event resource"},
        {"/_/a=1", ERR_INVALID_EVENT_SELECTOR, "names no event resource"},
        {"/NoSuchThing", ERR_INVALID_EVENT_SELECTOR, "could not locate any resource"},
        {"/Anything", ERR_INVALID_EVENT_SELECTOR, "Other.Anything, Shop.Anything"},
        {"/Person", ERR_WRONG_SELECTOR_KIND, "EntityResource, not EventResource"},
        {"/PersonCreated/_/limit=1", ERR_INVALID_EVENT_SELECTOR, "meta-conditions"},
        {"/PersonCreated/Nam=1", ERR_INVALID_EVENT_SELECTOR, "Nam"},
        {"/PersonCreated/Age=old", ERR_INVALID_EVENT_SELECTOR, "Age"},
        {"/PersonCreated/Age", ERR_INVALID_EVENT_SELECTOR, "Age"},
        {"/PersonCreated/Age=%zz", ERR_INVALID_EVENT_SELECTOR, "%zz"},
        {"/PersonCreated/a/b/c", ERR_INVALID_EVENT_SELECTOR, "three parts"},
        {"/Shop.Per*", ERR_INVALID_EVENT_SELECTOR, "could not locate"},
        {"/Shop.*.*", ERR_INVALID_EVENT_SELECTOR, "no pattern"},
        {"/.*", ERR_INVALID_EVENT_SELECTOR, "no pattern"},
        {"/Sh p.*", ERR_INVALID_EVENT_SELECTOR, "no pattern"},
        {"/*/_/limit=1", ERR_INVALID_EVENT_SELECTOR, "meta-conditions"},
        {"/*/a", ERR_INVALID_EVENT_SELECTOR, "a"},
        {"/Report/a=1", ERR_INVALID_EVENT_SELECTOR, "binary payload"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct selector selector;

        ck_fails(selector_parse(&resources, span_str(cases[i].text), NULL, 64, &arena, &selector),
                 cases[i].code, cases[i].words);
    }
}
END_TEST

START_TEST(conditions_are_bounded)
{
    struct selector selector;

    ck_fails(
        selector_parse(&resources, SPAN("/Shop.Anything/a=1&b=2&c=3"), NULL, 2, &arena, &selector),
        ERR_INVALID_EVENT_SELECTOR, "2");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, good_selectors);
    tcase_add_test(tc, patterns);
    tcase_add_test(tc, bad_selectors);
    tcase_add_test(tc, conditions_are_bounded);
}
