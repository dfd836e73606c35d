#include "testing.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 };

#define AT_NS INT64_C(1769860800123456789) /* 2026-01-31T12:00:00.123456789Z */

static int ends[2];
static char received[2 * LINE_BYTES];

static void open_log(enum log_level level, enum log_format format)
{
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    log_to(ends[1]);
    log_configure(level, format);
    clock_fake(AT_NS, 0);
}

static void close_log(void)
{
    log_to(STDERR_FILENO);
    log_configure(LOG_INFO, LOG_TEXT);
    close(ends[0]);
    close(ends[1]);
}

/* What was written since the last call. */
static struct span receive(void)
{
    ssize_t n = read(ends[0], received, sizeof(received));

    return span_of(received, n > 0 ? (size_t)n : 0);
}

START_TEST(text_lines)
{
    open_log(LOG_INFO, LOG_TEXT);
    log_info("journal", "segment %d opened", 7);
    ck_span_eq(receive(), "2026-01-31T12:00:00.123Z info journal: segment 7 opened\n");
    log_warn("x", "w");
    ck_span_eq(receive(), "2026-01-31T12:00:00.123Z warn x: w\n");
    log_error("x", "%s", "");
    ck_span_eq(receive(), "2026-01-31T12:00:00.123Z error x: \n");
    close_log();
}
END_TEST

START_TEST(an_error_is_told_of_and_freed)
{
    open_log(LOG_INFO, LOG_TEXT);
    ck_assert(!log_failed(LOG_WARN, "access", "nothing is listed", NULL));
    ck_span_eq(receive(), "");
    ck_assert(
        log_failed(LOG_WARN, "access", "nothing is listed", ERR(ERR_CONFLICT, "%d is there", 7)));
    ck_span_eq(receive(), "2026-01-31T12:00:00.123Z warn access: nothing is listed: 7 is there\n");
    close_log();
}
END_TEST

START_TEST(json_lines)
{
    open_log(LOG_DEBUG, LOG_JSON);
    log_debug("journal", "segment %d opened", 7);
    ck_span_eq(receive(), "{\"time\":\"2026-01-31T12:00:00.123Z\",\"level\":\"debug\","
                          "\"area\":\"journal\",\"message\":\"segment 7 opened\"}\n");
    close_log();
}
END_TEST

START_TEST(levels_below_are_silent)
{
    int evaluated = 0;

    open_log(LOG_WARN, LOG_TEXT);
    log_info("x", "hidden");
    log_debug("x", "hidden %d", ++evaluated);
    ck_assert_uint_eq(receive().n, 0);
    ck_assert_int_eq(evaluated, 0);
    ck_assert(!log_enabled(LOG_INFO));
    ck_assert(log_enabled(LOG_WARN));
    log_error("x", "shown");
    ck_assert_uint_gt(receive().n, 0);
    close_log();
}
END_TEST

static const struct escaping {
    const char *value, *text, *json;
} escapings[] = {
    {"two\nlines", "two\\nlines", "two\\nlines"},
    {"a\tb\r", "a\\tb\\u000d", "a\\tb\\u000d"},
    {"\x1b[31m\x7f", "\\u001b[31m\\u007f", "\\u001b[31m\\u007f"},
    {"\xc2\x80\xc2\x9b\xc2\xa0", "\\u0080\\u009b\xc2\xa0", "\\u0080\\u009b\xc2\xa0"},
    {"a\xe2\x80\xae\xd8\x9c", "a\\u202e\\u061c", "a\\u202e\\u061c"},
    {"\"\\/", "\"\\/", "\\\"\\\\/"},
    {"\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac"},
    {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
};

START_TEST(values_are_escaped)
{
    struct buf expected = {.max = 1000};

    for (size_t i = 0; i < ARRAY_LEN(escapings); i++) {
        const struct escaping *c = &escapings[i];

        open_log(LOG_INFO, LOG_TEXT);
        log_info("x", "%s", c->value);
        buf_clear(&expected);
        buf_printf(&expected, " info x: %s\n", c->text);
        ck_assert_msg(span_ends(receive(), buf_span(&expected)), "%s", received);
        log_configure(LOG_INFO, LOG_JSON);
        log_info("x", "%s", c->value);
        buf_clear(&expected);
        buf_printf(&expected, ",\"message\":\"%s\"}\n", c->json);
        ck_assert_msg(span_ends(receive(), buf_span(&expected)), "%s", received);
        close_log();
    }
    buf_done(&expected);
}
END_TEST

/* Around the longest message, with characters that cannot be cut anywhere. */
START_TEST(long_lines_are_cut_and_still_end)
{
    static const char *const chars[] = {"a", "\xe2\x82\xac", "\n", "\"", "\xff"};
    static const struct span ends_of[] = {SPAN_INIT("\n"), SPAN_INIT("\"}\n")};
    struct buf message = {.max = BUF_NO_CAP};

    for (size_t i = 0; i < 2 * ARRAY_LEN(chars); i++) {
        buf_clear(&message);
        open_log(LOG_INFO, i % 2 == 0 ? LOG_TEXT : LOG_JSON);
        while (message.n < 4200) {
            struct span line;

            buf_add_str(&message, chars[i / 2]);
            if (message.n > 100 && message.n < 4000 && message.n % 97 != 0)
                continue;
            log_info("x", "%s", buf_text(&message));
            line = receive();
            ck_assert_uint_le(line.n, LINE_BYTES);
            ck_assert(span_ends(line, ends_of[i % 2]));
            ck_assert(text_is_utf8(line));
            ck_assert_uint_eq(span_find_char(line, '\n', 0), line.n - 1);
        }
        ck_assert(span_find(span_of(received, LINE_BYTES), SPAN("...")) != SIZE_MAX);
        close_log();
    }
    buf_done(&message);
}
END_TEST

START_TEST(a_reader_that_does_not_read_stops_nobody)
{
    open_log(LOG_INFO, LOG_TEXT);
    errno = ENOENT;
    for (int i = 0; i < 10000; i++)
        log_info("x", "%100d", i);
    ck_assert_int_eq(errno, ENOENT);
    close_log();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, text_lines);
    tcase_add_test(tc, an_error_is_told_of_and_freed);
    tcase_add_test(tc, json_lines);
    tcase_add_test(tc, levels_below_are_silent);
    tcase_add_test(tc, values_are_escaped);
    tcase_add_test(tc, long_lines_are_cut_and_still_end);
    tcase_add_test(tc, a_reader_that_does_not_read_stops_nobody);
}
