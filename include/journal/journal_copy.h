/* A copy of a running journal, as a backup file (backup.h) that is read a part at a time: the
 * journal as it was when the copy was opened, all of that committed. It costs one descriptor and
 * the numbers of its segments. Nothing waits for the disk: a part that is not in memory is asked
 * for.
 *
 * Segments that cleaning has dropped stay until the copy has come past them. That has a bound: when
 * they take more than the copy may hold, or the disk is full, the copy is lost, and they go. */
#ifndef JOURNAL_JOURNAL_COPY_H
#define JOURNAL_JOURNAL_COPY_H

#include "base/buf.h"
#include "base/err.h"

struct journal;
struct journal_copy;

/* Why one is lost. */
#define JOURNAL_COPY_LOSSES(X)                                                                     \
    X(JOURNAL_COPY_KEPT, "it is not")                                                              \
    X(JOURNAL_COPY_HELD_TOO_MUCH,                                                                  \
      "it held more that was cleaned away than BackupHeldBytes allows")                            \
    X(JOURNAL_COPY_DISK_FULL, "the disk is full, and it held what was cleaned away")

enum journal_copy_loss { JOURNAL_COPY_LOSSES(AS_SYMBOL) };
const char *journal_copy_loss_text(enum journal_copy_loss loss);

enum { JOURNAL_COPY_PART_BYTES = 65536 };

struct journal_copy_options {
    uint64_t held_bytes; /* of dropped segments that may have to stay, for all copies together */
    /* Called once, when it is lost, from inside the journal: it may only make a note. */
    void (*on_lost)(void *context, enum journal_copy_loss loss);
    void *context;
};

/* ERR_STORAGE_FAILURE when the journal has failed. To be closed before the journal is. */
struct err *journal_copy_open(struct journal *j, const struct journal_copy_options *options,
                              struct journal_copy **out_copy) MUST_USE;
/* NULL is allowed. */
void journal_copy_close(struct journal_copy *c);

/* Of the whole file, and of the last record in it. */
uint64_t journal_copy_bytes(const struct journal_copy *c);
uint64_t journal_copy_serial(const struct journal_copy *c);

/* Replaces the buffer's content with the next part, JOURNAL_COPY_PART_BYTES at most; nothing: that
 * was all. *out_there is false when the disk has been asked for it, and a later call will find it.
 * ERR_STORAGE_FAILURE: it cannot be read, or is lost. */
struct err *journal_copy_read(struct journal_copy *c, struct buf *b, bool *out_there) MUST_USE;

#endif
