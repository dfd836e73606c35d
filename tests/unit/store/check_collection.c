/* Collections as the store fills them: live, on replay, and when the cleaner moves a record. */
#include "store_testing.h"

#include "testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/rng.h"
#include "journal/journal.h"
#include "query/conditions.h"
#include "query/shape.h"
#include "query/uri.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"
#include "json/json.h"

#include <string.h>

#define NAME "Shop.Person"

enum { PEOPLE_MOST = 200 };

static const struct property address_properties[] = {
    {.name = SPAN_INIT("City"), .type = TYPE_STRING},
};
static const struct shape address = {address_properties, ARRAY_LEN(address_properties)};

static const struct property properties[] = {
    {.name = SPAN_INIT("Id"), .type = TYPE_STRING, .flags = PROPERTY_ENTITY},
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Age"), .type = TYPE_INTEGER},
    {.name = SPAN_INIT("Tags"), .type = TYPE_ARRAY},
    {.name = SPAN_INIT("Address"), .type = TYPE_OBJECT, .members = &address},
    {.name = SPAN_INIT("Extra"), .type = TYPE_ANY},
};
static const struct shape shape = {properties, ARRAY_LEN(properties), .name = SPAN_INIT(NAME)};

static struct store_fixture f;
static struct arena arena;
static struct collection *people;

static void set_up(void)
{
    arena_init(&arena);
    store_fixture_init(&f);
    store_fixture_open(&f);
    people = store_collection(f.store, SPAN(NAME));
}

static void tear_down(void)
{
    store_fixture_done(&f);
    arena_done(&arena);
}

static void reload(void)
{
    struct store_digest before, after;

    store_fixture_commit(&f);
    before = store_digest(f.store);
    store_fixture_close(&f);
    store_fixture_open(&f);
    after = store_digest(f.store);
    ck_assert_uint_eq(before.sum, after.sum);
    ck_assert_uint_eq(before.objects, after.objects);
    people = store_collection(f.store, SPAN(NAME));
}

static struct entity *insert(const char *name, int age)
{
    return store_fixture_insert(&f, NAME,
                                arena_printf(&arena, "\"Name\":\"%s\",\"Age\":%d", name, age).p);
}

static void update(struct entity *e, const char *name, int age)
{
    store_fixture_update(&f, e, arena_printf(&arena, "\"Name\":\"%s\",\"Age\":%d", name, age).p);
}

/* What begins above a number, for all numbers there can be, as a walk over all finds it. */
static void check_beginnings(uint64_t most)
{
    struct entity *e = collection_first(people);

    for (uint64_t n = 0; n <= most; n++) {
        while (e != NULL && e->object_no <= n)
            e = collection_next(people, e);
        ck_assert_ptr_eq(collection_above(people, n), e);
    }
}

/* From the front, as retention does, and from anywhere. */
static void remove_some(struct entity **all, size_t *count, size_t how_many)
{
    for (; how_many > 0 && *count > 0; how_many--) {
        size_t at = rng_below(2) == 0 ? 0 : (size_t)rng_below(*count);

        store_fixture_delete(&f, all[at]);
        if (how_many % 64 == 0)
            store_fixture_commit(&f);
        memmove(&all[at], &all[at + 1], (--*count - at) * sizeof(*all));
    }
}

START_TEST(beginnings_of_pages)
{
    static struct entity *all[8000];
    uint64_t most = 0;
    size_t count = 0;

    for (int round = 0; round < 12; round++) {
        for (size_t n = (size_t)rng_below(600); n > 0; n--) {
            all[count] = insert("x", 1);
            most = all[count++]->object_no;
            if (n % 64 == 0)
                store_fixture_commit(&f);
        }
        check_beginnings(most + 2);
        remove_some(all, &count, (size_t)rng_below(700));
        check_beginnings(most + 2);
        arena_reset(&arena);
    }
    remove_some(all, &count, count);
    check_beginnings(most);
    insert("y", 1);
    check_beginnings(most + 10);
    reload();
    check_beginnings(most + 10);
}
END_TEST

