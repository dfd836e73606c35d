/* Request targets out of hostile bytes. What is understood has a normal form that means the same:
 * it is understood again, and its own normal form is itself. */
#include "fuzzing.h"
#include "query/query.h"
#include "query/uri.h"
#include "shapes.h"

enum { CONDITIONS_MOST = 16 };

static struct span normal_of(const struct uri *uri, struct arena *a)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    uri_add_normal(&b, uri, uri->resource.p == NULL ? SPAN("_") : uri->resource, true);
    return input_written(&b, a);
}

static void check_target(const struct uri *uri, struct arena *a)
{
    struct span normal = normal_of(uri, a);
    struct uri again;

    MUST(uri_parse(normal, SPAN("/"), CONDITIONS_MOST, a, &again) == NULL);
    MUST(again.condition_count == uri->condition_count && again.meta_count == uri->meta_count);
    for (size_t i = 0; i < uri->condition_count; i++) {
        MUST(span_eq(again.conditions[i].key, uri->conditions[i].key));
        MUST(again.conditions[i].op == uri->conditions[i].op);
        MUST(span_eq(again.conditions[i].value, uri->conditions[i].value));
    }
    MUST(span_eq(normal_of(&again, a), normal));
}

static struct span conditions_text(const struct conditions *c, struct arena *a)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    conditions_add_normal(&b, c);
    return input_written(&b, a);
}

static void check_conditions(const struct uri *uri, const struct shape *shape, struct arena *a)
{
    struct conditions conditions, again;
    struct span text;
    struct uri reread;
    struct err *e = conditions_parse(uri->conditions, uri->condition_count, shape, a, &conditions);

    if (e != NULL || uri->condition_count == 0) {
        err_free(e);
        return;
    }
    text = conditions_text(&conditions, a);
    MUST(uri_parse(arena_printf(a, "/x/%.*s", SPAN_FMT(text)), SPAN("/"), CONDITIONS_MOST, a,
                   &reread) == NULL);
    MUST(conditions_parse(reread.conditions, reread.condition_count, shape, a, &again) == NULL);
    MUST(span_eq(conditions_text(&again, a), text));
}

static void check_query(const struct uri *uri, const struct shape *shape, struct arena *a)
{
    struct query query;
    struct err *e = query_parse(uri, shape, a, &query);

    if (e == NULL)
        query_done(&query);
    err_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct uri uri;
    struct err *e;

    arena_init(&a);
    e = uri_parse(span_of((const char *)data, n), SPAN("/"), CONDITIONS_MOST, &a, &uri);
    if (e == NULL) {
        check_target(&uri, &a);
        check_conditions(&uri, &shapes_declared, &a);
        check_conditions(&uri, &shapes_dynamic, &a);
        check_query(&uri, &shapes_declared, &a);
        check_query(&uri, &shapes_dynamic, &a);
    }
    err_free(e);
    arena_done(&a);
    return 0;
}
