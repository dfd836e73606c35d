#include "testing.h"

#include "base/uuid.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "json/json.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

static struct json_value parse(const char *text)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    if (text == NULL)
        return (struct json_value){NULL, NULL};
    ck_ok(json_parse(span_str(text), NULL, &arena, doc));
    return json_root(doc);
}

static const struct span colours[] = {SPAN_INIT("Red"), SPAN_INIT("Green")};
static const struct enumeration colour = {"Colour", colours, ARRAY_LEN(colours)};

static const struct property inner_properties[] = {
    {.name = SPAN_INIT("Least"), .type = TYPE_INTEGER, .default_json = SPAN_INIT("1")},
    {.name = SPAN_INIT("Most"), .type = TYPE_INTEGER, .flags = PROPERTY_REQUIRED},
};
static const struct shape inner = {.properties = inner_properties,
                                   .count = ARRAY_LEN(inner_properties)};

static const struct property properties[] = {
    {.name = SPAN_INIT("Id"), .type = TYPE_STRING, .flags = PROPERTY_ENTITY | PROPERTY_READ_ONLY},
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING, .flags = PROPERTY_REQUIRED},
    {.name = SPAN_INIT("Age"), .type = TYPE_INTEGER},
    {.name = SPAN_INIT("Colour"),
     .type = TYPE_STRING,
     .values = &colour,
     .default_json = SPAN_INIT("\"Red\"")},
    {.name = SPAN_INIT("Range"), .type = TYPE_OBJECT, .members = &inner},
    {.name = SPAN_INIT("Bag"), .type = TYPE_OBJECT},
    {.name = SPAN_INIT("Whole"), .type = TYPE_OBJECT, .flags = PROPERTY_WHOLE},
    {.name = SPAN_INIT("Born"), .type = TYPE_DATETIME},
    {.name = SPAN_INIT("Made"), .type = TYPE_STRING, .flags = PROPERTY_READ_ONLY},
    {.name = SPAN_INIT("ObjectNo"), .type = TYPE_INTEGER, .flags = PROPERTY_ENTITY},
};
static const struct shape person = {.properties = properties, .count = ARRAY_LEN(properties)};

#define OLD                                                                                        \
    "{\"Id\":\"x\",\"Name\":\"Ada\",\"Age\":1.0,\"Colour\":\"Green\",\"Range\":{\"Least\":1,"      \
    "\"Most\":9},\"Bag\":{\"a\":1,\"b\":{\"c\":2}},\"Whole\":{\"a\":1},\"Born\":\"1815-12-10\","   \
    "\"Made\":\"then\",\"ObjectNo\":7}"
#define ENCODED(members)                                                                           \
    "{\"Id\":\"00000000-0000-0000-0000-000000000000\"," members ",\"ObjectNo\":7}"
#define REST "\"Bag\":null,\"Whole\":null,\"Born\":null,\"Made\":null"

static void check_encoded(const struct draft *draft, const char *expected)
{
    struct uuid id = {{0}};
    struct buf b;

    buf_init(&b, 65536);
    schema_encode(&b, draft, &id, 7);
    ck_span_is(buf_span(&b), span_str(expected));
    buf_done(&b);
}

