/* Batches are read as a follower reads them, but at the moment in which their mark is put: parts
 * must be there by then. */
#include "order.h"

#include "etcd_store.h"
#include "operations.h"
#include "simulated.h"

#include "base/mem.h"
#include "journal/replica_batch.h"
#include "store/record.h"
#include "store/turn_batch.h"
#include "json/json.h"

#include <inttypes.h>
#include <string.h>

enum { BATCH_MOST = 64 << 20 };

static const struct span cluster = SPAN_INIT(ORDER_CLUSTER), item_resource = SPAN_INIT("Sim.Item"),
                         many_resource = SPAN_INIT("Sim.Many");

static struct {
    uint64_t next, last_first, begins, batches, epochs;
    struct store_digest *states; /* by serial; objects and sum 0: not known */
    size_t state_count;
} order;

void order_open(void)
{
    memset(&order, 0, sizeof(order));
    order.next = 1;
}

void order_close(void)
{
    mem_free(order.states);
    order_open();
}

bool order_is_log_key(struct span key)
{
    uint64_t serial;

    return replica_key_is_log(key, cluster, &serial);
}

static void must_be_whole(struct err *e, uint64_t serial)
{
    if (e != NULL)
        sim_broken(NOTHING_HALF, "batch %" PRIu64 ": %.*s", serial, SPAN_FMT(err_message(e)));
}

/* Records. ---------------------------------------------------------------------------------- */

static uint64_t number_of(struct json_value object, struct span name)
{
    uint64_t value = 0;

    return span_to_u64(json_text(json_member(object, name)), &value) ? value : 0;
}

static void note_entity(const struct turn_batch_record *r, uint64_t serial, struct arena *a)
{
    struct record_entity entity;
    struct json_doc doc;
    uint64_t n;

    must_be_whole(record_read_entity(r->body, &entity), serial);
    if (!span_eq(entity.resource, item_resource) && !span_eq(entity.resource, many_resource))
        return;
    must_be_whole(json_parse(entity.json, NULL, a, &doc), serial);
    n = number_of(json_root(&doc), SPAN("N"));
    if (span_eq(entity.resource, item_resource))
        operations_note_entity(&entity.id, n, serial);
    else
        operations_note_one_of_many(n, entity.object_no == serial, serial);
}

static void note_event(const struct turn_batch_record *r, uint64_t serial, struct arena *a)
{
    struct record_event event;
    struct json_doc doc;

    must_be_whole(record_read_event(r->body, &event), serial);
    if (!span_eq(event.resource, SPAN("Sim.Raised")) || event.is_hidden)
        return;
    must_be_whole(json_parse(event.payload, NULL, a, &doc), serial);
    operations_note_event(&event.id, number_of(json_first(json_root(&doc)), SPAN("N")), serial);
}

static void note_record(const struct turn_batch_record *r, uint64_t serial, struct arena *a)
{
    struct record_entity_gone gone;

    switch (r->kind) {
    case RECORD_ENTITY:
        note_entity(r, serial, a);
        break;
    case RECORD_ENTITY_GONE:
        must_be_whole(record_read_entity_gone(r->body, &gone), serial);
        if (span_eq(gone.resource, item_resource))
            operations_note_gone(&gone.id, serial);
        break;
    case RECORD_EVENT:
        note_event(r, serial, a);
        break;
    default:
        break;
    }
}

static void note_content(struct span content, const struct replica_head *head)
{
    uint64_t serial = head->first;
    struct arena a;

    must_be_whole(turn_batch_check(content, head->count, RECORD_KIND_END), head->first);
    arena_init(&a);
    while (content.n > 0) {
        struct turn_batch_record record;

        must_be_whole(turn_batch_next(&content, &record), head->first);
        note_record(&record, serial, &a);
        if (!record.more)
            operations_end_change(serial);
        serial += record.serials;
    }
    arena_done(&a);
}

/* Batches. ---------------------------------------------------------------------------------- */

static void add_parts(struct buf *b, const struct replica_head *head)
{
    for (uint32_t i = 0; i < head->parts; i++) {
        const struct etcd_kv *part;
        struct buf key;

        buf_init(&key, BUF_NO_CAP);
        buf_printf(&key, "/svcd/%.*s/part/%016" PRIx64 "/%016" PRIx64 "/%08" PRIx32,
                   SPAN_FMT(cluster), head->epoch, head->first, i);
        part = etcd_store_find(buf_span(&key));
        if (part == NULL)
            sim_broken(NOTHING_HALF, "batch %" PRIu64 " lacks its part %u", head->first, i);
        buf_add(b, part->value);
        buf_done(&key);
    }
}

