#include "rest/rendered.h"
#include "base/budget.h"
#include "base/limits.h"
#include "base/must.h"
#include "base/uuid.h"
#include "query/query.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/evaluation.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "json/json.h"

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

/* What it costs to write one. */
enum { OBJECT_UNITS = 1024 };

/* What it gives way to may change the objects: they are written first, while nobody changes them as
 * the request holds the turn, or else in one turn; then they are looked at as texts. What is too
 * much for that is looked at in the same way. */
struct gathered_item {
    struct span text;
    uint64_t version;
};

struct gathered {
    struct rendered *r;
    struct gathered_item *items;
    size_t count, size, given;
    bool is_all; /* that there are, or are wanted: next must not be asked again */
};

static uint64_t version_of(const struct call *call, const void *object)
{
    const struct resource_ops *ops = call->resource->ops;

    return ops->version != NULL ? ops->version(object) : 0;
}

static void gather(struct gathered *g, struct query_source *source, void *object)
{
    const struct call *call = g->r->call;
    struct arena *a = call->arena;
    const struct query_item item = {.object = object};

    if (g->count == g->size) {
        size_t size = MAX(64, 2 * g->size);

        g->items = arena_grow(a, g->items, g->size * sizeof(*g->items), size * sizeof(*g->items));
        g->size = size;
    }
    g->items[g->count++] =
        (struct gathered_item){render(source, &item, a), version_of(call, object)};
}

/* Of a source where nothing is looked for, so many are all that are asked for. */
static uint64_t objects_most(const struct query *q)
{
    return query_can_filter(q) || q->meta.distinct ? UINT64_MAX : query_enough(q);
}

static void gather_all(struct rendered *r)
{
    struct evaluation *e = r->call->evaluation;
    size_t bytes = 0, most = (size_t)r->call->rest->limits->answer_bytes;
    uint64_t enough = objects_most(r->call->query);
    struct gathered *g = ARENA_NEW(r->call->arena, struct gathered);

    g->r = r;
    r->gathered = g;
    if (!evaluation_holds_turn(e))
        budget_hold();
    while (bytes < most && g->count < enough && budget_ask(OBJECT_UNITS)) {
        void *object = r->next(r);

        g->is_all = object == NULL;
        if (g->is_all)
            break;
        gather(g, &r->source, object);
        bytes += g->items[g->count - 1].text.n;
    }
    g->is_all |= g->count >= enough;
    if (bytes >= most)
        return;
    if (evaluation_holds_turn(e))
        evaluation_end_reading(e);
    else
        budget_release();
}

/* Once it has been told to stop, what comes next may be gone. */
static void *next_object(struct rendered *r)
{
    return budget_ask(0) ? r->next(r) : NULL;
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
        out_item->object = &g->items[g->given++];
    else
        out_item->object = g->is_all ? NULL : next_object(r);
    return out_item->object != NULL;
}

/* NULL: it was not, or nothing is. */
static const struct gathered_item *gathered_item(const struct rendered *r,
                                                 const struct query_item *item)
{
    const struct gathered *g = r->gathered;
    const struct gathered_item *found = item->object;

    return g != NULL && found >= g->items && found < g->items + g->count ? found : NULL;
}

static struct span render_gathered(struct query_source *source, const struct query_item *item,
                                   struct arena *a)
{
    const struct gathered_item *found = gathered_item(rendered_of(source), item);

    return found != NULL ? found->text : render(source, item, a);
}

uint64_t rendered_version(const struct call *call, const struct query_item *item)
{
    const struct gathered_item *found = gathered_item(rendered_of(call->source), item);

    return found != NULL ? found->version : version_of(call, item->object);
}

static bool is_beside_others(const struct call *call)
{
    return call->evaluation != NULL && evaluation_snapshot(call->evaluation) != NULL;
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

struct array {
    char *at, *end;
    size_t size; /* of an object */
};

static void *next_of_array(struct rendered *r)
{
    struct array *array = r->cursor;
    void *object = array->at == array->end ? NULL : array->at;

    array->at += object == NULL ? 0 : array->size;
    return object;
}

struct rendered *
rendered_open_array(struct call *call, const void *objects, size_t count, size_t size,
                    void (*add_json)(struct rendered *r, void *object, struct buf *b))
{
    struct rendered *r = rendered_open(call, next_of_array, add_json);
    struct array *array = ARENA_NEW(call->arena, struct array);
    char *first = (char *)(uintptr_t)objects;

    *array = (struct array){first, first + count * size, size};
    r->cursor = array;
    return r;
}

/* Objects are not alike: their texts are. */
static uint64_t object_no(struct query_source *source, const struct query_item *item)
{
    struct arena *a = rendered_of(source)->call->arena;
    struct json_value json = entity_parse(source->render(source, item, a), a);
    uint64_t n = 0;

    MUST(span_to_u64(json_text(json_member(json, SPAN("ObjectNo"))), &n));
    return n;
}

void rendered_by_object_no(struct rendered *r)
{
    r->source.object_no = object_no;
}

bool rendered_wanted_id(const struct call *call, struct span property, struct uuid *out_id)
{
    const struct conditions *conditions = &call->query->conditions;
    struct uuid nil = {{0}};
    struct span text;

    if (conditions_equal_to(conditions, property) == NULL)
        return false;
    if (!conditions_string(conditions, property, &text) || !uuid_parse(text, out_id))
        *out_id = nil;
    return true;
}
