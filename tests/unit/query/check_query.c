/* Queries: what comes out of a list of entities, and how it looks (docs/specification.md, section
 * 3). */
#include "sample.h"
#include "testing.h"

#include "base/rng.h"
#include "query/path.h"
#include "query/query.h"
#include "query/source.h"
#include "query/uri.h"
#include "query/value_key.h"

#include <string.h>

static struct arena arena;

/* ---- a source over an array of texts ---- */

struct list {
    struct query_source source;
    const char *const *texts;
    size_t count, next; /* so many have been asked for */
    bool is_turned;
    size_t rendered, computed;
    size_t most_bytes; /* allocated when next was called */
};

static bool list_next(struct query_source *source, struct query_item *out_item)
{
    struct list *list = CONTAINER_OF(source, struct list, source);
    size_t place = list->is_turned ? list->count - 1 - list->next : list->next;

    list->most_bytes = MAX(list->most_bytes, mem_bytes());
    if (list->next == list->count)
        return false;
    list->next++;
    out_item->json = span_str(list->texts[place]);
    out_item->object = (void *)(uintptr_t)place;
    return true;
}

static void list_turn_back(struct query_source *source)
{
    CONTAINER_OF(source, struct list, source)->is_turned = true;
}

/* For a list that gives no texts. */
static bool list_next_object(struct query_source *source, struct query_item *out_item)
{
    bool is_there = list_next(source, out_item);

    out_item->json = span_of(NULL, 0);
    return is_there;
}

static struct span list_render(struct query_source *source, const struct query_item *item,
                               struct arena *a)
{
    struct list *list = CONTAINER_OF(source, struct list, source);

    list->rendered++;
    return arena_copy(a, span_str(list->texts[(uintptr_t)item->object]));
}

/* Visits: ten times the place in the list. */
static struct span list_hidden(struct query_source *source, const struct query_item *item,
                               const struct property *property, struct arena *a)
{
    CONTAINER_OF(source, struct list, source)->computed++;
    ck_span_eq(property->name, "Visits");
    return arena_printf(a, "%zu", 10 * (size_t)(uintptr_t)item->object);
}

static struct list list_of(const char *const *texts, size_t count, bool renders)
{
    struct list list = {
        .source = {.next = list_next, .hidden = list_hidden}, .texts = texts, .count = count};

    if (renders) {
        list.source.next = list_next_object;
        list.source.render = list_render;
    }
    return list;
}

static struct err *parse(const char *parts, enum sample shape, struct query *out)
{
    struct span target = arena_printf(&arena, "/?/X/%s", parts);
    struct uri uri;

    ck_ok(uri_parse(target, SPAN("/"), 64, &arena, &uri));
    return query_parse(&uri, sample_shape(shape), &arena, out);
}

/* ---- which ones come ---- */

static const char *const people[] = {
    /* 0 */ "{\"Id\":\"p0\",\"Name\":\"Cleo\",\"Age\":30,\"Kind\":\"Staff\",\"ObjectNo\":1}",
    /* 1 */ "{\"Id\":\"p1\",\"Name\":\"ada\",\"Age\":null,\"Kind\":\"Guest\",\"ObjectNo\":2}",
    /* 2 */ "{\"Id\":\"p2\",\"Name\":\"Bob\",\"Age\":5,\"Kind\":\"Staff\",\"ObjectNo\":3}",
    /* 3 */ "{\"Id\":\"p3\",\"Name\":\"Dora\",\"Age\":30.0,\"Kind\":\"Guest\",\"ObjectNo\":4}",
    /* 4 */ "{\"Id\":\"p4\",\"Name\":\"Ed\",\"Age\":100,\"Kind\":\"Staff\",\"ObjectNo\":5}",
};

