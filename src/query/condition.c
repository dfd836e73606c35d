/* Conditions are parsed against the shape of the resource, so that a wrong name, operator or value
 * is an error before anything is looked at. All must hold; they are tested in the order given. */
#include "query/condition.h"

#include "base/budget.h"
#include "query/conditions.h"
#include "json/json.h"

static bool has_order(enum value_type type)
{
    return type != TYPE_BOOLEAN && type != TYPE_OBJECT && type != TYPE_ARRAY;
}

/* Fills *c in, also when it fails in the end. */
static struct err *parse_one(const struct uri_condition *source, const struct shape *shape,
                             struct arena *a, struct condition *c)
{
    c->op = source->op;
    TRY(path_parse_key(source->key, shape, a, &c->path));
    if (c->op != URI_EQ && c->op != URI_NE && !has_order(c->path.type))
        return ERR(ERR_INVALID_CONDITION_OPERATOR,
                   "The operator '%s' does not apply to '%.*s': values of type %.*s have no order.",
                   uri_op_text(c->op), SPAN_FMT(c->path.text),
                   SPAN_FMT(value_type_name(c->path.type)));
    return literal_parse(source->value, &c->path, &c->literal);
}

struct err *conditions_parse(const struct uri_condition *conditions, size_t count,
                             const struct shape *shape, struct arena *a,
                             struct conditions *out_conditions)
{
    struct conditions parsed = {arena_alloc(a, count * sizeof(*parsed.items)), count};

    for (size_t i = 0; i < count; i++)
        TRY(parse_one(&conditions[i], shape, a, &parsed.items[i]));
    *out_conditions = parsed;
    return NULL;
}

static bool is_met(void *context, const struct value *value)
{
    const struct condition *c = *(const struct condition **)context;

    return literal_holds(value, c->op == URI_NE ? URI_EQ : c->op, &c->literal);
}

/* Of any element; `!=` is the negation of `=` as always: none is equal. */
bool condition_holds(const struct condition *c, struct json_value entity, struct arena *a)
{
    struct value value;

    if (c->path.has_any)
        return path_each(&c->path, entity, a, is_met, &c) != (c->op == URI_NE);
    value = path_read(&c->path, entity, a);
    budget_spend(value.text.n / 8);
    return literal_holds(&value, c->op, &c->literal);
}

bool conditions_hold(const struct conditions *c, struct json_value entity, struct arena *a)
{
    for (size_t i = 0; i < c->count && budget_ask(32); i++)
        if (!condition_holds(&c->items[i], entity, a))
            return false;
    return true;
}

const struct literal *conditions_equal_to(const struct conditions *c, struct span property)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct condition *item = &c->items[i];

        if (item->op == URI_EQ && path_is_member(&item->path) &&
            span_ieq(item->path.text, property))
            return &item->literal;
    }
    return NULL;
}

bool conditions_string(const struct conditions *c, struct span property, struct span *out_text)
{
    const struct literal *literal = conditions_equal_to(c, property);

    if (literal == NULL || literal->kind != LITERAL_STRING)
        return false;
    *out_text = literal->text;
    return true;
}

bool conditions_begin_with(const struct conditions *c, struct span property)
{
    for (size_t i = 0; i < c->count; i++)
        if (span_eq(c->items[i].path.steps[0].name, property))
            return true;
    return false;
}

struct conditions conditions_on(const struct conditions *c, struct span path, struct arena *a)
{
    struct conditions found = {ARENA_ARRAY(a, struct condition, c->count), 0};

    for (size_t i = 0; i < c->count; i++)
        if (span_ieq(c->items[i].path.text, path))
            found.items[found.count++] = c->items[i];
    return found;
}

uint64_t conditions_above(const struct conditions *c, struct span property)
{
    uint64_t most = 0, n;

    for (size_t i = 0; i < c->count; i++) {
        const struct condition *item = &c->items[i];

        if (item->op == URI_GT && item->literal.kind == LITERAL_NUMBER &&
            path_is_member(&item->path) && span_ieq(item->path.text, property) &&
            span_to_u64(item->literal.text, &n))
            most = MAX(most, n);
    }
    return most;
}

void conditions_add_normal(struct buf *b, const struct conditions *c)
{
    struct buf literal;

    buf_init(&literal, BUF_NO_CAP);
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0)
            buf_add_char(b, '&');
        uri_add_key(b, c->items[i].path.text);
        buf_add_str(b, uri_op_text(c->items[i].op));
        buf_clear(&literal);
        literal_add(&literal, &c->items[i].literal);
        uri_add_encoded(b, buf_span(&literal));
    }
    buf_done(&literal);
}
