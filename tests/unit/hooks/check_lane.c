/* Lanes over a fetcher that does as it is told, by a clock that stands still: where they are and
 * why, and how many attempts go to one address. */
#include "fetching.h"
#include "owning.h"

#include "../../../src/hooks/lane_inner.h"
#include "access/account.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/sm.h"
#include "dispatch/dispatch.h"
#include "rest/rest.h"

#include <stdarg.h>

#define A "http://a.test"
#define B "http://b.test"
#define S UINT64_C(1000000000)

static void begin(void)
{
    clock_fake(INT64_C(1800000000) * 1000000000, S);
    set_up();
    service->hooks.connections_per_host = 8;
    service->hooks.in_flight_most = 64;
    service_start(service);
}

static void end(void)
{
    tear_down();
    clock_real();
}

static void ask(const char *method, const char *target, const char *body)
{
    const struct request request = {
        .method = span_str(method), .target = span_str(target), .body = span_str(body)};

    dispatch_run(&service->rest, &request, &response);
    ck_assert_msg(response.status < 300, "%s %s: %.*s", method, target,
                  SPAN_FMT(buf_span(&response.body)));
}

PRINTF_LIKE(1, 2) static const char *text(const char *format, ...)
{
    char *made = ARENA_ARRAY(&arena, char, 512);
    va_list args;

    va_start(args, format);
    ck_assert_int_lt(vsnprintf(made, 512, format, args), 512);
    va_end(args);
    return made;
}

/* Which has this number as its Label. */
static void hook(int number, const char *destination, const char *delivery)
{
    ask("POST", "/Webhook",
        text("{\"Label\":\"%d\",\"Destination\":\"%s/%d\",\"EventSelector\":"
             "\"/OrderPlaced/For=%d\",\"Delivery\":{%s}}",
             number, destination, number, number, delivery));
}

static void change(int number, const char *body)
{
    ask("PATCH", text("/Webhook/Label='%d'", number), body);
}

static void turn(void)
{
    loop_wake(&loop);
    loop_run_once(&loop);
}

/* Until nothing happens by itself. */
static void run(void)
{
    for (int i = 0; i < 20; i++)
        turn();
}

static void raise_uncommitted(int number, int events)
{
    for (int i = 0; i < events; i++)
        ask("POST", "/Event",
            text("{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{\"For\":%d}}", number));
}

static void raise_for(int number, int events)
{
    raise_uncommitted(number, events);
    commit();
    run();
}

static struct uuid id_of(int number)
{
    struct json_doc doc;
    struct uuid id;

    ask("GET", text("/Webhook/Label='%d'", number), "");
    ck_ok(json_parse(buf_span(&response.body), NULL, &arena, &doc));
    ck_assert(
        uuid_parse(json_string(json_member(json_first(json_root(&doc)), SPAN("Id")), &arena), &id));
    return id;
}

static struct lane *lane_of(int number)
{
    struct uuid id = id_of(number);

    return lane_find(service->hooks.deliveries, &id);
}

static void is_in(int number, enum lane_state state, enum lane_reason reason)
{
    const struct lane *lane = lane_of(number);

    ck_assert_str_eq(sm_name(&lane_machine, lane->state), sm_name(&lane_machine, state));
    ck_assert_int_eq(lane_blocked_by(lane).reason, reason);
}

static void is_in_until(int number, enum lane_state state, enum lane_reason reason, uint64_t ms)
{
    is_in(number, state, reason);
    if (ms == LANE_NEVER)
        ck_assert_uint_eq(lane_blocked_by(lane_of(number)).at_ms, LANE_NEVER);
    else
        ck_assert_uint_le(lane_blocked_by(lane_of(number)).at_ms - loop_now_ms(&loop) - ms, 1);
}

/* ---- the machine ---- */

static bool moves(enum lane_state from, enum lane_state to)
{
    return sm_allows(&lane_machine, from, to);
}

