#include "json_testing.h"

#include "testing.h"

#include "base/rng.h"

#include <string.h>

/* ---- what is JSON ---- */

/* One text or more of every category that parsers are known to differ in. */
static const struct span good[] = {
    /* structure */
    SPAN_INIT("{}"),
    SPAN_INIT("[]"),
    SPAN_INIT(" \t\r\n{ \t\r\n} \t\r\n"),
    SPAN_INIT("[ ]"),
    SPAN_INIT("[[],{},[[]],[{}]]"),
    SPAN_INIT("[1,2 , 3\t,\n4]"),
    SPAN_INIT("{\"a\":1}"),
    SPAN_INIT("{ \"a\" : 1 , \"b\" : [ ] }"),
    SPAN_INIT("{\"\":0}"),
    SPAN_INIT("{\"a\":1,\"a\":2}"),
    SPAN_INIT("{\"a\":{\"a\":{\"a\":[]}}}"),
    /* scalars alone */
    SPAN_INIT("null"),
    SPAN_INIT("true"),
    SPAN_INIT("false"),
    SPAN_INIT("0"),
    SPAN_INIT("-1.5e+3"),
    SPAN_INIT("\"\""),
    SPAN_INIT(" \"a\" "),
    /* numbers */
    SPAN_INIT("[0,-0,1,-1,10,0.0,-0.1,0e0,0E+0,1e1,1E-1,123.456e789]"),
    SPAN_INIT("1e99999999999999999999"),
    SPAN_INIT("-1e-99999999999999999999"),
    SPAN_INIT("123456789012345678901234567890123456789012345678901234567890123456789012345"),
    SPAN_INIT("0.00000000000000000000000000000000000000000000000000000000000000000000000000001"),
    /* strings */
    SPAN_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
    SPAN_INIT("\"\\u0000\\u001f\\u007F\\uabcd\\uABCD\""),
    SPAN_INIT("\"\\ud83d\\ude00\""),
    SPAN_INIT("\"\x7f\""),
    SPAN_INIT("\"\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\""),
    SPAN_INIT("\"\xe2\x80\xa8\xe2\x80\xa9\""), /* line separators */
    SPAN_INIT("\"\xef\xbb\xbf\""),             /* a byte order mark within a string */
    SPAN_INIT("\"'/*//,:{}[]\""),
    SPAN_INIT("{\"caf\xc3\xa9\":\"\xe6\x97\xa5\xe6\x9c\xac\"}"),
    /* lone surrogate escapes, as RFC 8259 section 8.2 leaves open */
    SPAN_INIT("\"\\ud800\""),
    SPAN_INIT("\"\\udc00\""),
    SPAN_INIT("\"\\ude00\\ud83d\""),
    SPAN_INIT("\"\\ud800\\ud800\\n\""),
    SPAN_INIT("{\"\\udfff\":1}"),
};

