/* An event's life: what raising it writes, who gets it, how long it stays, and that a replay finds
 * the same in whatever order the records come. */
#include "../../../src/hooks/payload_inner.h"

#include "asking.h"
#include "owning.h"

#include "base/rng.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/event_raise.h"
#include "hooks/payload.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "store/change.h"
#include "store/change_record.h"
#include "store/collection.h"
#include "store/record.h"
#include "store/store.h"
#include "store/turn.h"
#include "webhook/webhook.h"
#include "json/json.h"

#include <string.h>

static const char resources[] =
    "[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Shop.Picture\",\"Kind\":\"EventResource\",\"Payload\":{\"ContentType\":"
    "\"image/png\"}},"
    "{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"Name\","
    "\"Type\":\"string\",\"Required\":true},{\"Name\":\"Age\",\"Type\":\"integer\"}],"
    "\"Events\":{\"Inserted\":\"Shop.Born\",\"Updated\":\"Shop.Changed\",\"Deleted\":"
    "\"Shop.Gone\"}},"
    "{\"Name\":\"Shop.Born\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":"
    "\"Shop.Person\"}},"
    "{\"Name\":\"Shop.Changed\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":"
    "\"Shop.Person\"}},"
    "{\"Name\":\"Shop.Gone\",\"Kind\":\"EventResource\"}]";

static struct hooks *hooks;

static void begin(void)
{
    asking_open(resources);
    hooks = &asking.service->hooks;
}

static void reload(void)
{
    asking_reload();
    hooks = &asking.service->hooks;
}

/* ---- what tests do ---- */

static const char *webhook(const char *selector)
{
    ck_asks(
        201, "POST", "/Webhook",
        asking_printf("{\"Destination\":\"http://a.test/\",\"EventSelector\":\"%s\"}", selector));
    return answered_text("0.Id");
}

static void webhook_of(const char *owner, const char *selector)
{
    struct uuid id;

    ck_assert(uuid_parse(span_str(webhook(selector)), &id));
    own(asking.service, &asking.arena, &id, owner);
}

/* The object_no of the last one. */
static uint64_t raise_event(const char *resource, const char *payload)
{
    uint64_t number;

    ck_asks(201, "POST", asking_printf("/Svc.Event/Resource=%s", resource), payload);
    ck_assert(span_to_u64(answered("0.ObjectNo"), &number));
    return number;
}

static struct event *event_no(uint64_t number)
{
    return events_find_no(hooks->events, number);
}

static size_t pending(void)
{
    return deliveries_count(hooks->deliveries, DELIVERY_PENDING);
}

static struct json_value parse(const char *text)
{
    struct json_doc *doc = ARENA_NEW(&asking.arena, struct json_doc);

    ck_ok(json_parse(span_str(text), NULL, &asking.arena, doc));
    return json_root(doc);
}

static struct event_draft draft_of(const char *payload, uint8_t depth)
{
    return (struct event_draft){
        .resource = resource_named(asking.service->rest.resources, SPAN("Shop.Placed")),
        .payload = span_str(payload),
        .entities = parse(payload),
        .depth = depth,
    };
}

/* ---- raising ---- */

START_TEST(raising_is_one_record)
{
    struct event_draft draft = draft_of("[{\"a\":1}]", 3);
    struct event_raised raised;
    struct change change;
    uint64_t serial = asking_serial(), applied;
    struct event *event;

    webhook("/Placed");
    webhook("/Placed/a=1");
    webhook("/Placed/a=2");
    serial = asking_serial();
    change_init(&change, asking.service->turn, &asking.arena);
    change.frees_space = true;
    ck_ok(event_raise(hooks, &draft, &change, &raised));
    ck_assert_uint_eq(change.count, 1);
    ck_assert(!change.frees_space); /* it may not use what is kept back for deletions */
    ck_assert_uint_eq(change.deliveries, 2);
    ck_assert_uint_eq(raised.object_no, serial);
    ck_assert_uint_eq(raised.webhooks, 2);
    ck_assert_uint_eq(events_count(hooks->events), 0); /* nothing has happened yet */
    ck_ok(turn_apply(asking.service->turn, &change, &applied));
    change_done(&change);
    ck_assert_uint_eq(asking_serial(), serial + 3);

    event = events_find(hooks->events, &raised.id);
    ck_assert_ptr_eq(event, event_no(serial));
    ck_assert_ptr_eq(event, events_first(hooks->events));
    ck_assert(event->is_kept && event->is_known && !event->is_binary);
    ck_assert_uint_eq(event->webhooks, 2);
    ck_assert_uint_eq(event->deliveries, 2);
    ck_assert_uint_eq(event->depth, 3);
    ck_assert_int_eq(event->time_unix_ns, raised.time_unix_ns);
    for (uint64_t i = 1; i <= 2; i++)
        ck_assert_ptr_eq(delivery_find_no(hooks->deliveries, serial + i)->event, event);
    ck_assert_ptr_null(delivery_find_no(hooks->deliveries, serial + 3));
    ck_assert_uint_eq(asking.service->metrics->events, 1);
    ck_assert_uint_eq(asking.service->metrics->matches, 2);
}
END_TEST

