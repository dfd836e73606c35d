#include "rest/rendered.h"
#include "base/budget.h"
#include "base/limits.h"
#include "base/uuid.h"
#include "query/condition.h"
#include "query/literal.h"
#include "query/query.h"
#include "rest/call.h"
#include "rest/evaluation.h"
#include "rest/rest.h"

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

/* ---- on a fiber ---- */

/* What it gives way to may change the objects: they are written first, all in one turn, which is
 * quick, and looked at as texts. What is too much for that is looked at in one turn too. */
struct gathered {
    struct rendered *r;
    struct span *texts;
    size_t count, size, given;
    bool is_all; /* and next must not be asked again */
};

static void gather(struct gathered *g, struct query_source *source, void *object)
{
    struct arena *a = g->r->call->arena;
    const struct query_item item = {.object = object};

    if (g->count == g->size) {
        size_t size = MAX(64, 2 * g->size);

        g->texts = arena_grow(a, g->texts, g->size * sizeof(*g->texts), size * sizeof(*g->texts));
        g->size = size;
    }
    g->texts[g->count++] = render(source, &item, a);
}

static void gather_all(struct rendered *r)
{
    size_t bytes = 0, most = (size_t)r->call->rest->limits->answer_bytes;
    struct gathered *g = ARENA_NEW(r->call->arena, struct gathered);

    budget_hold();
    g->r = r;
    while (bytes < most && budget_ask(256)) {
        void *object = r->next(r);

        g->is_all = object == NULL;
        if (g->is_all)
            break;
        gather(g, &r->source, object);
        bytes += g->texts[g->count - 1].n;
    }
    if (bytes < most)
        budget_release();
    r->gathered = g;
}

static bool next_gathered(struct query_source *source, struct query_item *out_item)
{
    struct rendered *r = rendered_of(source);
    struct gathered *g;

    if (r->gathered == NULL)
        gather_all(r);
    g = r->gathered;
    out_item->holds = false;
    if (g->given < g->count)
        out_item->object = &g->texts[g->given++];
    else
        out_item->object = g->is_all ? NULL : r->next(r);
    return out_item->object != NULL;
}

static struct span render_gathered(struct query_source *source, const struct query_item *item,
                                   struct arena *a)
{
    const struct gathered *g = rendered_of(source)->gathered;
    const struct span *text = item->object;

    return text >= g->texts && text < g->texts + g->count ? *text : render(source, item, a);
}

static bool is_beside_others(const struct call *call)
{
    const struct evaluation *e = evaluation_running(call->rest);

    return e != NULL && e->has_snapshot;
}

struct rendered *rendered_open(struct call *call, void *(*next)(struct rendered *r),
                               void (*add_json)(struct rendered *r, void *object, struct buf *b))
{
    struct rendered *r = ARENA_NEW(call->arena, struct rendered);

    r->source.next = next_item;
    r->source.render = render;
    if (is_beside_others(call)) {
        r->source.next = next_gathered;
        r->source.render = render_gathered;
    }
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
