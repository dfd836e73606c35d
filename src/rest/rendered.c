#include "rest/rendered.h"
#include "base/uuid.h"
#include "query/condition.h"
#include "query/literal.h"
#include "query/query.h"
#include "rest/call.h"

static struct rendered *rendered_of(struct query_source *source)
{
    return CONTAINER_OF(source, struct rendered, source);
}

static bool next_item(struct query_source *source, struct query_item *out_item)
{
    struct rendered *r = rendered_of(source);

    out_item->object = r->next(r);
    return out_item->object != NULL;
}

static struct span render(struct query_source *source, const struct query_item *item,
                          struct arena *a)
{
    struct rendered *r = rendered_of(source);
    struct span text;
    struct buf json;

    buf_init(&json, BUF_NO_CAP);
    r->add_json(r, item->object, &json);
    text = arena_copy(a, buf_span(&json));
    buf_done(&json);
    return text;
}

struct rendered *rendered_open(struct call *call, void *(*next)(struct rendered *r),
                               void (*add_json)(struct rendered *r, void *object, struct buf *b))
{
    struct rendered *r = ARENA_NEW(call->arena, struct rendered);

    r->source.next = next_item;
    r->source.render = render;
    r->call = call;
    r->next = next;
    r->add_json = add_json;
    call->source = &r->source;
    return r;
}

bool rendered_wanted_id(const struct call *call, struct span property, struct uuid *out_id)
{
    const struct literal *literal = conditions_equal_to(&call->query->conditions, property);
    struct uuid nil = {{0}};

    if (literal == NULL)
        return false;
    if (literal->kind != LITERAL_STRING || !uuid_parse(literal->text, out_id))
        *out_id = nil;
    return true;
}
