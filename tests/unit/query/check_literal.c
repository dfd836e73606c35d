/* Literals and their comparison with values (docs/specification.md, section 2, "Literals",
 * "Evaluation"). */
#include "sample.h"
#include "testing.h"

#include "base/rng.h"
#include "query/literal.h"
#include "query/path.h"

#include <string.h>

static struct arena arena;

static struct path path_of(const char *text, enum sample shape)
{
    struct path path;

    ck_ok(path_parse(span_str(text), sample_shape(shape), &arena, &path));
    return path;
}

/* ---- parsing ---- */

static const struct {
    enum sample shape;
    const char *property, *given;
    enum literal_kind kind;
    const char *text;
    bool quoted, also_text;
} parsed[] = {
    /* null, against every type */
    {PERSON, "Name", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "Age", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "Height", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "IsActive", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "Born", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "Kind", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "Account", "null", LITERAL_NULL, "null", false, false},
    {PERSON, "Tags", "null", LITERAL_NULL, "null", false, false},
    {DYNAMIC, "x", "null", LITERAL_NULL, "null", false, false},
    /* the empty string, against every type */
    {PERSON, "Name", "", LITERAL_STRING, "", true, false},
    {PERSON, "Name", "''", LITERAL_STRING, "", true, false},
    {PERSON, "Name", "\"\"", LITERAL_STRING, "", true, false},
    {PERSON, "Age", "", LITERAL_STRING, "", true, false},
    {PERSON, "Born", "''", LITERAL_STRING, "", true, false},
    {PERSON, "IsActive", "''", LITERAL_STRING, "", true, false},
    {PERSON, "Kind", "''", LITERAL_STRING, "", true, false},
    {PERSON, "Account", "''", LITERAL_STRING, "", true, false},
    {DYNAMIC, "x", "", LITERAL_STRING, "", true, false},
    {DYNAMIC, "x", "\"\"", LITERAL_STRING, "", true, false},
    /* strings: the text, whatever it looks like */
    {PERSON, "Name", "Bob", LITERAL_STRING, "Bob", false, false},
    {PERSON, "Name", "'Bob'", LITERAL_STRING, "Bob", true, false},
    {PERSON, "Name", "\"Bob\"", LITERAL_STRING, "Bob", true, false},
    {PERSON, "Name", "'null'", LITERAL_STRING, "null", true, false},
    {PERSON, "Name", "NULL", LITERAL_STRING, "NULL", false, false},
    {PERSON, "Name", "12345", LITERAL_STRING, "12345", false, false},
    {PERSON, "Name", "true", LITERAL_STRING, "true", false, false},
    {PERSON, "Name", "2026-11-01", LITERAL_STRING, "2026-11-01", false, false},
    {PERSON, "Name", " x ", LITERAL_STRING, " x ", false, false},
    /* one quote, or two different ones, quote nothing; quotes inside are text */
    {PERSON, "Name", "'", LITERAL_STRING, "'", false, false},
    {PERSON, "Name", "'a\"", LITERAL_STRING, "'a\"", false, false},
    {PERSON, "Name", "it's", LITERAL_STRING, "it's", false, false},
    {PERSON, "Name", "'it's'", LITERAL_STRING, "it's", true, false},
    {PERSON, "Name", "'''", LITERAL_STRING, "'", true, false},
    {PERSON, "Name", "\"'\"", LITERAL_STRING, "'", true, false},
    /* numbers */
    {PERSON, "Age", "5", LITERAL_NUMBER, "5", false, false},
    {PERSON, "Age", "-5", LITERAL_NUMBER, "-5", false, false},
    {PERSON, "Age", "+5", LITERAL_NUMBER, "+5", false, false},
    {PERSON, "Age", "'5'", LITERAL_NUMBER, "5", true, false},
    {PERSON, "Age", "007", LITERAL_NUMBER, "007", false, false},
    {PERSON, "Age", "5.0", LITERAL_NUMBER, "5.0", false, false},
    {PERSON, "Age", "1e3", LITERAL_NUMBER, "1e3", false, false},
    {PERSON, "Age", "123456789012345678901234567890", LITERAL_NUMBER,
     "123456789012345678901234567890", false, false},
    {PERSON, "Height", "1.8", LITERAL_NUMBER, "1.8", false, false},
    {PERSON, "Height", "-2E-3", LITERAL_NUMBER, "-2E-3", false, false},
    {PERSON, "Name.Length", "10", LITERAL_NUMBER, "10", false, false},
    {PERSON, "Born.Year", "1983", LITERAL_NUMBER, "1983", false, false},
    /* booleans, in any case */
    {PERSON, "IsActive", "true", LITERAL_BOOLEAN, "true", false, false},
    {PERSON, "IsActive", "FALSE", LITERAL_BOOLEAN, "FALSE", false, false},
    {PERSON, "IsActive", "'True'", LITERAL_BOOLEAN, "True", true, false},
    /* datetimes */
    {PERSON, "Born", "1983-04-06", LITERAL_DATETIME, "1983-04-06", false, false},
    {PERSON, "Born", "'1983-04-06'", LITERAL_DATETIME, "1983-04-06", true, false},
    {PERSON, "Born", "1983-04-06T10:00:00.5+02:00", LITERAL_DATETIME, "1983-04-06T10:00:00.5+02:00",
     false, false},
    /* enumerations: any case in, declared spelling out */
    {PERSON, "Kind", "Staff", LITERAL_STRING, "Staff", false, false},
    {PERSON, "Kind", "sTAFF", LITERAL_STRING, "Staff", false, false},
    {PERSON, "Kind", "'guest'", LITERAL_STRING, "Guest", true, false},
    {PERSON, "Kind.Length", "5", LITERAL_NUMBER, "5", false, false},
    /* undeclared: what it looks like; unquoted its text counts too */
    {DYNAMIC, "x", "Bob", LITERAL_STRING, "Bob", false, false},
    {DYNAMIC, "x", "'Bob'", LITERAL_STRING, "Bob", true, false},
    {DYNAMIC, "x", "12345", LITERAL_NUMBER, "12345", false, true},
    {DYNAMIC, "x", "-1.5e3", LITERAL_NUMBER, "-1.5e3", false, true},
    {DYNAMIC, "x", "'12345'", LITERAL_STRING, "12345", true, false},
    {DYNAMIC, "x", "True", LITERAL_BOOLEAN, "True", false, true},
    {DYNAMIC, "x", "'true'", LITERAL_STRING, "true", true, false},
    {DYNAMIC, "x", "2026-11-01", LITERAL_DATETIME, "2026-11-01", false, true},
    {DYNAMIC, "x", "'2026-11-01'", LITERAL_STRING, "2026-11-01", true, false},
    {DYNAMIC, "x", "'null'", LITERAL_STRING, "null", true, false},
    {DYNAMIC, "x", ".5", LITERAL_STRING, ".5", false, false},
    {DYNAMIC, "x", "5.", LITERAL_STRING, "5.", false, false},
    {DYNAMIC, "x", "0x10", LITERAL_STRING, "0x10", false, false},
    {DYNAMIC, "x", "NaN", LITERAL_STRING, "NaN", false, false},
    {DYNAMIC, "x", "2026-13-01", LITERAL_STRING, "2026-13-01", false, false},
    {PERSON, "Extra", "5", LITERAL_NUMBER, "5", false, true},
    {PERSON, "Headers.x", "true", LITERAL_BOOLEAN, "true", false, true},
    {PERSON, "Tags.0", "5", LITERAL_NUMBER, "5", false, true},
};

