/* The content of a batch of the log: the records of changes, one after another. Pure. A record, in
 * offsets; numbers are little-endian:
 *
 *     0  2  kind
 *     2  2  flags: 1 the record after it belongs to the same change
 *     4  4  serials that it takes, at least 1
 *     8  4  n, bytes of its body
 *    12  n  body (store/record.h)
 *
 * A follower refuses a flag that it does not know. */
#ifndef STORE_TURN_BATCH_H
#define STORE_TURN_BATCH_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { TURN_BATCH_RECORD_BYTES = 12 };

struct turn_batch_record {
    uint16_t kind;
    uint32_t serials;
    bool more; /* the next one is of the same change */
    struct span body;
};

void turn_batch_add(struct buf *b, const struct turn_batch_record *record);
/* Takes the first record off. ERR_STORAGE_FAILURE: what is wrong with it. Not of an empty one. */
struct err *turn_batch_next(struct span *content, struct turn_batch_record *out_record) MUST_USE;
/* Is the whole of it well-formed, complete changes of `count` serials in all, and of kinds that are
 * known (up to, without, kind_end)? */
struct err *turn_batch_check(struct span content, uint32_t count, unsigned kind_end) MUST_USE;

#endif
