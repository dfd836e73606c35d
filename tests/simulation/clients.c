#include "clients.h"

#include "accounts.h"
#include "network.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/must.h"
#include "base/rng.h"
#include "dispatch/dispatch.h"
#include "hooks/delivery.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LIVE_HOOKS_MOST = 6, NUMBERS = LEDGER_DIGITS, RECENT_EVENTS = 8 };

const struct schedule schedules[] = {
    {"[]", 0, {0}},
    {"[1,5,60]", 3, {1, 5, 60}},
    {"[0,0,0,0]", 4, {0, 0, 0, 0}},
    {"[5,300,1800]", 3, {5, 300, 1800}},
};

/* Requests. --------------------------------------------------------------------------------- */

static void request_with(struct world *w, const char *method, const char *target, struct span body,
                         const struct header_field *headers, size_t header_count)
{
    const struct request request = {
        .method = span_str(method),
        .target = span_str(target),
        .headers = headers,
        .header_count = header_count,
        .body = body,
    };

    dispatch_run(&w->service->rest, &request, &w->response);
    world_hold_answer(w);
}

static void request(struct world *w, const char *method, const char *target, const struct buf *body)
{
    const struct header_field json = {SPAN("Content-Type"), SPAN("application/json")};

    request_with(w, method, target, body == NULL ? (struct span){NULL, 0} : buf_span(body), &json,
                 body != NULL);
}

/* No answer but success, or one that says that there is no room now. */
static bool succeeded(const struct world *w)
{
    int status = w->response.status;

    if (status >= 200 && status < 300)
        return true;
    if (status != 503 && status != 507)
        fprintf(stderr, "answer %d: %.*s\n", status, SPAN_FMT(buf_span(&w->response.body)));
    MUST(status == 503 || status == 507);
    return false;
}

static void answered_id(const struct world *w, char out_id[LEDGER_ID_BYTES])
{
    struct span body = buf_span(&w->response.body);
    size_t at = span_find(body, SPAN("\"Id\":\""));

    MUST(at != SIZE_MAX && body.n >= at + 6 + UUID_TEXT_BYTES);
    memcpy(out_id, body.p + at + 6, UUID_TEXT_BYTES);
    out_id[UUID_TEXT_BYTES] = '\0';
}

/* The serial of what was just answered. */
static uint64_t answered_serial(const struct world *w)
{
    MUST(w->response.serial != 0);
    return w->response.serial;
}

static void add_padding(struct buf *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_add_char(b, (char)('a' + i % 26));
}

void event_add_body(struct buf *b, int64_t n, unsigned padding)
{
    buf_printf(b, "[{\"N\":%" PRId64 ",\"Digit\":%d,\"Padding\":\"", n, (int)(n % NUMBERS));
    add_padding(b, padding);
    buf_add_str(b, "\"}]");
}

/* Mostly small, sometimes a good part of a segment. */
static unsigned any_padding(void)
{
    return (unsigned)(rng_below(30) == 0 ? rng_below(12000) : rng_below(300));
}

/* Items. ------------------------------------------------------------------------------------ */

static void add_item_body(struct buf *b, int64_t n)
{
    buf_printf(b, "{\"N\":%" PRId64 ",\"Padding\":\"", n);
    add_padding(b, any_padding());
    buf_add_str(b, "\"}");
}

void client_writes_item(struct world *w)
{
    size_t place = (size_t)rng_below(LEDGER_ITEMS);
    struct item_state item = w->ledger->items[place];
    char target[128] = "/Sim.Item";
    struct buf body = {.max = BUF_NO_CAP};

    item.n = (int64_t)rng_below(1000000);
    add_item_body(&body, item.n);
    if (item.exists)
        snprintf(target, sizeof(target), "/Sim.Item/Id=%s", item.id);
    request(w, item.exists ? "PATCH" : "POST", target, &body);
    buf_done(&body);
    if (!succeeded(w))
        return;
    if (!item.exists)
        answered_id(w, item.id);
    item.exists = true;
    ledger_set_item(w->ledger, place, &item, answered_serial(w));
}

