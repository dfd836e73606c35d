#include "testing.h"

#include "base/map.h"
#include "base/must.h"
#include "base/rng.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    ITEMS = 100000,
    MOST_MOVED = 8,
    SMALL = 64, /* slots of a table that moves at once */
    LONGEST_RUN = 300,
    ITEM_KIND = 0x4d455449
};

struct item {
    unsigned kind;
    char key[12];
    size_t key_n;
    bool present; /* the naive model */
    unsigned seen;
};

static struct item items[ITEMS];

static struct span key_of_item(const void *item)
{
    const struct item *i = MUST_BE(const struct item, ITEM_KIND, item);

    return span_of(i->key, i->key_n);
}

static void name_items(void)
{
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (struct item){.kind = ITEM_KIND};
        items[i].key_n = (size_t)snprintf(items[i].key, sizeof(items[i].key), "item%zu", i);
    }
}

static void see(void *item, void *arg)
{
    struct item *i = item;
    size_t *visits = arg;

    i->seen++;
    ++*visits;
}

/* Every present item is found and visited exactly once, no other is. */
static void check_all(const struct map *m, size_t range)
{
    size_t visits = 0, present = 0, wrong = 0;

    for (size_t i = 0; i < range; i++)
        items[i].seen = 0;
    map_each(m, see, &visits);
    for (size_t i = 0; i < range; i++) {
        struct item *expected = items[i].present ? &items[i] : NULL;

        wrong += map_find(m, key_of_item(&items[i])) != expected;
        wrong += items[i].seen != items[i].present;
        present += items[i].present;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(visits, present);
    ck_assert_uint_eq(map_count(m), present);
}

/* Adds or removes, and checks what every change promises: few items move, the table is not full.
 * (The assertions of Check write to a pipe, which long loops have no time for.) */
static void change(struct map *m, struct item *i, bool present)
{
    struct map_table before = m->now;
    bool done = true, few_moved, not_full, is_whole;

    map_expect(m, key_of_item(i)); /* no change of it */
    if (present)
        map_add(m, i);
    else
        done = map_remove(m, key_of_item(i)) == i;
    i->present = present;
    few_moved = m->now.used <= 1 + (m->now.slots == before.slots ? before.used + MOST_MOVED : 0) ||
                before.size <= SMALL;
    not_full = 4 * m->now.used <= 3 * m->now.size;
    is_whole = m->old.size == 0 || m->old.size > SMALL;
    if (!done || !few_moved || !not_full || !is_whole)
        ck_abort_msg("%s: done %d, few moved %d, not full %d, whole %d", i->key, done, few_moved,
                     not_full, is_whole);
}

static size_t longest_run(const struct map_table *t)
{
    size_t run = 0, longest = 0;

    for (size_t i = 0; i < t->size; i++) {
        run = t->slots[i].item != NULL ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    return longest;
}

START_TEST(an_empty_map)
{
    struct map m;

    map_init(&m, key_of_item);
    map_expect(&m, SPAN("x"));
    ck_assert_ptr_null(map_find(&m, SPAN("x")));
    ck_assert_ptr_null(map_remove(&m, SPAN("x")));
    ck_assert_uint_eq(map_count(&m), 0);
    ck_assert_uint_eq(map_bytes(&m), 0);
    check_all(&m, 0);
    map_done(&m);
    map_done(NULL);
}
END_TEST

START_TEST(any_bytes_are_a_key)
{
    static struct item odd[] = {{ITEM_KIND, "", 0},
                                {ITEM_KIND, "\0", 1},
                                {ITEM_KIND, "\0\0", 2},
                                {ITEM_KIND, "a\0b", 3},
                                {ITEM_KIND, "a\0c", 3}};
    struct map m;

    map_init(&m, key_of_item);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        map_add(&m, &odd[i]);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        ck_assert_ptr_eq(map_find(&m, key_of_item(&odd[i])), &odd[i]);
    ck_assert_ptr_eq(map_find(&m, span_of(NULL, 0)), &odd[0]);
    ck_assert_ptr_null(map_find(&m, SPAN("a")));
    map_done(&m);
}
END_TEST

START_TEST(put_replaces_before_and_after_the_move)
{
    static struct item twins[ITEMS];
    size_t count = 0, moving = 0;
    struct map m;

    name_items();
    memcpy(twins, items, sizeof(items));
    map_init(&m, key_of_item);
    for (; count < 2000; count++) {
        size_t at = rng_below(count + 1);

        ck_assert_ptr_null(map_put(&m, &items[count]));
        moving += m.old.used > 0;
        ck_assert_ptr_eq(map_put(&m, &twins[at]), &items[at]);
        ck_assert_ptr_eq(map_find(&m, key_of_item(&items[at])), &twins[at]);
        ck_assert_ptr_eq(map_put(&m, &items[at]), &twins[at]);
    }
    ck_assert_uint_eq(map_count(&m), count);
    ck_assert_uint_gt(moving, 100);
    map_done(&m);
}
END_TEST

START_TEST(adding_a_key_twice_aborts)
{
    struct map m;

    name_items();
    map_init(&m, key_of_item);
    map_add(&m, &items[0]);
    map_add(&m, &items[0]);
}
END_TEST

/* Phases that lean towards adding, then towards removing, make the map grow and shrink. */
START_TEST(behaves_like_an_array_of_flags)
{
    enum { RANGE = 5000, CHANGES = 200000, PHASE = 20000 };
    struct map m;

    name_items();
    map_init(&m, key_of_item);
    for (size_t i = 0; i < CHANGES; i++) {
        struct item *it = &items[rng_below(RANGE)];
        bool adding_phase = i / PHASE % 2 == 0;
        bool present = rng_below(10) < (adding_phase ? 9 : 1);

        if (it->present != present)
            change(&m, it, present);
        else if ((present ? map_put(&m, it) : map_remove(&m, key_of_item(it))) !=
                 (present ? it : NULL))
            ck_abort_msg("%s was there: %d", it->key, !present);
        it = &items[rng_below(RANGE)];
        if (map_find(&m, key_of_item(it)) != (it->present ? it : NULL))
            ck_abort_msg("%s is there: %d", it->key, !it->present);
        if (i % 997 == 0)
            check_all(&m, RANGE);
    }
    check_all(&m, RANGE);
    map_done(&m);
}
END_TEST

static void (*const inits[])(struct map *m, map_key_fn *key_of) = {map_init, map_init_own};

START_TEST(grows_and_shrinks_a_few_slots_at_a_time)
{
    struct map m;

    name_items();
    inits[_i](&m, key_of_item);
    for (size_t i = 0; i < ITEMS; i++)
        change(&m, &items[i], true);
    check_all(&m, ITEMS);
    ck_assert_uint_lt(map_bytes(&m), ITEMS * 4 * sizeof(struct map_slot));
    ck_assert_uint_lt(longest_run(&m.now), LONGEST_RUN);
    for (size_t i = 0; i < ITEMS; i++) {
        change(&m, &items[i], false);
        if (i == ITEMS / 2)
            check_all(&m, ITEMS);
    }
    ck_assert_uint_lt(map_bytes(&m), 64 * sizeof(struct map_slot));
    check_all(&m, ITEMS);
    map_done(&m);
}
END_TEST

/* What is removed from the old table without ever having moved. */
START_TEST(emptied_old_slots_are_given_back_unseen)
{
    struct map m;
    size_t count = 0;

    name_items();
    map_init(&m, key_of_item);
    while (m.old.size < 65536)
        change(&m, &items[count++], true);
    for (size_t i = m.old.size - 1; m.old.used > 0; i--) {
        const struct map_slot *slot = &m.old.slots[i];

        if (slot->item != NULL && slot->item != slot)
            change(&m, slot->item, false);
    }
    for (; m.old.size > 0; count++) {
        change(&m, &items[count], true);
        check_all(&m, count + 1);
    }
    map_done(&m);
}
END_TEST

/* A constant number of items that come and go leaves the table as it was. */
START_TEST(churn_does_not_wear_the_map_out)
{
    enum { LIVE = 700, CHANGES = 200000 }; /* 0.68 of 1024 slots */
    struct map m;

    name_items();
    map_init(&m, key_of_item);
    for (size_t i = 0; i < LIVE; i++)
        change(&m, &items[i], true);
    for (size_t i = LIVE; i < CHANGES; i++) {
        change(&m, &items[(i - LIVE) % ITEMS], false);
        change(&m, &items[i % ITEMS], true);
    }
    ck_assert_uint_eq(map_bytes(&m), 1024 * sizeof(struct map_slot));
    ck_assert_uint_lt(longest_run(&m.now), LONGEST_RUN);
    check_all(&m, ITEMS);
    map_done(&m);
}
END_TEST

static void add_to(void *item, void *arg)
{
    struct map *m = arg;

    map_add(m, item);
    if (map_count(m) % 64 == 0)
        ck_assert_uint_lt(longest_run(&m->now), LONGEST_RUN);
}

/* The order of one map's slots must not fill another's slots in their order. */
START_TEST(a_map_may_be_copied_in_its_own_order)
{
    enum { COPIED = 20000 };
    struct map from, to;

    name_items();
    map_init(&from, key_of_item);
    map_init(&to, key_of_item);
    for (size_t i = 0; i < COPIED; i++)
        map_add(&from, &items[i]);
    map_each(&from, add_to, &to);
    ck_assert_uint_eq(map_count(&to), COPIED);
    map_done(&from);
    map_done(&to);
}
END_TEST

/* With single ones between them, and with some removed again while the table grows. */
START_TEST(many_at_once_are_as_one_by_one)
{
    struct map m;
    size_t added = 0;

    name_items();
    map_init(&m, key_of_item);
    while (added < ITEMS) {
        struct map_slot many[100];
        size_t wanted = rng_below(ARRAY_LEN(many) + 1), count = MIN(wanted, ITEMS - added);

        for (size_t i = 0; i < count; i++) {
            items[added].present = true;
            many[i] = map_slot_of(&m, &items[added++]);
        }
        map_add_many(&m, many, count);
        if (added < ITEMS)
            change(&m, &items[added++], true);
        if (items[added / 2].present && rng_below(2) == 0)
            change(&m, &items[added / 2], false);
    }
    check_all(&m, ITEMS);
    map_done(&m);
}
END_TEST

/* In an empty map, and while the table grows. */
START_TEST(a_hash_is_made_once_for_looking_and_adding)
{
    struct map m;

    name_items();
    map_init(&m, key_of_item);
    for (size_t i = 0; i < ITEMS; i++) {
        struct span key = key_of_item(&items[i]);
        uint64_t hash = map_hash(&m, key);

        ck_assert_ptr_null(map_find_hashed(&m, key, hash));
        map_add_hashed(&m, &items[i], hash);
        ck_assert_ptr_eq(map_find_hashed(&m, key, hash), &items[i]);
        ck_assert_ptr_eq(map_find(&m, key), &items[i]);
        items[i].present = true;
    }
    check_all(&m, ITEMS);
    map_done(&m);
}
END_TEST

/* Its size once and for all; a map that was emptied before is the same. */
START_TEST(all_at_once_into_an_empty_map)
{
    static struct map_slot all[ITEMS];
    struct map m;

    name_items();
    map_init(&m, key_of_item);
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < ITEMS; i++) {
            items[i].present = true;
            all[i] = map_slot_of(&m, &items[i]);
        }
        map_add_many(&m, all, ITEMS);
        ck_assert_ptr_null(m.old.slots);
        check_all(&m, ITEMS);
        for (size_t i = 0; i < ITEMS; i++)
            change(&m, &items[i], false);
        check_all(&m, ITEMS);
    }
    map_add_many(&m, all, 0);
    ck_assert_uint_eq(map_count(&m), 0);
    map_done(&m);
}
END_TEST

START_TEST(adding_a_key_twice_among_many_aborts)
{
    struct map m;
    struct map_slot many[2];

    name_items();
    map_init(&m, key_of_item);
    many[0] = many[1] = map_slot_of(&m, &items[0]);
    map_add_many(&m, many, ARRAY_LEN(many));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_empty_map);
    tcase_add_test(tc, any_bytes_are_a_key);
    tcase_add_test(tc, put_replaces_before_and_after_the_move);
    tcase_add_test_raise_signal(tc, adding_a_key_twice_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, adding_a_key_twice_among_many_aborts, SIGABRT);
    tcase_add_test(tc, behaves_like_an_array_of_flags);
    tcase_add_test(tc, many_at_once_are_as_one_by_one);
    tcase_add_test(tc, a_hash_is_made_once_for_looking_and_adding);
    tcase_add_test(tc, all_at_once_into_an_empty_map);
    tcase_add_loop_test(tc, grows_and_shrinks_a_few_slots_at_a_time, 0, ARRAY_LEN(inits));
    tcase_add_test(tc, emptied_old_slots_are_given_back_unseen);
    tcase_add_test(tc, churn_does_not_wear_the_map_out);
    tcase_add_test(tc, a_map_may_be_copied_in_its_own_order);
}
