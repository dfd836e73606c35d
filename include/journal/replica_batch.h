/* A batch of records as it stands in the log of a cluster: the value of a log key, and its parts.
 * Pure. What a value is, in offsets; numbers are little-endian:
 *
 *     0    4  `SVCB`
 *     4    1  version, 1
 *     5    1  flags: 1 the content is compressed with zstd, 2 it is in parts, 4 base
 *     6    2  n, bytes of the node's name
 *     8    8  epoch: the create revision of `leader` that it was written under
 *    16    8  serial of the first record
 *    24    4  serials that its records take, at least 1
 *    28    4  number of parts; 0 without the flag
 *    32    8  bytes stored: of the content behind the name, or of all parts together
 *    40    8  bytes of the content before it was compressed
 *    48    8  bytes stored of all batches before it, since the log began
 *    56   32  SHA-256 of the content before it was compressed
 *    88    n  name of the node that wrote it
 *  88+n       the content; nothing when it is in parts
 *
 * The base is the first batch of a log and holds nothing: it says at which serial the log begins,
 * so that a log is never empty, and one that is found empty has been lost. A reader refuses a
 * version or a flag that it does not know. */
#ifndef JOURNAL_REPLICA_BATCH_H
#define JOURNAL_REPLICA_BATCH_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"

enum { REPLICA_NAME_BYTES = 64, REPLICA_UUID_BYTES = 16 };

struct replica_head {
    uint64_t epoch, first;
    uint32_t count;
    uint32_t parts;
    uint64_t stored_bytes, content_bytes, before_bytes;
    uint8_t digest[DIGEST_BYTES];
    struct span node;
    bool is_compressed, is_base;
};

/* The content, compressed when that makes it smaller, is appended to `stored`, and *head says so
 * and what it amounts to: stored_bytes, content_bytes, digest, is_compressed. */
void replica_batch_pack(struct span content, struct replica_head *head, struct buf *stored);
/* The value of the log key: head, and the content unless it is in parts. */
void replica_batch_add(struct buf *b, const struct replica_head *head, struct span stored);
/* Reads a value; *out_stored is what follows the head. Spans point into it. ERR_STORAGE_FAILURE
 * says what is wrong with it. */
struct err *replica_batch_parse(struct span value, struct replica_head *out_head,
                                struct span *out_stored) MUST_USE;
/* Appends the content, whose digest is looked at, to `content`. ERR_STORAGE_FAILURE. At most
 * most_bytes. */
struct err *replica_batch_unpack(const struct replica_head *head, struct span stored,
                                 uint64_t most_bytes, struct buf *content) MUST_USE;
/* Were both written by one node, in one epoch, for the same records? */
bool replica_batch_is_same(const struct replica_head *a, const struct replica_head *b);

/* Keys, all below `/svcd/<Name>/`: `log/<serial>`, 16 hex digits; `part/<epoch>/<serial>/<n>`, 16,
 * 16 and 8 hex digits, in the order of the log. False: the key is none. */
bool replica_key_is_log(struct span key, struct span cluster, uint64_t *out_serial);
bool replica_key_is_part(struct span key, struct span cluster, uint64_t *out_epoch,
                         uint64_t *out_serial);

#endif
