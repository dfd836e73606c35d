/* What the files of turn share, and change.c. */
#ifndef STORE_TURN_INNER_H
#define STORE_TURN_INNER_H

#include "base/budget.h"
#include "base/buf.h"
#include "base/heap.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "store/cleaner.h"
#include "store/snapshot.h"
#include "store/turn.h"

struct change_record;
struct fiber;
struct turn_log;

/* A change that has been handed to the journal. The arrays are in the change's arena, or, of a long
 * one, on the heap; so are the bodies. */
struct applying {
    struct turn *turn;
    struct journal_record *records;
    struct journal_place *places;
    const struct change_record *reads; /* what has been read of each; NULL: of none */
    size_t count;
    uint64_t first, last; /* serials, of the first record and of the last */
    uint64_t live_before, bytes;
    bool is_move;
};

/* The one change that takes several turns. */
struct turn_long {
    bool is_held;
    bool is_drafting;    /* its records are being handed to the journal */
    struct list line;    /* struct turn_line */
    size_t left_waiting; /* in line, when it was released last */
    struct fiber *fiber; /* that applies it; NULL: it is not being applied */
    struct applying applying;
    struct buf bodies;
    struct snapshot before;
    struct snapshot *seen; /* `before`, while it is being applied; then that is merely freed */
    struct budget budget;
    uint64_t longest_ns;
    struct loop_task more; /* applies another slice */
    struct loop_task next; /* tells those in line */
};

struct turn {
    struct loop *loop;
    struct store *store;
    struct journal *journal;
    struct loop_hook at_turn_end;
    struct loop_task clean_more; /* another turn soon, though nothing else happens */
    struct heap waits;           /* until a serial is committed */
    struct heap waits_for_all;   /* until a journal_sequence is */
    uint64_t committed;          /* the journal's last serial that is */
    uint64_t arrivals;
    uint64_t changes; /* that were begun: the last one's number */
    struct cleaner cleaner;
    uint64_t segment_bytes;
    uint64_t garbage; /* made since the start */
    struct buf spare; /* of the change that was done last, empty: the next one's */
    void (*on_failed)(void *context, const char *why);
    void *on_failed_context;
    struct turn_long held;
    struct turn_log *log; /* of the cluster; NULL: the server is alone */
    struct list told;     /* struct turn_wait, to be told that they are late */
    struct loop_task tell;
};

/* turn.c */
/* Reserves the room of the change, and notes what it comes to. */
struct err *turn_prepare(struct turn *t, const struct change *c, struct applying *out) MUST_USE;
/* The one at this place. */
struct journal_record turn_record(const struct change *c, size_t i);
/* Applies what was appended. */
void turn_apply_records(const struct applying *a);

/* turn_long.c */
void turn_long_init(struct turn *t);
/* Somebody who cannot wait comes before what is being handed over. */
void turn_drop_draft(struct turn *t);

/* turn_log.c; only where there is a log */
/* ERR_NO_LEADER, ERR_OVERLOADED, ERR_PAYLOAD_TOO_LARGE: the change cannot be carried out now. */
struct err *turn_log_admit(struct turn *t, const struct change *c) MUST_USE;
/* Likewise, when it has given way since. */
bool turn_log_still_admits(const struct turn *t, const struct change *c);
/* What was appended from serial `first` on goes to the log too, unless that is where it is from. */
void turn_log_gather(struct turn *t, const struct change *c, uint64_t first);
/* A long one, record by record; then what was appended before is cut off, and it is a batch of its
 * own. */
void turn_log_draft(struct turn *t, const struct change *c, size_t i);
void turn_log_cut(struct turn *t);
void turn_log_gather_draft(struct turn *t, const struct change *c, uint64_t first);
/* The turn's end. */
void turn_log_commit(struct turn *t);
/* Whoever waits for this serial would wait in vain, or for nobody knows how long. */
bool turn_log_is_in_vain(const struct turn *t, uint64_t serial);
void turn_log_free(struct turn *t);

#endif
