#include "store_testing.h"

#include "testing.h"

#include "base/rng.h"
#include "io/disk.h"
#include "store/turn_wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static struct store_fixture f;

/* The journal's files may take so many bytes together; 0: any number. */
static uint64_t disk_bytes;

static uint64_t bytes_on_disk(void)
{
    DIR *directory = opendir(f.directory);
    const struct dirent *entry;
    uint64_t bytes = 0;
    struct stat st;

    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) != NULL)
        if (fstatat(dirfd(directory), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size;
    closedir(directory);
    return bytes;
}

/* In the place of the library's: a small disk. */
int posix_fallocate(int fd, off_t offset, off_t n)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    if (disk_bytes != 0 && bytes_on_disk() + (uint64_t)(offset + n - st.st_size) > disk_bytes)
        return ENOSPC;
    return fallocate(fd, 0, offset, n) == 0 ? 0 : errno;
}

static void set_up(void)
{
    disk_bytes = 0;
    store_fixture_init(&f);
    store_fixture_open(&f);
}

static void tear_down(void)
{
    store_fixture_done(&f);
}

/* The digest after closing and opening again must be the same. */
static void check_reload(void)
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

START_TEST(an_entity_comes_back)
{
    struct entity *e = store_fixture_insert(&f, "Shop.Person", "\"Name\":\"Ada\"");
    struct uuid id = e->id;
    uint64_t object_no = e->object_no;

    check_reload();
    e = collection_find(store_collection(f.store, SPAN("shop.person")), &id);
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->object_no, object_no);
    ck_assert(span_find(entity_json(e), SPAN("\"Name\":\"Ada\"")) != SIZE_MAX);
}
END_TEST

START_TEST(an_update_keeps_id_and_number)
{
    struct entity *e = store_fixture_insert(&f, "Shop.Person", "\"Name\":\"Ada\"");
    uint64_t object_no = e->object_no, version = e->version;

    store_fixture_update(&f, e, "\"Name\":\"Grace\"");
    ck_assert_uint_eq(e->object_no, object_no);
    ck_assert_uint_gt(e->version, version);
    check_reload();
    e = collection_first(store_collection(f.store, SPAN("Shop.Person")));
    ck_assert(span_find(entity_json(e), SPAN("Grace")) != SIZE_MAX);
    ck_assert_uint_eq(e->object_no, object_no);
}
END_TEST

START_TEST(a_deleted_entity_stays_away)
{
    struct entity *e = store_fixture_insert(&f, "Shop.Person", "\"Name\":\"Ada\"");

    store_fixture_insert(&f, "Shop.Person", "\"Name\":\"Grace\"");
    store_fixture_delete(&f, e);
    check_reload();
    ck_assert_uint_eq(collection_count(store_collection(f.store, SPAN("Shop.Person"))), 1);
}
END_TEST

START_TEST(entities_keep_their_order)
{
    struct entity *first = store_fixture_insert(&f, "A.B", "\"N\":1");

    store_fixture_insert(&f, "A.B", "\"N\":2");
    store_fixture_insert(&f, "A.B", "\"N\":3");
    store_fixture_update(&f, first, "\"N\":11");
    check_reload();
    first = collection_first(store_collection(f.store, SPAN("A.B")));
    ck_assert(span_find(entity_json(first), SPAN("\"N\":11")) != SIZE_MAX);
}
END_TEST

struct waiter {
    struct turn_wait wait;
    int order;
};

static int released;

static void on_committed(struct turn_wait *wait)
{
    struct waiter *w = CONTAINER_OF(wait, struct waiter, wait);

    ck_assert(turn_is_committed(f.turn, wait->serial));
    w->order = ++released;
}

START_TEST(waits_are_released_in_order_of_serials)
{
    struct waiter second = {.wait.on_committed = on_committed};
    struct waiter first = {.wait.on_committed = on_committed};
    uint64_t a = store_fixture_insert(&f, "A.B", "\"N\":1")->version;
    uint64_t b = store_fixture_insert(&f, "A.B", "\"N\":2")->version;

    released = 0;
    ck_assert(!turn_is_committed(f.turn, a));
    turn_wait(f.turn, &second.wait, b);
    turn_wait(f.turn, &first.wait, a);
    ck_assert_int_eq(released, 0);
    store_fixture_commit(&f);
    ck_assert_int_eq(first.order, 1);
    ck_assert_int_eq(second.order, 2);
}
END_TEST

