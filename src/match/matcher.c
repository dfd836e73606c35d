/* Entries hang in lists, each under one of its own tests (predicate.h), which therefore is waited
 * for. An event is put to the predicates; for each test that comes true the list under it is gone
 * through, and an entry whose other tests hold as well is found. Verdicts are remembered for as
 * long as the entity lasts, so that a test shared by many entries is worked out once.
 *
 * Under which test? At first under the one that is likely to hold least often (predicates_rarity).
 * That is a guess, and events may prove it wrong: `Deleted=null&Amount>5000` hangs badly under
 * either when nothing is ever deleted, or everything is expensive. So an entry that was looked at
 * in vain may move under the test that failed it: the next event like this one does not meet it at
 * all. Whatever comes true often loses its entries in this way to what comes true seldom. Each
 * VAIN_PER_MOVE-th vain look pays for one move: events that waste little move nothing, the cost of
 * moving stays in proportion to the waste, and a crowd that hangs badly is gone after some dozens
 * of events. (Solvers of Boolean formulas watch literals likewise.)
 *
 * Cost of an entity, with p paths waited for, of which it has values, n predicates, h tests that
 * hold and are waited for, l entries under them: O(p log n + h + l) with at most three hash
 * look-ups a path. Of l, those in vain are what moving keeps small. Cost of adding or removing an
 * entry of t tests: O(t log n). No step is linear in n or in the number of entries; the hash maps
 * grow by slices. */
#include "match/matcher.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/conditions.h"
#include "json/json.h"

#define VAIN_PER_MOVE 16

struct matcher {
    struct predicates *predicates;
    struct matcher_entry *always, *never;
    size_t count;
    size_t bytes;    /* of the arrays of tests */
    uint64_t events; /* and the number of the current one */
    uint64_t looked_at, in_vain, found;
};

/* Where entries without tests hang, and those that nothing can satisfy. */
static const struct predicate_test always_node, never_node;

struct matcher *matcher_new(void)
{
    struct matcher *m = NEW(struct matcher);

    m->predicates = predicates_new();
    return m;
}

void matcher_free(struct matcher *m)
{
    if (m == NULL)
        return;
    MUST(m->count == 0);
    predicates_free(m->predicates);
    mem_free(m);
}

size_t matcher_count(const struct matcher *m)
{
    return m->count;
}

/* ---- lists ---- */

static struct matcher_entry *first_under(const struct matcher *m, const struct predicate_test *node)
{
    if (node == &always_node)
        return m->always;
    if (node == &never_node)
        return m->never;
    return predicates_waiting(*node);
}

static void set_first(struct matcher *m, const struct predicate_test *node,
                      struct matcher_entry *first)
{
    if (node == &always_node)
        m->always = first;
    else if (node == &never_node)
        m->never = first;
    else
        predicates_wait(m->predicates, *node, first);
}

static void hang(struct matcher *m, struct matcher_entry *e, const struct predicate_test *node)
{
    struct matcher_entry *first = first_under(m, node);

    e->node = node;
    e->previous = NULL;
    e->next = first;
    if (first != NULL)
        first->previous = e;
    set_first(m, node, e);
}

static void take_down(struct matcher *m, struct matcher_entry *e)
{
    if (e->next != NULL)
        e->next->previous = e->previous;
    if (e->previous != NULL)
        e->previous->next = e->next;
    else
        set_first(m, e->node, e->next);
    e->node = NULL;
    e->next = e->previous = NULL;
}

/* ---- entries ---- */

static const struct predicate_test *tests_of(const struct matcher_entry *e)
{
    return e->test_count <= MATCHER_FEW_TESTS ? e->few : e->many;
}

/* Gives the entry its tests. False when they can never hold. */
static bool take_tests(struct matcher *m, struct matcher_entry *e, const struct conditions *c)
{
    struct predicate_test *tests = mem_alloc(c->count * sizeof(*tests));
    size_t count = 0;
    bool possible = predicates_add(m->predicates, c, tests, &count);

    e->test_count = (uint32_t)count;
    if (count > MATCHER_FEW_TESTS) {
        m->bytes += count * sizeof(*tests);
        e->many = mem_resize(tests, count * sizeof(*tests));
        return possible;
    }
    for (size_t i = 0; i < count; i++)
        e->few[i] = tests[i];
    mem_free(tests);
    return possible;
}

