/* Parsing walks the shape step by step and knows at each step what it stands on; beyond what is
 * declared anything goes. Reading walks a document the same way. */
#include "query/path.h"

#include "base/budget.h"
#include "base/datetime.h"
#include "base/text.h"
#include "json/decimal.h"
#include "json/json.h"

#include <string.h>

/* ---- parts ---- */

static const struct span part_names[] = {
    [PATH_LENGTH] = SPAN_INIT("Length"), [PATH_YEAR] = SPAN_INIT("Year"),
    [PATH_MONTH] = SPAN_INIT("Month"),   [PATH_DAY] = SPAN_INIT("Day"),
    [PATH_HOUR] = SPAN_INIT("Hour"),     [PATH_MINUTE] = SPAN_INIT("Minute"),
    [PATH_SECOND] = SPAN_INIT("Second"), [PATH_DAY_OF_WEEK] = SPAN_INIT("DayOfWeek"),
};

/* PATH_VALUE when there is none of that name. */
static enum path_part find_part(struct span name)
{
    for (enum path_part part = PATH_LENGTH; part < ARRAY_LEN(part_names); part++)
        if (span_ieq(part_names[part], name))
            return part;
    return PATH_VALUE;
}

static bool type_has_part(enum value_type type, enum path_part part)
{
    if (part == PATH_LENGTH)
        return type == TYPE_STRING || type == TYPE_ARRAY;
    return part != PATH_VALUE && type == TYPE_DATETIME;
}

/* ---- parsing ---- */

/* What the steps so far lead to. */
struct place {
    enum value_type type;
    const struct shape *members; /* of an object, or of an array's elements; NULL: any */
    const struct property *property;
};

struct parser {
    struct arena *arena;
    char *text; /* becomes the declared spelling, which is as long as the given one */
    struct path path;
    struct place at;
    struct span done; /* the steps before this one */
    bool is_last;     /* this step is the last */
    bool is_quoted;   /* and this one a member's name, whatever it holds */
    bool takes_any;   /* `*` is any element */
};

static uint32_t index_of(struct span name)
{
    uint64_t index;

    return span_to_u64(name, &index) && index < PATH_ANY_INDEX ? (uint32_t)index : PATH_NO_INDEX;
}

static void add_step(struct parser *s, struct span name)
{
    size_t bytes = s->path.step_count * sizeof(*s->path.steps);

    s->path.steps = arena_grow(s->arena, s->path.steps, bytes, bytes + sizeof(*s->path.steps));
    s->path.steps[s->path.step_count++] =
        (struct path_step){name, s->is_quoted ? PATH_NO_INDEX : index_of(name)};
}

static void set_part(struct parser *s, struct span name, enum path_part part, bool if_missing)
{
    s->path.part = part;
    s->path.part_name = name;
    s->path.part_if_missing = if_missing;
}

static void spell(struct parser *s, struct span name, struct span declared)
{
    memcpy(s->text + (name.p - s->text), declared.p, declared.n);
}

static bool take_declared(struct parser *s, struct span name)
{
    const struct property *property;

    if (s->at.type != TYPE_OBJECT || s->at.members == NULL)
        return false;
    property = shape_find(s->at.members, name);
    if (property == NULL)
        return false;
    if ((property->flags & PROPERTY_HIDDEN) != 0) {
        if (s->path.step_count > 0)
            return false;
        s->path.hidden = property;
    }
    spell(s, name, property->name);
    add_step(s, name);
    s->at = (struct place){property->type, property->members, property};
    return true;
}

static bool take_undeclared(struct parser *s, struct span name)
{
    bool may_be_part = s->is_last && !s->is_quoted && s->path.step_count > 0;
    enum path_part part = may_be_part ? find_part(name) : PATH_VALUE;
    bool allows_any = s->at.members == NULL || s->at.members->dynamic;

    if (s->at.type != TYPE_ANY && (s->at.type != TYPE_OBJECT || !allows_any))
        return false;
    if (part == PATH_VALUE)
        add_step(s, name);
    else
        set_part(s, name, part, true);
    s->at = (struct place){.type = TYPE_ANY};
    return true;
}

/* From an array to an element. One of a declared type has its property's allowed values. */
static void enter_element(struct parser *s)
{
    const struct property *array = s->at.property;

    s->at.type = s->at.members != NULL ? TYPE_OBJECT : TYPE_ANY;
    s->at.property = NULL;
    if (array == NULL || array->type != TYPE_ARRAY || array->elements == TYPE_ANY)
        return;
    s->at.type = array->elements;
    s->at.property = array;
}