void client_deletes_item(struct world *w)
{
    size_t place = (size_t)rng_below(LEDGER_ITEMS);
    struct item_state item = w->ledger->items[place];
    char target[128];

    if (!item.exists)
        return;
    snprintf(target, sizeof(target), "/Sim.Item/Id=%s", item.id);
    request(w, "DELETE", target, NULL);
    if (!succeeded(w))
        return;
    item.exists = false;
    ledger_set_item(w->ledger, place, &item, answered_serial(w));
}

void clients_check_items(struct world *w)
{
    size_t expected = 0, found = 0;
    struct span rest;

    for (size_t i = 0; i < LEDGER_ITEMS; i++) {
        const struct item_state *item = &w->ledger->items[i];
        char target[160];

        if (!item->exists)
            continue;
        expected++;
        snprintf(target, sizeof(target), "/Sim.Item/Id=%s&N=%" PRId64 "/select=N", item->id,
                 item->n);
        request(w, "GET", target, NULL);
        MUST(w->response.status == 200);
    }
    request(w, "GET", "/Sim.Item/_/select=N", NULL);
    rest = buf_span(&w->response.body);
    for (size_t at; (at = span_find(rest, SPAN("\"N\":"))) != SIZE_MAX; found++)
        rest = span_sub(rest, at + 4, rest.n);
    MUST(found == expected);
}

/* Very many at once. ------------------------------------------------------------------------- */

static struct many_state many_now(const struct world *w)
{
    const struct many *m = &w->many;
    size_t count = m->count - (m->count > 0 && turn_is_applying(w->service->turn));

    return count == 0 ? (struct many_state){.exist = false} : m->versions[count - 1];
}

static size_t count_answered(struct world *w, const char *target)
{
    uint64_t count;
    struct span body;

    request(w, "REPORT", target, NULL);
    MUST(w->response.status == 200);
    body = buf_span(&w->response.body);
    MUST(span_to_u64(span_sub(body, SPAN("[{\"Count\":").n, body.n - SPAN("}]").n), &count));
    return (size_t)count;
}

void clients_check_many(struct world *w)
{
    struct many_state now = many_now(w);
    char target[64];

    snprintf(target, sizeof(target), "/Sim.Many/N=%" PRId64, now.n);
    MUST(count_answered(w, target) == (now.exist ? WORLD_MANY : 0));
    MUST(count_answered(w, "/Sim.Many") == (now.exist ? WORLD_MANY : 0));
}

/* In one turn. */
static void insert_many(struct world *w)
{
    struct buf body = {.max = BUF_NO_CAP};

    for (unsigned i = 0; i < WORLD_MANY; i++)
        buf_add_str(&body, i == 0 ? "[{\"N\":0}" : ",{\"N\":0}");
    buf_add_char(&body, ']');
    request(w, "POST", "/Sim.Many", &body);
    buf_done(&body);
    if (!succeeded(w))
        return;
    MUST(w->many.count < WORLD_MANY_VERSIONS);
    w->many.versions[w->many.count++] =
        (struct many_state){.serial = answered_serial(w), .exist = true};
}

static void on_done(void *context)
{
    ((struct world *)context)->many.is_done = true;
}

/* The last one is still under way. */
static void end_change(struct world *w)
{
    struct many *m = &w->many;
    const struct response *response = evaluation_response(m->evaluation);
    int status = response->status;

    MUST(status == 200 || status == 404 || status == 503 || status == 507);
    if (status == 200)
        world_hold_serial(w, response->serial);
    evaluation_free(TAKE(m->evaluation));
    buf_done(&m->body);
}

