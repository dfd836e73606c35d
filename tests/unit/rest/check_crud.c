/* Stored entities through the seven methods: what a request leaves behind in the store and in the
 * journal, and that one which fails leaves nothing behind. */
#include "asking.h"

#include "base/limits.h"
#include "rest/metrics.h"
#include "store/turn.h"

#define PEOPLE "Shop.Person"
#define PROPERTIES                                                                                 \
    "{\"Name\":\"Name\",\"Type\":\"string\",\"Required\":true},"                                   \
    "{\"Name\":\"Age\",\"Type\":\"integer\"},{\"Name\":\"Email\",\"Type\":\"string\"},"            \
    "{\"Name\":\"Home\",\"Type\":\"object\"}"

/* Email is indexed, Age is not. */
static const char resources[] =
    "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":[" PROPERTIES
    "],\"Indexes\":[\"Email\"]},"
    "{\"Name\":\"Shop.Note\",\"Kind\":\"EntityResource\"},"
    "{\"Name\":\"Shop.Rules\",\"Kind\":\"BinaryResource\",\"ContentType\":\"text/plain\","
    "\"Content\":\"QmUga2luZC4K\"},"
    "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]";

static void begin(void)
{
    asking_open(resources);
}

static void insert(const char *resource, const char *json)
{
    ck_asks(201, "POST", asking_printf("/%s", resource), json);
}

/* Ann, 30, a@x; Bob, 40, b@x; Cid, 40, null. */
static void insert_three(void)
{
    insert(PEOPLE,
           "[{\"Name\":\"Ann\",\"Age\":30,\"Email\":\"a@x\",\"Home\":{\"City\":\"Oslo\","
           "\"Zip\":{\"Code\":1,\"Box\":2}}},"
           "{\"Name\":\"Bob\",\"Age\":40,\"Email\":\"b@x\"},{\"Name\":\"Cid\",\"Age\":40}]");
}

/* `Name Age` of all, in order of insertion. */
static struct span names(void)
{
    struct span all = SPAN("");

    ask("GET", "/" PEOPLE "/_/select=Name,Age", NULL);
    for (int i = 0; asking.answer.status == 200; i++) {
        struct span name = answered(asking_printf("%d.Name", i));
        struct span age = answered(asking_printf("%d.Age", i));

        if (name.p == NULL)
            break;
        all = arena_printf(&asking.arena, "%.*s%s%.*s %.*s", SPAN_FMT(all), i > 0 ? ", " : "",
                           SPAN_FMT(span_sub(name, 1, name.n - 1)), SPAN_FMT(age));
    }
    return all;
}

static const char *id_of(const char *name)
{
    ck_asks(200, "GET", asking_printf("/" PEOPLE "/Name=%s", name), NULL);
    return answered_text("0.Id");
}

static const char *tag_of(const char *name)
{
    ck_asks(200, "GET", asking_printf("/" PEOPLE "/Name=%s", name), NULL);
    return asking_printf("%.*s", SPAN_FMT(answered_header("ETag")));
}

/* ---- POST ---- */

START_TEST(the_answer_is_what_is_stored)
{
    struct span stored;
    uint64_t serial = asking_serial();

    insert(PEOPLE, " { \"age\" : 7.0 , \"Name\":\"A\\u006en\", \"Id\":\"x\", \"ObjectNo\":1 } ");
    stored = asking_entities(PEOPLE);
    ck_assert_uint_eq(asking_serial(), serial + 1);
    ck_span_is(stored, arena_printf(&asking.arena, "%llu %.*s\n", (unsigned long long)serial,
                                    SPAN_FMT(span_sub(answered_body(), 1, answered_body().n - 1))));
    ck_member_eq("0.Age", "7.0");
    ck_member_eq("0.Name", "\"A\\u006en\"");
    ck_member_eq("0.Email", "null");
    ck_span_is(answered("0.ObjectNo"), arena_u64(&asking.arena, serial));
}
END_TEST

START_TEST(an_answer_waits_for_what_it_tells)
{
    uint64_t first, second;

    insert(PEOPLE, "{\"Name\":\"Ann\"}");
    first = asking.answer.serial;
    ck_assert(!turn_is_committed(asking.service->turn, first));
    asking_commit();
    insert(PEOPLE, "{\"Name\":\"Bob\"}");
    second = asking.answer.serial;
    ck_assert_uint_gt(second, first);
    /* One that is asked for by its id says nothing of others. */
    ck_asks(200, "GET", asking_printf("/" PEOPLE "/Id=%s", id_of("Ann")), NULL);
    ck_assert_uint_eq(asking.answer.serial, first);
    ck_asks(200, "GET", "/" PEOPLE "/Name=Ann", NULL);
    ck_assert_uint_eq(asking.answer.serial, second);
    ck_asks(200, "REPORT", "/" PEOPLE, NULL);
    ck_assert_uint_eq(asking.answer.serial, second);
    ck_asks(204, "GET", "/" PEOPLE "/Name=Nobody", NULL);
    ck_assert_uint_eq(asking.answer.serial, second);
    ck_asks(204, "GET", "/Shop.Note", NULL);
    ck_assert(turn_is_committed(asking.service->turn, asking.answer.serial));
}
END_TEST

START_TEST(an_array_is_inserted_in_its_order)
{
    uint64_t serial = asking_serial();

    insert_three();
    ck_assert_uint_eq(asking_serial(), serial + 3);
    for (uint64_t i = 0; i < 3; i++)
        ck_span_is(answered(asking_printf("%d.ObjectNo", (int)i)),
                   arena_u64(&asking.arena, serial + i));
    ck_assert_ptr_null(answered_header("Location").p);
    ck_span_eq(names(), "Ann 30, Bob 40, Cid 40");
}
END_TEST

START_TEST(lines_are_an_array)
{
    ask_with("Content-Type: application/x-ndjson", "POST", "/" PEOPLE,
             "{\"Name\":\"Ann\"}\n\n{\"Name\":\"Bob\"}\n");
    ck_status(201);
    ck_header_eq("Svc-info", "2 entities inserted into 'Shop.Person'");
    ck_span_eq(names(), "Ann null, Bob null");
}
END_TEST

START_TEST(location_leads_there)
{
    struct span location;

    asking_below("/v1/api");
    ck_asks(201, "POST", "/v1/api/" PEOPLE, "[{\"Name\":\"Ann\"}]");
    location = answered_header("Location");
    ck_assert(span_starts(location, SPAN("/v1/api/Shop.Person/Id=")));
    ck_asks(200, "GET", asking_printf("%.*s", SPAN_FMT(location)), NULL);
    ck_member_eq("0.Name", "\"Ann\"");
    ck_asks(201, "PUT", "/v1/api/" PEOPLE "/Name=Bob", "{\"Name\":\"Bob\"}");
    ck_assert_ptr_nonnull(answered_header("Location").p);
    ck_asks(200, "PUT", "/v1/api/" PEOPLE "/Name=Bob", "{\"Name\":\"Bob\"}");
    ck_assert_ptr_null(answered_header("Location").p);
}
END_TEST

/* ---- what fails changes nothing ---- */

static const struct {
    const char *method, *target, *body;
    enum err_code code;
    const char *text;
} refused[] = {
    {"POST", "/Person", "[{\"Name\":\"Dan\"},{\"Name\":\"Eve\",\"Age\":\"x\"}]", ERR_INVALID_ENTITY,
     "entity 1: Age: must be of type integer"},
    {"POST", "/Person", "[{\"Name\":\"Dan\"},{\"Nam\":\"Eve\"}]", ERR_UNKNOWN_MEMBER,
     "entity 1: Nam: there is no such member, is 'Name' meant?"},
    {"POST", "/Person", "[{\"Name\":\"Dan\"},[{\"Name\":\"Eve\"}]]", ERR_INVALID_ENTITY,
     "entity 1: it must be a JSON object"},
    {"POST", "/Person", "[{\"Name\":\"Dan\"},{\"Name\":\"a\",\"NAME\":\"b\"}]", ERR_FAILED_JSON,
     "entity 1: "},
    {"POST", "/Person", "{\"Age\":1}", ERR_INVALID_ENTITY, "Name: is required"},
    {"POST", "/Person", "", ERR_NO_DATA_SOURCE, "POST on 'Shop.Person' needs a body"},
    {"POST", "/Person", " \t ", ERR_NO_DATA_SOURCE, "needs a body, and there is none"},
    {"POST", "/Person/_/safepost=Email",
     "[{\"Name\":\"A\",\"Email\":\"a@x\"},{\"Name\":\"B\",\"Email\":\"b@x\",\"Age\":true}]",
     ERR_INVALID_ENTITY, "entity 1: Age"},
    {"POST", "/Person/_/safepost=Age", "[{\"Name\":\"A\",\"Age\":30},{\"Name\":\"B\",\"Age\":40}]",
     ERR_AMBIGUOUS_MATCH, "entity 1: safepost: several entities of 'Shop.Person'"},
    {"POST", "/Person/_/safepost=Age", "{\"Name\":\"B\",\"Age\":40}", ERR_AMBIGUOUS_MATCH,
     "safepost: several entities"},
    {"POST", "/Person/_/safepost=Home", "[{\"Name\":\"A\"},{\"Name\":\"B\",\"Home\":{}}]",
     ERR_INVALID_ENTITY, "entity 1: Home: safepost compares no objects and arrays"},
    {"PATCH", "/Person", "{\"Age\":1}", ERR_AMBIGUOUS_MATCH,
     "3 entities of 'Shop.Person' match, and PATCH of several needs the meta-condition"},
    {"PATCH", "/Person/Age=40", "{\"Age\":1}", ERR_AMBIGUOUS_MATCH, "2 entities"},
    {"PATCH", "/Person/_/unsafe=false", "{\"Age\":1}", ERR_AMBIGUOUS_MATCH, "unsafe=true"},
    {"PATCH", "/Person/_/unsafe=true", "{\"Name\":null}", ERR_INVALID_ENTITY, "Name: is required"},
    {"PATCH", "/Person/_/unsafe=true", "[{\"Age\":1}]", ERR_DATA_SOURCE_FORMAT,
     "PATCH takes one JSON object as its body"},
    {"PATCH", "/Person/Name=Ann", "{\"Home\":[]}", ERR_INVALID_ENTITY, "Home: must be of type"},
    {"PATCH", "/Person/Name=Nobody", "{\"Age\":1}", ERR_UNKNOWN_ENTITY,
     "no entity of 'Shop.Person' matches"},
    {"PATCH", "/Person/Name=Ann/limit=0", "{\"Age\":1}", ERR_UNKNOWN_ENTITY, "matches"},
    {"PATCH", "/Person/Name=Nobody", "", ERR_NO_DATA_SOURCE, "PATCH"},
    {"PUT", "/Person", "{\"Name\":\"X\"}", ERR_AMBIGUOUS_MATCH,
     "3 entities of 'Shop.Person' match, PUT replaces one"},
    {"PUT", "/Person/_/unsafe=true", "{\"Name\":\"X\"}", ERR_AMBIGUOUS_MATCH, "PUT replaces one"},
    {"PUT", "/Person/Name=Ann", "{\"Age\":1}", ERR_INVALID_ENTITY, "Name: is required"},
    {"PUT", "/Person/Name=Dan", "{\"Age\":1}", ERR_INVALID_ENTITY, "Name: is required"},
    {"PUT", "/Person/Name=Ann", "[]", ERR_DATA_SOURCE_FORMAT, "PUT takes one JSON object"},
    {"PUT", "/Person/id=x", "{\"Name\":\"X\"}", ERR_UNKNOWN_ENTITY, "ids are given by the server"},
    {"DELETE", "/Person", NULL, ERR_AMBIGUOUS_MATCH, "3 entities of 'Shop.Person' match, and DEL"},
    {"DELETE", "/Person/Age=40/limit=3", NULL, ERR_AMBIGUOUS_MATCH, "2 entities"},
};

START_TEST(what_is_refused_changes_nothing)
{
    struct span before;
    uint64_t serial;

    insert_three();
    before = asking_entities(PEOPLE);
    serial = asking_serial();
    ck_refuses(refused[_i].code, refused[_i].text, refused[_i].method, refused[_i].target,
               refused[_i].body);
    ck_span_is(asking_entities(PEOPLE), before);
    ck_assert_uint_eq(asking_serial(), serial + 1); /* the error */
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 1);
    ck_assert_uint_lt(asking.answer.serial, serial); /* nobody waits for it */
    ck_assert_ptr_null(answered_header("Svc-count").p);
}
END_TEST

