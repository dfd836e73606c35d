/* Declarations of the configuration against those that are stored. */
#include "asking.h"

#include "resource/declaration.h"
#include "resource/resource.h"
#include "json/json.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTITY(name, more) "{\"Name\":\"" name "\",\"Kind\":\"EntityResource\"" more "}"
#define EVENT(name, more) "{\"Name\":\"" name "\",\"Kind\":\"EventResource\"" more "}"
#define OF(resource) ",\"Payload\":{\"Resource\":\"" resource "\"}"
#define INSERTED(event) ",\"Events\":{\"Inserted\":\"" event "\"}"

#define PERSON                                                                                     \
    "{\"Name\":\"A.Person\",\"Kind\":\"EntityResource\",\"Events\":{\"Inserted\":\"A.Born\","      \
    "\"Updated\":\"A.Born\",\"Deleted\":\"A.Gone\"}}"
#define BORN                                                                                       \
    "{\"Name\":\"A.Born\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":\"a.person\"}}"
#define GONE "{\"Name\":\"A.Gone\",\"Kind\":\"EventResource\"}"
#define OTHER "{\"Name\":\"A.Other\",\"Kind\":\"EntityResource\"}"

static char directory[TESTING_PATH_BYTES];

static void begin(void)
{
    testing_make_directory(directory);
    asking_open("[]");
}

static void remove_file(const char *name)
{
    unlink(asking_printf("%s/%s", directory, name));
}

static void end(void)
{
    testing_remove_directory(directory);
    asking_close();
}

