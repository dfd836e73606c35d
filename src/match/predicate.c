/* Where things are found.
 *
 * An equality: by its canonical value, and by its text when it has one, each in a hash map. Those
 * of one value that differ in text form a ring, of which the map knows one: `Zip=1` and `Zip=1.0`
 * both hold for the number 1, but of the strings "1" and "1.0" for one each.
 *
 * A range: in the interval tree of its path and kind, shown while it is waited for.
 *
 * An equality that is waited for not to hold: in the list `unequals` of its path. All of them come
 * true but the few that the path's value finds, so no index could save anything.
 *
 * predicate_match.c tells what an entity costs. */
#include "predicate_private.h"

#include "base/mem.h"
#include "base/must.h"
#include "query/condition.h"
#include "query/conditions.h"

#include <string.h>

/* ---- memory ---- */

void *predicates_alloc(struct predicates *set, size_t n)
{
    set->bytes += n;
    return mem_zero(n);
}

void predicates_drop(struct predicates *set, void *p, size_t n)
{
    MUST(set->bytes >= n);
    set->bytes -= n;
    mem_free(p);
}

/* ---- the set ---- */

static struct span value_key_of(const void *item)
{
    const struct equality *e = item;

    return span_of(e->bytes, e->value_bytes);
}

static struct span text_key_of(const void *item)
{
    const struct equality *e = item;

    return span_of(e->bytes + e->value_bytes - sizeof(e->base.path),
                   sizeof(e->base.path) + e->text_bytes);
}

struct predicates *predicates_new(void)
{
    struct predicates *set = NEW(struct predicates);

    map_init(&set->paths, predicate_path_key_of);
    map_init(&set->values, value_key_of);
    map_init(&set->texts, text_key_of);
    map_init(&set->first_steps, predicate_step_key_of);
    list_init(&set->waited);
    list_init(&set->waited_on_null);
    buf_init(&set->key, BUF_NO_CAP);
    return set;
}

void predicates_free(struct predicates *set)
{
    if (set == NULL)
        return;
    MUST(set->count == 0);
    map_done(&set->paths);
    map_done(&set->values);
    map_done(&set->texts);
    map_done(&set->first_steps);
    buf_done(&set->key);
    mem_free(set);
}

static struct predicate_test test_of(struct predicate *p, bool negated)
{
    return (struct predicate_test){(uintptr_t)p | (negated ? PREDICATE_NEGATED : 0)};
}

static void init_base(struct predicates *set, struct predicate *p, struct predicate_path *path,
                      enum literal_kind kind)
{
    p->path = path;
    p->kind = (uint8_t)kind;
    path->refs++;
    set->count++;
}

/* ---- equalities ---- */

static size_t equality_bytes(const struct equality *e)
{
    return sizeof(*e) + e->value_bytes + e->text_bytes;
}

static void join_ring(struct equality *e, struct equality *other)
{
    e->next = other;
    e->previous = other->previous;
    e->previous->next = e;
    other->previous = e;
}

static void quit_ring(struct equality *e)
{
    e->previous->next = e->next;
    e->next->previous = e->previous;
}

/* The map must know the one without text, so that it is found without a walk around the ring. */
static void add_by_value(struct predicates *set, struct equality *e)
{
    struct equality *known = map_find(&set->values, value_key_of(e));

    e->next = e->previous = e;
    if (known != NULL)
        join_ring(e, known);
    if (known == NULL || e->text_bytes == 0)
        map_put(&set->values, e);
}

static void remove_by_value(struct predicates *set, struct equality *e)
{
    if (map_find(&set->values, value_key_of(e)) == e) {
        if (e->next == e)
            map_remove(&set->values, value_key_of(e));
        else
            map_put(&set->values, e->next);
    }
    quit_ring(e);
}

static struct equality *equality_new(struct predicates *set, struct predicate_path *path,
                                     const struct literal *literal)
{
    struct span key = predicate_key(set, path, literal);
    struct span text = literal->also_text ? literal->text : span_of(NULL, 0);
    struct equality *e = predicates_alloc(set, sizeof(*e) + key.n + text.n);

    init_base(set, &e->base, path, literal->kind);
    e->value_bytes = (uint32_t)key.n;
    e->text_bytes = (uint32_t)text.n;
    memcpy(e->bytes, key.p, key.n);
    if (text.n > 0)
        memcpy(e->bytes + key.n, text.p, text.n);
    add_by_value(set, e);
    if (text.n > 0)
        map_add(&set->texts, e);
    path->equalities[literal->kind]++;
    path->texts += text.n > 0;
    set->longest = MAX(set->longest, MAX(key.n, text.n));
    return e;
}

