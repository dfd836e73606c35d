/* Canonical values: one spelling for all that are equal, and for the kinds that have an order a
 * rank of 64 bits that decides nearly all comparisons without looking at the spelling.
 *
 * null: nothing. Boolean: `t`, `f`. Number: decimal_add_canonical. String: its characters.
 * Datetime: seconds and nanoseconds, big-endian, so that its order is that of bytes. */
#include "predicate_private.h"

#include "base/must.h"
#include "json/decimal.h"

#include <endian.h>
#include <string.h>

/* ---- keys ---- */

static uint64_t instant_rank(struct instant at)
{
    return (uint64_t)at.seconds + (UINT64_C(1) << 63);
}

static void add_instant(struct buf *b, struct instant at)
{
    uint64_t seconds = htobe64(instant_rank(at));
    uint32_t nanos = htobe32(at.nanos);

    buf_add(b, span_of((const char *)&seconds, sizeof(seconds)));
    buf_add(b, span_of((const char *)&nanos, sizeof(nanos)));
}

struct span predicate_key(struct predicates *set, const struct predicate_path *path,
                          const struct literal *literal)
{
    struct buf *key = &set->key;

    buf_clear(key);
    switch (literal->kind) {
    case LITERAL_NULL:
        break;
    case LITERAL_BOOLEAN:
        buf_add_char(key, literal->boolean ? 't' : 'f');
        break;
    case LITERAL_NUMBER:
        decimal_add_canonical(key, literal->text);
        break;
    case LITERAL_STRING:
        buf_add(key, literal->text);
        break;
    case LITERAL_DATETIME:
        add_instant(key, literal->instant);
        break;
    }
    buf_add_char(key, (char)literal->kind);
    buf_add(key, span_of((const char *)&path, sizeof(path)));
    return buf_span(key);
}

struct span predicate_key_text(struct predicates *set, const struct predicate_path *path,
                               struct span text)
{
    buf_clear(&set->key);
    buf_add(&set->key, span_of((const char *)&path, sizeof(path)));
    buf_add(&set->key, text);
    return buf_span(&set->key);
}

struct span predicate_key_canonical(struct span key)
{
    MUST(key.n > sizeof(struct predicate_path *));
    return span_sub(key, 0, key.n - 1 - sizeof(struct predicate_path *));
}

/* ---- order ---- */

/* The first eight bytes, big-endian. A shorter text and the same with zero bytes behind it share a
 * rank. */
static uint64_t bytes_rank(struct span text)
{
    uint64_t rank = 0;

    if (text.n > 0)
        memcpy(&rank, text.p, MIN(text.n, sizeof(rank)));
    return be64toh(rank);
}

enum {
    RANK_DIGITS = 14, /* 10^14 < 2^47 */
    DIGIT_BITS = 47,
    POWER_BIAS = 8192, /* 14 bits */
    POWER_MOST = 8190,
};

#define RANK_OF_ZERO (UINT64_C(1) << 62)

/* The rank of a canonical number without its sign: its power of ten, then its first digits. Numbers
 * of extreme powers share a rank. */
static uint64_t magnitude(struct span canonical)
{
    struct span digits = span_split(&canonical, 'e');
    int64_t power = 0;
    uint64_t leading = 0;

    (void)span_to_i64(canonical, &power); /* the canonical spelling always has one */
    power += (int64_t)digits.n;
    if (power > POWER_MOST || power < -POWER_MOST)
        return (uint64_t)(power > 0 ? 2 * POWER_BIAS - 1 : 1) << DIGIT_BITS;
    for (size_t i = 0; i < RANK_DIGITS; i++)
        leading = 10 * leading + (i < digits.n ? (uint64_t)(digits.p[i] - '0') : 0);
    return (uint64_t)(power + POWER_BIAS) << DIGIT_BITS | leading;
}

static uint64_t number_rank(struct span canonical)
{
    if (span_eq(canonical, SPAN("0")))
        return RANK_OF_ZERO;
    if (canonical.p[0] == '-')
        return RANK_OF_ZERO - magnitude(span_sub(canonical, 1, canonical.n));
    return RANK_OF_ZERO + magnitude(canonical);
}

interval_cmp_fn *predicate_key_cmp(enum literal_kind kind)
{
    return kind == LITERAL_NUMBER ? decimal_cmp : span_cmp;
}

uint64_t predicate_key_rank(enum literal_kind kind, struct span canonical)
{
    return kind == LITERAL_NUMBER ? number_rank(canonical) : bytes_rank(canonical);
}