static const struct {
    const char *parts, *places;
    bool more;
} chosen[] = {
    {"_", "01234", false},
    {"Age>5", "034", false},
    {"Age=30", "03", false},
    {"Age!=30", "124", false},
    {"Age=null", "1", false},
    {"Id=p2", "2", false},
    {"Kind=staff&Age<100", "02", false},
    {"Name.Length=2", "4", false},
    {"Age=7", "", false},
    /* limit: 0 is none at all, a negative one is no limit */
    {"_/limit=2", "01", true},
    {"_/limit=5", "01234", false},
    {"_/limit=4", "0123", true},
    {"_/limit=6", "01234", false},
    {"_/limit=0", "", false},
    {"_/limit=-1", "01234", false},
    {"_/limit=9223372036854775807", "01234", false},
    {"Age>5/limit=2", "03", true},
    {"Age>5/limit=3", "034", false},
    /* offset: skips; a negative one leaves the last ones only */
    {"_/offset=2", "234", false},
    {"_/offset=5", "", false},
    {"_/offset=9", "", false},
    {"_/offset=9223372036854775807", "", false},
    {"_/offset=-2", "34", false},
    {"_/offset=-5", "01234", false},
    {"_/offset=-9", "01234", false},
    {"_/offset=-9223372036854775808", "01234", false},
    {"_/offset=1&limit=2", "12", true},
    {"_/offset=3&limit=2", "34", false},
    {"_/offset=4&limit=2", "4", false},
    {"_/offset=9&limit=2", "", false},
    {"_/offset=-3&limit=2", "23", true},
    {"_/offset=-3&limit=3", "234", false},
    {"_/offset=-3&limit=0", "", false},
    {"_/offset=-9&limit=5", "01234", false},
    {"_/offset=1&limit=9223372036854775807", "1234", false},
    /* order: null first ascending and last descending, equal ones as they come */
    {"_/order_asc=Name", "20341", false},
    {"_/order_desc=Name", "14302", false},
    {"_/order_asc=Age", "12034", false},
    {"_/order_desc=Age", "40321", false},
    {"_/order_asc=Kind", "13024", false},
    {"_/order_asc=Kind,Age", "13204", false},
    {"_/order_asc=Kind&order_desc=Age", "31402", false},
    {"_/order_desc=Kind&order_asc=Name", "20431", false},
    {"_/order_asc=Name.Length", "41203", false},
    {"Kind=staff/order_desc=Age", "402", false},
    /* order, then offset, then limit */
    {"_/order_asc=Name&limit=2", "20", true},
    {"_/order_asc=Name&limit=5", "20341", false},
    {"_/order_asc=Name&limit=0", "", false},
    {"_/order_asc=Name&limit=-7", "20341", false},
    {"_/order_asc=Name&offset=1&limit=3", "034", true},
    {"_/order_asc=Name&offset=3&limit=3", "41", false},
    {"_/order_asc=Name&offset=7&limit=3", "", false},
    {"_/order_asc=Name&offset=2", "341", false},
    {"_/order_asc=Name&offset=-2", "41", false},
    {"_/order_asc=Name&offset=-3&limit=1", "3", true},
    {"_/order_desc=Age&limit=1", "4", true},
    {"_/order_asc=Kind&limit=4", "1302", true},
    /* search: the entity's text, or one property */
    {"_/search=Staff", "024", false},
    {"_/search=staff", "024", false},
    {"_/search=staff,CS", "", false},
    {"_/search=staff,CI", "024", false},
    {"_/search=d,Name,CS", "14", false},
    {"_/search=D,Name", "134", false},
    {"_/search=0,Age", "034", false},
    {"_/search=null", "1", false},
    {"_/search=null,Age", "", false},
    {"_/search=Name,Name", "", false},
    {"_/search_regex=^[A-D],Name,CS", "023", false},
    {"_/search_regex=^[A-D],Name", "0123", false},
    {"_/search_regex=^..$,Name", "4", false},
    {"_/search_regex=^$,Age", "", false},
    {"_/search=Staff&search_regex=O,Name", "02", false},
    {"Age>5/search=Staff&order_desc=Name&limit=1", "4", true},
    {"_/search=Staff&offset=1&limit=1", "2", true},
    /* names that rename made */
    {"_/rename=Name->N&order_asc=N", "20341", false},
    {"_/rename=Name.Length->L&order_asc=L", "41203", false},
    /* what is not selected can be sorted by and searched; what is added or renamed comes later */
    {"_/select=Id&order_asc=Name", "20341", false},
    {"_/select=Id&search=Staff", "024", false},
    {"_/select=Id&search=d,Name,CS", "14", false},
    {"_/rename=Name->N&search=d,Name,CS", "14", false},
    {"_/rename=Name->N&search=N%22:", "", false},
    {"_/add=Name.Length&search=Length", "", false},
    /* hidden: Visits is ten times the place */
    {"Visits>15", "234", false},
    {"visits=20", "2", false},
    {"Visits!=20", "0134", false},
    {"Visits=null", "", false},
    {"Age>5&Visits<40", "03", false},
    {"_/order_desc=Visits", "43210", false},
    {"Visits>5/order_desc=Kind&order_asc=Visits&limit=2", "24", true},
    {"_/search=3,Visits", "3", false},
    {"_/search=Visits", "", false},
    {"Visits>=0/search=Visits", "", false},
    {"Visits>=0/distinct=true&select=Kind", "01", false},
    {"Visits>=0/distinct=true", "01234", false},
    {"_/rename=Visits->v&order_desc=v&limit=1", "4", true},
    /* distinct: equal as JSON values, after select; the first one stays */
    {"_/distinct=true", "01234", false},
    {"_/select=Kind&distinct=true", "01", false},
    {"_/select=Age&distinct=true", "0124", false},
    {"_/select=Age&distinct=false", "01234", false},
    {"_/select=Kind&distinct=true&order_asc=Kind", "10", false},
    {"_/select=Kind&distinct=true&limit=1", "0", true},
    {"_/select=Kind&distinct=true&offset=-1", "1", false},
    {"_/select=Kind&distinct=true&search=Guest", "1", false},
    {"_/select=Kind&distinct=true&search=d,Name", "14", false},
    {"_/add=Visits&select=Visits,Kind&distinct=true", "01234", false},
    {"_/unsafe=true&safepost=Name", "01234", false},
};

static struct span places_of(const struct query_result *result)
{
    struct span places = SPAN("");

    for (size_t i = 0; i < result->count; i++)
        places = arena_printf(&arena, "%.*s%zu", SPAN_FMT(places),
                              (size_t)(uintptr_t)result->items[i].object);
    return places;
}

static void check_count(const struct query *q, bool renders, size_t expected, const char *parts)
{
    struct list list = list_of(people, ARRAY_LEN(people), renders);
    size_t count = SIZE_MAX;

    ck_ok(query_count(q, &list.source, &count));
    ck_assert_msg(count == expected, "%s: counted %zu", parts, count);
}

