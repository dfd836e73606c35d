/* Bodies of journal records. The first byte of the input is the kind, the rest the body. What can
 * be read is written as the same bytes again, as far as this version knows them, and each dump is
 * one line of JSON. */
#include "fuzzing.h"
#include "store/record.h"
#include "json/json.h"

enum { EVENT_FLAGS_AT = 32 };

/* Reads the body and appends what it was understood as. */
typedef struct err *rewrite_fn(struct span body, struct buf *b);

#define REWRITE(name)                                                                              \
    static struct err *rewrite_##name(struct span body, struct buf *b)                             \
    {                                                                                              \
        struct record_##name r;                                                                    \
                                                                                                   \
        TRY(record_read_##name(body, &r));                                                         \
        record_add_##name(b, &r);                                                                  \
        return NULL;                                                                               \
    }

REWRITE(entity)
REWRITE(entity_gone)
REWRITE(event)
REWRITE(delivery)
REWRITE(lane)
REWRITE(once)
REWRITE(once_gone)

static struct err *rewrite_number(struct span body, struct buf *b)
{
    uint64_t object_no;

    TRY(record_read_number(body, &object_no));
    record_add_number(b, object_no);
    return NULL;
}

static rewrite_fn *const rewriters[RECORD_KIND_END] = {
    [RECORD_ENTITY] = rewrite_entity,       [RECORD_ENTITY_GONE] = rewrite_entity_gone,
    [RECORD_EVENT] = rewrite_event,         [RECORD_EVENT_GONE] = rewrite_number,
    [RECORD_DELIVERY] = rewrite_delivery,   [RECORD_DELIVERY_GONE] = rewrite_number,
    [RECORD_LANE] = rewrite_lane,           [RECORD_ONCE] = rewrite_once,
    [RECORD_ONCE_GONE] = rewrite_once_gone,
};

static bool is_readable(unsigned kind, struct span body)
{
    struct err *e = record_check(kind, body);
    bool readable = e == NULL;

    MUST(readable || err_code(e) == ERR_STORAGE_FAILURE);
    err_free(e);
    return readable;
}

static void check_rewritten(unsigned kind, char *body, size_t n)
{
    struct buf b;
    struct err *e;

    if (kind == RECORD_EVENT && n > EVENT_FLAGS_AT)
        body[EVENT_FLAGS_AT] &= 3; /* what later versions add to the flags is dropped */
    buf_init(&b, BUF_NO_CAP);
    e = rewriters[kind](span_of(body, n), &b);
    MUST((e == NULL) == is_readable(kind, span_of(body, n)));
    if (e == NULL)
        MUST(span_starts(span_of(body, n), buf_span(&b)));
    err_free(e);
    buf_done(&b);
}

static void check_dump(unsigned kind, struct span body, struct arena *a)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST, UINT32_MAX};
    struct json_doc doc;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    record_add_dump(&b, kind, body);
    MUST(span_find_char(buf_span(&b), '\n', 0) >= b.n);
    MUST(json_parse(buf_span(&b), &limits, a, &doc) == NULL);
    MUST(json_exists(json_member(json_root(&doc), SPAN("kind"))));
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned kind = input_byte(&in) % (RECORD_KIND_END + 2);
    struct arena a;
    struct span body;

    arena_init(&a);
    body = arena_copy(&a, input_rest(&in));
    check_dump(kind, body, &a);
    if (kind > 0 && kind < RECORD_KIND_END)
        check_rewritten(kind, (char *)(uintptr_t)body.p, body.n);
    else
        MUST(!is_readable(kind, body));
    arena_done(&a);
    return 0;
}
