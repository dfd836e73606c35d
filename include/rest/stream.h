/* Streams (docs/specification.md, section 7): a GET that asks for text/event-stream is answered
 * with each new entity, as server-sent events (HTML, section 9.2), for as long as the client reads.
 *
 * A stream has no queue. It has a place, the number of the last entity that it has looked at, and
 * reads on from there in what the resource keeps, whenever the client has taken what was sent and
 * there is more on disk. So a slow client costs no memory and misses nothing; what has been
 * forgotten before it came there it is told of (`event: gap`).
 *
 * Streams of one key that ask for the same are one view: what is written for one of them is kept
 * for a while for the others, as a chunk.
 *
 * Who listens pays: without a stream nothing here runs. */
#ifndef REST_STREAM_H
#define REST_STREAM_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct call;
struct rest;
struct streams; /* those of a service */
struct stream;  /* one client's */

/* What a resource has to be read, in the order of its numbers, which are the serials of records. A
 * static table. The call has rest, key, resource and query, and no request. Objects are looked at
 * in the turn in which they were asked for. */
struct stream_source {
    struct span (*name)(const void *object); /* `event:` */
    uint64_t (*number)(const void *object);
    size_t (*bytes)(const void *object); /* about as many as it is written in */
    /* The number of the newest one, on disk or not; 0: there is none. */
    uint64_t (*last)(const struct call *call);
    /* The greatest number of one that was kept and is not any more; 0: there is none. */
    uint64_t (*forgotten)(const struct call *call);
    /* The first one after that number; the one that follows. NULL: there is none. */
    void *(*after)(const struct call *call, uint64_t number);
    void *(*next)(const struct call *call, const void *object);
    /* May the key see it, and may it meet the conditions, as far as that shows at a glance? NULL:
     * all. */
    bool (*is_wanted)(const struct call *call, const void *object);
    /* Can it be written without waiting for the disk? If not, the disk has been asked for it. NULL:
     * all can. */
    bool (*is_ready)(const struct call *call, void *object);
    void (*add_json)(const struct call *call, void *object, struct arena *a, struct buf *b);
};

enum { STREAM_TEXT_BYTES = 65536 }; /* of one write, but for an entity that is longer */

/* Why the server ends one. */
#define STREAM_ENDS(X)                                                                             \
    X(STREAM_KEY_GONE, "the API key has changed, expired, or is gone")                             \
    X(STREAM_MADE_ROOM, "another account wanted one: the limit Streams")                           \
    X(STREAM_TOO_COSTLY, "its conditions take more than the limit RequestCpuMs")                   \
    X(STREAM_FAILED, "what it reads cannot be shown")                                              \
    X(STREAM_SHUTDOWN, "the server is shutting down")

enum stream_end {
#define STREAM_AS_ENUM(symbol, text) symbol,
    STREAM_ENDS(STREAM_AS_ENUM)
#undef STREAM_AS_ENUM
        STREAM_END_COUNT
};

/* Where it goes: a connection. Called from the loop's tasks, never from stream_start. */
struct stream_sink {
    /* Sends the text, now. CR LF stand behind it, which are not counted: so a chunk of a chunked
     * body (RFC 9112, section 7.1) is sent in one piece. */
    void (*write)(void *context, struct span text);
    /* Has the client's kernel taken all that was written? If not, stream_go_on says when. */
    bool (*is_free)(void *context);
    /* Nothing more comes, and the stream is gone. */
    void (*end)(void *context, enum stream_end why);
};

struct streams *streams_new(struct rest *rest);
/* All have been closed, or ended. NULL is allowed. */
void streams_free(struct streams *h);
size_t streams_count(const struct streams *h);
/* Texts that are kept for several. */
size_t streams_bytes(const struct streams *h);
/* Keys have changed: streams end whose key is not what it was. */
void streams_check_keys(struct streams *h);
/* All end, and none is opened any more. */
void streams_drain(struct streams *h);

/* What the request asks for: begins after its Last-Event-ID, or after n with the condition
 * ObjectNo>n, else with what is new from now on. ERR_INVALID_CONDITION_VALUE for a Last-Event-ID
 * that is none, ERR_INVALID_META_KEY for what a stream cannot do, ERR_OVERLOADED past
 * Limits.Streams. The caller owns the stream; HEAD makes none. */
struct err *stream_answer(struct call *call) MUST_USE;
/* It begins to send. */
void stream_start(struct stream *s, const struct stream_sink *sink, void *context);
/* The client has taken what was written, or there is something else to be done. */
void stream_go_on(struct stream *s);
/* Nobody reads it any more, started or not; also from inside a sink's write. NULL is allowed. */
void stream_close(struct stream *s);

#endif
