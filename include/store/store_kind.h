/* A kind of records: for those that keep objects of their own, see store.h. */
#ifndef STORE_STORE_KIND_H
#define STORE_STORE_KIND_H

#include "journal/place.h"
#include "json/json.h"

struct change;
struct store_digest;
struct stored;

/* Where a record being applied came from. */
struct store_origin {
    uint64_t serial; /* of a move: the last one that was taken */
    bool is_move;    /* a copy of what an earlier record says: it changes nothing but the place */
    uint32_t bytes;
    struct journal_place place;
    struct json_value read; /* a live entity's text, where it has been read; else absent */
};

/* A handler of one kind of record. */
struct store_kind {
    unsigned kind;
    /* Changes the state. Live records always apply; on replay an error means that the journal and
     * this program do not fit together, and refuses the journal. */
    struct err *(*apply)(void *context, struct span body, const struct store_origin *origin);
    /* Appends to `change` a record that stands for the object as it is now: the cleaner moves it.
     * NULL for kinds whose records stand for no object (…_GONE). Errors of reading it back. */
    struct err *(*move)(void *context, struct stored *stored, struct change *change);
    /* Adds all objects of this kind: see store_digest_add. NULL: none of its own. */
    void (*digest)(void *context, struct store_digest *digest);
    /* After replay, kinds in the order of registration: link what was applied in any order. NULL:
     * nothing to do. */
    struct err *(*loaded)(void *context);
};

#endif