static void check_choice(size_t row, bool renders, bool turns_back)
{
    struct list list = list_of(people, ARRAY_LEN(people), renders);
    struct query_result result;
    struct query q;

    if (turns_back)
        list.source.turn_back = list_turn_back;
    ck_ok(parse(chosen[row].parts, PERSON, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &result));
    ck_assert_msg(span_eq(places_of(&result), span_str(chosen[row].places)),
                  "%s: is %.*s, should be %s", chosen[row].parts, SPAN_FMT(places_of(&result)),
                  chosen[row].places);
    ck_assert_msg(result.more == chosen[row].more, "%s: more", chosen[row].parts);
    check_count(&q, renders, result.count, chosen[row].parts);
    query_done(&q);
}

START_TEST(choosing)
{
    for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
        check_choice(i, false, false);
        check_choice(i, true, false);
        check_choice(i, false, true);
        check_choice(i, true, true);
    }
}
END_TEST

/* ---- how they look ---- */

#define COLLIDING "{\"a\":1,\"A\":2,\"B\":3}"
#define ESCAPED "{\"\\u0061\":\"\\u00e9\",\"n\":[1, 2.50]}"

static const struct {
    enum sample shape;
    const char *parts, *entity, *shaped;
} shaped[] = {
    /* nothing asked: the text as it is */
    {DYNAMIC, "_", "{ \"a\" : 1.10 }", "{ \"a\" : 1.10 }"},
    /* select: only these, in this order; numbers and escapes as written */
    {PERSON, "_/select=age,name", "{\"Id\":\"x\",\"Name\":\"\\u00e9\",\"Age\":1.10}",
     "{\"Age\":1.10,\"Name\":\"\\u00e9\"}"},
    {PERSON, "_/select=account.number,name", "{\"Name\":\"x\",\"Account\":{\"Number\":\"7\"}}",
     "{\"Account.Number\":\"7\",\"Name\":\"x\"}"},
    {PERSON, "_/select=account", "{\"Account\":{\"Number\":\"7\"}}",
     "{\"Account\":{\"Number\":\"7\"}}"},
    {PERSON, "_/select=name.length", "{\"Name\":\"caf\xc3\xa9\"}", "{\"Name.Length\":4}"},
    {PERSON, "_/select=account.owner.name", "{\"Account\":null}", "{\"Account.Owner.Name\":null}"},
    {PERSON, "_/select=extra", "{\"Extra\":{\"a\":[1,{}]}}", "{\"Extra\":{\"a\":[1,{}]}}"},
    /* an undeclared member keeps the entity's spelling, a missing one is null */
    {DYNAMIC, "_/select=NAME", "{\"Name\":1,\"x\":2}", "{\"Name\":1}"},
    {DYNAMIC, "_/select=Name", "{\"x\":2}", "{\"Name\":null}"},
    {DYNAMIC, "_/select=a", COLLIDING, "{\"a\":1}"},
    {DYNAMIC, "_/select=a,n", ESCAPED, "{\"\\u0061\":\"\\u00e9\",\"n\":[1, 2.50]}"},
    {DYNAMIC, "_/select=x.y", "{\"x\":{\"Y\":1}}", "{\"x.y\":1}"},
    /* add: appended, spelled as declared */
    {PERSON, "_/add=name.length", "{\"Name\":\"Jane\"}", "{\"Name\":\"Jane\",\"Name.Length\":4}"},
    {PERSON, "_/add=born.year,born.dayofweek", "{\"Born\":\"2026-11-01\"}",
     "{\"Born\":\"2026-11-01\",\"Born.Year\":2026,\"Born.DayOfWeek\":0}"},
    {PERSON, "_/add=account.number", "{\"Account\":{\"Number\":\"7\"}}",
     "{\"Account\":{\"Number\":\"7\"},\"Account.Number\":\"7\"}"},
    {PERSON, "_/add=visits", "{\"Id\":\"x\"}", "{\"Id\":\"x\",\"Visits\":0}"},
    {PERSON, "_/add=visits&select=visits", "{\"Id\":\"x\"}", "{\"Visits\":0}"},
    {PERSON, "_/select=visits,id", "{\"Id\":\"x\"}", "{\"Visits\":0,\"Id\":\"x\"}"},
    {PERSON, "_/rename=visits->v", "{\"Id\":\"x\"}", "{\"Id\":\"x\",\"v\":0}"},
    {PERSON, "visits=0", "{\"Id\":\"x\"}", "{\"Id\":\"x\"}"},
    {PERSON, "visits=0/order_asc=visits&add=name.length", "{\"Name\":\"x\"}",
     "{\"Name\":\"x\",\"Name.Length\":1}"},
    {PERSON, "_/rename=name->visits", "{\"Name\":1}", "{\"visits\":1}"},
    {PERSON, "_/add=name", "{\"Name\":\"x\"}", "{\"Name\":\"x\"}"},
    {PERSON, "_/add=name.length", "{}", "{\"Name.Length\":null}"},
    {DYNAMIC, "_/add=b", "{\"a\":1}", "{\"a\":1,\"b\":null}"},
    {DYNAMIC, "_/add=A", "{\"a\":1}", "{\"a\":1}"},
    {DYNAMIC, "_/add=a.length", "{\"a\":[1,2],\"b\":{}}", "{\"a\":[1,2],\"b\":{},\"a.length\":2}"},
    {DYNAMIC, "_/add=a.b", "{\"a\":{\"b\":1},\"a.b\":2}", "{\"a\":{\"b\":1},\"a.b\":1}"},
    /* rename: in place */
    {PERSON, "_/rename=name->fullName", "{\"Id\":\"x\",\"Name\":\"J\",\"Age\":1}",
     "{\"Id\":\"x\",\"fullName\":\"J\",\"Age\":1}"},
    {PERSON, "_/rename=name->a\"b%0A", "{\"Name\":1}", "{\"a\\\"b\\n\":1}"},
    {PERSON, "_/rename=name->age,age->name", "{\"Name\":1,\"Age\":2}", "{\"age\":1,\"name\":2}"},
    {PERSON, "_/add=name.length&rename=name.length->len", "{\"Name\":\"J\"}",
     "{\"Name\":\"J\",\"len\":1}"},
    {PERSON, "_/rename=account.number->no", "{\"Account\":{\"Number\":\"7\"}}",
     "{\"Account\":{\"Number\":\"7\"},\"no\":\"7\"}"},
    {PERSON, "_/add=visits&rename=visits->v", "{\"Id\":\"x\"}", "{\"Id\":\"x\",\"v\":0}"},
    {DYNAMIC, "_/rename=a->x", "{\"b\":1}", "{\"b\":1}"},
    {DYNAMIC, "_/rename=A->x", "{\"b\":1,\"a\":2}", "{\"b\":1,\"x\":2}"},
    {DYNAMIC, "_/rename=a->x", COLLIDING, "{\"x\":1,\"A\":2,\"B\":3}"},
    {DYNAMIC, "_/rename=a->x", ESCAPED, "{\"x\":\"\\u00e9\",\"n\":[1, 2.50]}"},
    {DYNAMIC, "_/rename=a->x&add=a", "{\"b\":1}", "{\"b\":1,\"x\":null}"},
    /* names that differ in case are others, and one that is renamed itself is free */
    {DYNAMIC, "_/rename=a->b", COLLIDING, "{\"b\":1,\"A\":2,\"B\":3}"},
    {DYNAMIC, "_/rename=a->b,b->c", "{\"a\":1,\"b\":2}", "{\"b\":1,\"c\":2}"},
    /* select after rename */
    {PERSON, "_/rename=name->n&select=n,age", "{\"Id\":\"x\",\"Name\":\"J\",\"Age\":1}",
     "{\"n\":\"J\",\"Age\":1}"},
    {PERSON, "_/rename=name->n&select=n.length", "{\"Name\":\"Jo\"}", "{\"n.length\":2}"},
    {PERSON, "_/rename=account->acc&select=acc.number", "{\"Account\":{\"Number\":\"7\"}}",
     "{\"acc.number\":\"7\"}"},
    {DYNAMIC, "_/rename=a->x&select=x", "{\"A\":1}", "{\"x\":1}"},
    /* conditions see the original */
    {PERSON, "Name=J/rename=name->n&select=n", "{\"Name\":\"J\"}", "{\"n\":\"J\"}"},
};

