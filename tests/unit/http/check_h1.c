/* Most tests are tables of raw bytes with what comes out of them, in short:
 *
 *     GET /x -            a request without a body       POST /x [abc]    with one
 *     GET / - close       the connection ends after it   a | b            one after the other
 *     !400                refused with that status       idle, head, body  more bytes are awaited
 *
 * Every row is fed whole, byte by byte and in random pieces, and all that can be seen of the
 * requests must be the same each time. */
#include "testing.h"

#include "base/buf.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "base/rng.h"
#include "http/h1.h"

#include <string.h>

#define LINE "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define GET LINE HOST
#define POST "POST / HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define END "\r\n"

struct row {
    struct span raw;
    const char *brief;
};

#define ROW(raw, brief)                                                                            \
    {                                                                                              \
        SPAN_INIT(raw), brief                                                                      \
    }

#define BAD(raw) ROW(raw, "!400")

struct transcript {
    struct buf brief; /* as in the tables */
    struct buf full;  /* everything */
};

static void transcript_init(struct transcript *t)
{
    buf_init(&t->brief, BUF_NO_CAP);
    buf_init(&t->full, BUF_NO_CAP);
}

static void transcript_done(struct transcript *t)
{
    buf_done(&t->brief);
    buf_done(&t->full);
}

static void note_request(struct transcript *t, const struct h1_request *r)
{
    if (t->brief.n > 0)
        buf_add_str(&t->brief, " | ");
    buf_printf(&t->brief, "%.*s %.*s ", SPAN_FMT(r->method), SPAN_FMT(r->target));
    if (r->has_body)
        buf_printf(&t->brief, "[%.*s]", SPAN_FMT(r->body));
    else
        buf_add_char(&t->brief, '-');
    if (!r->keep_alive)
        buf_add_str(&t->brief, " close");

    buf_printf(&t->full, "%s\n%d host=%d %.*s body=%zu\n", buf_text(&t->brief), r->is_http10,
               r->host.p != NULL, SPAN_FMT(r->host), r->body.n);
    for (size_t i = 0; i < r->header_count; i++)
        buf_printf(&t->full, "<%.*s>=<%.*s>\n", SPAN_FMT(r->headers[i].name),
                   SPAN_FMT(r->headers[i].value));
}

static void note_end(struct transcript *t, const struct h1 *p, enum h1_result result)
{
    static const char *const phases[] = {"idle", "head", "body"};

    if (t->brief.n > 0)
        buf_add_str(&t->brief, " | ");
    if (result == H1_FAILED) {
        buf_printf(&t->brief, "!%d", err_info(h1_failure(p)->code)->status);
        buf_printf(&t->full, "%s", h1_failure(p)->why);
    } else {
        buf_add_str(&t->brief, phases[h1_phase(p)]);
        buf_printf(&t->full, "%zu", h1_phase_bytes(p));
    }
}

/* Feeds one piece to its end. */
static enum h1_result feed_piece(struct h1 *p, struct span piece, struct transcript *t)
{
    enum h1_result result;

    do {
        size_t taken;

        result = h1_feed(p, piece, &taken);
        ck_assert_uint_le(taken, piece.n);
        piece = span_sub(piece, taken, piece.n);
        if (result == H1_REQUEST) {
            note_request(t, h1_request(p));
            h1_next(p);
        }
    } while (result == H1_REQUEST && piece.n > 0);
    if (result == H1_NEED_MORE)
        ck_assert_uint_eq(piece.n, 0);
    return result;
}

/* Each piece has a block of its own, so that a read beyond it, or after its end, is seen. */
static void run(struct span raw, size_t least, size_t most, const struct limits *limits,
                struct transcript *t)
{
    struct h1 *p = h1_new(limits);
    enum h1_result result = H1_NEED_MORE;

    transcript_init(t);
    while (raw.n > 0 && result != H1_FAILED) {
        size_t wanted = least + (size_t)rng_below(most - least + 1);
        size_t n = MIN(raw.n, wanted);
        char *piece = mem_alloc(n);

        memcpy(piece, raw.p, n);
        result = feed_piece(p, span_of(piece, n), t);
        mem_free(piece);
        raw = span_sub(raw, n, raw.n);
    }
    note_end(t, p, result);
    h1_free(p);
}

/* The transcript of the whole; in other pieces it must be the same. */
static void run_all_ways(struct span raw, const struct limits *limits, struct transcript *t)
{
    static const struct {
        size_t least, most, times;
    } ways[] = {{1, 1, 1}, {2, 2, 1}, {1, 8, 3}, {1, 64, 3}, {20, 300, 2}};

    run(raw, MAX(raw.n, 1), MAX(raw.n, 1), limits, t);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        for (size_t k = 0; k < ways[i].times; k++) {
            struct transcript other;

            run(raw, ways[i].least, ways[i].most, limits, &other);
            ck_assert_msg(span_eq(buf_span(&t->full), buf_span(&other.full)),
                          "<%.*s>: whole '%s' '%s', in pieces of %zu to %zu '%s' '%s'",
                          SPAN_FMT(raw), buf_text(&t->brief), buf_text(&t->full), ways[i].least,
                          ways[i].most, buf_text(&other.brief), buf_text(&other.full));
            transcript_done(&other);
        }
}

static void check_raw(struct span raw, const struct limits *limits, const char *brief)
{
    struct transcript t;

    run_all_ways(raw, limits, &t);
    ck_assert_msg(strcmp(buf_text(&t.brief), brief) == 0, "<%.*s>: '%s', should be '%s' (%s)",
                  SPAN_FMT(raw), buf_text(&t.brief), brief, buf_text(&t.full));
    transcript_done(&t);
}

static void check_rows(const struct row *rows, size_t count)
{
    struct limits limits;

    limits_init(&limits);
    for (size_t i = 0; i < count; i++)
        check_raw(rows[i].raw, &limits, rows[i].brief);
}

#define TABLE_TEST(name, rows)                                                                     \
    START_TEST(name)                                                                               \
    {                                                                                              \
        check_rows((rows), ARRAY_LEN(rows));                                                       \
    }                                                                                              \
    END_TEST

static const struct row simple_rows[] = {
    ROW(GET END, "GET / - | idle"),
    ROW(LINE "host:a\r\n" END, "GET / - | idle"),
    ROW(GET "Accept:\r\nX: \t \r\n" END, "GET / - | idle"),
    ROW("REPORT /X/_/limit=1 HTTP/1.1\r\n" HOST END, "REPORT /X/_/limit=1 - | idle"),
    ROW("PATCH /a?b=c HTTP/1.1\r\n" HOST END, "PATCH /a?b=c - | idle"),
    ROW("GET /A/b>1&c<\"x\"&d='|{}\\^`%41 HTTP/1.1\r\n" HOST END,
        "GET /A/b>1&c<\"x\"&d='|{}\\^`%41 - | idle"),
    ROW("GET //a//b/?? HTTP/1.1\r\n" HOST END, "GET //a//b/?? - | idle"),
    ROW(GET "X: \xc3\xa6 \x80\xff\ty\r\n" END, "GET / - | idle"),
    ROW(GET "Upgrade: h2c\r\nConnection: upgrade\r\n" END GET END, "GET / - | GET / - | idle"),
    ROW(POST "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 2\r\n" END "ab" GET END,
        "POST / [ab] | GET / - | idle"),
    ROW(GET "Proxy-Connection: close\r\n" END, "GET / - | idle"),
    ROW("\r\n" GET END, "GET / - | idle"),
    ROW(POST "Content-Length: 1\r\n" END "x\r\n" GET END, "POST / [x] | GET / - | idle"),
    ROW("", "idle"),
    ROW("\r", "idle"),
    ROW("\r\n", "idle"),
    ROW("G", "head"),
    ROW(GET, "head"),
    ROW(GET "\r", "head"),
    ROW(POST "Content-Length: 5\r\n" END "1234", "body"),
    ROW(POST "Content-Length: 5\r\n" END, "body"),
    ROW(CHUNKED "0\r\n", "body"),
};
TABLE_TEST(simple, simple_rows)

