#include "testing.h"

#include "protocol/method.h"
#include "query/shape.h"

static const struct {
    enum method method;
    const char *name;
} names[] = {
    {METHOD_GET, "GET"},   {METHOD_POST, "POST"},       {METHOD_PATCH, "PATCH"},
    {METHOD_PUT, "PUT"},   {METHOD_DELETE, "DELETE"},   {METHOD_REPORT, "REPORT"},
    {METHOD_HEAD, "HEAD"}, {METHOD_OPTIONS, "OPTIONS"},
};

START_TEST(methods_have_names)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_span_is(method_name(names[i].method), span_str(names[i].name));
    ck_assert_ptr_null(method_name(METHOD_OTHER).p);
}
END_TEST

static const struct {
    const char *text;
    enum method method;
} parsed[] = {
    {"GET", METHOD_GET},     {"get", METHOD_GET},       {"Report", METHOD_REPORT},
    {"HEAD", METHOD_HEAD},   {"delete", METHOD_DELETE}, {"OPTIONS", METHOD_OTHER},
    {"TRACE", METHOD_OTHER}, {"GETS", METHOD_OTHER},    {"GE", METHOD_OTHER},
    {"", METHOD_OTHER},      {"*", METHOD_OTHER},       {" GET", METHOD_OTHER},
};

START_TEST(methods_of_requests_are_as_they_are_written)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_int_eq(method_of(span_str(names[i].name)), names[i].method);
    ck_assert_int_eq(method_of(SPAN("get")), METHOD_OTHER);
    ck_assert_int_eq(method_of(SPAN("options")), METHOD_OTHER);
    ck_assert_int_eq(method_of(SPAN("GETS")), METHOD_OTHER);
    ck_assert_int_eq(method_of(span_str(NULL)), METHOD_OTHER);
}
END_TEST

START_TEST(names_are_read_in_any_case)
{
    for (size_t i = 0; i < ARRAY_LEN(parsed); i++)
        ck_assert_msg(method_parse(span_str(parsed[i].text)) == parsed[i].method, "%s",
                      parsed[i].text);
    ck_assert_int_eq(method_parse(span_str(NULL)), METHOD_OTHER);
}
END_TEST

static const struct {
    unsigned methods;
    const char *json, *list;
} written[] = {
    {0, "[]", ""},
    {METHOD_BIT(METHOD_POST), "[\"POST\"]", "POST"},
    {METHODS_READ, "[\"GET\",\"REPORT\",\"HEAD\"]", "GET, REPORT, HEAD"},
    {METHODS_ALL, "[\"GET\",\"POST\",\"PATCH\",\"PUT\",\"DELETE\",\"REPORT\",\"HEAD\"]",
     "GET, POST, PATCH, PUT, DELETE, REPORT, HEAD"},
    {METHOD_BIT(METHOD_OPTIONS) | METHOD_BIT(METHOD_PUT), "[\"PUT\"]", "PUT"},
};

START_TEST(sets_are_written_in_order)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        buf_clear(&b);
        method_add_json(&b, written[i].methods);
        ck_span_is(buf_span(&b), span_str(written[i].json));
        buf_clear(&b);
        method_add_list(&b, written[i].methods);
        ck_span_is(buf_span(&b), span_str(written[i].list));
    }
    buf_done(&b);
}
END_TEST

START_TEST(get_brings_report_and_head)
{
    ck_assert_uint_eq(method_closure(METHOD_BIT(METHOD_GET)), METHODS_READ);
    ck_assert_uint_eq(method_closure(METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_PUT)),
                      METHODS_READ | METHOD_BIT(METHOD_PUT));
    ck_assert_uint_eq(method_closure(METHOD_BIT(METHOD_HEAD)), METHOD_BIT(METHOD_HEAD));
    ck_assert_uint_eq(method_closure(METHODS_ALL), METHODS_ALL);
    ck_assert_uint_eq(method_closure(0), 0);
}
END_TEST

START_TEST(the_enumeration_lists_the_seven)
{
    ck_assert_str_eq(method_names.name, "Method");
    ck_assert_uint_eq(method_names.count, METHOD_COUNT);
    ck_span_eq(method_names.values[METHOD_PATCH], "PATCH");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, methods_have_names);
    tcase_add_test(tc, methods_of_requests_are_as_they_are_written);
    tcase_add_test(tc, names_are_read_in_any_case);
    tcase_add_test(tc, sets_are_written_in_order);
    tcase_add_test(tc, get_brings_report_and_head);
    tcase_add_test(tc, the_enumeration_lists_the_seven);
}
