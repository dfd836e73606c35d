/* A declaration is read through tables of members: one for a key, one for an entry of its
 * AllowAccess. */
#include "rest/access.h"

#include "base/digest.h"
#include "base/macros.h"
#include "base/text.h"

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

struct reading {
    struct access *access;
    struct arena *scratch;
};

struct member {
    struct span name;
    struct err *(*read)(const struct reading *r, struct json_value v, void *out);
};

enum { MEMBERS_MAX = 3 };

struct members {
    struct member list[MEMBERS_MAX];
    size_t count;
};

static struct err *unknown_member(const struct members *members, struct span name)
{
    struct span names[MEMBERS_MAX], nearest;

    for (size_t i = 0; i < members->count; i++)
        names[i] = members->list[i].name;
    nearest = text_nearest(name, names, members->count);
    if (nearest.n == 0)
        return ERR(ERR_UNKNOWN, "There is no member '%.*s'.", SPAN_FMT(name));
    return ERR(ERR_UNKNOWN, "There is no member '%.*s'. Did you mean '%.*s'?", SPAN_FMT(name),
               SPAN_FMT(nearest));
}

static struct err *read_member(const struct reading *r, const struct members *members,
                               struct json_member m, unsigned *seen, void *out)
{
    struct span name = json_string(m.name, r->scratch);

    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->list[i];
        struct err *e;

        if (!span_ieq(member->name, name))
            continue;
        if ((*seen & 1u << i) != 0)
            return ERR(ERR_UNKNOWN, "The member '%.*s' is there twice.", SPAN_FMT(name));
        *seen |= 1u << i;
        e = member->read(r, m.value, out);
        return e != NULL ? err_prefix(e, "%.*s: ", SPAN_FMT(member->name)) : NULL;
    }
    return unknown_member(members, name);
}

static struct err *read_object(const struct reading *r, const struct members *members,
                               struct json_value object, void *out)
{
    unsigned seen = 0;

    if (json_type(object) != JSON_OBJECT)
        return ERR(ERR_UNKNOWN, "This must be an object.");
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m))
        TRY(read_member(r, members, m, &seen, out));
    for (size_t i = 0; i < members->count; i++)
        if ((seen & 1u << i) == 0)
            return ERR(ERR_UNKNOWN, "The member '%.*s' is missing.",
                       SPAN_FMT(members->list[i].name));
    return NULL;
}

static struct err *check_array(struct json_value v)
{
    return json_type(v) == JSON_ARRAY ? NULL : ERR(ERR_UNKNOWN, "This must be an array.");
}

static struct err *read_string(const struct reading *r, struct json_value v, struct span *out_text)
{
    if (json_type(v) != JSON_STRING)
        return ERR(ERR_UNKNOWN, "This must be a string.");
    *out_text = json_string(v, r->scratch);
    return NULL;
}

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

static struct err *read_resources(const struct reading *r, struct json_value v, void *out)
{
    struct access_entry *entry = out;
    struct json_value element = json_first(v);

    TRY(check_array(v));
    entry->resource_count = json_count(v);
    entry->resources = ARENA_ARRAY(&r->access->memory, struct span, entry->resource_count);
    for (size_t i = 0; i < entry->resource_count; i++) {
        struct span text;

        TRY(read_string(r, element, &text));
        if (!is_pattern(text))
            return ERR(ERR_UNKNOWN,
                       "'%.*s' is neither a resource's full name, nor 'Namespace.*', nor '*'.",
                       SPAN_FMT(text));
        entry->resources[i] = text_fold(&r->access->memory, text);
        element = json_next(v, element);
    }
    return NULL;
}

static struct err *read_methods(const struct reading *r, struct json_value v, void *out)
{
    struct access_entry *entry = out;
    struct json_value element = json_first(v);

    TRY(check_array(v));
    for (; json_exists(element); element = json_next(v, element)) {
        struct span text;
        enum method method;

        TRY(read_string(r, element, &text));
        method = method_parse(text);
        if (span_eq(text, SPAN("*")))
            entry->methods = METHODS_ALL;
        else if (method != METHOD_OTHER)
            entry->methods |= METHOD_BIT(method);
        else
            return ERR(ERR_UNKNOWN, "'%.*s' is no method.", SPAN_FMT(text));
    }
    entry->methods = method_closure(entry->methods);
    return NULL;
}

static const struct members entry_members = {
    {{SPAN_INIT("Resources"), read_resources}, {SPAN_INIT("Methods"), read_methods}},
    2,
};

static struct err *read_name(const struct reading *r, struct json_value v, void *out)
{
    struct access_key *key = out;
    struct span text;

    TRY(read_string(r, v, &text));
    if (text.n == 0)
        return ERR(ERR_UNKNOWN, "This must not be empty.");
    key->name = arena_copy(&r->access->memory, text);
    return NULL;
}

static struct err *read_digest(const struct reading *r, struct json_value v, void *out)
{
    struct access_key *key = out;
    struct span text;

    TRY(read_string(r, v, &text));
    if (text.n != 2 * sizeof(key->sha256) || !text_from_hex(text, key->sha256))
        return ERR(ERR_UNKNOWN, "This must be a SHA-256 in %zu hexadecimal digits.",
                   2 * sizeof(key->sha256));
    return NULL;
}

static struct err *read_entries(const struct reading *r, struct json_value v, void *out)
{
    struct access_key *key = out;
    struct json_value element = json_first(v);

    TRY(check_array(v));
    key->entry_count = json_count(v);
    key->entries = ARENA_ARRAY(&r->access->memory, struct access_entry, key->entry_count);
    for (size_t i = 0; i < key->entry_count; i++) {
        struct err *e = read_object(r, &entry_members, element, &key->entries[i]);

        if (e != NULL)
            return err_prefix(e, "element %zu: ", i);
        element = json_next(v, element);
    }
    return NULL;
}

static const struct members key_members = {
    {{SPAN_INIT("Name"), read_name},
     {SPAN_INIT("KeySha256"), read_digest},
     {SPAN_INIT("AllowAccess"), read_entries}},
    3,
};

static struct err *check_unlike_others(const struct access *access, const struct access_key *key)
{
    for (size_t i = 0; i < access->key_count; i++) {
        const struct access_key *other = &access->keys[i];

        if (span_eq(other->name, key->name))
            return ERR(ERR_UNKNOWN, "Name: there is an API key '%.*s' already.",
                       SPAN_FMT(key->name));
        if (memcmp(other->sha256, key->sha256, DIGEST_BYTES) == 0)
            return ERR(ERR_UNKNOWN, "KeySha256: the key '%.*s' is the same as '%.*s'.",
                       SPAN_FMT(key->name), SPAN_FMT(other->name));
    }
    return NULL;
}

struct err *access_add(struct access *access, struct json_value declaration, struct arena *scratch)
{
    struct reading r = {access, scratch};
    struct access_key key = {0};
    size_t bytes = access->key_count * sizeof(key);

    TRY(read_object(&r, &key_members, declaration, &key));
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
                                          "Basic with the API key as password.");
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
