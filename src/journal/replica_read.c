/* The log as it comes from others:
 *
 *   PAGING --> DRAINING --> PAGING ...   what is there, a page at a time
 *                 |
 *                 v
 *              WATCHING --> STALLED      what comes, and the key `leader`, in the order of
 * revisions |            | v            v PAGING       PAGING       the watch ended, or more came
 * than is taken: read anew
 *
 * A page and who leads are read in one transaction, and the watch begins at the revision behind the
 * last page, so that nothing falls between them. Each batch must begin where the one before ended:
 * of what comes again the rest is passed over, a hole is read again once, and then it is damage.
 *
 * The log is never empty (see "base" in replica_batch.h), so there are four ways for the place that
 * the node is at to lie: inside a batch, or at the end of one; before the first: the node is too
 * far behind; behind the last: the log has been lost, or set back.
 *
 * Memory: what is read and not yielded, and what is yielded and not taken, are bounded by
 * window_bytes each, and one batch; beyond it the watch is stopped. */
#include "replica_private.h"

#include "base/blob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/sm.h"

#include <inttypes.h>
#include <string.h>

enum { PAGE = 8, PAGE_OPS = 8, PARTS = 8, PAUSE_MS = 300, PAUSE_LONG_MS = 2000 };

enum read_state {
    READ_OFF,
    READ_PAGING,   /* asks, or waits to ask */
    READ_DRAINING, /* a page that is not the last */
    READ_WATCHING,
    READ_STALLED, /* too much has come */
    READ_LEVEL,   /* the last page; nobody else can append */
    READ_STATE_COUNT
};

#define AGAIN (SM_TO(READ_OFF) | SM_TO(READ_PAGING))

static const struct sm_state states[] = {
    [READ_OFF] = {"off", AGAIN},
    [READ_PAGING] = {"paging",
                     AGAIN | SM_TO(READ_DRAINING) | SM_TO(READ_WATCHING) | SM_TO(READ_LEVEL)},
    [READ_DRAINING] = {"draining", AGAIN},
    [READ_WATCHING] = {"watching", AGAIN | SM_TO(READ_STALLED)},
    [READ_STALLED] = {"stalled", AGAIN},
    [READ_LEVEL] = {"level", AGAIN},
};

static const struct sm_table machine = {"log reader", states, READ_STATE_COUNT};

struct entry {
    struct list_link link;
    struct blob *value;
    uint64_t since_ms;
};

struct handed {
    struct list_link link;
    uint64_t next, bytes, since_ms;
};

static void ask_page(struct replica *r);

static struct entry *first_entry(const struct replica_read *read)
{
    return LIST_OBJECT(list_first(&read->entries), struct entry, link);
}

static struct handed *first_handed(const struct replica_read *read)
{
    return LIST_OBJECT(list_first(&read->handed), struct handed, link);
}

static void drop_entry(struct replica_read *read, struct entry *e)
{
    list_remove(&read->entries, &e->link);
    read->entry_bytes -= blob_span(e->value).n;
    read->parts_read = 0;
    buf_shrink(&read->parts, 0);
    blob_unref(e->value);
    mem_free(e);
}

static void drop_entries(struct replica_read *read)
{
    while (!list_empty(&read->entries))
        drop_entry(read, first_entry(read));
    read->is_caught_up = false;
}

static void add_entry(struct replica *r, const struct etcd_kv *kv)
{
    struct entry *e = NEW(struct entry);

    e->value = blob_new(kv->value);
    e->since_ms = loop_now_ms(r->loop);
    list_push_back(&r->read.entries, &e->link);
    r->read.entry_bytes += kv->value.n;
    loop_post(r->loop, &r->read.pump);
}

static void stop_asking(struct replica *r)
{
    struct replica_read *read = &r->read;

    etcd_cancel(r->etcd, &read->call);
    etcd_watch_stop(r->etcd, &read->watch);
    timer_stop(r->loop, &read->again);
}