static struct equality *equality_find(struct predicates *set, const struct predicate_path *path,
                                      const struct literal *literal)
{
    struct equality *e;

    if (literal->also_text)
        return map_find(&set->texts, predicate_key_text(set, path, literal->text));
    e = map_find(&set->values, predicate_key(set, path, literal));
    return e != NULL && e->text_bytes == 0 ? e : NULL;
}

static struct predicate *equality_ref(struct predicates *set, struct predicate_path *path,
                                      const struct literal *literal)
{
    struct equality *e = equality_find(set, path, literal);

    if (e == NULL)
        e = equality_new(set, path, literal);
    e->base.refs++;
    return &e->base;
}

static void equality_free(struct predicates *set, struct equality *e)
{
    struct predicate_path *path = e->base.path;

    MUST(e->base.waiting == NULL && e->unequal == NULL);
    remove_by_value(set, e);
    if (e->text_bytes > 0)
        map_remove(&set->texts, text_key_of(e));
    path->equalities[e->base.kind]--;
    path->texts -= e->text_bytes > 0;
    predicates_drop(set, e, equality_bytes(e));
}

/* ---- ranges ---- */

static size_t range_bytes(const struct range *r)
{
    return sizeof(*r) + r->interval.low.count + r->interval.high.count;
}

/* The same cut with its bytes copied to *end, which moves behind them. */
static struct cut copy_cut(const struct cut *c, char **end)
{
    struct cut copy = *c;

    copy.bytes = *end;
    if (c->count > 0)
        memcpy(*end, c->bytes, c->count);
    *end += c->count;
    return copy;
}

static struct range *range_new(struct predicates *set, const struct range_draft *draft)
{
    struct range *r = predicates_alloc(set, sizeof(*r) + draft->low.count + draft->high.count);
    char *end = r->bytes;

    init_base(set, &r->base, draft->path, draft->kind);
    r->base.is_range = true;
    r->interval.low = copy_cut(&draft->low, &end);
    r->interval.high = copy_cut(&draft->high, &end);
    interval_add(&draft->path->ranges[draft->kind], &r->interval);
    return r;
}

static struct predicate *range_ref(struct predicates *set, const struct range_draft *draft)
{
    struct interval *found =
        interval_find(&draft->path->ranges[draft->kind], &draft->low, &draft->high);
    struct range *r =
        found != NULL ? CONTAINER_OF(found, struct range, interval) : range_new(set, draft);

    r->base.refs++;
    return &r->base;
}

static void range_free(struct predicates *set, struct range *r)
{
    MUST(r->base.waiting == NULL);
    interval_remove(&r->base.path->ranges[r->base.kind], &r->interval);
    predicates_drop(set, r, range_bytes(r));
}

/* ---- conditions ---- */

static bool is_order(enum uri_op op)
{
    return op != URI_EQ && op != URI_NE;
}

/* Null and booleans have no order, so nothing lies before or behind them. */
static bool can_hold(const struct conditions *c)
{
    for (size_t i = 0; i < c->count; i++) {
        enum literal_kind kind = c->items[i].literal.kind;

        if (is_order(c->items[i].op) && (kind == LITERAL_NULL || kind == LITERAL_BOOLEAN))
            return false;
    }
    return true;
}

/* One selector's conditions being turned into tests. */
struct reading {
    struct predicates *set;
    struct arena memory; /* of the drafts and their bytes */
    struct range_draft *drafts;
    struct predicate_test *tests;
    size_t count;
};

static void add_test(struct reading *r, struct predicate *p, bool negated)
{
    r->tests[r->count++] = test_of(p, negated);
}

static struct range_draft *draft_get(struct reading *r, struct predicate_path *path,
                                     enum literal_kind kind)
{
    struct range_draft *draft = path->drafts[kind];

    if (draft == NULL) {
        draft = ARENA_NEW(&r->memory, struct range_draft);
        *draft = (struct range_draft){r->drafts, path, kind, cut_least(), cut_most()};
        r->drafts = draft;
        path->refs++;
        /* Of any element, each ordering may be met by another one: they stay apart. */
        if (!path->path.has_any)
            path->drafts[kind] = draft;
    }
    return draft;
}

static void narrow(struct reading *r, struct predicate_path *path, const struct condition *c)
{
    enum literal_kind kind = c->literal.kind;
    struct range_draft *draft = draft_get(r, path, kind);
    const struct interval_tree *tree = &path->ranges[kind];
    struct span key = predicate_key(r->set, path, &c->literal);
    struct span canonical = arena_copy(&r->memory, predicate_key_canonical(key));
    bool keeps_equal = c->op == URI_GE || c->op == URI_LE;
    bool is_low = c->op == URI_GT || c->op == URI_GE;
    struct cut cut = cut_at(predicate_key_rank(kind, canonical), canonical,
                            is_low == keeps_equal ? CUT_BEFORE : CUT_AFTER);

    if (is_low && cut_cmp(tree, &cut, &draft->low) > 0)
        draft->low = cut;
    else if (!is_low && cut_cmp(tree, &cut, &draft->high) < 0)
        draft->high = cut;
}

