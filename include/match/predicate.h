/* The predicates that many selectors share: each distinct one is kept once, however many refer to
 * it, and is worked out at most once an entity.
 *
 * Conditions become tests. `=` and `!=` of one literal are one predicate, tested for holding or for
 * not holding. The orderings of one path in one selector are one range from one end to another.
 *
 * A user may wait for a test: predicates_each then finds it when it comes true, in time that
 * follows what came true and not what is waited for. */
#ifndef MATCH_PREDICATE_H
#define MATCH_PREDICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct conditions;
struct json_value;

struct predicates;

/* One test; small, because selectors keep an array of them. */
struct predicate_test {
    uintptr_t bits; /* the predicate's address; the lowest bit is set when it must not hold */
};

struct predicates *predicates_new(void);
/* All tests must have been released. NULL is allowed. */
void predicates_free(struct predicates *set);

/* Writes the tests that together mean the conditions, at most as many as there are, each with a
 * reference for the caller. False, and no tests, when they can never hold, as `Age>null`. */
bool predicates_add(struct predicates *set, const struct conditions *c,
                    struct predicate_test *out_tests, size_t *out_count);
/* Gives the reference back. Nobody waits for the test by then, unless others refer to it. */
void predicates_release(struct predicates *set, struct predicate_test test);

/* The first of the user's objects that wait for this test; NULL: nobody waits. */
void *predicates_waiting(struct predicate_test test);
void predicates_wait(struct predicates *set, struct predicate_test test, void *first);
/* How seldom the test will hold, guessed from what it is: greater is rarer. */
size_t predicates_rarity(struct predicate_test test);

/* From now on everything is about this entity, which stays in place, as does the arena. */
void predicates_start(struct predicates *set, struct json_value entity, struct arena *a);
bool predicates_hold(struct predicates *set, struct predicate_test test);
/* Calls for every test that holds and that is waited for, in no particular order. Nothing but
 * predicates_hold and predicates_waiting may be called meanwhile. */
typedef void predicates_found_fn(void *context, void *first);
void predicates_each(struct predicates *set, predicates_found_fn *on_found, void *context);

struct predicates_stats {
    uint64_t evaluated; /* verdicts worked out, each at most once an entity */
    size_t count;
    size_t bytes;
};
void predicates_stats(const struct predicates *set, struct predicates_stats *out_stats);

#endif
