/* What follows from changes below: a stored entity raises its event, in the same change. */
#include "asking.h"
#include "owning.h"

#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/hooks.h"

static const char resources[] =
    "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"Name\","
    "\"Type\":\"string\",\"Required\":true},{\"Name\":\"Age\",\"Type\":\"integer\"}],"
    "\"Events\":{\"Inserted\":\"Shop.Born\",\"Updated\":\"Shop.Changed\",\"Deleted\":"
    "\"Shop.Gone\"}},"
    "{\"Name\":\"Shop.Born\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":"
    "\"Shop.Person\"}},"
    "{\"Name\":\"Shop.Changed\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":"
    "\"Shop.Person\"}},"
    "{\"Name\":\"Shop.Gone\",\"Kind\":\"EventResource\"}]";

static void begin(void)
{
    asking_open(resources);
}

static struct hooks *hooks(void)
{
    return &asking.service->hooks;
}

static void webhook(const char *selector)
{
    ck_asks(
        201, "POST", "/Webhook",
        asking_printf("{\"Destination\":\"http://a.test/\",\"EventSelector\":\"%s\"}", selector));
}

static void webhook_of(const char *owner, const char *selector)
{
    struct uuid id;

    webhook(selector);
    ck_assert(uuid_parse(span_str(answered_text("0.Id")), &id));
    own(asking.service, &asking.arena, &id, owner);
}

static size_t pending(void)
{
    return deliveries_count(hooks()->deliveries, DELIVERY_PENDING);
}

/* `Born, Gone`: of the events from `from` on. */
static struct span raised_since(uint64_t from)
{
    struct span all = SPAN("");

    for (struct event *e = events_first(hooks()->events); e != NULL;
         e = events_next(hooks()->events, e))
        if (e->object_no >= from)
            all = arena_printf(&asking.arena, "%.*s%s%.*s", SPAN_FMT(all), all.n > 0 ? ", " : "",
                               SPAN_FMT(span_sub(e->resource, 5, e->resource.n)));
    return all;
}

static const struct {
    const char *method, *target, *body, *raised;
} changes[] = {
    {"POST", "/Person", "{\"Name\":\"Cid\"}", "Born"},
    {"POST", "/Person", "[{\"Name\":\"Cid\"},{\"Name\":\"Dan\"}]", "Born, Born"},
    {"POST", "/Person", "[]", ""},
    {"POST", "/Person/_/safepost=Name", "[{\"Name\":\"Ann\"},{\"Name\":\"Dan\"}]", "Changed, Born"},
    {"PUT", "/Person/Name=Ann", "{\"Name\":\"Ann\"}", "Changed"},
    {"PUT", "/Person/Name=Cid", "{\"Name\":\"Cid\"}", "Born"},
    {"PATCH", "/Person/_/unsafe=true", "{\"Age\":1}", "Changed, Changed"},
    {"DELETE", "/Person/Name=Ann", NULL, "Gone"},
    {"DELETE", "/Person/_/unsafe=true", NULL, "Gone, Gone"},
    {"DELETE", "/Person/Name=Nobody", NULL, ""},
    {"POST", "/Person", "[{\"Name\":\"Cid\"},{}]", ""},
    {"PATCH", "/Person", "{\"Age\":1}", ""},
};

START_TEST(a_change_of_entities_raises_events)
{
    uint64_t from;

    webhook("/Born");
    webhook("/Gone/Name=Ann");
    ck_asks(201, "POST", "/Person", "[{\"Name\":\"Ann\"},{\"Name\":\"Bob\",\"Age\":7}]");
    from = asking_serial();
    ask(changes[_i].method, changes[_i].target, changes[_i].body);
    ck_span_is(raised_since(from), span_str(changes[_i].raised));
}
END_TEST

START_TEST(an_event_carries_the_entity_as_it_is_then)
{
    struct span entity;

    webhook("/Changed/Age>7");
    webhook("/Gone/Age=8");
    ck_asks(201, "POST", "/Person", "{\"Name\":\"Bob\",\"Age\":7}");
    ck_asks(200, "PATCH", "/Person", "{\"Age\":8}");
    entity = arena_copy(&asking.arena, answered_body());
    ck_asks(200, "GET", "/Svc.Event/Resource=Shop.Changed", NULL);
    ck_span_is(answered("0.Payload"), entity);
    ck_member_eq("0.Webhooks", "1");
    ck_asks(200, "DELETE", "/Person", NULL);
    ck_asks(200, "GET", "/Svc.Event/Resource=Shop.Gone", NULL);
    ck_span_is(answered("0.Payload"), entity);
    ck_member_eq("0.Webhooks", "1");
}
END_TEST

/* Either the entity and the event, or neither. */
START_TEST(what_cannot_be_raised_is_not_stored)
{
    static const char *const owners[] = {"a", "b", "c"};
    struct span before;

    for (int i = 0; i < 3; i++) { /* one account would have no more than half */
        webhook_of(owners[i], "/Born");
        webhook_of(owners[i], "/Changed");
        webhook_of(owners[i], "/Gone");
    }
    ck_asks(201, "POST", "/Person", "[{\"Name\":\"Ann\"},{\"Name\":\"Bob\"}]");
    before = asking_entities("Shop.Person");
    asking.service->limits.pending_deliveries = 9;
    ck_refuses(ERR_OVERLOADED, "PendingDeliveries", "POST", "/Person",
               "[{\"Name\":\"Cid\"},{\"Name\":\"Dan\"}]");
    ck_refuses(ERR_OVERLOADED, "PendingDeliveries", "PATCH", "/Person/_/unsafe=true",
               "{\"Age\":1}");
    ck_refuses(ERR_OVERLOADED, "PendingDeliveries", "DELETE", "/Person/_/unsafe=true", NULL);
    ck_span_is(asking_entities("Shop.Person"), before);
    ck_assert_uint_eq(pending(), 6);
    ck_asks(200, "DELETE", "/Person/Name=Ann", NULL);
    ck_assert_uint_eq(pending(), 9);
}
END_TEST

START_TEST(an_event_is_as_deep_as_what_caused_it)
{
    ask_with("Svc-depth: 7", "POST", "/Person", "{\"Name\":\"Ann\"}");
    ck_status(201);
    ck_assert_uint_eq(events_first(hooks()->events)->depth, 7);
    ask_with("Svc-depth: 16", "POST", "/Person", "{\"Name\":\"Bob\"}");
    ck_problem(ERR_INFINITE_LOOP, "'Shop.Born' would be the 17th");
    ck_assert_uint_eq(asking_count("Shop.Person"), 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, a_change_of_entities_raises_events, 0, ARRAY_LEN(changes));
    tcase_add_test(tc, an_event_carries_the_entity_as_it_is_then);
    tcase_add_test(tc, what_cannot_be_raised_is_not_stored);
    tcase_add_test(tc, an_event_is_as_deep_as_what_caused_it);
}