static void read_condition(struct reading *r, const struct condition *c)
{
    struct predicate_path *path = predicate_path_ref(r->set, &c->path);

    if (is_order(c->op))
        narrow(r, path, c);
    else
        add_test(r, equality_ref(r->set, path, &c->literal), c->op == URI_NE);
    predicate_path_unref(r->set, path);
}

bool predicates_add(struct predicates *set, const struct conditions *c,
                    struct predicate_test *out_tests, size_t *out_count)
{
    struct reading r = {.set = set, .tests = out_tests};

    if (!can_hold(c))
        return false;
    for (size_t i = 0; i < c->count; i++)
        read_condition(&r, &c->items[i]);
    for (struct range_draft *draft = r.drafts; draft != NULL; draft = draft->next) {
        add_test(&r, range_ref(set, draft), false);
        draft->path->drafts[draft->kind] = NULL;
        predicate_path_unref(set, draft->path);
    }
    arena_done(&r.memory);
    *out_count = r.count;
    return true;
}

void predicates_release(struct predicates *set, struct predicate_test test)
{
    struct predicate *p = predicate_of(test);
    struct predicate_path *path = p->path;

    MUST(p->refs > 0);
    if (--p->refs > 0)
        return;
    if (p->is_range)
        range_free(set, range_of(p));
    else
        equality_free(set, equality_of(p));
    set->count--;
    predicate_path_unref(set, path);
}

/* ---- waiting ---- */

void *predicates_waiting(struct predicate_test test)
{
    struct predicate *p = predicate_of(test);

    if (!is_negated(test))
        return p->waiting;
    return equality_of(p)->unequal != NULL ? equality_of(p)->unequal->waiting : NULL;
}

static bool null_satisfies(struct predicate_test test)
{
    const struct predicate *p = predicate_of(test);

    return !p->is_range && (p->kind == LITERAL_NULL) != is_negated(test);
}

static void unequal_new(struct predicates *set, struct equality *e)
{
    e->unequal = predicates_alloc(set, sizeof(*e->unequal));
    e->unequal->equality = e;
    list_push_back(&e->base.path->unequals, &e->unequal->link);
}

static void unequal_free(struct predicates *set, struct equality *e)
{
    list_remove(&e->base.path->unequals, &e->unequal->link);
    predicates_drop(set, TAKE(e->unequal), sizeof(*e->unequal));
}

static void begin_wait(struct predicates *set, struct predicate_test test)
{
    struct predicate *p = predicate_of(test);

    if (p->is_range)
        interval_show(&p->path->ranges[p->kind], &range_of(p)->interval, true);
    else if (is_negated(test))
        unequal_new(set, equality_of(p));
    predicate_path_wait(set, p->path, null_satisfies(test));
}

static void end_wait(struct predicates *set, struct predicate_test test)
{
    struct predicate *p = predicate_of(test);

    if (p->is_range)
        interval_show(&p->path->ranges[p->kind], &range_of(p)->interval, false);
    else if (is_negated(test))
        unequal_free(set, equality_of(p));
    predicate_path_leave(set, p->path, null_satisfies(test));
}

void predicates_wait(struct predicates *set, struct predicate_test test, void *first)
{
    struct predicate *p = predicate_of(test);
    bool waited = predicates_waiting(test) != NULL;

    if (!waited && first == NULL)
        return;
    if (!waited)
        begin_wait(set, test);
    if (is_negated(test))
        equality_of(p)->unequal->waiting = first;
    else
        p->waiting = first;
    if (first == NULL)
        end_wait(set, test);
}

/* An equality is one of as many values as the path is compared with, and all others. A range with
 * two ends is narrow more often than wide; with one end it may be anything. What must differ nearly
 * always does. */
size_t predicates_rarity(struct predicate_test test)
{
    const struct predicate *p = predicate_of(test);
    const struct interval *i;
    size_t values = 1;

    if (is_negated(test))
        return 1;
    if (p->is_range) {
        i = &range_of(predicate_of(test))->interval;
        return i->low.side != CUT_LEAST && i->high.side != CUT_MOST ? 8 : 2;
    }
    for (enum literal_kind kind = 0; kind < LITERAL_KINDS; kind++)
        values += p->path->equalities[kind];
    return values;
}

void predicates_stats(const struct predicates *set, struct predicates_stats *out_stats)
{
    *out_stats = (struct predicates_stats){
        .evaluated = set->evaluated,
        .count = set->count,
        .bytes = sizeof(*set) + set->bytes + set->key.size + map_bytes(&set->paths) +
                 map_bytes(&set->values) + map_bytes(&set->texts) + map_bytes(&set->first_steps),
    };
}
