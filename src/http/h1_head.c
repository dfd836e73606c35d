/* The head of a request, in two steps.
 *
 * h1_scan_head() looks at bytes as they come and finds the head's end. It lets only lines through
 * that end with CRLF and hold no other control character than HTAB, stops at the first byte that
 * breaks a rule or a limit, and goes on where it stopped when more come.
 *
 * h1_parse_head() then gives the whole head to llhttp at once: every name and value arrives in one
 * piece, and nothing of llhttp's state lives on from one read, or one request, to the next. The
 * fields that decide about framing, routing and the connection are read here, not taken from
 * llhttp's flags: llhttp's opinion of them counts only as a veto. */
#include "h1_private.h"

#include "base/header_field.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"

#include <endian.h>
#include <llhttp.h>
#include <string.h>

const bool h1_plain[256] = {['\t'] = true, [' ' ... '~'] = true, [0x80 ... 0xff] = true};

/* Marks, with the top bit of each byte, the bytes of `x` that are below SP or DEL. Bytes above the
 * lowest one marked may be marked wrongly; only the lowest counts. */
static uint64_t mark_controls(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = ones << 7;
    uint64_t del = x ^ (ones * 0x7f);

    return (((x - ones * 0x20) & ~x) | ((del - ones) & ~del)) & tops;
}

/* Offset of the first byte at or after `at` that may not stand in a line, eight at a time. */
static size_t find_odd_byte(struct span s, size_t at)
{
    while (at + sizeof(uint64_t) <= s.n) {
        uint64_t bytes, marks;

        memcpy(&bytes, s.p + at, sizeof(bytes));
        marks = mark_controls(le64toh(bytes));
        if (marks == 0) {
            at += sizeof(bytes);
            continue;
        }
        at += (size_t)__builtin_ctzll(marks) / 8;
        if (!h1_plain[(unsigned char)s.p[at]])
            return at;
        at++;
    }
    while (at < s.n && h1_plain[(unsigned char)s.p[at]])
        at++;
    return at;
}

enum line { LINE_OPEN, LINE_ENDS, LINE_BAD };

/* Goes on at *at, which then is the offset of the CRLF or of the bad byte. */
static enum line find_line_end(struct span s, size_t *at)
{
    *at = find_odd_byte(s, *at);
    if (*at == s.n)
        return LINE_OPEN;
    if (s.p[*at] != '\r')
        return LINE_BAD;
    if (*at + 1 == s.n)
        return LINE_OPEN;
    return s.p[*at + 1] == '\n' ? LINE_ENDS : LINE_BAD;
}

static bool in_request_line(const struct h1 *p)
{
    return p->line_at == 0;
}

/* The head must end, or its request line, before it is longer than this. */
static size_t scan_limit(const struct h1 *p)
{
    if (in_request_line(p))
        return (size_t)p->limits->uri_bytes + H1_LINE_BYTES;
    return p->fields_at + (size_t)p->limits->header_bytes;
}

static enum h1_fail check_line(struct h1 *p, struct span line)
{
    if (in_request_line(p))
        return h1_read_request_line(line, p->limits, &p->request);
    if (line.p[0] == ' ' || line.p[0] == '\t')
        return H1_BAD_FOLD;
    return ++p->field_lines > H1_MAX_FIELDS ? H1_MANY_FIELDS : H1_OK;
}

/* The line is whole and ends before `at`. */
static void begin_line(struct h1 *p, size_t at)
{
    if (in_request_line(p))
        p->fields_at = at;
    p->line_at = p->scanned = at;
}

/* A request line that comes whole, as most do. When there is nothing wrong with any part of it,
 * none of its bytes is odd; what is wrong otherwise h1_scan_head tells. */
static void take_request_line(struct h1 *p, struct span bytes)
{
    struct span window = span_sub(bytes, 0, scan_limit(p));
    size_t end = p->scanned > 0 ? window.n : span_find_char(window, '\r', 0);

    if (window.n - end >= 2 && window.p[end + 1] == '\n' &&
        h1_read_request_line(span_sub(window, 0, end), p->limits, &p->request) == H1_OK)
        begin_line(p, end + 2);
}

/* Only the bytes up to the limit are looked at, so that what is wrong first does not depend on how
 * many come at once. */
