/* One key of the configuration after the other, each known by its place. */
#include "app/rights.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "base/log.h"
#include "resource/key_rights.h"

struct err *rights_check(const struct access *access, const struct resources *resources)
{
    unsigned place = 0;

    LIST_EACH(&access->configured, at) {
        struct err *e =
            key_rights_check(CONTAINER_OF(at, struct access_key, configured), resources);

        if (e != NULL)
            return err_prefix(e, "ApiKeys[%u].", place);
        place++;
    }
    return NULL;
}

static bool is_declared(struct span pattern, struct json_value declared, struct arena *scratch)
{
    for (struct json_value v = json_first(declared); json_exists(v); v = json_next(declared, v)) {
        struct json_value name = json_member_fold(v, SPAN("Name"));

        if (json_type(name) == JSON_STRING && key_rights_cover(pattern, json_string(name, scratch)))
            return true;
    }
    return false;
}

static void warn_of_entry(const struct access_entry *entry, const struct access_key *key,
                          struct json_value declared, struct arena *scratch)
{
    for (size_t i = 0; i < entry->resource_count; i++) {
        struct span pattern = entry->resources[i];

        if (!span_eq(pattern, SPAN("*")) && !span_starts(pattern, key_rights_reserved) &&
            !is_declared(pattern, declared, scratch))
            log_warn("config",
                     "the key '%.*s' has rights on '%.*s', which the configuration does not "
                     "declare",
                     SPAN_FMT(key->name), SPAN_FMT(pattern));
    }
}

void rights_warn(const struct access *access, struct json_value declared)
{
    struct arena scratch;

    arena_init(&scratch);
    LIST_EACH(&access->configured, at) {
        const struct access_key *key = CONTAINER_OF(at, struct access_key, configured);

        for (size_t i = 0; i < key->entry_count; i++)
            warn_of_entry(&key->entries[i], key, declared, &scratch);
    }
    arena_done(&scratch);
}
