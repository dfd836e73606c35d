/* The nodes that live, as their keys say: all of them in one read, together with who leads and with
 * the secret that they share, which is another one when a node has restored a log that was lost. A
 * key
 * stands on its node's lease, so what is not there any more has left or died. A read that is not
 * answered changes nothing; the next one is a third of a lease away, and after two leases without
 * one nobody can say who lives.
 *
 * A node whose role is JOINING reads no log, and learns here who leads. */
#include "replica_private.h"

#include "json/json.h"

#include <string.h>

enum { LEASES_KEPT = 2, VALUE_MOST_BYTES = 8192 };

#define MS_PER_S 1000u

size_t replica_node_count(const struct replica *r)
{
    return r->nodes.count;
}

const struct replica_node *replica_node_at(const struct replica *r, size_t i)
{
    return i < r->nodes.count ? &r->nodes.list[i] : NULL;
}

unsigned replica_records(const struct replica *r, struct span *out_node)
{
    const struct replica_node *least = NULL;

    for (size_t i = 0; i < r->nodes.count; i++)
        if (least == NULL || r->nodes.list[i].records < least->records)
            least = &r->nodes.list[i];
    *out_node = least != NULL ? least->name : SPAN("");
    return least != NULL ? least->records : 0;
}

/* What stands in its value. ---------------------------------------------------------------- */

static enum replica_role role_of(const struct replica *r, struct span name, struct span text)
{
    enum replica_role role = REPLICA_FOLLOWING;

    if (r->epoch != 0 && span_eq(name, replica_leader(r)))
        return REPLICA_LEADING;
    for (unsigned i = 0; i < REPLICA_ROLE_COUNT; i++)
        if (span_eq(text, span_str(replica_role_text(i))))
            role = i;
    return role == REPLICA_LEADING ? REPLICA_FOLLOWING : role;
}

static struct span text_member(struct json_value v, const char *name, struct arena *a)
{
    struct json_value member = json_member(v, span_str(name));

    return json_type(member) == JSON_STRING ? arena_copy(a, json_string(member, a)) : SPAN("");
}

/* A node of a version that does not say it knows what all do. */
static unsigned records_of(struct json_value v)
{
    uint64_t records;

    return span_to_u64(json_text(json_member(v, SPAN("Records"))), &records)
               ? (unsigned)MIN(records, UINT32_MAX)
               : 0;
}

/* The copies go into `a`. False: it is no node's. */
static bool read_node(const struct replica *r, const struct etcd_kv *kv, struct arena *a,
                      struct replica_node *out_node)
{
    struct span value = kv->value;
    struct span json = span_sub(value, MIN(value.n, REPLICA_TOKEN_BYTES + 1), value.n);
    struct span name = span_sub(kv->key, r->keys.nodes.n, kv->key.n);
    struct json_doc doc;
    struct json_value root;
    struct err *e;

    if (name.n == 0 || name.n > REPLICA_NAME_BYTES || value.n > VALUE_MOST_BYTES)
        return false;
    e = json_parse(json, NULL, a, &doc);
    if (e != NULL) {
        err_free(e);
        return false;
    }
    root = json_root(&doc);
    *out_node = (struct replica_node){
        .name = arena_copy(a, name),
        .url = text_member(root, "Url", a),
        .version = text_member(root, "Version", a),
        .role = role_of(r, name, text_member(root, "Role", a)),
        .records = records_of(root),
    };
    return span_to_u64(json_text(json_member(root, SPAN("Next"))), &out_node->next);
}

/* The list. -------------------------------------------------------------------------------- */

static bool is_same(const struct replica_node *a, const struct replica_node *b)
{
    return span_eq(a->name, b->name) && span_eq(a->url, b->url) &&
           span_eq(a->version, b->version) && a->role == b->role && a->next == b->next &&
           a->records == b->records;
}

/* The arena moves into it. */
static void set(struct replica *r, const struct arena *arena, struct replica_node *list,
                size_t count)
{
    struct replica_nodes *nodes = &r->nodes;
    bool is_changed = count != nodes->count;

    for (size_t i = 0; i < count && !is_changed; i++)
        is_changed = !is_same(&list[i], &nodes->list[i]);
    arena_done(&nodes->arena);
    nodes->arena = *arena;
    nodes->list = list;
    nodes->count = count;
    if (is_changed && r->callbacks.on_nodes != NULL)
        r->callbacks.on_nodes(r->callbacks.context);
}

static void on_too_old(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, nodes.too_old);
    struct arena none;

    arena_init(&none);
    set(r, &none, NULL, 0);
}

static void take(struct replica *r, const struct etcd_op_answer *page)
{
    size_t count = 0;
    struct replica_node *list;
    struct arena a;

    arena_init(&a);
    list = ARENA_ARRAY(&a, struct replica_node, page->kv_count);
    for (size_t i = 0; i < page->kv_count; i++)
        if (read_node(r, &page->kvs[i], &a, &list[count]))
            count++;
    timer_start(r->loop, &r->nodes.too_old, (uint64_t)LEASES_KEPT * r->options.lease_s * MS_PER_S);
    set(r, &a, list, count);
}

void replica_take_secret(struct replica *r, const struct etcd_op_answer *page)
{
    struct span secret = replica_value(page);

    if (secret.n != REPLICA_SECRET_BYTES || memcmp(secret.p, r->secret, secret.n) == 0)
        return;
    memcpy(r->secret, secret.p, REPLICA_SECRET_BYTES);
    if (r->callbacks.on_entered != NULL)
        r->callbacks.on_entered(r->callbacks.context, r->id.b, r->secret);
}

static void on_read(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct replica *r = CONTAINER_OF(call, struct replica, nodes.call);
    bool again = r->nodes.again;

    r->nodes.again = false;
    if (answer->is_other) {
        replica_say_outcome(r, answer);
        replica_read_check(r, answer, r->nodes.seen, NULL);
    } else if (answer->outcome == ETCD_DONE && answer->op_count == 4) {
        if (r->role == REPLICA_JOINING)
            replica_note_leader(r, replica_first(&answer->ops[0]));
        replica_read_check(r, answer, r->nodes.seen, &answer->ops[3]);
        replica_take_secret(r, &answer->ops[1]);
        take(r, &answer->ops[2]);
    }
    if (again)
        replica_nodes_read(r);
}

void replica_nodes_read(struct replica *r)
{
    const struct etcd_op gets[] = {
        {.kind = ETCD_GET, .key = r->keys.leader},
        {.kind = ETCD_GET, .key = r->keys.secret},
        {.kind = ETCD_GET,
         .key = r->keys.nodes,
         .range_end = r->keys.nodes_end,
         .limit = REPLICA_NODES_MOST},
        {.kind = ETCD_GET, .key = r->keys.id},
    };

    if (etcd_is_started(&r->nodes.call)) {
        r->nodes.again = true;
        return;
    }
    r->nodes.call = (struct etcd_call){.on_done = on_read};
    r->nodes.seen = r->read.seen;
    etcd_txn(r->etcd, &r->nodes.call,
             &(struct etcd_txn){.then = gets, .then_count = ARRAY_LEN(gets)});
}

void replica_nodes_stop(struct replica *r)
{
    etcd_cancel(r->etcd, &r->nodes.call);
    r->nodes.again = false;
}

void replica_nodes_init(struct replica *r)
{
    arena_init(&r->nodes.arena);
    timer_init(&r->nodes.too_old, on_too_old);
}

void replica_nodes_done(struct replica *r)
{
    replica_nodes_stop(r);
    timer_stop(r->loop, &r->nodes.too_old);
    arena_done(&r->nodes.arena);
}
