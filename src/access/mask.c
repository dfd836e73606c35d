/* Secrets by their place and by how they begin, in parsed values. What is no JSON, and the insides
 * of strings, are mask_text.c's. */
#include "access/mask.h"
#include "json/json.h"

static const struct span secret_headers[] = {
    SPAN_INIT("Authorization"), SPAN_INIT("Proxy-Authorization"), SPAN_INIT("Cookie"),
    SPAN_INIT("X-Api-Key"),     SPAN_INIT("Svc-cluster"),
};
static const struct span beginnings[] = {
    SPAN_INIT("whsec_"),  SPAN_INIT("whsk_"),   SPAN_INIT("svck_"),
    SPAN_INIT("apikey "), SPAN_INIT("Bearer "), SPAN_INIT("Basic "),
};

bool mask_is_secret_header(const struct mask *m, struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(secret_headers); i++)
        if (span_ieq(name, secret_headers[i]))
            return true;
    for (const char *const *at = m->header_names; at != NULL && *at != NULL; at++)
        if (span_ieq(name, span_str(*at)))
            return true;
    return false;
}

bool mask_is_secret_list(struct span name)
{
    return span_ieq(name, SPAN("Secrets"));
}

bool mask_is_secret_text(struct span text)
{
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        if (span_istarts(text, beginnings[i]))
            return true;
    return false;
}

bool mask_is(struct json_value value, struct arena *a)
{
    return json_type(value) == JSON_STRING && span_eq(json_string(value, a), SPAN(MASK));
}

struct span mask_header_value(const struct mask *m, struct span name, struct span value,
                              struct arena *a)
{
    if (span_ieq(name, SPAN("Authorization")))
        return SPAN("apikey " MASK);
    if (mask_is_secret_header(m, name) || mask_is_secret_text(value))
        return SPAN(MASK);
    return mask_text(m, value, a);
}

/* ---- values ---- */

struct masking {
    struct buf *b;
    const struct mask *m;
    struct arena *a;
    bool looks_inside; /* of strings too */
    bool has_found;
};

static void add_value(struct masking *g, struct json_value value);
static void add_string(struct masking *g, struct json_value value);

static void add_mask(struct masking *g)
{
    json_add_string(g->b, SPAN(MASK));
    g->has_found = true;
}

static void add_secret(struct masking *g, struct json_value value)
{
    if (json_type(value) == JSON_NULL)
        json_add_compact(g->b, value);
    else
        add_mask(g);
}

static void add_list(struct masking *g, struct json_value list,
                     void (*add)(struct masking *g, struct json_value element))
{
    buf_add_char(g->b, '[');
    for (struct json_value v = json_first(list); json_exists(v); v = json_next(list, v)) {
        json_add_comma(g->b);
        add(g, v);
    }
    buf_add_char(g->b, ']');
}

static void add_member(struct masking *g, struct json_member m)
{
    struct span name = json_string(m.name, g->a);
    bool is_list = mask_is_secret_list(name);

    json_add_comma(g->b);
    if (g->looks_inside) /* a key may stand where a name belongs */
        add_string(g, m.name);
    else
        buf_add(g->b, json_text(m.name));
    buf_add_char(g->b, ':');
    if (is_list && json_type(m.value) == JSON_ARRAY)
        add_list(g, m.value, add_secret);
    else if (is_list || mask_is_secret_header(g->m, name))
        add_secret(g, m.value);
    else
        add_value(g, m.value);
}

static void add_object(struct masking *g, struct json_value object)
{
    buf_add_char(g->b, '{');
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m))
        add_member(g, m);
    buf_add_char(g->b, '}');
}

static void add_string(struct masking *g, struct json_value value)
{
    struct span text = json_string(value, g->a), inside;

    if (mask_is_secret_text(text)) {
        add_mask(g);
        return;
    }
    inside = g->looks_inside ? mask_text(g->m, text, g->a) : text;
    if (inside.p == text.p) {
        json_add_compact(g->b, value);
        return;
    }
    json_add_string(g->b, inside);
    g->has_found = true;
}

/* As deep as the parser let it be, which is bounded. */
static void add_value(struct masking *g, struct json_value value)
{
    switch (json_type(value)) {
    case JSON_OBJECT:
        add_object(g, value);
        break;
    case JSON_ARRAY:
        add_list(g, value, add_value);
        break;
    case JSON_STRING:
        add_string(g, value);
        break;
    default:
        json_add_compact(g->b, value);
    }
}

void mask_add_value(struct buf *b, const struct mask *m, struct json_value value, struct arena *a)
{
    struct masking g = {.b = b, .m = m, .a = a};

    add_value(&g, value);
}

struct span mask_value(const struct mask *m, struct json_value value, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    mask_add_value(&b, m, value, a);
    return buf_span(&b);
}

/* ---- bodies ---- */

struct span mask_body(const struct mask *m, struct span body, const struct json_limits *limits,
                      struct arena *a)
{
    struct masking g = {.m = m, .a = a, .looks_inside = true};
    struct span shown;
    struct json_doc doc;
    struct err *e;
    struct buf b;

    /* Without an escape, nothing is there that running text would not show. */
    if (span_find_char(body, '\\', 0) == body.n && mask_text(m, body, a).p == body.p)
        return body;
    e = json_parse(body, limits, a, &doc);
    if (e != NULL) {
        err_free(e);
        return mask_text(m, body, a);
    }
    buf_init(&b, BUF_NO_CAP);
    g.b = &b;
    add_value(&g, json_root(&doc));
    shown = g.has_found ? arena_copy(a, buf_span(&b)) : body;
    buf_done(&b);
    return shown;
}
