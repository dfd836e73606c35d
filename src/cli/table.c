/* A table is laid out when all of it is there. When it is too wide, the widest columns are cut to a
 * common width, the greatest with which a row fits a line: narrow columns stay whole. What is to be
 * copied, an Id, is never cut. Where that would leave too little of each, the last columns go. */
#include "cli/table.h"

#include "base/text.h"
#include "cli/width.h"

enum { GAP = 2, NARROWEST = 10 };

static const char *const marks[] = {
    [PAINT_NONE] = "",         [PAINT_GOOD] = "\x1b[32m", [PAINT_BAD] = "\x1b[31m",
    [PAINT_WARN] = "\x1b[33m", [PAINT_FAINT] = "\x1b[2m", [PAINT_STRONG] = "\x1b[1m",
};

void table_add_painted(struct buf *b, struct look look, enum paint paint, struct span text)
{
    bool painted = look.colours && paint != PAINT_NONE && text.n > 0;

    if (painted)
        buf_add_str(b, marks[paint]);
    buf_add(b, text);
    if (painted)
        buf_add_str(b, "\x1b[0m");
}

enum paint table_paint_of(struct span state)
{
    static const struct {
        struct span text;
        enum paint paint;
    } states[] = {{SPAN_INIT("Active"), PAINT_GOOD},    {SPAN_INIT("Delivered"), PAINT_GOOD},
                  {SPAN_INIT("created"), PAINT_GOOD},   {SPAN_INIT("Leader"), PAINT_GOOD},
                  {SPAN_INIT("updated"), PAINT_GOOD},   {SPAN_INIT("true"), PAINT_GOOD},
                  {SPAN_INIT("Dead"), PAINT_BAD},       {SPAN_INIT("Aborted"), PAINT_BAD},
                  {SPAN_INIT("Failing"), PAINT_BAD},    {SPAN_INIT("refused"), PAINT_BAD},
                  {SPAN_INIT("false"), PAINT_BAD},      {SPAN_INIT("HeldBack"), PAINT_WARN},
                  {SPAN_INIT("Throttled"), PAINT_WARN}, {SPAN_INIT("Candidate"), PAINT_WARN},
                  {SPAN_INIT("Joining"), PAINT_WARN},   {SPAN_INIT("Paused"), PAINT_WARN},
                  {SPAN_INIT("Waiting"), PAINT_WARN},   {SPAN_INIT("unchanged"), PAINT_FAINT}};

    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (span_eq(state, states[i].text))
            return states[i].paint;
    if (state.n == 3 && state.p[0] == '2')
        return PAINT_GOOD;
    return state.n == 3 && state.p[0] >= '3' && state.p[0] <= '5' ? PAINT_BAD : PAINT_NONE;
}

struct column {
    struct span heading;
    size_t width;
    bool kept, painted;
    bool has_text;  /* else all are numbers, which stand to the right */
    bool has_times; /* cut they would say nothing */
};

struct table {
    struct arena *arena;
    struct column *columns;
    size_t column_count;
    struct span *cells;
    size_t cell_count, cell_room;
};

struct table *table_new(struct arena *a, const char *const *headings, size_t count)
{
    struct table *table = ARENA_NEW(a, struct table);

    table->arena = a;
    table->columns = ARENA_ARRAY(a, struct column, count);
    table->column_count = count;
    for (size_t i = 0; i < count; i++) {
        struct column *column = &table->columns[i];

        column->heading = span_str(headings[i]);
        column->kept = span_ends(column->heading, SPAN("!"));
        column->painted = span_ends(column->heading, SPAN("*"));
        column->heading.n -= column->kept || column->painted;
        column->width = width_of(column->heading);
    }
    return table;
}

/* On one line: what is laid out in columns has no line feeds. */
static struct span shown(struct arena *a, struct span text)
{
    struct span line = arena_copy(a, text);
    char *p = (char *)(uintptr_t)line.p; /* the copy is ours */
    struct buf b;

    for (size_t i = 0; i < line.n; i++)
        if (p[i] == '\n' || p[i] == '\r' || p[i] == '\t')
            p[i] = ' ';
    buf_init_arena(&b, a);
    text_add_shown(&b, line);
    return buf_span(&b);
}

/* Percent too. */
static bool is_number(struct span cell)
{
    cell.n -= cell.n > 1 && span_ends(cell, SPAN("%"));
    return cell.n > 0 && span_holds_only(cell, '+', '9', '/') &&
           span_find_char(cell, '-', 1) == cell.n;
}

/* `2026-11-23 12:03:37`. */
static bool is_time(struct span cell)
{
    return cell.n == 19 && cell.p[4] == '-' && cell.p[7] == '-' && cell.p[10] == ' ' &&
           cell.p[13] == ':' && cell.p[16] == ':';
}

void table_add(struct table *table, struct span cell)
{
    struct column *column = &table->columns[table->cell_count % table->column_count];
    struct span text = shown(table->arena, cell);

    if (table->cell_count == table->cell_room) {
        size_t room = MAX(table->cell_room * 2, 64);

        table->cells =
            arena_grow(table->arena, table->cells, table->cell_room * sizeof(struct span),
                       room * sizeof(struct span));
        table->cell_room = room;
    }
    table->cells[table->cell_count++] = text;
    column->width = MAX(column->width, width_of(text));
    column->has_text = column->has_text || (text.n > 0 && !is_number(text));
    column->has_times = column->has_times || is_time(text);
}