START_TEST(parsing)
{
    for (size_t i = 0; i < ARRAY_LEN(parsed); i++) {
        struct path path = path_of(parsed[i].property, parsed[i].shape);
        struct literal literal;

        ck_ok(literal_parse(span_str(parsed[i].given), &path, &literal));
        ck_assert_msg(literal.kind == parsed[i].kind, "%s=%s: kind %d", parsed[i].property,
                      parsed[i].given, (int)literal.kind);
        ck_span_is(literal.text, span_str(parsed[i].text));
        ck_assert_int_eq(literal.quoted, parsed[i].quoted);
        ck_assert_int_eq(literal.also_text, parsed[i].also_text);
        if (literal.kind == LITERAL_BOOLEAN)
            ck_assert_int_eq(literal.boolean, span_ieq(literal.text, SPAN("true")));
    }
}
END_TEST

static const struct {
    const char *property, *given;
    enum err_code code;
    const char *message;
} refused[] = {
    {"Age", "abc", ERR_INVALID_CONDITION_VALUE,
     "'abc' does not fit the property 'Age', which is of type integer"},
    {"Age", "'abc'", ERR_INVALID_CONDITION_VALUE, "''abc'' does not fit"},
    {"Age", "true", ERR_INVALID_CONDITION_VALUE, "'true'"},
    {"Age", "1.5", ERR_INVALID_CONDITION_VALUE, "'1.5' does not fit the property 'Age'"},
    {"Age", "2026-11-01", ERR_INVALID_CONDITION_VALUE, "integer"},
    {"Age", "'null'", ERR_INVALID_CONDITION_VALUE, "''null''"},
    {"Age", "NULL", ERR_INVALID_CONDITION_VALUE, "'NULL'"},
    {"Age", " 5", ERR_INVALID_CONDITION_VALUE, "' 5'"},
    {"Name.Length", "ten", ERR_INVALID_CONDITION_VALUE, "'Name.Length', which is of type integer"},
    {"Height", "1,8", ERR_INVALID_CONDITION_VALUE, "'Height', which is of type number"},
    {"Height", "1.", ERR_INVALID_CONDITION_VALUE, "'1.'"},
    {"Height", "Infinity", ERR_INVALID_CONDITION_VALUE, "number"},
    {"IsActive", "1", ERR_INVALID_CONDITION_VALUE, "'IsActive', which is of type boolean"},
    {"IsActive", "yes", ERR_INVALID_CONDITION_VALUE, "'yes'"},
    {"Born", "yesterday", ERR_INVALID_CONDITION_VALUE, "'Born', which is of type datetime"},
    {"Born", "2026-02-30", ERR_INVALID_CONDITION_VALUE, "'2026-02-30'"},
    {"Born", "1983", ERR_INVALID_CONDITION_VALUE, "datetime"},
    {"Account", "x", ERR_INVALID_CONDITION_VALUE, "'Account', which is of type object"},
    {"Lines", "5", ERR_INVALID_CONDITION_VALUE, "'Lines', which is of type array"},
    {"Lines.0", "{}", ERR_INVALID_CONDITION_VALUE, "'Lines.0'"},
    {"Kind", "Boss", ERR_INVALID_ENUM_VALUE,
     "'Boss' is no Kind; the property 'Kind' is one of Customer, Staff, Guest."},
    {"Kind", "5", ERR_INVALID_ENUM_VALUE, "'5' is no Kind"},
    {"Kind", "'staf'", ERR_INVALID_ENUM_VALUE, "'staf' is no Kind"},
};

