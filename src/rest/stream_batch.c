/* What a view has to show behind a place, as text: a bounded number of entities go through the
 * query, on a fiber, because it is up to the client how long the conditions take.
 *
 * Between two turns what was looked at may go: so an entity is written when it comes, and the place
 * is a number, from which the next one is looked for anew. */
#include "base/budget.h"
#include "base/fiber.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "query/source.h"
#include "rest/metrics.h"
#include "rest/stream_inner.h"
#include "store/turn.h"

enum { LOOKS_MOST = 512 };

/* Of an entity that is written. */
struct found {
    uint64_t number;
    struct span name;
};

struct stream_batch {
    struct stream_view *view;
    const struct stream *owner;
    uint64_t from, place;
    uint64_t until; /* where another chunk begins */
    struct query_source source;
    struct arena arena;
    struct buf text;
    void *object; /* the last one, in the same turn */
    unsigned turns;
    unsigned looks;
    size_t bytes;
    bool reads; /* it ends here for want of what is only on disk */
    struct budget budget;
    struct fiber *fiber; /* NULL: it has ended */
    struct err *error;
};

/* ---- entities ---- */

static void *following(struct stream_batch *b)
{
    const struct stream_view *v = b->view;
    bool is_same_turn = b->object != NULL && b->turns == budget_turns();
    void *object =
        is_same_turn ? v->source->next(&v->call, b->object) : v->source->after(&v->call, b->place);

    if (b->until < UINT64_MAX && (object == NULL || v->source->number(object) > b->until)) {
        b->place = b->until; /* all up to there have been looked at */
        return NULL;
    }
    if (object == NULL)
        return NULL;
    return turn_is_seen(v->call.rest->turn, v->source->number(object)) ? object : NULL;
}

static void give(struct stream_batch *b, void *object, struct query_item *out_item)
{
    const struct stream_view *v = b->view;
    struct found *found = ARENA_NEW(&b->arena, struct found);
    struct buf json;

    *found = (struct found){.number = b->place};
    found->name = arena_copy(&b->arena, v->source->name(object));
    buf_init_arena(&json, &b->arena);
    v->source->add_json(&v->call, object, &b->arena, &json);
    *out_item = (struct query_item){.json = buf_span(&json), .object = found};
}

static bool next_item(struct query_source *source, struct query_item *out_item)
{
    struct stream_batch *b = CONTAINER_OF(source, struct stream_batch, source);
    const struct stream_source *of = b->view->source;
    const struct call *call = &b->view->call;
    void *object;

    while (b->looks < LOOKS_MOST && b->bytes < STREAM_TEXT_BYTES &&
           (object = following(b)) != NULL) {
        bool is_wanted = of->is_wanted == NULL || of->is_wanted(call, object);

        if (is_wanted && of->is_ready != NULL && !of->is_ready(call, object)) {
            b->reads = true;
            return false;
        }
        b->looks++;
        b->place = of->number(object);
        b->object = object;
        b->turns = budget_turns();
        if (!is_wanted)
            continue;
        b->bytes += of->bytes(object);
        give(b, object, out_item);
        return true;
    }
    return false;
}

/* Of the entity as it is now, if it is still there. */
static struct span hidden_value(struct query_source *source, const struct query_item *item,
                                const struct property *property, struct arena *a)
{
    const struct stream_batch *b = CONTAINER_OF(source, struct stream_batch, source);
    const struct stream_view *v = b->view;
    const struct found *found = item->object;
    void *object = v->source->after(&v->call, found->number - 1);
    struct buf value;

    if (object == NULL || v->source->number(object) != found->number)
        return SPAN("null");
    buf_init_arena(&value, a);
    v->call.resource->ops->hidden(&v->call, object, property, &value);
    return buf_span(&value);
}

/* ---- text ---- */

