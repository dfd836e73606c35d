/* The parser: one pass, no recursion. It goes from value to value; while a container is open, its
 * node's `next` holds the index of the container around it, so the nodes themselves are the stack.
 * Reading values is in json_value.c, comparing them in json_compare.c, writing in json_write.c. */
#include "json/json.h"
#include "base/budget.h"

#include "base/must.h"
#include "base/text.h"
#include "json_private.h"

#include <endian.h>
#include <string.h>

enum {
    DEFAULT_DEPTH = 128,
    DEFAULT_NODES = 1000000,
    NODES_MOST = (1 << 28) - 1, /* what json_node.count holds */
    FIRST_NODES_MOST = 1024,
    TEXT_MOST = 1 << 30,
};

#define NONE UINT32_MAX

struct parser {
    const char *start, *end; /* the end: of the text, or of the line */
    const char *end_name;
    const char *expected; /* set on failure */
    const char *failed_at;
    struct arena *arena;
    struct json_node *nodes;
    uint32_t count, size; /* of nodes: in use, allocated */
    uint32_t open;        /* the innermost open container, or NONE */
    uint32_t depth;       /* number of open containers */
    bool has_blanks;      /* outside of strings */
    struct json_limits limits;
};

/* ---- characters ---- */

enum {
    BLANK = 1,
    DIGIT = 2,
    HEX = 4,
    PLAIN = 8, /* stands for itself inside a string */
};

static const uint8_t classes[256] = {
    ['\t'] = BLANK,
    ['\n'] = BLANK,
    ['\r'] = BLANK,
    [' '] = BLANK | PLAIN,
    ['!'] = PLAIN,
    ['#' ... '/'] = PLAIN,
    ['0' ... '9'] = PLAIN | DIGIT | HEX,
    [':' ... '@'] = PLAIN,
    ['A' ... 'F'] = PLAIN | HEX,
    ['G' ... '['] = PLAIN,
    [']' ... '`'] = PLAIN,
    ['a' ... 'f'] = PLAIN | HEX,
    ['g' ... 0x7f] = PLAIN,
};

typedef signed char bytes16 __attribute__((vector_size(16)));

/* Sixteen bytes at once: 0xff where one is not plain, 0 elsewhere. As signed numbers control
 * characters and everything beyond ASCII are less than a blank. */
static inline bytes16 not_plain(const char *p)
{
    bytes16 b;

    memcpy(&b, p, sizeof(b));
    return (b < ' ') | (b == '"') | (b == '\\');
}

/* Strings are most of what is read. */
static inline const char *skip_plain(const char *p, const char *end)
{
    for (; end - p >= 16; p += 16) {
        bytes16 marks = not_plain(p);
        uint64_t halves[2];

        memcpy(halves, &marks, sizeof(halves));
        if (halves[0] != 0)
            return p + ((unsigned)__builtin_ctzll(le64toh(halves[0])) >> 3);
        if (halves[1] != 0)
            return p + 8 + ((unsigned)__builtin_ctzll(le64toh(halves[1])) >> 3);
    }
    while (p < end && (classes[(unsigned char)*p] & PLAIN) != 0)
        p++;
    return p;
}

/* The parser's own calls are inlined: strings are most of what it reads. */
const char *json_skip_plain(const char *p, const char *end)
{
    return skip_plain(p, end);
}

/* ---- position ---- */

/* The parsing functions take the place p where something begins, and return the place behind it;
 * on failure they return what this returns: NULL, having noted what should have been at p. */
static const char *expect(struct parser *s, const char *p, const char *what)
{
    s->expected = what;
    s->failed_at = p;
    return NULL;
}

static bool is_at(const struct parser *s, const char *p, char c)
{
    return p < s->end && *p == c;
}

static bool is_at_class(const struct parser *s, const char *p, unsigned class)
{
    return p < s->end && (classes[(unsigned char)*p] & class) != 0;
}

static const char *skip_blanks(struct parser *s, const char *p)
{
    for (; is_at_class(s, p, BLANK); p++)
        s->has_blanks = true;
    return p;
}

/* ---- nodes ---- */

