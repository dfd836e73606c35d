/* A follower applies what the leader has changed by the leader's way: a batch is checked as a
 * whole, queued, and split into its changes, each of which goes through turn_apply, a few a turn; a
 * long one is applied on a fiber. When the journal has a batch on disk the log is told, which is
 * also what paces the reading.
 *
 * What can go wrong: a batch that is not understood (a newer version wrote it) is not taken, nor
 * anything behind it, until a newer program is started; a full disk is tried again. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "store/change.h"
#include "store/change_record.h"
#include "store/record.h"
#include "store/turn_batch.h"
#include "store/turn_log_inner.h"
#include "store/turn_wait.h"

#include <stdio.h>

enum {
    APPLY_NS = 2000000, /* of the processor's time, a turn */
    AGAIN_MS = 1000,    /* the disk is full */
    WHY_BYTES = 256,
};

/* Of the leader's, to be applied. */
struct taken {
    struct list_link link;
    struct buf content;
    struct span rest; /* of it, not applied yet */
    uint64_t next;    /* serial behind it */
    struct turn_wait wait;
    struct turn *turn;
};

static struct taken *taken_at(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct taken, link);
}

static void free_taken(struct turn_log *l, struct taken *taken)
{
    turn_unwait(l->turn, &taken->wait);
    buf_done(&taken->content);
    mem_free(taken);
}

static void stuck(struct turn_log *l, struct err *e)
{
    char why[WHY_BYTES];

    snprintf(why, sizeof(why), "%.*s", SPAN_FMT(err_message(e)));
    err_free(e);
    if (l->is_stuck)
        return;
    l->is_stuck = true;
    log_error("turn", "the log is not followed: %s", why);
    l->callbacks.on_stuck(l->callbacks.context, why);
}

static void goes_on(struct turn_log *l)
{
    if (!l->is_stuck)
        return;
    l->is_stuck = false;
    l->callbacks.on_stuck(l->callbacks.context, NULL);
}

static void on_stored(struct turn_wait *wait)
{
    struct taken *taken = CONTAINER_OF(wait, struct taken, wait);
    struct turn_log *l = taken->turn->log;
    uint64_t next = taken->next;

    list_remove(&l->on_disk, &taken->link);
    free_taken(l, taken);
    if (l->replica != NULL)
        replica_taken(l->replica, next);
}

/* All of it is applied: the replica is told when it is on disk. */
static void finish(struct turn_log *l, struct taken *taken)
{
    list_remove(&l->taken, &taken->link);
    list_push_back(&l->on_disk, &taken->link);
    l->confirmed = taken->next - 1;
    l->next = taken->next;
    taken->wait.on_committed = on_stored;
    if (turn_is_committed(l->turn, taken->next - 1))
        on_stored(&taken->wait);
    else
        turn_wait(l->turn, &taken->wait, taken->next - 1);
}

/* Deletions find room on a full disk as they do on the leader. */
static bool only_deletes(const struct change *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->records[i].kind != RECORD_ENTITY_GONE && c->records[i].kind != RECORD_EVENT_GONE &&
            c->records[i].kind != RECORD_DELIVERY_GONE && c->records[i].kind != RECORD_ONCE_GONE)
            return false;
    return true;
}

/* The first change of `content`, which was checked. */
static void read_change(struct span *content, struct change *c)
{
    struct turn_batch_record record;

    do {
        struct err *e = turn_batch_next(content, &record);

        MUST(e == NULL);
        buf_add(change_begin(c), record.body);
        change_end(c, record.kind, record.serials);
    } while (record.more);
    c->is_followed = true;
    c->frees_space = only_deletes(c);
}

static struct err *apply(struct turn *t, struct change *c)
{
    uint64_t serial = 0;

    if (!turn_is_long(c))
        return turn_apply(t, c, &serial);
    turn_hold(t);
    while (serial == 0) {
        struct err *e = turn_apply_long(t, c, &serial);

        if (e != NULL) {
            turn_release(t);
            return e;
        }
    }
    return NULL;
}

static struct err *follow_one(struct turn_log *l, struct taken *taken)
{
    struct span rest = taken->rest;
    struct change change;
    struct err *e;

