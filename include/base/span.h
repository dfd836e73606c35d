/* A span: bytes that somebody else owns. Not terminated, may hold NUL. {NULL, 0} is the absent
 * span, {p, 0} an empty one; most callers treat both alike. What takes a few instructions, and
 * fewer where the compiler knows an argument, is inline. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *p;
    size_t n;
};

/* A span over a string literal, usable in initialisers. */
#define SPAN(literal) ((struct span){"" literal, sizeof(literal) - 1})
/* The same for static tables, where a compound literal is not constant. */
#define SPAN_INIT(literal)                                                                         \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }
/* For "%.*s". */
#define SPAN_FMT(s) (int)(s).n, (s).p

static inline struct span span_of(const char *p, size_t n)
{
    return (struct span){p, n};
}

/* An ASCII letter in lower case, any other byte as it is. */
static inline char span_fold_char(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}
/* `text` may be NULL: the absent span. */
struct span span_str(const char *text);

static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Are n bytes the same when ASCII letters are folded? */
bool span_same_folded(const char *a, const char *b, size_t n);
/* Equal when ASCII letters are folded; other bytes must be the same. */
static inline bool span_ieq(struct span a, struct span b)
{
    return a.n == b.n && span_same_folded(a.p, b.p, a.n);
}

/* Bytewise order, a prefix before the longer one: <0, 0, >0. */
int span_cmp(struct span a, struct span b);
/* The same with ASCII case folded. */
int span_icmp(struct span a, struct span b);
static inline bool span_starts(struct span s, struct span prefix)
{
    return s.n >= prefix.n && span_eq(span_of(s.p, prefix.n), prefix);
}

/* s[from, to); both are cut to the length of s. The absent span has no address to add to. */
static inline struct span span_sub(struct span s, size_t from, size_t to)
{
    size_t cut_to = to < s.n ? to : s.n;
    size_t cut_from = from < cut_to ? from : cut_to;

    return span_of(cut_from > 0 ? s.p + cut_from : s.p, cut_to - cut_from);
}

static inline bool span_istarts(struct span s, struct span prefix)
{
    return s.n >= prefix.n && span_same_folded(s.p, prefix.p, prefix.n);
}

static inline bool span_ends(struct span s, struct span suffix)
{
    return s.n >= suffix.n && span_eq(span_sub(s, s.n - suffix.n, s.n), suffix);
}

/* Offset of the first `c` at or after `from`, or s.n when there is none. */
static inline size_t span_find_char(struct span s, char c, size_t from)
{
    const char *hit = from < s.n ? (const char *)memchr(s.p + from, c, s.n - from) : NULL;

    return hit != NULL ? (size_t)(hit - s.p) : s.n;
}

/* How many there are of it. */
size_t span_count_char(struct span s, char c);
/* Offset of the first occurrence of `needle` (an empty one is found at 0), or SIZE_MAX. */
size_t span_find(struct span s, struct span needle);
/* Is every byte one of `least` to `most`, and none of them `but`? Sixteen at a time. */
bool span_holds_only(struct span s, uint8_t least, uint8_t most, char but);
/* Without leading and trailing spaces and tabs. */
struct span span_trim(struct span s);
/* Cuts the part before the first `separator` off the front of *rest and returns it; without a
 * separator the whole rest, and *rest becomes the absent span {NULL, 0}. */
static inline struct span span_split(struct span *rest, char separator)
{
    struct span whole = *rest;
    size_t n = span_find_char(whole, separator, 0);

    *rest = n < whole.n ? span_of(whole.p + n + 1, whole.n - n - 1) : span_of(NULL, 0);
    return span_of(whole.p, n);
}

/* Decimal digits only, no sign, no blanks. False on overflow, emptiness or another character. */
bool span_to_u64(struct span s, uint64_t *out_value);
/* The same with an optional leading '-' or '+'. */
bool span_to_i64(struct span s, int64_t *out_value);

#define SPAN_U64_BYTES 20
/* In decimal; the digits stand in `room`. */
struct span span_u64(uint64_t value, char room[SPAN_U64_BYTES]);

#endif
