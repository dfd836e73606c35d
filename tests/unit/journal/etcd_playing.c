#include "etcd_playing.h"

#include "io/loop.h"
#include "testing.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KVS = 4096, HISTORY = 16384, FATES = 64, LEASES = 64, CLIENTS = 64 };

/* A client's. */
struct etcd {
    uint64_t kept_to;
};

static struct played {
    struct loop *loop;
    struct loop_task serve;
    struct list requests, late, held, watches;
    struct etcd_kv kvs[KVS]; /* in the order of keys; key and value in `memory` */
    size_t kv_count;
    struct etcd_event history[HISTORY];
    size_t history_count;
    int64_t revision, compacted, leases, lease_ids[LEASES];
    unsigned keepalives;
    uint64_t cluster_id;
    struct {
        char prefix[128];
        enum fate fate;
        unsigned count;
    } fates[FATES];
    size_t fate_count;
    enum fate fate_of_all;
    struct arena memory;
    struct etcd clients[CLIENTS];
    size_t client_count;
} the_etcd;

enum kind { TXN, RANGE, GRANT, KEEPALIVE, REVOKE, COMPACT };

struct request {
    struct list_link link;
    struct etcd_call *call; /* NULL: cancelled, or told */
    enum kind kind;
    int64_t number;
    struct etcd_txn txn;
};

/* The store. */

static struct span keep(struct span s)
{
    return arena_copy(&the_etcd.memory, s);
}

static bool in_range(struct span key, struct span from, struct span to)
{
    return to.n == 0 ? span_eq(key, from) : span_cmp(key, from) >= 0 && span_cmp(key, to) < 0;
}

static void note(const struct etcd_kv *kv, bool is_delete)
{
    ck_assert_uint_lt(the_etcd.history_count, HISTORY);
    the_etcd.history[the_etcd.history_count++] =
        (struct etcd_event){.is_delete = is_delete, .kv = *kv};
}

static void put(const struct etcd_op *op)
{
    struct etcd_kv kv = {.key = keep(op->key),
                         .value = keep(op->value),
                         .create_revision = the_etcd.revision,
                         .mod_revision = the_etcd.revision,
                         .lease = op->lease};
    size_t at = 0;

    while (at < the_etcd.kv_count && span_cmp(the_etcd.kvs[at].key, op->key) < 0)
        at++;
    if (at < the_etcd.kv_count && span_eq(the_etcd.kvs[at].key, op->key)) {
        kv.create_revision = the_etcd.kvs[at].create_revision;
    } else {
        ck_assert_uint_lt(the_etcd.kv_count, KVS);
        memmove(&the_etcd.kvs[at + 1], &the_etcd.kvs[at], (the_etcd.kv_count++ - at) * sizeof(kv));
    }
    the_etcd.kvs[at] = kv;
    note(&kv, false);
}

static int64_t remove_range(struct span from, struct span to)
{
    size_t left = 0, count = the_etcd.kv_count;

    for (size_t i = 0; i < count; i++) {
        struct etcd_kv kv = the_etcd.kvs[i];

        if (!in_range(kv.key, from, to)) {
            the_etcd.kvs[left++] = kv;
            continue;
        }
        note(&(struct etcd_kv){.key = kv.key, .mod_revision = the_etcd.revision}, true);
    }
    the_etcd.kv_count = left;
    return (int64_t)(count - left);
}

static bool holds(const struct etcd_compare *c)
{
    size_t found = 0;

    for (size_t i = 0; i < the_etcd.kv_count; i++)
        if (in_range(the_etcd.kvs[i].key, c->key, c->range_end)) {
            found++;
            if (the_etcd.kvs[i].create_revision != c->create_revision)
                return false;
        }
    return found > 0 || c->create_revision == 0;
}

static struct etcd_op_answer get(const struct etcd_op *op, struct arena *a)
{
    struct etcd_op_answer answer = {.kind = ETCD_GET,
                                    .kvs = ARENA_ARRAY(a, struct etcd_kv, the_etcd.kv_count + 1)};
    size_t n = the_etcd.kv_count;

    for (size_t i = 0; i < n; i++) {
        const struct etcd_kv *kv = &the_etcd.kvs[op->descending ? n - 1 - i : i];

        if (!in_range(kv->key, op->key, op->range_end))
            continue;
        answer.count++;
        if (op->limit > 0 && answer.count > op->limit) {
            answer.more = true;
            continue;
        }
        answer.kvs[answer.kv_count] = *kv;
        if (op->keys_only)
            answer.kvs[answer.kv_count].value = SPAN("");
        answer.kv_count++;
    }
    return answer;
}

