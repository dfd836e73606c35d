/* A draft is filled property by property from the table. The members of the input are found by name
 * once each; what is left over is unknown. Nested declared objects go the same way, one level down.
 */
#include "protocol/schema.h"

#include "base/datetime.h"
#include "query/shape.h"
#include "store/entity.h"
#include "json/decimal.h"
#include "json/json.h"

static const struct property entity_properties[] = {
    ID_PROPERTY("Unique ID of the entity"),
    OBJECT_NO_PROPERTY,
};

const struct shape schema_dynamic = {entity_properties, ARRAY_LEN(entity_properties), true};

/* Where in the entity a value stands, for messages: `Delivery.RetrySchedule`. */
struct place {
    const struct place *outer;
    struct span name;
};

static struct span place_text(const struct place *outer, struct span name, struct arena *a)
{
    for (; outer != NULL; outer = outer->outer)
        name = arena_printf(a, "%.*s.%.*s", SPAN_FMT(outer->name), SPAN_FMT(name));
    return name;
}

static struct span compact(struct json_value v, struct arena *a)
{
    struct buf b;

    if (json_exists(v) && v.doc->is_compact)
        return json_text(v);
    buf_init_arena(&b, a);
    json_add_compact(&b, v);
    return buf_span(&b);
}

static bool is_entity_name(struct span name)
{
    return span_ieq(name, SPAN("Id")) || span_ieq(name, SPAN("ObjectNo"));
}

/* Checks. ----------------------------------------------------------------------------------- */

static bool has_type(struct json_value v, enum value_type type, struct arena *a)
{
    struct instant instant;

    switch (type) {
    case TYPE_STRING:
        return json_type(v) == JSON_STRING;
    case TYPE_INTEGER:
        return json_type(v) == JSON_NUMBER && decimal_is_integer(json_text(v));
    case TYPE_NUMBER:
        return json_type(v) == JSON_NUMBER;
    case TYPE_BOOLEAN:
        return json_type(v) == JSON_BOOLEAN;
    case TYPE_DATETIME:
        return json_type(v) == JSON_STRING && datetime_parse(json_string(v, a), &instant);
    case TYPE_OBJECT:
        return json_type(v) == JSON_OBJECT;
    case TYPE_ARRAY:
        return json_type(v) == JSON_ARRAY;
    default:
        return true;
    }
}

static struct err *refuse_no_object(void)
{
    return ERR(ERR_INVALID_ENTITY, "it must be a JSON object");
}

static struct err *wrong_type(struct span name, enum value_type type, const struct place *outer,
                              struct arena *a)
{
    return ERR(ERR_INVALID_ENTITY, "%.*s: must be of type %.*s",
               SPAN_FMT(place_text(outer, name, a)), SPAN_FMT(value_type_name(type)));
}

static struct span element_name(struct span array, size_t index, struct arena *a)
{
    return arena_printf(a, "%.*s[%zu]", SPAN_FMT(array), index);
}

static struct err *check_elements(const struct property *p, struct json_value array,
                                  const struct place *outer, struct arena *a)
{
    size_t index = 0;

    for (struct json_value v = json_first(array); json_exists(v); v = json_next(array, v), index++)
        if (!has_type(v, p->elements, a))
            return wrong_type(element_name(p->name, index, a), p->elements, outer, a);
    return NULL;
}

static struct err *check_range(const struct property *p, struct json_value v,
                               const struct place *outer, struct arena *a)
{
    double number = decimal_to_double(json_text(v));

    if (number >= p->least && number <= p->most)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "%.*s: is %.*s, it must be between %.15g and %.15g",
               SPAN_FMT(place_text(outer, p->name, a)), SPAN_FMT(json_text(v)), p->least, p->most);
}

/* What is not null must be of its type, and within its range. */
static struct err *check_value(const struct property *p, struct json_value v,
                               const struct place *outer, struct arena *a)
{
    if (json_type(v) == JSON_NULL)
        return NULL;
    if (!has_type(v, p->type, a))
        return wrong_type(p->name, p->type, outer, a);
    if (p->elements != TYPE_ANY)
        return check_elements(p, v, outer, a);
    return p->least < p->most ? check_range(p, v, outer, a) : NULL;
}

