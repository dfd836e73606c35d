/* Reading parsed values. Strings are unescaped piece by piece: a run of characters that stand for
 * themselves, or the one character of an escape sequence. */
#include "base/budget.h"
#include "json/json.h"

#include "base/must.h"
#include "base/text.h"
#include "json_private.h"

#include <string.h>

/* ---- values ---- */

static const struct json_value absent = {NULL, NULL};

static struct json_value value_at(struct json_value relative, uint32_t index)
{
    return (struct json_value){relative.doc, &relative.doc->nodes[index]};
}

static uint32_t index_of(struct json_value v)
{
    return (uint32_t)(v.node - v.doc->nodes);
}

struct json_value json_root(const struct json_doc *doc)
{
    return (struct json_value){doc, doc->nodes};
}

bool json_exists(struct json_value v)
{
    return v.node != NULL;
}

enum json_type json_type(struct json_value v)
{
    return v.node != NULL ? (enum json_type)v.node->type : JSON_NULL;
}

struct span json_text(struct json_value v)
{
    if (v.node == NULL)
        return span_of(NULL, 0);
    return span_of(v.doc->text.p + v.node->start, v.node->end - v.node->start);
}

bool json_is_true(struct json_value v)
{
    return json_type(v) == JSON_BOOLEAN && json_text(v).p[0] == 't';
}

uint32_t json_count(struct json_value v)
{
    return v.node != NULL ? v.node->count : 0;
}

/* ---- strings ---- */

static struct span without_quotes(struct json_value string)
{
    struct span text = json_text(string);

    return span_of(text.p + 1, text.n - 2);
}