static struct span shape_one(size_t row, bool objects_only)
{
    struct list list = list_of(&shaped[row].entity, 1, row % 2 == 0);
    struct query_result result;
    struct query q;

    ck_ok(parse(shaped[row].parts, shaped[row].shape, &q));
    ck_ok(query_run(&q, &list.source, objects_only, &arena, &result));
    ck_assert_uint_eq(result.count, 1);
    query_done(&q);
    return result.items[0].json;
}

START_TEST(shaping)
{
    for (size_t i = 0; i < ARRAY_LEN(shaped); i++) {
        struct span json = shape_one(i, false);

        ck_assert_msg(span_eq(json, span_str(shaped[i].shaped)), "%s: is %.*s, should be %s",
                      shaped[i].parts, SPAN_FMT(json), shaped[i].shaped);
        ck_ok(json_check_unique(sample_json(json, &arena), false, &arena));
    }
}
END_TEST

START_TEST(objects_only_are_not_shaped)
{
    for (size_t i = 0; i < ARRAY_LEN(shaped); i++)
        ck_span_is(shape_one(i, true), span_str(shaped[i].entity));
}
END_TEST

START_TEST(objects_only_are_not_made_distinct)
{
    struct list list = list_of(people, ARRAY_LEN(people), false);
    struct query_result result;
    struct query q;

    ck_ok(parse("_/select=Kind&distinct=true&order_desc=Name&limit=3", PERSON, &q));
    ck_ok(query_run(&q, &list.source, true, &arena, &result));
    ck_span_eq(places_of(&result), "143");
    ck_assert(result.more);
}
END_TEST

START_TEST(without_hidden_values)
{
    struct list list = list_of(people, 1, false);
    struct query_result result;
    struct query q;

    list.source.hidden = NULL;
    ck_ok(parse("_/add=Visits&select=Visits", PERSON, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &result));
    ck_span_eq(result.items[0].json, "{\"Visits\":null}");
}
END_TEST

/* ---- errors ---- */

START_TEST(refusals)
{
    struct query q;

    ck_fails(parse("Nmae=5", PERSON, &q), ERR_UNKNOWN_PROPERTY, "'Nmae'");
    ck_fails(parse("_/limit=x", PERSON, &q), ERR_INVALID_META_VALUE, "'x'");
    ck_fails(parse("Age=x/limit=x", PERSON, &q), ERR_INVALID_CONDITION_VALUE, "'Age'");
    query_done(NULL);
}
END_TEST

