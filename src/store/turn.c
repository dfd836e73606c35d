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
#include "journal/journal_options.h"
#include "journal/segment.h"
#include "store/change.h"
#include "store/change_record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "store/turn_inner.h"
#include "store/turn_wait.h"

#include <stdio.h>
#include <string.h>

/* Kept back so that deletions and outcomes find room on a full disk: bytes per object that may be
 * deleted one day, in a commit of its own, at most a part of a segment. Cleaning a segment takes as
 * long as some hundred of them, and makes room for the next ones. */
#define KEPT_BYTES_PER_OBJECT DISK_BLOCK_BYTES
#define KEPT_BYTES_MOST ((size_t)4 << 20)

/* What it costs to apply a record. */
enum { RECORD_UNITS = 512 };

static bool wait_less(const struct heap_node *a, const struct heap_node *b)
{
    const struct turn_wait *x = CONTAINER_OF_CONST(a, struct turn_wait, node);
    const struct turn_wait *y = CONTAINER_OF_CONST(b, struct turn_wait, node);

    return x->serial != y->serial ? x->serial < y->serial : x->order < y->order;
}

static void release(struct heap *waits, uint64_t committed)
{
    struct heap_node *first;

    while ((first = heap_first(waits)) != NULL) {
        struct turn_wait *wait = CONTAINER_OF(first, struct turn_wait, node);

        if (wait->serial > committed)
            return;
        heap_remove(waits, first);
        wait->on_committed(wait);
    }
}

/* A record that takes no serial was moved: what it says was said by the last one at the latest. */
static struct store_origin origin_of(uint64_t serial, uint32_t serials)
{
    bool is_move = serials == 0;

    return (struct store_origin){.serial = serial - is_move, .is_move = is_move};
}

static struct err *on_replay(void *context, const struct segment_record *record,
                             struct journal_place place)
{
    struct turn *t = context;
    struct store_origin origin = origin_of(record->serial, record->serials);

    origin.bytes = (uint32_t)segment_record_bytes(record->body.n);
    origin.place = place;
    return store_apply(t->store, record->kind, record->body, &origin);
}