START_TEST(what_the_drawing_says)
{
    for (enum lane_state s = 0; s < LANE_STATE_COUNT; s++) {
        bool has_turn = s == LANE_READY || s == LANE_CALLED || s == LANE_UNPROVED ||
                        s == LANE_SLOW || s == LANE_SATED;

        ck_assert(moves(s, LANE_DYING) == (s != LANE_DYING));
        ck_assert(moves(s, LANE_STARTING) == has_turn);
        ck_assert(moves(s, LANE_CALLED) == (s == LANE_PARKED));
        for (enum lane_state to = LANE_IDLE; to <= LANE_PARKED; to++)
            ck_assert(moves(s, to) == (s != LANE_DYING));
    }
}
END_TEST

START_TEST(idle)
{
    hook(1, A, "");
    raise_for(1, 1);
    is_in_until(1, LANE_IDLE, LANE_EMPTY, LANE_NEVER);
    answer(A, 200);
    is_in(1, LANE_IDLE, LANE_EMPTY);
    change(1, "{\"IsPaused\":true}");
    is_in(1, LANE_IDLE, LANE_PAUSED);
    deliveries_stop(service->hooks.deliveries);
    is_in(1, LANE_IDLE, LANE_STOPPED);
}
END_TEST

START_TEST(paused_wherever_it_is)
{
    hook(1, A, "\"MaxInFlight\":1");
    raise_for(1, 2);
    is_in(1, LANE_FULL, LANE_AT_MAX_IN_FLIGHT);
    change(1, "{\"IsPaused\":true}");
    is_in_until(1, LANE_IDLE, LANE_PAUSED, LANE_NEVER);
    answer(A, 200);
    run();
    ck_assert_uint_eq(starts, 1);
    change(1, "{\"IsPaused\":false}");
    run();
    ck_assert_uint_eq(starts, 2);
}
END_TEST

static const struct {
    const char *delivery;
    int first_status; /* 0: none is answered before the flood */
    size_t under_way;
    enum lane_reason reason;
} full[] = {
    {"\"MaxInFlight\":2", 0, 2, LANE_AT_MAX_IN_FLIGHT},
    {"\"MaxInFlight\":16", 0, 4, LANE_AT_WINDOW},
    {"\"MaxInFlight\":7", 200, 7, LANE_AT_MAX_IN_FLIGHT},
    {"\"RetrySchedule\":[]", 500, 2, LANE_AT_WINDOW},
    {"\"Ordered\":true", 0, 1, LANE_IN_ORDER},
};

START_TEST(as_many_as_it_may_have)
{
    hook(1, A, full[_i].delivery);
    if (full[_i].first_status != 0) {
        raise_for(1, 1);
        answer(A, full[_i].first_status);
    }
    raise_for(1, 20);
    is_in_until(1, LANE_FULL, full[_i].reason, LANE_NEVER);
    ck_assert_uint_eq(under_way(A), full[_i].under_way);
}
END_TEST

START_TEST(waiting)
{
    hook(1, A, "\"RetrySchedule\":[60]");
    raise_for(1, 1);
    answer(A, 500);
    is_in(1, LANE_WAITING, LANE_BEFORE_RETRY);
    ck_assert_uint_ge(lane_blocked_by(lane_of(1)).at_ms, loop_now_ms(&loop) + 60000);
    ck_assert_uint_le(lane_blocked_by(lane_of(1)).at_ms, loop_now_ms(&loop) + 72001);
    raise_for(1, 1); /* what has not been attempted yet does not wait for it */
    ck_assert_uint_eq(under_way(A), 1);
    is_in(1, LANE_WAITING, LANE_BEFORE_RETRY);
    clock_advance(73 * S);
    run();
    ck_assert_uint_eq(under_way(A), 2);
    is_in(1, LANE_IDLE, LANE_EMPTY);
}
END_TEST

START_TEST(waiting_in_order)
{
    hook(1, A, "\"RetrySchedule\":[60],\"Ordered\":true");
    raise_for(1, 2);
    answer(A, 500);
    run();
    is_in(1, LANE_WAITING, LANE_BEFORE_RETRY);
    raise_for(1, 1);
    ck_assert_uint_eq(under_way(A), 0);
    clock_advance(73 * S);
    run();
    ck_assert_uint_eq(under_way(A), 1);
    is_in(1, LANE_FULL, LANE_IN_ORDER);
}
END_TEST