/* The code unit of \uXXXX at p. */
static uint32_t code_unit(const char *p)
{
    uint8_t bytes[2];

    MUST(text_from_hex(span_of(p + 2, 4), bytes)); /* the parser has checked */
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static bool is_surrogate(uint32_t unit, uint32_t first)
{
    return unit >= first && unit < first + 0x400;
}

/* Takes \uXXXX, or two of them that are a surrogate pair. */
static uint32_t take_unicode(struct span *rest)
{
    uint32_t high = code_unit(rest->p), low = 0;

    if (is_surrogate(high, 0xd800) && span_starts(span_sub(*rest, 6, rest->n), SPAN("\\u")))
        low = code_unit(rest->p + 6);
    if (is_surrogate(low, 0xdc00)) {
        *rest = span_sub(*rest, 12, rest->n);
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    *rest = span_sub(*rest, 6, rest->n);
    return high;
}

/* Takes an escape sequence; returns its character. */
static uint32_t take_escape(struct span *rest)
{
    static const char letters[] = JSON_ESCAPE_LETTERS, meanings[] = JSON_ESCAPE_MEANINGS;
    char letter = rest->p[1];

    if (letter == 'u')
        return take_unicode(rest);
    *rest = span_sub(*rest, 2, rest->n);
    return (uint32_t)meanings[strchr(letters, letter) - letters];
}

/* Takes the next characters of a string; the result is in the text or in utf8, and empty only at
 * the end. */
static struct span take_piece(struct span *rest, char utf8[4])
{
    struct span piece = span_sub(*rest, 0, span_find_char(*rest, '\\', 0));

    if (piece.n == 0 && rest->n > 0)
        return span_of(utf8, text_put_scalar(utf8, take_escape(rest)));
    *rest = span_sub(*rest, piece.n, rest->n);
    return piece;
}

struct span json_string(struct json_value v, struct arena *a)
{
    struct span rest, piece;
    char utf8[4], *out;
    size_t n = 0;

    if (json_type(v) != JSON_STRING)
        return span_of(NULL, 0);
    rest = without_quotes(v);
    if (!v.node->escaped)
        return rest;
    budget_spend(rest.n);
    out = arena_alloc(a, rest.n); /* an escape sequence is longer than its character */
    while ((piece = take_piece(&rest, utf8)).n > 0) {
        memcpy(out + n, piece.p, piece.n);
        n += piece.n;
    }
    return span_of(out, n);
}

/* True when the string's characters are `wanted`. */
static bool string_is(struct json_value string, struct span wanted, bool fold)
{
    bool (*starts)(struct span, struct span) = fold ? span_istarts : span_starts;
    struct span rest = without_quotes(string), piece;
    char utf8[4];

    if (!string.node->escaped)
        return fold ? span_ieq(rest, wanted) : span_eq(rest, wanted);
    while ((piece = take_piece(&rest, utf8)).n > 0) {
        if (!starts(wanted, piece))
            return false;
        wanted = span_sub(wanted, piece.n, wanted.n);
    }
    return wanted.n == 0;
}

/* ---- members ---- */

/* The member whose name is at that index, absent behind the last. */
static struct json_member member_at(struct json_value object, uint32_t index)
{
    if (index == object.node->next)
        return (struct json_member){absent, absent};
    return (struct json_member){value_at(object, index), value_at(object, index + 1)};
}

struct json_member json_first_member(struct json_value object)
{
    if (json_type(object) != JSON_OBJECT)
        return (struct json_member){absent, absent};
    return member_at(object, index_of(object) + 1);
}

struct json_member json_next_member(struct json_value object, struct json_member m)
{
    return member_at(object, m.value.node->next);
}

/* Most names are not as long as the one looked for. */
static bool may_be(const struct json_node *name, struct span wanted)
{
    return name->escaped || name->end - name->start == wanted.n + 2;
}

static struct json_value find_member(struct json_value v, struct span name, bool fold)
{
    struct json_value folded = absent;
    const struct json_node *end;

    if (json_type(v) != JSON_OBJECT)
        return absent;
    budget_spend((size_t)2 * v.node->count);
    end = v.doc->nodes + v.node->next;
    for (const struct json_node *at = v.node + 1; at < end; at = v.doc->nodes + at[1].next) {
        struct json_value string = {v.doc, at}, value = {v.doc, at + 1};

        if (!may_be(at, name))
            continue;
        if (string_is(string, name, false))
            return value;
        if (fold && !json_exists(folded) && string_is(string, name, true))
            folded = value;
    }
    return folded;
}

struct json_value json_member(struct json_value v, struct span name)
{
    return find_member(v, name, false);
}

struct json_value json_member_fold(struct json_value v, struct span name)
{
    return find_member(v, name, true);
}

/* Most are spelled exactly. */
void json_members_fold(struct json_value v, const struct span *names, size_t count,
                       struct json_value *out_values)
{
    size_t left = count;

    for (size_t i = 0; i < count; i++)
        out_values[i] = absent;
    if (json_type(v) == JSON_OBJECT)
        budget_spend((size_t)2 * v.node->count);
    for (struct json_member m = json_first_member(v); json_exists(m.name) && left > 0;
         m = json_next_member(v, m))
        for (size_t i = 0; i < count; i++)
            if (!json_exists(out_values[i]) && string_is(m.name, names[i], false)) {
                out_values[i] = m.value;
                left--;
            }
    for (size_t i = 0; i < count && left > 0; i++)
        if (!json_exists(out_values[i]))
            out_values[i] = json_member_fold(v, names[i]);
}

/* ---- elements ---- */

static struct json_value element_at(struct json_value array, uint32_t index)
{
    return index == array.node->next ? absent : value_at(array, index);
}

struct json_value json_first(struct json_value array)
{
    if (json_type(array) != JSON_ARRAY)
        return absent;
    return element_at(array, index_of(array) + 1);
}

struct json_value json_next(struct json_value array, struct json_value element)
{
    return element_at(array, element.node->next);
}

struct json_value json_at(struct json_value array, uint32_t index)
{
    struct json_value element = json_first(array);

    if (index >= json_count(array) || !json_exists(element))
        return absent;
    /* As many nodes as elements: they are scalars and lie side by side. */
    if (array.node->next - index_of(array) - 1 == json_count(array))
        return value_at(array, index_of(array) + 1 + index);
    while (index-- > 0)
        element = json_next(array, element);
    return element;
}
