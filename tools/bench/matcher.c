/* What matching costs: nanoseconds of the processor an event beyond parsing it, nanoseconds to add
 * and to remove a selector, bytes a selector, for growing numbers of selectors on one event
 * resource; then the same when each hundredth has a pattern that covers it (match/scopes.h).
 *
 *     bench_matcher [COUNT...]          default: 100 10000 100000 1000000
 *
 * The selectors are a mix of equalities, ranges with one end and with two, inequalities, lengths
 * and nulls, two conditions each but for every eighth. Each event satisfies five of them. Events
 * differ, so that little of what one needs is in the processor's caches from the one before. */
#include "match/matcher.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "match/scopes.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "query/shape.h"
#include "query/uri.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

enum { EVENTS = 1000, ROUNDS = 7, KINDS = 8, COUNT_MAX = 100000000 };

static const char *const forms[KINDS] = {
    "CustomerId=#&Amount>100", "Amount>=#&Amount<#",
    "Country!='SE'&OrderNo=#", "Sku='S#'&Name.Length>1",
    "Deleted=null&Weight>#",   "Score<-#",
    "Email!=null&Stock<-#",    "Name='N#'",
};

static const char event_form[] =
    "{\"CustomerId\":%zu,\"Amount\":%zu,\"OrderNo\":%zu,\"Sku\":\"S%zu\",\"Name\":\"N%zu\","
    "\"Country\":\"NO\",\"Email\":\"someone@example.com\",\"Weight\":1.5,\"Score\":3,"
    "\"Stock\":4,\"At\":\"2026-01-31T12:00:00Z\",\"Lines\":[{\"Sku\":\"a\"},{\"Sku\":\"b\"}],"
    "\"Note\":\"left at the door\",\"Paid\":true}";

static const struct shape dynamic = {.dynamic = true};

static struct uri_condition condition(struct span text)
{
    size_t key = 0, sign;

    while (span_find_char(SPAN("=!<>"), text.p[key], 0) == 4)
        key++;
    sign = 1 + (text.p[key + 1] == '=');
    for (enum uri_op op = URI_EQ; op <= URI_GE; op++)
        if (span_eq(span_sub(text, key, key + sign), span_str(uri_op_text(op))))
            return (struct uri_condition){span_sub(text, 0, key), op,
                                          span_sub(text, key + sign, text.n)};
    abort();
}

/* The number takes the place of each '#'; of the second one, the number after it. */
static struct conditions selector(size_t number, struct arena *a)
{
    const char *form = forms[number % KINDS];
    struct uri_condition list[2];
    struct conditions conditions;
    struct span rest;
    struct buf text;
    size_t count = 0;

    buf_init(&text, BUF_NO_CAP);
    for (; *form != '\0'; form++) {
        if (*form == '#')
            buf_add_u64(&text, number++);
        else
            buf_add_char(&text, *form);
    }
    rest = arena_copy(a, buf_span(&text));
    buf_done(&text);
    while (rest.n > 0)
        list[count++] = condition(span_split(&rest, '&'));
    if (conditions_parse(list, count, &dynamic, a, &conditions) != NULL)
        abort();
    return conditions;
}

/* A selector number of that kind, below `count`. */
static size_t pick(size_t kind, size_t count)
{
    return rng_below(count / KINDS) * KINDS + kind;
}

static void make_events(struct json_doc *docs, size_t count, struct arena *a)
{
    for (size_t i = 0; i < EVENTS; i++) {
        struct span text = arena_printf(a, event_form, pick(0, count), pick(1, count),
                                        pick(2, count), pick(3, count), pick(7, count));

        if (json_parse(text, NULL, a, &docs[i]) != NULL)
            abort();
    }
}

/* What events are put to. */
struct target {
    struct matcher *m;
    struct scopes *patterns; /* NULL: there are none */
    struct scope **scopes;   /* of the entries that have one */
};

enum { EACH_PATTERN = 100 };

static void add(struct target *t, struct matcher_entry *entries, size_t i,
                const struct conditions *conditions)
{
    static const struct span patterns[] = {SPAN_INIT("*"), SPAN_INIT("shop.*"),
                                           SPAN_INIT("shop.paid")};
    const struct span nobody = {NULL, 0};

    if (t->patterns != NULL && i % EACH_PATTERN == 0)
        t->scopes[i] = scopes_add(t->patterns, patterns[i / EACH_PATTERN % ARRAY_LEN(patterns)],
                                  nobody, &entries[i], conditions);
    else
        matcher_add(t->m, &entries[i], conditions);
}

