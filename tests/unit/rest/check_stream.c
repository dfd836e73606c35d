#include "asking.h"

#include "access/account.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/uuid.h"
#include "hooks/event.h"
#include "hooks/event_raise.h"
#include "hooks/retention.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "rest/stream.h"
#include "store/change.h"
#include "store/entity.h"
#include "store/turn.h"
#include "webhook/webhook_log.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RESOURCES                                                                                  \
    "[{\"Name\":\"Zoo.Rumour\",\"Kind\":\"EventResource\"},"                                       \
    "{\"Name\":\"Zoo.Born\",\"Kind\":\"EventResource\"}]"
#define STREAM "Accept: text/event-stream"

/* The disk has taken in that time what it was given, mostly. */
enum { CLIENTS = 4, MS = 1000000, MANY = 500, DISK_US = 10000 };

/* While it is true each look at the processor's clock finds that the time of the turn is up. */
static bool is_late;

/* In the place of the library's. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    static time_t late_s;
    int failed = (int)syscall(SYS_clock_gettime, id, out);

    if (id == CLOCK_THREAD_CPUTIME_ID && is_late)
        out->tv_sec += ++late_s;
    return failed;
}

/* Where a stream goes. */
static struct client {
    struct stream *stream; /* NULL: none, or ended */
    struct buf text;
    bool is_full;
    bool closes; /* with the next text */
    bool has_ended;
    enum stream_end why;
} clients[CLIENTS];

static void on_text(void *context, struct span text)
{
    struct client *c = context;

    ck_span_is(span_of(text.p + text.n, 2), SPAN("\r\n"));
    buf_add(&c->text, text);
    if (c->closes)
        stream_close(TAKE(c->stream));
}

static bool is_free(void *context)
{
    return !((const struct client *)context)->is_full;
}

static void on_end(void *context, enum stream_end why)
{
    struct client *c = context;

    c->stream = NULL;
    c->has_ended = true;
    c->why = why;
}

static void listen_with(struct client *c, const char *headers, const char *target)
{
    static const struct stream_sink sink = {on_text, is_free, on_end};

    ask_with(headers, "GET", target, NULL);
    ck_status(200);
    c->stream = TAKE(asking.answer.stream);
    ck_assert_ptr_nonnull(c->stream);
    stream_start(c->stream, &sink, c);
    asking_turn();
    asking_turn();
}

static void listen_to(struct client *c, const char *target)
{
    listen_with(c, STREAM, target);
}

/* Until all that there is has been sent. */
static void settle(void)
{
    asking_commit();
    for (int i = 0; i < 20; i++) {
        clock_advance(10 * MS);
        asking_turn();
    }
}

static void set_up(void)
{
    asking_open(RESOURCES);
    clock_fake(INT64_C(1700000000) * 1000000000, 1000000000);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.stream = NULL};
        buf_init(&clients[i].text, BUF_NO_CAP);
    }
}

static void tear_down(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        stream_close(clients[i].stream);
        buf_done(&clients[i].text);
    }
    ck_assert_uint_eq(streams_count(asking.service->rest.streams), 0);
    ck_assert_uint_eq(streams_bytes(asking.service->rest.streams), 0);
    ck_assert_uint_eq(asking.service->rest.everybody->streams, 0);
    ck_assert_uint_eq(asking.service->rest.everybody->bytes, 0);
    asking_close();
}

/* Its ObjectNo. */
static unsigned raise_one(const char *resource, const char *payload)
{
    uint64_t number;

    ck_asks(201, "POST", asking_printf("/Svc.Event/Resource=%s", resource), payload);
    ck_assert(span_to_u64(answered("0.ObjectNo"), &number));
    return (unsigned)number;
}

static unsigned rumour(void)
{
    return raise_one("Zoo.Rumour", "{}");
}