size_t table_rows(const struct table *table)
{
    return table->cell_count / table->column_count;
}

static size_t width_within(const struct table *table, size_t i, size_t cap)
{
    const struct column *column = &table->columns[i];

    return column->kept || column->has_times ? column->width : MIN(column->width, cap);
}

/* Of a row of the first `count` columns. */
static size_t row_width(const struct table *table, size_t count, size_t cap)
{
    size_t sum = GAP * (count - 1);

    for (size_t i = 0; i < count; i++)
        sum += width_within(table, i, cap);
    return sum;
}

struct row_layout {
    struct look look;
    size_t count; /* of columns that are shown */
    size_t cap;   /* of their widths */
    bool is_heading;
};

/* As many columns as there is room for, and the greatest width that none needs to pass. */
static struct row_layout lay_out(const struct table *table, struct look look)
{
    struct row_layout layout = {look, table->column_count, SIZE_MAX, true};
    size_t low = NARROWEST, high = look.columns;

    if (look.columns == 0)
        return layout;
    while (layout.count > 1 && row_width(table, layout.count, NARROWEST) > look.columns)
        layout.count--;
    while (low < high) {
        size_t cap = low + (high - low + 1) / 2;

        if (row_width(table, layout.count, cap) <= look.columns)
            low = cap;
        else
            high = cap - 1;
    }
    layout.cap = low;
    return layout;
}

static void add_blanks(struct buf *b, size_t count)
{
    while (count-- > 0)
        buf_add_char(b, ' ');
}

static void print_cell(const struct table *table, size_t i, struct span text,
                       const struct row_layout *layout, struct buf *b)
{
    const struct column *column = &table->columns[i];
    size_t width = width_within(table, i, layout->cap), used = width_of(text);
    bool to_right = !column->has_text && !column->painted && !column->kept;
    enum paint paint = column->painted ? table_paint_of(text) : PAINT_NONE;
    struct span part = text;

    if (used > width) {
        part = width_cut(text, width - 1);
        used = width_of(part) + 1;
    }
    if (to_right)
        add_blanks(b, width - used);
    table_add_painted(b, layout->look, layout->is_heading ? PAINT_FAINT : paint, part);
    if (part.n < text.n)
        buf_add_str(b, "\xe2\x80\xa6");
    if (i + 1 == layout->count)
        return;
    add_blanks(b, GAP + (to_right ? 0 : width - used));
}

/* Without the blanks that padding leaves at its end. */
static void end_line(struct buf *b)
{
    while (b->n > 0 && b->p[b->n - 1] == ' ')
        buf_truncate(b, b->n - 1);
    buf_add_char(b, '\n');
}

void table_print(const struct table *table, struct look look, struct buf *b)
{
    struct row_layout layout = lay_out(table, look);

    if (table_rows(table) == 0)
        return;
    for (size_t i = 0; i < layout.count; i++)
        print_cell(table, i, table->columns[i].heading, &layout, b);
    end_line(b);
    layout.is_heading = false;
    for (size_t row = 0; row < table_rows(table); row++) {
        for (size_t i = 0; i < layout.count; i++)
            print_cell(table, i, table->cells[row * table->column_count + i], &layout, b);
        end_line(b);
    }
}

/* As much as a line takes, up to a blank where there is one in its second half. */
static struct span take_line(struct span *rest, size_t columns)
{
    struct span line = width_cut(*rest, columns);
    size_t end = line.n;

    while (line.n < rest->n && rest->p[line.n] != ' ' && end > line.n / 2 && line.p[end - 1] != ' ')
        end--;
    if (line.n < rest->n && end > line.n / 2)
        line.n = end;
    *rest = span_sub(*rest, line.n > 0 ? line.n : 1, rest->n);
    while (rest->n > 0 && rest->p[0] == ' ')
        *rest = span_sub(*rest, 1, rest->n);
    return line;
}

void table_print_pair(struct buf *b, struct look look, size_t width, struct span name,
                      struct span value)
{
    table_print_painted_pair(b, look, width, name, value,
                             span_ends(name, SPAN("State")) ? table_paint_of(value) : PAINT_NONE);
}

void table_print_painted_pair(struct buf *b, struct look look, size_t width, struct span name,
                              struct span value, enum paint paint)
{
    size_t left = look.columns > width + GAP + NARROWEST ? look.columns - width - GAP : SIZE_MAX;
    struct arena a;
    struct span rest;

    arena_init(&a);
    rest = shown(&a, value);
    table_add_painted(b, look, PAINT_FAINT, name);
    add_blanks(b, GAP + (width_of(name) < width ? width - width_of(name) : 0));
    for (bool is_first = true; is_first || rest.n > 0; is_first = false) {
        if (!is_first)
            add_blanks(b, width + GAP);
        table_add_painted(b, look, paint, take_line(&rest, left));
        end_line(b);
    }
    arena_done(&a);
}
