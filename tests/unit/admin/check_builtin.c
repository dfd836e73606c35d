/* The table of built-in resources, and what their ops are about. */
#include "asking.h"

#include "admin/builtin.h"
#include "resource/resource.h"
#include "rest/request.h"

static const struct resource_definition *const definitions[] = {
#define BUILTIN_AS_POINTER(definition) &definition,
    BUILTIN_RESOURCES(BUILTIN_AS_POINTER)
#undef BUILTIN_AS_POINTER
};

START_TEST(each_is_in_the_registry)
{
    const struct resource_definition *definition = definitions[_i];
    struct resource *resource = resource_named(asking.service->rest.resources, definition->name);

    ck_assert_ptr_nonnull(resource);
    ck_assert_ptr_eq(resource->ops, definition->ops);
    ck_assert(resource->collection != NULL || !definition->is_stored);
}
END_TEST

START_TEST(their_ops_find_service_and_hooks)
{
    struct resource *resource =
        resource_named(asking.service->rest.resources, definitions[_i]->name);
    const struct call call = {.resource = resource};

    ck_assert_ptr_eq(service_of(&call), asking.service);
    ck_assert_ptr_eq(hooks_of(&call), &asking.service->hooks);
}
END_TEST

/* Webhooks that an earlier version has stored may still ask for it. */
START_TEST(a_backup_is_not_for_the_service_itself)
{
    static const struct span methods[] = {SPAN_INIT("GET"), SPAN_INIT("HEAD")};

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const struct request request = {
            .method = methods[i], .target = SPAN("/Svc.Admin.Backup"), .is_local = true};

        ask_request(&request);
        ck_status(403);
        ck_assert_ptr_null(asking.answer.download);
    }
}
END_TEST

static void set_up(void)
{
    asking_open(NULL);
}

static void tear_down(void)
{
    asking_close();
}

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, each_is_in_the_registry, 0, ARRAY_LEN(definitions));
    tcase_add_loop_test(tc, their_ops_find_service_and_hooks, 0, ARRAY_LEN(definitions));
    tcase_add_test(tc, a_backup_is_not_for_the_service_itself);
}
