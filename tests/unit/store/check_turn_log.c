/* Changes of a node that leads: what is on disk, who is told, and what becomes of it when the log
 * does not confirm. */
#include "store/turn_log.h"

#include "clustering.h"
#include "testing.h"

#include "store/record.h"
#include "store/turn_wait.h"

#include <stdio.h>
#include <string.h>

#define LOG "/svcd/prod/log/"

/* Longer than the log may take to confirm; the lease of the node goes on. */
enum { LATE_MS = 11000, SOON_MS = 500 };

struct waiting {
    struct turn_wait wait;
    unsigned committed, late;
};

static void on_committed(struct turn_wait *wait)
{
    CONTAINER_OF(wait, struct waiting, wait)->committed++;
}

static void on_late(struct turn_wait *wait)
{
    CONTAINER_OF(wait, struct waiting, wait)->late++;
}

static struct store_fixture *f(void)
{
    return &clustering.f;
}

static uint64_t next_serial(void)
{
    return journal_next_serial(turn_journal(f()->turn));
}

/* A change, and who waits for it. */
static void change(struct waiting *w, const char *members)
{
    *w = (struct waiting){.wait = {.on_committed = on_committed, .on_late = on_late}};
    store_fixture_insert(f(), "Shop.Person", members);
    turn_wait(f()->turn, &w->wait, next_serial() - 1);
}

static struct err *try_change(void)
{
    struct change c;
    uint64_t serial;
    struct err *e;

    change_init(&c, f()->turn, &f()->arena);
    change_delete_entity(&c, SPAN("Shop.Person"), &(struct uuid){{0}});
    e = turn_apply(f()->turn, &c, &serial);
    change_done(&c);
    return e;
}

static size_t count(void)
{
    return collection_count(store_collection(f()->store, SPAN("Shop.Person")));
}

static void begin(void)
{
    clustering_begin();
    clustering_start();
}

static void lead(void)
{
    clustering_lead(clustering.replica);
}

/* What a process that starts anew finds. */
static void check_reload(size_t entities)
{
    turn_log_end(f()->turn);
    replica_free(clustering.replica);
    clustering.replica = NULL;
    etcd_play_end();
    store_fixture_close(f());
    store_fixture_open(f());
    ck_assert_uint_eq(count(), entities);
    etcd_play_begin(&f()->loop);
    clustering_start();
}

START_TEST(nothing_is_changed_by_who_does_not_lead)
{
    uint64_t before = next_serial();

    ck_assert(!turn_takes_changes(f()->turn));
    ck_fails(try_change(), ERR_NO_LEADER, "does not lead");
    ck_assert_uint_eq(next_serial(), before);
    clustering_lead(clustering.replica);
    ck_assert(turn_takes_changes(f()->turn));
    ck_ok(try_change());
    turn_log_close(f()->turn);
    ck_fails(try_change(), ERR_NO_LEADER, "does not lead");
    while (!turn_log_is_settled(f()->turn))
        clustering_pass(10);
}
END_TEST

START_TEST(the_log_comes_before_the_journal)
{
    struct waiting first, second;
    size_t batches;

    lead();
    batches = etcd_count(LOG);
    etcd_fate(LOG, FATE_HELD, 1);
    change(&first, "\"Name\":\"Ada\"");
    clustering_pass(SOON_MS);
    change(&second, "\"Name\":\"Bob\"");
    clustering_pass(SOON_MS);
    ck_assert_uint_eq(journal_committed_serial(turn_journal(f()->turn)), 0);
    ck_assert_uint_eq(etcd_count(LOG), batches);
    ck_assert(!turn_log_is_settled(f()->turn));
    etcd_let_go();
    etcd_fate(LOG, FATE_HELD, 1); /* the second, which gathered meanwhile */
    while (first.committed == 0)
        clustering_pass(0); /* while the disk is slow no time passes: else the second is late */
    ck_assert_uint_eq(etcd_count(LOG), batches + 1);
    clustering_pass(SOON_MS);
    ck_assert_uint_eq(second.committed, 0);
    ck_assert_uint_eq(journal_committed_serial(turn_journal(f()->turn)), next_serial() - 2);
    etcd_let_go();
    while (second.committed == 0)
        clustering_pass(10);
    ck_assert_uint_eq(etcd_count(LOG), batches + 2);
    check_reload(2);
}
END_TEST