static bool knows_lease(int64_t lease)
{
    for (size_t i = 0; i < LEASES; i++)
        if (the_etcd.lease_ids[i] == lease)
            return true;
    return lease == 0;
}

static bool changes(const struct etcd_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == ETCD_PUT || (ops[i].kind == ETCD_DELETE))
            return true;
    return false;
}

static void do_txn(const struct etcd_txn *txn, struct arena *a, struct etcd_answer *answer)
{
    const struct etcd_op *ops = txn->then;
    size_t count = txn->then_count;

    answer->outcome = ETCD_DONE;
    for (size_t i = 0; i < txn->compare_count; i++)
        if (!holds(&txn->compares[i]))
            answer->outcome = ETCD_REFUSED;
    if (answer->outcome == ETCD_REFUSED) {
        ops = txn->otherwise;
        count = txn->otherwise_count;
    }
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == ETCD_PUT && !knows_lease(ops[i].lease)) {
            answer->outcome = ETCD_REFUSED;
            return;
        }
    the_etcd.revision += changes(ops, count);
    answer->op_count = count;
    answer->ops = ARENA_ARRAY(a, struct etcd_op_answer, count + 1);
    for (size_t i = 0; i < count; i++) {
        answer->ops[i].kind = ops[i].kind;
        if (ops[i].kind == ETCD_PUT)
            put(&ops[i]);
        else if (ops[i].kind == ETCD_DELETE)
            answer->ops[i].deleted = remove_range(ops[i].key, ops[i].range_end);
        else
            answer->ops[i] = get(&ops[i], a);
    }
}

void etcd_end_lease(int64_t lease)
{
    the_etcd.revision++;
    for (size_t i = 0; i < LEASES; i++)
        if (the_etcd.lease_ids[i] == lease)
            the_etcd.lease_ids[i] = -1;
    for (size_t i = the_etcd.kv_count; i-- > 0;)
        if (the_etcd.kvs[i].lease == lease)
            remove_range(the_etcd.kvs[i].key, SPAN(""));
    loop_post(the_etcd.loop, &the_etcd.serve);
}

static void do_request(const struct request *r, struct arena *a, struct etcd_answer *answer)
{
    *answer = (struct etcd_answer){.outcome = ETCD_DONE, .lease = r->number, .ttl_s = 5};
    if (r->kind == TXN || r->kind == RANGE) {
        do_txn(&r->txn, a, answer);
    } else if (r->kind == GRANT) {
        answer->lease = INT64_C(9007199254740993) + the_etcd.leases;
        answer->ttl_s = r->number;
        the_etcd.lease_ids[the_etcd.leases++ % LEASES] = answer->lease;
    } else if (r->kind == KEEPALIVE) {
        the_etcd.keepalives++;
        if (!knows_lease(r->number))
            answer->outcome = ETCD_REFUSED;
    } else if (r->kind == REVOKE) {
        etcd_end_lease(r->number);
    } else {
        the_etcd.compacted = r->number;
    }
    answer->revision = the_etcd.revision;
    answer->cluster_id = the_etcd.cluster_id;
}

static bool is_other(const struct etcd *e)
{
    return e->kept_to != 0 && e->kept_to != the_etcd.cluster_id;
}

void etcd_keep_to(struct etcd *e, uint64_t cluster_id)
{
    e->kept_to = cluster_id;
}

uint64_t etcd_kept_to(const struct etcd *e)
{
    return e->kept_to;
}

void etcd_leave_endpoint(struct etcd *e)
{
    (void)e; /* there is one */
}

/* Fates. */

static bool puts_below(const struct request *r, const char *prefix)
{
    if (prefix[0] == '\0')
        return true;
    for (size_t i = 0; i < r->txn.then_count; i++)
        if (r->txn.then[i].kind == ETCD_PUT && span_starts(r->txn.then[i].key, span_str(prefix)))
            return true;
    return false;
}

static enum fate fate_of(const struct request *r)
{
    for (size_t i = 0; i < the_etcd.fate_count; i++)
        if (the_etcd.fates[i].count > 0 && puts_below(r, the_etcd.fates[i].prefix)) {
            the_etcd.fates[i].count--;
            return the_etcd.fates[i].fate;
        }
    return the_etcd.fate_of_all;
}

