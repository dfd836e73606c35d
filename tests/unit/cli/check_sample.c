#include "testing.h"

#include "cli/sample.h"

#define PROPERTIES                                                                                 \
    "[{\"Name\":\"Name\",\"Type\":\"string\"},{\"Name\":\"Age\",\"Type\":\"integer\"},"            \
    "{\"Name\":\"Born\",\"Type\":\"datetime\"}]"

static struct arena arena;
static struct buf out;

static void set_up(void)
{
    arena_init(&arena);
    buf_init(&out, BUF_NO_CAP);
}

static void tear_down(void)
{
    arena_done(&arena);
    buf_done(&out);
}

static const struct {
    const char *properties, *conditions, *sample;
} cases[] = {
    {NULL, NULL, "{}"},
    {PROPERTIES, NULL, "{\"Name\":\"Name\",\"Age\":1,\"Born\":\"2001-09-09T01:46:40.0000000Z\"}"},
    {"[{\"Name\":\"A\",\"Type\":\"number\"},{\"Name\":\"B\",\"Type\":\"boolean\"},"
     "{\"Name\":\"C\",\"Type\":\"object\"},{\"Name\":\"D\",\"Type\":\"array\"},"
     "{\"Name\":\"E\",\"Type\":\"any\"}]",
     NULL, "{\"A\":1.5,\"B\":true,\"C\":{},\"D\":[],\"E\":\"E\"}"},
    {NULL, "a=1", "{\"a\":1}"},
    {NULL, "a='1'", "{\"a\":\"1\"}"},
    {NULL, "a=text%20of%20it", "{\"a\":\"text of it\"}"},
    {NULL, "a=TRUE&b=null", "{\"a\":true,\"b\":null}"},
    {NULL, "a>5&b>=5&c<5&d<=5", "{\"a\":6,\"b\":5,\"c\":4,\"d\":5}"},
    {NULL, "a>2.5", "{\"a\":3}"},
    {NULL, "a>text", "{\"a\":\"textz\"}"},
    {NULL, "a>2001-09-09T01:46:40Z", "{\"a\":\"2001-09-10T01:46:40.0000000Z\"}"},
    {NULL, "a!=null&b!=''&c!=5", "{\"a\":\"example\",\"b\":\"example\"}"},
    {NULL, "a.Length>2&b.Length=2&c.Length<2", "{\"a\":\"abc\",\"b\":\"ab\",\"c\":\"a\"}"},
    {NULL, "a.b=1&a.c=2", "{\"a\":{\"b\":1,\"c\":2}}"},
    {NULL, "Tags.*=blue", "{\"Tags\":[\"blue\"]}"},
    {NULL, "Lines.0.Sku=x", "{}"},
    {NULL, "a>=100&a<200", "{\"a\":100}"},
    {NULL, "a!=null&a=7", "{\"a\":7}"},
    {NULL, "a.Length>10&a!=null", "{\"a\":\"abcdefghijk\"}"},
    {PROPERTIES, "Name=12&Age!=null",
     "{\"Name\":\"12\",\"Age\":1,\"Born\":\"2001-09-09T01:46:40.0000000Z\"}"},
    {PROPERTIES, "name=x", "{\"Name\":\"x\",\"Age\":1,\"Born\":\"2001-09-09T01:46:40.0000000Z\"}"},
};

START_TEST(examples_meet_conditions)
{
    struct json_value properties = {NULL, NULL};
    struct json_doc doc;

    if (cases[_i].properties != NULL) {
        ck_ok(json_parse(span_str(cases[_i].properties), NULL, &arena, &doc));
        properties = json_root(&doc);
    }
    sample_add(&out, properties, span_str(cases[_i].conditions), INT64_C(1000000000) * 1000000000,
               &arena);
    ck_span_is(buf_span(&out), span_str(cases[_i].sample));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, examples_meet_conditions, 0, ARRAY_LEN(cases));
}
