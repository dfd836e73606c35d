/* Keys stand in two maps: by digest, for those who present one, and by title, for those who name
 * one. Each key is one block of memory, for there may be very many. */
#include "access/access.h"

#include "access/access_keys.h"
#include "access/account.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"
#include "json/json.h"

#include <string.h>

enum { FOUND_BY_BYTES = DIGEST_BYTES / 2 };

static struct span digest_key(const void *item)
{
    const struct access_key *key = item;

    return span_of((const char *)key->sha256, FOUND_BY_BYTES);
}

static struct span title_key(const void *item)
{
    return ((const struct access_key *)item)->title;
}

void access_init(struct access *access)
{
    *access = (struct access){.required = false};
    map_init_own(&access->by_digest, digest_key);
    map_init(&access->by_title, title_key);
    list_init(&access->configured);
}

bool access_requires_key(const struct access *access)
{
    return access->required;
}

static struct access_key *of_link(struct list_link *link)
{
    return CONTAINER_OF(link, struct access_key, configured);
}

static void remove_configured(struct access *access)
{
    struct list_link *link;

    while ((link = list_first(&access->configured)) != NULL)
        access_remove(access, of_link(link));
}

void access_done(struct access *access)
{
    if (access == NULL)
        return;
    remove_configured(access);
    MUST(access_count(access) == 0);
    map_done(&access->by_digest);
    map_done(&access->by_title);
    access_init(access);
}

size_t access_count(const struct access *access)
{
    return map_count(&access->by_title);
}

/* ---- keys ---- */

static struct access_key *with_digest(const struct access *access,
                                      const uint8_t digest[DIGEST_BYTES])
{
    struct access_key *key =
        map_find(&access->by_digest, span_of((const char *)digest, FOUND_BY_BYTES));

    return key != NULL && digest_equal(key->sha256, digest, DIGEST_BYTES) ? key : NULL;
}

static struct span room_for(char **room, struct span text)
{
    struct span copy = span_of(*room, text.n);

    if (text.n > 0)
        memcpy(*room, text.p, text.n);
    *room += text.n;
    return copy;
}

struct access_key *access_find(const struct access *access, struct span tenant, struct span name)
{
    char title[ACCESS_TITLE_BYTES], *room = title;

    if (tenant.n + 1 + name.n > sizeof(title))
        return NULL;
    room_for(&room, tenant);
    *room++ = '/';
    room_for(&room, name);
    return map_find(&access->by_title, span_of(title, (size_t)(room - title)));
}

static struct span copy_or_absent(char **room, struct span text)
{
    return text.p == NULL ? text : room_for(room, text);
}

static void copy_title(char **room, const struct access_key *from, struct access_key *key)
{
    struct span tenant = room_for(room, from->tenant);

    *(*room)++ = '/';
    key->name = room_for(room, from->name);
    key->tenant = from->tenant.p == NULL ? from->tenant : tenant;
    key->title = span_of(tenant.p, from->tenant.n + 1 + from->name.n);
}

/* What the texts and the entries of a key take beside it. */
static size_t bytes_beside(const struct access_key *from)
{
    size_t bytes = from->tenant.n + 1 + from->name.n + from->root.n + from->rights.n;

    for (size_t i = 0; i < from->entry_count; i++) {
        const struct access_entry *entry = &from->entries[i];

        bytes += sizeof(*entry) + entry->resource_count * sizeof(*entry->resources);
        for (size_t j = 0; j < entry->resource_count; j++)
            bytes += entry->resources[j].n;
    }
    return bytes;
}

/* Entries first, then the lists of resources, then all texts: so that each is aligned. */
static struct access_key *copy_of(const struct access_key *from)
{
    struct access_key *key = mem_alloc(sizeof(*key) + bytes_beside(from));
    struct access_entry *entries = (struct access_entry *)(key + 1);
    struct span *resources = (struct span *)(entries + from->entry_count);
    char *room;

    *key = *from;
    key->entries = entries;
    for (size_t i = 0; i < from->entry_count; i++) {
        entries[i] = from->entries[i];
        entries[i].resources = resources;
        resources += entries[i].resource_count;
    }
    room = (char *)resources;
    for (size_t i = 0; i < from->entry_count; i++)
        for (size_t j = 0; j < entries[i].resource_count; j++)
            entries[i].resources[j] = room_for(&room, from->entries[i].resources[j]);
    copy_title(&room, from, key);
    key->root = copy_or_absent(&room, from->root);
    key->rights = copy_or_absent(&room, from->rights);
    return key;
}

static void enter(struct access *access, struct access_key *key)
{
    if (access->accounts != NULL)
        key->account = account_ref(access->accounts, key->tenant, key->root);
    map_add(&access->by_digest, key);
    map_add(&access->by_title, key);
}

static void take_out(struct access *access, struct access_key *key)
{
    map_remove(&access->by_digest, digest_key(key));
    map_remove(&access->by_title, key->title);
    if (list_linked(&key->configured))
        list_remove(&access->configured, &key->configured);
}