static struct err *try_to_index(size_t count, const char *const *names)
{
    struct span spans[4];

    for (size_t i = 0; i < count; i++)
        spans[i] = span_str(names[i]);
    return collection_set_indexes(people, &shape, spans, count);
}

#define set_indexes(...)                                                                           \
    ck_ok(try_to_index(ARRAY_LEN(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__}))

/* The names of the entities that follow, in their order, as `a b c`. */
static const char *names_of(struct entity *(*next)(void *walk), void *walk)
{
    static const struct span name = SPAN_INIT("Name");
    struct buf b;
    struct span text;

    buf_init(&b, BUF_NO_CAP);
    for (struct entity *e = next(walk); e != NULL; e = next(walk)) {
        struct json_value json = entity_parse(entity_json(e), &arena);

        if (b.n > 0)
            buf_add_char(&b, ' ');
        buf_add(&b, json_string(json_member(json, name), &arena));
    }
    text = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return arena_printf(&arena, "%.*s", SPAN_FMT(text)).p;
}

static struct entity *next_of_all(void *at)
{
    struct entity **next = at, *e = *next;

    if (e != NULL)
        *next = collection_next(people, e);
    return e;
}

static const char *all_names(void)
{
    struct entity *next = collection_first(people);

    return names_of(next_of_all, &next);
}

static struct conditions parse(const char *text)
{
    struct span target = arena_printf(&arena, "/X/%s", text);
    struct conditions conditions;
    struct uri uri;

    ck_ok(uri_parse(target, SPAN("/"), 64, &arena, &uri));
    ck_ok(conditions_parse(uri.conditions, uri.condition_count, &shape, &arena, &conditions));
    return conditions;
}

static struct entity *next_of_walk(void *walk)
{
    return collection_walk_next(walk);
}

/* The same turned back yields the same from the last one back. */
static void check_turned(const struct conditions *conditions)
{
    struct collection_walk walk, turned;
    struct entity *all[256];
    size_t count = 0;

    collection_walk(people, conditions, &walk);
    for (struct entity *e; (e = collection_walk_next(&walk)) != NULL; all[count++] = e)
        ck_assert_uint_lt(count, ARRAY_LEN(all));
    collection_walk(people, conditions, &turned);
    collection_walk_turn(&turned);
    while (count > 0)
        ck_assert_ptr_eq(collection_walk_next(&turned), all[--count]);
    ck_assert_ptr_null(collection_walk_next(&turned));
}

/* The names that a walk yields, behind `all:` when they need not be tested any more. */
static const char *walked(const char *text)
{
    struct conditions conditions = parse(text);
    struct collection_walk walk;
    bool holds;

    check_turned(&conditions);
    collection_walk(people, &conditions, &walk);
    holds = walk.holds;
    return arena_printf(&arena, "%s%s", holds ? "all:" : "", names_of(next_of_walk, &walk)).p;
}

/* For the fixture, before a replay. */
static void index_while_loading(struct store *store)
{
    people = store_collection(store, SPAN(NAME));
    set_indexes("Name", "Age");
}

static void free_nothing(void)
{
}

/* ---- what is there ---- */

START_TEST(an_empty_one)
{
    struct uuid id = uuid_new();

    ck_span_eq(collection_name(people), NAME);
    ck_assert_uint_eq(collection_count(people), 0);
    ck_assert_uint_eq(collection_version(people), 0);
    ck_assert_ptr_null(collection_find(people, &id));
    ck_assert_ptr_null(collection_first(people));
    ck_assert_str_eq(walked("_"), "");
    ck_assert_str_eq(walked("Name=Ada"), "");
}
END_TEST