/* The ids that a client has got so far, and what it was told of; then it forgets them. */
static const char *got(struct client *c)
{
    static char text[4096];
    struct span rest = buf_span(&c->text);
    size_t n = 0;

    text[0] = '\0';
    while (rest.n > 0) {
        struct span line = span_split(&rest, '\n');
        bool is_told = span_starts(line, SPAN("id: ")) || span_starts(line, SPAN("event: gap")) ||
                       (span_starts(line, SPAN(":")));

        if (is_told)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s;", SPAN_FMT(line));
    }
    buf_clear(&c->text);
    return text;
}

START_TEST(what_is_new_comes_when_it_is_on_disk)
{
    unsigned first;

    rumour();
    settle();
    listen_to(&clients[0], "/Svc.Event");
    ck_assert_str_eq(got(&clients[0]), ":;");
    first = rumour();
    ck_assert_uint_eq(clients[0].text.n, 0);
    settle();
    ck_assert(span_find(buf_span(&clients[0].text), SPAN("event: Zoo.Rumour\ndata: {\"Id\":\"")) !=
              SIZE_MAX);
    ck_assert_str_eq(got(&clients[0]), asking_printf("id: %u;", first));
    settle();
    ck_assert_str_eq(got(&clients[0]), "");
}
END_TEST

static size_t count_ids(const struct client *c)
{
    struct span rest = buf_span(&c->text);
    size_t count = 0;

    while (rest.n > 0)
        count += span_starts(span_split(&rest, '\n'), SPAN("id: "));
    return count;
}

static void raise_many(struct change *change, size_t count)
{
    struct event_raised raised;
    const struct event_draft draft = {
        .resource = resource_named(asking.service->rest.resources, SPAN("Zoo.Rumour")),
        .payload = SPAN("[{}]"),
        .entities = entity_parse(SPAN("{}"), &asking.arena),
    };

    for (size_t i = 0; i < count; i++)
        ck_ok(event_raise(&asking.service->hooks, &draft, change, &raised));
}

static void store_many(struct change *change, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct uuid id = uuid_new();
        char text[UUID_TEXT_BYTES + 1];
        uint64_t number = change_next_serial(change);

        uuid_text(&id, text);
        change_put_entity(change, SPAN("Zoo.Thing"), &id, number,
                          span_str(asking_printf("{\"Id\":\"%s\",\"ObjectNo\":%llu}", text,
                                                 (unsigned long long)number)));
    }
}

/* Though it is on disk before; and though no event comes behind. */
START_TEST(of_a_long_change_it_tells_when_all_can_see_it)
{
    struct turn *turn = asking.service->turn;
    struct change change;
    uint64_t serial;
    unsigned turns = 0;

    listen_to(&clients[0], "/Svc.Event");
    settle();
    turn_hold(turn);
    change_init(&change, turn, &asking.arena);
    raise_many(&change, MANY);
    store_many(&change, MANY);
    is_late = true;
    ck_ok(turn_apply_long(turn, &change, &serial));
    change_done(&change);
    for (; turn_is_applying(turn); turns++) {
        ck_assert_uint_eq(count_ids(&clients[0]), 0);
        usleep(DISK_US);
        clock_advance(10 * MS);
        asking_turn();
    }
    is_late = false;
    ck_assert_uint_gt(turns, 3);
    settle();
    ck_assert_uint_eq(count_ids(&clients[0]), MANY);
}
END_TEST

START_TEST(it_begins_where_it_is_told_to)
{
    unsigned a = rumour(), b = rumour(), c = rumour();

    settle();
    listen_to(&clients[0], "/Svc.Event/ObjectNo%3E0");
    listen_with(&clients[1], asking_printf(STREAM "\nLast-Event-ID: %u", a), "/Svc.Event");
    listen_with(&clients[2], asking_printf(STREAM "\nLast-Event-ID: %u", a),
                asking_printf("/Svc.Event/ObjectNo%%3E%u", b));
    listen_to(&clients[3], asking_printf("/Svc.Event/ObjectNo%%3E%u", c + 1));
    settle();
    ck_assert_str_eq(got(&clients[0]), asking_printf(":;id: %u;id: %u;id: %u;", a, b, c));
    ck_assert_str_eq(got(&clients[1]), asking_printf(":;id: %u;id: %u;", b, c));
    ck_assert_str_eq(got(&clients[2]), asking_printf(":;id: %u;", c));
    a = rumour();
    b = rumour();
    settle();
    ck_assert_str_eq(got(&clients[2]), asking_printf("id: %u;id: %u;", a, b));
    ck_assert_str_eq(got(&clients[3]), asking_printf(":;id: %u;", b));
}
END_TEST