START_TEST(a_change_that_is_not_applied_raises_nothing)
{
    struct event_draft draft = draft_of("[{}]", 0);
    struct event_raised raised;
    struct change change;

    webhook("/Placed");
    change_init(&change, asking.service->turn, &asking.arena);
    ck_ok(event_raise(hooks, &draft, &change, &raised));
    change_done(&change);
    ck_assert_uint_eq(events_count(hooks->events), 0);
    ck_assert_uint_eq(pending(), 0);
    ck_assert_uint_eq(asking.service->metrics->events, 0);
}
END_TEST

START_TEST(events_are_read_as_they_were_raised)
{
    struct event *event;
    struct buf b;

    event = event_no(raise_event("Placed", "[ {\"a\":1.0,\"b\":\"\\u00e4\"} ]"));
    buf_init_arena(&b, &asking.arena);
    event_add_json(hooks->events, event, &b);
    ck_assert(span_find(buf_span(&b), SPAN("\"Payload\":[ {\"a\":1.0,\"b\":\"\\u00e4\"} ],"
                                           "\"ClientId\":null,\"Tenant\":null,\"ce\":null,"
                                           "\"Webhooks\":0,")) != SIZE_MAX);
    ck_assert(span_find(buf_span(&b), SPAN("\"Resource\":\"Shop.Placed\",\"Time\":\"")) !=
              SIZE_MAX);
    event = event_no(raise_event("Placed", "{\"a\": 1}"));
    buf_init_arena(&b, &asking.arena);
    event_add_json(hooks->events, event, &b);
    ck_assert(span_find(buf_span(&b), SPAN("\"ContentType\":\"application/json\",\"Payload\":"
                                           "[{\"a\": 1}]")) != SIZE_MAX);
    ask_with("Content-Type: image/png; a=b", "POST", "/Svc.Event/Resource=Picture", "\x01\x02\xff");
    ck_status(201);
    ck_asks(200, "GET", "/Svc.Event/_/offset=-1", NULL);
    ck_member_eq("0.ContentType", "\"image/png; a=b\"");
    ck_member_eq("0.Payload", "\"AQL/\"");
}
END_TEST

/* ---- who gets it ---- */

static const struct {
    const char *selector, *resource, *payload;
    int webhooks;
} matches[] = {
    {"/Placed", "Placed", "{}", 1},
    {"/Placed", "Placed", "[]", 1},
    {"/Placed/a=1", "Placed", "[]", 0},
    {"/Placed/a=1", "Placed", "{\"a\":1}", 1},
    {"/Placed/a=1", "Placed", "{\"a\":2}", 0},
    {"/Placed/a=1", "Placed", "[{\"a\":2},{\"a\":1.0}]", 1},
    /* One entity has to hold all of them. */
    {"/Placed/a=1&b=1", "Placed", "[{\"a\":1},{\"b\":1}]", 0},
    {"/Placed/a=1&b=1", "Placed", "[{\"c\":1},{\"b\":1,\"a\":1}]", 1},
    {"/Picture", "Picture", "xyz", 1},
    {"/Picture", "Placed", "{}", 0},
};

START_TEST(an_event_goes_to_those_whose_selector_holds)
{
    webhook(matches[_i].selector);
    raise_event(matches[_i].resource, matches[_i].payload);
    ck_assert_uint_eq(pending(), (size_t)matches[_i].webhooks);
    ck_span_is(answered("0.Webhooks"), arena_printf(&asking.arena, "%d", matches[_i].webhooks));
}
END_TEST

