/* A change that takes several turns of the loop, by a scripted clock: each look at it finds that
 * the time of the turn is up. */
#include "store_testing.h"

#include "testing.h"

#include "base/budget.h"
#include "base/fiber.h"
#include "query/conditions.h"
#include "store/snapshot.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PEOPLE "Shop.Person"

/* The disk has taken in that time what it was given, mostly. */
enum { MANY = 4000, LOOK_NS = 6000000, DISK_US = 20000 };

static struct store_fixture f;
static struct collection *people;
static struct change change;
static uint64_t cpu_ns;
static unsigned freed;

/* In the place of the library's: of the thread's processor time. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    if (id != CLOCK_THREAD_CPUTIME_ID)
        return (int)syscall(SYS_clock_gettime, id, out);
    cpu_ns += LOOK_NS;
    *out = (struct timespec){(time_t)(cpu_ns / 1000000000), (long)(cpu_ns % 1000000000)};
    return 0;
}

static void begin(void)
{
    store_fixture_init(&f);
    store_fixture_open(&f);
    people = store_collection(f.store, SPAN(PEOPLE));
    for (unsigned i = 0; i < MANY; i++) {
        store_fixture_insert(&f, PEOPLE, "\"Age\":1");
        if (i % 500 == 0)
            store_fixture_commit(&f);
    }
    store_fixture_commit(&f);
    freed = 0;
}

static void end(void)
{
    store_fixture_done(&f);
    fiber_forget_stacks();
}

static bool is_old(const struct entity *e)
{
    return span_find(entity_json(e), SPAN("\"Age\":1")) != SIZE_MAX;
}

static size_t count_old(void)
{
    size_t count = 0;

    for (const struct entity *e = collection_first(people); e != NULL;
         e = collection_next(people, e))
        count += is_old(e);
    return count;
}

/* Every second one is changed, of the others one half is removed. */
static void prepare(void)
{
    unsigned i = 0;

    change_init(&change, f.turn, &f.arena);
    for (const struct entity *e = collection_first(people); e != NULL;
         e = collection_next(people, e), i++) {
        char json[128], id[UUID_TEXT_BYTES + 1];

        uuid_text(&e->id, id);
        snprintf(json, sizeof(json), "{\"Id\":\"%s\",\"ObjectNo\":%llu,\"Age\":2}", id,
                 (unsigned long long)e->object_no);
        if (i % 2 == 0)
            change_put_entity(&change, SPAN(PEOPLE), &e->id, e->object_no, span_str(json));
        else if (i % 4 == 1)
            change_delete_entity(&change, SPAN(PEOPLE), &e->id);
    }
}

static uint64_t hand_over(void)
{
    uint64_t serial;

    turn_hold(f.turn);
    prepare();
    ck_ok(turn_apply_long(f.turn, &change, &serial));
    change_done(&change);
    ck_assert_uint_gt(serial, 0);
    return serial;
}

/* All are there, and as they were. */
static void check_before(void)
{
    static const struct conditions all;
    struct snapshot *before = turn_before(f.turn);
    struct snapshot_walk walk;
    const struct entity *e;
    size_t count = 0;

    ck_assert_ptr_nonnull(before);
    snapshot_walk(before, people, &all, &walk);
    while ((e = snapshot_walk_next(&walk)) != NULL) {
        ck_assert(is_old(snapshot_entity(before, e)));
        count++;
    }
    snapshot_walk_drop(&walk);
    ck_assert_uint_eq(count, MANY);
}

static void check_after(void)
{
    ck_assert_uint_eq(collection_count(people), MANY - MANY / 4);
    ck_assert_uint_eq(count_old(), MANY / 4);
}

static void check_reload(void)
{
    struct store_digest before, after;

    store_fixture_commit(&f);
    before = store_digest(f.store);
    store_fixture_close(&f);
    store_fixture_open(&f);
    after = store_digest(f.store);
    ck_assert_uint_eq(before.sum, after.sum);
    ck_assert_uint_eq(before.objects, after.objects);
}