START_TEST(refusals)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct path path = path_of(refused[i].property, PERSON);
        struct literal literal;

        ck_fails(literal_parse(span_str(refused[i].given), &path, &literal), refused[i].code,
                 refused[i].message);
    }
}
END_TEST

/* ---- evaluation ---- */

/* The value is read from {"v":<value>}. */
static bool holds(const char *value_json, const struct path *path, enum uri_op op,
                  const char *literal_text)
{
    struct json_value root = sample_json(arena_printf(&arena, "{\"v\":%s}", value_json), &arena);
    struct path self = path_of("v", DYNAMIC);
    struct value value = path_read(&self, root, &arena);
    struct literal literal;

    ck_ok(literal_parse(span_str(literal_text), path, &literal));
    return literal_holds(&value, op, &literal);
}

/* `ops` lists the operators that hold, as characters: = < > l (<=) g (>=). What `!=` does follows:
 * it is checked in every row. */
static const struct {
    enum sample shape;
    const char *property, *value, *literal, *ops;
} evaluated[] = {
    /* null is equal to null alone, and has no order */
    {DYNAMIC, "x", "null", "null", "="},
    {DYNAMIC, "x", "null", "5", ""},
    {DYNAMIC, "x", "null", "''", ""},
    {DYNAMIC, "x", "null", "false", ""},
    {DYNAMIC, "x", "null", "2026-11-01", ""},
    {PERSON, "Age", "null", "0", ""},
    {PERSON, "Name", "null", "null", "="},
    {DYNAMIC, "x", "5", "null", ""},
    {DYNAMIC, "x", "\"null\"", "null", ""},
    {DYNAMIC, "x", "\"null\"", "'null'", "=lg"},
    {DYNAMIC, "x", "false", "null", ""},
    {DYNAMIC, "x", "[]", "null", ""},
    /* numbers, exactly */
    {DYNAMIC, "x", "5", "5", "=lg"},
    {DYNAMIC, "x", "5", "6", "<l"},
    {DYNAMIC, "x", "5", "4", ">g"},
    {DYNAMIC, "x", "5", "5.0", "=lg"},
    {DYNAMIC, "x", "5", "+05", "=lg"},
    {DYNAMIC, "x", "0.5", "5e-1", "=lg"},
    {DYNAMIC, "x", "-0", "0", "=lg"},
    {DYNAMIC, "x", "-1", "-2", ">g"},
    {DYNAMIC, "x", "9007199254740993", "9007199254740992", ">g"},
    {DYNAMIC, "x", "9223372036854775807", "9223372036854775808", "<l"},
    {DYNAMIC, "x", "9223372036854775807", "9223372036854775806.9999", ">g"},
    {DYNAMIC, "x", "12345678901234567890", "12345678901234567890.0", "=lg"},
    {DYNAMIC, "x", "1E400", "1E401", "<l"},
    {PERSON, "Age", "9007199254740993", "9007199254740993", "=lg"},
    {PERSON, "Height", "1.10", "1.1", "=lg"},
    /* strings, bytewise */
    {PERSON, "Name", "\"Bob\"", "Bob", "=lg"},
    {PERSON, "Name", "\"Bob\"", "bob", "<l"},
    {PERSON, "Name", "\"G\"", "Go", "<l"},
    {PERSON, "Name", "\"10\"", "9", "<l"},
    {PERSON, "Name", "\"\"", "''", "=lg"},
    {PERSON, "Name", "\"a\"", "", ">g"},
    {PERSON, "Name", "\"\\u00e9\"", "\xc3\xa9", "=lg"},
    {PERSON, "Name", "\"\xc3\xa9\"", "z", ">g"},
    {PERSON, "Name", "\"2026-11-01T00:00:00Z\"", "2026-11-01", ">g"},
    {PERSON, "Kind", "\"Staff\"", "STAFF", "=lg"},
    {PERSON, "Kind", "\"staff\"", "staff", ">g"},
    {DYNAMIC, "x", "\"Bob\"", "Bob", "=lg"},
    {DYNAMIC, "x", "\"Bob\"", "'Bob'", "=lg"},
    /* booleans have no order */
    {PERSON, "IsActive", "true", "TRUE", "="},
    {PERSON, "IsActive", "true", "false", ""},
    {DYNAMIC, "x", "false", "false", "="},
    {DYNAMIC, "x", "false", "true", ""},
    /* datetimes, by instant */
    {PERSON, "Born", "\"1983-04-05T23:30:00-02:00\"", "1983-04-06T01:30:00Z", "=lg"},
    {PERSON, "Born", "\"1983-04-05T23:30:00-02:00\"", "1983-04-06", ">g"},
    {PERSON, "Born", "\"1983-04-05\"", "1983-04-05T00:00:00.000", "=lg"},
    {PERSON, "Born", "\"1983-04-05T00:00:00.0000001Z\"", "1983-04-05", ">g"},
    {PERSON, "Born", "\"soon\"", "1983-04-05", ""},
    {PERSON, "Born", "\"\"", "''", "=lg"},
    {DYNAMIC, "x", "\"2026-11-01T12:00:00Z\"", "2026-11-01T13:00+01:00", "=lg"},
    {DYNAMIC, "x", "\"2026-11-01T12:00:00Z\"", "2026-11-02", "<l"},
    {DYNAMIC, "x", "\"2026-11-01\"", "'2026-11-01T00:00:00Z'", "<l"},
    {DYNAMIC, "x", "\"not one\"", "2026-11-02", ""},
    /* undeclared: the text of an unquoted literal equals a string value, but has no order */
    {DYNAMIC, "x", "\"12345\"", "12345", "="},
    {DYNAMIC, "x", "\"12345\"", "'12345'", "=lg"},
    {DYNAMIC, "x", "12345", "'12345'", ""},
    {DYNAMIC, "x", "\"012\"", "12", ""},
    {DYNAMIC, "x", "\"12\"", "012", ""},
    {DYNAMIC, "x", "\"true\"", "true", "="},
    {DYNAMIC, "x", "\"TRUE\"", "true", ""},
    {DYNAMIC, "x", "true", "'true'", ""},
    {DYNAMIC, "x", "\"1.10\"", "1.1", ""},
    /* anything else: only unequal */
    {PERSON, "Age", "\"5\"", "5", ""},
    {PERSON, "Age", "5", "''", ""},
    {PERSON, "Name", "5", "5", ""},
    {PERSON, "IsActive", "\"true\"", "true", ""},
    {PERSON, "Born", "5", "1983-04-05", ""},
    {DYNAMIC, "x", "5", "abc", ""},
    {DYNAMIC, "x", "5", "true", ""},
    {DYNAMIC, "x", "true", "1", ""},
    {DYNAMIC, "x", "\"a\"", "5", ""},
    {DYNAMIC, "x", "[]", "''", ""},
    {DYNAMIC, "x", "[1]", "1", ""},
    {DYNAMIC, "x", "{}", "x", ""},
    {DYNAMIC, "x", "{\"a\":1}", "1", ""},
};