START_TEST(paused_webhooks_are_left_out)
{
    const char *id = webhook("/Placed");

    webhook("/Placed");
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", id), "{\"IsPaused\":true}");
    raise_event("Placed", "{}");
    ck_assert_uint_eq(pending(), 1);
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", id), "{\"IsPaused\":false}");
    raise_event("Placed", "{}");
    ck_assert_uint_eq(pending(), 3);
    ck_asks(200, "DELETE", asking_printf("/Webhook/Id=%s", id), NULL);
    raise_event("Placed", "{}");
    ck_asks(200, "GET", "/Svc.Event/_/offset=-1", NULL);
    ck_member_eq("0.Webhooks", "1");
}
END_TEST

START_TEST(an_event_for_one_webhook_goes_to_no_other)
{
    struct event_draft draft = draft_of("[{\"a\":1}]", 0);
    struct event_raised raised;
    struct change change;
    struct uuid id;

    webhook("/Placed");
    ck_assert(uuid_parse(span_str(webhook("/Placed/a=2")), &id));
    draft.only = webhook_find(hooks->webhooks, &id);
    change_init(&change, asking.service->turn, &asking.arena);
    ck_ok(event_raise(hooks, &draft, &change, &raised));
    ck_assert_uint_eq(raised.webhooks, 0); /* it has to match all the same */
    draft.entities = parse("[{\"a\":2}]");
    ck_ok(event_raise(hooks, &draft, &change, &raised));
    ck_assert_uint_eq(raised.webhooks, 1);
    change_done(&change);
}
END_TEST

/* ---- bounds ---- */

START_TEST(a_chain_ends)
{
    struct event_draft draft = draft_of("[]", 15);
    struct event_raised raised;
    struct change change;

    change_init(&change, asking.service->turn, &asking.arena);
    ck_ok(event_raise(hooks, &draft, &change, &raised));
    draft.depth = 16;
    ck_fails(event_raise(hooks, &draft, &change, &raised), ERR_INFINITE_LOOP,
             "'Shop.Placed' would be the 17th event in a chain of events that cause one another");
    draft.depth = UINT8_MAX;
    ck_fails(event_raise(hooks, &draft, &change, &raised), ERR_INFINITE_LOOP, "256th");
    ck_assert_uint_eq(change.count, 1);
    change_done(&change);
    ask_with("Svc-depth: 16", "POST", "/Svc.Event/Resource=Placed", "{}");
    ck_problem(ERR_INFINITE_LOOP, "17th");
    ask_with("Svc-depth: 16", "POST", "/Person", "{\"Name\":\"Ann\"}");
    ck_problem(ERR_INFINITE_LOOP, "'Shop.Born' would be the 17th");
    ck_assert_uint_eq(asking_count("Shop.Person"), 0);
    ask_with("Svc-depth: 15", "POST", "/Person", "{\"Name\":\"Ann\"}");
    ck_status(201);
    ck_assert_uint_eq(events_first(hooks->events)->depth, 15);
}
END_TEST

/* What local requests raise because of one event is counted, however many lie between. */
START_TEST(descendants_have_their_limit)
{
    struct event *first = event_no(raise_event("Placed", "{}")), *event;
    struct event_draft draft = draft_of("[]", 1);
    struct event_raised raised;
    struct change change;
    uint64_t serial;

    asking.service->limits.event_descendants = 3;
    draft.chain = event_chain(first);
    for (int i = 0; i < 2; i++) { /* what is not applied does not count */
        change_init(&change, asking.service->turn, &asking.arena);
        ck_ok(event_raise(hooks, &draft, &change, &raised));
        ck_ok(event_raise(hooks, &draft, &change, &raised));
        if (i == 1)
            ck_ok(turn_apply(asking.service->turn, &change, &serial));
        change_done(&change);
    }
    event = event_no(raised.object_no);
    ck_assert_ptr_eq(event->chain, first->chain);
    event_chain_unref(draft.chain);
    draft.chain = event_chain(event);
    change_init(&change, asking.service->turn, &asking.arena);
    ck_ok(event_raise(hooks, &draft, &change, &raised));
    ck_fails(event_raise(hooks, &draft, &change, &raised), ERR_INFINITE_LOOP,
             "'Shop.Placed' would be one event more than may descend from another (the limit "
             "EventDescendants, 3)");
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_EVENT_DESCENDANTS], 1);
    change_done(&change);
    event_chain_unref(draft.chain);
    ck_assert_ptr_null(event_no(raise_event("Placed", "{}"))->chain);
}
END_TEST