static void on_commit(void *context, uint64_t serial)
{
    struct turn *t = context;
    uint64_t sequence = 0;

    if (heap_first(&t->waits_for_all) != NULL)
        sequence = journal_committed_sequence(t->journal);
    t->committed = serial;
    release(&t->waits, serial);
    release(&t->waits_for_all, sequence);
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

static void on_turn_end(struct loop_hook *hook)
{
    struct turn *t = CONTAINER_OF(hook, struct turn, at_turn_end);

    bool may_clean = journal_second_first_serial(t->journal) != 0; /* it has a second segment */

    if (!t->held.is_held && may_clean && cleaner_step(&t->cleaner)) {
        loop_post(t->loop, &t->clean_more);
    } else if (!t->held.is_held && journal_has_reserve(t->journal)) {
        struct journal_left left = must_leave(t, 0);

        journal_release(t->journal, &left); /* made ready for a change near the end of a segment */
    }
    if (t->log != NULL)
        turn_log_commit(t);
    else
        journal_commit(t->journal);
}

/* The turn that this task keeps awake does the work at its end. */
static void on_clean_more(struct loop_task *task)
{
    (void)task;
}

static void on_tell(struct loop_task *task)
{
    struct turn *t = CONTAINER_OF(task, struct turn, tell);
    struct turn_wait *wait;

    while ((wait = LIST_OBJECT(list_pop_front(&t->told), struct turn_wait, told)) != NULL)
        wait->on_late(wait);
}

struct turn *turn_new(struct loop *loop, struct store *store)
{
    struct turn *t = NEW(struct turn);

    t->loop = loop;
    t->store = store;
    t->at_turn_end.run = on_turn_end;
    t->clean_more.run = on_clean_more;
    t->tell.run = on_tell;
    list_init(&t->told);
    buf_init(&t->spare, BUF_NO_CAP);
    heap_init(&t->waits, wait_less);
    heap_init(&t->waits_for_all, wait_less);
    turn_long_init(t);
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
    t->committed = journal_committed_serial(t->journal);
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
    turn_settle(t);
    loop_unpost(t->loop, &t->held.next);
    if (t->journal != NULL)
        loop_remove_hook(t->loop, &t->at_turn_end);
    loop_unpost(t->loop, &t->clean_more);
    loop_unpost(t->loop, &t->tell);
    while (list_pop_front(&t->told) != NULL)
        ;
    turn_log_free(t);
    journal_close(t->journal);
    heap_done(&t->waits);
    heap_done(&t->waits_for_all);
    cleaner_done(&t->cleaner);
    buf_done(&t->spare);
    mem_free(t);
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
    return journal_reserve(t->journal, c->journal_bytes, &left);
}

/* What may use the kept room asks as all others first: so it becomes known that the disk is full.
 */
static struct err *reserve(struct turn *t, const struct change *c)
{
    struct journal_left left;
    struct err *e;

    if (c->is_move)
        return journal_reserve(t->journal, c->journal_bytes, NULL);
    left = must_leave(t, c->count);
    e = journal_reserve(t->journal, c->journal_bytes, &left);
    if (e == NULL || !(c->frees_space || c->is_outcome))
        return e;
    err_free(e);
    return reserve_kept(t, c);
}

static void note_garbage(const struct applying *a)
{
    struct turn *t = a->turn;
    uint64_t before = a->live_before + a->bytes, live = store_live_bytes(t->store);

    if (!a->is_move && before > live)
        t->garbage += before - live;
}

struct err *turn_prepare(struct turn *t, const struct change *c, struct applying *out)
{
    MUST(c->first_serial == journal_next_serial(t->journal));
    TRY(reserve(t, c));
    out->turn = t;
    out->bytes = c->journal_bytes;
    out->count = c->count;
    out->is_move = c->is_move;
    out->live_before = store_live_bytes(t->store);
    out->last = c->next_serial - (c->is_move ? 1 : c->records[c->count - 1].serials);
    return NULL;
}

struct journal_record turn_record(const struct change *c, size_t i)
{
    const struct change_record *r = &c->records[i];

    return (struct journal_record){
        .kind = (uint16_t)r->kind,
        .serials = r->serials,
        .body = span_sub(buf_span(&c->bodies), r->offset, r->offset + r->n),
    };
}

void turn_apply_records(const struct applying *a)
{
    uint64_t serial = a->first;

    for (size_t i = 0; i < a->count; i++) {
        const struct journal_record *r = &a->records[i];
        struct store_origin origin = origin_of(serial, r->serials);
        struct err *e;

        origin.bytes = (uint32_t)segment_record_bytes(r->body.n);
        origin.place = a->places[i];
        if (a->reads != NULL)
            origin.read = a->reads[i].read;
        e = store_apply(a->turn->store, r->kind, r->body, &origin);
        MUST(e == NULL); /* we have just encoded it */
        serial += r->serials;
        budget_spend(RECORD_UNITS);
    }
    note_garbage(a);
}

struct err *turn_apply(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct applying a = {.reads = c->records};

    if (c->count == 0) {
        *out_serial = 0;
        return NULL;
    }
    if (t->log != NULL)
        TRY(turn_log_admit(t, c));
    if (t->held.fiber != NULL)
        turn_settle(t);
    if (t->held.is_drafting)
        turn_drop_draft(t);
    a.records = ARENA_ARRAY(c->arena, struct journal_record, c->count);
    a.places = ARENA_ARRAY(c->arena, struct journal_place, c->count);
    TRY(turn_prepare(t, c, &a));
    for (size_t i = 0; i < c->count; i++)
        a.records[i] = turn_record(c, i);
    a.first = journal_append(t->journal, a.records, c->count, a.bytes, a.places);
    if (t->log != NULL)
        turn_log_gather(t, c, a.first);
    budget_hold(); /* nobody sees a part of it */
    turn_apply_records(&a);
    budget_release();
    *out_serial = a.last;
    return NULL;
}

uint64_t turn_garbage(const struct turn *t)
{
    return t->garbage;
}

bool turn_is_committed(const struct turn *t, uint64_t serial)
{
    return serial <= t->committed;
}

static void tell(struct turn *t, struct turn_wait *wait)
{
    list_push_back(&t->told, &wait->told);
    loop_post(t->loop, &t->tell);
}

void turn_tell_late(struct turn *t, uint64_t confirmed)
{
    struct heap all = t->waits;
    struct heap_node *first;

    heap_init(&t->waits, all.less);
    while ((first = heap_first(&all)) != NULL) {
        struct turn_wait *wait = CONTAINER_OF(first, struct turn_wait, node);

        heap_remove(&all, first);
        if (wait->on_late != NULL && wait->serial > confirmed)
            tell(t, wait);
        else
            heap_add(&t->waits, &wait->node);
    }
    heap_done(&all);
}

static void wait_in(struct turn *t, struct heap *waits, struct turn_wait *wait)
{
    wait->order = t->arrivals++;
    wait->is_for_all = waits == &t->waits_for_all;
    heap_add(waits, &wait->node);
    loop_wake(t->loop); /* what a task has changed is committed at the end of another turn */
}

void turn_wait(struct turn *t, struct turn_wait *wait, uint64_t serial)
{
    MUST(!turn_is_committed(t, serial) && !turn_waits(wait));
    wait->serial = serial;
    if (t->log != NULL && wait->on_late != NULL && turn_log_is_in_vain(t, serial))
        tell(t, wait);
    else
        wait_in(t, &t->waits, wait);
}

void turn_wait_for_all(struct turn *t, struct turn_wait *wait)
{
    MUST(journal_committed_sequence(t->journal) < journal_sequence(t->journal));
    wait->serial = journal_sequence(t->journal);
    wait_in(t, &t->waits_for_all, wait);
}

bool turn_waits(const struct turn_wait *wait)
{
    return heap_contains(&wait->node) || list_linked(&wait->told);
}

void turn_unwait(struct turn *t, struct turn_wait *wait)
{
    if (heap_contains(&wait->node))
        heap_remove(wait->is_for_all ? &t->waits_for_all : &t->waits, &wait->node);
    else if (list_linked(&wait->told))
        list_remove(&t->told, &wait->told);
}

void turn_on_failed(struct turn *t, void (*on_failed_fn)(void *context, const char *why),
                    void *context)
{
    t->on_failed = on_failed_fn;
    t->on_failed_context = context;
}

struct snapshot *turn_before(struct turn *t)
{
    return t->held.seen;
}

struct journal *turn_journal(struct turn *t)
{
    return t->journal;
}
