/* The chunked body (RFC 9112, section 7.1), one byte of framing at a time, chunk data in bulk.
 *
 *   size ─┬─────────────→ size LF ─→ data ─→ data CR ─→ data LF ─→ size
 *         └→ extension ─┘    └ 0 ─→ trailer ─→ name ─→ value ─→ value LF ─→ trailer
 *                                      └───→ end LF ─→ complete
 *
 * llhttp 8.1.0 in its default build skips the two bytes behind a chunk, and the one behind the CR
 * of a size, whatever they are; so bodies do not go through it. Here every line ends with CRLF, a
 * size is hexadecimal digits and nothing else, and extensions and trailer fields are checked,
 * bounded and dropped. */
#include "base/limits.h"
#include "base/text.h"
#include "h1_private.h"

enum {
    MAX_SIZE_DIGITS = 16,
    MAX_EXTENSION_BYTES = 1024, /* of one body */
};

enum state {
    AT_SIZE,
    AT_EXTENSION,
    AT_QUOTED,
    AT_QUOTED_PAIR,
    AT_SIZE_LF,
    AT_DATA,
    AT_DATA_CR,
    AT_DATA_LF,
    AT_TRAILER,
    AT_NAME,
    AT_VALUE,
    AT_VALUE_LF,
    AT_END_LF,
    AT_END
};

/* The limit is checked at every digit, so the size cannot overflow. */
static enum h1_fail at_size(struct h1 *p, char c)
{
    struct h1_chunks *k = &p->chunks;
    int digit = text_hex_value(c);

    if (digit >= 0) {
        if (k->digits++ == MAX_SIZE_DIGITS)
            return H1_BAD_CHUNK;
        k->left = k->left * 16 + (size_t)digit;
        return k->left > (size_t)p->limits->body_bytes - p->body.n ? H1_LONG_BODY : H1_OK;
    }
    if (k->digits == 0 || (c != '\r' && c != ';'))
        return H1_BAD_CHUNK;
    k->state = c == '\r' ? AT_SIZE_LF : AT_EXTENSION;
    k->last = c;
    return H1_OK;
}

static enum h1_fail enter(struct h1 *p, bool allowed, enum state next, enum h1_fail fail)
{
    p->chunks.state = (unsigned char)next;
    return allowed ? H1_OK : fail;
}

/* `;name`, `;name=token` or `;name="quoted"`: what a character may follow is all the grammar. */
static bool fits_extension(char last, char c)
{
    switch (c) {
    case ';':
    case '\r':
        return text_is_token_char(last) || last == '"';
    case '=':
        return text_is_token_char(last);
    case '"':
        return last == '=';
    default:
        return text_is_token_char(c) && last != '"';
    }
}

static enum h1_fail count_extension(struct h1 *p)
{
    return p->chunks.extension_bytes++ < MAX_EXTENSION_BYTES ? H1_OK : H1_LONG_EXTENSION;
}

static enum h1_fail at_extension(struct h1 *p, char c)
{
    struct h1_chunks *k = &p->chunks;
    bool fits = fits_extension(k->last, c);

    k->last = c;
    if (!fits)
        return h1_plain[(unsigned char)c] ? H1_BAD_CHUNK : h1_byte_fail(c);
    if (c == '\r' || c == '"')
        k->state = c == '\r' ? AT_SIZE_LF : AT_QUOTED;
    return count_extension(p);
}

static enum h1_fail at_quoted(struct h1 *p, char c)
{
    if (!h1_plain[(unsigned char)c])
        return h1_byte_fail(c);
    if (c == '"' || c == '\\')
        p->chunks.state = c == '"' ? AT_EXTENSION : AT_QUOTED_PAIR;
    return count_extension(p);
}

static enum h1_fail at_quoted_pair(struct h1 *p, char c)
{
    p->chunks.state = AT_QUOTED;
    return h1_plain[(unsigned char)c] ? count_extension(p) : h1_byte_fail(c);
}

static enum h1_fail at_size_lf(struct h1 *p, char c)
{
    return enter(p, c == '\n', p->chunks.left > 0 ? AT_DATA : AT_TRAILER, H1_BAD_CR);
}

static enum h1_fail at_data_cr(struct h1 *p, char c)
{
    return enter(p, c == '\r', AT_DATA_LF, H1_BAD_CHUNK);
}

static enum h1_fail at_data_lf(struct h1 *p, char c)
{
    p->chunks.digits = 0;
    return enter(p, c == '\n', AT_SIZE, H1_BAD_CR);
}

/* Fields that a trailer must not hold, for whoever merged it into the head would be misled about
 * framing, routing, the sender or the content (RFC 9110, section 6.5.1). */
