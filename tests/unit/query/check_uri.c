/* The request target (docs/specification.md, section 1). A parsed target is written as
 * resource{key|op|value;...}{key|op|value;...} to be compared. */
#include "sample.h"
#include "testing.h"

#include "base/rng.h"
#include "query/uri.h"

#include <string.h>

static struct arena arena;

static void add_conditions(struct buf *b, const struct uri_condition *conditions, size_t count)
{
    buf_add_char(b, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(b, "%s%.*s|%s|%.*s", i > 0 ? ";" : "", SPAN_FMT(conditions[i].key),
                   uri_op_text(conditions[i].op), SPAN_FMT(conditions[i].value));
    buf_add_char(b, '}');
}

static struct span written(const struct uri *uri)
{
    struct buf b;
    struct span text;

    buf_init(&b, BUF_NO_CAP);
    buf_add(&b, uri->resource.p != NULL ? uri->resource : SPAN("-"));
    add_conditions(&b, uri->conditions, uri->condition_count);
    add_conditions(&b, uri->metas, uri->meta_count);
    text = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return text;
}

static struct span normal(const struct uri *uri, bool all_parts)
{
    struct buf b;
    struct span text;

    buf_init(&b, BUF_NO_CAP);
    uri_add_normal(&b, uri, uri->resource, all_parts);
    text = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return text;
}

static const struct {
    const char *target, *base, *parsed;
} good[] = {
    /* parts: "" and "_" are empty, trailing ones and a trailing slash may be left out */
    {"/", "/", "-{}{}"},
    {"/_", "/", "-{}{}"},
    {"//", "/", "-{}{}"},
    {"////", "/", "-{}{}"},
    {"/_/_/_/", "/", "-{}{}"},
    {"/%5F", "/", "-{}{}"},
    {"/a/%5F/%5f", "/", "a{}{}"},
    {"/%255F", "/", "%5F{}{}"},
    {"/Shop.Person", "/", "Shop.Person{}{}"},
    {"/Shop.Person/", "/", "Shop.Person{}{}"},
    {"/Shop.Person/_", "/", "Shop.Person{}{}"},
    {"/Shop.Person//", "/", "Shop.Person{}{}"},
    {"/Shop.Person/_/_", "/", "Shop.Person{}{}"},
    {"/Shop.Person///", "/", "Shop.Person{}{}"},
    {"/Shop.Person/Age=5", "/", "Shop.Person{Age|=|5}{}"},
    {"/Shop.Person/Age=5/", "/", "Shop.Person{Age|=|5}{}"},
    {"/Shop.Person/_/limit=1", "/", "Shop.Person{}{limit|=|1}"},
    {"/Shop.Person//limit=1", "/", "Shop.Person{}{limit|=|1}"},
    {"/Shop.Person/Age=5/limit=1/", "/", "Shop.Person{Age|=|5}{limit|=|1}"},
    {"/_/Kind=EventResource", "/", "-{Kind|=|EventResource}{}"},
    /* base path */
    {"/svc", "/svc", "-{}{}"},
    {"/svc/", "/svc", "-{}{}"},
    {"/svc/x/a=1", "/svc", "x{a|=|1}{}"},
    {"/SVC/x", "/svc", "x{}{}"},
    {"/svc/x", "/svc/", "x{}{}"},
    {"/a/b/x", "/a/b", "x{}{}"},
    /* a leading '?' for clients that refuse '<' and '>' in a path */
    {"/?", "/", "-{}{}"},
    {"/?/", "/", "-{}{}"},
    {"/?/x/a<5/limit=1", "/", "x{a|<|5}{limit|=|1}"},
    {"/svc?/x", "/svc", "x{}{}"},
    {"/svc/?/x", "/svc", "x{}{}"},
    {"/?/x/a=b?c", "/", "x{a|=|b?c}{}"},
    /* operators */
    {"/x/a=1", "/", "x{a|=|1}{}"},
    {"/x/a!=1", "/", "x{a|!=|1}{}"},
    {"/x/a<1", "/", "x{a|<|1}{}"},
    {"/x/a>1", "/", "x{a|>|1}{}"},
    {"/x/a<=1", "/", "x{a|<=|1}{}"},
    {"/x/a>=1", "/", "x{a|>=|1}{}"},
    {"/x/a=b!=c", "/", "x{a|=|b!=c}{}"},
    {"/x/a==b", "/", "x{a|=|=b}{}"},
    {"/x/a=>b", "/", "x{a|=|>b}{}"},
    {"/x/a<>b", "/", "x{a|<|>b}{}"},
    {"/x/a=", "/", "x{a|=|}{}"},
    {"/x/a!=", "/", "x{a|!=|}{}"},
    {"/x/a=''", "/", "x{a|=|''}{}"},
    {"/x/Name>G&Name<H", "/", "x{Name|>|G;Name|<|H}{}"},
    {"/x/a=1&b=2&c=3/d=4&e=5", "/", "x{a|=|1;b|=|2;c|=|3}{d|=|4;e|=|5}"},
    /* over-escaped operators, where there is no plain one */
    {"/x/a%3E5", "/", "x{a|>|5}{}"},
    {"/x/a%3c5", "/", "x{a|<|5}{}"},
    {"/x/a%3E=5", "/", "x{a|>=|5}{}"},
    {"/x/a%3C=5", "/", "x{a|<=|5}{}"},
    {"/x/a%21=5", "/", "x{a|!=|5}{}"},
    {"/x/a%3D5", "/", "x{a|=|5}{}"},
    {"/x/a%3e%3d5", "/", "x{a|>=|5}{}"},
    {"/x/a%21%3D5", "/", "x{a|!=|5}{}"},
    {"/x/a%3D5&b>6", "/", "x{a|=|5;b|>|6}{}"},
    {"/x/a%3Eb<5", "/", "x{a>b|<|5}{}"},
    {"/x/a>%3D5", "/", "x{a|>|=5}{}"},
    {"/x/a=b%3E=c", "/", "x{a|=|b>=c}{}"},
    {"/x/a%21b=5", "/", "x{a!b|=|5}{}"},
    {"/x/a=b!c", "/", "x{a|=|b!c}{}"},
    /* decoded once, after the splitting */
    {"/x/a=b%2Fc%26d", "/", "x{a|=|b/c&d}{}"},
    {"/x/a=%253E", "/", "x{a|=|%3E}{}"},
    {"/x/a=1+1", "/", "x{a|=|1+1}{}"},
    {"/x/a%20b=c%20d", "/", "x{a b|=|c d}{}"},
    {"/x/a=%C3%a9", "/", "x{a|=|\xc3\xa9}{}"},
    {"/x/a=\xc3\xa9", "/", "x{a|=|\xc3\xa9}{}"},
    {"/Shop%2EPerson", "/", "Shop.Person{}{}"},
    {"/x/a=%0A", "/", "x{a|=|\n}{}"},
    {"/x/_/rename=a-%3Eb", "/", "x{}{rename|=|a->b}"},
    {"/x/_/rename=a->b", "/", "x{}{rename|=|a->b}"},
    {"/x/_/limit%3D5", "/", "x{}{limit|=|5}"},
    {"/x/_/limit>5", "/", "x{}{limit|>|5}"},
    /* quoted steps hold what would be operators elsewhere */
    {"/x/'a>b'=1", "/", "x{'a>b'|=|1}{}"},
    {"/x/a.'b=c'.d<1", "/", "x{a.'b=c'.d|<|1}{}"},
    {"/x/\"a!=b\"!=1", "/", "x{\"a!=b\"|!=|1}{}"},
    {"/x/'a.'b'>1", "/", "x{'a.'b'|>|1}{}"},
    {"/x/'a>b'%3E1", "/", "x{'a>b'|>|1}{}"},
    {"/x/''=1", "/", "x{''|=|1}{}"},
    {"/x/a='b'", "/", "x{a|=|'b'}{}"},
    {"/x/'a='b'", "/", "x{'a|=|'b'}{}"},
    {"/x/it's>'b'.c", "/", "x{it's|>|'b'.c}{}"},
    {"/x/%27a>b%27=1", "/", "x{'a|>|b'=1}{}"},
    /* the query form: each parameter is decoded once, as a whole */
    {"/x?", "/", "x{}{}"},
    {"/?limit=1", "/", "-{}{limit|=|1}"},
    {"/svc?limit=1", "/svc", "-{}{limit|=|1}"},
    {"/x?where=a%3E4&limit=5", "/", "x{a|>|4}{limit|=|5}"},
    {"/x?where=a>4&WHERE=b!=c", "/", "x{a|>|4;b|!=|c}{}"},
    {"/x?where=a%3Db%26c%2Fd%3De", "/", "x{a|=|b&c/d=e}{}"},
    {"/x?where=a+b=c+d%2Be&search=f+g", "/", "x{a b|=|c d+e}{search|=|f g}"},
    {"/x?where=a=%253E", "/", "x{a|=|%3E}{}"},
    {"/x?where=a%25253E=1", "/", "x{a%253E|=|1}{}"},
    {"/x?where='a>b'=1", "/", "x{'a>b'|=|1}{}"},
    {"/x?where=a=/", "/", "x{a|=|/}{}"},
    {"/x?where=a=?", "/", "x{a|=|?}{}"},
    {"/x?where=&where&&limit=", "/", "x{}{limit|=|}"},
    {"/x?limit", "/", "x{}{limit|=|}"},
    {"/x?%6Cimit=%35", "/", "x{}{limit|=|5}"},
    {"/x/a=1&b=2?where=c=3&limit=4", "/", "x{a|=|1;b|=|2;c|=|3}{limit|=|4}"},
    {"/x/a=1+1?where=b=1+1", "/", "x{a|=|1+1;b|=|1 1}{}"},
    {"/x/_/_?limit=4", "/", "x{}{limit|=|4}"},
    {"/x/?rename=a->b", "/", "x{}{rename|=|a->b}"},
};

START_TEST(targets)
{
    struct uri uri;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        ck_ok(uri_parse(span_str(good[i].target), span_str(good[i].base), 64, &arena, &uri));
        ck_assert_msg(span_eq(written(&uri), span_str(good[i].parsed)), "%s: is %.*s, should be %s",
                      good[i].target, SPAN_FMT(written(&uri)), good[i].parsed);
    }
}
END_TEST

