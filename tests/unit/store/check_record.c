/* The bodies of records, byte by byte: journals that were written must be read for ever. */
#include "testing.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/record.h"

#define ID(c)                                                                                      \
    {                                                                                              \
        .b = { c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c }                                    \
    }
#define A16 "aaaaaaaaaaaaaaaa"
#define B16 "bbbbbbbbbbbbbbbb"
#define C16 "cccccccccccccccc"
#define LE64(digit) digit "\0\0\0\0\0\0\0"

/* Each is written from a struct, and read into another that is written again. */

static void write_entity(struct buf *b)
{
    record_add_entity(b, &(struct record_entity){.resource = SPAN("A.B"),
                                                 .id = ID('a'),
                                                 .object_no = 1,
                                                 .version = 2,
                                                 .json = SPAN("{\"N\":1}")});
}

static struct err *rewrite_entity(struct span body, struct buf *b)
{
    struct record_entity r;

    TRY(record_read_entity(body, &r));
    record_add_entity(b, &r);
    return NULL;
}

static void write_entity_gone(struct buf *b)
{
    record_add_entity_gone(b, &(struct record_entity_gone){.resource = SPAN("A.B"), .id = ID('a')});
}

static struct err *rewrite_entity_gone(struct span body, struct buf *b)
{
    struct record_entity_gone r;

    TRY(record_read_entity_gone(body, &r));
    record_add_entity_gone(b, &r);
    return NULL;
}

static const struct record_event event = {
    .id = ID('a'),
    .object_no = 1,
    .time_unix_ns = -2,
    .is_binary = true,
    .is_hidden = true,
    .depth = 3,
    .matched = 4,
    .resource = SPAN_INIT("A.B"),
    .content_type = SPAN_INIT("t/p"),
    .webhooks = SPAN_INIT(B16 C16),
    .payload = SPAN_INIT("\0\1"),
};

static void write_event(struct buf *b)
{
    record_add_event(b, &event);
}

static void write_plain_event(struct buf *b)
{
    struct record_event plain = event;

    plain.is_binary = plain.is_hidden = false;
    plain.webhooks = plain.content_type = plain.payload = (struct span){NULL, 0};
    record_add_event(b, &plain);
}

static void write_event_of_tenant(struct buf *b)
{
    struct record_event of_tenant = event;

    of_tenant.tenant = SPAN("acme");
    record_add_event(b, &of_tenant);
}

static void write_event_of_client(struct buf *b)
{
    struct record_event of_client = event;

    of_client.client_id = SPAN("order-17");
    record_add_event(b, &of_client);
}

static void write_cloudevent(struct buf *b)
{
    struct record_event cloudevent = event;

    cloudevent.tenant = SPAN("acme");
    cloudevent.ce = SPAN("{\"id\":\"1\"}");
    record_add_event(b, &cloudevent);
}

static void write_event_of_both(struct buf *b)
{
    struct record_event of_both = event;

    of_both.tenant = SPAN("acme");
    of_both.client_id = SPAN("order-17");
    record_add_event(b, &of_both);
}

static struct err *rewrite_event(struct span body, struct buf *b)
{
    struct record_event r;

    TRY(record_read_event(body, &r));
    record_add_event(b, &r);
    return NULL;
}

static void write_number(struct buf *b)
{
    record_add_number(b, 1);
}

static struct err *rewrite_number(struct span body, struct buf *b)
{
    uint64_t number;

    TRY(record_read_number(body, &number));
    record_add_number(b, number);
    return NULL;
}

static void write_delivery(struct buf *b)
{
    record_add_delivery(b, &(struct record_delivery){.object_no = 1,
                                                     .event_no = 2,
                                                     .webhook = ID('a'),
                                                     .state = 3,
                                                     .attempts = 4,
                                                     .last_status = 0x1f6,
                                                     .next_unix_ns = -2,
                                                     .version = 5,
                                                     .last_error = SPAN("why")});
}

static struct err *rewrite_delivery(struct span body, struct buf *b)
{
    struct record_delivery r;

    TRY(record_read_delivery(body, &r));
    record_add_delivery(b, &r);
    return NULL;
}

