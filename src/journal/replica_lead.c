/* Leading, from the wish to the end:
 *
 *   campaign   `leader` with the lease, if there is none and the node's name is still its own
 *   sweep      parts that lack their mark, which whoever led before has left
 *   lead       the end of the log is known, and all of it was taken
 *   let go     `leader` is deleted, if it is still this epoch's
 *
 * A step that was not answered is done again; each says in its answer what there is, so that one
 * which was carried out unseen is found. */
#include "replica_private.h"

#include "base/log.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum {
    JITTER_MS = 100,
    SWEEP_PAGE = 1000,
    LEASES_AWAY = 2, /* after it has stepped down */
};

#define MS_PER_S 1000u

static void elected(struct replica *r, int64_t epoch)
{
    r->epoch = epoch;
    r->is_ours = true;
    r->leader_bytes = strlen(r->options.node);
    memcpy(r->leader, r->options.node, r->leader_bytes);
    r->stats.elected++;
    buf_clear(&r->orphan_from);
    replica_move(r, REPLICA_TAKING_OVER);
    replica_nodes_read(r);
    replica_read_stop(r);
    replica_read_begin(r);
}

static bool is_this_process(const struct replica *r, const struct etcd_kv *kv)
{
    return span_eq(span_sub(kv->value, 0, REPLICA_TOKEN_BYTES), span_str(r->token)) &&
           kv->lease == r->lease && r->lease != 0;
}

static void campaign(struct replica *r);

static void on_campaigned(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);
    const struct etcd_op_answer *now = answer->ops;

    if (answer->outcome == ETCD_UNKNOWN && replica_lease_lasts(r)) {
        replica_try_again_after(r, answer, campaign);
    } else if (answer->outcome == ETCD_DONE) {
        replica_say_well(r, true);
        elected(r, answer->revision);
    } else if (answer->outcome == ETCD_REFUSED && answer->op_count == 1) {
        replica_say_well(r, false);
        if (now->kv_count > 0 && is_this_process(r, now->kvs)) {
            elected(r, now->kvs->create_revision);
        } else if (now->kv_count > 0) {
            replica_move(r, REPLICA_FOLLOWING);
            replica_note_leader(r, now->kvs);
        } else { /* what it asked for beside that */
            replica_lease_lose_name(r);
        }
    } else {
        replica_move(r, REPLICA_FOLLOWING);
        replica_try_again_after(r, answer, replica_look_around);
    }
}

static void campaign(struct replica *r)
{
    char value[REPLICA_TOKEN_BYTES + REPLICA_NAME_BYTES + 2];
    const struct etcd_compare compares[] = {
        {.key = r->keys.leader},
        {.key = r->keys.node, .create_revision = r->node_revision},
    };
    const struct etcd_op get = {.kind = ETCD_GET, .key = r->keys.leader};
    struct etcd_op put = {.key = r->keys.leader, .lease = r->lease};

    if (r->role == REPLICA_FOLLOWING)
        replica_move(r, REPLICA_CANDIDATE);
    if (!replica_lease_lasts(r) || r->node_revision == 0) {
        replica_move(r, REPLICA_FOLLOWING);
        return;
    }
    snprintf(value, sizeof(value), "%s %s", r->token, r->options.node);
    put.value = span_str(value);
    replica_step(r, &(struct etcd_txn){compares, ARRAY_LEN(compares), &put, 1, &get, 1},
                 on_campaigned);
}

void replica_note_leader(struct replica *r, const struct etcd_kv *kv)
{
    bool leads = r->role == REPLICA_LEADING || r->role == REPLICA_TAKING_OVER;
    struct span name;

    if (leads && (kv == NULL || kv->create_revision != r->epoch))
        replica_end_leading(r, "another epoch has begun");
    if (leads || r->role == REPLICA_ENDING)
        return; /* what there is is read again afterwards */
    if (r->role == REPLICA_FOLLOWING && kv != NULL && is_this_process(r, kv) &&
        replica_lease_lasts(r)) {
        elected(r, kv->create_revision); /* it had asked, and not heard of it */
        return;
    }
    if (r->epoch != (kv != NULL ? kv->create_revision : 0))
        replica_nodes_read(r);
    r->epoch = kv != NULL ? kv->create_revision : 0;
    r->is_ours = false;
    name = kv != NULL ? span_sub(kv->value, REPLICA_TOKEN_BYTES + 1, kv->value.n) : SPAN("");
    r->leader_bytes = MIN(name.n, sizeof(r->leader));
    if (r->leader_bytes > 0)
        memcpy(r->leader, name.p, r->leader_bytes);
    replica_look_around(r);
}

/* If `leader` is still this epoch's. */
static void drop(struct replica *r, struct span key, struct span range_end,
                 replica_done_fn *on_done)
{
    const struct etcd_compare compare = {.key = r->keys.leader, .create_revision = r->epoch};
    const struct etcd_op deletion = {.kind = ETCD_DELETE, .key = key, .range_end = range_end};

    replica_step(r, &(struct etcd_txn){&compare, 1, &deletion, 1, NULL, 0}, on_done);
}

