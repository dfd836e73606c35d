#include "testing.h"

#include "base/ladder.h"
#include "base/rng.h"

enum { MEMBERS = 5000 };

struct member {
    struct list_link link;
    uint64_t number;
};

static struct member members[MEMBERS];
static struct list list;
static struct ladder ladder;

static uint64_t number_of(const struct list_link *link)
{
    return CONTAINER_OF_CONST(link, struct member, link)->number;
}

/* The numbers 10, 20, ... */
static void fill(size_t count)
{
    list_init(&list);
    ladder_init(&ladder, number_of);
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct member){.number = 10 * (i + 1)};
        list_push_back(&list, &members[i].link);
        ladder_added(&ladder, &members[i].link);
    }
}

static void take_out(struct member *m)
{
    ladder_removing(&ladder, &list, &m->link);
    list_remove(&list, &m->link);
}

static uint64_t after_by_hand(uint64_t number)
{
    LIST_EACH(&list, at)
        if (number_of(at) > number)
            return number_of(at);
    return 0;
}

static uint64_t after(uint64_t number)
{
    const struct list_link *found = ladder_after(&ladder, &list, number);

    return found == NULL ? 0 : number_of(found);
}

/* No way from one rung to the next is longer than a step, and rungs are members. */
static void ck_ladder(void)
{
    size_t way = 0, rung = 0;

    LIST_EACH(&list, at) {
        if (rung < ladder.count && ladder.rungs[ladder.first + rung].link == at) {
            ck_assert_uint_eq(ladder.rungs[ladder.first + rung].number, number_of(at));
            rung++;
            way = 0;
        }
        ck_assert_uint_lt(way++, LADDER_STEP);
    }
    ck_assert_uint_eq(rung, ladder.count);
}

static const size_t counts[] = {0, 1, 2, LADDER_STEP, LADDER_STEP + 1, 3 * LADDER_STEP, MEMBERS};

START_TEST(finds_what_comes_after_any_number)
{
    size_t count = counts[_i];

    fill(count);
    ck_ladder();
    for (uint64_t n = 0; n <= 10 * count + 10; n += 7)
        ck_assert_uint_eq(after(n), n / 10 < count ? 10 * (n / 10 + 1) : 0);
    ck_assert_uint_eq(after(UINT64_MAX), 0);
    ladder_done(&ladder);
}
END_TEST

START_TEST(whatever_goes)
{
    fill(MEMBERS);
    for (size_t left = MEMBERS; left > 0; left--) {
        struct member *m;

        do
            m = &members[rng_below(MEMBERS)];
        while (!list_linked(&m->link));
        take_out(m);
        if (left % 97 != 0)
            continue;
        ck_ladder();
        for (unsigned i = 0; i < 20; i++) {
            uint64_t n = rng_below(10 * MEMBERS);

            ck_assert_uint_eq(after(n), after_by_hand(n));
        }
    }
    ck_assert_uint_eq(ladder.count, 0);
    ladder_done(&ladder);
}
END_TEST

/* As retention does: out at the front, in at the end, for ever. */
START_TEST(a_queue_takes_no_more_memory_for_being_old)
{
    fill(MEMBERS);
    for (size_t i = 0; i < 20 * MEMBERS; i++) {
        struct member *m = &members[i % MEMBERS];

        take_out(m);
        m->number = 10 * (MEMBERS + i + 1);
        list_push_back(&list, &m->link);
        ladder_added(&ladder, &m->link);
    }
    ck_ladder();
    ck_assert_uint_le(ladder.size, 64);
    ck_assert_uint_eq(after(0), 10 * (20 * MEMBERS + 1));
    ladder_done(&ladder);
}
END_TEST

START_TEST(is_built_of_a_list_that_is_there)
{
    fill(MEMBERS);
    ladder_build(&ladder, &list);
    ck_ladder();
    ck_assert_uint_eq(after(12345), 12350);
    ladder_done(&ladder);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, finds_what_comes_after_any_number, 0, ARRAY_LEN(counts));
    tcase_add_test(tc, whatever_goes);
    tcase_add_test(tc, a_queue_takes_no_more_memory_for_being_old);
    tcase_add_test(tc, is_built_of_a_list_that_is_there);
}
