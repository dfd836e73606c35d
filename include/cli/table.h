/* Tables for people: columns as wide as what is in them, and on a terminal as narrow as it takes
 * for a row to be a line. Also lists of names and values. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/arena.h"
#include "base/buf.h"

/* How something is shown: where it goes has this many columns (0: as many as it takes), and shows
 * colours or not. */
struct look {
    size_t columns;
    bool colours;
};

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_BAD, PAINT_WARN, PAINT_FAINT, PAINT_STRONG };

/* The text between the marks of the colour, when there are colours. */
void table_add_painted(struct buf *b, struct look look, enum paint paint, struct span text);
/* What a state or a status says to a person: Active is good, Dead is bad. */
enum paint table_paint_of(struct span state);

struct table;

/* Of `count` headings, string literals. A column whose heading ends with '!' is never cut, and
 * one that ends with '*' is painted by what stands in it; the mark is not shown. */
struct table *table_new(struct arena *a, const char *const *headings, size_t count);
/* One cell after the other, row by row. The text is copied; controls in it are escaped, line feeds
 * are shown as blanks. */
void table_add(struct table *table, struct span cell);
size_t table_rows(const struct table *table);
/* Nothing for a table without rows. */
void table_print(const struct table *table, struct look look, struct buf *b);

/* `name  value`: the name padded to `width`, a long value over several lines, each indented. The
 * value of a State is painted by what it is. */
void table_print_pair(struct buf *b, struct look look, size_t width, struct span name,
                      struct span value);
void table_print_painted_pair(struct buf *b, struct look look, size_t width, struct span name,
                              struct span value, enum paint paint);

#endif
