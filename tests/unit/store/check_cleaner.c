/* Cleaning moves records, and nobody but the journal sees it: serials go on without holes, what is
 * stored keeps its versions and its digest, live and after a restart, however often it is cleaned.
 */
#include "store_testing.h"

#include "testing.h"

#include "journal/journal_files.h"
#include "store/turn_wait.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 60, ROUNDS = 1500 };

static struct store_fixture f;
static struct uuid ids[KEPT];
static uint64_t versions[KEPT], numbers[KEPT];
static uint64_t changes; /* of one serial each */

/* What a walk over the journal's files finds. */
static struct {
    uint64_t first; /* serial */
    uint64_t next;
    uint64_t oldest; /* segment */
    size_t copies;   /* records that take no serial */
    size_t of_none;  /* segments of such copies alone */
} walked;

static void set_up(void)
{
    changes = 0;
    store_fixture_init(&f);
    store_fixture_open(&f);
}

static void tear_down(void)
{
    store_fixture_done(&f);
}

static struct collection *kept(void)
{
    return store_collection(f.store, SPAN("A.Kept"));
}

static void keep_some(void)
{
    for (int i = 0; i < KEPT; i++, changes++) {
        char members[500];
        struct entity *e;

        snprintf(members, sizeof(members), "\"N\":%d,\"Text\":\"%0400d\"", i, i);
        e = store_fixture_insert(&f, "A.Kept", members);
        ids[i] = e->id;
        versions[i] = e->version;
        numbers[i] = e->object_no;
    }
}

static void ck_as_kept(void)
{
    ck_assert_uint_eq(journal_next_serial(turn_journal(f.turn)), 1 + changes);
    ck_assert_uint_eq(collection_count(kept()), KEPT);
    ck_assert_uint_eq(collection_version(kept()), versions[KEPT - 1]);
    for (int i = 0; i < KEPT; i++) {
        const struct entity *e = collection_find(kept(), &ids[i]);

        ck_assert_ptr_nonnull(e);
        ck_assert_uint_eq(e->version, versions[i]);
        ck_assert_uint_eq(e->object_no, numbers[i]);
    }
}

static struct err *on_record(void *context, const struct segment_record *record)
{
    (void)context;
    walked.first = walked.first == 0 ? record->serial : walked.first;
    ck_assert(walked.next == 0 || record->serial == walked.next);
    walked.next = record->serial + record->serials;
    walked.copies += record->serials == 0;
    return NULL;
}

static void walk(void)
{
    int fd = open(f.directory, O_RDONLY | O_DIRECTORY);
    struct journal_walk w;
    uint64_t *numbers_there;
    size_t count;

    memset(&walked, 0, sizeof(walked));
    ck_ok(journal_list(f.directory, fd, &numbers_there, &count));
    walked.oldest = numbers_there[0];
    journal_walk_init(&w, f.directory, fd);
    w.on_record = on_record;
    for (size_t i = 0; i < count; i++) {
        struct journal_walk_end end;
        uint64_t before = walked.next, records = w.records;

        ck_ok(journal_walk_segment(&w, numbers_there[i], i + 1 == count, &end));
        walked.of_none += before == walked.next && w.records > records;
    }
    journal_walk_done(&w);
    mem_free(numbers_there);
    close(fd);
}

/* Closes, walks, and opens again: the same comes back. */
static void check_reload(void)
{
    struct store_digest before = store_digest(f.store), after;

    store_fixture_close(&f);
    walk();
    ck_assert_uint_eq(walked.next, 1 + changes);
    store_fixture_open(&f);
    after = store_digest(f.store);
    ck_assert_uint_eq(before.sum, after.sum);
    ck_assert_uint_eq(before.objects, after.objects);
    ck_as_kept();
}

static void rest(void)
{
    store_fixture_commit(&f);
    for (int i = 0; i < 50; i++)
        store_fixture_turn(&f);
}

/* Something comes and goes, so that what is kept is moved again and again. */
static void make_garbage(void)
{
    char members[500];

    for (int round = 0; round < ROUNDS; round++) {
        struct entity *e;

        snprintf(members, sizeof(members), "\"N\":%d,\"Text\":\"%0300d\"", round, round);
        e = store_fixture_insert(&f, "A.Passing", members);
        store_fixture_delete(&f, e);
        changes += 2;
        if (round % 16 == 0)
            store_fixture_commit(&f);
    }
    rest();
}