/* What ends last is named. */
START_TEST(held)
{
    hook(1, A, "\"RetrySchedule\":[600]");
    raise_for(1, 2);
    answer(A, 500);
    answer_with(A, 503, 100, 3);
    run();
    is_in(1, LANE_WAITING, LANE_BEFORE_RETRY);
    raise_for(1, 1);
    is_in_until(1, LANE_HELD, LANE_ON_HOLD, 100000);
    ck_assert_int_eq(lane_held_until_ns(lane_of(1)), clock_unix_ns() + INT64_C(100000000000));
    clock_advance(99 * S);
    run();
    ck_assert_uint_eq(under_way(A), 0);
    clock_advance(2 * S);
    run();
    ck_assert_uint_eq(under_way(A), 1);
    is_in(1, LANE_WAITING, LANE_BEFORE_RETRY);
    ck_assert_int_eq(lane_held_until_ns(lane_of(1)), 0);
}
END_TEST

START_TEST(throttled)
{
    hook(1, A, "\"RatePerSecond\":2");
    raise_for(1, 3);
    ck_assert_uint_eq(under_way(A), 1);
    is_in_until(1, LANE_THROTTLED, LANE_AT_RATE, 505);
    clock_advance(S);
    run();
    ck_assert_uint_eq(under_way(A), 2);
    is_in(1, LANE_THROTTLED, LANE_AT_RATE);
}
END_TEST

START_TEST(uncommitted)
{
    hook(1, A, "");
    commit();
    raise_uncommitted(1, 1);
    is_in_until(1, LANE_UNCOMMITTED, LANE_NOT_ON_DISK, LANE_NEVER);
    commit();
    is_in(1, LANE_READY, LANE_FREE);
    turn();
    ck_assert_uint_eq(under_way(A), 1);
}
END_TEST

START_TEST(reading)
{
    service->limits.payload_bytes = 1;
    hook(1, A, "\"MaxInFlight\":1");
    raise_uncommitted(1, 2);
    commit();
    is_in_until(1, LANE_READY, LANE_NOT_READ, 1); /* which no look at it has asked for yet */
    for (int i = 0; i < 2; i++) {
        while (under_way(A) == 0) {
            turn();
            clock_advance(S / 1000);
        }
        ck_span_eq(blob_span(oldest(A)->body), "[{\"For\":1}]");
        answer(A, 200);
    }
    is_in(1, LANE_IDLE, LANE_EMPTY);
}
END_TEST

START_TEST(too_many_that_are_not_known_to_be_prompt)
{
    service->hooks.in_flight_most = 8;
    for (int i = 1; i <= 9; i++)
        hook(i, text("http://h%d.test", i), "");
    raise_for(9, 1);
    answer("http://h9.test", 200);
    raise_for(8, 1);
    answer_with("http://h8.test", 200, -1, 1000);
    for (int i = 1; i <= 6; i++)
        raise_for(i, 1);
    raise_for(8, 1);
    is_in_until(8, LANE_SLOW, LANE_AS_SLOW, LANE_NEVER); /* a quarter is not for it */
    raise_for(7, 2);
    is_in_until(7, LANE_UNPROVED, LANE_AS_UNPROVED, LANE_NEVER); /* nor an eighth for this one */
    ck_assert_uint_eq(under_way(NULL), 7);
    raise_for(9, 2);
    ck_assert_uint_eq(under_way("http://h9.test"), 1);
    is_in_until(9, LANE_READY, LANE_AT_ALL_SLOTS, LANE_NEVER);
    answer("http://h9.test", 200);
    run();
    ck_assert_uint_eq(under_way("http://h9.test"), 1);
    answer("http://h1.test", 200);
    run();
    ck_assert_uint_eq(under_way("http://h7.test"), 2); /* before the slow one */
    ck_assert_uint_eq(under_way("http://h8.test"), 0);
}
END_TEST

START_TEST(an_outcome_makes_room_in_its_own_turn)
{
    hook(1, A, "\"MaxInFlight\":1");
    raise_for(1, 2);
    answer(A, 200);
    is_in(1, LANE_READY, LANE_FREE);
    ck_assert_uint_eq(under_way(A), 0); /* never inside the call that told of it */
    turn();
    ck_assert_uint_eq(under_way(A), 1);
}
END_TEST