static void tell_other(const struct etcd *e, struct etcd_answer *answer)
{
    *answer = (struct etcd_answer){.outcome = ETCD_UNKNOWN, .is_other = true};
    snprintf(answer->why, sizeof(answer->why), "%016" PRIx64 " instead of %016" PRIx64,
             the_etcd.cluster_id, e->kept_to);
}

static void tell(struct request *r, struct etcd_answer *answer)
{
    struct etcd_call *call = r->call;

    r->call = NULL;
    if (call == NULL)
        return;
    call->state = 0;
    answer->sent_ns = call->sent_ns;
    if (answer->cluster_id != 0 && is_other(call->etcd) && !call->any_cluster)
        tell_other(call->etcd, answer);
    call->on_done(call, answer);
}

static bool takes_room(const struct request *r)
{
    for (size_t i = 0; i < r->txn.then_count; i++)
        if (r->txn.then[i].kind == ETCD_PUT)
            return true;
    return r->kind == GRANT;
}

static void serve_one(struct request *r)
{
    struct etcd_answer answer = {.outcome = ETCD_UNKNOWN, .why = "lost"};
    enum fate fate = fate_of(r);
    struct arena a;

    arena_init(&a);
    if (fate == FATE_DENIED)
        answer = (struct etcd_answer){.outcome = ETCD_DENIED, .why = "denied"};
    else if (fate == FATE_FULL && takes_room(r))
        answer = (struct etcd_answer){.outcome = ETCD_FULL, .why = "full"};
    else if (fate == FATE_DONE || fate == FATE_FULL)
        do_request(r, &a, &answer);
    else if (fate == FATE_LOST)
        do_request(r, &a, &(struct etcd_answer){0});
    if (fate == FATE_HELD)
        list_push_back(&the_etcd.held, &r->link);
    else if (fate == FATE_LATER)
        list_push_back(&the_etcd.late, &r->link);
    if (fate != FATE_HELD)
        tell(r, &answer);
    arena_done(&a);
}

/* Watches. */

static void serve_watch(struct etcd_watch *w)
{
    for (size_t i = 0; i < the_etcd.history_count && w->state != 0; i++) {
        struct etcd_event event = the_etcd.history[i];

        if (event.kv.mod_revision < w->next_revision)
            continue;
        if (i + 1 == the_etcd.history_count ||
            the_etcd.history[i + 1].kv.mod_revision != event.kv.mod_revision)
            w->next_revision = event.kv.mod_revision + 1;
        if (in_range(event.kv.key, buf_span(&w->key), buf_span(&w->range_end)))
            w->on_events(w, &event, 1);
    }
}

static void on_serve(struct loop_task *task)
{
    struct list_link *link;

    (void)task;
    for (size_t n = list_count(&the_etcd.requests);
         n > 0 && (link = list_pop_front(&the_etcd.requests)) != NULL; n--)
        serve_one(CONTAINER_OF(link, struct request, link));
    LIST_EACH(&the_etcd.watches, at) {
        struct etcd_watch *w = CONTAINER_OF(at, struct etcd_watch, link);
        struct etcd_answer other;

        if (the_etcd.fate_of_all != FATE_DONE && the_etcd.fate_of_all != FATE_FULL)
            continue;
        if (is_other(w->etcd)) {
            etcd_watch_stop(w->etcd, w);
            tell_other(w->etcd, &other);
            w->on_end(w, ETCD_WATCH_OTHER, other.why);
        } else if (w->next_revision > the_etcd.compacted) {
            serve_watch(w);
        } else {
            etcd_watch_stop(w->etcd, w);
            w->on_end(w, ETCD_WATCH_COMPACTED, "compacted");
        }
    }
    if (!list_empty(&the_etcd.requests))
        loop_post(the_etcd.loop, &the_etcd.serve);
}

/* The client's side. */

static struct etcd_op copy_op(const struct etcd_op *op)
{
    struct etcd_op copy = *op;

    copy.key = keep(op->key);
    copy.range_end = keep(op->range_end);
    copy.value = keep(op->value);
    return copy;
}

static struct etcd_op *copy_ops(const struct etcd_op *ops, size_t count)
{
    struct etcd_op *copy = ARENA_ARRAY(&the_etcd.memory, struct etcd_op, count + 1);

    for (size_t i = 0; i < count; i++)
        copy[i] = copy_op(&ops[i]);
    return copy;
}

