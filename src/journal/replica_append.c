/* A batch into the log:
 *
 *   parts, one after another --> the mark --> CONFIRMED
 *      |                           |
 *      +------- refused -----------+--> what does the log say? --> CONFIRMED, DECLINED, UNCERTAIN
 *      |                           |             |
 *      +------- not answered ------+             +--> nothing yet: the same again
 *
 * The mark is the log key: one transaction, if `leader` has our epoch and there is no log key at or
 * above the serial. What was not answered may have been carried out, or be so later; so the same is
 * sent again until etcd answers. A refusal may be the effect of the batch itself, sent before: what
 * stands at the key decides. Neither a full etcd, nor one that denies access, settles anything: an
 * earlier try may have gone through.
 *
 * What the log says is read in one transaction with `leader`. Ours at the key: confirmed. Another
 * epoch, and not ours: declined, for ever, as whatever of ours is still on its way meets the other
 * epoch. But when the log's oldest batch is younger than ours, it may have been there: uncertain.
 */
#include "replica_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "base/rng.h"

#include <stdio.h>

enum { PAUSE_LEAST_MS = 50, PAUSE_MOST_MS = 2000, DOUBLINGS_MOST = 6 };

static void send_next(struct replica *r);

static void settle(struct replica *r, enum replica_settlement settlement, const char *why)
{
    struct replica_append *append = TAKE(r->append);

    timer_stop(r->loop, &r->late);
    timer_stop(r->loop, &r->append_again);
    etcd_cancel(r->etcd, &r->append_call);
    buf_shrink(&r->stored, r->options.value_bytes);
    buf_shrink(&r->value, r->options.value_bytes);
    if (settlement == REPLICA_CONFIRMED) {
        r->next = append->first + append->count;
        r->before_bytes += r->head.stored_bytes;
        r->read.wanted = r->read.taken = r->next;
        replica_read_note_last(r, &r->head);
        r->stats.appended++;
        r->stats.appended_bytes += append->content.n;
        histogram_add(&r->stats.append_time, clock_mono_ns() - r->append_since_ns);
    } else {
        replica_end_leading(r, why);
    }
    replica_on_settled(r);
    append->on_settled(append, settlement, why);
}

static void again(struct replica *r)
{
    uint64_t most_ms =
        MIN((uint64_t)PAUSE_LEAST_MS << MIN(r->append_failures, (unsigned)DOUBLINGS_MOST),
            (uint64_t)PAUSE_MOST_MS);

    r->append_failures++;
    timer_start(r->loop, &r->append_again, most_ms - rng_below(most_ms / 2));
}

static void on_again(struct timer *timer)
{
    send_next(CONTAINER_OF(timer, struct replica, append_again));
}

static void on_late(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, late);
    struct replica_append *append = r->append;

    log_warn("replica", "serial %llu is not confirmed after %u ms: %s",
             (unsigned long long)append->first, r->options.commit_ms, r->append_why);
    if (append->on_late != NULL)
        append->on_late(append, r->append_why);
}

/* Another etcd's answer says nothing of ours. Once the lease is over nobody waits for that any
 * more: the one that was asked may never come back. */
static void on_nothing(struct replica *r, const struct etcd_answer *answer)
{
    if (answer->is_other && r->role == REPLICA_ENDING)
        settle(r, REPLICA_UNCERTAIN, answer->why);
    else
        again(r);
}

/* What the log says: `leader`, our key, the oldest key. */

static bool is_ours(const struct replica *r, const struct etcd_op_answer *at)
{
    struct replica_head head;

    return at->kv_count > 0 && replica_head_of(at->kvs, &head) &&
           replica_batch_is_same(&head, &r->head);
}

static bool is_trimmed(struct replica *r, const struct etcd_op_answer *oldest)
{
    uint64_t serial;

    return oldest->kv_count > 0 && replica_key_is_log(oldest->kvs->key, r->cluster, &serial) &&
           serial > r->head.first;
}

static void judge(struct replica *r, const struct etcd_op_answer ops[3])
{
    bool is_epoch = ops[0].kv_count > 0 && ops[0].kvs->create_revision == r->epoch;

    if (is_ours(r, &ops[1])) {
        if (!is_epoch)
            replica_end_leading(r, "another epoch has begun");
        settle(r, REPLICA_CONFIRMED, "");
    } else if (is_epoch && ops[1].kv_count > 0) {
        settle(r, REPLICA_DECLINED, "the log goes on differently in our own epoch");
    } else if (is_epoch) {
        again(r);
    } else if (is_trimmed(r, &ops[2]) || ops[2].kv_count == 0) {
        settle(r, REPLICA_UNCERTAIN, "another epoch has begun, and the log begins later");
    } else {
        settle(r, REPLICA_DECLINED, "another epoch has begun");
    }
}

struct questions {
    struct replica_text at;
    struct etcd_op gets[3];
};

static void make_questions(struct replica *r, struct questions *q)
{
    q->at = replica_log_text(r, r->head.first);
    q->gets[0] = (struct etcd_op){.kind = ETCD_GET, .key = r->keys.leader};
    q->gets[1] = (struct etcd_op){.kind = ETCD_GET, .key = replica_span(&q->at)};
    q->gets[2] = (struct etcd_op){.kind = ETCD_GET,
                                  .key = r->keys.log,
                                  .range_end = r->keys.log_end,
                                  .limit = 1,
                                  .keys_only = true};
}

