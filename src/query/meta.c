/* Meta-conditions are read in three passes over what was given: `add`, then `rename`, then the
 * rest, because each knows the names that those before it made. */
#include "query/meta.h"

#include "base/text.h"
#include "meta_search.h"
#include "query/meta_items.h"
#include "query/uri.h"

enum pass { PASS_ADD, PASS_RENAME, PASS_REST, PASSES };

struct parser {
    const struct shape *shape;
    struct arena *arena;
    struct meta meta;
    struct span name; /* of the meta-condition being read */
};

typedef struct err *setter_fn(struct parser *s, struct span value);

static setter_fn set_unsafe, set_limit, set_offset, set_distinct, set_search, set_search_regex,
    set_order_asc, set_order_desc, set_select, set_add, set_rename, set_safepost;

/* Does it come once, and is it taken as a whole or item by item? */
enum { ONCE = 0, REPEATS = 1, LIST = 2 };

/* name, value, pass, flags, meaning */
#define METAS(X)                                                                                   \
    X(unsafe, "boolean", PASS_REST, ONCE, "lets PATCH and DELETE touch several entities")          \
    X(limit, "integer", PASS_REST, ONCE, "at most n entities; 0: none, negative: no limit")        \
    X(offset, "integer", PASS_REST, ONCE, "skip n entities; negative: only the last n")            \
    X(order_asc, "path[,path]", PASS_REST, LIST | REPEATS, "sort ascending, null first; stable")   \
    X(order_desc, "path[,path]", PASS_REST, LIST | REPEATS, "sort descending, null last; stable")  \
    X(select, "path[,path]", PASS_REST, LIST, "only these members, in this order")                 \
    X(add, "path[,path]", PASS_ADD, LIST | REPEATS, "append computed or hidden members")           \
    X(rename, "path->New[,path->New]", PASS_RENAME, LIST | REPEATS, "give members other names")    \
    X(distinct, "boolean", PASS_REST, ONCE, "drop entities that are equal as JSON values")         \
    X(search, "text[,property][,CS or CI]", PASS_REST, REPEATS,                                    \
      "only entities whose JSON text, or one property, holds the text; CI: in any case, the "      \
      "default")                                                                                   \
    X(search_regex, "expression[,property][,CS or CI]", PASS_REST, REPEATS,                        \
      "the same with a regular expression (PCRE2)")                                                \
    X(safepost, "path[,path]", PASS_REST, LIST,                                                    \
      "POST updates the entity that is equal on these paths, or inserts")

const struct meta_info meta_table[] = {
#define META_AS_INFO(name, value, pass, flags, meaning) {SPAN_INIT(#name), value, meaning},
    METAS(META_AS_INFO)
#undef META_AS_INFO
};
const size_t meta_count = ARRAY_LEN(meta_table);

static const struct meta_rule {
    setter_fn *set;
    enum pass pass;
    unsigned flags;
} rules[] = {
#define META_AS_RULE(name, value, pass, flags, meaning) {set_##name, pass, flags},
    METAS(META_AS_RULE)
#undef META_AS_RULE
};

/* ---- simple values ---- */

static struct err *wrong_type(const struct parser *s, const char *type, struct span value)
{
    return ERR(ERR_INVALID_META_VALUE, "The value of '%.*s' is %s, '%.*s' is not.",
               SPAN_FMT(s->name), type, SPAN_FMT(value));
}

static struct err *read_boolean(const struct parser *s, struct span value, bool *out_value)
{
    bool is_true = span_ieq(value, SPAN("true"));

    if (!is_true && !span_ieq(value, SPAN("false")))
        return wrong_type(s, "true or false", value);
    *out_value = is_true;
    return NULL;
}

static struct err *read_integer(const struct parser *s, struct span value, int64_t *out_value)
{
    return span_to_i64(value, out_value) ? NULL : wrong_type(s, "an integer of 64 bits", value);
}

static struct err *set_unsafe(struct parser *s, struct span value)
{
    return read_boolean(s, value, &s->meta.is_unsafe);
}