static const struct span bad[] = {
    /* nothing */
    SPAN_INIT(""),
    SPAN_INIT(" "),
    SPAN_INIT("\n\n"),
    /* encodings other than UTF-8 without a byte order mark */
    SPAN_INIT("\xef\xbb\xbf{}"),
    SPAN_INIT("\xef\xbb\xbf"),
    SPAN_INIT("\xff\xfe[\0]\0"),
    SPAN_INIT("[\0]\0"),
    SPAN_INIT("\0[\0]"),
    SPAN_INIT("\"\xe9\""),
    /* structure */
    SPAN_INIT("["),
    SPAN_INIT("]"),
    SPAN_INIT("{"),
    SPAN_INIT("}"),
    SPAN_INIT("[}"),
    SPAN_INIT("{]"),
    SPAN_INIT("[]]"),
    SPAN_INIT("{}}"),
    SPAN_INIT("[1"),
    SPAN_INIT("[1}"),
    SPAN_INIT("[[1]"),
    SPAN_INIT("{\"a\":1"),
    SPAN_INIT("{\"a\":1]"),
    SPAN_INIT("{\"a\":[}"),
    SPAN_INIT("[][]"),
    SPAN_INIT("[] 1"),
    SPAN_INIT("1 2"),
    SPAN_INIT("{} x"),
    SPAN_INIT("[]\0"),
    SPAN_INIT("123\0"),
    /* commas and colons */
    SPAN_INIT(","),
    SPAN_INIT("[,]"),
    SPAN_INIT("[1,]"),
    SPAN_INIT("[,1]"),
    SPAN_INIT("[1,,2]"),
    SPAN_INIT("[1 2]"),
    SPAN_INIT("[1:2]"),
    SPAN_INIT("[1;2]"),
    SPAN_INIT("[],"),
    SPAN_INIT("{,}"),
    SPAN_INIT("{\"a\":1,}"),
    SPAN_INIT("{\"a\":1,,\"b\":2}"),
    SPAN_INIT("{,\"a\":1}"),
    SPAN_INIT("{\"a\":1 \"b\":2}"),
    SPAN_INIT("{\"a\"}"),
    SPAN_INIT("{\"a\":}"),
    SPAN_INIT("{\"a\" 1}"),
    SPAN_INIT("{\"a\",1}"),
    SPAN_INIT("{\"a\"::1}"),
    SPAN_INIT("{:1}"),
    /* names */
    SPAN_INIT("{a:1}"),
    SPAN_INIT("{'a':1}"),
    SPAN_INIT("{1:1}"),
    SPAN_INIT("{null:1}"),
    SPAN_INIT("{[]:1}"),
    SPAN_INIT("{\"a:1}"),
    SPAN_INIT("{\"a\x80\":1}"),
    /* words */
    SPAN_INIT("nul"),
    SPAN_INIT("nulL"),
    SPAN_INIT("Null"),
    SPAN_INIT("TRUE"),
    SPAN_INIT("tru"),
    SPAN_INIT("truee"),
    SPAN_INIT("fals"),
    SPAN_INIT("undefined"),
    SPAN_INIT("NaN"),
    SPAN_INIT("Infinity"),
    SPAN_INIT("[-Infinity]"),
    SPAN_INIT("[a]"),
    SPAN_INIT("[\xc3\xa9]"),
    /* numbers */
    SPAN_INIT("+1"),
    SPAN_INIT("-"),
    SPAN_INIT("--1"),
    SPAN_INIT("- 1"),
    SPAN_INIT("01"),
    SPAN_INIT("-01"),
    SPAN_INIT("00"),
    SPAN_INIT("0x10"),
    SPAN_INIT(".5"),
    SPAN_INIT("-.5"),
    SPAN_INIT("5."),
    SPAN_INIT("5.e1"),
    SPAN_INIT("1e"),
    SPAN_INIT("1e+"),
    SPAN_INIT("1ee1"),
    SPAN_INIT("1e1.5"),
    SPAN_INIT("1.2.3"),
    SPAN_INIT("1+1"),
    SPAN_INIT("1_000"),
    SPAN_INIT("1 000"),
    SPAN_INIT("1a"),
    SPAN_INIT("1f"),
    SPAN_INIT("1\xc3\xa9"),
    SPAN_INIT("\xef\xbc\x91"), /* a full-width digit */
    /* strings */
    SPAN_INIT("\""),
    SPAN_INIT("\"a"),
    SPAN_INIT("'a'"),
    SPAN_INIT("\"\\\""),
    SPAN_INIT("\"\\"),
    SPAN_INIT("\"a\"b\""),
    SPAN_INIT("\"\t\""),
    SPAN_INIT("\"a\nb\""),
    SPAN_INIT("\"\0\""),
    SPAN_INIT("\"\x1f\""),
    SPAN_INIT("\"more than eight bytes\x01 in\""),
    /* escapes */
    SPAN_INIT("\"\\a\""),
    SPAN_INIT("\"\\x41\""),
    SPAN_INIT("\"\\0\""),
    SPAN_INIT("\"\\U0041\""),
    SPAN_INIT("\"\\'\""),
    SPAN_INIT("\"\\\n\""),
    SPAN_INIT("\"\\\0\""),
    SPAN_INIT("\"\\\xc3\xa9\""),
    SPAN_INIT("\"\\u\""),
    SPAN_INIT("\"\\u12\""),
    SPAN_INIT("\"\\u123\""),
    SPAN_INIT("\"\\u123g\""),
    SPAN_INIT("\"\\u 123\""),
    SPAN_INIT("\"\\u+123\""),
    SPAN_INIT("\"\\ud83d\\u\""),
    SPAN_INIT("[\\u0020]"),
    /* UTF-8 */
    SPAN_INIT("\"\x80\""),
    SPAN_INIT("\"\xc3\""),
    SPAN_INIT("\"\xc3("),
    SPAN_INIT("\"\xe2\x82\""),
    SPAN_INIT("\"\xf0\x9f\x98\""),
    SPAN_INIT("\"\xc0\xaf\""),
    SPAN_INIT("\"\xe0\x80\x80\""),
    SPAN_INIT("\"\xf0\x80\x80\x80\""),
    SPAN_INIT("\"\xed\xa0\x80\""),
    SPAN_INIT("\"\xf4\x90\x80\x80\""),
    SPAN_INIT("\"\xff\""),
    SPAN_INIT("\"good \xc3\xa9 then bad \xa9\""),
    /* blanks that are none */
    SPAN_INIT("[\f]"),
    SPAN_INIT("[\v]"),
    SPAN_INIT("\xc2\xa0[]"),
    SPAN_INIT("[\xe2\x80\x8b]"),
    /* comments */
    SPAN_INIT("[] // x"),
    SPAN_INIT("/**/[]"),
    SPAN_INIT("[1 /* x */]"),
    SPAN_INIT("# x\n[]"),
};

