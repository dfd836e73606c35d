/* CloudEvents as the document has them: what Svc.Event takes besides its own form (section 13 of
 * docs/specification.md). They have a path item of their own, `/Svc.Event/_`, which is the same
 * resource: generators would take the types of its own form from what they make of all media types
 * together, and header fields that belong to one mode alone would stand with every event. */
#include "protocol/cloudevents.h"
#include "base/buf.h"
#include "openapi/openapi_inner.h"

/* Attributes that the specification of CloudEvents knows. `schema` is what the schema of a member
 * has behind its type; of a header field nothing is said, as it counts in binary mode alone, where
 * Content-Type takes the place of the last one. */
static const struct attribute {
    const char *name, *meaning, *schema;
    bool is_field;
} attributes[] = {
    {"specversion", "The version of CloudEvents", ",\"const\":\"1.0\"", true},
    {"id", "Together with the source, what makes raising it idempotent", ",\"minLength\":1", true},
    {"source", "Where it happened: a URI, or a reference to one",
     ",\"minLength\":1,\"format\":\"uri-reference\"", true},
    {"type", "The event resource: its full name, its CloudEventsType, or the end of its name",
     ",\"minLength\":1", true},
    {"time", "When it happened, by RFC 3339", ",\"format\":\"date-time\"", true},
    {"subject", "What it is about", ",\"minLength\":1", true},
    {"dataschema", "Which schema its data keeps to: a URI", ",\"minLength\":1,\"format\":\"uri\"",
     true},
    {"datacontenttype", "The media type of its data; without, it is JSON", ",\"minLength\":1",
     false},
};

void openapi_add_cloudevent_parameters(struct openapi *d)
{
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
        if (attributes[i].is_field)
            buf_printf(d->out,
                       ",\"ce-%s\":{\"name\":\"ce-%s\",\"in\":\"header\",\"description\":"
                       "\"Binary mode: %s\",\"schema\":{\"type\":\"string\"}}",
                       attributes[i].name, attributes[i].name, attributes[i].meaning);
}

void openapi_refer_to_cloudevent_parameters(struct openapi *d)
{
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
        if (attributes[i].is_field)
            buf_printf(d->out, ",{\"$ref\":\"#/components/parameters/ce-%s\"}", attributes[i].name);
}

void openapi_add_cloudevent_schema(struct openapi *d)
{
    struct buf *b = d->out;

    buf_add_str(b, ",\"CloudEvent\":{\"type\":\"object\",\"required\":[\"specversion\",\"id\","
                   "\"source\",\"type\"],\"properties\":{");
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
        buf_printf(b, "\"%s\":{\"type\":\"string\",\"description\":\"%s\"%s},", attributes[i].name,
                   attributes[i].meaning, attributes[i].schema);
    buf_add_str(b, "\"data\":{\"description\":\"An entity, or an array of them; of an event "
                   "resource that carries bytes, what its media type says\"},"
                   "\"data_base64\":{\"type\":\"string\",\"contentEncoding\":\"base64\","
                   "\"description\":\"Instead of data: bytes\"}},"
                   "\"propertyNames\":{\"pattern\":\"^([a-z0-9]+|data_base64)$\"},"
                   "\"additionalProperties\":{\"type\":[\"string\",\"boolean\",\"integer\","
                   "\"null\"]}}");
}

/* As schema, and as an example that can be sent; where all that the key may raise are bytes, there
 * is no example. */
static void add_type(struct openapi *d, struct span type, bool is_batch)
{
    struct span example = {NULL, 0};

    if (d->first_event != NULL && openapi_is_raised(d->first_event))
        example = openapi_event_example(
            d, "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/example\",\"type\":\"%\","
               "\"data\":$}");

    json_add_string(d->out, type);
    buf_printf(d->out, ":{\"schema\":%s{\"$ref\":\"#/components/schemas/CloudEvent\"}%s",
               is_batch ? "{\"type\":\"array\",\"items\":" : "", is_batch ? "}" : "");
    if (example.p != NULL)
        buf_printf(d->out, ",\"example\":%s%.*s%s", is_batch ? "[" : "", SPAN_FMT(example),
                   is_batch ? "]" : "");
    buf_add_char(d->out, '}');
}

void openapi_add_cloudevent_bodies(struct openapi *d)
{
    add_type(d, cloudevents_structured_type, false);
    buf_add_char(d->out, ',');
    add_type(d, cloudevents_batch_type, true);
    buf_add_str(d->out, ",\"application/json\":{\"schema\":{}}");
}