static struct err *set_distinct(struct parser *s, struct span value)
{
    return read_boolean(s, value, &s->meta.distinct);
}

static struct err *set_limit(struct parser *s, struct span value)
{
    s->meta.has_limit = true;
    return read_integer(s, value, &s->meta.limit);
}

static struct err *set_offset(struct parser *s, struct span value)
{
    return read_integer(s, value, &s->meta.offset);
}

/* ---- lists ---- */

static struct err *each_item(struct parser *s, struct span value, setter_fn *take)
{
    struct span rest = value;

    do {
        struct span item = span_trim(path_split_list(&rest));

        if (item.n == 0)
            return ERR(ERR_INVALID_META_SYNTAX,
                       "There is an empty item in the value of '%.*s': '%.*s'.", SPAN_FMT(s->name),
                       SPAN_FMT(value));
        TRY(take(s, item));
    } while (rest.p != NULL);
    return NULL;
}

static struct err *check_room(const struct parser *s, size_t count)
{
    if (count < META_ITEMS_MOST)
        return NULL;
    return ERR(ERR_INVALID_META_SYNTAX, "'%.*s' has more than %d items.", SPAN_FMT(s->name),
               META_ITEMS_MOST);
}

/* An array in the arena, with room for one more item. */
#define GROWN(s, items, count)                                                                     \
    arena_grow((s)->arena, (items), (count) * sizeof(*(items)), ((count) + 1) * sizeof(*(items)))

static bool leads_to_same(const struct path *a, const struct path *b)
{
    if (a->step_count != b->step_count || a->part != b->part)
        return false;
    for (size_t i = 0; i < a->step_count; i++)
        if (!span_ieq(a->steps[i].name, b->steps[i].name))
            return false;
    return true;
}

/* Unless the same is there already. */
static struct err *push_path(struct parser *s, struct path **paths, size_t *count,
                             const struct path *path)
{
    for (size_t i = 0; i < *count; i++)
        if (span_ieq(path_shown_name(&(*paths)[i]), path_shown_name(path)) &&
            leads_to_same(&(*paths)[i], path))
            return NULL;
    TRY(check_room(s, *count));
    *paths = GROWN(s, *paths, *count);
    (*paths)[(*count)++] = *path;
    return NULL;
}

/* A member of the result, beside which no other may be called the same. */
static struct err *push_member(struct parser *s, struct path **paths, size_t *count,
                               const struct path *path)
{
    struct span name = path_shown_name(path);

    for (size_t i = 0; i < *count; i++)
        if (span_eq(path_shown_name(&(*paths)[i]), name) && !leads_to_same(&(*paths)[i], path))
            return ERR(ERR_INVALID_META_SYNTAX,
                       "'%.*s' names two members that would both be called '%.*s'.",
                       SPAN_FMT(s->name), SPAN_FMT(name));
    return push_path(s, paths, count, path);
}

/* ---- paths ---- */

/* A path into the original entity. */
static struct err *parse_path(struct parser *s, struct span text, struct path *out_path)
{
    struct err *e = path_parse(text, s->shape, s->arena, out_path), *as_meta;

    if (e == NULL || err_code(e) != ERR_INVALID_CONDITION_SYNTAX)
        return e;
    as_meta = ERR(ERR_INVALID_META_SYNTAX, "%.*s", SPAN_FMT(err_message(e)));
    err_free(e);
    return as_meta;
}

static bool is_at_or_below(struct span text, struct span name)
{
    return span_starts(text, name) && (text.n == name.n || text.p[name.n] == '.');
}

static struct err *parse_renamed(struct parser *s, struct span text, const struct meta_rename *r,
                                 struct path *out_path)
{
    struct span below = span_sub(text, r->to.n, text.n);
    struct span original =
        arena_printf(s->arena, "%.*s%.*s", SPAN_FMT(r->from.text), SPAN_FMT(below));

    TRY(parse_path(s, original, out_path));
    out_path->text = text;
    return NULL;
}

