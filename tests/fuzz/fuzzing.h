/* What the targets share: reading choices off the front of an input. An input that is used up reads
 * as zeros. */
#ifndef FUZZING_H
#define FUZZING_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/must.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct input {
    const uint8_t *p;
    size_t n;
};

static inline unsigned input_byte(struct input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

/* What comes before the next newline, or all that is left. */
static inline struct span input_line(struct input *in)
{
    struct span rest = span_of((const char *)in->p, in->n);
    struct span line = span_split(&rest, '\n');

    in->p += line.n + (rest.p != NULL);
    in->n -= line.n + (rest.p != NULL);
    return line;
}

static inline struct span input_rest(const struct input *in)
{
    return span_of((const char *)in->p, in->n);
}

/* What is in the buffer, in the arena; the buffer is done with. */
static inline struct span input_written(struct buf *b, struct arena *a)
{
    struct span copy = arena_copy(a, buf_span(b));

    buf_done(b);
    return copy;
}

#endif
