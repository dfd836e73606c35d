/* Schemas of entities and payloads, each from the table of properties that they are checked by.
 *
 * Answers require nothing: `select` and `rename` leave members out, and so do limited rights. What
 * is read-only may stand in what is sent, where it is passed over. */
#include "base/err.h"
#include "openapi/openapi_inner.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "json/json.h"

void openapi_add_schema_name(struct openapi *d, enum openapi_schema schema, struct span resource)
{
    static const char *const kinds[] = {
        [OPENAPI_ANSWER] = "",
        [OPENAPI_INPUT] = "Input.",
        [OPENAPI_PATCH] = "Patch.",
        [OPENAPI_PAYLOAD] = "Payload.",
    };
    struct span mark = openapi_mark(d, resource);

    if (schema != OPENAPI_ANSWER || mark.n > 0)
        buf_add_str(d->out, "Svc.");
    if (mark.n > 0)
        buf_printf(d->out, "N%.*s.", SPAN_FMT(mark));
    buf_add_str(d->out, kinds[schema]);
    buf_add(d->out, resource);
}

void openapi_add_reference(struct openapi *d, enum openapi_schema schema, struct span resource)
{
    buf_add_str(d->out, "{\"$ref\":\"#/components/schemas/");
    openapi_add_schema_name(d, schema, resource);
    buf_add_str(d->out, "\"}");
}

bool openapi_has(const struct openapi_resource *r, enum openapi_schema schema)
{
    const struct resource *resource = r->resource;
    const unsigned needs[] = {
        [OPENAPI_INPUT] = METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PUT),
        [OPENAPI_PATCH] = METHOD_BIT(METHOD_PATCH),
    };

    if (schema == OPENAPI_PAYLOAD)
        return resource->kind == KIND_EVENT && !resource->is_binary_event;
    if (resource->kind == KIND_BINARY)
        return schema == OPENAPI_ANSWER && resource->ops->answered != NULL && r->shown != 0;
    if (resource->kind != KIND_ENTITY || resource->ops->post_asks)
        return false;
    return schema == OPENAPI_ANSWER ? r->shown != 0 : (r->methods & needs[schema]) != 0;
}

/* ---- properties ---- */

static const char *const types[TYPE_COUNT] = {
    [TYPE_STRING] = "string",   [TYPE_INTEGER] = "integer", [TYPE_NUMBER] = "number",
    [TYPE_BOOLEAN] = "boolean", [TYPE_DATETIME] = "string", [TYPE_OBJECT] = "object",
    [TYPE_ARRAY] = "array",
};

static void add_type(struct buf *b, enum value_type type, bool nullable)
{
    if (type == TYPE_ANY)
        return;
    json_add_name(b, SPAN("type"));
    buf_printf(b, nullable ? "[\"%s\",\"null\"]" : "\"%s\"", types[type]);
}

/* What an event carries. */
static void add_payload(struct buf *b)
{
    json_add_name(b, SPAN("oneOf"));
    buf_add_str(b, "[{\"type\":\"object\",\"additionalProperties\":true},{\"type\":\"array\","
                   "\"items\":{\"type\":\"object\",\"additionalProperties\":true}}]");
}

static void add_format(struct buf *b, const struct property *p)
{
    bool is_own = (p->flags & PROPERTY_READ_ONLY) != 0;

    if (p->type == TYPE_INTEGER && is_own)
        buf_add_str(b, ",\"format\":\"int64\"");
    /* What a client wrote stays as it was: it may be a date alone. */
    if (p->type == TYPE_DATETIME && is_own)
        buf_add_str(b, ",\"format\":\"date-time\"");
    if (p->type == TYPE_STRING && (p->flags & PROPERTY_ENTITY) != 0)
        buf_add_str(b, ",\"format\":\"uuid\"");
}

static void add_values(struct buf *b, const struct enumeration *e, bool nullable)
{
    buf_add_str(b, ",\"enum\":[");
    for (size_t i = 0; i < e->count; i++) {
        if (i > 0 && span_eq(e->values[i], e->values[i - 1]))
            continue;
        json_add_comma(b);
        json_add_string(b, e->values[i]);
    }
    buf_add_str(b, nullable ? ",null]" : "]");
}

static void add_range(struct buf *b, const struct property *p)
{
    if (p->least != 0 || p->most != 0)
        buf_printf(b, ",\"minimum\":%.15g,\"maximum\":%.15g", p->least, p->most);
}