/* Those of one view are written once, wherever they began. */
START_TEST(what_several_ask_for_is_written_once)
{
    const struct metrics *m = asking.service->metrics;
    uint64_t before;

    for (int i = 0; i < 5; i++)
        rumour();
    settle();
    listen_to(&clients[0], "/Svc.Event/ObjectNo%3E0");
    listen_to(&clients[1], "/Svc.Event");
    listen_with(&clients[2], STREAM "\nLast-Event-ID: 1", "/svc.event");
    listen_to(&clients[3], "/Svc.Event/Resource=Zoo.Born");
    settle();
    before = m->stream_entities;
    for (int i = 0; i < 10; i++)
        rumour();
    settle();
    ck_assert_uint_eq(m->stream_entities - before, 10);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_gt(strlen(got(&clients[i])), 10 * strlen("id: 1;"));
    ck_assert_str_eq(got(&clients[3]), ":;");
    ck_assert_uint_gt(streams_bytes(asking.service->rest.streams), 0);
    ck_assert_uint_eq(asking.service->rest.everybody->bytes,
                      streams_bytes(asking.service->rest.streams));
    ck_assert_uint_eq(asking.service->rest.everybody->streams, 4);
}
END_TEST

/* Who was behind gets texts of its own, and then those of the others again. */
START_TEST(who_is_slow_reads_on_when_it_can)
{
    const struct metrics *m = asking.service->metrics;
    const char *numbers = "";
    uint64_t before;

    listen_to(&clients[0], "/Svc.Event");
    listen_to(&clients[1], "/Svc.Event");
    settle();
    got(&clients[0]);
    got(&clients[1]);
    clients[0].is_full = true;
    for (int i = 0; i < 100; i++) {
        numbers = asking_printf("%sid: %u;", numbers, rumour());
        if (i % 10 == 9)
            settle();
    }
    ck_assert_str_eq(got(&clients[0]), "");
    ck_assert_str_eq(got(&clients[1]), numbers);
    clients[0].is_full = false;
    stream_go_on(clients[0].stream);
    settle();
    ck_assert_str_eq(got(&clients[0]), numbers);
    before = m->stream_entities;
    rumour();
    settle();
    ck_assert_uint_eq(m->stream_entities - before, 1);
    ck_assert_str_eq(got(&clients[0]), got(&clients[1]));
}
END_TEST

START_TEST(silence_is_broken_by_a_comment)
{
    unsigned number;

    listen_to(&clients[0], "/Svc.Event");
    settle();
    got(&clients[0]);
    for (int i = 0; i < 130; i++) {
        clock_advance(100 * MS);
        asking_turn();
    }
    ck_assert_str_eq(got(&clients[0]), "");
    for (int i = 0; i < 30; i++) {
        clock_advance(100 * MS);
        asking_turn();
    }
    ck_assert_str_eq(got(&clients[0]), ":;");
    number = rumour();
    settle();
    ck_assert_str_eq(got(&clients[0]), asking_printf("id: %u;", number));
}
END_TEST

static void forget_all(void)
{
    asking_commit();
    asking.service->retention.event_days = 0;
    retention_make_room(asking.service->hooks.retention);
    asking.service->retention.event_days = 1;
    ck_assert_uint_eq(events_count(asking.service->hooks.events), 0);
}

