/* Keys stand in one sorted array; there are a few hundred. What happened stands in another, from
 * which a compaction drops the front. The size that the quota is compared with grows with each put
 * and shrinks when room is made, as the file of a real etcd does. */
#include "etcd_store.h"

#include "order.h"
#include "simulated.h"

#include "base/blob.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "journal/replica_batch.h"

#include <string.h>

enum {
    LEASES = 256,
    KEY_COST_BYTES = 64,
    FORGETS_ONE_IN = 400,
    TTL_LEAST_S = 2,
    OTHER_LEASES = 1000000
};

#define FIRST_LEASE INT64_C(9007199254740993) /* no double holds it */
#define LATE_MOST_NS (2 * NS_PER_S)           /* that a lease ends after its time */

struct key_value {
    struct blob *key, *value;
    int64_t create, mod, lease;
};

struct happened {
    struct key_value kv;
    bool is_delete;
};

struct lease {
    int64_t id; /* 0: none */
    int64_t ttl_s;
    uint64_t until_ns, ends_ns;
};

static struct store {
    struct etcd_store_plants plants;
    struct key_value *kvs;
    size_t kv_count, kv_size;
    struct happened *history;
    size_t history_count, history_size;
    int64_t revision, compacted, leases_given;
    struct lease leases[LEASES];
    uint64_t bytes, quota_bytes;
    bool is_full;
} store, aside; /* the other one, or this one while that is entered */
static bool is_other;

void etcd_store_open(uint64_t quota_bytes, const struct etcd_store_plants *plants)
{
    memset(&store, 0, sizeof(store));
    memset(&aside, 0, sizeof(aside));
    is_other = false;
    store.plants = *plants;
    store.quota_bytes = quota_bytes;
    store.revision = 1;
}

static void unref(struct key_value *kv)
{
    blob_unref(kv->key);
    blob_unref(kv->value);
}

static struct key_value ref(const struct key_value *kv)
{
    struct key_value copy = *kv;

    blob_ref(copy.key);
    blob_ref(copy.value);
    return copy;
}

static void empty(struct store *s)
{
    for (size_t i = 0; i < s->kv_count; i++)
        unref(&s->kvs[i]);
    for (size_t i = 0; i < s->history_count; i++)
        unref(&s->history[i].kv);
    mem_free(s->kvs);
    mem_free(s->history);
    memset(s, 0, sizeof(*s));
}

void etcd_store_close(void)
{
    empty(&store);
    empty(&aside);
}

/* Keys. ------------------------------------------------------------------------------------- */

static struct span key_of(const struct key_value *kv)
{
    return blob_span(kv->key);
}