/* ---- safepost ---- */

static const struct {
    const char *meta, *body;
    int status;
    const char *info, *after;
} safeposts[] = {
    /* By an index, and by a walk. */
    {"Email", "{\"Name\":\"Ada\",\"Email\":\"a@x\"}", 200, "1 entity updated in",
     "Ada 30, Bob 40, Cid 40"},
    {"Age", "{\"Name\":\"Ada\",\"Age\":30}", 200, "1 entity updated in", "Ada 30, Bob 40, Cid 40"},
    {"Age", "{\"Name\":\"Ada\",\"Age\":3e1}", 200, "1 entity updated in",
     "Ada 3e1, Bob 40, Cid 40"},
    {"Email,Age", "{\"Name\":\"Bo\",\"Email\":\"b@x\",\"Age\":40}", 200, "1 entity updated in",
     "Ann 30, Bo 40, Cid 40"},
    {"Email,Age", "{\"Name\":\"Bo\",\"Email\":\"b@x\",\"Age\":41}", 201, "1 entity inserted into",
     "Ann 30, Bob 40, Cid 40, Bo 41"},
    /* What is missing is null, and equals null. */
    {"Email", "{\"Name\":\"Cyd\"}", 200, "1 entity updated in", "Ann 30, Bob 40, Cyd 40"},
    {"Home.City", "{\"Name\":\"Ada\",\"Home\":{\"City\":\"Oslo\"}}", 200, "1 entity updated in",
     "Ada 30, Bob 40, Cid 40"},
    /* Several inputs: each counts after those before it. */
    {"Email", "[{\"Name\":\"Dan\",\"Email\":\"d@x\"},{\"Name\":\"Bo\",\"Email\":\"b@x\"}]", 201,
     "1 entity inserted into and 1 updated in", "Ann 30, Bo 40, Cid 40, Dan null"},
    {"Email",
     "[{\"Name\":\"Dan\",\"Email\":\"d@x\"},{\"Name\":\"Dana\",\"Email\":\"d@x\",\"Age\":5}]", 201,
     "1 entity inserted into", "Ann 30, Bob 40, Cid 40, Dana 5"},
    {"Age", "[{\"Name\":\"Dan\",\"Age\":9},{\"Name\":\"Eve\",\"Age\":9.0}]", 201,
     "1 entity inserted into", "Ann 30, Bob 40, Cid 40, Eve 9.0"},
    {"Email", "[{\"Name\":\"A\",\"Email\":\"a@x\"},{\"Name\":\"Al\",\"Email\":\"a@x\"}]", 200,
     "1 entity updated in", "Al 30, Bob 40, Cid 40"},
    /* An index leads to the first; for null there is none. */
    {"Email", "[{\"Name\":\"Ada\",\"Email\":\"a@x\"},{\"Name\":\"Cyd\"}]", 200,
     "2 entities updated in", "Ada 30, Bob 40, Cyd 40"},
    {"Name", "[]", 200, "0 entities inserted into", "Ann 30, Bob 40, Cid 40"},
    /* Members left out keep what is stored. */
    {"Name", "{\"Name\":\"Ann\"}", 200, "1 entity updated in", "Ann 30, Bob 40, Cid 40"},
};

