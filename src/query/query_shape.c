/* Builds an entity's text after add, rename and select. Names and values are copied as written; a
 * member that add makes takes the place of one that has its name, one that rename makes may not. */
#include "query/meta_items.h"
#include "query_parts.h"
#include "json/json.h"

void query_shaper_init(struct query_shaper *shaper, const struct shape *hiding,
                       const struct meta *meta)
{
    *shaper = (struct query_shaper){.hiding = hiding, .meta = meta};
    buf_init(&shaper->text, BUF_NO_CAP);
}

void query_shaper_done(struct query_shaper *shaper)
{
    buf_done(&shaper->text);
}

/* One entity on its way through. */
struct shaping {
    const struct shape *hiding;
    const struct meta *meta;
    struct json_value root;
    struct arena *arena;
    struct buf *out;
};

/* ---- select ---- */

/* The member that the path names by its own name, absent when there is none. */
static struct json_value own_member(const struct shaping *s, const struct path *path)
{
    struct span name = path_shown_name(path);

    if (!path_is_member(path) || !span_eq(name, path->steps[0].name))
        return (struct json_value){NULL, NULL};
    return json_member_fold(s->root, name);
}

static void add_selected(const struct shaping *s)
{
    for (size_t i = 0; i < s->meta->select_count; i++) {
        const struct path *path = &s->meta->selects[i];
        struct json_value member = own_member(s, path);

        /* The entity's spelling, not the path's, which may differ for undeclared members. Names
         * lie before their values (json.h). */
        if (json_exists(member))
            json_add_written_name(s->out, (struct json_value){member.doc, member.node - 1});
        else
            json_add_name(s->out, path_shown_name(path));
        path_add_json(path, s->root, s->arena, s->out);
    }
}

/* ---- add and rename ---- */

/* Finds the values of the members that are renamed. */
static void find_renamed(const struct shaping *s, struct json_value values[META_ITEMS_MOST])
{
    for (size_t i = 0; i < s->meta->rename_count; i++) {
        const struct path *from = &s->meta->renames[i].from;

        values[i] = path_is_member(from) ? json_member_fold(s->root, from->steps[0].name)
                                         : (struct json_value){NULL, NULL};
    }
}

/* The new name of a member, or NULL. */
static const struct span *new_name(const struct shaping *s, const struct json_value *renamed,
                                   struct json_value member)
{
    for (size_t i = 0; i < s->meta->rename_count; i++)
        if (renamed[i].node == member.node)
            return &s->meta->renames[i].to;
    return NULL;
}

/* Does something that is added take the place of the member of that name? */
static bool is_replaced(const struct shaping *s, struct span name)
{
    for (size_t i = 0; i < s->meta->add_count; i++)
        if (!path_is_member(&s->meta->adds[i]) && span_eq(s->meta->adds[i].text, name))
            return true;
    return false;
}

static bool is_unshown(const struct shaping *s, struct span name)
{
    const struct property *p = s->hiding == NULL ? NULL : shape_find(s->hiding, name);

    return p != NULL && (p->flags & (PROPERTY_HIDDEN | PROPERTY_UNSHOWN)) != 0;
}

static void add_members(const struct shaping *s)
{
    struct json_value renamed[META_ITEMS_MOST];

    find_renamed(s, renamed);
    for (struct json_member m = json_first_member(s->root); json_exists(m.name);
         m = json_next_member(s->root, m)) {
        const struct span *name = new_name(s, renamed, m.value);

        if (name == NULL && (is_replaced(s, json_string(m.name, s->arena)) ||
                             is_unshown(s, json_string(m.name, s->arena))))
            continue;
        if (name != NULL)
            json_add_name(s->out, *name);
        else
            json_add_written_name(s->out, m.name);
        buf_add(s->out, json_text(m.value));
    }
}

static void add_added(const struct shaping *s)
{
    for (size_t i = 0; i < s->meta->add_count; i++) {
        const struct path *path = &s->meta->adds[i];

        if (path_is_member(path) && !is_unshown(s, path->steps[0].name) &&
            json_exists(json_member_fold(s->root, path->steps[0].name)))
            continue; /* it is there */
        json_add_name(s->out, path_shown_name(path));
        path_add_json(path, s->root, s->arena, s->out);
    }
}

/* Declared members were looked at when the query was read. */
static struct err *check_new_names(const struct shaping *s)
{
    struct json_value renamed[META_ITEMS_MOST];

    if (s->meta->rename_count == 0)
        return NULL;
    find_renamed(s, renamed);
    for (size_t i = 0; i < s->meta->rename_count; i++) {
        const struct meta_rename *rename = &s->meta->renames[i];
        struct json_value member = json_member(s->root, rename->to);

        if (json_exists(member) && new_name(s, renamed, member) == NULL &&
            !is_unshown(s, rename->to))
            return ERR(ERR_INVALID_META_SYNTAX,
                       "'%.*s' cannot be renamed to '%.*s', which another member is called.",
                       SPAN_FMT(rename->from.text), SPAN_FMT(rename->to));
    }
    return NULL;
}

struct err *query_shaper_run(struct query_shaper *shaper, struct json_value root, struct arena *a,
                             struct span *out_text)
{
    struct shaping s = {shaper->hiding, shaper->meta, root, a, &shaper->text};

    TRY(check_new_names(&s));
    buf_clear(s.out);
    buf_add_char(s.out, '{');
    if (s.meta->select_count > 0) {
        add_selected(&s);
    } else {
        add_members(&s);
        add_added(&s);
    }
    buf_add_char(s.out, '}');
    *out_text = buf_span(s.out);
    return NULL;
}
