/* Where to begin in a list whose members have ascending numbers: of every LADDER_STEP members one
 * is a rung. So the first one after a number is found in a few steps, however long the list, at the
 * cost of a few bytes a rung, and of nothing where no member is looked for.
 *
 * The list and its numbers are the caller's. Members are added at the end; any may go. */
#ifndef BASE_LADDER_H
#define BASE_LADDER_H

#include "base/list.h"

#include <stdint.h>

enum { LADDER_STEP = 256 };

struct ladder_rung {
    uint64_t number;
    struct list_link *link;
};

struct ladder {
    uint64_t (*number)(const struct list_link *link);
    struct ladder_rung *rungs; /* from `first` on, `count` of them, ascending */
    size_t first, count, size;
    unsigned since; /* members added after the last rung */
};

void ladder_init(struct ladder *l, uint64_t (*number)(const struct list_link *link));
void ladder_done(struct ladder *l);
/* Of a list that has been filled, or put in order, without it. */
void ladder_build(struct ladder *l, const struct list *list);
/* The link has been added at the end of the list. */
void ladder_added(struct ladder *l, struct list_link *link);
/* The link is about to be removed from the list. */
void ladder_removing(struct ladder *l, const struct list *list, struct list_link *link);
/* The first member whose number is greater; NULL: there is none. */
struct list_link *ladder_after(const struct ladder *l, const struct list *list, uint64_t number);

#endif
