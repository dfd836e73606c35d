/* Conditions on entities (docs/specification.md, section 2). */
#include "sample.h"
#include "testing.h"

#include "base/rng.h"
#include "query/condition.h"
#include "query/conditions.h"

static struct arena arena;

static struct err *parse(struct span conditions, enum sample shape, struct conditions *out)
{
    struct span target = arena_printf(&arena, "/X/%.*s", SPAN_FMT(conditions));
    struct uri uri;

    ck_ok(uri_parse(target, SPAN("/"), 64, &arena, &uri));
    return conditions_parse(uri.conditions, uri.condition_count, sample_shape(shape), &arena, out);
}

static bool hold(const char *conditions, enum sample shape)
{
    struct span entity = shape == PERSON ? SPAN(SAMPLE_PERSON) : SPAN(SAMPLE_NOTE);
    struct conditions parsed;

    ck_ok(parse(span_str(conditions), shape, &parsed));
    return conditions_hold(&parsed, sample_json(entity, &arena), &arena);
}

static const struct {
    enum sample shape;
    const char *conditions;
    bool hold;
} held[] = {
    {PERSON, "_", true},
    {PERSON, "Id=p1", true},
    {PERSON, "id=P1", false},
    {PERSON, "ID!=p2", true},
    /* joined by AND, the same key more than once */
    {PERSON, "Age>41&Age<43", true},
    {PERSON, "Age>41&Age<42", false},
    {PERSON, "Age=42&IsActive=true&Kind=staff", true},
    {PERSON, "Age=42&IsActive=true&Kind=guest", false},
    {PERSON, "Name>J&Name<K", true},
    /* operators */
    {PERSON, "Age=42", true},
    {PERSON, "Age!=42", false},
    {PERSON, "Age<42", false},
    {PERSON, "Age<=42", true},
    {PERSON, "Age>=42", true},
    {PERSON, "Age>42", false},
    {PERSON, "age%3E=42", true},
    /* paths */
    {PERSON, "Account.Balance<0", true},
    {PERSON, "account.owner.name=Ada", true},
    {PERSON, "Account.Owner.Length=7.50", true},
    {PERSON, "Lines.0.Sku=x%2F1", true},
    {PERSON, "Lines.1.Count>12345678901234567889", true},
    {PERSON, "Lines.7.Count=null", true},
    {PERSON, "Lines.7.Count!=null", false},
    {PERSON, "Lines.7.Count<5", false},
    {PERSON, "Tags.1=7", true},
    {PERSON, "Tags.Length=3", true},
    /* any element: tags are "red", 7 and null */
    {PERSON, "Tags.*=red", true},
    {PERSON, "Tags.*!=red", false},
    {PERSON, "Tags.*=blue", false},
    {PERSON, "Tags.*!=blue", true},
    {PERSON, "Tags.*=red&Tags.*=7", true},
    {PERSON, "Tags.*>6", true},
    {PERSON, "Tags.*>7", false},
    {PERSON, "Tags.*>=r&Tags.*<8", true},
    {PERSON, "Tags.*=null", true},
    {PERSON, "Tags.*!=null", false},
    {PERSON, "Tags.*.Length=3", true},
    {PERSON, "Lines.*.Sku=x%2F1", true},
    {PERSON, "lines.*.count>12345678901234567889", true},
    {PERSON, "Lines.*.Count=1", false},
    {PERSON, "Extra.*=null", true}, /* no array: a step that is missing */
    {PERSON, "Extra.*!=5", true},
    {PERSON, "Tags.*.*=null", true},
    {PERSON, "Headers.*=null", true}, /* a member of that name */
    {PERSON, "Headers.X-Length=5", true},
    {PERSON, "Headers.X-Length='5'", true},
    {PERSON, "Headers.X-Length>4", false},
    {PERSON, "Headers.Nothing=null", true},
    {PERSON, "Extra=null", true},
    {PERSON, "Account.Opened=null", true},
    {PERSON, "Account.Opened<2026-01-01", false},
    {PERSON, "Account.Opened!=2026-01-01", true},
    {PERSON, "Account.Opened.Year=null", true},
    /* Length, and parts of a datetime in UTC */
    {PERSON, "Name.Length=6", true},
    {PERSON, "Name.Length>10", false},
    {PERSON, "Kind.Length=5", true},
    {PERSON, "Born.Year=1983&Born.Month=4&Born.Day=6", true},
    {PERSON, "Born.Hour=1&Born.Minute=30&Born.Second=8&Born.DayOfWeek=3", true},
    {PERSON, "Born>=1983-04-06T01:30:08.25Z", true},
    {PERSON, "Born>1983-04-06T01:30:08.25Z", false},
    /* null and the empty string */
    {PERSON, "Name!=null&Name!=''", true},
    {PERSON, "Name=''", false},
    {PERSON, "Age!=''", true},
    {PERSON, "Account!=null", true},
    {DYNAMIC, "Empty=", true},
    {DYNAMIC, "Empty=null", false},
    /* dynamic: an unknown property is missing */
    {DYNAMIC, "Unknown=null", true},
    {DYNAMIC, "Unknown!=5", true},
    {DYNAMIC, "Unknown<5", false},
    {DYNAMIC, "Zip=12345", true},
    {DYNAMIC, "Zip!=12345", false},
    {DYNAMIC, "Zip>12344", false},
    {DYNAMIC, "Count=5.0", true},
    {DYNAMIC, "Count='5'", false},
    {DYNAMIC, "Flag=true", true},
    {DYNAMIC, "Flag>false", false},
    {DYNAMIC, "Flags=true", true},
    {DYNAMIC, "Flags='true'", true},
    {DYNAMIC, "Flags=TRUE", false},
    {DYNAMIC, "Text=2026-11-01T00:00:00Z", true},
    {DYNAMIC, "Text.Year=2026", true},
    {DYNAMIC, "text=lower", true},
    {DYNAMIC, "Box.Year=1999", true},
    {DYNAMIC, "Box.Deep.Er.Length=3", true},
    {DYNAMIC, "List.2.0=3", true},
    {DYNAMIC, "List!=null&Box!=5", true},
};

