/* The pipeline. Each item goes through it alone, in scratch memory that the next one uses again:
 * conditions, search and distinct decide whether it is offered to query_keep. What an item looks
 * like in the end follows from the item, so only those of the result are rendered and shaped for
 * good; distinct works on a passing copy. Order reads the original, so that a member that is not
 * selected can be sorted by. Hidden properties that the query names are put into the original when
 * it is parsed, and left out again when it is shown. */
#include "query_parts.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/condition.h"
#include "query/meta_items.h"
#include "json/json.h"

/* Entities of the store: what came in was held to tighter limits. */
static const struct json_limits json_limits = {.depth = JSON_DEPTH_MOST, .members = UINT32_MAX};

enum { ITEM_UNITS = 64, HIDDEN_MOST = 4 };

struct run {
    const struct query *query;
    struct query_source *source;
    bool shapes; /* add, rename or select change what comes */
    bool is_distinct;
    bool searches;
    bool tests;                                 /* each item against the conditions */
    bool parses;                                /* each item, to decide about it */
    bool parses_all;                            /* also those that have passed a filter */
    const struct property *hidden[HIDDEN_MOST]; /* that the query names */
    size_t hidden_count;
    size_t deciding_count; /* the first so many of them decide whether an item comes, and where */
    struct query_shaper shaper;
    struct query_shaper plain; /* for search: what is shown without meta-conditions */
    struct query_distinct distinct;
    struct query_keep keep;
    struct arena scratch;
};

struct err *query_parse(const struct uri *uri, const struct shape *shape, struct arena *a,
                        struct query *out_query)
{
    *out_query = (struct query){.shape = shape, .is_form = uri->is_query_form};
    if (uri->condition_count > 0)
        TRY(conditions_parse(uri->conditions, uri->condition_count, shape, a,
                             &out_query->conditions));
    if (uri->meta_count > 0)
        TRY(meta_parse(uri->metas, uri->meta_count, uri->is_query_form, shape, a,
                       &out_query->meta));
    out_query->is_plain = uri->meta_count == 0 || meta_is_plain(&out_query->meta);
    return NULL;
}

void query_done(struct query *q)
{
    if (q != NULL && q->meta.search_count > 0)
        meta_done(&q->meta);
}

/* ---- texts ---- */

static struct span original_text(const struct run *r, const struct query_item *item,
                                 struct arena *a)
{
    return r->source->render != NULL ? r->source->render(r->source, item, a) : item->json;
}

/* The same with the first so many hidden ones behind its members, of which there is always the Id.
 */
static struct span text_with_hidden(const struct run *r, const struct query_item *item,
                                    struct span original, size_t count, struct arena *a)
{
    struct buf b;

    if (r->source->hidden == NULL)
        return original;
    buf_init_arena(&b, a);
    buf_add(&b, span_sub(original, 0, original.n - 1));
    for (size_t i = 0; i < count; i++) {
        json_add_name(&b, r->hidden[i]->name);
        buf_add(&b, r->source->hidden(r->source, item, r->hidden[i], a));
    }
    buf_add_char(&b, '}');
    return buf_span(&b);
}

static struct err *parse_with_hidden(const struct run *r, const struct query_item *item,
                                     size_t count, struct arena *a, struct json_doc *out_doc)
{
    struct span text = original_text(r, item, a);

    if (count > 0)
        text = text_with_hidden(r, item, text, count, a);
    return json_parse(text, &json_limits, a, out_doc);
}

static struct err *parse_original(const struct run *r, const struct query_item *item,
                                  struct arena *a, struct json_doc *out_doc)
{
    return parse_with_hidden(r, item, r->hidden_count, a, out_doc);
}

/* What is only shown is computed for those that are shown. */
static struct err *parse_to_decide(const struct run *r, const struct query_item *item,
                                   struct arena *a, struct json_doc *out_doc)
{
    return parse_with_hidden(r, item, r->deciding_count, a, out_doc);
}