static const char *state_of(int place)
{
    return answered_text(asking_printf("%d.State", place));
}

/* Past its own limit, or its account's half, what a webhook gets is dead at once, in one request or
 * in several; and can be sent again when there is room. */
static const struct {
    int64_t webhook_most, all_most;
    const char *why;
    enum metric_limit limit;
} rooms[] = {
    {2, 1000, "(the limit WebhookPendingDeliveries, 2)", METRIC_WEBHOOK_PENDING_DELIVERIES},
    {1000, 4, "(half of the limit PendingDeliveries, 4)", METRIC_PENDING_DELIVERIES},
};

START_TEST(what_there_is_no_room_for_is_dead_at_once)
{
    static const char again[] = "{\"State\":\"Pending\"}";

    webhook("/Placed");
    asking.service->limits.webhook_pending_deliveries = rooms[_i].webhook_most;
    asking.service->limits.pending_deliveries = rooms[_i].all_most;
    ck_asks(201, "POST", "/Svc.Event",
            "[{\"Resource\":\"Placed\",\"Payload\":{}},{\"Resource\":\"Placed\",\"Payload\":{}},"
            "{\"Resource\":\"Placed\",\"Payload\":{}}]");
    ck_member_eq("2.Webhooks", "1");
    raise_event("Placed", "{}");
    ck_asks(200, "GET", "/Svc.Admin.Delivery", NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(state_of(i), i < 2 ? "Pending" : "Dead");
    ck_assert(span_find(span_str(answered_text("2.LastError")), span_str(rooms[_i].why)) !=
              SIZE_MAX);
    ck_member_eq("2.Attempts", "0");
    ck_assert_uint_eq(asking.service->metrics->limit_hits[rooms[_i].limit], 2);
    ck_assert_uint_eq(asking.service->metrics->deliveries[DELIVERY_DEAD - DELIVERY_DELIVERED], 2);
    ck_refuses(ERR_OVERLOADED, rooms[_i].why, "PATCH", "/Svc.Admin.Delivery/State=Dead/limit=1",
               again);
    ck_header_eq("Retry-After", "5");
    reload();
    asking.service->limits.webhook_pending_deliveries = rooms[_i].webhook_most;
    asking.service->limits.pending_deliveries = rooms[_i].all_most;
    ck_assert_uint_eq(asking.service->metrics->deliveries[DELIVERY_DEAD - DELIVERY_DELIVERED], 0);
    ck_assert_uint_eq(deliveries_count(hooks->deliveries, DELIVERY_DEAD), 2);
    ck_refuses(ERR_OVERLOADED, rooms[_i].why, "PATCH", "/Svc.Admin.Delivery/State=Dead/limit=1",
               again); /* counts are what they were */
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery/State=Pending/limit=1", NULL);
    ck_refuses(ERR_OVERLOADED, rooms[_i].why, "PATCH", "/Svc.Admin.Delivery/State=Dead/unsafe=true",
               again); /* room for one, not for two */
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery/State=Dead/limit=1", again);
    ck_assert_str_eq(state_of(0), "Pending");
    ck_assert_uint_eq(pending(), 2);
}
END_TEST

/* One account's half is nothing to another. */
START_TEST(an_account_has_half)
{
    webhook_of("a", "/Placed");
    webhook_of("a", "/Placed");
    webhook_of("b", "/Placed");
    asking.service->limits.pending_deliveries = 7;
    for (int i = 0; i < 3; i++)
        raise_event("Placed", "{}");
    ck_assert_uint_eq(pending(), 6);
    ck_assert_uint_eq(deliveries_count(hooks->deliveries, DELIVERY_DEAD), 3);
}
END_TEST

START_TEST(deliveries_have_their_limit)
{
    static const char *const owners[] = {"a", "b", "c"};

    for (int i = 0; i < 3; i++)
        webhook_of(owners[i], "/Placed");
    asking.service->limits.pending_deliveries = 8;
    raise_event("Placed", "{}");
    /* The events of one request count together. */
    ck_refuses(ERR_OVERLOADED, "entity 1: the limit PendingDeliveries (8) is reached", "POST",
               "/Svc.Event",
               "[{\"Resource\":\"Placed\",\"Payload\":{}},{\"Resource\":\"Placed\","
               "\"Payload\":{}}]");
    ck_header_eq("Retry-After", "5");
    ck_assert_uint_eq(events_count(hooks->events), 1);
    ck_assert_uint_eq(pending(), 3);
    raise_event("Placed", "{}");
    ck_assert_uint_eq(pending(), 6);
    ck_refuses(ERR_OVERLOADED, "PendingDeliveries", "POST", "/Svc.Event/Resource=Placed", "{}");
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_PENDING_DELIVERIES], 2);
    /* One that nobody gets is none of these. */
    raise_event("Picture", "x");
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery/_/limit=1", NULL);
    raise_event("Placed", "{}");
    ck_assert_uint_eq(pending(), 8);
}
END_TEST

