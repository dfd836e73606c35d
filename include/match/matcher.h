/* Which selectors does an event satisfy? One matcher an event resource holds the compiled
 * conditions of all its webhooks and answers in time that follows the matches, not the number of
 * selectors: each distinct predicate is evaluated at most once an entity, equality is found through
 * a hash, order through a tree, the rest through short lists (see predicate.h). A selector hangs
 * under its most selective predicate; when that holds, its others are looked at.
 *
 * Same verdicts as conditions_hold on every entity of the payload, which the tests compare. */
#ifndef MATCH_MATCHER_H
#define MATCH_MATCHER_H

#include "match/predicate.h"

struct arena;
struct conditions;
struct json_value;
struct matcher;

enum { MATCHER_FEW_TESTS = 2 };

/* Embedded in the owner, e.g. a webhook. Zeroed, it is in no matcher. */
struct matcher_entry {
    const struct predicate_test *node;     /* the test it hangs under; NULL: in no matcher */
    struct matcher_entry *next, *previous; /* that hang there too */
    uint64_t seen;                         /* the match it was last reported in */
    uint32_t test_count;
    union {
        struct predicate_test few[MATCHER_FEW_TESTS];
        struct predicate_test *many; /* when they are more */
    };
};

struct matcher *matcher_new(void);
/* The entries must have been removed. NULL is allowed. */
void matcher_free(struct matcher *m);
size_t matcher_count(const struct matcher *m);
/* The conditions are copied where needed. Under 50 µs in a matcher of a million entries. */
void matcher_add(struct matcher *m, struct matcher_entry *entry, const struct conditions *c);
void matcher_remove(struct matcher *m, struct matcher_entry *entry);

typedef void matcher_found_fn(void *context, struct matcher_entry *entry);
/* `payload` is an object, or an array of objects: an entry is found once when at least one of them
 * satisfies all its conditions. Entries without conditions are found always, also when `payload`
 * is absent (binary) or empty. In no particular order. `on_found` must not change the matcher. */
void matcher_match(struct matcher *m, struct json_value payload, struct arena *a,
                   matcher_found_fn *on_found, void *context);

/* Predicates evaluated and entries looked at since the matcher was made: for tests and metrics. */
struct matcher_stats {
    uint64_t events, evaluated, looked_at, found;
    size_t predicates;
    size_t bytes;
};
void matcher_stats(const struct matcher *m, struct matcher_stats *out_stats);

#endif