static const struct row pipeline_rows[] = {
    ROW(GET END GET END GET END, "GET / - | GET / - | GET / - | idle"),
    ROW(POST "Content-Length: 3\r\n" END "abc" POST "Content-Length: 0\r\n" END GET END,
        "POST / [abc] | POST / [] | GET / - | idle"),
    ROW(CHUNKED "3\r\nabc\r\n0\r\n\r\n" CHUNKED "0\r\n\r\n" GET END,
        "POST / [abc] | POST / [] | GET / - | idle"),
    ROW(GET END "\r\n" GET END "\r\n", "GET / - | GET / - | idle"),
    ROW(GET END "BAD\r\n", "GET / - | !400"),
    ROW(POST "Content-Length: 3\r\n" END "abcGET / HTTP/1.1\r\n", "POST / [abc] | head"),
    /* What a smuggler hides in a body stays in the body. */
    ROW(POST "Content-Length: 27\r\n" END GET END GET END, "POST / [" GET END "] | GET / - | idle"),
};
TABLE_TEST(pipelines, pipeline_rows)

/* Of all the rows here that are refused, llhttp 8.1.0 by itself lets a third through. */
static const struct row bad_byte_rows[] = {
    BAD("GET / HTTP/1.1\nHost: a\r\n\r\n"),
    BAD("GET / HTTP/1.1\r\nHost: a\n\r\n"),
    BAD("GET / HTTP/1.1\nHost: a\n\n"),
    BAD(GET "\n"),
    BAD(GET "\rX"),
    BAD(GET "\rGET /b HTTP/1.1\r\nHost: b\r\n\r\n"),
    BAD(GET "\r\r\n"),
    BAD(GET "X: a\rb\r\n" END),
    BAD(GET "X: a\r\r\n" END),
    BAD(GET "X:\rTransfer-Encoding: chunked\r\n" END "0\r\n\r\n"),
    BAD(GET "X: \rxTransfer-Encoding: chunked\r\n" END "1\r\nA\r\n0\r\n\r\n"),
    BAD(GET "X: a\0b\r\n" END),
    BAD(GET "X\0: a\r\n" END),
    BAD(GET "X: a\x01\r\n" END),
    BAD(GET "X: a\013b\r\n" END),
    BAD(GET "X: a\x1b\r\n" END),
    BAD(GET "X: a\177b\r\n" END),
    BAD(GET "Transfer-Encoding: \013chunked\r\n" END),
    BAD("GET /\0 HTTP/1.1\r\n" HOST END),
    BAD("\0GET / HTTP/1.1\r\n" HOST END),
    BAD("\nGET / HTTP/1.1\r\n" HOST END),
    BAD("\rGET / HTTP/1.1\r\n" HOST END),
    BAD("\r\r\n" GET END),
    BAD("\r\n\n" GET END),
    BAD("\r\n\r\n" GET END),
    BAD("\x16\x03\x01\x02"), /* a TLS client: refused at once */
};
TABLE_TEST(bad_bytes, bad_byte_rows)

static const struct row bad_line_rows[] = {
    BAD("GET /\r\n"), /* HTTP/0.9: refused without waiting for more */
    BAD("GET\r\n"),
    BAD("GET  / HTTP/1.1\r\n" HOST END),
    BAD("GET /  HTTP/1.1\r\n" HOST END),
    BAD("GET / HTTP/1.1 \r\n" HOST END),
    BAD(" GET / HTTP/1.1\r\n" HOST END),
    BAD("GET\t/ HTTP/1.1\r\n" HOST END),
    BAD("GET / \tHTTP/1.1\r\n" HOST END),
    BAD("GET /a b HTTP/1.1\r\n" HOST END),
    BAD("GET HTTP/1.1\r\n" HOST END),
    BAD("GE(T / HTTP/1.1\r\n" HOST END),
    BAD("G\xc3\xa6T / HTTP/1.1\r\n" HOST END),
    BAD("GET: / HTTP/1.1\r\n" HOST END),
    BAD("GET / http/1.1\r\n" HOST END),
    BAD("GET / HTTP/1\r\n" HOST END),
    BAD("GET / HTTP/1.10\r\n" HOST END),
    BAD("GET / HTTP/11\r\n" HOST END),
    BAD("GET / HTTP/1,1\r\n" HOST END),
    BAD("GET / HTTP/x.1\r\n" HOST END),
    BAD("GET / HTTP/1.x\r\n" HOST END),
    BAD("GET / HTTPS/1.1\r\n" HOST END),
    BAD("GET / RTSP/1.0\r\n" HOST END),
    BAD("GET / ICE/1.0\r\n" HOST END),
};
TABLE_TEST(bad_lines, bad_line_rows)

static const struct row version_rows[] = {
    ROW("GET / HTTP/0.9\r\n" END, "!505"),
    ROW("GET / HTTP/1.2\r\n" HOST END, "!505"),
    ROW("GET / HTTP/2.0\r\n" HOST END, "!505"),
    ROW("GET / HTTP/3.0\r\n" HOST END, "!505"),
    ROW("GET / HTTP/9.9\r\n" HOST END, "!505"),
    ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505"),
    ROW("GET / HTTP/1.0\r\n" END, "GET / - close | idle"),
};
TABLE_TEST(versions, version_rows)

static const struct row method_rows[] = {
    ROW("CONNECT a:80 HTTP/1.1\r\n" HOST END, "!501"),
    ROW("CONNECT / HTTP/1.1\r\n" HOST END, "!501"),
    ROW("BREW / HTTP/1.1\r\n" HOST END, "BREW / - | idle"),
    ROW("GETX / HTTP/1.1\r\n" HOST END, "GETX / - | idle"),
    ROW("GE / HTTP/1.1\r\n" HOST END, "GE / - | idle"),
    ROW("get / HTTP/1.1\r\n" HOST END, "get / - | idle"),
    ROW("!#$%&'*+-.^_`|~09az / HTTP/1.1\r\n" HOST END, "!#$%&'*+-.^_`|~09az / - | idle"),
    ROW("DESCRIBE / HTTP/1.1\r\n" HOST END, "DESCRIBE / - | idle"), /* llhttp knows it, of RTSP */
    ROW("PRI / HTTP/1.1\r\n" HOST END, "PRI / - | idle"),           /* and this of HTTP/2 */
    ROW("PROPFIND / HTTP/1.1\r\n" HOST END, "PROPFIND / - | idle"), /* and many of HTTP */
    ROW("TRACE / HTTP/1.1\r\n" HOST END, "TRACE / - | idle"),
    ROW("LOCK / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n" END "x", "LOCK / [x] | idle"),
    ROW("LOCK / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END "1\r\nx\r\n0\r\n\r\n",
        "LOCK / [x] | idle"),
    ROW("LOCK / HTTP/1.1\r\n" HOST "Content-Length: x\r\n" END, "!400"),
    ROW("LOCK / HTTP/1.1\r\n" HOST "X : y\r\n" END, "!400"),
    ROW("LOCK / HTTP/1.1\r\n" END, "!400"),
    ROW("LOCK / HTTP/1.0\r\n" END, "LOCK / - close | idle"),
    ROW("LOCK * HTTP/1.1\r\n" HOST END, "!400"),
    ROW("OPTIONSX / HTTP/1.1\r\n" HOST END, "OPTIONSX / - | idle"),
    ROW("options / HTTP/1.1\r\n" HOST END, "options / - | idle"),
    ROW("REPORT / HTTP/1.1\r\n" HOST END, "REPORT / - | idle"),
    ROW("OPTIONS / HTTP/1.1\r\n" HOST END, "OPTIONS / - | idle"),
    ROW("HEAD / HTTP/1.1\r\n" HOST END, "HEAD / - | idle"),
    ROW("PUT / HTTP/1.1\r\n" HOST END, "PUT / - | idle"),
    ROW("DELETE / HTTP/1.1\r\n" HOST END, "DELETE / - | idle"),
};
TABLE_TEST(methods, method_rows)