/* The default is told in words: from the keyword some generators conclude that the member must be
 * there. */
static struct span words_of(const struct property *p, struct arena *a)
{
    bool only_added = (p->flags & (PROPERTY_HIDDEN | PROPERTY_UNSHOWN)) != 0;
    struct span words = p->meaning;

    if (words.n == 0 && p->type == TYPE_DATETIME)
        words = SPAN("An ISO 8601 date, or date and time");
    if (only_added)
        words = arena_printf(a, "%.*s; shown when `add` asks for it", SPAN_FMT(words));
    if (p->default_json.n > 0)
        words = arena_printf(a, "%.*s; default: %.*s", SPAN_FMT(words), SPAN_FMT(p->default_json));
    return words;
}

static void add_meaning(struct openapi *d, const struct property *p)
{
    struct span words = words_of(p, d->call->arena);

    if (words.n == 0)
        return;
    json_add_name(d->out, SPAN("description"));
    json_add_string(d->out, words);
}

static void add_members(struct openapi *d, const struct shape *shape, enum openapi_schema schema,
                        const struct shape *more);

/* Of what an array holds, and of what an object does. */
static void add_inside(struct openapi *d, const struct property *p, enum openapi_schema schema)
{
    struct buf *b = d->out;

    if (p->type == TYPE_ARRAY) {
        buf_add_str(b, ",\"items\":{");
        if (p->members != NULL)
            add_members(d, p->members, schema, NULL);
        else
            add_type(b, p->elements, false);
        if (p->values != NULL)
            add_values(b, p->values, false);
        buf_add_char(b, '}');
    } else if (p->type == TYPE_OBJECT && p->members != NULL) {
        buf_add_char(b, ',');
        add_members(d, p->members, schema, NULL);
    } else if (p->type == TYPE_OBJECT) {
        buf_add_str(b, ",\"additionalProperties\":true");
    }
}

static void add_property(struct openapi *d, const struct property *p, enum openapi_schema schema)
{
    struct buf *b = d->out;
    bool nullable = (p->flags & (PROPERTY_REQUIRED | PROPERTY_ENTITY)) == 0;
    bool is_input = schema == OPENAPI_INPUT || schema == OPENAPI_PATCH;

    json_add_name(b, p->name);
    buf_add_char(b, '{');
    add_type(b, p->type, nullable);
    add_format(b, p);
    if (p->values != NULL && p->type != TYPE_ARRAY)
        add_values(b, is_input && p->written != NULL ? p->written : p->values, nullable);
    if ((p->flags & PROPERTY_PAYLOAD) != 0 && is_input)
        add_payload(b);
    add_range(b, p);
    add_meaning(d, p);
    if ((p->flags & PROPERTY_READ_ONLY) != 0) {
        json_add_name(b, SPAN("readOnly"));
        buf_add_str(b, "true");
    }
    /* What PATCH replaces as a whole has to be whole. */
    add_inside(
        d, p, (p->flags & PROPERTY_WHOLE) != 0 && schema == OPENAPI_PATCH ? OPENAPI_INPUT : schema);
    buf_add_char(b, '}');
}

/* ---- objects ---- */

static bool is_in(const struct shape *shape, const struct property *p, enum openapi_schema schema)
{
    bool only_added = (p->flags & (PROPERTY_HIDDEN | PROPERTY_UNSHOWN)) != 0;

    /* In a payload that nothing is declared of, Id is a member like others. */
    if (schema == OPENAPI_PAYLOAD && shape->dynamic && (p->flags & PROPERTY_ENTITY) != 0)
        return false;
    if (schema == OPENAPI_ANSWER)
        return (p->flags & PROPERTY_SENT) == 0;
    return !only_added && (p->flags & PROPERTY_CONFIGURED) == 0;
}

static bool is_required(const struct property *p, enum openapi_schema schema)
{
    return (schema == OPENAPI_INPUT || schema == OPENAPI_PAYLOAD) &&
           (p->flags & PROPERTY_REQUIRED) != 0 && (p->flags & PROPERTY_READ_ONLY) == 0;
}

