/* What is refused must not be in the log when it is refused, nor come there later; what is
 * acknowledged must be there by then. */
#include "operations.h"

#include "order.h"
#include "simulated.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"

#include <inttypes.h>
#include <string.h>

enum { IN_CHANGE = 16 };

static struct {
    struct operation *list; /* by number; the first is none */
    size_t count, size;
    struct item *items;
    size_t item_count, item_size;
    uint64_t in_change[IN_CHANGE]; /* operations whose entities the change has that is read */
    size_t in_change_count;
    size_t many;
    size_t by_state[OPERATION_UNKNOWN + 1];
} all;

void operations_open(void)
{
    memset(&all, 0, sizeof(all));
    all.count = all.size = 1;
    all.list = mem_alloc(sizeof(struct operation));
    memset(all.list, 0, sizeof(struct operation));
}

void operations_close(void)
{
    mem_free(all.list);
    mem_free(all.items);
    memset(&all, 0, sizeof(all));
}

/* Items. ------------------------------------------------------------------------------------ */

size_t operations_add_item(void)
{
    if (all.item_count == all.item_size) {
        all.item_size = MAX(64, all.item_size * 2);
        all.items = mem_resize(all.items, all.item_size * sizeof(struct item));
    }
    all.items[all.item_count] = (struct item){.is_busy = false};
    return all.item_count++;
}

struct item *operations_item(size_t place)
{
    MUST(place < all.item_count);
    return &all.items[place];
}

size_t operations_item_count(void)
{
    return all.item_count;
}

/* Of the latest ones, so that some are changed often. */
size_t operations_any_item(void)
{
    size_t back = (size_t)rng_below(OPERATIONS_SLOTS) + 1;

    for (size_t i = all.item_count; i-- > 0;) {
        const struct item *item = &all.items[i];

        if (item->is_there && !item->is_busy && !item->is_lost && --back == 0)
            return i;
    }
    return SIZE_MAX;
}

static struct item *item_of(const struct uuid *id)
{
    for (size_t i = all.item_count; i-- > 0;)
        if (all.items[i].has_id && uuid_eq(&all.items[i].id, id))
            return &all.items[i];
    return NULL;
}

static void set_id(struct item *item, const struct uuid *id)
{
    if (item->has_id && !uuid_eq(&item->id, id))
        sim_broken(NOTHING_LOST, "an entity has two Ids");
    item->id = *id;
    item->has_id = true;
}

/* Operations. ------------------------------------------------------------------------------- */

static bool inserts_one(enum operation_kind kind)
{
    return kind == OPERATION_INSERT || kind == OPERATION_INSERT_LARGE;
}

uint64_t operations_begin(enum operation_kind kind, size_t item, unsigned node)
{
    if (all.count == all.size) {
        all.size = MAX(64, all.size * 2);
        all.list = mem_resize(all.list, all.size * sizeof(struct operation));
    }
    all.list[all.count] =
        (struct operation){.kind = kind, .item = item, .node = node, .began_ns = sim.now_ns};
    all.by_state[OPERATION_UNDER_WAY]++;
    if (item != SIZE_MAX)
        operations_item(item)->is_busy = true;
    return all.count++;
}

static struct operation *operation_of(uint64_t n)
{
    MUST(n > 0 && n < all.count);
    return &all.list[n];
}

const struct operation *operations_at(uint64_t n)
{
    return n > 0 && n < all.count ? &all.list[n] : NULL;
}

size_t operations_count(enum operation_state state)
{
    return all.by_state[state];
}

static void end_item(struct operation *op, uint64_t serial, const struct uuid *id)
{
    struct item *item = operations_item(op->item);

    item->is_busy = false;
    if (op->state == OPERATION_UNKNOWN)
        item->is_lost = true;
    if (op->state != OPERATION_ACKNOWLEDGED)
        return;
    item->acknowledged = serial;
    if (inserts_one(op->kind)) {
        MUST(id != NULL);
        set_id(item, id);
        item->is_there = true;
    } else if (op->kind == OPERATION_DELETE) {
        item->is_there = false;
    }
}

void operations_end(uint64_t n, enum operation_state state, uint64_t serial, const struct uuid *id)
{
    struct operation *op = operation_of(n);

    MUST(op->state == OPERATION_UNDER_WAY && state != OPERATION_UNDER_WAY);
    all.by_state[op->state]--;
    all.by_state[state]++;
    op->state = state;
    if (state == OPERATION_REFUSED && op->serial != 0)
        sim_broken(NOTHING_REFUSED, "operation %" PRIu64 " is refused, and in the log at %" PRIu64,
                   n, op->serial);
    if (state == OPERATION_ACKNOWLEDGED && (op->serial == 0 || serial < op->serial))
        sim_broken(NOTHING_LOST,
                   "operation %" PRIu64 " is acknowledged with serial %" PRIu64
                   ", the log has it at %" PRIu64 " and ends at %" PRIu64,
                   n, serial, op->serial, order_next() - 1);
    if (op->item != SIZE_MAX)
        end_item(op, op->serial, id);
}