static const struct row target_rows[] = {
    ROW("GET http://a/x?y HTTP/1.1\r\n" HOST END, "GET /x?y - | idle"),
    ROW("GET HTTPS://[::1]:8080/x HTTP/1.1\r\n" HOST END, "GET /x - | idle"),
    ROW("GET http://a HTTP/1.1\r\n" HOST END, "GET / - | idle"),
    ROW("GET http://b.example:80/x HTTP/1.1\r\n" HOST END, "GET /x - | idle"),
    ROW("GET http://a/x HTTP/1.0\r\n" END, "GET /x - close | idle"),
    ROW("POST http://a HTTP/1.1\r\n" HOST "Content-Length: 2\r\n" END "ab", "POST / [ab] | idle"),
    ROW("OPTIONS * HTTP/1.1\r\n" HOST END, "OPTIONS * - | idle"),
};
TABLE_TEST(targets, target_rows)

static const struct row bad_target_rows[] = {
    BAD("GET * HTTP/1.1\r\n" HOST END),           BAD("OPTIONS ** HTTP/1.1\r\n" HOST END),
    BAD("OPTIONS *a HTTP/1.1\r\n" HOST END),      BAD("GET a HTTP/1.1\r\n" HOST END),
    BAD("GET a:80 HTTP/1.1\r\n" HOST END),        BAD("GET ?a HTTP/1.1\r\n" HOST END),
    BAD("GET %2F HTTP/1.1\r\n" HOST END),         BAD("GET /a#b HTTP/1.1\r\n" HOST END),
    BAD("GET /a\tb HTTP/1.1\r\n" HOST END),       BAD("GET /a\014b HTTP/1.1\r\n" HOST END),
    BAD("GET /\xc3\xb8 HTTP/1.1\r\n" HOST END),   BAD("GET /\x80 HTTP/1.1\r\n" HOST END),
    BAD("GET http:/a/x HTTP/1.1\r\n" HOST END),   BAD("GET http:// HTTP/1.1\r\n" HOST END),
    BAD("GET http:///x HTTP/1.1\r\n" HOST END),   BAD("GET http://a?x HTTP/1.1\r\n" HOST END),
    BAD("GET http://u@a/ HTTP/1.1\r\n" HOST END), BAD("GET http://u:p@a/ HTTP/1.1\r\n" HOST END),
    BAD("GET http://a:x/ HTTP/1.1\r\n" HOST END), BAD("GET ftp://a/x HTTP/1.1\r\n" HOST END),
    BAD("GET unix://a/x HTTP/1.1\r\n" HOST END),
};
TABLE_TEST(bad_targets, bad_target_rows)

#define WITH_HOST(value) LINE "Host:" value "\r\n" END

static const struct row host_rows[] = {
    ROW(WITH_HOST("a"), "GET / - | idle"),
    ROW(WITH_HOST(" \ta.b-c_d.example.:8080\t "), "GET / - | idle"),
    ROW(WITH_HOST("127.0.0.1"), "GET / - | idle"),
    ROW(WITH_HOST("[::1]"), "GET / - | idle"),
    ROW(WITH_HOST("[::ffff:10.0.0.1]:443"), "GET / - | idle"),
    ROW(WITH_HOST("a:"), "GET / - | idle"),
    ROW(WITH_HOST("a:65535"), "GET / - | idle"),
    ROW(LINE "hOsT: a\r\n" END, "GET / - | idle"),
    ROW("GET / HTTP/1.0\r\n" HOST END, "GET / - close | idle"),
};
TABLE_TEST(hosts, host_rows)

static const struct row bad_host_rows[] = {
    BAD(LINE END),
    BAD(LINE "Hosts: a\r\n" END),
    BAD("GET http://a/ HTTP/1.1\r\n" END),
    BAD(LINE HOST HOST END),
    BAD(LINE HOST "X: y\r\nHOST: b\r\n" END),
    BAD("GET http://a/ HTTP/1.1\r\n" HOST HOST END),
    BAD("GET / HTTP/1.0\r\n" HOST HOST END),
    BAD("GET / HTTP/1.0\r\nHost: a b\r\n" END),
    BAD("GET http://a/ HTTP/1.1\r\nHost: a/b\r\n" END),
    BAD(WITH_HOST("")),
    BAD(WITH_HOST(" ")),
    BAD(WITH_HOST(":80")),
    BAD(WITH_HOST("a b")),
    BAD(WITH_HOST("a,b")),
    BAD(WITH_HOST("a/b")),
    BAD(WITH_HOST("u@a")),
    BAD(WITH_HOST("a?b")),
    BAD(WITH_HOST("a\\b")),
    BAD(WITH_HOST("http://a")),
    BAD(WITH_HOST("a%00b")),
    BAD(WITH_HOST("a\xff")),
    BAD(WITH_HOST("a:b")),
    BAD(WITH_HOST("a:80:80")),
    BAD(WITH_HOST("a:+80")),
    BAD(WITH_HOST("a:65536")),
    BAD(WITH_HOST("a:99999999999999999999")),
    BAD(WITH_HOST("::1")),
    BAD(WITH_HOST("[::1")),
    BAD(WITH_HOST("[]")),
    BAD(WITH_HOST("[::1]x")),
    BAD(WITH_HOST("[::1]:x")),
    BAD(WITH_HOST("[a]")),
    BAD(WITH_HOST("[::1%25eth0]")),
    BAD(WITH_HOST("[1111:2222:3333:4444:5555:6666:7777:8888:1111:2222:3333:4444]")),
};
TABLE_TEST(bad_hosts, bad_host_rows)