/* Which names the members of a dynamic entity have shows when it is looked at. */
START_TEST(new_names_that_are_taken)
{
    static const struct {
        const char *parts, *entity;
    } cases[] = {
        {"_/rename=a->B", COLLIDING},
        {"_/rename=a->B&select=B", COLLIDING},
        {"_/rename=b->\\u", "{\"b\":1,\"\\\\u\":2}"},
        {"_/rename=x->a", "{\"a\":1}"},
        {"_/rename=a.b->c&distinct=true", "{\"a\":{\"b\":1},\"c\":2}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list list = list_of(&cases[i].entity, 1, false);
        struct query_result result;
        struct query q;

        ck_ok(parse(cases[i].parts, DYNAMIC, &q));
        ck_fails(query_run(&q, &list.source, false, &arena, &result), ERR_INVALID_META_SYNTAX,
                 "which another member is called");
        query_done(&q);
    }
}
END_TEST

/* Whatever step reads it, and nothing is left allocated. */
START_TEST(a_source_of_bad_texts)
{
    static const char *const texts[] = {"{\"a\":1}", "{\"a\":"};
    static const char *const queries[] = {
        "a=1",        "_/order_asc=a", "_/distinct=true",
        "_/select=a", "_/search=1,a",  "_/order_asc=a&limit=1",
    };

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        struct list list = list_of(texts, ARRAY_LEN(texts), i % 2 == 0);
        struct query_result result;
        struct query q;

        ck_ok(parse(queries[i], DYNAMIC, &q));
        ck_fails(query_run(&q, &list.source, false, &arena, &result), ERR_FAILED_JSON, "line 1");
        query_done(&q);
    }
}
END_TEST

START_TEST(a_hopeless_search)
{
    static const char *const texts[] = {
        "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}"};
    struct list list = list_of(texts, 1, false);
    struct query_result result;
    struct query q;

    ck_ok(parse("_/search_regex=(a+)+$&order_asc=a", DYNAMIC, &q));
    ck_fails(query_run(&q, &list.source, false, &arena, &result), ERR_INVALID_META_SYNTAX,
             "too much work");
    query_done(&q);
}
END_TEST

/* ---- work and memory ---- */

START_TEST(a_limit_stops_the_source)
{
    static const struct {
        const char *parts;
        size_t read;
    } cases[] = {
        {"_/limit=2", 3},
        {"_/offset=1&limit=2", 4},
        {"Age>5/limit=1", 4},
        {"_/limit=0", 0},
        {"_/limit=9", 5},
        {"_/offset=-1", 5},
        {"_/order_asc=Age&limit=1", 5},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list list = list_of(people, ARRAY_LEN(people), false);
        struct query_result result;
        struct query q;

        ck_ok(parse(cases[i].parts, PERSON, &q));
        ck_ok(query_run(&q, &list.source, false, &arena, &result));
        ck_assert_msg(list.next == cases[i].read, "%s: %zu read", cases[i].parts, list.next);
    }
}
END_TEST

/* What need not be parsed is not: these texts could not be. */
START_TEST(plain_queries_do_not_parse)
{
    static const char *const texts[] = {"{a", "{b", "{b"};
    static const char *const queries[] = {"_/limit=9", "_/offset=-9", "_/search_regex=a|b"};

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        struct list list = list_of(texts, ARRAY_LEN(texts), i % 2 == 0);
        struct query_result result;
        struct query q;

        ck_ok(parse(queries[i], DYNAMIC, &q));
        ck_ok(query_run(&q, &list.source, false, &arena, &result));
        ck_span_eq(places_of(&result), "012");
        ck_span_eq(result.items[1].json, "{b");
        query_done(&q);
    }
}
END_TEST

START_TEST(plain_queries_render_the_result_only)
{
    struct list list = list_of(people, ARRAY_LEN(people), true);
    struct query_result result;
    struct query q;

    ck_ok(parse("_/offset=1&limit=2", PERSON, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &result));
    ck_assert_uint_eq(list.rendered, 2);
}
END_TEST

START_TEST(texts_of_the_source_are_not_copied)
{
    struct list list = list_of(people, ARRAY_LEN(people), false);
    struct query_result result;
    struct query q;

    ck_ok(parse("Age>5/order_desc=Name", PERSON, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &result));
    ck_assert_ptr_eq(result.items[0].json.p, people[4]);
}
END_TEST

enum { MANY = 20000 };

/* Entities of about 130 bytes, in no order. */
static const char *const *many_texts(void)
{
    const char **texts = ARENA_ARRAY(&arena, const char *, MANY);

    for (size_t i = 0; i < MANY; i++)
        texts[i] = arena_printf(&arena,
                                "{\"n\":%zu,\"group\":%zu,\"text\":\"%zu\\u0020some text that is "
                                "long enough to be seen when it is kept, %zu times\"}",
                                i * 7919 % MANY, i % 10, i * 31 % MANY, i)
                       .p;
    return texts;
}