static void ask_after(struct replica *r, uint64_t pause_ms)
{
    stop_asking(r);
    drop_entries(&r->read);
    r->read.looks_back = r->read.state != READ_DRAINING;
    sm_move(&machine, &r->read.state, READ_PAGING);
    timer_start(r->loop, &r->read.again, pause_ms - (pause_ms > 1 ? rng_below(pause_ms / 2) : 0));
}

static void on_again(struct timer *timer)
{
    ask_page(CONTAINER_OF(timer, struct replica, read.again));
}

static void damage(struct replica *r, struct err *e)
{
    replica_say(r, REPLICA_DAMAGED, "%.*s (serial %llu)", SPAN_FMT(err_message(e)),
                (unsigned long long)r->read.wanted);
    err_free(e);
    ask_after(r, PAUSE_LONG_MS);
}

/* It may have been trimmed while it was read: it is read again once. */
static void lack(struct replica *r, const char *what)
{
    if (r->read.gap_seen) {
        damage(r, ERR(ERR_STORAGE_FAILURE, "%s", what));
    } else {
        r->read.gap_seen = true;
        ask_after(r, 0);
    }
}

/* What the log does not have any more. */
static void miss(struct replica *r, uint64_t begins)
{
    uint64_t next = r->read.wanted;

    replica_say_over(r, REPLICA_LOG_LOST, REPLICA_OTHER_ETCD);
    if (r->role != REPLICA_FOLLOWING) {
        replica_end_leading(r, "the log does not have what the node lacks");
        return;
    }
    replica_read_stop(r);
    etcd_keep_to(r->etcd, 0); /* it reads no log: the next page says which */
    replica_move(r, REPLICA_JOINING);
    if (r->callbacks.on_missing != NULL)
        r->callbacks.on_missing(r->callbacks.context, next, begins);
}

/* Watching. */

static void on_events(struct etcd_watch *watch, const struct etcd_event *events, size_t count)
{
    struct replica *r = CONTAINER_OF(watch, struct replica, read.watch);
    uint64_t serial;

    if (watch->attempts > 1) { /* its connection ended: what goes on may be another log */
        ask_after(r, 0);
        return;
    }
    for (size_t i = 0; i < count && r->read.state == READ_WATCHING; i++) {
        const struct etcd_kv *kv = &events[i].kv;

        r->read.seen = MAX(r->read.seen, kv->mod_revision);
        if (span_eq(kv->key, r->keys.id))
            ask_after(r, 0);
        else if (span_eq(kv->key, r->keys.leader))
            replica_note_leader(r, events[i].is_delete ? NULL : kv);
        else if (!events[i].is_delete && replica_key_is_log(kv->key, r->cluster, &serial))
            add_entry(r, kv);
    }
    if (r->read.state == READ_WATCHING && r->read.entry_bytes > r->options.window_bytes) {
        etcd_watch_stop(r->etcd, watch);
        r->read.is_caught_up = false;
        sm_move(&machine, &r->read.state, READ_STALLED);
    }
}

static void on_watch_end(struct etcd_watch *watch, enum etcd_watch_end end, const char *why)
{
    struct replica *r = CONTAINER_OF(watch, struct replica, read.watch);
    bool is_plain = end == ETCD_WATCH_COMPACTED || end == ETCD_WATCH_TOO_LARGE;

    if (end == ETCD_WATCH_OTHER)
        replica_say(r, REPLICA_OTHER_ETCD, "%s", why);
    else if (!is_plain)
        replica_say(r, end == ETCD_WATCH_DENIED ? REPLICA_DENIED : REPLICA_MISUSED, "%s", why);
    ask_after(r, is_plain ? 0 : end == ETCD_WATCH_OTHER ? PAUSE_MS : PAUSE_LONG_MS);
}

static void watch(struct replica *r)
{
    sm_move(&machine, &r->read.state, READ_WATCHING);
    r->read.watch = (struct etcd_watch){.on_events = on_events, .on_end = on_watch_end};
    etcd_watch_start(r->etcd, &r->read.watch, r->keys.id, r->keys.log_end, r->read.watch_from);
}