static const struct row bad_field_rows[] = {
    BAD(GET "X : a\r\n" END),
    BAD(GET "X\t: a\r\n" END),
    BAD(GET "X y: a\r\n" END),
    BAD(GET "Content-Length : 5\r\n" END "GET /"),
    BAD(GET "Transfer-Encoding : chunked\r\n" END),
    BAD(LINE " Host: a\r\n" END),
    BAD(LINE "\tHost: a\r\n" END),
    BAD(GET " Content-Length: 5\r\n" END "GET /"),
    BAD(GET "X: a\r\n b\r\n" END),
    BAD(GET "X: a\r\n\tb\r\n" END),
    BAD(GET "X:\r\n b\r\n" END),
    BAD(GET "X: a\r\n \r\n" END),
    BAD(GET "Transfer-Encoding:\r\n chunked\r\n" END),
    BAD(GET "Transfer-Encoding: chunked\r\n , identity\r\n" END),
    BAD(GET "Content-Length: 1\r\n 0\r\n" END),
    BAD(GET ": a\r\n" END),
    BAD(GET "X\r\n" END),
    BAD(GET "X(: a\r\n" END),
    BAD(GET "X;: a\r\n" END),
    BAD(GET "X\xe6: a\r\n" END),
    BAD(GET "\"X\": a\r\n" END),
    BAD(GET "GET / HTTP/1.1\r\n" END),
};
TABLE_TEST(bad_fields, bad_field_rows)

static const struct row framing_rows[] = {
    ROW(POST "Content-Length: 5\r\n" END "12345", "POST / [12345] | idle"),
    ROW(POST "Content-Length:\t 5 \r\n" END "12345", "POST / [12345] | idle"),
    ROW(POST "content-LENGTH: 0005\r\n" END "12345", "POST / [12345] | idle"),
    ROW(POST "Content-Length: 0\r\n" END, "POST / [] | idle"),
    ROW(GET "Content-Length: 2\r\n" END "ab", "GET / [ab] | idle"),
    ROW(POST END, "POST / - | idle"),
    ROW(POST "X-Content-Length: 5\r\n" END, "POST / - | idle"),
    ROW(POST "Content_Length: 5\r\n" END, "POST / - | idle"),
    ROW(POST "Content-Lengths: 5\r\n" END, "POST / - | idle"),
    ROW("POST / HTTP/1.0\r\nContent-Length: 2\r\n" END "ab", "POST / [ab] close | idle"),
    ROW(POST "TRANSFER-encoding: Chunked \r\n" END "1\r\na\r\n0\r\n\r\n", "POST / [a] | idle"),
};
TABLE_TEST(framing, framing_rows)

static const struct row bad_framing_rows[] = {
    BAD(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END "0\r\n\r\n"),
    BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END "0\r\n\r\n"),
    BAD(POST "Transfer-Encoding: chunked\r\nX: y\r\nContent-Length: 0\r\n" END),
    BAD(POST "Content-Length: 5\r\nContent-Length: 5\r\n" END "12345"),
    BAD(POST "Content-Length: 5\r\nContent-Length: 6\r\n" END "12345"),
    BAD(POST "Content-Length: 0\r\ncontent-length: 0\r\n" END),
    BAD(POST "Content-Length:\r\n" END),
    BAD(POST "Content-Length: +5\r\n" END "12345"),
    BAD(POST "Content-Length: -5\r\n" END "12345"),
    BAD(POST "Content-Length: -0\r\n" END),
    BAD(POST "Content-Length: 5,5\r\n" END "12345"),
    BAD(POST "Content-Length: 5, 5\r\n" END "12345"),
    BAD(POST "Content-Length: 5 5\r\n" END "12345"),
    BAD(POST "Content-Length: 0x5\r\n" END "12345"),
    BAD(POST "Content-Length: 5.0\r\n" END "12345"),
    BAD(POST "Content-Length: 1e1\r\n" END),
    BAD(POST "Content-Length: 5;\r\n" END "12345"),
    BAD(POST "Content-Length: \"5\"\r\n" END "12345"),
    BAD(POST "Content-Length: 5_0\r\n" END),
    BAD(POST "Content-Length: \xd9\xa5\r\n" END),
    BAD(POST "Content-Length: five\r\n" END),
    BAD(POST "Content-Length: 18446744073709551616\r\n" END),
    BAD(POST "Content-Length: 18446744073709551621\r\n" END "12345"),
    BAD(POST "Content-Length: 99999999999999999999999999\r\n" END),
    BAD(POST "Transfer-Encoding:\r\n" END),
    BAD(POST "Transfer-Encoding: identity\r\n" END),
    BAD(POST "Transfer-Encoding: gzip\r\n" END),
    BAD(POST "Transfer-Encoding: xchunked\r\n" END),
    BAD(POST "Transfer-Encoding: chunkedx\r\n" END),
    BAD(POST "Transfer-Encoding: x chunked\r\n" END),
    BAD(POST "Transfer-Encoding: chunked;q=1\r\n" END),
    BAD(POST "Transfer-Encoding: \"chunked\"\r\n" END),
    BAD(POST "Transfer-Encoding: chunked, gzip\r\n" END),
    BAD(POST "Transfer-Encoding: chunked,\r\n" END),
    BAD(POST "Transfer-Encoding: chunked, chunked\r\n" END),
    BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END),
    BAD(POST "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n" END),
    BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" END),
    ROW(POST "Transfer-Encoding: gzip, chunked\r\n" END, "!501"),
    ROW(POST "Transfer-Encoding: deflate,gzip,chunked\r\n" END, "!501"),
    BAD("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END "0\r\n\r\n"),
};
TABLE_TEST(bad_framing, bad_framing_rows)

static const struct row chunk_rows[] = {
    ROW(CHUNKED "3\r\nabc\r\n0\r\n\r\n", "POST / [abc] | idle"),
    ROW(CHUNKED "1\r\na\r\n2\r\nbc\r\n00000\r\n\r\n", "POST / [abc] | idle"),
    ROW(CHUNKED "a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n",
        "POST / [0123456789abcdefghij] | idle"),
    ROW(CHUNKED "0000000000000003\r\nabc\r\n0\r\n\r\n", "POST / [abc] | idle"),
    ROW(CHUNKED "4\r\n\r\n\r\n\r\n0\r\n\r\n", "POST / [\r\n\r\n] | idle"),
    ROW(CHUNKED "3\r\nabc\r\n0\r\n", "body"),
};
TABLE_TEST(chunks, chunk_rows)