/* Memory follows the result, also for texts that the source makes. */
START_TEST(memory_follows_the_result)
{
    static const char *const queries[] = {
        "n>=0/limit=10",
        "n>=0/offset=15000&limit=10",
        "_/offset=-10",
        "_/order_asc=text&limit=10",
        "_/order_desc=n,text.length&offset=5&limit=10",
        "_/order_asc=group,text&offset=-10",
        "_/select=group&distinct=true",
        "_/add=text.length&order_asc=text&limit=10",
        "_/search_regex=1.9&order_asc=text&limit=10",
    };
    const char *const *texts = many_texts();

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        size_t before = mem_bytes();
        struct list list = list_of(texts, MANY, true);
        struct query_result result;
        struct query q;

        ck_ok(parse(queries[i], DYNAMIC, &q));
        ck_ok(query_run(&q, &list.source, false, &arena, &result));
        query_done(&q);
        ck_assert_uint_eq(result.count, 10);
        ck_assert_msg(list.most_bytes < before + 150000, "%s: %zu bytes", queries[i],
                      list.most_bytes - before);
    }
}
END_TEST

START_TEST(counting_keeps_nothing)
{
    static const char *const queries[] = {
        "n>=0", "n>=0/order_asc=text", "_/offset=-20000&order_desc=n", "_/search=some", "_/add=n",
    };
    const char *const *texts = many_texts();

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        size_t before = mem_bytes(), count;
        struct list list = list_of(texts, MANY, true);
        struct query q;

        ck_ok(parse(queries[i], DYNAMIC, &q));
        ck_ok(query_count(&q, &list.source, &count));
        query_done(&q);
        ck_assert_uint_eq(count, MANY);
        ck_assert_msg(list.most_bytes < before + 70000, "%s: %zu bytes", queries[i],
                      list.most_bytes - before);
    }
}
END_TEST

/* Enough for the set to grow several times, with duplicates near and far. */
START_TEST(distinct_of_many)
{
    const char *texts[3000];
    struct query_result result;
    struct list list;
    struct query q;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        texts[i] = arena_printf(&arena, "{\"n\":%zu%s}", i * i % 1000, i % 2 == 0 ? "" : ".0").p;
    list = list_of(texts, ARRAY_LEN(texts), false);
    ck_ok(parse("_/distinct=true", DYNAMIC, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &result));
    ck_assert_uint_eq(result.count, 159); /* as many squares are there modulo 1000 */
    for (size_t i = 0; i < result.count; i++)
        for (size_t j = (uintptr_t)result.items[i].object; j-- > 0;)
            ck_assert_uint_ne(j * j % 1000, (uintptr_t)result.items[i].object *
                                                (uintptr_t)result.items[i].object % 1000);
}
END_TEST

/* ---- against a naive model ---- */

/* What a random query asks for, apart from its text. */
struct asked {
    const char *condition, *search;
    const char *keys[2];
    bool descending[2];
    size_t key_count;
    const char *select;
    bool distinct, has_limit;
    int64_t limit, offset;
};

static const char *pick(const char *const *pool, size_t count)
{
    return pool[rng_below(count)];
}

#define PICK(pool) pick(pool, ARRAY_LEN(pool))

static const char *random_entity(void)
{
    static const char *const values[] = {
        "null",
        "true",
        "false",
        "1",
        "1.0",
        "-2",
        "10",
        "1e1",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "[1]",
        "{\"x\":1}",
        "\"2026-11-01\"",
        "123456789012345678",
    };
    struct span text = SPAN("{");

    for (const char *name = "abc"; *name != '\0'; name++)
        if (rng_below(8) > 0)
            text = arena_printf(&arena, "%.*s%s\"%c\":%s", SPAN_FMT(text), text.n > 1 ? "," : "",
                                *name, PICK(values));
    return arena_printf(&arena, "%.*s}", SPAN_FMT(text)).p;
}

static struct asked random_query(void)
{
    static const char *const conditions[] = {"_", "_", "a=1", "a!=1", "b>=a", "c<10", "a.x=1"};
    static const char *const searches[] = {NULL, NULL, NULL, "1", "a"};
    static const char *const keys[] = {"a", "b", "c", "a.x"};
    static const char *const selects[] = {NULL, NULL, "a", "c,a"};
    struct asked asked = {
        .condition = PICK(conditions),
        .search = PICK(searches),
        .key_count = (size_t)rng_below(3),
        .select = PICK(selects),
        .distinct = rng_below(3) == 0,
        .has_limit = rng_below(2) == 0,
        .limit = (int64_t)rng_below(12) - 2,
        .offset = rng_below(2) == 0 ? 0 : (int64_t)rng_below(16) - 8,
    };

    for (size_t i = 0; i < asked.key_count; i++) {
        asked.keys[i] = PICK(keys);
        asked.descending[i] = rng_below(2) == 0;
    }
    return asked;
}

static const char *query_text(const struct asked *asked)
{
    struct span text = arena_printf(&arena, "%s/offset=%lld&distinct=%s", asked->condition,
                                    (long long)asked->offset, asked->distinct ? "true" : "false");

    for (size_t i = 0; i < asked->key_count; i++)
        text = arena_printf(&arena, "%.*s&order_%s=%s", SPAN_FMT(text),
                            asked->descending[i] ? "desc" : "asc", asked->keys[i]);
    if (asked->has_limit)
        text = arena_printf(&arena, "%.*s&limit=%lld", SPAN_FMT(text), (long long)asked->limit);
    if (asked->select != NULL)
        text = arena_printf(&arena, "%.*s&select=%s", SPAN_FMT(text), asked->select);
    if (asked->search != NULL)
        text = arena_printf(&arena, "%.*s&search=%s,CS", SPAN_FMT(text), asked->search);
    return text.p;
}