/* Paging. */

/* Nobody leads by a log that is lost, or another, whoever has asked to. `leader`: NULL where that
 * cannot be told. Another address may be another etcd's. */
static void leave_log(struct replica *r, const struct etcd_op_answer *leader, const char *why)
{
    etcd_leave_endpoint(r->etcd);
    ask_after(r, PAUSE_LONG_MS);
    if (r->role == REPLICA_TAKING_OVER)
        replica_end_leading(r, why);
    else
        replica_note_leader(r, leader != NULL ? replica_first(leader) : NULL);
}

/* A log that goes on differently behind what this node has is not its own, whatever its id. */
static bool is_set_back(const struct replica *r, const struct etcd_op_answer *page)
{
    struct replica_head head;

    if (!r->read.looks_back || r->read.last.next != r->read.wanted || page->kv_count == 0)
        return false; /* or it was trimmed */
    return replica_head_of(page->kvs, &head) && !head.is_base &&
           (head.epoch != r->read.last.epoch || head.first + head.count != r->read.last.next ||
            memcmp(head.digest, r->read.last.digest, sizeof(head.digest)) != 0);
}

/* Of a page: the batch that begins at the place or before it. False: there is nothing to go on
 * with. */
static bool take_nearest(struct replica *r, const struct etcd_op_answer *ops)
{
    const struct etcd_op_answer *nearest = &ops[1], *page = &ops[2];
    char words[REPLICA_ETCD_BYTES];
    struct replica_head head;
    uint64_t ends;
    struct span stored;
    struct err *e;

    replica_etcd_words(r, r->found_etcd, words);
    if (nearest->kv_count == 0 && page->kv_count == 0) {
        replica_say(r, REPLICA_LOG_LOST,
                    "the log is empty, the journal ends before serial %" PRIu64 "; %s",
                    r->read.wanted, words);
        leave_log(r, &ops[0], "the log is lost");
        return false;
    }
    e = replica_batch_parse((nearest->kv_count > 0 ? nearest : page)->kvs->value, &head, &stored);
    if (e != NULL) {
        damage(r, e);
        return false;
    }
    if (nearest->kv_count == 0) {
        miss(r, head.is_base ? head.first + head.count : head.first);
        return false;
    }
    ends = head.first + head.count;
    if (ends < r->read.wanted && page->kv_count == 0) {
        replica_say(r, REPLICA_LOG_LOST,
                    "the log ends before serial %" PRIu64 ", the journal before serial %" PRIu64
                    "; %s",
                    ends, r->read.wanted, words);
        leave_log(r, &ops[0], "the log is lost");
        return false;
    }
    add_entry(r, nearest->kvs);
    return true;
}

/* A log that was restored while this node lived is another one, whose beginning may be its own. */
static bool check_id(struct replica *r, const struct etcd_op_answer *id_page,
                     const struct etcd_op_answer *restored_page)
{
    struct span restored = replica_value(restored_page);
    uint64_t kept = etcd_kept_to(r->etcd);
    char words[REPLICA_ETCD_BYTES];
    char why[REPLICA_WHY_BYTES];
    struct uuid id;
    bool is_stranger;

    if (!uuid_parse(replica_value(id_page), &id))
        return true; /* then it is lost, or being begun */
    if (replica_settle_id(r, &id, restored, why, &is_stranger))
        return true;
    if (r->role == REPLICA_FOLLOWING && is_stranger && kept != 0 && kept != r->found_etcd) {
        replica_say(r, REPLICA_OTHER_ETCD, "%s; %s: an address of Etcd is another etcd's", why,
                    replica_etcd_words(r, r->found_etcd, words));
        leave_log(r, NULL, why);
    } else if (r->role == REPLICA_FOLLOWING)
        replica_refuse(r, REPLICA_OTHER_HISTORY, why);
    else
        replica_end_leading(r, why);
    return false;
}