START_TEST(good_input)
{
    static const struct {
        enum schema_mode mode;
        const char *input, *old, *expected;
    } cases[] = {
        /* Defaults, declared order and spelling; entity members are the server's. */
        {SCHEMA_INSERT, "{\"id\":\"mine\",\"age\":7,\"NAME\":\"Ada\",\"objectno\":1}", NULL,
         ENCODED("\"Name\":\"Ada\",\"Age\":7,\"Colour\":\"Red\",\"Range\":null," REST)},
        /* Enumerated values come out in declared spelling, numbers and escapes as written. */
        {SCHEMA_INSERT, "{\"Name\":\"\\u0041\",\"Colour\":\"gREEN\",\"Age\":1.0}", NULL,
         ENCODED("\"Name\":\"\\u0041\",\"Age\":1.0,\"Colour\":\"Green\",\"Range\":null," REST)},
        /* Nested declared objects. */
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Range\":{\"most\":3}}", NULL,
         ENCODED("\"Name\":\"A\",\"Age\":null,\"Colour\":\"Red\",\"Range\":{\"Least\":1,"
                 "\"Most\":3}," REST)},
        /* Read-only members are ignored on input. */
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Made\":\"now\"}", NULL,
         ENCODED("\"Name\":\"A\",\"Age\":null,\"Colour\":\"Red\",\"Range\":null," REST)},
        /* PATCH keeps what is not named, merges objects, replaces whole ones, null sets null. */
        {SCHEMA_PATCH,
         "{\"bag\":{\"b\":{\"d\":3},\"a\":null},\"whole\":{\"z\":1},\"Age\":null,"
         "\"Range\":{\"Most\":10}}",
         OLD,
         ENCODED("\"Name\":\"Ada\",\"Age\":null,\"Colour\":\"Green\",\"Range\":{\"Least\":1,"
                 "\"Most\":10},\"Bag\":{\"a\":null,\"b\":{\"c\":2,\"d\":3}},\"Whole\":{\"z\":1},"
                 "\"Born\":\"1815-12-10\",\"Made\":\"then\"")},
        /* PUT: what is left out takes its default; read-only members stay. */
        {SCHEMA_REPLACE, "{\"Name\":\"B\"}", OLD,
         ENCODED("\"Name\":\"B\",\"Age\":null,\"Colour\":\"Red\",\"Range\":null,\"Bag\":null,"
                 "\"Whole\":null,\"Born\":null,\"Made\":\"then\"")},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct draft draft;

        ck_ok(schema_decode(&person, parse(cases[i].input), parse(cases[i].old), cases[i].mode,
                            &arena, &draft));
        check_encoded(&draft, cases[i].expected);
    }
}
END_TEST

START_TEST(bad_input)
{
    static const struct {
        enum schema_mode mode;
        const char *input, *old;
        enum err_code code;
        const char *words;
    } cases[] = {
        {SCHEMA_INSERT, "[]", NULL, ERR_INVALID_ENTITY, "JSON object"},
        {SCHEMA_INSERT, "5", NULL, ERR_INVALID_ENTITY, "JSON object"},
        {SCHEMA_INSERT, "{}", NULL, ERR_INVALID_ENTITY, "Name: is required"},
        {SCHEMA_INSERT, "{\"Name\":null}", NULL, ERR_INVALID_ENTITY, "Name: is required"},
        {SCHEMA_INSERT, "{\"Name\":5}", NULL, ERR_INVALID_ENTITY, "Name: must be of type string"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Age\":1.5}", NULL, ERR_INVALID_ENTITY,
         "Age: must be of type integer"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Born\":\"soon\"}", NULL, ERR_INVALID_ENTITY,
         "Born: must be of type datetime"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Colour\":\"Blue\"}", NULL, ERR_INVALID_ENUM_VALUE,
         "Colour: 'Blue' is not one of Red, Green"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Nmae\":1}", NULL, ERR_UNKNOWN_MEMBER,
         "Nmae: there is no such member, is 'Name' meant?"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"name\":\"B\"}", NULL, ERR_FAILED_JSON, "name"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Range\":{}}", NULL, ERR_INVALID_ENTITY,
         "Range.Most: is required"},
        {SCHEMA_INSERT, "{\"Name\":\"A\",\"Range\":{\"Most\":1,\"x\":1}}", NULL, ERR_UNKNOWN_MEMBER,
         "Range.x: there is no such member"},
        {SCHEMA_PATCH, "{\"Name\":null}", OLD, ERR_INVALID_ENTITY, "Name: is required"},
        {SCHEMA_PATCH, "{\"Range\":{\"Most\":null}}", OLD, ERR_INVALID_ENTITY,
         "Range.Most: is required"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct draft draft;

        ck_fails(schema_decode(&person, parse(cases[i].input), parse(cases[i].old), cases[i].mode,
                               &arena, &draft),
                 cases[i].code, cases[i].words);
    }
}
END_TEST

static const struct property read_properties[] = {
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING, .flags = PROPERTY_REQUIRED},
    {.name = SPAN_INIT("Size"),
     .type = TYPE_NUMBER,
     .default_json = SPAN_INIT("1.5"),
     .least = 0.5,
     .most = 1000000},
    {.name = SPAN_INIT("Colour"), .type = TYPE_STRING, .values = &colour},
    {.name = SPAN_INIT("Tags"), .type = TYPE_ARRAY, .elements = TYPE_STRING},
    {.name = SPAN_INIT("Inner"), .type = TYPE_OBJECT, .default_json = SPAN_INIT("{}")},
};
static const struct shape thing = {.properties = read_properties,
                                   .count = ARRAY_LEN(read_properties)};

