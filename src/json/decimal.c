/* A number is read as 0.DDD times a power of ten, where neither the first nor the last digit D is
 * zero: that form is the same for all spellings of a value, so comparing is comparing signs,
 * powers and digits. The digits stay where they are, in two pieces around the point. */
#include "json/decimal.h"

#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPONENT_MOST ((int64_t)1 << 62)
/* So many digits fit an int64_t whatever they are. */
#define I64_DIGITS 18
/* More digits than it takes to tell a double's neighbours apart (767). */
#define DOUBLE_DIGITS 800

struct decimal {
    bool negative;
    struct span head, tail; /* both empty: zero */
    int64_t top;            /* 0.<head><tail> times 10^top */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- reading ---- */

/* Takes the digits off the front of *s. */
static struct span take_digits(struct span *s)
{
    struct span digits = {s->p, 0};

    while (digits.n < s->n && is_digit(s->p[digits.n]))
        digits.n++;
    *s = span_sub(*s, digits.n, s->n);
    return digits;
}

/* Takes a sign, if any. True for '-'. */
static bool take_sign(struct span *s)
{
    bool negative = s->n > 0 && s->p[0] == '-';

    if (negative || (s->n > 0 && s->p[0] == '+'))
        *s = span_sub(*s, 1, s->n);
    return negative;
}

static int64_t capped_number(struct span digits)
{
    int64_t number = 0;

    for (size_t i = 0; i < digits.n; i++) {
        int digit = digits.p[i] - '0';

        if (number > (EXPONENT_MOST - digit) / 10)
            return EXPONENT_MOST;
        number = 10 * number + digit;
    }
    return number;
}

/* Takes the exponent, if any. False when it has no digits. */
static bool take_exponent(struct span *s, int64_t *out_exponent)
{
    struct span digits;
    bool negative;

    *out_exponent = 0;
    if (s->n == 0 || (s->p[0] != 'e' && s->p[0] != 'E'))
        return true;
    *s = span_sub(*s, 1, s->n);
    negative = take_sign(s);
    digits = take_digits(s);
    *out_exponent = negative ? -capped_number(digits) : capped_number(digits);
    return digits.n > 0;
}

/* Drops leading zeros; returns how many. */
static size_t strip_front(struct span *digits)
{
    size_t zeros = 0;

    while (zeros < digits->n && digits->p[zeros] == '0')
        zeros++;
    *digits = span_sub(*digits, zeros, digits->n);
    return zeros;
}

static void strip_back(struct span *digits)
{
    while (digits->n > 0 && digits->p[digits->n - 1] == '0')
        digits->n--;
}

/* From digits as written around the point to the form of struct decimal. */
static void normalise(struct decimal *d, int64_t exponent)
{
    strip_front(&d->head);
    d->top = exponent + (int64_t)d->head.n;
    if (d->head.n == 0)
        d->top -= (int64_t)strip_front(&d->tail);
    strip_back(&d->tail);
    if (d->tail.n == 0)
        strip_back(&d->head);
    if (d->head.n + d->tail.n == 0)
        *d = (struct decimal){.negative = false};
}

static bool read_decimal(struct span s, struct decimal *out)
{
    int64_t exponent;

    out->negative = take_sign(&s);
    out->head = take_digits(&s);
    out->tail = (struct span){NULL, 0};
    if (out->head.n == 0)
        return false;
    if (s.n > 0 && s.p[0] == '.') {
        s = span_sub(s, 1, s.n);
        out->tail = take_digits(&s);
        if (out->tail.n == 0)
            return false;
    }
    if (!take_exponent(&s, &exponent) || s.n > 0)
        return false;
    normalise(out, exponent);
    return true;
}

static struct decimal must_read(struct span s)
{
    struct decimal d;

    MUST(read_decimal(s, &d));
    return d;
}

/* Plain integers of few digits, which most numbers are. */
static bool small_integer(struct span s, int64_t *out_value)
{
    bool negative = take_sign(&s);
    int64_t value = 0;

    if (s.n == 0 || s.n > I64_DIGITS)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            return false;
        value = 10 * value + (s.p[i] - '0');
    }
    *out_value = negative ? -value : value;
    return true;
}

/* ---- digits ---- */

static size_t digit_count(const struct decimal *d)
{
    return d->head.n + d->tail.n;
}

/* The digit at that place; zero behind the last. */
static int digit_at(const struct decimal *d, size_t place)
{
    if (place < d->head.n)
        return d->head.p[place] - '0';
    place -= d->head.n;
    return place < d->tail.n ? d->tail.p[place] - '0' : 0;
}

static bool is_whole(const struct decimal *d)
{
    return d->top >= 0 && digit_count(d) <= (uint64_t)d->top;
}

static int cmp_magnitude(const struct decimal *a, const struct decimal *b)
{
    size_t count = MAX(digit_count(a), digit_count(b));

    if (digit_count(a) == 0 || digit_count(b) == 0)
        return (digit_count(a) > 0) - (digit_count(b) > 0);
    if (a->top != b->top)
        return a->top < b->top ? -1 : 1;
    for (size_t i = 0; i < count; i++)
        if (digit_at(a, i) != digit_at(b, i))
            return digit_at(a, i) < digit_at(b, i) ? -1 : 1;
    return 0;
}

/* ---- interface ---- */

bool decimal_valid(struct span s)
{
    struct decimal d;

    return read_decimal(s, &d);
}

bool decimal_is_integer(struct span s)
{
    struct decimal d;

    return read_decimal(s, &d) && is_whole(&d);
}

int decimal_cmp(struct span a, struct span b)
{
    struct decimal x, y;
    int64_t i, j;

    if (small_integer(a, &i) && small_integer(b, &j))
        return (i > j) - (i < j);
    x = must_read(a);
    y = must_read(b);
    if (x.negative != y.negative)
        return x.negative ? -1 : 1;
    return x.negative ? cmp_magnitude(&y, &x) : cmp_magnitude(&x, &y);
}

void decimal_add_canonical(struct buf *b, struct span s)
{
    struct decimal d = must_read(s);

    if (digit_count(&d) == 0) {
        buf_add_char(b, '0');
        return;
    }
    if (d.negative)
        buf_add_char(b, '-');
    buf_add(b, d.head);
    buf_add(b, d.tail);
    buf_add_char(b, 'e');
    buf_add_i64(b, d.top - (int64_t)digit_count(&d));
}

/* Digits beyond DOUBLE_DIGITS cannot change the result, except that there are some: one digit
 * stands for them. Exponents are cut to what is infinite or zero anyway. */
double decimal_to_double(struct span s)
{
    struct decimal d = must_read(s);
    char text[DOUBLE_DIGITS + 32];
    size_t count = MIN(digit_count(&d), DOUBLE_DIGITS), n = 0;
    int64_t top = MAX(-10000, MIN(10000, d.top));

    text[n++] = d.negative ? '-' : '+';
    for (size_t i = 0; i < count; i++)
        text[n++] = (char)('0' + digit_at(&d, i));
    text[n++] = digit_count(&d) > count ? '1' : '0';
    (void)snprintf(text + n, sizeof(text) - n, "e%lld", (long long)top - (long long)count - 1);
    return strtod(text, NULL);
}