/* Is it the log that this node follows, at the place where it was begun, with what it has taken? */
static bool is_own_log(struct replica *r, const struct etcd_answer *answer)
{
    const struct etcd_op_answer *ops = answer->ops;
    char words[REPLICA_ETCD_BYTES];
    bool is_home = replica_is_at_home(r, answer, &ops[5]); /* first, as a copy has the same id */

    if (is_home && !check_id(r, &ops[3], &ops[4]))
        return false;
    if (is_home && !is_set_back(r, &ops[6]))
        return true;
    if (is_home)
        replica_say(r, REPLICA_LOG_LOST,
                    "the log has another batch with serial %" PRIu64
                    " than this node: etcd was set back, and went on without what it has; %s",
                    r->read.last.first, replica_etcd_words(r, r->found_etcd, words));
    leave_log(r, NULL, "the log is another one");
    return false;
}

static void on_page(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, read.call);
    const struct etcd_op_answer *ops = answer->ops, *page;

    if (answer->outcome != ETCD_DONE || answer->op_count != PAGE_OPS) {
        replica_say_outcome(r, answer);
        ask_after(r, PAUSE_MS);
        return;
    }
    replica_say_well(r, false);
    page = &ops[2];
    r->found_etcd = answer->cluster_id;
    if (!is_own_log(r, answer) || !take_nearest(r, ops))
        return;
    etcd_keep_to(r->etcd, answer->cluster_id);
    replica_take_secret(r, &ops[7]); /* before who leads is known, and is asked with it */
    replica_say_over(r, REPLICA_LOG_LOST, REPLICA_OTHER_ETCD);
    for (size_t i = 0; i < page->kv_count; i++)
        add_entry(r, &page->kvs[i]);
    r->read.seen = answer->revision;
    r->read.watch_from = answer->revision + 1;
    if (page->more) {
        sm_move(&machine, &r->read.state, READ_DRAINING);
    } else {
        r->read.is_caught_up = true;
        if (r->role == REPLICA_TAKING_OVER)
            sm_move(&machine, &r->read.state, READ_LEVEL);
        else
            watch(r);
    }
    replica_note_leader(r, replica_first(&ops[0]));
}

static void ask_page(struct replica *r)
{
    struct replica_text at = replica_log_text(r, r->read.wanted),
                        last = replica_log_text(r, r->read.last.first);
    struct span behind = span_of(at.p, at.n + 1); /* with the NUL: what follows this key */
    const struct etcd_op gets[] = {
        {.kind = ETCD_GET, .key = r->keys.leader},
        {.kind = ETCD_GET, .key = r->keys.log, .range_end = behind, .limit = 1, .descending = true},
        {.kind = ETCD_GET, .key = behind, .range_end = r->keys.log_end, .limit = PAGE},
        {.kind = ETCD_GET, .key = r->keys.id},
        {.kind = ETCD_GET, .key = r->keys.restored},
        {.kind = ETCD_GET, .key = r->keys.home},
        {.kind = ETCD_GET, .key = replica_span(&last), .keys_only = !r->read.looks_back},
        {.kind = ETCD_GET, .key = r->keys.secret},
    };

    _Static_assert(ARRAY_LEN(gets) == PAGE_OPS, "all are looked at");
    r->read.call =
        (struct etcd_call){.on_done = on_page, .any_cluster = r->role != REPLICA_TAKING_OVER};
    etcd_txn(r->etcd, &r->read.call,
             &(struct etcd_txn){.then = gets, .then_count = ARRAY_LEN(gets)});
}

/* Parts. */

static bool take_part(struct replica *r, const struct replica_head *head, const struct etcd_kv *kv)
{
    struct replica_text key = replica_part_text(r, head->epoch, head->first, r->read.parts_read);

    if (!span_eq(replica_span(&key), kv->key))
        return false;
    buf_add(&r->read.parts, kv->value);
    r->read.parts_read++;
    return true;
}