/* The model: one step after the other over whole arrays, by the simplest means. */
struct model_item {
    struct json_value original;
    struct json_value result;
    size_t place;
};

static struct json_value model_select(struct json_value original, const char *select)
{
    struct span names = span_str(select), text = SPAN("{");

    if (select == NULL)
        return original;
    do {
        struct span name = span_split(&names, ',');
        struct json_value value = json_member(original, name);
        struct span value_text = json_exists(value) ? json_text(value) : SPAN("null");

        text = arena_printf(&arena, "%.*s%s\"%.*s\":%.*s", SPAN_FMT(text), text.n > 1 ? "," : "",
                            SPAN_FMT(name), SPAN_FMT(value_text));
    } while (names.p != NULL);
    return sample_json(arena_printf(&arena, "%.*s}", SPAN_FMT(text)), &arena);
}

static bool model_is_new(const struct model_item *items, size_t count, struct json_value result)
{
    for (size_t i = 0; i < count; i++)
        if (json_equal(items[i].result, result))
            return false;
    return true;
}

static int value_cmp(const struct value *a, const struct value *b, enum value_type type)
{
    struct value_key x = value_key(a, type), y = value_key(b, type);

    return value_key_cmp(&x, &y);
}

static int model_cmp(const struct asked *asked, const struct model_item *a,
                     const struct model_item *b)
{
    for (size_t i = 0; i < asked->key_count; i++) {
        struct path path;
        struct value x, y;
        int order;

        ck_ok(path_parse(span_str(asked->keys[i]), &sample_dynamic, &arena, &path));
        x = path_read(&path, a->original, &arena);
        y = path_read(&path, b->original, &arena);
        order = value_cmp(&x, &y, TYPE_ANY);
        if (order != 0)
            return asked->descending[i] ? -order : order;
    }
    return 0;
}

/* Insertion sort, which is stable. */
static void model_insert(const struct asked *asked, struct model_item *items, size_t count,
                         struct model_item item)
{
    size_t at = count;

    for (; at > 0 && model_cmp(asked, &items[at - 1], &item) > 0; at--)
        items[at] = items[at - 1];
    items[at] = item;
}

static size_t model_run(const struct asked *asked, const struct conditions *conditions,
                        const char *const *texts, size_t count, struct model_item *out)
{
    struct model_item *seen = ARENA_ARRAY(&arena, struct model_item, count);
    size_t n = 0, seen_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct model_item item = {.original = sample_json(span_str(texts[i]), &arena), .place = i};

        if (!conditions_hold(conditions, item.original, &arena))
            continue;
        if (asked->search != NULL &&
            span_find(json_text(item.original), span_str(asked->search)) == SIZE_MAX)
            continue;
        item.result = model_select(item.original, asked->select);
        if (asked->distinct && !model_is_new(seen, seen_count, item.result))
            continue;
        seen[seen_count++] = item;
        model_insert(asked, out, n++, item);
    }
    return n;
}

static void model_page(const struct asked *asked, size_t count, size_t *out_from, size_t *out_n)
{
    int64_t n = (int64_t)count;
    int64_t from = asked->offset >= 0 ? asked->offset : n + asked->offset;

    from = MAX(0, MIN(from, n));
    n -= from;
    if (asked->has_limit && asked->limit >= 0)
        n = MIN(n, asked->limit);
    *out_from = (size_t)from;
    *out_n = (size_t)n;
}

enum { ENTITIES_MOST = 30 };

static void check_random_query(void)
{
    const char *texts[ENTITIES_MOST];
    struct model_item expected[ENTITIES_MOST];
    size_t count = (size_t)rng_below(ENTITIES_MOST + 1), from, n, all;
    struct asked asked = random_query();
    const char *text = query_text(&asked);
    bool renders = rng_below(2) == 0;
    struct list list = list_of(texts, count, renders);
    struct query_result result;
    struct query q;

    for (size_t i = 0; i < count; i++)
        texts[i] = random_entity();
    ck_ok(parse(text, DYNAMIC, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &result));
    all = model_run(&asked, &q.conditions, texts, count, expected);
    model_page(&asked, all, &from, &n);
    ck_assert_msg(result.count == n, "%s: %zu, should be %zu", text, result.count, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg((uintptr_t)result.items[i].object == expected[from + i].place, "%s: %zu",
                      text, i);
        ck_span_is(result.items[i].json, json_text(expected[from + i].result));
    }
    ck_assert_msg(result.more == (asked.has_limit && asked.limit > 0 && from + n < all), "%s",
                  text);
    query_done(&q);
}

START_TEST(agreement_with_the_model)
{
    for (int i = 0; i < 6000; i++) {
        check_random_query();
        arena_reset(&arena);
    }
}
END_TEST

