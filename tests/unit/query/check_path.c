/* Property paths (docs/specification.md, section 2, "Keys"). */
#include "sample.h"
#include "testing.h"

#include "query/path.h"

static struct arena arena;

/* ---- parsing ---- */

static const struct {
    enum sample shape;
    const char *given, *text; /* text: NULL as given */
    enum value_type type;
    size_t steps;
    enum path_part part;
    const char *property; /* that it ends at, or NULL */
} parsed[] = {
    /* declared: case is folded, the declared spelling comes out */
    {PERSON, "Name", NULL, TYPE_STRING, 1, PATH_VALUE, "Name"},
    {PERSON, "nAME", "Name", TYPE_STRING, 1, PATH_VALUE, "Name"},
    {PERSON, "objectno", "ObjectNo", TYPE_INTEGER, 1, PATH_VALUE, "ObjectNo"},
    {PERSON, "kind", "Kind", TYPE_STRING, 1, PATH_VALUE, "Kind"},
    {PERSON, "account", "Account", TYPE_OBJECT, 1, PATH_VALUE, "Account"},
    {PERSON, "ACCOUNT.number", "Account.Number", TYPE_STRING, 2, PATH_VALUE, "Number"},
    {PERSON, "account.owner.name", "Account.Owner.Name", TYPE_STRING, 3, PATH_VALUE, "Name"},
    /* elements */
    {PERSON, "lines", "Lines", TYPE_ARRAY, 1, PATH_VALUE, "Lines"},
    {PERSON, "lines.0", "Lines.0", TYPE_OBJECT, 2, PATH_VALUE, NULL},
    {PERSON, "lines.0.sku", "Lines.0.Sku", TYPE_STRING, 3, PATH_VALUE, "Sku"},
    {PERSON, "tags.12", "Tags.12", TYPE_ANY, 2, PATH_VALUE, NULL},
    /* parts, by the declared type */
    {PERSON, "name.length", "Name.Length", TYPE_INTEGER, 1, PATH_LENGTH, NULL},
    {PERSON, "kind.LENGTH", "Kind.Length", TYPE_INTEGER, 1, PATH_LENGTH, NULL},
    {PERSON, "lines.length", "Lines.Length", TYPE_INTEGER, 1, PATH_LENGTH, NULL},
    {PERSON, "lines.1.sku.length", "Lines.1.Sku.Length", TYPE_INTEGER, 3, PATH_LENGTH, NULL},
    {PERSON, "born.year", "Born.Year", TYPE_INTEGER, 1, PATH_YEAR, NULL},
    {PERSON, "born.month", "Born.Month", TYPE_INTEGER, 1, PATH_MONTH, NULL},
    {PERSON, "born.day", "Born.Day", TYPE_INTEGER, 1, PATH_DAY, NULL},
    {PERSON, "born.hour", "Born.Hour", TYPE_INTEGER, 1, PATH_HOUR, NULL},
    {PERSON, "born.minute", "Born.Minute", TYPE_INTEGER, 1, PATH_MINUTE, NULL},
    {PERSON, "born.second", "Born.Second", TYPE_INTEGER, 1, PATH_SECOND, NULL},
    {PERSON, "born.dayofweek", "Born.DayOfWeek", TYPE_INTEGER, 1, PATH_DAY_OF_WEEK, NULL},
    {PERSON, "account.opened.year", "Account.Opened.Year", TYPE_INTEGER, 2, PATH_YEAR, NULL},
    /* a real property called Length wins */
    {PERSON, "account.owner.length", "Account.Owner.Length", TYPE_NUMBER, 3, PATH_VALUE, "Length"},
    /* beyond what is declared anything goes, as it is spelled */
    {PERSON, "headers.x-a", "Headers.x-a", TYPE_ANY, 2, PATH_VALUE, NULL},
    {PERSON, "headers.length", "Headers.length", TYPE_ANY, 1, PATH_LENGTH, NULL},
    {PERSON, "extra.Some.7.Thing", "Extra.Some.7.Thing", TYPE_ANY, 4, PATH_VALUE, NULL},
    {PERSON, "extra.year", "Extra.year", TYPE_ANY, 1, PATH_YEAR, NULL},
    {PERSON, "tags.0.anything", "Tags.0.anything", TYPE_ANY, 3, PATH_VALUE, NULL},
    {DYNAMIC, "anything", NULL, TYPE_ANY, 1, PATH_VALUE, NULL},
    {DYNAMIC, "Length", NULL, TYPE_ANY, 1, PATH_VALUE, NULL},
    {DYNAMIC, "length.LENGTH", NULL, TYPE_ANY, 1, PATH_LENGTH, NULL},
    {DYNAMIC, "Year.Month", NULL, TYPE_ANY, 1, PATH_MONTH, NULL},
    {DYNAMIC, "a.Length.b", NULL, TYPE_ANY, 3, PATH_VALUE, NULL},
    {DYNAMIC, "a.b c.\xc3\xa9", NULL, TYPE_ANY, 3, PATH_VALUE, NULL},
    {DYNAMIC, "1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.g", NULL, TYPE_ANY, 16, PATH_VALUE, NULL},
    /* computed ones parse; who may use them is decided elsewhere */
    {PERSON, "visits", "Visits", TYPE_INTEGER, 1, PATH_VALUE, "Visits"},
};

