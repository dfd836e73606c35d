/* A declaration is read by two shapes: of a key, and of an entry of its AllowAccess. */
#include "rest/access.h"

#include "base/digest.h"
#include "base/text.h"
#include "query/shape.h"
#include "rest/schema.h"

#include <string.h>

void access_init(struct access *access)
{
    *access = (struct access){0};
}

void access_done(struct access *access)
{
    if (access == NULL)
        return;
    arena_done(&access->memory);
    access_init(access);
}

/* ---- declarations ---- */

enum { ENTRY_RESOURCES, ENTRY_METHODS };

static const struct property entry_properties[] = {
    [ENTRY_RESOURCES] = {.name = SPAN_INIT("Resources"),
                         .type = TYPE_ARRAY,
                         .elements = TYPE_STRING,
                         .flags = PROPERTY_REQUIRED},
    [ENTRY_METHODS] = {.name = SPAN_INIT("Methods"),
                       .type = TYPE_ARRAY,
                       .elements = TYPE_STRING,
                       .flags = PROPERTY_REQUIRED},
};
static const struct shape entry_shape = {entry_properties, ARRAY_LEN(entry_properties), false};

enum { KEY_NAME, KEY_SHA256, KEY_TENANT, KEY_ALLOW_ACCESS };

static const struct property key_properties[] = {
    [KEY_NAME] = {.name = SPAN_INIT("Name"), .type = TYPE_STRING, .flags = PROPERTY_REQUIRED},
    [KEY_SHA256] = {.name = SPAN_INIT("KeySha256"),
                    .type = TYPE_STRING,
                    .flags = PROPERTY_REQUIRED},
    [KEY_TENANT] = {.name = SPAN_INIT("Tenant"), .type = TYPE_STRING},
    [KEY_ALLOW_ACCESS] = {.name = SPAN_INIT("AllowAccess"),
                          .type = TYPE_ARRAY,
                          .elements = TYPE_OBJECT,
                          .flags = PROPERTY_REQUIRED},
};
static const struct shape key_shape = {key_properties, ARRAY_LEN(key_properties), false};

/* Dot-delimited parts of letters, digits and '_'. */
static bool is_dotted(struct span text, size_t least_parts)
{
    size_t parts = 0;

    do {
        struct span part = span_split(&text, '.');

        for (size_t i = 0; i < part.n; i++) {
            char c = span_fold_char(part.p[i]);

            if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
                return false;
        }
        if (part.n == 0)
            return false;
        parts++;
    } while (text.p != NULL);
    return parts >= least_parts;
}

static bool is_pattern(struct span text)
{
    if (span_eq(text, SPAN("*")))
        return true;
    if (span_ends(text, SPAN(".*")))
        return is_dotted(span_sub(text, 0, text.n - 2), 1);
    return is_dotted(text, 2);
}

static struct err *read_resources(struct json_value resources, struct arena *memory,
                                  struct arena *scratch, struct access_entry *entry)
{
    entry->resources = ARENA_ARRAY(memory, struct span, json_count(resources));
    for (struct json_value v = json_first(resources); json_exists(v); v = json_next(resources, v)) {
        struct span text = json_string(v, scratch);

        if (!is_pattern(text))
            return ERR(ERR_INVALID_ENTITY,
                       "Resources[%zu]: '%.*s' is neither a resource's full name, nor "
                       "'Namespace.*', nor '*'",
                       entry->resource_count, SPAN_FMT(text));
        entry->resources[entry->resource_count++] = text_fold(memory, text);
    }
    return NULL;
}

static struct err *read_methods(struct json_value methods, struct arena *scratch,
                                struct access_entry *entry)
{
    size_t place = 0;

    for (struct json_value v = json_first(methods); json_exists(v); v = json_next(methods, v)) {
        struct span text = json_string(v, scratch);
        bool is_all = span_eq(text, SPAN("*"));
        enum method method = method_parse(text);

        if (!is_all && method == METHOD_OTHER)
            return ERR(ERR_INVALID_ENTITY, "Methods[%zu]: '%.*s' is no method", place,
                       SPAN_FMT(text));
        entry->methods |= is_all ? METHODS_ALL : METHOD_BIT(method);
        place++;
    }
    entry->methods = method_closure(entry->methods);
    return NULL;
}

static struct err *read_entries(struct json_value entries, struct arena *memory,
                                struct arena *scratch, struct access_key *key)
{
    key->entries = ARENA_ARRAY(memory, struct access_entry, json_count(entries));
    for (struct json_value v = json_first(entries); json_exists(v); v = json_next(entries, v)) {
        struct access_entry *entry = &key->entries[key->entry_count];
        struct json_value *values;
        struct err *e = schema_read(&entry_shape, v, scratch, &values);

        if (e == NULL)
            e = read_resources(values[ENTRY_RESOURCES], memory, scratch, entry);
        if (e == NULL)
            e = read_methods(values[ENTRY_METHODS], scratch, entry);
        if (e != NULL)
            return err_prefix(e, "AllowAccess[%zu].", key->entry_count);
        key->entry_count++;
    }
    return NULL;
}