/* Whatever is cut off. */
START_TEST(totals)
{
    static const struct {
        const char *parts;
        size_t count, total;
    } cases[] = {
        {"_", 5, 5},
        {"_/limit=2", 2, 5},
        {"_/limit=0", 0, 5},
        {"_/offset=4&limit=3", 1, 5},
        {"_/offset=-1", 1, 5},
        {"Age>5/limit=1", 1, 3},
        {"_/order_asc=Name&limit=0", 0, 5},
        {"_/order_asc=Name&limit=2", 2, 5},
        {"_/select=Kind&distinct=true&limit=1", 1, 2},
        {"_/search=Staff&limit=1", 1, 3},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list list = list_of(people, ARRAY_LEN(people), i % 2 == 0);
        struct query_result result;
        struct query q;

        ck_ok(parse(cases[i].parts, PERSON, &q));
        q.counts_all = true;
        ck_assert_uint_eq(query_enough(&q), UINT64_MAX);
        ck_ok(query_run(&q, &list.source, false, &arena, &result));
        ck_assert_uint_eq(result.count, cases[i].count);
        ck_assert_uint_eq(result.total, cases[i].total);
        query_done(&q);
    }
}
END_TEST

/* Of the last ones no more are looked at than are needed, where the source can be turned back. */
START_TEST(the_last_ones_are_looked_at_first)
{
    static const struct {
        const char *parts;
        size_t asked;
    } cases[] = {
        {"_/offset=-1", 1},
        {"_/offset=-3&limit=1", 3},
        {"group=9/offset=-10", 91},
        {"group=8/offset=-1", 2},
        {"group=10/offset=-10", 500},
        {"_/offset=-3&search=%22group%22:9", 21},
        {"_/offset=-3&limit=0", 0},
        /* which need all */
        {"_/offset=-1&order_asc=n", 500},
        {"_/offset=-1&distinct=true", 500},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list list = list_of(many_texts(), 500, false);
        struct query_result result;
        struct query q;
        size_t count;

        list.source.turn_back = list_turn_back;
        ck_ok(parse(cases[i].parts, DYNAMIC, &q));
        ck_ok(query_run(&q, &list.source, false, &arena, &result));
        ck_assert_msg(list.next == cases[i].asked, "%s: asked for %zu", cases[i].parts, list.next);
        list.next = 0;
        list.is_turned = false;
        ck_ok(query_count(&q, &list.source, &count));
        ck_assert_uint_eq(count, result.count);
        ck_assert_msg(list.next <= cases[i].asked, "%s: to count %zu", cases[i].parts, list.next);
        query_done(&q);
    }
}
END_TEST

/* A hidden property that is only shown is computed for what is shown. */
START_TEST(what_is_only_shown_is_computed_last)
{
    static const struct {
        const char *parts;
        size_t computed;
    } cases[] = {
        {"_/add=Visits&limit=2", 2},         {"_/add=Visits&search=Staff&limit=1", 1},
        {"Age>5/add=Visits&search=Dora", 1}, {"_/select=Visits&order_asc=Name&limit=2", 2},
        {"Visits>0/add=Visits&limit=1", 4}, /* of 0, 1, 2; and to show it */
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list list = list_of(people, ARRAY_LEN(people), false);
        struct query_result result;
        struct query q;

        ck_ok(parse(cases[i].parts, PERSON, &q));
        ck_ok(query_run(&q, &list.source, false, &arena, &result));
        ck_assert_msg(list.computed == cases[i].computed, "%s: computed %zu", cases[i].parts,
                      list.computed);
        query_done(&q);
    }
}
END_TEST

/* Pages of any size, one after the other, are the whole. */
START_TEST(pages_are_the_whole)
{
    const char *const *texts = many_texts();
    struct query_result whole, page;
    struct list list = list_of(texts, 500, false);
    struct query q;

    ck_ok(parse("n>100/order_desc=group&order_asc=n", DYNAMIC, &q));
    ck_ok(query_run(&q, &list.source, false, &arena, &whole));
    for (int64_t limit = 1; limit < 600; limit = limit * 3 + 1) {
        size_t done = 0;

        do {
            q.meta.offset = (int64_t)done;
            q.meta.limit = limit;
            q.meta.has_limit = true;
            list.next = 0;
            ck_ok(query_run(&q, &list.source, false, &arena, &page));
            for (size_t i = 0; i < page.count; i++)
                ck_assert_ptr_eq(page.items[i].object, whole.items[done + i].object);
            done += page.count;
        } while (page.more);
        ck_assert_uint_eq(done, whole.count);
    }
}
END_TEST

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, choosing);
    tcase_add_test(tc, shaping);
    tcase_add_test(tc, objects_only_are_not_shaped);
    tcase_add_test(tc, objects_only_are_not_made_distinct);
    tcase_add_test(tc, without_hidden_values);
    tcase_add_test(tc, totals);
    tcase_add_test(tc, new_names_that_are_taken);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, a_source_of_bad_texts);
    tcase_add_test(tc, a_hopeless_search);
    tcase_add_test(tc, a_limit_stops_the_source);
    tcase_add_test(tc, plain_queries_do_not_parse);
    tcase_add_test(tc, plain_queries_render_the_result_only);
    tcase_add_test(tc, texts_of_the_source_are_not_copied);
    tcase_add_test(tc, memory_follows_the_result);
    tcase_add_test(tc, counting_keeps_nothing);
    tcase_add_test(tc, distinct_of_many);
    tcase_add_test(tc, agreement_with_the_model);
    tcase_add_test(tc, the_last_ones_are_looked_at_first);
    tcase_add_test(tc, what_is_only_shown_is_computed_last);
    tcase_add_test(tc, pages_are_the_whole);
}