static void add_required(struct openapi *d, const struct shape *shape, enum openapi_schema schema)
{
    size_t count = 0;

    for (size_t i = 0; i < shape->count && openapi_may_go_on(d); i++) {
        if (!is_required(&shape->properties[i], schema))
            continue;
        buf_add_str(d->out, count++ == 0 ? ",\"required\":[" : ",");
        json_add_string(d->out, shape->properties[i].name);
    }
    if (count > 0)
        buf_add_char(d->out, ']');
}

static void add_properties(struct openapi *d, const struct shape *shape, enum openapi_schema schema)
{
    for (size_t i = 0; i < shape->count && openapi_may_go_on(d); i++)
        if (is_in(shape, &shape->properties[i], schema))
            add_property(d, &shape->properties[i], schema);
}

/* The members of a schema, behind its type where it has one; and those of `more`, or NULL. */
static void add_members(struct openapi *d, const struct shape *shape, enum openapi_schema schema,
                        const struct shape *more)
{
    buf_add_str(d->out, "\"properties\":{");
    add_properties(d, shape, schema);
    if (more != NULL && more != shape)
        add_properties(d, more, schema);
    buf_add_char(d->out, '}');
    add_required(d, shape, schema);
    /* A member that a declared resource does not know is refused; answers may show what was added
     * or renamed. */
    if (shape->dynamic)
        buf_add_str(d->out, ",\"additionalProperties\":true");
    else if (schema == OPENAPI_INPUT || schema == OPENAPI_PATCH)
        buf_add_str(d->out, ",\"additionalProperties\":false");
}

static const struct shape *shape_of(const struct openapi *d, const struct openapi_resource *r,
                                    enum openapi_schema schema)
{
    const struct resource *resource = r->resource;

    if (schema == OPENAPI_PAYLOAD)
        return resource_payload_shape(d->call->rest->resources, resource);
    if (schema == OPENAPI_ANSWER && (r->asks || resource->kind == KIND_BINARY))
        return resource->ops->answered;
    return resource->shape;
}

static void add_schema(struct openapi *d, const struct openapi_resource *r,
                       enum openapi_schema schema)
{
    const struct resource *resource = r->resource;
    const struct shape *shape;

    if (!openapi_has(r, schema))
        return;
    shape = shape_of(d, r, schema);
    buf_add_str(d->out, ",\"");
    openapi_add_schema_name(d, schema, resource->name);
    buf_add_str(d->out, "\":{\"type\":\"object\",");
    add_members(d, shape, schema, schema == OPENAPI_ANSWER ? resource->ops->answered : NULL);
    buf_add_char(d->out, '}');
}

/* RFC 9457, with an ErrorCode. Their names are the table of errors. */
static void add_problem(struct buf *b)
{
    buf_add_str(b,
                "\"Problem\":{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\","
                "\"detail\",\"ErrorCode\"],\"properties\":{\"type\":{\"type\":\"string\"},"
                "\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},\"detail\":{"
                "\"type\":\"string\",\"description\":\"What is wrong\"},\"instance\":{\"type\":"
                "\"string\",\"description\":\"Where the error is kept\"},\"ErrorCode\":{\"$ref\":"
                "\"#/components/schemas/ErrorCode\"}}},"
                "\"ErrorCode\":{\"type\":\"string\",\"enum\":[");
    for (enum err_code code = ERR_NO_ERROR + 1; code < ERR_CODE_COUNT; code++) {
        if (err_info(code)->number == err_info(code - 1)->number)
            continue;
        json_add_comma(b);
        json_add_string(b, err_info(code)->name);
    }
    buf_add_str(b, "]}");
}

void openapi_add_schemas(struct openapi *d)
{
    unsigned counting = METHOD_BIT(METHOD_DELETE) | METHOD_BIT(METHOD_REPORT);
    struct openapi_resource r;

    json_add_name(d->out, SPAN("schemas"));
    buf_add_char(d->out, '{');
    add_problem(d->out);
    if ((d->methods & counting) != 0)
        buf_add_str(d->out, ",\"Counts\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
                            "\"required\":[\"Count\"],\"properties\":{\"Count\":{\"type\":"
                            "\"integer\",\"format\":\"int64\"}}}}");
    if (d->raises_events && d->has_events)
        openapi_add_cloudevent_schema(d);
    for (size_t place = 0; openapi_next(d, &place, &r);)
        for (enum openapi_schema schema = OPENAPI_ANSWER; schema <= OPENAPI_PAYLOAD; schema++)
            add_schema(d, &r, schema);
    buf_add_char(d->out, '}');
}
