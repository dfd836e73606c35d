#include "testing.h"

#include "match/matcher.h"
#include "match/matchers.h"
#include "match/scopes.h"
#include "query/conditions.h"
#include "query/shape.h"
#include "query/uri.h"
#include "json/json.h"

static const struct conditions none = {NULL, 0};
static const struct span nobody = {NULL, 0};
static struct scopes *scopes;
static struct arena arena;

static void set_up(void)
{
    scopes = scopes_new();
    arena_init(&arena);
}

static void tear_down(void)
{
    scopes_free(scopes);
    arena_done(&arena);
}

static void on_found(void *context, struct matcher_entry *entry)
{
    (void)entry;
    ++*(size_t *)context;
}

static size_t found(const char *name, bool every, struct span tenant)
{
    const struct json_value payload = {NULL, NULL};
    size_t count = 0;

    scopes_match(scopes, span_str(name), every, tenant, payload, &arena, on_found, &count);
    return count;
}

static const struct {
    const char *pattern, *name;
    bool covers;
} covered[] = {
    {"*", "shop.paid", true},
    {"*", "a.b.c", true},
    {"shop.*", "shop.paid", true},
    {"shop.*", "shop.inner.paid", false},
    {"shop.*", "shopping.paid", false},
    {"shop.*", "shop", false},
    {"shop.inner.*", "shop.inner.paid", true},
    {"shop.paid", "shop.paid", true},
    {"shop.paid", "shop.pai", false},
};

START_TEST(a_pattern_covers_names)
{
    ck_assert_int_eq(scope_covers(span_str(covered[_i].pattern), span_str(covered[_i].name)),
                     covered[_i].covers);
}
END_TEST

/* What is found is what the patterns cover. */
START_TEST(an_event_is_put_to_the_patterns_that_cover_it)
{
    static const char *const patterns[] = {"*", "shop.*", "shop.inner.*", "shop.paid", "other.*"};
    static const char *const names[] = {"shop.paid", "shop.placed", "shop.inner.paid", "x.y"};
    struct matcher_entry entries[ARRAY_LEN(patterns)] = {{0}};
    struct scope *added[ARRAY_LEN(patterns)];

    ck_assert_uint_eq(found("shop.paid", true, nobody), 0);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        added[i] = scopes_add(scopes, span_str(patterns[i]), nobody, &entries[i], &none);
    ck_assert_uint_eq(scopes_count(scopes), ARRAY_LEN(patterns));
    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        size_t expected = 0;

        for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
            expected += scope_covers(span_str(patterns[i]), span_str(names[n]));
        ck_assert_uint_eq(found(names[n], true, nobody), expected);
        ck_assert_uint_eq(found(names[n], false, nobody), expected - 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        ck_span_is(scope_pattern(added[i]), span_str(patterns[i]));
        scopes_remove(scopes, added[i], nobody, &entries[i]);
    }
    ck_assert_uint_eq(scopes_count(scopes), 0);
    scopes_free(NULL);
}
END_TEST

START_TEST(tenants_are_kept_apart)
{
    struct matcher_entry all = {0}, acme = {0};
    struct scope *of_all = scopes_add(scopes, SPAN("a.*"), nobody, &all, &none);
    struct scope *of_acme = scopes_add(scopes, SPAN("a.*"), SPAN("acme"), &acme, &none);

    ck_assert_ptr_eq(of_all, of_acme);
    ck_assert_uint_eq(found("a.b", true, nobody), 1);
    ck_assert_uint_eq(found("a.b", true, SPAN("acme")), 2);
    ck_assert_uint_eq(found("a.b", true, SPAN("globex")), 1);
    scopes_remove(scopes, of_all, nobody, &all);
    ck_assert_uint_eq(found("a.b", true, SPAN("acme")), 1);
    scopes_remove(scopes, of_acme, SPAN("acme"), &acme);
}
END_TEST

/* Very many selectors of which some have patterns: what an event evaluates and looks at follows
 * what matches it. */
enum { SELECTORS = 20000, PATTERN_EACH = 100, EVENTS = 100 };

static const struct shape dynamic = {.dynamic = true};

struct selector {
    struct matcher_entry entry;
    struct scope *scope; /* NULL: it is in the matchers of the resource */
};

static void add_one(struct matchers *exact, struct selector *selector, unsigned i)
{
    static const char *const patterns[] = {"*", "shop.*", "hr.*", "shop.paid"};
    struct span text = arena_printf(&arena, "/x/Customer=c%u&Total>%u", i, i % 1000);
    struct conditions conditions;
    struct uri uri;

    ck_ok(uri_parse(text, SPAN("/"), 64, &arena, &uri));
    ck_ok(conditions_parse(uri.conditions, uri.condition_count, &dynamic, &arena, &conditions));
    if (i % PATTERN_EACH == 0)
        selector->scope =
            scopes_add(scopes, span_str(patterns[i / PATTERN_EACH % ARRAY_LEN(patterns)]), nobody,
                       &selector->entry, &conditions);
    else
        matchers_add(exact, nobody, &selector->entry, &conditions);
}

START_TEST(very_many_selectors_cost_an_event_nothing)
{
    struct matchers *exact = matchers_new();
    struct selector *selectors = mem_zero(SELECTORS * sizeof(*selectors));
    uint64_t evaluated, looked_at;
    struct json_doc doc;
    size_t count = 0;

    for (unsigned i = 0; i < SELECTORS; i++)
        add_one(exact, &selectors[i], i);
    ck_ok(json_parse(SPAN("{\"Customer\":\"c400\",\"Total\":5000,\"No\":1,\"Text\":\"abc\"}"), NULL,
                     &arena, &doc));
    for (unsigned i = 0; i < EVENTS; i++)
        scopes_match(scopes, SPAN("shop.paid"), true, nobody, json_root(&doc), &arena, on_found,
                     &count);
    scopes_stats(scopes, &evaluated, &looked_at);
    ck_assert_uint_eq(count, EVENTS);
    ck_assert_uint_eq(looked_at / EVENTS, 1);
    ck_assert_uint_le(evaluated / EVENTS, 12);
    for (unsigned i = 0; i < SELECTORS; i++) {
        if (selectors[i].scope != NULL)
            scopes_remove(scopes, selectors[i].scope, nobody, &selectors[i].entry);
        else
            matchers_remove(exact, nobody, &selectors[i].entry);
    }
    mem_free(selectors);
    matchers_free(exact);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, a_pattern_covers_names, 0, ARRAY_LEN(covered));
    tcase_add_test(tc, an_event_is_put_to_the_patterns_that_cover_it);
    tcase_add_test(tc, tenants_are_kept_apart);
    tcase_add_test(tc, very_many_selectors_cost_an_event_nothing);
}
