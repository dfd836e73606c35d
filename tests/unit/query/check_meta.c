/* Meta-conditions (docs/specification.md, section 3). What was parsed is written as a line to be
 * compared: what is unset is left out, a path is its text, followed by `:` and where it leads to
 * when that is something else. */
#include "sample.h"
#include "testing.h"

#include "base/budget.h"
#include "query/meta.h"
#include "query/meta_items.h"
#include "query/uri.h"

#include <string.h>

enum { BUDGET_NS = 200000000 };

static struct arena arena;

static struct err *parse(const char *metas, enum sample shape, struct meta *out)
{
    struct span target = arena_printf(&arena, "/?/X/_/%s", metas);
    struct uri uri;

    ck_ok(uri_parse(target, SPAN("/"), 1000, &arena, &uri));
    return meta_parse(uri.metas, uri.meta_count, uri.is_query_form, sample_shape(shape), &arena,
                      out);
}

/* ---- writing ---- */

static void add_path(struct buf *b, const char *before, const struct path *path)
{
    struct buf place;

    buf_init(&place, BUF_NO_CAP);
    for (size_t i = 0; i < path->step_count; i++)
        buf_printf(&place, "%s%.*s", i > 0 ? "." : "", SPAN_FMT(path->steps[i].name));
    if (path->part != PATH_VALUE)
        buf_printf(&place, ".%.*s", SPAN_FMT(path->part_name));
    buf_printf(b, "%s%.*s", before, SPAN_FMT(path->text));
    if (!span_ieq(path->text, buf_span(&place)))
        buf_printf(b, ":%.*s", SPAN_FMT(buf_span(&place)));
    buf_done(&place);
}

static void add_paths(struct buf *b, const char *name, const struct path *paths, size_t count)
{
    if (count > 0)
        buf_add_str(b, name);
    for (size_t i = 0; i < count; i++)
        add_path(b, i > 0 ? "," : "", &paths[i]);
}

static void add_search(struct buf *b, const struct meta_search *s)
{
    buf_printf(b, " search=%.*s", SPAN_FMT(s->text));
    if (s->has_property)
        add_path(b, ",", &s->property);
    buf_add_str(b, s->ignore_case ? ",CI" : "");
    buf_add_str(b, s->regex != NULL ? "(regex)" : "");
}

static struct span written(const struct meta *m)
{
    struct buf b;
    struct span text;

    buf_init(&b, BUF_NO_CAP);
    buf_add_str(&b, m->is_unsafe ? " unsafe" : "");
    if (m->has_limit)
        buf_printf(&b, " limit=%lld", (long long)m->limit);
    if (m->offset != 0)
        buf_printf(&b, " offset=%lld", (long long)m->offset);
    for (size_t i = 0; i < m->order_count; i++)
        add_path(&b, m->orders[i].descending ? " desc=" : " asc=", &m->orders[i].path);
    add_paths(&b, " select=", m->selects, m->select_count);
    add_paths(&b, " add=", m->adds, m->add_count);
    for (size_t i = 0; i < m->rename_count; i++) {
        add_path(&b, " rename=", &m->renames[i].from);
        buf_printf(&b, "->%.*s", SPAN_FMT(m->renames[i].to));
    }
    buf_add_str(&b, m->distinct ? " distinct" : "");
    for (size_t i = 0; i < m->search_count; i++)
        add_search(&b, &m->searches[i]);
    add_paths(&b, " safepost=", m->safeposts, m->safepost_count);
    text = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return text;
}

/* ---- parsing ---- */