/* One start a lane, then the next one's. */
START_TEST(the_ring)
{
    service->hooks.connections_per_host = 64;
    for (int i = 1; i <= 3; i++)
        hook(i, text("http://h%d.test", i), "");
    for (int i = 1; i <= 3; i++)
        raise_uncommitted(i, 4);
    commit();
    run();
    ck_assert_uint_eq(under_way(NULL), 12);
    for (int i = 0; i < 12; i++) {
        ck_assert_int_eq(oldest(NULL)->origin->text[8], '1' + i % 3);
        answer(NULL, 200);
    }
}
END_TEST

START_TEST(dying)
{
    hook(1, A, "\"MaxInFlight\":1");
    raise_for(1, 3);
    ask("DELETE", "/Webhook/Label='1'", "");
    ck_assert(deliveries_are_dropped(service->hooks.deliveries));
    ck_assert_ptr_null(lane_first(service->hooks.deliveries));
    run();
    ck_assert(!deliveries_are_dropped(service->hooks.deliveries));
    ck_assert_uint_eq(under_way(NULL), 0);
    ck_assert_uint_eq(deliveries_pending(service->hooks.deliveries), 0);
}
END_TEST

/* What local requests do to the lane while they are evaluated. */
static const struct {
    const char *method, *target, *payload;
    size_t left; /* lanes */
} own_affairs[] = {
    {"DELETE", "/Webhook/_/unsafe=true", "", 0},
    {"DELETE", "/Delivery/_/unsafe=true", "", 0},
    {"PATCH", "/Webhook/_/unsafe=true", "\"Destination\":\"" A "/\"", 1},
    {"PATCH", "/Webhook/_/unsafe=true", "\"IsPaused\":true", 1},
    {"PATCH", "/Webhook/_/unsafe=true", "\"Delivery\":{\"Ordered\":true}", 1},
};

START_TEST(starting)
{
    ask("POST", "/Webhook",
        text("{\"Destination\":\"%s\",\"Method\":\"%s\",\"EventSelector\":\"/OrderPlaced\"}",
             own_affairs[_i].target, own_affairs[_i].method));
    commit();
    for (int i = 0; i < 3; i++)
        ask("POST", "/Event",
            text("{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{%s}}", own_affairs[_i].payload));
    commit();
    run();
    ck_assert_uint_eq(lane_first(service->hooks.deliveries) != NULL, own_affairs[_i].left);
    ck_assert(!deliveries_are_dropped(service->hooks.deliveries));
    ck_assert_uint_eq(deliveries_count(service->hooks.deliveries, DELIVERY_DEAD), 0);
}
END_TEST

/* ---- accounts ---- */

static const char *host_of(int number)
{
    return text("http://h%d.test", number);
}

static void give(int number, const char *owner)
{
    struct uuid id = id_of(number);

    own(service, &arena, &id, owner);
}

/* A webhook of an account, with a host of its own, that has had one attempt which took so long. */
static void hook_of(const char *owner, int number, uint32_t took_ms)
{
    hook(number, host_of(number), "\"MaxInFlight\":8");
    give(number, owner);
    raise_for(number, 1);
    if (took_ms > 0)
        answer_with(host_of(number), 200, -1, took_ms);
    run();
}

static struct account *account_of(const char *owner)
{
    struct account *account = rest_account_of(&service->rest, span_of(NULL, 0), span_str(owner));

    account_unref(service->rest.accounts, account);
    return account; /* its webhooks keep it */
}