static void start_change(struct world *w, bool deletes)
{
    static const struct header_field json = {SPAN_INIT("Content-Type"),
                                             SPAN_INIT("application/json")};
    struct many *m = &w->many;

    m->next = (struct many_state){.exist = !deletes, .n = (int64_t)rng_below(1000000)};
    m->body = (struct buf){.max = BUF_NO_CAP};
    buf_printf(&m->body, "{\"N\":%" PRId64 "}", m->next.n);
    m->request = (struct request){
        .method = deletes ? SPAN("DELETE") : SPAN("PATCH"),
        .target = SPAN("/Sim.Many/_/unsafe=true"),
        .headers = &json,
        .header_count = !deletes,
        .body = deletes ? (struct span){NULL, 0} : buf_span(&m->body),
        .gives_way = true,
    };
    m->is_done = false;
    m->evaluation = evaluation_start(&w->service->rest, &m->request, on_done, w);
}

void client_changes_many(struct world *w)
{
    if (w->many.evaluation != NULL && w->many.is_done)
        end_change(w);
    if (w->many.evaluation != NULL || turn_is_applying(w->service->turn))
        clients_check_many(w);
    else if (!many_now(w).exist)
        insert_many(w);
    else
        start_change(w, rng_below(8) == 0);
}

/* Events. ----------------------------------------------------------------------------------- */

/* The key is made of the event's number: the same again means the same event. */
static void send_event(struct world *w, const struct raised *event)
{
    struct header_field headers[] = {
        {SPAN("Content-Type"), SPAN("application/json")},
        {SPAN("Idempotency-Key"), {NULL, 0}},
    };
    struct buf body = {.max = BUF_NO_CAP};
    char key[32];

    snprintf(key, sizeof(key), "event-%" PRId64, event->n);
    headers[1].value = span_str(key);
    event_add_body(&body, event->n, event->padding);
    request_with(w, "POST", "/Svc.Event/Resource=Sim.Raised", buf_span(&body), headers,
                 ARRAY_LEN(headers));
    buf_done(&body);
}

static void note_event(struct world *w, struct raised event)
{
    answered_id(w, event.id);
    MUST(ledger_find_event(w->ledger, span_str(event.id)) == SIZE_MAX);
    event.unix_ns = clock_unix_ns();
    accounts_note_dead(w, ledger_add_event(w->ledger, &event, answered_serial(w)),
                       answered_serial(w));
}

/* Every event has a number of its own, whose last digit is what webhooks look at. */
void client_raises_event(struct world *w)
{
    static const struct raised blank;
    struct raised event = blank;

    event.n = (int64_t)(w->ledger->event_count * NUMBERS + rng_below(NUMBERS));
    event.padding = any_padding();
    send_event(w, &event);
    if (succeeded(w))
        note_event(w, event);
}

/* The same answer, unless the event was lost unacknowledged or its key is too old. */
void client_raises_again(struct world *w)
{
    struct ledger *l = w->ledger;
    size_t back = (size_t)rng_below(RECENT_EVENTS) + 1;
    struct raised *event;
    char id[LEDGER_ID_BYTES];
    size_t known;
    bool is_old;

    if (back > l->event_count)
        return;
    event = &l->events[l->event_count - back];
    is_old = w->clock_jumps || clock_unix_ns() - event->unix_ns > INT64_C(86000000000000);
    send_event(w, event);
    if (!succeeded(w))
        return;
    answered_id(w, id);
    known = ledger_find_event(w->ledger, span_str(id));
    if (known != SIZE_MAX) {
        MUST(l->events[known].n == event->n);
        return;
    }
    MUST(!event->now.exists || is_old);
    note_event(w, *event);
}

/* Webhooks. --------------------------------------------------------------------------------- */

static void choose_settings(const struct world *w, struct hook_state *state)
{
    state->max_in_flight = (unsigned)rng_below(4) + 1;
    state->is_ordered = rng_below(4) == 0;
    state->rate_per_second = rng_below(4) == 0 ? (unsigned)rng_below(5) + 1 : 0;
    state->schedule = (unsigned)rng_below(4);
    state->disable_days = w->clock_jumps || rng_below(2) == 0 ? 0 : 1;
    if (rng_below(2) == 0)
        state->receiver = (unsigned)rng_below(SIM_RECEIVERS);
}