static const struct {
    const char *target, *base;
    enum err_code code;
    const char *message; /* is in it */
} bad[] = {
    {"", "/", ERR_INVALID_URI_SYNTAX, "begin"},
    {"x", "/", ERR_INVALID_URI_SYNTAX, "'x' does not begin with '/'"},
    {"/other/x", "/svc", ERR_INVALID_URI_SYNTAX, "'/svc/'"},
    {"/svcx", "/svc", ERR_INVALID_URI_SYNTAX, "'/svcx'"},
    {"/a/b=1/c=1/d", "/", ERR_INVALID_URI_SYNTAX, "three parts"},
    {"/////", "/", ERR_INVALID_URI_SYNTAX, "'/////'"},
    {"/a//b=1//", "/", ERR_INVALID_URI_SYNTAX, "three parts"},
    {"/a//limit=1?", "/", ERR_INVALID_URI_SYNTAX, "in the path of '/a//limit=1?'"},
    {"/a/b=1/limit=1?where=c=1", "/", ERR_INVALID_URI_SYNTAX, "beside a query"},
    {"/a?limit=%4", "/", ERR_INVALID_URI_SYNTAX, "'%4'"},
    {"/a?%ff=1", "/", ERR_INVALID_URI_SYNTAX, "UTF-8"},
    {"/a?where=b=%00", "/", ERR_INVALID_URI_SYNTAX, "NUL"},
    {"/a?where=b", "/", ERR_INVALID_CONDITION_SYNTAX, "'b' has no operator"},
    {"/a?where=b%253D1", "/", ERR_INVALID_CONDITION_SYNTAX, "'b%3D1' has no operator"},
    {"/a?where==b", "/", ERR_INVALID_CONDITION_SYNTAX, "'=b' has no name"},
    {"/a?=5", "/", ERR_INVALID_META_KEY, "no parameter ''"},
    {"/a?limit%3E=5", "/", ERR_INVALID_META_KEY, "no parameter 'limit>'"},
    {"/%", "/", ERR_INVALID_URI_SYNTAX, "'%'"},
    {"/a/b=%4", "/", ERR_INVALID_URI_SYNTAX, "'%4'"},
    {"/a/b=%4g", "/", ERR_INVALID_URI_SYNTAX, "'%4g'"},
    {"/a/b=%%41", "/", ERR_INVALID_URI_SYNTAX, "'%%41'"},
    {"/a/%zz=1", "/", ERR_INVALID_URI_SYNTAX, "'%zz'"},
    {"/a/b=x%00y", "/", ERR_INVALID_URI_SYNTAX, "NUL in 'x%00y'"},
    {"/a/b=%00", "/", ERR_INVALID_URI_SYNTAX, "NUL in '%00'"},
    {"/a/b=%ff", "/", ERR_INVALID_URI_SYNTAX, "UTF-8"},
    {"/a/b=%C3", "/", ERR_INVALID_URI_SYNTAX, "'%C3'"},
    {"/a/b=%ed%a0%80", "/", ERR_INVALID_URI_SYNTAX, "'%ed%a0%80'"},
    {"/%c0%af", "/", ERR_INVALID_URI_SYNTAX, "'%c0%af'"},
    {"/a/b=\x80", "/", ERR_INVALID_URI_SYNTAX, "UTF-8"},
    {"/a/b", "/", ERR_INVALID_CONDITION_SYNTAX, "'b' has no operator"},
    {"/a/b!c", "/", ERR_INVALID_CONDITION_SYNTAX, "'b!c' has no operator"},
    {"/a/b%21c", "/", ERR_INVALID_CONDITION_SYNTAX, "'b%21c' has no operator"},
    {"/a/=b", "/", ERR_INVALID_CONDITION_SYNTAX, "'=b' has no name"},
    {"/a/!=b", "/", ERR_INVALID_CONDITION_SYNTAX, "'!=b' has no name"},
    {"/a/%3Eb", "/", ERR_INVALID_CONDITION_SYNTAX, "'%3Eb' has no name"},
    {"/a/b!c=d", "/", ERR_INVALID_CONDITION_SYNTAX, "'!' in the name"},
    {"/a/b!c%3Dd", "/", ERR_INVALID_CONDITION_SYNTAX, "'!' in the name"},
    {"/a/!!=d", "/", ERR_INVALID_CONDITION_SYNTAX, "'!' in the name"},
    {"/a/b=1&", "/", ERR_INVALID_CONDITION_SYNTAX, "condition '' has no operator"},
    {"/a/&b=1", "/", ERR_INVALID_CONDITION_SYNTAX, "condition ''"},
    {"/a/b=1&&c=2", "/", ERR_INVALID_CONDITION_SYNTAX, "condition ''"},
    {"/a/_/limit", "/", ERR_INVALID_META_SYNTAX, "meta-condition 'limit' has no operator"},
    {"/a/_/=5", "/", ERR_INVALID_META_SYNTAX, "'=5'"},
    {"/a/_/limit=5&", "/", ERR_INVALID_META_SYNTAX, "meta-condition ''"},
};

