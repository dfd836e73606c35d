/* The entities of one resource: by id in constant time, in the order of insertion, by the indexes
 * that the resource declares, and an observer that keeps what is derived from them. */
#ifndef STORE_COLLECTION_H
#define STORE_COLLECTION_H

#include "base/err.h"
#include "base/list.h"

struct conditions;
struct entity;
struct index_bucket;
struct shape;
struct uuid;

/* Told of every change: live at once, and after a replay once for each entity in order. */
struct collection_observer {
    /* Inserted (old_json absent) or changed. */
    void (*put)(void *context, struct entity *entity, struct span old_json);
    /* About to be freed. */
    void (*gone)(void *context, struct entity *entity);
};

struct collection;

struct span collection_name(const struct collection *c);
void collection_observe(struct collection *c, const struct collection_observer *observer,
                        void *context);
/* Keeps an index on each of these properties, of declared scalar types; replaces the earlier set
 * and is built from what is there. Errors of path_parse; ERR_INVALID_ENTITY for a property that
 * cannot be indexed. */
struct err *collection_set_indexes(struct collection *c, const struct shape *shape,
                                   const struct span *properties, size_t count) MUST_USE;

size_t collection_count(const struct collection *c);
struct entity *collection_last(const struct collection *c); /* NULL: it is empty */
/* Bytes of memory that its entities take: their texts, and the object of each; not their places in
 * indexes. */
uint64_t collection_bytes(const struct collection *c);
/* The bytes of one of them. */
size_t collection_entity_bytes(const struct entity *e);
/* Serial of the last change to any of its entities: what a list waits for. */
uint64_t collection_version(const struct collection *c);
/* It will be looked for, or added, soon: see map_expect. */
void collection_expect(const struct collection *c, const struct uuid *id);
/* NULL when there is none. */
struct entity *collection_find(struct collection *c, const struct uuid *id);
struct entity *collection_first(const struct collection *c);
struct entity *collection_next(const struct collection *c, const struct entity *e);
/* The first with a higher object_no; NULL: there is none. */
struct entity *collection_above(const struct collection *c, uint64_t object_no);

/* Visits the entities that have been inserted or changed after this serial, the last one first, and
 * returns the serial to ask with next time (UINT64_MAX visits none). If there are any it goes over
 * the newer records of all collections: some nanoseconds each, of the microseconds that it took to
 * make them. */
uint64_t collection_visit_newer(struct collection *c, uint64_t serial,
                                void (*visit)(struct entity *e, void *arg), void *arg);

/* Candidates for conditions, the narrowest way there is: by `Id=`, by an indexed equality, or all
 * from `ObjectNo>` on, in order of insertion. What comes out still has to be tested against the
 * conditions, unless `holds`. The collection must not change during a walk. */
struct collection_walk {
    struct collection *collection;
    struct entity *next;
    struct index_bucket *bucket; /* NULL: a walk over all, or over the one of an `Id=` */
    size_t index_place;          /* which of the indexes it is a bucket of */
    bool single;
    bool holds;     /* what comes out satisfies the conditions */
    uint64_t above; /* only higher object_nos can satisfy them; of a bucket others come too */
    bool is_turned; /* it goes back, from the last one */
    struct list_link kept; /* in the collection's list; linked: it may change */
};
void collection_walk(struct collection *c, const struct conditions *conditions,
                     struct collection_walk *out_walk);
struct entity *collection_walk_next(struct collection_walk *walk);
/* A walk that has given none yet gives the same from the last one back. */
void collection_walk_turn(struct collection_walk *walk);
/* The same in pieces, between which the collection may change. A walk over all gives those that are
 * there when it comes to them; one by an index gives those that are not changed meanwhile, and of
 * those that are, any. Once it has come to the end, no more. To be dropped in time. */
void collection_keep_walk(struct collection *c, const struct conditions *conditions,
                          struct collection_walk *out_walk);
/* Kept or not. */
void collection_drop_walk(struct collection_walk *walk);

#endif