START_TEST(holding)
{
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        ck_assert_msg(hold(held[i].conditions, held[i].shape) == held[i].hold, "%s",
                      held[i].conditions);
}
END_TEST

static const struct {
    const char *conditions;
    enum err_code code;
    const char *message;
} refused[] = {
    {"Nmae=x", ERR_UNKNOWN_PROPERTY, "Did you mean 'Name'?"},
    {"Age=5&Account.Nubmer=x", ERR_UNKNOWN_PROPERTY, "'Nubmer'"},
    {"Age=x", ERR_INVALID_CONDITION_VALUE, "'Age'"},
    {"Kind=boss", ERR_INVALID_ENUM_VALUE, "'boss'"},
    {"Visits=x", ERR_INVALID_CONDITION_VALUE, "'Visits'"},
    {"IsActive>true", ERR_INVALID_CONDITION_OPERATOR,
     "'>' does not apply to 'IsActive': values of type boolean have no order"},
    {"IsActive<=null", ERR_INVALID_CONDITION_OPERATOR, "'<='"},
    {"Account<null", ERR_INVALID_CONDITION_OPERATOR, "object"},
    {"Tags>=''", ERR_INVALID_CONDITION_OPERATOR, "array"},
    {"Account..Number=5", ERR_INVALID_CONDITION_SYNTAX, "'Account..Number'"},
};

START_TEST(refusals)
{
    struct conditions parsed;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        ck_fails(parse(span_str(refused[i].conditions), PERSON, &parsed), refused[i].code,
                 refused[i].message);
}
END_TEST

START_TEST(equality_on_a_property)
{
    struct conditions c;

    ck_ok(parse(SPAN("Age>5&id!=p0&ID=p1&Id=p2&Name.Length=7"), PERSON, &c));
    ck_span_eq(conditions_equal_to(&c, SPAN("Id"))->text, "p1");
    ck_assert_ptr_null(conditions_equal_to(&c, SPAN("Age")));
    ck_assert_ptr_null(conditions_equal_to(&c, SPAN("Kind")));
    ck_assert_ptr_null(conditions_equal_to(&c, SPAN("Name")));
    ck_assert_ptr_null(conditions_equal_to(&c, SPAN("Name.Length")));
    ck_ok(parse(SPAN("Id='p3'"), PERSON, &c));
    ck_span_eq(conditions_equal_to(&c, SPAN("id"))->text, "p3");
}
END_TEST

START_TEST(above_a_number)
{
    struct conditions c;

    ck_ok(parse(SPAN("ObjectNo>7&objectno>12&ObjectNo>=90&ObjectNo<99&Age>100"), PERSON, &c));
    ck_assert_uint_eq(conditions_above(&c, SPAN("ObjectNo")), 12);
    ck_ok(parse(SPAN("ObjectNo!=5"), PERSON, &c));
    ck_assert_uint_eq(conditions_above(&c, SPAN("ObjectNo")), 0);
    ck_ok(parse(SPAN("n>-5&n>1.5&n>'9'&n>1e3&n.Length>6"), DYNAMIC, &c));
    ck_assert_uint_eq(conditions_above(&c, SPAN("n")), 0);
}
END_TEST

