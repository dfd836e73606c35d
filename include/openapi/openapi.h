/* The OpenAPI 3.1 document of what a key may use (docs/specification.md, section 10). It is made
 * from the registry, and from the tables of properties that requests are read and checked by. */
#ifndef OPENAPI_OPENAPI_H
#define OPENAPI_OPENAPI_H

struct buf;
struct call;

/* Appends the document of what the call's key may use. What it needs besides is in the call's
 * arena. It asks the budget as it goes, and may give way. What is written is not whole when the
 * budget has said to stop, or when `out` is over. */
void openapi_write(struct call *call, struct buf *out);

#endif