START_TEST(safepost_updates_what_is_equal)
{
    struct span info;

    insert_three();
    ck_asks(safeposts[_i].status, "POST",
            asking_printf("/" PEOPLE "/_/safepost=%s", safeposts[_i].meta), safeposts[_i].body);
    info = arena_printf(&asking.arena, "%s '" PEOPLE "'", safeposts[_i].info);
    ck_span_is(answered_header("Svc-info"), info);
    ck_span_is(names(), span_str(safeposts[_i].after));
}
END_TEST

START_TEST(safepost_twice_writes_one_entity)
{
    uint64_t serial = asking_serial();

    ck_asks(201, "POST", "/" PEOPLE "/_/safepost=Email",
            "[{\"Name\":\"D\",\"Email\":\"d\",\"Home\":{\"a\":1}},"
            "{\"Name\":\"E\",\"Email\":\"d\",\"Home\":{\"b\":2}}]");
    ck_span_is(answered("0.ObjectNo"), arena_u64(&asking.arena, serial));
    ck_member_eq("0.Name", "\"E\"");
    ck_member_eq("0.Home", "{\"a\":1,\"b\":2}");
    ck_assert_ptr_null(answered("1").p);
    ck_assert_uint_eq(asking_count(PEOPLE), 1);
    ck_assert(span_find(answered_header("Location"), span_str(answered_text("0.Id"))) != SIZE_MAX);
}
END_TEST

/* ---- PATCH ---- */

