/* Requests out of hostile bytes. The first byte of the input says how the others are cut into
 * pieces. Whatever they are: in pieces they mean the same as whole, and what comes out is fit to be
 * handed on. */
#include "base/buf.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "http/h1.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct limits limits = {.uri_bytes = 64, .header_bytes = 256, .body_bytes = 64};

static bool has_control(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
            return true;
    return false;
}

static void check_request(const struct h1_request *r)
{
    MUST(r->method.n > 0 && r->target.n > 0 && r->target.n <= (size_t)limits.uri_bytes);
    MUST(r->target.p[0] == '/' || span_eq(r->target, SPAN("*")));
    MUST(span_find_char(r->target, ' ', 0) == r->target.n && !has_control(r->target));
    MUST(r->is_http10 || r->host.n > 0);
    MUST(r->header_count <= H1_MAX_FIELDS);
    MUST(r->body.n <= (size_t)limits.body_bytes && (r->has_body || r->body.p == NULL));
    for (size_t i = 0; i < r->header_count; i++) {
        MUST(r->headers[i].name.n > 0 && !has_control(r->headers[i].name));
        MUST(r->headers[i].value.p != NULL && !has_control(r->headers[i].value));
    }
}

static void note_request(struct buf *b, const struct h1_request *r)
{
    check_request(r);
    buf_printf(b, "%.*s %.*s %.*s %zu %d%d%d\n", SPAN_FMT(r->method), SPAN_FMT(r->target),
               SPAN_FMT(r->host), r->header_count, r->has_body, r->keep_alive, r->is_http10);
    for (size_t i = 0; i < r->header_count; i++)
        buf_printf(b, "%.*s:%.*s\n", SPAN_FMT(r->headers[i].name), SPAN_FMT(r->headers[i].value));
    buf_add(b, r->body);
}

static enum h1_result feed_piece(struct h1 *p, struct span piece, struct buf *notes)
{
    enum h1_result result;

    do {
        size_t taken;

        result = h1_feed(p, piece, &taken);
        MUST(taken <= piece.n);
        piece = span_sub(piece, taken, piece.n);
        if (result == H1_REQUEST) {
            note_request(notes, h1_request(p));
            h1_next(p);
        }
    } while (result == H1_REQUEST && piece.n > 0);
    MUST(result == H1_FAILED || piece.n == 0);
    return result;
}

/* Pieces of 1 to `most` bytes, each in a block of its own so that reading past it is seen. */
static struct buf run(struct span bytes, size_t most, uint32_t state)
{
    struct h1 *p = h1_new(&limits);
    struct buf notes = {.max = BUF_NO_CAP};
    enum h1_result result = H1_NEED_MORE;

    while (bytes.n > 0 && result != H1_FAILED) {
        size_t n = most == SIZE_MAX ? bytes.n : 1 + state % most;
        struct span piece = span_sub(bytes, 0, n);
        char *copy = mem_alloc(piece.n);

        state = state * 1664525 + 1013904223;
        memcpy(copy, piece.p, piece.n);
        result = feed_piece(p, span_of(copy, piece.n), &notes);
        mem_free(copy);
        bytes = span_sub(bytes, piece.n, bytes.n);
    }
    if (result == H1_FAILED)
        buf_printf(&notes, "%d %s", (int)h1_failure(p)->code, h1_failure(p)->why);
    else
        buf_printf(&notes, "phase %d %zu", h1_phase(p), h1_phase_bytes(p));
    h1_free(p);
    return notes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span bytes = span_of((const char *)data + 1, n > 0 ? n - 1 : 0);
    struct buf whole, cut;

    if (n == 0)
        return 0;
    whole = run(bytes, SIZE_MAX, 0);
    cut = run(bytes, 1 + data[0] % 32, data[0]);
    MUST(span_eq(buf_span(&whole), buf_span(&cut)));
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