static const struct span head_only[] = {
    SPAN_INIT("transfer-encoding"),
    SPAN_INIT("content-length"),
    SPAN_INIT("host"),
    SPAN_INIT("connection"),
    SPAN_INIT("keep-alive"),
    SPAN_INIT("upgrade"),
    SPAN_INIT("te"),
    SPAN_INIT("trailer"),
    SPAN_INIT("expect"),
    SPAN_INIT("max-forwards"),
    SPAN_INIT("cache-control"),
    SPAN_INIT("pragma"),
    SPAN_INIT("range"),
    SPAN_INIT("prefer"),
    SPAN_INIT("if-match"),
    SPAN_INIT("if-none-match"),
    SPAN_INIT("if-modified-since"),
    SPAN_INIT("if-unmodified-since"),
    SPAN_INIT("if-range"),
    SPAN_INIT("authorization"),
    SPAN_INIT("proxy-authorization"),
    SPAN_INIT("x-api-key"),
    SPAN_INIT("cookie"),
    SPAN_INIT("origin"),
    SPAN_INIT("content-encoding"),
    SPAN_INIT("content-type"),
    SPAN_INIT("content-range"),
};

static bool is_head_only(struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(head_only); i++)
        if (span_ieq(name, head_only[i]))
            return true;
    return false;
}

static enum h1_fail at_name(struct h1 *p, char c)
{
    struct h1_chunks *k = &p->chunks;

    if (c == ':')
        return enter(p, k->name_bytes > 0 && !is_head_only(span_of(k->name, k->name_bytes)),
                     AT_VALUE, H1_BAD_TRAILER);
    if (k->name_bytes < H1_NAME_BYTES)
        k->name[k->name_bytes++] = c;
    return text_is_token_char(c) ? H1_OK : H1_BAD_TRAILER;
}

static enum h1_fail at_trailer(struct h1 *p, char c)
{
    if (c == '\r')
        return enter(p, true, AT_END_LF, H1_OK);
    if (++p->field_lines > H1_MAX_FIELDS)
        return H1_MANY_FIELDS;
    p->chunks.name_bytes = 0;
    p->chunks.state = AT_NAME;
    return at_name(p, c);
}

static enum h1_fail at_value(struct h1 *p, char c)
{
    if (c == '\r')
        p->chunks.state = AT_VALUE_LF;
    else if (!h1_plain[(unsigned char)c])
        return h1_byte_fail(c);
    return H1_OK;
}

static enum h1_fail at_value_lf(struct h1 *p, char c)
{
    return enter(p, c == '\n', AT_TRAILER, H1_BAD_CR);
}

static enum h1_fail at_end_lf(struct h1 *p, char c)
{
    return enter(p, c == '\n', AT_END, H1_BAD_CR);
}

static enum h1_fail (*const readers[])(struct h1 *p, char c) = {
    [AT_SIZE] = at_size,         [AT_EXTENSION] = at_extension,
    [AT_QUOTED] = at_quoted,     [AT_QUOTED_PAIR] = at_quoted_pair,
    [AT_SIZE_LF] = at_size_lf,   [AT_DATA_CR] = at_data_cr,
    [AT_DATA_LF] = at_data_lf,   [AT_TRAILER] = at_trailer,
    [AT_NAME] = at_name,         [AT_VALUE] = at_value,
    [AT_VALUE_LF] = at_value_lf, [AT_END_LF] = at_end_lf,
};

static enum h1_fail read_framing(struct h1 *p, char c)
{
    struct h1_chunks *k = &p->chunks;

    if (k->state >= AT_TRAILER && k->trailer_bytes++ == (size_t)p->limits->header_bytes)
        return H1_LONG_HEAD;
    return readers[k->state](p, c);
}

static void take_data(struct h1 *p, struct span *rest)
{
    struct h1_chunks *k = &p->chunks;
    struct span data = span_sub(*rest, 0, k->left);

    buf_add(&p->body, data);
    *rest = span_sub(*rest, data.n, rest->n);
    k->left -= data.n;
    if (k->left == 0)
        k->state = AT_DATA_CR;
}

enum h1_result h1_feed_chunks(struct h1 *p, struct span *rest)
{
    while (rest->n > 0) {
        enum h1_fail fail;

        if (p->chunks.state == AT_DATA) {
            take_data(p, rest);
            continue;
        }
        fail = read_framing(p, rest->p[0]);
        if (fail != H1_OK)
            return h1_fail(p, fail);
        *rest = span_sub(*rest, 1, rest->n);
        if (p->chunks.state == AT_END) {
            p->request.body = buf_span(&p->body);
            return H1_REQUEST;
        }
    }
    return H1_NEED_MORE;
}