START_TEST(bad_targets)
{
    struct uri uri;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_fails(uri_parse(span_str(bad[i].target), span_str(bad[i].base), 64, &arena, &uri),
                 bad[i].code, bad[i].message);
}
END_TEST

START_TEST(number_of_conditions)
{
    struct uri uri;

    ck_ok(uri_parse(SPAN("/x/a=1&b=2/c=3&d=4"), SPAN("/"), 2, &arena, &uri));
    ck_fails(uri_parse(SPAN("/x/a=1&b=2&c=3"), SPAN("/"), 2, &arena, &uri), ERR_INVALID_URI_SYNTAX,
             "3 conditions");
    ck_fails(uri_parse(SPAN("/x/_/a=1&b=2&c=3"), SPAN("/"), 2, &arena, &uri),
             ERR_INVALID_URI_SYNTAX, "3 meta-conditions");
    ck_fails(
        uri_parse(SPAN("/x?where=a=1&where=b=2&limit=1&where=c=3"), SPAN("/"), 2, &arena, &uri),
        ERR_INVALID_URI_SYNTAX, "3 conditions");
    ck_fails(uri_parse(SPAN("/x?a=1&b=2&c=3"), SPAN("/"), 2, &arena, &uri), ERR_INVALID_URI_SYNTAX,
             "3 meta-conditions");
}
END_TEST