/* The rename of what an `add` yields, or NULL. */
static const struct meta_rename *find_rename(const struct meta *m, const struct path *added)
{
    for (size_t i = 0; i < m->rename_count; i++)
        if (leads_to_same(&m->renames[i].from, added))
            return &m->renames[i];
    return NULL;
}

static bool is_added(const struct parser *s, const struct path *path)
{
    for (size_t i = 0; i < s->meta.add_count; i++)
        if (leads_to_same(&s->meta.adds[i], path))
            return true;
    return false;
}

/* Does `path` lead to what `from` does, or to something within? */
static bool is_within(const struct path *path, const struct path *from)
{
    if (from->part != PATH_VALUE)
        return leads_to_same(path, from);
    if (path->step_count < from->step_count)
        return false;
    for (size_t i = 0; i < from->step_count; i++)
        if (!span_ieq(path->steps[i].name, from->steps[i].name))
            return false;
    return true;
}

/* What took the path's member away, or NULL. What was added by itself stays. */
static const struct meta_rename *find_taker(const struct parser *s, const struct path *path)
{
    const struct meta *m = &s->meta;

    if (is_added(s, path))
        return find_rename(m, path);
    for (size_t i = 0; i < m->rename_count; i++)
        if (is_within(path, &m->renames[i].from))
            return &m->renames[i];
    return NULL;
}

/* A path into the result. New names are case-sensitive, and may take the place of another. */
static struct err *parse_result_path(struct parser *s, struct span text, struct path *out_path)
{
    const struct meta *m = &s->meta;
    const struct meta_rename *taker;

    for (size_t i = 0; i < m->rename_count; i++)
        if (is_at_or_below(text, m->renames[i].to))
            return parse_renamed(s, text, &m->renames[i], out_path);
    TRY(parse_path(s, text, out_path));
    taker = find_taker(s, out_path);
    if (taker != NULL)
        return ERR(ERR_INVALID_META_SYNTAX, "'%.*s' names '%.*s', which is renamed to '%.*s'.",
                   SPAN_FMT(s->name), SPAN_FMT(text), SPAN_FMT(taker->to));
    return NULL;
}

/* What a POST brings has nothing computed. */
static struct err *refuse_hidden(const struct parser *s, const struct path *path)
{
    if (!path_is_hidden(path))
        return NULL;
    return ERR(ERR_UNKNOWN_PROPERTY, "'%.*s' cannot use '%.*s', which is computed.",
               SPAN_FMT(s->name), SPAN_FMT(path->text));
}

/* ---- members of the result ---- */

static struct err *set_add(struct parser *s, struct span item)
{
    struct path path;

    TRY(parse_path(s, item, &path));
    return push_member(s, &s->meta.adds, &s->meta.add_count, &path);
}

static struct err *set_select(struct parser *s, struct span item)
{
    struct path path;

    TRY(parse_result_path(s, item, &path));
    return push_member(s, &s->meta.selects, &s->meta.select_count, &path);
}

static struct err *set_safepost(struct parser *s, struct span item)
{
    struct path path;

    TRY(parse_path(s, item, &path));
    TRY(refuse_hidden(s, &path));
    return push_path(s, &s->meta.safeposts, &s->meta.safepost_count, &path);
}

/* ---- rename ---- */

static struct err *check_rename(const struct parser *s, const struct meta_rename *rename)
{
    for (size_t i = 0; i < s->meta.rename_count; i++) {
        const struct meta_rename *other = &s->meta.renames[i];

        if (leads_to_same(&rename->from, &other->from))
            return ERR(ERR_INVALID_META_SYNTAX, "'%.*s' is renamed twice.",
                       SPAN_FMT(rename->from.text));
        if (span_eq(rename->to, other->to))
            return ERR(ERR_INVALID_META_SYNTAX, "Two properties are renamed to '%.*s'.",
                       SPAN_FMT(rename->to));
    }
    return check_room(s, s->meta.rename_count);
}

