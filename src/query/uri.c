/* A target is cut at its delimiters first and decoded afterwards, so that an encoded delimiter is
 * data: base path, up to three parts, conditions, operator. */
#include "query/uri.h"

#include "base/text.h"

#include <string.h>

enum { RESOURCE, CONDITIONS, METAS, PARTS };

struct op_spelling {
    struct span text;
    enum uri_op op;
};

/* The commonest first; of two that begin alike, the longer. An encoded `>`, `<` or `!` before a
 * plain `=` belongs to the operator: a client that escapes too much leaves the `=` alone in some
 * cases. */
static const struct op_spelling plain_ops[] = {
    {SPAN_INIT("="), URI_EQ},    {SPAN_INIT("!="), URI_NE},   {SPAN_INIT("<="), URI_LE},
    {SPAN_INIT("<"), URI_LT},    {SPAN_INIT(">="), URI_GE},   {SPAN_INIT(">"), URI_GT},
    {SPAN_INIT("%21="), URI_NE}, {SPAN_INIT("%3C="), URI_LE}, {SPAN_INIT("%3E="), URI_GE},
};

/* Operators only where there is none of the above. */
static const struct op_spelling encoded_ops[] = {
    {SPAN_INIT("%21%3D"), URI_NE}, {SPAN_INIT("%3C%3D"), URI_LE}, {SPAN_INIT("%3E%3D"), URI_GE},
    {SPAN_INIT("%3D"), URI_EQ},    {SPAN_INIT("%3C"), URI_LT},    {SPAN_INIT("%3E"), URI_GT},
};

const char *uri_op_text(enum uri_op op)
{
    static const char *const texts[] = {
        [URI_EQ] = "=", [URI_NE] = "!=", [URI_LT] = "<",
        [URI_GT] = ">", [URI_LE] = "<=", [URI_GE] = ">=",
    };

    return texts[op];
}

/* ---- decoding ---- */

/* Both cases, as in RFC 3986 section 2.1. */
static bool decode_escape(struct span at, char *out)
{
    return at.n >= 3 && text_from_hex(span_of(at.p + 1, 2), (uint8_t *)out);
}

static bool decode_into(struct span text, char *out, size_t *out_n)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++, n++) {
        out[n] = text.p[i];
        if (text.p[i] != '%')
            continue;
        if (!decode_escape(span_sub(text, i, text.n), &out[n]))
            return false;
        i += 2;
    }
    *out_n = n;
    return true;
}

struct span uri_decoded(struct span text, struct arena *a)
{
    char *p = arena_alloc(a, text.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++, n++) {
        p[n] = text.p[i];
        if (text.p[i] == '%' && decode_escape(span_sub(text, i, text.n), &p[n]))
            i += 2;
    }
    return span_of(p, n);
}

/* ASCII without escapes, which most targets are: there is nothing to decode or to refuse. */
static bool stands_for_itself(struct span text)
{
    return span_holds_only(text, 0x01, 0x7f, '%');
}

static struct err *decode_escaped(struct span text, struct arena *a, struct span *out_text)
{
    struct span decoded = text;

    if (span_find_char(text, '%', 0) < text.n) {
        char *p = arena_alloc(a, text.n);

        decoded.p = p;
        if (!decode_into(text, p, &decoded.n))
            return ERR(ERR_INVALID_URI_SYNTAX,
                       "A '%%' is not followed by two hexadecimal digits in '%.*s'.",
                       SPAN_FMT(text));
    }
    if (span_find_char(decoded, '\0', 0) < decoded.n)
        return ERR(ERR_INVALID_URI_SYNTAX, "There is a NUL in '%.*s'.", SPAN_FMT(text));
    if (!text_is_utf8(decoded))
        return ERR(ERR_INVALID_URI_SYNTAX, "'%.*s' is not UTF-8.", SPAN_FMT(text));
    *out_text = decoded;
    return NULL;
}

/* Once. What most targets are made of is not copied. */
static struct err *decode_text(struct span text, struct arena *a, struct span *out_text)
{
    if (!stands_for_itself(text))
        return decode_escaped(text, a, out_text);
    *out_text = text;
    return NULL;
}

/* ---- conditions ---- */

struct parser {
    bool is_plain; /* the whole target stands for itself */
    struct arena *arena;
};

static struct err *take_text(const struct parser *s, struct span text, struct span *out_text)
{
    if (!s->is_plain)
        return decode_text(text, s->arena, out_text);
    *out_text = text;
    return NULL;
}

/* What differs between conditions and meta-conditions. */
struct part_kind {
    const char *noun;
    enum err_code code;
};

static const struct part_kind part_kinds[PARTS] = {
    [CONDITIONS] = {"condition", ERR_INVALID_CONDITION_SYNTAX},
    [METAS] = {"meta-condition", ERR_INVALID_META_SYNTAX},
};

