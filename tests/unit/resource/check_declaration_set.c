/* Declarations that change together: what they refer to, whatever their order. */
#include "declaring.h"

#include "resource/declaration.h"
#include "resource/resource.h"
#include "store/entity.h"
#include "json/json.h"

#include <string.h>

static struct resources resources;
static struct arena arena;

static void begin(void)
{
    arena_init(&arena);
    resources_init(&resources, NULL, NULL);
}

static void end(void)
{
    resources_done(&resources);
    arena_done(&arena);
}

/* The entity's text. */
static struct span decoded(const char *declaration)
{
    struct json_doc doc;
    struct span json;

    ck_ok(json_parse(span_str(declaration), NULL, &arena, &doc));
    ck_ok(declaring_decode(json_root(&doc), &arena, &json));
    return json;
}

#define PERSON                                                                                     \
    "{\"Name\":\"A.Person\",\"Kind\":\"EntityResource\",\"Events\":{\"Inserted\":\"A.Born\","      \
    "\"Updated\":\"A.Born\",\"Deleted\":\"A.Gone\"}}"
#define BORN                                                                                       \
    "{\"Name\":\"A.Born\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":\"a.person\"}}"
#define GONE "{\"Name\":\"A.Gone\",\"Kind\":\"EventResource\"}"
#define OTHER "{\"Name\":\"A.Other\",\"Kind\":\"EntityResource\"}"

static const char *const family[] = {PERSON, BORN, GONE, OTHER};

enum { FAMILY = ARRAY_LEN(family), FAMILY_ORDERS = 24 };

/* The place of the n-th of a permutation. */
static void permute(int order, size_t out_places[FAMILY])
{
    size_t left[FAMILY] = {0, 1, 2, 3};

    for (size_t i = 0; i < FAMILY; i++) {
        size_t n = FAMILY - i, place = (size_t)order % n;

        order /= (int)n;
        out_places[i] = left[place];
        memmove(&left[place], &left[place + 1], (n - place - 1) * sizeof(left[0]));
    }
}

START_TEST(declarations_may_refer_to_one_another_in_any_order)
{
    struct declaration_set set;
    size_t places[FAMILY];

    permute(_i, places);
    declaration_set_init(&set, &resources, &arena);
    for (size_t i = 0; i < FAMILY; i++)
        ck_ok(declaration_set_add(&set, METHOD_POST, decoded(family[places[i]])));
    ck_ok(declaration_set_check(&set));
    ck_assert_uint_eq(resources.count, 0); /* that was a look ahead */
}
END_TEST

START_TEST(none_of_them_may_be_missing)
{
    static const char *const texts[] = {
        "'A.Born': Payload.Resource: 'a.person' is no entity resource",
        "'A.Person': Events.Inserted: 'A.Born' is no event resource",
        "'A.Person': Events.Deleted: 'A.Gone' is no event resource", NULL, /* nobody needs it */
    };
    struct declaration_set set;
    size_t places[FAMILY];

    permute(_i, places);
    for (size_t missing = 0; missing < FAMILY; missing++) {
        declaration_set_init(&set, &resources, &arena);
        for (size_t i = 0; i < FAMILY; i++)
            if (places[i] != missing)
                ck_ok(declaration_set_add(&set, METHOD_POST, decoded(family[places[i]])));
        if (texts[missing] != NULL)
            ck_fails(declaration_set_check(&set), ERR_INVALID_ENTITY, texts[missing]);
        else
            ck_ok(declaration_set_check(&set));
    }
}
END_TEST

START_TEST(they_may_go_together_in_any_order)
{
    struct declaration_set set;
    size_t places[FAMILY];

    ck_ok(declaring(&resources, "[" PERSON "," BORN "," GONE "," OTHER "]", &arena));
    permute(_i, places);
    declaration_set_init(&set, &resources, &arena);
    for (size_t i = 0; i < FAMILY; i++)
        ck_ok(declaration_set_add(&set, METHOD_DELETE, decoded(family[places[i]])));
    ck_ok(declaration_set_check(&set));
    ck_assert_uint_eq(resources.count, FAMILY);
}
END_TEST

#define ENTITY(name, more) "{\"Name\":\"" name "\",\"Kind\":\"EntityResource\"" more "}"
#define EVENT(name, more) "{\"Name\":\"" name "\",\"Kind\":\"EventResource\"" more "}"
#define BINARY(name) "{\"Name\":\"" name "\",\"Kind\":\"BinaryResource\",\"Content\":\"\"}"
#define OF(resource) ",\"Payload\":{\"Resource\":\"" resource "\"}"
#define BYTES ",\"Payload\":{\"ContentType\":\"text/plain\"}"
#define INSERTED(event) ",\"Events\":{\"Inserted\":\"" event "\"}"

struct step {
    enum method verb;
    const char *declaration;
};