static const struct {
    enum sample shape;
    const char *given, *parsed;
} good[] = {
    {PERSON, "_", ""},
    /* names in any case, values as they are */
    {PERSON, "unsafe=true", " unsafe"},
    {PERSON, "UNSAFE=True", " unsafe"},
    {PERSON, "unsafe=false", ""},
    {PERSON, "distinct=true", " distinct"},
    {PERSON, "limit=5", " limit=5"},
    {PERSON, "Limit=0", " limit=0"},
    {PERSON, "limit=-1", " limit=-1"},
    {PERSON, "limit=+7", " limit=7"},
    {PERSON, "limit%3D5", " limit=5"},
    {PERSON, "limit=9223372036854775807", " limit=9223372036854775807"},
    {PERSON, "offset=10", " offset=10"},
    {PERSON, "offset=-3", " offset=-3"},
    {PERSON, "offset=-9223372036854775808", " offset=-9223372036854775808"},
    /* order: several keys, in the order they are given */
    {PERSON, "order_asc=name", " asc=Name"},
    {PERSON, "order_desc=AGE", " desc=Age"},
    {PERSON, "order_asc=kind,account.number", " asc=Kind asc=Account.Number"},
    {PERSON, "order_asc=kind&order_desc=age&order_asc=name", " asc=Kind desc=Age asc=Name"},
    {PERSON, "order_asc=name.length,born.year", " asc=Name.Length asc=Born.Year"},
    {DYNAMIC, "order_asc=any.Thing", " asc=any.Thing"},
    /* select, add: once each */
    {PERSON, "select=name", " select=Name"},
    {PERSON, "select=age,%20name%20,account.number", " select=Age,Name,Account.Number"},
    {PERSON, "select=name,Age,NAME", " select=Name,Age"},
    {PERSON, "add=name.length", " add=Name.Length"},
    {PERSON, "add=visits", " add=Visits"},
    {PERSON, "add=name.length,visits&add=Name.Length", " add=Name.Length,Visits"},
    {PERSON, "add=visits&select=VISITS,name", " select=Visits,Name add=Visits"},
    {PERSON, "select=visits&add=visits", " select=Visits add=Visits"},
    /* rename: the arrow encoded or not; the new name keeps its case */
    {PERSON, "rename=name->fullName", " rename=Name->fullName"},
    {PERSON, "rename=name-%3EfullName", " rename=Name->fullName"},
    {PERSON, "rename=name%20->%20a%20b", " rename=Name->a b"},
    {PERSON, "rename=name->a,age->b", " rename=Name->a rename=Age->b"},
    {PERSON, "rename=name->a&rename=age->b", " rename=Name->a rename=Age->b"},
    {PERSON, "rename=born.year->a,born.month->b",
     " add=a:Born.Year,b:Born.Month rename=Born.Year->a rename=Born.Month->b"},
    {PERSON, "rename=name->b->c", " rename=Name->b->c"},
    {PERSON, "rename=name->Age,age->Name", " rename=Name->Age rename=Age->Name"},
    {PERSON, "rename=name->age", " rename=Name->age"},
    {PERSON, "rename=name->Visits", " rename=Name->Visits"},
    /* what is added can be renamed, and what is renamed but no member is added */
    {PERSON, "add=name.length&rename=name.length->len",
     " add=len:Name.Length rename=Name.Length->len"},
    {PERSON, "rename=visits->v&add=visits", " add=v:Visits rename=Visits->v"},
    {PERSON, "rename=account.number->no", " add=no:Account.Number rename=Account.Number->no"},
    {PERSON, "add=born.year&rename=born.year->a,name->b",
     " add=a:Born.Year rename=Born.Year->a rename=Name->b"},
    /* the new name leads to the old place, also for paths below it */
    {PERSON, "rename=name->n&select=n", " select=n:Name rename=Name->n"},
    {PERSON, "select=n&rename=name->n", " select=n:Name rename=Name->n"},
    {PERSON, "rename=name->n&order_asc=n", " asc=n:Name rename=Name->n"},
    {PERSON, "rename=name->n&order_desc=n.length", " desc=n.length:Name.Length rename=Name->n"},
    {PERSON, "rename=account->acc&select=acc.owner.name",
     " select=acc.owner.name:Account.Owner.Name rename=Account->acc"},
    {PERSON, "rename=name->a.b&select=a.b,a.b.length",
     " select=a.b:Name,a.b.length:Name.Length rename=Name->a.b"},
    {PERSON, "rename=name->age,age->name&order_asc=age,name",
     " asc=age:Name asc=name:Age rename=Name->age rename=Age->name"},
    {PERSON, "rename=name->email&search=x,name", " rename=Name->email search=x,Name,CI(regex)"},
    {PERSON, "add=name.length&rename=name.length->len&select=len&order_asc=len",
     " asc=len:Name.Length select=len:Name.Length add=len:Name.Length rename=Name.Length->len"},
    {PERSON, "add=visits&rename=visits->v&select=v",
     " select=v:Visits add=v:Visits rename=Visits->v"},
    {PERSON, "rename=name->NAME&select=NAME", " select=NAME rename=Name->NAME"},
    /* search: text[,property][,CS or CI] */
    {PERSON, "search=foo", " search=foo,CI(regex)"},
    {PERSON, "search=foo,name", " search=foo,Name,CI(regex)"},
    {PERSON, "search=foo,name,CS", " search=foo,Name"},
    {PERSON, "search=1,visits", " search=1,Visits,CI(regex)"},
    {PERSON, "search=foo,name,ci", " search=foo,Name,CI(regex)"},
    {PERSON, "search=foo,CI", " search=foo,CI(regex)"},
    {PERSON, "search=foo,cs", " search=foo"},
    {PERSON, "search=foo,,CI", " search=foo,CI(regex)"},
    {PERSON, "search=foo,%20name%20,%20CI", " search=foo,Name,CI(regex)"},
    {DYNAMIC, "search=foo,CI,CI", " search=foo,CI,CI(regex)"},
    {PERSON, "search=%20foo,CS", " search= foo"},
    {PERSON, "search=foo&search=bar,CS", " search=foo,CI(regex) search=bar"},
    {PERSON, "search='a,b',name,CS", " search=a,b,Name"},
    {PERSON, "search=\"a,'b'\",CS", " search=a,'b'"},
    {PERSON, "search='it's',CS", " search=it's"},
    {PERSON, "search=',CS", " search='"},
    {PERSON, "search='a,CS", " search='a"},
    {PERSON, "search=\"Name\":1,CS", " search=\"Name\":1"},
    {PERSON, "search=.*,CS", " search=.*"},
    {PERSON, "search_regex=f%5Bo]+,CS", " search=f[o]+(regex)"},
    {PERSON, "search_regex=fo*,name,CI", " search=fo*,Name,CI(regex)"},
    {PERSON, "search_regex='o{1,2}'", " search=o{1,2},CI(regex)"},
    {PERSON, "search_regex=x&search=y&search_regex=z,CS",
     " search=x,CI(regex) search=y,CI(regex) search=z(regex)"},
    /* safepost */
    {PERSON, "safepost=name", " safepost=Name"},
    {PERSON, "safepost=name,account.number", " safepost=Name,Account.Number"},
    /* together, in any order */
    {PERSON, "limit=2&offset=1&order_desc=age&select=name&unsafe=true",
     " unsafe limit=2 offset=1 desc=Age select=Name"},
};

