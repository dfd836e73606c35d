/* A literal is read as what its property is declared to be, or else as what it looks like. Holding
 * is a table: how value and literal relate on one side, which relations satisfy an operator on the
 * other; `!=` is satisfied by what `=` is not. */
#include "query/literal.h"

#include "query/path.h"
#include "json/decimal.h"

/* ---- parsing ---- */

static bool read_boolean(struct span text, struct literal *literal)
{
    bool is_true = span_ieq(text, SPAN("true"));

    if (!is_true && !span_ieq(text, SPAN("false")))
        return false;
    literal->kind = LITERAL_BOOLEAN;
    literal->boolean = is_true;
    return true;
}

static bool read_number(struct span text, struct literal *literal)
{
    literal->kind = LITERAL_NUMBER;
    return decimal_valid(text);
}

static bool read_integer(struct span text, struct literal *literal)
{
    return read_number(text, literal) && decimal_is_integer(text);
}

static bool read_datetime(struct span text, struct literal *literal)
{
    literal->kind = LITERAL_DATETIME;
    return datetime_parse(text, &literal->instant);
}

static bool read_string(struct span text, struct literal *literal)
{
    (void)text;
    literal->kind = LITERAL_STRING;
    return true;
}

/* Against an undeclared property; quoted it is a string and nothing else. */
static bool read_any(struct span text, struct literal *literal)
{
    if (literal->quoted)
        return read_string(text, literal);
    literal->also_text =
        read_boolean(text, literal) || read_number(text, literal) || read_datetime(text, literal);
    return literal->also_text || read_string(text, literal);
}

/* Nothing but null and the empty string, which are read before. */
static bool read_nothing(struct span text, struct literal *literal)
{
    (void)text;
    (void)literal;
    return false;
}

/* False when the text does not fit the type. */
typedef bool reader_fn(struct span text, struct literal *literal);

static reader_fn *const readers[TYPE_COUNT] = {
    [TYPE_ANY] = read_any,        [TYPE_STRING] = read_string,   [TYPE_INTEGER] = read_integer,
    [TYPE_NUMBER] = read_number,  [TYPE_BOOLEAN] = read_boolean, [TYPE_DATETIME] = read_datetime,
    [TYPE_OBJECT] = read_nothing, [TYPE_ARRAY] = read_nothing,
};

/* Gives the literal its declared spelling. */
static struct err *spell_enumeration(const struct path *path, struct literal *literal)
{
    const struct enumeration *values = path->property->values;
    struct span declared = enumeration_find(values, literal->text);
    struct buf list;
    struct err *e;

    if (declared.n > 0) {
        literal->text = declared;
        return NULL;
    }
    buf_init(&list, BUF_NO_CAP);
    enumeration_add_list(values, &list);
    e = ERR(ERR_INVALID_ENUM_VALUE, "'%.*s' is no %s; the property '%.*s' is one of %.*s.",
            SPAN_FMT(literal->text), values->name, SPAN_FMT(path->text), SPAN_FMT(buf_span(&list)));
    buf_done(&list);
    return e;
}

struct err *literal_parse(struct span text, const struct path *path, struct literal *out_literal)
{
    const struct property *p = path->type == TYPE_STRING ? path->property : NULL;
    struct literal literal = {
        .any_case = p != NULL && (p->flags & PROPERTY_ANY_CASE) != 0,
        .text = text,
    };

    literal.quoted =
        text.n >= 2 && (text.p[0] == '\'' || text.p[0] == '"') && text.p[text.n - 1] == text.p[0];
    if (literal.quoted)
        literal.text = span_sub(text, 1, text.n - 1);
    if (literal.text.n == 0) {
        literal.quoted = true;
        literal.kind = LITERAL_STRING;
    } else if (!literal.quoted && span_eq(text, SPAN("null"))) {
        literal.kind = LITERAL_NULL;
    } else if (!readers[path->type](literal.text, &literal)) {
        return ERR(ERR_INVALID_CONDITION_VALUE,
                   "'%.*s' does not fit the property '%.*s', which is of type %.*s.",
                   SPAN_FMT(text), SPAN_FMT(path->text), SPAN_FMT(value_type_name(path->type)));
    } else if (p != NULL && p->values != NULL) {
        TRY(spell_enumeration(path, &literal));
    }
    *out_literal = literal;
    return NULL;
}

void literal_add(struct buf *b, const struct literal *literal)
{
    if (literal->quoted)
        buf_add_char(b, '\'');
    buf_add(b, literal->text);
    if (literal->quoted)
        buf_add_char(b, '\'');
}

