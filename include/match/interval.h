/* A set of intervals over one total order, and the question which of them hold a point: in
 * O((1 + answers) log n), adding and removing in O(log n).
 *
 * An interval reaches from one cut to another. A cut lies just before or just after a point, or
 * beyond all points; so open, closed and unbounded ends are one thing and compare with one another.
 * A point is given as the cut before it. */
#ifndef MATCH_INTERVAL_H
#define MATCH_INTERVAL_H

#include "base/span.h"

enum cut_side { CUT_LEAST, CUT_BEFORE, CUT_AFTER, CUT_MOST };

struct cut {
    uint64_t rank; /* points of lesser rank are less; among equal ranks the bytes decide */
    const char *bytes;
    uint32_t count;
    uint8_t side;
};

struct cut cut_at(uint64_t rank, struct span bytes, enum cut_side side);
struct cut cut_least(void);
struct cut cut_most(void);

/* Embedded in the owner. The cuts' bytes are the owner's too and must stay in place. */
struct interval {
    struct cut low, high;
    struct interval *child[2]; /* left, right */
    struct interval *top;      /* of those shown in this subtree, the one with the highest end */
    uint8_t height;
    bool shown;
};

/* <0, 0, >0 for bytes of points of equal rank. */
typedef int interval_cmp_fn(struct span a, struct span b);

/* A zeroed one with `cmp` set is empty. */
struct interval_tree {
    interval_cmp_fn *cmp;
    struct interval *root;
};

int cut_cmp(const struct interval_tree *tree, const struct cut *a, const struct cut *b);
/* NULL when there is none from `low` to `high`. */
struct interval *interval_find(const struct interval_tree *tree, const struct cut *low,
                               const struct cut *high);
/* `added` has low and high set, and there is no other like it. It is not shown. */
void interval_add(struct interval_tree *tree, struct interval *added);
void interval_remove(struct interval_tree *tree, struct interval *removed);
/* Only what is shown is found by interval_stab; what is hidden costs it nothing. */
void interval_show(struct interval_tree *tree, struct interval *i, bool shown);
/* Does the interval hold the point? */
bool interval_holds(const struct interval_tree *tree, const struct interval *i,
                    const struct cut *point);
/* Calls for each shown interval that holds the point; `on_found` must not change the tree. */
typedef void interval_found_fn(void *context, struct interval *i);
void interval_stab(const struct interval_tree *tree, const struct cut *point,
                   interval_found_fn *on_found, void *context);

#endif
