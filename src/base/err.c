/* An error is one block: code, places and the message behind it. Making one may be slow, since an
 * answer to a client follows: the message is formatted within a bound, cleaned to valid UTF-8 and
 * cut to 10 000 characters, the places end at 32. File names in the trace begin at the root of the
 * repository, whatever directory the compiler ran in. */
#include "base/err.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST_PLACES = 4,
    MOST_PLACES = 32,
    MESSAGE_CHARS = 10000,
    MESSAGE_BYTES = 4 * MESSAGE_CHARS, /* hold that many characters, however long each is */
};

struct place {
    const char *function;
    const char *file;
    int line;
};

struct err {
    enum err_code code;
    unsigned retry_after;
    struct place *places;
    size_t place_count;
    size_t place_size;
    size_t message_n;
    char message[];
};

static const struct err_info infos[ERR_CODE_COUNT] = {
#define ERR_AS_INFO(symbol, name, number, status) [symbol] = {SPAN_INIT(name), number, status},
    ERR_CODES(ERR_AS_INFO)
#undef ERR_AS_INFO
};

const struct err_info *err_info(enum err_code code)
{
    MUST((size_t)code < ERR_CODE_COUNT);
    return &infos[code];
}

bool err_repeats(enum err_code code)
{
    return code > 0 && err_info(code)->number == err_info(code - 1)->number;
}

/* Arguments may be as long as a request body: what lies beyond MESSAGE_BYTES is never formatted. */
PRINTF_LIKE(2, 0)
static void add_formatted(struct buf *text, const char *fmt, va_list args)
{
    char *raw = mem_alloc(MESSAGE_BYTES + 1);
    int length = vsnprintf(raw, MESSAGE_BYTES + 1, fmt, args);

    MUST(length >= 0);
    buf_add_utf8(text, span_of(raw, MIN((size_t)length, MESSAGE_BYTES)));
    mem_free(raw);
}

/* e may be NULL: a new error. The message becomes `text`, cut to its limit. */
static struct err *set_message(struct err *e, const struct buf *text)
{
    struct span message = text_cut(buf_span(text), MESSAGE_CHARS);

    e = mem_resize(e, sizeof(*e) + message.n);
    e->message_n = message.n;
    if (message.n > 0)
        memcpy(e->message, message.p, message.n);
    return e;
}

struct err *err_make(enum err_code code, const char *function, const char *file, int line,
                     const char *fmt, ...)
{
    struct buf text = {.max = BUF_NO_CAP};
    struct err *e;
    va_list args;

    va_start(args, fmt);
    add_formatted(&text, fmt, args);
    va_end(args);
    e = set_message(NULL, &text);
    buf_done(&text);
    e->code = code;
    e->retry_after = 0;
    e->places = NULL;
    e->place_count = e->place_size = 0;
    return err_pass(e, function, file, line);
}

struct err *err_pass(struct err *e, const char *function, const char *file, int line)
{
    if (e->place_count == MOST_PLACES)
        return e;
    if (e->place_count == e->place_size) {
        e->place_size = MAX(FIRST_PLACES, 2 * e->place_size);
        e->places = mem_resize(e->places, e->place_size * sizeof(*e->places));
    }
    e->places[e->place_count++] = (struct place){function, file, line};
    return e;
}

struct err *err_prefix(struct err *e, const char *fmt, ...)
{
    struct buf text = {.max = BUF_NO_CAP};
    va_list args;

    va_start(args, fmt);
    add_formatted(&text, fmt, args);
    va_end(args);
    buf_add(&text, err_message(e));
    e = set_message(e, &text);
    buf_done(&text);
    return e;
}

struct err *err_recode(struct err *e, enum err_code code)
{
    e->code = code;
    return e;
}

enum err_code err_code(const struct err *e)
{
    return e->code;
}

struct span err_message(const struct err *e)
{
    return span_of(e->message, e->message_n);
}

/* The compiler's name of this file tells what it puts in front of the names of all files. */
static const char *without_root(const char *file)
{
    struct span here = SPAN(__FILE__);
    struct span root = span_sub(here, 0, here.n - SPAN("src/base/err.c").n);

    return span_starts(span_str(file), root) ? file + root.n : file;
}

void err_add_trace(const struct err *e, struct buf *b)
{
    for (size_t i = 0; i < e->place_count; i++) {
        const struct place *place = &e->places[i];

        buf_printf(b, "%sat %s (%s:%d)", i > 0 ? "\n" : "", place->function,
                   without_root(place->file), place->line);
    }
}

struct err *err_set_retry_after(struct err *e, unsigned seconds)
{
    e->retry_after = seconds;
    return e;
}

unsigned err_retry_after(const struct err *e)
{
    return e->retry_after;
}

void err_free(struct err *e)
{
    if (e == NULL)
        return;
    mem_free(e->places);
    mem_free(e);
}
