/* A target is cut at its delimiters first and decoded afterwards, so that an encoded delimiter is
 * data: base path, up to three parts, conditions, operator. */
#include "query/uri_inner.h"

#include "base/text.h"

#include <string.h>

enum { RESOURCE, CONDITIONS, METAS, PARTS };

struct op_spelling {
    struct span text;
    enum uri_op op;
};

/* The commonest first; of two that begin alike, the longer; PLAIN_OPS that are plain. An encoded
 * `>`, `<` or `!` before a plain `=` belongs to the operator: a client that escapes too much leaves
 * the `=` alone in some cases. */
enum { PLAIN_OPS = 6 };
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

/* ASCII without escapes, which most targets are: there is nothing to decode or to refuse. */
static bool stands_for_itself(struct span text)
{
    return span_holds_only(text, 0x01, 0x7f, '%');
}

struct err *uri_decode(struct span text, struct arena *a, struct span *out_text)
{
    struct span decoded;

    if (!text_from_percent(text, a, &decoded))
        return ERR(ERR_INVALID_URI_SYNTAX,
                   "A '%%' is not followed by two hexadecimal digits in '%.*s'.", SPAN_FMT(text));
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
        return uri_decode(text, a, out_text);
    *out_text = text;
    return NULL;
}

/* ---- conditions ---- */

struct parser {
    bool is_plain;   /* there is nothing to decode */
    bool is_decoded; /* what looks encoded is data */
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

static const bool begins_op[256] = {
    ['='] = true, ['<'] = true, ['>'] = true, ['!'] = true, ['%'] = true,
};

/* Behind the quoted step that begins here, if one does: a dot or an operator follows. It holds what
 * would be an operator elsewhere. `unclosed` has a quote that no step behind here ends with. */
static size_t skip_quoted(struct span text, size_t start, char unclosed[2])
{
    char quote;
    bool is_double;

    if (start >= text.n)
        return start;
    quote = text.p[start];
    is_double = quote == '"';
    if ((quote != '\'' && quote != '"') || unclosed[is_double] == quote)
        return start;
    for (size_t at = start + 1; (at = span_find_char(text, quote, at) + 1) < text.n;)
        if (text.p[at] == '.' || begins_op[(unsigned char)text.p[at]])
            return at;
    unclosed[is_double] = quote;
    return start;
}

static bool find_spelled(struct span text, const struct op_spelling *ops, size_t count,
                         struct op_place *out_place)
{
    char unclosed[2] = {'\0', '\0'};
    bool has_bang = false;

    for (size_t at = skip_quoted(text, 0, unclosed); at < text.n; at++) {
        if (text.p[at] == '.')
            at = skip_quoted(text, at + 1, unclosed) - 1;
        if (!begins_op[(unsigned char)text.p[at]])
            continue;
        for (size_t i = 0; i < count; i++) {
            if (text.p[at] != ops[i].text.p[0] ||
                !span_istarts(span_sub(text, at, text.n), ops[i].text))
                continue;
            *out_place = (struct op_place){at, at + ops[i].text.n, ops[i].op, has_bang};
            return true;
        }
        has_bang |= text.p[at] == '!';
    }
    return false;
}

static bool find_op(struct span text, bool is_decoded, struct op_place *out_place)
{
    if (is_decoded)
        return find_spelled(text, plain_ops, PLAIN_OPS, out_place);
    return find_spelled(text, plain_ops, ARRAY_LEN(plain_ops), out_place) ||
           find_spelled(text, encoded_ops, ARRAY_LEN(encoded_ops), out_place);
}

static struct err *parse_condition(const struct parser *s, struct span text,
                                   const struct part_kind *kind,
                                   struct uri_condition *out_condition)
{
    struct op_place at;
    struct uri_condition c;

    if (!find_op(text, s->is_decoded, &at))
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

/* Not yet decoded: `_` is unreserved, so its escape means the same (RFC 3986, section 2.3). */
static bool is_empty_part(struct span part)
{
    return part.n == 0 || span_eq(part, SPAN("_")) || span_ieq(part, SPAN("%5F"));
}

/* Reads a part that is not empty; `room` is for others behind what it holds. */
static struct err *read_part(const struct parser *s, struct span part, const struct part_kind *kind,
                             size_t room, struct uri_condition **out_items, size_t *out_count)
{
    struct span rest = part, piece = span_split(&rest, '&');
    size_t count = rest.p == NULL ? 1 : span_count_char(rest, '&') + 2;
    struct uri_condition *items = arena_alloc(s->arena, (count + room) * sizeof(*items));

    for (size_t i = 0; i < count; i++) {
        TRY(parse_condition(s, piece, kind, &items[i]));
        piece = span_split(&rest, '&');
    }
    *out_items = items;
    *out_count = count;
    return NULL;
}

/* What no path could name is nothing to look up. */
static struct err *add_meta(struct uri *uri, const struct uri_condition *parameter)
{
    struct span key = parameter->key;
    bool is_name = key.n > 0;