/* A copy of exactly that size, so that the sanitizer sees a look past the end. */
static struct err *parse_copy(struct span text, struct json_doc *out_doc)
{
    char *copy = mem_alloc(text.n);
    struct err *e;

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    e = json_parse(span_of(copy, text.n), NULL, &arena, out_doc);
    mem_free(copy);
    return e;
}

START_TEST(json_is_accepted)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct json_doc doc;
        struct err *e = parse_copy(good[i], &doc);

        if (e != NULL)
            ck_abort_msg("%.*s: %.*s", SPAN_FMT(good[i]), SPAN_FMT(err_message(e)));
    }
}
END_TEST

START_TEST(all_else_is_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct json_doc doc = {.node_count = 42};
        struct err *e = parse_copy(bad[i], &doc);

        ck_assert_msg(e != NULL, "case %zu: %.*s", i, SPAN_FMT(bad[i]));
        ck_assert_int_eq(err_code(e), ERR_FAILED_JSON);
        ck_assert_uint_eq(doc.node_count, 42);
        err_free(e);
    }
}
END_TEST

static bool accepted_inside(struct buf *b, struct span text)
{
    struct json_doc doc;
    struct err *e;
    bool accepted;

    buf_clear(b);
    buf_add_str(b, "{\"x\":[0,");
    buf_add(b, text);
    buf_add_str(b, ",0]}");
    e = parse_copy(buf_span(b), &doc);
    accepted = e == NULL;
    err_free(e);
    return accepted;
}

/* Each text is good or bad as it is alone, whatever stands around it. */
START_TEST(surroundings_do_not_matter)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        ck_assert_msg(accepted_inside(&b, good[i]), "%.*s", SPAN_FMT(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!accepted_inside(&b, bad[i]), "%.*s", SPAN_FMT(bad[i]));
    buf_done(&b);
}
END_TEST

