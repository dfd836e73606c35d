/* The store by itself, without a journal: kinds of records, what holds which object, digests. */
#include "testing.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/macros.h"
#include "base/mem.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "store/stored.h"

#include <stdio.h>

/* ---- a module that keeps objects of its own ---- */

struct object {
    struct stored stored;
    char text[8];
};

static struct store *store;
static struct object objects[8];
static struct buf told; /* what the module was told */
static uint64_t next_serial;

static struct err *apply(void *context, struct span body, const struct store_origin *origin)
{
    struct object *o = &objects[body.p[0] - '0'];

    ck_assert_ptr_eq(context, objects);
    if (body.n == 1)
        return ERR(ERR_STORAGE_FAILURE, "no text");
    snprintf(o->text, sizeof(o->text), "%.*s", (int)body.n - 1, body.p + 1);
    store_track(store, &o->stored, RECORD_LANE, origin);
    return NULL;
}

static struct err *apply_gone(void *context, struct span body, const struct store_origin *origin)
{
    (void)context, (void)origin;
    store_forget(store, &objects[body.p[0] - '0'].stored);
    return NULL;
}

static struct err *move(void *context, struct stored *stored, struct change *change)
{
    struct object *o = CONTAINER_OF(stored, struct object, stored);

    (void)context, (void)change;
    buf_printf(&told, "move %s;", o->text);
    return NULL;
}

static void digest(void *context, struct store_digest *d)
{
    (void)context;
    for (size_t i = 0; i < ARRAY_LEN(objects); i++)
        if (list_linked(&objects[i].stored.link))
            store_digest_add(d, span_str(objects[i].text));
}

static struct err *loaded(void *context)
{
    (void)context;
    buf_printf(&told, "loaded %zu;", collection_count(store_collection(store, SPAN("A.B"))));
    return NULL;
}

static struct err *refuse_to_load(void *context)
{
    (void)context;
    return ERR(ERR_STORAGE_FAILURE, "it does not fit");
}

static const struct store_kind kind = {RECORD_LANE, apply, move, digest, loaded};
static const struct store_kind kind_gone = {.kind = RECORD_ONCE_GONE, .apply = apply_gone};

static void set_up(void)
{
    memset(objects, 0, sizeof(objects));
    buf_init(&told, BUF_NO_CAP);
    next_serial = 1;
    store = store_new();
    store_register(store, &kind, objects);
    store_register(store, &kind_gone, objects);
}

static void tear_down(void)
{
    for (size_t i = 0; i < ARRAY_LEN(objects); i++)
        store_forget(store, &objects[i].stored);
    store_free(store);
    buf_done(&told);
}

static struct err *try_to_put(unsigned record_kind, const char *body, uint32_t bytes)
{
    const struct store_origin origin = {.serial = next_serial++, .bytes = bytes};

    return store_apply(store, record_kind, span_str(body), &origin);
}

static void put(const char *body, uint32_t bytes)
{
    ck_ok(try_to_put(RECORD_LANE, body, bytes));
}

/* ---- which records are needed ---- */

START_TEST(objects_are_listed_by_their_records)
{
    ck_assert_ptr_null(store_oldest(store));
    put("1a", 100);
    put("2b", 20);
    put("3c", 3);
    ck_assert_ptr_eq(store_oldest(store), &objects[1].stored);
    ck_assert_uint_eq(store_live_bytes(store), 123);
    ck_assert_uint_eq(store_live_count(store), 3);
    put("1d", 1000); /* its record is another now */
    ck_assert_ptr_eq(store_oldest(store), &objects[2].stored);
    ck_assert_uint_eq(store_live_bytes(store), 1023);
    ck_assert_uint_eq(store_live_count(store), 3);
    ck_assert_uint_eq(objects[1].stored.serial, 4);
    ck_assert_uint_eq(objects[1].stored.bytes, 1000);
    ck_assert_uint_eq(objects[1].stored.kind, RECORD_LANE);
    ck_ok(try_to_put(RECORD_ONCE_GONE, "2", 9));
    ck_assert_ptr_eq(store_oldest(store), &objects[3].stored);
    ck_assert_uint_eq(store_live_bytes(store), 1003);
    store_forget(store, &objects[2].stored); /* once more */
    ck_assert_uint_eq(store_live_count(store), 2);
}
END_TEST

START_TEST(an_object_is_moved_by_its_module)
{
    put("1a", 100);
    put("2b", 100);
    ck_ok(store_move(store, store_oldest(store), NULL));
    ck_span_eq(buf_span(&told), "move a;");
}
END_TEST

/* ---- kinds ---- */

static const struct {
    unsigned kind;
    const char *body, *text;
} refused[] = {
    {0, "1a", "journal record 7 is of kind 0, which this version does not know"},
    {RECORD_EVENT, "1a", "is of kind 3"}, /* nobody has registered it */
    {RECORD_KIND_END, "1a", "is of kind 10"},
    {4000000000u, "1a", "is of kind 4000000000"},
    {RECORD_LANE, "1", "no text"}, /* as the module says */
    {RECORD_ENTITY, "nonsense", "record of kind 'entity' is too short"},
    {RECORD_ENTITY_GONE, "nonsense", "record of kind 'entity-gone' is too short"},
};

START_TEST(what_does_not_fit_is_refused)
{
    next_serial = 7;
    ck_fails(try_to_put(refused[_i].kind, refused[_i].body, 1), ERR_STORAGE_FAILURE,
             refused[_i].text);
    ck_assert_uint_eq(store_live_count(store), 0);
}
END_TEST