START_TEST(objects_are_read_by_place)
{
    static const struct {
        const char *input, *values[ARRAY_LEN(read_properties)];
    } cases[] = {
        {"{\"Name\":\"a\"}", {"\"a\"", "1.5", "null", "null", "{}"}},
        {"{\"name\":\"a\",\"SIZE\":null,\"Tags\":null}", {"\"a\"", "1.5", "null", "null", "{}"}},
        {"{\"Inner\":{\"x\":1},\"Tags\":[],\"Colour\":\"rEd\",\"Size\":1e6,\"Name\":\"\"}",
         {"\"\"", "1e6", "\"rEd\"", "[]", "{\"x\":1}"}},
        {"{\"Name\":\"a\",\"Size\":0.5,\"Tags\":[\"\",\"b\"]}",
         {"\"a\"", "0.5", "null", "[\"\",\"b\"]", "{}"}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_value *values;

        ck_ok(schema_read(&thing, parse(cases[i].input), &arena, &values));
        for (size_t k = 0; k < ARRAY_LEN(read_properties); k++)
            if (json_exists(values[k]))
                ck_span_is(json_text(values[k]), span_str(cases[i].values[k]));
            else
                ck_assert_str_eq(cases[i].values[k], "null");
    }
}
END_TEST

START_TEST(stored_objects_are_taken_as_they_are)
{
    static const char *const texts[] = {"null", "{}",
                                        "{\"name\":\"a\",\"Newer\":1,\"Size\":null,\"Inner\":{}}"};
    struct json_value *values;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        values = schema_stored(&thing, parse(texts[i]), &arena);
        ck_assert(!json_exists(values[0]) && !json_exists(values[2]) && !json_exists(values[3]));
        ck_span_eq(json_text(values[1]), "1.5");
        ck_span_eq(json_text(values[4]), "{}");
    }
    values = schema_stored(&thing, parse("{\"Size\":7e9,\"Tags\":[1]}"), &arena);
    ck_span_eq(json_text(values[1]), "7e9");
    ck_span_eq(json_text(values[3]), "[1]");
}
END_TEST