static const struct row bad_chunk_rows[] = {
    BAD(CHUNKED "\r\n"),
    BAD(CHUNKED "x\r\n"),
    BAD(CHUNKED "3x\r\n"),
    BAD(CHUNKED "0x3\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "+3\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "-1\r\n"),
    BAD(CHUNKED " 3\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "\t3\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3 \r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\t\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3 ;a\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3,3\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\rabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\rXabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\r\nabcXX0\r\n\r\n"),
    BAD(CHUNKED "3\r\nabc\n0\r\n\r\n"),
    BAD(CHUNKED "3\r\nabc\rX0\r\n\r\n"),
    BAD(CHUNKED "3\r\nabcd\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\r\nab\r\n0\r\n\r\n"),
    BAD(CHUNKED "3\r\nabc\r\n\r\n0\r\n\r\n"),
    BAD(CHUNKED "00000000000000003\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "0\r\n\rX"),
    BAD(CHUNKED "0\r\n\n"),
    BAD(CHUNKED "0\n\r\n"),
    BAD(CHUNKED "0\r\r\n"),
    ROW(CHUNKED "FFFFFFFFFFFFFFFF\r\n", "!413"),
    ROW(CHUNKED "10000000000000000\r\n", "!413"),
    ROW(CHUNKED "10000000000000003\r\nabc\r\n0\r\n\r\n", "!413"),
};
TABLE_TEST(bad_chunks, bad_chunk_rows)

static const struct row chunk_extension_rows[] = {
    ROW(CHUNKED "3;a\r\nabc\r\n0;b=c\r\n\r\n", "POST / [abc] | idle"),
    ROW(CHUNKED "3;a=b;c=\"d\\\"e;\xff f\\\\\t\";g\r\nabc\r\n0;h=\"\"\r\n\r\n",
        "POST / [abc] | idle"),
    BAD(CHUNKED ";a\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;;\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;=b\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=;b\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3; a\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a b\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;\"a\"\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a\"b\"\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=\"b\"c\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=\"b\"=c\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=\"b\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=\"b\\\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a=\"b\nc\"\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;\n\r\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a\rX\nabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a\rXabc\r\n0\r\n\r\n"),
    BAD(CHUNKED "3;a\0b\r\nabc\r\n0\r\n\r\n"),
};
TABLE_TEST(chunk_extensions, chunk_extension_rows)

static const struct row trailer_rows[] = {
    ROW(CHUNKED "1\r\na\r\n0\r\nX: y\r\n\r\n", "POST / [a] | idle"),
    ROW(CHUNKED "0\r\nX:\r\nContent-Lengths: 5\r\nSvc-checksum: \xff\t\r\n\r\n" GET END,
        "POST / [] | GET / - | idle"),
    ROW(CHUNKED "0\r\nA-name-that-is-longer-than-any-that-matters: y\r\n\r\n", "POST / [] | idle"),
    BAD(CHUNKED "0\r\nContent-Length: 5\r\n\r\n"),
    BAD(CHUNKED "0\r\nTRANSFER-ENCODING: chunked\r\n\r\n"),
    BAD(CHUNKED "0\r\nX: y\r\nHost: b\r\n\r\n"),
    BAD(CHUNKED "0\r\nAuthorization: apikey x\r\n\r\n"),
    BAD(CHUNKED "0\r\nProxy-Authorization: x\r\n\r\n"),
    BAD(CHUNKED "0\r\nContent-Type: x/y\r\n\r\n"),
    BAD(CHUNKED "0\r\nIf-Match: x\r\n\r\n"),
    BAD(CHUNKED "0\r\nTE: x\r\n\r\n"),
    BAD(CHUNKED "0\r\nX : y\r\n\r\n"),
    BAD(CHUNKED "0\r\n X: y\r\n\r\n"),
    BAD(CHUNKED "0\r\nX: y\r\n z\r\n\r\n"),
    BAD(CHUNKED "0\r\n: y\r\n\r\n"),
    BAD(CHUNKED "0\r\nX\r\n\r\n"),
    BAD(CHUNKED "0\r\nX: y\n\r\n"),
    BAD(CHUNKED "0\r\nX: y\rz\r\n\r\n"),
    BAD(CHUNKED "0\r\nX: \0\r\n\r\n"),
    BAD(CHUNKED "0\r\nGET / HTTP/1.1\r\n\r\n"),
};
TABLE_TEST(trailers, trailer_rows)

#define OLD "GET / HTTP/1.0\r\n"

static const struct row keep_alive_rows[] = {
    ROW(GET "Connection: close\r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: Close \r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: close\t\r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: x, close\r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: x\t,\tclose\t,y\r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: keep-alive\r\nConnection: close\r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: close\r\nConnection: keep-alive\r\n" END, "GET / - close | idle"),
    ROW(GET "Connection: keep-alive\r\n" END, "GET / - | idle"),
    ROW(GET "Connection: closed, xclose, close x\r\n" END, "GET / - | idle"),
    ROW(GET "Connection:\r\n" END, "GET / - | idle"),
    ROW(OLD END, "GET / - close | idle"),
    ROW(OLD "Connection: keep-alive\r\n" END, "GET / - | idle"),
    ROW(OLD "Connection: Keep-Alive, x\r\n" END, "GET / - | idle"),
    ROW(OLD "Connection: keep-alive, close\r\n" END, "GET / - close | idle"),
    ROW(OLD "Connection: x\r\n" END, "GET / - close | idle"),
};
TABLE_TEST(keep_alive, keep_alive_rows)

static const struct row expect_rows[] = {
    ROW(POST "Expect: 100-continue\r\nContent-Length: 1\r\n" END "a", "POST / [a] | idle"),
    ROW(POST "expect: 100-CONTINUE\r\nContent-Length: 1\r\n" END "a", "POST / [a] | idle"),
    ROW(POST "Expect: 100-continue\r\n" END, "POST / - | idle"),
    ROW(POST "Expect: 100\r\nContent-Length: 1\r\n" END "a", "!417"),
    ROW(POST "Expect:\r\n" END, "!417"),
    ROW(POST "Expect: 100-continue, x\r\n" END, "!417"),
    ROW(POST "Expect: 100-continue\r\nExpect: x\r\n" END, "!417"),
    ROW("POST / HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n" END "a", "POST / [a] close | idle"),
};
TABLE_TEST(expectations, expect_rows)

/* A parser with default limits, fed once. */
static struct h1 *fed(struct limits *limits, struct span raw, enum h1_result expected)
{
    struct h1 *p;
    size_t taken;

    limits_init(limits);
    p = h1_new(limits);
    ck_assert_int_eq(h1_feed(p, raw, &taken), expected);
    return p;
}

START_TEST(fields_are_found_and_trimmed)
{
    struct limits limits;
    struct h1 *p =
        fed(&limits, SPAN("GET /x HTTP/1.1\r\nHost: h:1\r\nA:\r\nb: 1\r\nB:\t 2 3 \t\r\n\r\n"),
            H1_REQUEST);
    const struct h1_request *r = h1_request(p);

    ck_span_eq(r->method, "GET");
    ck_span_eq(r->target, "/x");
    ck_span_eq(r->host, "h:1");
    ck_assert_uint_eq(r->header_count, 4);
    ck_span_eq(r->headers[3].name, "B");
    ck_span_eq(r->headers[3].value, "2 3");
    ck_assert_ptr_null(r->body.p);
    ck_assert(!r->has_body && !r->is_http10 && r->keep_alive);
    h1_free(p);
}
END_TEST

/* RFC 9112, section 3.2.2. */
START_TEST(absolute_target_overrides_host)
{
    struct limits limits;
    struct h1 *p = fed(&limits, SPAN("GET http://b:8/x HTTP/1.1\r\n" HOST END), H1_REQUEST);

    ck_span_eq(h1_request(p)->host, "b:8");
    ck_span_eq(h1_request(p)->target, "/x");
    h1_free(p);

    p = fed(&limits, SPAN(OLD END), H1_REQUEST);
    ck_assert_ptr_null(h1_request(p)->host.p);
    ck_assert(h1_request(p)->is_http10);
    h1_free(p);
}
END_TEST

START_TEST(takes_one_request_at_a_time)
{
    struct span raw = SPAN(POST "Content-Length: 2\r\n" END "ab" GET END);
    struct limits limits;
    struct h1 *p;
    size_t taken;

    limits_init(&limits);
    p = h1_new(&limits);
    ck_assert_int_eq(h1_feed(p, raw, &taken), H1_REQUEST);
    ck_assert_uint_eq(taken, raw.n - SPAN(GET END).n);
    ck_span_eq(h1_request(p)->body, "ab");
    ck_assert_int_eq(h1_phase(p), H1_IDLE);
    h1_next(p);
    ck_assert_int_eq(h1_feed(p, span_sub(raw, taken, raw.n), &taken), H1_REQUEST);
    ck_assert_uint_eq(taken, SPAN(GET END).n);
    h1_free(p);
    h1_free(NULL);
}
END_TEST

START_TEST(failed_takes_no_more)
{
    struct limits limits;
    struct h1 *p = fed(&limits, SPAN("BAD\r\n"), H1_FAILED);
    size_t taken;

    ck_assert_int_eq(err_info(h1_failure(p)->code)->status, 400);
    ck_assert_str_eq(h1_failure(p)->why, "The request line is malformed.");
    ck_assert_int_eq(h1_feed(p, SPAN(GET END), &taken), H1_FAILED);
    ck_assert_uint_eq(taken, 0);
    ck_assert_int_eq(h1_phase(p), H1_IDLE);
    ck_assert(!h1_take_continue(p));
    h1_free(p);
}
END_TEST

START_TEST(phases_and_their_bytes)
{
    static const struct {
        const char *piece;
        enum h1_phase phase;
        size_t bytes;
    } steps[] = {
        {"\r", H1_IDLE, 0},
        {"\n", H1_IDLE, 0},
        {"POST / HT", H1_HEAD, 9},
        {"TP/1.1\r\n", H1_HEAD, 17},
        {HOST "Transfer-Encoding: chunked\r\n", H1_HEAD, 54},
        {"\r\n", H1_BODY, 0},
        {"3\r\na", H1_BODY, 4},
        {"bc", H1_BODY, 6},
        {"\r\n0\r\n", H1_BODY, 11},
    };
    struct limits limits;
    struct h1 *p;
    size_t taken;

    limits_init(&limits);
    p = h1_new(&limits);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        ck_assert_int_eq(h1_feed(p, span_str(steps[i].piece), &taken), H1_NEED_MORE);
        ck_assert_int_eq(h1_phase(p), steps[i].phase);
        ck_assert_uint_eq(h1_phase_bytes(p), steps[i].bytes);
    }
    ck_assert_int_eq(h1_feed(p, SPAN("\r\n"), &taken), H1_REQUEST);
    ck_span_eq(h1_request(p)->body, "abc");
    h1_next(p);
    ck_assert_int_eq(h1_phase(p), H1_IDLE);
    ck_assert_uint_eq(h1_phase_bytes(p), 0);
    h1_free(p);
}
END_TEST

START_TEST(memory_is_held_for_what_is_not_whole)
{
    static char piece[100000];
    struct limits limits;
    struct h1 *p = fed(&limits, SPAN(POST "Content-Length: 200000\r\n" END), H1_NEED_MORE);
    size_t taken, before = h1_held_bytes(p);

    ck_assert_uint_le(before, 4096);
    ck_assert_int_eq(h1_feed(p, span_of(piece, sizeof(piece)), &taken), H1_NEED_MORE);
    ck_assert_uint_ge(h1_held_bytes(p), sizeof(piece));
    ck_assert_uint_le(h1_held_bytes(p), 2 * sizeof(piece) + before);
    ck_assert_int_eq(h1_feed(p, span_of(piece, sizeof(piece)), &taken), H1_REQUEST);
    h1_next(p);
    ck_assert_uint_le(h1_held_bytes(p), 16384 + before);
    h1_free(p);
}
END_TEST

#define EXPECTING POST "Expect: 100-continue\r\n"

START_TEST(continue_is_due_once)
{
    struct limits limits;
    struct h1 *p = fed(&limits, SPAN(EXPECTING "Content-Length: 2\r\n" END), H1_NEED_MORE);
    size_t taken;

    ck_assert(h1_take_continue(p));
    ck_assert(!h1_take_continue(p));
    ck_assert_int_eq(h1_feed(p, SPAN("ab"), &taken), H1_REQUEST);
    ck_assert(!h1_take_continue(p));
    h1_next(p);
    ck_assert_int_eq(h1_feed(p, SPAN(POST "Content-Length: 2\r\n" END), &taken), H1_NEED_MORE);
    ck_assert(!h1_take_continue(p));
    h1_free(p);

    p = fed(&limits, SPAN(EXPECTING "Transfer-Encoding: chunked\r\n" END), H1_NEED_MORE);
    ck_assert(h1_take_continue(p));
    h1_free(p);
}
END_TEST

START_TEST(continue_is_not_due)
{
    static const struct {
        struct span raw;
        enum h1_result result;
    } cases[] = {
        {SPAN_INIT(EXPECTING "Content-Length: 2\r\n"), H1_NEED_MORE},
        {SPAN_INIT(EXPECTING "Content-Length: 2\r\n" END "a"), H1_NEED_MORE}, /* it does not wait */
        {SPAN_INIT(EXPECTING "Content-Length: 2\r\n" END "ab"), H1_REQUEST},
        {SPAN_INIT(EXPECTING "Content-Length: 0\r\n" END), H1_REQUEST},
        {SPAN_INIT(EXPECTING END), H1_REQUEST},
        {SPAN_INIT(EXPECTING "Content-Length: 9999999\r\n" END), H1_FAILED},
        {SPAN_INIT("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" END),
         H1_NEED_MORE},
    };
    struct limits limits;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct h1 *p = fed(&limits, cases[i].raw, cases[i].result);

        ck_assert(!h1_take_continue(p));
        h1_free(p);
    }
}
END_TEST

