/* An event stream as it comes in (text/event-stream; the HTML standard, "Server-sent events"):
 * bytes in pieces of any size become events. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "base/buf.h"

/* Spans are valid during the call. An id stays until another comes; type is `message` when the
 * stream named none. */
struct stream_event {
    struct span id, type, data;
};

typedef void stream_fn(void *arg, const struct stream_event *event);

struct stream {
    struct buf line, id, type, data;
    bool has_data, after_cr, began;
    stream_fn *on_event;
    void *arg;
};

/* An event or a line has at most max_bytes. */
void stream_init(struct stream *stream, size_t max_bytes, stream_fn *on_event, void *arg);
void stream_done(struct stream *stream);
/* Another connection: what came of an event that had not ended is dropped. The id stays. */
void stream_restart(struct stream *stream);
/* Calls on_event for each event that ends in `bytes`. False: one is too long, and nothing comes any
 * more until stream_restart. */
bool stream_feed(struct stream *stream, struct span bytes) MUST_USE;

#endif