/* ---- the end of a replay ---- */

static void put_entity(const char *resource, char id, const char *json)
{
    const struct record_entity record = {
        .resource = span_str(resource),
        .id = {.b = {(uint8_t)id}},
        .object_no = next_serial,
        .version = next_serial,
        .json = span_str(json),
    };
    const struct store_origin origin = {.serial = next_serial++, .bytes = 1};
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    record_add_entity(&b, &record);
    ck_ok(store_apply(store, RECORD_ENTITY, buf_span(&b), &origin));
    buf_done(&b);
}

START_TEST(modules_are_told_when_all_is_there)
{
    put_entity("A.B", 1, "{}");
    put_entity("A.B", 2, "{}");
    ck_assert(!store_is_loaded(store));
    ck_ok(store_loaded(store));
    ck_assert(store_is_loaded(store));
    ck_span_eq(buf_span(&told), "loaded 2;");
}
END_TEST

START_TEST(a_module_may_refuse_a_journal)
{
    static const struct store_kind other = {
        .kind = RECORD_DELIVERY, .apply = apply_gone, .loaded = refuse_to_load};

    store_register(store, &other, objects);
    ck_fails(store_loaded(store), ERR_STORAGE_FAILURE, "it does not fit");
    ck_span_eq(buf_span(&told), "loaded 0;"); /* in the order of registration */
}
END_TEST

/* ---- collections ---- */

static void note_name(struct collection *c, void *arg)
{
    buf_printf(arg, "%.*s;", SPAN_FMT(collection_name(c)));
}

START_TEST(names_are_those_first_seen)
{
    struct collection *a = store_collection(store, SPAN("A.b"));
    struct collection *b = store_collection(store, SPAN("B"));

    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(store_collection(store, SPAN("a.B")), a);
    ck_assert_ptr_eq(store_collection(store, SPAN("A.B")), a);
    ck_assert_ptr_eq(store_collection(store, SPAN("b")), b);
    ck_assert_ptr_eq(store_collection(store, SPAN("A.b")), a);
    put_entity("a.b", 1, "{}");
    ck_assert_uint_eq(collection_count(a), 1);
    store_each_collection(store, note_name, &told);
    ck_span_eq(buf_span(&told), "A.b;B;");
}
END_TEST

/* ---- digests ---- */

static struct store_digest digest_now(void)
{
    return store_digest(store);
}

START_TEST(digests_do_not_depend_on_order)
{
    static const char *const texts[] = {"", "a", "b", "ab", "abcdefgh", "abcdefghi", "\0"};
    struct store_digest there = {0, 0}, back = {0, 0};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        store_digest_add(&there, span_str(texts[i]));
        store_digest_add(&back, span_str(texts[ARRAY_LEN(texts) - 1 - i]));
    }
    ck_assert_uint_eq(there.sum, back.sum);
    ck_assert_uint_eq(there.objects, ARRAY_LEN(texts));
}
END_TEST

/* Of texts that differ in a byte, in length, or in bytes that are null. */
START_TEST(digests_tell_texts_apart)
{
    static const struct span texts[] = {
        SPAN_INIT(""),          SPAN_INIT("\0"),
        SPAN_INIT("\0\0"),      SPAN_INIT("a"),
        SPAN_INIT("a\0"),       SPAN_INIT("b"),
        SPAN_INIT("ab"),        SPAN_INIT("ba"),
        SPAN_INIT("abcdefgh"),  SPAN_INIT("abcdefgh\0"),
        SPAN_INIT("abcdefghi"), SPAN_INIT("abcdefgi"),
        SPAN_INIT("bbcdefgh"),  SPAN_INIT("abcdefghabcdefgh"),
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (size_t j = 0; j < i; j++) {
            struct store_digest a = {0, 0}, b = {0, 0};

            store_digest_add(&a, texts[i]);
            store_digest_add(&b, texts[j]);
            ck_assert_msg(a.sum != b.sum, "texts %zu and %zu", i, j);
        }
}
END_TEST

START_TEST(digests_follow_the_state)
{
    struct store_digest empty = digest_now(), one, other;

    ck_assert_uint_eq(empty.objects, 0);
    put("1a", 1);
    one = digest_now();
    ck_assert_uint_eq(one.objects, 1);
    put("1b", 1);
    other = digest_now();
    ck_assert_uint_ne(one.sum, other.sum);
    put("1a", 99); /* where the record is does not matter */
    ck_assert_uint_eq(digest_now().sum, one.sum);
    put_entity("A.B", 1, "{}");
    ck_assert_uint_eq(digest_now().objects, 2);
    ck_assert_uint_ne(digest_now().sum, one.sum);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, objects_are_listed_by_their_records);
    tcase_add_test(tc, an_object_is_moved_by_its_module);
    tcase_add_loop_test(tc, what_does_not_fit_is_refused, 0, ARRAY_LEN(refused));
    tcase_add_test(tc, modules_are_told_when_all_is_there);
    tcase_add_test(tc, a_module_may_refuse_a_journal);
    tcase_add_test(tc, names_are_those_first_seen);
    tcase_add_test(tc, digests_do_not_depend_on_order);
    tcase_add_test(tc, digests_tell_texts_apart);
    tcase_add_test(tc, digests_follow_the_state);
}