static void add_times(struct buf *b, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buf_add_str(b, text);
}

/* `before`, `times` times `filling`, `after` */
static void check_filled(const char *before, const char *filling, size_t times, const char *after,
                         const struct limits *limits, const char *brief_end)
{
    struct buf raw = {.max = BUF_NO_CAP};
    struct transcript t;
    struct span brief;

    buf_add_str(&raw, before);
    add_times(&raw, filling, times);
    buf_add_str(&raw, after);
    run_all_ways(buf_span(&raw), limits, &t);
    brief = buf_span(&t.brief);
    ck_assert_msg(span_ends(brief, span_str(brief_end)), "'%s' %zu times: '%s', should end in '%s'",
                  filling, times, buf_text(&t.brief), brief_end);
    transcript_done(&t);
    buf_done(&raw);
}

static struct limits small_limits(void)
{
    struct limits limits;

    limits_init(&limits);
    limits.uri_bytes = 100;
    limits.header_bytes = 400;
    limits.body_bytes = 50;
    return limits;
}

START_TEST(long_targets)
{
    struct limits limits = small_limits();
    const char *rest = " HTTP/1.1\r\n" HOST END;

    check_filled("GET /", "x", 99, rest, &limits, "idle");
    check_filled("GET /", "x", 100, rest, &limits, "!414");
    check_filled("GET /", "x", 1000, rest, &limits, "!414");
    check_filled("GET /", "x", 200, "", &limits, "!414"); /* before the line ends */
    check_filled("GET http://a/", "x", 91, rest, &limits, "idle");
    check_filled("GET http://a/", "x", 92, rest, &limits, "!414");
    check_filled("", "G", 200, " / HTTP/1.1\r\n", &limits, "!414");
    check_filled("", "G", 90, " / HTTP/1.1\r\n" HOST END, &limits, "idle");
    /* What is wrong before the limit is reached comes first, what is wrong after it never. */
    check_filled("GET /\n", "x", 1000, rest, &limits, "!400");
    check_filled("GET /", "x", 1000, "\n", &limits, "!414");
}
END_TEST