enum h1_result h1_scan_head(struct h1 *p, struct span bytes)
{
    if (in_request_line(p))
        take_request_line(p, bytes);
    for (;;) {
        size_t limit = scan_limit(p);
        struct span window = span_sub(bytes, 0, limit);
        enum line found = find_line_end(window, &p->scanned);
        struct span line = span_sub(window, p->line_at, p->scanned);
        enum h1_fail fail;

        if (found == LINE_BAD)
            return h1_fail(p, h1_byte_fail(window.p[p->scanned]));
        if (found == LINE_OPEN && window.n < limit)
            return H1_NEED_MORE;
        if (found == LINE_OPEN)
            return h1_fail(p, in_request_line(p) ? H1_LONG_TARGET : H1_LONG_HEAD);
        if (line.n == 0 && !in_request_line(p)) {
            p->head_bytes = p->scanned + 2;
            return H1_REQUEST;
        }
        fail = check_line(p, line);
        if (fail != H1_OK)
            return h1_fail(p, fail);
        begin_line(p, p->scanned + 2);
    }
}

static enum h1_fail read_host(struct h1 *p, struct span value)
{
    if (!h1_is_authority(value))
        return H1_BAD_HOST;
    /* The authority of an absolute-form target overrides Host (RFC 9112, section 3.2.2). */
    if (p->request.host.p == NULL)
        p->request.host = value;
    return H1_OK;
}

static enum h1_fail read_content_length(struct h1 *p, struct span value)
{
    uint64_t n;

    if (!span_to_u64(value, &n))
        return H1_BAD_LENGTH;
    if (n > (uint64_t)p->limits->body_bytes)
        return H1_LONG_BODY;
    p->left = (size_t)n;
    p->request.has_body = true;
    return H1_OK;
}

/* A coding that we do not know is 501, but only where chunked comes last: otherwise nobody can tell
 * where the body ends (RFC 9112, sections 6.1 and 6.3). */
static enum h1_fail read_transfer_encoding(struct h1 *p, struct span value)
{
    struct span last = value, rest = value;

    if (p->request.is_http10)
        return H1_OLD_CODING;
    while (rest.p != NULL)
        last = span_trim(span_split(&rest, ','));
    if (!span_ieq(last, SPAN("chunked")))
        return H1_BAD_CODING;
    if (last.n != value.n)
        return H1_OTHER_CODING;
    p->is_chunked = true;
    p->request.has_body = true;
    return H1_OK;
}

static enum h1_fail read_connection(struct h1 *p, struct span value)
{
    struct span rest = value;

    while (rest.p != NULL) {
        struct span option = span_trim(span_split(&rest, ','));

        p->says_close |= span_ieq(option, SPAN("close"));
        p->says_keep_alive |= span_ieq(option, SPAN("keep-alive"));
    }
    return H1_OK;
}

/* HTTP/1.0 knows no interim answers (RFC 9110, section 10.1.1). */
static enum h1_fail read_expect(struct h1 *p, struct span value)
{
    if (p->request.is_http10)
        return H1_OK;
    if (!span_ieq(value, SPAN("100-continue")))
        return H1_BAD_EXPECT;
    p->expects_continue = true;
    return H1_OK;
}

enum { SEEN_HOST = 1, SEEN_LENGTH = 2, SEEN_CODING = 4, SEEN_KEY = 8 };

/* The fields that mean something here. */
static const struct special {
    struct span name;
    unsigned seen;                                         /* bit that notes it */
    unsigned excludes;                                     /* what must not have been seen before */
    enum h1_fail fail;                                     /* when it was */
    enum h1_fail (*read)(struct h1 *p, struct span value); /* NULL: it is only counted */
} specials[] = {
    {SPAN_INIT("host"), SEEN_HOST, SEEN_HOST, H1_TWO_HOSTS, read_host},
    {SPAN_INIT("content-length"), SEEN_LENGTH, SEEN_LENGTH | SEEN_CODING, H1_TWO_LENGTHS,
     read_content_length},
    {SPAN_INIT("transfer-encoding"), SEEN_CODING, SEEN_LENGTH | SEEN_CODING, H1_TWO_LENGTHS,
     read_transfer_encoding},
    {SPAN_INIT("authorization"), SEEN_KEY, SEEN_KEY, H1_TWO_KEYS, NULL},
    {SPAN_INIT("connection"), 0, 0, H1_OK, read_connection},
    {SPAN_INIT("expect"), 0, 0, H1_OK, read_expect},
};