static struct err *set_rename(struct parser *s, struct span item)
{
    size_t arrow = span_find(item, SPAN("->"));
    struct meta_rename rename = {.to = {NULL, 0}};

    if (arrow != SIZE_MAX)
        rename.to = span_trim(span_sub(item, arrow + 2, item.n));
    if (rename.to.n == 0)
        return ERR(ERR_INVALID_META_SYNTAX, "A rename has the form path->New, '%.*s' has not.",
                   SPAN_FMT(item));
    TRY(parse_path(s, span_trim(span_sub(item, 0, arrow)), &rename.from));
    TRY(check_rename(s, &rename));
    s->meta.renames = GROWN(s, s->meta.renames, s->meta.rename_count);
    s->meta.renames[s->meta.rename_count++] = rename;
    return NULL;
}

/* Does another member that is shown have this name? Of a dynamic resource that shows only when an
 * entity is looked at. */
static bool is_taken(const struct parser *s, struct span name)
{
    const struct property *p = s->shape == NULL ? NULL : shape_find(s->shape, name);
    bool is_shown = p != NULL && (p->flags & (PROPERTY_HIDDEN | PROPERTY_UNSHOWN)) == 0;
    struct path_step step = {.name = name};
    const struct path member = {.text = name, .steps = &step, .step_count = 1};

    for (size_t i = 0; i < s->meta.add_count; i++)
        if (span_eq(s->meta.adds[i].text, name) && find_rename(&s->meta, &s->meta.adds[i]) == NULL)
            return true;
    return is_shown && span_eq(p->name, name) && find_rename(&s->meta, &member) == NULL;
}

static struct err *check_new_names(const struct parser *s)
{
    for (size_t i = 0; i < s->meta.rename_count; i++)
        if (is_taken(s, s->meta.renames[i].to))
            return ERR(ERR_INVALID_META_SYNTAX,
                       "'%.*s' cannot be renamed to '%.*s', which another member is called.",
                       SPAN_FMT(s->meta.renames[i].from.text), SPAN_FMT(s->meta.renames[i].to));
    return NULL;
}

/* Gives adds their new names, and adds what is renamed but no member by itself. */
static struct err *finish_renames(struct parser *s)
{
    struct meta *m = &s->meta;

    TRY(check_new_names(s));
    for (size_t i = 0; i < m->rename_count; i++)
        if (!path_is_member(&m->renames[i].from) && !is_added(s, &m->renames[i].from))
            TRY(push_path(s, &m->adds, &m->add_count, &m->renames[i].from));
    for (size_t i = 0; i < m->add_count; i++) {
        const struct meta_rename *rename = find_rename(m, &m->adds[i]);

        if (rename != NULL)
            m->adds[i].text = rename->to;
    }
    return NULL;
}

/* ---- order ---- */

static struct err *take_order(struct parser *s, struct span item, bool descending)
{
    struct meta_order order = {.descending = descending};

    TRY(parse_result_path(s, item, &order.path));
    TRY(check_room(s, s->meta.order_count));
    s->meta.orders = GROWN(s, s->meta.orders, s->meta.order_count);
    s->meta.orders[s->meta.order_count++] = order;
    return NULL;
}

static struct err *set_order_asc(struct parser *s, struct span item)
{
    return take_order(s, item, false);
}

static struct err *set_order_desc(struct parser *s, struct span item)
{
    return take_order(s, item, true);
}

/* ---- search ---- */

static struct err *take_search(struct parser *s, struct span value, bool is_expression)
{
    struct meta_search_form form;
    struct meta_search search = {0};

    TRY(meta_search_read(s->name, value, &form));
    TRY(check_room(s, s->meta.search_count));
    search.text = form.text;
    search.ignore_case = form.ignore_case;
    search.has_property = form.property.n > 0;
    if (search.has_property)
        TRY(parse_path(s, form.property, &search.property));
    TRY(meta_search_compile(&search, is_expression));
    s->meta.searches = GROWN(s, s->meta.searches, s->meta.search_count);
    s->meta.searches[s->meta.search_count++] = search;
    return NULL;
}

