/* Svc.Admin.Resource: what a request changes is checked as a whole. */
#include "asking.h"

#include "resource/resource.h"

#define ENTITY(name, more) "{\"Name\":\"" name "\",\"Kind\":\"EntityResource\"" more "}"
#define EVENT(name, more) "{\"Name\":\"" name "\",\"Kind\":\"EventResource\"" more "}"
#define PERSON ENTITY("A.Person", ",\"Events\":{\"Inserted\":\"A.Born\"}")
#define BORN EVENT("A.Born", ",\"Payload\":{\"Resource\":\"A.Person\"}")

static void begin(void)
{
    asking_open("[" ENTITY("Conf.Fixed", "") "]");
}

static const struct resource *declared(const char *name)
{
    return resource_named(asking.service->rest.resources, span_str(name));
}

START_TEST(declarations_of_one_request_may_refer_to_one_another)
{
    ck_refuses(ERR_INVALID_ENTITY, "'A.Born': Payload.Resource: 'A.Person' is no entity resource",
               "POST", "/Svc.Admin.Resource", BORN);
    ck_assert_ptr_null(declared("A.Born"));
    ck_asks(201, "POST", "/Svc.Admin.Resource", "[" BORN "," PERSON "]");
    ck_asks(201, "POST", "/Person", "{}");
    ck_refuses(ERR_CONFLICT, "another resource refers to this one", "DELETE",
               "/Svc.Admin.Resource/Name=A.Born", NULL);
    ck_assert_ptr_nonnull(declared("A.Born"));
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/IsReadOnly=false/unsafe=true", NULL);
    ck_member_eq("0.Count", "2");
    ck_assert_ptr_null(declared("A.Person"));
}
END_TEST

START_TEST(one_bad_declaration_leaves_all_undone)
{
    struct span before = asking_entities("Svc.Admin.Resource");

    ck_refuses(ERR_INVALID_ENTITY, "entity 1: Name: 'B' has no dot", "POST", "/Svc.Admin.Resource",
               "[" ENTITY("A.A", "") "," ENTITY("B", "") "]");
    ck_refuses(ERR_CONFLICT, "'Conf.Fixed' already", "POST", "/Svc.Admin.Resource",
               "[" ENTITY("A.A", "") "," ENTITY("Conf.Fixed", "") "]");
    ck_span_is(asking_entities("Svc.Admin.Resource"), before);
    ck_assert_ptr_null(declared("A.A"));
}
END_TEST

START_TEST(what_the_configuration_declares_is_its_own)
{
    static const struct {
        const char *method, *body;
    } changes[] = {
        {"PATCH", "{\"Description\":\"x\"}"},
        {"PATCH", "{}"},
        {"PUT", ENTITY("Conf.Fixed", "")},
        {"DELETE", NULL},
    };
    struct span before = asking_entities("Svc.Admin.Resource");

    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        ck_refuses(ERR_CONFLICT,
                   "'Conf.Fixed' is declared by the configuration, and can only be changed there",
                   changes[i].method, "/Svc.Admin.Resource/Name=Conf.Fixed", changes[i].body);
    ck_span_is(asking_entities("Svc.Admin.Resource"), before);
    ck_asks(201, "POST", "/Svc.Admin.Resource", ENTITY("A.Mine", ",\"IsReadOnly\":true"));
    ck_member_eq("0.IsReadOnly", "false");
}
END_TEST

START_TEST(name_and_kind_stay)
{
    ck_asks(201, "POST", "/Svc.Admin.Resource", ENTITY("A.A", ""));
    ck_refuses(ERR_CONFLICT, "Name: the Name of 'A.A' cannot be changed, delete it first", "PATCH",
               "/Svc.Admin.Resource/Name=A.A", "{\"Name\":\"A.a\"}");
    ck_refuses(ERR_CONFLICT, "Kind: the Kind of 'A.A' cannot be changed", "PUT",
               "/Svc.Admin.Resource/Name=A.A", EVENT("A.A", ""));
    ck_refuses(ERR_INVALID_ENTITY, "File: can be given in the configuration only", "POST",
               "/Svc.Admin.Resource",
               "{\"Name\":\"A.F\",\"Kind\":\"BinaryResource\",\"File\":\"x\"}");
}
END_TEST

START_TEST(entities_go_along_when_that_is_meant)
{
    uint64_t serial;

    ck_asks(201, "POST", "/Svc.Admin.Resource", "[" ENTITY("A.A", "") "," ENTITY("A.B", "") "]");
    ck_asks(201, "POST", "/A.A", "[{},{},{}]");
    ck_refuses(ERR_CONFLICT,
               "'A.A' holds 3 entities, which would be deleted too: that needs the meta-condition "
               "unsafe=true",
               "DELETE", "/Svc.Admin.Resource/Name=A.A", NULL);
    ck_assert_uint_eq(asking_count("A.A"), 3);
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/Name=A.B", NULL); /* it holds none */
    serial = asking_serial();
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/Name=A.A/unsafe=true", NULL);
    ck_member_eq("0.Count", "1");
    ck_assert_uint_eq(asking_serial(), serial + 4); /* in one change */
    ck_assert_uint_eq(asking_count("A.A"), 0);
    asking_reload();
    ck_asks(201, "POST", "/Svc.Admin.Resource", ENTITY("A.A", ""));
    ck_asks(204, "GET", "/A.A", NULL);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, declarations_of_one_request_may_refer_to_one_another);
    tcase_add_test(tc, one_bad_declaration_leaves_all_undone);
    tcase_add_test(tc, what_the_configuration_declares_is_its_own);
    tcase_add_test(tc, name_and_kind_stay);
    tcase_add_test(tc, entities_go_along_when_that_is_meant);
}