static enum h1_fail read_field(struct h1 *p, const struct header_field *h)
{
    for (size_t i = 0; i < ARRAY_LEN(specials); i++) {
        const struct special *s = &specials[i];

        if (s->name.n != h->name.n || !span_ieq(s->name, h->name))
            continue;
        if (p->seen & s->excludes)
            return s->fail;
        p->seen |= s->seen;
        return s->read != NULL ? s->read(p, h->value) : H1_OK;
    }
    return H1_OK;
}

/* llhttp's callbacks: anything but 0 makes it stop. */
static int stop_at(struct h1 *p, enum h1_fail fail)
{
    p->fail = fail;
    return -1;
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct h1 *p = parser->data;
    struct span name = span_of(at, n);

    if (p->request.header_count == p->field_room || !text_is_token(name))
        return stop_at(p, H1_BAD_FIELD);
    p->fields[p->request.header_count++] = (struct header_field){name, span_of(at + n, 0)};
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct h1 *p = parser->data;

    p->fields[p->request.header_count - 1].value = span_trim(span_of(at, n));
    return 0;
}

static int on_value_complete(llhttp_t *parser)
{
    struct h1 *p = parser->data;
    enum h1_fail fail = read_field(p, &p->fields[p->request.header_count - 1]);

    return fail == H1_OK ? 0 : stop_at(p, fail);
}

static int on_head_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED; /* the body is not for llhttp */
}

static const llhttp_settings_t settings = {
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_head_complete,
};

/* The request line has passed our own check. */
static enum h1_fail parser_fail(llhttp_errno_t code)
{
    switch (code) {
    case HPE_INVALID_HEADER_TOKEN:
        return H1_BAD_FIELD;
    case HPE_INVALID_CONTENT_LENGTH:
        return H1_BAD_LENGTH;
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return H1_TWO_LENGTHS;
    case HPE_INVALID_TRANSFER_ENCODING:
        return H1_BAD_CODING;
    default:
        return H1_BAD_HEAD;
    }
}

/* Methods that llhttp has not, and some that it has, it would stop at, or read another way: it gets
 * to see one that changes nothing about a head. */
static struct span show_plain_line(struct h1 *p, llhttp_t *parser, struct span head)
{
    struct span line =
        p->request.is_http10 ? SPAN("POST / HTTP/1.0\r\n") : SPAN("POST / HTTP/1.1\r\n");

    MUST(llhttp_execute(parser, line.p, line.n) == HPE_OK);
    return span_sub(head, p->fields_at, head.n);
}

static enum h1_fail run_parser(struct h1 *p, struct span head)
{
    llhttp_t parser;
    llhttp_errno_t code;

    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = p;
    if (p->request.known_method == METHOD_OTHER)
        head = show_plain_line(p, &parser, head);
    code = llhttp_execute(&parser, head.p, head.n);
    if (p->fail != H1_OK)
        return p->fail;
    return code == HPE_PAUSED ? H1_OK : parser_fail(code);
}

static void make_field_room(struct h1 *p)
{
    p->field_room = p->field_lines <= H1_USUAL_FIELDS ? H1_USUAL_FIELDS : H1_MAX_FIELDS;
    p->fields = mem_resize(p->fields, p->field_room * sizeof(*p->fields));
}

enum h1_fail h1_parse_head(struct h1 *p, struct span bytes)
{
    struct h1_request *r = &p->request;
    enum h1_fail fail;

    /* The line was read when it ended; a head that is held may have moved since. */
    if (p->head.n > 0)
        h1_read_request_line(span_sub(bytes, 0, p->fields_at - 2), p->limits, r);
    if (p->field_lines > p->field_room)
        make_field_room(p);
    r->headers = p->fields;
    fail = run_parser(p, span_sub(bytes, 0, p->head_bytes));
    if (fail != H1_OK)
        return fail;
    if (!r->is_http10 && !(p->seen & SEEN_HOST))
        return H1_NO_HOST;
    r->keep_alive = !p->says_close && (!r->is_http10 || p->says_keep_alive);
    p->part = p->is_chunked ? H1_PART_CHUNKED : r->has_body ? H1_PART_SIZED : H1_PART_DONE;
    return H1_OK;
}