static bool grow_nodes(struct parser *s)
{
    uint32_t guess = (uint32_t)MIN((s->end - s->start) / 8 + 4, FIRST_NODES_MOST);
    uint32_t size = MIN(s->size == 0 ? guess : 2 * s->size, s->limits.members);

    if (size == s->size)
        return false;
    s->nodes =
        arena_grow(s->arena, s->nodes, s->size * sizeof(*s->nodes), size * sizeof(*s->nodes));
    s->size = size;
    return true;
}

static const char *too_many_nodes(struct parser *s, const char *p)
{
    return expect(s, p, arena_printf(s->arena, "at most %u values and member names", s->size).p);
}

/* A node for the text from p to end; returns end. */
static inline const char *add_node(struct parser *s, const char *p, const char *end,
                                   enum json_type type, bool escaped)
{
    if (s->count == s->size && !grow_nodes(s))
        return too_many_nodes(s, p);
    s->nodes[s->count] = (struct json_node){.start = (uint32_t)(p - s->start),
                                            .end = (uint32_t)(end - s->start),
                                            .next = s->count + 1,
                                            .type = type,
                                            .escaped = escaped};
    s->count++;
    return end;
}

/* ---- scalars ---- */

static const char *skip_escape(struct parser *s, const char *p)
{
    static const char letters[] = JSON_ESCAPE_LETTERS;

    p++;
    if (is_at(s, p, 'u')) {
        p++;
        for (size_t i = 0; i < 4; i++, p++)
            if (!is_at_class(s, p, HEX))
                return expect(s, p, "four hexadecimal digits after \\u");
        return p;
    }
    if (p == s->end || memchr(letters, *p, sizeof(letters) - 1) == NULL)
        return expect(s, p, "one of " JSON_ESCAPE_LETTERS "u after a backslash");
    return p + 1;
}

/* At a byte that is neither plain nor a quote nor a backslash. */
static const char *skip_multibyte(struct parser *s, const char *p)
{
    if ((unsigned char)*p < 0x20)
        return expect(s, p, "an escape sequence for a control character");
    do {
        size_t n = text_utf8_bytes(span_of(p, (size_t)(s->end - p)));

        if (n == 0)
            return expect(s, p, "valid UTF-8");
        p += n;
    } while (p < s->end && (unsigned char)*p >= 0x80);
    return p;
}

static const char *parse_string(struct parser *s, const char *start)
{
    bool escaped = false;
    const char *p = skip_plain(start + 1, s->end);

    while (!is_at(s, p, '"')) {
        if (p == s->end)
            return expect(s, p, "the closing quote of a string");
        escaped |= *p == '\\';
        p = *p == '\\' ? skip_escape(s, p) : skip_multibyte(s, p);
        if (p == NULL)
            return NULL;
        p = skip_plain(p, s->end);
    }
    return add_node(s, start, p + 1, JSON_STRING, escaped);
}

static const char *skip_digits(struct parser *s, const char *p)
{
    if (!is_at_class(s, p, DIGIT))
        return expect(s, p, "a digit");
    while (is_at_class(s, p, DIGIT))
        p++;
    return p;
}

/* "No leading zeros" is the one rule of RFC 8259 section 6 that needs a look ahead. */
static const char *skip_integer(struct parser *s, const char *p)
{
    if (!is_at(s, p, '0'))
        return skip_digits(s, p);
    if (is_at_class(s, p + 1, DIGIT))
        return expect(s, p + 1, "no digit after a leading zero");
    return p + 1;
}

static const char *parse_number(struct parser *s, const char *start)
{
    const char *p = skip_integer(s, start + (*start == '-'));

    if (p != NULL && is_at(s, p, '.'))
        p = skip_digits(s, p + 1);
    if (p != NULL && (is_at(s, p, 'e') || is_at(s, p, 'E'))) {
        p++;
        p = skip_digits(s, p + (is_at(s, p, '+') || is_at(s, p, '-')));
    }
    return p != NULL ? add_node(s, start, p, JSON_NUMBER, false) : NULL;
}

static const char *parse_word(struct parser *s, const char *p, struct span word,
                              enum json_type type)
{
    if ((size_t)(s->end - p) < word.n || memcmp(p, word.p, word.n) != 0)
        return expect(s, p, "a value");
    return add_node(s, p, p + word.n, type, false);
}

