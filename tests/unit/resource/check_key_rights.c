#include "access/access.h"
#include "declaring.h"
#include "query/shape.h"
#include "resource/key_rights.h"
#include "resource/resource.h"
#include "json/json.h"

static struct resources resources;
static struct arena arena;

static void set_up(void)
{
    static const struct resource_definition builtins[] = {
        {.name = SPAN_INIT("Svc.Admin.Error"),
         .kind = KIND_ENTITY,
         .methods = METHODS_READ | METHOD_BIT(METHOD_DELETE)},
        {.name = SPAN_INIT("Svc.DeliveryDead"), .kind = KIND_EVENT},
    };

    arena_init(&arena);
    resources_init(&resources, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
        resources_add_builtin(&resources, &builtins[i], NULL);
}

static void tear_down(void)
{
    resources_done(&resources);
    arena_done(&arena);
}

static struct err *check(const char *allow_access)
{
    struct json_doc doc;
    struct access_key key = {.entry_count = 0};

    ck_ok(json_parse(span_str(allow_access), NULL, &arena, &doc));
    ck_ok(access_read_rights(json_root(&doc), &arena, &key));
    return key_rights_check(&key, &resources);
}

START_TEST(what_allows_something_is_good)
{
    static const char *const good[] = {
        "[]",
        "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]",
        "[{\"Resources\":[\"Svc.Admin.*\",\"svc.admin.ERROR\"],\"Methods\":[\"DELETE\"]}]",
        "[{\"Resources\":[\"Svc.*\"],\"Methods\":[\"PUT\"]}]",
        "[{\"Resources\":[\"Svc.DeliveryDead\"],\"Methods\":[\"POST\"]}]",
        "[{\"Resources\":[\"Not.Yet\",\"Not.*\"],\"Methods\":[\"GET\"]}]",
    };

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        ck_ok(check(good[i]));
}
END_TEST

START_TEST(what_allows_nothing_is_refused_by_its_place)
{
    static const struct {
        const char *allow_access, *words;
    } bad[] = {
        {"[{\"Resources\":[],\"Methods\":[\"GET\"]}]", "AllowAccess[0].Resources: has none"},
        {"[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]},{\"Resources\":[\"*\"],\"Methods\":[]}]",
         "AllowAccess[1].Methods: has none"},
        {"[{\"Resources\":[\"*\",\"Svc.Eror\"],\"Methods\":[\"GET\"]}]",
         "AllowAccess[0].Resources[1]: there is no built-in resource 'svc.eror'"},
        {"[{\"Resources\":[\"Svc.Shop.*\"],\"Methods\":[\"GET\"]}]", "'svc.shop.*'"},
        {"[{\"Resources\":[\"Svc.Admin.Error\"],\"Methods\":[\"POST\"]}]",
         "'Svc.Admin.Error' has none of the Methods, but GET, DELETE, REPORT, HEAD"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_fails(check(bad[i].allow_access), ERR_INVALID_ENTITY, bad[i].words);
}
END_TEST

START_TEST(a_namespace_covers_what_is_directly_in_it)
{
    ck_assert(key_rights_cover(SPAN("shop.*"), SPAN("Shop.Person")));
    ck_assert(!key_rights_cover(SPAN("shop.*"), SPAN("Shop.Old.Person")));
    ck_assert(!key_rights_cover(SPAN("shop.*"), SPAN("Shopping.Person")));
    ck_assert(key_rights_cover(SPAN("shop.person"), SPAN("SHOP.PERSON")));
    ck_assert(!key_rights_cover(SPAN("shop.person"), SPAN("Shop.PersonCreated")));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_allows_something_is_good);
    tcase_add_test(tc, what_allows_nothing_is_refused_by_its_place);
    tcase_add_test(tc, a_namespace_covers_what_is_directly_in_it);
}
