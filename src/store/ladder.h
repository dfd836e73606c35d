/* Where in a collection to begin that is listed by object_no: a pointer to every so many-th entity,
 * kept as entities come, always with the highest number, and go, from anywhere. */
#ifndef STORE_LADDER_H
#define STORE_LADDER_H

#include <stddef.h>
#include <stdint.h>

struct entity;

/* Points to the first entity that is there with at least this number. No two point to one. */
struct rung {
    uint64_t object_no;
    struct entity *entity;
};

struct ladder {
    struct rung *rungs; /* by object_no */
    size_t count, size;
    unsigned until_next; /* so many more entities before there is another one */
};

/* The entity has a higher number than all before. */
void ladder_add(struct ladder *l, struct entity *e);
/* `next` comes behind it, NULL: nothing does. */
void ladder_remove(struct ladder *l, const struct entity *e, struct entity *next);
/* One before which all have a number of at most this; NULL: begin with the first. */
struct entity *ladder_begin(const struct ladder *l, uint64_t object_no);
/* Empties it. */
void ladder_done(struct ladder *l);

#endif
