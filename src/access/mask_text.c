/* Secrets in running text, which nothing tells the structure of: a message, a body that is no JSON
 * or was cut, the inside of a string.
 *
 * A secret begins where a name does that a colon or an equals sign follows, or where a text that is
 * secret by itself does. It ends where a value of that kind ends; when in doubt, later. Most texts
 * hold none: bytes that none of these begins with are passed over by a table. */
#include "access/mask.h"
#include "json/json.h"

#include <string.h>

/* One pass over a text. */
struct reading {
    const struct mask *m;
    struct span text;
    bool is_message;  /* what follows a name, a colon and a blank is no value */
    bool begins[256]; /* names and secrets do so with this byte */
};

static const struct span names[] = {
    /* As ends of longer names too: Proxy-Authorization, Set-Cookie, X-Api-Key. */
    SPAN_INIT("Authorization"),
    SPAN_INIT("Cookie"),
    SPAN_INIT("X-Api-Key"),
    SPAN_INIT("Secrets"),
};
static const struct span tokens[] = {SPAN_INIT("whsec_"), SPAN_INIT("whsk_"), SPAN_INIT("svck_")};
static const struct span schemes[] = {SPAN_INIT("apikey"), SPAN_INIT("Bearer"), SPAN_INIT("Basic")};

static void note_beginning(struct reading *r, char c)
{
    char folded = span_fold_char(c);

    r->begins[(unsigned char)folded] = true;
    if (folded >= 'a' && folded <= 'z')
        r->begins[(unsigned char)(folded - 'a' + 'A')] = true;
}

static void note_beginnings(struct reading *r)
{
    memset(r->begins, 0, sizeof(r->begins));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        note_beginning(r, names[i].p[0]);
    for (const char *const *at = r->m->header_names; at != NULL && *at != NULL; at++)
        note_beginning(r, **at);
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        note_beginning(r, tokens[i].p[0]);
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        note_beginning(r, schemes[i].p[0]);
    note_beginning(r, '/');
}

static char at_or(struct span text, size_t at, char otherwise)
{
    if (at < text.n)
        otherwise = text.p[at];
    return otherwise;
}

/* Line breaks too, which may stand there in JSON. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What a key may begin with; `<KEY>` and the punctuation of a sentence are none. */
static bool begins_key(char c)
{
    char folded = span_fold_char(c);

    return (folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80 ||
           c == '+' || c == '/' || c == '_' || c == '-';
}

/* Up to a blank, or what surrounds a value. The absence of a key is its own end. */
static size_t key_end(struct span text, size_t at)
{
    if (!begins_key(at_or(text, at, 0)))
        return at;
    while (at < text.n && (unsigned char)text.p[at] > ' ' &&
           strchr("\"'<>&|,;)", text.p[at]) == NULL)
        at++;
    return at;
}

/* ---- values of names ---- */

/* The end of what stands in quotes, where the closing one is, or the text's end. */
static size_t quoted_end(struct span text, size_t at, char quote)
{
    for (; at < text.n && text.p[at] != quote; at++)
        at += text.p[at] == '\\';
    return at < text.n ? at : text.n;
}

/* Of a value without quotes: the line's, or the parameter's. Of a list or an object it is not known
 * where it ends. */
static size_t plain_end(struct span text, size_t at)
{
    if (at_or(text, at, 0) == '[' || at_or(text, at, 0) == '{')
        return text.n;
    while (at < text.n && memchr("\r\n\"'<&|}", text.p[at], sizeof("\r\n\"'<&|}") - 1) == NULL)
        at++;
    return at;
}

static size_t skip_blanks(struct span text, size_t at)
{
    while (is_blank(at_or(text, at, 0)))
        at++;
    return at;
}

/* Behind a colon, or an operator of a condition; `at` itself when there is none. */
static size_t skip_operator(struct span text, size_t at)
{
    static const struct span operators[] = {SPAN_INIT(":"),  SPAN_INIT("="),  SPAN_INIT("!="),
                                            SPAN_INIT("<="), SPAN_INIT(">="), SPAN_INIT("<"),
                                            SPAN_INIT(">")};

    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (span_starts(span_sub(text, at, text.n), operators[i]))
            return at + operators[i].n;
    return at;
}

/* Where a value begins behind a name: after a closing quote, an operator, and blanks. 0: no value
 * follows. */
static size_t value_start(const struct reading *r, size_t at)
{
    struct span text = r->text;
    bool is_quoted;
    size_t behind;

    if (at_or(text, at, 0) == '\\')
        at++;
    is_quoted = at_or(text, at, 0) == '"' || at_or(text, at, 0) == '\'';
    at = skip_blanks(text, at + is_quoted);
    behind = skip_operator(text, at);
    if (behind == at ||
        (r->is_message && !is_quoted && span_starts(span_sub(text, at, text.n), SPAN(": "))))
        return 0;
    at = skip_blanks(text, behind);
    return at < text.n ? at : 0;
}

static bool find_value(const struct reading *r, size_t at, struct span name, size_t *from,
                       size_t *to)
{
    struct span text = r->text;
    size_t start;
    char quote;

    if (!span_istarts(span_sub(text, at, text.n), name))
        return false;
    start = value_start(r, at + name.n);
    if (start == 0)
        return false;
    if (text.p[start] == '\\' && start + 1 < text.n)
        start++;
    quote = text.p[start];
    *from = quote == '"' || quote == '\'' ? start + 1 : start;
    *to = *from > start ? quoted_end(text, *from, quote) : plain_end(text, start);
    return *to > *from;
}

static bool find_named(const struct reading *r, size_t at, size_t *from, size_t *to)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (find_value(r, at, names[i], from, to))
            return true;
    for (const char *const *name = r->m->header_names; name != NULL && *name != NULL; name++)
        if (find_value(r, at, span_str(*name), from, to))
            return true;
    return false;
}

