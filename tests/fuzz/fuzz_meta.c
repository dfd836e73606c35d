/* Meta-conditions. The first byte of the input picks the shape and the kind of source, the rest is
 * conditions/meta-conditions. What is understood is run over a few entities, in one go and in
 * parts: the page is a piece of the whole, which is in order, distinct, and holds what it should.
 */
#include "fuzzing.h"
#include "query/meta_items.h"
#include "query/query.h"
#include "query/source.h"
#include "query/uri.h"
#include "query/value_key.h"
#include "shapes.h"
#include "json/json.h"

enum { CONDITIONS_MOST = 16, EXPRESSION_BYTES_MOST = 12 };

static const struct span entities[] = {
    SPAN_INIT("{\"Id\":\"a\",\"Name\":\"Cleo\",\"Age\":30,\"Tame\":true,\"Born\":\"2020-02-29\"}"),
    SPAN_INIT("{\"Id\":\"b\",\"Name\":\"ada\",\"Age\":30.0,\"Weight\":1e400,\"Tags\":[1,\"x\"]}"),
    SPAN_INIT("{\"Id\":\"c\",\"Name\":null,\"Age\":null,\"Home\":{\"Zip\":\"1\",\"Born\":2}}"),
    SPAN_INIT("{\"Age\":3e1,\"Id\":\"a\",\"Tame\":true,\"Name\":\"\\u0043leo\","
              "\"Born\":\"2020-02-29\"}"),
    SPAN_INIT("{\"Id\":\"e\"}"),
    SPAN_INIT("{\"Id\":\"\",\"Name\":\"\xc3\xa9\\u00e9\",\"Weight\":-0.0,\"Tame\":false}"),
    SPAN_INIT("{\"Id\":\"d\",\"Dog\":{\"Name\":\"Bo\",\"Legs\":4},"
              "\"Dogs\":[{\"Name\":\"Bo\"},{\"Legs\":3}]}"),
    SPAN_INIT("{\"Born\":\"2020-02-29T01:00:00+01:00\",\"Name\":\"Cleo\",\"name\":\"other\"}"),
    SPAN_INIT("{\"Born\":\"soon\",\"Weight\":0,\"Visits\":7,\"Length\":1}"),
    SPAN_INIT("{\"Born\":\"1999-12-31 23:59\",\"Age\":-5,\"Name\":\"cleo\",\"Tags\":[]}"),
};
enum { ENTITIES = ARRAY_LEN(entities) };

/* ---- a source ---- */

struct list {
    struct query_source source;
    size_t next;
};

static bool list_next(struct query_source *source, struct query_item *out_item)
{
    struct list *list = CONTAINER_OF(source, struct list, source);

    if (list->next == ENTITIES)
        return false;
    *out_item = (struct query_item){entities[list->next], (void *)(uintptr_t)list->next};
    list->next++;
    return true;
}

static bool list_next_object(struct query_source *source, struct query_item *out_item)
{
    bool is_there = list_next(source, out_item);

    out_item->json = span_of(NULL, 0);
    return is_there;
}

static size_t place_of(const struct query_item *item)
{
    return (size_t)(uintptr_t)item->object;
}

static struct span list_render(struct query_source *source, const struct query_item *item,
                               struct arena *a)
{
    (void)source;
    return arena_copy(a, entities[place_of(item)]);
}

static struct span list_hidden(struct query_source *source, const struct query_item *item,
                               const struct property *property, struct arena *a)
{
    (void)source;
    MUST(span_eq(property->name, SPAN("Visits")));
    return arena_printf(a, "%zu", place_of(item));
}

struct how {
    bool renders, objects_only;
};

static struct err *run(const struct query *q, struct how how, struct arena *a,
                       struct query_result *out_result)
{
    struct list list = {.source = {.next = list_next, .hidden = list_hidden}};

    if (how.renders) {
        list.source.next = list_next_object;
        list.source.render = list_render;
    }
    return query_run(q, &list.source, how.objects_only, a, out_result);
}

/* ---- what must hold of a result ---- */

static struct json_value parse(struct span text, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    MUST(json_parse(text, NULL, a, doc) == NULL);
    return json_root(doc);
}

/* With what is hidden of it. */
static struct json_value original_at(size_t place, struct arena *a)
{
    struct span text = entities[place];

    return parse(
        arena_printf(a, "%.*s,\"Visits\":%zu}", SPAN_FMT(span_sub(text, 0, text.n - 1)), place), a);
}

static struct json_value original(const struct query_item *item, struct arena *a)
{
    MUST(place_of(item) < ENTITIES);
    return original_at(place_of(item), a);
}

static int value_cmp(const struct value *a, const struct value *b, enum value_type type)
{
    struct value_key x = value_key(a, type), y = value_key(b, type);

    return value_key_cmp(&x, &y);
}

static int naive_cmp(const struct meta *m, const struct query_item *x, const struct query_item *y,
                     struct arena *a)
{
    for (size_t i = 0; i < m->order_count; i++) {
        const struct path *path = &m->orders[i].path;
        struct value v = path_read(path, original(x, a), a);
        struct value w = path_read(path, original(y, a), a);
        int order = value_cmp(&v, &w, path->type);

        if (order != 0)
            return m->orders[i].descending ? -order : order;
    }
    return place_of(x) < place_of(y) ? -1 : 1;
}

