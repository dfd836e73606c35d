/* Writing. A parsed value is written from its text: outside of scalars that consists of brackets,
 * commas, colons and blanks, so both forms go from scalar to scalar and through the gaps between
 * them, without recursion. */
#include "base/budget.h"
#include "base/datetime.h"
#include "base/must.h"
#include "base/text.h"
#include "json_private.h"
#include "json/json.h"

#include <string.h>

/* ---- from spans ---- */

/* A character that does not stand for itself: escaped, or the replacement of what is no UTF-8. */
static void add_special(struct buf *b, char c)
{
    static const char meanings[] = JSON_ESCAPE_MEANINGS, letters[] = JSON_ESCAPE_LETTERS;
    const char *meaning = memchr(meanings, c, sizeof(meanings) - 1);

    if (meaning != NULL) {
        buf_add_char(b, '\\');
        buf_add_char(b, letters[meaning - meanings]);
    } else if ((unsigned char)c < 0x20) {
        buf_printf(b, "\\u%04x", (unsigned char)c);
    } else {
        text_add_scalar(b, 0xfffd);
    }
}

void json_add_string(struct buf *b, struct span text)
{
    const char *p = text.p, *end = text.n > 0 ? text.p + text.n : text.p;
    const char *run = p; /* what is not written yet */

    buf_add_char(b, '"');
    while ((p = json_skip_plain(p, end)) < end) {
        size_t n = text_utf8_bytes(span_of(p, (size_t)(end - p)));

        if (n > 1) {
            p += n;
            continue;
        }
        buf_add(b, span_of(run, (size_t)(p - run)));
        add_special(b, *p);
        run = ++p;
    }
    buf_add(b, span_of(run, (size_t)(p - run)));
    buf_add_char(b, '"');
}

/* In how many bytes a special character is written. */
static size_t special_bytes(char c)
{
    if (memchr(JSON_ESCAPE_MEANINGS, c, sizeof(JSON_ESCAPE_MEANINGS) - 1) != NULL)
        return 2;
    return (unsigned char)c < 0x20 ? strlen("\\u0000") : strlen("\xef\xbf\xbd");
}

struct span json_cut_string(struct span text, size_t most, size_t *out_bytes)
{
    const char *p = text.p, *end = text.n > 0 ? text.p + text.n : text.p;
    size_t bytes = 0;

    while (p < end) {
        size_t n = (size_t)(json_skip_plain(p, end) - p), written = n;

        if (n > most - bytes) {
            p += most - bytes;
            bytes = most;
            break;
        }
        if (n == 0) {
            n = MAX(text_utf8_bytes(span_of(p, (size_t)(end - p))), 1);
            written = n > 1 ? n : special_bytes(*p);
        }
        if (written > most - bytes)
            break;
        p += n;
        bytes += written;
    }
    *out_bytes = bytes;
    return span_of(text.p, (size_t)(p - text.p));
}

static bool follows_another(const struct buf *b)
{
    char last = (char)(b->n > 0 ? b->p[b->n - 1] : '{');

    return last != '{' && last != '[';
}

void json_add_comma(struct buf *b)
{
    if (follows_another(b))
        buf_add_char(b, ',');
}

void json_add_name(struct buf *b, struct span name)
{
    json_add_comma(b);
    json_add_string(b, name);
    buf_add_char(b, ':');
}

void json_add_written_name(struct buf *b, struct json_value name)
{
    json_add_comma(b);
    buf_add(b, json_text(name));
    buf_add_char(b, ':');
}

void json_add_time(struct buf *b, int64_t unix_ns)
{
    buf_add_char(b, '"');
    datetime_add(b, unix_ns);
    buf_add_char(b, '"');
}

/* Names are short: two halves that overlap are quicker than a call. */
static inline void copy_name(char *to, struct span name)
{
    enum { WHOLE = 16, HALF = 8, QUARTER = 4 };

    if (name.n >= HALF && name.n <= WHOLE) {
        uint64_t head, tail;

        memcpy(&head, name.p, HALF);
        memcpy(&tail, name.p + name.n - HALF, HALF);
        memcpy(to, &head, HALF);
        memcpy(to + name.n - HALF, &tail, HALF);
    } else if (name.n >= QUARTER && name.n < HALF) {
        uint32_t head, tail;

        memcpy(&head, name.p, QUARTER);
        memcpy(&tail, name.p + name.n - QUARTER, QUARTER);
        memcpy(to, &head, QUARTER);
        memcpy(to + name.n - QUARTER, &tail, QUARTER);
    } else {
        memcpy(to, name.p, name.n);
    }
}

void json_add_plain_name(struct buf *b, struct span name)
{
    size_t comma = follows_another(b) ? 1 : 0;
    char *to = buf_reserve(b, comma + name.n + 3);

    if (to == NULL)
        return;
    to[0] = ','; /* and over it, when it is the first */
    to[comma] = '"';
    copy_name(to + comma + 1, name);
    memcpy(to + comma + 1 + name.n, "\":", 2);
    buf_commit(b, comma + name.n + 3);
}

/* ---- from parsed values ---- */

/* Goes through a value: alternately the text before a scalar and that scalar. */
struct walk {
    const struct json_node *node, *end;
    const char *text;
    uint32_t at, text_end;
};

static struct walk walk_through(struct json_value v)
{
    return (struct walk){.node = v.node,
                         .end = v.doc->nodes + v.node->next,
                         .text = v.doc->text.p,
                         .at = v.node->start,
                         .text_end = v.node->end};
}