static struct err *unknown_member(const struct shape *shape, struct span name,
                                  const struct place *outer, struct arena *a)
{
    struct span nearest = shape_nearest(shape, name);
    struct span where = place_text(outer, name, a);

    if (nearest.p == NULL)
        return ERR(ERR_UNKNOWN_MEMBER, "%.*s: there is no such member", SPAN_FMT(where));
    return ERR(ERR_UNKNOWN_MEMBER, "%.*s: there is no such member, is '%.*s' meant?",
               SPAN_FMT(where), SPAN_FMT(nearest));
}

/* In another case. */
static struct err *repeated_member(struct json_value member, struct span name,
                                   const struct place *outer, struct arena *a)
{
    return ERR(ERR_FAILED_JSON, "%.*s: %.*s repeats it", SPAN_FMT(place_text(outer, name, a)),
               SPAN_FMT(json_text(member)));
}

/* The values of an object by the places of their properties; absent where there is none. Id and
 * ObjectNo of an entity are the server's: given or not, they are not looked at. */
static struct err *place_members(const struct shape *shape, struct json_value object,
                                 bool is_entity, const struct place *outer, struct arena *a,
                                 struct json_value **out_values)
{
    struct json_value *values = ARENA_ARRAY(a, struct json_value, shape->count);

    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        struct span name = json_string(m.name, a);
        const struct property *p = shape_find(shape, name);

        if (p == NULL && (!is_entity || !is_entity_name(name)))
            return unknown_member(shape, name, outer, a);
        if (p == NULL)
            continue;
        if (json_exists(values[p - shape->properties]))
            return repeated_member(m.name, p->name, outer, a);
        values[p - shape->properties] = m.value;
    }
    *out_values = values;
    return NULL;
}

/* The same of what is stored, which is written as it was declared then. */
static struct json_value *place_stored(const struct shape *shape, struct json_value stored,
                                       struct arena *a)
{
    struct json_value *values = ARENA_ARRAY(a, struct json_value, shape->count);

    for (struct json_member m = json_first_member(stored); json_exists(m.name);
         m = json_next_member(stored, m)) {
        struct span name = json_string(m.name, a);
        const struct property *p = shape_find(shape, name);

        if (p != NULL && span_eq(p->name, name))
            values[p - shape->properties] = m.value;
    }
    return values;
}

/* In the declared spelling. */
static struct err *spell_enumerated(const struct property *p, struct json_value v,
                                    const struct place *outer, struct arena *a,
                                    struct span *out_json)
{
    struct span text = json_string(v, a);
    struct span declared = enumeration_find(p->values, text);
    struct buf list;
    struct err *e;

    if (declared.p != NULL) {
        *out_json = arena_printf(a, "\"%.*s\"", SPAN_FMT(declared));
        return NULL;
    }
    buf_init(&list, BUF_NO_CAP);
    enumeration_add_list(p->values, &list);
    e = ERR(ERR_INVALID_ENUM_VALUE, "%.*s: '%.*s' is not one of %.*s",
            SPAN_FMT(place_text(outer, p->name, a)), SPAN_FMT(text), SPAN_FMT(buf_span(&list)));
    buf_done(&list);
    return e;
}

static struct err *check_object(const struct shape *shape, struct json_value object,
                                unsigned passed_over, const struct place *outer, struct arena *a)
{
    struct json_value *values;
    struct span declared;

    if (json_type(object) != JSON_OBJECT)
        return refuse_no_object();
    if (shape->dynamic)
        return NULL;
    TRY(place_members(shape, object, true, outer, a, &values));
    for (size_t i = 0; i < shape->count; i++) {
        const struct property *p = &shape->properties[i];
        const struct place inner = {outer, p->name};

        if ((p->flags & passed_over) != 0)
            continue;
        TRY(check_value(p, values[i], outer, a));
        if (p->values != NULL && json_type(values[i]) == JSON_STRING)
            TRY(spell_enumerated(p, values[i], outer, a, &declared));
        if (p->members != NULL && json_type(values[i]) == JSON_OBJECT)
            TRY(check_object(p->members, values[i], passed_over, &inner, a));
    }
    return NULL;
}

struct err *schema_check(const struct shape *shape, struct json_value object, struct arena *a)
{
    return check_object(shape, object, 0, NULL, a);
}

struct err *schema_check_input(const struct shape *shape, struct json_value object, struct arena *a)
{
    return check_object(shape, object, PROPERTY_READ_ONLY, NULL, a);
}

/* Values. ----------------------------------------------------------------------------------- */

static struct err *decode_object(const struct shape *shape, struct json_value input,
                                 const struct place *outer, struct arena *a, struct span *out_json);

