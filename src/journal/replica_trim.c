/* The log's old end. Now and then the leader looks how long the log is, and deletes what is not
 * kept: at least tail_bytes are, and as much as a live node that is behind still needs, up to four
 * times that. When etcd is full and nobody leads (which nobody then can begin to: a full etcd
 * grants no leases and takes no puts), any node does it, as far as its own journal has it, if there
 * is still no leader; also one that has just been started, and gets no lease.
 *
 *   SURVEY   oldest and newest batch, the live nodes
 *   SEARCH   the cut, by halves: each batch says how many bytes were before it, so that how much
 *            is kept from there on is known without reading what is in between
 *   DELETE   batches below the cut, and parts, which are in the order of the log
 *   COMPACT  at the deletion's own revision
 *
 * A look that is not answered is given up: the next one does it. */
#include "replica_private.h"

#include "base/log.h"
#include "base/must.h"
#include "json/json.h"

enum { BEHIND_FACTOR = 4, SLACK_DIVISOR = 8 };

static void end(struct replica *r)
{
    timer_start(r->loop, &r->trim_due, r->options.trim_ms);
}

static bool may_trim(const struct replica *r)
{
    bool is_waiting = r->role == REPLICA_FOLLOWING || r->role == REPLICA_CANDIDATE ||
                      (r->role == REPLICA_ENTERING && r->has_entered);

    return r->role == REPLICA_LEADING ||
           (is_waiting && r->epoch == 0 && r->trouble == REPLICA_FULL);
}

static void on_compacted(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, trim);

    if (answer->outcome != ETCD_DONE && answer->outcome != ETCD_COMPACTED)
        log_warn("replica", "etcd was not compacted: %s", answer->why);
    end(r);
}

static void on_deleted(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, trim);

    if (answer->outcome != ETCD_DONE) {
        end(r);
        return;
    }
    r->stats.trimmed++;
    r->stats.log_keys -= MIN(r->stats.log_keys, (uint64_t)answer->ops[0].deleted);
    r->stats.log_bytes = r->trim_kept;
    r->trim = (struct etcd_call){.on_done = on_compacted};
    etcd_compact(r->etcd, &r->trim, answer->revision);
}

/* Everything before the batch that begins with trim_low. */
static void cut(struct replica *r)
{
    struct replica_text to = replica_log_text(r, r->trim_low),
                        parts_to = replica_parts_text(r, r->trim_epoch, r->trim_low);
    const struct etcd_compare compare = {
        .key = r->keys.leader, .create_revision = r->role == REPLICA_LEADING ? r->epoch : 0};
    const struct etcd_op deletions[] = {
        {.kind = ETCD_DELETE, .key = r->keys.log, .range_end = replica_span(&to)},
        {.kind = ETCD_DELETE, .key = r->keys.parts, .range_end = replica_span(&parts_to)},
    };

    r->trim = (struct etcd_call){.on_done = on_deleted};
    etcd_txn(r->etcd, &r->trim,
             &(struct etcd_txn){&compare, 1, deletions, ARRAY_LEN(deletions), NULL, 0});
}

/* The batch that begins with trim_low is kept with all behind it; one that begins with trim_high or
 * later is none to begin with. */
static void search(struct replica *r);

static void on_found(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, trim);
    uint64_t middle = r->trim_low + (r->trim_high - r->trim_low) / 2, kept;
    struct replica_head head;

    if (answer->outcome != ETCD_DONE || !may_trim(r)) {
        end(r);
        return;
    }
    if (answer->ops->kv_count == 0 || !replica_head_of(answer->ops->kvs, &head) ||
        head.first > r->trim_bound || r->trim_end_bytes - head.before_bytes < r->trim_keep) {
        r->trim_high = middle;
    } else {
        kept = r->trim_end_bytes - head.before_bytes;
        r->trim_low = head.first;
        r->trim_epoch = head.epoch;
        r->trim_kept = kept;
        if (kept <= r->trim_keep + r->trim_keep / SLACK_DIVISOR)
            r->trim_high = r->trim_low;
    }
    search(r);
}

/* What is cut is in the journal of who cuts it: a leader has all of the log, others may not, and
 * there may be nobody else who does. */
static uint64_t own_bound(const struct replica *r)
{
    return r->role == REPLICA_LEADING ? UINT64_MAX : r->read.taken;
}