static void write_file(const char *name, const char *text)
{
    int fd = open(asking_printf("%s/%s", directory, name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static struct err *try_configure(const char *text, bool only_check)
{
    struct json_value declarations = {NULL, NULL};
    struct json_doc doc;

    if (text != NULL) {
        ck_ok(json_parse(span_str(text), NULL, &asking.arena, &doc));
        declarations = json_root(&doc);
    }
    return declarations_configure(asking.service->rest.resources, declarations, directory,
                                  only_check);
}

static void configure(const char *text)
{
    ck_ok(try_configure(text, false));
    asking.resources = text;
}

static const struct resource *declared(const char *name)
{
    return resource_named(asking.service->rest.resources, span_str(name));
}

/* Of its declaration. */
static const char *id_of(const char *name)
{
    ck_asks(200, "GET", asking_printf("/Svc.Admin.Resource/Name=%s", name), NULL);
    return answered_text("0.Id");
}

#define NOTE ENTITY("A.Note", ",\"Properties\":[{\"Name\":\"Text\",\"Type\":\"string\"}]")

START_TEST(what_is_configured_is_there)
{
    configure("[" NOTE "," PERSON "," BORN "," GONE "]");
    ck_assert(declared("A.Note")->is_configured);
    ck_asks(201, "POST", "/Note", "{\"Text\":\"x\"}");
    ck_asks(200, "GET", "/Svc.Admin.Resource/Name=A.Note", NULL);
    ck_member_eq("0.IsReadOnly", "true");
    asking_reload();
    ck_asks(200, "GET", "/Note/Text=x", NULL);
}
END_TEST

/* However it is written. */
static const char *const equals[] = {
    "[" NOTE "," GONE "]",
    "[" GONE "," NOTE "]",
    "[ {\"kind\" : \"EntityResource\", \"NAME\":\"A.Note\", \"Description\":null,"
    "\"Properties\":[{\"type\":\"string\",\"Name\":\"Text\",\"Required\":false}]}, " GONE "]",
    "[" ENTITY("A.Note", ",\"IsReadOnly\":false,\"Id\":\"x\",\"Properties\":[{\"Name\":\"Text\","
                         "\"Type\":\"string\"}]") "," GONE "]",
};

START_TEST(what_is_equal_is_not_written)
{
    uint64_t serial;
    const struct resource *note;
    struct span before;

    configure(equals[0]);
    serial = asking_serial();
    note = declared("A.Note");
    before = asking_entities("Svc.Admin.Resource");
    ck_ok(try_configure(equals[_i], false));
    if (_i < 2) {
        ck_assert_uint_eq(asking_serial(), serial);
        ck_span_is(asking_entities("Svc.Admin.Resource"), before);
    }
    ck_assert_ptr_eq(declared("A.Note"), note);
    ck_assert_uint_eq(asking_count("Svc.Admin.Resource"), 2);
    asking.resources = equals[_i];
}
END_TEST

START_TEST(what_is_changed_keeps_its_identity)
{
    const char *id;
    uint64_t serial;

    configure("[" NOTE "," GONE "]");
    id = id_of("A.Note");
    ck_asks(201, "POST", "/Note", "{\"Text\":\"x\"}");
    serial = asking_serial();
    configure("[" GONE "," ENTITY("A.Note", ",\"Methods\":[\"GET\"]") "]");
    ck_assert_uint_eq(asking_serial(), serial + 1);
    ck_assert_str_eq(id_of("A.Note"), id);
    ck_asks(405, "POST", "/Note", "{}");
    ck_asks(200, "GET", "/Note/Text=x", NULL);
}
END_TEST

START_TEST(what_is_configured_no_more_goes)
{
    const char *id;

    configure("[" NOTE "," GONE "]");
    id = id_of("A.Note");
    ck_asks(201, "POST", "/Note", "{\"Text\":\"x\"}");
    configure("[" GONE "]");
    ck_asks(404, "GET", "/Note", NULL);
    ck_assert_uint_eq(asking_count("Svc.Admin.Resource"), 1);
    asking_reload();
    /* Its entities were out of sight. */
    configure("[" GONE "," NOTE "]");
    ck_assert_str_ne(id_of("A.Note"), id);
    ck_asks(200, "GET", "/Note/Text=x", NULL);
    configure(NULL);
    ck_assert_uint_eq(asking_count("Svc.Admin.Resource"), 0);
    asking.resources = "[]";
}
END_TEST

static const struct {
    const char *before, *after;
} replaced[] = {
    {"[" NOTE "]", "[" EVENT("A.Note", "") "]"},
    {"[" NOTE "]", "[" ENTITY("A.NOTE", "") "]"},
    {"[" PERSON "," BORN "," GONE "]", "[" BORN "," PERSON "," GONE "," OTHER "]"},
    {"[" PERSON "," BORN "," GONE "]", "[" GONE "]"},
    {"[" GONE "]", "[" GONE "," BORN "," PERSON "]"},
};

START_TEST(another_kind_or_spelling_is_another_resource)
{
    struct json_doc doc;

    configure(replaced[_i].before);
    configure(replaced[_i].after);
    ck_ok(json_parse(span_str(replaced[_i].after), NULL, &asking.arena, &doc));
    ck_assert_uint_eq(asking_count("Svc.Admin.Resource"), json_count(json_root(&doc)));
    for (struct json_value v = json_first(json_root(&doc)); json_exists(v);
         v = json_next(json_root(&doc), v))
        ck_span_is(declared(arena_copy(&asking.arena,
                                       json_string(json_member(v, SPAN("Name")), &asking.arena))
                                .p)
                       ->name,
                   json_string(json_member(v, SPAN("Name")), &asking.arena));
}
END_TEST

static const struct {
    const char *text;
    enum err_code code;
    const char *message;
} bad[] = {
    {"[" GONE ",5]", ERR_INVALID_ENTITY, "Resources[1]: it must be a JSON object"},
    {"[" GONE ",{\"Kind\":\"EventResource\"}]", ERR_INVALID_ENTITY,
     "Resources[1]: Name: is required"},
    {"[{\"Name\":\"A.B\",\"Kind\":\"Table\"}]", ERR_INVALID_ENUM_VALUE, "Resources[0]: Kind: "},
    {"[{\"Name\":\"A.B\",\"Kind\":\"EventResource\",\"Paylod\":1}]", ERR_UNKNOWN_MEMBER,
     "Resources[0]: Paylod: there is no such member, is 'Payload' meant?"},
    {"[" GONE "," NOTE "," EVENT("a.gone", "") "]", ERR_CONFLICT,
     "Resources[2]: Name: there is a resource 'a.gone' already"},
    {"[" GONE "," EVENT("A.X", OF("A.Nobody")) "]", ERR_INVALID_ENTITY,
     "'A.X': Payload.Resource: 'A.Nobody' is no entity resource"},
    {"[" GONE "," ENTITY("A.Run", "") "]", ERR_CONFLICT,
     "Name: there is a resource 'A.Run' already"},
    {"[]", ERR_CONFLICT, "another resource refers to this one: 'A.Run': Events.Inserted: 'A.Gone'"},
    {"[" GONE ",{\"Name\":\"A.T\",\"Kind\":\"BinaryResource\",\"File\":\"none.txt\"}]",
     ERR_INVALID_ENTITY, "Resources[1]: File: '"},
    {"[" GONE ",{\"Name\":\"A.T\",\"Kind\":\"BinaryResource\",\"File\":\"../x\"}]",
     ERR_INVALID_ENTITY, "Resources[1]: File: '../x' leads out of the configuration's folder"},
};

/* A.Run, declared at run time, refers to A.Gone of the configuration. */
START_TEST(on_an_error_nothing_happens)
{
    struct span before;
    uint64_t serial;

    configure("[" GONE "]");
    ck_asks(201, "POST", "/Svc.Admin.Resource", ENTITY("A.Run", INSERTED("A.Gone")));
    before = asking_entities("Svc.Admin.Resource");
    serial = asking_serial();
    for (int only_check = 0; only_check < 2; only_check++) {
        ck_fails(try_configure(bad[_i].text, only_check), bad[_i].code, bad[_i].message);
        ck_span_is(asking_entities("Svc.Admin.Resource"), before);
        ck_assert_uint_eq(asking_serial(), serial);
    }
    ck_assert_ptr_nonnull(declared("A.Gone"));
    ck_assert_ptr_null(declared("A.Note"));
}
END_TEST

START_TEST(only_a_check_changes_nothing)
{
    struct span before;
    uint64_t serial;

    configure("[" NOTE "," GONE "]");
    before = asking_entities("Svc.Admin.Resource");
    serial = asking_serial();
    ck_ok(try_configure("[" PERSON "," BORN "," GONE "]", true));
    ck_ok(try_configure(NULL, true));
    ck_span_is(asking_entities("Svc.Admin.Resource"), before);
    ck_assert_uint_eq(asking_serial(), serial);
    ck_assert_ptr_null(declared("A.Person"));
    ck_assert_ptr_nonnull(declared("A.Note"));
}
END_TEST

/* ---- files ---- */

#define TERMS                                                                                      \
    "[{\"Name\":\"A.Terms\",\"Kind\":\"BinaryResource\",\"ContentType\":\"text/plain\",\"File\":"  \
    "\"a.txt\"}]"

START_TEST(content_may_lie_in_a_file)
{
    uint64_t serial;

    write_file("a.txt", "first");
    configure(TERMS);
    ck_asks(200, "GET", "/Terms", NULL);
    ck_body_eq("first");
    serial = asking_serial();
    write_file("a.txt", "second");
    ck_asks(200, "GET", "/Terms", NULL);
    ck_body_eq("first"); /* it is read when the configuration is */
    ck_ok(try_configure(TERMS, true));
    ck_asks(200, "GET", "/Terms", NULL);
    ck_body_eq("first");
    configure(TERMS);
    ck_asks(200, "GET", "/Terms", NULL);
    ck_body_eq("second");
    ck_assert_uint_eq(asking_serial(), serial);
    remove_file("a.txt");
    ck_fails(try_configure(TERMS, false), ERR_INVALID_ENTITY, "No such file");
    ck_asks(200, "GET", "/Terms", NULL);
    ck_body_eq("second");
    configure("[]");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, what_is_configured_is_there);
    tcase_add_loop_test(tc, what_is_equal_is_not_written, 0, ARRAY_LEN(equals));
    tcase_add_test(tc, what_is_changed_keeps_its_identity);
    tcase_add_test(tc, what_is_configured_no_more_goes);
    tcase_add_loop_test(tc, another_kind_or_spelling_is_another_resource, 0, ARRAY_LEN(replaced));
    tcase_add_loop_test(tc, on_an_error_nothing_happens, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, only_a_check_changes_nothing);
    tcase_add_test(tc, content_may_lie_in_a_file);
}