static struct err *shape(struct query_shaper *shaper, const struct json_doc *original,
                         struct arena *a, struct json_doc *out_doc)
{
    struct span text;

    TRY(query_shaper_run(shaper, json_root(original), a, &text));
    return json_parse(arena_copy(a, text), &json_limits, a, out_doc);
}

/* The item as it comes out, parsed; from its original, which is parsed already. */
static struct err *parse_shaped(struct run *r, const struct query_item *item,
                                const struct json_doc *original, struct arena *a,
                                struct json_doc *out_doc)
{
    if (r->shapes)
        return shape(&r->shaper, original, a, out_doc);
    if (r->hidden_count > 0) /* the original as it is */
        return json_parse(original_text(r, item, a), &json_limits, a, out_doc);
    *out_doc = *original;
    return NULL;
}

static struct err *reread(void *arg, const struct query_item *item, struct arena *a,
                          struct json_doc *out_doc)
{
    struct run *r = arg;
    struct json_doc original;

    TRY(parse_original(r, item, a, &original));
    return parse_shaped(r, item, &original, a, out_doc);
}

/* ---- one item ---- */

static struct err *search_holds(struct run *r, const struct meta_search *search,
                                const struct json_doc *original, struct span text, bool *out_holds)
{
    struct value value;

    if (!search->has_property)
        return meta_search_holds(search, text, out_holds);
    value = path_read(&search->property, json_root(original), &r->scratch);
    if (value.kind != VALUE_NULL)
        return meta_search_holds(search, value.text, out_holds);
    *out_holds = false;
    return NULL;
}

/* The entity's text, without what is not shown of it unless it is asked for. */
static struct err *searched_text(struct run *r, const struct query_item *item,
                                 const struct json_doc *original, struct span *out_text)
{
    if (r->plain.hiding != NULL)
        return query_shaper_run(&r->plain, json_root(original), &r->scratch, out_text);
    *out_text = original->nodes != NULL ? original->text : original_text(r, item, &r->scratch);
    return NULL;
}

/* All of the searches. */
static struct err *passes_searches(struct run *r, const struct query_item *item,
                                   const struct json_doc *original, bool *out_passes)
{
    const struct meta *m = &r->query->meta;
    struct span text;
    bool passes = true;

    TRY(searched_text(r, item, original, &text));
    for (size_t i = 0; i < m->search_count && passes; i++)
        TRY(search_holds(r, &m->searches[i], original, text, &passes));
    *out_passes = passes;
    return NULL;
}

static struct err *is_new(struct run *r, const struct query_item *item,
                          const struct json_doc *original, bool *out_is_new)
{
    struct json_doc shaped;

    TRY(parse_shaped(r, item, original, &r->scratch, &shaped));
    return query_distinct_add(&r->distinct, item, json_root(&shaped), out_is_new);
}

/* Reads the item into the scratch memory as far as is needed, also for what comes next. */
static struct err *test_item(struct run *r, const struct query_item *item,
                             struct json_doc *original, bool *out_passes)
{
    arena_reset(&r->scratch);
    if (item->holds ? r->parses_all : r->parses)
        TRY(parse_to_decide(r, item, &r->scratch, original));
    *out_passes = !r->tests || item->holds ||
                  conditions_hold(&r->query->conditions, json_root(original), &r->scratch);
    if (*out_passes && r->searches && !item->holds)
        TRY(passes_searches(r, item, original, out_passes));
    if (*out_passes && r->is_distinct)
        TRY(is_new(r, item, original, out_passes));
    return NULL;
}

static struct err *consider(struct run *r, const struct query_item *item)
{
    struct json_doc original = {.nodes = NULL};
    bool is_offered;

    TRY(test_item(r, item, &original, &is_offered));
    if (is_offered)
        query_keep_offer(&r->keep, item, json_root(&original), &r->scratch);
    return NULL;
}

