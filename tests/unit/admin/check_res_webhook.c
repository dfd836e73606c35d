/* Svc.Admin.Webhook: that webhooks are counted by their state without a look at each one's text,
 * and that this finds as many as a look finds. */
#include "asking.h"
#include "hooks/fetching.h"

#include "base/clock.h"
#include "hooks/hooks.h"

#define A "http://a.test"
#define B "http://b.test"

static void settle(void)
{
    asking_commit();
    for (int i = 0; i < 20; i++)
        asking_turn();
}

static void webhook(const char *destination, const char *members)
{
    ck_asks(201, "POST", "/Webhook",
            asking_printf("{\"EventSelector\":\"/Placed\",\"Destination\":\"%s/\",%s}", destination,
                          members));
}

/* One fails, one is active, two are paused, one of those of a tenant. */
static void begin(void)
{
    clock_fake(INT64_C(1800000000) * 1000000000, UINT64_C(1000000000));
    asking_open("[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]");
    service_start(asking.service);
    webhook(A, "\"Delivery\":{\"RetrySchedule\":[1000]}");
    webhook(B, "\"Label\":\"b\"");
    webhook(B, "\"IsPaused\":true");
    webhook(B, "\"IsPaused\":true,\"Tenant\":\"acme\"");
    ck_asks(201, "POST", "/Svc.Event/Resource=Placed", "{}");
    settle();
    answer(A, 500);
    answer(B, 200);
    settle();
}

static const struct {
    const char *conditions;
    int count;
} found[] = {
    {"Status.State=Failing", 1},
    {"status.state=failing", 1},
    {"Status.State=Active", 1},
    {"Status.State=Paused", 2},
    {"Status.State=Throttled", 0},
    {"Status.State!=Paused", 2},
    {"Status.State!=Paused&Status.State!=Failing", 1},
    {"Status.State=Paused&Status.State=Failing", 0},
    {"Status.State=Paused&Tenant=acme", 1},
    {"Status.State=Failing&Status.Waiting=1", 1},
    {"Status.Waiting=1", 1},
    {"Status.OldestTime!=null", 1},
    {"Status.State=null", 0},
    {"Status.State.Length=6", 2 + 1},
};

START_TEST(a_count_is_what_is_listed)
{
    const char *conditions = found[_i].conditions;
    struct span count = arena_printf(&asking.arena, "%d", found[_i].count);

    ck_asks(200, "REPORT", asking_printf("/Svc.Admin.Webhook/%s", conditions), NULL);
    ck_span_is(answered("0.Count"), count);
    ask("GET", asking_printf("/Svc.Admin.Webhook/%s", conditions), NULL);
    ck_span_is(answered_header("Svc-count"), count);
    ck_asks(200, "REPORT", asking_printf("/Svc.Admin.Webhook/%s/search=.", conditions), NULL);
    ck_span_is(answered("0.Count"), count);
}
END_TEST

START_TEST(a_state_that_there_is_not_is_refused)
{
    ask("REPORT", "/Svc.Admin.Webhook/Status.State=Nonsense", NULL);
    ck_problem(ERR_INVALID_ENUM_VALUE, "State");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, a_count_is_what_is_listed, 0, ARRAY_LEN(found));
    tcase_add_test(tc, a_state_that_there_is_not_is_refused);
}