START_TEST(parsing)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct meta m;

        ck_ok(parse(good[i].given, good[i].shape, &m));
        ck_assert_msg(span_eq(written(&m), span_str(good[i].parsed)),
                      "%s: is '%.*s', should be '%s'", good[i].given, SPAN_FMT(written(&m)),
                      good[i].parsed);
        meta_done(&m);
        arena_reset(&arena);
    }
}
END_TEST

static const struct {
    const char *given;
    enum err_code code;
    const char *message;
} refused[] = {
    /* names and operators */
    {"limits=5", ERR_INVALID_META_KEY, "'limits'. Did you mean 'limit'?"},
    {"foobar=5", ERR_INVALID_META_KEY,
     "Valid are unsafe, limit, offset, order_asc, order_desc, select, add, rename, distinct, "
     "search, search_regex, safepost."},
    {"foobar>5", ERR_INVALID_META_KEY, "There is no meta-condition 'foobar'. Valid are unsafe"},
    {"limit>5", ERR_INVALID_META_OPERATOR, "'limit' takes the operator '=', not '>'"},
    {"limit!=5", ERR_INVALID_META_OPERATOR, "'!='"},
    {"select<=Name", ERR_INVALID_META_OPERATOR, "'<='"},
    /* types */
    {"unsafe=yes", ERR_INVALID_META_VALUE, "'unsafe' is true or false, 'yes' is not"},
    {"unsafe=", ERR_INVALID_META_VALUE, "''"},
    {"distinct=1", ERR_INVALID_META_VALUE, "'distinct'"},
    {"limit=abc", ERR_INVALID_META_VALUE, "'limit' is an integer of 64 bits, 'abc' is not"},
    {"limit=1.5", ERR_INVALID_META_VALUE, "'1.5'"},
    {"limit=1e3", ERR_INVALID_META_VALUE, "'1e3'"},
    {"limit=", ERR_INVALID_META_VALUE, "''"},
    {"limit=%205", ERR_INVALID_META_VALUE, "' 5'"},
    {"offset=9223372036854775808", ERR_INVALID_META_VALUE, "'offset'"},
    {"offset=-9223372036854775809", ERR_INVALID_META_VALUE, "64 bits"},
    /* given twice */
    {"limit=5&LIMIT=6", ERR_INVALID_META_SYNTAX, "'LIMIT' is given twice"},
    {"unsafe=true&unsafe=true", ERR_INVALID_META_SYNTAX, "'unsafe'"},
    {"offset=1&offset=2", ERR_INVALID_META_SYNTAX, "'offset'"},
    {"select=Name&select=Age", ERR_INVALID_META_SYNTAX, "'select'"},
    {"distinct=true&distinct=false", ERR_INVALID_META_SYNTAX, "'distinct'"},
    {"safepost=Name&safepost=Age", ERR_INVALID_META_SYNTAX, "'safepost'"},
    /* paths */
    {"order_asc=Nmae", ERR_UNKNOWN_PROPERTY, "Did you mean 'Name'?"},
    {"select=Nmae", ERR_UNKNOWN_PROPERTY, "'Nmae'"},
    {"add=Name.Foo", ERR_UNKNOWN_PROPERTY, "'Foo'"},
    {"rename=Nmae->x", ERR_UNKNOWN_PROPERTY, "'Nmae'"},
    {"safepost=Nmae", ERR_UNKNOWN_PROPERTY, "'Nmae'"},
    {"search=x,Nmae", ERR_UNKNOWN_PROPERTY, "'Nmae'"},
    {"select=", ERR_INVALID_META_SYNTAX, "empty item in the value of 'select'"},
    {"select=Name,", ERR_INVALID_META_SYNTAX, "'Name,'"},
    {"order_asc=Name,,Age", ERR_INVALID_META_SYNTAX, "'Name,,Age'"},
    {"add=,Name", ERR_INVALID_META_SYNTAX, "'add'"},
    {"select=Account..Number", ERR_INVALID_META_SYNTAX, "'Account..Number'"},
    /* what is computed is nothing that a POST could bring */
    {"safepost=Visits", ERR_UNKNOWN_PROPERTY, "'safepost' cannot use 'Visits'"},
    {"add=Visits.Length", ERR_UNKNOWN_PROPERTY, "'Length' in Visits"},
    /* rename */
    {"rename=Name", ERR_INVALID_META_SYNTAX, "path->New, 'Name' has not"},
    {"rename=Name->", ERR_INVALID_META_SYNTAX, "'Name->'"},
    {"rename=->x", ERR_INVALID_META_SYNTAX, "empty step"},
    {"rename=Name>x", ERR_INVALID_META_SYNTAX, "'Name>x'"},
    {"rename=Name->a,name->b", ERR_INVALID_META_SYNTAX, "'Name' is renamed twice"},
    {"rename=Name->a&rename=Age->a", ERR_INVALID_META_SYNTAX, "to 'a'"},
    {"rename=Name->Age", ERR_INVALID_META_SYNTAX, "'Name' cannot be renamed to 'Age', which"},
    {"rename=Name->Id&select=Id", ERR_INVALID_META_SYNTAX, "'Id'"},
    {"add=Name.Length&rename=Age->Name.Length", ERR_INVALID_META_SYNTAX, "'Name.Length'"},
    {"add=Visits&rename=Age->Visits", ERR_INVALID_META_SYNTAX, "'Visits'"},
    /* names that rename took away; the new one is case-sensitive */
    {"rename=Name->n&select=Name", ERR_INVALID_META_SYNTAX,
     "'select' names 'Name', which is renamed to 'n'"},
    {"rename=Name->n&order_asc=name", ERR_INVALID_META_SYNTAX, "'order_asc' names 'name'"},
    {"order_desc=name.length&rename=Name->n", ERR_INVALID_META_SYNTAX, "'order_desc'"},
    {"rename=Account->acc&select=Account.Number", ERR_INVALID_META_SYNTAX, "'acc'"},
    {"rename=Name->n&search=x,n", ERR_UNKNOWN_PROPERTY, "'n'"},
    {"rename=Name.Length->n&select=Name.Length", ERR_INVALID_META_SYNTAX, "'n'"},
    {"rename=Name->n&select=N", ERR_UNKNOWN_PROPERTY, "'N'"},
    {"rename=Name->n&select=nn", ERR_UNKNOWN_PROPERTY, "'nn'"},
    {"rename=Name->NAME&select=name", ERR_INVALID_META_SYNTAX, "'NAME'"},
    /* search */
    {"search=", ERR_INVALID_META_SYNTAX, "no text to look for"},
    {"search=,Name", ERR_INVALID_META_SYNTAX, "',Name'"},
    {"search=''", ERR_INVALID_META_SYNTAX, "no text"},
    {"search=a,Name,XX", ERR_INVALID_META_SYNTAX,
     "text[,property][,CS or CI], 'a,Name,XX' has not"},
    {"search=a,Name,CI,x", ERR_INVALID_META_SYNTAX, "'a,Name,CI,x'"},
    {"search=a,Name,", ERR_INVALID_META_SYNTAX, "'search'"},
    {"search_regex=a(", ERR_INVALID_META_SYNTAX,
     "'a(' is wrong at offset 2: missing closing parenthesis"},
    {"search_regex=%5Bz-a]", ERR_INVALID_META_SYNTAX, "out of order"},
    {"search_regex=*", ERR_INVALID_META_SYNTAX, "offset 0"},
    {"search_regex=a%5CC", ERR_INVALID_META_SYNTAX, "\\C"},
    {"search_regex=a,Name,XX", ERR_INVALID_META_SYNTAX, "'search_regex'"},
    {"search=good,CI&search_regex=(", ERR_INVALID_META_SYNTAX, "'('"},
};

