/* The parser's life: which part the next bytes belong to, what is borrowed and what is copied.
 *
 * A head that comes in one piece is read where it stands. Only when the piece ends before the
 * request does are the head's bytes copied, and the spans into them moved. A body is copied when it
 * comes in several pieces or in chunks.
 *
 * Fixes of llhttp, and of Node.js around it, since 8.1.0 (October 2022) that concern requests, what
 * covers each here whichever llhttp is linked, and its test in check_h1.c:
 *
 *   fixed in           what was accepted                        our check          test
 *   8.1.1              an empty value ended by CR alone         find_line_end      bad_bytes
 *     CVE-2023-30589
 *   8.1.2, 9.2.1       folded values, SP before a field name    check_line         bad_fields
 *     CVE-2024-27982
 *   9.0.0              a head ended by CR LF CR and any byte    find_line_end      bad_bytes
 *     CVE-2025-23167
 *   9.0.0              any byte behind the CR of a chunk size   at_size_lf         bad_chunks
 *   9.0.0              any two bytes behind a chunk's data      at_data_cr, _lf    bad_chunks
 *   9.0.0              SP within and behind field names         on_name            bad_fields
 *   9.0.0              HTAB, FF, bytes from 0x80 in targets     read_target        bad_targets
 *   9.1.3              misread chunk extensions: several        fits_extension     chunk_extensions
 *                      with values, quoted pairs
 *   9.2.0              an empty field name                      on_name            bad_fields
 *   9.4.2              `close` with HTAB behind it, overlooked  read_connection    keep_alive
 *   Node.js 21.6.2     chunk extensions without end             count_extension    chunk_extensions
 *     CVE-2024-22019
 *
 * Older ones, which 8.1.0 has, are tested all the same: CVE-2021-22959 (SP before the colon),
 * CVE-2021-22960 (chunk extensions), CVE-2022-32213, -32214, -32215 and -35256 (Transfer-Encoding
 * read leniently, LF alone, values over several lines): bad_fields, bad_framing, bad_bytes.
 *
 * Nothing here depends on LLHTTP_STRICT_MODE, which a packaged 8.1.0 may be built without. */
#include "h1_private.h"

#include "base/header_field.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"

#include <stddef.h>
#include <string.h>

static const struct h1_failure failures[] = {
#define H1_FAILURE_AS_ROW(symbol, code, why) [symbol] = {code, why},
    H1_FAILURES(H1_FAILURE_AS_ROW)
#undef H1_FAILURE_AS_ROW
};

struct h1 *h1_new(const struct limits *limits)
{
    struct h1 *p = NEW(struct h1);

    p->limits = limits;
    buf_init(&p->head, (size_t)(limits->uri_bytes + H1_LINE_BYTES + limits->header_bytes));
    buf_init(&p->body, (size_t)limits->body_bytes);
    return p;
}

static void free_fields(struct h1 *p)
{
    mem_free(TAKE(p->fields));
    p->field_room = 0;
}

void h1_free(struct h1 *p)
{
    if (p == NULL)
        return;
    buf_done(&p->head);
    buf_done(&p->body);
    free_fields(p);
    mem_free(p);
}

void h1_next(struct h1 *p)
{
    MUST(p->part == H1_PART_DONE);
    buf_done(&p->head);
    buf_done(&p->body);
    if (p->field_room > H1_USUAL_FIELDS)
        free_fields(p);
    memset(&p->request, 0, sizeof(*p) - offsetof(struct h1, request));
}

enum h1_result h1_fail(struct h1 *p, enum h1_fail fail)
{
    p->part = H1_PART_FAILED;
    p->fail = fail;
    return H1_FAILED;
}

enum h1_fail h1_byte_fail(char c)
{
    return c == '\n' ? H1_BAD_LF : c == '\r' ? H1_BAD_CR : H1_BAD_CONTROL;
}

static void drop_front(struct span *s, size_t n)
{
    *s = span_sub(*s, n, s->n);
}

/* One empty line before a request line is overlooked (RFC 9112, section 2.2): old clients send one
 * behind a body. */
static void skip_empty_line(struct h1 *p, struct span *rest)
{
    while (p->head.n == 0 && p->empty_n < 2 && rest->n > 0 && rest->p[0] == "\r\n"[p->empty_n]) {
        p->empty_n++;
        drop_front(rest, 1);
    }
}

/* Takes what there is of the head: the bytes that were held back, if there are any, with the new
 * ones behind them, otherwise the new ones where they stand. */
static enum h1_result feed_head(struct h1 *p, struct span *rest)
{
    size_t held = p->head.n;
    struct span head = *rest;
    enum h1_result result;
    enum h1_fail fail;

