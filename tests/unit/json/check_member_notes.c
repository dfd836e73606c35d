#include "testing.h"

#include "json/member.h"
#include "json/member_notes.h"

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
    member_notes_add(&notes, &b, from);
    member_add_u64(&b, SPAN("b"), 7);
    from = b.n;
    member_add_uuid(&b, SPAN("c"), &id);
    member_notes_add(&notes, &b, from);
    from = b.n;
    member_add_text_or_null(&b, SPAN("d"), SPAN(""));
    member_notes_add(&notes, &b, from);
    from = b.n;
    member_add_text_or_null(&b, SPAN("e"), SPAN(":,\"}"));
    member_notes_add(&notes, &b, from);
    buf_add_char(&b, '}');
    noted = member_notes_end(&notes, &b);
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
    tcase_add_test(tc, what_is_noted_is_what_is_read);
}
