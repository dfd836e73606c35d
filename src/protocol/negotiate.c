/* One cursor reads every field here, after the grammar of RFC 9110 sections 5.6 and 8.3: tokens,
 * quoted strings, parameters, lists whose elements may be empty.
 *
 * Accept is read once. Each range is held against every representation that could be sent, which
 * keeps the weight of the most specific range that fits it; the heaviest wins. */
#include "protocol/negotiate.h"

#include "base/err.h"
#include "base/text.h"

#include <limits.h>

/* ---- formats ---- */

struct format_info {
    struct span type, subtype;
    bool readable; /* as a request body */
};

static const struct format_info formats[] = {
    [FORMAT_JSON] = {SPAN_INIT("application"), SPAN_INIT("json"), true},
    [FORMAT_NDJSON] = {SPAN_INIT("application"), SPAN_INIT("x-ndjson"), true},
    [FORMAT_CSV] = {SPAN_INIT("text"), SPAN_INIT("csv"), false},
};

const struct span format_media_types[FORMAT_COUNT] = {
    [FORMAT_JSON] = SPAN_INIT("application/json"),
    [FORMAT_NDJSON] = SPAN_INIT("application/x-ndjson"),
    [FORMAT_CSV] = SPAN_INIT("text/csv"),
};

/* ---- the cursor ---- */

struct cursor {
    struct span rest;
};

static bool at(const struct cursor *c, char wanted)
{
    return c->rest.n > 0 && c->rest.p[0] == wanted;
}

static bool at_end(const struct cursor *c)
{
    return c->rest.n == 0;
}

static void advance(struct cursor *c, size_t n)
{
    c->rest = span_sub(c->rest, n, c->rest.n);
}

static bool take(struct cursor *c, char wanted)
{
    if (!at(c, wanted))
        return false;
    advance(c, 1);
    return true;
}

static void skip_blanks(struct cursor *c)
{
    while (at(c, ' ') || at(c, '\t'))
        advance(c, 1);
}

/* `wanted` with optional blanks around it. */
static bool take_between_blanks(struct cursor *c, char wanted)
{
    struct cursor next = *c;

    skip_blanks(&next);
    if (!take(&next, wanted))
        return false;
    skip_blanks(&next);
    *c = next;
    return true;
}

static bool take_token(struct cursor *c, struct span *out_token)
{
    size_t n = 0;

    while (n < c->rest.n && text_is_token_char(c->rest.p[n]))
        n++;
    *out_token = span_sub(c->rest, 0, n);
    advance(c, n);
    return n > 0;
}

