/* What an entity costs. Each path that is waited for is read once; or, when there are far more of
 * those than the entity has members, only the paths that begin with a member, and those of which
 * null is waited for. The value that is read is looked up in the maps in each canonical form that
 * it has, three at most: that makes the equalities known that hold, and no others do. Then it is
 * put to the interval tree of its kind. Nothing so far depends on the number of predicates but the
 * depth of the tree; what is left is the answers themselves. */
#include "predicate_private.h"

/* What is kept of the key buffer, which a long number may have made large. */
#define KEY_BYTES_KEPT 4096

void predicates_start(struct predicates *set, struct json_value entity, struct arena *a)
{
    set->number++;
    set->entity = entity;
    set->arena = a;
    set->read = NULL;
    set->held = NULL;
    buf_shrink(&set->key, KEY_BYTES_KEPT);
}

/* ---- verdicts ---- */

static bool is_known(const struct predicates *set, const struct predicate *p)
{
    return p->memo >> 1 == set->number;
}

static bool is_known_to_hold(const struct predicates *set, const struct predicate *p)
{
    return p->memo == (set->number << 1 | 1);
}

static void conclude(struct predicates *set, struct predicate *p, bool holds)
{
    p->memo = set->number << 1 | (holds ? 1 : 0);
    set->evaluated++;
}

/* A datetime may hold by its instant and by its text. */
static void mark(struct predicates *set, struct equality *e)
{
    struct held *held;

    if (is_known_to_hold(set, &e->base))
        return;
    conclude(set, &e->base, true);
    if (e->base.waiting == NULL)
        return;
    held = arena_alloc(set->arena, sizeof(*held));
    *held = (struct held){set->held, e};
    set->held = held;
}

/* ---- reading a path ---- */

static bool is_sought(const struct predicate_path *path, enum literal_kind kind)
{
    return path->equalities[kind] > 0 || path->ranges[kind].root != NULL;
}

/* Makes known the equalities of this key by value. */
static void find_equal(struct predicates *set, const struct predicate_path *path,
                       enum literal_kind kind, struct span key)
{
    struct equality *first = NULL, *e;

    if (path->equalities[kind] > 0)
        first = map_find(&set->values, key);
    if (first == NULL)
        return;
    e = first;
    do {
        mark(set, e);
        e = e->next;
    } while (e != first);
}

/* The canonical value must stay in place as long as the entity. */
static void set_point(struct predicates *set, struct predicate_path *path, enum literal_kind kind,
                      struct span canonical)
{
    struct cut cut = cut_at(predicate_key_rank(kind, canonical), canonical, CUT_BEFORE);
    struct point *more;

    if (path->has_point[kind]) {
        more = ARENA_NEW(set->arena, struct point);
        *more = (struct point){path->more[kind], path->points[kind]};
        path->more[kind] = more;
    }
    path->has_point[kind] = true;
    path->points[kind] = cut;
}

static void take(struct predicates *set, struct predicate_path *path, const struct literal *literal)
{
    struct span key = predicate_key(set, path, literal);

    find_equal(set, path, literal->kind, key);
    if (path->ranges[literal->kind].root != NULL)
        set_point(set, path, literal->kind, arena_copy(set->arena, predicate_key_canonical(key)));
}

/* By its characters as a value, by its characters as the text of a literal, and by its instant. */
static void take_string(struct predicates *set, struct predicate_path *path, struct span text)
{
    struct literal literal = {.kind = LITERAL_STRING, .text = text};
    struct equality *e;

    if (text.n <= set->longest && path->equalities[LITERAL_STRING] > 0)
        find_equal(set, path, LITERAL_STRING, predicate_key(set, path, &literal));
    if (text.n <= set->longest && path->texts > 0) {
        e = map_find(&set->texts, predicate_key_text(set, path, text));
        if (e != NULL)
            mark(set, e);
    }
    if (path->ranges[LITERAL_STRING].root != NULL)
        set_point(set, path, LITERAL_STRING, text);
    literal.kind = LITERAL_DATETIME;
    if (is_sought(path, LITERAL_DATETIME) && datetime_parse(text, &literal.instant))
        take(set, path, &literal);
}

static void take_value(struct predicates *set, struct predicate_path *path,
                       const struct value *value)
{
    struct literal literal = {.boolean = value->boolean, .text = value->text};

    switch (value->kind) {
    case VALUE_NULL:
        literal.kind = LITERAL_NULL;
        break;
    case VALUE_BOOLEAN:
        literal.kind = LITERAL_BOOLEAN;
        break;
    case VALUE_NUMBER:
        literal.kind = LITERAL_NUMBER;
        break;
    case VALUE_STRING:
        take_string(set, path, value->text);
        return;
    case VALUE_OBJECT:
    case VALUE_ARRAY:
        return; /* equal to no literal, and without order */
    }
    if (is_sought(path, literal.kind))
        take(set, path, &literal);
}

