/* Entities in the order of their numbers, in whatever order they come. They stand in runs of no
 * more than NUMBERED_RUN, and of half as many at least but for the last one: so however many there
 * are, to add one moves what is in a run, and now and then the list of the runs, which is as much
 * shorter than they are. */
#ifndef STORE_NUMBERED_H
#define STORE_NUMBERED_H

#include <stddef.h>
#include <stdint.h>

struct entity;

enum { NUMBERED_RUN = 256 };

struct numbered_run {
    size_t count;
    struct entity *items[NUMBERED_RUN];
};

/* Zeroed it is empty. The entities are the caller's. */
struct numbered {
    struct numbered_run **runs;
    size_t count, size;
};

/* No other in it has its object_no. */
void numbered_add(struct numbered *n, struct entity *e);
/* The first with a higher object_no; NULL: there is none. */
struct entity *numbered_above(const struct numbered *n, uint64_t object_no);
/* The last with this object_no or a lower one; NULL: there is none. */
struct entity *numbered_up_to(const struct numbered *n, uint64_t object_no);
/* Takes the last one out; NULL: it is empty, and holds no memory. */
struct entity *numbered_pop(struct numbered *n);

#endif