START_TEST(refusals)
{
    struct meta m;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        ck_fails(parse(refused[i].given, PERSON, &m), refused[i].code, refused[i].message);
}
END_TEST

/* `count` times the item, separated. */
static const char *repeated(const char *before, const char *item, char separator, size_t count)
{
    struct buf b;
    const char *text;

    buf_init(&b, BUF_NO_CAP);
    buf_add_str(&b, before);
    for (size_t i = 0; i < count; i++)
        buf_printf(&b, "%.*s%s%zu", i > 0, &separator, item, i);
    text = arena_copy(&arena, buf_span(&b)).p;
    buf_done(&b);
    return text;
}

START_TEST(lists_are_bounded)
{
    static const struct {
        const char *before, *item;
        char separator;
    } lists[] = {
        {"select=", "m", ','},       {"add=", "m", ','},        {"order_asc=", "m", ','},
        {"safepost=", "m", ','},     {"", "order_desc=m", '&'}, {"", "add=m", '&'},
        {"", "search_regex=m", '&'},
    };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const char *most =
            repeated(lists[i].before, lists[i].item, lists[i].separator, META_ITEMS_MOST);
        const char *more =
            repeated(lists[i].before, lists[i].item, lists[i].separator, META_ITEMS_MOST + 1);
        struct meta m;

        ck_ok(parse(most, DYNAMIC, &m));
        meta_done(&m);
        ck_fails(parse(more, DYNAMIC, &m), ERR_INVALID_META_SYNTAX, "more than 100 items");
    }
}
END_TEST