START_TEST(objects_that_are_wrong)
{
    static const struct {
        const char *input;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"[]", ERR_INVALID_ENTITY, "it must be a JSON object"},
        {"null", ERR_INVALID_ENTITY, "it must be a JSON object"},
        {"{}", ERR_INVALID_ENTITY, "Name: is required"},
        {"{\"Name\":null}", ERR_INVALID_ENTITY, "Name: is required"},
        {"{\"Name\":[]}", ERR_INVALID_ENTITY, "Name: must be of type string"},
        {"{\"Name\":\"a\",\"Nam\":1}", ERR_UNKNOWN_MEMBER,
         "Nam: there is no such member, is 'Name' meant?"},
        {"{\"Name\":\"a\",\"Id\":1}", ERR_UNKNOWN_MEMBER, "Id: there is no such member"},
        {"{\"Name\":\"a\",\"NAME\":\"a\"}", ERR_FAILED_JSON, "NAME"},
        {"{\"Name\":\"a\",\"Inner\":{\"x\":1,\"X\":1}}", ERR_FAILED_JSON, "X"},
        {"{\"Name\":\"a\",\"Size\":0.49}", ERR_INVALID_ENTITY,
         "Size: is 0.49, it must be between 0.5 and 1000000"},
        {"{\"Name\":\"a\",\"Size\":1000001}", ERR_INVALID_ENTITY, "Size: is 1000001, it must be"},
        {"{\"Name\":\"a\",\"Size\":-1e999}", ERR_INVALID_ENTITY, "Size: is -1e999, it must be"},
        {"{\"Name\":\"a\",\"Colour\":\"Blue\"}", ERR_INVALID_ENUM_VALUE,
         "Colour: 'Blue' is not one of Red, Green"},
        {"{\"Name\":\"a\",\"Tags\":[\"a\",null]}", ERR_INVALID_ENTITY,
         "Tags[1]: must be of type string"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_value *values;

        ck_fails(schema_read(&thing, parse(cases[i].input), &arena, &values), cases[i].code,
                 cases[i].words);
    }
}
END_TEST

START_TEST(dynamic_entities_keep_their_members)
{
    static const struct {
        enum schema_mode mode;
        const char *input, *old, *expected;
    } cases[] = {
        {SCHEMA_INSERT, "{}", NULL,
         "{\"Id\":\"00000000-0000-0000-0000-000000000000\",\"ObjectNo\":7}"},
        {SCHEMA_INSERT, "{ \"b\" : 1E400, \"ID\":1, \"a\":-0, \"A\":[1, 2] }", NULL,
         ENCODED("\"b\":1E400,\"a\":-0,\"A\":[1,2]")},
        {SCHEMA_PATCH, "{\"a\":{\"y\":2},\"c\":null}",
         "{\"Id\":\"x\",\"a\":{\"x\":1.10},\"b\":2,\"ObjectNo\":7}",
         ENCODED("\"a\":{\"x\":1.10,\"y\":2},\"b\":2,\"c\":null")},
        {SCHEMA_REPLACE, "{\"c\":3}", "{\"Id\":\"x\",\"a\":1,\"ObjectNo\":7}", ENCODED("\"c\":3")},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct draft draft;

        ck_ok(schema_decode(&schema_dynamic, parse(cases[i].input), parse(cases[i].old),
                            cases[i].mode, &arena, &draft));
        check_encoded(&draft, cases[i].expected);
    }
}
END_TEST

START_TEST(declared_shapes)
{
    static const struct {
        const char *properties;
        const char *words; /* NULL: good */
    } cases[] = {
        {"[{\"Name\":\"A\",\"Type\":\"string\"},{\"name\":\"b_1\",\"type\":\"ANY\","
         "\"Required\":true}]",
         NULL},
        {"[]", NULL},
        {"[{\"Name\":\"A\"}]", "Type: is required"},
        {"[{\"Name\":\"A\",\"Type\":\"text\"}]", "Type: 'text' is not one of"},
        {"[{\"Name\":\"1a\",\"Type\":\"any\"}]", "Name: '1a'"},
        {"[{\"Name\":\"Id\",\"Type\":\"any\"}]", "the server's own"},
        {"[{\"Name\":\"A\",\"Type\":\"any\"},{\"Name\":\"a\",\"Type\":\"any\"}]",
         "Properties[1].Name: 'a' is there twice"},
        {"[{\"Name\":\"A\",\"Type\":\"any\",\"Typ\":1}]", "is 'Type' meant?"},
        {"[5]", "Properties[0]."},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct shape *shape;
        struct json_value declared = parse(cases[i].properties);
        struct err *e = schema_from_declaration(declared, SPAN("Shop.X"), &arena, &shape);

        if (cases[i].words != NULL) {
            ck_assert_msg(e != NULL, "case %zu", i);
            ck_assert_msg(span_find(err_message(e), span_str(cases[i].words)) != SIZE_MAX, "%.*s",
                          SPAN_FMT(err_message(e)));
            err_free(e);
            continue;
        }
        ck_ok(e);
        ck_assert_uint_eq(shape->count, json_count(declared) + 2);
        ck_span_eq(shape->properties[0].name, "Id");
        ck_span_eq(shape->properties[shape->count - 1].name, "ObjectNo");
    }
}
END_TEST