static struct request *start(struct etcd *e, struct etcd_call *call, enum kind kind, int64_t number)
{
    struct request *r = ARENA_NEW(&the_etcd.memory, struct request);

    ck_assert_uint_eq(call->state, 0);
    call->state = 1;
    call->etcd = e;
    call->sent_ns = clock_mono_ns();
    *r = (struct request){.call = call, .kind = kind, .number = number};
    list_push_back(&the_etcd.requests, &r->link);
    loop_post(the_etcd.loop, &the_etcd.serve);
    return r;
}

void etcd_txn(struct etcd *e, struct etcd_call *call, const struct etcd_txn *txn)
{
    struct request *r = start(e, call, TXN, 0);
    struct etcd_compare *compares =
        ARENA_ARRAY(&the_etcd.memory, struct etcd_compare, txn->compare_count + 1);

    for (size_t i = 0; i < txn->compare_count; i++)
        compares[i] = (struct etcd_compare){.key = keep(txn->compares[i].key),
                                            .range_end = keep(txn->compares[i].range_end),
                                            .create_revision = txn->compares[i].create_revision};
    r->txn = (struct etcd_txn){.compares = compares,
                               .compare_count = txn->compare_count,
                               .then = copy_ops(txn->then, txn->then_count),
                               .then_count = txn->then_count,
                               .otherwise = copy_ops(txn->otherwise, txn->otherwise_count),
                               .otherwise_count = txn->otherwise_count};
}

void etcd_range(struct etcd *e, struct etcd_call *call, const struct etcd_op *op)
{
    struct request *r = start(e, call, RANGE, 0);

    r->txn = (struct etcd_txn){.then = copy_ops(op, 1), .then_count = 1};
}

void etcd_lease_grant(struct etcd *e, struct etcd_call *call, int64_t ttl_s)
{
    start(e, call, GRANT, ttl_s);
}

void etcd_lease_keepalive(struct etcd *e, struct etcd_call *call, int64_t lease)
{
    start(e, call, KEEPALIVE, lease);
}

void etcd_lease_revoke(struct etcd *e, struct etcd_call *call, int64_t lease)
{
    start(e, call, REVOKE, lease);
}

void etcd_compact(struct etcd *e, struct etcd_call *call, int64_t revision)
{
    start(e, call, COMPACT, revision);
}

static void forget(const struct list *list, const struct etcd_call *call)
{
    LIST_EACH(list, at) {
        struct request *r = CONTAINER_OF(at, struct request, link);

        if (r->call == call)
            r->call = NULL; /* it is carried out all the same */
    }
}

void etcd_cancel(struct etcd *e, struct etcd_call *call)
{
    (void)e;
    forget(&the_etcd.requests, call);
    forget(&the_etcd.held, call);
    call->state = 0;
}

bool etcd_is_started(const struct etcd_call *call)
{
    return call->state != 0;
}

void etcd_watch_start(struct etcd *e, struct etcd_watch *w, struct span key, struct span range_end,
                      int64_t revision)
{
    w->state = 1;
    w->etcd = e;
    w->attempts = 1;
    w->next_revision = revision;
    buf_init(&w->key, BUF_NO_CAP);
    buf_add(&w->key, key);
    buf_init(&w->range_end, BUF_NO_CAP);
    buf_add(&w->range_end, range_end);
    list_push_back(&the_etcd.watches, &w->link);
    loop_post(the_etcd.loop, &the_etcd.serve);
}

void etcd_watch_stop(struct etcd *e, struct etcd_watch *w)
{
    (void)e;
    if (w->state == 0)
        return;
    w->state = 0;
    list_remove(&the_etcd.watches, &w->link);
    buf_done(&w->key);
    buf_done(&w->range_end);
}

/* The test's side. */

struct err *etcd_new(struct loop *loop, struct resolver *resolver,
                     const struct etcd_options *options, struct etcd **out_etcd)
{
    (void)resolver;
    ck_assert_ptr_eq(loop, the_etcd.loop);
    ck_assert_uint_gt(options->endpoint_count, 0);
    *out_etcd = etcd_played();
    return NULL;
}

/* The play goes on. */
void etcd_free(struct etcd *e)
{
    (void)e;
}

struct etcd *etcd_played(void)
{
    ck_assert_uint_lt(the_etcd.client_count, CLIENTS);
    the_etcd.clients[the_etcd.client_count].kept_to = 0;
    return &the_etcd.clients[the_etcd.client_count++];
}

