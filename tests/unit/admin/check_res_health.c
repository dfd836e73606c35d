/* Svc.Health: each reason alone, and together. */
#include "asking.h"

#include "base/clock.h"
#include "base/fault.h"

static void begin(void)
{
    clock_fake(INT64_C(1800000000) * 1000000000, UINT64_C(1000000000));
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]");
}

static void is_healthy(void)
{
    ck_asks(200, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"ok\"}");
    ck_span_eq(asking.answer.content_type, "application/json");
}

START_TEST(all_is_well)
{
    size_t errors = asking_count("Svc.Admin.Error");

    is_healthy();
    ck_asks(200, "HEAD", "/Svc.Health", NULL);
    ck_assert_uint_eq(asking.answer.serial, 0);
    asking.service->is_draining = true;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_asks(503, "HEAD", "/Svc.Health", NULL);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), errors); /* that is no error of a request */
}
END_TEST

START_TEST(it_says_what_is_wrong)
{
    service_drain(asking.service);
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"shutting down\"]}");
    asking.service->limits.memory_bytes = 1;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"shutting down\","
               "\"the limit MemoryBytes is reached\"]}");
    asking.service->is_draining = false;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"the limit MemoryBytes is reached\"]}");
    asking.service->limits.memory_bytes = INT64_MAX;
    is_healthy();
    asking.service->limits.memory_bytes = 0; /* none */
    is_healthy();
}
END_TEST

#ifdef SVCD_FAULTS

START_TEST(a_full_disk_is_told_until_there_is_room)
{
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    buf_add_str(&b, "{\"Text\":\"");
    for (int i = 0; i < 60000; i++)
        buf_add_char(&b, 'x');
    buf_add(&b, SPAN("\"}\0"));
    ck_assert(fault_set("disk.allocate:1+"));
    ask("POST", "/Person", b.p);
    ask("POST", "/Person", b.p);
    ck_problem(ERR_STORAGE_FAILURE, "");
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"the disk is full\"]}");
    ck_assert(fault_set(NULL));
    clock_advance(UINT64_C(2000000000)); /* it is not tried more often than each second */
    asking_turn();
    ck_asks(201, "POST", "/Person", b.p);
    asking_commit();
    is_healthy();
}
END_TEST

#endif

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, all_is_well);
    tcase_add_test(tc, it_says_what_is_wrong);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, a_full_disk_is_told_until_there_is_room);
#endif
}
