/* The pieces that query_run is made of: private to the query*.c files. */
#ifndef QUERY_QUERY_PARTS_H
#define QUERY_QUERY_PARTS_H

#include "base/map.h"
#include "query/query.h"
#include "query/source.h"
#include "query/value_key.h"

struct json_doc;

/* ---- query_shape.c: what add, rename and select make of an entity ---- */

struct query_shaper {
    /* Whose PROPERTY_HIDDEN and PROPERTY_UNSHOWN are left out unless asked for; or NULL. */
    const struct shape *hiding;
    const struct meta *meta;
    struct buf text;
};

void query_shaper_init(struct query_shaper *shaper, const struct shape *hiding,
                       const struct meta *meta);
void query_shaper_done(struct query_shaper *shaper);
/* The entity's text after add, rename and select; valid until the next call. `root` is the
 * original. ERR_INVALID_META_SYNTAX: a new name is that of another member. */
struct err *query_shaper_run(struct query_shaper *shaper, struct json_value root, struct arena *a,
                             struct span *out_text) MUST_USE;

/* ---- query_distinct.c: the set of entities seen ---- */

/* Parses an item's text, as it is after shaping, in the arena. */
typedef struct err *query_reread_fn(void *arg, const struct query_item *item, struct arena *a,
                                    struct json_doc *out_doc);

/* Holds items but no texts: what has the same hash is read again and compared. */
struct query_distinct {
    struct map seen;     /* by hash */
    struct arena memory; /* of what is in it */
    query_reread_fn *reread;
    void *arg;
    struct arena scratch;
};

void query_distinct_init(struct query_distinct *d, query_reread_fn *reread, void *arg);
void query_distinct_done(struct query_distinct *d);
/* Takes the item, whose parsed text is `root`, unless an equal one is there. */
struct err *query_distinct_add(struct query_distinct *d, const struct query_item *item,
                               struct json_value root, bool *out_is_new) MUST_USE;

/* ---- query_keep.c: order, offset and limit ---- */

/* An item that is in the result so far. */
struct query_kept {
    struct query_item item;
    uint64_t serial;        /* of those offered: decides between equals */
    struct value_key *keys; /* one block with their texts; NULL: no order */
};

struct query_keep {
    const struct meta *meta;
    struct query_kept *kept; /* in heap order once it is full: the one to go next is at 0 */
    size_t count, size;
    uint64_t most;   /* how many are kept */
    bool keeps_last; /* the last ones, not the first */
    bool goes_back;  /* those are offered first, from the end back */
    bool is_heap;
    bool counts_only; /* none is kept */
    bool counts_all;  /* wants all, to count them */
    uint64_t offered;
};

void query_keep_init(struct query_keep *k, const struct meta *meta);
void query_keep_done(struct query_keep *k);
/* False when nothing that is offered from now on can change the result. */
bool query_keep_wants(const struct query_keep *k);
/* How many offered items are enough; UINT64_MAX: it wants all. */
uint64_t query_keep_enough(const struct query_keep *k);
/* `root` is the original, looked at for an order only. */
void query_keep_offer(struct query_keep *k, const struct query_item *item, struct json_value root,
                      struct arena *scratch);
/* How many are left after offset and limit. */
size_t query_keep_count(const struct query_keep *k);
/* Makes the result of what is left after order, offset and limit. */
void query_keep_result(struct query_keep *k, struct arena *a, struct query_result *out_result);

#endif
