#include "testing.h"

#include "protocol/negotiate.h"

#include <string.h>

START_TEST(formats_have_media_types)
{
    ck_span_eq(format_media_types[FORMAT_JSON], "application/json");
    ck_span_eq(format_media_types[FORMAT_NDJSON], "application/x-ndjson");
    ck_span_eq(format_media_types[FORMAT_CSV], "text/csv");
}
END_TEST

/* ---- Accept ---- */

static const struct {
    const char *accept;
    enum format format;
    unsigned indent;
} accepted[] = {
    {NULL, FORMAT_JSON, 0},
    {"", FORMAT_JSON, 0},
    {"  ", FORMAT_JSON, 0},
    {",, ,", FORMAT_JSON, 0},
    {"*/*", FORMAT_JSON, 0},
    {"application/*", FORMAT_JSON, 0},
    {"text/*", FORMAT_CSV, 0},
    {"application/json", FORMAT_JSON, 0},
    {"APPLICATION/JSON", FORMAT_JSON, 0},
    {"application/x-ndjson", FORMAT_NDJSON, 0},
    {"text/csv", FORMAT_CSV, 0},
    {" ,text/csv ,, ", FORMAT_CSV, 0},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", FORMAT_JSON, 2},
    /* Weights. */
    {"application/json;q=0.5, text/csv", FORMAT_CSV, 0},
    {"application/json;q=0.5, text/csv;q=0.4", FORMAT_JSON, 0},
    {"application/json;q=0.999, text/csv;q=1.000", FORMAT_CSV, 0},
    {"application/json ; Q=0.001 , text/html", FORMAT_JSON, 2},
    {"application/json;q=0, */*", FORMAT_NDJSON, 0},
    {"application/json;q=0.0,application/x-ndjson;q=0.000,*/*;q=0.1", FORMAT_CSV, 0},
    {"application/*;q=0, */*", FORMAT_CSV, 0},
    {"application/*;q=0, application/x-ndjson;q=0.1", FORMAT_NDJSON, 0},
    {"*/*;q=0, text/csv;q=0.1", FORMAT_CSV, 0},
    /* What clients in use send against the grammar. */
    {"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", FORMAT_JSON, 2},
    {"*", FORMAT_JSON, 0},
    {"application/json;q=.5, text/csv;q=.499", FORMAT_JSON, 0},
    {"application/json;q=.5, text/csv;q=.51", FORMAT_CSV, 0},
    /* Equals: the table's order, not the field's. */
    {"text/csv, application/x-ndjson, application/json", FORMAT_JSON, 0},
    {"text/csv, */*", FORMAT_JSON, 0},
    {"text/csv, application/x-ndjson", FORMAT_NDJSON, 0},
    /* The most specific range decides, wherever it stands. */
    {"*/*;q=0.9, application/json;q=0.1, text/*;q=0.5", FORMAT_NDJSON, 0},
    {"application/json;q=0.1, application/*;q=0.2, */*;q=0.05", FORMAT_NDJSON, 0},
    /* Parameters. */
    {"application/json;charset=utf-8", FORMAT_JSON, 0},
    {"application/json; charset=\"UTF-8\"", FORMAT_JSON, 0},
    {"application/json;charset=\"u\\tf-\\8\"", FORMAT_JSON, 0},
    {"application/json;charset=iso-8859-1, text/csv;q=0.1", FORMAT_CSV, 0},
    {"application/json;version=2, text/csv;q=0.1", FORMAT_JSON, 0},
    {"application/json;version=2;q=0.1, application/json;q=0, */*;q=0.1", FORMAT_JSON, 0},
    {"text/plain;note=\"a, b;q=1\", text/csv;q=0.2", FORMAT_CSV, 0},
    {"text/plain;note=\"\\\"\\\\,\", text/csv;q=0.2", FORMAT_CSV, 0},
    {"text/plain;note=\"\", text/csv;q=0.2", FORMAT_CSV, 0},
    {"application/json;", FORMAT_JSON, 0},
    {"application/json; ;q=0.5 ; , text/csv;q=0.4", FORMAT_JSON, 0},
    {"application/json\t;\tq=0.5", FORMAT_JSON, 0},
    {"text/csv;q=\"0.7\"", FORMAT_CSV, 0},
    /* Indentation. */
    {"application/json;indent=2", FORMAT_JSON, 2},
    {"application/json;indent=0", FORMAT_JSON, 0},
    {"application/json;indent=8", FORMAT_JSON, 8},
    {"application/json;INDENT=\"4\"", FORMAT_JSON, 4},
    {"application/json; indent=2; charset=utf-8; q=0.5", FORMAT_JSON, 2},
    {"*/*;indent=3", FORMAT_JSON, 3},
    {"application/*;indent=3", FORMAT_JSON, 3},
    {"application/json;indent=2, */*", FORMAT_JSON, 2},
    {"*/*, application/json;indent=2", FORMAT_JSON, 2},
    {"application/json, application/json;indent=2", FORMAT_JSON, 2},
    {"application/json;indent=2;q=0.5, application/json", FORMAT_JSON, 0},
    {"application/json;indent=2;q=0.5, text/csv", FORMAT_CSV, 0},
    {"application/json;indent=2;q=0, application/json;q=0.1", FORMAT_JSON, 0},
    {"application/json;indent=2;q=0.5, application/json;indent=4", FORMAT_JSON, 4},
    {"application/json;indent=9, text/csv;q=0.1", FORMAT_CSV, 0},
    {"application/json;q=0, application/json;indent=2", FORMAT_JSON, 2},
    /* Parameters that nothing has. */
    {"application/json;profile=x", FORMAT_JSON, 0},
    {"text/csv;header=present;q=0.5, application/json;v=2;q=0.4", FORMAT_CSV, 0},
    /* People. */
    {"text/html", FORMAT_JSON, 2},
    {"text/html;charset=utf-8;q=0.9, */*;q=0.8", FORMAT_JSON, 2},
    {"text/html, application/json", FORMAT_JSON, 0},
    {"text/html;q=0.5, text/csv;q=0.7", FORMAT_CSV, 0},
    {"text/*;q=0.5", FORMAT_CSV, 0},
};