START_TEST(evaluation)
{
    static const struct {
        char letter;
        enum uri_op op;
    } ops[] = {{'=', URI_EQ}, {'<', URI_LT}, {'>', URI_GT}, {'l', URI_LE}, {'g', URI_GE}};

    for (size_t i = 0; i < ARRAY_LEN(evaluated); i++) {
        struct path path = path_of(evaluated[i].property, evaluated[i].shape);
        const char *value = evaluated[i].value, *literal = evaluated[i].literal;
        bool is_equal = strchr(evaluated[i].ops, '=') != NULL;

        for (size_t j = 0; j < ARRAY_LEN(ops); j++)
            ck_assert_msg(holds(value, &path, ops[j].op, literal) ==
                              (strchr(evaluated[i].ops, ops[j].letter) != NULL),
                          "%s %s %s", value, uri_op_text(ops[j].op), literal);
        ck_assert_msg(holds(value, &path, URI_NE, literal) == !is_equal, "%s != %s", value,
                      literal);
    }
}
END_TEST

static const char *const value_pool[] = {
    "null",
    "true",
    "false",
    "0",
    "-0.0",
    "5",
    "5.0",
    "1e400",
    "12345678901234567890",
    "\"\"",
    "\"5\"",
    "\"true\"",
    "\"null\"",
    "\"Staff\"",
    "\"2026-11-01\"",
    "\"2026-11-01T00:00:00Z\"",
    "\"'x'\"",
    "[]",
    "[5]",
    "{}",
    "{\"v\":5}",
};

