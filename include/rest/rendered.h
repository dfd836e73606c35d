/* A query source whose entities are no stored texts but are written when they are asked for:
 * events, deliveries, listings. */
#ifndef REST_RENDERED_H
#define REST_RENDERED_H

#include "query/source.h"

struct buf;

struct call;
struct uuid;

struct gathered;

struct rendered {
    struct query_source source;
    struct call *call;
    struct gathered *gathered; /* rendered.c's own */
    /* Yields the next object, NULL at the end. `cursor` is the resource's own, NULL at first. */
    void *(*next)(struct rendered *r);
    void *cursor;
    /* Appends the object's JSON text; called when it is needed. */
    void (*add_json)(struct rendered *r, void *object, struct buf *b);
};

/* Makes it the call's source, which cannot be turned back unless the resource says how; it lives in
 * the call's arena. */
struct rendered *rendered_open(struct call *call, void *(*next)(struct rendered *r),
                               void (*add_json)(struct rendered *r, void *object, struct buf *b));
/* The same for objects that are there already, `size` bytes each, and stay as long as the call. */
struct rendered *
rendered_open_array(struct call *call, const void *objects, size_t count, size_t size,
                    void (*add_json)(struct rendered *r, void *object, struct buf *b));
/* Its objects come in the order of their ObjectNo, by which pages are asked for then. */
void rendered_by_object_no(struct rendered *r);
/* resource_ops.version of an item of the call's source, also when its object may be gone. */
uint64_t rendered_version(const struct call *call, const struct query_item *item);
/* The id that the conditions demand; false when they demand none. An unreadable one, which no
 * entity has, yields true and the nil UUID. */
bool rendered_wanted_id(const struct call *call, struct span property, struct uuid *out_id);

#endif