static struct err *decode_elements(const struct shape *shape, struct json_value array,
                                   const struct place *outer, struct arena *a,
                                   struct span *out_json)
{
    struct span element = {NULL, 0};
    struct buf b;
    struct err *e = NULL;
    size_t index = 0;

    buf_init_arena(&b, a);
    buf_add_char(&b, '[');
    for (struct json_value v = json_first(array); json_exists(v) && e == NULL;
         v = json_next(array, v), index++) {
        const struct place inner = {outer->outer, element_name(outer->name, index, a)};

        e = decode_object(shape, v, &inner, a, &element);
        json_add_comma(&b);
        buf_add(&b, element);
    }
    buf_add_char(&b, ']');
    *out_json = buf_span(&b);
    return e;
}

static struct err *decode_value(const struct property *p, struct json_value v,
                                const struct place *outer, struct arena *a, struct span *out_json)
{
    const struct place inner = {outer, p->name};

    if (json_type(v) == JSON_NULL && p->default_json.p != NULL) {
        *out_json = p->default_json;
        return NULL;
    }
    TRY(check_value(p, v, outer, a));
    if (json_type(v) == JSON_STRING && p->values != NULL)
        return spell_enumerated(p, v, outer, a, out_json);
    if (p->members != NULL && json_type(v) == JSON_OBJECT)
        return decode_object(p->members, v, &inner, a, out_json);
    if (p->members != NULL && json_type(v) == JSON_ARRAY)
        return decode_elements(p->members, v, &inner, a, out_json);
    *out_json = compact(v, a);
    return NULL;
}

static struct span default_of(const struct property *p)
{
    return p->default_json.p == NULL ? SPAN("null") : p->default_json;
}

static struct err *check_required(const struct property *p, struct span json,
                                  const struct place *outer, struct arena *a)
{
    if ((p->flags & PROPERTY_REQUIRED) == 0 || !span_eq(json, SPAN("null")))
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "%.*s: is required", SPAN_FMT(place_text(outer, p->name, a)));
}

/* A nested declared object: all its members, in declared order, defaults filled in. */
static struct err *decode_object(const struct shape *shape, struct json_value input,
                                 const struct place *outer, struct arena *a, struct span *out_json)
{
    struct json_value *values;
    struct buf b;

    if (json_type(input) != JSON_OBJECT)
        return wrong_type(outer->name, TYPE_OBJECT, outer->outer, a);
    TRY(place_members(shape, input, true, outer, a, &values));
    buf_init_arena(&b, a);
    buf_add_char(&b, '{');
    for (size_t i = 0; i < shape->count; i++) {
        const struct property *p = &shape->properties[i];
        struct span text = default_of(p);

        if (json_exists(values[i]))
            TRY(decode_value(p, values[i], outer, a, &text));
        TRY(check_required(p, text, outer, a));
        json_add_name(&b, p->name);
        buf_add(&b, text);
    }
    buf_add_char(&b, '}');
    *out_json = buf_span(&b);
    return NULL;
}

/* Objects that are no entities: keys, the configuration, members of stored entities. */

static void fill_in(const struct shape *shape, struct json_value *values, struct arena *a)
{
    for (size_t i = 0; i < shape->count; i++)
        if (json_type(values[i]) == JSON_NULL && shape->properties[i].default_json.p != NULL)
            values[i] = entity_parse(shape->properties[i].default_json, a);
}

struct err *schema_read(const struct shape *shape, struct json_value object, struct arena *a,
                        struct json_value **out_values)
{
    struct json_value *values;
    struct span declared;

    if (json_type(object) != JSON_OBJECT)
        return refuse_no_object();
    TRY(json_check_unique(object, true, a));
    TRY(place_members(shape, object, false, NULL, a, &values));
    for (size_t i = 0; i < shape->count; i++) {
        const struct property *p = &shape->properties[i];

        if (json_type(values[i]) == JSON_NULL)
            TRY(check_required(p, default_of(p), NULL, a));
        TRY(check_value(p, values[i], NULL, a));
        if (p->values != NULL && json_type(values[i]) == JSON_STRING)
            TRY(spell_enumerated(p, values[i], NULL, a, &declared));
    }
    fill_in(shape, values, a);
    *out_values = values;
    return NULL;
}

struct json_value *schema_stored(const struct shape *shape, struct json_value stored,
                                 struct arena *a)
{
    struct json_value *values = place_stored(shape, stored, a);