/* Receivers that hang take no more than half of what those like them may have. */
START_TEST(half_of_the_slots_that_are_not_for_the_prompt)
{
    service->hooks.in_flight_most = 16; /* 12 for slow ones */
    hook_of("a", 1, 1500);
    hook_of("b", 2, 1500);
    raise_for(1, 8);
    ck_assert_uint_eq(under_way(host_of(1)), 6);
    is_in_until(1, LANE_SLOW, LANE_SLOW_AT_HALF, LANE_NEVER);
    hook(3, host_of(3), "");
    raise_for(3, 1); /* of everybody's account */
    ck_assert_uint_eq(under_way(host_of(3)), 1);
    give(3, "a");
    raise_for(3, 1);
    is_in_until(3, LANE_UNPROVED, LANE_UNPROVED_AT_HALF, LANE_NEVER);
    raise_for(2, 8);
    ck_assert_uint_eq(under_way(host_of(2)), 5);
    is_in(2, LANE_SLOW, LANE_AS_SLOW);
    ck_assert_uint_eq(account_of("a")->in_flight, 7);
    answer_with(host_of(1), 200, -1, 1500);
    run();
    ck_assert_uint_eq(under_way(host_of(2)), 6);
    ck_assert_uint_eq(under_way(NULL), 12);
}
END_TEST

/* Who has its half goes on when nobody else wants slots, but for an eighth, and no further when
 * somebody does. */
START_TEST(half_of_all_slots_while_others_want_them)
{
    service->hooks.in_flight_most = 16;
    for (int i = 1; i <= 3; i++)
        hook_of(i < 3 ? "a" : "b", i, 3);
    for (int i = 1; i <= 4; i++) { /* windows grow */
        raise_for(1, 4);
        raise_for(2, 4);
        while (under_way(NULL) > 0)
            answer(NULL, 200);
        run();
        while (under_way(NULL) > 0)
            answer(NULL, 200);
    }
    raise_for(3, 1);
    raise_for(1, 6);
    raise_for(2, 6);
    ck_assert_uint_eq(under_way(NULL), 9);
    is_in_until(2, LANE_SATED, LANE_AT_HALF, LANE_NEVER);
    answer(host_of(3), 200);
    ck_assert_uint_eq(under_way(NULL), 8);
    run(); /* nobody else has any */
    ck_assert_uint_eq(under_way(NULL), 12);
    raise_for(1, 2);
    raise_for(2, 2);
    ck_assert_uint_eq(under_way(NULL), 14);
    is_in(2, LANE_SATED, LANE_AT_HALF);
    raise_for(3, 2);
    ck_assert_uint_eq(under_way(host_of(3)), 2); /* what was kept for it */
    answer(host_of(1), 200);
    run();
    ck_assert_uint_eq(under_way(NULL), 15);
}
END_TEST

/* The first account has more, but a part is there for the next one, however slow it is. */
START_TEST(who_comes_first_leaves_a_part)
{
    service->hooks.in_flight_most = 16;
    for (int i = 1; i <= 4; i++)
        hook_of("a", i, 0);
    for (int i = 1; i <= 4; i++)
        raise_for(i, 3);
    ck_assert_uint_eq(under_way(NULL), 10);
    is_in(4, LANE_UNPROVED, LANE_UNPROVED_AT_HALF);
    hook_of("b", 5, 1500);
    raise_for(5, 4);
    ck_assert_uint_eq(under_way(host_of(5)), 2);
    ask("DELETE", "/Webhook/Label='5'", "");
    for (int i = 1; i <= 4; i++)
        give(i, "");
    run(); /* bodies that are under way are still the first account's: there are two */
    ck_assert_uint_eq(under_way(NULL), 10);
    is_in(4, LANE_UNPROVED, LANE_UNPROVED_AT_HALF);
}
END_TEST

/* One start an account, then the next one's: however many webhooks it has. */
START_TEST(accounts_take_turns)
{
    enum { MANY = 12 };

    for (int i = 1; i <= MANY + 1; i++)
        hook_of(i <= MANY ? "many" : "one", i, 3);
    service->hooks.in_flight_most = 1;
    for (int i = 1; i <= MANY + 1; i++)
        raise_uncommitted(i, i <= MANY ? 1 : 3);
    commit();
    run();
    for (int turns = 0; turns < 3; turns++) {
        ck_assert_str_ne(oldest(NULL)->origin->text, host_of(MANY + 1));
        answer(NULL, 200);
        run();
        ck_assert_str_eq(oldest(NULL)->origin->text, host_of(MANY + 1));
        answer(NULL, 200);
        run();
    }
    while (under_way(NULL) > 0) {
        answer(NULL, 200);
        run();
    }
    ck_assert_uint_eq(deliveries_pending(service->hooks.deliveries), 0);
}
END_TEST