static const struct {
    const char *patch, *home;
} merges[] = {
    {"{}", "{\"City\":\"Oslo\",\"Zip\":{\"Code\":1,\"Box\":2}}"},
    {"{\"Home\":{}}", "{\"City\":\"Oslo\",\"Zip\":{\"Code\":1,\"Box\":2}}"},
    {"{\"Home\":{\"City\":\"Bergen\"}}", "{\"City\":\"Bergen\",\"Zip\":{\"Code\":1,\"Box\":2}}"},
    {"{\"home\":{\"Zip\":{\"Box\":3,\"New\":[]}}}",
     "{\"City\":\"Oslo\",\"Zip\":{\"Code\":1,\"Box\":3,\"New\":[]}}"},
    {"{\"Home\":{\"Zip\":null}}", "{\"City\":\"Oslo\",\"Zip\":null}"},
    {"{\"Home\":{\"Zip\":7}}", "{\"City\":\"Oslo\",\"Zip\":7}"},
    {"{\"Home\":null}", "null"},
};

START_TEST(a_patch_merges)
{
    insert_three();
    ck_asks(200, "PATCH", "/" PEOPLE "/Name=Ann", merges[_i].patch);
    ck_span_is(answered("0.Home"), span_str(merges[_i].home));
    ck_member_eq("0.Age", "30");
    asking_reload();
    ck_asks(200, "GET", "/" PEOPLE "/Name=Ann", NULL);
    ck_span_is(answered("0.Home"), span_str(merges[_i].home));
}
END_TEST

START_TEST(several_are_patched_in_one_change)
{
    uint64_t serial;

    insert_three();
    serial = asking_serial();
    ck_asks(200, "PATCH", "/" PEOPLE "/Age=40/unsafe=true", "{\"Age\":41,\"Email\":null}");
    ck_header_eq("Svc-info", "2 entities updated in 'Shop.Person'");
    ck_member_eq("0.Name", "\"Bob\"");
    ck_member_eq("1.Name", "\"Cid\"");
    ck_assert_uint_eq(asking_serial(), serial + 2);
    ck_assert_uint_eq(asking.answer.serial, serial + 1);
    ck_span_eq(names(), "Ann 30, Bob 41, Cid 41");
    /* The index follows. */
    ck_asks(200, "REPORT", "/" PEOPLE "/Email=b@x", NULL);
    ck_member_eq("0.Count", "0");
    ck_asks(200, "PATCH", "/" PEOPLE "/_/order_desc=Name&limit=1", "{\"Age\":1}");
    ck_span_eq(names(), "Ann 30, Bob 41, Cid 1");
    ck_asks(200, "PATCH", "/" PEOPLE "/_/offset=-3&limit=1", "{\"Age\":2}");
    ck_span_eq(names(), "Ann 2, Bob 41, Cid 1");
}
END_TEST

START_TEST(dynamic_entities_keep_their_members)
{
    insert("Shop.Note", "{\"b\":1,\"a\":{\"x\":1.50}}");
    ck_asks(200, "PATCH", "/Shop.Note/b=1", "{\"A\":2,\"a\":{\"y\":null}}");
    ck_member_eq("0.a", "{\"x\":1.50,\"y\":null}");
    ck_member_eq("0.A", "2");
    ck_asks(200, "PUT", "/Shop.Note/b=1", "{\"c\":3}");
    ck_assert_ptr_null(answered("0.a").p);
    ck_assert_ptr_null(answered("0.b").p);
}
END_TEST

/* ---- PUT ---- */

START_TEST(put_replaces_but_for_id_and_number)
{
    const char *id;
    struct span number;

    insert_three();
    id = id_of("Bob");
    number = arena_copy(&asking.arena, answered("0.ObjectNo"));
    ck_asks(200, "PUT", "/" PEOPLE "/Name=Bob",
            "{\"Name\":\"Rob\",\"Id\":\"01999999-0000-7000-8000-000000000000\",\"ObjectNo\":1}");
    ck_assert_str_eq(answered_text("0.Id"), id);
    ck_span_is(answered("0.ObjectNo"), number);
    ck_member_eq("0.Age", "null");
    ck_member_eq("0.Email", "null");
    ck_span_eq(names(), "Ann 30, Rob null, Cid 40");
}
END_TEST

START_TEST(put_inserts_what_is_not_there)
{
    uint64_t serial = asking_serial();

    ck_asks(201, "PUT", "/" PEOPLE "/Name=Dan&Age=5", "{\"Name\":\"Dan\",\"Age\":5}");
    ck_header_eq("Svc-info", "1 entity inserted into 'Shop.Person'");
    ck_span_is(answered("0.ObjectNo"), arena_u64(&asking.arena, serial));
    ck_asks(200, "PUT", "/" PEOPLE "/Name=Dan&Age=5", "{\"Name\":\"Dan\",\"Age\":5}");
    ck_assert_uint_eq(asking_count(PEOPLE), 1);
}
END_TEST

/* ---- DELETE ---- */

static const struct {
    const char *target, *count, *after;
} deletions[] = {
    {"/Person/Name=Bob", "1", "Ann 30, Cid 40"},
    {"/Person/Name=Nobody", "0", "Ann 30, Bob 40, Cid 40"},
    {"/Person/Age=40/unsafe=true", "2", "Ann 30"},
    {"/Person/_/unsafe=true", "3", ""},
    {"/Person/_/limit=1", "1", "Bob 40, Cid 40"},
    {"/Person/_/offset=-1", "1", "Ann 30, Bob 40"},
    {"/Person/_/order_desc=Age,Name&limit=1", "1", "Ann 30, Bob 40"},
    {"/Person/_/limit=0", "0", "Ann 30, Bob 40, Cid 40"},
    {"/Person/_/search=Oslo", "1", "Bob 40, Cid 40"},
};

START_TEST(a_deletion_takes_what_matches)
{
    insert_three();
    ck_asks(200, "DELETE", deletions[_i].target, NULL);
    ck_span_is(answered("0.Count"), span_str(deletions[_i].count));
    ck_span_is(names(), span_str(deletions[_i].after));
    asking_reload();
    ck_span_is(names(), span_str(deletions[_i].after));
}
END_TEST

