#include "service/rendered.h"

static bool next_item(struct query_source *source, struct query_item *out_item)
{
    struct rendered *r = CONTAINER_OF(source, struct rendered, source);
    void *object = r->next(r);
    struct buf json;

    if (object == NULL)
        return false;
    buf_init(&json, BUF_NO_CAP);
    r->add_json(object, &json);
    out_item->json = arena_copy(r->call->arena, buf_span(&json));
    out_item->object = object;
    buf_done(&json);
    return true;
}

struct rendered *rendered_open(struct call *call, void *(*next)(struct rendered *r),
                               void (*add_json)(const void *object, struct buf *b))
{
    struct rendered *r = ARENA_NEW(call->arena, struct rendered);

    r->source.next = next_item;
    r->call = call;
    r->next = next;
    r->add_json = add_json;
    call->source = &r->source;
    return r;
}

bool rendered_wanted_id(const struct call *call, struct span property, struct uuid *out_id)
{
    const struct literal *literal = conditions_equal_to(&call->query.conditions, property);
    struct uuid nil = {{0}};

    if (literal == NULL)
        return false;
    if (literal->kind != LITERAL_STRING || !uuid_parse(literal->text, out_id))
        *out_id = nil;
    return true;
}
