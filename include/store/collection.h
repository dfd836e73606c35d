/* The entities of one resource: by id in constant time, in the order of insertion, by the indexes
 * that the resource declares, and an observer that keeps what is derived from them. */
#ifndef STORE_COLLECTION_H
#define STORE_COLLECTION_H

#include "query/condition.h"
#include "store/entity.h"

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
/* Keeps an index on these top-level or nested properties (types from the shape, which must outlive
 * the collection or the next call); replaces the earlier set. Builds from what is there. */
void collection_set_indexes(struct collection *c, const struct shape *shape,
                            const struct span *properties, size_t count);

size_t collection_count(const struct collection *c);
/* Serial of the last change to any of its entities: what a list waits for. */
uint64_t collection_version(const struct collection *c);
/* NULL when there is none. */
struct entity *collection_find(const struct collection *c, const struct uuid *id);
struct entity *collection_first(const struct collection *c);
struct entity *collection_next(const struct collection *c, const struct entity *e);
struct entity *collection_last(const struct collection *c);

/* Candidates for conditions, the narrowest way there is: by `Id=`, by an indexed equality, or all
 * in order. What comes out still has to be tested against the conditions. */
struct collection_walk {
    struct collection *collection;
    struct entity *next;        /* of a walk in order */
    struct entity **candidates; /* of an index; borrowed, valid until the next change */
    size_t candidate_count, candidate;
    bool narrowed;
};
void collection_walk(struct collection *c, const struct conditions *conditions,
                     struct collection_walk *out_walk);
struct entity *collection_walk_next(struct collection_walk *walk);

/* Memory of entities, texts and indexes, in bytes. */
uint64_t collection_bytes(const struct collection *c);

#endif
