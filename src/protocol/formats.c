#include "protocol/formats.h"

#include "base/budget.h"
#include "base/map.h"
#include "store/entity.h"
#include "json/json.h"

#include <string.h>

static struct span array_of(struct span object, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    buf_reserve(&b, object.n + 2);
    buf_add_char(&b, '[');
    buf_add(&b, object);
    buf_add_char(&b, ']');
    return buf_span(&b);
}

/* Of NDJSON the whole, which has no brackets, and not an array that stands in a line. */
static bool is_lines(struct json_value array)
{
    return array.doc->is_lines && array.node == array.doc->nodes;
}

static struct span array_of_lines(struct json_value lines, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    buf_add_char(&b, '[');
    for (struct json_value v = json_first(lines); json_exists(v); v = json_next(lines, v)) {
        json_add_comma(&b);
        buf_add(&b, json_text(v));
    }
    buf_add_char(&b, ']');
    return buf_span(&b);
}

struct err *formats_from_json(struct json_value value, struct arena *a, struct span *out_array)
{
    uint32_t place = 0;

    if (json_type(value) == JSON_OBJECT) {
        *out_array = array_of(json_text(value), a);
        return NULL;
    }
    if (json_type(value) != JSON_ARRAY)
        return ERR(ERR_INVALID_ENTITY, "a payload is an object or an array of objects");
    for (struct json_value v = json_first(value); json_exists(v); v = json_next(value, v)) {
        if (json_type(v) != JSON_OBJECT)
            return ERR(ERR_INVALID_ENTITY, "entity %u of the payload is no object", place);
        place++;
    }
    *out_array = is_lines(value) ? array_of_lines(value, a) : json_text(value);
    return NULL;
}

/* CSV. -------------------------------------------------------------------------------------- */

/* A column: a member name met in some item. */
struct column {
    struct span name;
    size_t place;
};

static struct span column_key(const void *item)
{
    return ((const struct column *)item)->name;
}

struct table {
    struct map by_name;
    struct column **columns; /* in the order of first appearance */
    size_t count, size;
    bool guards_formulas;
    struct json_value *cells; /* of one row, a column each */
    struct arena *arena;      /* of the columns */
    struct arena scratch;     /* of one row */
};

static void note_columns(struct table *t, struct json_value row)
{
    struct arena *a = t->arena;

    for (struct json_member m = json_first_member(row); json_exists(m.name);
         m = json_next_member(row, m)) {
        struct span name = json_string(m.name, &t->scratch);
        struct column *column;

        if (map_find(&t->by_name, name) != NULL)
            continue;
        if (t->count == t->size) {
            size_t size = t->size == 0 ? 16 : t->size * 2;

            t->columns = arena_grow(a, t->columns, t->size * sizeof(struct column *),
                                    size * sizeof(struct column *));
            t->size = size;
        }
        column = ARENA_NEW(a, struct column);
        column->name = arena_copy(a, name);
        column->place = t->count;
        t->columns[t->count++] = column;
        map_add(&t->by_name, column);
    }
}

/* Rows are parsed again to be written: all of them at once would take many times their text. */
static void table_init(struct table *t, const struct span *items, size_t count,
                       bool guards_formulas, struct arena *a)
{
    *t = (struct table){.guards_formulas = guards_formulas, .arena = a};
    map_init(&t->by_name, column_key);
    arena_init(&t->scratch);
    for (size_t i = 0; i < count && budget_ask(64); i++) {
        arena_reset(&t->scratch);
        note_columns(t, entity_parse(items[i], &t->scratch));
    }
    t->cells = ARENA_ARRAY(a, struct json_value, t->count);
}

static void table_done(struct table *t)
{
    arena_done(&t->scratch);
    map_done(&t->by_name);
}

/* What spreadsheets take for a formula, which may send what it finds beside it anywhere. */
static bool is_formula(struct span text)
{
    return text.n > 0 && memchr("=+-@\t\r", text.p[0], 6) != NULL;
}

/* RFC 4180: quoted when it holds a comma, a quote or a line break; quotes doubled. */
static void add_field(struct buf *b, struct span text, bool guards_formulas)
{
    const char *guard = guards_formulas && is_formula(text) ? "'" : "";
    bool quote = false;

    for (size_t i = 0; i < text.n; i++)
        quote =
            quote || text.p[i] == ',' || text.p[i] == '"' || text.p[i] == '\r' || text.p[i] == '\n';
    if (!quote) {
        buf_add_str(b, guard);
        buf_add(b, text);
        return;
    }
    buf_add_char(b, '"');
    buf_add_str(b, guard);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"')
            buf_add_char(b, '"');
        buf_add_char(b, text.p[i]);
    }
    buf_add_char(b, '"');
}

