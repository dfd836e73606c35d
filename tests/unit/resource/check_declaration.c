/* The registry follows the stored declarations, live and after a replay. */
#include "asking.h"

#include "base/uuid.h"
#include "query/conditions.h"
#include "query/uri.h"
#include "resource/declaration.h"
#include "resource/resource.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/record.h"
#include "store/turn.h"
#include "json/json.h"

static void begin(void)
{
    asking_open(NULL);
}

static struct resource *declared(const char *name)
{
    return resource_named(asking.service->rest.resources, span_str(name));
}

static void declare(const char *json)
{
    ck_asks(201, "POST", "/Svc.Admin.Resource", json);
}

static void redeclare(const char *name, const char *patch)
{
    ck_asks(200, "PATCH", asking_printf("/Svc.Admin.Resource/Name=%s", name), patch);
}

#define ITEM                                                                                       \
    "{\"Name\":\"A.Item\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"No\",\"Type\":"  \
    "\"integer\"},{\"Name\":\"Text\",\"Type\":\"string\"}]}"

START_TEST(a_resource_is_there_with_the_answer)
{
    uint64_t serial = asking_serial();

    declare(ITEM);
    ck_asks(204, "GET", "/Item", NULL);
    ck_assert_uint_eq(asking.answer.serial, serial); /* for which it waits */
    ck_asks(200, "OPTIONS", "/Item", NULL);
    ck_assert_uint_eq(asking.answer.serial, serial);
    ck_assert_uint_eq(declared("A.Item")->shape_since, serial);
    ck_assert(!declared("A.Item")->is_configured);
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/Name=A.Item", NULL);
    ck_assert_ptr_null(declared("A.Item"));
    ck_refuses(ERR_UNKNOWN_RESOURCE, "'Item'", "GET", "/Item", NULL);
}
END_TEST

START_TEST(a_changed_one_keeps_its_identity)
{
    struct resource *item;
    struct collection *collection;
    uint64_t since;

    declare(ITEM);
    item = declared("A.Item");
    collection = item->collection;
    since = item->shape_since;
    ck_asks(201, "POST", "/Item", "{\"No\":1}");
    redeclare("A.Item", "{\"Methods\":[\"GET\"],\"Description\":\"Items\"}");
    ck_assert_ptr_eq(declared("A.Item"), item);
    ck_assert_ptr_eq(item->collection, collection);
    ck_assert_uint_eq(item->shape_since, since);
    ck_span_eq(item->description, "Items");
    ck_assert_uint_eq(item->methods, METHODS_READ);
    redeclare("A.Item", "{\"Properties\":null}");
    ck_assert_ptr_eq(declared("A.Item"), item);
    ck_assert_uint_gt(item->shape_since, since);
    ck_asks(200, "GET", "/Item/No=1", NULL);
}
END_TEST

/* Does an index lead there? */
static bool is_indexed(const char *target)
{
    struct resource *item = declared("A.Item");
    struct collection_walk walk;
    struct conditions conditions;
    struct uri uri;

    ck_ok(uri_parse(span_str(target), SPAN("/"), 64, &asking.arena, &uri));
    ck_ok(conditions_parse(uri.conditions, uri.condition_count, item->shape, &asking.arena,
                           &conditions));
    collection_walk(item->collection, &conditions, &walk);
    return walk.bucket != NULL;
}

START_TEST(indexes_are_made_of_what_is_there)
{
    declare(ITEM);
    ck_asks(201, "POST", "/Item",
            "[{\"No\":1,\"Text\":\"a\"},{\"No\":2,\"Text\":\"b\"},{\"No\":2}]");
    ck_assert(!is_indexed("/x/No=2"));
    redeclare("A.Item", "{\"Indexes\":[\"no\"]}");
    ck_assert(is_indexed("/x/No=2"));
    ck_asks(200, "REPORT", "/Item/No=2", NULL);
    ck_member_eq("0.Count", "2");
    redeclare("A.Item", "{\"Indexes\":[\"Text\"]}");
    ck_assert(!is_indexed("/x/No=2"));
    ck_assert(is_indexed("/x/Text=b"));
    /* Of a property that has another type now. */
    redeclare("A.Item", "{\"Indexes\":[\"No\"],\"Properties\":[{\"Name\":\"No\",\"Type\":"
                        "\"string\"}]}");
    ck_asks(201, "POST", "/Item", "{\"No\":\"2\"}");
    ck_assert(is_indexed("/x/No=2"));
    ck_asks(200, "GET", "/Item/No='2'/select=No", NULL);
    asking_reload();
    ck_assert(is_indexed("/x/No=2"));
    redeclare("A.Item", "{\"Indexes\":null}");
    ck_assert(!is_indexed("/x/No=2"));
}
END_TEST

