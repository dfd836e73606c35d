/* Joining a cluster by a copy: a node that needs what the log does not hold any more takes the
 * journal of another node, as Svc.Admin.Backup sends it, and starts anew with it.
 *
 *   COPYING --all has come, the digest is right--> SEALED: on_joined
 *     |  ^
 *     v  |  the next node, after a pause
 *   CLEARING --what has come is deleted--> PAUSING
 *
 * In the data directory:
 *
 *   joining/    what comes; of no use
 *   joined/     a whole copy, and the file `cluster`; takes the journal's place at the next start
 *   replacing/  the same, checked: the old segments are being deleted
 *   replaced/   they are gone: what is in it is being moved to where they were
 *
 * Each of these follows from the one before by one rename, and what is done in each can be done
 * again, so that a kill at any moment leaves the old journal or the copy. */
#ifndef JOURNAL_JOIN_H
#define JOURNAL_JOIN_H

#include "base/uuid.h"
#include "io/loop.h"

struct fetcher;
struct join;
struct replica;

struct join_options {
    const char *directory;         /* of the data, which is there */
    const struct replica *replica; /* says which nodes live, and who leads */
    struct fetcher *fetcher;
    const char *node;      /* this one */
    const char *base_path; /* of the nodes' resources: `/`, `/x` */
    struct uuid cluster;
    uint64_t begins; /* of the log: a copy that ends before it is of no use */
    /* Appends the value of `Svc-cluster` for a request of this node's own. */
    void (*authorize)(void *context, struct span method, struct span target, struct buf *out_value);
    /* From the loop. NULL is allowed for the first two. */
    void (*on_progress)(void *context, uint64_t bytes, uint64_t of_bytes); /* 0: not known yet */
    void (*on_failed)(void *context, const char *why);                     /* another try follows */
    /* A whole copy stands in joined/, which ends before `next`. Once; join_free is allowed. */
    void (*on_joined)(void *context, uint64_t next);
    void *context;
};

/* Texts are copied, the others are borrowed. Nothing is called from here. */
struct join *join_start(struct loop *loop, const struct join_options *options) MUST_USE;
/* Waits for writes that are under way. What has come is deleted at the next start, unless it is
 * whole. NULL is allowed. */
void join_free(struct join *j);

/* At the start, before the journal is opened: a copy takes its place, what is left of one that is
 * not whole is deleted. A copy that a start could not read is deleted too, and *out_refused true:
 * the journal is as it was. Blocking. ERR_STORAGE_FAILURE, naming the file: done again at the next
 * start. Nothing is done when the directory is not there. */
struct err *join_settle(const char *directory, bool *out_refused) MUST_USE;

#endif