/* Of the first key that is not before this one. */
static size_t place_of(struct span key)
{
    size_t low = 0, high = store.kv_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (span_cmp(key_of(&store.kvs[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct places {
    size_t from, to;
};

static struct places places_of(struct span key, struct span range_end)
{
    struct places at = {place_of(key), 0};

    if (range_end.n > 0)
        at.to = MAX(at.from, place_of(range_end));
    else
        at.to = at.from + (at.from < store.kv_count && span_eq(key_of(&store.kvs[at.from]), key));
    return at;
}

static bool in_range(struct span at, struct span key, struct span range_end)
{
    return range_end.n == 0 ? span_eq(at, key)
                            : span_cmp(at, key) >= 0 && span_cmp(at, range_end) < 0;
}

static struct etcd_kv show(const struct key_value *kv)
{
    return (struct etcd_kv){.key = key_of(kv),
                            .value = blob_span(kv->value),
                            .create_revision = kv->create,
                            .mod_revision = kv->mod,
                            .lease = kv->lease};
}

const struct etcd_kv *etcd_store_find(struct span key)
{
    static struct etcd_kv found;
    struct places at = places_of(key, span_of(NULL, 0));

    if (at.from == at.to)
        return NULL;
    found = show(&store.kvs[at.from]);
    return &found;
}

/* Changes. ---------------------------------------------------------------------------------- */

static void note(const struct key_value *kv, bool is_delete)
{
    if (store.history_count == store.history_size) {
        store.history_size = MAX(64, store.history_size * 2);
        store.history = mem_resize(store.history, store.history_size * sizeof(struct happened));
    }
    store.history[store.history_count++] = (struct happened){ref(kv), is_delete};
}

static void make_place(size_t at)
{
    if (store.kv_count == store.kv_size) {
        store.kv_size = MAX(64, store.kv_size * 2);
        store.kvs = mem_resize(store.kvs, store.kv_size * sizeof(struct key_value));
    }
    memmove(store.kvs + at + 1, store.kvs + at, (store.kv_count - at) * sizeof(struct key_value));
    store.kv_count++;
}

static void put(const struct etcd_op *op)
{
    struct places at = places_of(op->key, span_of(NULL, 0));
    struct key_value *kv;

    if (store.plants.forgets && order_is_log_key(op->key) && sim_chance(FORGETS_ONE_IN))
        return;
    if (at.from == at.to) {
        make_place(at.from);
        store.kvs[at.from] = (struct key_value){.key = blob_new(op->key), .create = store.revision};
    }
    kv = &store.kvs[at.from];
    blob_unref(kv->value);
    kv->value = blob_new(op->value);
    kv->mod = store.revision;
    kv->lease = op->lease;
    store.bytes += op->key.n + op->value.n + KEY_COST_BYTES;
    if (store.bytes > store.quota_bytes && !store.is_full)
        sim_note("etcd: full");
    store.is_full = store.is_full || store.bytes > store.quota_bytes;
    note(kv, false);
    if (!is_other) {
        struct etcd_kv shown = show(kv);

        order_note_put(&shown);
    }
}

static int64_t delete_range(struct span key, struct span range_end)
{
    struct places at = places_of(key, range_end);

    for (size_t i = at.from; i < at.to; i++) {
        struct key_value *kv = &store.kvs[i];

        if (!is_other)
            order_note_delete(key_of(kv));
        kv->mod = store.revision;
        blob_unref(kv->value);
        kv->value = blob_new(SPAN(""));
        note(kv, true);
        unref(kv);
    }
    memmove(store.kvs + at.from, store.kvs + at.to,
            (store.kv_count - at.to) * sizeof(struct key_value));
    store.kv_count -= at.to - at.from;
    return (int64_t)(at.to - at.from);
}

/* Leases. ----------------------------------------------------------------------------------- */

static struct lease *lease_of(int64_t id)
{
    for (size_t i = 0; i < LEASES; i++)
        if (store.leases[i].id == id)
            return &store.leases[i];
    return NULL;
}

/* Mostly at once, sometimes much later. */
static void begin_lease(struct lease *l)
{
    l->until_ns = sim.now_ns + (uint64_t)l->ttl_s * NS_PER_S;
    l->ends_ns = l->until_ns + sim_delay(NS_PER_MS, LATE_MOST_NS);
}

static void end_lease(struct lease *l)
{
    int64_t id = l->id;

    sim_note("etcd: lease %lld ends", (long long)(id - FIRST_LEASE));
    *l = (struct lease){0};
    store.revision++;
    for (size_t i = store.kv_count; i-- > 0;)
        if (store.kvs[i].lease == id) {
            struct blob *key = blob_ref(store.kvs[i].key);

            delete_range(blob_span(key), span_of(NULL, 0));
            blob_unref(key);
        }
}

void etcd_store_grant(int64_t ttl_s, struct etcd_answer *out)
{
    struct lease *l = lease_of(0);

    MUST(l != NULL);
    *out = (struct etcd_answer){.outcome = store.is_full ? ETCD_FULL : ETCD_DONE};
    if (!store.is_full) {
        *l = (struct lease){.id = FIRST_LEASE + store.leases_given++,
                            .ttl_s = MAX(ttl_s, (int64_t)TTL_LEAST_S)};
        begin_lease(l);
        out->lease = l->id;
        out->ttl_s = l->ttl_s;
    }
    out->revision = store.revision;
}

void etcd_store_keepalive(int64_t lease, struct etcd_answer *out)
{
    struct lease *l = lease == 0 ? NULL : lease_of(lease);

    *out = (struct etcd_answer){.outcome = l == NULL ? ETCD_REFUSED : ETCD_DONE,
                                .lease = lease,
                                .revision = store.revision};
    if (l == NULL)
        return;
    begin_lease(l);
    out->ttl_s = l->ttl_s;
}

void etcd_store_revoke(int64_t lease, struct etcd_answer *out)
{
    struct lease *l = lease == 0 ? NULL : lease_of(lease);

    *out = (struct etcd_answer){.outcome = l == NULL ? ETCD_REFUSED : ETCD_DONE};
    if (l != NULL)
        end_lease(l);
    out->revision = store.revision;
}

void etcd_store_pass(void)
{
    for (size_t i = 0; i < LEASES; i++)
        if (store.leases[i].id != 0 && store.leases[i].ends_ns <= sim.now_ns)
            end_lease(&store.leases[i]);
}

uint64_t etcd_store_next_end_ns(void)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < LEASES; i++)
        if (store.leases[i].id != 0)
            next = MIN(next, store.leases[i].ends_ns);
    return next;
}

void etcd_store_restart_leases(void)
{
    for (size_t i = 0; i < LEASES; i++)
        if (store.leases[i].id != 0)
            begin_lease(&store.leases[i]);
}

/* Transactions. ----------------------------------------------------------------------------- */

static bool holds(const struct etcd_compare *c)
{
    struct places at = places_of(c->key, c->range_end);

    if (c->range_end.n > 0 && store.plants.range_unchecked)
        return true;
    if (c->range_end.n == 0 && c->create_revision != 0 && store.plants.epoch_unchecked)
        return true;
    if (at.from == at.to && c->range_end.n == 0)
        return c->create_revision == 0;
    for (size_t i = at.from; i < at.to; i++)
        if (store.kvs[i].create != c->create_revision)
            return false;
    return true;
}

static void get(const struct etcd_op *op, struct arena *a, struct etcd_op_answer *out)
{
    struct places at = places_of(op->key, op->range_end);
    size_t count = at.to - at.from;
    size_t most = op->limit > 0 ? MIN(count, (size_t)op->limit) : count;

    *out = (struct etcd_op_answer){.kind = ETCD_GET, .count = (int64_t)count, .more = most < count};
    out->kvs = ARENA_ARRAY(a, struct etcd_kv, most + 1);
    for (size_t i = 0; i < most; i++) {
        struct etcd_kv kv = show(&store.kvs[op->descending ? at.to - 1 - i : at.from + i]);

        out->kvs[out->kv_count++] = kv;
        if (op->keys_only)
            out->kvs[i].value = SPAN("");
    }
}

/* What a transaction that would change something lacks, of what it needs. */
static enum etcd_outcome look_at_puts(const struct etcd_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].kind != ETCD_PUT)
            continue;
        if (store.is_full)
            return ETCD_FULL;
        if (ops[i].lease != 0 && lease_of(ops[i].lease) == NULL)
            return ETCD_REFUSED;
    }
    return ETCD_DONE;
}