START_TEST(entities_are_found_and_counted)
{
    struct entity *ada = insert("Ada", 1), *bob = insert("Bob", 2), *cy = insert("Cy", 3);
    struct uuid id = bob->id;

    ck_assert_uint_eq(collection_count(people), 3);
    ck_assert_ptr_eq(collection_find(people, &ada->id), ada);
    ck_assert_ptr_eq(collection_find(people, &cy->id), cy);
    ck_assert_ptr_eq(ada->collection, people);
    ck_assert_str_eq(all_names(), "Ada Bob Cy");
    store_fixture_delete(&f, bob);
    ck_assert_ptr_null(collection_find(people, &id));
    ck_assert_str_eq(all_names(), "Ada Cy");
    ck_assert_uint_eq(collection_count(people), 2);
    reload();
    ck_assert_ptr_null(collection_find(people, &id));
    ck_assert_str_eq(all_names(), "Ada Cy");
}
END_TEST

START_TEST(a_change_keeps_the_place)
{
    struct entity *ada = insert("Ada", 1);

    insert("Bob", 2);
    update(ada, "Eve", 3);
    ck_assert_str_eq(all_names(), "Eve Bob");
    reload();
    ck_assert_str_eq(all_names(), "Eve Bob");
}
END_TEST

/* What a list waits for. */
START_TEST(each_change_is_a_new_version)
{
    uint64_t version = collection_version(people), other;
    struct entity *ada = insert("Ada", 1);

    ck_assert_uint_gt(collection_version(people), version);
    ck_assert_uint_eq(collection_version(people), ada->version);
    version = collection_version(people);
    update(ada, "Eve", 1);
    ck_assert_uint_gt(collection_version(people), version);
    ck_assert_uint_eq(collection_version(people), ada->version);
    version = collection_version(people);
    other = store_fixture_insert(&f, "Another", "\"N\":1")->version;
    ck_assert_uint_eq(collection_version(people), version);
    store_fixture_delete(&f, ada);
    ck_assert_uint_gt(collection_version(people), other);
}
END_TEST

/* ---- records that move ---- */

static void move(struct entity *e)
{
    struct change change;
    uint64_t serial;

    change_init(&change, f.turn, &arena);
    change.is_move = true;
    ck_ok(store_move(f.store, &e->stored, &change));
    ck_ok(turn_apply(f.turn, &change, &serial));
    ck_assert_uint_eq(e->stored.serial, serial);
    ck_assert_uint_eq(serial, journal_next_serial(turn_journal(f.turn)) - 1);
    change_done(&change);
}

START_TEST(a_record_that_moves_changes_nothing)
{
    struct entity *ada = insert("Ada", 1), *bob = insert("Bob", 2);
    struct store_digest before = store_digest(f.store);
    uint64_t version = collection_version(people), object_no = ada->object_no;
    struct blob *json = ada->json;

    move(ada);
    ck_assert_ptr_eq(ada->json, json);
    ck_assert_uint_eq(ada->object_no, object_no);
    ck_assert_uint_eq(collection_version(people), version);
    ck_assert_uint_eq(store_digest(f.store).sum, before.sum);
    ck_assert_ptr_eq(store_oldest(f.store), &bob->stored);
    reload(); /* which meets Bob first */
    ck_assert_str_eq(all_names(), "Ada Bob");
}
END_TEST

/* Of Ada there is only the record that was moved: a replay meets her behind Bob. Of the others one
 * fills a segment, lest the cleaner finds something to do. */
START_TEST(a_moved_record_keeps_its_place)
{
    struct journal *journal = turn_journal(f.turn);
    struct entity *ada = insert("Ada", 1), *other;
    const char *filling = arena_printf(&arena, "\"Text\":\"%050000d\"", 0).p;

    other = store_fixture_insert(&f, "Others", filling);
    store_fixture_commit(&f);
    store_fixture_insert(&f, "Others", filling);
    store_fixture_commit(&f);
    insert("Bob", 1);
    move(ada);
    insert("Cy", 1);
    store_fixture_delete(&f, other);
    ck_assert_uint_gt(journal_second_first_serial(journal), 0);
    ck_assert(!store_is_in(store_oldest(f.store), journal_oldest_number(journal)));
    journal_drop_oldest(journal);
    f.make_module = index_while_loading;
    f.free_module = free_nothing;
    reload();
    ck_assert_str_eq(all_names(), "Ada Bob Cy");
    ck_assert_str_eq(walked("Age=1"), "Ada Bob Cy");
}
END_TEST