START_TEST(a_change_is_one)
{
    struct change change;
    struct uuid id;
    uint64_t serial = 0;

    change_init(&change, f.turn, &f.arena);
    for (int i = 0; i < 5; i++) {
        id = uuid_new();
        change_put_entity(&change, SPAN("A.B"), &id, change_next_serial(&change), SPAN("{}"));
    }
    ck_assert_uint_eq(collection_count(store_collection(f.store, SPAN("A.B"))), 0);
    ck_ok(turn_apply(f.turn, &change, &serial));
    ck_assert_uint_eq(collection_count(store_collection(f.store, SPAN("A.B"))), 5);
    ck_assert_uint_eq(serial, change.next_serial - 1);
    change_done(&change);
    check_reload();
}
END_TEST

START_TEST(an_empty_change_needs_nothing)
{
    struct change change;
    uint64_t serial = 1;

    change_init(&change, f.turn, &f.arena);
    ck_ok(turn_apply(f.turn, &change, &serial));
    ck_assert_uint_eq(serial, 0);
    change_done(&change);
}
END_TEST

/* Rewriting a few entities for ever: the directory stays under twice what is alive plus two
 * segments (and the one being prepared), and nothing is lost. */
START_TEST(the_journal_cleans_itself)
{
    struct entity *kept[20];
    char members[600];
    uint64_t bytes;

    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        kept[i] = store_fixture_insert(&f, "A.B", "\"N\":0");
    for (int round = 0; round < 4000; round++) {
        snprintf(members, sizeof(members), "\"N\":%d,\"Text\":\"%0400d\"", round, round);
        store_fixture_update(&f, kept[rng_below(ARRAY_LEN(kept))], members);
        if (round % 16 == 0)
            store_fixture_commit(&f);
    }
    store_fixture_commit(&f);
    for (int i = 0; i < 50; i++)
        loop_run_once(&f.loop);
    store_fixture_segments(&f, &bytes);
    ck_assert_uint_le(bytes, 2 * store_live_bytes(f.store) + 4 * f.segment_bytes);
    check_reload();
}
END_TEST

/* Many turns in which nothing happens but cleaning. */
static void settle(void)
{
    for (int i = 0; i < 100; i++) {
        store_fixture_turn(&f);
        store_fixture_commit(&f);
    }
}

/* Objects of which only one fits into a segment always take too much room; moving them about again
 * and again would not change that. */
START_TEST(cleaning_ends_where_nothing_can_be_gained)
{
    struct journal_stats before, after;
    struct buf members = {.max = BUF_NO_CAP};

    buf_add_str(&members, "\"Padding\":\"");
    while (members.n < 34000)
        buf_add_char(&members, 'x');
    buf_add_str(&members, "\"");
    for (int i = 0; i < 16; i++) {
        store_fixture_insert(&f, "A.B", buf_text(&members));
        store_fixture_commit(&f);
    }
    buf_done(&members);
    settle();
    journal_stats(turn_journal(f.turn), &before);
    ck_assert_uint_gt(before.sealed_bytes * 2, store_live_bytes(f.store) * 3);
    settle();
    journal_stats(turn_journal(f.turn), &after);
    ck_assert_uint_eq(after.appended_bytes, before.appended_bytes);
    check_reload();
}
END_TEST

/* What a change replaced may be needed again after a crash, until the change is committed. */
START_TEST(nothing_goes_before_what_replaces_it_is_committed)
{
    struct collection *c = store_collection(f.store, SPAN("A.B"));
    struct entity *oldest;
    uint64_t second, bytes;

    while ((second = journal_second_first_serial(turn_journal(f.turn))) == 0) {
        store_fixture_insert(&f, "A.B", "\"N\":1");
        store_fixture_commit(&f);
    }
    while ((oldest = collection_first(c)) != NULL && oldest->version < second)
        store_fixture_delete(&f, oldest);
    journal_drop_oldest(turn_journal(f.turn));
    ck_assert_uint_eq(store_fixture_segments(&f, &bytes), 2);
    store_fixture_commit(&f);
    ck_assert_uint_eq(store_fixture_segments(&f, &bytes), 1);
    check_reload();
}
END_TEST

START_TEST(deletions_survive_cleaning)
{
    char members[600];

    for (int round = 0; round < 1500; round++) {
        struct entity *e;

        snprintf(members, sizeof(members), "\"N\":%d,\"Text\":\"%0400d\"", round, round);
        e = store_fixture_insert(&f, "A.B", members);
        if (round % 3 != 0)
            store_fixture_delete(&f, e);
        if (round % 16 == 0)
            store_fixture_commit(&f);
    }
    check_reload();
    ck_assert_uint_eq(collection_count(store_collection(f.store, SPAN("A.B"))), 500);
}
END_TEST

/* ---- a full disk ---- */

static struct err *try_insert(const char *members)
{
    struct change change;
    struct uuid id = uuid_new();
    uint64_t serial;
    struct err *e;