/* Enough properties to be looked up in another way than a few. */
START_TEST(wide_shapes)
{
    enum { COUNT = 300 };
    struct json_value none = {NULL, NULL};
    const struct shape *shape;
    struct draft draft;
    struct buf declared, input;

    buf_init_arena(&declared, &arena);
    buf_init_arena(&input, &arena);
    for (int i = 0; i < COUNT; i++) {
        buf_printf(&declared, "%s{\"Name\":\"P%d\",\"Type\":\"integer\"}", i == 0 ? "[" : ",", i);
        buf_printf(&input, "%s\"p%d\":%d", i == 0 ? "{" : ",", COUNT - 1 - i, COUNT - 1 - i);
    }
    buf_add_char(&declared, ']');
    buf_add_char(&input, '}');
    ck_ok(schema_from_declaration(parse(buf_text(&declared)), SPAN("Shop.X"), &arena, &shape));
    ck_ok(schema_decode(shape, parse(buf_text(&input)), none, SCHEMA_INSERT, &arena, &draft));
    for (int i = 0; i < COUNT; i++)
        ck_assert(span_eq(draft_get(&draft, arena_printf(&arena, "P%d", i)),
                          arena_printf(&arena, "%d", i)));
    ck_fails(schema_decode(shape, parse("{\"P300\":1}"), none, SCHEMA_INSERT, &arena, &draft),
             ERR_UNKNOWN_MEMBER, "P30");
}
END_TEST

/* Also one without blanks and escapes, whose texts are taken over as they are. */
START_TEST(declared_shapes_outlive_their_declaration)
{
    char text[] = "[{\"Name\":\"Colour\",\"Type\":\"string\",\"Description\":\"Of it\"}]";
    const struct shape *shape;
    const struct property *p;

    ck_ok(schema_from_declaration(parse(text), SPAN("Shop.X"), &arena, &shape));
    memset(text, '?', sizeof(text) - 1);
    p = shape_find(shape, SPAN("Colour"));
    ck_assert_ptr_nonnull(p);
    ck_span_eq(p->meaning, "Of it");
}
END_TEST

START_TEST(payload_checks_change_nothing)
{
    ck_ok(schema_check(&person, parse("{\"name\":\"A\"}"), &arena));
    ck_ok(schema_check(&person, parse("{}"), &arena));
    ck_ok(schema_check(&schema_dynamic, parse("{\"x\":1}"), &arena));
    ck_fails(schema_check(&person, parse("{\"Age\":\"x\"}"), &arena), ERR_INVALID_ENTITY, "Age");
    ck_fails(schema_check(&person, parse("{\"Agee\":1}"), &arena), ERR_UNKNOWN_MEMBER, "Age");
    ck_fails(schema_check(&person, parse("[]"), &arena), ERR_INVALID_ENTITY, "object");
    ck_fails(schema_check(&person, parse("{\"name\":\"A\",\"NAME\":\"B\"}"), &arena),
             ERR_FAILED_JSON, "Name: \"NAME\" repeats it");
    ck_fails(schema_check(&person, parse("{\"name\":\"A\",\"name\":\"B\"}"), &arena),
             ERR_FAILED_JSON, "Name: \"name\" repeats it");
    ck_ok(schema_check(&schema_dynamic, parse("{\"x\":1,\"X\":{\"a\":1,\"A\":2}}"), &arena));
}
END_TEST

