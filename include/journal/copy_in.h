/* A backup file that comes in pieces becomes a directory with segment files, through io/disk: what
 * is taken is at most a few buffers ahead of the disk, nobody waits for it. Nothing in the
 * directory is to be used before on_end says that all of it is whole and on stable storage. */
#ifndef JOURNAL_COPY_IN_H
#define JOURNAL_COPY_IN_H

#include "io/loop.h"
#include "journal/backup.h"

struct copy_in;

/* From the loop's tasks, never from a call of copy_in's. */
struct copy_in_callbacks {
    /* copy_in_take left something, and would take more now. */
    void (*on_room)(void *context);
    /* Once, and the last; copy_in_free is allowed in it. NULL: it is whole. The error is the
     * callee's: ERR_STORAGE_FAILURE, a damaged copy, a disk that fails or has no room. */
    void (*on_end)(void *context, struct err *e);
    void *context;
};

/* Makes the directory, which is not there. ERR_STORAGE_FAILURE. */
struct err *copy_in_new(struct loop *loop, const char *directory,
                        const struct copy_in_callbacks *callbacks,
                        struct copy_in **out_copy) MUST_USE;
/* Waits for writes that are under way. What is in the directory stays. NULL is allowed. */
void copy_in_free(struct copy_in *c);

/* How many bytes were taken, from the front. What comes after an error is dropped. */
size_t copy_in_take(struct copy_in *c, struct span bytes);
/* Nothing more is taken, as the error says, which is copy_in's now: on_end tells it when nothing is
 * under way any more, or an earlier one. */
void copy_in_stop(struct copy_in *c, struct err *e);
/* As soon as it has come; NULL before. */
const struct backup_head *copy_in_head(const struct copy_in *c);
/* Of the file. */
uint64_t copy_in_bytes(const struct copy_in *c);

#endif
