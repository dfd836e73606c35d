#include "asking.h"

#include "base/clock.h"
#include "hooks/event.h"
#include "hooks/forgotten.h"
#include "hooks/retention.h"
#include "store/change.h"
#include "store/turn.h"
#include "webhook/webhook_log.h"

#define RESOURCES "[{\"Name\":\"Zoo.Rumour\",\"Kind\":\"EventResource\"}]"

static struct hooks *hooks(void)
{
    return &asking.service->hooks;
}

/* Its ObjectNo. */
static uint64_t raise_event(void)
{
    uint64_t number;

    ck_asks(201, "POST", "/Svc.Event/Resource=Zoo.Rumour", "{}");
    ck_assert(span_to_u64(answered("0.ObjectNo"), &number));
    return number;
}

static uint64_t log_attempt(void)
{
    const struct webhook_log_entry entry = {.attempt = 1};
    struct change change;
    uint64_t serial;

    change_init(&change, asking.service->turn, &asking.arena);
    webhook_log_add(&change, &entry);
    ck_ok(turn_apply(asking.service->turn, &change, &serial));
    change_done(&change);
    return serial;
}

static void ck_forgotten(uint64_t event, uint64_t entry)
{
    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(forgotten_event(hooks()->forgotten), event);
        ck_assert_uint_eq(forgotten_entry(hooks()->forgotten), entry);
        asking_reload();
    }
}

START_TEST(nothing_at_first)
{
    asking_open(RESOURCES);
    raise_event();
    log_attempt();
    ck_forgotten(0, 0);
    asking_close();
}
END_TEST

START_TEST(what_a_client_deletes)
{
    uint64_t first, second, entry;

    asking_open(RESOURCES);
    first = raise_event();
    second = raise_event();
    entry = log_attempt();
    log_attempt();
    ck_asks(200, "DELETE", asking_printf("/Svc.Event/ObjectNo=%llu", (unsigned long long)second),
            NULL);
    ck_forgotten(second, 0);
    ck_asks(200, "DELETE", asking_printf("/Svc.Event/ObjectNo=%llu", (unsigned long long)first),
            NULL);
    ck_forgotten(second, 0);
    ck_asks(200, "DELETE",
            asking_printf("/Svc.Admin.WebhookLog/ObjectNo=%llu", (unsigned long long)entry), NULL);
    ck_forgotten(second, entry);
    asking_close();
}
END_TEST

START_TEST(what_retention_takes_out)
{
    uint64_t last = 0, entry;

    asking_open(RESOURCES);
    for (int i = 0; i < 5; i++)
        last = raise_event();
    entry = log_attempt();
    asking.service->retention.event_days = asking.service->retention.log_days = 0;
    asking_commit();
    retention_make_room(hooks()->retention);
    ck_assert_uint_eq(events_count(hooks()->events), 0);
    ck_forgotten(last, entry);
    asking_close();
}
END_TEST

/* Deletions of anything else. */
START_TEST(others_do_not_count)
{
    asking_open("[{\"Name\":\"Zoo.Animal\",\"Kind\":\"EntityResource\",\"Methods\":[\"GET\","
                "\"POST\",\"DELETE\"]}]");
    ck_asks(201, "POST", "/Zoo.Animal", "{}");
    ck_asks(200, "DELETE", "/Zoo.Animal", NULL);
    ck_forgotten(0, 0);
    asking_close();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, nothing_at_first);
    tcase_add_test(tc, what_a_client_deletes);
    tcase_add_test(tc, what_retention_takes_out);
    tcase_add_test(tc, others_do_not_count);
}