START_TEST(parsing)
{
    for (size_t i = 0; i < ARRAY_LEN(parsed); i++) {
        const char *text = parsed[i].text != NULL ? parsed[i].text : parsed[i].given;
        struct path path;

        ck_ok(path_parse(span_str(parsed[i].given), sample_shape(parsed[i].shape), &arena, &path));
        ck_span_is(path.text, span_str(text));
        ck_assert_msg(path.type == parsed[i].type, "%s: type %d", text, (int)path.type);
        ck_assert_msg(path.step_count == parsed[i].steps, "%s: %zu steps", text, path.step_count);
        ck_assert_msg(path.part == parsed[i].part, "%s: part %d", text, (int)path.part);
        ck_assert_msg((path.property != NULL) == (parsed[i].property != NULL), "%s", text);
        if (path.property != NULL)
            ck_span_is(path.property->name, span_str(parsed[i].property));
    }
}
END_TEST

static const struct {
    enum sample shape;
    const char *given;
    enum err_code code;
    const char *message;
} refused[] = {
    {PERSON, "Nmae", ERR_UNKNOWN_PROPERTY,
     "no property 'Nmae' in Shop.Person. Did you mean 'Name'?"},
    {PERSON, "Xylophone", ERR_UNKNOWN_PROPERTY, "no property 'Xylophone' in Shop.Person."},
    {PERSON, "Account.Nubmer", ERR_UNKNOWN_PROPERTY, "in Account. Did you mean 'Number'?"},
    {PERSON, "account.owner.nam", ERR_UNKNOWN_PROPERTY, "in Account.Owner. Did you mean 'Name'?"},
    {PERSON, "Lines.0.Skus", ERR_UNKNOWN_PROPERTY, "in Lines.0. Did you mean 'Sku'?"},
    {PERSON, "Lines.Sku", ERR_UNKNOWN_PROPERTY, "'Sku' in Lines"},
    {PERSON, "Lines.-1", ERR_UNKNOWN_PROPERTY, "'-1' in Lines"},
    {PERSON, "Name.Lenght", ERR_UNKNOWN_PROPERTY, "in Name. Did you mean 'Length'?"},
    {PERSON, "Name.Year", ERR_UNKNOWN_PROPERTY, "no property 'Year' in Name."},
    {PERSON, "Name.Length.Length", ERR_UNKNOWN_PROPERTY, "'Length' in Name"},
    {PERSON, "Born.Length", ERR_UNKNOWN_PROPERTY, "'Length' in Born"},
    {PERSON, "Born.Years", ERR_UNKNOWN_PROPERTY, "in Born. Did you mean 'Year'?"},
    {PERSON, "Born.Year.Month", ERR_UNKNOWN_PROPERTY, "'Year' in Born"},
    {PERSON, "Age.Length", ERR_UNKNOWN_PROPERTY, "'Length' in Age."},
    {PERSON, "IsActive.x", ERR_UNKNOWN_PROPERTY, "'x' in IsActive."},
    {PERSON, "Account.Length", ERR_UNKNOWN_PROPERTY, "'Length' in Account"},
    {PERSON, "Length", ERR_UNKNOWN_PROPERTY, "'Length' in Shop.Person"},
    {PERSON, "Visits.x", ERR_UNKNOWN_PROPERTY, "'x' in Visits."},
    {PERSON, "Account.Visits", ERR_UNKNOWN_PROPERTY, "'Visits' in Account"},
    {PERSON, "", ERR_INVALID_CONDITION_SYNTAX, "empty step in the path ''"},
    {PERSON, ".Name", ERR_INVALID_CONDITION_SYNTAX, "'.Name'"},
    {PERSON, "Account.", ERR_INVALID_CONDITION_SYNTAX, "'Account.'"},
    {DYNAMIC, "a..b", ERR_INVALID_CONDITION_SYNTAX, "'a..b'"},
    {DYNAMIC, "1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.g.h", ERR_INVALID_CONDITION_SYNTAX,
     "more than 16 steps"},
};

