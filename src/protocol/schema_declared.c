/* Shapes out of declarations: the `Properties` of a resource that the application declares. */
#include "protocol/schema.h"

#include "base/text.h"
#include "query/shape.h"
#include "json/json.h"

#include <string.h>

/* FEW are found sooner one after the other. */
enum { NAME_MOST = 128, PROPERTIES_MOST = 1000, FEW = 8 };

static const struct property declared_properties[] = {
    PROPERTY("Name", TYPE_STRING, "Letters, digits and _, not beginning with a digit",
             .flags = PROPERTY_REQUIRED),
    PROPERTY("Type", TYPE_STRING,
             "string, integer, number, boolean, datetime, object, array, or any",
             .flags = PROPERTY_REQUIRED),
    PROPERTY("Required", TYPE_BOOLEAN, "True: it may neither be left out nor be null",
             .default_json = SPAN_INIT("false")),
    PROPERTY("Description", TYPE_STRING, "Text for people", .default_json = SPAN_INIT("\"\"")),
};
const struct shape schema_property_shape = {declared_properties, ARRAY_LEN(declared_properties),
                                            false};

static struct err *check_name(struct span name)
{
    if (name.n > NAME_MOST || !text_is_made_of(name, "_") || (name.p[0] >= '0' && name.p[0] <= '9'))
        return ERR(ERR_INVALID_ENTITY,
                   "Name: '%.*s' is not made of at most %d letters, digits and '_', not beginning "
                   "with a digit",
                   SPAN_FMT(name), NAME_MOST);
    return NULL;
}

/* The list has the server's own in it when these are an entity's. */
static struct err *check_unique(const struct property *list, size_t count, struct span name)
{
    const struct shape so_far = {.properties = list, .count = count};
    const struct property *same = shape_find(&so_far, name);

    if (same == NULL)
        return NULL;
    if ((same->flags & PROPERTY_ENTITY) != 0)
        return ERR(ERR_INVALID_ENTITY, "Name: '%.*s' is the server's own", SPAN_FMT(name));
    return ERR(ERR_INVALID_ENTITY, "Name: '%.*s' is there twice", SPAN_FMT(name));
}

static struct err *check_type(struct span name, enum value_type *out_type)
{
    struct buf list;
    struct err *e;

    if (value_type_parse(name, out_type))
        return NULL;
    buf_init(&list, 256);
    for (unsigned i = 0; i < TYPE_COUNT; i++) {
        buf_add_str(&list, i == 0 ? "" : ", ");
        buf_add(&list, value_type_name(i));
    }
    e = ERR(ERR_INVALID_ENTITY, "Type: '%.*s' is not one of %.*s", SPAN_FMT(name),
            SPAN_FMT(buf_span(&list)));
    buf_done(&list);
    return e;
}

/* A member's text, for as long as the shape lives; the declaration may go. */
static struct span kept_string(const struct draft *draft, struct span member, struct arena *a)
{
    return arena_copy(a, json_string(draft_value(draft, member, a), a));
}

static struct err *make_property(struct json_value declaration, struct arena *a,
                                 struct property *out)
{
    struct json_value nothing = {NULL, NULL};
    struct property p = {.flags = 0};
    struct draft draft;

    TRY(schema_decode(&schema_property_shape, declaration, nothing, SCHEMA_INSERT, a, &draft));
    p.name = kept_string(&draft, SPAN("Name"), a);
    TRY(check_name(p.name));
    TRY(check_type(json_string(draft_value(&draft, SPAN("Type"), a), a), &p.type));
    if (json_is_true(draft_value(&draft, SPAN("Required"), a)))
        p.flags |= PROPERTY_REQUIRED;
    p.meaning = kept_string(&draft, SPAN("Description"), a);
    *out = p;
    return NULL;
}

/* After the `own` properties that the list begins with. */
static struct err *make_all(struct json_value declared, struct property *list, size_t own,
                            struct arena *a)
{
    size_t count = own;

    for (struct json_value v = json_first(declared); json_exists(v); v = json_next(declared, v)) {
        struct err *e = make_property(v, a, &list[count]);

        if (e == NULL)
            e = check_unique(list, count, list[count].name);
        if (e != NULL)
            return err_prefix(e, "Properties[%zu].", count - own);
        count++;
    }
    return NULL;
}

/* Entities have Id first and ObjectNo last. Both stand before the others at first, so that none of
 * these is called so. */
static struct err *make_shape(struct json_value declared, struct span name, bool is_entity,
                              struct arena *a, const struct shape **out_shape)
{
    struct shape *shape = ARENA_NEW(a, struct shape);
    size_t own = is_entity ? 2 : 0, count = own + json_count(declared);
    struct property *list;
    uint16_t *by_name;

    if (json_count(declared) > PROPERTIES_MOST)
        return ERR(ERR_INVALID_ENTITY, "Properties: more than %d", PROPERTIES_MOST);
    list = ARENA_ARRAY(a, struct property, count);
    for (size_t i = 0; i < own; i++)
        list[i] = schema_dynamic.properties[i];
    TRY(make_all(declared, list, own, a));
    if (is_entity) {
        memmove(&list[1], &list[2], (count - 2) * sizeof(*list));
        list[count - 1] = schema_dynamic.properties[1];
    }
    *shape = (struct shape){.properties = list, .count = count, .name = name};
    by_name = ARENA_ARRAY(a, uint16_t, count);
    shape_sort(shape, by_name);
    if (count > FEW)
        shape->by_name = by_name;
    *out_shape = shape;
    return NULL;
}

struct err *schema_from_declaration(struct json_value declared, struct span name, struct arena *a,
                                    const struct shape **out_shape)
{
    return make_shape(declared, name, true, a, out_shape);
}

struct err *schema_of_payload(struct json_value declared, struct span name, struct arena *a,
                              const struct shape **out_shape)
{
    return make_shape(declared, name, false, a, out_shape);
}
