/* Declared resources: every declaration is decoded first, then the references among them and to
 * what exists are checked, then all are added. An error anywhere leaves the registry as it was. */
#include "base/text.h"
#include "service/builtin.h"
#include "service/negotiate.h"
#include "service/resource_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MOST = 200, FILE_MOST_BYTES = 64 << 20 };

#define TEXT(s) SPAN_INIT(s)

static const struct property events_properties[] = {
    {.name = TEXT("Inserted"), .type = TYPE_STRING, .meaning = TEXT("Raised by an insertion")},
    {.name = TEXT("Updated"), .type = TYPE_STRING, .meaning = TEXT("Raised by a change")},
    {.name = TEXT("Deleted"), .type = TYPE_STRING, .meaning = TEXT("Raised by a deletion")},
};
static const struct shape events_shape = {events_properties, ARRAY_LEN(events_properties), false};

static const struct property payload_properties[] = {
    {.name = TEXT("Resource"), .type = TYPE_STRING, .meaning = TEXT("Entities of this resource")},
    {.name = TEXT("ContentType"), .type = TYPE_STRING, .meaning = TEXT("Bytes of this media type")},
};
static const struct shape payload_shape = {payload_properties, ARRAY_LEN(payload_properties),
                                           false};

static const struct property properties[] = {
    {.name = TEXT("Name"), .type = TYPE_STRING, .flags = PROPERTY_REQUIRED},
    {.name = TEXT("Kind"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .values = &resource_kind_names},
    {.name = TEXT("Description"), .type = TYPE_STRING, .default_json = TEXT("\"\"")},
    {.name = TEXT("Methods"), .type = TYPE_ARRAY},
    {.name = TEXT("Properties"), .type = TYPE_ARRAY},
    {.name = TEXT("Indexes"), .type = TYPE_ARRAY},
    {.name = TEXT("Events"), .type = TYPE_OBJECT, .members = &events_shape},
    {.name = TEXT("Payload"), .type = TYPE_OBJECT, .members = &payload_shape},
    {.name = TEXT("ContentType"), .type = TYPE_STRING},
    {.name = TEXT("File"), .type = TYPE_STRING},
    {.name = TEXT("Content"), .type = TYPE_STRING},
};
static const struct shape declaration_shape = {properties, ARRAY_LEN(properties), false};

/* One declaration while it is being made. */
struct making {
    struct resource *resource;
    struct draft draft;
    const char *directory;
    struct arena *scratch;
};

static struct span string_of(const struct making *m, struct span member)
{
    struct json_value v = draft_value(&m->draft, member, m->scratch);

    return json_type(v) == JSON_STRING ? json_string(v, m->scratch) : (struct span){NULL, 0};
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static struct err *check_name(struct span name)
{
    struct span rest = name;
    size_t parts = 0;

    if (name.n > NAME_MOST)
        return ERR(ERR_INVALID_ENTITY, "Name: is longer than %d bytes", NAME_MOST);
    while (rest.p != NULL) {
        struct span part = span_split(&rest, '.');
        bool good = part.n > 0;

        for (size_t i = 0; i < part.n; i++)
            good = good && is_name_char(part.p[i]);
        if (!good)
            return ERR(ERR_INVALID_ENTITY,
                       "Name: '%.*s' is not made of parts of letters, digits and '_' with dots "
                       "between them",
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
        if (json_exists(draft_value(&m->draft, span_str(members[i]), m->scratch)))
            return ERR(ERR_INVALID_ENTITY, "%s: %.*s has none", members[i],
                       SPAN_FMT(resource_kind_names.values[m->resource->kind]));
    return NULL;
}

static struct err *read_methods(struct making *m, unsigned otherwise)
{
    struct json_value methods = draft_value(&m->draft, SPAN("Methods"), m->scratch);
    unsigned bits = 0;

    if (!json_exists(methods)) {
        m->resource->methods = method_closure(otherwise);
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
    m->resource->methods = method_closure(bits);
    return NULL;
}

/* Entity resources. ------------------------------------------------------------------------- */

static struct err *read_indexes(struct making *m)
{
    struct json_value indexes = draft_value(&m->draft, SPAN("Indexes"), m->scratch);
    struct resource *resource = m->resource;

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
        resource->indexes[resource->index_count++] = p->name;
    }
    return NULL;
}

static void read_events(struct making *m)
{
    struct json_value events = draft_value(&m->draft, SPAN("Events"), m->scratch);

    for (size_t i = 0; i < ARRAY_LEN(events_properties); i++) {
        struct json_value name = json_member(events, events_properties[i].name);

        if (json_type(name) == JSON_STRING)
            m->resource->events[i] = arena_copy(&m->resource->arena, json_string(name, m->scratch));
    }
}

static struct err *make_entity(struct making *m)
{
    static const char *const absent[] = {"Payload", "ContentType", "File", "Content"};
    struct json_value declared = draft_value(&m->draft, SPAN("Properties"), m->scratch);

    TRY(check_absent(m, absent, ARRAY_LEN(absent)));
    TRY(read_methods(m, METHODS_ALL));
    m->resource->ops = &res_declared_ops;
    m->resource->shape = &schema_dynamic;
    if (json_exists(declared))
        TRY(schema_from_declaration(declared, &m->resource->arena, &m->resource->shape));
    TRY(read_indexes(m));
    read_events(m);
    return NULL;
}

/* Event resources. -------------------------------------------------------------------------- */

static struct err *make_event(struct making *m)
{
    static const char *const absent[] = {"Methods",     "Properties", "Indexes", "Events",
                                         "ContentType", "File",       "Content"};
    struct resource *resource = m->resource;
    struct json_value payload = draft_value(&m->draft, SPAN("Payload"), m->scratch);
    struct json_value entities = json_member(payload, SPAN("Resource"));
    struct json_value type = json_member(payload, SPAN("ContentType"));

    TRY(check_absent(m, absent, ARRAY_LEN(absent)));
    resource->ops = &res_declared_ops;
    resource->shape = &schema_dynamic;
    resource->payload_shape = &schema_dynamic;
    resource->matcher = matcher_new();
    if (json_exists(payload) &&
        (json_type(entities) == JSON_NULL) == (json_type(type) == JSON_NULL))
        return ERR(ERR_INVALID_ENTITY, "Payload: has either Resource or ContentType");
    if (json_type(entities) == JSON_STRING)
        resource->payload_resource =
            arena_copy(&resource->arena, json_string(entities, m->scratch));
    if (json_type(type) != JSON_STRING)
        return NULL;
    resource->is_binary_event = true;
    resource->content_type = arena_copy(&resource->arena, json_string(type, m->scratch));
    if (!negotiate_is_media_type(resource->content_type))
        return ERR(ERR_INVALID_ENTITY, "Payload.ContentType: '%.*s' is no media type",
                   SPAN_FMT(resource->content_type));
    return NULL;
}

/* Binary resources. ------------------------------------------------------------------------- */

static bool leaves_directory(struct span path)
{
    struct span rest = path;

    if (span_starts(path, SPAN("/")))
        return true;
    while (rest.p != NULL)
        if (span_eq(span_split(&rest, '/'), SPAN("..")))
            return true;
    return false;
}

static struct err *read_whole(int fd, size_t bytes, struct blob *blob)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = read(fd, blob->p + got, bytes - got);

        if (n <= 0)
            return ERR(ERR_INVALID_ENTITY, "%s", n < 0 ? strerror(errno) : "it was cut off");
        got += (size_t)n;
    }
    return NULL;
}

static struct err *read_open_file(int fd, struct blob **out_blob)
{
    struct blob *blob;
    struct stat st;
    struct err *e;

    if (fstat(fd, &st) != 0)
        return ERR(ERR_INVALID_ENTITY, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST_BYTES)
        return ERR(ERR_INVALID_ENTITY, "it is no file of at most %d bytes", FILE_MOST_BYTES);
    blob = blob_alloc((size_t)st.st_size);
    e = read_whole(fd, (size_t)st.st_size, blob);
    if (e != NULL)
        blob_unref(blob);
    else
        *out_blob = blob;
    return e;
}

static struct err *read_file(struct making *m, struct span name)
{
    struct span path;
    struct err *e;
    int fd;

    if (m->directory == NULL)
        return ERR(ERR_INVALID_ENTITY, "File: can be given in the configuration only");
    if (leaves_directory(name))
        return ERR(ERR_INVALID_ENTITY, "File: '%.*s' leads out of the configuration's folder",
                   SPAN_FMT(name));
    path = arena_printf(m->scratch, "%s/%.*s", m->directory, SPAN_FMT(name));
    fd = open(path.p, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ERR(ERR_INVALID_ENTITY, "File: '%s': %s", path.p, strerror(errno));
    e = read_open_file(fd, &m->resource->content);
    close(fd);
    return e == NULL ? NULL : err_prefix(e, "File: '%s': ", path.p);
}

static struct err *make_binary(struct making *m)
{
    static const char *const absent[] = {"Properties", "Indexes", "Events", "Payload"};
    struct resource *resource = m->resource;
    struct span type = string_of(m, SPAN("ContentType"));
    struct span file = string_of(m, SPAN("File"));
    struct span content = string_of(m, SPAN("Content"));
    struct span bytes;

    TRY(check_absent(m, absent, ARRAY_LEN(absent)));
    TRY(read_methods(m, METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_HEAD)));
    resource->methods &= ~METHOD_BIT(METHOD_REPORT); /* it has no entities to count */
    resource->ops = &res_binary_ops;
    resource->shape = &schema_dynamic;
    if (type.p == NULL)
        type = SPAN("application/octet-stream");
    if (!negotiate_is_media_type(type))
        return ERR(ERR_INVALID_ENTITY, "ContentType: '%.*s' is no media type", SPAN_FMT(type));
    resource->content_type = arena_copy(&resource->arena, type);
    if ((file.p == NULL) == (content.p == NULL))
        return ERR(ERR_INVALID_ENTITY, "File: either File or Content must be given");
    if (file.p != NULL)
        return read_file(m, file);
    if (!text_from_base64(content, m->scratch, &bytes))
        return ERR(ERR_INVALID_ENTITY, "Content: is not base64");
    resource->content = blob_new(bytes);
    return NULL;
}

/* References. ------------------------------------------------------------------------------- */

struct batch {
    struct resources *known;
    struct resource **made;
    size_t count;
};

static struct resource *find_made(const struct batch *b, struct span name)
{
    for (size_t i = 0; i < b->count; i++)
        if (span_ieq(b->made[i]->name, name))
            return b->made[i];
    return resource_named(b->known, name);
}

static struct err *check_event_reference(const struct batch *b, const struct resource *resource,
                                         size_t place)
{
    struct span name = resource->events[place];
    const struct resource *event;

    if (name.p == NULL)
        return NULL;
    event = find_made(b, name);
    if (event == NULL || event->kind != KIND_EVENT)
        return ERR(ERR_INVALID_ENTITY, "Events.%.*s: '%.*s' is no event resource",
                   SPAN_FMT(events_properties[place].name), SPAN_FMT(name));
    if (event->is_binary_event ||
        (event->payload_resource.p != NULL && !span_ieq(event->payload_resource, resource->name)))
        return ERR(ERR_INVALID_ENTITY, "Events.%.*s: the payload of '%.*s' is something else",
                   SPAN_FMT(events_properties[place].name), SPAN_FMT(name));
    return NULL;
}

static struct err *link_payload(const struct batch *b, struct resource *event)
{
    const struct resource *entities;

    if (event->payload_resource.p == NULL)
        return NULL;
    entities = find_made(b, event->payload_resource);
    if (entities == NULL || entities->kind != KIND_ENTITY)
        return ERR(ERR_INVALID_ENTITY, "Payload.Resource: '%.*s' is no entity resource",
                   SPAN_FMT(event->payload_resource));
    event->payload_shape = entities->shape;
    return NULL;
}

static struct err *link_one(const struct batch *b, struct resource *resource)
{
    struct err *e = link_payload(b, resource);

    for (size_t i = 0; i < ARRAY_LEN(resource->events) && e == NULL; i++)
        e = check_event_reference(b, resource, i);
    return e == NULL ? NULL : err_prefix(e, "'%.*s': ", SPAN_FMT(resource->name));
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

static struct err *make_one(struct batch *b, struct json_value declaration, const char *directory,
                            struct arena *scratch)
{
    struct json_value nothing = {NULL, NULL};
    struct making m = {.directory = directory, .scratch = scratch};
    struct span name;
    struct err *e;

    TRY(schema_decode(&declaration_shape, declaration, nothing, SCHEMA_INSERT, scratch, &m.draft));
    name = string_of(&m, SPAN("Name"));
    TRY(check_name(name));
    if (find_made(b, name) != NULL)
        return ERR(ERR_CONFLICT, "Name: there is a resource '%.*s' already", SPAN_FMT(name));
    m.resource = resource_new(name);
    b->made[b->count++] = m.resource;
    m.resource->kind = kind_of(string_of(&m, SPAN("Kind")));
    m.resource->description = arena_copy(&m.resource->arena, string_of(&m, SPAN("Description")));
    m.resource->declaration = arena_copy(&m.resource->arena, json_text(declaration));
    e = make_kind(&m);
    return e == NULL ? NULL : err_prefix(e, "'%.*s': ", SPAN_FMT(name));
}

static struct err *make_all(struct batch *b, struct json_value declarations, const char *directory,
                            struct arena *scratch)
{
    size_t place = 0;

    for (struct json_value v = json_first(declarations); json_exists(v);
         v = json_next(declarations, v)) {
        struct err *e = make_one(b, v, directory, scratch);

        if (e != NULL)
            return err_prefix(e, "Resources[%zu]: ", place);
        place++;
    }
    for (size_t i = 0; i < b->count; i++)
        TRY(link_one(b, b->made[i]));
    return NULL;
}

static struct err *give_collection(struct resource *resource, struct store *store)
{
    if (resource->kind != KIND_ENTITY)
        return NULL;
    resource->collection = store_collection(store, resource->name);
    return collection_set_indexes(resource->collection, resource->shape, resource->indexes,
                                  resource->index_count);
}

struct err *resources_declare(struct resources *r, struct store *store,
                              struct json_value declarations, const char *directory,
                              struct arena *a)
{
    struct batch b = {.known = r};
    struct err *e;

    b.made = ARENA_ARRAY(a, struct resource *, json_count(declarations));
    e = make_all(&b, declarations, directory, a);
    for (size_t i = 0; i < b.count && e == NULL; i++)
        e = give_collection(b.made[i], store);
    for (size_t i = 0; i < b.count; i++) {
        if (e == NULL)
            resources_add(r, b.made[i]);
        else
            resource_free(b.made[i]);
    }
    return e;
}
