/* The turn: what changed since the last turn end goes to the journal in one commit, and answers
 * wait here until what they say is on disk. Also where the journal is cleaned, in small slices.
 *
 * A change of very many objects takes several turns of the loop. Who makes one *holds* the turn: it
 * is prepared, handed to the journal as a whole in one moment, and then applied in slices; nobody
 * else changes anything meanwhile (turn_line_up), and who reads sees the state before it
 * (turn_before). So it comes before or after every other change and every request, never in
 * between, and is in the journal whole or not at all. */
#ifndef STORE_TURN_H
#define STORE_TURN_H

#include "base/list.h"
#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct change;
struct snapshot;
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

/* Carries a change out: reserves the space (ERR_STORAGE_FAILURE, 507, and nothing has changed),
 * applies every record, hands them to the journal. *out_serial is what an answer must wait for. An
 * empty change is allowed: 0. Nothing waits for a move, which takes no serial. */
struct err *turn_apply(struct turn *t, struct change *c, uint64_t *out_serial) MUST_USE;

/* Has somebody a change under way that takes several turns? Who can wait changes nothing then. */
bool turn_is_held(const struct turn *t);
/* Not while it is held. Ends with turn_release, or when a turn_apply_long has been applied. */
void turn_hold(struct turn *t);
void turn_release(struct turn *t);
/* How many were in line when it was released last? */
size_t turn_left_waiting(const struct turn *t);
/* Is the change so large that its application would hold up others? */
bool turn_is_long(const struct change *c);
/* turn_apply for who holds the turn: the change, which is empty afterwards, is handed to the
 * journal, for which it may give way, and then applied in slices by itself. Errors as with
 * turn_apply: then nothing has changed, and the turn is still held; the same with *out_serial 0
 * when it is told to stop, or others who cannot wait have come before it. */
struct err *turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial) MUST_USE;
/* Is one being applied? Then what is stored is neither the state before it nor that after it. */
bool turn_is_applying(const struct turn *t);
/* Is it the one that this serial was given for? */
bool turn_is_applying_to(const struct turn *t, uint64_t serial);
/* The entities as they were before it; NULL: none is being applied. Good until the end of the
 * turn of the loop. */
struct snapshot *turn_before(struct turn *t);
/* Of the processor's time, what applying took in one turn of the loop, ever. */
uint64_t turn_longest_ns(const struct turn *t);
/* For who cannot wait, on the loop's stack: applies what is left of it at once. One that is only
 * prepared is told by the journal's serials that others have come before it. */
void turn_settle(struct turn *t);

/* Called once, from the loop, when the turn is not held any more; then it is in no line. Others in
 * the line may come before, and hold it again. */
struct turn_line {
    struct list_link link;
    void (*on_free)(struct turn_line *line);
};
/* While the turn is held; no harm if it is in the line already. */
void turn_line_up(struct turn *t, struct turn_line *line);
void turn_line_leave(struct turn *t, struct turn_line *line);

/* Is everything up to this serial committed? 0 always is. */
bool turn_is_committed(const struct turn *t, uint64_t serial);
/* And is it of no change that is being applied, so that all see it? */
bool turn_is_seen(const struct turn *t, uint64_t serial);

/* on_committed runs once `serial` is committed, in the order of serials and then of arrival, never
 * from here. Not for a serial that turn_is_committed, nor while it waits. */
void turn_wait(struct turn *t, struct turn_wait *wait, uint64_t serial);
/* The same for everything that has been handed to the journal until now, also what cleaning has
 * moved, which takes no serial. Not when nothing waits for the disk. */
void turn_wait_for_all(struct turn *t, struct turn_wait *wait);
void turn_unwait(struct turn *t, struct turn_wait *wait);
/* Is one of its functions still to be called? */
bool turn_waits(const struct turn_wait *wait);
/* The log of the cluster has confirmed up to this serial, and no more in time, or never will:
 * whoever waits for more, and has on_late, is told, soon. */
void turn_tell_late(struct turn *t, uint64_t confirmed);

/* Called once, when the journal has failed: nothing is acknowledged from then on. */
void turn_on_failed(struct turn *t, void (*on_failed)(void *context, const char *why),
                    void *context);
/* Bytes of records that changes since the start have made needless, those of the changes themselves
 * included when they hold nothing. Moves make none. */
uint64_t turn_garbage(const struct turn *t);
struct journal *turn_journal(struct turn *t);

#endif
