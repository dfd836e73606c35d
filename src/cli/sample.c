/* Each property has a value of its type. Then a patch is laid over that for each condition: the
 * least change that meets it. An example need not meet everything that can be asked; the server
 * says whether it does. */
#include "cli/sample.h"

#include "base/datetime.h"
#include "base/text.h"

enum { PATH_STEPS = 16, LENGTH_MOST = 1000 };

static const int64_t day_ns = INT64_C(86400000000000);

struct wish {
    struct span path, op, value; /* path and value decoded */
};

/* ---- reading conditions ---- */

static struct span decode(struct span text, struct arena *a)
{
    (void)text_from_percent(text, a, &text);
    return text;
}

static struct wish read_wish(struct span condition, struct arena *a)
{
    static const struct span ops[] = {SPAN_INIT("!="), SPAN_INIT("<="), SPAN_INIT(">="),
                                      SPAN_INIT("="),  SPAN_INIT("<"),  SPAN_INIT(">")};

    for (size_t at = 0; at < condition.n; at++) {
        struct span rest = span_sub(condition, at, condition.n);

        for (size_t i = 0; i < ARRAY_LEN(ops); i++)
            if (span_starts(rest, ops[i]))
                return (struct wish){decode(span_sub(condition, 0, at), a), ops[i],
                                     decode(span_sub(rest, ops[i].n, rest.n), a)};
    }
    return (struct wish){condition, SPAN(""), SPAN("")};
}

/* ---- values ---- */

static void add_value_of(struct buf *b, struct span type, struct span name, int64_t now_ns)
{
    if (span_eq(type, SPAN("integer")))
        buf_add_str(b, "1");
    else if (span_eq(type, SPAN("number")))
        buf_add_str(b, "1.5");
    else if (span_eq(type, SPAN("boolean")))
        buf_add_str(b, "true");
    else if (span_eq(type, SPAN("datetime")))
        json_add_time(b, now_ns);
    else if (span_eq(type, SPAN("object")))
        buf_add_str(b, "{}");
    else if (span_eq(type, SPAN("array")))
        buf_add_str(b, "[]");
    else
        json_add_string(b, name);
}

static struct span unquoted(struct span value)
{
    bool is_quoted = value.n >= 2 && (value.p[0] == '\'' || value.p[0] == '"') &&
                     value.p[value.n - 1] == value.p[0];

    return is_quoted ? span_sub(value, 1, value.n - 1) : value;
}

static bool is_json(struct span value, struct arena *a)
{
    struct json_doc doc;
    struct err *e = json_parse(value, NULL, a, &doc);
    bool is_good = e == NULL && json_type(json_root(&doc)) <= JSON_NUMBER;

    err_free(e);
    return is_good;
}

/* The literal as JSON: quotes make a text, and a property that is one takes everything as text. */
static void add_literal(struct buf *b, const struct wish *wish, struct span type, struct arena *a)
{
    struct span text = unquoted(wish->value);
    bool is_text = span_eq(type, SPAN("string")) && !span_ieq(text, SPAN("null"));

    if (text.n == wish->value.n && !is_text && is_json(text_fold(a, text), a))
        buf_add(b, text_fold(a, text));
    else
        json_add_string(b, text);
}

/* One more, or less, than the literal: of numbers, instants and texts. */
static void add_beside(struct buf *b, const struct wish *wish, bool is_more, struct arena *a)
{
    struct span text = unquoted(wish->value);
    struct instant at;
    int64_t number;

    if (text.n == wish->value.n &&
        span_to_i64(span_sub(text, 0, span_find_char(text, '.', 0)), &number) && is_json(text, a)) {
        buf_add_i64(b, number + (is_more ? 1 : -1));
    } else if (datetime_parse(text, &at)) {
        json_add_time(b, at.seconds * INT64_C(1000000000) + (is_more ? day_ns : -day_ns));
    } else {
        json_add_string(b, is_more ? arena_printf(a, "%.*sz", SPAN_FMT(text)) : SPAN(""));
    }
}

static void add_text_of_length(struct buf *b, const struct wish *wish)
{
    uint64_t length = 0;

    if (!span_to_u64(wish->value, &length))
        length = 0;
    if (span_eq(wish->op, SPAN(">")) || span_eq(wish->op, SPAN("!=")))
        length++;
    if (span_eq(wish->op, SPAN("<")) && length > 0)
        length--;
    buf_add_char(b, '"');
    for (uint64_t i = 0; i < MIN(length, LENGTH_MOST); i++)
        buf_add_char(b, (char)('a' + i % 26));
    buf_add_char(b, '"');
}

/* False: as it is, it will do. */
static bool add_wished(struct buf *b, const struct wish *wish, struct span type, struct arena *a)
{
    if (span_ends(wish->op, SPAN("=")) && !span_eq(wish->op, SPAN("!=")))
        add_literal(b, wish, type, a);
    else if (!span_eq(wish->op, SPAN("!=")))
        add_beside(b, wish, span_eq(wish->op, SPAN(">")), a);
    else if (span_ieq(wish->value, SPAN("null")) || unquoted(wish->value).n == 0)
        json_add_string(b, SPAN("example")); /* neither null nor empty */
    else
        return false;
    return true;
}