START_TEST(nothing_is_copied_without_escapes)
{
    struct span target = SPAN("/Shop.Person/Name=x/limit=1");
    struct uri uri;

    ck_ok(uri_parse(target, SPAN("/"), 64, &arena, &uri));
    ck_assert_ptr_eq(uri.resource.p, target.p + 1);
    ck_assert_ptr_eq(uri.conditions[0].value.p, target.p + 18);
}
END_TEST

static const struct {
    const char *target, *normal, *all_parts;
} normals[] = {
    {"/", "/_", "/_/_/_"},
    {"/?/x", "/x", "/x/_/_"},
    {"/thisisnotaresource", "/thisisnotaresource", "/thisisnotaresource/_/_"},
    {"/x/_/limit=1/", "/x/_/limit=1", "/x/_/limit=1"},
    {"/x/a=1&b%3E2", "/x/a=1&b>2", "/x/a=1&b>2/_"},
    {"/x/a=b%2Fc", "/x/a=b%2Fc", "/x/a=b%2Fc/_"},
    {"/x/a!=b!=c", "/x/a!=b%21%3Dc", "/x/a!=b%21%3Dc/_"},
    {"/x/a='%C3%A9 d'", "/x/a='%C3%A9%20d'", "/x/a='%C3%A9%20d'/_"},
    {"/x/t>=2026-11-01T10:00:00Z", "/x/t>=2026-11-01T10:00:00Z", "/x/t>=2026-11-01T10:00:00Z/_"},
    {"/?/x/a=?%23", "/x/a=%3F%23", "/x/a=%3F%23/_"},
    {"/x/_/order_asc=a,b&rename=a->b", "/x/_/order_asc=a,b&rename=a-%3Eb",
     "/x/_/order_asc=a,b&rename=a-%3Eb"},
    {"/%7Ex%3E", "/~x%3E", "/~x%3E/_/_"},
    {"/x?where=a=b%2Fc&limit=1", "/x/a=b%2Fc/limit=1", "/x/a=b%2Fc/limit=1"},
    {"/x/a=1?where=b=2+3", "/x/a=1&b=2%203", "/x/a=1&b=2%203/_"},
    {"/x/'a>b'=1", "/x/%27a%3Eb%27=1", "/x/%27a%3Eb%27=1/_"},
};