/* Parts that lack their mark. Nobody but the leader of their epoch would have set it, and that is
 * over: only those behind the end of the log can lack it, as each leader looks before it appends.
 */
static void sweep(struct replica *r);

static void on_swept(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);

    if (answer->outcome == ETCD_REFUSED) {
        replica_end_leading(r, "another epoch has begun");
        return;
    }
    replica_try_again_after(r, answer, sweep);
}

static void delete_parts(struct replica *r, uint64_t epoch, uint64_t serial)
{
    struct replica_text from = replica_parts_text(r, epoch, serial), to = from;

    to.p[to.n - 1] = '0'; /* what follows a slash */
    drop(r, replica_span(&from), replica_span(&to), on_swept);
}

static void lead(struct replica *r)
{
    r->next = r->read.wanted;
    replica_say_well(r, true);
    replica_move(r, REPLICA_LEADING);
}

static void on_parts_listed(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);
    const struct etcd_op_answer *page = answer->ops;
    uint64_t epoch, serial;

    if (answer->outcome != ETCD_DONE) {
        replica_try_again_after(r, answer, sweep);
        return;
    }
    replica_say_well(r, false);
    for (size_t i = 0; i < page->kv_count; i++) {
        if (replica_key_is_part(page->kvs[i].key, r->cluster, &epoch, &serial) &&
            epoch < (uint64_t)r->epoch && serial >= r->read.wanted) {
            delete_parts(r, epoch, serial);
            return;
        }
    }
    if (page->more && page->kv_count > 0) {
        buf_clear(&r->orphan_from);
        buf_add(&r->orphan_from, page->kvs[page->kv_count - 1].key);
        buf_add_char(&r->orphan_from, '\0');
        sweep(r);
        return;
    }
    lead(r);
}

static void sweep(struct replica *r)
{
    if (r->role != REPLICA_TAKING_OVER)
        return;
    etcd_cancel(r->etcd, &r->step);
    r->step = (struct etcd_call){.on_done = on_parts_listed};
    etcd_range(
        r->etcd, &r->step,
        &(struct etcd_op){.kind = ETCD_GET,
                          .key = r->orphan_from.n > 0 ? buf_span(&r->orphan_from) : r->keys.parts,
                          .range_end = r->keys.parts_end,
                          .limit = SWEEP_PAGE,
                          .keys_only = true});
}

void replica_look_around(struct replica *r)
{
    bool is_idle = !etcd_is_started(&r->step) && !timer_running(&r->retry);

    if (!is_idle || !replica_read_is_level(r))
        return;
    if (r->role == REPLICA_TAKING_OVER) {
        sweep(r);
        return;
    }
    if (r->role != REPLICA_FOLLOWING || r->epoch != 0 || r->options.is_witness ||
        !replica_lease_lasts(r) || r->node_revision == 0)
        return;
    r->on_retry = campaign;
    if (loop_now_ms(r->loop) < r->no_campaign_until_ms) {
        r->on_retry = replica_look_around;
        timer_start(r->loop, &r->retry, r->no_campaign_until_ms - loop_now_ms(r->loop));
        return;
    }
    timer_start(r->loop, &r->retry, rng_below(JITTER_MS)); /* not all at once */
}

/* Ending. */

void replica_end_leading(struct replica *r, const char *why)
{
    if (r->role != REPLICA_LEADING && r->role != REPLICA_TAKING_OVER)
        return;
    log_warn("replica", "node %s does not lead any more: %s", r->options.node, why);
    replica_stop_step(r);
    replica_read_stop(r);
    replica_lease_give_back(r);
    r->is_ours = false;
    replica_move(r, REPLICA_ENDING);
    replica_on_settled(r);
}

static void follow(struct replica *r)
{
    r->epoch = 0;
    r->is_ours = r->steps_down = false;
    r->leader_bytes = 0;
    replica_move(r, REPLICA_FOLLOWING);
    if (r->lease == 0)
        replica_lease_begin(r);
    replica_read_begin(r);
}

static void let_go(struct replica *r);

static void on_let_go(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);

    if (answer->outcome == ETCD_DONE || answer->outcome == ETCD_REFUSED || r->lease == 0)
        follow(r);
    else
        replica_try_again(r, let_go);
}

static void let_go(struct replica *r)
{
    drop(r, r->keys.leader, span_of(NULL, 0), on_let_go);
}

void replica_on_settled(struct replica *r)
{
    if (r->append != NULL)
        return;
    if (r->role == REPLICA_LEADING && r->steps_down) {
        r->no_campaign_until_ms =
            loop_now_ms(r->loop) + (uint64_t)LEASES_AWAY * r->ttl_s * MS_PER_S;
        r->is_ours = false;
        replica_move(r, REPLICA_ENDING);
        let_go(r);
    } else if (r->role == REPLICA_ENDING && !etcd_is_started(&r->step) &&
               !timer_running(&r->retry)) {
        follow(r);
    }
}

void replica_step_down(struct replica *r)
{
    if (r->role != REPLICA_LEADING)
        return;
    r->steps_down = true;
    replica_on_settled(r);
}
