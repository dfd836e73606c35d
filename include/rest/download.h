/* A long body whose length is known beforehand: what a resource sends a part at a time, as fast as
 * its client takes it, so that it is never in memory as a whole. The answer's head leaves first,
 * with the length; the connection ends with the body, so that a client sees when one was cut off.
 *
 * A resource sets response.download, and response.later_bytes for HEAD too. Whoever has the
 * response takes the download over, or closes it. */
#ifndef REST_DOWNLOAD_H
#define REST_DOWNLOAD_H

#include "base/span.h"

#include <stdbool.h>

struct download;

/* Where it goes: a connection. Called from the loop's tasks and timers, never from
 * download_start. */
struct download_sink {
    void (*write)(void *context, struct span bytes);
    /* Has the client's kernel taken all that was written? If not, download_go_on says when. */
    bool (*is_free)(void *context);
    /* Nothing more comes, and the download is gone. Not `is_whole`: less has come than was said. */
    void (*end)(void *context, bool is_whole);
};

struct download_ops {
    void (*start)(struct download *d, const struct download_sink *sink, void *context);
    void (*go_on)(struct download *d);
    void (*close)(struct download *d);
};

/* The first member of what a resource makes. */
struct download {
    const struct download_ops *ops; /* a static table */
};

/* It begins to send. */
static inline void download_start(struct download *d, const struct download_sink *sink,
                                  void *context)
{
    d->ops->start(d, sink, context);
}

/* The client has taken what was written. */
static inline void download_go_on(struct download *d)
{
    d->ops->go_on(d);
}

/* Nobody reads it any more, started or not. NULL is allowed. */
static inline void download_close(struct download *d)
{
    if (d != NULL)
        d->ops->close(d);
}

#endif
