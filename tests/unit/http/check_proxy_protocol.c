/* Each row is fed whole, byte by byte and in random pieces, with bytes behind it that must be left
 * alone. */
#include "testing.h"

#include "base/buf.h"
#include "base/rng.h"
#include "http/proxy_protocol.h"

#include <string.h>

#define BEHIND "GET / HTTP/1.1\r\n"
#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define V4_ADDRESSES "\xc0\x00\x02\x01\x0a\x00\x00\x01\x1f\x90\x00\x50"
#define V6_SOURCE "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
#define V6_ADDRESSES V6_SOURCE V6_SOURCE "\x1f\x90\x00\x50"
#define TEN "\0\0\0\0\0\0\0\0\0\0"
#define UNIX_ADDRESSES                                                                             \
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN            \
        "\0\0\0\0\0\0"

#define NOBODY ""

static const struct {
    struct span header;
    const char *client; /* NOBODY: none; NULL: it fails */
    const char *why;
} rows[] = {
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 8080 80\r\n"), "192.0.2.1", NULL},
    {SPAN_INIT("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), "255.255.255.255",
     NULL},
    {SPAN_INIT("PROXY TCP6 2001:db8::1 ::1 0 0\r\n"), "2001:db8::1", NULL},
    {SPAN_INIT(
         "PROXY TCP6 2001:DB8:0:0:0:0:0:1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 1 65535\r\n"),
     "2001:db8::1", NULL},
    {SPAN_INIT("PROXY TCP6 ::ffff:192.0.2.1 ::ffff:10.0.0.1 1 2\r\n"), "192.0.2.1", NULL},
    {SPAN_INIT("PROXY UNKNOWN\r\n"), NOBODY, NULL},
    {SPAN_INIT("PROXY UNKNOWN \r\n"), NOBODY, NULL},
    {SPAN_INIT("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
               "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
     NOBODY, NULL},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 8080 80\n"), NULL, "CR LF"},
    {SPAN_INIT("PROXY UNKNOWN\n"), NULL, "CR LF"},
    {SPAN_INIT("PROXY \n"), NULL, "CR LF"},
    {SPAN_INIT("PROXY \r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 8080\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 8080 80 \r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 8080 80 1\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4  192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY  TCP4 192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4\t192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY tcp4 192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP5 192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY UDP4 192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY UNKNOWN2\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 2001:db8::1 ::1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP6 192.0.2.1 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 ::1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.01 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.256 10.0.0.1 8080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 65536 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 080 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 -1 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 00 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 \r80 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY TCP4 192.0.2.1\0 10.0.0.1 80 80\r\n"), NULL, "malformed"},
    {SPAN_INIT("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
               "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535xx"),
     NULL, "too long"},
    {SPAN_INIT("Q"), NULL, "otherwise"},
    {SPAN_INIT("PRI"), NULL, "otherwise"},
    {SPAN_INIT("PO"), NULL, "otherwise"},
    {SPAN_INIT("\x16"), NULL, "otherwise"},
    {SPAN_INIT("\0"), NULL, "otherwise"},
    {SPAN_INIT("\r\n\r\nG"), NULL, "otherwise"},
    {SPAN_INIT("PROXY\t"), NULL, "otherwise"},

    {SPAN_INIT(V2 "\x21\x11\x00\x0c" V4_ADDRESSES), "192.0.2.1", NULL},
    {SPAN_INIT(V2 "\x21\x21\x00\x24" V6_ADDRESSES), "2001:db8::1", NULL},
    {SPAN_INIT(V2 "\x21\x11\x00\x13" V4_ADDRESSES "\x04\x00\x04"
                  "pads"),
     "192.0.2.1", NULL},
    {SPAN_INIT(V2 "\x21\x11\x00\x0d" V4_ADDRESSES "\xff"), "192.0.2.1", NULL},
    {SPAN_INIT(V2 "\x21\x31\x00\xd8" UNIX_ADDRESSES), NOBODY, NULL},
    {SPAN_INIT(V2 "\x21\x32\x00\xd8" UNIX_ADDRESSES), NOBODY, NULL},
    {SPAN_INIT(V2 "\x21\x12\x00\x0c" V4_ADDRESSES), NOBODY, NULL},
    {SPAN_INIT(V2 "\x21\x22\x00\x24" V6_ADDRESSES), NOBODY, NULL},
    {SPAN_INIT(V2 "\x21\x00\x00\x00"), NOBODY, NULL},
    {SPAN_INIT(V2 "\x21\x00\x00\x03"
                  "abc"),
     NOBODY, NULL},
    {SPAN_INIT(V2 "\x20\x00\x00\x00"), NOBODY, NULL},
    {SPAN_INIT(V2 "\x20\x11\x00\x0c" V4_ADDRESSES), NOBODY, NULL},
    {SPAN_INIT(V2 "\x20\xff\x00\x01"
                  "a"),
     NOBODY, NULL},
    {SPAN_INIT(V2 "\x22"), NULL, "version or command"},
    {SPAN_INIT(V2 "\x2f"), NULL, "version or command"},
    {SPAN_INIT(V2 "\x11"), NULL, "version or command"},
    {SPAN_INIT(V2 "\x31"), NULL, "version or command"},
    {SPAN_INIT(V2 "\xa1"), NULL, "version or command"},
    {SPAN_INIT(V2 "\x21\x13\x00\x0c"), NULL, "family or protocol"},
    {SPAN_INIT(V2 "\x21\x41\x00\x0c"), NULL, "family or protocol"},
    {SPAN_INIT(V2 "\x21\x01\x00\x0c"), NULL, "family or protocol"},
    {SPAN_INIT(V2 "\x21\xff\x00\x0c"), NULL, "family or protocol"},
    {SPAN_INIT(V2 "\x21\x11\x00\x0b"), NULL, "cut short"},
    {SPAN_INIT(V2 "\x21\x11\x00\x00"), NULL, "cut short"},
    {SPAN_INIT(V2 "\x21\x21\x00\x23"), NULL, "cut short"},
    {SPAN_INIT(V2 "\x21\x31\x00\xd7"), NULL, "cut short"},
    {SPAN_INIT(V2 "\x21\x11\x10\x01"), NULL, "it is too long"},
    {SPAN_INIT(V2 "\x20\x00\xff\xff"), NULL, "it is too long"},
};

/* In pieces of at most `most` bytes. Returns how many were taken. */
static size_t feed(struct proxy_protocol *p, struct span bytes, size_t most,
                   enum proxy_result *out_result)
{
    size_t all = 0;

    *out_result = PROXY_NEED_MORE;
    while (bytes.n > 0 && *out_result == PROXY_NEED_MORE) {
        size_t taken, piece = 1 + (size_t)rng_below(most);

        piece = MIN(piece, bytes.n);
        *out_result = proxy_protocol_feed(p, span_sub(bytes, 0, piece), &taken);
        ck_assert_uint_le(taken, piece);
        ck_assert(taken == piece || *out_result != PROXY_NEED_MORE);
        bytes = span_sub(bytes, taken, bytes.n);
        all += taken;
    }
    return all;
}

static void expect(struct span whole, size_t header_bytes, size_t most, const char *client,
                   const char *why)
{
    struct proxy_protocol p = {.taken = 0};
    char text[INET6_ADDRSTRLEN];
    enum proxy_result result;
    size_t taken = feed(&p, whole, most, &result);

    ck_assert_uint_eq(taken, header_bytes);
    if (client == NULL) {
        ck_assert_int_eq(result, PROXY_FAILED);
        ck_assert_msg(strstr(p.why, why) != NULL, "'%s' lacks '%s'", p.why, why);
        return;
    }
    ck_assert_int_eq(result, PROXY_DONE);
    ck_assert(p.has_client == (client[0] != '\0'));
    if (p.has_client)
        ck_assert_str_eq(ip_text(&p.client, text), client);
}

START_TEST(headers)
{
    struct span header = rows[_i].header;
    struct buf whole;

    buf_init(&whole, BUF_NO_CAP);
    buf_add(&whole, header);
    buf_add_str(&whole, BEHIND);
    expect(buf_span(&whole), header.n, whole.n, rows[_i].client, rows[_i].why);
    for (size_t most = 1; most <= 20; most++)
        expect(buf_span(&whole), header.n, most, rows[_i].client, rows[_i].why);
    buf_done(&whole);
}
END_TEST

/* Of a good one, every shorter piece is awaited on, whatever comes next. */
START_TEST(what_is_not_whole_is_awaited)
{
    struct span header = rows[_i].header;

    for (size_t n = 0; rows[_i].client != NULL && n < header.n; n++) {
        struct proxy_protocol p = {.taken = 0};
        size_t taken;

        ck_assert_int_eq(proxy_protocol_feed(&p, span_sub(header, 0, n), &taken), PROXY_NEED_MORE);
        ck_assert_uint_eq(taken, n);
    }
}
END_TEST

START_TEST(the_longest)
{
    struct buf whole;

    buf_init(&whole, BUF_NO_CAP);
    buf_add(&whole, SPAN(V2 "\x21\x11\x10\x00" V4_ADDRESSES));
    while (whole.n < PROXY_PROTOCOL_MOST + 100)
        buf_add_char(&whole, 'x');
    expect(buf_span(&whole), PROXY_PROTOCOL_MOST, whole.n, "192.0.2.1", NULL);
    expect(buf_span(&whole), PROXY_PROTOCOL_MOST, 1, "192.0.2.1", NULL);
    buf_done(&whole);
}
END_TEST

/* Good ones with some bytes changed: always a result, in bounds, the same in any pieces. */
START_TEST(changed_bytes)
{
    for (unsigned round = 0; round < 20000; round++) {
        struct proxy_protocol whole = {.taken = 0}, pieces = {.taken = 0};
        enum proxy_result results[2];
        char bytes[300];
        struct span header = rows[rng_below(ARRAY_LEN(rows))].header;
        size_t taken;

        memcpy(bytes, header.p, header.n);
        for (unsigned i = 0; i < 3; i++)
            bytes[rng_below(header.n)] = (char)rng_u64();
        header.p = bytes;
        results[0] = proxy_protocol_feed(&whole, header, &taken);
        ck_assert_uint_eq(feed(&pieces, header, 7, &results[1]), taken);
        ck_assert_int_eq(results[0], results[1]);
        ck_assert(whole.has_client == pieces.has_client && whole.why == pieces.why);
        ck_assert_mem_eq(&whole.client, &pieces.client, sizeof(whole.client));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, headers, 0, ARRAY_LEN(rows));
    tcase_add_loop_test(tc, what_is_not_whole_is_awaited, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, the_longest);
    tcase_add_test(tc, changed_bytes);
}
