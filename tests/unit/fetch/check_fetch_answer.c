/* Good and bad answers, whole and cut into pieces of every kind: what came of them must be the same
 * to the word. The fuzz target does it, as it does with what it makes up. */
#include "../../fuzz/fuzzing.h"

#include "testing.h"

#include "base/buf.h"
#include "base/macros.h"

#define LINE "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *text;
    size_t repeat; /* of the last byte of `text`, so many times more */
    const char *rest;
} answers[] = {
    {LINE "Content-Length: 3\r\n\r\nabc", 0, ""},
    {LINE "Content-Length: 3\r\n\r\nabcHTTP", 0, ""},
    {LINE "Empty:\r\nFolded: a\r\n b\r\nRetry-After: 7\r\n\r\n", 0, "body until the end"},
    {"HTTP/1.1 503 \r\nRetry-After: 7\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n", 0, ""},
    {LINE "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", 0, ""},
    /* Two faults: the first one counts. */
    {LINE "Transfer-Encoding: gzip\r\nB\x01: x\r\n\r\n", 0, ""},
    {LINE "B\x01: x\r\nTransfer-Encoding: gzip\r\n\r\n", 0, ""},
    {LINE "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 0, ""},
    {LINE "Content-Length: 3x\r\n\r\nabc", 0, ""},
    {"HTTP/1.1 20", 0, "x OK\r\n\r\n"},
    {"HTTP/1.1 101 Now\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx", 0, ""},
    {"HTTP/1.1 101 Now\r\nB\x01: x\r\n\r\n", 0, ""},
    {"HTTP/2.0 200 OK\r\n\r\n", 0, ""},
    {"nonsense", 0, ""},
    {LINE, 0, ""},
    {LINE "Content-Length: 30\r\n\r\nabc", 0, ""},
    /* A body that cannot be read, and one whose trailers cannot. */
    {LINE "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n", 0, ""},
    {LINE "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nB\x01\r\n\r\n", 0, ""},
    {LINE "Transfer-Encoding: chunked\r\nTrailer: x\r\n\r\n3\r\nabc\r\n0\r\nx: a", 70000,
     "\r\n\r\n"},
    /* More than is read of a body, of a head, of anything. */
    {LINE "Content-Length: 1000\r\n\r\nx", 999, ""},
    {LINE "Content-Length: 256\r\n\r\nx", 255, ""},
    {LINE "Long: x", 65000, "\r\nContent-Length: 0\r\n\r\n"},
    {LINE "Long: x", 65490, "\r\nContent-Length: 0\r\n\r\n"},
    {LINE "Long: x", 65500, "\r\nContent-Length: 0\r\n\r\n"},
    {LINE "Long: x", 66000, "\x01\r\nContent-Length: 0\r\n\r\n"},
    {"HTTP/1.1 200 x", 66000, "\r\n\r\n"},
    {LINE "x", 66000, ": x\r\n\r\n"},
    {LINE "Transfer-Encoding: chunked\r\n\r\n1;x", 1200000, "\r\na\r\n0\r\n\r\n"},
    {LINE "Transfer-Encoding: chunked\r\n\r\n1;x", 1050000, "\r\na\r\n0\r\n\r\nHTTP/1.1 200 Next"},
};

/* Interim answers: sixteen may come. */
static const char *const interims[] = {"", "B\x01: x\r\n", "x: y\r\n"};

static void try_pieces(struct buf *b)
{
    static const uint8_t choices[] = {0, 4, 62, 1};

    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        b->p[0] = (char)choices[i];
        b->p[1] = (char)(i * 37);
        (void)LLVMFuzzerTestOneInput((const uint8_t *)b->p, b->n);
    }
}

START_TEST(every_answer)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    buf_add(&b, SPAN("\0\0"));
    buf_add_str(&b, answers[_i].text);
    for (size_t n = 0; n < answers[_i].repeat; n++)
        buf_add_char(&b, b.p[b.n - 1]);
    buf_add_str(&b, answers[_i].rest);
    try_pieces(&b);
    buf_done(&b);
}
END_TEST

START_TEST(interim_answers)
{
    for (unsigned count = 15; count < 19; count++) {
        struct buf b;

        buf_init(&b, BUF_NO_CAP);
        buf_add(&b, SPAN("\0\0"));
        for (unsigned n = 0; n < count; n++)
            buf_printf(&b, "HTTP/1.1 103 Early\r\n%s\r\n", n + 1 == count ? interims[_i] : "");
        buf_add_str(&b, LINE "Content-Length: 0\r\n\r\n");
        try_pieces(&b);
        buf_done(&b);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, every_answer, 0, ARRAY_LEN(answers));
    tcase_add_loop_test(tc, interim_answers, 0, ARRAY_LEN(interims));
}