void etcd_play_begin(struct loop *loop)
{
    the_etcd.loop = loop;
    the_etcd.serve = (struct loop_task){.run = on_serve};
    list_init(&the_etcd.requests);
    list_init(&the_etcd.late);
    list_init(&the_etcd.held);
    list_init(&the_etcd.watches);
    the_etcd.kv_count = the_etcd.history_count = the_etcd.fate_count = 0;
    the_etcd.revision = 1;
    the_etcd.compacted = the_etcd.leases = 0;
    memset(the_etcd.lease_ids, 0xff, sizeof(the_etcd.lease_ids));
    the_etcd.keepalives = 0;
    the_etcd.cluster_id = 1;
    the_etcd.client_count = 0;
    the_etcd.fate_of_all = FATE_DONE;
    arena_init(&the_etcd.memory);
}

void etcd_play_end(void)
{
    ck_assert(list_empty(&the_etcd.watches));
    loop_unpost(the_etcd.loop, &the_etcd.serve);
    arena_done(&the_etcd.memory);
}

void etcd_play_cluster(uint64_t cluster_id)
{
    the_etcd.cluster_id = cluster_id;
    loop_post(the_etcd.loop, &the_etcd.serve);
}

void etcd_cut_watches(void)
{
    LIST_EACH(&the_etcd.watches, at)
        CONTAINER_OF(at, struct etcd_watch, link)->attempts++;
}

void etcd_lose_all(void)
{
    etcd_lose_all_at(1);
}

void etcd_lose_all_at(int64_t revision)
{
    the_etcd.kv_count = the_etcd.history_count = 0;
    the_etcd.revision = revision;
    the_etcd.compacted = 0;
    memset(the_etcd.lease_ids, 0xff, sizeof(the_etcd.lease_ids));
}

void etcd_fate(const char *prefix, enum fate fate, unsigned count)
{
    ck_assert_uint_lt(the_etcd.fate_count, FATES);
    strncat(memset(the_etcd.fates[the_etcd.fate_count].prefix, 0, 128), prefix, 127);
    the_etcd.fates[the_etcd.fate_count].fate = fate;
    the_etcd.fates[the_etcd.fate_count++].count = count;
}

void etcd_fate_of_all(enum fate fate)
{
    the_etcd.fate_of_all = fate;
    loop_post(the_etcd.loop, &the_etcd.serve);
}

static void do_all(struct list *list)
{
    struct list_link *link;
    struct arena a;

    arena_init(&a);
    while ((link = list_pop_front(list)) != NULL) {
        struct request *r = CONTAINER_OF(link, struct request, link);
        struct etcd_answer answer;

        do_request(r, &a, &answer);
        tell(r, &answer);
    }
    arena_done(&a);
    loop_post(the_etcd.loop, &the_etcd.serve);
}

void etcd_play_late(void)
{
    do_all(&the_etcd.late);
}

void etcd_let_go(void)
{
    do_all(&the_etcd.held);
}

size_t etcd_count(const char *prefix)
{
    size_t count = 0;

    for (size_t i = 0; i < the_etcd.kv_count; i++)
        count += span_starts(the_etcd.kvs[i].key, span_str(prefix));
    return count;
}

const struct etcd_kv *etcd_find(const char *key)
{
    for (size_t i = 0; i < the_etcd.kv_count; i++)
        if (span_eq(the_etcd.kvs[i].key, span_str(key)))
            return &the_etcd.kvs[i];
    return NULL;
}

void etcd_store(const char *key, struct span value, int64_t lease)
{
    the_etcd.revision++;
    put(&(struct etcd_op){.key = span_str(key), .value = value, .lease = lease});
    loop_post(the_etcd.loop, &the_etcd.serve);
}

void etcd_remove(const char *prefix)
{
    the_etcd.revision++;
    for (size_t i = the_etcd.kv_count; i-- > 0;)
        if (span_starts(the_etcd.kvs[i].key, span_str(prefix)))
            remove_range(the_etcd.kvs[i].key, SPAN(""));
    loop_post(the_etcd.loop, &the_etcd.serve);
}

int64_t etcd_compacted(void)
{
    return the_etcd.compacted;
}

int64_t etcd_revision(void)
{
    return the_etcd.revision;
}

unsigned etcd_keepalives(void)
{
    return the_etcd.keepalives;
}