/* A lane that its account's half keeps back gives up the place of its host. */
START_TEST(a_place_is_not_kept_for_who_may_not_start)
{
    service->hooks.connections_per_host = 1;
    service->hooks.in_flight_most = 8;
    hook_of("a", 1, 3);
    hook(2, host_of(1), "");
    raise_for(2, 1);
    give(2, "b");
    raise_for(1, 1);
    is_in(1, LANE_PARKED, LANE_AT_HOST);
    for (int i = 3; i <= 7; i++) {
        hook_of(i < 7 ? "a" : "b", i, 3);
        raise_for(i, 1);
    }
    ck_assert_uint_eq(account_of("a")->in_flight, 4);
    raise_for(2, 1);
    answer(host_of(1), 200);
    run();
    ck_assert_int_eq(lane_of(1)->state, LANE_SATED);
    ck_assert_int_eq(oldest(host_of(1))->url.p[oldest(host_of(1))->url.n - 1], '2');
    answer(host_of(3), 200);
    run();
    is_in(1, LANE_PARKED, LANE_AT_HOST);
}
END_TEST

START_TEST(counts_move_with_the_webhook)
{
    hook_of("a", 1, 3);
    raise_for(1, 10);
    ck_assert_uint_eq(account_of("a")->pending, 10);
    ck_assert_uint_eq(account_of("a")->in_flight, 8);
    ck_assert_uint_eq(account_of("a")->webhooks, 1);
    ck_assert_uint_eq(accounts_count(service->rest.accounts), 2); /* and everybody's */
    give(1, "b");
    ck_assert_uint_eq(accounts_count(service->rest.accounts), 3); /* bodies under way are a's */
    ck_assert_uint_eq(account_of("a")->pending, 0);
    ck_assert_uint_eq(account_of("b")->pending, 10);
    ck_assert_uint_eq(account_of("b")->in_flight, 8);
    ck_assert_uint_eq(account_of("b")->webhooks, 1);
    answer(host_of(1), 200);
    ck_assert_uint_eq(account_of("b")->pending, 9);
    ask("DELETE", "/Webhook/_/unsafe=true", "");
    run();
    ck_assert_uint_eq(accounts_count(service->rest.accounts), 1);
}
END_TEST

/* ---- hosts by address ---- */

START_TEST(parked_and_called)
{
    service->hooks.connections_per_host = 1;
    hook(1, A, "");
    hook(2, A, "");
    raise_for(1, 1);
    raise_for(2, 2);
    is_in_until(2, LANE_PARKED, LANE_AT_HOST, LANE_NEVER);
    answer(A, 200);
    is_in(2, LANE_CALLED, LANE_FREE);
    change(2, "{\"Delivery\":{\"TimeoutSeconds\":9}}");
    is_in(2, LANE_CALLED, LANE_FREE);
    raise_for(1, 1); /* the place is kept */
    ck_assert_int_eq(oldest(A)->url.p[oldest(A)->url.n - 1], '2');
    is_in(1, LANE_PARKED, LANE_AT_HOST);
    is_in(2, LANE_PARKED, LANE_AT_HOST);
    change(1, "{\"IsPaused\":true}");
    is_in(1, LANE_IDLE, LANE_PAUSED);
    answer(A, 200);
    is_in(2, LANE_CALLED, LANE_FREE);
    change(2, "{\"IsPaused\":true}"); /* it gives the place up */
    change(1, "{\"IsPaused\":false}");
    run();
    ck_assert_int_eq(oldest(A)->url.p[oldest(A)->url.n - 1], '1');
}
END_TEST

START_TEST(led_elsewhere_while_it_is_in_line)
{
    service->hooks.connections_per_host = 1;
    for (int i = 1; i <= 3; i++) {
        hook(i, A, "");
        raise_for(i, 1);
    }
    change(2, "{\"Destination\":\"" B "/2\"}");
    run();
    ck_assert_uint_eq(under_way(B), 1);
    answer(B, 200);
    raise_for(2, 1);
    answer(A, 200);
    is_in(3, LANE_CALLED, LANE_FREE);
    change(3, "{\"Destination\":\"" B "/3\"}");
    is_in(3, LANE_PARKED, LANE_AT_HOST);
    raise_for(1, 1);
    ck_assert_uint_eq(under_way(A), 1);
    answer(B, 200);
    run();
    ck_assert_uint_eq(under_way(B), 1);
    ask("DELETE", "/Webhook/_/unsafe=true", "");
    run();
}
END_TEST