/* Every byte at every distance from the ends of a string. */
START_TEST(every_byte_is_looked_at)
{
    for (int c = 0; c < 256; c++)
        for (size_t i = 1; i <= 20; i++) {
            char text[] = "\"xxxxxxxxxxxxxxxxxxxx\"";
            bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
            struct json_doc doc;
            struct err *e;

            text[i] = (char)c;
            e = parse_copy(span_of(text, sizeof(text) - 1), &doc);
            if ((e == NULL) != plain)
                ck_abort_msg("byte 0x%02x at %zu", (unsigned)c, i);
            err_free(e);
        }
}
END_TEST

/* ---- errors ---- */

static const struct {
    const char *text;
    const char *message;
} messages[] = {
    {"", "invalid JSON at line 1, column 1: expected a value, found the end of the text"},
    {"{\"a\":1\n \"b\":2}", "invalid JSON at line 2, column 2: expected ',' or '}', found '\"'"},
    {"[1,\r\n2\r\n\r\n x]", "line 4, column 2: expected ',' or ']', found 'x'"},
    {"{1:2}", "column 2: expected a member name in quotes, found '1'"},
    {"{\"a\"=1}", "column 5: expected ':', found '='"},
    {"{\"a\":1,}", "column 8: expected a member name in quotes, found '}'"},
    {"[1,]", "column 4: expected a value, found ']'"},
    {"\xef\xbb\xbf{}", "column 1: expected a value, found byte 0xef"},
    {"[] x", "column 4: expected the end of the text, found 'x'"},
    {"[012]", "column 3: expected no digit after a leading zero, found '1'"},
    {"[1.]", "column 4: expected a digit, found ']'"},
    {"[1e]", "column 4: expected a digit, found ']'"},
    {"\"abc", "column 5: expected the closing quote of a string, found the end of the text"},
    {"\"a\tb\"", "column 3: expected an escape sequence for a control character, found byte 0x09"},
    {"\"\\x\"", "column 3: expected one of \"\\/bfnrtu after a backslash, found 'x'"},
    {"\"\\u12x\"", "column 6: expected four hexadecimal digits after \\u, found 'x'"},
    {"\"\xc3\xa9\xe9\"", "column 4: expected valid UTF-8, found byte 0xe9"},
    {"[\x7f]", "column 2: expected a value, found byte 0x7f"},
};

START_TEST(errors_say_what_and_where)
{
    struct json_doc doc;

    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        ck_fails(json_parse(span_str(messages[i].text), NULL, &arena, &doc), ERR_FAILED_JSON,
                 messages[i].message);
}
END_TEST

/* ---- lines ---- */

static const struct {
    const char *text;
    uint32_t count;
    bool is_compact;
} lined[] = {
    {"", 0, true},
    {"\n", 0, true},
    {" \r\n\t\n", 0, false},
    {"1", 1, true},
    {"1\n", 1, true},
    {"\n\n{\"a\":[1,2]}\n\n[]\n", 2, true},
    {"{\"a\":1}\r\n \r\n{\"b\": 2}\r\n", 2, false},
    {"{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", 10, true},
};

/* Each line is what it is alone. */
START_TEST(lines_are_read)
{
    for (size_t i = 0; i < ARRAY_LEN(lined); i++) {
        struct span rest = span_str(lined[i].text);
        struct json_doc doc, alone;
        struct json_value v;

        ck_ok(json_parse_lines(rest, NULL, &arena, &doc));
        ck_assert_int_eq(json_type(json_root(&doc)), JSON_ARRAY);
        ck_assert_uint_eq(json_count(json_root(&doc)), lined[i].count);
        ck_assert_msg(doc.is_lines && doc.is_compact == lined[i].is_compact, "%zu", i);
        v = json_first(json_root(&doc));
        while (rest.p != NULL) {
            struct span line = span_trim(span_split(&rest, '\n'));

            if (line.n == 0 || span_eq(line, SPAN("\r")))
                continue;
            ck_ok(json_parse(line, NULL, &arena, &alone));
            ck_assert(json_equal(v, json_root(&alone)));
            v = json_next(json_root(&doc), v);
        }
        ck_assert(!json_exists(v));
    }
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} line_messages[] = {
    {"x", "invalid JSON at line 1, column 1: expected a value, found 'x'"},
    {"\n\r\n x", "line 3, column 2: expected a value, found 'x'"},
    {"{}\n{\"a\"=1}\n", "line 2, column 5: expected ':', found '='"},
    {"{\"a\":\n{}", "line 1, column 6: expected a value, found the end of the line"},
    {"{}\r\n{\"a\":1\r\n,\"b\":2}", "line 2, column 8: expected ',' or '}', found the end"},
    {"1,2", "line 1, column 2: expected the end of the line, found ','"},
    {"{}\n{} {}", "line 2, column 4: expected the end of the line, found '{'"},
    {"{}\n]", "line 2, column 1: expected a value, found ']'"},
    {"\"a\nb\"", "line 1, column 3: expected the closing quote of a string, found the end of the"},
};