static bool take_element(struct parser *s, struct span name)
{
    uint64_t index;

    if (s->at.type != TYPE_ARRAY || s->is_quoted || !span_to_u64(name, &index))
        return false;
    add_step(s, name);
    enter_element(s);
    return true;
}

static bool take_any(struct parser *s, struct span name)
{
    if (!s->takes_any || s->is_quoted || !span_eq(name, SPAN("*")) ||
        (s->at.type != TYPE_ARRAY && s->at.type != TYPE_ANY))
        return false;
    add_step(s, name);
    s->path.steps[s->path.step_count - 1].index = PATH_ANY_INDEX;
    s->path.has_any = true;
    enter_element(s);
    return true;
}

static bool take_part(struct parser *s, struct span name)
{
    enum path_part part = find_part(name);

    if (!s->is_last || s->is_quoted || !type_has_part(s->at.type, part))
        return false;
    spell(s, name, part_names[part]);
    set_part(s, name, part, false);
    s->at = (struct place){.type = TYPE_INTEGER};
    return true;
}

static struct span nearest_name(const struct place *at, struct span name)
{
    struct span nearest;

    if (at->type == TYPE_OBJECT)
        return shape_nearest(at->members, name);
    nearest = text_nearest(name, part_names, ARRAY_LEN(part_names));
    return type_has_part(at->type, find_part(nearest)) ? nearest : span_of(NULL, 0);
}

static struct err *unknown(const struct parser *s, struct span name)
{
    struct span nearest = nearest_name(&s->at, name), owner = s->done;

    if (owner.n == 0)
        owner = s->at.members->name.n > 0 ? s->at.members->name : SPAN("the resource");
    if (nearest.n == 0 || span_ieq(nearest, name)) /* the name of a part, where none can be */
        return ERR(ERR_UNKNOWN_PROPERTY, "There is no property '%.*s' in %.*s.", SPAN_FMT(name),
                   SPAN_FMT(owner));
    return ERR(ERR_UNKNOWN_PROPERTY, "There is no property '%.*s' in %.*s. Did you mean '%.*s'?",
               SPAN_FMT(name), SPAN_FMT(owner), SPAN_FMT(nearest));
}

static struct err *take_step(struct parser *s, struct span name)
{
    if (name.n == 0 && !s->is_quoted)
        return ERR(ERR_INVALID_CONDITION_SYNTAX, "There is an empty step in the path '%.*s'.",
                   SPAN_FMT(s->path.text));
    if (s->path.step_count == PATH_STEPS_MOST)
        return ERR(ERR_INVALID_CONDITION_SYNTAX, "The path '%.*s' has more than %d steps.",
                   SPAN_FMT(s->path.text), PATH_STEPS_MOST);
    if (take_any(s, name) || take_declared(s, name) || take_undeclared(s, name) ||
        take_element(s, name) || take_part(s, name))
        return NULL;
    return unknown(s, name);
}

/* A declared member and nothing more, which most paths are. */
static bool parse_member(struct span text, const struct shape *shape, struct arena *a,
                         struct path *out_path)
{
    const struct property *property = shape == NULL ? NULL : shape_find(shape, text);
    struct path_step *step;

    if (property == NULL)
        return false;
    step = arena_alloc(a, sizeof(*step));
    *step = (struct path_step){property->name, index_of(text)};
    *out_path = (struct path){.text = property->name,
                              .steps = step,
                              .step_count = 1,
                              .type = property->type,
                              .property = property,
                              .hidden = (property->flags & PROPERTY_HIDDEN) != 0 ? property : NULL};
    return true;
}

/* Behind the quoted step that begins there, which a dot or the end of the item follows, or a `->`;
 * else there. `unclosed` has a quote that nothing behind ends. */
static size_t skip_quoted(struct span text, size_t start, char unclosed[2])
{
    char quote = (char)(start < text.n ? text.p[start] : '\0');
    bool is_double = quote == '"';

    if ((quote != '\'' && quote != '"') || unclosed[is_double] == quote)
        return start;
    for (size_t at = start + 1; (at = span_find_char(text, quote, at)) < text.n; at++)
        if (at + 1 == text.n || span_find_char(SPAN(".,- "), text.p[at + 1], 0) < 4)
            return at + 1;
    unclosed[is_double] = quote;
    return start;
}

struct span path_split_list(struct span *rest)
{
    struct span text = *rest;
    char unclosed[2] = {0, 0};
    size_t at = 0;

    while (at < text.n && text.p[at] == ' ')
        at++;
    for (at = skip_quoted(text, at, unclosed); at < text.n && text.p[at] != ','; at++)
        if (text.p[at] == '.')
            at = skip_quoted(text, at + 1, unclosed) - 1;
    *rest = at < text.n ? span_sub(text, at + 1, text.n) : span_of(NULL, 0);
    return span_sub(text, 0, at);
}