START_TEST(a_deletion_is_told_in_other_formats)
{
    insert_three();
    ask_with("Accept: application/x-ndjson", "DELETE", "/" PEOPLE "/Name=Ann", NULL);
    ck_body_eq("{\"Count\":1}\n");
    ask_with("Accept: text/csv", "DELETE", "/" PEOPLE "/Name=Bob", NULL);
    ck_body_eq("Count\r\n1\r\n");
    ask_with("Accept: application/json;indent=1", "DELETE", "/" PEOPLE "/Name=Cid", NULL);
    ck_body_eq("[\n {\n  \"Count\": 1\n }\n]");
    ask_with("Accept: application/json;indent=1", "REPORT", "/" PEOPLE, NULL);
    ck_body_eq("[\n {\n  \"Count\": 0\n }\n]");
}
END_TEST

/* ---- preconditions ---- */

START_TEST(if_match_holds_for_each_of_several)
{
    const char *bob, *cid, *both;
    struct span before;

    insert_three();
    bob = tag_of("Bob");
    cid = tag_of("Cid");
    both = asking_printf("If-Match: %s\nIf-Match: %s", cid, bob);
    before = asking_entities(PEOPLE);
    ask_with(asking_printf("If-Match: %s", bob), "PATCH", "/" PEOPLE "/Age=40/unsafe=true",
             "{\"Age\":1}");
    ck_problem(ERR_PRECONDITION_FAILED, asking_printf("its tag is now %s", cid));
    ck_span_is(asking_entities(PEOPLE), before);
    ask_with(asking_printf("If-Match: %s", bob), "DELETE", "/" PEOPLE "/Age=40/unsafe=true", NULL);
    ck_problem(ERR_PRECONDITION_FAILED, "If-Match: the entity has changed");
    ck_span_is(asking_entities(PEOPLE), before);
    ask_with(both, "PATCH", "/" PEOPLE "/Age=40/unsafe=true", "{\"Age\":41}");
    ck_status(200);
    ask_with(both, "DELETE", "/" PEOPLE "/Age=41/unsafe=true", NULL);
    ck_problem(ERR_PRECONDITION_FAILED, "If-Match");
    ck_span_eq(names(), "Ann 30, Bob 41, Cid 41");
}
END_TEST

START_TEST(a_tag_changes_with_the_entity_alone)
{
    const char *bob, *ann;

    insert_three();
    ann = tag_of("Ann");
    bob = tag_of("Bob");
    ck_assert_str_ne(ann, bob);
    ck_asks(200, "PATCH", "/" PEOPLE "/Name=Ann", "{\"Age\":31}");
    ck_assert_str_ne(tag_of("Ann"), ann);
    ck_assert_str_eq(tag_of("Bob"), bob);
    asking_reload();
    ck_assert_str_eq(tag_of("Bob"), bob);
    ask_with(asking_printf("If-None-Match: %s", bob), "GET", "/" PEOPLE "/Name=Bob", NULL);
    ck_status(304);
    ck_body_eq("");
    ck_assert_ptr_null(asking.answer.content_type.p);
}
END_TEST

/* ---- Prefer ---- */

START_TEST(minimal_answers_have_no_body)
{
    static const struct {
        const char *method, *target, *body;
        int status;
    } requests[] = {
        {"POST", "/" PEOPLE, "{\"Name\":\"Ann\"}", 201},
        {"POST", "/" PEOPLE "/_/safepost=Name", "{\"Name\":\"Ann\",\"Age\":1}", 200},
        {"PATCH", "/" PEOPLE "/Name=Ann", "{\"Age\":2}", 200},
        {"PUT", "/" PEOPLE "/Name=Ann", "{\"Name\":\"Ann\",\"Age\":3}", 200},
    };

    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        ask_with("Prefer: return=minimal", requests[i].method, requests[i].target,
                 requests[i].body);
        ck_status(requests[i].status);
        ck_body_eq("");
        ck_assert_ptr_null(asking.answer.content_type.p);
        ck_header_eq("Preference-Applied", "return=minimal");
        ck_assert(!turn_is_committed(asking.service->turn, asking.answer.serial));
    }
    ck_span_eq(names(), "Ann 3");
}
END_TEST

/* ---- limits ---- */

enum { SMALL_ANSWER = 400 };

static const struct {
    const char *method, *target, *body;
} verbose[] = {
    {"POST", "/Person",
     "[{\"Name\":\"Dan\"},{\"Name\":\"Eve\"},{\"Name\":\"Fay\"},{\"Name\":\"Gus\"},"
     "{\"Name\":\"Hal\"}]"},
    {"PATCH", "/Person/_/unsafe=true", "{\"Age\":1}"},
    {"PUT", "/Person/Name=Dan",
     "{\"Name\":\"Dan\",\"Home\":{\"Text\":\"0123456789012345678901234567890123456789012345678901"
     "23456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
     "45678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
     "67890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
     "89012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
     "23456789012345678901234567890123456789012345678901234567890123456789012345678901234567890\"}"
     "}"},
};

static void ask_small(const char *headers, const char *method, const char *target, const char *body)
{
    response_done(&asking.answer);
    response_init(&asking.answer, SMALL_ANSWER);
    ask_with(headers, method, target, body);
}

START_TEST(what_cannot_be_answered_does_not_happen)
{
    struct span before;

    insert_three();
    insert(PEOPLE, "[{\"Name\":\"X\"},{\"Name\":\"Y\"}]");
    before = asking_entities(PEOPLE);
    ask_small(NULL, verbose[_i].method, verbose[_i].target, verbose[_i].body);
    ck_problem(ERR_PAYLOAD_TOO_LARGE, "AnswerBytes (400 bytes)");
    ck_problem(ERR_PAYLOAD_TOO_LARGE, "Prefer: return=minimal");
    ck_span_is(asking_entities(PEOPLE), before);
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_ANSWER_BYTES], 1);
    ask_small("Prefer: return=minimal", verbose[_i].method, verbose[_i].target, verbose[_i].body);
    ck_assert_int_eq(asking.answer.error, ERR_NO_ERROR);
    ck_assert(!span_eq(asking_entities(PEOPLE), before));
}
END_TEST

