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

unsigned input_byte(struct input *in);
/* What comes before the next newline, or all that is left. */
struct span input_line(struct input *in);
struct span input_rest(const struct input *in);
/* What is in the buffer, in the arena; the buffer is done with. */
struct span input_written(struct buf *b, struct arena *a);

#endif