    fill_in(shape, values, a);
    return values;
}

/* Entities. --------------------------------------------------------------------------------- */

/* PATCH of an object merges it into the old one, and the result is decoded as if it had been sent.
 */
static void merge(const struct property *p, struct json_value *value, struct json_value old,
                  struct arena *a)
{
    struct buf b;

    if ((p->flags & PROPERTY_WHOLE) != 0 || json_type(*value) != JSON_OBJECT ||
        json_type(old) != JSON_OBJECT)
        return;
    buf_init_arena(&b, a);
    json_add_merged(&b, old, *value, true, a);
    *value = entity_parse(buf_span(&b), a);
}

/* From what is given and what there was; either may be absent. */
static struct err *decode_property(const struct property *p, struct json_value value,
                                   struct json_value kept, enum schema_mode mode, struct arena *a,
                                   struct span *out_json)
{
    bool is_read_only = (p->flags & PROPERTY_READ_ONLY) != 0;

    *out_json = default_of(p);
    if (json_exists(value) && !is_read_only) {
        if (mode == SCHEMA_PATCH)
            merge(p, &value, kept, a);
        TRY(decode_value(p, value, NULL, a, out_json));
    } else if (json_exists(kept) && (mode == SCHEMA_PATCH || is_read_only)) {
        *out_json = compact(kept, a);
    }
    return (p->flags & PROPERTY_ENTITY) != 0 ? NULL : check_required(p, *out_json, NULL, a);
}

static bool has_entity_members(struct json_value object, struct arena *a)
{
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m))
        if (is_entity_name(json_string(m.name, a)))
            return true;
    return false;
}

/* The members as they came, but for Id and ObjectNo. */
static struct span without_entity_members(struct json_value object, struct arena *a)
{
    struct buf b;

    if (!has_entity_members(object, a))
        return compact(object, a);
    buf_init_arena(&b, a);
    buf_add_char(&b, '{');
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        if (is_entity_name(json_string(m.name, a)))
            continue;
        json_add_written_name(&b, m.name);
        json_add_compact(&b, m.value);
    }
    buf_add_char(&b, '}');
    return buf_span(&b);
}

static struct span decode_dynamic(struct json_value input, struct json_value old,
                                  enum schema_mode mode, struct arena *a)
{
    struct span text = without_entity_members(input, a);
    struct buf b;

    if (mode != SCHEMA_PATCH)
        return text;
    buf_init_arena(&b, a);
    json_add_merged(&b, old, entity_parse(text, a), false, a);
    return without_entity_members(entity_parse(buf_span(&b), a), a);
}

struct err *schema_decode(const struct shape *shape, struct json_value input, struct json_value old,
                          enum schema_mode mode, struct arena *a, struct draft *out_draft)
{
    struct draft draft = {.shape = shape};
    struct json_value *given, *kept, nothing = {NULL, NULL};

    if (json_type(input) != JSON_OBJECT)
        return refuse_no_object();
    TRY(json_check_unique(input, !shape->dynamic, a));
    if (shape->dynamic) {
        draft.dynamic = decode_dynamic(input, old, mode, a);
        *out_draft = draft;
        return NULL;
    }
    TRY(place_members(shape, input, true, NULL, a, &given));
    kept = json_exists(old) ? place_stored(shape, old, a) : NULL;
    draft.values = ARENA_ARRAY(a, struct span, shape->count);
    for (size_t i = 0; i < shape->count; i++)
        TRY(decode_property(&shape->properties[i], given[i], kept != NULL ? kept[i] : nothing, mode,
                            a, &draft.values[i]));
    *out_draft = draft;
    return NULL;
}

static size_t place_of(const struct draft *d, struct span property)
{
    for (size_t i = 0; i < d->shape->count; i++)
        if (span_ieq(d->shape->properties[i].name, property))
            return i;
    return SIZE_MAX;
}

struct span draft_get(const struct draft *d, struct span property)
{
    size_t place = d->values == NULL ? SIZE_MAX : place_of(d, property);

    return place == SIZE_MAX ? (struct span){NULL, 0} : d->values[place];
}

struct span draft_written(const struct draft *d, struct span property)
{
    size_t place = place_of(d, property);

    return d->written == NULL || place == SIZE_MAX ? draft_get(d, property) : d->written[place];
}