START_TEST(errors_in_lines_say_where)
{
    struct json_limits limits = {.depth = 2, .members = 100};
    struct json_doc doc;

    for (size_t i = 0; i < ARRAY_LEN(line_messages); i++)
        ck_fails(json_parse_lines(span_str(line_messages[i].text), NULL, &arena, &doc),
                 ERR_FAILED_JSON, line_messages[i].message);
    ck_ok(json_parse_lines(SPAN("[]\n{}"), &limits, &arena, &doc));
    ck_fails(json_parse_lines(SPAN("[]\n{\"a\":[]}"), &limits, &arena, &doc), ERR_FAILED_JSON,
             "line 2, column 6: expected at most 2 levels");
    limits.depth = 0;
    ck_fails(json_parse_lines(SPAN("[]"), &limits, &arena, &doc), ERR_FAILED_JSON, "0 levels");
    limits.members = 3;
    ck_ok(json_parse_lines(SPAN("1\n2\n"), &limits, &arena, &doc));
    ck_fails(json_parse_lines(SPAN("1\n2\n3"), &limits, &arena, &doc), ERR_FAILED_JSON,
             "line 3, column 1: expected at most 3 values");
}
END_TEST

/* ---- limits ---- */

static struct span nested(uint32_t depth, char open, char close)
{
    char *text = arena_alloc(&arena, 2 * depth);

    memset(text, open, depth);
    memset(text + depth, close, depth);
    return span_of(text, 2 * depth);
}

START_TEST(depth_is_limited)
{
    struct json_limits limits = {.depth = JSON_DEPTH_MOST, .members = 100000};
    struct json_doc doc;

    ck_ok(json_parse(nested(128, '[', ']'), NULL, &arena, &doc));
    ck_fails(json_parse(nested(129, '[', ']'), NULL, &arena, &doc), ERR_FAILED_JSON,
             "column 129: expected at most 128 levels of nesting, found '['");
    ck_ok(json_parse(nested(1000, '[', ']'), &limits, &arena, &doc));
    ck_fails(json_parse(nested(1001, '[', ']'), &limits, &arena, &doc), ERR_FAILED_JSON,
             "at most 1000 levels");
    limits.depth = 0;
    ck_ok(json_parse(SPAN("1"), &limits, &arena, &doc));
    ck_fails(json_parse(SPAN("[]"), &limits, &arena, &doc), ERR_FAILED_JSON, "at most 0 levels");
    limits.depth = 2;
    ck_ok(json_parse(SPAN("[[],{},[],{\"a\":1}]"), &limits, &arena, &doc));
    ck_fails(json_parse(SPAN("[[],{\"a\":{}}]"), &limits, &arena, &doc), ERR_FAILED_JSON,
             "at most 2 levels");
}
END_TEST