START_TEST(accept_is_honoured)
{
    for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
        struct negotiated got = {FORMAT_COUNT, 99};

        ck_ok(negotiate_accept(span_str(accepted[i].accept), &got));
        ck_assert_msg(got.format == accepted[i].format && got.indent == accepted[i].indent,
                      "'%s' gives %d, indent %u", accepted[i].accept, got.format, got.indent);
    }
}
END_TEST

static const char *const unacceptable[] = {
    "text/html;q=0",
    "application/xml, image/*",
    "*/json",
    "application/json;q=0",
    "*/*;q=0",
    "application/json;q=0.000, image/png",
    "application/json;indent=2;q=0",
    "application/json;indent=9",
    "application/json;indent=-1",
    "application/json;indent=02",
    "application/json;indent=x",
    "text/csv;indent=2",
    "application/json;charset=latin1",
    /* Malformed. */
    "application",
    "application/",
    "/json",
    "application /json",
    "application/json text/csv",
    "application/json;q",
    "application/json;q=",
    "application/json;q=2",
    "application/json;q=1.001",
    "application/json;q=0.1234",
    "application/json;q=.",
    "application/json;q=.1234",
    "application/json;q=5",
    "a",
    "*json",
    "application/json;q=-1",
    "application/json;q=0,5",
    "application/json;=1",
    "application/json;a=\"b",
    "application/json;a=\"b\\",
    "application/json;a=\"b\x01\"",
    "application/json;a =1",
    "application/json, @",
    "application/json;q=1\"",
};

