/* Entering a cluster: its id, its secret and the end of its log are looked at. Where there is none,
 * and the node may begin one, id, secret and the base of the log are made in one transaction, and
 * looked at again: what was made unseen is then known by its id.
 *
 * A log that was lost is restored under another id, and the key `restored` says of which cluster
 * and behind which serial: `<new> <old> <serial>`. A journal of the old one that ends there or
 * before is a part of the new one, and becomes its own. One that has more is refused: its next
 * records are not those of the log. */
#include "replica_private.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RESTORED_BYTES = 2 * UUID_TEXT_BYTES + 32 };

/* A step of restoring may have taken the place of the one that was to bring a lease. */
static void go_on(struct replica *r)
{
    replica_read_begin(r);
    if (r->lease == 0)
        replica_lease_begin(r);
}

static void on_begun(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);

    bool enters = r->role == REPLICA_ENTERING;

    if (answer->outcome != ETCD_DONE && answer->outcome != ETCD_REFUSED)
        replica_try_again_after(r, answer, enters ? replica_enter : replica_restore);
    else if (enters)
        replica_enter(r);
    else
        go_on(r); /* restored */
}

static void home_text(uint64_t cluster_id, char out_text[24])
{
    snprintf(out_text, 24, "%016" PRIx64, cluster_id);
}

bool replica_is_at_home(struct replica *r, const struct etcd_answer *answer,
                        const struct etcd_op_answer *home)
{
    struct span value = replica_value(home);
    char here[24], unknown[24];

    home_text(answer->cluster_id, here);
    home_text(0, unknown);
    if (value.n == 0 || span_eq(value, span_str(unknown)) || answer->cluster_id == 0 ||
        span_eq(value, span_str(here)))
        return true;
    replica_say(r, REPLICA_LOG_LOST,
                "etcd's cluster id is %s, and the log there was begun in %.*s: it is a copy, in "
                "which the newest may be missing; `svc cluster restore` begins the log anew here",
                here, SPAN_FMT(span_sub(value, 0, 16)));
    return false;
}

static void restored_text(struct replica *r, char out_text[RESTORED_BYTES])
{
    char ours[UUID_TEXT_BYTES + 1], next[UUID_TEXT_BYTES + 1];

    uuid_text(&r->id, ours);
    uuid_text(&r->restored_id, next);
    snprintf(out_text, RESTORED_BYTES, "%s %s %llu", next, ours,
             (unsigned long long)r->read.taken - 1);
}

/* A cluster whose log begins behind what the journal has. Whoever has been restored has an id,
 * which may still stand in etcd. */
static void begin_cluster(struct replica *r, bool is_restored)
{
    struct replica_text base = replica_log_text(r, r->read.taken - 1);
    struct replica_head head = {
        .first = r->read.taken - 1, .count = 1, .is_base = true, .node = span_str(r->options.node)};
    char id_text[UUID_TEXT_BYTES + 1], from_text[RESTORED_BYTES], here[24];
    struct buf value = {.max = BUF_NO_CAP};

    /* The same ones each time: one that was made unseen is then known as its own. */
    uuid_text(is_restored ? &r->restored_id : &r->id, id_text);
    restored_text(r, from_text);
    home_text(r->found_etcd, here);
    etcd_keep_to(r->etcd, r->found_etcd);
    replica_batch_pack(span_of("", 0), &head, &value);
    replica_batch_add(&value, &head, span_of("", 0));
    {
        const struct etcd_compare compares[] = {
            {.key = is_restored ? r->keys.leader : r->keys.id},
            {.key = r->keys.log, .range_end = r->keys.log_end},
        };
        const struct etcd_op puts[] = {
            {.key = r->keys.id, .value = span_str(id_text)},
            {.key = r->keys.secret,
             .value = span_of((const char *)r->secret, REPLICA_SECRET_BYTES)},
            {.key = replica_span(&base), .value = buf_span(&value)},
            {.key = r->keys.home, .value = span_str(here)},
            {.key = r->keys.restored, .value = span_str(from_text)},
        };

        replica_step(r,
                     &(struct etcd_txn){compares, ARRAY_LEN(compares), puts,
                                        ARRAY_LEN(puts) - (is_restored ? 0 : 1), NULL, 0},
                     on_begun);
    }
    buf_done(&value);
}

static void on_emptied(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);

    if (answer->outcome == ETCD_DONE) {
        begin_cluster(r, true);
        return;
    }
    if (answer->outcome != ETCD_REFUSED) {
        replica_try_again_after(r, answer, replica_restore);
        return;
    }
    log_warn("replica", "the log is not begun anew: the key `leader` is there, of a node that "
                        "leads, or whose lease has not ended");
    if (r->role == REPLICA_ENTERING) /* somebody leads */
        replica_try_again(r, replica_enter);
    else
        go_on(r);
}

/* In two transactions: etcd takes no put of what is deleted in the same one. */
void replica_restore(struct replica *r)
{
    const struct etcd_compare compare = {.key = r->keys.leader};
    const struct etcd_op deletions[] = {
        {.kind = ETCD_DELETE, .key = r->keys.log, .range_end = r->keys.log_end},
        {.kind = ETCD_DELETE, .key = r->keys.parts, .range_end = r->keys.parts_end},
    };

    if (r->trouble != REPLICA_LOG_LOST ||
        (r->role != REPLICA_ENTERING && r->role != REPLICA_FOLLOWING))
        return;
    etcd_keep_to(r->etcd, r->found_etcd);
    replica_step(r, &(struct etcd_txn){&compare, 1, deletions, ARRAY_LEN(deletions), NULL, 0},
                 on_emptied);
}

