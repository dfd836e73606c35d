/* All state in memory. store_apply is the only thing that changes it, live and on replay alike: a
 * change is encoded, applied and handed to the turn; a replay decodes and applies the same bytes.
 * So the state after a restart equals the state before, which store_digest shows.
 *
 * The store keeps entities in collections itself. Other kinds of records belong to modules above,
 * which register a handler each. It never calls the journal. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span;
struct store;
struct change;
struct store_digest;
struct store_kind; /* store_kind.h */
struct store_origin;
struct stored;

struct store *store_new(void);
/* The objects of registered kinds must have been forgotten; entities are freed. NULL is allowed. */
void store_free(struct store *s);
void store_register(struct store *s, const struct store_kind *kind, void *context);

/* Applies one record. */
struct err *store_apply(struct store *s, unsigned kind, struct span body,
                        const struct store_origin *origin) MUST_USE;
/* Ends a replay: collections put themselves in order and tell their observers, then the handlers'
 * `loaded` run. */
struct err *store_loaded(struct store *s) MUST_USE;
bool store_is_loaded(const struct store *s);

/* For handlers: `stored` is now held by this record / by none. */
void store_track(struct store *s, struct stored *stored, unsigned kind,
                 const struct store_origin *origin);
void store_forget(struct store *s, struct stored *stored);
/* The object in the oldest record, the newest, the next older one; NULL when there is none. */
struct stored *store_oldest(struct store *s);
struct stored *store_newest(struct store *s);
struct stored *store_older(struct store *s, const struct stored *stored);
/* Is its record in the segment of this number? With very many segments a few others look the same.
 */
bool store_is_in(const struct stored *stored, uint64_t number);
/* Appends the record of that object to the change (for the cleaner). */
struct err *store_move(struct store *s, struct stored *stored, struct change *change) MUST_USE;
/* Bytes of all records that are still needed, and their number. */
uint64_t store_live_bytes(const struct store *s);
/* Bytes of those in one segment. Never less; with very many segments those of others may count too.
 */
uint64_t store_segment_bytes(const struct store *s, uint64_t number);
size_t store_live_count(const struct store *s);

struct collection;
/* The collection of a resource (full name, any case), made when it is not there yet. */
struct collection *store_collection(struct store *s, struct span resource);
void store_each_collection(struct store *s, void (*visit)(struct collection *c, void *arg),
                           void *arg);

struct entity;
struct list;
/* snapshot.h: those that are open. */
struct list *store_snapshots(struct store *s);
/* The collection's entity is in nothing any more and is freed: at once, or when no open snapshot is
 * older than this serial, which took it away. */
void store_entity_gone(struct store *s, struct entity *e, uint64_t serial);
/* Frees those that no snapshot can have found. */
void store_free_gone(struct store *s);

/* A digest of the state that does not depend on order: two stores of the same content give the same
 * numbers. */
struct store_digest {
    uint64_t sum;
    uint64_t objects;
};
void store_digest_add(struct store_digest *digest, struct span what);
struct store_digest store_digest(struct store *s);

#endif
