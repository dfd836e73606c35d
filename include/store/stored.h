/* What every stored object has. */
#ifndef STORE_STORED_H
#define STORE_STORED_H

#include "base/list.h"

#include <stdint.h>

/* In every object that a record stands for: which record holds it now. The journal is cleaned with
 * this: the store's list of these is in record order, so its front is what the oldest segment still
 * holds. */
struct stored {
    struct list_link link;
    uint64_t serial;  /* of the record; of one that was moved, the last one taken before */
    uint32_t bytes;   /* in the journal, frame included */
    uint16_t kind;    /* enum record_kind: whose object this is */
    uint16_t segment; /* low bits of the number of the segment that the record is in */
};

#endif
