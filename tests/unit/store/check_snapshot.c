/* Snapshots beside changes, against copies that were made when they were taken. */
#include "store_testing.h"

#include "testing.h"

#include "base/rng.h"
#include "journal/journal.h"
#include "query/conditions.h"
#include "store/snapshot.h"

#include <string.h>

#define NAME "Shop.Person"

enum { PEOPLE = 60, SNAPSHOTS = 4, CHANGES = 400 };

/* What there was, in order. */
struct copy {
    struct snapshot snapshot;
    struct uuid ids[PEOPLE * 4];
    uint64_t versions[PEOPLE * 4];
    size_t count;
    struct snapshot_walk walk; /* in pieces, from one change to the next */
    bool is_turned;
    size_t walked;
};

static struct store_fixture f;
static const struct conditions all;
static struct collection *people;
static struct copy copies[SNAPSHOTS];

static void insert(void)
{
    char members[32];

    snprintf(members, sizeof(members), "\"N\":%u", (unsigned)rng_below(1000));
    store_fixture_insert(&f, NAME, members);
}

static void begin(void)
{
    store_fixture_init(&f);
    store_fixture_open(&f);
    people = store_collection(f.store, SPAN(NAME));
    for (unsigned i = 0; i < PEOPLE; i++)
        insert();
}

static void end(void)
{
    store_fixture_done(&f);
}

static void open_copy(struct copy *c)
{
    memset(c, 0, sizeof(*c));
    snapshot_open(&c->snapshot, f.store, journal_next_serial(turn_journal(f.turn)) - 1);
    for (const struct entity *e = collection_first(people); e != NULL;
         e = collection_next(people, e)) {
        c->ids[c->count] = e->id;
        c->versions[c->count++] = e->version;
    }
    snapshot_walk(&c->snapshot, people, &all, &c->walk);
    c->is_turned = rng_below(2) > 0;
    if (c->is_turned)
        snapshot_walk_turn(&c->walk);
}

static void close_copy(struct copy *c)
{
    snapshot_walk_drop(&c->walk);
    snapshot_close(&c->snapshot);
}

static void check_is(const struct copy *c, const struct entity *found, size_t place)
{
    const struct entity *e;

    ck_assert_ptr_nonnull(found);
    e = snapshot_entity(&c->snapshot, found);
    ck_assert_mem_eq(&e->id, &c->ids[place], sizeof(e->id));
    ck_assert_uint_eq(e->version, c->versions[place]);
    ck_assert(span_find(entity_json(e), SPAN("\"N\":")) != SIZE_MAX);
}

static void walk_on(struct copy *c, size_t most)
{
    for (; most > 0; most--) {
        const struct entity *e = snapshot_walk_next(&c->walk);

        if (c->walked == c->count) {
            ck_assert_ptr_null(e);
            return;
        }
        check_is(c, e, c->is_turned ? c->count - 1 - c->walked : c->walked);
        c->walked++;
    }
}

static void check_all(struct copy *c)
{
    struct snapshot_walk walk;

    snapshot_walk(&c->snapshot, people, &all, &walk);
    for (size_t i = 0; i < c->count; i++)
        check_is(c, snapshot_walk_next(&walk), i);
    ck_assert_ptr_null(snapshot_walk_next(&walk));
    snapshot_walk_drop(&walk);
    snapshot_walk(&c->snapshot, people, &all, &walk);
    snapshot_walk_turn(&walk);
    for (size_t i = c->count; i-- > 0;)
        check_is(c, snapshot_walk_next(&walk), i);
    ck_assert_ptr_null(snapshot_walk_next(&walk));
    snapshot_walk_drop(&walk);
    for (size_t i = 0; i < c->count; i++)
        check_is(c, snapshot_find(&c->snapshot, people, &c->ids[i]), i);
}

static struct entity *any(void)
{
    struct entity *e = collection_first(people);

    for (uint64_t i = rng_below(collection_count(people)); i > 0; i--)
        e = collection_next(people, e);
    return e;
}

static void change(void)
{
    switch (collection_count(people) < PEOPLE / 2 ? 0 : rng_below(4)) {
    case 0:
        insert();
        break;
    case 1:
        store_fixture_delete(&f, any());
        break;
    default:
        store_fixture_update(&f, any(), "\"N\":7");
        break;
    }
}

START_TEST(each_shows_its_moment)
{
    rng_seed((uint64_t)_i);
    for (unsigned i = 0; i < CHANGES; i++) {
        struct copy *c = &copies[rng_below(SNAPSHOTS)];

        change();
        if (c->snapshot.store == NULL) {
            open_copy(c);
            continue;
        }
        walk_on(c, (size_t)rng_below(20));
        if (rng_below(8) > 0)
            continue;
        walk_on(c, SIZE_MAX);
        check_all(c);
        close_copy(c);
    }
    for (size_t i = 0; i < SNAPSHOTS; i++) {
        if (copies[i].snapshot.store != NULL) {
            check_all(&copies[i]);
            close_copy(&copies[i]);
        }
    }
}
END_TEST

/* Of a page that begins behind an ObjectNo. */
START_TEST(a_turned_walk_ends_where_the_page_begins)
{
    struct copy *c = &copies[0];
    struct entity *first = collection_first(people);
    struct entity *second = collection_next(people, first),
                  *third = collection_next(people, second);
    struct snapshot_walk walk;

    open_copy(c);
    store_fixture_update(&f, first, "\"N\":5");
    store_fixture_update(&f, third, "\"N\":5");
    snapshot_walk(&c->snapshot, people, &all, &walk);
    walk.live.above = second->object_no;
    snapshot_walk_turn(&walk);
    for (size_t i = c->count; i-- > 2;)
        check_is(c, snapshot_walk_next(&walk), i);
    ck_assert_ptr_null(snapshot_walk_next(&walk));
    snapshot_walk_drop(&walk);
    close_copy(c);
}
END_TEST

START_TEST(what_came_later_is_not_in_it)
{
    struct copy *c = &copies[0];
    struct entity *later;

    open_copy(c);
    ck_assert(snapshot_is_current(&c->snapshot, people));
    later = store_fixture_insert(&f, NAME, "\"N\":1");
    ck_assert(!snapshot_is_current(&c->snapshot, people));
    ck_assert_ptr_null(snapshot_find(&c->snapshot, people, &later->id));
    check_all(c);
    close_copy(c);
}
END_TEST

/* Pointers to what is gone are good until the snapshot is closed. */
START_TEST(what_is_gone_is_still_shown)
{
    struct copy *c = &copies[0];
    struct entity *first = collection_first(people);

    open_copy(c);
    store_fixture_update(&f, first, "\"N\":5");
    store_fixture_delete(&f, first);
    check_is(c, first, 0);
    check_all(c);
    close_copy(c);
}
END_TEST

START_TEST(none_is_closed_too)
{
    struct snapshot never = {.store = NULL};

    snapshot_close(&never);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, each_shows_its_moment, 0, 10);
    tcase_add_test(tc, a_turned_walk_ends_where_the_page_begins);
    tcase_add_test(tc, what_came_later_is_not_in_it);
    tcase_add_test(tc, what_is_gone_is_still_shown);
    tcase_add_test(tc, none_is_closed_too);
}