static void check_order(const struct meta *m, const struct query_result *r, struct arena *a)
{
    for (size_t i = 1; i < r->count; i++)
        MUST(naive_cmp(m, &r->items[i - 1], &r->items[i], a) < 0);
}

static void check_distinct(const struct query_result *r, struct arena *a)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = 0; j < i; j++)
            MUST(!json_equal(parse(r->items[i].json, a), parse(r->items[j].json, a)));
}

static bool naive_search(const struct meta_search *s, const struct query_item *item,
                         struct arena *a)
{
    struct value value;

    if (!s->has_property)
        return span_find(entities[place_of(item)], s->text) != SIZE_MAX;
    value = path_read(&s->property, original(item, a), a);
    return value.kind != VALUE_NULL && span_find(value.text, s->text) != SIZE_MAX;
}

static void check_item(const struct query *q, const struct query_item *item, struct arena *a)
{
    MUST(json_type(parse(item->json, a)) == JSON_OBJECT);
    MUST(conditions_hold(&q->conditions, original(item, a), a));
    for (size_t i = 0; i < q->meta.search_count; i++)
        if (q->meta.searches[i].regex == NULL)
            MUST(naive_search(&q->meta.searches[i], item, a));
}

/* How many come that way when nothing but the conditions is asked. */
static size_t naive_count(const struct query *q, struct arena *a)
{
    size_t count = 0;

    for (size_t i = 0; i < ENTITIES; i++)
        count += conditions_hold(&q->conditions, original_at(i, a), a);
    return count;
}

static void check_whole(const struct query *q, struct how how, const struct query_result *whole,
                        struct arena *a)
{
    bool is_distinct = q->meta.distinct && !how.objects_only;

    MUST(!whole->more && whole->count <= ENTITIES);
    for (size_t i = 0; i < whole->count; i++)
        check_item(q, &whole->items[i], a);
    check_order(&q->meta, whole, a);
    if (is_distinct)
        check_distinct(whole, a);
    else if (q->meta.search_count == 0)
        MUST(whole->count == naive_count(q, a));
}

/* Offset and limit of the protocol, done on the whole. */
static void check_page(const struct meta *m, const struct query_result *whole,
                       const struct query_result *page)
{
    int64_t n = (int64_t)whole->count;
    int64_t from = m->offset >= 0 ? MIN(m->offset, n) : MAX(m->offset, -n) + n;
    bool is_limited = m->has_limit && m->limit >= 0;
    int64_t count = is_limited ? MIN(m->limit, n - from) : n - from;

    MUST(page->count == (size_t)count);
    MUST(page->more == (is_limited && m->limit > 0 && m->limit < n - from));
    for (size_t i = 0; i < page->count; i++) {
        MUST(page->items[i].object == whole->items[(size_t)from + i].object);
        MUST(span_eq(page->items[i].json, whole->items[(size_t)from + i].json));
    }
}

/* ---- the whole ---- */

static void check_run(const struct query *q, struct how how, struct arena *a)
{
    struct how other = {!how.renders, how.objects_only};
    struct query all = *q;
    struct query_result page, whole, same;
    struct err *e = run(q, how, a, &page);

    all.meta.offset = 0;
    all.meta.has_limit = false;
    all.meta.limit = 0;
    if (e == NULL)
        e = run(&all, how, a, &whole);
    if (e == NULL)
        e = run(q, other, a, &same);
    if (e != NULL) { /* an expression that takes too much work, or a name that another has */
        MUST(err_code(e) == ERR_INVALID_META_SYNTAX &&
             (q->meta.search_count > 0 || q->meta.rename_count > 0));
        err_free(e);
        return;
    }
    check_whole(&all, how, &whole, a);
    check_page(&q->meta, &whole, &page);
    check_page(&q->meta, &whole, &same);
}

/* Long expressions may take half a second each: they are compiled, but not run. */
static bool is_quick(const struct meta *m)
{
    for (size_t i = 0; i < m->search_count; i++)
        if (m->searches[i].regex != NULL && m->searches[i].text.n > EXPRESSION_BYTES_MOST)
            return false;
    return true;
}

static void check_bounds(const struct meta *m)
{
    const size_t counts[] = {m->order_count,  m->select_count, m->add_count,
                             m->rename_count, m->search_count, m->safepost_count};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        MUST(counts[i] <= META_ITEMS_MOST);
    for (size_t i = 0; i < m->safepost_count; i++)
        MUST(!path_is_hidden(&m->safeposts[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned choices = input_byte(&in);
    struct how how = {(choices & 2) != 0, (choices & 4) != 0};
    struct arena a;
    struct query query;
    struct uri uri;
    struct err *e;

    arena_init(&a);
    e = uri_parse(arena_printf(&a, "/x/%.*s", SPAN_FMT(input_rest(&in))), SPAN("/"),
                  CONDITIONS_MOST, &a, &uri);
    if (e == NULL)
        e = query_parse(&uri, choices & 1 ? &shapes_declared : &shapes_dynamic, &a, &query);
    if (e == NULL) {
        check_bounds(&query.meta);
        if (is_quick(&query.meta))
            check_run(&query, how, &a);
        query_done(&query);
    }
    err_free(e);
    arena_done(&a);
    return 0;
}
