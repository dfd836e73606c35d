/* An answer says that the change was done, or that nothing was done, or that it may have been done,
 * which no answer at all says too. */
#include "clients.h"

#include "operations.h"
#include "plants.h"
#include "visit.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "json/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LARGE_BYTES = 400000, PADDING_ONE_IN = 10, TARGET_BYTES = 160 };

/* One that waits for its answer. */
struct client {
    struct machine *machine;
    uint64_t n; /* of its operation; 0: it reads */
    size_t item;
    uint64_t must_see; /* of a read: the item's change with this serial, whoever answers */
    uint64_t newest;   /* and, of the leader, this one */
    bool is_check;     /* all is well, and an answer is expected */
    bool is_mistake, is_webhook;
};

static struct {
    size_t waiting;
    uint64_t webhook_serial;
    bool has_large, has_many;
} clients;

void clients_open(bool has_large, bool has_many)
{
    memset(&clients, 0, sizeof(clients));
    clients.has_large = has_large;
    clients.has_many = has_many;
}

size_t clients_waiting(void)
{
    return clients.waiting;
}

uint64_t clients_webhook_serial(void)
{
    return clients.webhook_serial;
}

/* Answers. ---------------------------------------------------------------------------------- */

static bool says(const struct visit_answer *a, const char *words)
{
    return span_find(a->body, span_str(words)) != SIZE_MAX;
}

/* 403: the clocks of two nodes are too far apart for one to believe the other. */
static bool is_refusal(int status)
{
    return status == 503 || status == 507 || status == 403 || status == 429;
}

static bool answered_id(const struct visit_answer *a, struct uuid *out_id)
{
    size_t at = span_find(a->body, SPAN("\"Id\":\""));

    return at != SIZE_MAX &&
           uuid_parse(span_sub(a->body, at + 6, at + 6 + UUID_TEXT_BYTES), out_id);
}

/* What is not there for a leader that leads by the clock was lost. */
static void must_not_be_missing(const struct client *c, const struct visit_answer *a)
{
    const struct operation *op = operations_at(c->n);

    if (a->leads && a->status == 404 && op->item != SIZE_MAX && !operations_item(op->item)->is_gone)
        sim_broken(NOTHING_LOST, "operation %" PRIu64 " does not find what was acknowledged", c->n);
}

static void end_change(const struct client *c, const struct visit_answer *a)
{
    struct uuid id;
    bool has_id;

    if (a == NULL) {
        operations_end(c->n, OPERATION_UNKNOWN, 0, NULL);
        return;
    }
    sim_note("%s: operation %" PRIu64 " is answered %d, serial %" PRIu64, c->machine->name, c->n,
             a->status, a->serial);
    if (a->status / 100 == 2) {
        has_id = answered_id(a, &id);
        operations_end(c->n, OPERATION_ACKNOWLEDGED, a->serial, has_id ? &id : NULL);
        return;
    }
    if (!is_refusal(a->status) && a->status != 404)
        sim_broken(NOTHING_LOST, "operation %" PRIu64 " is answered %d: %.*s", c->n, a->status,
                   SPAN_FMT(a->body));
    must_not_be_missing(c, a);
    operations_end(c->n, says(a, "may have been done") ? OPERATION_UNKNOWN : OPERATION_REFUSED, 0,
                   NULL);
}

static void check_value(const struct client *c, const struct visit_answer *a, uint64_t least)
{
    const struct item *item = operations_item(c->item);
    size_t at = span_find(a->body, SPAN("\"N\":"));
    const struct operation *op;
    uint64_t n;
    struct span rest = span_sub(a->body, at + 4, a->body.n);
    size_t digits = 0;

    MUST(at != SIZE_MAX);
    while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    MUST(span_to_u64(span_sub(rest, 0, digits), &n));
    op = operations_at(n);
    if (c->is_check && item->is_gone)
        sim_broken(SAME_STATE, "node %s shows what was deleted at %" PRIu64, c->machine->name,
                   item->serial);
    if (op == NULL || op->serial == 0)
        sim_broken(NO_STALE_READ,
                   "node %s shows operation %" PRIu64 ", which the log does not have",
                   c->machine->name, n);
    if (op->serial < least)
        sim_broken(NO_STALE_READ,
                   "node %s shows operation %" PRIu64 " at %" PRIu64 ", and %" PRIu64
                   " was acknowledged (the item is at %" PRIu64 ")",
                   c->machine->name, n, op->serial, least, item->serial);
}

