/* How many a webhook tells of; what is told, and to whom, tests/blackbox/test_notices.py shows. */
#include "testing.h"

#include "hooks/notice.h"
#include "resource/resource.h"
#include "webhook/selector.h"

START_TEST(a_hand_is_full_at_first_and_fills_again)
{
    struct notice_hand hand = {.spent = 0};
    uint64_t now_ms = 5000;

    for (unsigned i = 0; i < NOTICES_IN_HAND; i++) {
        ck_assert(notice_hand_has(&hand, 1, now_ms));
        ck_assert(notice_hand_take(&hand, now_ms));
    }
    ck_assert(!notice_hand_has(&hand, 1, now_ms));
    ck_assert(!notice_hand_take(&hand, now_ms));
    ck_assert(!notice_hand_has(&hand, 1, now_ms + 999));
    ck_assert(notice_hand_has(&hand, NOTICES_PER_SECOND, now_ms + 1000));
    ck_assert(!notice_hand_has(&hand, NOTICES_PER_SECOND + 1, now_ms + 1000));
    for (unsigned i = 0; i < NOTICES_PER_SECOND; i++)
        ck_assert(notice_hand_take(&hand, now_ms + 1000));
    ck_assert(!notice_hand_take(&hand, now_ms + 1000));
    now_ms += 1000 * 1000000ULL;
    ck_assert(notice_hand_has(&hand, NOTICES_IN_HAND, now_ms));
    ck_assert(!notice_hand_has(&hand, NOTICES_IN_HAND + 1, now_ms));
}
END_TEST

START_TEST(to_ask_takes_nothing)
{
    static const struct notice_hand full;

    for (unsigned i = 0; i < 2 * NOTICES_IN_HAND; i++)
        ck_assert(notice_hand_has(&full, NOTICES_IN_HAND, 0));
    ck_assert(!notice_hand_has(&full, NOTICES_IN_HAND + 1, 0));
}
END_TEST

START_TEST(parts_of_seconds_are_not_lost)
{
    struct notice_hand hand = {.spent = 0};
    unsigned taken = 0;

    for (uint64_t now_ms = 0; now_ms < 100000; now_ms += 700)
        for (unsigned i = 0; i < 3; i++)
            taken += notice_hand_take(&hand, now_ms);
    ck_assert_uint_ge(taken, NOTICES_IN_HAND + 99 * NOTICES_PER_SECOND);
    ck_assert_uint_le(taken, NOTICES_IN_HAND + 100 * NOTICES_PER_SECOND);
}
END_TEST

START_TEST(names)
{
    ck_assert(selector_is_notice(notice_webhook_paused.name) &&
              selector_is_notice(notice_webhook_recovered.name));
    ck_assert(selector_is_notice(notice_delivery_dead.name) &&
              selector_is_notice(SPAN("svc.deliverydead")));
    ck_assert(!selector_is_notice(SPAN("Shop.Svc.Order")) &&
              !selector_is_notice(SPAN("Svcs.Order")));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_hand_is_full_at_first_and_fills_again);
    tcase_add_test(tc, to_ask_takes_nothing);
    tcase_add_test(tc, parts_of_seconds_are_not_lost);
    tcase_add_test(tc, names);
}
