/* A cursor: how far somebody has come who goes over the entities of a collection in pieces, while
 * others change them. It is told what happens to those that it has passed; what becomes of the
 * others it will see when it comes to them. A part of collection. */
#ifndef STORE_CURSOR_H
#define STORE_CURSOR_H

#include "base/list.h"

struct collection;
struct entity;

/* Embedded in its owner. */
struct cursor {
    struct list_link link; /* in the collection's list */
    struct collection *collection;
    struct entity *next; /* the first that has not been passed; NULL: all have been */
    /* One that has been passed has changed, or is about to be freed. The cursor may be neither
     * moved nor closed from here. */
    void (*on_changed)(struct cursor *cursor, struct entity *e);
    void (*on_gone)(struct cursor *cursor, struct entity *e);
};

/* Before the first entity; to be closed before the collection is freed. The functions are set. */
void cursor_open(struct cursor *cursor, struct collection *c);
/* Open or not. */
void cursor_close(struct cursor *cursor);
/* Passes one and returns it, NULL at the end. */
struct entity *cursor_pass(struct cursor *cursor);

/* For the collection: an entity has been inserted as its last one, has changed, is about to be
 * removed. */
void cursors_inserted(struct list *cursors, struct entity *e);
void cursors_changed(struct list *cursors, struct entity *e);
void cursors_gone(struct list *cursors, struct entity *e);

#endif
