#include "testing.h"

#include "base/buf.h"
#include "base/rng.h"
#include "base/text.h"

#include <string.h>

static struct arena arena;
static struct buf buf;

static void set_up(void)
{
    arena_init(&arena);
    buf_init(&buf, BUF_NO_CAP);
}

static void tear_down(void)
{
    arena_done(&arena);
    buf_done(&buf);
}

/* ---- letters, digits and others ---- */

START_TEST(texts_are_made_of_letters_digits_and_others)
{
    ck_assert(text_is_made_of(SPAN("azAZ09"), ""));
    ck_assert(text_is_made_of(SPAN("a-b_c"), "_-"));
    ck_assert(!text_is_made_of(SPAN("a.b"), "_-"));
    ck_assert(!text_is_made_of(SPAN("a\0"), "_-"));
    ck_assert(!text_is_made_of(SPAN("\xc3\xa4"), "_-"));
    ck_assert(!text_is_made_of(SPAN(""), "_-"));
}
END_TEST

static const struct {
    struct span text, decoded;
    bool good;
} percent_cases[] = {
    {SPAN_INIT(""), SPAN_INIT(""), true},
    {SPAN_INIT("a b"), SPAN_INIT("a b"), true},
    {SPAN_INIT("%41%c3%A4%00"), SPAN_INIT("A\xc3\xa4\0"), true},
    {SPAN_INIT("%2541"), SPAN_INIT("%41"), true}, /* once */
    {SPAN_INIT("%"), SPAN_INIT("%"), false},
    {SPAN_INIT("%4"), SPAN_INIT("%4"), false},
    {SPAN_INIT("%4g%41"), SPAN_INIT("%4gA"), false},
};

START_TEST(percent_is_decoded)
{
    struct span decoded;

    ck_assert(text_from_percent(percent_cases[_i].text, &arena, &decoded) ==
              percent_cases[_i].good);
    ck_span_is(decoded, percent_cases[_i].decoded);
}
END_TEST

START_TEST(percent_is_encoded)
{
    text_add_percent(&buf, SPAN("aZ9-/%\0\xc3\xa4"), "-%");
    ck_span_eq(buf_span(&buf), "aZ9-%2F%%00%C3%A4");
}
END_TEST

/* ---- UTF-8 ---- */

static const struct {
    struct span text;
    bool good;
} utf8_cases[] = {
    {SPAN_INIT(""), true},
    {SPAN_INIT("a"), true},
    {SPAN_INIT("\0"), true},
    {SPAN_INIT("\x7f"), true},
    {SPAN_INIT("\xc2\x80"), true},         /* U+0080 */
    {SPAN_INIT("\xdf\xbf"), true},         /* U+07FF */
    {SPAN_INIT("\xe0\xa0\x80"), true},     /* U+0800 */
    {SPAN_INIT("\xed\x9f\xbf"), true},     /* U+D7FF */
    {SPAN_INIT("\xee\x80\x80"), true},     /* U+E000 */
    {SPAN_INIT("\xef\xbf\xbf"), true},     /* U+FFFF */
    {SPAN_INIT("\xf0\x90\x80\x80"), true}, /* U+10000 */
    {SPAN_INIT("\xf4\x8f\xbf\xbf"), true}, /* U+10FFFF */
    {SPAN_INIT("eight ascii bytes, then \xc3\xa9 and ascii bytes again"), true},
    {SPAN_INIT("\x80"), false}, /* continuation without a lead */
    {SPAN_INIT("\xbf"), false},
    {SPAN_INIT("a\x80"), false},
    {SPAN_INIT("\xc0\x80"), false}, /* overlong */
    {SPAN_INIT("\xc1\xbf"), false},
    {SPAN_INIT("\xe0\x80\x80"), false},
    {SPAN_INIT("\xe0\x9f\xbf"), false},
    {SPAN_INIT("\xf0\x80\x80\x80"), false},
    {SPAN_INIT("\xf0\x8f\xbf\xbf"), false},
    {SPAN_INIT("\xf8\x88\x80\x80\x80"), false},
    {SPAN_INIT("\xfc\x84\x80\x80\x80\x80"), false},
    {SPAN_INIT("\xed\xa0\x80"), false}, /* surrogates */
    {SPAN_INIT("\xed\xbf\xbf"), false},
    {SPAN_INIT("\xed\xa0\xb4\xed\xb4\x9e"), false},
    {SPAN_INIT("\xf4\x90\x80\x80"), false}, /* U+110000 */
    {SPAN_INIT("\xf5\x80\x80\x80"), false},
    {SPAN_INIT("\xfe"), false},
    {SPAN_INIT("\xff"), false},
    {SPAN_INIT("\xc3"), false}, /* truncated */
    {SPAN_INIT("\xe2\x82"), false},
    {SPAN_INIT("\xf0\x9f\x98"), false},
    {SPAN_INIT("\xc3("), false},
    {SPAN_INIT("\xe2\x82("), false},
    {SPAN_INIT("\xe2(\xa1"), false},
    {SPAN_INIT("\xf0\x9f(\x80"), false},
    {SPAN_INIT("\xf0\x9f\x98("), false},
};