static void add_settings(struct buf *b, bool is_local, const struct hook_state *state)
{
    buf_printf(
        b,
        "\"Destination\":\"%s\",\"IsPaused\":%s,\"Delivery\":{\"MaxInFlight\":%u,\"Ordered\":%s,"
        "\"RatePerSecond\":%u,\"RetrySchedule\":%s,\"DisableAfterDays\":%u,"
        "\"TimeoutSeconds\":10}",
        is_local ? "/Sim.Sink" : sim_network_url(state->receiver),
        state->is_paused ? "true" : "false", state->max_in_flight,
        state->is_ordered ? "true" : "false", state->rate_per_second,
        schedules[state->schedule].json, state->disable_days);
}

static size_t count_live(const struct ledger *l)
{
    size_t count = 0;

    for (size_t i = 0; i < l->hook_count; i++)
        count += l->hooks[i].now.exists;
    return count;
}

void client_makes_webhook(struct world *w)
{
    struct hook hook = {.is_local = rng_below(8) == 0, .least_digit = (unsigned)rng_below(NUMBERS)};
    struct buf body = {.max = BUF_NO_CAP};

    if (count_live(w->ledger) >= LIVE_HOOKS_MOST)
        return;
    hook.now.exists = true;
    choose_settings(w, &hook.now);
    buf_printf(&body, "{\"EventSelector\":\"/Sim.Raised/Digit>=%u\",", hook.least_digit);
    add_settings(&body, hook.is_local, &hook.now);
    buf_add_str(&body, "}");
    request(w, "POST", "/Svc.Admin.Webhook", &body);
    buf_done(&body);
    if (!succeeded(w))
        return;
    answered_id(w, hook.id);
    ledger_add_hook(w->ledger, &hook, answered_serial(w));
    accounts_own(w, hook.id);
}

/* One of those that exist, or SIZE_MAX. */
static size_t any_hook(const struct ledger *l)
{
    size_t live = count_live(l), skip;

    if (live == 0)
        return SIZE_MAX;
    skip = (size_t)rng_below(live);
    for (size_t i = 0; i < l->hook_count; i++)
        if (l->hooks[i].now.exists && skip-- == 0)
            return i;
    return SIZE_MAX;
}

/* One that is resumed, or led to another receiver, begins anew. */
static void start_over(const struct hook *hook, struct hook_state *state)
{
    const struct hook_state *was = &hook->now;
    bool is_other_receiver = !hook->is_local && was->receiver != state->receiver;

    if (is_other_receiver)
        state->hold_until_ms = 0;
    if (is_other_receiver || (was->is_paused && !state->is_paused))
        state->failing_since_unix_ns = 0;
}

static void patch_webhook(struct world *w, size_t place, struct hook_state *state)
{
    struct hook *hook = &w->ledger->hooks[place];
    struct buf body = {.max = BUF_NO_CAP};
    char target[128];

    snprintf(target, sizeof(target), "/Svc.Admin.Webhook/Id=%s", hook->id);
    buf_add_str(&body, "{");
    add_settings(&body, hook->is_local, state);
    buf_add_str(&body, "}");
    request(w, "PATCH", target, &body);
    buf_done(&body);
    if (!succeeded(w))
        return;
    start_over(hook, state);
    ledger_set_hook(w->ledger, place, state, answered_serial(w));
    hook->tokens_at_ms = 0;
}

void client_changes_webhook(struct world *w)
{
    size_t place = any_hook(w->ledger);
    struct hook_state state;

    if (place == SIZE_MAX)
        return;
    state = w->ledger->hooks[place].now;
    choose_settings(w, &state);
    state.is_paused = rng_below(4) == 0;
    patch_webhook(w, place, &state);
}

void clients_resume_all(struct world *w)
{
    for (size_t i = 0; i < w->ledger->hook_count; i++) {
        struct hook_state state = w->ledger->hooks[i].now;

        if (!state.exists)
            continue;
        state.is_paused = false;
        patch_webhook(w, i, &state);
        MUST(w->response.status == 200);
    }
}