/* A node that needs more than is ever kept for it has to take a copy. */
static bool leave_behind(struct replica *r)
{
    uint64_t most = r->options.tail_bytes * BEHIND_FACTOR;

    if (r->trim_keep == most || r->trim_kept <= most + most / SLACK_DIVISOR)
        return false;
    r->trim_keep = most;
    r->trim_bound = own_bound(r);
    r->trim_high = r->trim_newest;
    return true;
}

static void search(struct replica *r)
{
    struct replica_text from;

    if (r->trim_high <= r->trim_low + 1 && !leave_behind(r)) {
        if (r->trim_low > r->trim_oldest)
            cut(r);
        else
            end(r);
        return;
    }
    from = replica_log_text(r, r->trim_low + (r->trim_high - r->trim_low) / 2);
    r->trim = (struct etcd_call){.on_done = on_found};
    etcd_range(r->etcd, &r->trim,
               &(struct etcd_op){.kind = ETCD_GET,
                                 .key = replica_span(&from),
                                 .range_end = r->keys.log_end,
                                 .limit = 1});
}

/* The least place that another live node is at, of those that the log still has; UINT64_MAX: none
 * says. Who is where the log does not begin any more needs nothing of it. */
static uint64_t least_next(const struct replica *r, const struct etcd_op_answer *nodes,
                           uint64_t oldest)
{
    uint64_t least = UINT64_MAX;
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < nodes->kv_count; i++) {
        struct span value = nodes->kvs[i].value;
        struct json_doc doc;
        struct err *e =
            json_parse(span_sub(value, span_find_char(value, '{', 0), value.n), NULL, &a, &doc);
        uint64_t next;

        if (e == NULL && !span_starts(value, span_str(r->token)) &&
            span_to_u64(json_text(json_member(json_root(&doc), SPAN("Next"))), &next) &&
            next >= oldest)
            least = MIN(least, next);
        err_free(e);
    }
    arena_done(&a);
    return least;
}

static void on_surveyed(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, trim);
    const struct etcd_op_answer *ops = answer->ops;
    struct replica_head oldest, newest;
    uint64_t tail = r->options.tail_bytes;

    if (answer->outcome != ETCD_DONE || answer->op_count != 3 || !may_trim(r) ||
        ops[0].kv_count == 0 || ops[1].kv_count == 0 || !replica_head_of(ops[0].kvs, &oldest) ||
        !replica_head_of(ops[1].kvs, &newest)) {
        end(r);
        return;
    }
    r->trim_end_bytes = newest.before_bytes + newest.stored_bytes;
    r->trim_kept = r->trim_end_bytes - oldest.before_bytes;
    r->stats.log_keys = (uint64_t)ops[0].count;
    r->stats.log_bytes = r->trim_kept;
    r->trim_keep = tail;
    r->trim_low = r->trim_oldest = oldest.first;
    r->trim_high = r->trim_newest = newest.first;
    r->trim_epoch = oldest.epoch;
    r->trim_bound = MIN(least_next(r, &ops[2], oldest.first), own_bound(r));
    if (r->trim_kept <= tail + tail / SLACK_DIVISOR)
        end(r);
    else
        search(r);
}

static void survey(struct replica *r)
{
    const struct etcd_op gets[] = {
        {.kind = ETCD_GET, .key = r->keys.log, .range_end = r->keys.log_end, .limit = 1},
        {.kind = ETCD_GET,
         .key = r->keys.log,
         .range_end = r->keys.log_end,
         .limit = 1,
         .descending = true},
        {.kind = ETCD_GET,
         .key = r->keys.nodes,
         .range_end = r->keys.nodes_end,
         .limit = REPLICA_NODES_MOST},
    };

    r->trim = (struct etcd_call){.on_done = on_surveyed};
    etcd_txn(r->etcd, &r->trim, &(struct etcd_txn){.then = gets, .then_count = ARRAY_LEN(gets)});
}

static void on_trim_due(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, trim_due);

    if (may_trim(r))
        survey(r);
    else
        end(r);
}

void replica_trim_init(struct replica *r)
{
    timer_init(&r->trim_due, on_trim_due);
    end(r);
}

void replica_trim_done(struct replica *r)
{
    etcd_cancel(r->etcd, &r->trim);
    timer_stop(r->loop, &r->trim_due);
}