static void move_oldest(void)
{
    struct change c;
    uint64_t serial;

    change_init(&c, f()->turn, &f()->arena);
    c.is_move = true;
    ck_ok(store_move(f()->store, store_oldest(f()->store), &c));
    ck_ok(turn_apply(f()->turn, &c, &serial));
    change_done(&c);
}

/* What was wanted while the disk was busy is written without what has come since. */
START_TEST(moves_take_no_change_along)
{
    struct journal *journal = turn_journal(f()->turn);
    struct waiting kept, w;
    uint64_t before;

    lead();
    change(&kept, "\"Name\":\"Kept\"");
    while (kept.committed == 0)
        clustering_pass(0);
    before = next_serial() - 1;
    move_oldest();
    journal_commit(journal); /* it is being written */
    move_oldest();
    journal_commit(journal); /* it will be, next */
    etcd_fate(LOG, FATE_HELD, 1);
    change(&w, "\"Name\":\"Ada\"");
    clustering_pass(SOON_MS);
    ck_assert_uint_eq(journal_committed_serial(journal), before);
    ck_assert_uint_eq(w.committed, 0);
    etcd_let_go();
    while (w.committed == 0)
        clustering_pass(10);
    check_reload(2);
}
END_TEST

START_TEST(many_changes_are_a_few_batches)
{
    enum { CHANGES = 600 };
    static char members[2048] = "\"Name\":\"";
    struct waiting last;
    size_t batches, n = strlen(members);

    lead();
    batches = etcd_count(LOG);
    memset(members + n, 'x', 1024);
    members[n + 1024] = '"';
    for (int i = 1; i < CHANGES; i++)
        store_fixture_insert(f(), "Shop.Person", members);
    change(&last, members);
    while (last.committed == 0)
        clustering_pass(10);
    ck_assert_uint_ge(etcd_count(LOG), batches + 2);
    ck_assert_uint_le(etcd_count(LOG), batches + 5);
    check_reload(CHANGES);
}
END_TEST

START_TEST(who_waits_too_long_is_told)
{
    struct waiting first, second, third;

    lead();
    etcd_fate(LOG, FATE_UNSENT, 1000);
    change(&first, "\"Name\":\"Ada\"");
    clustering_pass(SOON_MS);
    change(&second, "\"Name\":\"Bob\"");
    clustering_pass(LATE_MS);
    ck_assert_uint_eq(first.late, 1);
    ck_assert_uint_eq(second.late, 1);
    ck_assert(turn_log_is_late(f()->turn));
    ck_fails(try_change(), ERR_NO_LEADER, "does not confirm");
    third = (struct waiting){.wait = {.on_committed = on_committed, .on_late = on_late}};
    turn_wait(f()->turn, &third.wait, next_serial() - 1); /* who reads what was changed */
    clustering_pass(10);
    ck_assert_uint_eq(third.late, 1);
    ck_assert_uint_eq(clustering.lost, 0);
    etcd_fate(LOG, FATE_DONE, 0);
    etcd_fate_of_all(FATE_DONE);
    while (!turn_log_is_settled(f()->turn))
        clustering_pass(100);
    ck_assert(!turn_log_is_late(f()->turn));
    ck_ok(try_change());
    ck_assert_uint_eq(first.committed + second.committed + third.committed, 0);
    clustering_pass(SOON_MS);
    check_reload(2);
}
END_TEST