static void add_value(struct buf *b, struct table *t, struct json_value v)
{
    if (json_type(v) == JSON_STRING)
        add_field(b, json_string(v, &t->scratch), t->guards_formulas);
    else if (json_type(v) != JSON_NULL)
        add_field(b, json_text(v), false);
}

static void add_row(struct buf *b, struct table *t, struct span item)
{
    struct json_value *cells = t->cells, row;
    size_t start = b->n;

    arena_reset(&t->scratch);
    row = entity_parse(item, &t->scratch);
    memset(cells, 0, t->count * sizeof(*cells));
    for (struct json_member m = json_first_member(row); json_exists(m.name);
         m = json_next_member(row, m)) {
        const struct column *column = map_find(&t->by_name, json_string(m.name, &t->scratch));

        if (column == NULL) /* it was told to stop before all columns were noted */
            continue;
        cells[column->place] = m.value;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        add_value(b, t, cells[i]);
    }
    if (t->count == 1 && b->n == start) /* readers skip empty lines */
        buf_add_str(b, "\"\"");
    buf_add_str(b, "\r\n");
}

static void add_csv(struct buf *b, const struct span *items, size_t count, bool guards_formulas,
                    struct arena *a)
{
    struct table t;

    table_init(&t, items, count, guards_formulas, a);
    for (size_t i = 0; i < t.count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        add_field(b, t.columns[i]->name, guards_formulas);
    }
    buf_add_str(b, "\r\n");
    for (size_t i = 0; i < count && !buf_over(b) && budget_ask(64 + 8 * t.count); i++)
        add_row(b, &t, items[i]);
    table_done(&t);
}

/* JSON. ------------------------------------------------------------------------------------- */

/* Room is made once for all of it. When it is told to stop, none of it is there. */
static void add_array(struct buf *b, const struct span *items, size_t count)
{
    size_t bytes = SPAN("[]").n + (count > 0 ? count - 1 : 0);
    char *at;

    for (size_t i = 0; i < count; i++)
        bytes += items[i].n;
    at = buf_reserve(b, bytes);
    if (at == NULL)
        return;
    *at++ = '[';
    for (size_t i = 0; i < count; i++) {
        if (!budget_ask(8 + items[i].n / 4))
            return;
        if (i > 0)
            *at++ = ',';
        memcpy(at, items[i].p, items[i].n);
        at += items[i].n;
    }
    *at = ']';
    buf_commit(b, bytes);
}

static void add_lines(struct buf *b, const struct span *items, size_t count)
{
    for (size_t i = 0; i < count && budget_ask(16 + items[i].n / 4); i++) {
        buf_add(b, items[i]);
        buf_add_char(b, '\n');
    }
}

/* A byte's parsing and writing. */
enum { INDENT_UNITS = 8 };

static void add_indented(struct buf *b, const struct span *items, size_t count, unsigned indent,
                         struct arena *a)
{
    struct buf compact;

    buf_init(&compact, BUF_NO_CAP);
    add_array(&compact, items, count);
    if (budget_may_begin(INDENT_UNITS * compact.n))
        json_add_indented(b, entity_parse(buf_span(&compact), a), indent);
    buf_done(&compact);
}

void formats_add_list(struct buf *b, const struct span *items, size_t count, enum format format,
                      unsigned indent, struct arena *a)
{
    if (format == FORMAT_CSV && count > 0)
        add_csv(b, items, count, false, a);
    else if (format == FORMAT_CSV)
        return; /* no entities, no names of columns */
    else if (format == FORMAT_NDJSON)
        add_lines(b, items, count);
    else if (indent > 0)
        add_indented(b, items, count, indent, a);
    else
        add_array(b, items, count);
}

void formats_add_sheet(struct buf *b, const struct span *items, size_t count, struct arena *a)
{
    if (count > 0)
        add_csv(b, items, count, true, a);
}

void formats_add_array(struct buf *b, struct span payload_array, enum format format,
                       struct arena *a)
{
    struct json_value root;
    struct span *items;
    size_t count = 0;
    struct buf compact;

    if (format == FORMAT_JSON) {
        buf_add(b, payload_array);
        return;
    }
    root = entity_parse(payload_array, a);
    items = ARENA_ARRAY(a, struct span, json_count(root));
    for (struct json_value v = json_first(root); json_exists(v); v = json_next(root, v)) {
        buf_init(&compact, BUF_NO_CAP);
        json_add_compact(&compact, v); /* a line break inside would end an NDJSON line */
        items[count++] = arena_copy(a, buf_span(&compact));
        buf_done(&compact);
    }
    formats_add_list(b, items, count, format, 0, a);
}
