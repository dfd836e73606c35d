/* Events on their way out. An event that came as a CloudEvent goes with the attributes that it came
 * with, but for its type, which is what this server calls it, and the type of its data, which may
 * be written otherwise than it came. */
#include "base/must.h"
#include "base/text.h"
#include "protocol/cloudevents.h"
#include "json/member.h"

#define SPECVERSION "1.0"

/* One attribute: its name, and its value as JSON. */
typedef void attribute_fn(void *context, struct span name, struct json_value value);

static struct json_value parsed(struct span json, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct err *e = json.p == NULL ? NULL : json_parse(json, NULL, a, doc);

    MUST(e == NULL); /* it was made by finish, or read from what that made */
    return json.p == NULL ? (struct json_value){NULL, NULL} : json_root(doc);
}

/* The text of a kept attribute, else the other. */
static struct span text_of(struct json_value kept, struct span name, struct span otherwise,
                           struct arena *a)
{
    struct json_value value = json_member(kept, name);

    return json_type(value) == JSON_STRING ? json_string(value, a) : otherwise;
}

/* Those that are written from elsewhere, and stand first. */
static bool is_own(struct span name)
{
    static const struct span names[] = {
        SPAN_INIT("specversion"), SPAN_INIT("id"),   SPAN_INIT("source"),
        SPAN_INIT("type"),        SPAN_INIT("time"), SPAN_INIT("datacontenttype"),
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (span_eq(names[i], name))
            return true;
    return false;
}

static void each_kept(const struct cloudevent_out *event, struct json_value kept, struct arena *a,
                      attribute_fn *act, void *context)
{
    for (struct json_member m = json_first_member(kept); json_exists(m.name);
         m = json_next_member(kept, m)) {
        struct span name = json_string(m.name, a);

        if (!is_own(name) && !(event->is_other_data && span_eq(name, SPAN("dataschema"))))
            act(context, name, m.value);
    }
}

/* Fields. ---------------------------------------------------------------------------------- */

/* As the HTTP binding has it, section 3.1.3.2. */
static struct span encoded(struct span text, struct arena *a)
{
    struct buf b;

    if (span_holds_only(text, '!', '~', '%') && span_find_char(text, '"', 0) == text.n)
        return text;
    buf_init_arena(&b, a);
    text_add_percent(&b, text, "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~");
    return buf_span(&b);
}

struct adding {
    struct arena *arena;
    cloudevents_add_fn *add;
    void *context;
};

static void add_text(struct adding *adding, struct span name, struct span text)
{
    adding->add(adding->context, name, encoded(text, adding->arena));
}

static void add_field(void *context, struct span name, struct json_value value)
{
    struct adding *adding = context;
    struct span text =
        json_type(value) == JSON_STRING ? json_string(value, adding->arena) : json_text(value);

    add_text(adding, arena_printf(adding->arena, "ce-%.*s", SPAN_FMT(name)), text);
}

void cloudevents_each_field(const struct cloudevent_out *event, struct arena *a,
                            cloudevents_add_fn *add, void *context)
{
    struct json_value kept = parsed(event->kept, a);
    struct adding adding = {a, add, context};

    add_text(&adding, SPAN("ce-specversion"), SPAN(SPECVERSION));
    add_text(&adding, SPAN("ce-id"), text_of(kept, SPAN("id"), event->id, a));
    add_text(&adding, SPAN("ce-source"), text_of(kept, SPAN("source"), event->source, a));
    add_text(&adding, SPAN("ce-type"), event->type);
    add_text(&adding, SPAN("ce-time"), text_of(kept, SPAN("time"), event->time, a));
    each_kept(event, kept, a, add_field, &adding);
}

/* JSON. ------------------------------------------------------------------------------------ */

static void add_member(void *context, struct span name, struct json_value value)
{
    member_add_json(context, name, json_text(value));
}

void cloudevents_add_structured(struct buf *b, const struct cloudevent_out *event, struct span json,
                                struct span bytes, struct arena *a)
{
    struct json_value kept = parsed(event->kept, a);

    buf_add_char(b, '{');
    member_add_text(b, SPAN("specversion"), SPAN(SPECVERSION));
    member_add_text(b, SPAN("id"), text_of(kept, SPAN("id"), event->id, a));
    member_add_text(b, SPAN("source"), text_of(kept, SPAN("source"), event->source, a));
    member_add_text(b, SPAN("type"), event->type);
    member_add_text(b, SPAN("time"), text_of(kept, SPAN("time"), event->time, a));
    if (event->data_type.p != NULL)
        member_add_text(b, SPAN("datacontenttype"), event->data_type);
    each_kept(event, kept, a, add_member, b);
    if (json.p != NULL) {
        member_add_json(b, SPAN("data"), json);
    } else {
        json_add_name(b, SPAN("data_base64"));
        buf_add_char(b, '"');
        text_add_base64(b, bytes);
        buf_add_char(b, '"');
    }
    buf_add_char(b, '}');
}