/* ---- normal form ---- */

static struct span normal(const struct conditions *c)
{
    struct buf b;
    struct span text;

    buf_init(&b, BUF_NO_CAP);
    conditions_add_normal(&b, c);
    text = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return text;
}

static const struct {
    enum sample shape;
    const char *given, *normal;
} normals[] = {
    {PERSON, "_", ""},
    {PERSON, "name!=null", "Name!=null"},
    {PERSON, "name=", "Name=''"},
    {PERSON, "NAME=\"Bob\"", "Name='Bob'"},
    {PERSON, "name.length%3E10&kind=guest", "Name.Length>10&Kind=Guest"},
    {PERSON, "account.OWNER.name='a%2Fb'", "Account.Owner.Name='a%2Fb'"},
    {PERSON, "lines.0.sku=a b", "Lines.0.Sku=a%20b"},
    {PERSON, "headers.x-a=1", "Headers.x-a=1"},
    {PERSON, "born>=1983-04-06T01:30:00+02:00", "Born>=1983-04-06T01:30:00+02:00"},
    {DYNAMIC, "any.Thing<=5&a%3Db!=%C3%A9", "any.Thing<=5&a%3Db!=%C3%A9"},
};

START_TEST(normal_forms)
{
    struct conditions c;

    for (size_t i = 0; i < ARRAY_LEN(normals); i++) {
        ck_ok(parse(span_str(normals[i].given), normals[i].shape, &c));
        ck_span_is(normal(&c), span_str(normals[i].normal));
    }
}
END_TEST

static void ck_same_conditions(const struct conditions *a, const struct conditions *b)
{
    ck_assert_uint_eq(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct condition *x = &a->items[i], *y = &b->items[i];

        ck_span_is(x->path.text, y->path.text);
        ck_assert_int_eq(x->path.type, y->path.type);
        ck_assert_int_eq(x->path.part, y->path.part);
        ck_assert_uint_eq(x->path.step_count, y->path.step_count);
        ck_assert_int_eq(x->op, y->op);
        ck_assert_int_eq(x->literal.kind, y->literal.kind);
        ck_assert_int_eq(x->literal.quoted, y->literal.quoted);
        ck_assert_int_eq(x->literal.also_text, y->literal.also_text);
        ck_span_is(x->literal.text, y->literal.text);
        ck_assert_int_eq(datetime_cmp(x->literal.instant, y->literal.instant), 0);
    }
}

/* A condition that parses: on a declared string, or on anything of a dynamic resource. */
static struct uri_condition random_condition(enum sample shape)
{
    static const char *const keys[] = {"name", "ACCOUNT.number", "extra.x", "headers.a"};
    struct uri_condition c = {.op = (enum uri_op)rng_below(6)};
    struct span text = sample_random_text(&arena, 8);

    c.value = sample_random_text(&arena, 8);
    c.key = span_str(keys[rng_below(ARRAY_LEN(keys))]);
    if (shape == DYNAMIC)
        c.key = arena_printf(&arena, "k%.*sk", SPAN_FMT(text));
    return c;
}

START_TEST(normal_form_is_the_identity)
{
    size_t parsed = 0;

    for (int i = 0; i < 6000; i++) {
        enum sample shape = i % 2 == 0 ? PERSON : DYNAMIC;
        struct uri_condition items[3];
        struct conditions c, again;
        struct err *e;

        for (size_t j = 0; j < ARRAY_LEN(items); j++)
            items[j] = random_condition(shape);
        e = conditions_parse(items, ARRAY_LEN(items), sample_shape(shape), &arena, &c);
        if (e == NULL) {
            parsed++;
            ck_ok(parse(normal(&c), shape, &again));
            ck_same_conditions(&again, &c);
            ck_span_is(normal(&again), normal(&c));
        }
        err_free(e);
        arena_reset(&arena);
    }
    ck_assert_uint_gt(parsed, 3000);
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
    tcase_add_test(tc, holding);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, equality_on_a_property);
    tcase_add_test(tc, above_a_number);
    tcase_add_test(tc, normal_forms);
    tcase_add_test(tc, normal_form_is_the_identity);
}