/* What was refused before it was read is shown so in Error.Uri. */
START_TEST(an_unread_query_has_a_normal_form)
{
    static const char *const unread[][2] = {
        {"/x?", "/x/_/_"},
        {"/x?where=&limit=1&where=a%3E%2F", "/x/a>%2F/limit=1"},
        {"/x/a=1?where=b&select=c,d&limit=1", "/x/a=1&b/select=c,d&limit=1"},
    };
    struct uri uri;

    for (size_t i = 0; i < ARRAY_LEN(unread); i++) {
        ck_ok(uri_split(span_str(unread[i][0]), SPAN("/"), 64, &arena, &uri));
        ck_span_is(normal(&uri, true), span_str(unread[i][1]));
    }
}
END_TEST

START_TEST(normal_forms)
{
    struct uri uri;

    for (size_t i = 0; i < ARRAY_LEN(normals); i++) {
        ck_ok(uri_parse(span_str(normals[i].target), SPAN("/"), 64, &arena, &uri));
        ck_span_is(normal(&uri, false), span_str(normals[i].normal));
        ck_span_is(normal(&uri, true), span_str(normals[i].all_parts));
    }
}
END_TEST

/* Every byte either stands for itself or is encoded with capital digits. */
START_TEST(encoded_characters)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~$'()*+,;:@";

    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        struct buf b;

        buf_init(&b, 8);
        uri_add_encoded(&b, span_of(&byte, 1));
        if (c != 0 && strchr(plain, c) != NULL)
            ck_span_is(buf_span(&b), span_of(&byte, 1));
        else
            ck_span_is(buf_span(&b), arena_printf(&arena, "%%%02X", (unsigned)c));
        buf_done(&b);
    }
}
END_TEST