static void end_read(const struct client *c, const struct visit_answer *a)
{
    const struct item *item = operations_item(c->item);
    uint64_t least;

    if (a == NULL || is_refusal(a->status)) {
        if (c->is_check)
            sim_broken(RECOVERS, "node %s does not answer a read", c->machine->name);
        return;
    }
    least = a->leads ? MAX(c->newest, c->must_see) : c->must_see;
    if (a->status == 200) {
        check_value(c, a, least);
    } else if (a->status == 204 || a->status == 404) {
        if (least > 0 && !item->is_gone)
            sim_broken(NO_STALE_READ, "node %s does not show what was acknowledged at %" PRIu64,
                       c->machine->name, least);
    } else {
        sim_broken(NO_STALE_READ, "node %s answers a read %d: %.*s", c->machine->name, a->status,
                   SPAN_FMT(a->body));
    }
}

static void on_answer(void *context, const struct visit_answer *a)
{
    struct client *c = context;

    clients.waiting--;
    if (c->n != 0)
        end_change(c, a);
    else if (c->is_webhook && a != NULL && a->status / 100 == 2)
        clients.webhook_serial = a->serial;
    else if (!c->is_mistake && !c->is_webhook)
        end_read(c, a);
    mem_free(c);
}

/* Requests. --------------------------------------------------------------------------------- */

static void send_to(const struct client *client, const char *method, const char *target,
                    const struct buf *body, uint64_t min_serial)
{
    struct client *c = NEW(struct client);
    char digits[SPAN_U64_BYTES];
    const struct header_field headers[] = {
        {SPAN("Content-Type"), SPAN("application/json")},
        {SPAN("Svc-min-serial"), span_u64(min_serial, digits)},
    };
    const struct request request = {
        .method = span_str(method),
        .target = span_str(target),
        .headers = headers,
        .header_count = min_serial > 0 ? 2 : 1,
        .body = body == NULL ? span_of(NULL, 0) : span_of(body->p, body->n),
        .gives_way = true,
    };
    struct machine *m = client->machine;

    *c = *client;
    clients.waiting++;
    machine_enter(m->index);
    visit_run(visit_new(m, &request, on_answer, c));
    machine_leave(m->index);
}

static void add_padding(struct buf *b, size_t n)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    buf_add_str(b, ",\"Padding\":\"");
    for (size_t i = 0; i < n; i++)
        buf_add_char(b, letters[rng_below(sizeof(letters) - 1)]);
    buf_add_char(b, '"');
}

static void add_entity(struct buf *b, uint64_t n, size_t padding)
{
    buf_printf(b, "{\"N\":%" PRIu64, n);
    if (padding > 0)
        add_padding(b, padding);
    buf_add_char(b, '}');
}

static void target_of(char target[TARGET_BYTES], size_t item, const char *more)
{
    char id[UUID_TEXT_BYTES + 1];

    uuid_text(&operations_item(item)->id, id);
    snprintf(target, TARGET_BYTES, "/Sim.Item/Id=%s%s", id, more);
}

static size_t any_padding(void)
{
    return sim_chance(PADDING_ONE_IN) ? (size_t)rng_below(8000) : 0;
}

static void ask_change(struct machine *m, enum operation_kind kind, size_t item, const char *method,
                       const char *target, size_t entities, size_t padding)
{
    struct client c = {.machine = m, .n = operations_begin(kind, item, m->index)};
    struct buf body;

    sim_note("%s: operation %" PRIu64 ": %s %s, of kind %d", m->name, c.n, method, target,
             (int)kind);
    buf_init(&body, BUF_NO_CAP);
    for (size_t i = 0; i < entities; i++) {
        buf_add_str(&body, entities == 1 ? "" : i == 0 ? "[" : ",");
        add_entity(&body, c.n, padding);
    }
    buf_add_str(&body, entities > 1 ? "]" : "");
    send_to(&c, method, target, entities > 0 ? &body : NULL, 0);
    buf_done(&body);
}

static void insert(struct machine *m)
{
    ask_change(m, OPERATION_INSERT, operations_add_item(), "POST", "/Sim.Item", 1, any_padding());
}

static void insert_large(struct machine *m)
{
    if (clients.has_large)
        ask_change(m, OPERATION_INSERT_LARGE, operations_add_item(), "POST", "/Sim.Item", 1,
                   LARGE_BYTES);
}

static void insert_some(struct machine *m)
{
    ask_change(m, OPERATION_INSERT_SOME, SIZE_MAX, "POST", "/Sim.Item", OPERATIONS_SOME, 0);
}