static const char *const literal_pool[] = {
    "null",
    "",
    "''",
    "true",
    "FALSE",
    "0",
    "5",
    "5.0",
    "+5",
    "1e400",
    "12345678901234567890",
    "'5'",
    "\"true\"",
    "'null'",
    "staff",
    "2026-11-01",
    "'2026-11-01'",
    "2026-11-01T00:00:00Z",
    "x",
    "'x'",
};

static const char *const property_pool[] = {"Name", "Age",     "Height", "IsActive", "Born",
                                            "Kind", "Account", "Lines",  "Extra"};

static void check_pair(const char *value, const struct path *path, const char *literal)
{
    bool eq = holds(value, path, URI_EQ, literal), lt = holds(value, path, URI_LT, literal);
    bool gt = holds(value, path, URI_GT, literal), le = holds(value, path, URI_LE, literal);
    bool ge = holds(value, path, URI_GE, literal);

    ck_assert_msg(holds(value, path, URI_NE, literal) == !eq, "%s != %s", value, literal);
    ck_assert_msg(eq + lt + gt <= 1, "%s and %s: more than one of = < >", value, literal);
    ck_assert_msg(!lt || le, "%s <= %s", value, literal);
    ck_assert_msg(!gt || ge, "%s >= %s", value, literal);
    ck_assert_msg(!le || lt || eq, "%s <= %s", value, literal);
    ck_assert_msg(!ge || gt || eq, "%s >= %s", value, literal);
    ck_assert_msg((le && ge) == (eq && le), "%s and %s", value, literal);
}

