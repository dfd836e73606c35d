/* Writing over secrets that were never shown: what is kept, what is refused, and what tells a
 * change from none. */
#include "testing.h"

#include "access/secrets.h"
#include "query/shape.h"
#include "json/json.h"

static struct arena arena;
static const struct mask mask = {NULL};

static const struct property properties[] = {
    ID_PROPERTY("Id"),
    {.name = SPAN_INIT("Label"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Headers"), .type = TYPE_OBJECT},
    {.name = SPAN_INIT("Signing"), .type = TYPE_OBJECT},
    {.name = SPAN_INIT("Custom"), .type = TYPE_OBJECT, .flags = PROPERTY_WHOLE},
    OBJECT_NO_PROPERTY,
};
static const struct shape shape = {properties, ARRAY_LEN(properties), false};

#define OLD                                                                                        \
    "{\"Id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"Label\":\"l\","                            \
    "\"Headers\":{\"Cookie\":\"c\",\"X\":\"Bearer x\",\"Y\":\"y\"},"                               \
    "\"Signing\":{\"Secrets\":[\"a\",\"b\"]},"                                                     \
    "\"Custom\":{\"URI\":\"/u\",\"Headers\":{\"cookie\":{\"k\":1}}},\"ObjectNo\":7}"
#define KEPT_HEADERS "{\"Cookie\":\"c\",\"X\":\"Bearer x\",\"Y\":\"y\"}"
#define SEEN_HEADERS "{\"Cookie\":\"*******\",\"X\":\"*******\",\"Y\":\"y\"}"

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

static struct err *decode(const char *input, const char *old, enum schema_mode mode,
                          struct draft *out_draft)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(span_str(input), NULL, &arena, doc));
    return secrets_decode(&mask, &shape, json_root(doc), span_str(old), mode, &arena, out_draft);
}

/* A change of OLD; the member that is looked at, as it becomes and as it was written; and the
 * secrets that are kept, all in all. */
static const struct {
    enum schema_mode mode;
    const char *input, *member, *value, *written, *kept;
} changes[] = {
    {SCHEMA_PATCH, "{}", "Headers", KEPT_HEADERS, SEEN_HEADERS,
     "Headers.Cookie, Headers.X, Signing.Secrets.0, Signing.Secrets.1, Custom.Headers.cookie"},
    {SCHEMA_PATCH, "{\"Headers\":{\"cookie\":\"*******\"}}", "Headers", KEPT_HEADERS, SEEN_HEADERS,
     "Headers.Cookie, Headers.X, Signing.Secrets.0, Signing.Secrets.1, Custom.Headers.cookie"},
    /* Equal or not: it was written. */
    {SCHEMA_PATCH, "{\"Headers\":{\"Cookie\":\"c\"}}", "Headers", KEPT_HEADERS,
     "{\"Cookie\":\"c\",\"X\":\"*******\",\"Y\":\"y\"}",
     "Headers.X, Signing.Secrets.0, Signing.Secrets.1, Custom.Headers.cookie"},
    {SCHEMA_PATCH, "{\"Headers\":{\"Y\":\"*******\"}}", "Headers",
     "{\"Cookie\":\"c\",\"X\":\"Bearer x\",\"Y\":\"*******\"}",
     "{\"Cookie\":\"*******\",\"X\":\"*******\",\"Y\":\"*******\"}",
     "Headers.Cookie, Headers.X, Signing.Secrets.0, Signing.Secrets.1, Custom.Headers.cookie"},
    {SCHEMA_PATCH, "{\"Signing\":{\"Secrets\":[\"n\",\"*******\"]}}", "Signing",
     "{\"Secrets\":[\"n\",\"b\"]}", "{\"Secrets\":[\"n\",\"*******\"]}",
     "Headers.Cookie, Headers.X, Signing.Secrets.1, Custom.Headers.cookie"},
    {SCHEMA_PATCH, "{\"Signing\":null}", "Signing", "null", "null",
     "Headers.Cookie, Headers.X, Custom.Headers.cookie"},
    {SCHEMA_PATCH, "{\"Custom\":{\"Headers\":{\"COOKIE\":\"\\u002a******\"}}}", "Custom",
     "{\"Headers\":{\"COOKIE\":{\"k\":1}}}", "{\"Headers\":{\"COOKIE\":\"\\u002a******\"}}",
     "Headers.Cookie, Headers.X, Signing.Secrets.0, Signing.Secrets.1, Custom.Headers.COOKIE"},
    {SCHEMA_PATCH, "{\"Custom\":{}}", "Custom", "{}", "{}",
     "Headers.Cookie, Headers.X, Signing.Secrets.0, Signing.Secrets.1"},
    {SCHEMA_REPLACE, "{\"Label\":\"*******\",\"Headers\":{\"X\":\"*******\"}}", "Headers",
     "{\"X\":\"Bearer x\"}", "{\"X\":\"*******\"}", "Headers.X"},
    {SCHEMA_REPLACE, "{\"Label\":\"*******\"}", "Label", "\"*******\"", "\"*******\"", ""},
};