static int64_t epoch_now(void)
{
    const struct etcd_kv *leader = etcd_store_find(SPAN("/svcd/" ORDER_CLUSTER "/leader"));

    return leader == NULL ? 0 : leader->create_revision;
}

static void check_place(const struct replica_head *head, uint64_t serial)
{
    if (serial != head->first || (order.batches > 0 && head->first != order.next))
        sim_broken(ONE_ORDER, "batch %" PRIu64 " stands at %" PRIu64 ", the log ends at %" PRIu64,
                   head->first, serial, order.next);
    if (head->is_base != (order.batches == 0))
        sim_broken(ONE_ORDER, "batch %" PRIu64 " is %s base", head->first,
                   head->is_base ? "a" : "no");
    if (!head->is_base && (int64_t)head->epoch != epoch_now())
        sim_broken(ONE_ORDER, "batch %" PRIu64 " is of epoch %" PRIu64 ", and now is %" PRId64,
                   head->first, head->epoch, epoch_now());
}

static void note_batch(const struct etcd_kv *kv, uint64_t serial)
{
    struct replica_head head;
    struct span stored;
    struct buf parts, content;

    must_be_whole(replica_batch_parse(kv->value, &head, &stored), serial);
    check_place(&head, serial);
    buf_init(&parts, BUF_NO_CAP);
    buf_init(&content, BUF_NO_CAP);
    add_parts(&parts, &head);
    must_be_whole(replica_batch_unpack(&head, head.parts > 0 ? buf_span(&parts) : stored,
                                       BATCH_MOST, &content),
                  serial);
    order.next = head.first + head.count;
    order.last_first = head.first;
    order.batches++;
    if (!head.is_base)
        note_content(buf_span(&content), &head);
    sim_note("log: %" PRIu64 "..%" PRIu64 " by %.*s, epoch %" PRIu64 ", %u parts", head.first,
             order.next - 1, SPAN_FMT(head.node), head.epoch, head.parts);
    buf_done(&parts);
    buf_done(&content);
}

void order_note_put(const struct etcd_kv *kv)
{
    uint64_t serial;

    if (replica_key_is_log(kv->key, cluster, &serial)) {
        note_batch(kv, serial);
    } else if (span_eq(kv->key, SPAN("/svcd/" ORDER_CLUSTER "/leader"))) {
        order.epochs++;
        sim_note("etcd: epoch %" PRId64 " begins, %.*s", kv->create_revision,
                 SPAN_FMT(span_sub(kv->value, 33, kv->value.n)));
    }
}

void order_note_delete(struct span key)
{
    uint64_t serial;

    if (!replica_key_is_log(key, cluster, &serial))
        return;
    if (serial == order.last_first)
        sim_broken(ONE_ORDER, "the last batch, %" PRIu64 ", is deleted", serial);
    order.begins = MAX(order.begins, serial + 1);
}

uint64_t order_next(void)
{
    return order.next;
}

uint64_t order_begins(void)
{
    return order.begins;
}

uint64_t order_batches(void)
{
    return order.batches;
}

uint64_t order_epochs(void)
{
    return order.epochs;
}

/* States. ----------------------------------------------------------------------------------- */

static struct store_digest *state_at(uint64_t serial)
{
    size_t had = order.state_count;

    if (serial >= had) {
        order.state_count = MAX((size_t)serial + 1, had * 2);
        order.states = mem_resize(order.states, order.state_count * sizeof(*order.states));
        memset(order.states + had, 0, (order.state_count - had) * sizeof(*order.states));
    }
    return &order.states[serial];
}

void order_note_state(const char *node, uint64_t serial, const struct store_digest *digest)
{
    struct store_digest *known;

    if (serial >= order.next)
        sim_broken(ONLY_CONFIRMED, "node %s has serial %" PRIu64 ", the log ends at %" PRIu64, node,
                   serial, order.next - 1);
    known = state_at(serial);
    if (known->objects == 0 && known->sum == 0)
        *known = *digest;
    else if (known->objects != digest->objects || known->sum != digest->sum)
        sim_broken(SAME_STATE,
                   "node %s at serial %" PRIu64 ": digest %016" PRIx64 " of %" PRIu64
                   " objects, another node had %016" PRIx64 " of %" PRIu64,
                   node, serial, (uint64_t)digest->sum, (uint64_t)digest->objects,
                   (uint64_t)known->sum, (uint64_t)known->objects);
}