START_TEST(nodes_are_limited)
{
    struct json_limits limits = {.depth = 10, .members = 5};
    struct json_doc doc;

    ck_ok(json_parse(SPAN("[1,2,3,4]"), &limits, &arena, &doc));
    ck_fails(json_parse(SPAN("[1,2,3,4,5]"), &limits, &arena, &doc), ERR_FAILED_JSON,
             "column 10: expected at most 5 values and member names, found '5'");
    ck_ok(json_parse(SPAN("{\"a\":1,\"b\":2}"), &limits, &arena, &doc));
    ck_fails(json_parse(SPAN("{\"a\":1,\"b\":[0]}"), &limits, &arena, &doc), ERR_FAILED_JSON,
             "at most 5");
    ck_ok(json_parse(SPAN("[1,2,3,[]]"), &limits, &arena, &doc));
    ck_fails(json_parse(SPAN("[1,2,3,4,[]]"), &limits, &arena, &doc), ERR_FAILED_JSON,
             "column 10: expected at most 5");
    limits.members = 0;
    ck_fails(json_parse(SPAN("1"), &limits, &arena, &doc), ERR_FAILED_JSON, "at most 0");
}
END_TEST

/* The length is looked at before the text. */
START_TEST(length_is_limited)
{
    struct json_doc doc;

    ck_fails(json_parse(span_of("1", ((size_t)1 << 30) + 1), NULL, &arena, &doc), ERR_FAILED_JSON,
             "longer than 1 GiB");
}
END_TEST

/* Opening brackets alone must neither overflow a stack nor take memory without bound. */
START_TEST(brackets_alone_are_refused)
{
    static const char *const units[] = {"[", "{\"\":", "[{\"\":", "[[],"};
    struct json_doc doc;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct err *e;

        buf_clear(&b);
        for (int k = 0; k < 100000; k++)
            buf_add_str(&b, units[i]);
        e = json_parse(buf_span(&b), NULL, &arena, &doc);
        ck_assert_ptr_nonnull(e);
        err_free(e);
        ck_assert_uint_lt(arena.used_bytes, 100000);
    }
    buf_done(&b);
}
END_TEST

/* ---- the node table ---- */

START_TEST(nodes_point_into_the_text)
{
    static const char text[] = " {\"a\" : [1, -2.5e3 ,\"\\n\"],\"b\":{},\"c\":[ ],\"d\":true}";
    static const struct {
        const char *text;
        uint32_t next, count;
        enum json_type type;
        bool escaped;
    } expected[] = {
        {"{\"a\" : [1, -2.5e3 ,\"\\n\"],\"b\":{},\"c\":[ ],\"d\":true}", 12, 4, JSON_OBJECT, false},
        {"\"a\"", 2, 0, JSON_STRING, false},
        {"[1, -2.5e3 ,\"\\n\"]", 6, 3, JSON_ARRAY, false},
        {"1", 4, 0, JSON_NUMBER, false},
        {"-2.5e3", 5, 0, JSON_NUMBER, false},
        {"\"\\n\"", 6, 0, JSON_STRING, true},
        {"\"b\"", 7, 0, JSON_STRING, false},
        {"{}", 8, 0, JSON_OBJECT, false},
        {"\"c\"", 9, 0, JSON_STRING, false},
        {"[ ]", 10, 0, JSON_ARRAY, false},
        {"\"d\"", 11, 0, JSON_STRING, false},
        {"true", 12, 0, JSON_BOOLEAN, false},
    };
    struct json_doc doc;

    ck_ok(json_parse(span_str(text), NULL, &arena, &doc));
    ck_assert_uint_eq(doc.node_count, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct json_node *node = &doc.nodes[i];

        ck_span_is(span_of(text + node->start, node->end - node->start),
                   span_str(expected[i].text));
        ck_assert_uint_eq(node->next, expected[i].next);
        ck_assert_uint_eq(node->count, expected[i].count);
        ck_assert_uint_eq(node->type, expected[i].type);
        ck_assert_uint_eq(node->escaped, expected[i].escaped);
    }
}
END_TEST