bool access_is_tenant(struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = span_fold_char(text.p[i]);

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.')
            return false;
    }
    return text.n > 0 && text.n <= ACCESS_TENANT_BYTES;
}

static struct err *read_tenant(struct json_value value, struct arena *scratch, struct arena *memory,
                               struct span *out_tenant)
{
    struct span text;

    if (json_type(value) != JSON_STRING)
        return NULL;
    text = json_string(value, scratch);
    if (!access_is_tenant(text))
        return ERR(ERR_INVALID_ENTITY,
                   "Tenant: '%.*s' is not 1 to %d letters, digits, '_', '-' and '.'",
                   SPAN_FMT(text), ACCESS_TENANT_BYTES);
    *out_tenant = arena_copy(memory, text);
    return NULL;
}

static struct err *check_unlike_others(const struct access *access, const struct access_key *key)
{
    for (size_t i = 0; i < access->key_count; i++) {
        const struct access_key *other = &access->keys[i];

        if (span_eq(other->name, key->name))
            return ERR(ERR_INVALID_ENTITY, "Name: there is an API key '%.*s' already",
                       SPAN_FMT(key->name));
        if (memcmp(other->sha256, key->sha256, DIGEST_BYTES) == 0)
            return ERR(ERR_INVALID_ENTITY, "KeySha256: the key '%.*s' is the same as '%.*s'",
                       SPAN_FMT(key->name), SPAN_FMT(other->name));
    }
    return NULL;
}

struct err *access_add(struct access *access, struct json_value declaration, struct arena *scratch)
{
    struct access_key key = {.entry_count = 0};
    size_t bytes = access->key_count * sizeof(key);
    struct json_value *values;
    struct span sha256;

    TRY(schema_read(&key_shape, declaration, scratch, &values));
    key.name = arena_copy(&access->memory, json_string(values[KEY_NAME], scratch));
    if (key.name.n == 0)
        return ERR(ERR_INVALID_ENTITY, "Name: must not be empty");
    sha256 = json_string(values[KEY_SHA256], scratch);
    if (sha256.n != 2 * sizeof(key.sha256) || !text_from_hex(sha256, key.sha256))
        return ERR(ERR_INVALID_ENTITY, "KeySha256: must be a SHA-256 in %zu hexadecimal digits",
                   2 * sizeof(key.sha256));
    TRY(read_tenant(values[KEY_TENANT], scratch, &access->memory, &key.tenant));
    TRY(read_entries(values[KEY_ALLOW_ACCESS], &access->memory, scratch, &key));
    TRY(check_unlike_others(access, &key));
    access->keys = arena_grow(&access->memory, access->keys, bytes, bytes + sizeof(key));
    access->keys[access->key_count++] = key;
    return NULL;
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

    if (span_ieq(scheme, SPAN("apikey")))
        return credentials;
    if (span_ieq(scheme, SPAN("Basic")))
        return password_of(credentials, a);
    return span_of(NULL, 0);
}

/* Looks at every key, wherever the right one is. */
static const struct access_key *find_key(const struct access *access, struct span presented)
{
    const struct access_key *found = NULL;
    uint8_t digest[DIGEST_BYTES];

    digest_sha256(presented, digest);
    for (size_t i = 0; i < access->key_count; i++)
        if (digest_equal(access->keys[i].sha256, digest, sizeof(digest)))
            found = &access->keys[i];
    return found;
}

struct err *access_sign_in(const struct access *access, struct span authorization, struct arena *a,
                           const struct access_key **out_key)
{
    const struct access_key *key = NULL;
    struct span presented;

    authorization = span_trim(authorization);
    if (authorization.n > 0) {
        presented = presented_key(authorization, a);
        if (presented.n == 0)
            return ERR(ERR_NOT_SIGNED_IN, "The Authorization header must be 'apikey <KEY>', or "
                                          "Basic, with the API key as password.");
        key = find_key(access, presented);
        if (key == NULL)
            return ERR(ERR_NOT_SIGNED_IN, "There is no such API key.");
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

static bool entry_covers(const struct access_entry *entry, struct span resource)
{
    for (size_t i = 0; i < entry->resource_count; i++)
        if (covers(entry->resources[i], resource))
            return true;
    return false;
}

unsigned access_methods(const struct access_key *key, struct span resource, unsigned methods)
{
    unsigned allowed = 0;

    if (key == NULL)
        return methods;
    for (size_t i = 0; i < key->entry_count; i++)
        if (entry_covers(&key->entries[i], resource))
            allowed |= key->entries[i].methods;
    return methods & allowed;
}

bool access_allows(const struct access_key *key, struct span resource, enum method method)
{
    return access_methods(key, resource, METHOD_BIT(method)) != 0;
}