static void write_lane(struct buf *b)
{
    record_add_lane(b, &(struct record_lane){.webhook = ID('a'),
                                             .failing_since_unix_ns = 1,
                                             .hold_until_unix_ns = -2});
}

static void write_troubled_lane(struct buf *b)
{
    record_add_lane(b, &(struct record_lane){.webhook = ID('a'), .is_troubled = true});
}

static void write_agreed_lane(struct buf *b)
{
    record_add_lane(b, &(struct record_lane){.webhook = ID('a'),
                                             .failing_since_unix_ns = 1,
                                             .hold_until_unix_ns = -2,
                                             .is_troubled = true,
                                             .has_consent = true,
                                             .consent = B16,
                                             .rate_per_minute = 120});
}

static struct err *rewrite_lane(struct span body, struct buf *b)
{
    struct record_lane r;

    TRY(record_read_lane(body, &r));
    record_add_lane(b, &r);
    return NULL;
}

static void write_once(struct buf *b)
{
    record_add_once(b, &(struct record_once){.key = A16,
                                             .body = B16 C16,
                                             .time_unix_ns = -2,
                                             .event_no = 1,
                                             .event = ID('a'),
                                             .webhooks = 2,
                                             .resource = SPAN("A.B")});
}

static struct err *rewrite_once(struct span body, struct buf *b)
{
    struct record_once r;

    TRY(record_read_once(body, &r));
    record_add_once(b, &r);
    return NULL;
}

static void write_once_gone(struct buf *b)
{
    record_add_once_gone(b, &(struct record_once_gone){.key = A16});
}

static struct err *rewrite_once_gone(struct span body, struct buf *b)
{
    struct record_once_gone r;

    TRY(record_read_once_gone(body, &r));
    record_add_once_gone(b, &r);
    return NULL;
}

#define NO16 LE64("\0") LE64("\0")
#define MINUS_2 "\xfe\xff\xff\xff\xff\xff\xff\xff"

static const struct {
    unsigned kind;
    const char *name;
    void (*write)(struct buf *b);
    struct err *(*rewrite)(struct span body, struct buf *b);
    struct span body;
    size_t was; /* so long it was once, and what it lacks then has its default; 0: always as now */
} rows[] = {
    {1, "entity", write_entity, rewrite_entity,
     SPAN_INIT("\3\0A.B" A16 LE64("\1") LE64("\2") "\7\0\0\0{\"N\":1}")},
    {2, "entity-gone", write_entity_gone, rewrite_entity_gone, SPAN_INIT("\3\0A.B" A16)},
    {3, "event", write_event, rewrite_event,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\3\3\4\0\0\0\3\0A.B\3\0t/p\2\0\0\0" B16 C16 "\2\0\0\0\0\1")},
    {3, "event", write_event_of_tenant, rewrite_event,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\7\3\4\0\0\0\3\0A.B\3\0t/p\2\0\0\0" B16 C16
                                      "\2\0\0\0\0\1\4\0acme")},
    {3, "event", write_event_of_client, rewrite_event,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\13\3\4\0\0\0\3\0A.B\3\0t/p\2\0\0\0" B16 C16
                                      "\2\0\0\0\0\1\10\0order-17")},
    {3, "event", write_event_of_both, rewrite_event,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\17\3\4\0\0\0\3\0A.B\3\0t/p\2\0\0\0" B16 C16
                                      "\2\0\0\0\0\1\4\0acme\10\0order-17")},
    {3, "event", write_cloudevent, rewrite_event,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\27\3\4\0\0\0\3\0A.B\3\0t/p\2\0\0\0" B16 C16
                                      "\2\0\0\0\0\1\4\0acme\12\0{\"id\":\"1\"}")},
    {3, "event", write_plain_event, rewrite_event,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\0\3\4\0\0\0\3\0A.B\0\0\0\0\0\0\0\0\0\0")},
    {4, "event-gone", write_number, rewrite_number, SPAN_INIT(LE64("\1"))},
    {5, "delivery", write_delivery, rewrite_delivery,
     SPAN_INIT(LE64("\1") LE64("\2") A16 "\3\4\0\xf6\1" MINUS_2 LE64("\5") "\3\0why")},
    {6, "delivery-gone", write_number, rewrite_number, SPAN_INIT(LE64("\1"))},
    {7, "lane", write_lane, rewrite_lane, SPAN_INIT(A16 LE64("\1") MINUS_2), 0},
    {7, "lane", write_troubled_lane, rewrite_lane, SPAN_INIT(A16 LE64("\0") LE64("\0") "\200"), 32},
    {7, "lane", write_agreed_lane, rewrite_lane,
     SPAN_INIT(A16 LE64("\1") MINUS_2 "\201" B16 "\170\0\0\0"), 32},
    {8, "once", write_once, rewrite_once,
     SPAN_INIT(A16 B16 C16 MINUS_2 LE64("\1") A16 "\2\0\0\0\3\0A.B")},
    {9, "once-gone", write_once_gone, rewrite_once_gone, SPAN_INIT(A16)},
};

