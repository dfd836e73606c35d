/* Svc.Console: its files, whole, in both forms, and what is said beside them. */
#include "asking.h"

#include "admin/console_files.h"
#include "rest/rest.h"

#include <string.h>

#define PLAIN_BYTES_MOST (150 * 1024)

/* A key is required, and none is shown. */
static void begin(void)
{
    asking_open(NULL);
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
}

static const char *target_of(const struct console_file *file)
{
    return asking_printf("/Svc.Console/%.*s", SPAN_FMT(file->name));
}

static const struct console_file *file_of(const char *name)
{
    for (size_t i = 0; i < console_file_count; i++)
        if (span_eq(console_files[i].name, span_str(name)))
            return &console_files[i];
    ck_abort_msg("no file %s", name);
    return NULL;
}

static struct span type_of(struct span name)
{
    static const struct {
        struct span ending, type;
    } types[] = {
        {SPAN_INIT(".html"), SPAN_INIT("text/html; charset=utf-8")},
        {SPAN_INIT(".css"), SPAN_INIT("text/css; charset=utf-8")},
        {SPAN_INIT(".js"), SPAN_INIT("text/javascript; charset=utf-8")},
        {SPAN_INIT(".svg"), SPAN_INIT("image/svg+xml")},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (name.n > types[i].ending.n &&
            span_eq(span_sub(name, name.n - types[i].ending.n, name.n), types[i].ending))
            return types[i].type;
    ck_abort_msg("%.*s is of no type that there is", SPAN_FMT(name));
    return (struct span){NULL, 0};
}

START_TEST(all_files_are_there)
{
    size_t sum = 0;

    for (size_t i = 0; i < console_file_count; i++) {
        const struct console_file *file = &console_files[i];

        sum += file->plain.bytes.n;
        ck_asks(200, "GET", target_of(file), NULL);
        ck_span_is(answered_body(), file->plain.bytes);
        ck_span_is(asking.answer.content_type, type_of(file->name));
        ck_span_is(answered_header("ETag"), file->plain.etag);
        ck_header_eq("Vary", "Accept-Encoding");
        ck_header_eq("Cache-Control", "no-cache");
        ck_assert_ptr_null(answered_header("Content-Encoding").p);
    }
    ck_assert_uint_gt(sum, 0);
    ck_assert_uint_le(sum, PLAIN_BYTES_MOST);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
}
END_TEST

/* What a gzip member ends with is the number of bytes that it unpacks to. */
static uint32_t unpacked_bytes(struct span packed)
{
    uint32_t bytes = 0;

    ck_assert_uint_gt(packed.n, 18);
    ck_assert(span_starts(packed, SPAN("\x1f\x8b\x08")));
    for (size_t i = 1; i <= 4; i++)
        bytes = bytes << 8 | (unsigned char)packed.p[packed.n - i];
    return bytes;
}

START_TEST(they_come_packed_to_who_takes_it)
{
    for (size_t i = 0; i < console_file_count; i++) {
        const struct console_file *file = &console_files[i];

        ask_with("Accept-Encoding: gzip, deflate, br", "GET", target_of(file), NULL);
        ck_status(200);
        ck_span_is(answered_body(), file->packed.bytes);
        ck_assert_uint_eq(unpacked_bytes(answered_body()), file->plain.bytes.n);
        ck_header_eq("Content-Encoding", "gzip");
        ck_header_eq("Vary", "Accept-Encoding");
        ck_span_is(answered_header("ETag"), file->packed.etag);
        ck_assert(!span_eq(file->packed.etag, file->plain.etag));
    }
    ask_with("Accept-Encoding: gzip;q=0, *", "GET", "/Svc.Console/app.js", NULL);
    ck_status(200);
    ck_span_is(answered_body(), file_of("app.js")->plain.bytes);
}
END_TEST

START_TEST(who_has_one_is_told_so)
{
    const struct console_file *file = file_of("style.css");
    const char *target = target_of(file);

    ask_with(asking_printf("If-None-Match: %.*s", SPAN_FMT(file->plain.etag)), "GET", target, NULL);
    ck_status(304);
    ck_assert_uint_eq(answered_body().n, 0);
    ck_span_is(answered_header("ETag"), file->plain.etag);
    ask_with(asking_printf("Accept-Encoding: gzip\nIf-None-Match: \"x\", %.*s",
                           SPAN_FMT(file->packed.etag)),
             "GET", target, NULL);
    ck_status(304);
    ck_span_is(answered_header("ETag"), file->packed.etag);
    /* Of the other form it says nothing. */
    ask_with(asking_printf("If-None-Match: %.*s", SPAN_FMT(file->packed.etag)), "GET", target,
             NULL);
    ck_status(200);
}
END_TEST

START_TEST(the_page_may_do_little)
{
    struct span policy;

    ck_asks(200, "GET", "/Svc.Console", NULL);
    ck_span_is(answered_body(), file_of("index.html")->plain.bytes);
    policy = answered_header("Content-Security-Policy");
    ck_assert(span_starts(policy, SPAN("default-src 'none'; ")));
    ck_assert_uint_eq(span_find(policy, SPAN("unsafe")), SIZE_MAX);
    ck_assert_uint_ne(span_find(policy, SPAN("frame-ancestors 'none'")), SIZE_MAX);
    ck_assert_uint_ne(span_find(policy, SPAN("require-trusted-types-for 'script'")), SIZE_MAX);
    ck_header_eq("Referrer-Policy", "no-referrer");
}
END_TEST

START_TEST(browsers_are_led_to_it)
{
    ask_with("Accept: text/html,*/*;q=0.8", "GET", "/", NULL);
    ck_status(302);
    ck_header_eq("Location", "/Svc.Console");
    ck_asks(401, "GET", "/", NULL);
    ask_with("Authorization: apikey admin", "GET", "/Console", NULL); /* by the end of its name */
    ck_status(302);
    ck_header_eq("Location", "/Svc.Console");
    asking_below("/v1");
    ask_with("Accept: text/html", "GET", "/v1", NULL);
    ck_status(302);
    ck_header_eq("Location", "/v1/Svc.Console");
    ck_asks(200, "GET", "/v1/Svc.Console/app.js", NULL);
}
END_TEST

static const struct {
    const char *method, *target;
    int status;
} asked[] = {
    {"HEAD", "/Svc.Console", 200},          {"GET", "/Svc.Console?x=1", 200},
    {"HEAD", "/Svc.Console/app.js", 200},   {"POST", "/Svc.Console", 401},
    {"DELETE", "/Svc.Console/app.js", 401}, {"GET", "/Svc.Console/none.js", 404},
    {"GET", "/Svc.Console/", 302},          {"GET", "/Svc.Console/../app.js", 404},
    {"GET", "/Svc.Console/APP.JS", 404},    {"GET", "/Svc.Consoles", 401},
    {"GET", "/svc.console", 302},           {"POST", "/SVC.CONSOLE", 401},
};

START_TEST(by_other_methods_it_is_a_resource)
{
    ask_with("Authorization: apikey admin", "POST", "/Svc.Console", NULL);
    ck_status(405);
    ck_header_eq("Allow", "GET, HEAD");
    ask_with("Authorization: apikey admin", "OPTIONS", "/Svc.Console", NULL);
    ck_status(200);
    ck_header_eq("Allow", "GET, HEAD");
}
END_TEST

START_TEST(nothing_else_is_there)
{
    ask(asked[_i].method, asked[_i].target, NULL);
    ck_status(asked[_i].status);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, all_files_are_there);
    tcase_add_test(tc, they_come_packed_to_who_takes_it);
    tcase_add_test(tc, who_has_one_is_told_so);
    tcase_add_test(tc, the_page_may_do_little);
    tcase_add_test(tc, browsers_are_led_to_it);
    tcase_add_test(tc, by_other_methods_it_is_a_resource);
    tcase_add_loop_test(tc, nothing_else_is_there, 0, ARRAY_LEN(asked));
}