START_TEST(plain_ones)
{
    static const struct {
        const char *given;
        bool is_plain;
    } cases[] = {
        {"_", true},
        {"limit=5&offset=-2", true},
        {"unsafe=true", true},
        {"safepost=x", true},
        {"distinct=false", true},
        {"distinct=true", false},
        {"order_asc=x", false},
        {"select=x", false},
        {"add=x.Length", false},
        {"rename=a->b", false},
        {"search=x", false},
        {"search_regex=x", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct meta m;

        ck_ok(parse(cases[i].given, DYNAMIC, &m));
        ck_assert_msg(meta_is_plain(&m) == cases[i].is_plain, "%s", cases[i].given);
        meta_done(&m);
    }
}
END_TEST

START_TEST(done_with_nothing)
{
    struct meta m = {.search_count = 0};

    meta_done(NULL);
    meta_done(&m);
}
END_TEST

START_TEST(the_table)
{
    ck_assert_uint_eq(meta_count, 12);
    for (size_t i = 0; i < meta_count; i++) {
        ck_assert_uint_gt(meta_table[i].name.n, 0);
        ck_assert_uint_gt(strlen(meta_table[i].value), 0);
        ck_assert_uint_gt(strlen(meta_table[i].meaning), 0);
    }
    ck_span_eq(meta_table[0].name, "unsafe");
    ck_span_eq(meta_table[10].name, "search_regex");
}
END_TEST

/* ---- searching ---- */

static const struct {
    const char *search, *text;
    bool holds;
} searched[] = {
    {"search=ell", "Hello", true},
    {"search=ELL", "Hello", true},
    {"search=ELL,CS", "Hello", false},
    {"search=hello", "", false},
    {"search=ELL,CI", "Hello", true},
    {"search=%C3%84RGER,CI", "\xc3\xa4rger", true},
    {"search=a.c,CI", "abc", false},
    {"search=a.c,CI", "xA.Cx", true},
    {"search=.", "abc", false},
    {"search=%C3%A9", "caf\xc3\xa9", true},
    {"search='a,b'", "1a,b2", true},
    {"search_regex=a.c", "xabcx", true},
    {"search_regex=a.c", "xABCx", true},
    {"search_regex=a.c,CS", "xABCx", false},
    {"search_regex=a.c,CI", "xABCx", true},
    {"search_regex=^a.c$", "xabcx", false},
    {"search_regex=^a.c$",
     "a\xe2\x82\xac"
     "c",
     true},
    {"search_regex='^\\d{2,3}$'", "123", true},
    {"search_regex='^\\d{2,3}$'", "1234", false},
    {"search_regex=(x|y)z$", "..yz", true},
    {"search_regex=^$", "", true},
    {"search_regex=\\p{Lu}", "aB", true},
    {"search_regex=(a)\\1", "aa", true},
};

START_TEST(searching)
{
    for (size_t i = 0; i < ARRAY_LEN(searched); i++) {
        struct meta m;
        bool holds = !searched[i].holds;

        ck_ok(parse(searched[i].search, DYNAMIC, &m));
        ck_ok(meta_search_holds(&m.searches[0], span_str(searched[i].text), &holds));
        ck_assert_msg(holds == searched[i].holds, "%s in %s", searched[i].search, searched[i].text);
        meta_done(&m);
    }
}
END_TEST

/* 'a's with something at the end that does not match. */
static struct span long_text(size_t n)
{
    char *text = arena_alloc(&arena, n);

    memset(text, 'a', n);
    text[n - 1] = '-';
    return span_of(text, n);
}

/* Each ends, with an error or an answer; past its budget of processor time, without. */
START_TEST(hopeless_expressions_end)
{
    static const struct {
        const char *search;
        size_t n;
        bool gives_up;
    } cases[] = {
        {"search_regex=(a+)+$", 30, true},
        {"search_regex=(a+)+$", 100000, true},
        {"search_regex=(a*)*b", 40, false},
        {"search_regex=(.*)*x-", 5000, true},
        {"search_regex=(a|aa)+$", 60, true},
        {"search_regex=^(a?a)*$", 20000, true},
        {"search_regex=\\w++%23", 1000000, false},
        {"search_regex=\\w++[^-]", 100000, true},
        {"search_regex=.*.*.*=", 2000, false},
        {"search_regex=(?R)%3Fa(?R)b", 1000, false},
        {"search=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 1000000, false},
        {"search=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab,CI", 100000, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct meta m;
        bool holds = true;
        struct budget budget;
        struct err *e, *stopped;

        ck_ok(parse(cases[i].search, DYNAMIC, &m));
        budget_init(&budget, BUDGET_NS);
        budget_enter(&budget);
        e = meta_search_holds(&m.searches[0], long_text(cases[i].n), &holds);
        stopped = budget_check();
        budget_leave(&budget);
        ck_assert(stopped == NULL || err_code(stopped) == ERR_REQUEST_TOO_COSTLY);
        ck_assert_msg((e != NULL || stopped != NULL) == cases[i].gives_up, "%s: %.*s",
                      cases[i].search, e != NULL ? (int)err_message(e).n : 0,
                      e != NULL ? err_message(e).p : "");
        ck_assert(e == NULL || err_code(e) == ERR_INVALID_META_SYNTAX);
        ck_assert(e != NULL || stopped != NULL || !holds);
        err_free(e);
        err_free(stopped);
        meta_done(&m);
    }
}
END_TEST

/* Many texts, each of which is bearable. */
START_TEST(the_budget_is_for_all_texts)
{
    static const char slow[] = "search_regex=\\w++[^-]";
    struct span text = long_text(1000);
    struct meta m;
    struct budget budget;
    struct err *e = NULL;
    size_t texts = 0;
    bool holds;

    ck_ok(parse(slow, DYNAMIC, &m));
    budget_init(&budget, BUDGET_NS);
    budget_enter(&budget);
    while (e == NULL && budget_ask(1)) {
        e = meta_search_holds(&m.searches[0], text, &holds);
        texts++;
    }
    ck_assert_ptr_null(e);
    e = budget_check();
    budget_leave(&budget);
    ck_assert_int_eq(err_code(e), ERR_REQUEST_TOO_COSTLY);
    ck_assert_uint_gt(texts, 1);
    err_free(e);
    meta_done(&m);
}
END_TEST

/* What is cheap goes on without end. */
START_TEST(reading_much_is_no_work)
{
    static const char quick[] = "search_regex=b+=";
    struct span text = long_text(200000);
    struct meta m;
    bool holds;

    ck_ok(parse(quick, DYNAMIC, &m));
    for (int i = 0; i < 500; i++)
        ck_ok(meta_search_holds(&m.searches[0], text, &holds));
    meta_done(&m);
}
END_TEST

START_TEST(long_expressions)
{
    const char *most = repeated("search_regex=", "", 'x', 350);
    struct meta m;

    ck_fails(parse(most, DYNAMIC, &m), ERR_INVALID_META_SYNTAX, "at most 1000 are allowed");
    ck_fails(parse("search_regex=((a{1000}){1000}){1000}", DYNAMIC, &m), ERR_INVALID_META_SYNTAX,
             "too large");
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
    tcase_add_test(tc, lists_are_bounded);
    tcase_add_test(tc, plain_ones);
    tcase_add_test(tc, done_with_nothing);
    tcase_add_test(tc, the_table);
    tcase_add_test(tc, searching);
    tcase_add_test(tc, hopeless_expressions_end);
    tcase_add_test(tc, the_budget_is_for_all_texts);
    tcase_add_test(tc, reading_much_is_no_work);
    tcase_add_test(tc, long_expressions);
}
