#include "fuzzing.h"

unsigned input_byte(struct input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

struct span input_line(struct input *in)
{
    struct span rest = span_of((const char *)in->p, in->n);
    struct span line = span_split(&rest, '\n');

    in->p += line.n + (rest.p != NULL);
    in->n -= line.n + (rest.p != NULL);
    return line;
}

struct span input_rest(const struct input *in)
{
    return span_of((const char *)in->p, in->n);
}

struct span input_written(struct buf *b, struct arena *a)
{
    struct span copy = arena_copy(a, buf_span(b));

    buf_done(b);
    return copy;
}
