/* A change is applied and appended to the journal at once, as on a server that is alone, so that
 * places in the journal are known; but the journal does not write before the log has confirmed. So
 * batches of the log and writes of the journal are cut at the same places:
 *
 *   batches   [ under way ] [ sealed ] ... [ gathering ]
 *   journal   [ writes that wait for the same cut                ]
 *
 * A batch is sealed when it is as large as etcd takes quickly, or when it goes to the log: what
 * follows is another write of the journal too (journal_cut). So is what comes before the first one.
 * Moves of cleaning stand in the journal alone, in whatever write gathers. */
#include "store/turn_log.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "store/change.h"
#include "store/change_record.h"
#include "store/record.h"
#include "store/turn_batch.h"
#include "store/turn_log_inner.h"
#include "store/turn_wait.h"

#include <inttypes.h>

enum { SEALED_BYTES = 256 << 10 }; /* a batch that has so much takes no more changes */

/* What waits for the log in all, and what one change may come to: of the size of a batch that the
 * log takes. */
#define QUEUE_BYTES ((size_t)64 << 20)
#define CHANGE_BYTES ((size_t)192 << 20)

struct log_batch {
    struct list_link link;
    struct buf content;
    uint64_t first;
    uint32_t count;
    uint64_t cut; /* of the journal; 0: it gathers */
};

static struct log_batch *batch_at(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct log_batch, link);
}

bool turn_log_is_in_vain(const struct turn *t, uint64_t serial)
{
    return (t->log->is_late || t->log->is_lost) && serial > t->log->confirmed;
}

/* ---- leading ---- */

static void free_batch(struct turn_log *l, struct log_batch *batch)
{
    l->bytes -= batch->content.n;
    list_remove(&l->batches, &batch->link);
    buf_done(&batch->content);
    mem_free(batch);
}

static void lose(struct turn_log *l, const char *why)
{
    if (l->is_lost)
        return;
    l->is_lost = true;
    log_error("turn", "changes from serial %" PRIu64 " on are not in the log: %s", l->confirmed + 1,
              why);
    turn_tell_late(l->turn, l->confirmed);
    l->callbacks.on_lost(l->callbacks.context, why);
}

static void on_settled(struct replica_append *append, enum replica_settlement settlement,
                       const char *why)
{
    struct turn_log *l = CONTAINER_OF(append, struct turn_log, append);
    struct log_batch *batch = batch_at(list_first(&l->batches));

    l->is_under_way = false;
    if (settlement != REPLICA_CONFIRMED) {
        lose(l, why);
        return;
    }
    l->is_late = false;
    l->confirmed = batch->first + batch->count - 1;
    journal_commit_to(l->turn->journal, batch->cut);
    free_batch(l, batch);
    loop_wake(l->turn->loop);
}

static void on_late(struct replica_append *append, const char *why)
{
    struct turn_log *l = CONTAINER_OF(append, struct turn_log, append);

    (void)why; /* the log has said it */
    l->is_late = true;
    turn_tell_late(l->turn, l->confirmed);
}

static void seal(struct turn_log *l, struct log_batch *batch)
{
    batch->cut = journal_cut(l->turn->journal);
}

static void send_batch(struct turn_log *l, struct log_batch *batch)
{
    if (batch->cut == 0)
        seal(l, batch);
    l->append = (struct replica_append){
        .first = batch->first,
        .count = batch->count,
        .content = buf_span(&batch->content),
        .on_settled = on_settled,
        .on_late = on_late,
    };
    l->is_under_way = true;
    replica_append(l->replica, &l->append);
}

void turn_log_commit(struct turn *t)
{
    struct turn_log *l = t->log;
    struct log_batch *first = batch_at(list_first(&l->batches));

    if (first == NULL)
        journal_commit(t->journal);
    else if (!l->is_under_way && !l->is_lost && replica_can_append(l->replica))
        send_batch(l, first);
}

static bool leads(const struct turn_log *l)
{
    return l->replica != NULL && !l->is_lost && !l->is_closed &&
           replica_role(l->replica) == REPLICA_LEADING;
}

static struct err *no_leader(const struct turn_log *l)
{
    if (l->is_late)
        return ERR(ERR_NO_LEADER, "the cluster's log does not confirm changes; this one was not "
                                  "carried out");
    return ERR(ERR_NO_LEADER, "this node does not lead the cluster; nothing was changed");
}

/* The journal may have been told to write what gathers, moves and what was followed, and be busy: a
 * change must not go along with that before the log has confirmed it. Behind the first batch
 * nothing is written without the log. */
static void begin_apart(const struct turn_log *l)
{
    struct journal *journal = l->turn->journal;

    if (list_empty(&l->batches) && journal_sequence(journal) > 0)
        journal_cut(journal);
}

static bool is_known_to_all(const struct turn_log *l, unsigned kind, struct span *out_unless)
{
    return kind < RECORD_KIND_COMMON_END || kind < replica_records(l->replica, out_unless);
}

/* Who does not know a record waits there for a newer program: so it is not written while such a
 * node lives. */
static struct err *check_known(struct turn_log *l, const struct change *c)
{
    unsigned kind = 0;
    struct span node;

    for (size_t i = 0; i < c->count; i++)
        kind = MAX(kind, c->records[i].kind);
    if (is_known_to_all(l, kind, &node))
        return NULL;
    if (l->held_kind != kind)
        log_warn("turn",
                 "records of kind %u are not written: node '%.*s' does not know them, and needs a "
                 "newer version",
                 kind, SPAN_FMT(node));
    l->held_kind = kind;
    return ERR(ERR_CONFLICT,
               "node '%.*s' of the cluster does not know records of kind %u, which this change "
               "needs: it needs a newer version first",
               SPAN_FMT(node), kind);
}

