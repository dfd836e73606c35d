/* Shared, immutable bytes with a reference count: payloads and rendered answers, which outlive
 * the request that made them. */
#ifndef BASE_BLOB_H
#define BASE_BLOB_H

#include "base/buf.h"
#include "base/span.h"

struct blob {
    unsigned refs;
    size_t n;
    char *p; /* behind this, or a block of its own that was a buffer's */
};

/* A copy of s with one reference, the caller's. */
struct blob *blob_new(struct span s);
/* n bytes to be filled by the caller before it shares them. */
struct blob *blob_alloc(size_t n);
/* The buffer's bytes, which are not copied: it is empty then. It is over no arena. */
struct blob *blob_take(struct buf *b);
struct blob *blob_ref(struct blob *b);
/* NULL is allowed. Frees with the last reference. */
void blob_unref(struct blob *b);
/* NULL gives the absent span. */
struct span blob_span(const struct blob *b);

#endif
