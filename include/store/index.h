/* An index: from the value of one declared scalar property to the entities that have it, in order
 * of insertion. Adding, removing and finding take constant time whatever the number of entities of
 * one value. A part of collection. */
#ifndef STORE_INDEX_H
#define STORE_INDEX_H

#include "store/entity.h"

struct conditions;
struct shape;
struct index;

/* An entity's place in one index. */
struct index_node {
    struct list_link link; /* in its bucket */
    struct entity *entity;
    struct index_bucket *bucket;
};

/* ERR_INVALID_ENTITY: the property is not a declared string, integer, number, boolean or datetime,
 * or not the entity's own (a path into it, a part of it, a hidden one). Otherwise errors of
 * path_parse. */
struct err *index_new(const struct shape *shape, struct span property,
                      struct index **out_index) MUST_USE;
/* The nodes must have been removed. NULL is allowed. */
void index_free(struct index *index);
/* The property's name, in declared spelling. */
struct span index_member(const struct index *index);
/* The value of the entity that is added next: `member` is its own, of that name, or absent. */
void index_expect(struct index *index, struct json_value member);
/* With the value that was said last, to be said for each. What else may be done between the two
 * hides how long memory takes: of many values each lies somewhere else. */
void index_add(struct index *index, struct index_node *node);
void index_remove(struct index *index, struct index_node *node);
/* The bucket of the literal that the conditions demand this property to equal: false when they
 * demand none. *out_bucket is NULL when no entity has that value. Entities whose value is an object
 * or an array, which equals nothing, are in that of null. */
bool index_find(struct index *index, const struct conditions *conditions,
                struct index_bucket **out_bucket);
/* In order of insertion. */
struct entity *index_first(struct index_bucket *bucket);
struct entity *index_next(struct index_bucket *bucket, const struct entity *e, size_t index_place);
/* The same from the last one back. */
struct entity *index_last(struct index_bucket *bucket);
struct entity *index_previous(struct index_bucket *bucket, const struct entity *e,
                              size_t index_place);
size_t index_bucket_count(const struct index_bucket *bucket);

#endif
