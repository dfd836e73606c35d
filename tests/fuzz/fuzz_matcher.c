/* Selectors that come and go, and payloads, beside the naive search. Each line of the input is a
 * step: `+` and conditions add a selector, `*` likewise one over declared properties, `-` and a
 * byte remove one, anything else is a payload. The matcher finds what the naive search finds, and
 * so does each selector whose tests are looked at by themselves. */
#include "fuzzing.h"
#include "match/matcher.h"
#include "naive_match.h"
#include "query/uri.h"
#include "shapes.h"

enum { SELECTORS_MOST = 24, STEPS_MOST = 60, CONDITIONS_MOST = 8 };

struct selector {
    struct matcher_entry entry;
    struct conditions conditions;
    struct predicate_test tests[CONDITIONS_MOST];
    size_t test_count;
    bool is_there, is_possible;
    unsigned found;
};

struct crowd {
    struct selector selectors[SELECTORS_MOST];
    size_t count;
    struct matcher *matcher;
    struct predicates *set; /* of the tests that are looked at by themselves */
    struct arena conditions, scratch;
};

static struct err *parse(struct span text, const struct shape *shape, struct arena *a,
                         struct conditions *out_conditions)
{
    struct uri uri;

    TRY(uri_parse(arena_printf(a, "/x/%.*s", SPAN_FMT(text)), SPAN("/"), CONDITIONS_MOST, a, &uri));
    return conditions_parse(uri.conditions, uri.condition_count, shape, a, out_conditions);
}

/* What the matcher and the set are given is gone right after: they keep copies. */
static void add(struct crowd *c, struct span text, const struct shape *shape)
{
    struct selector *s = &c->selectors[c->count];
    struct conditions passing;
    struct arena a;
    struct err *e;

    if (c->count == SELECTORS_MOST)
        return;
    arena_init(&a);
    e = parse(text, shape, &a, &passing);
    if (e == NULL) {
        MUST(parse(text, shape, &c->conditions, &s->conditions) == NULL);
        matcher_add(c->matcher, &s->entry, &passing);
        s->is_possible = predicates_add(c->set, &passing, s->tests, &s->test_count);
        s->is_there = true;
        c->count++;
    }
    err_free(e);
    arena_done(&a);
}

static void take_away(struct crowd *c, struct selector *s)
{
    if (!s->is_there)
        return;
    matcher_remove(c->matcher, &s->entry);
    for (size_t i = 0; i < s->test_count && s->is_possible; i++)
        predicates_release(c->set, s->tests[i]);
    s->is_there = false;
}

static void on_found(void *context, struct matcher_entry *entry)
{
    (void)context;
    ++CONTAINER_OF(entry, struct selector, entry)->found;
}

static bool tests_hold(const struct crowd *c, const struct selector *s)
{
    bool all = s->is_possible;

    for (size_t i = 0; i < s->test_count && all; i++)
        all = predicates_hold(c->set, s->tests[i]);
    return all;
}

static void check_entity(struct crowd *c, struct json_value entity)
{
    predicates_start(c->set, entity, &c->scratch);
    for (size_t i = 0; i < c->count; i++)
        if (c->selectors[i].is_there)
            MUST(tests_hold(c, &c->selectors[i]) ==
                 conditions_hold(&c->selectors[i].conditions, entity, &c->scratch));
}

static void check_payload(struct crowd *c, struct json_value payload)
{
    for (size_t i = 0; i < c->count; i++)
        c->selectors[i].found = 0;
    matcher_match(c->matcher, payload, &c->scratch, on_found, NULL);
    for (size_t i = 0; i < c->count; i++) {
        const struct selector *s = &c->selectors[i];

        MUST(s->found == (s->is_there && naive_match(&s->conditions, payload, &c->scratch)));
    }
    if (json_type(payload) == JSON_OBJECT)
        check_entity(c, payload);
    for (struct json_value e = json_first(payload); json_exists(e); e = json_next(payload, e))
        check_entity(c, e);
}

/* An object, or an array of objects: nothing else is a payload. */
static bool is_payload(struct json_value v)
{
    if (json_type(v) != JSON_ARRAY)
        return json_type(v) == JSON_OBJECT;
    for (struct json_value e = json_first(v); json_exists(e); e = json_next(v, e))
        if (json_type(e) != JSON_OBJECT)
            return false;
    return true;
}

static void match(struct crowd *c, struct span text)
{
    struct json_doc doc;
    struct err *e = json_parse(text, NULL, &c->scratch, &doc);

    if (e == NULL && is_payload(json_root(&doc)))
        check_payload(c, json_root(&doc));
    err_free(e);
}

static void run_step(struct crowd *c, struct span line)
{
    struct span rest = span_sub(line, 1, line.n);

    if (span_starts(line, SPAN("+")))
        add(c, rest, &shapes_dynamic);
    else if (span_starts(line, SPAN("*")))
        add(c, rest, &shapes_declared);
    else if (span_starts(line, SPAN("-")) && rest.n > 0)
        take_away(c, &c->selectors[(unsigned char)rest.p[0] % SELECTORS_MOST]);
    else
        match(c, line);
    arena_reset(&c->scratch);
}

static void check_nothing_left(struct crowd *c)
{
    struct predicates_stats stats;

    for (size_t i = 0; i < c->count; i++)
        take_away(c, &c->selectors[i]);
    predicates_stats(c->set, &stats);
    MUST(matcher_count(c->matcher) == 0 && stats.count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    struct crowd c = {.matcher = matcher_new(), .set = predicates_new()};

    arena_init(&c.conditions);
    arena_init(&c.scratch);
    for (size_t i = 0; i < STEPS_MOST && in.n > 0; i++)
        run_step(&c, input_line(&in));
    check_payload(&c, (struct json_value){NULL, NULL});
    check_nothing_left(&c);
    matcher_free(c.matcher);
    predicates_free(c.set);
    arena_done(&c.conditions);
    arena_done(&c.scratch);
    return 0;
}