START_TEST(long_heads)
{
    struct limits limits = small_limits();
    size_t fixed = sizeof(HOST "X: \r\n\r\n") - 1;

    check_filled(GET "X: ", "x", 400 - fixed, "\r\n\r\n", &limits, "idle");
    check_filled(GET "X: ", "x", 400 - fixed + 1, "\r\n\r\n", &limits, "!431");
    check_filled(GET "X: ", "x", 1000, "", &limits, "!431");
    check_filled(GET, "X:\r\n", 1000, "", &limits, "!431");
    check_filled("GET /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx HTTP/1.1\r\n" HOST "X: ", "x",
                 400 - fixed, "\r\n\r\n", &limits, "idle"); /* the target does not count */
}
END_TEST

START_TEST(many_fields)
{
    struct limits limits;

    limits_init(&limits);
    check_filled(GET, "X: y\r\n", H1_MAX_FIELDS - 1, END, &limits, "GET / - | idle");
    check_filled(GET, "X: y\r\n", H1_MAX_FIELDS, END, &limits, "!431");
    check_filled(CHUNKED "0\r\n", "X: y\r\n", H1_MAX_FIELDS - 2, END, &limits, "POST / [] | idle");
    check_filled(CHUNKED "0\r\n", "X: y\r\n", H1_MAX_FIELDS - 1, END, &limits, "!431");
}
END_TEST

START_TEST(long_bodies)
{
    struct limits limits = small_limits();

    check_filled(POST "Content-Length: 50\r\n" END, "x", 50, "", &limits, "] | idle");
    check_raw(SPAN(POST "Content-Length: 51\r\n"), &limits, "head");
    check_raw(SPAN(POST "Content-Length: 51\r\n" END), &limits, "!413"); /* no byte of it is read */
    check_filled(CHUNKED "32\r\n", "x", 50, "\r\n0\r\n\r\n", &limits, "] | idle");
    check_raw(SPAN(CHUNKED "33"), &limits, "!413");
    check_filled(CHUNKED "31\r\n", "x", 49, "\r\n1\r\ny\r\n0\r\n\r\n", &limits, "y] | idle");
    check_filled(CHUNKED "31\r\n", "x", 49, "\r\n2", &limits, "!413");
    check_filled(CHUNKED, "1\r\nx\r\n", 50, "0\r\n\r\n", &limits, "] | idle");
    check_filled(CHUNKED, "1\r\nx\r\n", 51, "0\r\n\r\n", &limits, "!413");

    limits.body_bytes = 0;
    check_raw(SPAN(POST "Content-Length: 0\r\n" END), &limits, "POST / [] | idle");
    check_raw(SPAN(CHUNKED "0\r\n\r\n"), &limits, "POST / [] | idle");
    check_raw(SPAN(POST "Content-Length: 1\r\n" END), &limits, "!413");
    check_raw(SPAN(CHUNKED "1"), &limits, "!413");
}
END_TEST

START_TEST(long_chunk_framing)
{
    struct limits limits = small_limits();

    check_filled(CHUNKED "1;", "x", 1023, "\r\na\r\n0\r\n\r\n", &limits, "[a] | idle");
    check_filled(CHUNKED "1;", "x", 1024, "\r", &limits, "!400");
    check_filled(CHUNKED "1;", "x", 1025, "", &limits, "!400");
    check_filled(CHUNKED, "1;0123456789012345678901234567890123456789\r\na\r\n", 26, "", &limits,
                 "!400"); /* the sum counts */
    check_filled(CHUNKED "0\r\nX:", "x", 394, END END, &limits, "[] | idle");
    check_filled(CHUNKED "0\r\nX:", "x", 395, END END, &limits, "!431");
    check_filled(CHUNKED "0\r\n", "X:\r\n", 101, "", &limits, "!431");
}
END_TEST

/* Any body in any chunks comes out as it was. */
START_TEST(random_chunks)
{
    struct limits limits;

    limits_init(&limits);
    for (int round = 0; round < 100; round++) {
        struct buf raw = {.max = BUF_NO_CAP}, body = {.max = BUF_NO_CAP};
        struct transcript t;

        buf_add_str(&raw, CHUNKED);
        for (uint64_t left = rng_below(20); left > 0; left--) {
            size_t n = 1 + (size_t)rng_below(rng_below(300) + 1);

            buf_printf(&raw, rng_below(2) ? "%zx\r\n" : "0%zX;x\r\n", n);
            for (size_t i = 0; i < n; i++) {
                char c = "ab \r\n0;"[rng_below(7)];

                buf_add_char(&raw, c);
                buf_add_char(&body, c);
            }
            buf_add_str(&raw, "\r\n");
        }
        buf_add_str(&raw, "0\r\n\r\n");
        run_all_ways(buf_span(&raw), &limits, &t);
        ck_assert(span_ends(buf_span(&t.brief), SPAN("] | idle")));
        ck_span_is(span_sub(buf_span(&t.brief), strlen("POST / ["), t.brief.n - strlen("] | idle")),
                   buf_span(&body));
        transcript_done(&t);
        buf_done(&raw);
        buf_done(&body);
    }
}
END_TEST

static const struct {
    const struct row *rows;
    size_t count;
} seeds[] = {
    {simple_rows, ARRAY_LEN(simple_rows)},
    {pipeline_rows, ARRAY_LEN(pipeline_rows)},
    {target_rows, ARRAY_LEN(target_rows)},
    {framing_rows, ARRAY_LEN(framing_rows)},
    {chunk_rows, ARRAY_LEN(chunk_rows)},
    {chunk_extension_rows, ARRAY_LEN(chunk_extension_rows)},
    {trailer_rows, ARRAY_LEN(trailer_rows)},
    {keep_alive_rows, ARRAY_LEN(keep_alive_rows)},
};

/* Deletes a byte, inserts one, or replaces one by another. */
static void mutate(struct buf *raw)
{
    static const char odd[] = "\r\n\r\n \t:;,0159af/xGH.\0\x7f\xff";
    size_t at = (size_t)rng_below(raw->n);
    size_t after = at + (size_t)rng_below(2);
    struct buf damaged = {.max = BUF_NO_CAP};

    buf_add(&damaged, span_sub(buf_span(raw), 0, at));
    if (after == at || rng_below(2) > 0)
        buf_add_char(&damaged, odd[rng_below(sizeof(odd) - 1)]);
    buf_add(&damaged, span_sub(buf_span(raw), after, raw->n));
    buf_done(raw);
    *raw = damaged;
}

/* Damaged requests, too, mean the same in any pieces. */
START_TEST(mutations_mean_the_same_in_pieces)
{
    struct limits limits = small_limits();

    for (int round = 0; round < 1000; round++) {
        size_t k = (size_t)rng_below(ARRAY_LEN(seeds));
        struct buf raw = {.max = BUF_NO_CAP};
        struct transcript t;

        buf_add(&raw, seeds[k].rows[rng_below(seeds[k].count)].raw);
        for (uint64_t times = 1 + rng_below(3); times > 0 && raw.n > 0; times--)
            mutate(&raw);
        run_all_ways(buf_span(&raw), &limits, &t);
        transcript_done(&t);
        buf_done(&raw);
    }
}
END_TEST

