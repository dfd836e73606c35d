/* The lease, and the node's key that stands on it: what others see of the node.
 *
 *   grant --> name --> keepalives, each a third of the lease after the one before
 *     ^                    |
 *     +------ lost --------+   the time is up by our own clock, or etcd says that it is gone
 *
 * The lease counts from the sending of the last keepalive that was answered, on the monotonic
 * clock: etcd counts from when it got it, which is later. Past that no keepalive is sent, whatever
 * etcd might still think: somebody else may lead already.
 *
 * A name that another process has is waited for as long as its lease lasts; when the other one
 * keeps it alive, while etcd answers, this node is refused. A process finds its own key again by
 * its token. */
#include "replica_private.h"

#include "base/clock.h"
#include "json/json.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define MS_PER_S 1000u

enum { KEEPALIVES = 3, SOON_MS = 100, LEASES_WAITED = 3, PAUSE_MS = 1000 };

bool replica_lease_lasts(const struct replica *r)
{
    return r->lease != 0 && clock_mono_ns() < r->lease_until_ns;
}

uint64_t replica_lease_ns(const struct replica *r)
{
    uint64_t now_ns = clock_mono_ns();

    return r->lease != 0 && now_ns < r->lease_until_ns ? r->lease_until_ns - now_ns : 0;
}

static uint64_t third_ms(const struct replica *r)
{
    return (uint64_t)r->ttl_s * MS_PER_S / KEEPALIVES;
}

static void forget(struct replica *r)
{
    etcd_cancel(r->etcd, &r->keepalive);
    etcd_cancel(r->etcd, &r->report);
    timer_stop(r->loop, &r->keepalive_due);
    timer_stop(r->loop, &r->lease_end);
    r->lease = 0;
    r->node_revision = 0;
}

static void leave(struct replica *r)
{
    void (*on_left)(void *context) = r->on_left;

    timer_stop(r->loop, &r->leave_end);
    r->on_left = NULL;
    if (on_left != NULL)
        on_left(r->left_context);
}

static void on_leave_end(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, leave_end);

    etcd_cancel(r->etcd, &r->revoke);
    leave(r);
}

static void on_revoked(struct etcd_call *call, const struct etcd_answer *answer)
{
    (void)answer; /* it is gone, or ends by itself */
    leave(CONTAINER_OF(call, struct replica, revoke));
}

void replica_lease_give_back(struct replica *r)
{
    int64_t lease = r->lease;

    forget(r);
    if (lease == 0) {
        if (r->on_left != NULL)
            timer_start(r->loop, &r->leave_end, 0);
        return;
    }
    etcd_cancel(r->etcd, &r->revoke);
    r->revoke = (struct etcd_call){.on_done = on_revoked, .repeats = true};
    etcd_lease_revoke(r->etcd, &r->revoke, lease);
}

/* Whoever reads goes on with it; whoever led does not. */
static void lose(struct replica *r, const char *why)
{
    bool led = r->role == REPLICA_LEADING || r->role == REPLICA_TAKING_OVER;

    if (led) {
        replica_end_leading(r, why);
        return;
    }
    replica_lease_give_back(r);
    if (r->role != REPLICA_ENDING && r->role != REPLICA_CANDIDATE && r->role != REPLICA_REFUSED)
        replica_lease_begin(r);
    else if (r->role == REPLICA_CANDIDATE) {
        replica_stop_step(r);
        replica_move(r, REPLICA_FOLLOWING);
        replica_lease_begin(r);
    }
}

void replica_lease_lose_name(struct replica *r)
{
    lose(r, "its name was taken away");
}

static void on_lease_end(struct timer *timer)
{
    lose(CONTAINER_OF(timer, struct replica, lease_end), "its lease is over");
}

