/* What turn_log.c and turn_follow.c share. */
#ifndef STORE_TURN_LOG_INNER_H
#define STORE_TURN_LOG_INNER_H

#include "io/timer.h"
#include "journal/replica.h"
#include "store/turn_inner.h"
#include "store/turn_log.h"

struct turn_log {
    struct turn *turn;
    struct replica *replica; /* NULL: it is not there any more */
    struct turn_log_callbacks callbacks;
    struct list batches; /* struct log_batch; the first may be under way */
    size_t bytes;        /* of them */
    struct replica_append append;
    struct buf draft;   /* content of a long change that is being handed over */
    uint64_t next;      /* serial behind the batches */
    uint64_t confirmed; /* serial: the log has everything up to it */
    bool is_under_way, is_late, is_lost, is_closed;
    unsigned held_kind;       /* of a record that was refused because not every node knows it */
    bool is_stuck, is_barred; /* barred: there is a batch that is not understood */
    struct list taken;        /* struct taken, to be applied */
    struct list on_disk;      /* struct taken, applied and on its way to the disk */
    struct loop_task pump;    /* applies more */
    struct turn_line line;
    struct timer again;
    struct arena scratch;
};

/* turn_follow.c */
void turn_follow_init(struct turn_log *l);
void turn_follow_done(struct turn_log *l);

#endif