START_TEST(what_cannot_be_sent_is_refused)
{
    struct negotiated got;

    for (size_t i = 0; i < ARRAY_LEN(unacceptable); i++) {
        struct err *e = negotiate_accept(span_str(unacceptable[i]), &got);

        ck_assert_msg(e != NULL, "%s", unacceptable[i]);
        ck_assert_int_eq(err_code(e), ERR_NOT_ACCEPTABLE);
        ck_assert_uint_ne(
            span_find(err_message(e), SPAN("application/json, application/x-ndjson, text/csv")),
            SIZE_MAX);
        err_free(e);
    }
}
END_TEST

/* As long as a request head can be: time and stack stay small. */
START_TEST(long_fields_are_read)
{
    static char field[1 << 20];
    struct negotiated got;

    for (size_t i = 0; i + 16 < sizeof(field); i += 16)
        memcpy(field + i, "a/b;indent=1;c,,", 16);
    ck_fails(negotiate_accept(span_of(field, sizeof(field) - 16), &got), ERR_NOT_ACCEPTABLE, "");
    for (size_t i = 0; i + 8 < sizeof(field); i += 8)
        memcpy(field + i, "*/*;q=0,", 8);
    memcpy(field + sizeof(field) - 24, "text/csv", 8);
    ck_ok(negotiate_accept(span_of(field, sizeof(field) - 16), &got));
    ck_assert_int_eq(got.format, FORMAT_CSV);
}
END_TEST

START_TEST(html_is_named_or_not)
{
    static const char *const named[] = {"text/html", "*/*, TEXT/HTML;q=0.1",
                                        "a/b, text/html;level=1"};
    static const char *const others[] = {"",           "*/*",         "text/*", "text/html;q=0",
                                         "text/htmlx", "@, text/html"};

    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        ck_assert_msg(negotiate_names_html(span_str(named[i])), "%s", named[i]);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        ck_assert_msg(!negotiate_names_html(span_str(others[i])), "%s", others[i]);
}
END_TEST

/* ---- Content-Encoding ---- */

/* Of equal weight is what is named, not what a wildcard leaves open; JSON before it otherwise. */
static const struct {
    const char *accept;
    bool is_preferred;
} stream_rows[] = {
    {"text/event-stream", true},
    {"TEXT/Event-Stream; charset=UTF-8", true},
    {"text/event-stream, */*", true},
    {"*/*, text/event-stream", true},
    {"application/*, text/event-stream", true},
    {"application/json;q=0.9, text/event-stream", true},
    {"text/html, text/event-stream", true},
    {"text/event-stream;q=0.5", true},
    {"application/json, text/event-stream", false},
    {"text/event-stream;q=0.5, */*", false},
    {"text/event-stream;q=0", false},
    {"text/event-stream;q=0, */*", false},
    {"text/event-stream;indent=2", false},
    {"text/*", false},
    {"*/*", false},
    {"", false},
    {"text/event-stream;;=", false},
    {"text/event-stream, nonsense", false},
};

START_TEST(streams_are_for_who_asks_for_them)
{
    ck_assert_msg(negotiate_prefers_stream(span_str(stream_rows[_i].accept)) ==
                      stream_rows[_i].is_preferred,
                  "%s", stream_rows[_i].accept);
}
END_TEST

static const struct {
    const char *accept;
    bool is_taken;
} packing_rows[] = {
    {"gzip", true},
    {"GZip, deflate, br", true},
    {"br;q=1.0, x-gzip;q=0.1", true},
    {"*", true},
    {"identity, *;q=0.5", true},
    {" , gzip ,", true},
    {"gzip;q=0", false},
    {"gzip;q=0.000, *", false},
    {"*, gzip;q=0", false},
    {"*;q=0", false},
    {"*;q=0, gzip", true},
    {"br, identity", false},
    {"gzipped", false},
    {"", false},
    {NULL, false},
    /* Malformed. */
    {"*, @", false},
    {"gzip;q=2", false},
    {"gzip;q", false},
    {"@, gzip", false},
};

