#include "testing.h"

#include "base/rng.h"
#include "match/interval.h"

#include <endian.h>
#include <string.h>

enum { INTERVALS = 400, LEVELS_MOST = 14 /* 1.44 log2(400) + 2 */ };

/* Points are three letters; the rank sees the first only. */
static char texts[INTERVALS][2][3];
static struct interval intervals[INTERVALS];
static bool present[INTERVALS];
static struct interval_tree tree;

static struct cut cut_of(const char text[3], enum cut_side side)
{
    return cut_at((uint64_t)text[0], span_of(text, 3), side);
}

static void draw_text(char text[3])
{
    for (size_t i = 0; i < 3; i++)
        text[i] = (char)('a' + rng_below(4));
}

static struct cut draw_cut(char text[3], struct cut beyond)
{
    draw_text(text);
    return rng_below(5) == 0 ? beyond : cut_of(text, rng_below(2) == 0 ? CUT_BEFORE : CUT_AFTER);
}

static void draw_interval(size_t i)
{
    intervals[i] = (struct interval){.low = draw_cut(texts[i][0], cut_least()),
                                     .high = draw_cut(texts[i][1], cut_most())};
}

/* ---- naive counterparts ---- */

static int naive_position(const struct cut *c, const char point[3])
{
    int order;

    if (c->side == CUT_LEAST || c->side == CUT_MOST)
        return c->side == CUT_LEAST ? -1 : 1;
    order = memcmp(c->bytes, point, 3);
    return order != 0 ? order : c->side == CUT_BEFORE ? -1 : 1;
}

static bool naive_holds(const struct interval *i, const char point[3])
{
    return naive_position(&i->low, point) < 0 && naive_position(&i->high, point) > 0;
}

static size_t check_node(const struct interval *node, size_t *out_count)
{
    size_t left, right;

    if (node == NULL)
        return 0;
    left = check_node(node->child[0], out_count);
    right = check_node(node->child[1], out_count);
    ck_assert_uint_le(MAX(left, right) - MIN(left, right), 1);
    ck_assert_uint_eq(node->height, 1 + MAX(left, right));
    if (node->child[0] != NULL)
        ck_assert_int_le(cut_cmp(&tree, &node->child[0]->low, &node->low), 0);
    if (node->child[1] != NULL)
        ck_assert_int_ge(cut_cmp(&tree, &node->child[1]->low, &node->low), 0);
    ++*out_count;
    return node->height;
}

static void check_shape(void)
{
    size_t count = 0, expected = 0;

    for (size_t i = 0; i < INTERVALS; i++)
        expected += present[i];
    ck_assert_uint_le(check_node(tree.root, &count), LEVELS_MOST);
    ck_assert_uint_eq(count, expected);
}

static void note(void *context, struct interval *found)
{
    bool *seen = context;
    size_t i = (size_t)(found - intervals);

    ck_assert_msg(!seen[i], "found twice");
    seen[i] = true;
}

static void check_point(const char point[3])
{
    struct cut at = cut_of(point, CUT_BEFORE);
    bool seen[INTERVALS] = {false};

    interval_stab(&tree, &at, note, seen);
    for (size_t i = 0; i < INTERVALS; i++) {
        bool holds = naive_holds(&intervals[i], point);

        ck_assert_int_eq(interval_holds(&tree, &intervals[i], &at), holds);
        ck_assert_int_eq(seen[i], holds && present[i] && intervals[i].shown);
    }
}

/* ---- tests ---- */

static void begin(void)
{
    tree = (struct interval_tree){.cmp = span_cmp};
    memset(present, 0, sizeof(present));
}

START_TEST(an_empty_tree_holds_nothing)
{
    struct cut at = cut_of("abc", CUT_BEFORE);

    begin();
    interval_stab(&tree, &at, note, NULL);
    ck_assert_ptr_null(interval_find(&tree, &at, &at));
}
END_TEST