START_TEST(bytes_are_as_they_always_were)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    rows[_i].write(&b);
    ck_span_is(buf_span(&b), rows[_i].body);
    ck_assert_str_eq(record_kind_name(rows[_i].kind), rows[_i].name);
    buf_done(&b);
}
END_TEST

START_TEST(what_is_written_is_read)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    ck_ok(rows[_i].rewrite(rows[_i].body, &b));
    ck_span_is(buf_span(&b), rows[_i].body);
    ck_ok(record_check(rows[_i].kind, rows[_i].body));
    buf_done(&b);
}
END_TEST

START_TEST(what_is_cut_off_is_refused)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t n = 0; n < rows[_i].body.n; n++) {
        char *copy = mem_alloc(n + 1); /* so that reading past it is seen */
        struct span cut = span_of(copy, n);

        if (n == rows[_i].was && n > 0) {
            mem_free(copy);
            continue;
        }

        memcpy(copy, rows[_i].body.p, n);
        ck_fails(rows[_i].rewrite(cut, &b), ERR_STORAGE_FAILURE, "is too short");
        ck_fails(record_check(rows[_i].kind, cut), ERR_STORAGE_FAILURE, "is too short");
        mem_free(copy);
    }
    ck_assert_uint_eq(b.n, 0);
    buf_done(&b);
}
END_TEST

/* A later version may append members. */
START_TEST(what_comes_behind_is_left_out)
{
    struct buf longer, b;

    buf_init(&b, BUF_NO_CAP);
    buf_init(&longer, BUF_NO_CAP);
    buf_add(&longer, rows[_i].body);
    buf_add_str(&longer, "more");
    ck_ok(rows[_i].rewrite(buf_span(&longer), &b));
    ck_span_is(buf_span(&b), rows[_i].body);
    ck_ok(record_check(rows[_i].kind, buf_span(&longer)));
    buf_done(&longer);
    buf_done(&b);
}
END_TEST

/* As what comes behind was added later. */
START_TEST(lanes_of_older_versions_have_no_consent)
{
    struct record_lane lane = {.has_consent = true};

    ck_ok(record_read_lane(SPAN(A16 LE64("\1") MINUS_2), &lane));
    ck_assert(!lane.has_consent);
    ck_assert_int_eq(lane.failing_since_unix_ns, 1);
    ck_assert_uint_eq(lane.rate_per_minute, 0);
}
END_TEST

START_TEST(unknown_kinds)
{
    static const unsigned kinds[] = {0, RECORD_KIND_END, 200, 65535};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        ck_assert_str_eq(record_kind_name(kinds[i]), "?");
        ck_fails(record_check(kinds[i], SPAN("body")), ERR_STORAGE_FAILURE, "");
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, bytes_are_as_they_always_were, 0, ARRAY_LEN(rows));
    tcase_add_loop_test(tc, what_is_written_is_read, 0, ARRAY_LEN(rows));
    tcase_add_loop_test(tc, what_is_cut_off_is_refused, 0, ARRAY_LEN(rows));
    tcase_add_loop_test(tc, what_comes_behind_is_left_out, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, lanes_of_older_versions_have_no_consent);
    tcase_add_test(tc, unknown_kinds);
}
