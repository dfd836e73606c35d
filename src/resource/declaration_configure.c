/* The configuration's declarations against those that the store knows from it. Equal ones are left
 * alone, so that a restart with the same configuration writes nothing. */
#include "resource/declaration.h"

#include "base/blob.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/turn.h"
#include "json/json.h"

/* A binary resource's File, read. */
struct loaded_file {
    struct loaded_file *next;
    struct span name; /* of the resource */
    struct blob *content;
};

/* A name that the configuration declares. */
struct named {
    struct span folded;
};

/* One that holds entities and is declared no more. */
struct hidden {
    struct hidden *next;
    const struct resource *resource;
};

struct configuring {
    struct resources *resources;
    const char *directory;
    bool only_check;   /* there is no change then */
    bool only_compare; /* likewise; what would change is an error */
    struct arena arena;
    struct declaration_set set;
    struct change change;
    struct map names; /* struct named */
    struct loaded_file *files;
    struct hidden *hidden;
};

static struct span named_key(const void *item)
{
    return ((const struct named *)item)->folded;
}

static struct err *differs(const struct span name, const char *how)
{
    return ERR(ERR_CONFLICT, "'%.*s' %s", SPAN_FMT(name), how);
}

static struct span encoded(struct configuring *c, const struct draft *draft, const struct uuid *id,
                           uint64_t object_no)
{
    struct buf text;

    buf_init_arena(&text, &c->arena);
    schema_encode(&text, draft, id, object_no);
    return buf_span(&text);
}

static struct err *put(struct configuring *c, enum method verb, const struct draft *draft,
                       const struct entity *old)
{
    struct uuid id = old != NULL ? old->id : uuid_new();
    uint64_t object_no = old != NULL ? old->object_no : change_next_serial(&c->change);
    struct span json;

    if (c->only_compare)
        return differs(json_string(draft_value(draft, SPAN("Name"), &c->arena), &c->arena),
                       old == NULL ? "is not declared in the cluster"
                                   : "is declared otherwise in the cluster");
    json = encoded(c, draft, &id, object_no);
    if (!c->only_check)
        change_put_entity(&c->change, declaration_resource, &id, object_no, json);
    return declaration_set_add(&c->set, verb, json);
}

static void note_hidden(struct configuring *c, const struct resource *resource)
{
    struct hidden *hidden;

    if (resource->collection == NULL || collection_count(resource->collection) == 0)
        return;
    hidden = ARENA_NEW(&c->arena, struct hidden);
    *hidden = (struct hidden){.next = c->hidden, .resource = resource};
    c->hidden = hidden;
}

static void tell_hidden(const struct configuring *c)
{
    for (const struct hidden *h = c->hidden; h != NULL; h = h->next)
        log_warn("resource", "'%.*s' is declared no more: its %zu entities stay out of sight",
                 SPAN_FMT(h->resource->name), collection_count(h->resource->collection));
}

static struct err *drop(struct configuring *c, const struct resource *resource)
{
    const struct entity *e = resource->declaration;

    if (c->only_compare)
        return differs(resource->name, "is declared in the cluster, and not here");
    note_hidden(c, resource);
    if (!c->only_check)
        change_delete_entity(&c->change, declaration_resource, &e->id);
    return declaration_set_add(&c->set, METHOD_DELETE, entity_json(e));
}

static struct err *note_name(struct configuring *c, struct span name)
{
    struct named *named = ARENA_NEW(&c->arena, struct named);

    named->folded = text_fold(&c->arena, name);
    if (map_find(&c->names, named->folded) != NULL)
        return ERR(ERR_CONFLICT, "Name: there is a resource '%.*s' already", SPAN_FMT(name));
    map_add(&c->names, named);
    return NULL;
}

static struct err *load_file(struct configuring *c, const struct draft *draft, struct span name)
{
    struct json_value file = draft_value(draft, SPAN("File"), &c->arena);
    struct loaded_file *loaded;

    if (!json_exists(file))
        return NULL;
    loaded = ARENA_NEW(&c->arena, struct loaded_file);
    loaded->name = name;
    TRY(declaration_read_file(c->directory, json_string(file, &c->arena), &c->arena,
                              &loaded->content));
    loaded->next = c->files;
    c->files = loaded;
    return NULL;
}