START_TEST(an_answer_has_its_limit)
{
    insert_three();
    insert(PEOPLE, "[{\"Name\":\"X\"},{\"Name\":\"Y\"}]");
    ask_small(NULL, "GET", "/" PEOPLE, NULL);
    ck_problem(ERR_PAYLOAD_TOO_LARGE, "fewer entities with limit and offset");
    ck_assert(span_find(span_str(answered_text("detail")), SPAN("Prefer")) == SIZE_MAX);
    ask_small(NULL, "HEAD", "/" PEOPLE, NULL);
    ck_assert_int_eq(asking.answer.status, 413);
    ask_small(NULL, "GET", "/" PEOPLE "/_/limit=2", NULL);
    ck_status(200);
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_ANSWER_BYTES], 2);
}
END_TEST

START_TEST(a_change_has_its_limit)
{
    struct span before;

    insert_three();
    before = asking_entities(PEOPLE);
    asking.service->limits.change_bytes = 300;
    ask_with("Prefer: return=minimal", "PATCH", "/" PEOPLE "/_/unsafe=true", "{\"Age\":1}");
    ck_problem(ERR_PAYLOAD_TOO_LARGE, "ChangeBytes (300 bytes)");
    ck_span_is(asking_entities(PEOPLE), before);
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_CHANGE_BYTES], 1);
    ck_asks(200, "PATCH", "/" PEOPLE "/Name=Bob", "{\"Age\":1}");
    ck_refuses(ERR_PAYLOAD_TOO_LARGE, "ChangeBytes", "POST", "/" PEOPLE,
               "[{\"Name\":\"1\"},{\"Name\":\"2\"},{\"Name\":\"3\"},{\"Name\":\"4\"}]");
    ck_assert_uint_eq(asking_count(PEOPLE), 3);
    /* What is deleted takes no room. */
    ck_asks(200, "DELETE", "/" PEOPLE "/_/unsafe=true", NULL);
    ck_assert_uint_eq(asking_count(PEOPLE), 0);
}
END_TEST

START_TEST(a_body_has_its_limits)
{
    asking.service->limits.json_depth = 2;
    ck_refuses(ERR_FAILED_JSON, "2", "POST", "/Shop.Note", "{\"a\":{\"b\":[]}}");
    ck_asks(201, "POST", "/Shop.Note", "{\"a\":{\"b\":1}}");
    asking.service->limits.json_nodes = 4;
    ck_refuses(ERR_FAILED_JSON, "4", "POST", "/Shop.Note", "{\"a\":{\"b\":1}}");
    ck_asks(201, "POST", "/Shop.Note", "{\"a\":1}");
}
END_TEST

/* ---- resources that are declared otherwise ---- */

#define DECLARE(name, properties)                                                                  \
    "{\"Name\":\"" name "\",\"Kind\":\"EntityResource\",\"Properties\":[" properties "]}"

static void declare_item(const char *properties)
{
    ask("PUT", "/Svc.Admin.Resource/Name=Shop.Item",
        asking_printf("{\"Name\":\"Shop.Item\",\"Kind\":\"EntityResource\",\"Properties\":%s}",
                      properties));
    ck_assert(asking.answer.status == 200 || asking.answer.status == 201);
}

START_TEST(entities_have_the_form_of_today)
{
    struct span stored;
    const char *tag;

    declare_item("[{\"Name\":\"A\",\"Type\":\"integer\"},{\"Name\":\"B\",\"Type\":\"string\"}]");
    insert("Shop.Item", "{\"A\":1,\"B\":\"x\"}");
    stored = asking_entities("Shop.Item");
    ck_asks(200, "GET", "/Shop.Item/A=1", NULL);
    tag = asking_printf("If-Match: %.*s", SPAN_FMT(answered_header("ETag")));
    declare_item("[{\"Name\":\"C\",\"Type\":\"any\"},{\"Name\":\"B\",\"Type\":\"string\"}]");

    ck_span_is(asking_entities("Shop.Item"), stored);
    ck_asks(200, "GET", "/Shop.Item/_/select=B,C", NULL);
    ck_body_eq("[{\"B\":\"x\",\"C\":null}]");
    ck_refuses(ERR_UNKNOWN_PROPERTY, "'A'", "GET", "/Shop.Item/A=1", NULL);
    ck_asks(200, "GET", "/Shop.Item/C=null", NULL);
    ck_member_eq("0.B", "\"x\"");
    ck_assert_ptr_null(answered("0.A").p);
    ck_asks(204, "GET", "/Shop.Item/_/search=A%22:,CS", NULL);
    /* Its tag is another, for it looks different. */
    ask_with(tag, "PATCH", "/Shop.Item/B=x", "{\"C\":1}");
    ck_problem(ERR_PRECONDITION_FAILED, "If-Match: the entity has changed");
    ck_asks(200, "PATCH", "/Shop.Item/B=x", "{\"C\":[1]}");
    ck_member_eq("0.C", "[1]");
    ck_assert_ptr_null(answered("0.A").p);
    asking_reload();
    ck_asks(200, "GET", "/Shop.Item/_/select=C,B", NULL);
    ck_body_eq("[{\"C\":[1],\"B\":\"x\"}]");
}
END_TEST

START_TEST(entities_of_several_forms)
{
    declare_item("[{\"Name\":\"A\",\"Type\":\"integer\"}]");
    insert("Shop.Item", "{\"A\":1}");
    declare_item("[{\"Name\":\"A\",\"Type\":\"integer\"},{\"Name\":\"B\",\"Type\":\"integer\"}]");
    insert("Shop.Item", "{\"A\":2,\"B\":3}");
    asking_reload();
    ck_asks(200, "GET", "/Shop.Item/_/select=A,B", NULL);
    ck_body_eq("[{\"A\":1,\"B\":null},{\"A\":2,\"B\":3}]");
    ck_asks(200, "PATCH", "/Shop.Item/_/unsafe=true", "{\"B\":4}");
    ck_asks(200, "REPORT", "/Shop.Item/B=4", NULL);
    ck_member_eq("0.Count", "2");
}
END_TEST