/* On top of the family. */
static const struct {
    struct step steps[3];
    enum err_code code; /* ERR_NO_ERROR: it is good */
    const char *text;
} sets[] = {
    /* Names. */
    {{{METHOD_POST, ENTITY("A.New", "")}}, ERR_NO_ERROR, NULL},
    {{{METHOD_POST, OTHER}}, ERR_CONFLICT, "Name: there is a resource 'A.Other' already"},
    {{{METHOD_POST, ENTITY("a.OTHER", "")}}, ERR_CONFLICT, "'a.OTHER' already"},
    {{{METHOD_POST, BINARY("A.Other")}}, ERR_CONFLICT, "'A.Other' already"},
    {{{METHOD_POST, ENTITY("A.New", "")}, {METHOD_POST, EVENT("A.new", "")}},
     ERR_CONFLICT,
     "'A.new' already"},
    {{{METHOD_PATCH, OTHER}}, ERR_NO_ERROR, NULL},
    {{{METHOD_DELETE, OTHER}, {METHOD_POST, EVENT("A.Other", "")}}, ERR_NO_ERROR, NULL},
    {{{METHOD_DELETE, OTHER}, {METHOD_POST, OTHER}, {METHOD_POST, OTHER}},
     ERR_CONFLICT,
     "'A.Other' already"},
    /* References out of the set. */
    {{{METHOD_POST, ENTITY("A.New", INSERTED("A.Gone"))}}, ERR_NO_ERROR, NULL},
    {{{METHOD_POST, ENTITY("A.New", INSERTED("a.gone"))}}, ERR_NO_ERROR, NULL},
    {{{METHOD_POST, ENTITY("A.New", INSERTED("Gone"))}},
     ERR_INVALID_ENTITY,
     "'A.New': Events.Inserted: 'Gone' is no event resource"},
    {{{METHOD_POST, ENTITY("A.New", INSERTED("A.Other"))}},
     ERR_INVALID_ENTITY,
     "Events.Inserted: 'A.Other' is no event resource"},
    {{{METHOD_POST, ENTITY("A.New", ",\"Events\":{\"Updated\":\"A.Born\"}")}},
     ERR_INVALID_ENTITY,
     "Events.Updated: the payload of 'A.Born' is something else"},
    {{{METHOD_POST, ENTITY("A.New", ",\"Events\":{\"Deleted\":\"A.Bytes\"}")},
      {METHOD_POST, EVENT("A.Bytes", BYTES)}},
     ERR_INVALID_ENTITY,
     "Events.Deleted: the payload of 'A.Bytes' is something else"},
    {{{METHOD_POST, EVENT("A.New", OF("A.Other"))}}, ERR_NO_ERROR, NULL},
    {{{METHOD_POST, EVENT("A.New", OF("A.Gone"))}},
     ERR_INVALID_ENTITY,
     "'A.New': Payload.Resource: 'A.Gone' is no entity resource"},
    {{{METHOD_POST, EVENT("A.New", OF("A.Text"))}, {METHOD_POST, BINARY("A.Text")}},
     ERR_INVALID_ENTITY,
     "'A.Text' is no entity resource"},
    /* To what goes. */
    {{{METHOD_POST, ENTITY("A.New", INSERTED("A.Gone"))}, {METHOD_DELETE, GONE}},
     ERR_INVALID_ENTITY,
     "'A.New': Events.Inserted: 'A.Gone' is no event resource"},
    {{{METHOD_DELETE, GONE}},
     ERR_CONFLICT,
     "another resource refers to this one: 'A.Person': Events.Deleted: 'A.Gone'"},
    {{{METHOD_DELETE, BORN}}, ERR_CONFLICT, "'A.Person': Events.Inserted: 'A.Born'"},
    {{{METHOD_DELETE, PERSON}}, ERR_CONFLICT, "'A.Born': Payload.Resource: 'a.person'"},
    {{{METHOD_DELETE, PERSON}, {METHOD_DELETE, BORN}}, ERR_NO_ERROR, NULL},
    {{{METHOD_DELETE, OTHER}}, ERR_NO_ERROR, NULL},
    {{{METHOD_DELETE, GONE}, {METHOD_PATCH, ENTITY("A.Person", "")}}, ERR_NO_ERROR, NULL},
    /* To what becomes something else. */
    {{{METHOD_PATCH, EVENT("A.Gone", OF("A.Other"))}},
     ERR_CONFLICT,
     "'A.Person': Events.Deleted: the payload of 'A.Gone' is something else"},
    {{{METHOD_PATCH, EVENT("A.Gone", OF("A.Person"))}}, ERR_NO_ERROR, NULL},
    {{{METHOD_DELETE, GONE}, {METHOD_POST, ENTITY("A.Gone", "")}},
     ERR_CONFLICT,
     "Events.Deleted: 'A.Gone' is no event resource"},
    {{{METHOD_DELETE, GONE}, {METHOD_POST, EVENT("a.GONE", "")}}, ERR_NO_ERROR, NULL},
};

START_TEST(a_set_holds_or_not)
{
    static const struct entity declaration;
    struct declaration_set set;

    ck_ok(declaring(&resources, "[" PERSON "," BORN "," GONE "," OTHER "]", &arena));
    for (size_t i = 0; i < resources.count; i++)
        resources.sorted[i]->declaration = &declaration; /* it is none of the built-in ones */
    declaration_set_init(&set, &resources, &arena);
    for (size_t i = 0; i < ARRAY_LEN(sets[_i].steps); i++)
        if (sets[_i].steps[i].declaration != NULL)
            ck_ok(declaration_set_add(&set, sets[_i].steps[i].verb,
                                      decoded(sets[_i].steps[i].declaration)));
    if (sets[_i].code == ERR_NO_ERROR)
        ck_ok(declaration_set_check(&set));
    else
        ck_fails(declaration_set_check(&set), sets[_i].code, sets[_i].text);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, declarations_may_refer_to_one_another_in_any_order, 0, FAMILY_ORDERS);
    tcase_add_loop_test(tc, none_of_them_may_be_missing, 0, FAMILY_ORDERS);
    tcase_add_loop_test(tc, they_may_go_together_in_any_order, 0, FAMILY_ORDERS);
    tcase_add_loop_test(tc, a_set_holds_or_not, 0, ARRAY_LEN(sets));
}