/* ---- how long it stays ---- */

START_TEST(events_are_kept_in_their_order)
{
    uint64_t numbers[5];
    struct event *at;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        numbers[i] = raise_event("Placed", "{}");
    ck_asks(200, "DELETE",
            asking_printf("/Svc.Event/ObjectNo=%llu", (unsigned long long)numbers[2]), NULL);
    ck_member_eq("0.Count", "1");
    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(events_count(hooks->events), 4);
        at = events_first(hooks->events);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            if (i == 2)
                continue;
            ck_assert_uint_eq(at->object_no, numbers[i]);
            at = events_next(hooks->events, at);
        }
        ck_assert_ptr_null(at);
        ck_assert_ptr_null(event_no(numbers[2]));
        reload();
    }
}
END_TEST

START_TEST(what_a_delivery_needs_stays_out_of_sight)
{
    uint64_t number;
    struct uuid id;

    webhook("/Placed");
    number = raise_event("Placed", "{\"a\":1}");
    id = event_no(number)->id;
    ck_asks(200, "DELETE", "/Svc.Event", NULL);
    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(events_count(hooks->events), 0);
        ck_assert_ptr_null(events_find(hooks->events, &id));
        ck_assert_ptr_null(events_first(hooks->events));
        ck_assert_ptr_nonnull(event_no(number));
        ck_assert(!event_no(number)->is_kept && event_no(number)->is_known);
        ck_assert_uint_eq(event_no(number)->deliveries, 1);
        reload();
    }
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery", NULL);
    ck_assert_ptr_null(event_no(number));
    reload();
    ck_assert_ptr_null(event_no(number));
}
END_TEST

START_TEST(an_event_outlives_its_deliveries)
{
    uint64_t number;

    webhook("/Placed");
    number = raise_event("Placed", "{}");
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery", NULL);
    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(event_no(number)->deliveries, 0);
        ck_assert_uint_eq(event_no(number)->webhooks, 1); /* it matched so many */
        ck_assert(event_no(number)->is_kept);
        reload();
    }
}
END_TEST

START_TEST(the_version_tells_of_every_change)
{
    uint64_t first = events_version(hooks->events), second;

    raise_event("Placed", "{}");
    second = events_version(hooks->events);
    ck_assert_uint_gt(second, first);
    ck_asks(200, "GET", "/Svc.Event", NULL);
    ck_assert_uint_eq(asking.answer.serial, second);
    ck_asks(200, "DELETE", "/Svc.Event", NULL);
    ck_assert_uint_gt(events_version(hooks->events), second);
}
END_TEST

/* ---- replay in any order ---- */

/* A record for each object, as the cleaner writes them. */
static struct asking_record *record_all(size_t *out_count)
{
    struct store *store = asking.service->store;
    size_t count = store_live_count(store);
    struct asking_record *all = ARENA_ARRAY(&asking.arena, struct asking_record, count);

    for (size_t i = 0; i < count; i++) {
        struct change change;
        uint64_t serial;

        change_init(&change, asking.service->turn, &asking.arena);
        change.is_move = true;
        ck_ok(store_move(store, store_oldest(store), &change));
        ck_assert_uint_eq(change.count, 1);
        all[i].kind = change.records[0].kind;
        all[i].body = arena_copy(&asking.arena, buf_span(&change.bodies));
        ck_ok(turn_apply(asking.service->turn, &change, &serial)); /* the next one is the oldest */
        change_done(&change);
    }
    *out_count = count;
    return all;
}