static void on_asked(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, append_call);

    if (answer->outcome == ETCD_DONE && answer->op_count == 3)
        judge(r, answer->ops);
    else
        on_nothing(r, answer);
}

static void ask(struct replica *r)
{
    struct questions q;

    make_questions(r, &q);
    r->append_call = (struct etcd_call){.on_done = on_asked};
    etcd_txn(r->etcd, &r->append_call,
             &(struct etcd_txn){.then = q.gets, .then_count = ARRAY_LEN(q.gets)});
}

/* Sending. */

static void split(struct replica *r)
{
    uint32_t most = r->options.value_bytes;

    r->part = 0;
    r->head.parts = r->stored.n > most ? (uint32_t)((r->stored.n + most - 1) / most) : 0;
}

static void on_no_answer(struct replica *r, const struct etcd_answer *answer)
{
    snprintf(r->append_why, sizeof(r->append_why), "%s", answer->why);
    replica_say_outcome(r, answer);
    if (answer->outcome == ETCD_UNKNOWN)
        on_nothing(r, answer);
    else
        ask(r); /* the epoch may be over, and etcd say something else all the same */
}

static void on_marked(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, append_call);

    if (answer->outcome == ETCD_DONE) {
        replica_say_well(r, true);
        settle(r, REPLICA_CONFIRMED, "");
    } else if (answer->outcome == ETCD_REFUSED && answer->op_count == 3) {
        replica_say_well(r, false);
        judge(r, answer->ops);
    } else {
        on_no_answer(r, answer);
    }
}

static void on_part_put(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, append_call);

    if (answer->outcome == ETCD_DONE) {
        r->part++;
        r->append_failures = 0;
        send_next(r);
    } else if (answer->outcome == ETCD_REFUSED && answer->op_count == 3) {
        judge(r, answer->ops);
    } else {
        on_no_answer(r, answer);
    }
}

/* If our epoch lasts and there is no log key at or above the serial. */
static void put_alone(struct replica *r, const struct questions *q, const struct etcd_op *put,
                      replica_done_fn *on_done)
{
    const struct etcd_compare compares[] = {
        {.key = r->keys.leader, .create_revision = r->epoch},
        {.key = replica_span(&q->at), .range_end = r->keys.log_end},
    };

    r->append_call = (struct etcd_call){.on_done = on_done};
    etcd_txn(
        r->etcd, &r->append_call,
        &(struct etcd_txn){compares, ARRAY_LEN(compares), put, 1, q->gets, ARRAY_LEN(q->gets)});
}

/* Only before the mark: a copy that comes late changes nothing. */
static void send_part(struct replica *r)
{
    struct questions q;
    size_t from = (size_t)r->part * r->options.value_bytes;
    struct replica_text key = replica_part_text(r, r->head.epoch, r->head.first, r->part);
    struct etcd_op put = {
        .key = replica_span(&key),
        .value = span_sub(buf_span(&r->stored), from, from + r->options.value_bytes),
    };

    make_questions(r, &q);
    put_alone(r, &q, &put, on_part_put);
}

static void send_mark(struct replica *r)
{
    struct questions q;
    struct etcd_op put;

    make_questions(r, &q);
    buf_clear(&r->value);
    replica_batch_add(&r->value, &r->head, buf_span(&r->stored));
    put = (struct etcd_op){.key = replica_span(&q.at), .value = buf_span(&r->value)};
    put_alone(r, &q, &put, on_marked);
}

static void send_next(struct replica *r)
{
    r->stats.attempts++;
    if (r->part < r->head.parts)
        send_part(r);
    else
        send_mark(r);
}

bool replica_can_append(const struct replica *r)
{
    return r->role == REPLICA_LEADING && r->append == NULL && !r->steps_down;
}

void replica_append(struct replica *r, struct replica_append *append)
{
    MUST(replica_can_append(r) && append->first == r->next && append->count > 0 &&
         append->content.n <= r->options.batch_bytes);
    r->append = append;
    r->append_since_ns = clock_mono_ns();
    r->append_failures = 0;
    snprintf(r->append_why, sizeof(r->append_why), "etcd has not answered");
    r->head = (struct replica_head){
        .epoch = (uint64_t)r->epoch,
        .first = append->first,
        .count = append->count,
        .before_bytes = r->before_bytes,
        .node = span_str(r->options.node),
    };
    buf_clear(&r->stored);
    replica_batch_pack(append->content, &r->head, &r->stored);
    split(r);
    timer_start(r->loop, &r->late, r->options.commit_ms);
    send_next(r);
}

void replica_append_init(struct replica *r)
{
    buf_init(&r->stored, BUF_NO_CAP);
    buf_init(&r->value, BUF_NO_CAP);
    timer_init(&r->append_again, on_again);
    timer_init(&r->late, on_late);
}

void replica_append_done(struct replica *r)
{
    etcd_cancel(r->etcd, &r->append_call);
    timer_stop(r->loop, &r->append_again);
    timer_stop(r->loop, &r->late);
    buf_done(&r->stored);
    buf_done(&r->value);
}