void draft_set(struct draft *d, struct span property, struct span json)
{
    size_t place = place_of(d, property);

    if (place != SIZE_MAX)
        d->values[place] = json;
}

void draft_set_text(struct draft *d, struct span property, struct span text, struct arena *a)
{
    struct buf json;

    buf_init_arena(&json, a);
    json_add_string(&json, text);
    draft_set(d, property, buf_span(&json));
}

struct json_value draft_value(const struct draft *d, struct span property, struct arena *a)
{
    struct span text = draft_get(d, property);

    if (text.p == NULL || span_eq(text, SPAN("null")))
        return (struct json_value){NULL, NULL};
    return entity_parse(text, a);
}

void schema_encode(struct buf *b, const struct draft *d, const struct uuid *id, uint64_t object_no)
{
    buf_add_str(b, "{\"Id\":\"");
    uuid_add(b, id);
    buf_add_char(b, '"');
    for (size_t i = 0; d->values != NULL && i < d->shape->count; i++) {
        const struct property *p = &d->shape->properties[i];

        if ((p->flags & (PROPERTY_ENTITY | PROPERTY_HIDDEN)) != 0)
            continue;
        json_add_name(b, p->name);
        buf_add(b, d->values[i]);
    }
    if (d->dynamic.n > 2) {
        buf_add_char(b, ',');
        buf_add(b, span_sub(d->dynamic, 1, d->dynamic.n - 1));
    }
    buf_add_str(b, ",\"ObjectNo\":");
    buf_add_u64(b, object_no);
    buf_add_char(b, '}');
}

/* ---- without what is never shown ---- */

static bool skip(struct span json, struct span expected, size_t *at)
{
    if (!span_starts(span_sub(json, *at, json.n), expected))
        return false;
    *at += expected.n;
    return true;
}

static bool skip_name(struct span json, struct span name, size_t *at)
{
    return skip(json, SPAN(",\""), at) && skip(json, name, at) && skip(json, SPAN("\":"), at);
}

/* A string or a literal; what else begins is left where it is. */
static void skip_plain(struct span json, size_t *at)
{
    if (!skip(json, SPAN("\""), at)) {
        while (*at < json.n && json.p[*at] >= 'a' && json.p[*at] <= 'z')
            ++*at;
        return;
    }
    while (*at < json.n && json.p[*at] != '"')
        *at += json.p[*at] == '\\' ? 2 : 1;
    ++*at;
}

/* Are there, from here on, the properties beyond `count`, and then ObjectNo, which ends it all?
 * What looks so further inside would be followed by one bracket more. */
static bool is_tail(struct span json, const struct shape *whole, size_t count, size_t at,
                    size_t *out_object_no)
{
    for (size_t i = count; i < whole->count; i++) {
        if (!skip_name(json, whole->properties[i].name, &at))
            return false;
        skip_plain(json, &at);
        if (at >= json.n)
            return false;
    }
    *out_object_no = at;
    if (!skip_name(json, SPAN("ObjectNo"), &at))
        return false;
    while (at < json.n && json.p[at] >= '0' && json.p[at] <= '9')
        at++;
    return at + 1 == json.n && json.p[at] == '}';
}

static struct span without(struct span text, size_t from, size_t to, struct arena *a)
{
    size_t n = text.n - (to - from);
    char *p = arena_alloc(a, n);

    memcpy(p, text.p, from);
    memcpy(p + from, text.p + to, text.n - to);
    return span_of(p, n);
}

struct span schema_shown(const struct shape *shown, const struct shape *whole, struct span stored,
                         struct arena *a)
{
    enum { MOST_BYTES = 4096 };
    size_t end = stored.n > MOST_BYTES ? stored.n - MOST_BYTES : 0, object_no;

    for (size_t at = stored.n; at-- > end;)
        if (stored.p[at] == ',' && is_tail(stored, whole, shown->count, at, &object_no))
            return without(stored, at, object_no, a);
    return span_of(NULL, 0);
}

void schema_add_reshaped(struct buf *b, const struct shape *shape, struct json_value stored,
                         struct arena *a)
{
    struct json_value *values = place_stored(shape, stored, a);

    buf_add_char(b, '{');
    for (size_t i = 0; i < shape->count; i++) {
        const struct property *p = &shape->properties[i];

        if ((p->flags & PROPERTY_HIDDEN) != 0)
            continue;
        json_add_name(b, p->name);
        json_add_compact(b, values[i]);
    }
    buf_add_char(b, '}');
}