/* Of another kind, or spelled otherwise, it is another resource. */
static bool is_same(const struct resource *old, const struct draft *draft, struct span name,
                    struct arena *a)
{
    struct span kind = json_string(draft_value(draft, SPAN("Kind"), a), a);

    return span_eq(old->name, name) && span_eq(resource_kind_names.values[old->kind], kind);
}

static struct err *compare(struct configuring *c, const struct draft *draft, struct span name)
{
    const struct resource *old = resource_named(c->resources, name);
    const struct entity *e;

    if (old == NULL || !old->is_configured)
        return put(c, METHOD_POST, draft, NULL);
    e = old->declaration;
    if (!is_same(old, draft, name, &c->arena)) {
        TRY(drop(c, old));
        return put(c, METHOD_POST, draft, NULL);
    }
    if (span_eq(encoded(c, draft, &e->id, e->object_no), entity_json(e)))
        return NULL;
    return put(c, METHOD_PATCH, draft, e);
}

static struct err *configure_one(struct configuring *c, struct json_value declaration)
{
    struct json_value nothing = {NULL, NULL};
    struct draft draft;
    struct span name;

    TRY(schema_decode(&declaration_shape, declaration, nothing, SCHEMA_INSERT, &c->arena, &draft));
    declaration_normalise(&draft, &c->arena);
    draft_set(&draft, SPAN("IsReadOnly"), SPAN("true"));
    name = json_string(draft_value(&draft, SPAN("Name"), &c->arena), &c->arena);
    TRY(note_name(c, name));
    TRY(compare(c, &draft, name));
    return load_file(c, &draft, name);
}

static struct err *drop_others(struct configuring *c)
{
    const struct resources *r = c->resources;

    for (size_t i = 0; i < r->count; i++)
        if (r->sorted[i]->is_configured && map_find(&c->names, r->sorted[i]->folded) == NULL)
            TRY(drop(c, r->sorted[i]));
    return NULL;
}

static struct err *configure_all(struct configuring *c, struct json_value declarations)
{
    struct err *failed;
    size_t place = 0;

    for (struct json_value v = json_first(declarations); json_exists(v);
         v = json_next(declarations, v), place++) {
        struct err *e = configure_one(c, v);

        if (e != NULL)
            return err_prefix(e, "Resources[%zu]: ", place);
    }
    TRY(drop_others(c));
    failed = declaration_set_check(&c->set);
    return failed == NULL ? NULL : err_prefix(failed, "Resources: ");
}

static void give_files(struct configuring *c)
{
    for (struct loaded_file *f = c->files; f != NULL; f = f->next) {
        struct resource *resource = resource_named(c->resources, f->name);

        blob_unref(resource->content);
        resource->content = TAKE(f->content);
    }
}

static struct err *carry_out(struct configuring *c)
{
    uint64_t serial;

    tell_hidden(c);
    TRY(turn_apply(c->resources->turn, &c->change, &serial));
    give_files(c);
    return declarations_changed(c->resources, &c->arena, &serial);
}

static void done(struct configuring *c)
{
    for (struct loaded_file *f = c->files; f != NULL; f = f->next)
        blob_unref(f->content);
    map_done(&c->names);
    change_done(&c->change);
    arena_done(&c->arena);
}

struct err *declarations_compare(struct resources *r, struct json_value declarations,
                                 const char *directory)
{
    struct configuring c = {
        .resources = r, .directory = directory, .only_check = true, .only_compare = true};
    struct err *e;

    arena_init(&c.arena);
    declaration_set_init(&c.set, r, &c.arena);
    map_init(&c.names, named_key);
    e = configure_all(&c, declarations);
    if (e == NULL)
        give_files(&c);
    done(&c);
    return e;
}

struct err *declarations_configure(struct resources *r, struct json_value declarations,
                                   const char *directory, bool only_check)
{
    struct configuring c = {.resources = r, .directory = directory, .only_check = only_check};
    struct err *e;

    arena_init(&c.arena);
    declaration_set_init(&c.set, r, &c.arena);
    if (!only_check)
        change_init(&c.change, r->turn, &c.arena);
    map_init(&c.names, named_key);
    e = configure_all(&c, declarations);
    if (e == NULL && !only_check)
        e = carry_out(&c);
    done(&c);
    return e;
}
