#include "store_testing.h"

#include "testing.h"

#include "base/clock.h"
#include "base/rng.h"
#include "store/once.h"

#include <string.h>

#define NOW_NS INT64_C(1790000000000000000)
#define HOUR_NS UINT64_C(3600000000000)

enum { KEEP_SECONDS = 7200 };

static struct store_fixture f;
static struct once *once;

static void make_once(struct store *store)
{
    once = once_new(store, KEEP_SECONDS);
}

static void free_once(void)
{
    once_free(once);
}

static void set_up(void)
{
    clock_fake(NOW_NS, 0);
    store_fixture_init(&f);
    f.make_module = make_once;
    f.free_module = free_once;
    store_fixture_open(&f);
}

static void tear_down(void)
{
    store_fixture_done(&f);
}

static void key_of(uint32_t number, uint8_t key[RECORD_ONCE_KEY_BYTES])
{
    memset(key, 0xa5, RECORD_ONCE_KEY_BYTES);
    memcpy(key, &number, sizeof(number));
}

static const struct once_entry *find(uint32_t number)
{
    uint8_t key[RECORD_ONCE_KEY_BYTES];

    key_of(number, key);
    return once_find(once, key);
}

static void apply(struct change *change)
{
    uint64_t serial;

    ck_ok(turn_apply(f.turn, change, &serial));
    change_done(change);
    arena_reset(&f.arena);
}

/* An entry whose every member follows from `number` and the time. */
static void remember(uint32_t number)
{
    struct record_once record = {
        .time_unix_ns = clock_unix_ns(), .webhooks = number, .resource = SPAN("Shop.OrderPlaced")};
    struct change change;

    key_of(number, record.key);
    memset(record.body, (int)(number & 0xff), sizeof(record.body));
    change_init(&change, f.turn, &f.arena);
    record.event_no = change_next_serial(&change);
    record.event = uuid_from_serial(record.time_unix_ns, 0, record.event_no);
    once_remember(&change, &record);
    apply(&change);
}

static void forget(const struct once_entry *entry)
{
    struct change change;

    change_init(&change, f.turn, &f.arena);
    change.frees_space = true;
    once_forget(&change, entry);
    apply(&change);
}

static void ck_entry(uint32_t number)
{
    const struct once_entry *entry = find(number);
    uint8_t body[RECORD_ONCE_BODY_BYTES];

    ck_assert_msg(entry != NULL, "%u is not there", number);
    memset(body, (int)(number & 0xff), sizeof(body));
    ck_assert_mem_eq(entry->record.body, body, sizeof(body));
    ck_assert_uint_eq(entry->record.webhooks, number);
    ck_assert_uint_eq(uuid_serial(&entry->record.event), entry->record.event_no);
    ck_span_eq(entry->record.resource, "Shop.OrderPlaced");
}

/* The digest after closing and opening again must be the same. */
static void reload(void)
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

START_TEST(what_is_remembered_is_found)
{
    ck_assert_ptr_null(find(1));
    remember(1);
    remember(2);
    ck_entry(1);
    ck_entry(2);
    ck_assert_ptr_null(find(3));
    ck_assert_uint_eq(once_count(once), 2);
    reload();
    ck_entry(1);
    ck_entry(2);
    ck_assert_uint_eq(once_count(once), 2);
}
END_TEST

/* So that whoever answers with the entry waits as the first answer does. */
START_TEST(an_entry_waits_for_its_own_commit)
{
    remember(1);
    ck_assert(!turn_is_committed(f.turn, find(1)->stored.serial));
    store_fixture_commit(&f);
    ck_assert(turn_is_committed(f.turn, find(1)->stored.serial));
}
END_TEST

START_TEST(what_is_too_old_is_not_found)
{
    remember(1);
    clock_advance(HOUR_NS);
    remember(2);
    clock_advance(HOUR_NS - 1);
    ck_entry(1);
    clock_advance(1);
    ck_assert_ptr_null(find(1));
    ck_entry(2);
    ck_assert_uint_eq(once_count(once), 2); /* it is retention that takes out */
    reload();
    ck_assert_ptr_null(find(1));
    ck_entry(2);
}
END_TEST

