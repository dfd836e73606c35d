/* What the files of `predicate` share: predicate.c keeps predicates, predicate_path.c the paths
 * that they read, predicate_key.c spells values, predicate_match.c holds an entity against all of
 * it. */
#ifndef MATCH_PREDICATE_PRIVATE_H
#define MATCH_PREDICATE_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "match/interval.h"
#include "match/predicate.h"
#include "query/literal.h"
#include "query/path.h"
#include "json/json.h"

#define LITERAL_KINDS (LITERAL_DATETIME + 1)

struct predicate {
    struct predicate_path *path;
    uint64_t memo; /* twice the number of the entity it is known for, plus one when it holds */
    void *waiting; /* the user's objects that wait for it to hold */
    uint32_t refs;
    uint8_t kind; /* enum literal_kind */
    bool is_range;
};

/* The path's value is this one. The bytes are two keys that overlap:
 *
 *     canonical value, kind, address of the path, text of the literal
 *     `------------- by value ----------------'
 *                            `---------- by text -------------------'
 *
 * Only a literal that is compared as text too has the last part. */
struct equality {
    struct predicate base;
    struct unequal *unequal; /* NULL: nobody waits for it not to hold */
    /* A ring of those that have one value and differ in text. */
    struct equality *next, *previous;
    uint32_t value_bytes;
    uint32_t text_bytes; /* 0: not by text */
    char bytes[];
};

/* What waits for an equality not to hold. */
struct unequal {
    struct list_link link; /* in the path's `unequals` */
    struct equality *equality;
    void *waiting;
};

/* The path's value lies between two cuts. */
struct range {
    struct predicate base;
    struct interval interval;
    uint64_t found; /* number of the entity it was found for last */
    char bytes[];   /* of the two cuts */
};

/* What the conditions of one selector leave of a path's values, while they are being read. */
struct range_draft {
    struct range_draft *next;
    struct predicate_path *path;
    enum literal_kind kind;
    struct cut low, high;
};

struct predicate_path {
    struct path path;
    size_t bytes;
    struct span key;
    uint32_t refs;
    /* What there is to look for, by kind of literal. */
    uint32_t equalities[LITERAL_KINDS];
    uint32_t texts;
    struct interval_tree ranges[LITERAL_KINDS];
    struct range_draft *drafts[LITERAL_KINDS];
    /* What is waited for. */
    uint32_t waits;
    uint32_t waits_on_null; /* those that null satisfies */
    struct list unequals;
    struct list_link waited_link, null_link, step_link;
    struct first_step *first_step;
    /* What is known of the entity of that number. */
    uint64_t entity;
    struct predicate_path *next_read;
    bool has_point[LITERAL_KINDS];
    struct cut points[LITERAL_KINDS];
    struct point *more[LITERAL_KINDS]; /* of a path that has_any: the others */
};

/* Where one more value of a path lies. */
struct point {
    struct point *next;
    struct cut cut;
};

/* The paths that are waited for and begin with this step. */
struct first_step {
    struct list paths;
    struct span key; /* folded */
};

/* An equality that holds and is waited for. */
struct held {
    struct held *next;
    struct equality *equality;
};

struct predicates {
    struct map paths;
    struct map values; /* of each ring one; the one that is not by text, if there is one */
    struct map texts;
    struct map first_steps;
    struct list waited;         /* paths with something that is waited for */
    struct list waited_on_null; /* with something that null satisfies */
    struct buf key;             /* being looked up */
    size_t longest;             /* literal there ever was: longer texts equal nothing */
    size_t count;
    size_t bytes;
    uint64_t evaluated;
    /* The entity it is all about. */
    uint64_t number;
    struct json_value entity;
    struct arena *arena;
    struct predicate_path *read; /* paths that are waited for and have been read */
    struct held *held;
};

#define PREDICATE_NEGATED ((uintptr_t)1)

static inline struct predicate *predicate_of(struct predicate_test test)
{
    return (struct predicate *)(test.bits & ~PREDICATE_NEGATED);
}

static inline bool is_negated(struct predicate_test test)
{
    return (test.bits & PREDICATE_NEGATED) != 0;
}

static inline struct equality *equality_of(struct predicate *p)
{
    return CONTAINER_OF(p, struct equality, base);
}

static inline struct range *range_of(struct predicate *p)
{
    return CONTAINER_OF(p, struct range, base);
}

/* ---- predicate.c ---- */

/* Counted in set->bytes. Zeroed. */
void *predicates_alloc(struct predicates *set, size_t n);
void predicates_drop(struct predicates *set, void *p, size_t n);

/* ---- predicate_key.c ---- */

/* Writes set->key and returns it: the key by value, which begins with the canonical value. */
struct span predicate_key(struct predicates *set, const struct predicate_path *path,
                          const struct literal *literal);
/* The key by text. */
struct span predicate_key_text(struct predicates *set, const struct predicate_path *path,
                               struct span text);
/* The canonical value of a key by value. */
struct span predicate_key_canonical(struct span key);
/* The order of canonical values, as for an interval_tree; and their rank (see struct cut). */
interval_cmp_fn *predicate_key_cmp(enum literal_kind kind);
uint64_t predicate_key_rank(enum literal_kind kind, struct span canonical);

/* ---- predicate_path.c ---- */

struct predicate_path *predicate_path_ref(struct predicates *set, const struct path *path);
void predicate_path_unref(struct predicates *set, struct predicate_path *path);
/* One more, or one less, test of it is waited for. */
void predicate_path_wait(struct predicates *set, struct predicate_path *path, bool null_satisfies);
void predicate_path_leave(struct predicates *set, struct predicate_path *path, bool null_satisfies);
/* The paths waited for whose first step is a member of this name; NULL: none. */
struct first_step *predicate_path_first_step(struct predicates *set, struct span name);
struct span predicate_path_key_of(const void *item);
struct span predicate_step_key_of(const void *item);

#endif