START_TEST(many_nodes_are_kept)
{
    enum { COUNT = 200000 };
    struct json_value root, element;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    buf_add_char(&b, '[');
    for (unsigned i = 0; i < COUNT; i++)
        buf_printf(&b, "%s%u", i > 0 ? "," : "", i);
    buf_add_char(&b, ']');
    root = parsed(buf_span(&b));
    ck_assert_uint_eq(json_count(root), COUNT);
    element = json_first(root);
    for (unsigned i = 0; i < COUNT; i++, element = json_next(root, element)) {
        uint64_t number;

        if (!span_to_u64(json_text(element), &number) || number != i)
            ck_abort_msg("element %u", i);
    }
    buf_done(&b);
}
END_TEST

/* ---- any text ---- */

static const char entity[] =
    "{\"Id\":\"019c13a4-5bef-7cd0-9a10-2030405060ff\",\"Name\":\"Caf\xc3\xa9 \\\"Nord\\\"\","
    "\"Price\":-12.50e+1,\"Tags\":[\"a\",\"\\u00e9\",[],{}],\"Open\":true,\"Closed\":false,"
    "\"Parent\":null,\"Nested\":{\"Deep\":[[1,2],[3]]},\"ObjectNo\":10293}";

START_TEST(no_beginning_of_an_object_is_json)
{
    struct json_doc doc;

    for (size_t n = 0; n < sizeof(entity) - 1; n++) {
        struct err *e = parse_copy(span_of(entity, n), &doc);

        ck_assert_msg(e != NULL, "%zu bytes", n);
        err_free(e);
    }
    ck_ok(parse_copy(span_str(entity), &doc));
}
END_TEST

static char random_byte(void)
{
    static const char likely[] = "{}[]\",:\\u0123456789abcdef-+.eE ntrl\n\t\xc3\xa9\xed\xf0";

    return rng_below(4) > 0 ? likely[rng_below(sizeof(likely) - 1)] : (char)rng_u64();
}

/* Whatever is accepted is a well-formed table, and its compact form means the same. */
static void ck_consistent(struct span text)
{
    struct json_doc doc, again;
    struct err *e = json_parse(text, NULL, &arena, &doc);
    struct buf b;

    if (e != NULL) {
        err_free(e);
        return;
    }
    buf_init(&b, BUF_NO_CAP);
    ck_assert_uint_eq(doc.nodes[0].next, doc.node_count);
    json_add_compact(&b, json_root(&doc));
    ck_ok(json_parse(buf_span(&b), NULL, &arena, &again));
    ck_assert_uint_eq(again.node_count, doc.node_count);
    ck_assert(json_equal(json_root(&doc), json_root(&again)));
    ck_assert_uint_eq(json_hash(json_root(&doc)), json_hash(json_root(&again)));
    buf_done(&b);
}

