/* The entities of all collections as they were at one moment, for a request that gives way to
 * others while it reads: whoever comes in between changes what is stored, and the request does not
 * see it. A snapshot costs nothing to take. From then on an entity that was there is kept as it was
 * when it is changed or removed for the first time; only that takes memory, until the last snapshot
 * that is older than the change is closed.
 *
 * Pointers to entities that are found through a snapshot are good until it is closed: but what they
 * point to may have changed, so snapshot_entity says how the entity was. */
#ifndef STORE_SNAPSHOT_H
#define STORE_SNAPSHOT_H

#include "base/map.h"
#include "store/collection.h"

struct store;

struct snapshot {
    struct list_link link; /* in the store's list, oldest first */
    struct store *store;
    uint64_t serial;   /* entities of younger versions are not in it */
    struct map saved;  /* struct entity by id: those that have changed since */
    struct list parts; /* the same by collection */
};

/* Of all that has been applied up to this serial, which must be all that has been. */
void snapshot_open(struct snapshot *snapshot, struct store *s, uint64_t serial);
/* Also one that was never opened, if it is zeroed. */
void snapshot_close(struct snapshot *snapshot);
/* NULL: it was not there. */
struct entity *snapshot_find(struct snapshot *snapshot, struct collection *c,
                             const struct uuid *id);
/* The entity as it was. */
const struct entity *snapshot_entity(const struct snapshot *snapshot, const struct entity *e);
/* Has nothing of the collection changed since? */
bool snapshot_is_current(const struct snapshot *snapshot, const struct collection *c);

/* Candidates for conditions, as with collection_walk, or all entities of a collection from
 * `ObjectNo>` on: in order of insertion, each to be tested against the conditions. Dropped before
 * the snapshot is closed. */
struct snapshot_walk {
    struct snapshot *snapshot;
    struct collection_walk live;
    uint64_t given; /* the number of the last one */
};
void snapshot_walk(struct snapshot *snapshot, struct collection *c,
                   const struct conditions *conditions, struct snapshot_walk *out_walk);
/* One that has given none yet gives the same from the last one back. */
void snapshot_walk_turn(struct snapshot_walk *walk);
/* NULL at the end. */
struct entity *snapshot_walk_next(struct snapshot_walk *walk);
void snapshot_walk_drop(struct snapshot_walk *walk);

/* For collections: the entity is about to change, or to go. */
void snapshots_save(struct list *snapshots, const struct entity *e);

#endif