static void change(struct machine *m)
{
    size_t item = operations_any_item();
    char target[TARGET_BYTES];

    if (item == SIZE_MAX)
        return;
    target_of(target, item, "");
    ask_change(m, OPERATION_CHANGE, item, "PATCH", target, 1, any_padding());
}

static void delete_one(struct machine *m)
{
    size_t item = operations_any_item();
    char target[TARGET_BYTES];

    if (item == SIZE_MAX)
        return;
    target_of(target, item, "");
    ask_change(m, OPERATION_DELETE, item, "DELETE", target, 0, 0);
}

static void change_many(struct machine *m)
{
    if (!clients.has_many)
        return;
    if (operations_many() == 0)
        ask_change(m, OPERATION_INSERT_MANY, SIZE_MAX, "POST", "/Sim.Many", OPERATIONS_MANY, 0);
    else
        ask_change(m, OPERATION_CHANGE_MANY, SIZE_MAX, "PATCH", "/Sim.Many/_/unsafe=true", 1, 0);
}

static void raise_event(struct machine *m)
{
    struct client c = {.machine = m, .n = operations_begin(OPERATION_RAISE, SIZE_MAX, m->index)};
    struct buf body;

    sim_note("%s: operation %" PRIu64 ": an event", m->name, c.n);
    buf_init(&body, BUF_NO_CAP);
    buf_add_char(&body, '[');
    add_entity(&body, c.n, any_padding());
    buf_add_char(&body, ']');
    send_to(&c, "POST", "/Svc.Event/Resource=Sim.Raised", &body, 0);
    buf_done(&body);
}

/* With Svc-min-serial every second time. */
static void read_one(struct machine *m)
{
    size_t item = operations_any_item();
    struct client c = {.machine = m, .item = item};
    char target[TARGET_BYTES];

    if (item == SIZE_MAX)
        return;
    c.newest = operations_item(item)->acknowledged;
    c.must_see = sim_chance(2) ? c.newest : 0;
    target_of(target, item, "/select=N");
    send_to(&c, "GET", target, NULL, planted == PLANT_SERIAL ? 0 : c.must_see);
}

/* Refused, and noted as an entity of Svc.Admin.Error, by the leader. */
static void mistake(struct machine *m)
{
    struct client c = {.machine = m, .is_mistake = true};
    struct buf body;

    buf_init(&body, BUF_NO_CAP);
    buf_add_str(&body, "{\"N\":\"seven\"}");
    send_to(&c, sim_chance(2) ? "POST" : "GET", sim_chance(2) ? "/Sim.Item" : "/Sim.Item/Nothing=1",
            &body, 0);
    buf_done(&body);
}

void clients_make_webhook(struct machine *m)
{
    struct client c = {.machine = m, .is_webhook = true};
    struct buf body;

    buf_init(&body, BUF_NO_CAP);
    buf_printf(&body,
               "{\"EventSelector\":\"/Sim.Raised\",\"Destination\":\"%s\",\"Delivery\":{"
               "\"RetrySchedule\":[1,1,2,2,5,5,10,10,20,20],\"DisableAfterDays\":0,"
               "\"TimeoutSeconds\":10}}",
               network_receiver_url((unsigned)rng_below(NETWORK_RECEIVERS)));
    send_to(&c, "POST", "/Svc.Admin.Webhook", &body, 0);
    buf_done(&body);
}

void clients_ask(struct machine *m)
{
    static const struct {
        unsigned weight;
        void (*ask)(struct machine *m);
    } wishes[] = {{20, insert},   {3, insert_some}, {1, insert_large},
                  {40, change},   {6, delete_one},  {15, raise_event},
                  {25, read_one}, {2, mistake},     {2, change_many}};
    unsigned sum = 0;
    uint64_t at;

    for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
        sum += wishes[i].weight;
    at = rng_below(sum);
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
        if (at < wishes[i].weight) {
            wishes[i].ask(m);
            return;
        }
        at -= wishes[i].weight;
    }
}

/* The end. ---------------------------------------------------------------------------------- */

static void check_item(struct machine *m, size_t place)
{
    const struct item *item = operations_item(place);
    struct client c = {.machine = m, .item = place, .must_see = item->serial, .is_check = true};
    char target[TARGET_BYTES], more[64];

    if (!item->is_logged)
        return;
    snprintf(more, sizeof(more), "%s", "/select=N");
    target_of(target, place, more);
    if (item->is_gone)
        c.must_see = 0;
    send_to(&c, "GET", target, NULL, 0);
}

void clients_check_items(struct machine *m)
{
    for (size_t i = 0; i < operations_item_count(); i++)
        check_item(m, i);
}