    change_init(&change, f.turn, &f.arena);
    change_put_entity(&change, SPAN("A.B"), &id, change_next_serial(&change), span_str(members));
    e = turn_apply(f.turn, &change, &serial);
    change_done(&change);
    arena_reset(&f.arena);
    return e;
}

static const char *members_of(size_t n)
{
    static char text[60000];

    snprintf(text, sizeof(text), "{\"Text\":\"%0*d\"}", (int)n - 12, 0);
    return text;
}

static const char *some_members(size_t most)
{
    return members_of(40 + (size_t)rng_below((uint32_t)most - 40));
}

static void fill_the_disk(size_t n)
{
    size_t count = 0;
    struct err *e;

    while ((e = try_insert(some_members(n))) == NULL) {
        ck_assert_uint_lt(++count, 100000);
        if (count % 16 == 0)
            store_fixture_commit(&f);
    }
    store_fixture_commit(&f);
    ck_assert_int_eq(err_code(e), ERR_STORAGE_FAILURE);
    err_free(e);
}

static struct entity *entity_at(size_t place)
{
    const struct collection *c = store_collection(f.store, SPAN("A.B"));
    struct entity *e = collection_first(c);

    while (place-- > 0)
        e = collection_next(c, e);
    return e;
}

/* Cleaning, until there is room for an entity of n bytes. */
static void an_entity_finds_room(size_t n)
{
    struct err *e = try_insert(members_of(n));

    for (unsigned i = 0; e != NULL; i++) {
        err_free(e);
        testing_await(i);
        store_fixture_turn(&f);
        e = try_insert(members_of(n));
    }
    store_fixture_commit(&f);
}

static void use_a_small_disk(uint64_t segments)
{
    store_fixture_close(&f);
    f.segment_bytes = 1 << 20;
    disk_bytes = segments * f.segment_bytes + DISK_BLOCK_BYTES; /* the lock has a file too */
    store_fixture_open(&f);
}

static const struct {
    uint64_t segments;   /* of the disk */
    size_t entity;       /* bytes of the largest */
    unsigned one_in;     /* so many is deleted */
    bool from_the_front; /* else anywhere */
} disks[] = {
    {3, 9000, 4, true},   {3, 9000, 4, false}, {4, 60000, 4, false},  {4, 30000, 8, true},
    {4, 30000, 20, true}, {9, 8000, 8, false}, {9, 30000, 20, false}, {15, 50000, 10, true},
};

/* Fill it, delete a part, and there is room again, many times; whatever was kept is still there. */
START_TEST(every_deletion_makes_room_in_the_end)
{
    size_t places, n;
    struct collection *c;

    use_a_small_disk(disks[_i].segments);
    for (int round = 0; round < 4; round++) {
        fill_the_disk(disks[_i].entity);
        c = store_collection(f.store, SPAN("A.B"));
        n = collection_count(c) / disks[_i].one_in;
        for (size_t i = 0; i < n; i++) {
            places = disks[_i].from_the_front ? 1 : collection_count(c);
            store_fixture_delete(&f, entity_at((size_t)rng_below((uint32_t)places)));
            store_fixture_commit(&f);
        }
        an_entity_finds_room(disks[_i].entity);
        ck_assert_uint_le(bytes_on_disk(), disk_bytes);
        if (round == 3)
            check_reload();
    }
}
END_TEST

/* One at a time, when nothing else happens, down to the last. */
START_TEST(a_full_disk_can_be_emptied)
{
    struct collection *c;

    use_a_small_disk(3);
    fill_the_disk(3000);
    c = store_collection(f.store, SPAN("A.B"));
    while (collection_count(c) > 0) {
        store_fixture_delete(&f, entity_at((size_t)rng_below((uint32_t)collection_count(c))));
        store_fixture_commit(&f);
    }
    an_entity_finds_room(3000);
    check_reload();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, an_entity_comes_back);
    tcase_add_test(tc, an_update_keeps_id_and_number);
    tcase_add_test(tc, a_deleted_entity_stays_away);
    tcase_add_test(tc, entities_keep_their_order);
    tcase_add_test(tc, waits_are_released_in_order_of_serials);
    tcase_add_test(tc, a_change_is_one);
    tcase_add_test(tc, an_empty_change_needs_nothing);
    tcase_add_test(tc, the_journal_cleans_itself);
    tcase_add_test(tc, cleaning_ends_where_nothing_can_be_gained);
    tcase_add_test(tc, nothing_goes_before_what_replaces_it_is_committed);
    tcase_add_test(tc, deletions_survive_cleaning);
    tcase_add_loop_test(tc, every_deletion_makes_room_in_the_end, 0, ARRAY_LEN(disks));
    tcase_add_test(tc, a_full_disk_can_be_emptied);
}
