/* CloudEvents out of hostile bytes: an even first byte begins header fields, a line each, an odd
 * one JSON. What is understood goes out in both modes, and is understood again as the same. */
#include "base/header_field.h"
#include "base/limits.h"
#include "fuzzing.h"
#include "protocol/cloudevents.h"

enum { FIELDS_MOST = 80 };

static struct limits limits;

struct fields {
    struct header_field all[FIELDS_MOST];
    size_t count;
};

static void add(void *context, struct span name, struct span value)
{
    struct fields *fields = context;

    MUST(fields->count < FIELDS_MOST && cloudevents_is_field(name));
    MUST(span_holds_only(value, '!', '~', '"'));
    fields->all[fields->count++] = (struct header_field){span_sub(name, 3, name.n), value};
}

static struct json_value parsed(struct span json, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    MUST(json_parse(json, NULL, a, doc) == NULL);
    return json_root(doc);
}

/* As fields every value is a text. */
static void check_same(const struct cloudevent *a, const struct cloudevent *b)
{
    MUST(span_eq(a->id, b->id) && span_eq(a->source, b->source) && span_eq(a->type, b->type));
}

static void check_out(const struct cloudevent *event, struct arena *a)
{
    struct cloudevent_out out = {.kept = event->attributes,
                                 .time = SPAN("2026-11-23T09:30:00Z"),
                                 .type = event->type,
                                 .data_type = event->data_type};
    struct fields *fields = ARENA_NEW(a, struct fields);
    struct cloudevent again;
    struct buf b;

    fields->count = 0;
    cloudevents_each_field(&out, a, add, fields);
    if ((int64_t)fields->count < limits.cloudevent_attributes) { /* the time may be one more */
        struct err *e = cloudevent_from_fields(fields->all, fields->count, event->data_type,
                                               &limits, a, &again);

        MUST(e == NULL || (int64_t)event->attributes.n > limits.cloudevent_attribute_bytes - 64);
        if (e == NULL)
            check_same(event, &again);
        err_free(e);
    }
    buf_init_arena(&b, a);
    cloudevents_add_structured(&b, &out, SPAN("\"\""), SPAN(""), a);
    MUST(json_type(parsed(buf_span(&b), a)) == JSON_OBJECT);
    (void)parsed(cloudevents_entities(event->attributes, parsed(SPAN("{\"ce\":1}"), a), a), a);
}

static struct err *read_fields(struct input *in, struct arena *a, struct cloudevent *out)
{
    struct fields *fields = ARENA_NEW(a, struct fields);
    struct span type = input_line(in);

    fields->count = 0;
    while (in->n > 0 && fields->count < FIELDS_MOST) {
        struct span value = input_line(in), name = span_split(&value, ':');

        fields->all[fields->count++] = (struct header_field){name, value};
    }
    return cloudevent_from_fields(fields->all, fields->count, type.n == 0 ? span_of(NULL, 0) : type,
                                  &limits, a, out);
}

static struct err *read_json(const struct input *in, struct arena *a, struct cloudevent *out)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    TRY(json_parse(input_rest(in), NULL, a, doc));
    TRY(json_check_unique(json_root(doc), false, a));
    return cloudevent_from_json(json_root(doc), &limits, a, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    bool is_json = input_byte(&in) % 2 != 0;
    struct cloudevent event;
    struct arena a;
    struct err *e;

    limits_init(&limits);
    arena_init(&a);
    e = is_json ? read_json(&in, &a, &event) : read_fields(&in, &a, &event);
    if (e == NULL)
        check_out(&event, &a);
    err_free(e);
    arena_done(&a);
    return 0;
}
