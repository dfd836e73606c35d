#include "base/blob.h"
#include "declaring.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "json/json.h"

static struct resources resources;
static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
    resources_init(&resources, NULL, NULL);
}

static void tear_down(void)
{
    resources_done(&resources);
    arena_done(&arena);
}

static struct err *declare(const char *text)
{
    return declaring(&resources, text, &arena);
}

#define ENTITY(name) "{\"Name\":\"" name "\",\"Kind\":\"EntityResource\"}"
#define EVENT(name) "{\"Name\":\"" name "\",\"Kind\":\"EventResource\"}"

START_TEST(names_are_found_in_full_or_by_suffix)
{
    static const struct {
        const char *name, *found; /* found NULL: the message has `words` */
        enum err_code code;
        const char *words;
    } cases[] = {
        {"Shop.Person", "Shop.Person", 0, NULL},
        {"SHOP.person", "Shop.Person", 0, NULL},
        {"person", "Shop.Person", 0, NULL},
        {"B.C", "A.B.C", 0, NULL},
        {"a.b.c", "A.B.C", 0, NULL},
        {"X.C", "X.C", 0, NULL},
        {"C", NULL, ERR_AMBIGUOUS_RESOURCE, "A.B.C, X.C"},
        /* A full name wins over the end of another. */
        {"Shop.Log", "Shop.Log", 0, NULL},
        {"erson", NULL, ERR_UNKNOWN_RESOURCE, "Svc could not locate any resource by 'erson'."},
        {"Shop", NULL, ERR_UNKNOWN_RESOURCE, "'Shop'"},
        {"Shop.Person.", NULL, ERR_UNKNOWN_RESOURCE, "'Shop.Person.'"},
        {".Person", NULL, ERR_UNKNOWN_RESOURCE, "'.Person'"},
        {"", NULL, ERR_UNKNOWN_RESOURCE, "''"},
    };

    ck_ok(declare("[" ENTITY("Shop.Person") "," ENTITY("A.B.C") "," ENTITY("X.C") "," ENTITY(
        "Shop.Log") "," ENTITY("Old.Shop.Log") "]"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct resource *resource = NULL;

        if (cases[i].found == NULL) {
            ck_fails(resource_find(&resources, span_str(cases[i].name), NULL, &resource),
                     cases[i].code, cases[i].words);
            continue;
        }
        ck_ok(resource_find(&resources, span_str(cases[i].name), NULL, &resource));
        ck_span_is(resource->name, span_str(cases[i].found));
    }
    for (size_t i = 1; i < resources.count; i++)
        ck_assert_int_lt(span_cmp(resources.sorted[i - 1]->name, resources.sorted[i]->name), 0);
}
END_TEST

START_TEST(the_end_of_a_name_is_free_when_who_was_called_so_goes)
{
    struct resource *resource;

    ck_ok(declare("[" ENTITY("Shop.Log") "," ENTITY("Old.Shop.Log") "]"));
    resources_remove(&resources, resource_named(&resources, SPAN("Shop.Log")));
    ck_assert_ptr_null(resource_named(&resources, SPAN("Shop.Log")));
    ck_ok(resource_find(&resources, SPAN("Shop.Log"), NULL, &resource));
    ck_span_eq(resource->name, "Old.Shop.Log");
}
END_TEST

START_TEST(declarations_may_refer_either_way)
{
    struct resource *event;

    ck_ok(declare(
        "[{\"Name\":\"S.P\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"N\","
        "\"Type\":\"string\"}],\"Indexes\":[\"n\"],\"Events\":{\"Inserted\":\"S.E\"}},"
        "{\"Name\":\"S.E\",\"Kind\":\"eventresource\",\"Payload\":{\"Resource\":\"S.P\"}}]"));
    event = resource_named(&resources, SPAN("s.e"));
    ck_assert_ptr_nonnull(event);
    ck_assert_uint_eq(event->methods, 0);
    ck_assert_ptr_nonnull(shape_find(resource_payload_shape(&resources, event), SPAN("N")));
}
END_TEST

START_TEST(bad_declarations_change_nothing)
{
    static const struct {
        const char *text;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"[5]", ERR_INVALID_ENTITY, "must be a JSON object"},
        {"[{}]", ERR_INVALID_ENTITY, "Name: is required"},
        {"[{\"Name\":\"A.B\"}]", ERR_INVALID_ENTITY, "Kind: is required"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"x\"}]", ERR_INVALID_ENUM_VALUE, "Kind: 'x'"},
        {"[" ENTITY("AB") "]", ERR_INVALID_ENTITY, "'AB' has no dot"},
        {"[" ENTITY("A..B") "]", ERR_INVALID_ENTITY, "'A..B'"},
        {"[" ENTITY("A.B C") "]", ERR_INVALID_ENTITY, "'A.B C'"},
        {"[" ENTITY("svc.X") "]", ERR_INVALID_ENTITY, "the server's own"},
        {"[" ENTITY("A.B") "," ENTITY("a.b") "]", ERR_CONFLICT,
         "Name: there is a resource 'a.b' already"},
        {"[" ENTITY("There.Already") "]", ERR_CONFLICT, "'There.Already' already"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Methods\":[\"FETCH\"]}]",
         ERR_INVALID_ENUM_VALUE, "Methods: \"FETCH\""},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EventResource\",\"Methods\":[\"GET\"]}]",
         ERR_INVALID_ENTITY, "Methods: EventResource has none"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Payload\":{\"Resource\":\"A.B\"}}]",
         ERR_INVALID_ENTITY, "Payload: EntityResource has none"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Indexes\":[\"x\"]}]", ERR_INVALID_ENTITY,
         "Indexes: 'x'"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"N\","
         "\"Type\":\"string\"}],\"Indexes\":[\"N\",\"n\"]}]",
         ERR_INVALID_ENTITY, "Indexes: 'n' is there twice"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"N\","
         "\"Type\":\"string\"},{\"Name\":\"M\"}]}]",
         ERR_INVALID_ENTITY, "Properties[1].Type: is required"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Events\":{\"Inserted\":\"No.Where\"}}]",
         ERR_INVALID_ENTITY, "Events.Inserted: 'No.Where'"},
        {"[{\"Name\":\"A.B\",\"Kind\":\"EntityResource\",\"Events\":{\"Insert\":\"x\"}}]",
         ERR_UNKNOWN_MEMBER, "is 'Inserted' meant?"},
        {"[{\"Name\":\"A.E\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":\"No.Where\"}}]",
         ERR_INVALID_ENTITY, "Payload.Resource: 'No.Where'"},
        {"[{\"Name\":\"A.E\",\"Kind\":\"EventResource\",\"Payload\":{}}]", ERR_INVALID_ENTITY,
         "either Resource or ContentType"},
        {"[{\"Name\":\"A.E\",\"Kind\":\"EventResource\",\"Payload\":{\"ContentType\":\"x\"}}]",
         ERR_INVALID_ENTITY, "no media type"},
        {"[{\"Name\":\"A.T\",\"Kind\":\"BinaryResource\"}]", ERR_INVALID_ENTITY,
         "either Content or File"},
        {"[{\"Name\":\"A.T\",\"Kind\":\"BinaryResource\",\"Content\":\"!\"}]", ERR_INVALID_ENTITY,
         "not base64"},
        {"[{\"Name\":\"A.T\",\"Kind\":\"BinaryResource\",\"Content\":\"\",\"Methods\":[\"POST\"]}]",
         ERR_INVALID_ENTITY, "can only be read"},
        {"[" ENTITY("Good.One") "," ENTITY("bad") "]", ERR_INVALID_ENTITY, "'bad' has no dot"},
    };
    size_t before;

    ck_ok(declare("[" ENTITY("There.Already") "," EVENT("There.Event") "]"));
    before = resources.count;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_fails(declare(cases[i].text), cases[i].code, cases[i].words);
        ck_assert_uint_eq(resources.count, before);
    }
}
END_TEST

