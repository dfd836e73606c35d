/* Answers of receivers, on the way that does without libcurl. The first two bytes of the input say
 * what was asked and how the others are cut into pieces; they come over a socket, and what an
 * answer leads to is taken down here instead of by fetch_plain. In pieces they are the same answer
 * as whole, good or bad, to the word; they keep within its bounds, and come to one end. */
#include "../../src/io/fetch_plain.h"
#include "base/clock.h"
#include "base/mem.h"
#include "fuzzing.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEEP_BYTES = 64, READ_BYTES = 256 };

/* What became of the answer at hand. */
static struct {
    bool is_over, is_closed;
    CURLcode code;
    uint64_t missing; /* bytes of a body, when the connection ended */
} end;

static void end_with(CURLcode code)
{
    MUST(!end.is_over);
    end.is_over = true;
    end.code = code;
}

void plain_finish(struct fetch_transfer *t, CURLcode code, const char *why)
{
    MUST(why == NULL || why[0] != '\0');
    snprintf(t->curl_text, sizeof(t->curl_text), "%s", why == NULL ? "" : why);
    end_with(code);
}

void plain_lose(struct plain_conn *c, int error)
{
    MUST(error == 0);
    end.missing = c->parser.content_length;
    end.is_closed = true;
    end_with(CURLE_GOT_NOTHING);
}

bool plain_has_sent(const struct plain_conn *c)
{
    (void)c;
    return true;
}

void plain_close(struct plain_conn *c)
{
    (void)c;
    MUST(!end.is_closed);
    end.is_closed = true;
}

void plain_keep(struct plain_conn *c, struct span key)
{
    (void)key;
    MUST(!end.is_closed && !c->is_unclear);
}

/* ---- one answer ---- */

struct asked {
    struct loop *loop;
    struct fetcher *fetcher;
    struct fetch_host *host;
    struct fetch fetch;
};

/* Whether the connection is kept is not noted: bytes behind the answer may come with it or later.
 * Nor is how much came of a body after what is read of it. */
static struct span note(struct fetch_transfer *t, struct arena *a)
{
    const struct fetch_answer *answer = &t->answer;
    struct fetch_result result;

    fetch_answer_judge(t, end.code, &result);
    MUST(result.body.n <= KEEP_BYTES && result.body.n <= result.body_bytes);
    MUST(answer->status == 0 || (answer->status >= 200 && answer->status <= 999));
    MUST(result.status == 0 || answer->complete_head);
    MUST(result.error != FETCH_OK || result.status != 0);
    MUST(result.retry_after_s >= -1);
    return arena_printf(a, "%d %d %lld %d %llu %s %.*s", (int)result.error, result.status,
                        (long long)result.retry_after_s, result.truncated,
                        (unsigned long long)end.missing, result.error == FETCH_OK ? "" : result.why,
                        SPAN_FMT(result.body));
}

static void feed_pieces(struct plain_conn *c, int to, struct span bytes, size_t most,
                        uint32_t chance)
{
    while (bytes.n > 0 && !end.is_over) {
        struct span piece = span_sub(bytes, 0, 1 + chance % most);

        chance = chance * 1664525 + 1013904223;
        MUST(send(to, piece.p, piece.n, MSG_NOSIGNAL) == (ssize_t)piece.n);
        plain_read(c, false);
        bytes = span_sub(bytes, piece.n, bytes.n);
    }
    if (end.is_over)
        return;
    MUST(shutdown(to, SHUT_WR) == 0);
    plain_read(c, false);
    MUST(end.is_over);
}

static struct span run(struct asked *asked, struct span bytes, size_t most, uint32_t chance,
                       struct arena *a)
{
    struct fetch_transfer *t = NEW(struct fetch_transfer);
    struct plain_conn *c = NEW(struct plain_conn);
    struct span noted;
    int fds[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    memset(&end, 0, sizeof(end));
    t->kind = FETCH_KIND_TRANSFER;
    t->fetch = &asked->fetch;
    t->host = asked->host;
    t->fetcher = c->fetcher = asked->fetcher;
    fetch_answer_init(&t->answer, &asked->fetch);
    buf_init(&c->line, BUF_NO_CAP);
    c->t = t;
    c->fd = fds[0];
    plain_expect(c);
    feed_pieces(c, fds[1], bytes, most, chance);
    noted = note(t, a);
    close(fds[0]);
    close(fds[1]);
    fetch_answer_done(&t->answer);
    buf_done(&c->line);
    mem_free(c);
    mem_free(t);
    return noted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned choices = input_byte(&in), chance = input_byte(&in);
    struct asked asked = {.fetch = {.method = choices & 1 ? SPAN("HEAD") : SPAN("POST"),
                                    .keep_bytes = KEEP_BYTES,
                                    .read_bytes = READ_BYTES}};
    struct arena a;

    clock_fake(INT64_C(1800000000) * 1000000000, 1);
    arena_init(&a);
    asked.loop = ARENA_NEW(&a, struct loop);
    asked.loop->scratch = mem_alloc(LOOP_SCRATCH_BYTES);
    asked.fetcher = ARENA_NEW(&a, struct fetcher);
    asked.fetcher->loop = asked.loop;
    asked.host = arena_zero(&a, sizeof(struct fetch_host) + 1);
    MUST(span_eq(run(&asked, input_rest(&in), UINT16_MAX, UINT16_MAX - 1, &a),
                 run(&asked, input_rest(&in), 1 + choices / 2 % 32, chance, &a)));
    mem_free(asked.loop->scratch);
    arena_done(&a);
    return 0;
}