static const char *name_of(int i)
{
    return text("http://n%d.test", i);
}

START_TEST(many_names_of_one_address)
{
    enum { NAMES = 24, EVENTS = 6 };

    service->hooks.in_flight_most = 1024;
    for (int i = 1; i <= NAMES; i++) {
        hook(i, name_of(i), "");
        raise_for(i, 1);
        connect_one(name_of(i), 1);
        answer(name_of(i), 200);
    }
    for (int i = 1; i <= NAMES; i++)
        raise_uncommitted(i, EVENTS);
    commit();
    run();
    ck_assert_uint_eq(under_way(NULL), service->hooks.connections_per_host);
    for (int i = 0; i < NAMES; i++) { /* each has its turn */
        answer(NULL, 200);
        run();
        ck_assert_uint_eq(under_way(NULL), service->hooks.connections_per_host);
    }
    for (int i = 1; i <= NAMES; i++)
        ck_assert_uint_ge(lane_of(i)->history.recent_count + under_way(name_of(i)), 2);
    for (int i = 0; i < NAMES * (EVENTS - 1); i++) {
        answer(NULL, 200);
        run();
        ck_assert_uint_le(under_way(NULL), service->hooks.connections_per_host);
    }
    ck_assert_uint_eq(deliveries_pending(service->hooks.deliveries), 0);
}
END_TEST

/* However many lanes wait for one of them. */
START_TEST(the_names_of_an_address_take_turns)
{
    static const char order[] = "aabaa";

    service->hooks.connections_per_host = 1;
    hook(1, A, "");
    hook(5, B, "");
    raise_for(1, 1);
    connect_one(A, 1);
    answer(A, 200);
    raise_for(5, 1);
    connect_one(B, 1);
    answer(B, 200);
    raise_for(1, 1);
    for (int i = 2; i <= 4; i++) {
        hook(i, A, "");
        raise_for(i, 1);
    }
    raise_for(5, 1);
    for (size_t i = 0; i < sizeof(order) - 1; i++) {
        ck_assert_int_eq(oldest(NULL)->origin->text[7], order[i]);
        answer(NULL, 200);
        run();
    }
}
END_TEST

/* Until it is known that two names lead to one address each is a host of its own. */
START_TEST(what_is_under_way_counts_from_the_connection_on)
{
    service->hooks.connections_per_host = 2;
    hook(1, A, "");
    hook(2, B, "");
    raise_for(1, 4);
    raise_for(2, 4);
    ck_assert_uint_eq(under_way(NULL), 4);
    connect_one(A, 1);
    connect_one(B, 1);
    for (int i = 0; i < 2; i++) {
        answer(A, 200);
        run();
        ck_assert_uint_eq(under_way(NULL), 3 - i);
    }
    for (int i = 0; i < 4; i++) {
        answer(NULL, 200);
        run();
        ck_assert_uint_eq(under_way(NULL), 2);
    }
}
END_TEST

START_TEST(an_origin_moves)
{
    service->hooks.connections_per_host = 2;
    hook(1, A, "");
    hook(2, B, "");
    raise_for(1, 1);
    connect_one(A, 1);
    raise_for(2, 1);
    connect_one(B, 1);
    raise_for(1, 3);
    raise_for(2, 3);
    ck_assert_uint_eq(under_way(NULL), 2);
    is_in(1, LANE_PARKED, LANE_AT_HOST);
    is_in(2, LANE_PARKED, LANE_AT_HOST);
    connect_one(B, 2); /* both have places now */
    is_in(1, LANE_CALLED, LANE_FREE);
    is_in(2, LANE_CALLED, LANE_FREE);
    run();
    ck_assert_uint_eq(under_way(A), 2);
    ck_assert_uint_eq(under_way(B), 2);
    connect_one(B, 1); /* and now too many */
    for (int i = 0; i < 2; i++) {
        answer(A, 200);
        run();
    }
    ck_assert_uint_eq(under_way(A), 0);
    answer(B, 200);
    run();
    ck_assert_uint_eq(under_way(A), 1);
    ck_assert_uint_eq(under_way(B), 1);
}
END_TEST

