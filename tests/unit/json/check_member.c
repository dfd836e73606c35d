#include "testing.h"

#include "json/member.h"

START_TEST(members_follow_one_another)
{
    struct uuid id = {{0x01, 0x02}};
    struct buf b;

    buf_init(&b, 4096);
    buf_add_char(&b, '{');
    member_add_text(&b, SPAN("a"), SPAN("x\"y"));
    member_add_text_or_null(&b, SPAN("b"), SPAN(""));
    member_add_text_or_null(&b, SPAN("c"), SPAN("z"));
    member_add_u64(&b, SPAN("d"), 0);
    member_add_u64_or_null(&b, SPAN("e"), 0);
    member_add_u64_or_null(&b, SPAN("f"), UINT64_MAX);
    member_add_bool(&b, SPAN("g"), true);
    member_add_bool(&b, SPAN("h"), false);
    member_add_uuid(&b, SPAN("i"), &id);
    member_add_time(&b, SPAN("j"), 0);
    member_add_time(&b, SPAN("k"), 1500000000);
    member_add_json(&b, SPAN("l"), SPAN("[1]"));
    buf_add_char(&b, '}');
    ck_span_eq(buf_span(&b), "{\"a\":\"x\\\"y\",\"b\":null,\"c\":\"z\",\"d\":0,\"e\":null,"
                             "\"f\":18446744073709551615,\"g\":true,\"h\":false,"
                             "\"i\":\"01020000-0000-0000-0000-000000000000\",\"j\":null,"
                             "\"k\":\"1970-01-01T00:00:01.5000000Z\",\"l\":[1]}");
    buf_done(&b);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, members_follow_one_another);
}