START_TEST(refusals)
{
    struct path path;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        ck_fails(
            path_parse(span_str(refused[i].given), sample_shape(refused[i].shape), &arena, &path),
            refused[i].code, refused[i].message);
}
END_TEST

START_TEST(a_nameless_shape_is_the_resource)
{
    struct path path;

    ck_fails(path_parse(SPAN("x"), &sample_account, &arena, &path), ERR_UNKNOWN_PROPERTY,
             "no property 'x' in the resource.");
}
END_TEST

START_TEST(without_a_shape_everything_is_undeclared)
{
    struct path path;

    ck_ok(path_parse(SPAN("a.b"), NULL, &arena, &path));
    ck_assert_int_eq(path.type, TYPE_ANY);
    ck_assert_uint_eq(path.step_count, 2);
}
END_TEST

START_TEST(kinds_of_paths)
{
    static const struct {
        const char *text;
        bool is_member, is_hidden;
    } cases[] = {
        {"Name", true, false},         {"Account", true, false},         {"Visits", false, true},
        {"Name.Length", false, false}, {"Account.Number", false, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct path path;

        ck_ok(path_parse(span_str(cases[i].text), &sample_person, &arena, &path));
        ck_assert_int_eq(path_is_member(&path), cases[i].is_member);
        ck_assert_int_eq(path_is_hidden(&path), cases[i].is_hidden);
    }
}
END_TEST

/* ---- reading ---- */

static const struct {
    enum sample shape;
    const char *path;
    enum value_kind kind;
    const char *text, *json; /* json: NULL for the same as text */
} reads[] = {
    {PERSON, "id", VALUE_STRING, "p1", "\"p1\""},
    {PERSON, "age", VALUE_NUMBER, "42", NULL},
    {PERSON, "height", VALUE_NUMBER, "1.80", NULL},
    {PERSON, "isactive", VALUE_BOOLEAN, "true", NULL},
    {PERSON, "extra", VALUE_NULL, "null", NULL},
    {PERSON, "visits", VALUE_NULL, "", "null"},
    {PERSON, "account.number", VALUE_STRING, "A-17", "\"A-17\""},
    {PERSON, "account.balance", VALUE_NUMBER, "-0.50", NULL},
    {PERSON, "account.opened", VALUE_NULL, "null", NULL},
    {PERSON, "account.opened.year", VALUE_NULL, "", "null"},
    {PERSON, "account.owner", VALUE_OBJECT, "{\"Name\":\"Ada\",\"Length\":7.5}", NULL},
    {PERSON, "account.owner.length", VALUE_NUMBER, "7.5", NULL},
    {PERSON, "lines.0.sku", VALUE_STRING, "x/1", "\"x\\u002f1\""},
    {PERSON, "lines.1.count", VALUE_NUMBER, "12345678901234567890", NULL},
    {PERSON, "lines.2.count", VALUE_NULL, "", "null"},
    {PERSON, "lines.length", VALUE_NUMBER, "2", NULL},
    {PERSON, "tags.0", VALUE_STRING, "red", "\"red\""},
    {PERSON, "tags.1", VALUE_NUMBER, "7", NULL},
    {PERSON, "tags.2", VALUE_NULL, "null", NULL},
    {PERSON, "tags", VALUE_ARRAY, "[\"red\",7,null]", NULL},
    /* Length counts Unicode scalar values, of an array the elements */
    {PERSON, "name.length", VALUE_NUMBER, "6", NULL},
    {PERSON, "tags.length", VALUE_NUMBER, "3", NULL},
    {PERSON, "tags.0.length", VALUE_NUMBER, "3", NULL},
    {PERSON, "lines.0.sku.length", VALUE_NUMBER, "3", NULL},
    /* the parts of a datetime are those in UTC */
    {PERSON, "born.year", VALUE_NUMBER, "1983", NULL},
    {PERSON, "born.month", VALUE_NUMBER, "4", NULL},
    {PERSON, "born.day", VALUE_NUMBER, "6", NULL},
    {PERSON, "born.hour", VALUE_NUMBER, "1", NULL},
    {PERSON, "born.minute", VALUE_NUMBER, "30", NULL},
    {PERSON, "born.second", VALUE_NUMBER, "8", NULL},
    {PERSON, "born.dayofweek", VALUE_NUMBER, "3", NULL},
    /* undeclared members: a member called like the part wins, an exact name before a folded one */
    {PERSON, "headers.x-length", VALUE_STRING, "5", "\"5\""},
    {PERSON, "headers.length", VALUE_STRING, "member", "\"member\""},
    {DYNAMIC, "text", VALUE_STRING, "lower", "\"lower\""},
    {DYNAMIC, "Text", VALUE_STRING, "2026-11-01", "\"2026-11-01\""},
    {DYNAMIC, "TEXT", VALUE_STRING, "2026-11-01", "\"2026-11-01\""},
    {DYNAMIC, "Text.year", VALUE_NUMBER, "2026", NULL},
    {DYNAMIC, "Text.length", VALUE_NUMBER, "10", NULL},
    {DYNAMIC, "text.year", VALUE_NULL, "", "null"},
    {DYNAMIC, "empty", VALUE_STRING, "", "\"\""},
    {DYNAMIC, "empty.length", VALUE_NUMBER, "0", NULL},
    {DYNAMIC, "box.year", VALUE_NUMBER, "1999", NULL},
    {DYNAMIC, "box.length", VALUE_NULL, "", "null"},
    {DYNAMIC, "box.0", VALUE_STRING, "zero", "\"zero\""},
    {DYNAMIC, "box.deep.er", VALUE_STRING, "\"q\"", "\"\\\"q\\\"\""},
    {DYNAMIC, "box.deep.er.length", VALUE_NUMBER, "3", NULL},
    {DYNAMIC, "list.1", VALUE_STRING, "two", "\"two\""},
    {DYNAMIC, "list.2.0", VALUE_NUMBER, "3", NULL},
    {DYNAMIC, "list.x", VALUE_NULL, "", "null"},
    {DYNAMIC, "list.3", VALUE_NULL, "", "null"},
    {DYNAMIC, "list.4294967295", VALUE_NULL, "", "null"},
    {DYNAMIC, "list.4294967296", VALUE_NULL, "", "null"},
    {DYNAMIC, "list.99999999999999999999", VALUE_NULL, "", "null"},
    {DYNAMIC, "list.2.length", VALUE_NUMBER, "1", NULL},
    {DYNAMIC, "count.length", VALUE_NULL, "", "null"},
    {DYNAMIC, "flag.year", VALUE_NULL, "", "null"},
    {DYNAMIC, "nothing", VALUE_NULL, "null", NULL},
    {DYNAMIC, "nothing.at.all", VALUE_NULL, "", "null"},
    {DYNAMIC, "missing", VALUE_NULL, "", "null"},
    {DYNAMIC, "missing.length", VALUE_NULL, "", "null"},
    {DYNAMIC, "count.x", VALUE_NULL, "", "null"},
};

START_TEST(reading)
{
    struct json_value roots[] = {[PERSON] = sample_json(SPAN(SAMPLE_PERSON), &arena),
                                 [DYNAMIC] = sample_json(SPAN(SAMPLE_NOTE), &arena)};

    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        const char *json = reads[i].json != NULL ? reads[i].json : reads[i].text;
        struct json_value root = roots[reads[i].shape];
        struct path path;
        struct value value;
        struct buf b;

        ck_ok(path_parse(span_str(reads[i].path), sample_shape(reads[i].shape), &arena, &path));
        value = path_read(&path, root, &arena);
        ck_assert_msg(value.kind == reads[i].kind, "%s: kind %d", reads[i].path, (int)value.kind);
        ck_span_is(value.text, span_str(reads[i].text));
        ck_assert_int_eq(value.boolean, span_eq(value.text, SPAN("true")));
        buf_init(&b, 1000);
        path_add_json(&path, root, &arena, &b);
        ck_span_is(buf_span(&b), span_str(json));
        buf_done(&b);
    }
}
END_TEST