static bool is_container(const struct json_node *node)
{
    return node->type == JSON_ARRAY || node->type == JSON_OBJECT;
}

/* False when no scalar is left: *out_scalar is then empty, and *out_gap the rest. */
static bool walk_next(struct walk *w, struct span *out_gap, struct span *out_scalar)
{
    bool found;
    uint32_t start, end;

    while (w->node < w->end && is_container(w->node))
        w->node++;
    found = w->node < w->end;
    start = found ? w->node->start : w->text_end;
    end = found ? w->node->end : w->text_end;
    *out_gap = span_of(w->text + w->at, start - w->at);
    *out_scalar = span_of(w->text + start, end - start);
    w->at = end;
    w->node += found;
    return found;
}

/* In a gap there are no other characters up to the blank. */
static bool is_blank(char c)
{
    return c <= ' ';
}

/* What lies between two blanks is copied at once. */
void json_add_compact(struct buf *b, struct json_value v)
{
    struct span text = json_text(v), gap, scalar;
    const char *run = text.p;
    struct walk w;
    bool more = true;

    if (!json_exists(v)) {
        buf_add(b, SPAN("null"));
        return;
    }
    if (v.doc->is_compact) {
        buf_add(b, text);
        return;
    }
    for (w = walk_through(v); more;) {
        more = walk_next(&w, &gap, &scalar);
        for (const char *p = gap.p; p < gap.p + gap.n; p++) {
            if (is_blank(*p)) {
                buf_add(b, span_of(run, (size_t)(p - run)));
                run = p + 1;
            }
        }
    }
    buf_add(b, span_of(run, (size_t)(text.p + text.n - run)));
}

struct printer {
    struct buf *b;
    unsigned indent;
    size_t depth;
    bool opened; /* a bracket was opened and nothing is in it yet */
};

static void print_line_end(struct printer *p)
{
    buf_add_char(p->b, '\n');
    for (size_t i = 0; i < p->depth; i++)
        buf_add(p->b, span_of("        ", p->indent));
}

/* Before a scalar or an opening bracket. */
static void print_beginning(struct printer *p)
{
    if (p->opened)
        print_line_end(p);
    p->opened = false;
}

static void print_closing(struct printer *p, char bracket)
{
    p->depth--;
    if (!p->opened)
        print_line_end(p);
    p->opened = false;
    buf_add_char(p->b, bracket);
}

/* A character outside of scalars. */
static void print_gap_char(struct printer *p, char c)
{
    if (c == '{' || c == '[') {
        print_beginning(p);
        buf_add_char(p->b, c);
        p->opened = true;
        p->depth++;
    } else if (c == '}' || c == ']') {
        print_closing(p, c);
    } else if (c == ',') {
        buf_add_char(p->b, c);
        print_line_end(p);
    } else if (c == ':') {
        buf_add(p->b, SPAN(": "));
    }
}

void json_add_indented(struct buf *b, struct json_value v, unsigned indent)
{
    struct printer p = {.b = b, .indent = indent};
    struct span gap, scalar;
    struct walk w;

    MUST(indent <= 8);
    if (!json_exists(v)) {
        buf_add(b, SPAN("null"));
        return;
    }
    for (w = walk_through(v); walk_next(&w, &gap, &scalar); buf_add(b, scalar)) {
        budget_spend(64 + scalar.n / 4);
        for (size_t i = 0; i < gap.n; i++)
            print_gap_char(&p, gap.p[i]);
        print_beginning(&p);
    }
    for (size_t i = 0; i < gap.n; i++)
        print_gap_char(&p, gap.p[i]);
}

/* ---- merging ---- */

struct merging {
    struct buf *b;
    bool fold;
    struct arena *a;
};

static void merge(struct merging *g, struct json_value target, struct json_value patch);

/* The members of target, with what patch has of the same name; notes which those were. */
static void merge_present(struct merging *g, struct json_value target, struct json_value patch,
                          bool *used)
{
    struct json_names names = json_names_sort(patch, g->fold, g->a);

    for (struct json_member m = json_first_member(target); json_exists(m.name);
         m = json_next_member(target, m)) {
        const struct json_name *found = json_names_find(&names, json_string(m.name, g->a), g->a);

        json_add_written_name(g->b, m.name);
        if (found == NULL) {
            json_add_compact(g->b, m.value);
            continue;
        }
        used[found->place] = true;
        merge(g, m.value, json_names_value(patch, found));
    }
}

static void add_unused(struct merging *g, struct json_value patch, const bool *used)
{
    for (struct json_member m = json_first_member(patch); json_exists(m.name);
         m = json_next_member(patch, m)) {
        if (*used++)
            continue;
        json_add_written_name(g->b, m.name);
        json_add_compact(g->b, m.value);
    }
}

static void merge(struct merging *g, struct json_value target, struct json_value patch)
{
    bool *used;

    if (json_type(target) != JSON_OBJECT || json_type(patch) != JSON_OBJECT) {
        json_add_compact(g->b, patch);
        return;
    }
    used = ARENA_ARRAY(g->a, bool, json_count(patch));
    buf_add_char(g->b, '{');
    merge_present(g, target, patch, used);
    add_unused(g, patch, used);
    buf_add_char(g->b, '}');
}

void json_add_merged(struct buf *b, struct json_value target, struct json_value patch, bool fold,
                     struct arena *a)
{
    struct merging g = {b, fold, a};

    merge(&g, target, patch);
}
