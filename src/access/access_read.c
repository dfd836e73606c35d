/* What is read of keys: names and tenants, the entries of an AllowAccess, and the declarations of
 * the configuration. Each is read by a shape. */
#include "access/access.h"
#include "base/text.h"
#include "protocol/method.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "json/json.h"

enum { ENTRY_RESOURCES, ENTRY_METHODS };

static const struct span methods_and_all[] = {
#define METHOD_AS_NAME(symbol, name) SPAN_INIT(name),
    METHODS(METHOD_AS_NAME)
#undef METHOD_AS_NAME
        SPAN_INIT("*")};
static const struct enumeration entry_methods = {
    .name = "Method", .values = methods_and_all, .count = ARRAY_LEN(methods_and_all)};

static const struct property entry_properties[] = {
    [ENTRY_RESOURCES] = {.name = SPAN_INIT("Resources"),
                         .type = TYPE_ARRAY,
                         .elements = TYPE_STRING,
                         .flags = PROPERTY_REQUIRED},
    [ENTRY_METHODS] = {.name = SPAN_INIT("Methods"),
                       .type = TYPE_ARRAY,
                       .elements = TYPE_STRING,
                       .values = &entry_methods,
                       .flags = PROPERTY_REQUIRED},
};
const struct shape access_entry_shape = {entry_properties, ARRAY_LEN(entry_properties), false};

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

/* Dot-delimited parts of letters, digits, '_' and '-'. */
static bool is_dotted(struct span text, size_t least_parts)
{
    size_t parts = 0;

    do {
        struct span part = span_split(&text, '.');

        if (!text_is_made_of(part, "_-"))
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

static struct err *read_resources(struct json_value resources, struct arena *a,
                                  struct access_entry *entry)
{
    entry->resources = ARENA_ARRAY(a, struct span, json_count(resources));
    for (struct json_value v = json_first(resources); json_exists(v); v = json_next(resources, v)) {
        struct span text = json_string(v, a);

        if (!is_pattern(text))
            return ERR(ERR_INVALID_ENTITY,
                       "Resources[%zu]: '%.*s' is neither a resource's full name, nor "
                       "'Namespace.*', nor '*'",
                       entry->resource_count, SPAN_FMT(text));
        entry->resources[entry->resource_count++] = text_fold(a, text);
    }
    return NULL;
}

static struct err *read_methods(struct json_value methods, struct arena *a,
                                struct access_entry *entry)
{
    size_t place = 0;

    for (struct json_value v = json_first(methods); json_exists(v); v = json_next(methods, v)) {
        struct span text = json_string(v, a);
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

struct err *access_read_rights(struct json_value allow_access, struct arena *a,
                               struct access_key *key)
{
    key->entry_count = 0;
    key->entries = ARENA_ARRAY(a, struct access_entry, json_count(allow_access));
    for (struct json_value v = json_first(allow_access); json_exists(v);
         v = json_next(allow_access, v)) {
        struct access_entry *entry = &key->entries[key->entry_count];
        struct json_value *values;
        struct err *e = schema_read(&access_entry_shape, v, a, &values);

        if (e == NULL)
            e = read_resources(values[ENTRY_RESOURCES], a, entry);
        if (e == NULL)
            e = read_methods(values[ENTRY_METHODS], a, entry);
        if (e != NULL)
            return err_prefix(e, "AllowAccess[%zu].", key->entry_count);
        key->entry_count++;
    }
    return NULL;
}

/* Methods in the one spelling that they have. No pattern is one: it has a dot, or is `*`. */
static void add_texts(struct buf *b, struct json_value list, struct arena *a)
{
    buf_add_char(b, '[');
    for (struct json_value v = json_first(list); json_exists(v); v = json_next(list, v)) {
        struct span text = json_string(v, a);
        enum method method = method_parse(text);

        json_add_comma(b);
        json_add_string(b, method == METHOD_OTHER ? text : method_name(method));
    }
    buf_add_char(b, ']');
}

void access_add_rights(struct buf *b, struct json_value allow_access, struct arena *a)
{
    buf_add_char(b, '[');
    for (struct json_value v = json_first(allow_access); json_exists(v);
         v = json_next(allow_access, v)) {
        json_add_comma(b);
        buf_add_str(b, "{\"Resources\":");
        add_texts(b, json_member_fold(v, SPAN("Resources")), a);
        buf_add_str(b, ",\"Methods\":");
        add_texts(b, json_member_fold(v, SPAN("Methods")), a);
        buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
}

bool access_is_tenant(struct span text)
{
    return text.n <= ACCESS_TENANT_BYTES && text_is_made_of(text, "_-.");
}

/* Controls, blanks, marks of direction and what has no width: with these two names look the same.
 */
static bool shows_nothing(uint32_t scalar)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0, 0x20},         {0x7f, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},
                  {0x180e, 0x180e},  {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},
                  {0x3000, 0x3000},  {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
                  {0xe0000, 0xe0fff}};

    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if (scalar >= ranges[i].first && scalar <= ranges[i].last)
            return true;
    return false;
}

bool access_is_name(struct span text)
{
    size_t scalars = 0, n;

    for (; text.n > 0; text = span_sub(text, n, text.n)) {
        n = text_utf8_bytes(text);
        if (n == 0 || shows_nothing(text_scalar(span_sub(text, 0, n))))
            return false;
        if (++scalars > ACCESS_NAME_SCALARS)
            return false;
    }
    return scalars > 0;
}

struct err *access_check_tenant(struct span text)
{
    if (text.p == NULL || access_is_tenant(text))
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "Tenant: '%.*s' is not 1 to %d letters, digits, '_', '-' and '.'", SPAN_FMT(text),
               ACCESS_TENANT_BYTES);
}

struct err *access_check_name(struct span text)
{
    if (access_is_name(text))
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "Name: must be 1 to %d visible characters", ACCESS_NAME_SCALARS);
}

struct err *access_read(struct json_value declaration, struct arena *a, struct access_key *out_key)
{
    struct access_key key = {.expires_unix_ns = ACCESS_FOREVER};
    struct json_value *values;
    struct span sha256;
    struct buf rights;

    TRY(schema_read(&key_shape, declaration, a, &values));
    key.root = key.name = json_string(values[KEY_NAME], a);
    TRY(access_check_name(key.name));
    sha256 = json_string(values[KEY_SHA256], a);
    if (sha256.n != 2 * sizeof(key.sha256) || !text_from_hex(sha256, key.sha256))
        return ERR(ERR_INVALID_ENTITY, "KeySha256: must be a SHA-256 in %zu hexadecimal digits",
                   2 * sizeof(key.sha256));
    key.tenant = json_string(values[KEY_TENANT], a);
    TRY(access_check_tenant(key.tenant));
    TRY(access_read_rights(values[KEY_ALLOW_ACCESS], a, &key));
    buf_init_arena(&rights, a);
    access_add_rights(&rights, values[KEY_ALLOW_ACCESS], a);
    key.rights = buf_span(&rights);
    *out_key = key;
    return NULL;
}