START_TEST(gzip_is_taken_or_not)
{
    ck_assert_msg(negotiate_takes_gzip(span_str(packing_rows[_i].accept)) ==
                      packing_rows[_i].is_taken,
                  "%s", packing_rows[_i].accept);
}
END_TEST

START_TEST(a_body_comes_as_it_is)
{
    ck_ok(negotiate_content_encoding((struct span){NULL, 0}));
    ck_ok(negotiate_content_encoding(SPAN("")));
    ck_ok(negotiate_content_encoding(SPAN("Identity, identity")));
    ck_fails(negotiate_content_encoding(SPAN("gzip")), ERR_UNSUPPORTED_CONTENT, "'gzip'");
    ck_fails(negotiate_content_encoding(SPAN("identity , br")), ERR_UNSUPPORTED_CONTENT, "'br'");
}
END_TEST

/* ---- Content-Type ---- */

static const struct {
    const char *type;
    bool ndjson_allowed;
    enum format format; /* FORMAT_COUNT: unsupported */
} contents[] = {
    {NULL, false, FORMAT_JSON},
    {"", false, FORMAT_JSON},
    {"application/json", false, FORMAT_JSON},
    {" Application/Json ", false, FORMAT_JSON},
    {"application/json; charset=utf-8", false, FORMAT_JSON},
    {"application/json;charset=\"Utf-8\"", false, FORMAT_JSON},
    {"application/json;other=thing", false, FORMAT_JSON},
    {"application/json;", false, FORMAT_JSON},
    {"application/x-ndjson", true, FORMAT_NDJSON},
    {"application/x-ndjson", false, FORMAT_COUNT},
    {"text/csv", true, FORMAT_COUNT},
    {"text/plain", true, FORMAT_COUNT},
    {"application/*", true, FORMAT_COUNT},
    {"application/json; charset=utf-16", true, FORMAT_COUNT},
    {"application/json; charset=utf-8; charset=latin1", true, FORMAT_COUNT},
    {"application/json; charset", true, FORMAT_COUNT},
    {"application/json, application/json", true, FORMAT_COUNT},
    {"application/json x", true, FORMAT_COUNT},
    {"json", true, FORMAT_COUNT},
};

START_TEST(content_types_are_known_or_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        struct span type = span_str(contents[i].type);
        enum format format = FORMAT_COUNT;

        if (contents[i].format != FORMAT_COUNT)
            ck_ok(negotiate_content_type(type, contents[i].ndjson_allowed, &format));
        else
            ck_fails(negotiate_content_type(type, contents[i].ndjson_allowed, &format),
                     ERR_UNSUPPORTED_CONTENT, contents[i].type);
        ck_assert_int_eq(format, contents[i].format);
    }
}
END_TEST

static const struct {
    const char *type;
    enum format format; /* FORMAT_COUNT: unsupported */
} written[] = {
    {NULL, FORMAT_JSON},
    {"application/json; charset=utf-8", FORMAT_JSON},
    {"application/x-ndjson", FORMAT_NDJSON},
    {"text/csv", FORMAT_CSV},
    {"Text/CSV; header=present; charset=UTF-8", FORMAT_CSV},
    {"text/csv; charset=latin1", FORMAT_COUNT},
    {"text/plain", FORMAT_COUNT},
    {"text/*", FORMAT_COUNT},
    {"csv", FORMAT_COUNT},
};

START_TEST(written_types_are_known_or_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        struct span type = span_str(written[i].type);
        enum format format = FORMAT_COUNT;

        if (written[i].format != FORMAT_COUNT)
            ck_ok(negotiate_written_type(type, &format));
        else
            ck_fails(negotiate_written_type(type, &format), ERR_UNSUPPORTED_CONTENT,
                     written[i].type);
        ck_assert_int_eq(format, written[i].format);
    }
}
END_TEST

