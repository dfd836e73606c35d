/* Svc.Echo: answers with its own conditions as one object (docs/specification.md, section 7). */
#include "admin/builtin.h"
#include "base/json.h"
#include "query/literal.h"
#include "query/query.h"
#include "query/uri.h"
#include "store/entity.h"

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

static struct err *echo(const struct conditions *conditions, struct buf *b)
{
    buf_add_char(b, '{');
    for (size_t i = 0; i < conditions->count; i++) {
        const struct condition *c = &conditions->items[i];

        if (c->op != URI_EQ)
            return ERR(ERR_INVALID_CONDITION_OPERATOR,
                       "'%.*s%s…': Svc.Echo echoes conditions with '=' only",
                       SPAN_FMT(c->path.text), uri_op_text(c->op));
        json_add_name(b, c->path.text);
        add_literal(b, &c->literal);
    }
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
    return ERR(ERR_INVALID_CONDITION_SYNTAX, "Svc.Echo: a name is there twice");
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
    struct err *e;

    buf_init(&b, BUF_NO_CAP);
    e = echo(&call->query->conditions, &b);
    s->json = arena_copy(call->arena, buf_span(&b));
    buf_done(&b);
    TRY(e);
    TRY(check_unique(s->json, call->arena));
    s->source.next = next;
    s->source.holds = true;
    call->source = &s->source;
    return NULL;
}

/* No property is declared: what looks like a number is one, whatever it is called. */
static const struct shape shape = {.dynamic = true};

static const struct resource_ops ops = {.open = open_source};

const struct resource_definition res_echo = {
    .name = SPAN_INIT("Svc.Echo"),
    .description = SPAN_INIT("Answers with its conditions as an object"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &shape,
    .ops = &ops,
};