struct op_place {
    size_t start, end;
    enum uri_op op;
    bool is_behind_bang; /* there is a `!` before it, which is no operator */
};

static bool may_begin_op(char c)
{
    return c == '=' || c == '<' || c == '>' || c == '!' || c == '%';
}

static bool begins_with_op(struct span text, const struct op_spelling *op)
{
    return text.p[0] == op->text.p[0] && span_istarts(text, op->text);
}

static bool find_spelled(struct span text, const struct op_spelling *ops, size_t count,
                         struct op_place *out_place)
{
    bool has_bang = false;

    for (size_t at = 0; at < text.n; at++) {
        if (!may_begin_op(text.p[at]))
            continue;
        for (size_t i = 0; i < count; i++) {
            if (!begins_with_op(span_sub(text, at, text.n), &ops[i]))
                continue;
            *out_place = (struct op_place){at, at + ops[i].text.n, ops[i].op, has_bang};
            return true;
        }
        has_bang |= text.p[at] == '!';
    }
    return false;
}

static bool find_op(struct span text, struct op_place *out_place)
{
    return find_spelled(text, plain_ops, ARRAY_LEN(plain_ops), out_place) ||
           find_spelled(text, encoded_ops, ARRAY_LEN(encoded_ops), out_place);
}

static struct err *parse_condition(const struct parser *s, struct span text,
                                   const struct part_kind *kind,
                                   struct uri_condition *out_condition)
{
    struct op_place at;
    struct uri_condition c;

    if (!find_op(text, &at))
        return ERR(kind->code, "The %s '%.*s' has no operator (=, !=, <, >, <=, >=).", kind->noun,
                   SPAN_FMT(text));
    if (at.start == 0)
        return ERR(kind->code, "The %s '%.*s' has no name before its operator.", kind->noun,
                   SPAN_FMT(text));
    if (at.is_behind_bang)
        return ERR(kind->code, "There is a '!' in the name of the %s '%.*s'.", kind->noun,
                   SPAN_FMT(text));
    TRY(take_text(s, span_sub(text, 0, at.start), &c.key));
    TRY(take_text(s, span_sub(text, at.end, text.n), &c.value));
    c.op = at.op;
    *out_condition = c;
    return NULL;
}

static size_t count_char(struct span text, char c)
{
    size_t count = 0;

    for (size_t at = 0; (at = span_find_char(text, c, at)) < text.n; at++)
        count++;
    return count;
}

static bool is_empty_part(struct span part)
{
    return part.n == 0 || span_eq(part, SPAN("_"));
}

/* Reads a part that is not empty. */
static struct err *read_part(const struct parser *s, struct span part, const struct part_kind *kind,
                             struct uri_condition **out_items, size_t *out_count)
{
    struct span rest = part, piece = span_split(&rest, '&');
    size_t count = rest.p == NULL ? 1 : count_char(rest, '&') + 2;
    struct uri_condition *items = arena_alloc(s->arena, count * sizeof(*items));

    for (size_t i = 0; i < count; i++) {
        TRY(parse_condition(s, piece, kind, &items[i]));
        piece = span_split(&rest, '&');
    }
    *out_items = items;
    *out_count = count;
    return NULL;
}

struct err *uri_read_conditions(struct uri *uri, struct arena *a)
{
    const struct parser s = {uri->is_plain, a};

    if (uri->condition_part.n > 0)
        TRY(read_part(&s, uri->condition_part, &part_kinds[CONDITIONS], &uri->conditions,
                      &uri->condition_count));
    if (uri->meta_part.n > 0)
        TRY(read_part(&s, uri->meta_part, &part_kinds[METAS], &uri->metas, &uri->meta_count));
    uri->is_unread = false;
    return NULL;
}

/* ---- parts ---- */

/* What follows the base path: empty, or begins with '/'. */
static struct err *strip_base(struct span target, struct span base_path, struct span *out_rest)
{
    struct span rest;

    if (span_ends(base_path, SPAN("/")))
        base_path.n--;
    rest = span_sub(target, base_path.n, target.n);
    if (target.n == 0 || !span_istarts(target, base_path) ||
        (rest.n > 0 && rest.p[0] != '/' && rest.p[0] != '?'))
        return ERR(ERR_INVALID_URI_SYNTAX, "'%.*s' does not begin with '%.*s/'.", SPAN_FMT(target),
                   SPAN_FMT(base_path));
    if (span_starts(rest, SPAN("/?")))
        rest = span_sub(rest, 1, rest.n);
    if (span_starts(rest, SPAN("?")))
        rest = span_sub(rest, 1, rest.n);
    else if (span_find_char(rest, '?', 0) < rest.n)
        return ERR(ERR_INVALID_URI_SYNTAX,
                   "There is a query string in '%.*s': only '/?/' is allowed, and a '?' in a value "
                   "is written as %%3F.",
                   SPAN_FMT(target));
    if (rest.n > 0 && rest.p[0] != '/')
        return ERR(ERR_INVALID_URI_SYNTAX, "The query string of '%.*s' does not begin with '/'.",
                   SPAN_FMT(target));
    *out_rest = rest;
    return NULL;
}

