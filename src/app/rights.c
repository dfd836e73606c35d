/* Namespaces are looked for among the names directly in them: that is what `Shop.*` covers. */
#include "app/rights.h"

#include "base/log.h"
#include "rest/access.h"
#include "rest/resource.h"

static const struct span reserved = SPAN_INIT("svc.");

/* Does the pattern, `ns.name` or `ns.*`, cover the name? Both folded, or the name in any case. */
static bool covers(struct span pattern, struct span name)
{
    struct span space = span_sub(pattern, 0, pattern.n - 1);

    if (!span_ends(pattern, SPAN(".*")))
        return span_ieq(pattern, name);
    return span_istarts(name, space) && span_find_char(name, '.', space.n) == name.n;
}

static bool covers_any(struct span pattern, const struct resources *resources)
{
    for (size_t i = 0; i < resources->count; i++)
        if (resources->sorted[i]->declaration == NULL &&
            covers(pattern, resources->sorted[i]->name))
            return true;
    return false;
}

static bool covers_declared(struct span pattern, struct json_value declared, struct arena *scratch)
{
    for (struct json_value v = json_first(declared); json_exists(v); v = json_next(declared, v)) {
        struct json_value name = json_member_fold(v, SPAN("Name"));

        if (json_type(name) == JSON_STRING && covers(pattern, json_string(name, scratch)))
            return true;
    }
    return false;
}

/* The entry has the pattern among its resources. */
typedef struct err *look_fn(struct span pattern, const struct access_entry *entry,
                            const struct access_key *key, void *context);

static struct err *look_at_entry(const struct access_entry *entry, const struct access_key *key,
                                 look_fn *look, void *context)
{
    if (entry->resource_count == 0)
        return ERR(ERR_INVALID_ENTITY, "Resources: has none, so that nothing is allowed");
    if (entry->methods == 0)
        return ERR(ERR_INVALID_ENTITY, "Methods: has none, so that nothing is allowed");
    for (size_t i = 0; i < entry->resource_count; i++) {
        struct err *e = look(entry->resources[i], entry, key, context);

        if (e != NULL)
            return err_prefix(e, "Resources[%zu]: ", i);
    }
    return NULL;
}

static struct err *look_at_key(const struct access_key *key, look_fn *look, void *context)
{
    for (size_t i = 0; i < key->entry_count; i++) {
        struct err *e = look_at_entry(&key->entries[i], key, look, context);

        if (e != NULL)
            return err_prefix(e, "AllowAccess[%zu].", i);
    }
    return NULL;
}

static struct err *look_at_all(const struct access *access, look_fn *look, void *context)
{
    unsigned place = 0;

    for (struct list_link *at = list_first(&access->configured); at != NULL;
         at = list_next(&access->configured, at), place++) {
        const struct access_key *key = CONTAINER_OF(at, struct access_key, configured);
        struct err *e = look_at_key(key, look, context);

        if (e != NULL)
            return err_prefix(e, "ApiKeys[%u].", place);
    }
    return NULL;
}

/* Any right on an event resource will do, which has no methods. */
static struct err *check_methods(const struct resource *resource, const struct access_entry *entry)
{
    struct buf methods;
    struct err *e;

    if (resource == NULL || resource->kind == KIND_EVENT ||
        (entry->methods & resource->methods) != 0)
        return NULL;
    buf_init(&methods, 256);
    method_add_list(&methods, resource->methods);
    e = ERR(ERR_INVALID_ENTITY, "'%.*s' has none of the Methods, but %.*s",
            SPAN_FMT(resource->name), SPAN_FMT(buf_span(&methods)));
    buf_done(&methods);
    return e;
}

static struct err *check_one(struct span pattern, const struct access_entry *entry,
                             const struct access_key *key, void *context)
{
    (void)key;
    if (!span_starts(pattern, reserved))
        return NULL;
    if (!covers_any(pattern, context))
        return ERR(ERR_INVALID_ENTITY, "there is no built-in resource '%.*s'", SPAN_FMT(pattern));
    return check_methods(resource_named(context, pattern), entry);
}

struct err *rights_check(const struct access *access, const struct resources *resources)
{
    return look_at_all(access, check_one, (void *)(uintptr_t)resources);
}

struct declared_names {
    struct json_value all;
    struct arena scratch;
};

static struct err *warn_of_one(struct span pattern, const struct access_entry *entry,
                               const struct access_key *key, void *context)
{
    struct declared_names *declared = context;

    (void)entry;
    if (span_eq(pattern, SPAN("*")) || span_starts(pattern, reserved) ||
        covers_declared(pattern, declared->all, &declared->scratch))
        return NULL;
    log_warn("config",
             "the key '%.*s' has rights on '%.*s', which the configuration does not declare",
             SPAN_FMT(key->name), SPAN_FMT(pattern));
    return NULL;
}

void rights_warn(const struct access *access, struct json_value declared)
{
    struct declared_names names = {.all = declared};

    arena_init(&names.scratch);
    err_free(look_at_all(access, warn_of_one, &names));
    arena_done(&names.scratch);
}