static const struct property hiding_properties[] = {
    {.name = SPAN_INIT("Id"), .type = TYPE_STRING, .flags = PROPERTY_ENTITY},
    {.name = SPAN_INIT("A"), .type = TYPE_ANY},
    {.name = SPAN_INIT("ObjectNo"), .type = TYPE_INTEGER, .flags = PROPERTY_ENTITY},
    {.name = SPAN_INIT("K"), .type = TYPE_STRING},
    {.name = SPAN_INIT("B"), .type = TYPE_BOOLEAN},
};
static const struct shape hiding = {hiding_properties, 5, false},
                          shown = {hiding_properties, 3, false};

/* NULL: it was made by an older shape, or none. */
static const struct {
    const char *stored, *shown;
} hidden_tails[] = {
    {"{\"Id\":\"i\",\"A\":1,\"K\":null,\"B\":null,\"ObjectNo\":7}",
     "{\"Id\":\"i\",\"A\":1,\"ObjectNo\":7}"},
    {"{\"Id\":\"i\",\"A\":[1,{\"K\":\"x\",\"B\":true}],\"K\":\"k,\\\\\",\"B\":true,\"ObjectNo\":7}",
     "{\"Id\":\"i\",\"A\":[1,{\"K\":\"x\",\"B\":true}],\"ObjectNo\":7}"},
    {"{\"Id\":\"i\",\"A\":1,\"K\":\",\\\"K\\\":null,\\\"B\\\":1\",\"B\":false,\"ObjectNo\":12}",
     "{\"Id\":\"i\",\"A\":1,\"ObjectNo\":12}"},
    {"{\"Id\":\"i\",\"A\":1,\"ObjectNo\":7}", NULL},
    {"{\"Id\":\"i\",\"A\":1,\"K\":null,\"ObjectNo\":7}", NULL},
    {"{\"Id\":\"i\",\"A\":1,\"ObjectNo\":7,\"K\":null,\"B\":null}", NULL},
    {"{\"Id\":\"i\",\"A\":{\"a\":1,\"K\":null,\"B\":null,\"ObjectNo\":7}}", NULL},
    {"{\"Id\":\"i\",\"A\":1,\"K\":\"k", NULL},
    {"{\"Id\":\"i\",\"A\":1,\"K\":\"k\\", NULL},
    {"", NULL},
};

START_TEST(what_is_never_shown_is_cut_off)
{
    struct span text = schema_shown(&shown, &hiding, span_str(hidden_tails[_i].stored), &arena);

    if (hidden_tails[_i].shown == NULL)
        ck_assert_ptr_null(text.p);
    else
        ck_assert(span_eq(text, span_str(hidden_tails[_i].shown)));
}
END_TEST

/* As far as it looks: longer ones are read as those of older shapes. */
START_TEST(what_is_cut_off_is_as_long_as_can_be)
{
    struct buf long_one;
    struct span text;

    buf_init_arena(&long_one, &arena);
    for (int length = 1000; length <= 5000; length += 4000) {
        buf_clear(&long_one);
        buf_printf(&long_one, "{\"A\":%05000d,\"K\":\"%0*d\",\"B\":null,\"ObjectNo\":7}", 1, length,
                   1);
        text = schema_shown(&shown, &hiding, buf_span(&long_one), &arena);
        ck_assert_int_eq(text.p != NULL, length == 1000);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, good_input);
    tcase_add_test(tc, bad_input);
    tcase_add_test(tc, objects_are_read_by_place);
    tcase_add_test(tc, stored_objects_are_taken_as_they_are);
    tcase_add_test(tc, objects_that_are_wrong);
    tcase_add_test(tc, dynamic_entities_keep_their_members);
    tcase_add_test(tc, declared_shapes);
    tcase_add_test(tc, wide_shapes);
    tcase_add_test(tc, declared_shapes_outlive_their_declaration);
    tcase_add_test(tc, payload_checks_change_nothing);
    tcase_add_loop_test(tc, what_is_never_shown_is_cut_off, 0, ARRAY_LEN(hidden_tails));
    tcase_add_test(tc, what_is_cut_off_is_as_long_as_can_be);
}