START_TEST(moves_are_seen_by_nobody)
{
    struct store_digest before;

    keep_some();
    before = store_digest(f.store);
    for (int round = 0; round < 3; round++) {
        make_garbage();
        ck_assert_uint_eq(store_digest(f.store).sum, before.sum);
        ck_as_kept();
        check_reload();
        ck_assert_uint_gt(walked.oldest, 5 * ((uint64_t)round + 1));
        ck_assert_uint_ge(walked.copies, KEPT);
    }
}
END_TEST

/* A visitor that has seen all sees nothing of a move, and after it what has changed, no more. */
static int visited;

static void visit(struct entity *e, void *arg)
{
    (void)arg;
    ck_assert_uint_eq(e->version, journal_next_serial(turn_journal(f.turn)) - 1);
    visited++;
}

static void move_all(void)
{
    for (size_t n = store_live_count(f.store); n > 0; n--) {
        struct change change;
        uint64_t serial;

        change_init(&change, f.turn, &f.arena);
        change.is_move = true;
        ck_ok(store_move(f.store, store_oldest(f.store), &change));
        ck_ok(turn_apply(f.turn, &change, &serial));
        ck_assert_uint_eq(serial, journal_next_serial(turn_journal(f.turn)) - 1);
        change_done(&change);
    }
    arena_reset(&f.arena);
}

START_TEST(a_visitor_sees_no_move)
{
    uint64_t seen, last;

    keep_some();
    store_fixture_insert(&f, "A.Other", "\"N\":1");
    changes++;
    last = journal_next_serial(turn_journal(f.turn)) - 1;
    seen = collection_visit_newer(kept(), UINT64_MAX, visit, NULL);
    ck_assert_uint_eq(seen, last);
    for (int i = 0; i < 3; i++) {
        move_all();
        store_fixture_commit(&f);
        seen = collection_visit_newer(kept(), seen, visit, NULL);
        ck_assert_uint_eq(seen, last);
    }
    ck_assert_int_eq(visited, 0);
    store_fixture_update(&f, collection_first(kept()), "\"N\":100");
    ck_assert_uint_eq(collection_visit_newer(kept(), seen, visit, NULL), last + 1);
    ck_assert_int_eq(visited, 1);
    move_all();
    ck_assert_uint_eq(collection_visit_newer(kept(), last + 1, visit, NULL), last + 1);
    ck_assert_int_eq(visited, 1);
}
END_TEST

/* Moves alone fill segments, which all begin with the same serial. */
START_TEST(segments_of_moves_alone)
{
    keep_some();
    store_fixture_commit(&f);
    for (int i = 0; i < 15; i++) {
        move_all();
        store_fixture_commit(&f);
    }
    check_reload();
    ck_assert_uint_gt(walked.of_none, 0);
    make_garbage();
    check_reload();
}
END_TEST

/* The segment goes when the moves are on disk, though the last serial long is. */
static void on_committed(struct turn_wait *wait)
{
    (void)wait;
    visited++;
}

START_TEST(who_waits_for_all_waits_for_moves)
{
    struct turn_wait wait = {.on_committed = on_committed}, other = wait;
    uint64_t last;

    visited = 0;
    keep_some();
    store_fixture_commit(&f);
    last = journal_next_serial(turn_journal(f.turn)) - 1;
    move_all();
    ck_assert(turn_is_committed(f.turn, last));
    turn_wait_for_all(f.turn, &wait);
    turn_wait_for_all(f.turn, &other);
    turn_unwait(f.turn, &other);
    ck_assert_int_eq(visited, 0);
    while (!journal_idle(turn_journal(f.turn)))
        loop_run_once(&f.loop);
    ck_assert_int_eq(visited, 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    visited = 0;
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, moves_are_seen_by_nobody);
    tcase_add_test(tc, a_visitor_sees_no_move);
    tcase_add_test(tc, segments_of_moves_alone);
    tcase_add_test(tc, who_waits_for_all_waits_for_moves);
}
