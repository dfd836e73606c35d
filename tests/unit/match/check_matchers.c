#include "testing.h"

#include "match/matcher.h"
#include "match/matchers.h"
#include "query/conditions.h"
#include "json/json.h"

static const struct conditions none = {NULL, 0};
static const struct span nobody = {NULL, 0};
static struct matchers *matchers;
static struct arena arena;

static void begin(void)
{
    matchers = matchers_new();
    arena_init(&arena);
}

static void end(void)
{
    matchers_free(matchers);
    arena_done(&arena);
}

static void on_found(void *context, struct matcher_entry *entry)
{
    (void)entry;
    ++*(size_t *)context;
}

static size_t found(struct span tenant)
{
    const struct json_value payload = {NULL, NULL};
    size_t count = 0;

    matchers_match(matchers, tenant, payload, &arena, on_found, &count);
    return count;
}

START_TEST(an_event_is_put_to_its_tenants_selectors_and_to_those_of_all)
{
    struct matcher_entry all = {0}, acme[2] = {{0}}, globex = {0};

    begin();
    matchers_add(matchers, nobody, &all, &none);
    matchers_add(matchers, SPAN("acme"), &acme[0], &none);
    matchers_add(matchers, SPAN("acme"), &acme[1], &none);
    matchers_add(matchers, SPAN("globex"), &globex, &none);
    ck_assert_uint_eq(matchers_count(matchers), 4);
    ck_assert_uint_eq(found(nobody), 1);
    ck_assert_uint_eq(found(SPAN("acme")), 3);
    ck_assert_uint_eq(found(SPAN("globex")), 2);
    ck_assert_uint_eq(found(SPAN("else")), 1);
    matchers_remove(matchers, nobody, &all);
    matchers_remove(matchers, SPAN("acme"), &acme[0]);
    ck_assert_uint_eq(found(SPAN("acme")), 1);
    matchers_remove(matchers, SPAN("acme"), &acme[1]);
    matchers_remove(matchers, SPAN("globex"), &globex);
    end();
}
END_TEST

/* What others select costs an event nothing, and what is empty is not kept. */
START_TEST(tenants_come_and_go)
{
    enum { MANY = 1000 };
    struct matcher_entry entries[MANY] = {{0}};
    struct matcher_stats stats;

    begin();
    for (unsigned i = 0; i < MANY; i++)
        matchers_add(matchers, arena_printf(&arena, "t%u", i), &entries[i], &none);
    ck_assert_uint_eq(matchers_tenants(matchers), MANY);
    ck_assert_uint_eq(found(SPAN("t7")), 1);
    matchers_stats(matchers, SPAN("t7"), &stats);
    ck_assert_uint_eq(stats.looked_at, 1);
    for (unsigned i = 0; i < MANY; i++)
        matchers_remove(matchers, arena_printf(&arena, "t%u", i), &entries[i]);
    ck_assert_uint_eq(matchers_tenants(matchers), 0);
    ck_assert_uint_eq(matchers_count(matchers), 0);
    end();
}
END_TEST

START_TEST(none_is_freed)
{
    matchers_free(NULL);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_event_is_put_to_its_tenants_selectors_and_to_those_of_all);
    tcase_add_test(tc, tenants_come_and_go);
    tcase_add_test(tc, none_is_freed);
}
