/* The query form of a target, as HTML forms and generated clients write it: parameters that are
 * decoded once, each as a whole. So a value may hold what delimits in a path. */
#include "query/uri_inner.h"

#include <string.h>

bool uri_is_where(const struct uri_condition *parameter)
{
    return span_ieq(parameter->key, SPAN("where"));
}

/* In forms a '+' is a space, and a plus sign is %2B. */
static struct err *decode(struct span text, struct arena *a, struct span *out_text)
{
    if (span_find_char(text, '+', 0) < text.n) {
        char *p = arena_alloc(a, text.n);

        memcpy(p, text.p, text.n);
        for (size_t i = 0; i < text.n; i++)
            if (p[i] == '+')
                p[i] = ' ';
        text.p = p;
    }
    return uri_decode(text, a, out_text);
}

static struct err *read_parameter(struct span piece, struct arena *a,
                                  struct uri_condition *out_parameter)
{
    struct span value = piece, name = span_split(&value, '=');

    *out_parameter = (struct uri_condition){.op = URI_EQ};
    TRY(decode(name, a, &out_parameter->key));
    return decode(value.p == NULL ? SPAN("") : value, a, &out_parameter->value);
}

static struct err *check_count(size_t count, const char *noun, size_t max_conditions,
                               struct span query)
{
    if (count <= max_conditions)
        return NULL;
    return ERR(ERR_INVALID_URI_SYNTAX, "There are %zu %ss in '?%.*s', at most %zu are allowed.",
               count, noun, SPAN_FMT(query), max_conditions);
}

struct err *uri_read_form(struct span query, size_t max_conditions, struct arena *a,
                          struct uri *out_uri)
{
    struct uri_condition *items =
        arena_alloc(a, (span_count_char(query, '&') + 1) * sizeof(*items));
    size_t count = 0, wheres = 0;

    for (struct span rest = query; rest.p != NULL;) {
        struct span piece = span_split(&rest, '&');

        if (piece.n == 0)
            continue;
        TRY(read_parameter(piece, a, &items[count]));
        wheres += uri_is_where(&items[count]);
        count++;
    }
    TRY(check_count(wheres, "condition", max_conditions, query));
    TRY(check_count(count - wheres, "meta-condition", max_conditions, query));
    out_uri->parameters = items;
    out_uri->parameter_count = count;
    return NULL;
}