static bool changes(const struct etcd_op *op)
{
    struct places at;

    if (op->kind != ETCD_DELETE)
        return op->kind == ETCD_PUT;
    at = places_of(op->key, op->range_end);
    return at.from < at.to;
}

static void do_ops(const struct etcd_op *ops, size_t count, struct arena *a,
                   struct etcd_answer *out)
{
    bool is_change = false;

    for (size_t i = 0; i < count; i++)
        is_change = is_change || changes(&ops[i]);
    store.revision += is_change;
    out->op_count = count;
    out->ops = ARENA_ARRAY(a, struct etcd_op_answer, count + 1);
    for (size_t i = 0; i < count; i++) {
        out->ops[i].kind = ops[i].kind;
        if (ops[i].kind == ETCD_PUT)
            put(&ops[i]);
        else if (ops[i].kind == ETCD_DELETE)
            out->ops[i].deleted = delete_range(ops[i].key, ops[i].range_end);
        else
            get(&ops[i], a, &out->ops[i]);
    }
}

void etcd_store_txn(const struct etcd_txn *txn, struct arena *a, struct etcd_answer *out)
{
    bool all_hold = true;
    const struct etcd_op *ops;
    size_t count;
    enum etcd_outcome lacks;

    for (size_t i = 0; i < txn->compare_count; i++)
        all_hold = all_hold && holds(&txn->compares[i]);
    ops = all_hold ? txn->then : txn->otherwise;
    count = all_hold ? txn->then_count : txn->otherwise_count;
    /* A full etcd refuses what has a put in either branch. */
    lacks = look_at_puts(txn->then, store.is_full ? txn->then_count : 0);
    if (lacks == ETCD_DONE)
        lacks = look_at_puts(ops, count);
    *out = (struct etcd_answer){.outcome = lacks};
    if (lacks == ETCD_DONE) {
        do_ops(ops, count, a, out);
        out->outcome = all_hold ? ETCD_DONE : ETCD_REFUSED;
    }
    out->revision = store.revision;
}

void etcd_store_compact(int64_t revision, struct etcd_answer *out)
{
    size_t gone = 0;

    *out = (struct etcd_answer){.outcome = ETCD_DONE, .revision = store.revision};
    if (revision <= store.compacted || revision > store.revision) {
        out->outcome = ETCD_COMPACTED;
        return;
    }
    store.compacted = revision;
    while (gone < store.history_count && store.history[gone].kv.mod <= revision)
        unref(&store.history[gone++].kv);
    memmove(store.history, store.history + gone,
            (store.history_count - gone) * sizeof(struct happened));
    store.history_count -= gone;
}