/* The cleaner may have dropped the record that inserted an entity, and keep one that says that it
 * is gone. */
START_TEST(who_is_not_there_cannot_be_removed)
{
    struct uuid id = uuid_new();
    struct change change;
    uint64_t serial;

    insert("Ada", 1);
    change_init(&change, f.turn, &arena);
    change_delete_entity(&change, SPAN(NAME), &id);
    ck_ok(turn_apply(f.turn, &change, &serial));
    change_done(&change);
    ck_assert_uint_eq(collection_count(people), 1);
    reload();
    ck_assert_uint_eq(collection_count(people), 1);
}
END_TEST

/* ---- observers ---- */

static struct buf observed;

static void observe_put(void *context, struct entity *e, struct span old_json)
{
    struct json_value json = entity_parse(entity_json(e), &arena);
    struct span name = json_string(json_member(json, SPAN("Name")), &arena);

    ck_assert_ptr_eq(context, &f);
    ck_assert_ptr_eq(collection_find(e->collection, &e->id), e);
    buf_printf(&observed, "%s%.*s ", old_json.p == NULL ? "+" : "=", SPAN_FMT(name));
}

static void observe_gone(void *context, struct entity *e)
{
    ck_assert_ptr_eq(context, &f);
    ck_assert_ptr_nonnull(e->json); /* it is still whole */
    buf_add_str(&observed, "- ");
}

static const struct collection_observer observer = {observe_put, observe_gone};

static void observe(struct store *store)
{
    collection_observe(store_collection(store, SPAN(NAME)), &observer, &f);
}

START_TEST(an_observer_is_told_of_each_change)
{
    struct entity *ada;

    buf_init(&observed, BUF_NO_CAP);
    observe(f.store);
    ada = insert("Ada", 1);
    insert("Bob", 2);
    update(ada, "Eve", 3);
    move(ada);
    store_fixture_delete(&f, ada);
    ck_span_eq(buf_span(&observed), "+Ada +Bob =Eve - ");
    buf_done(&observed);
}
END_TEST

/* Once for each that is there in the end, in their order, whatever the journal tells. */
START_TEST(an_observer_is_told_what_a_replay_has_brought)
{
    struct entity *ada = insert("Ada", 1), *bob = insert("Bob", 2);

    insert("Cy", 3);
    update(ada, "Eve", 4);
    update(ada, "Eva", 4);
    store_fixture_delete(&f, bob);
    move(ada);
    buf_init(&observed, BUF_NO_CAP);
    f.make_module = observe;
    f.free_module = free_nothing;
    reload();
    ck_span_eq(buf_span(&observed), "+Eva +Cy ");
    buf_done(&observed);
}
END_TEST

/* ---- indexes ---- */

static const struct {
    const char *name;
    enum err_code code;
    const char *text;
} unindexed[] = {
    {"Tags", ERR_INVALID_ENTITY, "'Tags' cannot be indexed"},
    {"Address", ERR_INVALID_ENTITY, "'Address' cannot be indexed"},
    {"Extra", ERR_INVALID_ENTITY, "'Extra' cannot be indexed"},
    {"Nme", ERR_UNKNOWN_PROPERTY, "Nme"},
    {"Name..x", ERR_INVALID_CONDITION_SYNTAX, "Name..x"},
};

/* The earlier ones stay. */
START_TEST(what_cannot_be_indexed_changes_nothing)
{
    insert("Ada", 1);
    insert("Bob", 2);
    set_indexes("Name");
    ck_fails(try_to_index(2, (const char *[]){"Age", unindexed[_i].name}), unindexed[_i].code,
             unindexed[_i].text);
    ck_assert_str_eq(walked("Name=Bob"), "Bob");
    ck_assert_str_eq(walked("Age=1"), "Ada Bob");
}
END_TEST

