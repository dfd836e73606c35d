/* A stored entity: its id, its numbers and its JSON text, which is served as it stands. */
#ifndef STORE_ENTITY_H
#define STORE_ENTITY_H

#include "base/uuid.h"
#include "store/stored.h"

struct blob;
struct collection;
struct index_node;

struct entity {
    struct stored stored;
    struct list_link order; /* in its collection, by object_no */
    struct collection *collection;
    struct uuid id;
    uint64_t object_no;
    uint64_t
        version; /* serial of the last change: ETag, and what an answer that shows it waits for */
    struct blob *json; /* replaced when the entity changes; answers hold their own reference */
    struct index_node *indexed; /* one per index of the collection; NULL without indexes */
    void *attached;             /* the collection's observer's own, e.g. a webhook */
};

struct span entity_json(const struct entity *e);
/* Parses a text that is stored, or made from what is: it was checked before, so it cannot fail. */
struct json_value entity_parse(struct span json, struct arena *a);
/* The same as far as these members need, see json_parse_front. */
struct json_value entity_parse_front(struct span json, const struct span *names, size_t count,
                                     struct arena *a);

#endif
