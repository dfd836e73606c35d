/* When to clean, and one slice of it. Garbage is estimated from what is known without reading
 * anything: bytes of sealed segments less bytes of live records. An object is moved by a record
 * like the one that holds it, which takes no serial, so that recovery knows little of cleaning.
 * Which segment an object is in is told by its number: serials do not tell it of what was moved.
 * The policy is told in cleaner.h. */
#include "store/cleaner.h"

#include "base/log.h"
#include "io/disk.h"
#include "journal/journal.h"
#include "store/change.h"
#include "store/store.h"
#include "store/stored.h"
#include "store/turn.h"

#define DEFAULT_SLICE_BYTES JOURNAL_MOVE_BYTES
/* A turn, on a full disk: there deletions, which take room too, wait for what cleaning gains. */
#define FULL_SLICE_BYTES (4 * JOURNAL_MOVE_BYTES)

struct usage {
    uint64_t live, garbage, appended;
};

static struct usage usage_of(const struct cleaner *c, const struct journal_stats *stats)
{
    uint64_t live = store_live_bytes(c->store);

    return (struct usage){
        .live = live,
        .garbage = stats->sealed_bytes - MIN(live, stats->sealed_bytes),
        .appended = stats->appended_bytes,
    };
}

static void begin_pass(struct cleaner *c, const struct usage *now)
{
    c->pass = (struct pass){
        .is_under_way = true,
        .was_made = true,
        .end = journal_newest_number(c->journal),
        .garbage = now->garbage,
        .live = now->live,
        .appended = now->appended,
        .made = turn_garbage(c->turn),
    };
}

/* Garbage that others have made since the pass began: what they wrote and is not alive. */
static int64_t new_garbage(const struct pass *pass, const struct usage *now)
{
    return (int64_t)(now->appended - pass->appended - pass->moved) -
           (int64_t)(now->live - pass->live);
}

static void end_pass(struct pass *pass, const struct usage *now)
{
    int64_t gained = (int64_t)(pass->garbage - now->garbage) + new_garbage(pass, now);

    pass->is_under_way = false;
    pass->was_in_vain = gained < (int64_t)now->live / 8;
}

static bool oldest_is_empty(struct cleaner *c)
{
    const struct stored *oldest = store_oldest(c->store);

    return oldest == NULL || !store_is_in(oldest, journal_oldest_number(c->journal));
}

/* On a full disk any garbage is worth a pass, unless the last one has met it already. */
static bool is_worthwhile(const struct cleaner *c, const struct usage *now)
{
    if (c->is_full)
        return !c->pass.was_made || turn_garbage(c->turn) - c->pass.made >= DISK_BLOCK_BYTES;
    return !c->pass.was_in_vain || new_garbage(&c->pass, now) >= (int64_t)now->live / 4;
}

static bool wants_cleaning(struct cleaner *c)
{
    struct journal_stats stats;
    struct usage now;
    bool is_empty;

    journal_stats(c->journal, &stats);
    now = usage_of(c, &stats);
    c->is_full = stats.full;
    is_empty = oldest_is_empty(c);
    if (c->pass.is_under_way && !is_empty && journal_oldest_number(c->journal) > c->pass.end)
        end_pass(&c->pass, &now);
    if (stats.failed)
        return false;
    if (is_empty)
        return true;
    if (!c->is_full && now.garbage * 2 <= now.live)
        return false;
    if (c->pass.is_under_way)
        return true;
    if (!is_worthwhile(c, &now))
        return false;
    begin_pass(c, &now);
    return true;
}

static struct err *move_one(struct cleaner *c, struct stored *stored)
{
    struct change change;
    uint64_t serial;
    struct err *e;

    change_init(&change, c->turn, &c->scratch);
    change.is_move = true;
    e = store_move(c->store, stored, &change);
    if (e == NULL)
        e = turn_apply(c->turn, &change, &serial);
    if (e == NULL)
        c->moved = journal_sequence(c->journal);
    change_done(&change);
    arena_reset(&c->scratch);
    return e;
}

/* Appends again what the oldest segment still holds, up to a slice. *out_done when nothing is left.
 */
static struct err *move_slice(struct cleaner *c, bool *out_done)
{
    size_t moved = 0, slice = c->is_full ? FULL_SLICE_BYTES : c->slice_bytes;

    *out_done = false;
    while (moved < slice) {
        struct stored *oldest = store_oldest(c->store);

        *out_done = oldest_is_empty(c);
        if (*out_done)
            break;
        moved += oldest->bytes;
        TRY(move_one(c, oldest));
    }
    c->pass.moved += disk_blocks(moved);
    return NULL;
}

/* All that the oldest segment still holds must find room: half of it moved would be room lost. That
 * may have to wait until the one before is deleted, which ends in a turn that comes here again. */
static struct err *find_room(struct cleaner *c, bool *out_wait)
{
    uint64_t oldest = store_segment_bytes(c->store, journal_oldest_number(c->journal));
    const struct journal_left left = {0, journal_moved_bytes(oldest)};

    *out_wait = !journal_can_move(c->journal, left.moves) && journal_is_dropping(c->journal);
    return *out_wait ? NULL : journal_reserve(c->journal, 0, &left);
}

/* One step towards the oldest segment's end. *out_more: another turn can do the next. */
static struct err *move_or_drop(struct cleaner *c, bool *out_more)
{
    bool is_empty, wait;

    *out_more = false;
    TRY(find_room(c, &wait));
    if (wait)
        return NULL;
    TRY(move_slice(c, &is_empty));
    if (is_empty && journal_committed_sequence(c->journal) < c->moved)
        return NULL; /* its commit ends in a turn that comes here again */
    if (is_empty)
        journal_drop_oldest(c->journal);
    *out_more = true;
    return NULL;
}

bool cleaner_step(struct cleaner *c)
{
    struct err *e;
    bool more;

    if (!wants_cleaning(c))
        return false;
    e = move_or_drop(c, &more);
    if (e != NULL && !c->fails)
        log_error("cleaner", "the journal cannot be cleaned: %.*s", SPAN_FMT(err_message(e)));
    c->fails = e != NULL;
    err_free(e);
    return more;
}

void cleaner_init(struct cleaner *c, struct turn *turn, struct store *store,
                  struct journal *journal, uint32_t slice_bytes)
{
    *c = (struct cleaner){
        .turn = turn,
        .store = store,
        .journal = journal,
        .slice_bytes = slice_bytes == 0 ? DEFAULT_SLICE_BYTES : slice_bytes,
    };
    arena_init(&c->scratch);
}

void cleaner_done(struct cleaner *c)
{
    arena_done(&c->scratch);
}
