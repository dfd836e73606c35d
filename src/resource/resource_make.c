/* One declaration becomes a resource: what its kind may have is read, everything else refused. */
#include "base/blob.h"
#include "base/text.h"
#include "protocol/cloudevents.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "resource/resource.h"

enum { NAME_MOST = 200, INDEXES_MOST = 32 };

/* One declaration while it is being made. */
struct making {
    struct resource *resource;
    struct json_value declaration;
    struct arena *scratch;
};

/* The member's value; absent for null. */
static struct json_value value_of(const struct making *m, struct span member)
{
    struct json_value v = json_member(m->declaration, member);

    return json_type(v) == JSON_NULL ? (struct json_value){NULL, NULL} : v;
}

static struct span string_of(const struct making *m, struct span member)
{
    return json_string(json_member(m->declaration, member), m->scratch);
}

/* For good; the absent span stays absent. */
static struct span kept(const struct making *m, struct span text)
{
    return text.p == NULL ? text : arena_copy(&m->resource->arena, text);
}

static struct err *check_name(struct span name)
{
    struct span rest = name;
    size_t parts = 0;

    if (name.n > NAME_MOST)
        return ERR(ERR_INVALID_ENTITY, "Name: is longer than %d bytes", NAME_MOST);
    while (rest.p != NULL) {
        if (!text_is_made_of(span_split(&rest, '.'), "_-"))
            return ERR(ERR_INVALID_ENTITY,
                       "Name: '%.*s' is not made of parts of letters, digits, '_' and '-' with "
                       "dots between them",
                       SPAN_FMT(name));
        parts++;
    }
    if (parts < 2)
        return ERR(ERR_INVALID_ENTITY, "Name: '%.*s' has no dot", SPAN_FMT(name));
    if (span_istarts(name, SPAN("Svc.")))
        return ERR(ERR_INVALID_ENTITY, "Name: 'Svc.' is the server's own");
    return NULL;
}

/* A member that this kind of resource does not have must not be given. */
static struct err *check_absent(const struct making *m, const char *const *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_exists(value_of(m, span_str(members[i]))))
            return ERR(ERR_INVALID_ENTITY, "%s: %.*s has none", members[i],
                       SPAN_FMT(resource_kind_names.values[m->resource->kind]));
    return NULL;
}

static struct err *read_methods(struct making *m, unsigned otherwise)
{
    struct json_value methods = value_of(m, SPAN("Methods"));
    unsigned bits = 0;

    if (!json_exists(methods)) {
        m->resource->methods = resource_methods(m->resource->kind, otherwise);
        return NULL;
    }
    for (struct json_value v = json_first(methods); json_exists(v); v = json_next(methods, v)) {
        enum method method =
            json_type(v) == JSON_STRING ? method_parse(json_string(v, m->scratch)) : METHOD_OTHER;

        if (method == METHOD_OTHER)
            return ERR(ERR_INVALID_ENUM_VALUE, "Methods: %.*s is none of the seven methods",
                       SPAN_FMT(json_text(v)));
        bits |= METHOD_BIT(method);
    }
    if ((bits & ~method_closure(otherwise)) != 0)
        return ERR(ERR_INVALID_ENTITY, "Methods: %.*s can only be read",
                   SPAN_FMT(resource_kind_names.values[m->resource->kind]));
    m->resource->methods = resource_methods(m->resource->kind, bits);
    return NULL;
}

/* Entity resources. ------------------------------------------------------------------------- */

static struct err *read_indexes(struct making *m)
{
    struct json_value indexes = value_of(m, SPAN("Indexes"));
    struct resource *resource = m->resource;

    if (json_count(indexes) > INDEXES_MOST)
        return ERR(ERR_INVALID_ENTITY, "Indexes: more than %d", INDEXES_MOST);
    resource->indexes = ARENA_ARRAY(&resource->arena, struct span, json_count(indexes));
    for (struct json_value v = json_first(indexes); json_exists(v); v = json_next(indexes, v)) {
        const struct property *p;
        struct span name;

        if (json_type(v) != JSON_STRING)
            return ERR(ERR_INVALID_ENTITY, "Indexes: %.*s is no string", SPAN_FMT(json_text(v)));
        name = json_string(v, m->scratch);
        p = shape_find(resource->shape, name);
        if (p == NULL || p->type == TYPE_ANY || p->type == TYPE_OBJECT || p->type == TYPE_ARRAY)
            return ERR(ERR_INVALID_ENTITY,
                       "Indexes: '%.*s' is no declared property with a single value",
                       SPAN_FMT(name));
        for (size_t i = 0; i < resource->index_count; i++)
            if (span_eq(resource->indexes[i], p->name))
                return ERR(ERR_INVALID_ENTITY, "Indexes: '%.*s' is there twice", SPAN_FMT(name));
        resource->indexes[resource->index_count++] = p->name;
    }
    return NULL;
}

/* In the order of enum resource_event. */
static const struct span event_members[] = {SPAN_INIT("Inserted"), SPAN_INIT("Updated"),
                                            SPAN_INIT("Deleted")};

static void read_events(struct making *m)
{
    struct json_value events = value_of(m, SPAN("Events"));

    for (size_t i = 0; i < ARRAY_LEN(event_members); i++)
        m->resource->events[i] =
            kept(m, json_string(json_member(events, event_members[i]), m->scratch));
}