START_TEST(operators_agree_for_every_pair)
{
    size_t pairs = 0;

    for (size_t p = 0; p < ARRAY_LEN(property_pool); p++) {
        struct path path = path_of(property_pool[p], PERSON);

        for (size_t l = 0; l < ARRAY_LEN(literal_pool); l++) {
            struct literal literal;
            struct err *e = literal_parse(span_str(literal_pool[l]), &path, &literal);

            err_free(e);
            for (size_t v = 0; e == NULL && v < ARRAY_LEN(value_pool); v++, pairs++)
                check_pair(value_pool[v], &path, literal_pool[l]);
        }
    }
    ck_assert_uint_gt(pairs, 1000);
}
END_TEST

/* ---- spelling ---- */

static struct span spelled(const struct literal *literal)
{
    struct buf b;
    struct span text;

    buf_init(&b, BUF_NO_CAP);
    literal_add(&b, literal);
    text = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return text;
}

static void ck_same_literal(const struct literal *a, const struct literal *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_int_eq(a->boolean, b->boolean);
    ck_assert_int_eq(a->quoted, b->quoted);
    ck_assert_int_eq(a->also_text, b->also_text);
    ck_span_is(a->text, b->text);
    ck_assert_int_eq(datetime_cmp(a->instant, b->instant), 0);
}

/* The key of a value, and of another behind it; absent for what equals nothing. */
static struct span key_of(const char *value_json, const struct path *path, const char *next_json)
{
    const char *texts[] = {value_json, next_json};
    struct path self = path_of("v", DYNAMIC);
    struct span copy;
    struct buf key;

    buf_init(&key, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct json_value root = sample_json(arena_printf(&arena, "{\"v\":%s}", texts[i]), &arena);
        struct value value = path_read(&self, root, &arena);
        struct literal literal;

        if (!literal_of_value(path, &value, &literal)) {
            buf_done(&key);
            return (struct span){NULL, 0};
        }
        ck_assert(literal_holds(&value, URI_EQ, &literal) || span_eq(literal.text, SPAN("Staff")));
        literal_add_key(&key, &literal);
    }
    copy = arena_copy(&arena, buf_span(&key));
    buf_done(&key);
    return copy;
}

/* Does a equal b, asked of the literal of b? */
static bool equals(const char *a_json, const struct path *path, const char *b_json)
{
    struct path self = path_of("v", DYNAMIC);
    struct value a =
        path_read(&self, sample_json(arena_printf(&arena, "{\"v\":%s}", a_json), &arena), &arena);
    struct value b =
        path_read(&self, sample_json(arena_printf(&arena, "{\"v\":%s}", b_json), &arena), &arena);
    struct literal literal;

    return literal_of_value(path, &b, &literal) && literal_holds(&a, URI_EQ, &literal);
}