/* The same index, of a property whose values mean something else. */
START_TEST(indexes_follow_the_properties)
{
    declare("{\"Name\":\"A.Item\",\"Kind\":\"EntityResource\",\"Indexes\":[\"At\"],\"Properties\":"
            "[{\"Name\":\"At\",\"Type\":\"string\"}]}");
    ck_asks(201, "POST", "/Item", "{\"At\":\"2020-01-01T01:00:00+01:00\"}");
    ck_asks(204, "GET", "/Item/At='2020-01-01T00:00:00Z'", NULL);
    redeclare("A.Item", "{\"Properties\":[{\"Name\":\"At\",\"Type\":\"datetime\"}]}");
    ck_assert(is_indexed("/x/At=2020-01-01T00:00:00Z"));
    ck_asks(200, "GET", "/Item/At=2020-01-01T00:00:00Z", NULL);
}
END_TEST

START_TEST(content_changes_with_its_declaration)
{
    declare("{\"Name\":\"A.Text\",\"Kind\":\"BinaryResource\",\"Content\":\"YQ==\"}");
    ck_asks(200, "GET", "/Text", NULL);
    ck_body_eq("a");
    ck_span_eq(asking.answer.content_type, "application/octet-stream");
    redeclare("A.Text", "{\"Content\":\"Yg==\",\"ContentType\":\"text/plain\"}");
    ck_asks(200, "GET", "/Text", NULL);
    ck_body_eq("b");
    ck_span_eq(asking.answer.content_type, "text/plain");
    asking_reload();
    ck_asks(200, "GET", "/Text", NULL);
    ck_body_eq("b");
}
END_TEST

START_TEST(a_deleted_name_may_be_something_else)
{
    declare("[" ITEM ",{\"Name\":\"A.Other\",\"Kind\":\"EventResource\"}]");
    ck_asks(201, "POST", "/Item", "{\"No\":1}");
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/Name=A.Item/unsafe=true", NULL);
    ck_assert_uint_eq(asking_count("A.Item"), 0);
    declare("{\"Name\":\"A.Item\",\"Kind\":\"EventResource\"}");
    ck_asks(201, "POST", "/Svc.Event/Resource=Item", "{}");
    asking_reload();
    ck_assert_int_eq(declared("A.Item")->kind, KIND_EVENT);
}
END_TEST

/* ---- what an older or newer version wrote ---- */

static struct service *seen;

static void note_names(struct service *service)
{
    const struct resources *r = service->rest.resources;

    ck_assert_ptr_nonnull(resource_named(r, SPAN("A.Good")));
    ck_assert_ptr_null(resource_named(r, SPAN("A.Bad")));
    seen = service;
}

START_TEST(what_is_not_understood_is_left_out)
{
    static const char *const texts[] = {"\"A.Bad\",\"Kind\":\"EntityResource\",\"Indexes\":[\"x\"]",
                                        "\"A.Good\",\"Kind\":\"EntityResource\",\"Future\":1"};
    struct asking_record records[ARRAY_LEN(texts)];

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct record_entity entity = {
            .resource = declaration_resource,
            .id = uuid_new(),
            .object_no = i + 1,
            .version = i + 1,
        };
        char id[UUID_TEXT_BYTES + 1];
        struct buf b;

        uuid_text(&entity.id, id);
        entity.json = span_str(
            asking_printf("{\"Id\":\"%s\",\"Name\":%s,\"ObjectNo\":%zu}", id, texts[i], i + 1));
        buf_init_arena(&b, &asking.arena);
        record_add_entity(&b, &entity);
        records[i] = (struct asking_record){RECORD_ENTITY, buf_span(&b)};
    }
    asking_replay(records, ARRAY_LEN(records), note_names);
    ck_assert_ptr_nonnull(seen);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, a_resource_is_there_with_the_answer);
    tcase_add_test(tc, a_changed_one_keeps_its_identity);
    tcase_add_test(tc, indexes_are_made_of_what_is_there);
    tcase_add_test(tc, indexes_follow_the_properties);
    tcase_add_test(tc, content_changes_with_its_declaration);
    tcase_add_test(tc, a_deleted_name_may_be_something_else);
    tcase_add_test(tc, what_is_not_understood_is_left_out);
}
