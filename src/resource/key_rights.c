/* Namespaces are looked for among the names directly in them: that is what `Shop.*` covers. */
#include "resource/key_rights.h"

#include "access/access.h"
#include "resource/resource.h"

const struct span key_rights_reserved = SPAN_INIT("svc.");

bool key_rights_cover(struct span pattern, struct span name)
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
            key_rights_cover(pattern, resources->sorted[i]->name))
            return true;
    return false;
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
                             const struct resources *resources)
{
    if (!span_starts(pattern, key_rights_reserved))
        return NULL;
    if (!covers_any(pattern, resources))
        return ERR(ERR_INVALID_ENTITY, "there is no built-in resource '%.*s'", SPAN_FMT(pattern));
    return check_methods(resource_named(resources, pattern), entry);
}

static struct err *check_entry(const struct access_entry *entry, const struct resources *resources)
{
    if (entry->resource_count == 0)
        return ERR(ERR_INVALID_ENTITY, "Resources: has none, so that nothing is allowed");
    if (entry->methods == 0)
        return ERR(ERR_INVALID_ENTITY, "Methods: has none, so that nothing is allowed");
    for (size_t i = 0; i < entry->resource_count; i++) {
        struct err *e = check_one(entry->resources[i], entry, resources);

        if (e != NULL)
            return err_prefix(e, "Resources[%zu]: ", i);
    }
    return NULL;
}

struct err *key_rights_check(const struct access_key *key, const struct resources *resources)
{
    for (size_t i = 0; i < key->entry_count; i++) {
        struct err *e = check_entry(&key->entries[i], resources);

        if (e != NULL)
            return err_prefix(e, "AllowAccess[%zu].", i);
    }
    return NULL;
}