START_TEST(what_is_not_written_is_kept)
{
    struct span member = span_str(changes[_i].member);
    struct draft draft;

    ck_ok(decode(changes[_i].input, OLD, changes[_i].mode, &draft));
    ck_span_is(draft_get(&draft, member), span_str(changes[_i].value));
    ck_span_is(draft_written(&draft, member), span_str(changes[_i].written));
    ck_span_is(draft.kept, span_str(changes[_i].kept));
}
END_TEST

static const struct {
    const char *old, *input, *text;
} refused[] = {
    {OLD, "{\"Headers\":{\"Authorization\":\"*******\"}}", "Headers.Authorization is *******, but"},
    {OLD, "{\"Signing\":{\"Secrets\":[\"n\",\"n\",\"*******\"]}}", "Signing.Secrets.2 is *******"},
    {OLD, "{\"Custom\":{\"Headers\":{\"X-Api-Key\":\"*******\"}}}", "Custom.Headers.X-Api-Key is"},
    {OLD, "{\"Custom\":[{\"Cookie\":\"*******\"}]}", "Custom"},
    {NULL, "{\"Headers\":{\"Cookie\":\"*******\"}}", "Headers.Cookie is *******, but no value is"},
    {NULL, "{\"Signing\":{\"Secrets\":\"*******\"}}",
     "Signing.Secrets is *******, but no value is"},
};

START_TEST(a_mask_stands_for_something)
{
    struct draft draft;
    struct err *e = decode(refused[_i].input, refused[_i].old,
                           refused[_i].old == NULL ? SCHEMA_INSERT : SCHEMA_PATCH, &draft);

    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(err_code(e), ERR_INVALID_ENTITY);
    ck_assert_msg(span_find(err_message(e), span_str(refused[_i].text)) != SIZE_MAX, "%.*s",
                  SPAN_FMT(err_message(e)));
    err_free(e);
}
END_TEST

/* Elsewhere it is a text. */
START_TEST(a_new_text_may_look_like_it)
{
    struct draft draft;

    ck_ok(decode("{\"Label\":\"*******\",\"Headers\":{\"Y\":\"*******\"}}", NULL, SCHEMA_INSERT,
                 &draft));
    ck_span_eq(draft_get(&draft, SPAN("Label")), "\"*******\"");
    ck_span_eq(draft_get(&draft, SPAN("Headers")), "{\"Y\":\"*******\"}");
    ck_assert_uint_eq(draft.kept.n, 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, what_is_not_written_is_kept, 0, ARRAY_LEN(changes));
    tcase_add_loop_test(tc, a_mask_stands_for_something, 0, ARRAY_LEN(refused));
    tcase_add_test(tc, a_new_text_may_look_like_it);
}