/* What is being read, for path_each. */
struct reading {
    struct predicates *set;
    struct predicate_path *path;
};

static bool take_each(void *context, const struct value *value)
{
    const struct reading *r = context;

    take_value(r->set, r->path, value);
    return false;
}

static void take_values(struct predicates *set, struct predicate_path *path)
{
    struct reading r = {set, path};
    struct value value;

    if (path->path.has_any) {
        path_each(&path->path, set->entity, set->arena, take_each, &r);
        return;
    }
    value = path_read(&path->path, set->entity, set->arena);
    take_value(set, path, &value);
}

static void read_path(struct predicates *set, struct predicate_path *path)
{
    if (path->entity == set->number)
        return;
    path->entity = set->number;
    for (enum literal_kind kind = 0; kind < LITERAL_KINDS; kind++) {
        path->has_point[kind] = false;
        path->more[kind] = NULL;
    }
    take_values(set, path);
    if (path->waits == 0)
        return;
    path->next_read = set->read;
    set->read = path;
}

/* ---- one test ---- */

static bool range_holds(const struct range *r)
{
    const struct predicate_path *path = r->base.path;
    enum literal_kind kind = r->base.kind;
    const struct interval_tree *tree = &path->ranges[kind];

    if (!path->has_point[kind])
        return false;
    for (const struct point *p = path->more[kind]; p != NULL; p = p->next)
        if (interval_holds(tree, &r->interval, &p->cut))
            return true;
    return interval_holds(tree, &r->interval, &path->points[kind]);
}

bool predicates_hold(struct predicates *set, struct predicate_test test)
{
    struct predicate *p = predicate_of(test);
    struct predicate_path *path = p->path;

    read_path(set, path);
    if (p->is_range && !is_known(set, p))
        conclude(set, p, range_holds(range_of(p)));
    return is_known_to_hold(set, p) != is_negated(test);
}

/* ---- all that is waited for ---- */

static void read_all(struct predicates *set)
{
    LIST_EACH(&set->waited, link)
        read_path(set, CONTAINER_OF(link, struct predicate_path, waited_link));
}

/* A path whose first step is no member is null. */
static void read_members(struct predicates *set)
{
    for (struct json_member m = json_first_member(set->entity); json_exists(m.name);
         m = json_next_member(set->entity, m)) {
        struct span name = json_string(m.name, set->arena);
        struct first_step *step = predicate_path_first_step(set, name);

        if (step == NULL)
            continue;
        LIST_EACH(&step->paths, link)
            read_path(set, CONTAINER_OF(link, struct predicate_path, step_link));
    }
    LIST_EACH(&set->waited_on_null, link)
        read_path(set, CONTAINER_OF(link, struct predicate_path, null_link));
}

struct finding {
    struct predicates *set;
    predicates_found_fn *on_found;
    void *context;
};

static void on_interval(void *context, struct interval *i)
{
    struct finding *f = context;
    struct range *r = CONTAINER_OF(i, struct range, interval);

    if (r->found == f->set->number)
        return; /* another element lies in it as well */
    r->found = f->set->number;
    if (!is_known(f->set, &r->base))
        conclude(f->set, &r->base, true);
    f->on_found(f->context, r->base.waiting);
}

static void find_on_path(struct finding *f, const struct predicate_path *path)
{
    for (enum literal_kind kind = 0; kind < LITERAL_KINDS; kind++) {
        if (path->has_point[kind])
            interval_stab(&path->ranges[kind], &path->points[kind], on_interval, f);
        for (const struct point *p = path->more[kind]; p != NULL; p = p->next)
            interval_stab(&path->ranges[kind], &p->cut, on_interval, f);
    }
    LIST_EACH(&path->unequals, link) {
        const struct unequal *unequal = CONTAINER_OF(link, struct unequal, link);

        if (!is_known_to_hold(f->set, &unequal->equality->base))
            f->on_found(f->context, unequal->waiting);
    }
}

void predicates_each(struct predicates *set, predicates_found_fn *on_found, void *context)
{
    struct finding f = {set, on_found, context};

    /* To look a member up costs as much as to read two paths. */
    if (json_type(set->entity) != JSON_OBJECT ||
        list_count(&set->waited) / 2 <= json_count(set->entity))
        read_all(set);
    else
        read_members(set);
    for (const struct held *held = set->held; held != NULL; held = held->next)
        on_found(context, held->equality->base.waiting);
    for (const struct predicate_path *path = set->read; path != NULL; path = path->next_read)
        find_on_path(&f, path);
}
