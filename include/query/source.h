/* Where the entities of a query come from: an item at a time. */
#ifndef QUERY_SOURCE_H
#define QUERY_SOURCE_H

#include "base/span.h"

struct arena;
struct property;

struct query_item {
    struct span json; /* the entity's text, or what add, rename and select made of it */
    void *object;     /* the source's own */
    bool holds;       /* it has passed a query_filter of this query, as it is now */
};

/* The items of a source stay as they are until query_run has returned, which holds on to as few as
 * it can: those of the result, with an order and a limit those that would be in it so far. */
struct query_source {
    /* False at the end. Sets `json`, unless there is `render`. */
    bool (*next)(struct query_source *source, struct query_item *out_item);
    /* For a source that keeps no texts: the text of an item, made in the arena. Called when it is
     * needed, for an item of the result a second time, in the query's arena. NULL: next sets it. */
    struct span (*render)(struct query_source *source, const struct query_item *item,
                          struct arena *a);
    /* The value of a hidden property as JSON text; NULL: there are none. Called like render, for
     * queries that name the property. */
    struct span (*hidden)(struct query_source *source, const struct query_item *item,
                          const struct property *property, struct arena *a);
    /* Asked before the first item: `next` gives the last one first, and so on back, each as it
     * would have been otherwise. NULL: it cannot. */
    void (*turn_back)(struct query_source *source);
    /* The item's ObjectNo, of a source whose items come in its order; NULL: they do not. */
    uint64_t (*object_no)(struct query_source *source, const struct query_item *item);
    bool holds; /* each item satisfies the conditions, which need not be tested again */
};

#endif