static void look_elsewhere(struct replica *r)
{
    etcd_leave_endpoint(r->etcd);
    replica_try_again(r, replica_enter);
}

static void enter_without_id(struct replica *r)
{
    char ours[UUID_TEXT_BYTES + 1], words[REPLICA_ETCD_BYTES];

    if (r->options.id != NULL) {
        uuid_text(&r->id, ours);
        replica_say(r, REPLICA_LOG_LOST, "etcd knows no cluster '%s', and the journal is of %s; %s",
                    r->options.cluster, ours, replica_etcd_words(r, r->found_etcd, words));
        look_elsewhere(r);
    } else if (r->options.next > 1 && !r->options.adopt) {
        replica_refuse(r, REPLICA_OTHER_HISTORY,
                       "the journal is not empty and of no cluster: Adopt begins one with it");
    } else {
        begin_cluster(r, false);
    }
}

static void tell_entered(struct replica *r)
{
    r->has_entered = true;
    if (r->callbacks.on_entered != NULL)
        r->callbacks.on_entered(r->callbacks.context, r->id.b, r->secret);
}

/* `<new> <old> <serial>`, of this cluster from the journal's. */
static bool is_restored_from(const struct replica *r, const struct uuid *id, struct span restored,
                             uint64_t *out_serial)
{
    struct uuid next, old;

    return uuid_parse(span_split(&restored, ' '), &next) &&
           uuid_parse(span_split(&restored, ' '), &old) && span_to_u64(restored, out_serial) &&
           uuid_eq(&next, id) && uuid_eq(&old, &r->id);
}

bool replica_is_id(const struct replica *r, const struct etcd_op_answer *page)
{
    struct uuid id;

    return uuid_parse(replica_value(page), &id) && uuid_eq(&id, &r->id);
}

bool replica_settle_id(struct replica *r, const struct uuid *id, struct span restored,
                       char out_why[REPLICA_WHY_BYTES], bool *out_stranger)
{
    bool has_own = r->options.id != NULL || r->has_entered;
    char theirs[UUID_TEXT_BYTES + 1], ours[UUID_TEXT_BYTES + 1] = "none";
    uint64_t serial;

    *out_stranger = false;
    if (uuid_eq(id, &r->id))
        return true;
    uuid_text(id, theirs);
    if (has_own)
        uuid_text(&r->id, ours);
    if (has_own && is_restored_from(r, id, restored, &serial)) {
        if (r->read.wanted - 1 > serial) {
            snprintf(out_why, REPLICA_WHY_BYTES,
                     "the log was restored behind serial %llu, and the journal has records up to "
                     "%llu: the node begins with an empty directory, or not at all",
                     (unsigned long long)serial, (unsigned long long)r->read.wanted - 1);
            return false;
        }
    } else if (has_own || r->options.next > 1) {
        *out_stranger = true;
        snprintf(out_why, REPLICA_WHY_BYTES, "cluster '%s' is %s, the journal is of %s",
                 r->options.cluster, theirs, ours);
        return false;
    }
    r->id = *id;
    r->restored_id = uuid_new();
    if (r->has_entered)
        tell_entered(r);
    return true;
}

static void enter_with_id(struct replica *r, const struct uuid *id, struct span secret,
                          struct span restored)
{
    char why[REPLICA_WHY_BYTES];
    bool is_stranger;

    if (!replica_settle_id(r, id, restored, why, &is_stranger)) {
        replica_refuse(r, REPLICA_OTHER_HISTORY, why);
        return;
    }
    etcd_keep_to(r->etcd, r->found_etcd);
    memcpy(r->secret, secret.p, REPLICA_SECRET_BYTES);
    replica_say_over(r, REPLICA_LOG_LOST, REPLICA_OTHER_ETCD);
    if (!r->has_entered)
        tell_entered(r);
    replica_lease_begin(r);
}

static void on_looked(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, step);
    const struct etcd_op_answer *ops = answer->ops;
    struct uuid id;

    if (answer->outcome != ETCD_DONE || answer->op_count != 4) {
        replica_try_again_after(r, answer, replica_enter);
        return;
    }
    replica_say_well(r, false);
    r->found_etcd = answer->cluster_id;
    if (!replica_is_at_home(r, answer, &ops[3])) {
        look_elsewhere(r);
        return;
    }
    if (ops[0].kv_count == 0) {
        enter_without_id(r);
        return;
    }
    if (!uuid_parse(replica_value(&ops[0]), &id) ||
        replica_value(&ops[1]).n != REPLICA_SECRET_BYTES) {
        replica_say(r, REPLICA_DAMAGED, "the keys `id` and `secret` of cluster '%s' are not whole",
                    r->options.cluster);
        replica_try_again(r, replica_enter);
        return;
    }
    enter_with_id(r, &id, replica_value(&ops[1]), replica_value(&ops[2]));
}

void replica_enter(struct replica *r)
{
    const struct etcd_op gets[] = {{.kind = ETCD_GET, .key = r->keys.id},
                                   {.kind = ETCD_GET, .key = r->keys.secret},
                                   {.kind = ETCD_GET, .key = r->keys.restored},
                                   {.kind = ETCD_GET, .key = r->keys.home}};

    replica_step_anywhere(r, &(struct etcd_txn){.then = gets, .then_count = ARRAY_LEN(gets)},
                          on_looked);
}

void replica_on_named(struct replica *r)
{
    if (r->role != REPLICA_ENTERING) {
        replica_look_around(r);
        return;
    }
    replica_move(r, REPLICA_FOLLOWING);
    replica_read_begin(r);
    replica_lease_report(r);
}