static void drop_tests(struct matcher *m, struct matcher_entry *e)
{
    for (size_t i = 0; i < e->test_count; i++)
        predicates_release(m->predicates, tests_of(e)[i]);
    if (e->test_count > MATCHER_FEW_TESTS) {
        m->bytes -= e->test_count * sizeof(*e->many);
        mem_free(e->many);
    }
    *e = (struct matcher_entry){0};
}

static const struct predicate_test *rarest_test(const struct matcher_entry *e)
{
    const struct predicate_test *tests = tests_of(e), *rarest = &tests[0];

    for (size_t i = 1; i < e->test_count; i++)
        if (predicates_rarity(tests[i]) > predicates_rarity(*rarest))
            rarest = &tests[i];
    return rarest;
}

void matcher_add(struct matcher *m, struct matcher_entry *entry, const struct conditions *c)
{
    MUST(entry->node == NULL);
    entry->seen = 0;
    if (!take_tests(m, entry, c))
        hang(m, entry, &never_node);
    else if (entry->test_count == 0)
        hang(m, entry, &always_node);
    else
        hang(m, entry, rarest_test(entry));
    m->count++;
}

void matcher_remove(struct matcher *m, struct matcher_entry *entry)
{
    MUST(entry->node != NULL);
    take_down(m, entry);
    drop_tests(m, entry);
    m->count--;
}

/* ---- matching ---- */

/* An entry that will hang elsewhere once the entity has been gone through. */
struct move {
    struct move *next;
    struct matcher_entry *entry;
    const struct predicate_test *node;
};

struct match {
    struct matcher *m;
    struct arena *arena;
    matcher_found_fn *on_found;
    void *context;
    struct move *moves;
};

static const struct predicate_test *failing_test(const struct match *match,
                                                 const struct matcher_entry *e)
{
    const struct predicate_test *tests = tests_of(e);

    for (size_t i = 0; i < e->test_count; i++)
        if (&tests[i] != e->node && !predicates_hold(match->m->predicates, tests[i]))
            return &tests[i];
    return NULL;
}

static void note_move(struct match *match, struct matcher_entry *e,
                      const struct predicate_test *node)
{
    struct move *move = arena_alloc(match->arena, sizeof(*move));

    *move = (struct move){match->moves, e, node};
    match->moves = move;
}

static void look_at(struct match *match, struct matcher_entry *e)
{
    struct matcher *m = match->m;
    const struct predicate_test *failing;

    if (e->seen == m->events)
        return;
    m->looked_at++;
    failing = failing_test(match, e);
    if (failing == NULL) {
        e->seen = m->events;
        m->found++;
        match->on_found(match->context, e);
    } else if (++m->in_vain % VAIN_PER_MOVE == 0) {
        note_move(match, e, failing);
    }
}

static void on_list(void *context, void *first)
{
    for (struct matcher_entry *e = first; e != NULL && budget_ask(16); e = e->next)
        look_at(context, e);
}

static void move_entries(struct match *match)
{
    for (const struct move *move = match->moves; move != NULL; move = move->next) {
        take_down(match->m, move->entry);
        hang(match->m, move->entry, move->node);
    }
    match->moves = NULL;
}

static void match_entity(struct match *match, struct json_value entity)
{
    predicates_start(match->m->predicates, entity, match->arena);
    predicates_each(match->m->predicates, on_list, match);
    move_entries(match);
}

void matcher_match(struct matcher *m, struct json_value payload, struct arena *a,
                   matcher_found_fn *on_found, void *context)
{
    struct match match = {m, a, on_found, context, NULL};

    m->events++;
    on_list(&match, m->always);
    if (json_type(payload) != JSON_ARRAY && json_exists(payload))
        match_entity(&match, payload);
    for (struct json_value entity = json_first(payload); json_exists(entity) && budget_ask(64);
         entity = json_next(payload, entity))
        match_entity(&match, entity);
}

void matcher_stats(const struct matcher *m, struct matcher_stats *out_stats)
{
    struct predicates_stats predicates;

    predicates_stats(m->predicates, &predicates);
    *out_stats = (struct matcher_stats){
        .events = m->events,
        .evaluated = predicates.evaluated,
        .looked_at = m->looked_at,
        .found = m->found,
        .predicates = predicates.count,
        .bytes = sizeof(*m) + m->bytes + predicates.bytes,
    };
}
