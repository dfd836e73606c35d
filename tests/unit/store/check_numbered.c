/* Whatever order they come in, they are found in that of their numbers, and one more costs no more
 * than the sizes of runs allow. */
#include "testing.h"

#include "base/mem.h"
#include "base/rng.h"
#include "store/entity.h"
#include "store/numbered.h"

enum { MANY = 20000, STEP = 10, PROBES = 2000 };

static struct entity *entities; /* the numbers STEP, 2 * STEP, ..., in some order */
static struct numbered numbered;

static void shuffle(void)
{
    for (uint64_t i = MANY - 1; i > 0; i--) {
        uint64_t other = rng_below(i + 1), was = entities[i].object_no;

        entities[i].object_no = entities[other].object_no;
        entities[other].object_no = was;
    }
}

static uint64_t ascending(uint64_t i)
{
    return i;
}

static uint64_t descending(uint64_t i)
{
    return MANY - 1 - i;
}

/* Those of the middle last, as when a page is changed beside many that were. */
static uint64_t from_both_ends(uint64_t i)
{
    return i % 2 == 0 ? i / 2 : MANY - 1 - i / 2;
}

static uint64_t (*const orders[])(uint64_t i) = {ascending, descending, from_both_ends, NULL};

/* What an addition moves: a run, and the list of them. */
static void check_sizes(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < numbered.count; i++) {
        size_t count = numbered.runs[i]->count;

        ck_assert_uint_le(count, NUMBERED_RUN);
        ck_assert_uint_ge(count, i + 1 < numbered.count ? NUMBERED_RUN / 2 : 1);
        sum += count;
    }
    ck_assert_uint_eq(sum, MANY);
}

static void check_found(const struct entity *e, uint64_t object_no)
{
    if (object_no == 0 || object_no > MANY * STEP)
        ck_assert_ptr_null(e);
    else
        ck_assert_uint_eq(e->object_no, object_no);
}

START_TEST(they_are_found_in_order)
{
    rng_seed((uint64_t)_i);
    entities = mem_zero(MANY * sizeof(*entities));
    for (uint64_t i = 0; i < MANY; i++)
        entities[i].object_no = STEP * (1 + (orders[_i] == NULL ? i : orders[_i](i)));
    if (orders[_i] == NULL)
        shuffle();
    for (size_t i = 0; i < MANY; i++)
        numbered_add(&numbered, &entities[i]);
    check_sizes();
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t probe = rng_below((MANY + 2) * STEP), below = MIN(probe / STEP, MANY) * STEP;

        check_found(numbered_up_to(&numbered, probe), below);
        check_found(numbered_above(&numbered, probe), below + STEP);
    }
    ck_assert_ptr_eq(numbered_up_to(&numbered, UINT64_MAX),
                     numbered_up_to(&numbered, (uint64_t)MANY * STEP));
    for (uint64_t i = MANY; i > 0; i--)
        ck_assert_uint_eq(numbered_pop(&numbered)->object_no, i * STEP);
    ck_assert_ptr_null(numbered_pop(&numbered));
    ck_assert_ptr_null(numbered.runs);
    mem_free(entities);
}
END_TEST

START_TEST(none_is_found_where_there_is_none)
{
    ck_assert_ptr_null(numbered_above(&numbered, 0));
    ck_assert_ptr_null(numbered_up_to(&numbered, UINT64_MAX));
    ck_assert_ptr_null(numbered_pop(&numbered));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, they_are_found_in_order, 0, ARRAY_LEN(orders));
    tcase_add_test(tc, none_is_found_where_there_is_none);
}