/* ---- laying them over the example ---- */

static struct span type_of(struct json_value properties, struct span name, struct arena *a)
{
    for (struct json_value p = json_first(properties); json_exists(p); p = json_next(properties, p))
        if (span_ieq(json_string(json_member(p, SPAN("Name")), a), name))
            return json_string(json_member(p, SPAN("Type")), a);
    return span_of(NULL, 0);
}

static bool has_value_of_type(struct span type)
{
    return type.n > 0 && !span_eq(type, SPAN("string")) && !span_eq(type, SPAN("any"));
}

/* {"a":{"b":[<value>]}} for `a.b.*`; false when the path cannot be made. */
static bool add_patch(struct buf *b, struct span path, struct span value, struct arena *a)
{
    struct buf closing;
    size_t steps = 0;

    buf_init_arena(&closing, a);
    while (path.n > 0) {
        struct span step = span_split(&path, '.');
        uint64_t index;

        if (++steps > PATH_STEPS || step.n == 0 || step.p[0] == '\'' || span_to_u64(step, &index))
            return false;
        if (span_eq(step, SPAN("*"))) {
            buf_add_char(b, '[');
            buf_add_char(&closing, ']');
        } else {
            buf_add_char(b, '{');
            json_add_name(b, step);
            buf_add_char(&closing, '}');
        }
    }
    buf_add(b, value);
    for (size_t i = closing.n; i > 0; i--)
        buf_add_char(b, closing.p[i - 1]);
    return steps > 0;
}

static struct span merged(struct span object, struct span patch, struct arena *a)
{
    struct json_doc target, change;
    struct buf b;
    struct err *e = json_parse(object, NULL, a, &target);

    if (e == NULL)
        e = json_parse(patch, NULL, a, &change);
    if (e != NULL) { /* a condition that is no JSON in some way: the example does without */
        err_free(e);
        return object;
    }
    buf_init_arena(&b, a);
    json_add_merged(&b, json_root(&target), json_root(&change), true, a);
    return buf_span(&b);
}

static struct span apply(struct span object, const struct wish *wish, struct json_value properties,
                         struct arena *a)
{
    bool is_length = span_ends(wish->path, SPAN(".Length"));
    struct span path = is_length ? span_sub(wish->path, 0, wish->path.n - 7) : wish->path;
    struct span type = type_of(properties, path, a);
    struct buf value, patch;

    buf_init_arena(&value, a);
    buf_init_arena(&patch, a);
    if (is_length)
        add_text_of_length(&value, wish);
    else if ((span_eq(wish->op, SPAN("!=")) && has_value_of_type(type)) ||
             !add_wished(&value, wish, type, a))
        return object; /* it has a value already that will do */
    return add_patch(&patch, path, buf_span(&value), a) ? merged(object, buf_span(&patch), a)
                                                        : object;
}

static struct span base_path(struct span path)
{
    return span_ends(path, SPAN(".Length")) ? span_sub(path, 0, path.n - 7) : path;
}

/* Has a condition before this one decided the property? A != decides the least. */
static bool is_decided(const struct wish *wishes, size_t at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_equal = span_eq(wishes[i].op, SPAN("="));
        bool is_weak = span_eq(wishes[i].op, SPAN("!="));
        bool is_first = i < at && (!is_weak || span_eq(wishes[at].op, SPAN("!=")));

        if (i == at || !span_ieq(base_path(wishes[i].path), base_path(wishes[at].path)))
            continue;
        if (is_first || (is_equal && !span_eq(wishes[at].op, SPAN("="))) ||
            (span_eq(wishes[at].op, SPAN("!=")) && !is_weak))
            return true;
    }
    return false;
}

void sample_add(struct buf *b, struct json_value properties, struct span conditions, int64_t now_ns,
                struct arena *a)
{
    size_t count = 0;
    struct wish *wishes;
    struct span object;
    struct buf made;

    wishes = ARENA_ARRAY(a, struct wish, span_count_char(conditions, '&') + 1);
    while (conditions.n > 0)
        wishes[count++] = read_wish(span_split(&conditions, '&'), a);
    buf_init_arena(&made, a);
    buf_add_char(&made, '{');
    for (struct json_value p = json_first(properties); json_exists(p);
         p = json_next(properties, p)) {
        struct span name = json_string(json_member(p, SPAN("Name")), a);

        json_add_name(&made, name);
        add_value_of(&made, json_string(json_member(p, SPAN("Type")), a), name, now_ns);
    }
    buf_add_char(&made, '}');
    object = buf_span(&made);
    for (size_t i = 0; i < count; i++)
        if (!is_decided(wishes, i, count))
            object = apply(object, &wishes[i], properties, a);
    buf_add(b, object);
}
