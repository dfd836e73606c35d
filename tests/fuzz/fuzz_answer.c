/* Answers of receivers. The first two bytes of the input say what was asked and how the others are
 * cut into pieces. In pieces they are the same answer as whole, good or bad, to the word; they keep
 * within its bounds, and come to one end. */
#include "../../src/fetch/fetch_answer.h"
#include "base/clock.h"
#include "fuzzing.h"

#include <string.h>

enum { KEEP_BYTES = 64, READ_BYTES = 256, WHY_BYTES = 256 };

/* Whether the connection is kept is not noted: bytes behind the answer may come with it or later.
 * Nor is how much came of a body after what is read of it. */
static struct span note(const struct fetch_answer *a, enum fetch_progress progress,
                        struct arena *to)
{
    char why[WHY_BYTES] = "";
    enum fetch_error error = FETCH_OK;

    if (progress == FETCH_BAD)
        error = fetch_answer_fault(a, why, sizeof(why));
    MUST((error == FETCH_OK) == (why[0] == '\0'));
    MUST(error != FETCH_OK || a->complete_head);
    MUST(a->body.n <= KEEP_BYTES && a->body.n <= a->body_bytes);
    MUST(a->status == 0 || (a->status >= 200 && a->status <= 999));
    MUST(a->retry_after_s >= -1);
    return arena_printf(to, "%d %d %d %lld %d %s %.*s", (int)error, a->status, a->complete_head,
                        (long long)a->retry_after_s, a->stop == FETCH_BODY_READ, why,
                        SPAN_FMT(buf_span(&a->body)));
}

static struct span run(struct fetch *asked, struct span bytes, size_t most, uint32_t chance,
                       struct arena *to)
{
    struct fetch_answer a = {.status = 0};
    enum fetch_progress progress = FETCH_MORE;
    struct span noted;

    fetch_answer_begin(&a, asked);
    while (bytes.n > 0 && progress == FETCH_MORE) {
        struct span piece = span_sub(bytes, 0, 1 + chance % most);

        chance = chance * 1664525 + 1013904223;
        progress = fetch_answer_feed(&a, piece);
        bytes = span_sub(bytes, piece.n, bytes.n);
    }
    if (progress == FETCH_MORE)
        progress = fetch_answer_end(&a);
    MUST(progress != FETCH_MORE);
    MUST(progress == FETCH_WHOLE || !fetch_answer_keeps_connection(&a));
    noted = note(&a, progress, to);
    fetch_answer_done(&a);
    return noted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned choices = input_byte(&in), chance = input_byte(&in);
    struct fetch asked = {.method = choices & 1 ? SPAN("HEAD") : SPAN("POST"),
                          .keep_bytes = KEEP_BYTES,
                          .read_bytes = READ_BYTES};
    struct arena a;

    clock_fake(INT64_C(1800000000) * 1000000000, 1);
    arena_init(&a);
    MUST(span_eq(run(&asked, input_rest(&in), UINT16_MAX, UINT16_MAX - 1, &a),
                 run(&asked, input_rest(&in), 1 + choices / 2 % 32, chance, &a)));
    arena_done(&a);
    return 0;
}
