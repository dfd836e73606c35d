/* Svc.Admin.Delivery: that all ways to a delivery find the same ones, and that they can be sent
 * again, or forgotten, in every state. */
#include "asking.h"
#include "hooks/fetching.h"
#include "owning.h"

#include "base/clock.h"
#include "hooks/delivery.h"
#include "hooks/hooks.h"
#include "rest/evaluation.h"
#include "rest/metrics.h"
#include "rest/request.h"

#define A "http://a.test"
#define B "http://b.test"
#define C "http://c.test"

static const char *a_id, *b_id, *c_id; /* webhooks */
static const char *first_event;

static void settle(void)
{
    asking_commit();
    for (int i = 0; i < 20; i++)
        asking_turn();
}

static const char *webhook(const char *destination, const char *members)
{
    ck_asks(201, "POST", "/Webhook",
            asking_printf("{\"EventSelector\":\"/Placed\",\"Destination\":\"%s/\",%s}", destination,
                          members));
    return answered_text("0.Id");
}

/* Of a: Delivered, Dead, InFlight. Of b: Waiting, Waiting, Waiting. Of c: InFlight, all three. */
static void begin(void)
{
    clock_fake(INT64_C(1800000000) * 1000000000, UINT64_C(1000000000));
    asking_open("[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]");
    service_start(asking.service);
    a_id = webhook(A, "\"Delivery\":{\"RetrySchedule\":[]}");
    b_id = webhook(B, "\"Delivery\":{\"RetrySchedule\":[1000]}");
    c_id = webhook(C, "\"Label\":\"c\"");
    for (int i = 0; i < 3; i++) {
        ck_asks(201, "POST", "/Svc.Event/Resource=Placed", "{}");
        if (i == 0)
            first_event = answered_text("0.Id");
        settle();
        if (i < 2)
            answer(A, i == 0 ? 200 : 500);
        answer(B, 500);
        settle();
    }
}

static const struct {
    const char *conditions; /* `a`, `b`, `c`, `e` behind a `$` are the ids */
    int count;
} found[] = {
    {"_", 9},
    {"State=Delivered", 1},
    {"State=dead", 1},
    {"State=Waiting", 3},
    {"State=InFlight", 4},
    {"State=Pending", 0},
    {"State=Aborted", 0},
    {"State!=Waiting", 6},
    {"State!=Waiting&State!=Dead", 5},
    {"State=Waiting&State=Dead", 0},
    {"WebhookId=$a", 3},
    {"WebhookId=$b&State=Waiting", 3},
    {"WebhookId=$b&State=Dead", 0},
    {"WebhookId=nobody", 0},
    {"WebhookId!=$a", 6},
    {"EventId=$e", 3},
    {"EventId=$e&WebhookId=$a", 1},
    {"EventId=$e&State=Delivered", 1},
    {"EventId=$e&State=Dead", 0},
    {"EventId=nobody", 0},
    {"Event=Shop.Placed", 9},
    {"Attempts=1", 5},
    {"LastStatus=500", 4},
    {"LastStatus=null", 4},
    {"State=Waiting&LastStatus=200", 0},
};

static const char *with_ids(const char *conditions)
{
    struct span rest = span_str(conditions);
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    buf_add(&b, span_split(&rest, '$'));
    while (rest.p != NULL) {
        char which = rest.p[0];

        buf_add_str(&b, which == 'a'   ? a_id
                        : which == 'b' ? b_id
                        : which == 'c' ? c_id
                                       : first_event);
        rest = span_sub(rest, 1, rest.n);
        buf_add(&b, span_split(&rest, '$'));
    }
    buf_add_char(&b, 0);
    return b.p;
}

static void on_end(void *context)
{
    *(bool *)context = true;
}

/* Evaluated over several turns, where the deliveries are written down at once. */
static void check_tag_beside_others(const char *target, struct span tag)
{
    struct request request = {.method = SPAN("GET"), .target = span_str(target), .gives_way = true};
    bool is_done = false;
    struct evaluation *e = evaluation_start(&asking.service->rest, &request, on_end, &is_done);

    for (int i = 0; i < 100 && !is_done; i++)
        asking_turn();
    ck_assert(is_done);
    ck_span_is(response_header(evaluation_response(e), SPAN("ETag")), tag);
    evaluation_free(e);
}