START_TEST(indexes_are_replaced)
{
    insert("Ada", 1);
    insert("Bob", 2);
    set_indexes("Name", "Age");
    ck_assert_str_eq(walked("Name=Bob"), "Bob");
    ck_assert_str_eq(walked("Age=1"), "Ada");
    set_indexes("Age");
    ck_assert_str_eq(walked("Name=Bob"), "Ada Bob");
    ck_assert_str_eq(walked("Age=1"), "Ada");
    ck_ok(collection_set_indexes(people, &shape, NULL, 0));
    ck_assert_str_eq(walked("Age=1"), "Ada Bob");
}
END_TEST

START_TEST(indexes_follow_changes)
{
    struct entity *ada = insert("Ada", 1), *bob, *cy;

    set_indexes("Age");
    bob = insert("Bob", 1);
    cy = insert("Cy", 2);
    ck_assert_str_eq(walked("Age=1"), "Ada Bob");
    update(ada, "Ada", 2);
    ck_assert_str_eq(walked("Age=1"), "Bob");
    ck_assert_str_eq(walked("Age=2"), "Ada Cy"); /* in order of insertion */
    store_fixture_delete(&f, bob);
    ck_assert_str_eq(walked("Age=1"), "");
    store_fixture_update(&f, cy, "\"Name\":\"Cy\"");
    ck_assert_str_eq(walked("Age=null"), "Cy");
    ck_assert_str_eq(walked("Age=2"), "Ada");
}
END_TEST

START_TEST(indexes_are_there_after_a_replay)
{
    struct entity *ada = insert("Ada", 1);

    insert("Bob", 2);
    update(ada, "Ada", 2);
    move(ada);
    f.make_module = index_while_loading;
    f.free_module = free_nothing;
    reload();
    ck_assert_str_eq(walked("Age=2"), "Ada Bob");
    ck_assert_str_eq(walked("Age=1"), "");
    insert("Cy", 2);
    ck_assert_str_eq(walked("Age=2"), "Ada Bob Cy");
}
END_TEST

/* ---- walks ---- */

static const struct {
    const char *conditions, *names;
} walks[] = {
    {"_", "Ada Bob Cy Bob"},
    {"Name=Bob", "Bob Bob"},
    {"name=Bob", "Bob Bob"},
    {"Name='Bob'", "Bob Bob"},
    {"Name=bob", ""},
    {"Name=Nobody", ""},
    {"Name!=Bob", "Ada Bob Cy Bob"},
    {"Age=2", "Bob Cy"},
    {"Age=2.0", "Bob Cy"},
    {"Age>1", "Ada Bob Cy Bob"},
    {"Address.City=Rome", "Ada Bob Cy Bob"}, /* not indexed */
    /* the narrowest way */
    {"Name=Cy&Age=2", "Cy"},
    {"Age=2&Name=Cy", "Cy"},
    {"Age=1&Name=Bob", "Ada"},
    {"Age=9&Name=Bob", ""},
    {"Name=Bob&Age=9", ""},
    {"Age>0&Name=Ada", "Ada"},
    {"Name=Ada&Name=Bob", "Ada"},
    /* ids, of which no entity has such a one */
    {"Id=nonsense", "all:"},
    {"Id=nonsense&Name=Bob", ""},
    {"Id=null", "all:"},
};

START_TEST(a_walk_takes_the_narrowest_way)
{
    insert("Ada", 1);
    set_indexes("Name", "Age");
    insert("Bob", 2);
    insert("Cy", 2);
    insert("Bob", 3);
    ck_assert_str_eq(walked(walks[_i].conditions), walks[_i].names);
}
END_TEST

START_TEST(an_id_leads_to_its_entity)
{
    struct entity *ada = insert("Ada", 1);
    char id[UUID_TEXT_BYTES + 1];

    insert("Bob", 2);
    uuid_text(&ada->id, id);
    ck_assert_str_eq(walked(arena_printf(&arena, "Id=%s", id).p), "all:Ada");
    ck_assert_str_eq(walked(arena_printf(&arena, "Id='%s'", id).p), "all:Ada");
    ck_assert_str_eq(walked(arena_printf(&arena, "Name=Bob&id=%s", id).p), "Ada");
    ck_assert_str_eq(walked(arena_printf(&arena, "Id!=%s", id).p), "Ada Bob");
    /* Ids compare as text. */
    for (char *p = id; *p != '\0'; p++)
        *p = (char)(*p >= 'a' && *p <= 'f' ? *p - 'a' + 'A' : *p);
    ck_assert_str_eq(walked(arena_printf(&arena, "Id=%s", id).p), "all:");
}
END_TEST