struct access_key *access_put(struct access *access, const struct access_key *from)
{
    struct access_key *key;

    if (with_digest(access, from->sha256) != NULL ||
        access_find(access, from->tenant, from->name) != NULL)
        return NULL;
    key = copy_of(from);
    key->refs = 1;
    enter(access, key);
    return key;
}

void access_remove(struct access *access, struct access_key *key)
{
    take_out(access, key);
    access_key_unref(access, key);
}

struct access_key *access_key_ref(struct access_key *key)
{
    key->refs++;
    return key;
}

void access_key_unref(struct access *access, struct access_key *key)
{
    if (key == NULL || --key->refs > 0)
        return;
    if (key->account != NULL)
        account_unref(access->accounts, key->account);
    mem_wipe(key->sha256, sizeof(key->sha256));
    mem_free(key);
}

struct access_key *access_find_named(const struct access *access, struct span tenant,
                                     struct span name)
{
    struct access_key *key = access_find(access, tenant, name);

    return key != NULL || tenant.n == 0 ? key : access_find(access, span_of(NULL, 0), name);
}

static bool is_made_at_run_time(const struct access_key *key)
{
    static const struct uuid none;

    return !uuid_eq(&key->id, &none);
}

void access_add_identity(struct buf *b, const struct access_key *key)
{
    if (is_made_at_run_time(key))
        uuid_add(b, &key->id);
    buf_add_char(b, '/');
    buf_add(b, key->title);
}

struct access_key *access_find_identical(const struct access *access, struct span identity)
{
    struct span id_text = span_split(&identity, '/');
    struct access_key *key = map_find(&access->by_title, identity);
    struct uuid id = {.b = {0}};

    if (id_text.n > 0 && !uuid_parse_own(id_text, &id))
        return NULL;
    return key != NULL && uuid_eq(&key->id, &id) ? key : NULL;
}

bool access_has_expired(const struct access_key *key)
{
    return key->expires_unix_ns != ACCESS_FOREVER && key->expires_unix_ns <= clock_unix_ns();
}

/* ---- the configuration's ---- */

static struct err *check_unlike_others(const struct access *access, const struct access_key *key)
{
    const struct access_key *same = with_digest(access, key->sha256);

    if (access_find(access, key->tenant, key->name) != NULL)
        return ERR(ERR_INVALID_ENTITY, "Name: there is an API key '%.*s' already",
                   SPAN_FMT(key->name));
    if (same != NULL)
        return ERR(ERR_INVALID_ENTITY, "KeySha256: the key '%.*s' is the same as '%.*s'",
                   SPAN_FMT(key->name), SPAN_FMT(same->name));
    return NULL;
}

struct err *access_add(struct access *access, struct json_value declaration, struct arena *scratch)
{
    struct access_key read, *key;

    TRY(access_read(declaration, scratch, &read));
    TRY(check_unlike_others(access, &read));
    key = access_put(access, &read);
    list_push_back(&access->configured, &key->configured);
    return NULL;
}

struct err *access_check_beside(const struct access *access, const struct access *with)
{
    size_t place = 0;

    LIST_EACH(&with->configured, link) {
        const struct access_key *key = of_link(link);
        const struct access_key *named = access_find(access, key->tenant, key->name);
        const struct access_key *same = with_digest(access, key->sha256);

        if (named != NULL && !list_linked(&named->configured))
            return ERR(ERR_INVALID_ENTITY,
                       "ApiKeys[%zu].Name: '%.*s' is the name of a key that was made at run time",
                       place, SPAN_FMT(key->name));
        if (same != NULL && !list_linked(&same->configured))
            return ERR(ERR_INVALID_ENTITY,
                       "ApiKeys[%zu].KeySha256: the key '%.*s' was made at run time, as '%.*s'",
                       place, SPAN_FMT(key->name), SPAN_FMT(same->name));
        place++;
    }
    return NULL;
}

void access_replace(struct access *access, struct access *with)
{
    struct list_link *link;

    remove_configured(access);
    access->required = with->required;
    while ((link = list_first(&with->configured)) != NULL) {
        struct access_key *key = of_link(link);

        take_out(with, key);
        enter(access, key);
        list_push_back(&access->configured, &key->configured);
    }
    access_done(with);
}

/* ---- signing in ---- */

/* The password of Basic credentials (RFC 7617); the absent span when they are malformed. */
static struct span password_of(struct span credentials, struct arena *a)
{
    struct span text;

    if (!text_from_base64(credentials, a, &text))
        return span_of(NULL, 0);
    span_split(&text, ':');
    return text;
}

/* The absent span when there is no key in it. */
static struct span presented_key(struct span authorization, struct arena *a)
{
    struct span scheme = span_split(&authorization, ' ');
    struct span credentials = span_trim(authorization);