/* ---- from values ---- */

static void read_stored_string(const struct path *path, struct literal *literal)
{
    const struct property *p = path->type == TYPE_STRING ? path->property : NULL;
    struct span declared = {NULL, 0};

    literal->kind = LITERAL_STRING;
    if (path->type == TYPE_DATETIME && datetime_parse(literal->text, &literal->instant))
        literal->kind = LITERAL_DATETIME;
    if (p != NULL && p->values != NULL)
        declared = enumeration_find(path->property->values, literal->text);
    if (declared.n > 0)
        literal->text = declared;
}

bool literal_of_value(const struct path *path, const struct value *value,
                      struct literal *out_literal)
{
    struct literal literal = {.kind = LITERAL_NULL, .quoted = true, .text = value->text};

    switch (value->kind) {
    case VALUE_NULL:
        break;
    case VALUE_BOOLEAN:
        literal.kind = LITERAL_BOOLEAN;
        literal.boolean = value->boolean;
        break;
    case VALUE_NUMBER:
        literal.kind = LITERAL_NUMBER;
        break;
    case VALUE_STRING:
        read_stored_string(path, &literal);
        break;
    case VALUE_OBJECT:
    case VALUE_ARRAY:
        return false;
    }
    *out_literal = literal;
    return true;
}

/* A letter for the kind, then the one spelling of all that are equal, whose end is known: by its
 * length, or by a comma, which no number has. */
void literal_add_key(struct buf *b, const struct literal *literal)
{
    switch (literal->kind) {
    case LITERAL_NULL:
        buf_add_char(b, 'z');
        break;
    case LITERAL_BOOLEAN:
        buf_add_char(b, literal->boolean ? 't' : 'f');
        break;
    case LITERAL_NUMBER:
        buf_add_char(b, 'n');
        decimal_add_canonical(b, literal->text);
        buf_add_char(b, ',');
        break;
    case LITERAL_STRING:
        buf_add_char(b, 's');
        buf_add_le64(b, literal->text.n);
        buf_add(b, literal->text);
        break;
    case LITERAL_DATETIME:
        buf_add_char(b, 'd');
        buf_add_le64(b, (uint64_t)literal->instant.seconds);
        buf_add_le32(b, literal->instant.nanos);
        break;
    }
}

/* ---- evaluation ---- */

/* How a value stands to a literal; bits, so that an operator can name several. */
enum relation {
    UNRELATED = 0,
    LESS = 1,
    EQUAL = 2,
    GREATER = 4,
    SAME = 8 /* equal, of a kind that has no order */
};

static const unsigned satisfying[] = {
    [URI_EQ] = EQUAL | SAME,    [URI_LT] = LESS, [URI_GT] = GREATER, [URI_LE] = LESS | EQUAL,
    [URI_GE] = EQUAL | GREATER,
};

static enum relation relation_of(int order)
{
    return order < 0 ? LESS : order > 0 ? GREATER : EQUAL;
}

static enum relation relate_string(struct span text, const struct literal *literal)
{
    struct instant at;

    if (literal->kind == LITERAL_STRING)
        return relation_of(literal->any_case ? span_icmp(text, literal->text)
                                             : span_cmp(text, literal->text));
    if (literal->kind == LITERAL_DATETIME && datetime_parse(text, &at))
        return relation_of(datetime_cmp(at, literal->instant));
    return literal->also_text && span_eq(text, literal->text) ? SAME : UNRELATED;
}

static enum relation relate(const struct value *value, const struct literal *literal)
{
    switch (value->kind) {
    case VALUE_NULL:
        return literal->kind == LITERAL_NULL ? SAME : UNRELATED;
    case VALUE_BOOLEAN:
        return literal->kind == LITERAL_BOOLEAN && literal->boolean == value->boolean ? SAME
                                                                                      : UNRELATED;
    case VALUE_NUMBER:
        return literal->kind == LITERAL_NUMBER
                   ? relation_of(decimal_cmp(value->text, literal->text))
                   : UNRELATED;
    case VALUE_STRING:
        return relate_string(value->text, literal);
    case VALUE_OBJECT:
    case VALUE_ARRAY:
        break;
    }
    return UNRELATED;
}

bool literal_holds(const struct value *value, enum uri_op op, const struct literal *literal)
{
    unsigned relation = relate(value, literal);

    if (op == URI_NE)
        return (relation & satisfying[URI_EQ]) == 0;
    return (relation & satisfying[op]) != 0;
}
