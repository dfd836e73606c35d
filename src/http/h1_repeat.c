/* Fields that come again. With each request of a connection a client sends the same ones, most
 * often byte for byte. What was found out about them then is still true, so that they are neither
 * scanned nor given to llhttp: that halves what a head costs, and more where there are many fields.
 * Method and version must be the same too; of the target llhttp asks less than h1_target.c does.
 *
 * Only requests without a body and without expectation are remembered: what decides about framing
 * is read each time. Fields that hold a secret are not: no copy of a key is kept. All connections
 * share what is remembered. */
#include "h1_private.h"

#include "base/mem.h"
#include "service/mask.h"

#include <string.h>

enum { REPEAT_BYTES = 1024, METHOD_BYTES = 8 };

struct h1_repeat {
    char bytes[REPEAT_BYTES]; /* the field lines and the empty line */
    size_t n;                 /* 0: nothing yet */
    char method[METHOD_BYTES];
    size_t method_bytes;
    bool is_http10, keep_alive;
    struct span host; /* spans are in `bytes` */
    struct request_header fields[H1_USUAL_FIELDS];
    size_t field_count;
};

struct h1_repeat *h1_repeat_new(void)
{
    return NEW(struct h1_repeat);
}

void h1_repeat_free(struct h1_repeat *repeat)
{
    mem_free(repeat);
}

bool h1_repeats(const struct h1 *p, struct span bytes)
{
    const struct h1_repeat *last = p->repeat;

    return last != NULL && last->n > 0 && bytes.n - p->fields_at >= last->n &&
           last->is_http10 == p->request.is_http10 &&
           span_eq(p->request.method, span_of(last->method, last->method_bytes)) &&
           memcmp(bytes.p + p->fields_at, last->bytes, last->n) == 0;
}

size_t h1_repeat_bytes(const struct h1 *p)
{
    return p->repeat->n;
}

unsigned h1_repeat_fields(const struct h1 *p)
{
    return (unsigned)p->repeat->field_count;
}

static void move_fields(struct request_header *fields, size_t count, const char *from,
                        const char *to)
{
    for (size_t i = 0; i < count; i++) {
        h1_move_span(&fields[i].name, from, to);
        h1_move_span(&fields[i].value, from, to);
    }
}

void h1_recall(struct h1 *p, struct span bytes)
{
    const struct h1_repeat *last = p->repeat;
    const char *to = bytes.p + p->fields_at;
    struct h1_request *r = &p->request;

    memcpy(p->fields, last->fields, last->field_count * sizeof(*p->fields));
    move_fields(p->fields, last->field_count, last->bytes, to);
    r->header_count = last->field_count;
    r->keep_alive = last->keep_alive;
    if (r->host.p == NULL) {
        r->host = last->host;
        h1_move_span(&r->host, last->bytes, to);
    }
}

static bool has_secret(const struct h1_request *r)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (mask_is_secret_header(r->headers[i].name))
            return true;
    return false;
}

static bool is_common(const struct h1 *p, struct span fields)
{
    const struct h1_request *r = &p->request;

    return !r->has_body && !p->expects_continue && r->method.n <= METHOD_BYTES &&
           r->header_count > 0 && r->header_count <= H1_USUAL_FIELDS && fields.n <= REPEAT_BYTES &&
           !has_secret(r);
}

void h1_remember(struct h1 *p, struct span bytes)
{
    struct span fields = span_sub(bytes, p->fields_at, p->head_bytes);
    const struct h1_request *r = &p->request;
    struct h1_repeat *last = p->repeat;

    if (last == NULL || !is_common(p, fields))
        return;
    memcpy(last->bytes, fields.p, fields.n);
    last->n = fields.n;
    memcpy(last->method, r->method.p, r->method.n);
    last->method_bytes = r->method.n;
    last->is_http10 = r->is_http10;
    last->keep_alive = r->keep_alive;
    last->field_count = r->header_count;
    memcpy(last->fields, r->headers, r->header_count * sizeof(*r->headers));
    move_fields(last->fields, r->header_count, fields.p, last->bytes);
    last->host = h1_find(r, SPAN("Host"));
    h1_move_span(&last->host, fields.p, last->bytes);
}