void client_deletes_webhook(struct world *w)
{
    size_t place = any_hook(w->ledger);
    char target[128];

    if (place == SIZE_MAX)
        return;
    snprintf(target, sizeof(target), "/Svc.Admin.Webhook/Id=%s", w->ledger->hooks[place].id);
    request(w, "DELETE", target, NULL);
    if (succeeded(w))
        ledger_set_hook(w->ledger, place, &(struct hook_state){.exists = false},
                        answered_serial(w));
}

/* Deliveries. ------------------------------------------------------------------------------- */

/* One that the server still shows, by the pair's place; false when the choice met none. */
static bool any_delivery(const struct world *w, size_t *out_place, char target[128])
{
    const struct ledger *l = w->ledger;
    const struct delivery *delivery;
    const struct pair *pair;
    char id[LEDGER_ID_BYTES];
    struct uuid uuid;

    if (l->pair_count == 0)
        return false;
    *out_place = l->pair_count - 1 - (size_t)rng_below(MIN(l->pair_count, 60));
    pair = &l->pairs[*out_place];
    if (!pair->now.exists || pair->object_no == 0 || !l->hooks[pair->hook].now.exists)
        return false;
    delivery = delivery_find_no(w->service->hooks.deliveries, pair->object_no);
    if (delivery == NULL)
        return false;
    delivery_id(delivery, &uuid);
    uuid_text(&uuid, id);
    snprintf(target, 128, "/Svc.Admin.Delivery/Id=%s", id);
    return true;
}

void client_sends_again(struct world *w)
{
    struct buf body = {.max = BUF_NO_CAP};
    struct pair_state fresh = {.exists = true};
    char target[128];
    size_t place;

    if (!any_delivery(w, &place, target) || !w->ledger->pairs[place].now.is_ended)
        return;
    buf_add_str(&body, "{\"State\":\"Pending\"}");
    request(w, "PATCH", target, &body);
    buf_done(&body);
    if (succeeded(w))
        ledger_set_pair(w->ledger, place, &fresh, answered_serial(w));
}

void client_forgets_delivery(struct world *w)
{
    struct pair_state gone = {.exists = false};
    char target[128];
    size_t place;

    if (!any_delivery(w, &place, target))
        return;
    request(w, "DELETE", target, NULL);
    if (succeeded(w))
        ledger_set_pair(w->ledger, place, &gone, answered_serial(w));
}

/* The rest. --------------------------------------------------------------------------------- */

/* Refused, and noted as an entity of Svc.Admin.Error. */
void client_makes_mistake(struct world *w)
{
    struct buf body = {.max = BUF_NO_CAP};

    buf_add_str(&body, "{\"N\":\"seven\"}");
    request(w, "POST", "/Sim.Item", &body);
    buf_done(&body);
    MUST(w->response.status == 400 || w->response.status == 503 || w->response.status == 507);
}

void client_reads(struct world *w)
{
    static const char *const targets[] = {
        "/Svc.Admin.Delivery/State=Waiting/limit=5",
        "/Svc.Admin.WebhookLog/_/limit=-3",
        "/Svc.Admin.Webhook/_/add=Status",
        "/Svc.Event/_/limit=-3",
        "/Svc.Admin.Error/_/limit=-2",
    };

    request(w, "GET", targets[rng_below(ARRAY_LEN(targets))], NULL);
    MUST(w->response.status == 200 || w->response.status == 204 || w->response.status == 206);
}

size_t clients_count_in_sink(struct world *w, int64_t n)
{
    char target[64];
    size_t count = 0;
    struct span rest;

    snprintf(target, sizeof(target), "/Sim.Sink/N=%" PRId64 "/select=N", n);
    request(w, "GET", target, NULL);
    rest = buf_span(&w->response.body);
    for (size_t at; (at = span_find(rest, SPAN("\"N\":"))) != SIZE_MAX; count++)
        rest = span_sub(rest, at + 4, rest.n);
    return count;
}
