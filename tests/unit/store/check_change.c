/* Changes while they are filled. How they are carried out: check_turn.c. */
#include "store_testing.h"

#include "testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/uuid.h"
#include "journal/journal.h"
#include "store/change.h"
#include "store/change_record.h"
#include "store/record.h"
#include "store/store.h"
#include "store/turn.h"

static struct store_fixture f;
static struct arena arena;
static struct change change;

static void set_up(void)
{
    store_fixture_init(&f);
    store_fixture_open(&f);
    arena_init(&arena);
    store_fixture_insert(&f, "A.B", "\"N\":1");
    change_init(&change, f.turn, &arena);
}

static void tear_down(void)
{
    change_done(&change);
    arena_done(&arena);
    store_fixture_done(&f);
}

static struct span body_of(size_t i)
{
    const struct change_record *r = &change.records[i];

    return span_sub(buf_span(&change.bodies), r->offset, r->offset + r->n);
}

START_TEST(serials_are_known_beforehand)
{
    uint64_t first = journal_next_serial(turn_journal(f.turn));

    ck_assert_uint_eq(change.first_serial, first);
    ck_assert_uint_eq(change_next_serial(&change), first);
    for (uint32_t serials = 1; serials < 5; serials++) {
        uint64_t next = change_next_serial(&change);

        buf_add_str(change_begin(&change), "body");
        ck_assert_uint_eq(change_next_serial(&change), next);
        change_end(&change, RECORD_EVENT, serials);
        ck_assert_uint_eq(change_next_serial(&change), next + serials);
    }
    ck_assert_uint_eq(journal_next_serial(turn_journal(f.turn)), first);
}
END_TEST

/* Of any length, also none, and however many there are. */
START_TEST(bodies_stand_one_behind_the_other)
{
    enum { MANY = 500 };

    for (size_t i = 0; i < MANY; i++) {
        struct buf *b = change_begin(&change);

        for (size_t n = 0; n < i; n++)
            buf_add_char(b, (char)i);
        change_end(&change, RECORD_DELIVERY, 1);
    }
    ck_assert_uint_eq(change.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        struct span body = body_of(i);

        ck_assert_uint_eq(change.records[i].kind, RECORD_DELIVERY);
        ck_assert_uint_eq(body.n, i);
        for (size_t n = 0; n < i; n++)
            ck_assert_int_eq(body.p[n], (char)i);
    }
}
END_TEST

START_TEST(the_records_of_entities)
{
    struct uuid id = uuid_new(), other = uuid_new();
    uint64_t first = change_next_serial(&change);
    struct record_entity put;
    struct record_entity_gone gone;

    change_put_entity(&change, SPAN("A.B"), &id, first, SPAN("{\"N\":1}"));
    change_put_entity(&change, SPAN("A.C"), &id, 77, SPAN("{\"N\":2}"));
    change_delete_entity(&change, SPAN("A.D"), &other);
    ck_assert_uint_eq(change.count, 3);
    ck_assert_uint_eq(change_next_serial(&change), first + 3);
    ck_assert_uint_eq(change.records[0].kind, RECORD_ENTITY);
    ck_ok(record_read_entity(body_of(0), &put));
    ck_span_eq(put.resource, "A.B");
    ck_assert(uuid_eq(&put.id, &id));
    ck_assert_uint_eq(put.object_no, first);
    ck_assert_uint_eq(put.version, first);
    ck_span_eq(put.json, "{\"N\":1}");
    ck_ok(record_read_entity(body_of(1), &put));
    ck_assert_uint_eq(put.object_no, 77);
    ck_assert_uint_eq(put.version, first + 1);
    ck_assert_uint_eq(change.records[2].kind, RECORD_ENTITY_GONE);
    ck_ok(record_read_entity_gone(body_of(2), &gone));
    ck_span_eq(gone.resource, "A.D");
    ck_assert(uuid_eq(&gone.id, &other));
}
END_TEST

/* What was only filled has not happened. */
START_TEST(a_change_may_be_given_up)
{
    struct store_digest before = store_digest(f.store), after;
    struct uuid id = uuid_new();
    uint64_t next = change_next_serial(&change), serial;

    change_put_entity(&change, SPAN("A.B"), &id, next, SPAN("{}"));
    change_delete_entity(&change, SPAN("A.B"), &id);
    change_done(&change);
    change_done(&change);
    ck_assert_uint_eq(change.count, 0);
    after = store_digest(f.store);
    ck_assert_uint_eq(after.sum, before.sum);
    ck_ok(turn_apply(f.turn, &change, &serial));
    ck_assert_uint_eq(serial, 0);
    ck_assert_uint_eq(journal_next_serial(turn_journal(f.turn)), next);
}
END_TEST

/* Two may be filled at once, as one that gives way is: each has a buffer of its own. */
START_TEST(a_buffer_goes_from_change_to_change)
{
    struct change other;
    const char *warm;

    buf_add_str(change_begin(&change), "one");
    change_end(&change, RECORD_EVENT, 1);
    warm = change.bodies.p;
    change_init(&other, f.turn, &arena);
    buf_add_str(change_begin(&other), "two");
    change_end(&other, RECORD_EVENT, 1);
    ck_assert_ptr_ne(other.bodies.p, warm);
    ck_span_eq(body_of(0), "one");
    change_done(&change);
    change_init(&change, f.turn, &arena);
    ck_assert_ptr_eq(change_begin(&change)->p, warm);
    ck_assert_uint_eq(change.bodies.n, 0);
    change_done(&other);
}
END_TEST

/* What a large one took is given back, but for a usual amount. */
START_TEST(a_large_buffer_is_not_kept)
{
    enum { LARGE = 1 << 20, USUAL = 1 << 16 };

    buf_reserve(change_begin(&change), LARGE);
    ck_assert_uint_ge(change.bodies.size, LARGE);
    change_done(&change);
    change_begin(&change);
    ck_assert_uint_lt(change.bodies.size, USUAL);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, serials_are_known_beforehand);
    tcase_add_test(tc, bodies_stand_one_behind_the_other);
    tcase_add_test(tc, the_records_of_entities);
    tcase_add_test(tc, a_change_may_be_given_up);
    tcase_add_test(tc, a_buffer_goes_from_change_to_change);
    tcase_add_test(tc, a_large_buffer_is_not_kept);
}