START_TEST(changed_texts_do_no_harm)
{
    for (int i = 0; i < 20000; i++) {
        char *text = mem_alloc(sizeof(entity) - 1);

        memcpy(text, entity, sizeof(entity) - 1);
        for (uint64_t k = 1 + rng_below(3); k > 0; k--)
            text[rng_below(sizeof(entity) - 1)] = random_byte();
        ck_consistent(span_of(text, sizeof(entity) - 1));
        mem_free(text);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(random_texts_do_no_harm)
{
    for (int i = 0; i < 20000; i++) {
        size_t n = rng_below(12);
        char *text = mem_alloc(n);

        for (size_t k = 0; k < n; k++)
            text[k] = random_byte();
        ck_consistent(span_of(text, n));
        mem_free(text);
        arena_reset(&arena);
    }
}
END_TEST

/* ---- the beginning alone ---- */

static const struct {
    const char *text;
    struct span names[3];
    uint32_t members; /* how many are read */
} fronts[] = {
    {"{\"a\":1,\"b\":2,\"c\":3}", {SPAN_INIT("a")}, 1},
    {"{\"a\":1,\"b\":2,\"c\":3}", {SPAN_INIT("b")}, 2},
    {"{\"a\":1,\"b\":2,\"c\":3}", {SPAN_INIT("b"), SPAN_INIT("a")}, 2},
    {"{\"a\":1,\"b\":2,\"c\":3}", {SPAN_INIT("c")}, 3},
    {"{\"a\":1,\"b\":2,\"c\":3}", {SPAN_INIT("a"), SPAN_INIT("d")}, 3},
    {"{\"a\":{\"b\":{\"c\":[]}},\"b\":[{}, {\"c\":0}],\"c\":3}", {SPAN_INIT("b")}, 2},
    {" { \"A\" : 1 , \"a\" : 2 , \"b\" : 3 } ", {SPAN_INIT("a")}, 2},
    {"{\"\\u0061\":1,\"b\":2,\"c\":3}", {SPAN_INIT("a")}, 3},
    {"{}", {SPAN_INIT("a")}, 0},
    {"[{\"a\":1,\"b\":2},3]", {SPAN_INIT("a")}, 0},
    {"\"a\"", {SPAN_INIT("a")}, 0},
};

START_TEST(a_front_ends_behind_what_is_wanted)
{
    for (size_t i = 0; i < ARRAY_LEN(fronts); i++) {
        struct json_value whole = value_of(fronts[i].text);
        struct json_doc front;
        struct json_member m;
        uint32_t members = 0;
        size_t count = 0;

        while (count < ARRAY_LEN(fronts[i].names) && fronts[i].names[count].n > 0)
            count++;
        ck_ok(json_parse_front(span_str(fronts[i].text), fronts[i].names, count, NULL, &arena,
                               &front));
        for (m = json_first_member(json_root(&front)); json_exists(m.name);
             m = json_next_member(json_root(&front), m))
            members++;
        ck_assert_uint_eq(members, fronts[i].members);
        ck_assert(json_type(json_root(&front)) == json_type(whole));
        if (json_type(whole) == JSON_OBJECT)
            ck_assert_uint_eq(json_count(json_root(&front)), members);
        for (size_t k = 0; k < count; k++) {
            struct json_value found = json_member(json_root(&front), fronts[i].names[k]);

            ck_assert(json_exists(found) == json_exists(json_member(whole, fronts[i].names[k])));
            ck_assert(json_equal(found, json_member(whole, fronts[i].names[k])));
        }
    }
}
END_TEST

START_TEST(a_front_is_read_as_strictly)
{
    const struct span names[] = {SPAN_INIT("b")};
    struct json_doc front;

    ck_fails(json_parse_front(SPAN("{\"a\":01,\"b\":2}"), names, 1, NULL, &arena, &front),
             ERR_FAILED_JSON, "no digit after a leading zero");
    ck_fails(json_parse_front(SPAN("{\"a\":1} x"), names, 1, NULL, &arena, &front), ERR_FAILED_JSON,
             "the end of the text");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, json_set_up, json_tear_down);
    tcase_add_test(tc, json_is_accepted);
    tcase_add_test(tc, all_else_is_refused);
    tcase_add_test(tc, surroundings_do_not_matter);
    tcase_add_test(tc, every_byte_is_looked_at);
    tcase_add_test(tc, errors_say_what_and_where);
    tcase_add_test(tc, lines_are_read);
    tcase_add_test(tc, errors_in_lines_say_where);
    tcase_add_test(tc, depth_is_limited);
    tcase_add_test(tc, nodes_are_limited);
    tcase_add_test(tc, length_is_limited);
    tcase_add_test(tc, brackets_alone_are_refused);
    tcase_add_test(tc, nodes_point_into_the_text);
    tcase_add_test(tc, many_nodes_are_kept);
    tcase_add_test(tc, no_beginning_of_an_object_is_json);
    tcase_add_test(tc, changed_texts_do_no_harm);
    tcase_add_test(tc, random_texts_do_no_harm);
    tcase_add_test(tc, a_front_ends_behind_what_is_wanted);
    tcase_add_test(tc, a_front_is_read_as_strictly);
}
