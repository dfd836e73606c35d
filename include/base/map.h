/* A hash map from a key inside the item to the item. It grows and shrinks a few slots per
 * operation, so that no single call pauses for the size of the map.
 *
 * The map owns nothing but its slots; an item's key must not change while it is in the map. Keys
 * are spans compared bytewise; callers that fold case keep a folded key in the item. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/span.h"

typedef struct span map_key_fn(const void *item);
typedef uint64_t map_hash_fn(struct span key);

struct map_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

struct map_table {
    struct map_slot *slots;
    size_t size; /* power of two or 0 */
    size_t used;
};

struct map {
    map_key_fn *key_of;
    map_hash_fn *hash;
    struct map_table now;
    struct map_table old; /* being moved into `now` */
    size_t moved;         /* slots of `old` already moved */
};

void map_init(struct map *m, map_key_fn *key_of);
/* The same for keys that nobody outside chooses, which are found sooner: hash_own. What is looked
 * for may be anybody's. */
void map_init_own(struct map *m, map_key_fn *key_of);
/* Frees the slots, not the items. */
void map_done(struct map *m);
size_t map_count(const struct map *m);
/* NULL when absent. */
void *map_find(const struct map *m, struct span key);
/* It will be looked for, or added, soon: in a large map its place is anywhere in memory, which is
 * fetched meanwhile. It changes nothing. */
void map_expect(const struct map *m, struct span key);
void map_expect_hashed(const struct map *m, uint64_t hash);
/* The key must not be in the map yet. */
void map_add(struct map *m, void *item);
/* For a key that is looked for and then, as it is not there, added: both take its hash. */
uint64_t map_hash(const struct map *m, struct span key);
void *map_find_hashed(const struct map *m, struct span key, uint64_t hash);
void map_add_hashed(struct map *m, void *item, uint64_t hash);
/* The same for many items at once: several times as fast, as an empty map gets its size first, and
 * the memory where items belong is fetched for several of them together. */
void map_add_many(struct map *m, const struct map_slot *items, size_t count);
/* What map_add_many takes: made while the item is at hand, so that it need not be fetched again. */
struct map_slot map_slot_of(const struct map *m, void *item);
/* Puts the item where one of the same key is, and returns that one, or adds it and returns NULL. */
void *map_put(struct map *m, void *item);
/* Returns the removed item, NULL when absent. */
void *map_remove(struct map *m, struct span key);
/* Calls visit for every item in no particular order; visit must not change the map. */
void map_each(const struct map *m, void (*visit)(void *item, void *arg), void *arg);
/* Bytes that the slots take. */
size_t map_bytes(const struct map *m);

#endif
