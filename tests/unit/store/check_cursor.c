/* Cursors over a collection that others change meanwhile. */
#include "store_testing.h"

#include "testing.h"

#include "base/rng.h"
#include "store/collection.h"
#include "store/cursor.h"
#include "store/entity.h"

#define NAME "A.B"

enum { KNOWN_MOST = 400, CURSORS = 3 };

/* A cursor that keeps what it was told of: which entities there are behind it, in which version. */
struct reader {
    struct cursor cursor;
    struct {
        uint64_t object_no, version;
    } known[KNOWN_MOST];
    size_t count;
    unsigned changed, gone;
};

static struct store_fixture f;
static struct collection *c;
static struct reader readers[CURSORS];

static struct reader *reader_of(struct cursor *cursor)
{
    return CONTAINER_OF(cursor, struct reader, cursor);
}

static size_t place_of(const struct reader *r, const struct entity *e)
{
    size_t at = 0;

    while (at < r->count && r->known[at].object_no != e->object_no)
        at++;
    return at;
}

/* Only of those that it has passed. */
static void on_changed(struct cursor *cursor, struct entity *e)
{
    struct reader *r = reader_of(cursor);
    size_t at = place_of(r, e);

    ck_assert_uint_lt(at, r->count);
    ck_assert_uint_gt(e->version, r->known[at].version);
    r->known[at].version = e->version;
    r->changed++;
}

static void on_gone(struct cursor *cursor, struct entity *e)
{
    struct reader *r = reader_of(cursor);
    size_t at = place_of(r, e);

    ck_assert_uint_lt(at, r->count);
    ck_assert_ptr_nonnull(e->json);
    r->known[at] = r->known[--r->count];
    r->gone++;
}

static struct reader *open_reader(size_t which)
{
    struct reader *r = &readers[which];

    *r = (struct reader){.cursor = {.on_changed = on_changed, .on_gone = on_gone}};
    cursor_open(&r->cursor, c);
    return r;
}

/* False at the end. */
static bool pass(struct reader *r)
{
    struct entity *e = cursor_pass(&r->cursor);

    if (e == NULL)
        return false;
    ck_assert_uint_eq(place_of(r, e), r->count); /* never twice */
    ck_assert_uint_lt(r->count, KNOWN_MOST);
    r->known[r->count].object_no = e->object_no;
    r->known[r->count++].version = e->version;
    return true;
}

static void pass_many(struct reader *r, int count)
{
    while (count-- > 0)
        ck_assert(pass(r));
}

static struct entity *insert(void)
{
    return store_fixture_insert(&f, NAME, "\"N\":0");
}

static void update(struct entity *e)
{
    store_fixture_update(&f, e, "\"N\":1");
}

static void set_up(void)
{
    store_fixture_init(&f);
    store_fixture_open(&f);
    c = store_collection(f.store, SPAN(NAME));
}

static void tear_down(void)
{
    for (size_t i = 0; i < CURSORS; i++)
        if (readers[i].cursor.collection != NULL)
            cursor_close(&readers[i].cursor);
    store_fixture_done(&f);
}

START_TEST(an_empty_collection)
{
    struct reader *r = open_reader(0);

    ck_assert(!pass(r));
    insert();
    ck_assert(pass(r)); /* it was at the end, and now is not */
    ck_assert(!pass(r));
}
END_TEST

START_TEST(in_order_of_insertion)
{
    struct entity *a = insert(), *b = insert(), *d = insert();
    struct reader *r = open_reader(0);

    ck_assert_ptr_eq(cursor_pass(&r->cursor), a);
    ck_assert_ptr_eq(cursor_pass(&r->cursor), b);
    ck_assert_ptr_eq(cursor_pass(&r->cursor), d);
    ck_assert_ptr_null(cursor_pass(&r->cursor));
    ck_assert_ptr_null(cursor_pass(&r->cursor));
}
END_TEST

START_TEST(it_is_told_of_those_that_it_has_passed)
{
    struct entity *a = insert(), *b = insert(), *d = insert();
    struct reader *r = open_reader(0);

    pass_many(r, 1);
    update(a);
    update(b);
    update(d);
    ck_assert_uint_eq(r->changed, 1);
    pass_many(r, 1);
    store_fixture_delete(&f, a);
    store_fixture_delete(&f, d);
    ck_assert_uint_eq(r->gone, 1);
    ck_assert(!pass(r));
    update(b);
    ck_assert_uint_eq(r->changed, 2);
    store_fixture_delete(&f, b);
    ck_assert_uint_eq(r->gone, 2);
}
END_TEST

START_TEST(the_next_one_may_go)
{
    struct entity *a = insert(), *b = insert(), *d;
    struct reader *r = open_reader(0);

    insert();
    store_fixture_delete(&f, a);
    store_fixture_delete(&f, b);
    pass_many(r, 1);
    ck_assert(!pass(r));
    d = insert();
    store_fixture_delete(&f, d);
    ck_assert_uint_eq(r->gone, 0);
    ck_assert(!pass(r));
    insert();
    pass_many(r, 1);
    ck_assert(!pass(r));
}
END_TEST

START_TEST(a_closed_one_is_told_nothing)
{
    struct reader *r = open_reader(0), *other = open_reader(1);
    struct entity *a = insert();

    pass_many(r, 1);
    pass_many(other, 1);
    cursor_close(&r->cursor);
    cursor_close(&r->cursor);
    update(a);
    store_fixture_delete(&f, a);
    ck_assert_uint_eq(r->changed + r->gone, 0);
    ck_assert_uint_eq(other->changed, 1);
    ck_assert_uint_eq(other->gone, 1);
}
END_TEST

/* What a cursor knows at the end is what is there. */
static void check_known(struct reader *r)
{
    while (pass(r))
        ;
    ck_assert_uint_eq(r->count, collection_count(c));
    for (struct entity *e = collection_first(c); e != NULL; e = collection_next(c, e)) {
        size_t at = place_of(r, e);

        ck_assert_uint_lt(at, r->count);
        ck_assert_uint_eq(r->known[at].version, e->version);
    }
}

static struct entity *any(void)
{
    struct entity *e = collection_first(c);

    for (uint64_t n = rng_below(collection_count(c)); n > 0; n--)
        e = collection_next(c, e);
    return e;
}

START_TEST(changes_at_random)
{
    rng_seed((uint64_t)_i + 1);
    for (int i = 0; i < 30; i++)
        insert();
    for (size_t i = 0; i < CURSORS; i++)
        open_reader(i);
    for (int i = 0; i < 300; i++) {
        unsigned what = (unsigned)rng_below(10);

        if (what < 4)
            pass(&readers[rng_below(CURSORS)]);
        else if (what < 6 || collection_count(c) == 0)
            insert();
        else if (what < 8)
            update(any());
        else
            store_fixture_delete(&f, any());
    }
    for (size_t i = 0; i < CURSORS; i++)
        check_known(&readers[i]);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, an_empty_collection);
    tcase_add_test(tc, in_order_of_insertion);
    tcase_add_test(tc, it_is_told_of_those_that_it_has_passed);
    tcase_add_test(tc, the_next_one_may_go);
    tcase_add_test(tc, a_closed_one_is_told_nothing);
    tcase_add_loop_test(tc, changes_at_random, 0, 10);
}