START_TEST(refusals_list_what_can_be_written)
{
    enum format format;

    ck_fails(negotiate_written_type(SPAN("text/csv; charset=latin1"), &format),
             ERR_UNSUPPORTED_CONTENT,
             "cannot be written; what can be is application/json, application/x-ndjson, text/csv, "
             "in UTF-8");
}
END_TEST

START_TEST(refusals_list_what_can_be_read)
{
    enum format format;

    ck_fails(negotiate_content_type(SPAN("text/csv"), true, &format), ERR_UNSUPPORTED_CONTENT,
             "what can be is application/json, application/x-ndjson, in UTF-8");
    ck_fails(negotiate_content_type(SPAN("text/csv"), false, &format), ERR_UNSUPPORTED_CONTENT,
             "what can be is application/json, in UTF-8");
}
END_TEST

/* ---- media types ---- */

static const struct {
    const char *text;
    bool well_formed;
} media_types[] = {
    {"text/plain", true},
    {"text/plain;charset=utf-8", true},
    {" text/plain ; charset=\"utf-8; x\" ", true},
    {"image/svg+xml", true},
    {"application/vnd.a.b-c;v=1;w=\"\\\"\"", true},
    {"text", false},
    {"", false},
    {"text/", false},
    {"/plain", false},
    {"text/plain/x", false},
    {"text /plain", false},
    {"text/pl ain", false},
    {"text/plain;charset", false},
    {"text/plain;charset=\"x", false},
    {"text/plain, text/plain", false},
    {"text/pl\xc3\xa4in", false},
    {"text/plain;title=\"pl\xc3\xa4in\"", false},
};

START_TEST(media_types_are_checked)
{
    for (size_t i = 0; i < ARRAY_LEN(media_types); i++) {
        struct span text = span_str(media_types[i].text);

        ck_assert_msg(negotiate_is_media_type(text) == media_types[i].well_formed, "%s",
                      media_types[i].text);
    }
}
END_TEST

static const struct {
    const char *text, *declared;
    bool is_of_type;
} of_types[] = {
    {"image/png", "image/png", true},
    {"IMAGE/Png", "image/png", true},
    {"image/png;a=b", "image/png", true},
    {"image/gif", "image/png", false},
    {"text/png", "image/png", false},
    {"image/gif", "image/*", true},
    {"text/gif", "image/*", false},
    {"text/gif", "*/*", true},
    {"text/plain; charset=UTF-8", "text/plain;charset=utf-8", true},
    {"text/plain; a=b; charset=\"utf-8\"", "text/plain;charset=utf-8", true},
    {"text/plain; charset=latin1", "text/plain;charset=utf-8", false},
    {"text/plain", "text/plain;charset=utf-8", false},
    {"text/plain;charset=utf-8;a=c", "text/plain;charset=utf-8;a=b", false},
    {"nonsense", "*/*", false},
    {"", "*/*", false},
};

START_TEST(media_types_are_compared)
{
    for (size_t i = 0; i < ARRAY_LEN(of_types); i++)
        ck_assert_msg(
            negotiate_is_of_type(span_str(of_types[i].text), span_str(of_types[i].declared)) ==
                of_types[i].is_of_type,
            "%s, %s", of_types[i].text, of_types[i].declared);
}
END_TEST

/* ---- Prefer ---- */

static const struct {
    const char *prefer;
    bool minimal;
} preferences[] = {
    {NULL, false},
    {"", false},
    {"return=minimal", true},
    {"Return = Minimal", true},
    {"return=\"minimal\"", true},
    {"respond-async, wait=10, return=minimal", true},
    {"respond-async;x, return=minimal;y=\"z,\"; ", true},
    {",, return=minimal", true},
    {"return=representation", false},
    {"return=representation, return=minimal", false},
    {"return=minimal, return=representation", true},
    {"return", false},
    {"minimal", false},
    {"x=\"return=minimal\"", false},
    {"returns=minimal", false},
    {"return=minimal x", false},
    {"=, return=minimal", false},
};