unsigned turn_log_holds_back(const struct turn *t, struct span *out_node)
{
    const struct turn_log *l = t->log;

    if (l == NULL || l->held_kind == 0 || !leads(l) || is_known_to_all(l, l->held_kind, out_node))
        return 0;
    return l->held_kind;
}

struct err *turn_log_admit(struct turn *t, const struct change *c)
{
    struct turn_log *l = t->log;

    if (c->is_move || c->is_followed)
        return NULL;
    if (!leads(l) || l->is_late)
        return no_leader(l);
    TRY(check_known(l, c));
    if (c->bodies.n + c->count * TURN_BATCH_RECORD_BYTES > CHANGE_BYTES)
        return ERR(ERR_PAYLOAD_TOO_LARGE,
                   "a change of %zu bytes is more than the cluster's log takes at once (%zu)",
                   c->bodies.n, CHANGE_BYTES);
    if (l->bytes > QUEUE_BYTES)
        return ERR(ERR_OVERLOADED, "the cluster's log does not keep up with the changes");
    begin_apart(l);
    return NULL;
}

bool turn_log_still_admits(const struct turn *t, const struct change *c)
{
    return c->is_followed || turn_takes_changes(t);
}

static struct log_batch *add_batch(struct turn_log *l, uint64_t serial)
{
    struct log_batch *batch = NEW(struct log_batch);

    MUST(l->next == serial);
    buf_init(&batch->content, BUF_NO_CAP);
    batch->first = serial;
    list_push_back(&l->batches, &batch->link);
    return batch;
}

static struct log_batch *gathering(struct turn_log *l, uint64_t serial)
{
    struct log_batch *last = batch_at(list_last(&l->batches));

    return last != NULL && last->cut == 0 ? last : add_batch(l, serial);
}

static void add_record(struct buf *content, const struct change *c, size_t i)
{
    const struct change_record *r = &c->records[i];

    turn_batch_add(content, &(struct turn_batch_record){
                                .kind = (uint16_t)r->kind,
                                .serials = r->serials,
                                .more = i + 1 < c->count,
                                .body = span_sub(buf_span(&c->bodies), r->offset, r->offset + r->n),
                            });
}

void turn_log_gather(struct turn *t, const struct change *c, uint64_t first)
{
    struct turn_log *l = t->log;
    struct log_batch *batch;
    size_t before;

    if (c->is_move || c->is_followed)
        return;
    batch = gathering(l, first);
    before = batch->content.n;
    for (size_t i = 0; i < c->count; i++)
        add_record(&batch->content, c, i);
    batch->count += (uint32_t)(c->next_serial - first);
    l->next = c->next_serial;
    l->bytes += batch->content.n - before;
    if (batch->content.n >= SEALED_BYTES)
        seal(l, batch);
}

void turn_log_draft(struct turn *t, const struct change *c, size_t i)
{
    if (c->is_followed)
        return;
    if (i == 0)
        buf_clear(&t->log->draft);
    add_record(&t->log->draft, c, i);
}

void turn_log_cut(struct turn *t)
{
    struct log_batch *last = batch_at(list_last(&t->log->batches));

    if (last != NULL && last->cut == 0)
        seal(t->log, last);
}

void turn_log_gather_draft(struct turn *t, const struct change *c, uint64_t first)
{
    struct turn_log *l = t->log;
    struct log_batch *batch;

    if (c->is_followed)
        return;
    batch = add_batch(l, first);
    batch->content = l->draft;
    buf_init(&l->draft, BUF_NO_CAP);
    batch->count = (uint32_t)(c->next_serial - first);
    l->next = c->next_serial;
    l->bytes += batch->content.n;
    seal(l, batch);
}

void turn_log_led(struct turn *t)
{
    struct turn_log *l = t->log;

    MUST(!l->is_under_way);
    if (!list_empty(&l->batches))
        lose(l, "this node does not lead any more");
}

/* ---- for the owner ---- */

bool turn_takes_changes(const struct turn *t)
{
    return t->log == NULL || (leads(t->log) && !t->log->is_late);
}

bool turn_log_is_late(const struct turn *t)
{
    return t->log != NULL && t->log->is_late;
}

void turn_log_close(struct turn *t)
{
    t->log->is_closed = true;
}

bool turn_log_is_settled(const struct turn *t)
{
    const struct turn_log *l = t->log;

    return (l->is_lost || list_empty(&l->batches)) && list_empty(&t->told) &&
           turn_is_committed(t, l->confirmed);
}

bool turn_log_is_under_way(const struct turn *t)
{
    return t->log->is_under_way;
}

void turn_log_begin(struct turn *t, struct replica *replica,
                    const struct turn_log_callbacks *callbacks)
{
    struct turn_log *l = NEW(struct turn_log);

    MUST(t->log == NULL && replica_next(replica) == journal_next_serial(t->journal));
    l->turn = t;
    l->replica = replica;
    l->callbacks = *callbacks;
    l->next = journal_next_serial(t->journal);
    l->confirmed = l->next - 1;
    buf_init(&l->draft, BUF_NO_CAP);
    list_init(&l->batches);
    turn_follow_init(l);
    t->log = l;
}

void turn_log_end(struct turn *t)
{
    t->log->replica = NULL;
}

void turn_log_free(struct turn *t)
{
    struct turn_log *l = TAKE(t->log);

    if (l == NULL)
        return;
    t->log = l; /* turn_unwait looks at it */
    turn_follow_done(l);
    while (!list_empty(&l->batches))
        free_batch(l, batch_at(list_first(&l->batches)));
    buf_done(&l->draft);
    mem_free(TAKE(t->log));
}