START_TEST(equal_values_have_one_key)
{
    static const struct {
        enum sample shape;
        const char *property;
    } of[] = {{DYNAMIC, "x"}, {PERSON, "Born"}, {PERSON, "Name"}, {PERSON, "Age"}};

    for (size_t p = 0; p < ARRAY_LEN(of); p++) {
        struct path path = path_of(of[p].property, of[p].shape);

        for (size_t i = 0; i < ARRAY_LEN(value_pool); i++)
            for (size_t j = 0; j < ARRAY_LEN(value_pool); j++) {
                struct span a = key_of(value_pool[i], &path, "5");
                struct span b = key_of(value_pool[j], &path, "5");

                ck_assert_msg((a.n > 0 && span_eq(a, b)) ==
                                  equals(value_pool[i], &path, value_pool[j]),
                              "%s: %s and %s", of[p].property, value_pool[i], value_pool[j]);
            }
    }
}
END_TEST

START_TEST(keys_in_a_row_are_not_taken_for_others)
{
    struct path path = path_of("x", DYNAMIC);

    ck_assert(!span_eq(key_of("\"a\"", &path, "\"bc\""), key_of("\"ab\"", &path, "\"c\"")));
    ck_assert(!span_eq(key_of("1", &path, "10"), key_of("11", &path, "0")));
    ck_assert(!span_eq(key_of("\"\"", &path, "null"), key_of("null", &path, "\"\"")));
}
END_TEST

START_TEST(a_key_of_an_enumeration_is_of_the_declared_spelling)
{
    struct path path = path_of("Kind", PERSON);

    ck_assert(span_eq(key_of("\"sTAFF\"", &path, "1"), key_of("\"Staff\"", &path, "1")));
    ck_assert(!span_eq(key_of("\"Boss\"", &path, "1"), key_of("\"boss\"", &path, "1")));
}
END_TEST

START_TEST(a_spelling_parses_to_the_same_literal)
{
    for (int i = 0; i < 20000; i++) {
        const char *property = property_pool[rng_below(ARRAY_LEN(property_pool))];
        struct path path = path_of(property, PERSON);
        struct span text = sample_random_text(&arena, 5);
        struct literal literal, again;
        struct err *e;

        if (i % 2 == 0)
            text = span_str(literal_pool[rng_below(ARRAY_LEN(literal_pool))]);
        e = literal_parse(text, &path, &literal);
        if (e == NULL) {
            ck_ok(literal_parse(spelled(&literal), &path, &again));
            ck_same_literal(&again, &literal);
        }
        err_free(e);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(spelling)
{
    static const struct {
        const char *property, *given, *spelled;
    } cases[] = {
        {"Name", "Bob", "Bob"},   {"Name", "\"Bob\"", "'Bob'"},
        {"Name", "", "''"},       {"Kind", "gUEST", "Guest"},
        {"Age", "+5", "+5"},      {"Extra", "TRUE", "TRUE"},
        {"Name", "null", "null"}, {"Name", "\"it's\"", "'it's'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct path path = path_of(cases[i].property, PERSON);
        struct literal literal;

        ck_ok(literal_parse(span_str(cases[i].given), &path, &literal));
        ck_span_is(spelled(&literal), span_str(cases[i].spelled));
    }
}
END_TEST

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, parsing);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, evaluation);
    tcase_add_test(tc, operators_agree_for_every_pair);
    tcase_add_test(tc, equal_values_have_one_key);
    tcase_add_test(tc, keys_in_a_row_are_not_taken_for_others);
    tcase_add_test(tc, a_key_of_an_enumeration_is_of_the_declared_spelling);
    tcase_add_test(tc, a_spelling_parses_to_the_same_literal);
    tcase_add_test(tc, spelling);
}
