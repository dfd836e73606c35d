/* A node that follows: what another one has appended is applied here, in the same order. */
#include "store/turn_log.h"

#include "clustering.h"
#include "testing.h"

#include "store/record.h"
#include "store/turn_batch.h"

#include <string.h>

static struct store_fixture *f(void)
{
    return &clustering.f;
}

static uint64_t next_serial(void)
{
    return journal_next_serial(turn_journal(f()->turn));
}

static size_t count(void)
{
    return collection_count(store_collection(f()->store, SPAN("Shop.Person")));
}

/* The other one leads. */
static void begin(void)
{
    clustering_begin();
    clustering_start_other();
    clustering_lead(clustering.other);
}

static void follow(void)
{
    clustering_start();
    while (replica_role(clustering.replica) != REPLICA_FOLLOWING)
        clustering_pass(10);
}

static void wait_for(uint64_t serial)
{
    while (!turn_is_committed(f()->turn, serial))
        clustering_pass(10);
}

START_TEST(a_batch_is_applied)
{
    struct change c;
    uint64_t serial;

    follow();
    clustering_add_entity(1, "Ada", false);
    clustering_add_entity(2, "Bob", true);
    clustering_add_entity(3, "Eve", false);
    clustering_append(1, 3);
    wait_for(3);
    ck_assert_uint_eq(count(), 3);
    ck_assert_uint_eq(next_serial(), 4);
    ck_assert_uint_ge(clustering.followed, 1);
    ck_assert(!turn_takes_changes(f()->turn));
    change_init(&c, f()->turn, &f()->arena);
    change_delete_entity(&c, SPAN("Shop.Person"), &(struct uuid){{0}});
    ck_fails(turn_apply(f()->turn, &c, &serial), ERR_NO_LEADER, "does not lead");
    change_done(&c);
}
END_TEST

START_TEST(who_follows_can_lead_then)
{
    struct entity *e;

    follow();
    clustering_add_entity(1, "Ada", false);
    clustering_append(1, 1);
    wait_for(1);
    replica_free(clustering.other);
    clustering.other = NULL;
    etcd_remove("/svcd/prod/leader"); /* its lease ends */
    clustering_lead(clustering.replica);
    e = store_fixture_insert(f(), "Shop.Person", "\"Name\":\"Bob\"");
    ck_assert_uint_eq(e->object_no, 2);
    wait_for(2);
    ck_assert_uint_eq(count(), 2);
}
END_TEST

/* Many batches of one change each, and one change of very many records. */
START_TEST(large_ones_give_way)
{
    enum { BATCHES = 20, RECORDS = 3000 };

    follow();
    for (uint64_t i = 1; i <= BATCHES; i++) {
        clustering_add_entity(i, "Ada", false);
        clustering_append(i, 1);
    }
    for (uint64_t i = 1; i <= RECORDS; i++)
        clustering_add_entity(BATCHES + i, "Bob", i < RECORDS);
    clustering_append(BATCHES + 1, RECORDS);
    clustering_add_entity(BATCHES + RECORDS + 1, "Eve", false);
    clustering_append(BATCHES + RECORDS + 1, 1);
    wait_for(BATCHES + RECORDS + 1);
    ck_assert_uint_eq(count(), BATCHES + RECORDS + 1);
    ck_assert_uint_eq(next_serial(), BATCHES + RECORDS + 2);
}
END_TEST

START_TEST(what_is_not_understood_is_not_taken)
{
    const struct turn_batch_record unknown = {RECORD_KIND_END, 1, false, SPAN("new")};

    follow();
    clustering_add_entity(1, "Ada", false);
    turn_batch_add(&clustering.content, &unknown);
    clustering_append(1, 2);
    while (!clustering.is_stuck)
        clustering_pass(10);
    clustering_add_entity(3, "Bob", false);
    clustering_append(3, 1);
    clustering_pass(1000);
    ck_assert_uint_eq(count(), 0);
    ck_assert_uint_eq(next_serial(), 1);
    ck_assert_int_eq(replica_role(clustering.replica), REPLICA_FOLLOWING);
}
END_TEST

/* The journal was cut within a batch, between two changes. */
START_TEST(what_the_journal_has_is_passed_over)
{
    store_fixture_insert(f(), "Shop.Person", "\"Name\":\"Ada\"");
    clustering_add_entity(1, "Ada", false);
    clustering_add_entity(2, "Bob", false);
    clustering_append(1, 2);
    clustering_start();
    wait_for(2);
    ck_assert_uint_eq(count(), 2);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, clustering_end);
    tcase_add_test(tc, a_batch_is_applied);
    tcase_add_test(tc, who_follows_can_lead_then);
    tcase_add_test(tc, large_ones_give_way);
    tcase_add_test(tc, what_is_not_understood_is_not_taken);
    tcase_add_test(tc, what_the_journal_has_is_passed_over);
}