static struct err *set_search(struct parser *s, struct span value)
{
    return take_search(s, value, false);
}

static struct err *set_search_regex(struct parser *s, struct span value)
{
    return take_search(s, value, true);
}

/* ---- the whole ---- */

static struct err *unknown_name(struct span name)
{
    struct span names[ARRAY_LEN(meta_table)], nearest;
    struct buf list;
    struct err *e;

    buf_init(&list, BUF_NO_CAP);
    for (size_t i = 0; i < meta_count; i++) {
        names[i] = meta_table[i].name;
        buf_printf(&list, "%s%.*s", i > 0 ? ", " : "", SPAN_FMT(names[i]));
    }
    nearest = text_nearest(name, names, meta_count);
    e = ERR(ERR_INVALID_META_KEY, "There is no meta-condition '%.*s'.%s%.*s%s Valid are %.*s.",
            SPAN_FMT(name), nearest.n > 0 ? " Did you mean '" : "", SPAN_FMT(nearest),
            nearest.n > 0 ? "'?" : "", SPAN_FMT(buf_span(&list)));
    buf_done(&list);
    return e;
}

static struct err *find_rule(const struct uri_condition *given, size_t *out_index)
{
    for (size_t i = 0; i < meta_count; i++) {
        if (!span_ieq(given->key, meta_table[i].name))
            continue;
        if (given->op != URI_EQ)
            return ERR(ERR_INVALID_META_OPERATOR,
                       "The meta-condition '%.*s' takes the operator '=', not '%s'.",
                       SPAN_FMT(given->key), uri_op_text(given->op));
        *out_index = i;
        return NULL;
    }
    return unknown_name(given->key);
}

/* The rule of each meta-condition. */
static struct err *find_rules(const struct uri_condition *metas, size_t count, bool each_once,
                              size_t *indexes)
{
    bool seen[ARRAY_LEN(rules)] = {false};

    for (size_t i = 0; i < count; i++) {
        TRY(find_rule(&metas[i], &indexes[i]));
        if (seen[indexes[i]] && (each_once || (rules[indexes[i]].flags & REPEATS) == 0))
            return ERR(ERR_INVALID_META_SYNTAX, "The meta-condition '%.*s' is given twice.",
                       SPAN_FMT(metas[i].key));
        seen[indexes[i]] = true;
    }
    return NULL;
}

static struct err *run_pass(struct parser *s, enum pass pass, const struct uri_condition *metas,
                            size_t count, const size_t *indexes)
{
    for (size_t i = 0; i < count; i++) {
        const struct meta_rule *rule = &rules[indexes[i]];

        if (rule->pass != pass)
            continue;
        s->name = meta_table[indexes[i]].name;
        if ((rule->flags & LIST) != 0)
            TRY(each_item(s, metas[i].value, rule->set));
        else
            TRY(rule->set(s, metas[i].value));
    }
    return pass == PASS_RENAME ? finish_renames(s) : NULL;
}

struct err *meta_parse(const struct uri_condition *metas, size_t count, bool each_once,
                       const struct shape *shape, struct arena *a, struct meta *out_meta)
{
    struct parser s = {.shape = shape, .arena = a};
    size_t *indexes = ARENA_ARRAY(a, size_t, count);
    struct err *e = NULL;

    TRY(find_rules(metas, count, each_once, indexes));
    for (enum pass pass = 0; pass < PASSES; pass++)
        TRY_GOTO(e, run_pass(&s, pass, metas, count, indexes), fail);
    *out_meta = s.meta;
    return NULL;

fail:
    meta_done(&s.meta);
    return e;
}

void meta_done(struct meta *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->search_count; i++)
        meta_search_done(&m->searches[i]);
}

bool meta_is_plain(const struct meta *m)
{
    return m->order_count == 0 && m->select_count == 0 && m->add_count == 0 &&
           m->rename_count == 0 && !m->distinct && m->search_count == 0;
}
