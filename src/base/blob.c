/* One block holds the count and the bytes, so that sharing costs no allocation and reading no
 * second step through memory. The count is not atomic: there is one thread. A count that would wrap
 * or sink below zero is our bug and aborts. */
#include "base/blob.h"

#include "base/mem.h"
#include "base/must.h"

#include <limits.h>
#include <string.h>

struct blob *blob_alloc(size_t n)
{
    struct blob *b = mem_alloc(sizeof(*b) + n);

    b->refs = 1;
    b->n = n;
    return b;
}

struct blob *blob_new(struct span s)
{
    struct blob *b = blob_alloc(s.n);

    if (s.n > 0)
        memcpy(b->p, s.p, s.n);
    return b;
}

struct blob *blob_ref(struct blob *b)
{
    MUST(b->refs > 0 && b->refs < UINT_MAX);
    b->refs++;
    return b;
}

void blob_unref(struct blob *b)
{
    if (b == NULL)
        return;
    MUST(b->refs > 0);
    if (--b->refs == 0)
        mem_free(b);
}

struct span blob_span(const struct blob *b)
{
    return b != NULL ? span_of(b->p, b->n) : span_of(NULL, 0);
}