static const char *parse_scalar(struct parser *s, const char *p)
{
    if (is_at(s, p, '"'))
        return parse_string(s, p);
    if (is_at(s, p, '-') || is_at_class(s, p, DIGIT))
        return parse_number(s, p);
    if (is_at(s, p, 't'))
        return parse_word(s, p, SPAN("true"), JSON_BOOLEAN);
    if (is_at(s, p, 'f'))
        return parse_word(s, p, SPAN("false"), JSON_BOOLEAN);
    return parse_word(s, p, SPAN("null"), JSON_NULL);
}

/* ---- containers ---- */

static bool in_object(const struct parser *s)
{
    return s->nodes[s->open].type == JSON_OBJECT;
}

static bool is_at_closing(const struct parser *s, const char *p)
{
    return is_at(s, p, in_object(s) ? '}' : ']');
}

static const char *open_container(struct parser *s, const char *p)
{
    enum json_type type = *p == '{' ? JSON_OBJECT : JSON_ARRAY;

    if (s->depth == s->limits.depth)
        return expect(s, p, arena_printf(s->arena, "at most %u levels of nesting", s->depth).p);
    if (add_node(s, p, p + 1, type, false) == NULL)
        return NULL;
    s->nodes[s->count - 1].next = s->open;
    s->open = s->count - 1;
    s->depth++;
    return p + 1;
}

static const char *close_container(struct parser *s, const char *p)
{
    struct json_node *closed = &s->nodes[s->open];

    s->open = closed->next;
    s->depth--;
    closed->end = (uint32_t)(p + 1 - s->start);
    closed->next = s->count;
    return p + 1;
}

/* With the colon. */
static const char *parse_name(struct parser *s, const char *p)
{
    p = skip_blanks(s, p);
    if (!is_at(s, p, '"'))
        return expect(s, p, "a member name in quotes");
    p = parse_string(s, p);
    if (p == NULL)
        return NULL;
    p = skip_blanks(s, p);
    return is_at(s, p, ':') ? p + 1 : expect(s, p, "':'");
}

/* Counts the child that follows and, in an object, reads its name. */
static const char *begin_child(struct parser *s, const char *p)
{
    s->nodes[s->open].count++;
    return in_object(s) ? parse_name(s, p) : p;
}

/* A scalar or an empty container, preceded by the beginnings of all containers that begin here. */
static const char *parse_value(struct parser *s, const char *p)
{
    p = skip_blanks(s, p);
    while (is_at(s, p, '{') || is_at(s, p, '[')) {
        p = open_container(s, p);
        if (p == NULL)
            return NULL;
        p = skip_blanks(s, p);
        if (is_at_closing(s, p))
            return p;
        p = begin_child(s, p);
        if (p == NULL)
            return NULL;
        p = skip_blanks(s, p);
    }
    return parse_scalar(s, p);
}

/* The ends of all containers that end here, then up to the next value, if there is one. */
static const char *parse_closings(struct parser *s, const char *p)
{
    while (s->open != NONE) {
        p = skip_blanks(s, p);
        if (is_at(s, p, ','))
            return begin_child(s, p + 1);
        if (!is_at_closing(s, p))
            return expect(s, p, in_object(s) ? "',' or '}'" : "',' or ']'");
        p = close_container(s, p);
    }
    return p;
}

/* What is looked for in the outermost object. */
struct wanted {
    const struct span *names;
    size_t count;
    size_t left;   /* names to come */
    uint32_t next; /* the first member that was not compared with them yet */
};

static bool is_wanted(const struct parser *s, const struct wanted *wanted,
                      const struct json_node *name)
{
    struct span text = span_of(s->start + name->start + 1, name->end - name->start - 2);

    for (size_t i = 0; i < wanted->count; i++)
        if (span_eq(text, wanted->names[i]))
            return true;
    return false;
}

/* Behind the name of a member of the outermost object: those before it are complete. */
static bool have_all(const struct parser *s, struct wanted *wanted)
{
    while (wanted->next < s->count - 1 && wanted->left > 0) {
        wanted->left -= is_wanted(s, wanted, &s->nodes[wanted->next]);
        wanted->next = s->nodes[wanted->next + 1].next;
    }
    return wanted->left == 0;
}

/* As if the outermost object ended before the name that was read last. */
static void end_early(struct parser *s)
{
    s->count--;
    s->nodes[0].count--;
    s->nodes[0].next = s->count;
}

