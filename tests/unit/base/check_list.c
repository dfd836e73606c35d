#include "testing.h"

#include "base/list.h"
#include "base/rng.h"

#include <signal.h>
#include <string.h>

struct thing {
    char name;
    struct list_link link;
};

static struct thing things[26];

static void name_things(void)
{
    for (size_t i = 0; i < ARRAY_LEN(things); i++)
        things[i] = (struct thing){.name = (char)('a' + i)};
}

static struct thing *thing_of(struct list_link *link)
{
    return CONTAINER_OF(link, struct thing, link);
}

/* Walks both ways; the names in order. */
static const char *names(const struct list *l)
{
    static char text[64];
    size_t n = 0;

    for (struct list_link *at = list_first(l); at != NULL; at = list_next(l, at))
        text[n++] = thing_of(at)->name;
    text[n] = '\0';
    ck_assert_uint_eq(n, list_count(l));
    ck_assert_int_eq(list_empty(l), n == 0);
    for (struct list_link *at = list_last(l); at != NULL; at = list_prev(l, at))
        n -= n > 0 && thing_of(at)->name == text[n - 1];
    ck_assert_uint_eq(n, 0);
    return text;
}

START_TEST(links_at_every_place)
{
    struct list l;

    name_things();
    list_init(&l);
    ck_assert_str_eq(names(&l), "");
    ck_assert_ptr_null(list_pop_front(&l));
    list_push_back(&l, &things[1].link);
    list_push_back(&l, &things[3].link);
    list_push_front(&l, &things[0].link);
    list_insert_before(&l, &things[3].link, &things[2].link);
    ck_assert_str_eq(names(&l), "abcd");
    ck_assert(list_linked(&things[2].link));
    list_remove(&l, &things[2].link);
    ck_assert(!list_linked(&things[2].link));
    ck_assert_str_eq(names(&l), "abd");
    ck_assert_ptr_eq(list_pop_front(&l), &things[0].link);
    list_remove(&l, &things[3].link);
    list_remove(&l, &things[1].link);
    ck_assert_str_eq(names(&l), "");
}
END_TEST

START_TEST(current_element_may_go_while_walking)
{
    struct list l;

    name_things();
    list_init(&l);
    LIST_EACH(&l, cursor)
        list_remove(&l, cursor);
    for (size_t i = 0; i < 6; i++)
        list_push_back(&l, &things[i].link);
    LIST_EACH(&l, cursor) {
        if (thing_of(cursor)->name % 2 == 0)
            list_remove(&l, cursor);
    }
    ck_assert_str_eq(names(&l), "ace");
    LIST_EACH(&l, cursor)
        list_remove(&l, cursor);
    ck_assert_str_eq(names(&l), "");
}
END_TEST

START_TEST(take_all_appends)
{
    struct list a, b;

    name_things();
    list_init(&a);
    list_init(&b);
    list_take_all(&a, &b);
    ck_assert_str_eq(names(&a), "");
    list_push_back(&b, &things[0].link);
    list_push_back(&b, &things[1].link);
    list_take_all(&a, &b);
    ck_assert_str_eq(names(&a), "ab");
    ck_assert_str_eq(names(&b), "");
    list_push_back(&b, &things[2].link);
    list_take_all(&a, &b);
    ck_assert_str_eq(names(&a), "abc");
    list_take_all(&a, &b);
    ck_assert_str_eq(names(&a), "abc");
    list_push_back(&b, &things[3].link);
    ck_assert_str_eq(names(&b), "d");
}
END_TEST

static void model_remove(char *model, char name)
{
    char *at = strchr(model, name);

    memmove(at, at + 1, strlen(at));
}

START_TEST(behaves_like_a_string)
{
    char model[64] = "";
    struct list l;

    name_things();
    list_init(&l);
    for (int i = 0; i < 20000; i++) {
        struct thing *t = &things[rng_below(ARRAY_LEN(things))];

        if (list_linked(&t->link)) {
            list_remove(&l, &t->link);
            model_remove(model, t->name);
        } else if (rng_below(2) == 0) {
            list_push_front(&l, &t->link);
            memmove(model + 1, model, strlen(model) + 1);
            model[0] = t->name;
        } else {
            list_push_back(&l, &t->link);
            model[strlen(model) + 1] = '\0';
            model[strlen(model)] = t->name;
        }
        ck_assert_str_eq(names(&l), model);
    }
}
END_TEST

START_TEST(adding_what_is_linked_aborts)
{
    struct list l;

    name_things();
    list_init(&l);
    list_push_back(&l, &things[0].link);
    list_push_back(&l, &things[0].link);
}
END_TEST

START_TEST(removing_what_is_not_linked_aborts)
{
    struct list l;

    name_things();
    list_init(&l);
    list_remove(&l, &things[0].link);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, links_at_every_place);
    tcase_add_test(tc, current_element_may_go_while_walking);
    tcase_add_test(tc, take_all_appends);
    tcase_add_test(tc, behaves_like_a_string);
    tcase_add_test_raise_signal(tc, adding_what_is_linked_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, removing_what_is_not_linked_aborts, SIGABRT);
}