static struct span random_target(void)
{
    static const char *const pieces[] = {
        "/",   "/",   "/",   "&",   "=",   "=",   "!",      "!=",       "<",      ">",
        "a",   "B",   "_",   "'",   "+",   "0",   ".",      ",",        "?",      "%3E",
        "%3c", "%3D", "%21", "%2F", "%26", "%25", "%C3%A9", "\xc3\xa9", "where=", "\"",
    };
    struct span text = SPAN("/x/");
    size_t n = (size_t)rng_below(14);

    for (size_t i = 0; i < n; i++)
        text = arena_printf(&arena, "%.*s%s", SPAN_FMT(text), pieces[rng_below(ARRAY_LEN(pieces))]);
    return text;
}

/* Parsing the normal form gives what was parsed first, for whatever can be parsed. */
START_TEST(normal_form_is_the_identity)
{
    size_t parsed = 0;

    for (int i = 0; i < 40000; i++) {
        struct span target = random_target();
        bool all_parts = i % 2 == 0;
        struct uri uri, again;
        struct err *e = uri_parse(target, SPAN("/"), 64, &arena, &uri);

        if (e != NULL) {
            err_free(e);
        } else {
            parsed++;
            ck_ok(uri_parse(normal(&uri, all_parts), SPAN("/"), 64, &arena, &again));
            ck_span_is(written(&again), written(&uri));
        }
        arena_reset(&arena);
    }
    ck_assert_uint_gt(parsed, 4000);
}
END_TEST

/* The same for any key and value, built and not parsed. */
START_TEST(any_text_survives_the_normal_form)
{
    for (int i = 0; i < 4000; i++) {
        struct span value = sample_random_text(&arena, 12), inner = sample_random_text(&arena, 8);
        struct span key = arena_printf(&arena, "k%.*sk", SPAN_FMT(inner));
        struct uri_condition c = {key, (enum uri_op)rng_below(6), value};
        struct uri uri = {.resource = SPAN("R"), .conditions = &c, .condition_count = 1}, again;

        ck_ok(uri_parse(normal(&uri, false), SPAN("/"), 64, &arena, &again));
        ck_assert_uint_eq(again.condition_count, 1);
        ck_span_is(again.conditions[0].key, key);
        ck_assert_int_eq(again.conditions[0].op, c.op);
        ck_span_is(again.conditions[0].value, value);
        arena_reset(&arena);
    }
}
END_TEST

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, targets);
    tcase_add_test(tc, bad_targets);
    tcase_add_test(tc, number_of_conditions);
    tcase_add_test(tc, nothing_is_copied_without_escapes);
    tcase_add_test(tc, normal_forms);
    tcase_add_test(tc, an_unread_query_has_a_normal_form);
    tcase_add_test(tc, encoded_characters);
    tcase_add_test(tc, normal_form_is_the_identity);
    tcase_add_test(tc, any_text_survives_the_normal_form);
}