static struct err *finish_item(struct run *r, struct query_item *item, struct arena *a)
{
    struct json_doc original;
    struct span text;

    if (!r->shapes) {
        item->json = original_text(r, item, a);
        return NULL;
    }
    arena_reset(&r->scratch);
    TRY(parse_original(r, item, &r->scratch, &original));
    TRY(query_shaper_run(&r->shaper, json_root(&original), &r->scratch, &text));
    item->json = arena_copy(a, text);
    return NULL;
}

/* ---- the whole ---- */

static bool changes_members(const struct meta *m)
{
    return m->add_count > 0 || m->rename_count > 0 || m->select_count > 0;
}

/* What is stored and not shown is known to conditions and order, and comes out by the shaper. */
static bool hides(const struct query *q)
{
    return q->shape != NULL && q->shape->hides;
}

static bool searches_property(const struct meta *m)
{
    for (size_t i = 0; i < m->search_count; i++)
        if (m->searches[i].has_property)
            return true;
    return false;
}

/* Conditions and searches, whatever else there is. */
static bool decides_by_members(const struct run *r)
{
    return r->tests ||
           (r->searches && (r->plain.hiding != NULL || searches_property(&r->query->meta)));
}

static void note_hidden(struct run *r, const struct path *path)
{
    for (size_t i = 0; i < r->hidden_count; i++)
        if (r->hidden[i] == path->hidden)
            return;
    if (path->hidden == NULL)
        return;
    MUST(r->hidden_count < HIDDEN_MOST);
    r->hidden[r->hidden_count++] = path->hidden;
}

/* A renamed one is among the adds, or is a member. Those that decide come first. */
static void note_all_hidden(struct run *r, const struct query *q)
{
    const struct meta *m = &q->meta;

    for (size_t i = 0; i < q->conditions.count; i++)
        note_hidden(r, &q->conditions.items[i].path);
    for (size_t i = 0; i < m->order_count; i++)
        note_hidden(r, &m->orders[i].path);
    for (size_t i = 0; i < m->search_count; i++)
        note_hidden(r, &m->searches[i].property);
    r->deciding_count = r->hidden_count;
    for (size_t i = 0; i < m->add_count; i++)
        note_hidden(r, &m->adds[i]);
    for (size_t i = 0; i < m->select_count; i++)
        note_hidden(r, &m->selects[i]);
}

static const struct meta no_meta;

/* The last ones come first to hand then. To count all, all have to be gone over anyway; of equals
 * the first one is kept. */
static bool goes_back(const struct query *q, bool is_distinct)
{
    return q->meta.offset < 0 && q->meta.order_count == 0 && !is_distinct && !q->counts_all;
}

static void run_init(struct run *r, const struct query *q, struct query_source *source,
                     bool objects_only)
{
    const struct meta *m = &q->meta;
    const struct shape *hiding;

    r->query = q;
    r->source = source;
    r->hidden_count = 0;
    note_all_hidden(r, q);
    hiding = hides(q) || r->hidden_count > 0 ? q->shape : NULL;
    r->shapes = !objects_only && (changes_members(m) || hides(q));
    r->is_distinct = !objects_only && m->distinct;
    if (r->is_distinct) /* what is shown */
        r->deciding_count = r->hidden_count;
    r->searches = m->search_count > 0;
    r->tests = q->conditions.count > 0 && !source->holds;
    query_shaper_init(&r->shaper, hiding, m);
    query_shaper_init(&r->plain, hides(q) || r->deciding_count > 0 ? q->shape : NULL, &no_meta);
    r->parses_all = m->order_count > 0 || r->is_distinct;
    r->parses = r->parses_all || decides_by_members(r);
    query_distinct_init(&r->distinct, reread, r);
    query_keep_init(&r->keep, m);
    r->keep.counts_all = q->counts_all;
    r->keep.goes_back = source->turn_back != NULL && goes_back(q, r->is_distinct);
    if (r->keep.goes_back)
        source->turn_back(source);
    arena_init(&r->scratch);
}