START_TEST(totals_can_be_preferred)
{
    ck_assert(negotiate_prefers_count(SPAN("count=exact")));
    ck_assert(negotiate_prefers_count(SPAN("return=minimal, Count=\"exact\"")));
    ck_assert(!negotiate_prefers_count(SPAN("count=planned, count=exact")));
    ck_assert(!negotiate_prefers_count(SPAN("return=minimal")));
    ck_assert(!negotiate_prefers_count(SPAN("count")));
}
END_TEST

START_TEST(minimal_answers_can_be_preferred)
{
    for (size_t i = 0; i < ARRAY_LEN(preferences); i++)
        ck_assert_msg(negotiate_prefers_minimal(span_str(preferences[i].prefer)) ==
                          preferences[i].minimal,
                      "%s", preferences[i].prefer);
}
END_TEST

/* ---- entity tags ---- */

/* The comparisons of RFC 9110, section 8.8.3.2, and lists. */
static const struct {
    const char *list, *etag;
    bool strong, weak;
} etags[] = {
    {"W/\"1\"", "W/\"1\"", false, true},
    {"W/\"1\"", "W/\"2\"", false, false},
    {"W/\"1\"", "\"1\"", false, true},
    {"\"1\"", "W/\"1\"", false, true},
    {"\"1\"", "\"1\"", true, true},
    {"*", "\"1\"", true, true},
    {" * ", "\"1\"", true, true},
    {"\"*\"", "\"1\"", false, false},
    {"\"a\", \"1\"", "\"1\"", true, true},
    {"\"a,b\",W/\"c\" ,\"1\"", "\"1\"", true, true},
    {"\"1,\"", "\"1\"", false, false},
    {"\"\"", "\"\"", true, true},
    {",,\"1\",", "\"1\"", true, true},
    {"\"A\"", "\"a\"", false, false},
    {"", "\"1\"", false, false},
    {"1", "\"1\"", false, false},
    {"\"1", "\"1\"", false, false},
    {"w/\"1\"", "\"1\"", false, false},
    {"\"a\" \"1\"", "\"1\"", false, false},
    {"x, \"1\"", "\"1\"", false, false},
    {"\"a b\", \"1\"", "\"1\"", false, false},
    {"\"1\"", "1", false, false},
};

START_TEST(entity_tags_are_compared)
{
    for (size_t i = 0; i < ARRAY_LEN(etags); i++) {
        struct span list = span_str(etags[i].list), etag = span_str(etags[i].etag);

        ck_assert_msg(negotiate_etag_listed(list, etag, false) == etags[i].strong, "%s strongly",
                      etags[i].list);
        ck_assert_msg(negotiate_etag_listed(list, etag, true) == etags[i].weak, "%s weakly",
                      etags[i].list);
    }
    ck_assert(!negotiate_etag_listed(span_str(NULL), SPAN("\"1\""), true));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, streams_are_for_who_asks_for_them, 0, ARRAY_LEN(stream_rows));
    tcase_add_loop_test(tc, gzip_is_taken_or_not, 0, ARRAY_LEN(packing_rows));
    tcase_add_test(tc, formats_have_media_types);
    tcase_add_test(tc, accept_is_honoured);
    tcase_add_test(tc, what_cannot_be_sent_is_refused);
    tcase_add_test(tc, long_fields_are_read);
    tcase_add_test(tc, html_is_named_or_not);
    tcase_add_test(tc, a_body_comes_as_it_is);
    tcase_add_test(tc, content_types_are_known_or_refused);
    tcase_add_test(tc, refusals_list_what_can_be_read);
    tcase_add_test(tc, written_types_are_known_or_refused);
    tcase_add_test(tc, refusals_list_what_can_be_written);
    tcase_add_test(tc, media_types_are_checked);
    tcase_add_test(tc, media_types_are_compared);
    tcase_add_test(tc, minimal_answers_can_be_preferred);
    tcase_add_test(tc, totals_can_be_preferred);
    tcase_add_test(tc, entity_tags_are_compared);
}