/* From p to the end. `wanted` NULL: all of it. */
static bool parse_document(struct parser *s, const char *p, struct wanted *wanted)
{
    do {
        const char *from = p;

        p = parse_value(s, p);
        if (p != NULL)
            p = parse_closings(s, p);
        if (p == NULL)
            return false;
        budget_spend((size_t)(p - from));
        if (wanted != NULL && s->open == 0 && in_object(s) && have_all(s, wanted)) {
            end_early(s);
            return true;
        }
    } while (s->open != NONE);
    p = skip_blanks(s, p);
    return p == s->end || expect(s, p, s->end_name) != NULL;
}

/* The array counts as a level, as if it had brackets. */
static bool parse_lines(struct parser *s, struct span text)
{
    struct span rest = text;

    if (add_node(s, text.p, s->end, JSON_ARRAY, false) == NULL)
        return false;
    s->depth = MIN(1, s->limits.depth);
    while (rest.p != NULL) {
        struct span line = span_split(&rest, '\n');

        s->end = line.p + line.n;
        if (skip_blanks(s, line.p) == s->end)
            continue;
        s->nodes[0].count++;
        if (!parse_document(s, line.p, NULL))
            return false;
    }
    s->nodes[0].next = s->count;
    return true;
}

/* ---- errors ---- */

struct json_place json_place(const char *text, const char *p)
{
    struct json_place place = {1, 1};

    for (; text < p; text++) {
        place.column++;
        if (*text == '\n')
            place = (struct json_place){place.line + 1, 1};
    }
    return place;
}

/* What is there instead, for people. */
static struct span found(const struct parser *s)
{
    const char *p = s->failed_at;

    if (p == s->end)
        return span_str(s->end_name);
    if (*p < ' ' || *p > '~')
        return arena_printf(s->arena, "byte 0x%02x", (unsigned char)*p);
    return arena_printf(s->arena, "'%c'", *p);
}

static struct err *failure(const struct parser *s)
{
    struct json_place place = json_place(s->start, s->failed_at);

    return ERR(ERR_FAILED_JSON, "invalid JSON at line %zu, column %zu: expected %s, found %.*s",
               place.line, place.column, s->expected, SPAN_FMT(found(s)));
}

static struct err *parser_init(struct parser *s, struct span text, const struct json_limits *limits,
                               struct arena *a)
{
    *s = (struct parser){
        .start = text.p, .end_name = "the end of the text", .arena = a, .open = NONE};
    s->limits = limits != NULL ? *limits : (struct json_limits){DEFAULT_DEPTH, DEFAULT_NODES};
    MUST(s->limits.depth <= JSON_DEPTH_MOST);
    s->limits.members = MIN(s->limits.members, NODES_MOST);
    if (text.n > TEXT_MOST)
        return ERR(ERR_FAILED_JSON, "the JSON text is longer than 1 GiB");
    s->end = text.n > 0 ? text.p + text.n : text.p;
    return NULL;
}

static struct err *parse(struct span text, struct wanted *wanted, const struct json_limits *limits,
                         struct arena *a, struct json_doc *out_doc)
{
    struct parser s;

    TRY(parser_init(&s, text, limits, a));
    if (!parse_document(&s, s.start, wanted))
        return failure(&s);
    *out_doc = (struct json_doc){text, s.nodes, s.count, !s.has_blanks, false};
    return NULL;
}

struct err *json_parse_lines(struct span text, const struct json_limits *limits, struct arena *a,
                             struct json_doc *out_doc)
{
    struct parser s;

    TRY(parser_init(&s, text, limits, a));
    s.end_name = "the end of the line";
    if (!parse_lines(&s, text))
        return failure(&s);
    *out_doc = (struct json_doc){text, s.nodes, s.count, !s.has_blanks, true};
    return NULL;
}

struct err *json_parse(struct span text, const struct json_limits *limits, struct arena *a,
                       struct json_doc *out_doc)
{
    return parse(text, NULL, limits, a, out_doc);
}

struct err *json_parse_front(struct span text, const struct span *names, size_t count,
                             const struct json_limits *limits, struct arena *a,
                             struct json_doc *out_doc)
{
    struct wanted wanted = {names, count, count, 1};

    return parse(text, &wanted, limits, a, out_doc);
}
