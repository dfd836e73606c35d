#include "testing.h"

#include "base/heap.h"
#include "base/rng.h"

#include <signal.h>
#include <stdlib.h>

enum { TIMERS = 600 };

struct timer {
    struct heap_node node;
    uint64_t due;
};

static struct timer timers[TIMERS];

static const struct timer *timer_of(const struct heap_node *node)
{
    return (const void *)((const char *)node - offsetof(struct timer, node));
}

static bool due_before(const struct heap_node *a, const struct heap_node *b)
{
    return timer_of(a)->due < timer_of(b)->due;
}

static struct heap fresh_heap(void)
{
    struct heap h;

    heap_init(&h, due_before);
    for (size_t i = 0; i < TIMERS; i++)
        timers[i] = (struct timer){0};
    return h;
}

static bool is_ordered(const struct heap *h)
{
    for (size_t place = 1; place <= h->count; place++) {
        if (h->nodes[place - 1]->place != place)
            return false;
        if (place > 1 && due_before(h->nodes[place - 1], h->nodes[place / 2 - 1]))
            return false;
    }
    return h->count <= h->size;
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

START_TEST(an_empty_heap)
{
    struct heap h = fresh_heap();

    ck_assert_ptr_null(heap_first(&h));
    ck_assert(!heap_contains(&timers[0].node));
    heap_done(&h);
    heap_done(NULL);
}
END_TEST

/* With many equal keys, and none. */
START_TEST(gives_back_in_sorted_order)
{
    static const uint64_t bounds[] = {1, 2, 50, UINT64_MAX};
    uint64_t sorted[TIMERS];

    for (size_t b = 0; b < ARRAY_LEN(bounds); b++) {
        struct heap h = fresh_heap();

        for (size_t i = 0; i < TIMERS; i++) {
            sorted[i] = timers[i].due = rng_below(bounds[b]);
            heap_add(&h, &timers[i].node);
        }
        ck_assert(is_ordered(&h));
        qsort(sorted, TIMERS, sizeof(sorted[0]), compare_u64);
        for (size_t i = 0; i < TIMERS; i++) {
            struct heap_node *first = heap_first(&h);

            ck_assert_uint_eq(timer_of(first)->due, sorted[i]);
            heap_remove(&h, first);
            ck_assert(!heap_contains(first));
        }
        ck_assert_ptr_null(heap_first(&h));
        ck_assert_uint_le(h.size, 32);
        heap_done(&h);
    }
}
END_TEST

static uint64_t naive_least(void)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < TIMERS; i++) {
        if (heap_contains(&timers[i].node))
            least = MIN(least, timers[i].due);
    }
    return least;
}

START_TEST(stays_ordered_under_all_changes)
{
    struct heap h = fresh_heap();

    for (int i = 0; i < 20000; i++) {
        struct timer *t = &timers[rng_below(TIMERS)];

        if (!heap_contains(&t->node)) {
            t->due = rng_below(1000);
            heap_add(&h, &t->node);
        } else if (rng_below(3) == 0) {
            heap_remove(&h, &t->node);
        } else {
            t->due = rng_below(1000);
            heap_update(&h, &t->node);
        }
        ck_assert(is_ordered(&h));
        if (h.count > 0)
            ck_assert_uint_eq(timer_of(heap_first(&h))->due, naive_least());
    }
    heap_done(&h);
}
END_TEST

START_TEST(adding_twice_aborts)
{
    struct heap h = fresh_heap();

    heap_add(&h, &timers[0].node);
    heap_add(&h, &timers[0].node);
}
END_TEST

START_TEST(removing_from_another_heap_aborts)
{
    struct heap h = fresh_heap(), other = fresh_heap();

    heap_add(&h, &timers[0].node);
    heap_add(&other, &timers[1].node);
    heap_remove(&other, &timers[0].node);
}
END_TEST

START_TEST(updating_what_is_in_no_heap_aborts)
{
    struct heap h = fresh_heap();

    heap_update(&h, &timers[0].node);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_empty_heap);
    tcase_add_test(tc, gives_back_in_sorted_order);
    tcase_add_test(tc, stays_ordered_under_all_changes);
    tcase_add_test_raise_signal(tc, adding_twice_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, removing_from_another_heap_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, updating_what_is_in_no_heap_aborts, SIGABRT);
}
