#include "protocol/method.h"

#include "query/shape.h"

static const struct span names[] = {[METHOD_OPTIONS] = SPAN_INIT("OPTIONS"), METHODS(AS_SPAN)};

const struct enumeration method_names = {.name = "Method", .values = names, .count = METHOD_COUNT};

struct span method_name(enum method m)
{
    return m < METHOD_OTHER ? names[m] : span_of(NULL, 0);
}

enum method method_of(struct span received)
{
    for (enum method m = 0; m < METHOD_OTHER; m++)
        if (span_eq(names[m], received))
            return m;
    return METHOD_OTHER;
}

enum method method_parse(struct span name)
{
    for (enum method m = 0; m < METHOD_COUNT; m++)
        if (span_ieq(names[m], name))
            return m;
    return METHOD_OTHER;
}

unsigned method_closure(unsigned methods)
{
    return (methods & METHOD_BIT(METHOD_GET)) != 0 ? methods | METHODS_READ : methods;
}

static void add_names(struct buf *b, unsigned methods, const char *quote, const char *separator)
{
    const char *between = "";

    for (enum method m = 0; m < METHOD_COUNT; m++) {
        if ((methods & METHOD_BIT(m)) == 0)
            continue;
        buf_add_str(b, between);
        buf_add_str(b, quote);
        buf_add(b, names[m]);
        buf_add_str(b, quote);
        between = separator;
    }
}

void method_add_json(struct buf *b, unsigned methods)
{
    buf_add_char(b, '[');
    add_names(b, methods, "\"", ",");
    buf_add_char(b, ']');
}

void method_add_list(struct buf *b, unsigned methods)
{
    add_names(b, methods, "", ", ");
}
