/* Text: UTF-8 by the table of well-formed sequences, eight ASCII bytes at a time where there are
 * that many; hexadecimal by table, base64 by libcrypto; nearest names by edit distance. */
#include "base/text.h"

#include "base/buf.h"
#include "base/must.h"

#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

/* ---- UTF-8 ---- */

#define REPLACEMENT UINT32_C(0xfffd)
#define HIGH_BITS UINT64_C(0x8080808080808080)

/* RFC 3629 section 4: what a lead byte says about length and second byte; all further bytes are
 * 80 to BF. Commonest first. */
static const struct lead {
    uint8_t first, last;
    uint8_t bytes;
    uint8_t second_least, second_most;
} leads[] = {
    {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static bool fits_lead(const struct lead *lead, struct span s)
{
    if (s.n < lead->bytes)
        return false;
    if ((uint8_t)s.p[1] < lead->second_least || (uint8_t)s.p[1] > lead->second_most)
        return false;
    for (size_t i = 2; i < lead->bytes; i++)
        if (!is_continuation(s.p[i]))
            return false;
    return true;
}

size_t text_utf8_bytes(struct span s)
{
    uint8_t c;

    if (s.n == 0)
        return 0;
    c = (uint8_t)s.p[0];
    if (c < 0x80)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(leads); i++)
        if (c >= leads[i].first && c <= leads[i].last)
            return fits_lead(&leads[i], s) ? leads[i].bytes : 0;
    return 0;
}

uint32_t text_scalar(struct span c)
{
    static const uint8_t lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t scalar = (uint8_t)c.p[0] & lead_bits[c.n];

    for (size_t i = 1; i < c.n; i++)
        scalar = scalar << 6 | ((uint8_t)c.p[i] & 0x3f);
    return scalar;
}

bool text_is_control(struct span c)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };
    uint32_t scalar = text_scalar(c);

    for (size_t i = 0; i < ARRAY_LEN(controls); i++)
        if (scalar >= controls[i].first && scalar <= controls[i].last)
            return true;
    return false;
}

void text_add_escape(struct buf *b, struct span c)
{
    buf_printf(b, "\\u%04x", (unsigned)text_scalar(c));
}

void text_add_shown(struct buf *b, struct span s)
{
    while (s.n > 0) {
        size_t n = text_utf8_bytes(s);
        struct span c = span_sub(s, 0, MAX(n, 1));

        if (n == 0)
            text_add_scalar(b, REPLACEMENT);
        else if (text_is_control(c))
            text_add_escape(b, c);
        else
            buf_add(b, c);
        s = span_sub(s, c.n, s.n);
    }
}

static bool eight_ascii(const char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return (word & HIGH_BITS) == 0;
}

bool text_is_utf8(struct span s)
{
    size_t at = 0;

    while (at < s.n) {
        size_t step = 8;

        if (s.n - at < 8 || !eight_ascii(s.p + at))
            step = text_utf8_bytes(span_of(s.p + at, s.n - at));
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

size_t text_scalar_count(struct span s)
{
    size_t count = 0;

    for (size_t i = 0; i < s.n; i++)
        count += !is_continuation(s.p[i]);
    return count;
}

struct span text_cut(struct span s, size_t max_scalars)
{
    size_t count = 0;

    for (size_t i = 0; i < s.n; i++) {
        count += !is_continuation(s.p[i]);
        if (count > max_scalars)
            return span_of(s.p, i);
    }
    return s;
}

struct span text_cut_bytes(struct span s, size_t max_bytes)
{
    enum { MOST_CONTINUATIONS = 3 };
    size_t n = max_bytes;

    if (s.n <= max_bytes)
        return s;
    while (n > 0 && max_bytes - n < MOST_CONTINUATIONS && is_continuation(s.p[n]))
        n--;
    return span_of(s.p, is_continuation(s.p[n]) ? max_bytes : n);
}

static char continuation(uint32_t bits)
{
    return (char)(0x80 | (bits & 0x3f));
}

size_t text_put_scalar(char out[4], uint32_t scalar)
{
    if (scalar > 0x10ffff || (scalar >= 0xd800 && scalar <= 0xdfff))
        scalar = REPLACEMENT;
    if (scalar < 0x80) {
        out[0] = (char)scalar;
        return 1;
    }
    if (scalar < 0x800) {
        out[0] = (char)(0xc0 | scalar >> 6);
        out[1] = continuation(scalar);
        return 2;
    }
    if (scalar < 0x10000) {
        out[0] = (char)(0xe0 | scalar >> 12);
        out[1] = continuation(scalar >> 6);
        out[2] = continuation(scalar);
        return 3;
    }
    out[0] = (char)(0xf0 | scalar >> 18);
    out[1] = continuation(scalar >> 12);
    out[2] = continuation(scalar >> 6);
    out[3] = continuation(scalar);
    return 4;
}

void text_add_scalar(struct buf *b, uint32_t scalar)
{
    char utf8[4];

    buf_add(b, span_of(utf8, text_put_scalar(utf8, scalar)));
}

/* ---- tokens ---- */

static const bool token_chars[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['!'] = true,  ['#'] = true,
    ['$'] = true,         ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true,
    ['+'] = true,         ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true,
    ['`'] = true,         ['|'] = true,         ['~'] = true,
};

bool text_is_token_char(char c)
{
    return token_chars[(unsigned char)c];
}

bool text_is_token(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!text_is_token_char(s.p[i]))
            return false;
    return s.n > 0;
}

/* ---- letters, digits and others ---- */

static bool is_of(char c, const char *others)
{
    char folded = span_fold_char(c);

    return (folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr(others, c) != NULL);
}

bool text_is_made_of(struct span s, const char *others)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_of(s.p[i], others))
            return false;
    return s.n > 0;
}