START_TEST(it_is_seen_when_all_of_it_is_applied)
{
    uint64_t serial = hand_over();
    unsigned turns = 0, mixed = 0;

    ck_assert(turn_is_applying_to(f.turn, serial));
    for (; turn_is_applying(f.turn); turns++) {
        ck_assert(turn_is_held(f.turn));
        check_before();
        mixed += count_old() < MANY - 1 && count_old() > MANY / 2;
        store_fixture_turn(&f);
    }
    ck_assert_uint_gt(turns, 3);
    ck_assert_uint_gt(mixed, 0);
    ck_assert_ptr_null(turn_before(f.turn));
    check_after();
    while (turn_is_held(f.turn))
        store_fixture_turn(&f);
    check_reload();
}
END_TEST

START_TEST(the_journal_has_it_from_the_beginning)
{
    struct store_digest after;
    uint64_t serial = hand_over();

    ck_assert(turn_is_applying(f.turn));
    while (!turn_is_committed(f.turn, serial))
        store_fixture_turn(&f);
    store_fixture_close(&f);
    store_fixture_open(&f);
    people = store_collection(f.store, SPAN(PEOPLE));
    check_after();
    after = store_digest(f.store);
    ck_assert_uint_eq(after.objects, MANY - MANY / 4);
}
END_TEST

static void on_free(struct turn_line *line)
{
    ck_assert(!list_linked(&line->link));
    ck_assert(!turn_is_held(f.turn));
    freed++;
}

START_TEST(what_is_on_disk_is_not_seen_before)
{
    uint64_t serial = hand_over();

    for (; turn_is_applying(f.turn); store_fixture_turn(&f)) {
        ck_assert(turn_is_seen(f.turn, MANY));
        ck_assert(!turn_is_seen(f.turn, MANY + 1));
        ck_assert(!turn_is_seen(f.turn, serial));
        usleep(DISK_US);
    }
    store_fixture_commit(&f);
    ck_assert(turn_is_seen(f.turn, serial));
    ck_assert(!turn_is_seen(f.turn, serial + 1));
}
END_TEST

START_TEST(those_in_line_are_told_once)
{
    struct turn_line line = {.on_free = on_free}, other = {.on_free = on_free};

    hand_over();
    turn_line_up(f.turn, &line);
    turn_line_up(f.turn, &line);
    turn_line_up(f.turn, &other);
    turn_line_leave(f.turn, &other);
    while (turn_is_held(f.turn)) {
        ck_assert_uint_eq(freed, 0);
        store_fixture_turn(&f);
    }
    store_fixture_turn(&f);
    ck_assert_uint_eq(freed, 1);
    store_fixture_turn(&f);
    ck_assert_uint_eq(freed, 1);
}
END_TEST

START_TEST(who_comes_before_them_may_hold_it_again)
{
    struct turn_line line = {.on_free = on_free};

    turn_hold(f.turn);
    turn_line_up(f.turn, &line);
    turn_release(f.turn);
    turn_hold(f.turn);
    store_fixture_turn(&f);
    ck_assert_uint_eq(freed, 0);
    turn_release(f.turn);
    store_fixture_turn(&f);
    ck_assert_uint_eq(freed, 1);
}
END_TEST

START_TEST(who_cannot_wait_finds_it_applied)
{
    hand_over();
    store_fixture_turn(&f);
    ck_assert(turn_is_applying(f.turn));
    store_fixture_insert(&f, PEOPLE, "\"Age\":3");
    ck_assert(!turn_is_held(f.turn));
    ck_assert_uint_eq(collection_count(people), MANY - MANY / 4 + 1);
    ck_assert_uint_eq(count_old(), MANY / 4);
    check_reload();
}
END_TEST

/* ---- on a fiber, as requests do it ---- */

static uint64_t given;