static void run_done(struct run *r)
{
    query_shaper_done(&r->shaper);
    query_shaper_done(&r->plain);
    query_distinct_done(&r->distinct);
    query_keep_done(&r->keep);
    arena_done(&r->scratch);
}

static struct err *offer_all(struct run *r)
{
    struct query_item item = {.object = NULL};

    while (budget_ask(ITEM_UNITS) && query_keep_wants(&r->keep) &&
           r->source->next(r->source, &item))
        TRY(consider(r, &item));
    return NULL;
}

static struct err *run_all(struct run *r, struct arena *a, struct query_result *out_result)
{
    struct query_result result;

    TRY(offer_all(r));
    query_keep_result(&r->keep, a, &result);
    for (size_t i = 0; i < result.count && budget_ask(ITEM_UNITS); i++)
        TRY(finish_item(r, &result.items[i], a));
    *out_result = result;
    return NULL;
}

/* ---- all there is ---- */

/* Neither tested nor sorted nor cut: the result is what the source has. */
static bool takes_all(const struct query *q, const struct query_source *source)
{
    return (q->conditions.count == 0 || source->holds) && q->is_plain && !hides(q) &&
           !q->meta.has_limit && q->meta.offset == 0;
}

/* Without what the pipeline needs: GET of one entity costs a quarter less. */
static void take_all(struct query_source *source, struct arena *a, struct query_result *out_result)
{
    struct query_result result = {.items = NULL};
    struct query_item item = {.object = NULL};
    size_t size = 0;

    while (budget_ask(16) && source->next(source, &item)) {
        if (source->render != NULL)
            item.json = source->render(source, &item, a);
        if (result.count == size) {
            size_t bytes = size * sizeof(item);

            size = MAX(4, 2 * size);
            result.items = arena_grow(a, result.items, bytes, size * sizeof(item));
        }
        result.items[result.count++] = item;
    }
    result.total = result.count;
    *out_result = result;
}

struct err *query_run(const struct query *q, struct query_source *source, bool objects_only,
                      struct arena *a, struct query_result *out_result)
{
    struct run r;
    struct err *e;

    if (takes_all(q, source)) {
        take_all(source, a, out_result);
        return NULL;
    }
    run_init(&r, q, source, objects_only);
    e = run_all(&r, a, out_result);
    run_done(&r);
    return e;
}

struct err *query_count(const struct query *q, struct query_source *source, size_t *out_count)
{
    struct run r;
    struct err *e;

    run_init(&r, q, source, false);
    r.keep.counts_only = true;
    e = offer_all(&r);
    if (e == NULL)
        *out_count = query_keep_count(&r.keep);
    run_done(&r);
    return e;
}

/* ---- a filter ---- */

struct query_filter {
    struct run run;
};

bool query_can_filter(const struct query *q)
{
    return q->conditions.count > 0 || q->meta.search_count > 0;
}

uint64_t query_enough(const struct query *q)
{
    struct query_keep keep;

    query_keep_init(&keep, &q->meta);
    keep.counts_all = q->counts_all;
    keep.goes_back = goes_back(q, q->meta.distinct);
    return query_keep_enough(&keep);
}

struct query_filter *query_filter_new(const struct query *q, struct query_source *source,
                                      bool objects_only)
{
    struct query_filter *f = NEW(struct query_filter);
    struct run *r = &f->run;

    run_init(r, q, source, objects_only);
    r->is_distinct = false;
    r->parses = decides_by_members(r);
    return f;
}

void query_filter_free(struct query_filter *f)
{
    if (f == NULL)
        return;
    run_done(&f->run);
    mem_free(f);
}

struct err *query_filter_passes(struct query_filter *f, const struct query_item *item,
                                bool *out_passes)
{
    struct json_doc original = {.nodes = NULL};

    return test_item(&f->run, item, &original, out_passes);
}