/* ---- at random ---- */

/* What the collection must agree with: the entities in order of insertion. */
static struct person {
    struct uuid id;
    char name[4];
    int age;
} model[PEOPLE_MOST];
static size_t model_count;

static struct entity *entity_of(const struct person *p)
{
    struct entity *e = collection_find(people, &p->id);

    ck_assert_ptr_nonnull(e);
    return e;
}

static void step(void)
{
    char name[4] = {(char)('A' + rng_below(6)), 0};
    int age = (int)rng_below(5);
    size_t at = model_count == 0 ? 0 : (size_t)rng_below(model_count);
    unsigned what = (unsigned)rng_below(10);

    if (what < 5 || model_count == 0) {
        if (model_count == PEOPLE_MOST)
            return;
        model[model_count].id = insert(name, age)->id;
        at = model_count++;
    } else if (what < 7) {
        update(entity_of(&model[at]), name, age);
    } else if (what < 8) {
        move(entity_of(&model[at]));
        return;
    } else {
        store_fixture_delete(&f, entity_of(&model[at]));
        memmove(&model[at], &model[at + 1], (--model_count - at) * sizeof(model[0]));
        return;
    }
    memcpy(model[at].name, name, sizeof(name));
    model[at].age = age;
}

static const char *model_names(const char *name, int age)
{
    const char *text = "";

    for (size_t i = 0; i < model_count; i++) {
        const struct person *p = &model[i];

        if ((name == NULL || strcmp(p->name, name) == 0) && (age < 0 || p->age == age))
            text = arena_printf(&arena, "%s%s%s", text, *text == '\0' ? "" : " ", p->name).p;
    }
    return text;
}

static void compare(void)
{
    ck_assert_str_eq(all_names(), model_names(NULL, -1));
    ck_assert_uint_eq(collection_count(people), model_count);
    for (int i = 0; i < 6; i++) {
        char name[2] = {(char)('A' + i), 0};

        ck_assert_str_eq(walked(arena_printf(&arena, "Name=%s", name).p), model_names(name, -1));
        ck_assert_str_eq(walked(arena_printf(&arena, "Age=%d", i).p), model_names(NULL, i));
    }
    arena_reset(&arena);
}

START_TEST(changes_at_random)
{
    rng_seed((uint64_t)_i + 1);
    model_count = 0;
    index_while_loading(f.store);
    f.make_module = index_while_loading;
    f.free_module = free_nothing;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 60; i++)
            step();
        compare();
        reload();
        compare();
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, beginnings_of_pages);
    tcase_add_test(tc, an_empty_one);
    tcase_add_test(tc, entities_are_found_and_counted);
    tcase_add_test(tc, a_change_keeps_the_place);
    tcase_add_test(tc, each_change_is_a_new_version);
    tcase_add_test(tc, a_record_that_moves_changes_nothing);
    tcase_add_test(tc, a_moved_record_keeps_its_place);
    tcase_add_test(tc, who_is_not_there_cannot_be_removed);
    tcase_add_test(tc, an_observer_is_told_of_each_change);
    tcase_add_test(tc, an_observer_is_told_what_a_replay_has_brought);
    tcase_add_loop_test(tc, what_cannot_be_indexed_changes_nothing, 0, ARRAY_LEN(unindexed));
    tcase_add_test(tc, indexes_are_replaced);
    tcase_add_test(tc, indexes_follow_changes);
    tcase_add_test(tc, indexes_are_there_after_a_replay);
    tcase_add_loop_test(tc, a_walk_takes_the_narrowest_way, 0, ARRAY_LEN(walks));
    tcase_add_test(tc, an_id_leads_to_its_entity);
    tcase_add_loop_test(tc, changes_at_random, 0, 8);
}