static struct err *make_entity(struct making *m)
{
    static const char *const absent[] = {"Payload", "ContentType", "File", "Content",
                                         "CloudEventsType"};
    struct json_value declared = value_of(m, SPAN("Properties"));

    TRY(check_absent(m, absent, ARRAY_LEN(absent)));
    TRY(read_methods(m, METHODS_ALL));
    m->resource->shape = &schema_dynamic;
    if (json_exists(declared)) {
        m->resource->properties = kept(m, json_text(declared));
        TRY(schema_from_declaration(declared, m->resource->name, &m->resource->arena,
                                    &m->resource->shape));
    }
    TRY(read_indexes(m));
    read_events(m);
    return NULL;
}

/* Event resources. -------------------------------------------------------------------------- */

static struct err *read_type(struct making *m)
{
    struct span type = string_of(m, SPAN("CloudEventsType"));

    if (type.p != NULL && (type.n == 0 || type.n > NAME_MOST || !cloudevents_is_text(type)))
        return ERR(ERR_INVALID_ENTITY,
                   "CloudEventsType: is not 1 to %d bytes of text without controls", NAME_MOST);
    m->resource->cloudevents_type = kept(m, type);
    return NULL;
}

static struct err *make_event(struct making *m)
{
    static const char *const absent[] = {"Methods",     "Indexes", "Events",
                                         "ContentType", "File",    "Content"};
    struct resource *resource = m->resource;
    struct json_value payload = value_of(m, SPAN("Payload"));
    struct json_value declared = value_of(m, SPAN("Properties"));
    struct json_value entities = json_member(payload, SPAN("Resource"));
    struct json_value type = json_member(payload, SPAN("ContentType"));

    TRY(check_absent(m, absent, ARRAY_LEN(absent)));
    TRY(read_type(m));
    resource->shape = &schema_dynamic;
    if (json_exists(declared)) {
        if (json_exists(payload))
            return ERR(ERR_INVALID_ENTITY,
                       "Properties: an EventResource has them or a Payload, not both");
        resource->properties = kept(m, json_text(declared));
        return schema_of_payload(declared, resource->name, &resource->arena, &resource->shape);
    }
    if (json_exists(payload) &&
        (json_type(entities) == JSON_NULL) == (json_type(type) == JSON_NULL))
        return ERR(ERR_INVALID_ENTITY, "Payload: has either Resource or ContentType");
    resource->payload_resource = kept(m, json_string(entities, m->scratch));
    if (json_type(type) != JSON_STRING)
        return NULL;
    resource->is_binary_event = true;
    resource->content_type = kept(m, json_string(type, m->scratch));
    if (!negotiate_is_media_type(resource->content_type))
        return ERR(ERR_INVALID_ENTITY, "Payload.ContentType: '%.*s' is no media type",
                   SPAN_FMT(resource->content_type));
    return NULL;
}

/* Binary resources. ------------------------------------------------------------------------- */

static struct err *make_binary(struct making *m)
{
    static const char *const absent[] = {"Properties", "Indexes", "Events", "Payload",
                                         "CloudEventsType"};
    struct resource *resource = m->resource;
    struct span type = string_of(m, SPAN("ContentType"));
    struct span content = string_of(m, SPAN("Content"));
    struct span bytes;

    TRY(check_absent(m, absent, ARRAY_LEN(absent)));
    TRY(read_methods(m, METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_HEAD)));
    resource->shape = &schema_dynamic;
    if (type.p == NULL)
        type = SPAN("application/octet-stream");
    if (!negotiate_is_media_type(type))
        return ERR(ERR_INVALID_ENTITY, "ContentType: '%.*s' is no media type", SPAN_FMT(type));
    resource->content_type = kept(m, type);
    resource->file = kept(m, string_of(m, SPAN("File")));
    if ((resource->file.p == NULL) == (content.p == NULL))
        return ERR(ERR_INVALID_ENTITY, "Content: either Content or File must be given");
    if (resource->file.p != NULL)
        return NULL;
    if (!text_from_base64(content, m->scratch, &bytes))
        return ERR(ERR_INVALID_ENTITY, "Content: is not base64");
    resource->content = blob_new(bytes);
    return NULL;
}

/* The whole. -------------------------------------------------------------------------------- */

static struct err *make_kind(struct making *m)
{
    switch (m->resource->kind) {
    case KIND_ENTITY:
        return make_entity(m);
    case KIND_EVENT:
        return make_event(m);
    default:
        return make_binary(m);
    }
}

static enum resource_kind kind_of(struct span name)
{
    for (unsigned i = 0; i < KIND_COUNT; i++)
        if (span_eq(resource_kind_names.values[i], name))
            return i;
    return KIND_ENTITY;
}

struct err *resource_make(struct json_value declaration, struct arena *scratch,
                          struct resource *out)
{
    struct making m = {out, declaration, scratch};

    out->name = kept(&m, string_of(&m, SPAN("Name")));
    TRY(check_name(out->name));
    out->folded = text_fold(&out->arena, out->name);
    out->kind = kind_of(string_of(&m, SPAN("Kind")));
    out->description = kept(&m, string_of(&m, SPAN("Description")));
    out->is_configured = json_is_true(value_of(&m, SPAN("IsReadOnly")));
    return make_kind(&m);
}
