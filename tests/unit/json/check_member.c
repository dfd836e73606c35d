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

/* Noted, and read by the parser. */
START_TEST(what_is_noted_is_what_is_read)
{
    static const struct span names[] = {SPAN_INIT("a"), SPAN_INIT("c"), SPAN_INIT("d"),
                                        SPAN_INIT("e")};
    struct uuid id = {{0x01, 0x02}};
    struct member_notes notes;
    struct json_value noted, read;
    struct json_doc doc;
    struct arena a;
    struct buf b;
    size_t from = 1;

    arena_init(&a);
    buf_init(&b, 4096);
    member_notes_init(&notes);
    buf_add_char(&b, '{');
    member_add_text(&b, SPAN("a"), SPAN("x\"y"));
    member_note(&notes, &b, from);
    member_add_u64(&b, SPAN("b"), 7);
    from = b.n;
    member_add_uuid(&b, SPAN("c"), &id);
    member_note(&notes, &b, from);
    from = b.n;
    member_add_text_or_null(&b, SPAN("d"), SPAN(""));
    member_note(&notes, &b, from);
    from = b.n;
    member_add_text_or_null(&b, SPAN("e"), SPAN(":,\"}"));
    member_note(&notes, &b, from);
    buf_add_char(&b, '}');
    noted = member_noted(&notes, &b);
    ck_ok(json_parse(buf_span(&b), NULL, &a, &doc));
    read = json_root(&doc);
    ck_assert_uint_eq(json_count(noted), ARRAY_LEN(names));
    ck_assert(!json_exists(json_member(noted, SPAN("b"))));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct json_value one = json_member(noted, names[i]), other = json_member(read, names[i]);

        ck_assert(json_exists(one));
        ck_assert_int_eq(json_type(one), json_type(other));
        ck_assert_uint_eq(one.node->escaped, other.node->escaped);
        ck_assert_uint_eq(one.node->start, other.node->start);
        ck_assert_uint_eq(one.node->end, other.node->end);
    }
    buf_done(&b);
    arena_done(&a);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, members_follow_one_another);
    tcase_add_test(tc, what_is_noted_is_what_is_read);
}