START_TEST(utf8_is_recognised)
{
    for (size_t i = 0; i < ARRAY_LEN(utf8_cases); i++)
        ck_assert_msg(text_is_utf8(utf8_cases[i].text) == utf8_cases[i].good, "case %zu", i);
}
END_TEST

/* At every distance from the eight-byte steps. */
START_TEST(bad_utf8_is_found_anywhere)
{
    char text[40];

    for (size_t n = 1; n <= sizeof(text); n++) {
        memset(text, 'x', n);
        ck_assert(text_is_utf8(span_of(text, n)));
        for (size_t i = 0; i < n; i++) {
            text[i] = '\x80';
            ck_assert_msg(!text_is_utf8(span_of(text, n)), "byte %zu of %zu", i, n);
            text[i] = 'x';
        }
    }
}
END_TEST

/* By decoding: as many bits as the lead byte promises, and the value's shortest form. */
static size_t naive_utf8_bytes(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 9 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t scalar = bytes == 1 ? p[0] : p[0] & (0xffu >> (bytes + 1));

    if (bytes > n || p[0] >= 0xf8)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        scalar = scalar << 6 | (p[i] & 0x3f);
    }
    if (scalar < least[bytes] || scalar > 0x10ffff || (scalar >= 0xd800 && scalar < 0xe000))
        return 0;
    return bytes;
}

START_TEST(utf8_bytes_agree_with_decoding)
{
    static const unsigned char third[] = {'a', 0x7f, 0x80, 0xbf, 0xc0};
    unsigned char p[4];

    ck_assert_uint_eq(text_utf8_bytes(SPAN("")), 0);
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        p[0] = (unsigned char)(pair >> 8);
        p[1] = (unsigned char)pair;
        for (size_t i = 0; i < 25; i++) {
            p[2] = third[i / 5];
            p[3] = third[i % 5];
            for (size_t n = 1; n <= 4; n++)
                if (text_utf8_bytes(span_of((char *)p, n)) != naive_utf8_bytes(p, n))
                    ck_abort_msg("%02x %02x %02x %02x, %zu bytes", p[0], p[1], p[2], p[3], n);
        }
    }
}
END_TEST