START_TEST(an_old_key_is_taken_over)
{
    remember(1);
    remember(2);
    clock_advance(2 * HOUR_NS);
    ck_assert_ptr_null(find(1));
    remember(1);
    ck_entry(1);
    ck_assert_uint_eq(once_count(once), 2);
    ck_assert_uint_eq(once_first(once)->record.webhooks, 2);
    reload();
    ck_entry(1);
    ck_assert_uint_eq(once_count(once), 2);
}
END_TEST

START_TEST(what_is_forgotten_stays_away)
{
    remember(1);
    remember(2);
    remember(3);
    forget(find(2));
    ck_assert_ptr_null(find(2));
    reload();
    ck_assert_ptr_null(find(2));
    ck_assert_uint_eq(once_count(once), 2);
    remember(2);
    ck_entry(2);
    forget(find(1));
    reload();
    ck_entry(2);
    ck_entry(3);
}
END_TEST

static void ck_in_order(void)
{
    uint64_t last = 0;
    size_t count = 0;

    for (const struct once_entry *e = once_first(once); e != NULL; e = once_next(once, e)) {
        ck_assert_uint_gt(e->record.event_no, last);
        last = e->record.event_no;
        count++;
    }
    ck_assert_uint_eq(count, once_count(once));
}

/* Old entries that stay while segments come and go are moved by cleaning; the queue keeps its
 * order, and those that are gone do not come back. */
START_TEST(entries_survive_cleaning)
{
    enum { KEPT = 300, PASSING = 6000 };
    uint64_t bytes;

    for (uint32_t i = 0; i < KEPT; i++)
        remember(i);
    for (uint32_t i = 0; i < PASSING; i++) {
        remember(KEPT + i);
        if (i % 3 != 0)
            forget(find(KEPT + i));
        else if (i > 0)
            forget(find(KEPT + i - 3));
        if (i % 16 == 0)
            store_fixture_commit(&f);
    }
    store_fixture_commit(&f);
    for (int i = 0; i < 50; i++)
        loop_run_once(&f.loop);
    store_fixture_segments(&f, &bytes);
    ck_assert_uint_le(bytes, 2 * store_live_bytes(f.store) + 4 * f.segment_bytes);
    ck_assert(!store_is_in(&once_next(once, once_first(once))->stored, 1)); /* moved */
    ck_in_order();
    reload();
    ck_in_order();
    ck_assert_uint_eq(once_count(once), KEPT + 1);
    for (uint32_t i = 0; i < KEPT; i++)
        ck_entry(i);
    ck_entry(KEPT + PASSING - 3);
}
END_TEST

/* Against a model: keys are remembered, taken over and forgotten at random. */
START_TEST(behaves_as_a_table)
{
    enum { KEYS = 50, STEPS = 5000 };
    int64_t since[KEYS] = {0}; /* 0: not there */

    for (int step = 0; step < STEPS; step++) {
        uint32_t key = (uint32_t)rng_below(KEYS);
        const struct once_entry *entry = find(key);
        bool expected =
            since[key] != 0 && clock_unix_ns() - since[key] < (int64_t)KEEP_SECONDS * 1000000000;

        ck_assert_msg((entry != NULL) == expected, "step %d, key %u", step, key);
        if (entry == NULL) {
            remember(key);
            since[key] = clock_unix_ns();
        } else if (rng_below(4) == 0) {
            forget(entry);
            since[key] = 0;
        }
        clock_advance(rng_below(HOUR_NS / 4));
        if (step % 500 == 0)
            reload();
    }
    reload();
}
END_TEST

START_TEST(an_entry_is_small)
{
    enum { COUNT = 4096 };
    size_t before = mem_bytes();

    for (uint32_t i = 0; i < COUNT; i++) {
        remember(i);
        if (i % 256 == 0)
            store_fixture_commit(&f);
    }
    store_fixture_commit(&f);
    ck_assert_uint_lt((mem_bytes() - before) / COUNT, 300);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_is_remembered_is_found);
    tcase_add_test(tc, an_entry_waits_for_its_own_commit);
    tcase_add_test(tc, what_is_too_old_is_not_found);
    tcase_add_test(tc, an_old_key_is_taken_over);
    tcase_add_test(tc, what_is_forgotten_stays_away);
    tcase_add_test(tc, entries_survive_cleaning);
    tcase_add_test(tc, behaves_as_a_table);
    tcase_add_test(tc, an_entry_is_small);
}
