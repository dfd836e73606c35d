/* The happy path of a change:
 *
 *   turn_apply    space is reserved, records go to the journal's gathering commit, each is applied
 *   turn end      one write for all changes of the turn, unless one is under way: then they gather
 *   on_commit     waits up to that serial are released: answers leave, deliveries start
 *
 * Failure modes: no space - turn_apply refuses and nothing has changed. A failed write or sync -
 * the journal is closed for good, no wait is ever released, the owner is told once and ends the
 * process.
 *
 * Before the write the cleaner may add a slice of moves (cleaner.h). */
#include "store/turn.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "journal/segment.h"
#include "store/change.h"
#include "store/cleaner.h"
#include "store/store.h"
#include "store/turn_wait.h"

#include <stdio.h>
#include <string.h>

/* Kept back so that deletions and outcomes find room on a full disk: bytes per object that may be
 * deleted one day, in a commit of its own, at most a part of a segment. Cleaning a segment takes as
 * long as some hundred of them, and makes room for the next ones. */
#define KEPT_BYTES_PER_OBJECT DISK_BLOCK_BYTES
#define KEPT_BYTES_MOST ((size_t)4 << 20)

struct turn {
    struct loop *loop;
    struct store *store;
    struct journal *journal;
    struct loop_hook at_turn_end;
    struct loop_task clean_more; /* another turn soon, though nothing else happens */
    struct heap waits;
    uint64_t arrivals, changes;
    struct cleaner cleaner;
    uint64_t segment_bytes;
    uint64_t garbage; /* made since the start */
    struct buf spare;
    void (*on_failed)(void *context, const char *why);
    void *on_failed_context;
};

static bool wait_less(const struct heap_node *a, const struct heap_node *b)
{
    const struct turn_wait *x = CONTAINER_OF_CONST(a, struct turn_wait, node);
    const struct turn_wait *y = CONTAINER_OF_CONST(b, struct turn_wait, node);

    return x->serial != y->serial ? x->serial < y->serial : x->order < y->order;
}

static void release(struct turn *t, uint64_t serial)
{
    struct heap_node *first;

    while ((first = heap_first(&t->waits)) != NULL) {
        struct turn_wait *wait = CONTAINER_OF(first, struct turn_wait, node);

        if (wait->serial > serial)
            return;
        heap_remove(&t->waits, first);
        wait->on_committed(wait);
    }
}

static struct err *on_replay(void *context, const struct segment_record *record,
                             struct journal_place place)
{
    struct turn *t = context;
    const struct store_origin origin = {
        .serial = record->serial,
        .bytes = (uint32_t)segment_record_bytes(record->body.n),
        .place = place,
    };

    return store_apply(t->store, record->kind, record->body, &origin);
}

static void on_commit(void *context, uint64_t serial)
{
    release(context, serial);
}

static void on_failed(void *context, const char *what, int error_number)
{
    struct turn *t = context;
    char why[256];

    snprintf(why, sizeof(why), "%s: %s", what, strerror(error_number));
    log_error("turn", "the journal has failed, nothing is acknowledged any more: %s", why);
    if (t->on_failed != NULL)
        t->on_failed(t->on_failed_context, why);
}

static uint64_t kept_bytes(const struct turn *t, size_t more)
{
    uint64_t bytes = (store_live_count(t->store) + more) * KEPT_BYTES_PER_OBJECT;

    return MIN(bytes, MIN(KEPT_BYTES_MOST, t->segment_bytes / 4));
}

/* Cleaning must always be able to go on: there is room for what the oldest segment still holds, and
 * once that is moved and the segment gone, for what the next one holds; unless that is a larger
 * one, for which the room is kept from the beginning. */
static struct journal_left must_leave(const struct turn *t, size_t more)
{
    uint64_t oldest = store_segment_bytes(t->store, journal_oldest_number(t->journal));
    uint64_t large = MIN(store_live_bytes(t->store), journal_largest(t->journal));

    return (struct journal_left){
        .spare = kept_bytes(t, more),
        .moves = journal_moved_bytes(MAX(oldest, large)),
    };
}

/* What was made ready for a change near the end of a segment. */
static void release_room(struct turn *t)
{
    struct journal_left left;

    if (!journal_has_reserve(t->journal))
        return;
    left = must_leave(t, 0);
    journal_release(t->journal, &left);
}

static void on_turn_end(struct loop_hook *hook)
{
    struct turn *t = CONTAINER_OF(hook, struct turn, at_turn_end);

    if (!cleaner_step(&t->cleaner))
        release_room(t);
    else if (!loop_posted(&t->clean_more))
        loop_post(t->loop, &t->clean_more);
    journal_commit(t->journal);
}

/* The turn that this task keeps awake does the work at its end. */
static void on_clean_more(struct loop_task *task)
{
    (void)task;
}

struct turn *turn_new(struct loop *loop, struct store *store)
{
    struct turn *t = NEW(struct turn);

    t->loop = loop;
    t->store = store;
    t->at_turn_end.run = on_turn_end;
    t->clean_more.run = on_clean_more;
    buf_init(&t->spare, BUF_NO_CAP);
    heap_init(&t->waits, wait_less);
    return t;
}