/* Where the quotes end that the text begins with: a dot follows, or nothing. 0: there are none. */
static size_t quoted_end(struct span text)
{
    char quote;

    if (text.n == 0)
        return 0;
    quote = text.p[0];
    if (quote != '\'' && quote != '"')
        return 0;
    for (size_t at = 1; (at = span_find_char(text, quote, at)) < text.n; at++)
        if (at + 1 == text.n || text.p[at + 1] == '.')
            return at + 1;
    return 0;
}

static struct span split_step(struct parser *s, struct span *rest)
{
    size_t end = quoted_end(*rest);
    struct span step;

    s->is_quoted = end > 0;
    if (!s->is_quoted)
        return span_split(rest, '.');
    step = span_sub(*rest, 1, end - 1);
    *rest = end < rest->n ? span_sub(*rest, end + 1, rest->n) : span_of(NULL, 0);
    return step;
}

static struct err *parse(struct span text, const struct shape *shape, bool takes_any,
                         struct arena *a, struct path *out_path)
{
    struct parser s = {a, .at = {TYPE_OBJECT, shape, NULL}, .takes_any = takes_any};
    struct span rest;

    if (parse_member(text, shape, a, out_path))
        return NULL;
    s.text = arena_alloc(a, text.n);
    rest = span_of(s.text, text.n);
    if (text.n > 0)
        memcpy(s.text, text.p, text.n);
    s.path.text = rest;
    do {
        struct span name = split_step(&s, &rest);

        s.is_last = rest.p == NULL;
        TRY(take_step(&s, name));
        s.done = span_of(s.text, (size_t)(name.p + name.n - s.text));
    } while (!s.is_last);
    s.path.type = s.at.type;
    s.path.property = s.at.property;
    *out_path = s.path;
    return NULL;
}

struct err *path_parse(struct span text, const struct shape *shape, struct arena *a,
                       struct path *out_path)
{
    return parse(text, shape, false, a, out_path);
}

struct err *path_parse_key(struct span text, const struct shape *shape, struct arena *a,
                           struct path *out_path)
{
    return parse(text, shape, true, a, out_path);
}

bool path_is_hidden(const struct path *path)
{
    return path->hidden != NULL;
}

bool path_is_member(const struct path *path)
{
    return path->step_count == 1 && path->part == PATH_VALUE && path->hidden == NULL;
}

/* A new name that a member was given is not in quotes. */
struct span path_shown_name(const struct path *path)
{
    struct span text = path->text;

    if (path_is_member(path) && text.n == path->steps[0].name.n + 2 && quoted_end(text) == text.n &&
        span_eq(span_sub(text, 1, text.n - 1), path->steps[0].name))
        return path->steps[0].name;
    return text;
}

void path_copy(const struct path *path, struct arena *a, struct path *out_copy)
{
    struct path copy = *path;

    copy.text = arena_copy(a, path->text);
    copy.part_name = arena_copy(a, path->part_name);
    copy.steps = ARENA_ARRAY(a, struct path_step, path->step_count);
    for (size_t i = 0; i < path->step_count; i++)
        copy.steps[i] =
            (struct path_step){arena_copy(a, path->steps[i].name), path->steps[i].index};
    *out_copy = copy;
}

/* ---- reading ---- */

static const struct json_value absent = {NULL, NULL};

static struct json_value take_into(const struct path_step *step, struct json_value v)
{
    if (json_type(v) == JSON_OBJECT)
        return json_member_fold(v, step->name);
    if (json_type(v) == JSON_ARRAY && step->index != PATH_NO_INDEX)
        return json_at(v, step->index);
    return absent;
}

static struct json_value walk(const struct path *path, struct json_value v)
{
    for (size_t i = 0; i < path->step_count && json_exists(v); i++)
        v = take_into(&path->steps[i], v);
    return v;
}

static int64_t part_of_datetime(enum path_part part, struct instant at)
{
    struct datetime_parts parts;

    datetime_parts(at, &parts);
    return (const int[]){
        [PATH_YEAR] = parts.year,
        [PATH_MONTH] = parts.month,
        [PATH_DAY] = parts.day,
        [PATH_HOUR] = parts.hour,
        [PATH_MINUTE] = parts.minute,
        [PATH_SECOND] = parts.second,
        [PATH_DAY_OF_WEEK] = parts.day_of_week,
    }[part];
}

