#include "testing.h"

#include "base/arena.h"
#include "base/blob.h"
#include "base/buf.h"
#include "store/entity.h"
#include "json/json.h"

static struct arena arena;

static void begin(void)
{
    arena_init(&arena);
}

static void end(void)
{
    arena_done(&arena);
}

START_TEST(its_text_is_the_blob)
{
    struct blob *blob = blob_new(SPAN("{\"Id\":\"1\"}"));
    struct entity e = {.json = blob};

    ck_span_eq(entity_json(&e), "{\"Id\":\"1\"}");
    ck_assert_ptr_eq(entity_json(&e).p, blob->p);
    blob_unref(blob);
}
END_TEST

START_TEST(the_whole_is_parsed)
{
    struct json_value json;

    begin();
    json = entity_parse(SPAN("{\"Id\":\"1\",\"N\":[1,2,{\"M\":null}],\"ObjectNo\":7}"), &arena);
    ck_assert_uint_eq(json_count(json), 3);
    ck_span_eq(json_text(json_member(json, SPAN("N"))), "[1,2,{\"M\":null}]");
    end();
}
END_TEST

/* What is stored was read with limits that an operator sets; it must be read whatever these are
 * now. */
START_TEST(no_limit_applies)
{
    enum { MANY = 2000000 };
    struct json_value json;
    struct buf b;

    begin();
    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < JSON_DEPTH_MOST; i++)
        buf_add_char(&b, '[');
    for (int i = 0; i < JSON_DEPTH_MOST; i++)
        buf_add_char(&b, ']');
    json = entity_parse(buf_span(&b), &arena);
    ck_assert_int_eq(json_type(json), JSON_ARRAY);
    buf_clear(&b);
    buf_add_char(&b, '[');
    for (int i = 1; i < MANY; i++)
        buf_add_str(&b, "1,");
    buf_add_str(&b, "1]");
    json = entity_parse(buf_span(&b), &arena);
    ck_assert_uint_eq(json_count(json), MANY);
    buf_done(&b);
    end();
}
END_TEST

static const struct {
    const char *names[3];
    size_t count, members;
} fronts[] = {
    {{"Id"}, 1, 1},  {{"Name"}, 1, 2},    {{"Name", "Id"}, 2, 2},
    {{"Age"}, 1, 3}, {{"Missing"}, 1, 4}, {{"Id", "Missing"}, 2, 4},
};

/* Up to the last of the members that are asked for. */
START_TEST(the_front_is_parsed)
{
    struct span names[3];
    struct json_value json;

    begin();
    for (size_t i = 0; i < fronts[_i].count; i++)
        names[i] = span_str(fronts[_i].names[i]);
    json = entity_parse_front(SPAN("{\"Id\":\"1\",\"Name\":\"a\",\"Age\":[3],\"ObjectNo\":7}"),
                              names, fronts[_i].count, &arena);
    ck_assert_uint_eq(json_count(json), fronts[_i].members);
    ck_span_eq(json_text(json_member(json, SPAN("Id"))), "\"1\"");
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, its_text_is_the_blob);
    tcase_add_test(tc, the_whole_is_parsed);
    tcase_add_test(tc, no_limit_applies);
    tcase_add_loop_test(tc, the_front_is_parsed, 0, ARRAY_LEN(fronts));
}