static void take_away(struct target *t, struct matcher_entry *entries, size_t i)
{
    const struct span nobody = {NULL, 0};

    if (t->patterns != NULL && t->scopes[i] != NULL)
        scopes_remove(t->patterns, t->scopes[i], nobody, &entries[i]);
    else
        matcher_remove(t->m, &entries[i]);
}

static void match(struct target *t, struct json_value payload, struct arena *a,
                  matcher_found_fn *on_found, size_t *found)
{
    const struct span nobody = {NULL, 0};

    matcher_match(t->m, payload, a, on_found, found);
    if (t->patterns != NULL)
        scopes_match(t->patterns, SPAN("shop.paid"), true, nobody, payload, a, on_found, found);
}

static void on_found(void *context, struct matcher_entry *e)
{
    (void)e;
    ++*(size_t *)context;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median of the rounds; the first, which fills the caches, is left out. */
static double time_events(struct target *t, const struct json_doc *docs, double *out_found)
{
    double rounds[ROUNDS];
    struct arena a;
    size_t found = 0;

    arena_init(&a);
    for (size_t round = 0; round <= ROUNDS; round++) {
        uint64_t start = clock_cpu_ns();

        found = 0;
        for (size_t i = 0; i < EVENTS; i++) {
            match(t, json_root(&docs[i]), &a, on_found, &found);
            arena_reset(&a);
        }
        if (round > 0)
            rounds[round - 1] = (double)(clock_cpu_ns() - start) / EVENTS;
    }
    arena_done(&a);
    qsort(rounds, ROUNDS, sizeof(*rounds), compare);
    *out_found = (double)found / EVENTS;
    return rounds[ROUNDS / 2];
}

/* Parsing the conditions is not part of the time. */
static double add_all(struct target *t, struct matcher_entry *entries, size_t count,
                      uint64_t *out_worst)
{
    uint64_t spent = 0, worst = 0;
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < count; i++) {
        struct conditions conditions = selector(i, &a);
        uint64_t start = clock_mono_ns(), took;

        add(t, entries, i, &conditions);
        took = clock_mono_ns() - start;
        spent += took;
        worst = took > worst ? took : worst;
        arena_reset(&a);
    }
    arena_done(&a);
    *out_worst = worst;
    return (double)spent / (double)count;
}

/* In an order of its own, so that caches do not help. */
static double remove_all(struct target *t, struct matcher_entry *entries, size_t count)
{
    size_t step = 7919; /* a prime that does not divide the counts used */
    uint64_t start = clock_mono_ns();

    for (size_t i = 0, at = 0; i < count; i++, at = (at + step) % count)
        take_away(t, entries, at);
    return (double)(clock_mono_ns() - start) / (double)count;
}

static void run(size_t count, bool has_patterns)
{
    struct matcher_entry *entries = mem_zero(count * sizeof(*entries));
    struct target t = {.m = matcher_new(), .patterns = has_patterns ? scopes_new() : NULL};
    struct json_doc docs[EVENTS];
    double event_ns, add_ns, remove_ns, found, bytes;
    size_t before = mem_bytes();
    uint64_t worst_add;
    struct arena a;

    t.scopes = has_patterns ? mem_zero(count * sizeof(struct scope *)) : NULL;
    add_ns = add_all(&t, entries, count, &worst_add);
    bytes = (double)(mem_bytes() - before) / (double)count + sizeof(*entries);
    arena_init(&a);
    make_events(docs, count, &a);
    event_ns = time_events(&t, docs, &found);
    remove_ns = remove_all(&t, entries, count);
    printf("%9zu %10.0f %8.1f %8.0f %10.1f %8.0f %8.0f\n", count, event_ns, found, add_ns,
           (double)worst_add / 1000, remove_ns, bytes);
    arena_done(&a);
    matcher_free(t.m);
    scopes_free(t.patterns);
    mem_free(t.scopes);
    mem_free(entries);
}

static bool run_all(int argc, char **argv, bool has_patterns)
{
    printf("selectors   ns/event    found   ns/add  worst, µs  ns/remove  bytes%s\n",
           has_patterns ? "   each hundredth has a pattern" : "");
    for (int i = 1; i < argc; i++) {
        uint64_t count;

        if (!span_to_u64(span_str(argv[i]), &count) || count < KINDS || count > COUNT_MAX)
            return false;
        run(count / KINDS * KINDS, has_patterns);
    }
    for (size_t count = 100; argc == 1 && count <= 1000000; count *= count == 100 ? 100 : 10)
        run(count / KINDS * KINDS, has_patterns);
    return true;
}

int main(int argc, char **argv)
{
    rng_seed(1);
    return run_all(argc, argv, false) && run_all(argc, argv, true) ? EXIT_SUCCESS : EXIT_FAILURE;
}
