/* Requests to a whole service whose loop stands still unless told otherwise: what they change stays
 * on its way to the disk. */
#include "dispatch/dispatch.h"
#include "serving.h"

/* Raises an event; returns the answer's body. */
static struct span raise_event(const char *key, const char *body)
{
    const struct header_field header = {SPAN("Idempotency-Key"), span_str(key)};
    const struct request request = {
        .method = SPAN("POST"),
        .target = SPAN("/Svc.Event"),
        .headers = &header,
        .header_count = key == NULL ? 0 : 1,
        .body = span_str(body),
    };

    dispatch_run(&service->rest, &request, &response);
    return arena_copy(&arena, buf_span(&response.body));
}

#define EVENT "\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}"

static const struct {
    const char *key, *body;
} forms[] = {
    {NULL, "{\"ClientId\":\"1\"," EVENT},
    {NULL, "[{\"ClientId\":\"1\"," EVENT ",{\"ClientId\":\"2\"," EVENT "]"},
    {"1", "{" EVENT},
    {"1", "[{" EVENT ",{" EVENT "]"},
};

START_TEST(a_repetition_waits_for_the_first_ones_commit)
{
    struct span first = raise_event(forms[_i].key, forms[_i].body);

    ck_assert_int_eq(response.status, 201);
    ck_assert(!turn_is_committed(service->turn, response.serial));
    ck_span_is(raise_event(forms[_i].key, forms[_i].body), first);
    ck_assert_int_eq(response.status, 201);
    ck_assert(!turn_is_committed(service->turn, response.serial));
    commit();
    ck_assert(turn_is_committed(service->turn, response.serial));
    ck_span_is(raise_event(forms[_i].key, forms[_i].body), first);
    ck_assert(turn_is_committed(service->turn, response.serial)); /* nothing new was written */
}
END_TEST

START_TEST(a_conflict_changes_nothing)
{
    uint64_t next_serial;

    raise_event(NULL, "{\"ClientId\":\"1\"," EVENT);
    next_serial = journal_next_serial(turn_journal(service->turn));
    raise_event(NULL,
                "[{\"ClientId\":\"2\"," EVENT
                ",{\"ClientId\":\"1\",\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{\"a\":1}}]");
    ck_assert_int_eq(response.status, 409);
    ck_assert_int_eq(response.error, ERR_CONFLICT);
    ck_assert_uint_eq(once_count(service->hooks.once), 1);
    ck_assert_uint_eq(events_count(service->hooks.events), 1);
    /* But for the error that was stored. */
    ck_assert_uint_eq(journal_next_serial(turn_journal(service->turn)), next_serial + 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, a_repetition_waits_for_the_first_ones_commit, 0, ARRAY_LEN(forms));
    tcase_add_test(tc, a_conflict_changes_nothing);
}
