/* A line is put together in one buffer whose cap leaves room for the line's end: what of the
 * message does not fit is cut at a character, and the end is appended whatever happened. */
#include "base/log.h"

#include "base/clock.h"
#include "base/datetime.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum {
    LINE_BYTES = 4096,
    END_BYTES = 8, /* of the longest end: an ellipsis, `"}` and the newline */
};

static struct {
    enum log_level least;
    enum log_format format;
    int fd;
} settings = {LOG_INFO, LOG_TEXT, STDERR_FILENO};

static const char *const level_names[] = {LOG_LEVELS(AS_TEXT)};

static const struct log_form {
    const char *time, *level, *area, *message; /* what stands in front of each */
    const char *end;
    bool escape_quotes;
} forms[] = {
    [LOG_TEXT] = {"", " ", " ", ": ", "\n", false},
    [LOG_JSON] = {"{\"time\":\"", "\",\"level\":\"", "\",\"area\":\"", "\",\"message\":\"", "\"}\n",
                  true},
};

void log_configure(enum log_level level, enum log_format format)
{
    settings.least = level;
    settings.format = format;
}

void log_to(int fd)
{
    settings.fd = fd;
}

bool log_enabled(enum log_level level)
{
    return level >= settings.least;
}

static void add_time(struct buf *line)
{
    datetime_add(line, clock_unix_ns());
    buf_truncate(line, line->n - strlen("0000Z")); /* milliseconds are enough */
    buf_add_char(line, 'Z');
}

static void add_escaped_char(struct buf *line, struct span c, bool escape_quotes)
{
    if (c.p[0] == '\n')
        buf_add(line, SPAN("\\n"));
    else if (c.p[0] == '\t')
        buf_add(line, SPAN("\\t"));
    else if (text_is_control(c))
        text_add_escape(line, c);
    else if (escape_quotes && (c.p[0] == '"' || c.p[0] == '\\'))
        buf_printf(line, "\\%c", c.p[0]);
    else
        buf_add(line, c);
}

/* `text` is valid UTF-8. */
static void add_escaped(struct buf *line, struct span text, bool escape_quotes)
{
    while (text.n > 0 && !buf_over(line)) {
        struct span c = span_sub(text, 0, text_utf8_bytes(text));

        add_escaped_char(line, c, escape_quotes);
        text = span_sub(text, c.n, text.n);
    }
}

PRINTF_LIKE(3, 0)
static void add_message(struct buf *line, bool escape_quotes, const char *fmt, va_list args)
{
    char raw[LINE_BYTES];
    struct buf text = {.max = 3 * sizeof(raw)}; /* U+FFFD takes three bytes */
    int n = vsnprintf(raw, sizeof(raw), fmt, args);

    buf_add_utf8(&text, span_of(raw, n < 0 ? 0 : MIN((size_t)n, sizeof(raw) - 1)));
    add_escaped(line, buf_span(&text), escape_quotes);
    buf_done(&text);
}

static void add_end(struct buf *line, const char *end)
{
    bool cut = buf_over(line);

    line->max = LINE_BYTES;
    if (cut)
        buf_add_str(line, "...");
    buf_add_str(line, end);
}

/* Whoever reads our log may be slow or gone; neither may stop the service, so a line that two
 * attempts do not get rid of is lost. */
static void write_line(struct span line)
{
    ssize_t n = write(settings.fd, line.p, line.n);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        n = write(settings.fd, line.p, line.n);
    (void)n;
}

void log_line(enum log_level level, const char *area, const char *fmt, ...)
{
    const struct log_form *form = &forms[settings.format];
    struct buf line = {.max = LINE_BYTES - END_BYTES};
    int errno_before = errno;
    va_list args;

    if (!log_enabled(level))
        return;
    buf_add_str(&line, form->time);
    add_time(&line);
    buf_add_str(&line, form->level);
    buf_add_str(&line, level_names[level]);
    buf_add_str(&line, form->area);
    buf_add_str(&line, area);
    buf_add_str(&line, form->message);
    va_start(args, fmt);
    add_message(&line, form->escape_quotes, fmt, args);
    va_end(args);
    add_end(&line, form->end);
    write_line(buf_span(&line));
    buf_done(&line);
    errno = errno_before;
}

bool log_failed(enum log_level level, const char *area, const char *what, struct err *e)
{
    if (e == NULL)
        return false;
    log_line(level, area, "%s: %.*s", what, SPAN_FMT(err_message(e)));
    err_free(e);
    return true;
}