START_TEST(binary_content)
{
    struct resource *resource;

    ck_ok(declare("[{\"Name\":\"A.T\",\"Kind\":\"BinaryResource\",\"ContentType\":\"text/plain\","
                  "\"Content\":\"aGVsbG8=\"}]"));
    resource = resource_named(&resources, SPAN("A.T"));
    ck_span_eq(blob_span(resource->content), "hello");
    ck_span_eq(resource->content_type, "text/plain");
    ck_assert_uint_eq(resource->methods, METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_HEAD));
}
END_TEST

START_TEST(a_replaced_resource_keeps_its_identity)
{
    struct resource *event, *made = resource_new();
    const struct matchers *matchers;
    struct span json;
    struct json_doc doc;

    ck_ok(declare("[" EVENT("A.E") "]"));
    event = resource_named(&resources, SPAN("A.E"));
    matchers = event->matchers;
    ck_ok(json_parse(SPAN("{\"Name\":\"A.E\",\"Kind\":\"EventResource\",\"Description\":\"d\"}"),
                     NULL, &arena, &doc));
    ck_ok(declaring_decode(json_root(&doc), &arena, &json));
    ck_ok(resource_make(entity_parse(json, &arena), &arena, made));
    ck_assert_ptr_eq(resources_put(&resources, made), event);
    ck_assert_ptr_eq(resource_named(&resources, SPAN("a.e")), event);
    ck_assert_ptr_eq(event->matchers, matchers);
    ck_span_eq(event->description, "d");
    ck_assert_uint_eq(resources.count, 1);
}
END_TEST

START_TEST(a_removed_resource_is_found_no_more)
{
    struct resource *found;

    ck_ok(declare("[" ENTITY("A.C") "," ENTITY("X.C") "," ENTITY("X.D") "]"));
    ck_fails(resource_find(&resources, SPAN("C"), NULL, &found), ERR_AMBIGUOUS_RESOURCE,
             "A.C, X.C");
    resources_remove(&resources, resource_named(&resources, SPAN("A.C")));
    ck_ok(resource_find(&resources, SPAN("C"), NULL, &found));
    ck_span_eq(found->name, "X.C");
    ck_assert_ptr_null(resource_named(&resources, SPAN("A.C")));
    resources_remove(&resources, found);
    ck_fails(resource_find(&resources, SPAN("C"), NULL, &found), ERR_UNKNOWN_RESOURCE, "'C'");
    ck_assert_uint_eq(resources.count, 1);
    ck_ok(declare("[" ENTITY("A.C") "]"));
    ck_ok(resource_find(&resources, SPAN("C"), NULL, &found));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, names_are_found_in_full_or_by_suffix);
    tcase_add_test(tc, the_end_of_a_name_is_free_when_who_was_called_so_goes);
    tcase_add_test(tc, declarations_may_refer_either_way);
    tcase_add_test(tc, bad_declarations_change_nothing);
    tcase_add_test(tc, binary_content);
    tcase_add_test(tc, a_replaced_resource_keeps_its_identity);
    tcase_add_test(tc, a_removed_resource_is_found_no_more);
}