static void count_from(struct replica *r, const struct etcd_answer *answer)
{
    uint64_t now_ns = clock_mono_ns();

    r->ttl_s = (unsigned)MIN(answer->ttl_s, 3600);
    r->lease_until_ns = answer->sent_ns + r->ttl_s * NS_PER_S;
    timer_start(r->loop, &r->lease_end,
                r->lease_until_ns > now_ns ? (r->lease_until_ns - now_ns) / NS_PER_MS + 1 : 0);
}

/* The node's key. */

static void add_value(struct replica *r, struct buf *b)
{
    buf_add_str(b, r->token);
    buf_add_str(b, " {");
    json_add_name(b, SPAN("Url"));
    json_add_string(b, span_str(r->options.url));
    json_add_name(b, SPAN("Version"));
    json_add_string(b, span_str(r->options.version));
    json_add_name(b, SPAN("Records"));
    buf_add_u64(b, r->options.records);
    json_add_name(b, SPAN("Next"));
    buf_add_u64(b, r->reported);
    json_add_name(b, SPAN("Role"));
    json_add_string(b, span_str(replica_role_text(r->reported_role)));
    buf_add_char(b, '}');
}

/* If the key has this create revision, 0 for none, it is put, with our lease. */
static void put_node(struct replica *r, struct etcd_call *call, int64_t revision)
{
    const struct etcd_compare compare = {.key = r->keys.node, .create_revision = revision};
    const struct etcd_op get = {.kind = ETCD_GET, .key = r->keys.node};
    struct etcd_op put = {.key = r->keys.node, .lease = r->lease};
    struct buf value = {.max = BUF_NO_CAP};

    r->reported = r->role == REPLICA_LEADING ? r->next : r->read.taken;
    r->reported_role = r->role;
    add_value(r, &value);
    put.value = buf_span(&value);
    etcd_txn(r->etcd, call, &(struct etcd_txn){&compare, 1, &put, 1, &get, 1});
    buf_done(&value);
}

static void take_name(struct replica *r, int64_t revision);

static void take_free_name(struct replica *r)
{
    take_name(r, 0);
}

static void wait_for_name(struct replica *r)
{
    uint64_t now_ms = loop_now_ms(r->loop);
    uint64_t most_ms = (uint64_t)LEASES_WAITED * r->ttl_s * MS_PER_S;

    if (r->name_taken_since_ms == 0)
        r->name_taken_since_ms = now_ms;
    if (r->role == REPLICA_ENTERING && now_ms - r->name_taken_since_ms > most_ms) {
        replica_refuse(r, REPLICA_NAME_TAKEN,
                       "another process is, and stays, the node of this name");
        return;
    }
    replica_say(r, REPLICA_NAME_TAKEN,
                "another process is node '%s'; waiting while its lease lasts", r->options.node);
    r->on_retry = take_free_name;
    timer_start(r->loop, &r->retry, PAUSE_MS);
}

/* While etcd has no quorum no lease ends, and when it has one again all of them begin anew. */
static void wait_for_name_anew(struct replica *r)
{
    r->name_taken_since_ms = 0;
}

static void named(struct replica *r, int64_t revision)
{
    r->node_revision = revision;
    r->name_taken_since_ms = 0;
    replica_say_over(r, REPLICA_NAME_TAKEN, REPLICA_NAME_TAKEN);
    replica_on_named(r);
}

static void on_name_answer(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);
    const struct etcd_op_answer *now = answer->ops;

    if (answer->outcome == ETCD_DONE) {
        replica_say_well(r, true);
        named(r, r->node_revision != 0 ? r->node_revision : answer->revision);
    } else if (answer->outcome == ETCD_REFUSED && answer->op_count == 1) {
        replica_say_well(r, false);
        if (now->kv_count == 0)
            take_name(r, 0);
        else if (!span_starts(now->kvs->value, span_str(r->token)))
            wait_for_name(r);
        else if (now->kvs->lease == r->lease)
            named(r, now->kvs->create_revision);
        else
            take_name(r, now->kvs->create_revision); /* it stands on a lease that we had */
    } else {
        wait_for_name_anew(r);
        replica_try_again_after(r, answer, take_free_name);
    }
}