int64_t etcd_store_revision(void)
{
    return store.revision;
}

int64_t etcd_store_compacted(void)
{
    return store.compacted;
}

bool etcd_store_is_full(void)
{
    return store.is_full;
}

void etcd_store_make_room(void)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < store.kv_count; i++)
        bytes += key_of(&store.kvs[i]).n + blob_span(store.kvs[i].value).n + KEY_COST_BYTES;
    for (size_t i = 0; i < store.history_count; i++)
        bytes += blob_span(store.history[i].kv.value).n;
    store.bytes = bytes;
    if (bytes < store.quota_bytes / 4 * 3)
        store.is_full = false;
    sim_note("etcd: room is made, %llu bytes%s", (unsigned long long)bytes,
             store.is_full ? ", still full" : "");
}

void etcd_store_give_space(void)
{
    if (store.is_full)
        store.quota_bytes *= 2;
    etcd_store_make_room();
}

/* Watches. ---------------------------------------------------------------------------------- */

static size_t first_after(int64_t revision)
{
    size_t low = 0, high = store.history_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (store.history[middle].kv.mod <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Another etcd. ----------------------------------------------------------------------------- */

static void copy(const struct store *from, struct store *to)
{
    empty(to);
    *to = *from;
    to->kv_size = MAX(to->kv_count, 1u);
    to->kvs = mem_resize(NULL, to->kv_size * sizeof(struct key_value));
    for (size_t i = 0; i < to->kv_count; i++)
        to->kvs[i] = ref(&from->kvs[i]);
    to->history = NULL;
    to->history_count = to->history_size = 0;
}

/* The newest batch once more, at the log's end: its records are good ones. */
static void forge_batch(void)
{
    struct span log = SPAN("/svcd/" ORDER_CLUSTER "/log/"),
                log_end = SPAN("/svcd/" ORDER_CLUSTER "/log0");
    struct places at = places_of(log, log_end);
    struct replica_head head;
    struct span stored;
    struct buf key, value;

    if (at.from == at.to)
        return;
    MUST(replica_batch_parse(blob_span(store.kvs[at.to - 1].value), &head, &stored) == NULL);
    if (head.is_base || head.parts > 0)
        return;
    head.first += head.count;
    buf_init(&key, BUF_NO_CAP);
    buf_init(&value, BUF_NO_CAP);
    buf_printf(&key, "/svcd/" ORDER_CLUSTER "/log/%016llx", (unsigned long long)head.first);
    replica_batch_add(&value, &head, stored);
    put(&(struct etcd_op){.kind = ETCD_PUT, .key = buf_span(&key), .value = buf_span(&value)});
    buf_done(&key);
    buf_done(&value);
}

void etcd_store_make_other(void)
{
    copy(&store, &aside);
    etcd_store_enter_other(true);
    store.plants = (struct etcd_store_plants){0};
    store.revision += 1 + (int64_t)rng_below(1000000);
    store.compacted = 0;
    store.leases_given += OTHER_LEASES; /* no two etcds give the same id */
    forge_batch();
    etcd_store_enter_other(false);
}

void etcd_store_enter_other(bool is_entered)
{
    struct store entered = aside;

    if (is_entered == is_other)
        return;
    aside = store;
    store = entered;
    is_other = is_entered;
}

bool etcd_store_is_other(void)
{
    return is_other;
}

bool etcd_store_next_events(struct span key, struct span range_end, int64_t *revision,
                            struct arena *a, struct etcd_event **out_events, size_t *out_count)
{
    size_t at = first_after(*revision), count = 0;

    while (at < store.history_count && !in_range(key_of(&store.history[at].kv), key, range_end))
        at++;
    if (at == store.history_count) {
        *revision = MAX(*revision, store.revision);
        return false;
    }
    *revision = store.history[at].kv.mod;
    *out_events = ARENA_ARRAY(a, struct etcd_event, store.history_count - at);
    for (; at < store.history_count && store.history[at].kv.mod == *revision; at++)
        if (in_range(key_of(&store.history[at].kv), key, range_end))
            (*out_events)[count++] = (struct etcd_event){.is_delete = store.history[at].is_delete,
                                                         .kv = show(&store.history[at].kv)};
    *out_count = count;
    return true;
}