    if (span_ieq(scheme, SPAN("apikey")) || span_ieq(scheme, SPAN("Bearer")))
        return credentials;
    if (span_ieq(scheme, SPAN("Basic")))
        return password_of(credentials, a);
    return span_of(NULL, 0);
}

static struct access_key *find_presented(const struct access *access, struct span presented)
{
    uint8_t digest[DIGEST_BYTES];

    digest_sha256(presented, digest);
    return with_digest(access, digest);
}

static struct err *check_key(const struct access_key *key)
{
    if (key == NULL)
        return ERR(ERR_NOT_SIGNED_IN, "There is no such API key.");
    if (access_has_expired(key))
        return ERR(ERR_NOT_SIGNED_IN, "The API key has expired.");
    return NULL;
}

struct err *access_sign_in(const struct access *access, struct span authorization, struct arena *a,
                           struct access_key **out_key)
{
    struct access_key *key = NULL;
    struct span presented;

    authorization = span_trim(authorization);
    if (authorization.n > 0) {
        presented = presented_key(authorization, a);
        if (presented.n == 0)
            return ERR(ERR_NOT_SIGNED_IN,
                       "The Authorization header must be 'apikey <KEY>', 'Bearer <KEY>', or "
                       "Basic, with the API key as password.");
        key = find_presented(access, presented);
        TRY(check_key(key));
    } else if (access->required) {
        return ERR(ERR_NOT_SIGNED_IN,
                   "An API key is required, as in 'Authorization: apikey <KEY>'.");
    }
    *out_key = key;
    return NULL;
}

/* ---- rights ---- */

static bool covers(struct span pattern, struct span resource)
{
    struct span space;

    if (span_eq(pattern, SPAN("*")))
        return true;
    if (!span_ends(pattern, SPAN(".*")))
        return span_ieq(pattern, resource);
    space = span_sub(pattern, 0, pattern.n - 1); /* up to its dot */
    return span_istarts(resource, space) && span_find_char(resource, '.', space.n) == resource.n;
}

/* What holds every secret is given by its own name, or along with everything else. */
static bool gives(const struct access_entry *entry, struct span pattern, struct span resource)
{
    if (!span_ends(pattern, SPAN("*")) || !span_ieq(resource, SPAN("Svc.Admin.Backup")))
        return true;
    return pattern.n == 1 && entry->methods == METHODS_ALL;
}

static bool entry_covers(const struct access_entry *entry, struct span resource)
{
    for (size_t i = 0; i < entry->resource_count; i++)
        if (covers(entry->resources[i], resource) && gives(entry, entry->resources[i], resource))
            return true;
    return false;
}

unsigned access_methods(const struct access_key *key, struct span resource, unsigned methods)
{
    unsigned allowed = 0;

    if (key == NULL)
        return methods;
    if (span_ieq(resource, SPAN("Svc.AvailableResource")))
        allowed = METHODS_READ;
    for (size_t i = 0; i < key->entry_count; i++)
        if (entry_covers(&key->entries[i], resource))
            allowed |= key->entries[i].methods;
    return methods & allowed;
}

bool access_allows(const struct access_key *key, struct span resource, enum method method)
{
    return access_methods(key, resource, METHOD_BIT(method)) != 0;
}

bool access_reads_all(const struct access_key *key)
{
    /* No resource has this name, and only `*` covers it. */
    return access_allows(key, SPAN("*"), METHOD_GET);
}

size_t access_count_resources(const struct access_key *key)
{
    size_t count = 0;

    for (size_t i = 0; i < key->entry_count; i++)
        count += key->entries[i].resource_count;
    return count;
}

/* Of two patterns that have anything in common, one covers the other. */
void access_narrow(const struct access_key *key, struct span pattern, struct arena *a,
                   struct span **out_parts, size_t *out_count)
{
    bool has_all = access_allows(key, pattern, METHOD_GET);
    struct span *parts = ARENA_ARRAY(a, struct span, has_all ? 1 : access_count_resources(key));
    size_t count = 0;

    if (has_all)
        parts[count++] = pattern;
    for (size_t i = 0; !has_all && i < key->entry_count; i++) {
        const struct access_entry *entry = &key->entries[i];

        for (size_t j = 0;
             (entry->methods & METHOD_BIT(METHOD_GET)) != 0 && j < entry->resource_count; j++)
            if (covers(pattern, entry->resources[j]))
                parts[count++] = entry->resources[j];
    }
    *out_parts = parts;
    *out_count = count;
}

/* A pattern covers another one as it covers a name: `*` all of them, `shop.*` itself. */
struct span access_lacks(const struct access_key *key, const struct access_key *granted)
{
    for (size_t i = 0; key != NULL && i < granted->entry_count; i++) {
        const struct access_entry *entry = &granted->entries[i];

        for (size_t j = 0; j < entry->resource_count; j++)
            if (access_methods(key, entry->resources[j], entry->methods) != entry->methods)
                return entry->resources[j];
    }
    return span_of(NULL, 0);
}