/* False when the value has no such part. */
static bool compute_part(enum path_part part, struct json_value v, struct arena *a,
                         int64_t *out_number)
{
    struct instant at;
    struct span text;

    if (part == PATH_LENGTH && json_type(v) == JSON_ARRAY) {
        *out_number = json_count(v);
        return true;
    }
    if (json_type(v) != JSON_STRING)
        return false;
    text = json_string(v, a);
    budget_spend(text.n / 4);
    if (part == PATH_LENGTH) {
        *out_number = (int64_t)text_scalar_count(text);
        return true;
    }
    if (!datetime_parse(text, &at))
        return false;
    *out_number = part_of_datetime(part, at);
    return true;
}

/* What a path yields before anything is converted: a value of the document, or a number. */
struct found {
    struct json_value value;
    bool is_computed;
    int64_t number;
};

/* `at` is where the steps lead. */
static struct found find(const struct path *path, struct json_value at, struct arena *a)
{
    struct found found = {.value = at};

    if (path->part == PATH_VALUE)
        return found;
    if (path->part_if_missing) {
        struct json_value member = json_member_fold(found.value, path->part_name);

        if (json_exists(member))
            return (struct found){.value = member};
    }
    found.is_computed = compute_part(path->part, found.value, a, &found.number);
    found.value = absent;
    return found;
}

static struct value read_at(const struct path *path, struct json_value at, struct arena *a)
{
    static const enum value_kind kinds[] = {
        [JSON_NULL] = VALUE_NULL,     [JSON_BOOLEAN] = VALUE_BOOLEAN, [JSON_NUMBER] = VALUE_NUMBER,
        [JSON_STRING] = VALUE_STRING, [JSON_OBJECT] = VALUE_OBJECT,   [JSON_ARRAY] = VALUE_ARRAY,
    };
    struct found found = find(path, at, a);
    struct value value = {.kind = kinds[json_type(found.value)], .text = json_text(found.value)};

    if (found.is_computed)
        return (struct value){.kind = VALUE_NUMBER,
                              .text = arena_printf(a, "%lld", (long long)found.number)};
    if (value.kind == VALUE_STRING)
        value.text = json_string(found.value, a);
    value.boolean = json_is_true(found.value);
    return value;
}

struct value path_read_member(const struct path *path, struct json_value member, struct arena *a)
{
    return read_at(path, member, a);
}

struct value path_read(const struct path *path, struct json_value root, struct arena *a)
{
    return read_at(path, walk(path, root), a);
}

/* One path being followed to all that it yields. */
struct visit {
    const struct path *path;
    struct arena *arena;
    path_visit_fn *visit;
    void *context;
};

/* As deep as there are steps. */
static bool visit_from(const struct visit *v, size_t step, struct json_value at)
{
    const struct path *path = v->path;
    struct value value;

    for (; step < path->step_count && json_exists(at); step++) {
        if (path->steps[step].index != PATH_ANY_INDEX) {
            at = take_into(&path->steps[step], at);
            continue;
        }
        if (json_type(at) != JSON_ARRAY) {
            at = absent;
            break;
        }
        for (struct json_value e = json_first(at); json_exists(e) && budget_ask(32);
             e = json_next(at, e))
            if (visit_from(v, step + 1, e))
                return true;
        return false;
    }
    value = read_at(path, at, v->arena);
    return v->visit(v->context, &value);
}

bool path_each(const struct path *path, struct json_value root, struct arena *a,
               path_visit_fn *visit, void *context)
{
    const struct visit v = {path, a, visit, context};

    return visit_from(&v, 0, root);
}

void path_add_json(const struct path *path, struct json_value root, struct arena *a, struct buf *b)
{
    struct found found = find(path, walk(path, root), a);

    if (found.is_computed)
        buf_add_i64(b, found.number);
    else if (json_exists(found.value))
        buf_add(b, json_text(found.value));
    else
        buf_add_str(b, "null");
}

struct listing {
    struct buf *b;
    size_t left;
};

static bool add_to_list(void *context, const struct value *value)
{
    struct listing *l = context;

    json_add_comma(l->b);
    if (value->kind == VALUE_STRING)
        json_add_string(l->b, value->text);
    else
        buf_add(l->b, value->kind == VALUE_NULL ? SPAN("null") : value->text);
    return --l->left == 0;
}

void path_add_found(const struct path *path, struct json_value root, size_t most, struct arena *a,
                    struct buf *b)
{
    struct listing listing = {.b = b, .left = most};

    if (!path->has_any) {
        path_add_json(path, root, a, b);
        return;
    }
    buf_add_char(b, '[');
    path_each(path, root, a, add_to_list, &listing);
    buf_add_char(b, ']');
}