/* A declaration that says nothing else leaves entities and their tags alone. */
START_TEST(the_same_properties_are_the_same_form)
{
    struct span tag;

    ck_asks(201, "POST", "/Svc.Admin.Resource",
            DECLARE("Shop.Item", "{\"Name\":\"A\",\"Type\":\"integer\"}"));
    insert("Shop.Item", "{\"A\":1}");
    ck_asks(200, "GET", "/Shop.Item/A=1", NULL);
    tag = arena_copy(&asking.arena, answered_header("ETag"));
    ck_asks(200, "PATCH", "/Svc.Admin.Resource/Name=Shop.Item", "{\"Description\":\"Items\"}");
    ck_asks(200, "GET", "/Shop.Item/A=1", NULL);
    ck_span_is(answered_header("ETag"), tag);
}
END_TEST

/* ---- secrets ---- */

#define SECRET "sesame"

static const char reader[] = "Authorization: apikey reader";

static void make_webhook(void)
{
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("reader",
                   "[{\"Resources\":[\"Svc.Admin.Webhook\"],\"Methods\":[\"GET\",\"DELETE\"]}]");
    ask_with("Authorization: apikey admin", "POST", "/Webhook",
             "{\"Label\":\"one\",\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Placed\","
             "\"Headers\":{\"Authorization\":\"" SECRET "\",\"X-Open\":\"yes\"}}");
    ck_status(201);
    ck_member_eq("0.Headers.Authorization", "\"*******\"");
}

/* What it sends. */
static struct span stored_secret(void)
{
    struct span stored = asking_entities("Svc.Admin.Webhook");

    return span_find(stored, SPAN("\"" SECRET "\"")) != SIZE_MAX ? SPAN(SECRET)
                                                                 : (struct span){NULL, 0};
}

START_TEST(nobody_sees_secrets)
{
    static const struct {
        const char *target;
        int status;
    } reads[] = {
        {"/Webhook", 200},
        {"/Webhook/Headers.Authorization=" SECRET, 204},
        {"/Webhook/Headers.Authorization='*******'", 200},
        {"/Webhook/Headers.Authorization>a", 204},
        {"/Webhook/_/search=" SECRET, 204},
        {"/Webhook/_/search_regex=ses.me", 204},
        {"/Webhook/_/select=Headers", 200},
        {"/Webhook/_/distinct=true", 200},
        {"/Webhook/_/search=yes", 200},
    };

    make_webhook();
    for (size_t i = 0; i < 2 * ARRAY_LEN(reads); i++) {
        const char *asker = i < ARRAY_LEN(reads) ? reader : "Authorization: apikey admin";

        ask_with(asker, "GET", reads[i % ARRAY_LEN(reads)].target, NULL);
        ck_status(reads[i % ARRAY_LEN(reads)].status);
        ck_assert(span_find(answered_body(), SPAN(SECRET)) == SIZE_MAX);
        if (asking.answer.status == 200)
            ck_member_eq("0.Headers.Authorization", "\"*******\"");
    }
    /* What it may delete it cannot find by the secret either. */
    ask_with(reader, "DELETE", "/Webhook/Headers.Authorization=" SECRET, NULL);
    ck_member_eq("0.Count", "0");
}
END_TEST

START_TEST(writing_a_secret_is_a_change)
{
    static const char *const patches[] = {"{\"Headers\":{\"Authorization\":\"" SECRET "\"}}",
                                          "{\"Headers\":{\"Authorization\":\"other\"}}"};
    struct span before;

    make_webhook();
    for (size_t i = 0; i < ARRAY_LEN(patches); i++) {
        ask_with(reader, "GET", "/Webhook/Label=one", NULL);
        before = arena_copy(&asking.arena, answered_header("ETag"));
        ask_with("Authorization: apikey admin", "PATCH", "/Webhook/Label=one", patches[i]);
        ck_status(200);
        ask_with(reader, "GET", "/Webhook/Label=one", NULL);
        ck_assert(!span_eq(answered_header("ETag"), before));
    }
}
END_TEST

/* The second input updates what the first one wrote, secrets and all. */
START_TEST(secrets_are_no_key_to_what_is_stored)
{
    make_webhook();
    ask_with("Authorization: apikey admin", "POST", "/Webhook/_/safepost=Headers.Authorization",
             "{\"Label\":\"two\",\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Placed\","
             "\"Headers\":{\"Authorization\":\"" SECRET "\"}}");
    ck_status(201);
    ck_assert_uint_eq(asking_count("Svc.Admin.Webhook"), 2);
    ask_with("Authorization: apikey admin", "POST", "/Webhook/_/safepost=Label",
             "{\"Label\":\"two\",\"Headers\":{\"Authorization\":\"*******\",\"X\":\"x\"}}");
    ck_status(200);
    ck_member_eq("0.Headers", "{\"Authorization\":\"*******\",\"X\":\"x\"}");
    ck_assert(stored_secret().p != NULL);
}
END_TEST

START_TEST(writing_the_mask_keeps_the_secret)
{
    make_webhook();
    ask_with("Authorization: apikey admin", "PATCH", "/Webhook/Label=one",
             "{\"Headers\":{\"authorization\":\"*******\",\"X-Open\":\"no\"}}");
    ck_status(200);
    ck_assert(stored_secret().p != NULL);
    ck_member_eq("0.Headers.X-Open", "\"no\"");
    ask_with("Authorization: apikey admin", "PUT", "/Webhook/Label=one",
             "{\"Label\":\"one\",\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Placed\","
             "\"Headers\":{\"Authorization\":\"*******\"}}");
    ck_status(200);
    ck_member_eq("0.Headers", "{\"Authorization\":\"*******\"}");
    ck_assert(stored_secret().p != NULL);
}
END_TEST