START_TEST(a_copy_reads_the_same)
{
    struct json_value root = sample_json(SPAN(SAMPLE_PERSON), &arena);
    struct arena own;
    struct path path, copy;

    arena_init(&own);
    ck_ok(path_parse(SPAN("headers.length"), &sample_person, &own, &path));
    path_copy(&path, &arena, &copy);
    arena_done(&own);
    ck_span_eq(copy.text, "Headers.length");
    ck_span_eq(path_read(&copy, root, &arena).text, "member");
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

START_TEST(commas_within_quotes_end_no_item)
{
    static const struct {
        const char *list, *first;
        size_t behind; /* bytes; SIZE_MAX: nothing is */
    } lists[] = {
        {"a,b", "a", 1},
        {"a", "a", SIZE_MAX},
        {"", "", SIZE_MAX},
        {"a,", "a", 0},
        {"'a,b'", "'a,b'", SIZE_MAX},
        {" 'a,b',c", " 'a,b'", 1},
        {"x.'a,b'.c,d", "x.'a,b'.c", 1},
        {"'a,b", "'a", 1},
        {"x'a,b'", "x'a", 2},
        {"\"a,b\".'c,d',e", "\"a,b\".'c,d'", 1},
        {"'a,b'->x,c", "'a,b'->x", 1},
        {"'a'b,c'", "'a'b,c'", SIZE_MAX},
    };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct span rest = span_str(lists[i].list), item = path_split_list(&rest);

        ck_span_is(item, span_str(lists[i].first));
        ck_assert_uint_eq(rest.p == NULL ? SIZE_MAX : rest.n, lists[i].behind);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, parsing);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, a_nameless_shape_is_the_resource);
    tcase_add_test(tc, without_a_shape_everything_is_undeclared);
    tcase_add_test(tc, kinds_of_paths);
    tcase_add_test(tc, reading);
    tcase_add_test(tc, a_copy_reads_the_same);
    tcase_add_test(tc, commas_within_quotes_end_no_item);
}