static void take_name(struct replica *r, int64_t revision)
{
    if (r->lease == 0) {
        replica_lease_begin(r);
        return;
    }
    r->node_revision = revision;
    etcd_cancel(r->etcd, &r->step);
    r->step = (struct etcd_call){.on_done = on_name_answer, .attempt_ms = PAUSE_MS};
    put_node(r, &r->step, revision);
}

/* What others see is brought up to date with the keepalives; the leader also sees here when its
 * key was taken away. */
static void on_reported(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, report);

    if (answer->outcome == ETCD_DONE) {
        replica_say_well(r, true);
    } else if (answer->outcome == ETCD_REFUSED) {
        replica_lease_lose_name(r);
    } else {
        if (answer->outcome != ETCD_UNKNOWN)
            replica_say_outcome(r, answer);
        r->reported = 0; /* it is said again */
    }
}

static void on_leader_seen(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, report);

    if (answer->outcome == ETCD_DONE)
        replica_note_leader(r, replica_first(answer->ops));
}

void replica_lease_report(struct replica *r)
{
    uint64_t next = r->role == REPLICA_LEADING ? r->next : r->read.taken;

    if (etcd_is_started(&r->report) || r->node_revision == 0)
        return;
    r->report = (struct etcd_call){.on_done = on_reported};
    if (next != r->reported || r->role != r->reported_role) {
        put_node(r, &r->report, r->node_revision);
    } else if (r->role == REPLICA_LEADING) {
        r->report.on_done = on_leader_seen;
        etcd_range(r->etcd, &r->report, &(struct etcd_op){.kind = ETCD_GET, .key = r->keys.leader});
    }
}

/* Keepalives. */

static void on_kept(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, keepalive);

    if (answer->outcome == ETCD_REFUSED) {
        lose(r, "its lease is gone");
        return;
    }
    if (answer->outcome != ETCD_DONE) {
        replica_say_outcome(r, answer);
        timer_start(r->loop, &r->keepalive_due, SOON_MS);
        return;
    }
    replica_say_well(r, false);
    replica_say_over(r, REPLICA_OTHER_ETCD, REPLICA_OTHER_ETCD); /* this one is the right one */
    count_from(r, answer);
    replica_lease_report(r);
    replica_nodes_read(r);
    timer_start(r->loop, &r->keepalive_due, third_ms(r));
}

static void on_keepalive_due(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, keepalive_due);

    if (!replica_lease_lasts(r)) {
        lose(r, "its lease is over");
        return;
    }
    r->keepalive = (struct etcd_call){.on_done = on_kept, .attempt_ms = (unsigned)third_ms(r)};
    etcd_lease_keepalive(r->etcd, &r->keepalive, r->lease);
}

static void on_granted(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);

    if (answer->outcome != ETCD_DONE) {
        wait_for_name_anew(r);
        replica_try_again_after(r, answer, replica_lease_begin);
        return;
    }
    replica_say_well(r, true);
    r->lease = answer->lease;
    count_from(r, answer);
    timer_start(r->loop, &r->keepalive_due, third_ms(r));
    take_name(r, 0);
}

void replica_lease_begin(struct replica *r)
{
    replica_stop_step(r);
    r->step =
        (struct etcd_call){.on_done = on_granted, .attempt_ms = r->options.lease_s * MS_PER_S};
    etcd_lease_grant(r->etcd, &r->step, r->options.lease_s);
}

void replica_lease_init(struct replica *r)
{
    timer_init(&r->keepalive_due, on_keepalive_due);
    timer_init(&r->lease_end, on_lease_end);
    timer_init(&r->leave_end, on_leave_end);
}

void replica_lease_done(struct replica *r)
{
    forget(r);
    etcd_cancel(r->etcd, &r->revoke);
    timer_stop(r->loop, &r->leave_end);
}
