/* The turn: what changed since the last turn end goes to the journal in one commit, and answers
 * wait here until what they say is on disk. Also where the journal is cleaned, in small slices. */
#ifndef STORE_TURN_H
#define STORE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macros.h"

struct change;
struct turn_wait;
struct journal;
struct journal_options;
struct loop;
struct store;

struct turn;

struct turn_options {
    const struct journal_options *journal;
    uint32_t clean_slice_bytes; /* moved a turn at most; 0: 64 KiB */
};

struct turn *turn_new(struct loop *loop, struct store *store);
/* Opens the journal and replays it into the store, which is loaded afterwards. */
struct err *turn_open(struct turn *t, const struct turn_options *options) MUST_USE;
/* Commits what there is, waits for the disk (blocking), closes. NULL is allowed. */
void turn_free(struct turn *t);

/* For change_init: 1, 2, 3, ... */
uint64_t turn_number_change(struct turn *t);
/* For change_begin and change_done: an empty buffer, that of a change which is done if there was
 * one. Whoever takes it leaves another. */
struct buf *turn_spare(struct turn *t);
/* Carries a change out: reserves the space (ERR_STORAGE_FAILURE, 507, and nothing has changed),
 * applies every record, hands them to the journal. *out_serial is what an answer must wait for. An
 * empty change is allowed: 0. */
struct err *turn_apply(struct turn *t, struct change *c, uint64_t *out_serial) MUST_USE;

/* Is everything up to this serial committed? 0 always is. */
bool turn_is_committed(const struct turn *t, uint64_t serial);

/* on_committed runs once `serial` is committed, in the order of serials and then of arrival, never
 * from here. Not for a serial that turn_is_committed. */
void turn_wait(struct turn *t, struct turn_wait *wait, uint64_t serial);
void turn_unwait(struct turn *t, struct turn_wait *wait);

/* Called once, when the journal has failed: nothing is acknowledged from then on. */
void turn_on_failed(struct turn *t, void (*on_failed)(void *context, const char *why),
                    void *context);
/* Bytes of records that changes since the start have made needless, those of the changes themselves
 * included when they hold nothing. Moves make none. */
uint64_t turn_garbage(const struct turn *t);
struct journal *turn_journal(struct turn *t);

#endif