/* ---- GET, HEAD, REPORT ---- */

START_TEST(pages_lead_to_the_next)
{
    static const struct {
        const char *target, *pager;
    } pages[] = {
        {"/Person/_/limit=2", "/Shop.Person/ObjectNo>6/limit=2"}, /* they are 5, 6 and 7 */
        {"/Person/_/limit=3", NULL},
        {"/Person/_/limit=1&offset=1", "/Shop.Person/ObjectNo>6/limit=1"},
        {"/Person/_/offset=-3&limit=1", "/Shop.Person/ObjectNo>5/limit=1"},
        {"/Person/_/offset=-9&limit=1", "/Shop.Person/ObjectNo>5/limit=1"},
        {"/Person/ObjectNo>5&Age>0&objectno>4/limit=1", "/Shop.Person/Age>0&ObjectNo>6/limit=1"},
        {"/Person/_/offset=-3&limit=1&order_asc=Name",
         "/Shop.Person/_/limit=1&order_asc=Name&offset=-2"},
        {"/Person/Age=40/limit=1&order_asc=Name",
         "/Shop.Person/Age=40/limit=1&order_asc=Name&offset=1"},
        {"/Person/_/limit=0", NULL},
    };

    insert_three();
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        ask("GET", pages[i].target, NULL);
        ck_span_is(answered_header("Svc-pager"), span_str(pages[i].pager));
    }
    asking_below("/v1");
    ck_asks(200, "GET", "/v1/Person/Age>1/limit=1", NULL);
    ck_header_eq("Svc-pager", "/Shop.Person/Age>1&ObjectNo>5/limit=1");
    ck_header_eq("Link", "</v1/Shop.Person/Age%3E1&ObjectNo%3E5/limit=1>; rel=\"next\"");
}
END_TEST

START_TEST(head_is_get)
{
    static const char *const targets[] = {"/Person", "/Person/Name=Ann", "/Person/Name=X",
                                          "/Person/_/limit=1", "/Rules"};

    insert_three();
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct span body;
        int status;
        size_t headers;

        ask("GET", targets[i], NULL);
        body = arena_copy(&asking.arena, answered_body());
        status = asking.answer.status;
        headers = asking.answer.header_count;
        ask("HEAD", targets[i], NULL);
        ck_span_is(answered_body(), body); /* of which the connection sends the length */
        ck_assert_int_eq(asking.answer.status, status);
        ck_assert_uint_eq(asking.answer.header_count, headers);
    }
}
END_TEST

START_TEST(a_binary_resource_is_its_bytes)
{
    ck_asks(200, "GET", "/Rules", NULL);
    ck_body_eq("Be kind.\n");
    ck_span_eq(asking.answer.content_type, "text/plain");
    ask_with("Accept: image/png", "GET", "/Rules", NULL);
    ck_status(200);
    asking_reload();
    ck_asks(200, "GET", "/Rules", NULL);
    ck_body_eq("Be kind.\n");
}
END_TEST

/* Once warm, an answer takes no memory of its own. */
START_TEST(a_warm_answer_does_not_allocate)
{
    size_t blocks;

    insert_three();
    asking_commit();
    for (int i = 0; i < 3; i++)
        ck_asks(200, "GET", "/" PEOPLE "/Email=a@x", NULL);
    blocks = mem_blocks();
    ck_asks(200, "GET", "/" PEOPLE "/Email=a@x", NULL);
    ck_assert_uint_eq(mem_blocks(), blocks);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, the_answer_is_what_is_stored);
    tcase_add_test(tc, an_answer_waits_for_what_it_tells);
    tcase_add_test(tc, an_array_is_inserted_in_its_order);
    tcase_add_test(tc, lines_are_an_array);
    tcase_add_test(tc, location_leads_there);
    tcase_add_loop_test(tc, what_is_refused_changes_nothing, 0, ARRAY_LEN(refused));
    tcase_add_loop_test(tc, safepost_updates_what_is_equal, 0, ARRAY_LEN(safeposts));
    tcase_add_test(tc, safepost_twice_writes_one_entity);
    tcase_add_loop_test(tc, a_patch_merges, 0, ARRAY_LEN(merges));
    tcase_add_test(tc, several_are_patched_in_one_change);
    tcase_add_test(tc, dynamic_entities_keep_their_members);
    tcase_add_test(tc, put_replaces_but_for_id_and_number);
    tcase_add_test(tc, put_inserts_what_is_not_there);
    tcase_add_loop_test(tc, a_deletion_takes_what_matches, 0, ARRAY_LEN(deletions));
    tcase_add_test(tc, a_deletion_is_told_in_other_formats);
    tcase_add_test(tc, if_match_holds_for_each_of_several);
    tcase_add_test(tc, a_tag_changes_with_the_entity_alone);
    tcase_add_test(tc, minimal_answers_have_no_body);
    tcase_add_loop_test(tc, what_cannot_be_answered_does_not_happen, 0, ARRAY_LEN(verbose));
    tcase_add_test(tc, an_answer_has_its_limit);
    tcase_add_test(tc, a_change_has_its_limit);
    tcase_add_test(tc, a_body_has_its_limits);
    tcase_add_test(tc, entities_have_the_form_of_today);
    tcase_add_test(tc, entities_of_several_forms);
    tcase_add_test(tc, the_same_properties_are_the_same_form);
    tcase_add_test(tc, nobody_sees_secrets);
    tcase_add_test(tc, writing_a_secret_is_a_change);
    tcase_add_test(tc, secrets_are_no_key_to_what_is_stored);
    tcase_add_test(tc, writing_the_mask_keeps_the_secret);
    tcase_add_test(tc, pages_lead_to_the_next);
    tcase_add_test(tc, head_is_get);
    tcase_add_test(tc, a_binary_resource_is_its_bytes);
    tcase_add_test(tc, a_warm_answer_does_not_allocate);
}