static void shuffle(struct asking_record *all, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)rng_below((uint32_t)i);
        struct asking_record swapped = all[i - 1];

        all[i - 1] = all[other];
        all[other] = swapped;
    }
}

/* Events that are kept, with and without deliveries, deep ones and binary ones; some that only
 * deliveries need. */
static void make_some_of_everything(void)
{
    webhook("/Placed");
    webhook("/Placed/a>2");
    for (int i = 0; i < 6; i++) {
        ask_with(asking_printf("Svc-depth: %d", i), "POST", "/Svc.Event/Resource=Placed",
                 asking_printf("{\"a\":%d}", i));
        ck_status(201);
    }
    ask_with("Content-Type: image/png; a=b", "POST", "/Svc.Event/Resource=Picture", "\x01\xff");
    ck_asks(201, "POST", "/Svc.Event",
            "{\"ClientId\":\"once\",\"Resource\":\"Placed\",\"Payload\":{\"a\":9}}");
    ck_asks(200, "DELETE", "/Svc.Event/_/offset=1&limit=3&unsafe=true", NULL);
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery/_/limit=2&unsafe=true", NULL);
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery/_/offset=-1", NULL);
}

static void check_order(struct service *s)
{
    uint64_t before = 0;
    size_t count = 0;

    for (struct event *e = events_first(s->hooks.events); e != NULL;
         e = events_next(s->hooks.events, e), count++) {
        const struct event *live = event_no(e->object_no);

        ck_assert_uint_gt(e->object_no, before);
        ck_assert_uint_eq(e->depth, live->depth);
        ck_assert_uint_eq(e->webhooks, live->webhooks);
        ck_assert(e->is_binary == live->is_binary);
        ck_assert_int_eq(e->time_unix_ns, live->time_unix_ns);
        before = e->object_no;
    }
    ck_assert_uint_eq(count, events_count(s->hooks.events));
    ck_assert_uint_eq(s->metrics->events, 0); /* they were raised in another life */
    ck_assert_uint_eq(s->metrics->matches, 0);
}

enum { ORDERS = 60 };

START_TEST(records_mean_the_same_in_any_order)
{
    struct store_digest expected, digest;
    struct asking_record *all;
    size_t count;

    make_some_of_everything();
    expected = store_digest(asking.service->store);
    all = record_all(&count);
    ck_assert_uint_gt(count, 20);
    rng_seed((uint64_t)_i + 1);
    shuffle(all, count);
    digest = asking_replay(all, count, check_order);
    ck_assert_uint_eq(digest.objects, expected.objects);
    ck_assert_uint_eq(digest.sum, expected.sum);
}
END_TEST

/* Records of one event and two deliveries: the event K as it is kept, H as only deliveries need it,
 * G when it is no longer kept; deliveries 1 and 2, which are forgotten by a and b. */
static const struct {
    const char *records;
    bool is_there, is_kept;
    unsigned deliveries;
} sequences[] = {
    {"K", true, true, 0},       {"K12", true, true, 2},    {"1K2", true, true, 2},
    {"12K", true, true, 2},     {"21aK", true, true, 1},   {"12abK", true, true, 0},
    {"KG", false, false, 0},    {"KG1", true, false, 1},   {"K1Ga", false, false, 0},
    {"1KGa", false, false, 0},  {"1KaG2", true, false, 1}, {"G1H", true, false, 1},
    {"1GH", true, false, 1},    {"1H", true, false, 1},    {"H1", true, false, 1},
    {"H1a2", true, false, 1},   {"1Ha2", true, false, 1},  {"1aH2", true, false, 1},
    {"H", false, false, 0},     {"H1a", false, false, 0},  {"1Ha", false, false, 0},
    {"H12ba", false, false, 0}, {"G", false, false, 0},    {"KK1", true, true, 1},
    {"1H1H", true, false, 1},   {"K1a1", true, true, 1},
};

enum { EVENT_NO = 1000 };

static size_t sequence;
static struct uuid receiver;