static bool is_quotable(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

/* A parameter's value: a token, or a quoted string without its quotes and still with its escapes.
 */
static bool take_value(struct cursor *c, struct span *out_value)
{
    size_t n = 0;

    if (!take(c, '"'))
        return take_token(c, out_value);
    while (n < c->rest.n && c->rest.p[n] != '"') {
        n += c->rest.p[n] == '\\';
        if (n == c->rest.n || !is_quotable(c->rest.p[n]))
            return false;
        n++;
    }
    *out_value = span_sub(c->rest, 0, n);
    advance(c, n);
    return take(c, '"');
}

/* Does the value, with its escapes undone, equal `wanted` in any case? */
static bool value_is(struct span value, struct span wanted)
{
    size_t at = 0;

    for (size_t i = 0; i < value.n; i++, at++) {
        i += value.p[i] == '\\';
        if (at == wanted.n || span_fold_char(value.p[i]) != span_fold_char(wanted.p[at]))
            return false;
    }
    return at == wanted.n;
}

struct parameter {
    struct span name, value;
};

/* A semicolon with nothing behind it is allowed (RFC 9110, section 5.6.6). */
static bool begins_parameter(struct cursor *c)
{
    while (take_between_blanks(c, ';'))
        if (!at_end(c) && !at(c, ';') && !at(c, ','))
            return true;
    return false;
}

/* `; name=value`. False with *bad when what follows the semicolon is none. */
static bool take_parameter(struct cursor *c, struct parameter *out_parameter, bool *bad)
{
    if (!begins_parameter(c))
        return false;
    *bad = !take_token(c, &out_parameter->name) || !take(c, '=') ||
           !take_value(c, &out_parameter->value);
    return !*bad;
}

/* Of Accept: a name alone as well, with an empty value, which RFC 7231 had there. */
static bool take_accept_parameter(struct cursor *c, struct parameter *out_parameter, bool *bad)
{
    if (!begins_parameter(c))
        return false;
    out_parameter->value = span_of(NULL, 0);
    *bad = !take_token(c, &out_parameter->name) ||
           (take(c, '=') && !take_value(c, &out_parameter->value));
    return !*bad;
}

/* Moves to the next element of a list; the first time to the first. False at the end. */
static bool take_element(struct cursor *c)
{
    skip_blanks(c);
    while (take(c, ','))
        skip_blanks(c);
    return !at_end(c);
}

/* After an element: a comma or the end must follow. */
static bool element_ends(struct cursor *c)
{
    skip_blanks(c);
    return at_end(c) || at(c, ',');
}

/* ---- media types ---- */

static bool take_media_type(struct cursor *c, struct span *out_type, struct span *out_subtype)
{
    return take_token(c, out_type) && take(c, '/') && take_token(c, out_subtype);
}

static bool is_ascii(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

bool negotiate_is_media_type(struct span text)
{
    struct cursor c = {span_trim(text)};
    struct span type, subtype;
    struct parameter parameter;
    bool bad = !take_media_type(&c, &type, &subtype);

    while (!bad && take_parameter(&c, &parameter, &bad))
        bad = !is_ascii(parameter.value);
    return !bad && at_end(&c);
}

static bool fits(struct span name, struct span declared)
{
    return span_eq(declared, SPAN("*")) || span_ieq(name, declared);
}

static bool has_parameter(struct cursor c, const struct parameter *wanted)
{
    struct parameter p;
    bool bad = false;

    while (take_parameter(&c, &p, &bad))
        if (span_ieq(p.name, wanted->name) && value_is(p.value, wanted->value))
            return true;
    return false;
}

bool negotiate_is_of_type(struct span text, struct span declared)
{
    struct cursor given = {span_trim(text)}, wanted = {span_trim(declared)};
    struct span type, subtype, wanted_type, wanted_subtype;
    struct parameter p;
    bool bad = false;

    if (!take_media_type(&given, &type, &subtype) ||
        !take_media_type(&wanted, &wanted_type, &wanted_subtype) || !fits(type, wanted_type) ||
        !fits(subtype, wanted_subtype))
        return false;
    while (take_parameter(&wanted, &p, &bad))
        if (!has_parameter(given, &p))
            return false;
    return true;
}

/* ---- Accept ---- */

enum {
    WEIGHT_ONE = 1000, /* weights are in thousandths */
    NO_INDENT = -1,
    PEOPLE_INDENT = 2,
};

/* What could be sent, the better among equals first: a range that names an indentation means it. */
static const struct representation {
    enum format format;
    int indent;
} representations[] = {
    {FORMAT_JSON, 1}, {FORMAT_JSON, 2},   {FORMAT_JSON, 3}, {FORMAT_JSON, 4},
    {FORMAT_JSON, 5}, {FORMAT_JSON, 6},   {FORMAT_JSON, 7}, {FORMAT_JSON, 8},
    {FORMAT_JSON, 0}, {FORMAT_NDJSON, 0}, {FORMAT_CSV, 0},
};

/* What the ranges so far say of a representation. */
struct verdict {
    bool named; /* compact, or its indentation was asked for */
    unsigned specificity;
    unsigned weight;
};

struct range {
    struct span type, subtype;
    int indent;
    unsigned parameters;
    bool foreign; /* asks for a charset or an indentation that there is not */
    unsigned weight;
};

/* `0`, `0.123`, `1`, `1.000`; `.2` as well, which clients in use send. */
static bool parse_weight(struct span text, unsigned *out_weight)
{
    size_t point = text.n > 1 && text.p[0] == '.' ? 0 : 1;
    unsigned weight = 0, unit = point == 0 ? WEIGHT_ONE / 10 : WEIGHT_ONE;

    if (text.n == 0 || text.n > point + 4 || (text.n > point && text.p[point] != '.'))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (i == point)
            continue;
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        weight += unit * (unsigned)(text.p[i] - '0');
        unit /= 10;
    }
    *out_weight = weight;
    return weight <= WEIGHT_ONE;
}

static int parse_indent(struct span value)
{
    static const char digits[] = "012345678";

    for (int i = 0; digits[i] != '\0'; i++)
        if (value_is(value, span_of(digits + i, 1)))
            return i;
    return NO_INDENT;
}

/* Parameters that nothing here has say nothing about it, and are passed over. */
static bool apply_parameter(struct range *range, const struct parameter *p)
{
    if (span_ieq(p->name, SPAN("q")))
        return parse_weight(p->value, &range->weight);
    if (span_ieq(p->name, SPAN("indent"))) {
        range->indent = parse_indent(p->value);
        range->foreign |= range->indent == NO_INDENT;
        range->parameters++;
    } else if (span_ieq(p->name, SPAN("charset"))) {
        range->foreign |= !value_is(p->value, SPAN("utf-8"));
        range->parameters++;
    }
    return true;
}

/* A star alone is any type: what the clients of whole platforms send by default. */
static bool take_range_type(struct cursor *c, struct range *range)
{
    if (!take_token(c, &range->type))
        return false;
    range->subtype = range->type;
    return take(c, '/') ? take_token(c, &range->subtype) : span_eq(range->type, SPAN("*"));
}

static bool take_range(struct cursor *c, struct range *out_range)
{
    struct range range = {.indent = NO_INDENT, .weight = WEIGHT_ONE};
    struct parameter parameter;
    bool bad = !take_range_type(c, &range);

    while (!bad && take_accept_parameter(c, &parameter, &bad))
        bad = !apply_parameter(&range, &parameter);
    *out_range = range;
    return !bad && element_ends(c);
}

/* Of a range that fits: the type counts for more than any number of parameters. 0 when it does not
 * fit. */
static unsigned specificity(const struct range *range, const struct representation *r)
{
    static const struct span any = SPAN_INIT("*");
    const struct format_info *format = &formats[r->format];
    bool exact = span_ieq(range->subtype, format->subtype);

    if (range->foreign ||
        (range->indent != NO_INDENT && (r->format != FORMAT_JSON || range->indent != r->indent)))
        return 0;
    if (span_ieq(range->type, format->type) && (exact || span_eq(range->subtype, any)))
        return (exact ? UINT_MAX / 4 * 3 : UINT_MAX / 4 * 2) + range->parameters;
    if (span_eq(range->type, any) && span_eq(range->subtype, any))
        return UINT_MAX / 4 + range->parameters;
    return 0;
}

static void judge(const struct range *range, struct verdict *verdicts)
{
    for (size_t i = 0; i < ARRAY_LEN(representations); i++) {
        unsigned fit = specificity(range, &representations[i]);

        verdicts[i].named |= fit > 0 && range->indent != NO_INDENT;
        if (fit > verdicts[i].specificity) {
            verdicts[i].specificity = fit;
            verdicts[i].weight = range->weight;
        }
    }
}

static void add_media_types(struct buf *b, bool to_read, bool ndjson_allowed)
{
    const char *between = "";

    for (enum format f = 0; f < FORMAT_COUNT; f++) {
        if (to_read && (!formats[f].readable || (f == FORMAT_NDJSON && !ndjson_allowed)))
            continue;
        buf_add_str(b, between);
        buf_add(b, format_media_types[f]);
        between = ", ";
    }
}

static struct err *not_acceptable(void)
{
    struct err *e;
    struct buf list;

    buf_init(&list, BUF_NO_CAP);
    add_media_types(&list, false, true);
    e = ERR(ERR_NOT_ACCEPTABLE,
            "The Accept header asks for none of the formats that there are: %s.", buf_text(&list));
    buf_done(&list);
    return e;
}

static const struct representation *heaviest(const struct verdict *verdicts)
{
    const struct representation *best = NULL;
    unsigned best_weight = 0;

    for (size_t i = 0; i < ARRAY_LEN(representations); i++) {
        bool eligible = verdicts[i].named || representations[i].indent == 0;

        if (eligible && verdicts[i].weight > best_weight) {
            best = &representations[i];
            best_weight = verdicts[i].weight;
        }
    }
    return best;
}

static unsigned html_weight(const struct range *range)
{
    bool is_html = span_ieq(range->type, SPAN("text")) && span_ieq(range->subtype, SPAN("html"));

    return is_html ? range->weight : 0;
}

bool negotiate_names_html(struct span accept)
{
    struct cursor c = {accept};
    struct range range;

    while (take_element(&c) && take_range(&c, &range))
        if (html_weight(&range) > 0)
            return true;
    return false;
}

static bool is_stream(const struct range *range)
{
    return !range->foreign && range->indent == NO_INDENT && span_ieq(range->type, SPAN("text")) &&
           span_ieq(range->subtype, SPAN("event-stream"));
}

bool negotiate_prefers_stream(struct span accept)
{
    struct verdict verdicts[ARRAY_LEN(representations)] = {0};
    struct cursor c = {accept};
    const struct representation *other;
    const struct verdict *verdict;
    unsigned weight = 0;
    struct range range;

    while (take_element(&c)) {
        if (!take_range(&c, &range))
            return false;
        judge(&range, verdicts);
        if (is_stream(&range))
            weight = MAX(weight, range.weight);
    }
    other = heaviest(verdicts);
    if (other == NULL || weight == 0)
        return weight > 0;
    verdict = &verdicts[other - representations];
    return weight > verdict->weight ||
           (weight == verdict->weight && verdict->specificity < UINT_MAX / 4 * 3);
}

struct err *negotiate_accept(struct span accept, struct negotiated *out_negotiated)
{
    struct verdict verdicts[ARRAY_LEN(representations)] = {0};
    struct cursor c = {accept};
    const struct representation *best;
    struct range range;
    unsigned html = 0;

    if (!take_element(&c)) {
        *out_negotiated = (struct negotiated){FORMAT_JSON, 0};
        return NULL;
    }
    do {
        if (!take_range(&c, &range))
            return not_acceptable();
        judge(&range, verdicts);
        html = MAX(html, html_weight(&range));
    } while (take_element(&c));
    best = heaviest(verdicts);
    if (best == NULL && html == 0)
        return not_acceptable();
    if (best == NULL || html > verdicts[best - representations].weight)
        *out_negotiated = (struct negotiated){FORMAT_JSON, PEOPLE_INDENT};
    else
        *out_negotiated = (struct negotiated){best->format, (unsigned)best->indent};
    return NULL;
}

/* ---- Accept-Encoding ---- */

static bool take_coding(struct cursor *c, struct range *out_coding)
{
    struct range coding = {.weight = WEIGHT_ONE};
    struct parameter parameter;
    bool bad = !take_token(c, &coding.type);

    while (!bad && take_parameter(c, &parameter, &bad))
        bad = !apply_parameter(&coding, &parameter);
    *out_coding = coding;
    return !bad && element_ends(c);
}

bool negotiate_takes_gzip(struct span accept_encoding)
{
    struct cursor c = {accept_encoding};
    struct range coding;
    bool any = false;

    while (take_element(&c) && take_coding(&c, &coding)) {
        if (span_ieq(coding.type, SPAN("gzip")) || span_ieq(coding.type, SPAN("x-gzip")))
            return coding.weight > 0;
        any |= span_eq(coding.type, SPAN("*")) && coding.weight > 0;
    }
    return any && at_end(&c);
}

struct err *negotiate_content_encoding(struct span content_encoding)
{
    struct span rest = content_encoding;

    while (rest.p != NULL) {
        struct span coding = span_trim(span_split(&rest, ','));

        if (coding.n > 0 && !span_ieq(coding, SPAN("identity")))
            return ERR(ERR_UNSUPPORTED_CONTENT,
                       "A body with the Content-Encoding '%.*s' cannot be read: send it as it is.",
                       SPAN_FMT(text_cut(coding, 100)));
    }
    return NULL;
}

/* ---- Content-Type ---- */

static struct err *unsupported(struct span content_type, bool to_read, bool ndjson_allowed)
{
    struct span shown = text_cut(content_type, 100);
    struct err *e;
    struct buf list;

    buf_init(&list, BUF_NO_CAP);
    add_media_types(&list, to_read, ndjson_allowed);
    e = ERR(ERR_UNSUPPORTED_CONTENT,
            "A body of type '%.*s' cannot be %s; what can be is %s, in UTF-8.", SPAN_FMT(shown),
            to_read ? "read" : "written", buf_text(&list));
    buf_done(&list);
    return e;
}

static bool find_format(struct span type, struct span subtype, enum format *out_format)
{
    for (enum format f = 0; f < FORMAT_COUNT; f++) {
        if (span_ieq(formats[f].type, type) && span_ieq(formats[f].subtype, subtype)) {
            *out_format = f;
            return true;
        }
    }
    return false;
}

/* One of the formats, in UTF-8? The absent span is JSON. */
static bool parse_format(struct span content_type, enum format *out_format)
{
    struct cursor c = {span_trim(content_type)};
    struct span type, subtype;
    struct parameter p;
    bool bad;

    *out_format = FORMAT_JSON;
    if (at_end(&c) || span_eq(content_type, SPAN("application/json"))) /* as it nearly always is */
        return true;
    bad = !take_media_type(&c, &type, &subtype) || !find_format(type, subtype, out_format);
    while (!bad && take_parameter(&c, &p, &bad))
        bad = span_ieq(p.name, SPAN("charset")) && !value_is(p.value, SPAN("utf-8"));
    return !bad && at_end(&c);
}

struct err *negotiate_content_type(struct span content_type, bool ndjson_allowed,
                                   enum format *out_format)
{
    enum format format;

    if (!parse_format(content_type, &format) || !formats[format].readable ||
        (format == FORMAT_NDJSON && !ndjson_allowed))
        return unsupported(content_type, true, ndjson_allowed);
    *out_format = format;
    return NULL;
}

struct err *negotiate_written_type(struct span content_type, enum format *out_format)
{
    enum format format;

    if (!parse_format(content_type, &format))
        return unsupported(content_type, false, true);
    *out_format = format;
    return NULL;
}

/* ---- Prefer ---- */

/* `name` or `name=value` (RFC 7240, section 2: blanks around the sign are allowed). */
static bool take_word(struct cursor *c, struct parameter *out_word)
{
    out_word->value = span_of(NULL, 0);
    return take_token(c, &out_word->name) &&
           (!take_between_blanks(c, '=') || take_value(c, &out_word->value));
}

static bool take_preference(struct cursor *c, struct parameter *out_preference)
{
    struct parameter ignored;

    if (!take_word(c, out_preference))
        return false;
    while (take_between_blanks(c, ';'))
        if (!at_end(c) && !at(c, ';') && !at(c, ',') && !take_word(c, &ignored))
            return false;
    return element_ends(c);
}

/* Of a preference that is there twice, the first counts. */
static bool prefers(struct span prefer, struct span name, struct span value)
{
    struct cursor c = {prefer};
    struct parameter preference;

    while (take_element(&c) && take_preference(&c, &preference))
        if (span_ieq(preference.name, name))
            return value_is(preference.value, value);
    return false;
}

bool negotiate_prefers_minimal(struct span prefer)
{
    return prefers(prefer, SPAN("return"), SPAN("minimal"));
}

bool negotiate_prefers_count(struct span prefer)
{
    return prefers(prefer, SPAN("count"), SPAN("exact"));
}

/* ---- entity tags ---- */

struct etag {
    bool weak;
    struct span opaque; /* with its quotes */
};

static bool is_etag_char(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte > 0x20 && byte != '"' && byte != 0x7f;
}

static bool take_etag(struct cursor *c, struct etag *out_etag)
{
    size_t n = 1;

    out_etag->weak = span_starts(c->rest, SPAN("W/"));
    if (out_etag->weak)
        advance(c, 2);
    if (!at(c, '"'))
        return false;
    while (n < c->rest.n && is_etag_char(c->rest.p[n]))
        n++;
    if (n == c->rest.n || c->rest.p[n] != '"')
        return false;
    out_etag->opaque = span_sub(c->rest, 0, n + 1);
    advance(c, n + 1);
    return true;
}

bool negotiate_etag_listed(struct span list, struct span etag, bool weak)
{
    struct cursor c = {list}, of_ours = {etag};
    struct etag listed, ours;

    if (span_eq(span_trim(list), SPAN("*")))
        return true;
    if (!take_etag(&of_ours, &ours))
        return false;
    while (take_element(&c) && take_etag(&c, &listed) && element_ends(&c))
        if (span_eq(listed.opaque, ours.opaque) && (weak || (!listed.weak && !ours.weak)))
            return true;
    return false;
}