    for (size_t i = 0; i < key.n; i++)
        is_name &= strchr("!=<>", key.p[i]) == NULL;
    if (!is_name)
        return ERR(ERR_INVALID_META_KEY, "There is no parameter '%.*s'.", SPAN_FMT(key));
    uri->metas[uri->meta_count++] = *parameter;
    return NULL;
}

/* Behind the path's conditions, for which there is room. */
static struct err *read_parameters(struct uri *uri, struct arena *a)
{
    const struct parser s = {.is_plain = true, .is_decoded = true, .arena = a};

    uri->metas = ARENA_ARRAY(a, struct uri_condition, uri->parameter_count);
    if (uri->condition_count == 0)
        uri->conditions = ARENA_ARRAY(a, struct uri_condition, uri->parameter_count);
    for (size_t i = 0; i < uri->parameter_count; i++) {
        const struct uri_condition *parameter = &uri->parameters[i];

        if (!uri_is_where(parameter))
            TRY(add_meta(uri, parameter));
        else if (parameter->value.n > 0)
            TRY(parse_condition(&s, parameter->value, &part_kinds[CONDITIONS],
                                &uri->conditions[uri->condition_count++]));
    }
    return NULL;
}

struct err *uri_read_conditions(struct uri *uri, struct arena *a)
{
    const struct parser s = {.is_plain = uri->is_plain, .arena = a};
    struct uri read = *uri;

    if (uri->condition_part.n > 0)
        TRY(read_part(&s, uri->condition_part, &part_kinds[CONDITIONS], uri->parameter_count,
                      &read.conditions, &read.condition_count));
    if (uri->meta_part.n > 0)
        TRY(read_part(&s, uri->meta_part, &part_kinds[METAS], 0, &read.metas, &read.meta_count));
    if (uri->parameter_count > 0)
        TRY(read_parameters(&read, a));
    read.is_unread = false;
    *uri = read;
    return NULL;
}

/* ---- parts ---- */

/* What follows the base path: empty, or begins with '/'; and the query, or absent. */
static struct err *strip_base(struct span target, struct span base_path, struct span *out_rest,
                              struct span *out_query)
{
    struct span rest, path;

    if (span_ends(base_path, SPAN("/")))
        base_path.n--;
    rest = span_sub(target, base_path.n, target.n);
    if (target.n == 0 || !span_istarts(target, base_path) ||
        (rest.n > 0 && rest.p[0] != '/' && rest.p[0] != '?'))
        return ERR(ERR_INVALID_URI_SYNTAX, "'%.*s' does not begin with '%.*s/'.", SPAN_FMT(target),
                   SPAN_FMT(base_path));
    if (span_starts(rest, SPAN("/?/")))
        rest = span_sub(rest, 1, rest.n);
    if (span_starts(rest, SPAN("?/"))) {
        *out_rest = span_sub(rest, 1, rest.n);
        *out_query = span_of(NULL, 0);
        return NULL;
    }
    path = rest;
    *out_rest = span_split(&path, '?');
    *out_query = path;
    return NULL;
}

static struct err *split_parts(struct span target, struct span base_path, struct span parts[PARTS],
                               struct span *out_query)
{
    struct span rest;
    size_t count = 0;

    TRY(strip_base(target, base_path, &rest, out_query));
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

        if (find_op(piece, false, &at))
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
    count = span_count_char(part, '&') + 1;
    if (count <= max_conditions)
        return NULL;
    return ERR(ERR_INVALID_URI_SYNTAX, "There are %zu %ss in '%.*s', at most %zu are allowed.",
               count, kind->noun, SPAN_FMT(part), max_conditions);
}

static struct err *read_query(struct uri *uri, struct span target, struct span query,
                              size_t max_conditions, struct arena *a)
{
    if (uri->meta_part.n > 0)
        return ERR(ERR_INVALID_URI_SYNTAX,
                   "There are meta-conditions in the path of '%.*s' beside a query: they are its "
                   "parameters there, as in '?limit=5'.",
                   SPAN_FMT(target));
    uri->is_query_form = true;
    return uri_read_form(query, max_conditions, a, uri);
}

struct err *uri_split(struct span target, struct span base_path, size_t max_conditions,
                      struct arena *a, struct uri *out_uri)
{
    const struct parser s = {.is_plain = stands_for_itself(target), .arena = a};
    struct span parts[PARTS] = {{NULL, 0}}, query;
    struct uri uri = {.is_plain = s.is_plain};

