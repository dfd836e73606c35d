/* Properties are found by name, ASCII case folded. A table of few is searched from the front; one
 * of many has an order of its own beside it and is halved, which does not disturb the declared
 * order that listings show. */
#include "query/shape.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"

#include <stdlib.h>

static const struct span type_names[TYPE_COUNT] = {
    [TYPE_ANY] = SPAN_INIT("any"),         [TYPE_STRING] = SPAN_INIT("string"),
    [TYPE_INTEGER] = SPAN_INIT("integer"), [TYPE_NUMBER] = SPAN_INIT("number"),
    [TYPE_BOOLEAN] = SPAN_INIT("boolean"), [TYPE_DATETIME] = SPAN_INIT("datetime"),
    [TYPE_OBJECT] = SPAN_INIT("object"),   [TYPE_ARRAY] = SPAN_INIT("array"),
};

struct span value_type_name(enum value_type type)
{
    MUST(type < TYPE_COUNT);
    return type_names[type];
}

bool value_type_parse(struct span name, enum value_type *out_type)
{
    for (enum value_type type = 0; type < TYPE_COUNT; type++) {
        if (span_ieq(type_names[type], name)) {
            *out_type = type;
            return true;
        }
    }
    return false;
}

size_t enumeration_place(const struct enumeration *e, struct span text)
{
    size_t place = 0;

    while (place < e->count && !span_ieq(e->values[place], text))
        place++;
    return place;
}

struct span enumeration_find(const struct enumeration *e, struct span text)
{
    size_t place = enumeration_place(e, text);

    return place < e->count ? e->values[place] : (struct span){NULL, 0};
}

void enumeration_add_list(const struct enumeration *e, struct buf *b)
{
    for (size_t i = 0; i < e->count; i++) {
        if (i > 0 && span_eq(e->values[i], e->values[i - 1]))
            continue;
        buf_add_str(b, i == 0 ? "" : ", ");
        buf_add(b, e->values[i]);
    }
}

/* By length, then by the characters, ASCII case folded: any order would do. */
static int cmp_names(struct span a, struct span b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    for (size_t i = 0; i < a.n; i++) {
        char x = span_fold_char(a.p[i]), y = span_fold_char(b.p[i]);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int cmp_places(const void *a, const void *b, void *shape)
{
    const struct property *properties = ((const struct shape *)shape)->properties;

    return cmp_names(properties[*(const uint16_t *)a].name, properties[*(const uint16_t *)b].name);
}

void shape_sort(const struct shape *shape, uint16_t *out_by_name)
{
    MUST(shape->count <= UINT16_MAX);
    for (size_t i = 0; i < shape->count; i++)
        out_by_name[i] = (uint16_t)i;
    qsort_r(out_by_name, shape->count, sizeof(*out_by_name), cmp_places, (void *)(uintptr_t)shape);
}

static const struct property *find_sorted(const struct shape *shape, struct span name)
{
    size_t from = 0, to = shape->count;

    while (from < to) {
        size_t middle = (from + to) / 2;
        const struct property *p = &shape->properties[shape->by_name[middle]];
        int order = cmp_names(name, p->name);

        if (order == 0)
            return p;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

const struct property *shape_find(const struct shape *shape, struct span name)
{
    if (shape->by_name != NULL)
        return find_sorted(shape, name);
    for (size_t i = 0; i < shape->count; i++)
        if (span_ieq(shape->properties[i].name, name))
            return &shape->properties[i];
    return NULL;
}

struct span shape_nearest(const struct shape *shape, struct span name)
{
    struct span *names = mem_alloc(shape->count * sizeof(*names));
    struct span nearest;

    for (size_t i = 0; i < shape->count; i++)
        names[i] = shape->properties[i].name;
    nearest = text_nearest(name, names, shape->count);
    mem_free(names);
    return nearest;
}