    change_init(&change, l->turn, &l->scratch);
    read_change(&rest, &change);
    e = apply(l->turn, &change);
    change_done(&change);
    arena_reset(&l->scratch);
    if (e == NULL)
        taken->rest = rest;
    return e;
}

/* Until nothing is left, or its time is up, or somebody holds the turn. */
static void follow(struct turn_log *l)
{
    uint64_t until_ns = clock_cpu_ns() + APPLY_NS;
    struct taken *taken;

    while ((taken = taken_at(list_first(&l->taken))) != NULL) {
        struct err *e;

        if (turn_is_held(l->turn)) {
            turn_line_up(l->turn, &l->line);
            return;
        }
        if (taken->rest.n == 0) {
            finish(l, taken);
            continue;
        }
        if (clock_cpu_ns() >= until_ns) {
            loop_post(l->turn->loop, &l->pump);
            return;
        }
        e = follow_one(l, taken);
        if (e != NULL) {
            stuck(l, e);
            timer_start(l->turn->loop, &l->again, AGAIN_MS);
            return;
        }
        goes_on(l);
    }
}

static void on_pump(struct loop_task *task)
{
    struct turn_log *l = CONTAINER_OF(task, struct turn_log, pump);
    uint64_t before = journal_next_serial(l->turn->journal);

    if (timer_running(&l->again))
        return;
    follow(l);
    if (journal_next_serial(l->turn->journal) != before)
        l->callbacks.on_followed(l->callbacks.context);
}

static void on_again(struct timer *timer)
{
    on_pump(&CONTAINER_OF(timer, struct turn_log, again)->pump);
}

static void on_free(struct turn_line *line)
{
    on_pump(&CONTAINER_OF(line, struct turn_log, line)->pump);
}

/* What the journal has is passed over: it was cut within the batch, between two changes. */
static struct span without_known(struct span content, uint64_t first, uint64_t next)
{
    while (first < next) {
        struct turn_batch_record record;
        struct err *e = turn_batch_next(&content, &record);

        MUST(e == NULL);
        first += record.serials;
    }
    MUST(first == next);
    return content;
}

/* Behind what is queued, and was not applied yet. */
static uint64_t next_to_take(const struct turn_log *l)
{
    struct taken *last = taken_at(list_last(&l->taken));

    return last != NULL ? last->next : journal_next_serial(l->turn->journal);
}

/* One that is not, is not taken, and nothing behind it is. */
static bool is_understood(struct turn_log *l, const struct replica_batch *batch)
{
    struct err *e;

    if (l->is_barred)
        return false;
    e = turn_batch_check(batch->content, batch->count, RECORD_KIND_END);
    if (e == NULL)
        return true;
    l->is_barred = true;
    stuck(l, e);
    return false;
}

void turn_log_take(struct turn *t, const struct replica_batch *batch)
{
    struct turn_log *l = t->log;
    uint64_t next = next_to_take(l);
    struct taken *taken;

    if (!is_understood(l, batch))
        return;
    MUST(batch->first <= next && next <= batch->first + batch->count);
    taken = NEW(struct taken);
    taken->turn = t;
    buf_init(&taken->content, BUF_NO_CAP);
    buf_add(&taken->content, batch->content);
    taken->rest = without_known(buf_span(&taken->content), batch->first, next);
    taken->next = batch->first + batch->count;
    list_push_back(&l->taken, &taken->link);
    loop_post(t->loop, &l->pump);
}

void turn_follow_init(struct turn_log *l)
{
    list_init(&l->taken);
    list_init(&l->on_disk);
    l->pump.run = on_pump;
    l->line.on_free = on_free;
    timer_init(&l->again, on_again);
    arena_init(&l->scratch);
}

void turn_follow_done(struct turn_log *l)
{
    struct list_link *at;

    while ((at = list_pop_front(&l->taken)) != NULL || (at = list_pop_front(&l->on_disk)) != NULL)
        free_taken(l, taken_at(at));
    turn_line_leave(l->turn, &l->line);
    timer_stop(l->turn->loop, &l->again);
    loop_unpost(l->turn->loop, &l->pump);
    arena_done(&l->scratch);
}
