/* An index finds what conditions say, no more and no less, whatever the types and spellings. */
#include "testing.h"

#include "base/arena.h"
#include "base/rng.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "query/shape.h"
#include "query/uri.h"
#include "store/entity.h"
#include "store/index.h"
#include "json/json.h"

enum { ENTITIES = 300 };

static const struct span kinds[] = {SPAN_INIT("Customer"), SPAN_INIT("Staff")};
static const struct enumeration kind = {"Kind", kinds, ARRAY_LEN(kinds)};
static const struct property box_properties[] = {
    {.name = SPAN_INIT("Size"), .type = TYPE_NUMBER},
};
static const struct shape box = {box_properties, ARRAY_LEN(box_properties)};
static const struct property properties[] = {
    {.name = SPAN_INIT("Text"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Kind"), .type = TYPE_STRING, .values = &kind},
    {.name = SPAN_INIT("Count"), .type = TYPE_INTEGER},
    {.name = SPAN_INIT("Size"), .type = TYPE_NUMBER},
    {.name = SPAN_INIT("Flag"), .type = TYPE_BOOLEAN},
    {.name = SPAN_INIT("Time"), .type = TYPE_DATETIME},
    {.name = SPAN_INIT("Box"), .type = TYPE_OBJECT, .members = &box},
    {.name = SPAN_INIT("List"), .type = TYPE_ARRAY, .members = &box},
    {.name = SPAN_INIT("Any"), .type = TYPE_ANY},
    {.name = SPAN_INIT("Seen"), .type = TYPE_INTEGER, .flags = PROPERTY_HIDDEN},
};
static const struct shape shape = {properties, ARRAY_LEN(properties), .name = SPAN_INIT("A.B")};

static struct arena arena;
static struct index *the_index;
static struct entity entities[ENTITIES]; /* with no more of them than an index asks for */
static struct index_node nodes[ENTITIES][2];
static size_t count;

static void begin(const char *property)
{
    arena_init(&arena);
    ck_ok(index_new(&shape, span_str(property), &the_index));
    count = 0;
}

static void add(struct entity *e, const char *text)
{
    struct json_value json = entity_parse(span_str(text), &arena);

    index_expect(the_index, json_member_fold(json, index_member(the_index)));
    index_add(the_index, &e->indexed[1]);
}

/* The text stays in place. */
static struct entity *insert(const char *text)
{
    struct entity *e = &entities[count];

    ck_assert_uint_lt(count, ENTITIES);
    *e = (struct entity){.object_no = count + 1, .indexed = nodes[count]};
    count++;
    e->indexed[1] = (struct index_node){.entity = e};
    add(e, text);
    return e;
}

static void take_out(struct entity *e)
{
    index_remove(the_index, &e->indexed[1]);
}

static void end(void)
{
    for (size_t i = 0; i < count; i++)
        if (entities[i].indexed[1].bucket != NULL)
            take_out(&entities[i]);
    index_free(the_index);
    arena_done(&arena);
}

static struct conditions parse(const char *text)
{
    struct span target = arena_printf(&arena, "/X/%s", text);
    struct conditions conditions;
    struct uri uri;

    ck_ok(uri_parse(target, SPAN("/"), 64, &arena, &uri));
    ck_ok(conditions_parse(uri.conditions, uri.condition_count, &shape, &arena, &conditions));
    return conditions;
}

static struct index_bucket *find(const char *text)
{
    struct conditions conditions = parse(text);
    struct index_bucket *bucket;

    ck_assert(index_find(the_index, &conditions, &bucket));
    return bucket;
}

static bool holds(struct index_bucket *bucket, const struct entity *wanted)
{
    if (bucket == NULL)
        return false;
    for (struct entity *e = index_first(bucket); e != NULL; e = index_next(bucket, e, 1))
        if (e == wanted)
            return true;
    return false;
}

/* ---- what can be indexed ---- */

static const struct {
    const char *property, *member;
} indexed[] = {
    {"Text", "Text"}, {"text", "Text"}, {"Kind", "Kind"}, {"COUNT", "Count"},
    {"Size", "Size"}, {"Flag", "Flag"}, {"Time", "Time"},
};

START_TEST(scalars_are_indexed)
{
    begin(indexed[_i].property);
    ck_span_is(index_member(the_index), span_str(indexed[_i].member));
    end();
}
END_TEST

static const struct {
    const char *property;
    enum err_code code;
    const char *text;
} refused[] = {
    {"Box", ERR_INVALID_ENTITY, "'Box' cannot be indexed: it is not a declared scalar"},
    {"List", ERR_INVALID_ENTITY, "'List' cannot be indexed"},
    {"List.0", ERR_INVALID_ENTITY, "'List.0' cannot be indexed"},
    {"Any", ERR_INVALID_ENTITY, "'Any' cannot be indexed"},
    {"Seen", ERR_INVALID_ENTITY, "'Seen' cannot be indexed"}, /* hidden */
    {"Box.Size", ERR_INVALID_ENTITY, "'Box.Size' cannot be indexed"},
    {"List.0.Size", ERR_INVALID_ENTITY, "'List.0.Size' cannot be indexed"},
    {"Text.Length", ERR_INVALID_ENTITY, "'Text.Length' cannot be indexed"},
    {"Time.Year", ERR_INVALID_ENTITY, "'Time.Year' cannot be indexed"},
    {"Any.Length", ERR_INVALID_ENTITY, "'Any.Length' cannot be indexed"},
    {"Txt", ERR_UNKNOWN_PROPERTY, "Txt"},
    {"", ERR_INVALID_CONDITION_SYNTAX, ""},
};

START_TEST(nothing_else_is)
{
    struct index *index = NULL;

    ck_fails(index_new(&shape, span_str(refused[_i].property), &index), refused[_i].code,
             refused[_i].text);
    ck_assert_ptr_null(index);
    index_free(NULL);
}
END_TEST

/* ---- agreement with conditions ---- */

/* Values of a property, and literals that it is asked for. */
static const struct {
    const char *property;
    const char *values[12];
    const char *literals[16];
} types[] = {
    {"Text",
     {"\"a\"", "\"A\"", "\"\"", "\"null\"", "\"1\"", "\"a\\u0062\"", "\"ab\"", "null", "7", "[]",
      "{\"a\":1}"},
     {"a", "A", "'a'", "''", "null", "'null'", "1", "'1'", "ab", "7", "[]"}},
    {"Kind",
     {"\"Customer\"", "\"Staff\"", "null", "\"customer\""},
     {"Customer", "customer", "'STAFF'", "null"}},
    {"Count",
     {"1", "1.0", "10e-1", "-1", "0", "-0", "12345678901234567890", "12345678901234567891", "null",
      "\"1\"", "true"},
     {"1", "1.00", "+1", "-1", "0", "-0", "12345678901234567890", "12345678901234567891", "null"}},
    {"Size",
     {"0.1", "0.10", "1e-1", "100", "1e2", "1E+2", "null", "0.1000000000000000055"},
     {"0.1", "100", "100.0", "0.1000000000000000055", "null"}},
    {"Flag", {"true", "false", "null", "\"true\"", "1"}, {"true", "false", "null"}},
    {"Time",
     {"\"2026-01-31T12:00:00Z\"", "\"2026-01-31T13:00:00+01:00\"", "\"2026-01-31T12:00:00.000Z\"",
      "\"2026-01-31\"", "\"2026-01-31T00:00:00Z\"", "\"nonsense\"", "null"},
     {"2026-01-31T12:00:00Z", "2026-01-31T11:00:00-01:00", "2026-01-31", "null"}},
};

/* Objects and arrays equal nothing. They stand among those that are null. */
static bool may_be_found_besides(const char *value)
{
    return value[0] == '[' || value[0] == '{';
}

static void insert_value(const char *property, const char *value)
{
    insert(arena_printf(&arena, "{\"%s\":%s}", property, value).p);
}

START_TEST(it_finds_what_conditions_say)
{
    const char *property = types[_i].property;
    const char *const *values = types[_i].values;

    begin(property);
    for (size_t i = 0; values[i] != NULL; i++)
        insert_value(property, values[i]);
    insert("{\"Other\":1}");
    for (size_t i = 0; types[_i].literals[i] != NULL; i++) {
        const char *text = arena_printf(&arena, "%s=%s", property, types[_i].literals[i]).p;
        struct conditions conditions = parse(text);
        struct index_bucket *bucket = find(text);

        for (size_t at = 0; at < count; at++) {
            const char *value = values[at] != NULL ? values[at] : "null";
            struct span json = arena_printf(&arena, "{\"%s\":%s}", property, value);
            bool should = conditions_hold(&conditions, entity_parse(json, &arena), &arena);
            bool is = holds(bucket, &entities[at]);

            ck_assert_msg(is == should || (is && may_be_found_besides(value)), "%s: %s is %s", text,
                          value, is ? "found" : "left out");
        }
    }
    end();
}
END_TEST

/* ---- which conditions it is for ---- */

static const struct {
    const char *conditions;
    bool is_for;
} demands[] = {
    {"Count=1", true},     {"count=1", true},  {"Size=2&Count=1", true},  {"Count=1&Count=2", true},
    {"Count!=1", false},   {"Count>1", false}, {"Count>=1", false},       {"Size=1", false},
    {"Box.Size=1", false}, {"_", false},       {"Count>0&Count=1", true},
};

START_TEST(only_equality_is_found)
{
    struct conditions conditions;
    struct index_bucket *bucket = NULL;
    struct entity *e;

    begin("Count");
    e = insert("{\"Count\":1}");
    conditions = parse(demands[_i].conditions);
    ck_assert(index_find(the_index, &conditions, &bucket) == demands[_i].is_for);
    ck_assert(holds(bucket, e) == demands[_i].is_for);
    end();
}
END_TEST

/* ---- order ---- */

START_TEST(entities_come_in_order_of_insertion)
{
    struct entity *a, *b, *c;
    struct index_bucket *bucket;

    begin("Count");
    a = insert("{\"Count\":1}");
    b = insert("{\"Count\":2}");
    c = insert("{\"Count\":2}");
    take_out(a);
    add(a, "{\"Count\":2}");
    bucket = find("Count=2");
    ck_assert_uint_eq(index_bucket_count(bucket), 3);
    ck_assert_ptr_eq(index_first(bucket), a);
    ck_assert_ptr_eq(index_next(bucket, a, 1), b);
    ck_assert_ptr_eq(index_next(bucket, b, 1), c);
    ck_assert_ptr_null(index_next(bucket, c, 1));
    ck_assert_ptr_null(find("Count=1"));
    end();
}
END_TEST

START_TEST(a_bucket_goes_with_its_last_entity)
{
    struct entity *a, *b;

    begin("Text");
    a = insert("{\"Text\":\"x\"}");
    b = insert("{\"Text\":\"x\"}");
    take_out(a);
    ck_assert_ptr_eq(index_first(find("Text=x")), b);
    take_out(b);
    ck_assert_ptr_null(find("Text=x"));
    add(b, "{\"Text\":\"x\"}");
    ck_assert_ptr_eq(index_first(find("Text=x")), b);
    end();
}
END_TEST

/* In each bucket those with its value, by number. */
START_TEST(moves_at_random)
{
    enum { VALUES = 5 };
    static const char *const texts[VALUES] = {"{\"Count\":0}", "{\"Count\":1}", "{\"Count\":2}",
                                              "{\"Count\":3}", "{\"Count\":4}"};
    size_t value_of[ENTITIES];

    begin("Count");
    for (size_t i = 0; i < ENTITIES; i++)
        insert(texts[value_of[i] = (size_t)rng_below(VALUES)]);
    for (int i = 0; i < 2000; i++) {
        size_t at = (size_t)rng_below(ENTITIES);

        take_out(&entities[at]);
        add(&entities[at], texts[value_of[at] = (size_t)rng_below(VALUES)]);
        if (i % 100 == 0)
            index_first(entities[at].indexed[1].bucket); /* which may put it in order */
    }
    for (size_t v = 0; v < VALUES; v++) {
        struct index_bucket *bucket = find(arena_printf(&arena, "Count=%zu", v).p);
        struct entity *e = index_first(bucket);
        size_t seen = 0;

        for (size_t i = 0; i < ENTITIES; i++) {
            if (value_of[i] != v)
                continue;
            ck_assert_ptr_eq(e, &entities[i]);
            e = index_next(bucket, e, 1);
            seen++;
        }
        ck_assert_ptr_null(e);
        ck_assert_uint_eq(index_bucket_count(bucket), seen);
    }
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, scalars_are_indexed, 0, ARRAY_LEN(indexed));
    tcase_add_loop_test(tc, nothing_else_is, 0, ARRAY_LEN(refused));
    tcase_add_loop_test(tc, it_finds_what_conditions_say, 0, ARRAY_LEN(types));
    tcase_add_loop_test(tc, only_equality_is_found, 0, ARRAY_LEN(demands));
    tcase_add_test(tc, entities_come_in_order_of_insertion);
    tcase_add_test(tc, a_bucket_goes_with_its_last_entity);
    tcase_add_test(tc, moves_at_random);
}
