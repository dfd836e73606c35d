/* Svc.Echo: answers with its own conditions, and the members of the body, as one object
 * (docs/specification.md, section 7). */
#include "admin/builtin.h"
#include "protocol/negotiate.h"
#include "query/condition.h"
#include "query/literal.h"
#include "query/query.h"
#include "query/source.h"
#include "query/uri.h"
#include "rest/crud.h"
#include "rest/request.h"
#include "store/entity.h"
#include "json/json.h"

/* As written, but for a plus sign and zeros in front, which numbers in conditions may have. */
static void add_number(struct buf *b, struct span text)
{
    size_t at = text.p[0] == '+' || text.p[0] == '-';

    if (text.p[0] == '-')
        buf_add_char(b, '-');
    while (at + 1 < text.n && text.p[at] == '0' && text.p[at + 1] >= '0' && text.p[at + 1] <= '9')
        at++;
    buf_add(b, span_sub(text, at, text.n));
}

static void add_literal(struct buf *b, const struct literal *literal)
{
    switch (literal->kind) {
    case LITERAL_NULL:
        buf_add_str(b, "null");
        break;
    case LITERAL_BOOLEAN:
        buf_add_str(b, literal->boolean ? "true" : "false");
        break;
    case LITERAL_NUMBER:
        add_number(b, literal->text);
        break;
    case LITERAL_STRING:
    case LITERAL_DATETIME:
        json_add_string(b, literal->text);
        break;
    }
}

/* Without the quotes that one step may have. */
static struct span name_of(const struct path *path)
{
    return path->step_count == 1 && path->part == PATH_VALUE ? path->steps[0].name : path->text;
}

static void add_conditions(struct buf *b, const struct conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++) {
        json_add_name(b, name_of(&conditions->items[i].path));
        add_literal(b, &conditions->items[i].literal);
    }
}

/* What webhooks send is always an array: one of one is that one. */
static struct err *body_object(struct call *call, struct json_value *out_object)
{
    struct json_doc *doc = ARENA_NEW(call->arena, struct json_doc);
    struct json_value root;

    TRY(negotiate_content_type(request_header(call->request, SPAN("Content-Type")), false,
                               &call->formats->in));
    TRY(crud_body(call, doc));
    root = json_root(doc);
    if (call->request->is_local && json_type(root) == JSON_ARRAY && json_count(root) == 1)
        root = json_first(root);
    if (json_type(root) != JSON_OBJECT)
        return ERR(ERR_INVALID_ENTITY, "Svc.Echo takes one JSON object as its body");
    *out_object = root;
    return json_check_unique(root, false, call->arena);
}

static struct err *add_body(struct call *call, struct buf *b)
{
    struct json_value object;

    if (span_trim(call->request->body).n == 0)
        return NULL;
    TRY(body_object(call, &object));
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        json_add_name(b, json_string(m.name, call->arena));
        buf_add(b, json_text(m.value));
    }
    return NULL;
}

static struct err *echo(struct call *call, struct buf *b)
{
    buf_add_char(b, '{');
    add_conditions(b, &call->query->conditions);
    TRY(add_body(call, b));
    buf_add_char(b, '}');
    return NULL;
}

struct echo_source {
    struct query_source source;
    struct span json; /* absent once it was given */
};

static struct err *check_unique(struct span json, struct arena *a)
{
    struct err *e = json_check_unique(entity_parse(json, a), false, a);

    if (e == NULL)
        return NULL;
    err_free(e);
    return ERR(ERR_INVALID_CONDITION_SYNTAX,
               "Svc.Echo: a name is there twice among the conditions and the body's members");
}

/* The object is the one entity there is, so that meta-conditions work on it. It need not satisfy
 * the conditions, which it is made of. */
static bool next(struct query_source *source, struct query_item *out_item)
{
    struct echo_source *s = CONTAINER_OF(source, struct echo_source, source);

    if (s->json.p == NULL)
        return false;
    *out_item = (struct query_item){.json = s->json};
    s->json = (struct span){NULL, 0};
    return true;
}

static struct err *open_source(struct call *call)
{
    struct echo_source *s = ARENA_NEW(call->arena, struct echo_source);
    struct buf b;

    buf_init_arena(&b, call->arena);
    TRY(echo(call, &b));
    s->json = buf_span(&b);
    TRY(check_unique(s->json, call->arena));
    s->source.next = next;
    s->source.holds = true;
    call->source = &s->source;
    return NULL;
}

/* No property is declared: what looks like a number is one, whatever it is called. */
static const struct shape shape = {.dynamic = true};

static const struct resource_ops ops = {.open = open_source, .post_asks = true};

const struct resource_definition res_echo = {
    .name = SPAN_INIT("Svc.Echo"),
    .description = SPAN_INIT("Answers with its conditions and its body's members as an object"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST),
    .shape = &shape,
    .ops = &ops,
};