START_TEST(what_was_forgotten_before_it_came_there_it_is_told_of)
{
    unsigned first = rumour(), last;

    settle();
    listen_to(&clients[0], "/Svc.Event");
    settle();
    clients[0].is_full = true;
    rumour();
    last = rumour();
    forget_all();
    clients[0].is_full = false;
    stream_go_on(clients[0].stream);
    settle();
    ck_assert(span_find(buf_span(&clients[0].text),
                        span_str(asking_printf("event: gap\ndata: {\"From\":%u,\"To\":%u}\n\n",
                                               first + 1, last))) != SIZE_MAX);
    ck_assert_str_eq(got(&clients[0]), ":;event: gap;");
    listen_with(&clients[1], asking_printf(STREAM "\nLast-Event-ID: %u", last), "/Svc.Event");
    listen_to(&clients[2], "/Svc.Event");
    last = rumour();
    settle();
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(got(&clients[i]), asking_printf("%sid: %u;", i == 0 ? "" : ":;", last));
}
END_TEST

START_TEST(an_id_is_one_number)
{
    rumour();
    settle();
    ask_with(STREAM "\nLast-Event-ID: 1\nLast-Event-ID: 2", "GET", "/Svc.Event", NULL);
    ck_problem(ERR_INVALID_CONDITION_VALUE, "'1, 2' is no ObjectNo");
    ask_with(STREAM "\nLast-Event-ID: 1000", "GET", "/Svc.Event", NULL);
    ck_problem(ERR_INVALID_CONDITION_VALUE, "1000 is no ObjectNo that there has been");
    listen_with(&clients[0], STREAM "\nLast-Event-ID:", "/Svc.Event");
    settle();
    ck_assert_str_eq(got(&clients[0]), ":;");
}
END_TEST

START_TEST(it_may_be_closed_at_any_time)
{
    listen_to(&clients[0], "/Svc.Event/ObjectNo%3E0");
    listen_to(&clients[1], "/Svc.Event/ObjectNo%3E0");
    clients[0].closes = true;
    rumour();
    settle();
    ck_assert_ptr_null(clients[0].stream);
    ck_assert_uint_eq(streams_count(asking.service->rest.streams), 1);
    ask_with(STREAM, "GET", "/Svc.Event", NULL);
    ck_assert_uint_eq(streams_count(asking.service->rest.streams), 2);
    response_reset(&asking.answer);
    ck_assert_uint_eq(streams_count(asking.service->rest.streams), 1);
    ask_with(STREAM, "HEAD", "/Svc.Event", NULL);
    ck_status(200);
    ck_assert_ptr_null(asking.answer.stream);
}
END_TEST

START_TEST(there_are_no_more_than_the_limit)
{
    asking.service->limits.streams = 2;
    listen_to(&clients[0], "/Svc.Event");
    listen_to(&clients[1], "/Svc.Admin.WebhookLog");
    ask_with(STREAM, "GET", "/Svc.Event", NULL);
    ck_problem(ERR_OVERLOADED, "Streams (2)");
    ck_header_eq("Retry-After", "5");
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_STREAMS], 1);
    stream_close(TAKE(clients[0].stream));
    listen_to(&clients[0], "/Svc.Event");
}
END_TEST