    if (held > 0) {
        buf_add(&p->head, span_sub(*rest, 0, p->head.max - held));
        head = buf_span(&p->head);
    }
    result = h1_scan_head(p, head);
    if (result == H1_NEED_MORE) {
        if (held == 0)
            buf_add(&p->head, *rest);
        drop_front(rest, rest->n);
    }
    if (result != H1_REQUEST)
        return result;
    if (held > 0)
        buf_truncate(&p->head, p->head_bytes);
    drop_front(rest, p->head_bytes - held);
    fail = h1_parse_head(p, head);
    return fail == H1_OK ? H1_REQUEST : h1_fail(p, fail);
}

static enum h1_result feed_sized(struct h1 *p, struct span *rest)
{
    struct span piece = span_sub(*rest, 0, p->left);

    drop_front(rest, piece.n);
    p->left -= piece.n;
    if (p->left == 0 && p->body.n == 0) {
        p->request.body = piece;
        return H1_REQUEST;
    }
    buf_add(&p->body, piece);
    p->request.body = buf_span(&p->body);
    return p->left == 0 ? H1_REQUEST : H1_NEED_MORE;
}

static enum h1_result feed_body(struct h1 *p, struct span *rest)
{
    size_t before = rest->n;
    enum h1_result result =
        p->part == H1_PART_CHUNKED ? h1_feed_chunks(p, rest) : feed_sized(p, rest);

    p->body_taken += before - rest->n;
    if (result == H1_REQUEST)
        p->part = H1_PART_DONE;
    return result;
}

static void move_span(struct span *s, const char *from, const char *to)
{
    if (s->p != NULL)
        s->p = to + (s->p - from);
}

/* Copies a head that was read where it was fed, for those bytes end before the request does. */
static void hold_head(struct h1 *p)
{
    struct h1_request *r = &p->request;
    const char *from = r->method.p, *to;

    buf_add(&p->head, span_of(from, p->head_bytes));
    to = p->head.p;
    move_span(&r->method, from, to);
    move_span(&r->target, from, to);
    move_span(&r->host, from, to);
    for (size_t i = 0; i < r->header_count; i++) {
        move_span(&p->fields[i].name, from, to);
        move_span(&p->fields[i].value, from, to);
    }
}

static enum h1_result feed(struct h1 *p, struct span *rest)
{
    enum h1_result result = H1_REQUEST;

    if (p->part == H1_PART_HEAD) {
        if (p->empty_n > 0 || (rest->n > 0 && rest->p[0] == '\r'))
            skip_empty_line(p, rest);
        if (rest->n == 0)
            return H1_NEED_MORE;
        result = p->empty_n == 1 ? h1_fail(p, H1_BAD_CR) : feed_head(p, rest);
    }
    if (result == H1_REQUEST && p->part != H1_PART_DONE)
        result = feed_body(p, rest);
    if (result == H1_NEED_MORE && p->part != H1_PART_HEAD && p->head.n == 0)
        hold_head(p);
    return result;
}

enum h1_result h1_feed(struct h1 *p, struct span bytes, size_t *out_taken)
{
    struct span rest = bytes;
    enum h1_result result;

    MUST(p->part != H1_PART_DONE);
    result = p->part == H1_PART_FAILED ? H1_FAILED : feed(p, &rest);
    *out_taken = bytes.n - rest.n;
    return result;
}

const struct h1_request *h1_request(const struct h1 *p)
{
    MUST(p->part == H1_PART_DONE);
    return &p->request;
}

const struct h1_request *h1_awaiting(const struct h1 *p)
{
    MUST(h1_phase(p) == H1_BODY);
    return &p->request;
}

const struct h1_failure *h1_failure(const struct h1 *p)
{
    MUST(p->part == H1_PART_FAILED);
    return &failures[p->fail];
}

enum h1_phase h1_phase(const struct h1 *p)
{
    if (p->part == H1_PART_SIZED || p->part == H1_PART_CHUNKED)
        return H1_BODY;
    return p->part == H1_PART_HEAD && p->head.n > 0 ? H1_HEAD : H1_IDLE;
}

bool h1_is_fresh(const struct h1 *p)
{
    return p->part == H1_PART_HEAD && p->head.n == 0 && p->empty_n == 0;
}

size_t h1_phase_bytes(const struct h1 *p)
{
    switch (h1_phase(p)) {
    case H1_HEAD:
        return p->head.n;
    case H1_BODY:
        return p->body_taken;
    case H1_IDLE:
        break;
    }
    return 0;
}

size_t h1_held_bytes(const struct h1 *p)
{
    return p->head.size + p->body.size;
}

bool h1_take_continue(struct h1 *p)
{
    bool due = p->expects_continue && h1_phase(p) == H1_BODY && p->body_taken == 0;

    p->expects_continue = p->expects_continue && !due;
    return due;
}
