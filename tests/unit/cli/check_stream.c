#include "testing.h"

#include "cli/stream.h"

static struct buf seen;

/* Each event as `id|type|data;`. */
static void on_event(void *arg, const struct stream_event *event)
{
    ck_assert_ptr_eq(arg, &seen);
    buf_printf(&seen, "%.*s|%.*s|%.*s;", SPAN_FMT(event->id), SPAN_FMT(event->type),
               SPAN_FMT(event->data));
}

static const struct {
    const char *text;
    const char *events;
} cases[] = {
    {"id: 1\nevent: A\ndata: {}\n\n", "1|A|{};"},
    {"id:1\r\nevent:A\r\ndata:x\r\n\r\n", "1|A|x;"},
    {"id: 1\revent: A\rdata: x\r\rdata: y\r\r", "1|A|x;1|message|y;"},
    {"data: a\ndata: b\n\n", "|message|a\nb;"},
    {"data\n\n", "|message|;"},
    {"data:  two blanks\n\n", "|message| two blanks;"},
    {": a comment\n\n: another\ndata: x\n\n", "|message|x;"},
    {"event: A\n\ndata: x\n\n", "|message|x;"}, /* without data it is none */
    {"id: 7\n\ndata: x\n\n", "7|message|x;"},
    {"retry: 10\nnothing: x\ndata: y\n\n", "|message|y;"},
    {"\xef\xbb\xbf"
     "data: x\n\n",
     "|message|x;"},
    {"data: not ended\n", ""},
};

/* Whole, and in pieces of every size. */
START_TEST(events_are_read)
{
    struct span text = span_str(cases[_i].text);

    for (size_t piece = 1; piece <= text.n; piece++) {
        struct stream stream;

        buf_init(&seen, BUF_NO_CAP);
        stream_init(&stream, 1000, on_event, &seen);
        for (size_t at = 0; at < text.n; at += piece)
            ck_assert(stream_feed(&stream, span_sub(text, at, at + piece)));
        ck_span_is(buf_span(&seen), span_str(cases[_i].events));
        stream_done(&stream);
        buf_done(&seen);
    }
}
END_TEST

START_TEST(what_is_too_long_is_noticed)
{
    struct stream stream;

    buf_init(&seen, BUF_NO_CAP);
    stream_init(&stream, 10, on_event, &seen);
    ck_assert(stream_feed(&stream, SPAN("data: 1\n\n")));
    ck_assert(!stream_feed(&stream, SPAN("data: 0123456789\n\n")));
    ck_span_eq(buf_span(&seen), "|message|1;");
    stream_done(&stream);
    stream_init(&stream, 10, on_event, &seen);
    ck_assert(!stream_feed(&stream, SPAN("data: 12\ndata: 34\ndata: 56\ndata: 78\n\n")));
    ck_span_eq(buf_span(&seen), "|message|1;");
    stream_done(&stream);
    buf_done(&seen);
}
END_TEST

START_TEST(another_connection_begins_anew)
{
    struct stream stream;

    buf_init(&seen, BUF_NO_CAP);
    stream_init(&stream, 1000, on_event, &seen);
    ck_assert(stream_feed(&stream, SPAN("id: 5\ndata: x\n\nevent: A\ndata: half")));
    stream_restart(&stream);
    ck_assert(stream_feed(&stream, SPAN("data: y\n\n")));
    ck_span_eq(buf_span(&seen), "5|message|x;5|message|y;");
    stream_done(&stream);
    buf_done(&seen);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, events_are_read, 0, ARRAY_LEN(cases));
    tcase_add_test(tc, what_is_too_long_is_noticed);
    tcase_add_test(tc, another_connection_begins_anew);
}