/* The log. ---------------------------------------------------------------------------------- */

static struct operation *found(uint64_t n, uint64_t serial)
{
    struct operation *op = operation_of(n);

    if (op->state == OPERATION_REFUSED)
        sim_broken(NOTHING_REFUSED, "operation %" PRIu64 " was refused, and comes at %" PRIu64, n,
                   serial);
    if (op->serial != 0)
        sim_broken(NOTHING_LOST, "operation %" PRIu64 " is there twice, at %" PRIu64, n, serial);
    if (op->found == 0) {
        MUST(all.in_change_count < IN_CHANGE);
        all.in_change[all.in_change_count++] = n;
    }
    op->found++;
    return op;
}

void operations_note_entity(const struct uuid *id, uint64_t n, uint64_t serial)
{
    struct operation *op = found(n, serial);
    struct item *item = op->item == SIZE_MAX ? NULL : operations_item(op->item);

    if (op->kind == OPERATION_INSERT_SOME) /* which nobody changes */
        item = operations_item(operations_add_item());
    MUST(item != NULL);
    if (op->kind == OPERATION_CHANGE && (!item->is_logged || item->is_gone))
        sim_broken(NOTHING_LOST, "operation %" PRIu64 " changes what is not there", n);
    set_id(item, id);
    item->is_logged = true;
    item->n = n;
    item->serial = serial;
}

void operations_note_one_of_many(uint64_t n, bool is_new, uint64_t serial)
{
    const struct operation *op = found(n, serial);

    if (is_new != (op->kind == OPERATION_INSERT_MANY))
        sim_broken(ONE_ORDER, "operation %" PRIu64 " %s", n,
                   is_new ? "inserts" : "changes what is not there");
    all.many += is_new;
}

size_t operations_many(void)
{
    return all.many;
}

void operations_note_gone(const struct uuid *id, uint64_t serial)
{
    struct item *item = item_of(id);

    if (item == NULL || !item->is_logged || item->is_gone)
        sim_broken(ONE_ORDER, "what is deleted at %" PRIu64 " is not there", serial);
    item->is_gone = true;
    item->serial = serial;
    for (uint64_t n = all.count; n-- > 1;)
        if (all.list[n].kind == OPERATION_DELETE && &all.items[all.list[n].item] == item &&
            all.list[n].state != OPERATION_REFUSED) {
            found(n, serial);
            return;
        }
    sim_broken(NOTHING_REFUSED, "what is deleted at %" PRIu64 " nobody has deleted", serial);
}

void operations_note_event(const struct uuid *id, uint64_t n, uint64_t serial)
{
    found(n, serial)->event = *id;
}

static size_t whole(const struct operation *op)
{
    switch (op->kind) {
    case OPERATION_INSERT_SOME:
        return OPERATIONS_SOME;
    case OPERATION_INSERT_MANY:
        return OPERATIONS_MANY;
    case OPERATION_CHANGE_MANY:
        return all.many;
    default:
        return 1;
    }
}

void operations_end_change(uint64_t serial)
{
    for (size_t i = 0; i < all.in_change_count; i++) {
        struct operation *op = operation_of(all.in_change[i]);

        if (op->found != whole(op))
            sim_broken(NOTHING_HALF, "of operation %" PRIu64 " %zu of %zu are there, at %" PRIu64,
                       all.in_change[i], op->found, whole(op), serial);
        op->serial = serial;
    }
    all.in_change_count = 0;
}

/* Deliveries. ------------------------------------------------------------------------------- */

void operations_check_confirmed(uint64_t n)
{
    if (operation_of(n)->serial == 0)
        sim_broken(DELIVERED, "operation %" PRIu64 " is delivered, and not in the log", n);
}

void operations_note_delivery(const struct uuid *event, uint64_t n, bool is_accepted)
{
    struct operation *op = operation_of(n);

    if (!uuid_eq(&op->event, event))
        sim_broken(DELIVERED, "operation %" PRIu64 " is delivered as another event", n);
    op->is_delivered = op->is_delivered || is_accepted;
}

static bool is_owed(const struct operation *op, uint64_t from)
{
    return op->kind == OPERATION_RAISE && op->serial > from && !op->is_delivered;
}

bool operations_are_delivered(uint64_t from)
{
    for (uint64_t n = 1; n < all.count; n++)
        if (is_owed(&all.list[n], from))
            return false;
    return true;
}

void operations_check_delivered(uint64_t from)
{
    for (uint64_t n = 1; n < all.count; n++)
        if (is_owed(&all.list[n], from))
            sim_broken(DELIVERED, "operation %" PRIu64 ", serial %" PRIu64 ", never was", n,
                       all.list[n].serial);
}
