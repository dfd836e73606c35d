/* The content of a batch of the log. */
#include "store/turn_batch.h"

#include "testing.h"

#include "store/record.h"

static struct buf content;

static void begin(void)
{
    buf_init(&content, BUF_NO_CAP);
}

static void end(void)
{
    buf_done(&content);
}

static void add(unsigned kind, uint32_t serials, bool more, const char *body)
{
    turn_batch_add(&content, &(struct turn_batch_record){
                                 .kind = (uint16_t)kind,
                                 .serials = serials,
                                 .more = more,
                                 .body = span_str(body),
                             });
}

START_TEST(what_was_added_is_read)
{
    struct turn_batch_record record;
    struct span rest;

    add(RECORD_ENTITY, 1, true, "first");
    add(RECORD_EVENT, 3, false, "");
    ck_ok(turn_batch_check(buf_span(&content), 4, RECORD_KIND_END));
    rest = buf_span(&content);
    ck_ok(turn_batch_next(&rest, &record));
    ck_assert_uint_eq(record.kind, RECORD_ENTITY);
    ck_assert_uint_eq(record.serials, 1);
    ck_assert(record.more);
    ck_span_eq(record.body, "first");
    ck_ok(turn_batch_next(&rest, &record));
    ck_assert_uint_eq(record.kind, RECORD_EVENT);
    ck_assert_uint_eq(record.serials, 3);
    ck_assert(!record.more);
    ck_assert_uint_eq(record.body.n, 0);
    ck_assert_uint_eq(rest.n, 0);
}
END_TEST

static void refused(uint32_t count, const char *words)
{
    ck_fails(turn_batch_check(buf_span(&content), count, RECORD_KIND_END), ERR_STORAGE_FAILURE,
             words);
}

START_TEST(what_is_wrong_is_said)
{
    add(RECORD_ENTITY, 1, false, "body");
    refused(2, "has 1 serials and says 2");
    content.n--;
    refused(1, "ends within a record");
    content.n = 5;
    refused(1, "ends within a record");
    buf_clear(&content);
    add(RECORD_ENTITY, 1, true, "body");
    refused(1, "ends within a change");
    content.p[2] = 4;
    refused(1, "a newer one wrote it");
    content.p[2] = 0;
    content.p[4] = 0;
    refused(0, "takes no serial");
    buf_clear(&content);
    add(RECORD_KIND_END, 1, false, "body");
    refused(1, "is of kind 10, which this version does not know");
    buf_clear(&content);
    add(0, 1, false, "body");
    refused(1, "is of kind 0");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, what_was_added_is_read);
    tcase_add_test(tc, what_is_wrong_is_said);
}