/* On one line: in JSON a line's end is a blank, and no more than that. */
static void add_data(struct buf *b, struct span json)
{
    size_t from = b->n + SPAN("data: ").n;

    buf_add_str(b, "data: ");
    buf_add(b, json);
    for (char *at = b->p + from; at < b->p + b->n; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    buf_add_str(b, "\n\n");
}

static void add_item(struct buf *b, const struct query_item *item)
{
    const struct found *found = item->object;

    buf_add_str(b, "id: ");
    buf_add_u64(b, found->number);
    buf_add_str(b, "\nevent: ");
    buf_add(b, found->name);
    buf_add_char(b, '\n');
    add_data(b, item->json);
}

static struct err *write_text(struct stream_batch *b)
{
    struct query_result result;

    TRY(query_run(&b->view->query, &b->source, false, &b->arena, &result));
    TRY(budget_check());
    for (size_t i = 0; i < result.count; i++)
        add_item(&b->text, &result.items[i]);
    if (result.count > 0)
        buf_add_str(&b->text, "\r\n");
    b->view->call.rest->metrics->stream_entities += result.count;
    return NULL;
}

static void run(void *batch)
{
    struct stream_batch *b = batch;

    b->error = write_text(b);
}

/* ---- life ---- */

static struct stream_batch *begin(struct stream *s)
{
    const struct rest *rest = s->view->call.rest;
    struct stream_batch *b = NEW(struct stream_batch);

    b->view = s->view;
    b->owner = s;
    b->from = b->place = s->place;
    b->until = stream_view_next_place(s->view, s->place);
    b->source.next = next_item;
    if (s->view->call.resource->ops->hidden != NULL)
        b->source.hidden = hidden_value;
    arena_init(&b->arena);
    buf_init(&b->text, BUF_NO_CAP); /* LOOKS_MOST and STREAM_TEXT_BYTES bound it */
    budget_init(&b->budget, (uint64_t)rest->limits->request_cpu_ms * 1000000);
    b->budget.is_on_fiber = true;
    b->fiber = fiber_new(run, b);
    return b;
}

/* A request may end it by deleting its key: that one's budget is the current one again. */
static void go_on(struct stream_batch *b)
{
    struct budget_now outer = budget_now;

    budget_enter(&b->budget);
    if (!fiber_resume(b->fiber))
        b->fiber = NULL;
    budget_leave(&b->budget);
    budget_now = outer;
}

static void batch_free(struct stream_batch *b)
{
    b->view->batch = NULL;
    buf_done(&b->text);
    arena_done(&b->arena);
    err_free(b->error);
    mem_free(b);
}

/* One that is in the midst of its work is told to stop, and frees what it has on its way out. */
void stream_batch_cancel(struct stream_view *v, const struct stream *of)
{
    struct stream_batch *b = v->batch;

    if (b == NULL || (of != NULL && b->owner != of))
        return;
    b->budget.state = BUDGET_ENDED;
    while (b->fiber != NULL)
        go_on(b);
    batch_free(b);
}

static enum stream_end why_of(const struct stream_batch *b)
{
    if (err_code(b->error) == ERR_REQUEST_TOO_COSTLY)
        return STREAM_TOO_COSTLY;
    log_error("stream", "%.*s: %.*s", SPAN_FMT(b->view->target), SPAN_FMT(err_message(b->error)));
    return STREAM_FAILED;
}

static enum stream_render finish(struct stream_batch *b, struct stream_chunk **out_chunk,
                                 enum stream_end *out_why)
{
    enum stream_render render = STREAM_RENDERED;

    if (b->error != NULL) {
        *out_why = why_of(b);
        render = STREAM_REFUSED;
    } else if (b->place == b->from) {
        render = b->reads ? STREAM_READS : STREAM_NOTHING;
    } else {
        *out_chunk = stream_view_add(b->view, b->from, b->place, &b->text);
    }
    batch_free(b);
    return render;
}

static bool is_behind(const struct stream *s)
{
    const struct stream_view *v = s->view;
    const void *object = v->source->after(&v->call, s->place);

    return object != NULL && turn_is_seen(v->call.rest->turn, v->source->number(object));
}

enum stream_render stream_render(struct stream *s, struct stream_chunk **out_chunk,
                                 enum stream_end *out_why)
{
    struct stream_view *v = s->view;

    if (v->batch == NULL && !is_behind(s))
        return STREAM_NOTHING;
    if (v->batch == NULL)
        v->batch = begin(s);
    else if (v->batch->from != s->place)
        return STREAM_GIVES_WAY; /* its owner's turn comes */
    go_on(v->batch);
    return v->batch->fiber != NULL ? STREAM_GIVES_WAY : finish(v->batch, out_chunk, out_why);
}