START_TEST(a_place_that_is_kept_in_a_host_that_fills_up)
{
    service->hooks.connections_per_host = 1;
    hook(1, A, "");
    hook(2, B, "");
    raise_for(1, 2);
    connect_one(A, 1);
    raise_for(2, 2);
    connect_one(B, 2);
    answer(A, 200);
    is_in(1, LANE_CALLED, LANE_FREE);
    connect_one(B, 1);
    is_in(1, LANE_CALLED, LANE_AT_HOST);
    run();
    is_in(1, LANE_PARKED, LANE_AT_HOST);
    ck_assert_uint_eq(under_way(A), 0);
    for (int i = 0; i < 2; i++) {
        answer(B, 200);
        run();
        ck_assert_uint_eq(under_way(NULL), 1);
        if (under_way(A) == 1)
            answer(A, 200);
        run();
    }
    ck_assert_uint_eq(deliveries_pending(service->hooks.deliveries), 0);
}
END_TEST

START_TEST(where_it_led_before_is_known)
{
    service->hooks.connections_per_host = 1;
    hook(1, A, "");
    raise_for(1, 1);
    connect_one(A, 1);
    answer(A, 200);
    ask("DELETE", "/Webhook/_/unsafe=true", "");
    run();
    hook(2, B, "");
    raise_for(2, 1);
    connect_one(B, 1);
    hook(3, A, "");
    raise_for(3, 1);
    is_in(3, LANE_PARKED, LANE_AT_HOST);
    ck_assert_uint_eq(under_way(A), 0);
}
END_TEST

START_TEST(a_proxy_tells_no_address)
{
    service->hooks.connections_per_host = 1;
    hook(1, A, "");
    hook(2, B, "");
    raise_for(1, 2);
    raise_for(2, 2);
    connect_one(A, 0);
    connect_one(B, 0);
    run();
    ck_assert_uint_eq(under_way(A), 1);
    ck_assert_uint_eq(under_way(B), 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, what_the_drawing_says);
    tcase_add_test(tc, idle);
    tcase_add_test(tc, paused_wherever_it_is);
    tcase_add_loop_test(tc, as_many_as_it_may_have, 0, ARRAY_LEN(full));
    tcase_add_test(tc, waiting);
    tcase_add_test(tc, waiting_in_order);
    tcase_add_test(tc, held);
    tcase_add_test(tc, throttled);
    tcase_add_test(tc, uncommitted);
    tcase_add_test(tc, reading);
    tcase_add_test(tc, too_many_that_are_not_known_to_be_prompt);
    tcase_add_test(tc, an_outcome_makes_room_in_its_own_turn);
    tcase_add_test(tc, the_ring);
    tcase_add_test(tc, dying);
    tcase_add_loop_test(tc, starting, 0, ARRAY_LEN(own_affairs));
    tcase_add_test(tc, half_of_the_slots_that_are_not_for_the_prompt);
    tcase_add_test(tc, half_of_all_slots_while_others_want_them);
    tcase_add_test(tc, who_comes_first_leaves_a_part);
    tcase_add_test(tc, accounts_take_turns);
    tcase_add_test(tc, a_place_is_not_kept_for_who_may_not_start);
    tcase_add_test(tc, counts_move_with_the_webhook);
    tcase_add_test(tc, parked_and_called);
    tcase_add_test(tc, led_elsewhere_while_it_is_in_line);
    tcase_add_test(tc, many_names_of_one_address);
    tcase_add_test(tc, the_names_of_an_address_take_turns);
    tcase_add_test(tc, what_is_under_way_counts_from_the_connection_on);
    tcase_add_test(tc, an_origin_moves);
    tcase_add_test(tc, a_place_that_is_kept_in_a_host_that_fills_up);
    tcase_add_test(tc, where_it_led_before_is_known);
    tcase_add_test(tc, a_proxy_tells_no_address);
}
