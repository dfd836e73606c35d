/* What every stored object has, and where records come from. */
#ifndef STORE_STORED_H
#define STORE_STORED_H

#include "base/list.h"
#include "journal/place.h"

/* In every object that a record stands for: which record holds it now. The journal is cleaned with
 * this: the store's list of these is in record order, so its front is what the oldest segment still
 * holds. */
struct stored {
    struct list_link link;
    uint64_t serial; /* of the record */
    uint32_t bytes;  /* in the journal, frame included */
    uint16_t kind;   /* enum record_kind: whose object this is */
};

/* Where a record being applied came from. */
struct store_origin {
    uint64_t serial;
    uint32_t bytes;
    struct journal_place place;
};

#endif