static struct asking_record record_of(char letter)
{
    struct asking_record record;
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    if (letter == 'K' || letter == 'H') {
        const struct record_event event = {.id = receiver,
                                           .object_no = EVENT_NO,
                                           .is_hidden = letter == 'H',
                                           .resource = SPAN("Shop.Placed"),
                                           .payload = SPAN("[]")};

        record.kind = RECORD_EVENT;
        record_add_event(&b, &event);
    } else if (letter == '1' || letter == '2') {
        const struct record_delivery delivery = {.object_no = EVENT_NO + (uint64_t)(letter - '0'),
                                                 .event_no = EVENT_NO,
                                                 .webhook = receiver,
                                                 .state = DELIVERY_PENDING};

        record.kind = RECORD_DELIVERY;
        record_add_delivery(&b, &delivery);
    } else {
        record.kind = letter == 'G' ? RECORD_EVENT_GONE : RECORD_DELIVERY_GONE;
        record_add_number(&b, EVENT_NO + (uint64_t)(letter == 'a') + 2 * (uint64_t)(letter == 'b'));
    }
    record.body = buf_span(&b);
    return record;
}

static void check_sequence(struct service *s)
{
    const struct event *event = events_find_no(s->hooks.events, EVENT_NO);

    ck_assert((event != NULL) == sequences[sequence].is_there);
    ck_assert_uint_eq(events_count(s->hooks.events), sequences[sequence].is_kept);
    if (event == NULL)
        return;
    ck_assert(event->is_known);
    ck_assert(event->is_kept == sequences[sequence].is_kept);
    ck_assert_uint_eq(event->deliveries, sequences[sequence].deliveries);
}

START_TEST(a_sequence_of_records_means)
{
    const char *letters = sequences[_i].records;
    struct asking_record *all;
    size_t count;

    sequence = (size_t)_i;
    ck_assert(uuid_parse(span_str(webhook("/Placed")), &receiver));
    all = record_all(&count);
    all = memcpy(ARENA_ARRAY(&asking.arena, struct asking_record, count + strlen(letters)), all,
                 count * sizeof(*all));
    for (size_t i = 0; letters[i] != 0; i++)
        all[count++] = record_of(letters[i]);
    asking_replay(all, count, check_sequence);
}
END_TEST

/* Of payloads that are not in memory, only their place is known. */
START_TEST(a_payload_is_found_where_it_was_moved)
{
    struct journal_place before;
    struct event *event;
    size_t count;

    webhook("/Placed");
    event = event_no(raise_event("Placed", "{\"a\":1}"));
    before = payload_slot_of(event)->place;
    asking_commit();
    asking.service->limits.payload_bytes = 0;
    raise_event("Placed", "{\"a\":2}");
    asking_commit();
    ck_assert(!payload_is_loaded(event));
    record_all(&count);
    ck_assert_mem_ne(&payload_slot_of(event)->place, &before, sizeof(before));
    asking_commit();
    ck_asks(200, "GET", "/Svc.Event/_/select=Payload", NULL);
    ck_body_eq("[{\"Payload\":[{\"a\":1}]},{\"Payload\":[{\"a\":2}]}]");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, raising_is_one_record);
    tcase_add_test(tc, a_change_that_is_not_applied_raises_nothing);
    tcase_add_test(tc, events_are_read_as_they_were_raised);
    tcase_add_loop_test(tc, an_event_goes_to_those_whose_selector_holds, 0, ARRAY_LEN(matches));
    tcase_add_test(tc, paused_webhooks_are_left_out);
    tcase_add_test(tc, an_event_for_one_webhook_goes_to_no_other);
    tcase_add_test(tc, a_chain_ends);
    tcase_add_test(tc, descendants_have_their_limit);
    tcase_add_loop_test(tc, what_there_is_no_room_for_is_dead_at_once, 0, ARRAY_LEN(rooms));
    tcase_add_test(tc, an_account_has_half);
    tcase_add_test(tc, deliveries_have_their_limit);
    tcase_add_test(tc, events_are_kept_in_their_order);
    tcase_add_test(tc, what_a_delivery_needs_stays_out_of_sight);
    tcase_add_test(tc, an_event_outlives_its_deliveries);
    tcase_add_test(tc, the_version_tells_of_every_change);
    tcase_add_loop_test(tc, records_mean_the_same_in_any_order, 0, ORDERS);
    tcase_add_loop_test(tc, a_sequence_of_records_means, 0, ARRAY_LEN(sequences));
    tcase_add_test(tc, a_payload_is_found_where_it_was_moved);
}
