/* What spans need that is too long to be inline. Loops over all bytes of a target or a header are
 * written for what most input is: sixteen bytes at a time, or libc's memchr and memmem, which use
 * what the processor has. */
#include "base/span.h"

#include "base/macros.h"

#include <string.h>

struct span span_str(const char *text)
{
    return (struct span){text, text != NULL ? strlen(text) : 0};
}

/* Most of what is compared is spelled alike, or not alike at all. */
bool span_same_folded(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && span_fold_char(a[i]) != span_fold_char(b[i]))
            return false;
    return true;
}

int span_cmp(struct span a, struct span b)
{
    size_t n = MIN(a.n, b.n);
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

int span_icmp(struct span a, struct span b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        unsigned char x = (unsigned char)span_fold_char(a.p[i]);
        unsigned char y = (unsigned char)span_fold_char(b.p[i]);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a.n > b.n) - (a.n < b.n);
}

size_t span_find(struct span s, struct span needle)
{
    const char *found;

    if (needle.n == 0)
        return 0;
    if (needle.n > s.n)
        return SIZE_MAX;
    found = memmem(s.p, s.n, needle.p, needle.n);
    return found != NULL ? (size_t)(found - s.p) : SIZE_MAX;
}

enum { WIDE = 16, HALF = WIDE / 2 };
typedef uint8_t bytes16 __attribute__((vector_size(WIDE)));

/* Not zero where a byte is one of those that may not be. */
static inline bytes16 others_of(const char *p, uint8_t least, uint8_t most, uint8_t but)
{
    bytes16 bytes;

    memcpy(&bytes, p, sizeof(bytes));
    /* Bytes below the least wrap around and are too great as well. */
    return (bytes16)(bytes - least > (uint8_t)(most - least)) | (bytes16)(bytes == but);
}

static bool is_zero(bytes16 bytes)
{
    uint64_t halves[2];

    memcpy(halves, &bytes, sizeof(halves));
    return (halves[0] | halves[1]) == 0;
}

/* The last ones overlap those before them, and fewer than sixteen are filled up. */
bool span_holds_only(struct span s, uint8_t least, uint8_t most, char but)
{
    char few[WIDE];
    bytes16 others;

    if (s.n == 0)
        return true;
    if (s.n < WIDE) {
        if (s.n >= HALF) { /* its halves overlap */
            memcpy(few, s.p, HALF);
            memcpy(few + HALF, s.p + s.n - HALF, HALF);
        } else {
            memset(few, least != (uint8_t)but ? least : most, WIDE);
            memcpy(few, s.p, s.n);
        }
        return is_zero(others_of(few, least, most, (uint8_t)but));
    }
    others = others_of(s.p + s.n - WIDE, least, most, (uint8_t)but);
    for (size_t i = 0; i + WIDE <= s.n; i += WIDE)
        others |= others_of(s.p + i, least, most, (uint8_t)but);
    return is_zero(others);
}

size_t span_count_char(struct span s, char c)
{
    size_t count = 0;

    for (size_t at = 0; (at = span_find_char(s, c, at)) < s.n; at++)
        count++;
    return count;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct span span_trim(struct span s)
{
    size_t from = 0;
    size_t to = s.n;

    while (from < to && is_blank(s.p[from]))
        from++;
    while (to > from && is_blank(s.p[to - 1]))
        to--;
    return span_sub(s, from, to);
}

bool span_to_u64(struct span s, uint64_t *out_value)
{
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out_value = value;
    return true;
}

bool span_to_i64(struct span s, int64_t *out_value)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    bool has_sign = negative || (s.n > 0 && s.p[0] == '+');
    uint64_t size;

    if (!span_to_u64(span_sub(s, has_sign, s.n), &size))
        return false;
    if (size > (uint64_t)INT64_MAX + negative)
        return false;
    /* Negated unsigned: the least value has no positive counterpart. */
    *out_value = (int64_t)(negative ? -size : size);
    return true;
}

struct span span_u64(uint64_t value, char room[SPAN_U64_BYTES])
{
    size_t at = SPAN_U64_BYTES;

    do {
        room[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return span_of(room + at, SPAN_U64_BYTES - at);
}
