/* Canonical values: one spelling for all that are equal, and for the kinds that have an order a
 * rank of 64 bits that decides nearly all comparisons without looking at the spelling.
 *
 * null: nothing. Boolean: `t`, `f`. Number: decimal_add_canonical. String: its characters.
 * Datetime: seconds and nanoseconds, big-endian, so that its order is that of bytes. */
#include "predicate_private.h"

#include "base/decimal.h"

#include <endian.h>
#include <string.h>

/* ---- keys ---- */

/* What follows the canonical value. */
static struct span end_key(struct predicates *set, const struct predicate_path *path,
                           enum literal_kind kind)
{
    buf_add_char(&set->key, (char)kind);
    buf_add(&set->key, span_of((const char *)&path, sizeof(path)));
    return buf_span(&set->key);
}

struct span predicate_key_null(struct predicates *set, const struct predicate_path *path)
{
    buf_clear(&set->key);
    return end_key(set, path, LITERAL_NULL);
}

struct span predicate_key_boolean(struct predicates *set, const struct predicate_path *path,
                                  bool value)
{
    buf_clear(&set->key);
    buf_add_char(&set->key, value ? 't' : 'f');
    return end_key(set, path, LITERAL_BOOLEAN);
}

struct span predicate_key_number(struct predicates *set, const struct predicate_path *path,
                                 struct span text)
{
    buf_clear(&set->key);
    decimal_add_canonical(&set->key, text);
    return end_key(set, path, LITERAL_NUMBER);
}

struct span predicate_key_string(struct predicates *set, const struct predicate_path *path,
                                 struct span text)
{
    buf_clear(&set->key);
    buf_add(&set->key, text);
    return end_key(set, path, LITERAL_STRING);
}

static uint64_t instant_rank(struct instant at)
{
    return (uint64_t)at.seconds + (UINT64_C(1) << 63);
}

struct span predicate_key_instant(struct predicates *set, const struct predicate_path *path,
                                  struct instant at)
{
    uint64_t seconds = htobe64(instant_rank(at));
    uint32_t nanos = htobe32(at.nanos);

    buf_clear(&set->key);
    buf_add(&set->key, span_of((const char *)&seconds, sizeof(seconds)));
    buf_add(&set->key, span_of((const char *)&nanos, sizeof(nanos)));
    return end_key(set, path, LITERAL_DATETIME);
}

struct span predicate_key_literal(struct predicates *set, const struct predicate_path *path,
                                  const struct literal *literal)
{
    switch (literal->kind) {
    case LITERAL_NULL:
        return predicate_key_null(set, path);
    case LITERAL_BOOLEAN:
        return predicate_key_boolean(set, path, literal->boolean);
    case LITERAL_NUMBER:
        return predicate_key_number(set, path, literal->text);
    case LITERAL_DATETIME:
        return predicate_key_instant(set, path, literal->instant);
    default:
        return predicate_key_string(set, path, literal->text);
    }
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

/* Of a canonical number without its sign: its power of ten, then its first digits. Numbers of
 * extreme powers share a rank. */
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