/* ---- what is secret by itself ---- */

static bool find_token(const struct reading *r, size_t at, size_t *from, size_t *to)
{
    struct span rest = span_sub(r->text, at, r->text.n);

    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        size_t key = at + tokens[i].n;

        if (!span_istarts(rest, tokens[i]))
            continue;
        *from = at;
        *to = key_end(r->text, key);
        return *to > key;
    }
    return false;
}

/* As they came in a target, too. */
static size_t skip_encoded_blanks(struct span text, size_t at)
{
    for (;;) {
        if (is_blank(at_or(text, at, 0)) || at_or(text, at, 0) == '+')
            at++;
        else if (span_starts(span_sub(text, at, text.n), SPAN("%20")))
            at += 3;
        else
            return at;
    }
}

static bool is_in_word(struct span text, size_t at)
{
    return at > 0 && text.p[at - 1] != '/' && begins_key(text.p[at - 1]);
}

/* A word on its own, and behind blanks what can be a key. */
static bool find_credentials(const struct reading *r, size_t at, size_t *from, size_t *to)
{
    struct span rest = span_sub(r->text, at, r->text.n);

    if (is_in_word(r->text, at))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t behind = at + schemes[i].n, key;

        if (!span_istarts(rest, schemes[i]))
            continue;
        key = skip_encoded_blanks(r->text, behind);
        *from = at;
        *to = key_end(r->text, key);
        return key > behind && *to > key;
    }
    return false;
}

/* `//user:password@`, before the path begins. */
static bool find_userinfo(const struct reading *r, size_t at, size_t *from, size_t *to)
{
    size_t end = at + 2;

    if (!span_starts(span_sub(r->text, at, r->text.n), SPAN("//")))
        return false;
    *from = end;
    *to = end;
    for (; end < r->text.n && strchr("/?#\"'<> \t\r\n", r->text.p[end]) == NULL; end++)
        if (r->text.p[end] == '@')
            *to = end;
    return *to > *from;
}

/* ---- the pass ---- */

/* The next secret at or behind `at`: *from to *to. */
static bool find_next(const struct reading *r, size_t at, size_t *from, size_t *to)
{
    for (; at < r->text.n; at++)
        if (r->begins[(unsigned char)r->text.p[at]] &&
            (find_named(r, at, from, to) || find_token(r, at, from, to) ||
             find_credentials(r, at, from, to) || find_userinfo(r, at, from, to)))
            return true;
    return false;
}

/* ---- whether there may be one ---- */

static bool begins_secret(const struct mask *m, struct span text)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (span_istarts(text, names[i]))
            return true;
    for (const char *const *name = m->header_names; name != NULL && *name != NULL; name++)
        if (span_istarts(text, span_str(*name)))
            return true;
    return mask_is_secret_text(text);
}

bool mask_may_find(const struct mask *m, struct span json)
{
    struct reading r = {.m = m, .text = json};

    note_beginnings(&r);
    r.begins['\\'] = true; /* a name may be escaped */
    for (size_t at = 0; at < json.n; at++)
        if (r.begins[(unsigned char)json.p[at]] &&
            (json.p[at] == '\\' || begins_secret(m, span_sub(json, at, json.n))))
            return true;
    return false;
}

/* ---- masking ---- */

static struct span masked(struct reading *r, struct arena *a)
{
    struct span text = r->text, shown;
    size_t done = 0, from, to;
    struct buf b;

    if (text.n == 0)
        return text;
    note_beginnings(r);
    if (!find_next(r, 0, &from, &to))
        return text;
    buf_init(&b, BUF_NO_CAP);
    do {
        buf_add(&b, span_sub(text, done, from));
        buf_add_str(&b, MASK);
        done = to;
    } while (find_next(r, done, &from, &to));
    buf_add(&b, span_sub(text, done, text.n));
    shown = arena_copy(a, buf_span(&b));
    buf_done(&b);
    return shown;
}

struct span mask_text(const struct mask *m, struct span text, struct arena *a)
{
    struct reading r = {.m = m, .text = text};

    return masked(&r, a);
}

struct span mask_message(const struct mask *m, struct span message, struct arena *a)
{
    struct reading r = {.m = m, .text = message, .is_message = true};

    return masked(&r, a);
}