/* Some that are left out show when the batch is put together. */
static void on_parts(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, read.call);
    const struct etcd_op_answer *page = answer->ops;
    struct replica_head head;
    struct span stored;
    struct err *e;
    bool is_whole;

    if (answer->outcome != ETCD_DONE) {
        replica_say_outcome(r, answer);
        timer_start(r->loop, &r->read.parts_again, PAUSE_MS);
        return;
    }
    is_whole = page->kv_count > 0;
    e = replica_batch_parse(blob_span(first_entry(&r->read)->value), &head, &stored);
    MUST(e == NULL); /* it was parsed before */
    for (size_t i = 0; i < page->kv_count && is_whole; i++)
        is_whole = r->read.parts_read < head.parts && take_part(r, &head, &page->kvs[i]);
    if (is_whole)
        loop_post(r->loop, &r->read.pump);
    else
        lack(r, "a batch of the log lacks parts");
}

static void on_parts_again(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, read.parts_again);

    loop_post(r->loop, &r->read.pump);
}

static void ask_parts(struct replica *r, const struct replica_head *head)
{
    struct replica_text from = replica_part_text(r, head->epoch, head->first, r->read.parts_read);
    struct replica_text to = replica_part_text(r, head->epoch, head->first, head->parts);

    r->read.call = (struct etcd_call){.on_done = on_parts};
    etcd_range(r->etcd, &r->read.call,
               &(struct etcd_op){.kind = ETCD_GET,
                                 .key = replica_span(&from),
                                 .range_end = replica_span(&to),
                                 .limit = PARTS});
}

/* Yielding. */

static void hand_over(struct replica *r, const struct replica_head *head, uint64_t since_ms)
{
    struct replica_read *read = &r->read;
    struct handed *h = NEW(struct handed);
    struct replica_batch batch = {
        .first = head->first,
        .count = head->count,
        .epoch = head->epoch,
        .node = head->node,
        .content = buf_span(&read->content),
    };

    *h = (struct handed){
        .next = head->first + head->count, .bytes = read->content.n, .since_ms = since_ms};
    list_push_back(&read->handed, &h->link);
    read->handed_bytes += h->bytes;
    read->wanted = h->next;
    replica_read_note_last(r, head);
    read->gap_seen = false;
    r->next = MAX(r->next, read->wanted);
    r->before_bytes = head->before_bytes + head->stored_bytes;
    r->stats.read++;
    r->stats.read_bytes += read->content.n;
    replica_say_over(r, REPLICA_DAMAGED, REPLICA_DAMAGED);
    r->callbacks.on_batch(r->callbacks.context, &batch);
}

static void yield(struct replica *r, struct entry *e, const struct replica_head *head,
                  struct span stored)
{
    struct replica_head kept = *head;
    struct blob *value = blob_ref(e->value); /* the node's name is in it */
    uint64_t since_ms = e->since_ms;
    struct err *error;

    buf_shrink(&r->read.content, 0);
    error = replica_batch_unpack(head, head->parts > 0 ? buf_span(&r->read.parts) : stored,
                                 r->options.batch_bytes, &r->read.content);
    if (error != NULL) {
        damage(r, error);
    } else {
        drop_entry(&r->read, e);
        loop_post(r->loop, &r->read.pump);
        hand_over(r, &kept, since_ms);
    }
    blob_unref(value);
}

static void take_entry(struct replica *r)
{
    struct replica_read *read = &r->read;
    struct entry *e = first_entry(read);
    struct replica_head head;
    struct span stored;
    struct err *error = replica_batch_parse(blob_span(e->value), &head, &stored);

    if (error != NULL) {
        damage(r, error);
    } else if (head.first + head.count <= read->wanted) {
        if (head.first + head.count == read->wanted)
            r->before_bytes = head.before_bytes + head.stored_bytes;
        drop_entry(read, e);
        loop_post(r->loop, &read->pump);
    } else if (head.is_base) {
        miss(r, head.first + head.count);
    } else if (head.first > read->wanted) {
        lack(r, "the log has a hole");
    } else if (read->parts_read < head.parts) {
        ask_parts(r, &head);
    } else {
        yield(r, e, &head, stored);
    }
}