struct err *turn_open(struct turn *t, const struct turn_options *options)
{
    const struct journal_callbacks callbacks = {
        .on_replay = on_replay,
        .on_commit = on_commit,
        .on_failed = on_failed,
        .context = t,
    };

    TRY(journal_open(t->loop, options->journal, &callbacks, &t->journal));
    cleaner_init(&t->cleaner, t, t->store, t->journal, options->clean_slice_bytes);
    t->segment_bytes = options->journal->segment_bytes == 0 ? JOURNAL_SEGMENT_BYTES
                                                            : options->journal->segment_bytes;
    loop_add_hook(t->loop, &t->at_turn_end);
    return store_loaded(t->store);
}

void turn_free(struct turn *t)
{
    if (t == NULL)
        return;
    if (t->journal != NULL)
        loop_remove_hook(t->loop, &t->at_turn_end);
    loop_unpost(t->loop, &t->clean_more);
    journal_close(t->journal);
    heap_done(&t->waits);
    cleaner_done(&t->cleaner);
    buf_done(&t->spare);
    mem_free(t);
}

static size_t change_bytes(const struct change *c)
{
    size_t bytes = 0;

    for (size_t i = 0; i < c->count; i++)
        bytes += segment_record_bytes(c->records[i].n);
    return bytes;
}

/* Uses what is kept back. Leaves no less for cleaning than it found: where others have taken the
 * disk that may be too little. */
static struct err *reserve_kept(struct turn *t, const struct change *c)
{
    uint64_t oldest = store_segment_bytes(t->store, journal_oldest_number(t->journal));
    struct journal_left left = {0, journal_moved_bytes(oldest)};

    if (!journal_can_move(t->journal, left.moves))
        left.moves = 0;
    if (c->is_outcome)
        left.spare = kept_bytes(t, c->count) / 2;
    return journal_reserve(t->journal, change_bytes(c), &left);
}

/* What may use the kept room asks as all others first: so it becomes known that the disk is full.
 */
static struct err *reserve(struct turn *t, const struct change *c)
{
    struct journal_left left;
    struct err *e;

    if (c->is_move)
        return journal_reserve(t->journal, change_bytes(c), NULL);
    left = must_leave(t, c->count);
    e = journal_reserve(t->journal, change_bytes(c), &left);
    if (e == NULL || !(c->frees_space || c->is_outcome))
        return e;
    err_free(e);
    return reserve_kept(t, c);
}

static void note_garbage(struct turn *t, const struct change *c, uint64_t live_before)
{
    uint64_t before = live_before + change_bytes(c), live = store_live_bytes(t->store);

    if (!c->is_move && before > live)
        t->garbage += before - live;
}

struct err *turn_apply(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct span bodies = buf_span(&c->bodies);
    struct journal_record *records;
    struct journal_place *places;
    uint64_t serial, live_before = store_live_bytes(t->store);

    if (c->count == 0) {
        *out_serial = 0;
        return NULL;
    }
    MUST(c->first_serial == journal_next_serial(t->journal));
    TRY(reserve(t, c));
    records = ARENA_ARRAY(c->arena, struct journal_record, c->count);
    places = ARENA_ARRAY(c->arena, struct journal_place, c->count);
    for (size_t i = 0; i < c->count; i++) {
        const struct change_record *r = &c->records[i];

        records[i] = (struct journal_record){
            .kind = (uint16_t)r->kind,
            .serials = r->serials,
            .body = span_sub(bodies, r->offset, r->offset + r->n),
        };
    }
    serial = journal_append(t->journal, records, c->count, places);
    for (size_t i = 0; i < c->count; i++) {
        const struct store_origin origin = {
            .serial = serial,
            .bytes = (uint32_t)segment_record_bytes(records[i].body.n),
            .place = places[i],
            .read = c->records[i].read,
        };
        struct err *e = store_apply(t->store, records[i].kind, records[i].body, &origin);

        MUST(e == NULL); /* we have just encoded it */
        *out_serial = serial;
        serial += records[i].serials;
    }
    note_garbage(t, c, live_before);
    return NULL;
}

uint64_t turn_garbage(const struct turn *t)
{
    return t->garbage;
}

bool turn_is_committed(const struct turn *t, uint64_t serial)
{
    return serial <= journal_committed_serial(t->journal);
}

void turn_wait(struct turn *t, struct turn_wait *wait, uint64_t serial)
{
    MUST(!turn_is_committed(t, serial));
    wait->serial = serial;
    wait->order = t->arrivals++;
    heap_add(&t->waits, &wait->node);
    loop_wake(t->loop); /* what a task has changed is committed at the end of another turn */
}

void turn_unwait(struct turn *t, struct turn_wait *wait)
{
    if (heap_contains(&wait->node))
        heap_remove(&t->waits, &wait->node);
}

void turn_on_failed(struct turn *t, void (*on_failed_fn)(void *context, const char *why),
                    void *context)
{
    t->on_failed = on_failed_fn;
    t->on_failed_context = context;
}

uint64_t turn_number_change(struct turn *t)
{
    return ++t->changes;
}

struct buf *turn_spare(struct turn *t)
{
    return &t->spare;
}

struct journal *turn_journal(struct turn *t)
{
    return t->journal;
}
