/* What the files of `stream` share: stream.c has their lives, stream_view.c what is written once
 * for several, stream_batch.c writes it, stream_pump.c says when. */
#ifndef REST_STREAM_INNER_H
#define REST_STREAM_INNER_H

#include "access/account.h"
#include "base/budget.h"
#include "io/loop.h"
#include "io/timer.h"
#include "query/query.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "rest/stream.h"
#include "store/turn_wait.h"

/* Texts that are written once for several, in all. */
enum { STREAM_CHUNK_BYTES_MOST = 16 << 20 };

struct streams {
    struct rest *rest;
    struct list started; /* struct stream, the oldest first */
    struct list views;   /* struct stream_view */
    struct list due;     /* struct stream that have something to do: the first is next */
    struct list reading; /* struct stream that wait for the disk */
    struct list chunks;  /* struct stream_chunk, the oldest first */
    size_t chunk_bytes;
    size_t open; /* that count for Limits.Streams */
    struct stream *current;
    struct loop_hook at_turn_end; /* added while there are views */
    struct loop_task pump;
    struct turn_wait commit;
    struct timer gather; /* until they are told of what is new */
    struct timer again;  /* until the disk is asked again */
    struct timer tick;
    uint64_t told;    /* up to this number they have been told of what is new */
    uint64_t told_ms; /* when */
    bool is_draining;
};

/* What is asked for, by whom: streams for which that is the same get the same texts. */
struct stream_view {
    struct list_link link;
    struct streams *streams;
    const struct stream_source *source;
    struct call call;
    struct query query;
    struct arena arena;         /* what call and query point to */
    struct span target;         /* in normal form, without where it begins */
    struct list members;        /* struct stream */
    struct list chunks;         /* struct stream_chunk, the oldest first */
    struct stream_batch *batch; /* under way; or NULL */
};

/* What there is to send to who is at `from`; then it is at `to`. */
struct stream_chunk {
    struct list_link of_view, of_all;
    struct stream_view *view;
    uint64_t from, to;
    struct buf text; /* with CR LF behind it; empty: nothing there was to be shown */
};

struct stream {
    struct list_link link; /* in `started` */
    struct list_link of_view;
    struct list_link due; /* in `due` or in `reading` */
    struct stream_view *view;
    const struct stream_sink *sink; /* NULL: not started */
    void *context;
    uint64_t place; /* the number that it has come to */
    uint64_t gap;   /* up to this number it knows what has been forgotten */
    uint64_t sent_ms;
    bool is_counted; /* in streams.open, and for its account */
    bool greets;     /* a first comment shows that it has begun */
    bool is_reading; /* in the list of that name */
    bool is_gone;    /* to be freed when its turn is over */
    bool is_ending;
    enum stream_end why; /* then */
};

enum stream_render {
    STREAM_RENDERED, /* there is a chunk */
    STREAM_NOTHING,  /* there is nothing behind that place */
    STREAM_GIVES_WAY,
    STREAM_READS, /* it waits for the disk */
    STREAM_REFUSED
};

/* stream_view.c */
/* One more member. The call's query has been parsed; `uri` is what of it is left without the place
 * to begin at. */
struct err *stream_view_join(struct streams *h, struct call *call, const struct uri *uri,
                             struct stream *s) MUST_USE;
/* Frees what nobody is a member of. */
void stream_view_leave(struct stream *s);
/* Is its key still what it was? */
bool stream_view_is_allowed(const struct stream_view *v);
/* NULL: nobody was there yet, or too long ago. */
struct stream_chunk *stream_view_find(struct stream_view *v, uint64_t from);
/* The least place from which there is a chunk, among those behind `from`; UINT64_MAX: none. */
uint64_t stream_view_next_place(const struct stream_view *v, uint64_t from);
/* Takes the text. */
struct stream_chunk *stream_view_add(struct stream_view *v, uint64_t from, uint64_t to,
                                     struct buf *text);
void stream_chunk_free(struct stream_chunk *chunk);

/* stream_batch.c */
/* Writes what comes behind the stream's place, over several turns if need be: to be called until it
 * does not give way. */
enum stream_render stream_render(struct stream *s, struct stream_chunk **out_chunk,
                                 enum stream_end *out_why);
/* If it is that of a stream which is closed; NULL: whosever it is. */
void stream_batch_cancel(struct stream_view *v, const struct stream *of);

/* stream_pump.c */
void stream_pump_init(struct streams *h);
/* There are views, or none any more. */
void stream_pump_start(struct streams *h);
void stream_pump_stop(struct streams *h);
void stream_end(struct stream *s, enum stream_end why);

/* stream.c */
/* It does not count any more. */
void stream_uncount(struct stream *s);

#endif