/* One batch a time, since what is told may change everything. */
static void on_pump(struct loop_task *task)
{
    struct replica *r = CONTAINER_OF(task, struct replica, read.pump);
    struct replica_read *read = &r->read;
    bool waits = etcd_is_started(&read->call) || timer_running(&read->again) ||
                 timer_running(&read->parts_again);

    if (read->state == READ_OFF || waits)
        return;
    if (!list_empty(&read->entries)) {
        if (read->handed_bytes <= r->options.window_bytes)
            take_entry(r);
    } else if (read->state == READ_DRAINING || read->state == READ_STALLED) {
        ask_after(r, 0);
    } else {
        replica_look_around(r);
    }
}

void replica_taken(struct replica *r, uint64_t next)
{
    struct replica_read *read = &r->read;
    struct handed *h;

    MUST(next <= read->wanted);
    while ((h = first_handed(read)) != NULL && h->next <= next) {
        read->handed_bytes -= h->bytes;
        list_remove(&read->handed, &h->link);
        mem_free(h);
    }
    read->taken = MAX(read->taken, next);
    loop_post(r->loop, &read->pump);
}

uint64_t replica_lag_ms(const struct replica *r)
{
    const struct handed *handed = first_handed(&r->read);
    const struct entry *entry = first_entry(&r->read);

    if (handed == NULL && entry == NULL)
        return 0;
    return loop_now_ms(r->loop) - (handed != NULL ? handed->since_ms : entry->since_ms);
}

bool replica_read_is_level(const struct replica *r)
{
    const struct replica_read *read = &r->read;

    return read->is_caught_up && list_empty(&read->entries) && read->taken >= read->wanted;
}

void replica_read_begin(struct replica *r)
{
    struct replica_read *read = &r->read;

    if (r->next > read->wanted) /* what it has appended itself */
        read->wanted = read->taken = r->next;
    ask_after(r, 0);
}

void replica_read_check(struct replica *r, const struct etcd_answer *answer, int64_t seen,
                        const struct etcd_op_answer *id)
{
    if (r->read.state != READ_WATCHING)
        return;
    if (answer->is_other || !replica_is_id(r, id))
        log_warn("replica", "etcd does not say any more that the log is this node's");
    else if (answer->revision < seen)
        log_warn("replica", "etcd is at revision %" PRId64 ", and was at %" PRId64 " before",
                 answer->revision, seen);
    else
        return;
    ask_after(r, 0);
}

void replica_read_note_last(struct replica *r, const struct replica_head *head)
{
    r->read.last.epoch = head->epoch;
    r->read.last.first = head->first;
    r->read.last.next = head->first + head->count;
    memcpy(r->read.last.digest, head->digest, sizeof(head->digest));
}

void replica_read_stop(struct replica *r)
{
    struct replica_read *read = &r->read;

    stop_asking(r);
    timer_stop(r->loop, &read->parts_again);
    drop_entries(read);
    if (read->state != READ_OFF)
        sm_move(&machine, &read->state, READ_OFF);
}

void replica_joined(struct replica *r, uint64_t next)
{
    MUST(r->role == REPLICA_JOINING);
    r->read.wanted = next;
    replica_taken(r, next);
    replica_move(r, REPLICA_FOLLOWING);
    replica_read_begin(r);
}

void replica_read_init(struct replica *r)
{
    struct replica_read *read = &r->read;

    list_init(&read->entries);
    list_init(&read->handed);
    buf_init(&read->parts, BUF_NO_CAP);
    buf_init(&read->content, BUF_NO_CAP);
    timer_init(&read->again, on_again);
    timer_init(&read->parts_again, on_parts_again);
    read->pump.run = on_pump;
    read->wanted = read->taken = r->next = r->options.next;
}

void replica_read_done(struct replica *r)
{
    struct replica_read *read = &r->read;

    replica_read_stop(r);
    loop_unpost(r->loop, &read->pump);
    LIST_EACH(&read->handed, at)
        mem_free(CONTAINER_OF(at, struct handed, link));
    buf_done(&read->parts);
    buf_done(&read->content);
}
