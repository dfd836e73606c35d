#include "testing.h"

#include "base/header_field.h"
#include "base/limits.h"
#include "protocol/cloudevents.h"
#include "json/json.h"

#include <string.h>

static struct arena arena;
static struct limits limits;

static void set_up(void)
{
    limits_init(&limits);
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

static struct json_value parse(struct span text)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(text, NULL, &arena, doc));
    return json_root(doc);
}

START_TEST(the_mode_is_told_by_the_media_type)
{
    static const struct {
        const char *type;
        enum cloudevents_mode mode;
        bool is_json;
    } cases[] = {
        {NULL, CLOUDEVENTS_BINARY, true},
        {"", CLOUDEVENTS_BINARY, false},
        {"application/json", CLOUDEVENTS_BINARY, true},
        {" Application/JSON ; charset=utf-8", CLOUDEVENTS_BINARY, true},
        {"text/x+json", CLOUDEVENTS_BINARY, true},
        {"text/+json", CLOUDEVENTS_BINARY, false},
        {"text/xjson", CLOUDEVENTS_BINARY, false},
        {"json", CLOUDEVENTS_BINARY, false},
        {"application/cloudevents+json", CLOUDEVENTS_STRUCTURED, true},
        {"application/CloudEvents+JSON;charset=utf-8", CLOUDEVENTS_STRUCTURED, true},
        {"application/cloudevents-batch+json", CLOUDEVENTS_BATCH, true},
        {"application/cloudevents", CLOUDEVENTS_UNREADABLE, false},
        {"application/cloudevents+avro", CLOUDEVENTS_UNREADABLE, false},
        {"application/cloudevents-batch+xml; x=y", CLOUDEVENTS_UNREADABLE, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(cloudevents_mode(span_str(cases[i].type)), cases[i].mode);
        ck_assert_msg(cloudevents_is_json(span_str(cases[i].type)) == cases[i].is_json, "%s",
                      cases[i].type);
    }
    ck_assert(cloudevents_is_field(SPAN("CE-id")));
    ck_assert(!cloudevents_is_field(SPAN("ce-")));
    ck_assert(!cloudevents_is_field(SPAN("cex-id")));
}
END_TEST

START_TEST(sources_are_references_to_uris)
{
    static const struct {
        const char *text, *host; /* NULL: it is none */
    } cases[] = {
        {"", NULL},
        {"/", ""},
        {"x", ""},
        {"urn:uuid:6e8bc430", ""},
        {"mailto:a@b.example", ""},
        {"https://events.example.com", "events.example.com"},
        {"https://u@Events.example:8443/shop?a=b#c", "Events.example"},
        {"https://events.example?x", "events.example"},
        {"https://events.example#x", "events.example"},
        {"//[::1]:80/x", "[::1]"},
        {"a/b:c", ""},
        {"/%20", ""},
        {"/%2", NULL},
        {"/%zz", NULL},
        {"a b", NULL},
        {"a#b#c", NULL},
        {"1-555:a", NULL},
        {":a", NULL},
        {"://x", NULL},
        {"a<b", NULL},
        {"\xc3\xa4", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct span text = span_str(cases[i].text);

        ck_assert_msg(cloudevents_is_source(text) == (cases[i].host != NULL), "%s", cases[i].text);
        if (cases[i].host != NULL)
            ck_span_is(cloudevents_host(text), span_str(cases[i].host));
    }
}
END_TEST

START_TEST(header_fields_are_decoded)
{
    static const struct {
        const char *value, *text, *why; /* text NULL: refused */
    } cases[] = {
        {"plain", "plain", NULL},
        {"", "", NULL},
        {"Euro%20%E2%82%AC%20%f0%9f%98%80", "Euro \xe2\x82\xac \xf0\x9f\x98\x80", NULL},
        {"\xc3\xa4", "\xc3\xa4", NULL},
        {"\"a \\\"b\\\" \\\\\"", "a \"b\" \\", NULL},
        {"\"%41\"", "A", NULL},
        {"\"\"", "", NULL},
        {"a\"b", "a\"b", NULL},
        {"\"a", NULL, "quotes"},
        {"\"a\"b\"", NULL, "quotes"},
        {"\"a\\\"", NULL, "quotes"},
        {"\"", NULL, "quotes"},
        {"%", NULL, "'%'"},
        {"%4", NULL, "'%'"},
        {"%4x", NULL, "'%'"},
        {"%c0%a0", NULL, "UTF-8"},
        {"%00", NULL, "control"},
        {"%7F", NULL, "control"},
        {"%C2%9F", NULL, "control"},
        {"%EF%B7%90", NULL, "no use"},
        {"%F4%8F%BF%BE", NULL, "no use"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct header_field fields[] = {
            {SPAN("SpecVersion"), SPAN("1.0")},
            {SPAN("id"), SPAN("1")},
            {SPAN("source"), SPAN("/x")},
            {SPAN("type"), SPAN("t")},
            {SPAN("Ext"), span_str(cases[i].value)},
        };
        struct cloudevent event;

        if (cases[i].text == NULL) {
            ck_fails(cloudevent_from_fields(fields, ARRAY_LEN(fields), SPAN("a/b"), &limits, &arena,
                                            &event),
                     ERR_INVALID_ENTITY, cases[i].why);
            continue;
        }
        ck_ok(cloudevent_from_fields(fields, ARRAY_LEN(fields), SPAN("a/b"), &limits, &arena,
                                     &event));
        ck_span_is(json_string(json_member(parse(event.attributes), SPAN("ext")), &arena),
                   span_str(cases[i].text));
        ck_span_eq(event.data_type, "a/b");
    }
}
END_TEST

START_TEST(times_are_those_of_rfc_3339)
{
    static const struct {
        const char *time;
        bool is_good;
    } cases[] = {
        {"2026-11-23T09:30:00Z", true},        {"2026-11-23t09:30:00z", true},
        {"2026-11-23T09:30:00.123Z", true},    {"2026-11-23T09:30:00-00:00", true},
        {"2026-11-23T09:30:00.5+23:59", true}, {"2026-11-23", false},
        {"2026-11-23T09:30Z", false},          {"2026-11-23T09:30:00", false},
        {"2026-11-23 09:30:00Z", false},       {"2026-11-23T09:30:00+01", false},
        {"2026-11-23T09:30:00+0100", false},   {"2026-02-29T09:30:00Z", false},
        {"2026-11-23T24:00:00Z", false},       {"T", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cloudevent event;
        struct err *e = cloudevent_from_json(
            parse(arena_printf(&arena,
                               "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/\",\"type\":"
                               "\"t\",\"time\":\"%s\"}",
                               cases[i].time)),
            &limits, &arena, &event);

        ck_assert_msg((e == NULL) == cases[i].is_good, "%s", cases[i].time);
        err_free(e);
    }
}
END_TEST

static const struct span came = SPAN_INIT(
    "{\"x\":\"\\u00e4 %\",\"data\":{\"a\":1},\"type\":\"t\",\"n\":-1,\"specversion\":\"1.0\","
    "\"time\":\"2026-11-23T09:30:00Z\",\"y\":true,\"id\":\"1\",\"source\":\"/s\",\"z\":null,"
    "\"dataschema\":\"urn:x\",\"datacontenttype\":\"application/json\"}");

START_TEST(what_is_kept_begins_with_what_must_be)
{
    struct cloudevent event;
    struct span id;

    ck_ok(cloudevent_from_json(parse(came), &limits, &arena, &event));
    ck_span_eq(event.attributes,
               "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\",\"x\":"
               "\"\xc3\xa4 %\",\"n\":-1,\"time\":\"2026-11-23T09:30:00Z\",\"y\":true,"
               "\"dataschema\":\"urn:x\",\"datacontenttype\":\"application/json\"}");
    ck_span_eq(json_text(event.data), "{\"a\":1}");
    ck_ok(cloudevent_client_id(&event, &arena, &id));
    ck_span_eq(id, "/s 1");
}
END_TEST

/* Ten attributes: `z` is null, and so is none, and `data` is none. */
START_TEST(limits_are_those_of_the_configuration)
{
    static const struct header_field fields[] = {
        {SPAN_INIT("specversion"), SPAN_INIT("1.0")}, {SPAN_INIT("id"), SPAN_INIT("1")},
        {SPAN_INIT("source"), SPAN_INIT("/x")},       {SPAN_INIT("type"), SPAN_INIT("t")},
        {SPAN_INIT("ext"), SPAN_INIT("x")},
    };
    struct cloudevent event;

    ck_ok(cloudevent_from_json(parse(came), &limits, &arena, &event));
    limits.cloudevent_attribute_bytes = (int64_t)event.attributes.n;
    limits.cloudevent_attributes = 10;
    ck_ok(cloudevent_from_json(parse(came), &limits, &arena, &event));
    limits.cloudevent_attribute_bytes--;
    ck_fails(cloudevent_from_json(parse(came), &limits, &arena, &event), ERR_INVALID_ENTITY,
             "the limit CloudEventAttributeBytes");
    limits.cloudevent_attributes--;
    ck_fails(cloudevent_from_json(parse(came), &limits, &arena, &event), ERR_INVALID_ENTITY,
             "more than 9 attributes, which is the limit CloudEventAttributes");
    limits.cloudevent_attributes = ARRAY_LEN(fields);
    ck_ok(cloudevent_from_fields(fields, ARRAY_LEN(fields), span_of(NULL, 0), &limits, &arena,
                                 &event));
    ck_fails(
        cloudevent_from_fields(fields, ARRAY_LEN(fields), SPAN("a/b"), &limits, &arena, &event),
        ERR_INVALID_ENTITY, "more than 5 attributes");
}
END_TEST

static void add_line(void *context, struct span name, struct span value)
{
    buf_printf(context, "%.*s: %.*s\n", SPAN_FMT(name), SPAN_FMT(value));
}

START_TEST(it_goes_out_as_it_came)
{
    struct cloudevent_out out = {.id = SPAN("own"),
                                 .source = SPAN("/own"),
                                 .time = SPAN("own"),
                                 .type = SPAN("t 2"),
                                 .data_type = SPAN("application/json")};
    struct cloudevent event;
    struct buf b;

    ck_ok(cloudevent_from_json(parse(came), &limits, &arena, &event));
    out.kept = event.attributes;
    buf_init_arena(&b, &arena);
    cloudevents_each_field(&out, &arena, add_line, &b);
    ck_span_eq(buf_span(&b), "ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t%202\n"
                             "ce-time: 2026-11-23T09:30:00Z\nce-x: %C3%A4%20%25\nce-n: -1\n"
                             "ce-y: true\nce-dataschema: urn:x\n");
    buf_init_arena(&b, &arena);
    cloudevents_add_structured(&b, &out, SPAN("[1]"), SPAN(""), &arena);
    ck_span_eq(buf_span(&b),
               "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t 2\","
               "\"time\":\"2026-11-23T09:30:00Z\",\"datacontenttype\":\"application/json\",\"x\":"
               "\"\xc3\xa4 %\",\"n\":-1,\"y\":true,\"dataschema\":\"urn:x\",\"data\":[1]}");
    out.kept = (struct span){NULL, 0};
    buf_init_arena(&b, &arena);
    cloudevents_add_structured(&b, &out, out.kept, SPAN("ab"), &arena);
    ck_span_eq(buf_span(&b),
               "{\"specversion\":\"1.0\",\"id\":\"own\",\"source\":\"/own\",\"type\":\"t 2\","
               "\"time\":\"own\",\"datacontenttype\":\"application/json\",\"data_base64\":"
               "\"YWI=\"}");
}
END_TEST

START_TEST(entities_get_the_attributes)
{
    static const struct {
        const char *payload, *entities;
    } cases[] = {
        {NULL, "[{\"ce\":{\"id\":1}}]"},
        {"[]", "[{\"ce\":{\"id\":1}}]"},
        {"{}", "[{\"ce\":{\"id\":1}}]"},
        {"{\"a\":1,\"CE\":2,\"b\":[3]}", "[{\"ce\":{\"id\":1},\"a\":1,\"b\":[3]}]"},
        {"[{\"a\":1},{}]", "[{\"ce\":{\"id\":1},\"a\":1},{\"ce\":{\"id\":1}}]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_value payload = {NULL, NULL};

        if (cases[i].payload != NULL)
            payload = parse(span_str(cases[i].payload));
        ck_span_is(cloudevents_entities(SPAN("{\"id\":1}"), payload, &arena),
                   span_str(cases[i].entities));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_mode_is_told_by_the_media_type);
    tcase_add_test(tc, sources_are_references_to_uris);
    tcase_add_test(tc, header_fields_are_decoded);
    tcase_add_test(tc, times_are_those_of_rfc_3339);
    tcase_add_test(tc, limits_are_those_of_the_configuration);
    tcase_add_test(tc, what_is_kept_begins_with_what_must_be);
    tcase_add_test(tc, it_goes_out_as_it_came);
    tcase_add_test(tc, entities_get_the_attributes);
}
