/* A query over objects whose texts are written when they are asked for. */
#include "testing.h"

#include "base/limits.h"
#include "base/uuid.h"
#include "query/query.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/evaluation_state.h"
#include "rest/rendered.h"
#include "rest/rest.h"

enum { COUNT = 5 };

static const struct property properties[] = {
    {.name = SPAN_INIT("Id"), .type = TYPE_STRING},
    {.name = SPAN_INIT("No"), .type = TYPE_INTEGER},
};
static const struct shape shape = {properties, ARRAY_LEN(properties), false};

static int objects[COUNT] = {3, 1, 4, 1, 5};
static unsigned texts; /* written so far */
static struct arena arena;
static struct query query;
static struct call call;
static struct rest rest; /* nothing gives way */

static uint64_t version(const void *object)
{
    return 100 + (uint64_t) * (const int *)object;
}

static const struct resource_ops ops = {.version = version};
static struct resource resource = {.ops = &ops};

static void begin(void)
{
    arena_init(&arena);
    call = (struct call){.rest = &rest, .arena = &arena, .query = &query, .resource = &resource};
    texts = 0;
}

static void end(void)
{
    query_done(&query);
    arena_done(&arena);
}

static void parse(const char *target)
{
    struct uri uri;

    ck_ok(uri_parse(span_str(target), SPAN("/"), 64, &arena, &uri));
    ck_ok(query_parse(&uri, &shape, &arena, &query));
}

static void *next(struct rendered *r)
{
    int *at = r->cursor == NULL ? objects : (int *)r->cursor + 1;

    ck_assert_ptr_eq(r->call, &call);
    r->cursor = at;
    return at < objects + COUNT ? at : NULL;
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    ck_assert_ptr_eq(r->call, &call);
    texts++;
    buf_printf(b, "{\"Id\":\"%d\",\"No\":%d}", (int)((int *)object - objects), *(int *)object);
}

static const struct {
    const char *target, *ids;
} queries[] = {
    {"/x", "01234"},
    {"/x/No=1", "13"},
    {"/x/No>9", ""},
    {"/x/_/limit=2&offset=1", "12"},
    {"/x/_/order_desc=No&limit=2", "42"},
    {"/x/_/offset=-2", "34"},
    {"/x/_/search=4", "24"},
};

START_TEST(a_query_finds_the_objects)
{
    struct query_result result;
    struct buf ids;

    parse(queries[_i].target);
    ck_assert_ptr_eq(&rendered_open(&call, next, add_json)->source, call.source);
    ck_ok(query_run(&query, call.source, false, &arena, &result));
    buf_init_arena(&ids, &arena);
    for (size_t i = 0; i < result.count; i++) {
        int *object = result.items[i].object;
        struct span text =
            arena_printf(&arena, "{\"Id\":\"%d\",\"No\":%d}", (int)(object - objects), *object);

        ck_span_is(result.items[i].json, text);
        buf_printf(&ids, "%d", (int)(object - objects));
    }
    ck_span_is(buf_span(&ids), span_str(queries[_i].ids));
}
END_TEST

/* As the lists of the service do, which begin anew when they are asked after their end. */
static void *next_in_a_circle(struct rendered *r)
{
    void *object = next(r);

    if (object == NULL)
        r->cursor = NULL;
    return object;
}

START_TEST(beside_others_each_is_given_once)
{
    struct evaluation beside = {.has_snapshot = true};
    struct limits limits = {.answer_bytes = _i == 0 ? 1 << 20 : 1};
    struct query_result result;

    rest.running = &beside;
    rest.limits = &limits;
    parse("/x");
    rendered_open(&call, next_in_a_circle, add_json);
    ck_ok(query_run(&query, call.source, false, &arena, &result));
    rest.running = NULL;
    ck_assert_uint_eq(result.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        ck_span_is(result.items[i].json,
                   arena_printf(&arena, "{\"Id\":\"%zu\",\"No\":%d}", i, objects[i]));
        ck_assert_uint_eq(rendered_version(&call, &result.items[i]), version(&objects[i]));
    }
}
END_TEST

START_TEST(nothing_is_written_that_is_not_looked_at)
{
    struct query_result result;
    size_t count;

    parse("/x/_/limit=2");
    rendered_open(&call, next, add_json);
    ck_ok(query_run(&query, call.source, false, &arena, &result));
    ck_assert_uint_eq(result.count, 2);
    ck_assert_uint_le(texts, 3);
    texts = 0;
    query_done(&query);
    parse("/x");
    rendered_open(&call, next, add_json);
    ck_ok(query_count(&query, call.source, &count));
    ck_assert_uint_eq(count, COUNT);
    ck_assert_uint_eq(texts, 0);
}
END_TEST

#define ID "01a20431-465e-70c5-853b-5ad9ee31771b"

static const struct {
    const char *target;
    bool is_wanted;
    const char *id; /* NULL: the nil one */
} wanted[] = {
    {"/x", false, NULL},          {"/x/Id=" ID, true, ID},
    {"/x/id='" ID "'", true, ID}, {"/x/Id=01A20431-465E-70C5-853B-5AD9EE31771B", true, ID},
    {"/x/No=1&Id=" ID, true, ID}, {"/x/Id!=" ID, false, NULL},
    {"/x/Id>" ID, false, NULL},   {"/x/Id=5", true, NULL},
    {"/x/Id=", true, NULL},       {"/x/Id=null", true, NULL},
    {"/x/No=5", false, NULL},
};

START_TEST(the_id_that_is_asked_for)
{
    struct uuid id, expected = {{0}};

    parse(wanted[_i].target);
    ck_assert(rendered_wanted_id(&call, SPAN("Id"), &id) == wanted[_i].is_wanted);
    if (!wanted[_i].is_wanted)
        return;
    if (wanted[_i].id != NULL)
        ck_assert(uuid_parse(span_str(wanted[_i].id), &expected));
    ck_assert_mem_eq(&id, &expected, sizeof(id));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, a_query_finds_the_objects, 0, ARRAY_LEN(queries));
    tcase_add_loop_test(tc, beside_others_each_is_given_once, 0, 2);
    tcase_add_test(tc, nothing_is_written_that_is_not_looked_at);
    tcase_add_loop_test(tc, the_id_that_is_asked_for, 0, ARRAY_LEN(wanted));
}