/* A delivery that is dead again looks as it did before. */
START_TEST(tags_tell_one_attempt_from_the_next)
{
    const char *dead = "/Svc.Admin.Delivery/State=Dead";
    struct span before, after;

    ck_asks(200, "GET", dead, NULL);
    before = arena_copy(&asking.arena, answered_header("ETag"));
    ck_assert_uint_eq(before.n, 18);
    check_tag_beside_others(dead, before);
    ck_asks(200, "PATCH", dead, "{\"State\":\"Pending\"}");
    ck_assert(answered_header("ETag").p != NULL);
    settle();
    answer(A, 500); /* the one that was in flight */
    settle();
    answer(A, 500);
    settle();
    ck_asks(200, "GET", "/Svc.Admin.Delivery/State=Dead/limit=1", NULL);
    after = arena_copy(&asking.arena, answered_header("ETag"));
    ck_assert(!span_eq(before, after));
    check_tag_beside_others("/Svc.Admin.Delivery/State=Dead/limit=1", after);
}
END_TEST

/* What is counted, what is listed, and what a change would be made to. */
START_TEST(all_ways_lead_to_the_same)
{
    const char *conditions = with_ids(found[_i].conditions);
    struct span count = arena_printf(&asking.arena, "%d", found[_i].count);

    ck_asks(200, "REPORT", asking_printf("/Svc.Admin.Delivery/%s", conditions), NULL);
    ck_span_is(answered("0.Count"), count);
    ask("GET", asking_printf("/Svc.Admin.Delivery/%s", conditions), NULL);
    ck_span_is(answered_header("Svc-count"), count);
    ck_asks(200, "REPORT", asking_printf("/Svc.Admin.Delivery/%s/search=.", conditions), NULL);
    ck_span_is(answered("0.Count"), count);
    ck_asks(200, "DELETE", asking_printf("/Svc.Admin.Delivery/%s/unsafe=true", conditions), NULL);
    ck_span_is(answered("0.Count"), count);
    ck_asks(200, "REPORT", "/Svc.Admin.Delivery", NULL);
    ck_span_is(answered("0.Count"), arena_printf(&asking.arena, "%d", 9 - found[_i].count));
}
END_TEST

START_TEST(each_is_found_by_its_id)
{
    for (int i = 0; i < 9; i++) {
        const char *id;

        ck_asks(200, "GET", asking_printf("/Svc.Admin.Delivery/_/offset=%d&limit=1", i), NULL);
        id = answered_text("0.Id");
        ck_asks(200, "GET", asking_printf("/Svc.Admin.Delivery/Id=%s", id), NULL);
        ck_assert_str_eq(answered_text("0.Id"), id);
        ck_assert_ptr_null(answered("1").p);
    }
    ck_asks(204, "GET", "/Svc.Admin.Delivery/Id=01999999-0000-7000-8000-000000000000", NULL);
    ck_asks(204, "GET", "/Svc.Admin.Delivery/Id=x", NULL);
}
END_TEST

START_TEST(those_of_a_deleted_webhook_are_gone)
{
    ck_asks(200, "DELETE", asking_printf("/Webhook/Id=%s", b_id), NULL);
    ck_asks(200, "REPORT", "/Svc.Admin.Delivery", NULL);
    ck_member_eq("0.Count", "6");
    ck_asks(200, "REPORT", "/Svc.Admin.Delivery/State=Waiting", NULL);
    ck_member_eq("0.Count", "0");
    ck_asks(200, "REPORT", asking_printf("/Svc.Admin.Delivery/EventId=%s", first_event), NULL);
    ck_member_eq("0.Count", "2");
    settle();
    ck_asks(200, "REPORT", "/Svc.Admin.Delivery", NULL);
    ck_member_eq("0.Count", "6");
}
END_TEST

/* ---- sending again ---- */

static const struct {
    const char *conditions, *body;
    enum err_code code; /* ERR_NO_ERROR: they are sent */
    const char *text;
} resent[] = {
    {"State=Delivered", "{\"State\":\"pending\"}", ERR_NO_ERROR, NULL},
    {"State=Dead", "{\"state\":\"Pending\"}", ERR_NO_ERROR, NULL},
    {"State=Waiting", "{\"State\":\"Pending\"}", ERR_NO_ERROR, NULL},
    {"State=InFlight", "{\"State\":\"Pending\"}", ERR_CONFLICT, "is in flight"},
    {"_", "{\"State\":\"Pending\"}", ERR_CONFLICT, "is in flight"},
    {"State=Pending", "{\"State\":\"Pending\"}", ERR_UNKNOWN_ENTITY, "matches"},
    {"State=Dead", "{\"State\":\"Dead\"}", ERR_INVALID_ENTITY, "State can only be written as"},
    {"State=Dead", "{\"State\":null}", ERR_INVALID_ENTITY, "State can only be written as"},
    {"State=Dead", "[]", ERR_DATA_SOURCE_FORMAT, ""},
    {"State=Dead", "{\"State\":\"Pendig\"}", ERR_INVALID_ENUM_VALUE, "State"},
};