void text_add_percent(struct buf *b, struct span s, const char *others)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];

        if (is_of(s.p[i], others))
            buf_add_char(b, s.p[i]);
        else
            buf_add(b, span_of((char[]){'%', digits[c >> 4], digits[c & 15]}, 3));
    }
}

bool text_from_percent(struct span s, struct arena *a, struct span *out_text)
{
    bool is_good = true;
    size_t n = 0;
    char *p;

    *out_text = s;
    if (span_find_char(s, '%', 0) == s.n)
        return true;
    p = arena_alloc(a, s.n);
    for (size_t i = 0; i < s.n; i++, n++) {
        p[n] = s.p[i];
        if (p[n] != '%')
            continue;
        if (i + 2 < s.n && text_from_hex(span_of(s.p + i + 1, 2), (uint8_t *)&p[n]))
            i += 2;
        else
            is_good = false;
    }
    *out_text = span_of(p, n);
    return is_good;
}

/* ---- hexadecimal ---- */

static const char hex_digits[] = "0123456789abcdef";

/* Value of a hex digit plus one; 0 when it is none. */
static const uint8_t hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

int text_hex_value(char c)
{
    return hex_values[(uint8_t)c] - 1;
}

void text_add_hex(struct buf *b, struct span bytes)
{
    char *out = buf_reserve(b, 2 * bytes.n);

    if (out == NULL)
        return;
    for (size_t i = 0; i < bytes.n; i++) {
        uint8_t byte = (uint8_t)bytes.p[i];

        out[2 * i] = hex_digits[byte >> 4];
        out[2 * i + 1] = hex_digits[byte & 15];
    }
    buf_commit(b, 2 * bytes.n);
}

bool text_from_hex(struct span s, uint8_t *out)
{
    if (s.n % 2 != 0)
        return false;
    for (size_t i = 0; i < s.n; i += 2) {
        int high = text_hex_value(s.p[i]), low = text_hex_value(s.p[i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* ---- base64 ---- */

/* libcrypto puts a NUL behind it, for which each buffer has room. */
void text_add_base64(struct buf *b, struct span bytes)
{
    size_t n = 4 * (bytes.n / 3 + (bytes.n % 3 != 0));
    char *out = n > 0 ? buf_reserve(b, n) : NULL;

    if (out == NULL)
        return;
    MUST(bytes.n <= INT_MAX);
    EVP_EncodeBlock((uint8_t *)out, (const uint8_t *)bytes.p, (int)bytes.n);
    buf_commit(b, n);
}

/* libcrypto passes over blanks, and takes padding anywhere: what does not come back as it was,
 * also for bits that belong to no byte, is no encoding of anything. */
bool text_from_base64(struct span s, struct arena *a, struct span *out_bytes)
{
    size_t most = s.n / 4 * 3, padding = 0;
    char *bytes = arena_alloc(a, most);
    struct span decoded;
    struct buf again;

    if (s.n > INT_MAX ||
        EVP_DecodeBlock((uint8_t *)bytes, (const uint8_t *)s.p, (int)s.n) != (int)most)
        return false;
    while (padding < 2 && padding < s.n && s.p[s.n - 1 - padding] == '=')
        padding++;
    decoded = span_of(bytes, most - padding);
    buf_init_arena(&again, a);
    text_add_base64(&again, decoded);
    if (!span_eq(buf_span(&again), s))
        return false;
    *out_bytes = decoded;
    return true;
}

/* ---- names ---- */

void text_fold_into(char *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        out[i] = span_fold_char(s.p[i]);
}

struct span text_fold(struct arena *a, struct span s)
{
    char *out = arena_alloc(a, s.n);

    text_fold_into(out, s);
    return span_of(out, s.n);
}

#define NEAREST_MAX TEXT_NEAREST_BYTES

/* Three rows of the table of distances between all prefixes suffice: an adjacent swap looks two
 * rows back. */
static size_t edit_distance(struct span a, struct span b)
{
    size_t rows[3][NEAREST_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    MUST(b.n <= NEAREST_MAX);
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *oldest = before;

        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            char x = span_fold_char(a.p[i - 1]), y = span_fold_char(b.p[j - 1]);

            row[j] = MIN(above[j - 1] + (x != y), MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == span_fold_char(b.p[j - 2]) &&
                y == span_fold_char(a.p[i - 2]))
                row[j] = MIN(row[j], before[j - 2] + 1);
        }
    }
    return row[b.n];
}

struct span text_nearest(struct span name, const struct span *names, size_t count)
{
    size_t most = MAX(2, name.n / 3);
    size_t least = most + 1;
    struct span best = {NULL, 0};

    if (name.n > NEAREST_MAX)
        return best;
    for (size_t i = 0; i < count; i++) {
        size_t distance;

        if (names[i].n > NEAREST_MAX)
            continue;
        distance = edit_distance(name, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}
