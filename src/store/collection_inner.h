/* What the store alone may do with a collection. */
#ifndef STORE_COLLECTION_INNER_H
#define STORE_COLLECTION_INNER_H

struct buf;
struct entity;
struct span;
struct uuid;
struct store_digest;
struct stored;
struct change;
struct record_entity;
struct store_origin;
struct store;

struct collection *collection_new(struct store *s, struct span name, struct span folded);
/* Frees the entities too; observers are not told. */
void collection_free(struct collection *c);
struct span collection_key(const void *collection); /* folded name */
struct list_link *collection_link(struct collection *c);
struct collection *collection_at(struct list_link *link);

void collection_put(struct collection *c, const struct record_entity *record,
                    const struct store_origin *origin);
/* An id that is not there is nothing to do: its entity's record may have been cleaned away. */
void collection_remove(struct collection *c, const struct uuid *id,
                       const struct store_origin *origin);
struct err *collection_move(void *store, struct stored *stored, struct change *change);
/* For store_each_collection: a replay has ended; what is in it is added to a struct store_digest.
 */
void collection_loaded(struct collection *c, void *unused);
void collection_digest(struct collection *c, void *digest);
/* What one entity adds to that. `b` is written anew. */
void collection_digest_entity(const struct entity *e, struct buf *b, struct store_digest *digest);

#endif
