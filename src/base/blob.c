/* One block holds the count and the bytes, so that sharing costs no allocation. Only what was a
 * buffer stays where it is: to copy very many bytes would take longer than a turn may. The count is
 * not atomic: there is one thread. A count that would wrap or sink below zero is our bug and
 * aborts. */
#include "base/blob.h"

#include "base/mem.h"
#include "base/must.h"

#include <limits.h>
#include <string.h>

struct blob *blob_alloc(size_t n)
{
    struct blob *b = mem_alloc(sizeof(*b) + n);

    *b = (struct blob){.refs = 1, .n = n, .p = (char *)(b + 1)};
    return b;
}

struct blob *blob_new(struct span s)
{
    struct blob *b = blob_alloc(s.n);

    if (s.n > 0)
        memcpy(b->p, s.p, s.n);
    return b;
}

struct blob *blob_take(struct buf *b)
{
    struct blob *taken = NEW(struct blob);

    MUST(b->arena == NULL && b->n > 0);
    *taken = (struct blob){.refs = 1, .n = b->n, .p = mem_resize(b->p, b->n)};
    *b = (struct buf){.max = b->max};
    return taken;
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
    if (--b->refs > 0)
        return;
    if (b->p != (char *)(b + 1))
        mem_free(b->p);
    mem_free(b);
}

struct span blob_span(const struct blob *b)
{
    return b != NULL ? span_of(b->p, b->n) : span_of(NULL, 0);
}
