/* Lines end with CR LF, LF or CR, each of which may be split between two pieces; an empty one ends
 * the event. Comments are what the server says when it has nothing to say. */
#include "cli/stream.h"

void stream_init(struct stream *stream, size_t max_bytes, stream_fn *on_event, void *arg)
{
    *stream = (struct stream){.on_event = on_event, .arg = arg};
    buf_init(&stream->line, max_bytes);
    buf_init(&stream->id, max_bytes);
    buf_init(&stream->type, max_bytes);
    buf_init(&stream->data, max_bytes);
}

void stream_done(struct stream *stream)
{
    buf_done(&stream->line);
    buf_done(&stream->id);
    buf_done(&stream->type);
    buf_done(&stream->data);
}

static void forget_event(struct stream *stream)
{
    buf_clear(&stream->type);
    buf_clear(&stream->data);
    stream->has_data = false;
}

void stream_restart(struct stream *stream)
{
    forget_event(stream);
    buf_clear(&stream->line);
    stream->after_cr = stream->began = false;
}

static void end_event(struct stream *stream)
{
    struct span type = buf_span(&stream->type);

    if (stream->has_data) {
        struct stream_event event = {
            .id = buf_span(&stream->id),
            .type = type.n > 0 ? type : SPAN("message"),
            .data = buf_span(&stream->data),
        };

        stream->on_event(stream->arg, &event);
    }
    forget_event(stream);
}

static void set(struct buf *b, struct span value)
{
    buf_clear(b);
    buf_add(b, value);
}

static void take_field(struct stream *stream, struct span name, struct span value)
{
    if (span_eq(name, SPAN("data"))) {
        if (stream->has_data)
            buf_add_char(&stream->data, '\n');
        buf_add(&stream->data, value);
        stream->has_data = true;
    } else if (span_eq(name, SPAN("event"))) {
        set(&stream->type, value);
    } else if (span_eq(name, SPAN("id")) && span_find_char(value, '\0', 0) == value.n) {
        set(&stream->id, value);
    }
}

static void end_line(struct stream *stream)
{
    struct span line = buf_span(&stream->line), name;

    if (!stream->began && span_starts(line, SPAN("\xef\xbb\xbf")))
        line = span_sub(line, 3, line.n);
    stream->began = true;
    if (line.n == 0) {
        end_event(stream);
    } else if (line.p[0] != ':') {
        name = span_split(&line, ':');
        if (line.n > 0 && line.p[0] == ' ')
            line = span_sub(line, 1, line.n);
        take_field(stream, name, line);
    }
    buf_clear(&stream->line);
}

static bool is_over(const struct stream *stream)
{
    return buf_over(&stream->line) || buf_over(&stream->data) || buf_over(&stream->id) ||
           buf_over(&stream->type);
}

bool stream_feed(struct stream *stream, struct span bytes)
{
    while (bytes.n > 0 && !is_over(stream)) {
        size_t lf = span_find_char(bytes, '\n', 0);
        size_t end = MIN(lf, span_find_char(span_sub(bytes, 0, lf), '\r', 0));
        bool is_second_half = stream->after_cr && lf == 0;

        stream->after_cr = false;
        buf_add(&stream->line, span_sub(bytes, 0, end));
        if (end < bytes.n && !is_second_half && !is_over(stream)) {
            end_line(stream);
            stream->after_cr = bytes.p[end] == '\r';
        }
        bytes = span_sub(bytes, end + 1, bytes.n);
    }
    return !is_over(stream);
}