    TRY(split_parts(target, base_path, parts, &query));
    for (size_t i = 0; i < PARTS; i++)
        if (is_empty_part(parts[i]))
            parts[i] = span_of(NULL, 0);
    TRY(take_text(&s, parts[RESOURCE], &uri.resource));
    for (size_t i = CONDITIONS; i < PARTS; i++)
        if (!s.is_plain || parts[i].n >= max_conditions) /* else there cannot be more */
            TRY(check_part(&s, parts[i], &part_kinds[i], max_conditions));
    uri.condition_part = parts[CONDITIONS];
    uri.meta_part = parts[METAS];
    if (query.p != NULL)
        TRY(read_query(&uri, target, query, max_conditions, a));
    uri.is_unread = uri.condition_part.n > 0 || uri.meta_part.n > 0 || uri.parameter_count > 0;
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

static struct uri_condition *copy_conditions(const struct uri_condition *items, size_t count,
                                             struct arena *a)
{
    struct uri_condition *copies = ARENA_ARRAY(a, struct uri_condition, count);

    for (size_t i = 0; i < count; i++)
        copies[i] = (struct uri_condition){
            .key = arena_copy(a, items[i].key),
            .op = items[i].op,
            .value = arena_copy(a, items[i].value),
        };
    return copies;
}

void uri_copy(const struct uri *uri, struct arena *a, struct uri *out_copy)
{
    *out_copy = (struct uri){
        .resource = arena_copy(a, uri->resource),
        .is_query_form = uri->is_query_form,
        .conditions = copy_conditions(uri->conditions, uri->condition_count, a),
        .condition_count = uri->condition_count,
        .metas = copy_conditions(uri->metas, uri->meta_count, a),
        .meta_count = uri->meta_count,
    };
}

/* ---- normal form ---- */

/* What may stand in a target as it is. */
#define PLAIN "-._~$()*+,;:@"

void uri_add_encoded(struct buf *b, struct span text)
{
    text_add_percent(b, text, PLAIN "'");
}

/* Encoded, a quote begins no quoted step: what follows cannot be taken for a part of the key. */
void uri_add_key(struct buf *b, struct span key)
{
    text_add_percent(b, key, PLAIN);
}

/* A parameter as it would stand in a path. */
static void add_parameter(struct buf *b, const struct uri_condition *parameter)
{
    struct op_place at;

    if (!uri_is_where(parameter)) {
        uri_add_encoded(b, parameter->key);
        buf_add_char(b, '=');
        uri_add_encoded(b, parameter->value);
    } else if (find_op(parameter->value, true, &at)) {
        uri_add_key(b, span_sub(parameter->value, 0, at.start));
        buf_add_str(b, uri_op_text(at.op));
        uri_add_encoded(b, span_sub(parameter->value, at.end, parameter->value.n));
    } else {
        uri_add_encoded(b, parameter->value);
    }
}

static void add_received(struct buf *b, const struct uri *uri, struct span part, bool is_conditions)
{
    bool is_first = part.n == 0; /* nothing stands there yet */

    buf_add_char(b, '/');
    buf_add(b, part);
    for (size_t i = 0; i < uri->parameter_count; i++) {
        const struct uri_condition *parameter = &uri->parameters[i];

        if (uri_is_where(parameter) != is_conditions || (is_conditions && parameter->value.n == 0))
            continue;
        if (!is_first)
            buf_add_char(b, '&');
        add_parameter(b, parameter);
        is_first = false;
    }
    if (is_first)
        buf_add_char(b, '_');
}

static void add_part(struct buf *b, const struct uri_condition *conditions, size_t count)
{
    buf_add_str(b, count > 0 ? "/" : "/_");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(b, '&');
        uri_add_key(b, conditions[i].key);
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
        add_received(b, uri, uri->condition_part, true);
        add_received(b, uri, uri->meta_part, false);
        return;
    }
    if (uri->condition_count > 0 || uri->meta_count > 0 || all_parts)
        add_part(b, uri->conditions, uri->condition_count);
    if (uri->meta_count > 0 || all_parts)
        add_part(b, uri->metas, uri->meta_count);
}