START_TEST(who_has_most_makes_room_for_others)
{
    asking_add_key("one", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("two", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking.service->limits.streams = 3;
    for (int i = 0; i < 3; i++)
        listen_with(&clients[i], STREAM "\nAuthorization: apikey one", "/Svc.Event");
    ask_with(STREAM "\nAuthorization: apikey one", "GET", "/Svc.Event", NULL);
    ck_problem(ERR_OVERLOADED, "Streams (3)");
    listen_with(&clients[3], STREAM "\nAuthorization: apikey two", "/Svc.Event");
    settle();
    ck_assert(clients[2].has_ended);
    ck_assert_int_eq(clients[2].why, STREAM_MADE_ROOM);
    ck_assert(!clients[1].has_ended && !clients[3].has_ended);
    ask_with(STREAM "\nAuthorization: apikey two", "GET", "/Svc.Event", NULL);
    ck_problem(ERR_OVERLOADED, "Streams (3)");
}
END_TEST

START_TEST(a_key_that_is_withdrawn_ends_them)
{
    unsigned number;

    asking_add_key("one", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("two", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    listen_with(&clients[0], STREAM "\nAuthorization: apikey one", "/Svc.Event");
    listen_with(&clients[1], STREAM "\nAuthorization: apikey two", "/Svc.Event");
    settle();
    got(&clients[0]);
    got(&clients[1]);
    asking_remove_key("two");
    ask_with("Authorization: apikey one", "POST", "/Svc.Event/Resource=Zoo.Rumour", "{}");
    ck_status(201);
    number = (unsigned)asking_serial() - 1;
    settle();
    ck_assert(clients[1].has_ended);
    ck_assert_int_eq(clients[1].why, STREAM_KEY_GONE);
    ck_assert_ptr_null(strstr(got(&clients[1]), "id"));
    ck_assert_str_eq(got(&clients[0]), asking_printf("id: %u;", number));
}
END_TEST

START_TEST(a_condition_that_takes_too_much_ends_its_streams)
{
    struct buf payload;

    clock_real();
    asking.service->limits.request_cpu_ms = 1;
    listen_to(&clients[0], "/Svc.Event/Payload.*.a.*=1&Payload.*.a.*=2&Payload.*.a.*!=3&"
                           "Payload.*.a.*!=4&Payload.*.a.*!=5&Payload.*.a.*!=6");
    listen_to(&clients[1], "/Svc.Event/Resource=Zoo.Born");
    asking.service->limits.request_cpu_ms = 1000;
    buf_init(&payload, BUF_NO_CAP);
    buf_add_str(&payload, "{\"a\":[1");
    for (int i = 0; i < 90000; i++)
        buf_add_str(&payload, ",2");
    buf_add_str(&payload, "]}");
    for (int i = 0; i < 8; i++) {
        raise_one("Zoo.Rumour", buf_text(&payload));
        asking.service->limits.request_cpu_ms = 1;
        asking_commit();
        asking.service->limits.request_cpu_ms = 1000;
    }
    asking.service->limits.request_cpu_ms = 1;
    while (!clients[0].has_ended)
        asking_turn();
    asking.service->limits.request_cpu_ms = 1000;
    ck_assert_int_eq(clients[0].why, STREAM_TOO_COSTLY);
    ck_assert(!clients[1].has_ended);
    buf_done(&payload);
}
END_TEST

START_TEST(all_end_when_the_service_does)
{
    listen_to(&clients[0], "/Svc.Event");
    listen_to(&clients[1], "/Svc.Admin.WebhookLog");
    streams_drain(asking.service->rest.streams);
    settle();
    for (int i = 0; i < 2; i++) {
        ck_assert(clients[i].has_ended);
        ck_assert_int_eq(clients[i].why, STREAM_SHUTDOWN);
    }
    ask_with(STREAM, "GET", "/Svc.Event", NULL);
    ck_problem(ERR_OVERLOADED, "shutting down");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_is_new_comes_when_it_is_on_disk);
    tcase_add_test(tc, of_a_long_change_it_tells_when_all_can_see_it);
    tcase_add_test(tc, it_begins_where_it_is_told_to);
    tcase_add_test(tc, what_several_ask_for_is_written_once);
    tcase_add_test(tc, who_is_slow_reads_on_when_it_can);
    tcase_add_test(tc, silence_is_broken_by_a_comment);
    tcase_add_test(tc, what_was_forgotten_before_it_came_there_it_is_told_of);
    tcase_add_test(tc, an_id_is_one_number);
    tcase_add_test(tc, it_may_be_closed_at_any_time);
    tcase_add_test(tc, there_are_no_more_than_the_limit);
    tcase_add_test(tc, who_has_most_makes_room_for_others);
    tcase_add_test(tc, a_key_that_is_withdrawn_ends_them);
    tcase_add_test(tc, a_condition_that_takes_too_much_ends_its_streams);
    tcase_add_test(tc, all_end_when_the_service_does);
}