START_TEST(a_delivery_is_sent_again_with_a_fresh_schedule)
{
    size_t before = starts;
    uint64_t serial = asking_serial();

    ask("PATCH", asking_printf("/Svc.Admin.Delivery/%s/unsafe=true", resent[_i].conditions),
        resent[_i].body);
    if (resent[_i].code != ERR_NO_ERROR) {
        ck_problem(resent[_i].code, resent[_i].text);
        ck_assert_uint_eq(asking_serial(), serial + 1); /* the error */
        return;
    }
    ck_status(200);
    ck_member_eq("0.State", "\"Pending\"");
    ck_member_eq("0.Attempts", "0");
    ck_member_eq("0.NextAttemptTime", "null");
    settle();
    ck_assert_uint_gt(starts, before);
}
END_TEST

/* Also of those that are in flight. */
START_TEST(a_patch_that_changes_nothing_is_none)
{
    size_t before = starts;
    uint64_t serial = asking_serial();
    struct span shown, tag;

    ck_asks(200, "GET", "/Svc.Admin.Delivery/State=Dead", NULL);
    shown = arena_copy(&asking.arena, answered_body());
    tag = arena_copy(&asking.arena, answered_header("ETag"));
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery/State=Dead", "{}");
    ck_span_is(answered_body(), shown);
    ck_span_is(answered_header("ETag"), tag);
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery/_/unsafe=true", "{\"Attempts\":7}");
    ck_header_eq("Svc-info", "9 entities updated in 'Svc.Admin.Delivery'");
    settle();
    ck_assert_uint_eq(asking_serial(), serial);
    ck_assert_uint_eq(starts, before);
    ck_refuses(ERR_AMBIGUOUS_MATCH, "9 entities", "PATCH", "/Svc.Admin.Delivery", "{}");
}
END_TEST

START_TEST(several_need_to_be_meant)
{
    ck_refuses(ERR_AMBIGUOUS_MATCH, "3 entities", "PATCH", "/Svc.Admin.Delivery/State=Waiting",
               "{\"State\":\"Pending\"}");
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery/State=Waiting/limit=1", "{\"State\":\"Pending\"}");
}
END_TEST

START_TEST(what_has_ended_counts_again)
{
    static const char *const owners[] = {"a", "b", "c"};
    const char *ids[] = {a_id, b_id, c_id};
    struct uuid id;

    for (int i = 0; i < 3; i++) { /* one account would have no more than half */
        ck_assert(uuid_parse(span_str(ids[i]), &id));
        own(asking.service, &asking.arena, &id, owners[i]);
    }
    asking.service->limits.pending_deliveries = 8; /* 7 have not ended */
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery/State=Waiting/unsafe=true",
            "{\"State\":\"Pending\"}");
    ck_refuses(ERR_OVERLOADED, "PendingDeliveries", "PATCH",
               "/Svc.Admin.Delivery/LastStatus!=null&State!=Pending/unsafe=true",
               "{\"State\":\"Pending\"}");
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery/State=Delivered", "{\"State\":\"Pending\"}");
    ck_refuses(ERR_OVERLOADED, "PendingDeliveries", "PATCH", "/Svc.Admin.Delivery/State=Dead",
               "{\"State\":\"Pending\"}");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, all_ways_lead_to_the_same, 0, ARRAY_LEN(found));
    tcase_add_test(tc, tags_tell_one_attempt_from_the_next);
    tcase_add_test(tc, each_is_found_by_its_id);
    tcase_add_test(tc, those_of_a_deleted_webhook_are_gone);
    tcase_add_loop_test(tc, a_delivery_is_sent_again_with_a_fresh_schedule, 0, ARRAY_LEN(resent));
    tcase_add_test(tc, a_patch_that_changes_nothing_is_none);
    tcase_add_test(tc, several_need_to_be_meant);
    tcase_add_test(tc, what_has_ended_counts_again);
}