START_TEST(cuts_are_ordered)
{
    struct cut cuts[] = {
        cut_least(),
        cut_at(0, SPAN(""), CUT_BEFORE),
        cut_at(0, SPAN(""), CUT_AFTER),
        cut_at(0, SPAN("a"), CUT_BEFORE),
        cut_at(1, SPAN(""), CUT_AFTER),
        cut_at(UINT64_MAX, SPAN("a"), CUT_BEFORE),
        cut_at(UINT64_MAX, SPAN("a"), CUT_AFTER),
        cut_at(UINT64_MAX, SPAN("b"), CUT_BEFORE),
        cut_most(),
    };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++)
        for (size_t j = 0; j < ARRAY_LEN(cuts); j++) {
            int order = cut_cmp(&tree, &cuts[i], &cuts[j]);

            ck_assert_int_eq((order > 0) - (order < 0), (i > j) - (i < j));
        }
}
END_TEST

static void change_one(size_t i)
{
    if (present[i] && rng_below(2) == 0) {
        interval_show(&tree, &intervals[i], !intervals[i].shown);
    } else if (present[i]) {
        ck_assert_ptr_eq(interval_find(&tree, &intervals[i].low, &intervals[i].high),
                         &intervals[i]);
        interval_remove(&tree, &intervals[i]);
        present[i] = false;
        ck_assert_ptr_null(interval_find(&tree, &intervals[i].low, &intervals[i].high));
    } else {
        draw_interval(i);
        if (interval_find(&tree, &intervals[i].low, &intervals[i].high) != NULL)
            return;
        interval_add(&tree, &intervals[i]);
        present[i] = true;
    }
}

/* Grows, stays and shrinks while questions are asked. */
START_TEST(answers_as_a_naive_search_does)
{
    char point[3];

    begin();
    for (size_t i = 0; i < INTERVALS; i++)
        draw_interval(i);
    for (size_t step = 0; step < 20000; step++) {
        change_one(rng_below(INTERVALS));
        if (step % 16 != 0)
            continue;
        draw_text(point);
        check_point(point);
        check_shape();
    }
    for (size_t i = 0; i < INTERVALS; i++) {
        if (present[i])
            interval_remove(&tree, &intervals[i]);
        present[i] = false;
        check_shape();
    }
    ck_assert_ptr_null(tree.root);
}
END_TEST

enum { MANY = 100000 };

static size_t compared, found;

static int count_cmp(struct span a, struct span b)
{
    compared++;
    return span_cmp(a, b);
}

static void count_found(void *context, struct interval *i)
{
    (void)context;
    (void)i;
    found++;
}

static struct cut number_cut(uint32_t number, char bytes[4], enum cut_side side)
{
    number = htobe32(number);
    memcpy(bytes, &number, 4);
    return cut_at(0, span_of(bytes, 4), side);
}

/* Interval i is [10 i, 10 i + 15]. All ranks are equal, so that every comparison is counted. */
START_TEST(the_cost_follows_the_answers)
{
    static struct interval many[MANY];
    static char bytes[MANY][2][4];
    char at[4];
    struct cut point = number_cut(500003, at, CUT_BEFORE);

    tree = (struct interval_tree){.cmp = count_cmp};
    for (uint32_t i = 0; i < MANY; i++) {
        many[i].low = number_cut(10 * i, bytes[i][0], CUT_BEFORE);
        many[i].high = number_cut(10 * i + 15, bytes[i][1], CUT_AFTER);
        interval_add(&tree, &many[i]);
        interval_show(&tree, &many[i], true);
    }
    compared = found = 0;
    interval_stab(&tree, &point, count_found, NULL);
    ck_assert_uint_eq(found, 2);
    ck_assert_uint_lt(compared, 200);

    /* Half of them begun, none shown but one that holds the point: hidden ones cost nothing. */
    for (uint32_t i = 0; i < MANY; i++)
        if (i != 50000)
            interval_show(&tree, &many[i], false);
    compared = found = 0;
    interval_stab(&tree, &point, count_found, NULL);
    ck_assert_uint_eq(found, 1);
    ck_assert_uint_lt(compared, 100);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_empty_tree_holds_nothing);
    tcase_add_test(tc, cuts_are_ordered);
    tcase_add_test(tc, answers_as_a_naive_search_does);
    tcase_add_test(tc, the_cost_follows_the_answers);
}