START_TEST(what_the_log_declines_is_forgotten)
{
    struct waiting first, second, kept, quiet;

    lead();
    change(&kept, "\"Name\":\"Kept\"");
    while (kept.committed == 0)
        clustering_pass(10);
    etcd_fate(LOG, FATE_HELD, 1);
    change(&first, "\"Name\":\"Ada\"");
    clustering_pass(SOON_MS);
    change(&second, "\"Name\":\"Bob\"");
    change(&quiet, "\"Name\":\"Eve\"");
    turn_unwait(f()->turn, &quiet.wait);
    etcd_remove("/svcd/prod/leader");
    etcd_let_go();
    while (clustering.lost == 0)
        clustering_pass(10);
    clustering_pass(10);
    ck_assert_uint_eq(first.late, 1);
    ck_assert_uint_eq(second.late, 1);
    ck_assert_uint_eq(quiet.late, 0);
    ck_assert_uint_eq(first.committed + second.committed, 0);
    ck_assert(turn_log_is_settled(f()->turn));
    ck_fails(try_change(), ERR_NO_LEADER, "");
    ck_assert_uint_eq(count(), 4);
    check_reload(1);
}
END_TEST

/* Told, and gone before it has heard. */
START_TEST(who_leaves_is_not_told)
{
    struct waiting w;

    lead();
    etcd_fate(LOG, FATE_UNSENT, 1000);
    change(&w, "\"Name\":\"Ada\"");
    clustering_pass(LATE_MS);
    ck_assert_uint_eq(w.late, 1);
    turn_wait(f()->turn, &w.wait, next_serial() - 1);
    turn_unwait(f()->turn, &w.wait);
    clustering_pass(10);
    ck_assert_uint_eq(w.late, 1);
}
END_TEST

START_TEST(what_was_never_sent_is_lost)
{
    struct waiting w;

    lead();
    change(&w, "\"Name\":\"Ada\"");
    turn_log_led(f()->turn);
    clustering_pass(10);
    ck_assert_uint_eq(clustering.lost, 1);
    ck_assert_uint_eq(w.late, 1);
    check_reload(0);
}
END_TEST

/* A record of the kind that the next version has. */
static struct err *try_new_kind(void)
{
    struct change c;
    uint64_t serial;
    struct err *e;

    change_init(&c, f()->turn, &f()->arena);
    buf_add_str(change_begin(&c), "new");
    change_end(&c, RECORD_KIND_END, 1);
    e = turn_apply(f()->turn, &c, &serial);
    change_done(&c);
    return e;
}

static void say_what_is_known(const char *node, unsigned records)
{
    char key[64], value[96];

    snprintf(key, sizeof(key), "/svcd/prod/node/%s", node);
    snprintf(value, sizeof(value), "%032d {\"Next\":1,\"Records\":%u}", 0, records);
    etcd_store(key, span_str(value), 0);
    clustering_pass(4000);
}

START_TEST(what_a_node_does_not_know_is_not_written)
{
    struct span node;

    lead();
    say_what_is_known("b", RECORD_KIND_END);
    ck_assert_uint_eq(turn_log_holds_back(f()->turn, &node), 0); /* nobody has wanted it yet */
    ck_fails(try_new_kind(), ERR_CONFLICT, "node 'b' of the cluster does not know records of kind");
    ck_assert_uint_eq(turn_log_holds_back(f()->turn, &node), RECORD_KIND_END);
    ck_span_eq(node, "b");
    ck_ok(try_change()); /* others go on */
    say_what_is_known("b", RECORD_KIND_END + 1);
    ck_assert_uint_eq(turn_log_holds_back(f()->turn, &node), 0);
    etcd_store("/svcd/prod/node/c", SPAN("00000000000000000000000000000000 {\"Next\":1}"), 0);
    clustering_pass(4000);
    ck_fails(try_new_kind(), ERR_CONFLICT, "node 'c'"); /* it does not say */
    etcd_remove("/svcd/prod/node/c");
    clustering_pass(4000);
    ck_assert_uint_eq(turn_log_holds_back(f()->turn, &node), 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, clustering_end);
    tcase_add_test(tc, nothing_is_changed_by_who_does_not_lead);
    tcase_add_test(tc, the_log_comes_before_the_journal);
    tcase_add_test(tc, moves_take_no_change_along);
    tcase_add_test(tc, many_changes_are_a_few_batches);
    tcase_add_test(tc, who_waits_too_long_is_told);
    tcase_add_test(tc, what_the_log_declines_is_forgotten);
    tcase_add_test(tc, who_leaves_is_not_told);
    tcase_add_test(tc, what_was_never_sent_is_lost);
    tcase_add_test(tc, what_a_node_does_not_know_is_not_written);
}