static struct err *split_parts(struct span target, struct span base_path, struct span parts[PARTS])
{
    struct span rest;
    size_t count = 0;

    TRY(strip_base(target, base_path, &rest));
    rest = span_sub(rest, 1, rest.n);
    if (span_ends(rest, SPAN("/")))
        rest.n--;
    while (rest.p != NULL && count < PARTS)
        parts[count++] = span_split(&rest, '/');
    if (rest.p != NULL)
        return ERR(ERR_INVALID_URI_SYNTAX,
                   "'%.*s' has more than three parts (/resource/conditions/meta-conditions).",
                   SPAN_FMT(target));
    return NULL;
}

/* Can all that conditions are made of be decoded, whether or not they are conditions? */
static struct err *check_pieces(struct span part, struct arena *a)
{
    struct span rest = part, decoded;

    while (rest.p != NULL) {
        struct span piece = span_split(&rest, '&');
        struct op_place at = {.end = 0};

        if (find_op(piece, &at))
            TRY(decode_text(span_sub(piece, 0, at.start), a, &decoded));
        TRY(decode_text(span_sub(piece, at.end, piece.n), a, &decoded));
    }
    return NULL;
}

static struct err *check_part(const struct parser *s, struct span part,
                              const struct part_kind *kind, size_t max_conditions)
{
    size_t count;

    if (!s->is_plain)
        TRY(check_pieces(part, s->arena));
    if (part.n < max_conditions) /* so that there cannot be more */
        return NULL;
    count = count_char(part, '&') + 1;
    if (count <= max_conditions)
        return NULL;
    return ERR(ERR_INVALID_URI_SYNTAX, "There are %zu %ss in '%.*s', at most %zu are allowed.",
               count, kind->noun, SPAN_FMT(part), max_conditions);
}

static struct span part_or_absent(struct span part)
{
    return is_empty_part(part) ? span_of(NULL, 0) : part;
}

struct err *uri_split(struct span target, struct span base_path, size_t max_conditions,
                      struct arena *a, struct uri *out_uri)
{
    const struct parser s = {stands_for_itself(target), a};
    struct span parts[PARTS] = {{NULL, 0}};
    struct uri uri = {.is_plain = s.is_plain, .is_unread = true};

    TRY(split_parts(target, base_path, parts));
    TRY(take_text(&s, parts[RESOURCE], &uri.resource));
    for (size_t i = CONDITIONS; i < PARTS; i++)
        TRY(check_part(&s, parts[i], &part_kinds[i], max_conditions));
    uri.resource = part_or_absent(uri.resource);
    uri.condition_part = part_or_absent(parts[CONDITIONS]);
    uri.meta_part = part_or_absent(parts[METAS]);
    *out_uri = uri;
    return NULL;
}

struct err *uri_parse(struct span target, struct span base_path, size_t max_conditions,
                      struct arena *a, struct uri *out_uri)
{
    struct uri uri;

    TRY(uri_split(target, base_path, max_conditions, a, &uri));
    TRY(uri_read_conditions(&uri, a));
    *out_uri = uri;
    return NULL;
}

/* ---- normal form ---- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~$'()*+,;:@", c) != NULL);
}

void uri_add_encoded(struct buf *b, struct span text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (is_plain(text.p[i]))
            buf_add_char(b, text.p[i]);
        else
            buf_add(b, span_of((char[]){'%', digits[c >> 4], digits[c & 15]}, 3));
    }
}

static void add_received(struct buf *b, struct span part)
{
    buf_add_char(b, '/');
    buf_add(b, part.n > 0 ? part : SPAN("_"));
}

static void add_part(struct buf *b, const struct uri_condition *conditions, size_t count)
{
    buf_add_str(b, count > 0 ? "/" : "/_");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(b, '&');
        uri_add_encoded(b, conditions[i].key);
        buf_add_str(b, uri_op_text(conditions[i].op));
        uri_add_encoded(b, conditions[i].value);
    }
}

void uri_add_normal(struct buf *b, const struct uri *uri, struct span resource, bool all_parts)
{
    buf_add_char(b, '/');
    if (resource.n > 0)
        uri_add_encoded(b, resource);
    else
        buf_add_char(b, '_');
    if (uri->is_unread) {
        add_received(b, uri->condition_part);
        add_received(b, uri->meta_part);
        return;
    }
    if (uri->condition_count > 0 || uri->meta_count > 0 || all_parts)
        add_part(b, uri->conditions, uri->condition_count);
    if (uri->meta_count > 0 || all_parts)
        add_part(b, uri->metas, uri->meta_count);
}