static void hand_over_slowly(void *arg)
{
    (void)arg;
    ck_ok(turn_apply_long(f.turn, &change, &given));
}

static struct fiber *begin_to_hand_over(struct budget *budget)
{
    struct fiber *fiber = fiber_new(hand_over_slowly, NULL);

    given = UINT64_MAX;
    turn_hold(f.turn);
    prepare();
    budget_init(budget, 0);
    budget->is_on_fiber = true;
    budget_enter(budget);
    ck_assert(fiber_resume(fiber)); /* it gives way */
    budget_leave(budget);
    return fiber;
}

static void finish(struct budget *budget, struct fiber *fiber)
{
    bool goes_on = true;

    while (goes_on) {
        budget_enter(budget);
        goes_on = fiber_resume(fiber);
        budget_leave(budget);
    }
    change_done(&change);
}

START_TEST(it_is_handed_over_in_slices)
{
    struct budget budget;
    struct fiber *fiber = begin_to_hand_over(&budget);
    uint64_t next = journal_next_serial(turn_journal(f.turn));

    ck_assert(!turn_is_applying(f.turn));
    store_fixture_commit(&f);
    finish(&budget, fiber);
    ck_assert_uint_eq(given, next + MANY * 3 / 4 - 1);
    ck_assert(turn_is_applying_to(f.turn, given));
    while (turn_is_held(f.turn))
        store_fixture_turn(&f);
    check_after();
    check_reload();
}
END_TEST

START_TEST(who_cannot_wait_comes_before_it)
{
    struct budget budget;
    struct fiber *fiber = begin_to_hand_over(&budget);

    store_fixture_insert(&f, PEOPLE, "\"Age\":3");
    finish(&budget, fiber);
    ck_assert_uint_eq(given, 0);
    ck_assert(turn_is_held(f.turn) && !turn_is_applying(f.turn));
    ck_assert_uint_eq(count_old(), MANY);
    turn_release(f.turn);
    check_reload();
    people = store_collection(f.store, SPAN(PEOPLE));
    ck_assert_uint_eq(collection_count(people), MANY + 1);
}
END_TEST

START_TEST(nobody_wants_it_any_more)
{
    struct budget budget;
    struct fiber *fiber = begin_to_hand_over(&budget);

    budget.state = BUDGET_ENDED;
    finish(&budget, fiber);
    ck_assert_uint_eq(given, 0);
    ck_assert_uint_eq(count_old(), MANY);
    turn_release(f.turn);
    store_fixture_insert(&f, PEOPLE, "\"Age\":3");
    check_reload();
}
END_TEST

static void apply_at_once(void *arg)
{
    uint64_t serial;

    (void)arg;
    prepare();
    ck_ok(turn_apply(f.turn, &change, &serial));
    change_done(&change);
}

START_TEST(one_that_is_not_long_is_applied_in_one_turn)
{
    struct budget budget;

    budget_init(&budget, 0);
    budget.is_on_fiber = true;
    budget_enter(&budget);
    ck_assert(!fiber_resume(fiber_new(apply_at_once, NULL)));
    budget_leave(&budget);
    ck_assert_uint_eq(budget.turns, 0);
    ck_assert_uint_eq(budget.holds, 0);
    check_after();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, it_is_seen_when_all_of_it_is_applied);
    tcase_add_test(tc, the_journal_has_it_from_the_beginning);
    tcase_add_test(tc, what_is_on_disk_is_not_seen_before);
    tcase_add_test(tc, those_in_line_are_told_once);
    tcase_add_test(tc, who_comes_before_them_may_hold_it_again);
    tcase_add_test(tc, who_cannot_wait_finds_it_applied);
    tcase_add_test(tc, it_is_handed_over_in_slices);
    tcase_add_test(tc, who_cannot_wait_comes_before_it);
    tcase_add_test(tc, nobody_wants_it_any_more);
    tcase_add_test(tc, one_that_is_not_long_is_applied_in_one_turn);
}