START_TEST(idle_memory_is_small)
{
    struct buf raw = {.max = BUF_NO_CAP};
    struct limits limits;
    struct h1 *p;
    size_t before, taken;

    buf_add_str(&raw, POST "Content-Length: 100000\r\n");
    add_times(&raw, "X: y\r\n", 90);
    buf_add_str(&raw, END);
    add_times(&raw, "0123456789", 10000);

    limits_init(&limits);
    before = mem_bytes();
    p = h1_new(&limits);
    ck_assert_uint_le(mem_bytes() - before, 400);
    ck_assert_int_eq(h1_feed(p, span_sub(buf_span(&raw), 0, 20), &taken), H1_NEED_MORE);
    ck_assert_int_eq(h1_feed(p, span_sub(buf_span(&raw), 20, 90000), &taken), H1_NEED_MORE);
    ck_assert_int_eq(h1_feed(p, span_sub(buf_span(&raw), 90000, raw.n), &taken), H1_REQUEST);
    ck_assert_uint_eq(h1_request(p)->body.n, 100000);
    h1_next(p);
    ck_assert_uint_le(mem_bytes() - before, 400);
    ck_assert_int_eq(h1_feed(p, SPAN(GET END), &taken), H1_REQUEST);
    h1_next(p);
    ck_assert_uint_le(mem_bytes() - before, 1000);
    h1_free(p);
    buf_done(&raw);
}
END_TEST

#define AGAIN HOST "Accept: */*\r\nX-Empty:\r\nX-Key: abcdefgh\r\n" END

/* What one request left behind must not reach the next that has the same fields. */
static const struct row repeated_rows[] = {
    ROW("GET /a HTTP/1.1\r\n" AGAIN "GET /b HTTP/1.1\r\n" AGAIN, "GET /a - | GET /b - | idle"),
    ROW("GET /a HTTP/1.1\r\n" AGAIN "HEAD /a HTTP/1.1\r\n" AGAIN, "GET /a - | HEAD /a - | idle"),
    ROW("GET / HTTP/1.1\r\n" AGAIN "GET / HTTP/1.0\r\n" AGAIN, "GET / - | GET / - close | idle"),
    ROW("GET / HTTP/1.0\r\n" AGAIN "GET / HTTP/1.1\r\n" AGAIN, "GET / - close | GET / - | idle"),
    ROW("GET / HTTP/1.1\r\n" AGAIN "GET http://b/x HTTP/1.1\r\n" AGAIN "GET / HTTP/1.1\r\n" AGAIN,
        "GET / - | GET /x - | GET / - | idle"),
    ROW("GET http://b/x HTTP/1.1\r\n" AGAIN "GET / HTTP/1.1\r\n" AGAIN,
        "GET /x - | GET / - | idle"),
    ROW("GET / HTTP/1.1\r\n" AGAIN "GRT / HTTP/1.1\r\n" AGAIN, "GET / - | GRT / - | idle"),
    ROW("GET / HTTP/1.1\r\n" AGAIN "GET /# HTTP/1.1\r\n" AGAIN, "GET / - | !400"),
    ROW("GET / HTTP/1.0\r\nX-Only: one\r\n" END "GET / HTTP/1.1\r\nX-Only: one\r\n" END,
        "GET / - close | !400"),
    ROW("GET / HTTP/1.0\r\n" END "GET / HTTP/1.0\r\n" END, "GET / - close | GET / - close | idle"),
    ROW(GET "Connection: close\r\n" END GET "Connection: close\r\n" END,
        "GET / - close | GET / - close | idle"),
    ROW(POST "Content-Length: 2\r\n" END "abPOST / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n" END
             "cd",
        "POST / [ab] | POST / [cd] | idle"),
    ROW(CHUNKED "1\r\na\r\n0\r\n\r\n" CHUNKED "1\r\nb\r\n0\r\n\r\n",
        "POST / [a] | POST / [b] | idle"),
    ROW(POST "Expect: 100-continue\r\n" END POST "Expect: 100-continue\r\n" END,
        "POST / - | POST / - | idle"),
};

TABLE_TEST(repeated_fields, repeated_rows)

/* The same fields but for one byte, which is every byte of them in turn. */
START_TEST(fields_that_almost_repeat)
{
    static const struct span first = SPAN_INIT(LINE AGAIN), line = SPAN_INIT(LINE);
    static const char instead[] = {'\0', '\n', '\r', ' ', '\t', ':', 'a', 'Z', '\x7f', '\xff'};
    char raw[2 * sizeof(LINE AGAIN)];
    struct limits limits;

    limits_init(&limits);
    for (size_t at = line.n; at < first.n; at++) {
        for (size_t i = 0; i < sizeof(instead); i++) {
            struct transcript t;

            memcpy(raw, first.p, first.n);
            memcpy(raw + first.n, first.p, first.n);
            raw[first.n + at] = instead[i];
            run_all_ways(span_of(raw, 2 * first.n), &limits, &t);
            transcript_done(&t);
        }
    }
}
END_TEST

/* An allocation would end the program. */
START_TEST(warm_connection_does_not_allocate)
{
    struct span raw = SPAN(GET "User-Agent: x\r\nAccept: */*\r\n" END);
    struct limits limits;
    struct h1 *p = fed(&limits, raw, H1_REQUEST);
    size_t taken;

    mem_fail_at(1);
    for (int i = 0; i < 10; i++) {
        h1_next(p);
        ck_assert_int_eq(h1_feed(p, raw, &taken), H1_REQUEST);
    }
    mem_fail_at(0);
    h1_free(p);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, simple);
    tcase_add_test(tc, pipelines);
    tcase_add_test(tc, repeated_fields);
    tcase_add_test(tc, fields_that_almost_repeat);
    tcase_add_test(tc, bad_bytes);
    tcase_add_test(tc, bad_lines);
    tcase_add_test(tc, versions);
    tcase_add_test(tc, methods);
    tcase_add_test(tc, targets);
    tcase_add_test(tc, bad_targets);
    tcase_add_test(tc, hosts);
    tcase_add_test(tc, bad_hosts);
    tcase_add_test(tc, bad_fields);
    tcase_add_test(tc, framing);
    tcase_add_test(tc, bad_framing);
    tcase_add_test(tc, chunks);
    tcase_add_test(tc, bad_chunks);
    tcase_add_test(tc, chunk_extensions);
    tcase_add_test(tc, trailers);
    tcase_add_test(tc, keep_alive);
    tcase_add_test(tc, expectations);
    tcase_add_test(tc, fields_are_found_and_trimmed);
    tcase_add_test(tc, absolute_target_overrides_host);
    tcase_add_test(tc, takes_one_request_at_a_time);
    tcase_add_test(tc, failed_takes_no_more);
    tcase_add_test(tc, phases_and_their_bytes);
    tcase_add_test(tc, memory_is_held_for_what_is_not_whole);
    tcase_add_test(tc, continue_is_due_once);
    tcase_add_test(tc, continue_is_not_due);
    tcase_add_test(tc, long_targets);
    tcase_add_test(tc, long_heads);
    tcase_add_test(tc, many_fields);
    tcase_add_test(tc, long_bodies);
    tcase_add_test(tc, long_chunk_framing);
    tcase_add_test(tc, random_chunks);
    tcase_add_test(tc, mutations_mean_the_same_in_pieces);
    tcase_add_test(tc, idle_memory_is_small);
    tcase_add_test(tc, warm_connection_does_not_allocate);
}