START_TEST(every_scalar_is_encoded)
{
    for (uint32_t scalar = 0; scalar <= 0x10ffff; scalar++) {
        char utf8[4];
        size_t n = text_put_scalar(utf8, scalar);

        if (naive_utf8_bytes((unsigned char *)utf8, n) != n)
            ck_abort_msg("U+%04X", scalar);
        if (scalar >= 0xd800 && scalar <= 0xdfff)
            ck_span_eq(span_of(utf8, n), "\xef\xbf\xbd");
    }
    text_add_scalar(&buf, 'a');
    text_add_scalar(&buf, 0xe9);
    text_add_scalar(&buf, 0x20ac);
    text_add_scalar(&buf, 0x1f600);
    text_add_scalar(&buf, 0x110000);
    ck_span_eq(buf_span(&buf), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd");
}
END_TEST

START_TEST(scalars_are_counted_and_cut)
{
    struct span text = SPAN("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");

    ck_assert_uint_eq(text_scalar_count(text), 5);
    ck_assert_uint_eq(text_scalar_count(SPAN("")), 0);
    ck_span_eq(text_cut(text, 0), "");
    ck_span_eq(text_cut(text, 1), "a");
    ck_span_eq(text_cut(text, 2), "a\xc3\xa9");
    ck_span_eq(text_cut(text, 3), "a\xc3\xa9\xe2\x82\xac");
    ck_span_eq(text_cut(text, 4), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    ck_span_is(text_cut(text, 5), text);
    ck_span_is(text_cut(text, SIZE_MAX), text);
}
END_TEST

START_TEST(bytes_are_cut_between_characters)
{
    static const struct {
        const char *text;
        size_t most, kept;
    } cases[] = {
        {"", 0, 0},
        {"abc", 0, 0},
        {"abc", 2, 2},
        {"abc", 3, 3},
        {"abc", 9, 3},
        {"\xc3\xa9x", 1, 0},
        {"\xc3\xa9x", 2, 2},
        {"a\xe2\x82\xac", 2, 1},
        {"a\xe2\x82\xac", 3, 1},
        {"a\xe2\x82\xac", 4, 4},
        {"a\xf0\x9f\x98\x80z", 2, 1},
        {"a\xf0\x9f\x98\x80z", 4, 1},
        {"a\xf0\x9f\x98\x80z", 5, 5},
        {"\x80\x80\x80\x80\x80\x80", 5, 5},
        {"\x80\x80\x80", 2, 2},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct span cut = text_cut_bytes(span_str(cases[i].text), cases[i].most);

        ck_assert_msg(cut.n == cases[i].kept && cut.p == cases[i].text, "case %zu: %zu", i, cut.n);
    }
}
END_TEST

/* ---- tokens ---- */

START_TEST(tokens_are_of_their_characters)
{
    static const char chars[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (int c = 0; c < 256; c++)
        ck_assert_int_eq(text_is_token_char((char)c), c != 0 && strchr(chars, c) != NULL);
    ck_assert(text_is_token(span_str(chars)));
    ck_assert(!text_is_token(SPAN("")) && !text_is_token(SPAN("a b")) &&
              !text_is_token(SPAN("\xc3")));
}
END_TEST

/* ---- hexadecimal ---- */

START_TEST(hex_is_written_and_read)
{
    uint8_t bytes[8];

    text_add_hex(&buf, SPAN("\x01\x23\x45\x67\x89\xab\xcd\xef"));
    ck_span_eq(buf_span(&buf), "0123456789abcdef");
    ck_assert(text_from_hex(SPAN("0123456789ABCDef"), bytes));
    ck_assert_mem_eq(bytes, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
    ck_assert(text_from_hex(SPAN(""), bytes));
}
END_TEST

START_TEST(hex_digits_have_their_values)
{
    static const char digits[] = "0123456789abcdef";

    for (int c = 0; c < 256; c++) {
        const char *at = c == 0 ? NULL : strchr(digits, span_fold_char((char)c));

        ck_assert_int_eq(text_hex_value((char)c), at == NULL ? -1 : (int)(at - digits));
    }
}
END_TEST

START_TEST(bad_hex_is_refused)
{
    static const char *const bad[] = {"0",  "012", "0g", "g0", " 0", "0 ",   "0x",
                                      "@0", "/0",  ":0", "`0", "G0", "0\xff"};
    uint8_t bytes[8];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!text_from_hex(span_str(bad[i]), bytes), "%s", bad[i]);
}
END_TEST

START_TEST(appending_past_the_cap_is_noticed)
{
    struct buf small;

    buf_init(&small, 7);
    text_add_hex(&small, SPAN("abcd"));
    ck_assert(buf_over(&small));
    buf_clear(&small);
    text_add_base64(&small, SPAN("abcd"));
    ck_assert(buf_over(&small));
    ck_assert_uint_eq(small.n, 0);
    buf_done(&small);
}
END_TEST

/* ---- base64 ---- */

static const struct {
    struct span bytes;
    struct span base64;
} base64_cases[] = {
    /* RFC 4648 section 10 */
    {SPAN_INIT(""), SPAN_INIT("")},
    {SPAN_INIT("f"), SPAN_INIT("Zg==")},
    {SPAN_INIT("fo"), SPAN_INIT("Zm8=")},
    {SPAN_INIT("foo"), SPAN_INIT("Zm9v")},
    {SPAN_INIT("foob"), SPAN_INIT("Zm9vYg==")},
    {SPAN_INIT("fooba"), SPAN_INIT("Zm9vYmE=")},
    {SPAN_INIT("foobar"), SPAN_INIT("Zm9vYmFy")},
    {SPAN_INIT("\xfb\xff\xbf"), SPAN_INIT("+/+/")},
    {SPAN_INIT("\0\0"), SPAN_INIT("AAA=")},
};

START_TEST(base64_is_written_and_read)
{
    for (size_t i = 0; i < ARRAY_LEN(base64_cases); i++) {
        struct span bytes;

        buf_clear(&buf);
        text_add_base64(&buf, base64_cases[i].bytes);
        ck_span_is(buf_span(&buf), base64_cases[i].base64);
        ck_assert(text_from_base64(base64_cases[i].base64, &arena, &bytes));
        ck_span_is(bytes, base64_cases[i].bytes);
    }
}
END_TEST

START_TEST(base64_comes_back)
{
    uint8_t bytes[100];

    for (size_t n = 0; n <= sizeof(bytes); n++) {
        struct span back;

        rng_secret(bytes, n);
        buf_clear(&buf);
        text_add_base64(&buf, span_of((char *)bytes, n));
        ck_assert(text_from_base64(buf_span(&buf), &arena, &back));
        ck_span_is(back, span_of((char *)bytes, n));
    }
}
END_TEST

START_TEST(bad_base64_is_refused)
{
    static const struct span bad[] = {
        SPAN_INIT("Z"),        SPAN_INIT("Zg"),     SPAN_INIT("Zg="),       SPAN_INIT("Zm8"),
        SPAN_INIT("===="),     SPAN_INIT("Z==="),   SPAN_INIT("=g=="),      SPAN_INIT("Zg==Zg=="),
        SPAN_INIT("Zm=v"),     SPAN_INIT("Zm9v\n"), SPAN_INIT("Zm9v   \n"), SPAN_INIT("Zm 9"),
        SPAN_INIT("Zm-_"),     SPAN_INIT("Zm9,"),   SPAN_INIT("Zm9\xff"),   SPAN_INIT("Zm9{"),
        SPAN_INIT("Zm9*"),     SPAN_INIT("Zm9\0"),  SPAN_INIT("Zh=="),      SPAN_INIT("Zm9="),
        SPAN_INIT("Zm9vZg=a"), SPAN_INIT("Zm9@"),   SPAN_INIT("Zm9["),      SPAN_INIT("Zm9`"),
    };
    struct span bytes = SPAN("untouched");

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!text_from_base64(bad[i], &arena, &bytes), "%.*s", SPAN_FMT(bad[i]));
    ck_span_eq(bytes, "untouched");
}
END_TEST

/* ---- names ---- */

START_TEST(only_ascii_letters_are_folded)
{
    char all[256], folded[256];

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    text_fold_into(folded, span_of(all, 256));
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq((unsigned char)folded[i], i >= 'A' && i <= 'Z' ? i + 32 : i);
    ck_span_eq(text_fold(&arena, SPAN("Webhook.ID \xc3\x89")), "webhook.id \xc3\x89");
    ck_span_eq(text_fold(&arena, SPAN("")), "");
}
END_TEST

static const struct span fields[] = {
    SPAN_INIT("Name"),
    SPAN_INIT("Email"),
    SPAN_INIT("Age"),
    SPAN_INIT("Born"),
    SPAN_INIT("CustomPayloadRequest"),
    SPAN_INIT("Same"),
};

static const struct {
    const char *name;
    struct span nearest;
} nearest_cases[] = {
    {"name", SPAN_INIT("Name")},
    {"Nmae", SPAN_INIT("Name")}, /* one swap: Same is two edits away */
    {"Fame", SPAN_INIT("Name")}, /* Same is as near, but later */
    {"Sam", SPAN_INIT("Same")},
    {"EMALE", SPAN_INIT("Email")},
    {"Mail", SPAN_INIT("Email")},
    {"Zip", {NULL, 0}}, /* three from Age */
    {"CustomPayloadRequset", SPAN_INIT("CustomPayloadRequest")},
    {"PayloadRequest", {NULL, 0}},   /* six away, four allowed */
    {"MyPayloadRequest", {NULL, 0}}, /* six away, five allowed */
    {"CustPayloadReques", SPAN_INIT("CustomPayloadRequest")},
    {"Description", {NULL, 0}},
};

START_TEST(the_nearest_name_is_found)
{
    struct span none;

    for (size_t i = 0; i < ARRAY_LEN(nearest_cases); i++)
        ck_span_is(text_nearest(span_str(nearest_cases[i].name), fields, ARRAY_LEN(fields)),
                   nearest_cases[i].nearest);
    none = text_nearest(SPAN("Name"), fields, 0);
    ck_assert_ptr_null(none.p);
}
END_TEST

START_TEST(long_names_are_like_nothing)
{
    char text[TEXT_NEAREST_BYTES + 1] = "x";
    struct span longest = span_of(text, TEXT_NEAREST_BYTES);
    struct span too_long = span_of(text, TEXT_NEAREST_BYTES + 1);

    ck_span_is(text_nearest(longest, &longest, 1), longest);
    ck_assert_ptr_null(text_nearest(too_long, &longest, 1).p);
    ck_assert_ptr_null(text_nearest(longest, &too_long, 1).p);
}
END_TEST

/* The definition, recursively. */
static size_t naive_distance(struct span a, struct span b)
{
    size_t least;

    if (a.n == 0 || b.n == 0)
        return a.n + b.n;
    least = naive_distance(span_sub(a, 0, a.n - 1), span_sub(b, 0, b.n - 1)) +
            (a.p[a.n - 1] != b.p[b.n - 1]);
    least = MIN(least, naive_distance(span_sub(a, 0, a.n - 1), b) + 1);
    least = MIN(least, naive_distance(a, span_sub(b, 0, b.n - 1)) + 1);
    if (a.n > 1 && b.n > 1 && a.p[a.n - 1] == b.p[b.n - 2] && a.p[a.n - 2] == b.p[b.n - 1])
        least = MIN(least, naive_distance(span_sub(a, 0, a.n - 2), span_sub(b, 0, b.n - 2)) + 1);
    return least;
}

static struct span random_name(char *out)
{
    size_t n = rng_below(7);

    for (size_t i = 0; i < n; i++)
        out[i] = (char)('a' + rng_below(3));
    return span_of(out, n);
}

START_TEST(nearest_agrees_with_the_definition)
{
    for (int round = 0; round < 300; round++) {
        char texts[4][8];
        struct span name = random_name(texts[3]), names[3], best = {NULL, 0};
        size_t least = MAX(2, name.n / 3) + 1;

        for (size_t i = 0; i < 3; i++) {
            size_t distance;

            names[i] = random_name(texts[i]);
            distance = naive_distance(name, names[i]);
            if (distance < least) {
                least = distance;
                best = names[i];
            }
        }
        ck_assert_ptr_eq(text_nearest(name, names, 3).p, best.p);
    }
}
END_TEST

static const struct {
    const char *text, *shown;
} shown_texts[] = {
    {"", ""},
    {"plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\x8a",
     "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\x8a"},
    {"\x01\t\x1f\x7f", "\\u0001\\u0009\\u001f\\u007f"},
    {"\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0"},
    {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\u061c\xd8\x9d"},
    {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90", "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90"},
    {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf"},
    {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa"},
    {"a\xff", "a\xef\xbf\xbd"},
};

START_TEST(what_people_are_shown_moves_no_cursor)
{
    struct buf b;

    buf_init(&b, 1000);
    text_add_shown(&b, span_str(shown_texts[_i].text));
    ck_span_is(buf_span(&b), span_str(shown_texts[_i].shown));
    buf_done(&b);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, texts_are_made_of_letters_digits_and_others);
    tcase_add_loop_test(tc, percent_is_decoded, 0, ARRAY_LEN(percent_cases));
    tcase_add_test(tc, percent_is_encoded);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, utf8_is_recognised);
    tcase_add_test(tc, bad_utf8_is_found_anywhere);
    tcase_add_test(tc, utf8_bytes_agree_with_decoding);
    tcase_add_test(tc, every_scalar_is_encoded);
    tcase_add_test(tc, scalars_are_counted_and_cut);
    tcase_add_test(tc, bytes_are_cut_between_characters);
    tcase_add_test(tc, tokens_are_of_their_characters);
    tcase_add_test(tc, hex_is_written_and_read);
    tcase_add_test(tc, hex_digits_have_their_values);
    tcase_add_test(tc, bad_hex_is_refused);
    tcase_add_test(tc, appending_past_the_cap_is_noticed);
    tcase_add_test(tc, base64_is_written_and_read);
    tcase_add_test(tc, base64_comes_back);
    tcase_add_test(tc, bad_base64_is_refused);
    tcase_add_test(tc, only_ascii_letters_are_folded);
    tcase_add_test(tc, the_nearest_name_is_found);
    tcase_add_test(tc, long_names_are_like_nothing);
    tcase_add_test(tc, nearest_agrees_with_the_definition);
    tcase_add_loop_test(tc, what_people_are_shown_moves_no_cursor, 0, ARRAY_LEN(shown_texts));
}
