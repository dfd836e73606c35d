/* Schemas of entities and payloads, each from the table of properties that they are checked by.
 *
 * Answers require nothing: `select` and `rename` leave members out, and so do limited rights. What
 * is read-only may stand in what is sent, where it is passed over. */
#include "base/err.h"
#include "base/json.h"
#include "openapi.h"
#include "query/shape.h"
#include "rest/rest.h"

static const struct span prefixes[] = {
    [OPENAPI_ANSWER] = SPAN_INIT(""),
    [OPENAPI_INPUT] = SPAN_INIT("Svc.Input."),
    [OPENAPI_PATCH] = SPAN_INIT("Svc.Patch."),
    [OPENAPI_PAYLOAD] = SPAN_INIT("Svc.Payload."),
};

void openapi_add_reference(struct openapi *d, enum openapi_schema schema, struct span resource)
{
    buf_printf(d->out, "{\"$ref\":\"#/components/schemas/%.*s%.*s\"}", SPAN_FMT(prefixes[schema]),
               SPAN_FMT(resource));
}

bool openapi_has(const struct openapi_resource *r, enum openapi_schema schema)
{
    const struct resource *resource = r->resource;
    const unsigned needs[] = {
        [OPENAPI_ANSWER] = METHOD_BIT(METHOD_GET),
        [OPENAPI_INPUT] = METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PUT),
        [OPENAPI_PATCH] = METHOD_BIT(METHOD_PATCH),
    };

    if (schema == OPENAPI_PAYLOAD)
        return resource->kind == KIND_EVENT && !resource->is_binary_event;
    return resource->kind == KIND_ENTITY && !resource->ops->post_asks &&
           (r->methods & needs[schema]) != 0;
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
        if (i > 0)
            buf_add_char(b, ',');
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

static void add_members(struct openapi *d, const struct shape *shape, enum openapi_schema schema);

/* Of what an array holds, and of what an object does. */
static void add_inside(struct openapi *d, const struct property *p, enum openapi_schema schema)
{
    struct buf *b = d->out;

    if (p->type == TYPE_ARRAY) {
        buf_add_str(b, ",\"items\":{");
        if (p->members != NULL)
            add_members(d, p->members, schema);
        else
            add_type(b, p->elements, false);
        buf_add_char(b, '}');
    } else if (p->type == TYPE_OBJECT && p->members != NULL) {
        buf_add_char(b, ',');
        add_members(d, p->members, schema);
    }
}

static void add_property(struct openapi *d, const struct property *p, enum openapi_schema schema)
{
    struct buf *b = d->out;
    bool nullable = (p->flags & (PROPERTY_REQUIRED | PROPERTY_ENTITY)) == 0;

    json_add_name(b, p->name);
    buf_add_char(b, '{');
    add_type(b, p->type, nullable);
    add_format(b, p);
    if (p->values != NULL)
        add_values(b, p->values, nullable);
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
    return schema == OPENAPI_ANSWER || !only_added;
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

/* The members of a schema, behind its type where it has one. */
static void add_members(struct openapi *d, const struct shape *shape, enum openapi_schema schema)
{
    buf_add_str(d->out, "\"properties\":{");
    for (size_t i = 0; i < shape->count && openapi_may_go_on(d); i++)
        if (is_in(shape, &shape->properties[i], schema))
            add_property(d, &shape->properties[i], schema);
    buf_add_char(d->out, '}');
    add_required(d, shape, schema);
    /* A member that a declared resource does not know is refused; answers may show what was added
     * or renamed. */
    if ((schema == OPENAPI_INPUT || schema == OPENAPI_PATCH) && !shape->dynamic)
        buf_add_str(d->out, ",\"additionalProperties\":false");
}

static void add_schema(struct openapi *d, const struct openapi_resource *r,
                       enum openapi_schema schema)
{
    const struct resource *resource = r->resource;
    const struct shape *shape = schema == OPENAPI_PAYLOAD
                                    ? resource_payload_shape(d->call->rest->resources, resource)
                                    : resource->shape;

    if (!openapi_has(r, schema))
        return;
    buf_printf(d->out, ",\"%.*s%.*s\":{\"type\":\"object\",", SPAN_FMT(prefixes[schema]),
               SPAN_FMT(resource->name));
    add_members(d, shape, schema);
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
        if (code > ERR_NO_ERROR + 1)
            buf_add_char(b, ',');
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
    for (size_t place = 0; openapi_next(d, &place, &r);)
        for (enum openapi_schema schema = OPENAPI_ANSWER; schema <= OPENAPI_PAYLOAD; schema++)
            add_schema(d, &r, schema);
    buf_add_char(d->out, '}');
}
