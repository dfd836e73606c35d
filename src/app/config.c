/* One table a section: member, kind, where it goes, range. cJSON reads the file, after the strict
 * scan that all JSON goes through, which knows lines and columns. */
#include "app/config.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"
#include "rest/access.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One member of an object in the file. */
struct option {
    struct span name;
    struct err *(*read)(struct config *c, const struct option *o, const cJSON *value);
    size_t offset; /* in struct config */
    double least, most;
    const struct span *names; /* of an enumeration's values */
    size_t name_count;
};

static void *target_of(struct config *c, const struct option *o)
{
    return (char *)c + o->offset;
}

static struct err *wrong_kind(const struct option *o, const char *wanted)
{
    return ERR(ERR_INVALID_ENTITY, "%.*s: must be %s", SPAN_FMT(o->name), wanted);
}

static struct err *check_integer(const struct option *o, const cJSON *value)
{
    double number = value->valuedouble;

    if (!cJSON_IsNumber(value) || number != floor(number))
        return wrong_kind(o, "a whole number");
    if (number < o->least || number > o->most)
        return ERR(ERR_INVALID_ENTITY, "%.*s: is %.0f, it must be between %.0f and %.0f",
                   SPAN_FMT(o->name), number, o->least, o->most);
    return NULL;
}

static struct err *read_i64(struct config *c, const struct option *o, const cJSON *value)
{
    TRY(check_integer(o, value));
    /* A double next to the greatest integer is one more than it. */
    *(int64_t *)target_of(c, o) =
        value->valuedouble >= 0x1p63 ? INT64_MAX : (int64_t)value->valuedouble;
    return NULL;
}

static struct err *read_unsigned(struct config *c, const struct option *o, const cJSON *value)
{
    TRY(check_integer(o, value));
    *(unsigned *)target_of(c, o) = (unsigned)value->valuedouble;
    return NULL;
}

static struct err *read_boolean(struct config *c, const struct option *o, const cJSON *value)
{
    if (!cJSON_IsBool(value))
        return wrong_kind(o, "true or false");
    *(bool *)target_of(c, o) = cJSON_IsTrue(value);
    return NULL;
}

static struct err *read_string(struct config *c, const struct option *o, const cJSON *value)
{
    const char **target = target_of(c, o);

    if (cJSON_IsNull(value) && o->least < 0) { /* may be null */
        *target = NULL;
        return NULL;
    }
    if (!cJSON_IsString(value) || value->valuestring[0] == '\0')
        return wrong_kind(o, "a string that is not empty");
    *target = arena_copy(&c->arena, span_str(value->valuestring)).p;
    return NULL;
}

static struct err *read_enum(struct config *c, const struct option *o, const cJSON *value)
{
    struct span list = SPAN("");

    for (size_t i = 0; i < o->name_count; i++) {
        if (cJSON_IsString(value) && span_ieq(span_str(value->valuestring), o->names[i])) {
            *(unsigned *)target_of(c, o) = (unsigned)i;
            return NULL;
        }
        list = arena_printf(&c->arena, "%.*s%s%.*s", SPAN_FMT(list), i == 0 ? "" : ", ",
                            SPAN_FMT(o->names[i]));
    }
    return ERR(ERR_INVALID_ENTITY, "%.*s: must be one of %.*s", SPAN_FMT(o->name), SPAN_FMT(list));
}

static struct err *check_strings(const struct option *o, const cJSON *value)
{
    const cJSON *element;

    if (!cJSON_IsArray(value))
        return wrong_kind(o, "an array of strings");
    cJSON_ArrayForEach(element, value) if (!cJSON_IsString(element)) return wrong_kind(
        o, "an array of strings");
    return NULL;
}

static struct err *read_origins(struct config *c, const struct option *o, const cJSON *value)
{
    const cJSON *element;
    size_t count = 0;
    const char **origins;

    TRY(check_strings(o, value));
    if (cJSON_GetArraySize(value) == 0)
        return NULL;
    origins = ARENA_ARRAY(&c->arena, const char *, (size_t)cJSON_GetArraySize(value) + 1);
    cJSON_ArrayForEach(element, value) origins[count++] =
        arena_copy(&c->arena, span_str(element->valuestring)).p;
    c->cors_origins = origins;
    return NULL;
}

/* One text, with commas between; NULL for an empty array. */
static struct err *read_list(struct config *c, const struct option *o, const cJSON *value)
{
    const cJSON *element;
    struct buf list;

    TRY(check_strings(o, value));
    if (cJSON_GetArraySize(value) == 0) {
        *(const char **)target_of(c, o) = NULL;
        return NULL;
    }
    buf_init(&list, BUF_NO_CAP);
    cJSON_ArrayForEach(element, value)
    {
        if (element != value->child)
            buf_add_char(&list, ',');
        buf_add_str(&list, element->valuestring);
    }
    *(const char **)target_of(c, o) = arena_copy(&c->arena, buf_span(&list)).p;
    buf_done(&list);
    return NULL;
}

/* Arrays that other modules decode keep their text. */
static struct err *read_document(struct config *c, const struct option *o, const cJSON *value)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST, 1u << 27};
    char *printed;
    struct span text;

    if (!cJSON_IsArray(value))
        return wrong_kind(o, "an array of objects");
    printed = cJSON_PrintUnformatted(value);
    if (printed == NULL)
        return ERR(ERR_UNKNOWN, "%.*s: out of memory", SPAN_FMT(o->name));
    text = arena_copy(&c->arena, span_str(printed));
    cJSON_free(printed);
    return json_parse(text, &limits, &c->arena, target_of(c, o));
}

/* The list takes the place of the default. */
static struct err *read_ranges(struct config *c, const struct option *o, const cJSON *value)
{
    struct ip_ranges *ranges = target_of(c, o);
    const cJSON *element;

    TRY(check_strings(o, value));
    ip_ranges_done(ranges);
    cJSON_ArrayForEach(element, value)
    {
        struct err *e = ip_ranges_add(ranges, span_str(element->valuestring));

        if (e != NULL)
            return err_prefix(e, "%.*s: ", SPAN_FMT(o->name));
    }
    return NULL;
}

static struct err *read_preset(struct config *c, const struct option *o, const cJSON *value)
{
    if (cJSON_IsString(value) &&
        egress_preset_parse(span_str(value->valuestring), &c->egress.preset))
        return NULL;
    return wrong_kind(o, "\"local-network\" or \"public-only\"");
}

/* Reads every member of an object by the table. */
static struct err *read_object(struct config *c, const struct option *options, size_t count,
                               const cJSON *object)
{
    const cJSON *member;

    cJSON_ArrayForEach(member, object)
    {
        const struct option *found = NULL;
        struct span names[64], name = span_str(member->string), nearest;

        MUST(count <= ARRAY_LEN(names));
        for (size_t i = 0; i < count; i++) {
            names[i] = options[i].name;
            if (span_ieq(options[i].name, name))
                found = &options[i];
        }
        if (found != NULL) {
            TRY(found->read(c, found, member));
            continue;
        }
        nearest = text_nearest(name, names, count);
        if (nearest.p == NULL)
            return ERR(ERR_UNKNOWN_MEMBER, "%.*s: there is no such member", SPAN_FMT(name));
        return ERR(ERR_UNKNOWN_MEMBER, "%.*s: there is no such member, is '%.*s' meant?",
                   SPAN_FMT(name), SPAN_FMT(nearest));
    }
    return NULL;
}

static struct err *read_section(struct config *c, const struct option *o, const cJSON *value,
                                const struct option *options, size_t count)
{
    struct err *e;

    if (!cJSON_IsObject(value))
        return wrong_kind(o, "an object");
    e = read_object(c, options, count, value);
    return e == NULL ? NULL : err_prefix(e, "%.*s.", SPAN_FMT(o->name));
}

/* One of Listen, behind those that were read already. */
static struct tcp_address *next_listener(struct config *c)
{
    return &c->listeners[c->listener_count];
}

static struct err *read_address(struct config *c, const struct option *o, const cJSON *value)
{
    struct tcp_address *listener = next_listener(c);
    bool is_proxied = listener->is_proxied; /* the members come in any order */

    if (!cJSON_IsString(value))
        return wrong_kind(o, "a string");
    TRY(tcp_parse_address(span_str(value->valuestring), listener));
    listener->is_proxied = is_proxied;
    return NULL;
}

static struct err *read_proxied(struct config *c, const struct option *o, const cJSON *value)
{
    if (!cJSON_IsBool(value))
        return wrong_kind(o, "true or false");
    next_listener(c)->is_proxied = cJSON_IsTrue(value);
    return NULL;
}

static const struct option listener_options[] = {
    {.name = SPAN_INIT("Address"), .read = read_address},
    {.name = SPAN_INIT("ProxyProtocol"), .read = read_proxied},
};

static struct err *read_listener(struct config *c, const cJSON *value)
{
    struct tcp_address *listener = next_listener(c);

    *listener = (struct tcp_address){.port = 0};
    if (!cJSON_IsObject(value))
        return read_address(c, &listener_options[0], value);
    TRY(read_object(c, listener_options, ARRAY_LEN(listener_options), value));
    return listener->text[0] != '\0' ? NULL : wrong_kind(&listener_options[0], "there");
}

static struct err *read_listeners(struct config *c, const struct option *o, const cJSON *value)
{
    const cJSON *element;

    if (!cJSON_IsArray(value))
        return wrong_kind(o, "an array of addresses");
    if (cJSON_GetArraySize(value) == 0 || cJSON_GetArraySize(value) > CONFIG_MAX_LISTENERS)
        return ERR(ERR_INVALID_ENTITY, "%.*s: must have 1 to %d addresses", SPAN_FMT(o->name),
                   CONFIG_MAX_LISTENERS);
    c->listener_count = 0;
    c->listens_by_default = false;
    cJSON_ArrayForEach(element, value)
    {
        struct err *e = read_listener(c, element);

        if (e != NULL)
            return err_prefix(e, "%.*s: ", SPAN_FMT(o->name));
        c->listener_count++;
    }
    return NULL;
}

static struct err *read_limits(struct config *c, const struct option *o, const cJSON *value)
{
    struct option options[64];

    MUST(limits_count <= ARRAY_LEN(options));
    for (size_t i = 0; i < limits_count; i++)
        options[i] = (struct option){
            .name = limits_table[i].name,
            .read = read_i64,
            .offset = offsetof(struct config, limits) + limits_table[i].offset,
            .least = (double)limits_table[i].least,
            .most = (double)limits_table[i].most,
        };
    return read_section(c, o, value, options, limits_count);
}

static const struct option retention_options[] = {
#define RETENTION_AS_OPTION(member, text, value, unit)                                             \
    {.name = SPAN_INIT(text),                                                                      \
     .read = read_i64,                                                                             \
     .offset = offsetof(struct config, retention) + offsetof(struct retention_limits, member),     \
     .least = 0,                                                                                   \
     .most = 1e9},
    RETENTIONS(RETENTION_AS_OPTION)
#undef RETENTION_AS_OPTION
};

static struct err *read_retention(struct config *c, const struct option *o, const cJSON *value)
{
    return read_section(c, o, value, retention_options, ARRAY_LEN(retention_options));
}

#define INTO(member) .offset = offsetof(struct config, member)
#define MAY_BE_NULL .least = -1

static const struct option egress_options[] = {
    {.name = SPAN_INIT("Preset"), .read = read_preset},
    {SPAN_INIT("Allow"), read_ranges, INTO(egress.allow)},
    {SPAN_INIT("Deny"), read_ranges, INTO(egress.deny)},
};

static struct err *read_egress(struct config *c, const struct option *o, const cJSON *value)
{
    return read_section(c, o, value, egress_options, ARRAY_LEN(egress_options));
}

static const struct option delivery_options[] = {
    {SPAN_INIT("ConnectSeconds"), read_unsigned, INTO(connect_seconds), .least = 1, .most = 300},
    {SPAN_INIT("MaxInFlight"), read_unsigned, INTO(max_in_flight), .least = 1, .most = 100000},
    {SPAN_INIT("MaxConnectionsPerHost"), read_unsigned, INTO(max_connections_per_host), .least = 1,
     .most = 10000},
    {.name = SPAN_INIT("Egress"), .read = read_egress},
    {SPAN_INIT("Proxy"), read_string, INTO(proxy), MAY_BE_NULL},
    {SPAN_INIT("CaFile"), read_string, INTO(ca_file), MAY_BE_NULL},
    {SPAN_INIT("HostsFile"), read_string, INTO(hosts_file), MAY_BE_NULL},
    {SPAN_INIT("NameServers"), read_list, INTO(name_servers)},
};

static struct err *read_delivery(struct config *c, const struct option *o, const cJSON *value)
{
    return read_section(c, o, value, delivery_options, ARRAY_LEN(delivery_options));
}

/* In the order of enum log_level, enum log_format, enum journal_fsync. */
static const struct span level_names[] = {SPAN_INIT("debug"), SPAN_INIT("info"), SPAN_INIT("warn"),
                                          SPAN_INIT("error")};
static const struct span format_names[] = {SPAN_INIT("text"), SPAN_INIT("json")};
static const struct span fsync_names[] = {
#define FSYNC_AS_NAME(symbol, text) SPAN_INIT(text),
    JOURNAL_FSYNC_POLICIES(FSYNC_AS_NAME)
#undef FSYNC_AS_NAME
};

#define ONE_OF(list) .names = list, .name_count = ARRAY_LEN(list)

static const struct option log_options[] = {
    {SPAN_INIT("Level"), read_enum, INTO(log_level), ONE_OF(level_names)},
    {SPAN_INIT("Format"), read_enum, INTO(log_format), ONE_OF(format_names)},
};

static struct err *read_log(struct config *c, const struct option *o, const cJSON *value)
{
    return read_section(c, o, value, log_options, ARRAY_LEN(log_options));
}

static const struct option top_options[] = {
    {.name = SPAN_INIT("Listen"), .read = read_listeners},
    {SPAN_INIT("BasePath"), read_string, INTO(base_path)},
    {SPAN_INIT("DataDirectory"), read_string, INTO(data_directory)},
    {SPAN_INIT("User"), read_string, INTO(user), MAY_BE_NULL},
    {SPAN_INIT("Fsync"), read_enum, INTO(fsync), ONE_OF(fsync_names)},
    {SPAN_INIT("SegmentBytes"), read_i64, INTO(segment_bytes), .least = 65536, .most = 1073741824},
    {SPAN_INIT("RequireApiKey"), read_boolean, INTO(require_api_key)},
    {SPAN_INIT("ApiKeys"), read_document, INTO(api_keys)},
    {.name = SPAN_INIT("AllowedCorsOrigins"), .read = read_origins},
    {SPAN_INIT("TrustedProxies"), read_ranges, INTO(trusted_proxies)},
    {SPAN_INIT("Resources"), read_document, INTO(resources)},
    {.name = SPAN_INIT("Limits"), .read = read_limits},
    {.name = SPAN_INIT("Retention"), .read = read_retention},
    {.name = SPAN_INIT("Delivery"), .read = read_delivery},
    {.name = SPAN_INIT("Log"), .read = read_log},
};

void config_init(struct config *c)
{
    memset(c, 0, sizeof(*c));
    arena_init(&c->arena);
    egress_init(&c->egress);
    limits_init(&c->limits);
    c->retention = (struct retention_limits){
#define RETENTION_AS_DEFAULT(member, name, value, unit) .member = value,
        RETENTIONS(RETENTION_AS_DEFAULT)
#undef RETENTION_AS_DEFAULT
    };
    MUST(tcp_parse_address(SPAN("127.0.0.1:8080"), &c->listeners[0]) == NULL);
    c->listener_count = 1;
    c->listens_by_default = true;
    MUST(ip_ranges_add(&c->trusted_proxies, SPAN("127.0.0.0/8")) == NULL);
    MUST(ip_ranges_add(&c->trusted_proxies, SPAN("::1")) == NULL);
    c->base_path = "/";
    c->data_directory = "svc-data";
    c->segment_bytes = JOURNAL_SEGMENT_BYTES;
    c->connect_seconds = 5;
    c->max_in_flight = 1024;
    c->max_connections_per_host = 32;
    c->log_level = LOG_INFO;
}

void config_done(struct config *c)
{
    ip_ranges_done(&c->trusted_proxies);
    egress_done(&c->egress);
    arena_done(&c->arena);
}

static struct err *read_all(int fd, struct buf *b)
{
    ssize_t n;

    do {
        char *room = buf_reserve(b, 65536);

        if (room == NULL)
            return ERR(ERR_UNKNOWN, "larger than %zu bytes", CONFIG_MAX_BYTES);
        n = read(fd, room, 65536);
        if (n < 0)
            return ERR(ERR_UNKNOWN, "%s", strerror(errno));
        buf_commit(b, (size_t)n);
    } while (n > 0);
    return NULL;
}

/* out_mode: the file's permissions; a pipe has none that matter. */
static struct err *read_file(const char *file, struct buf *b, mode_t *out_mode)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat status;
    struct err *e;

    if (fd < 0)
        return ERR(ERR_UNKNOWN, "%s", strerror(errno));
    e = fstat(fd, &status) == 0 ? read_all(fd, b) : ERR(ERR_UNKNOWN, "%s", strerror(errno));
    if (e == NULL)
        *out_mode = S_ISREG(status.st_mode) ? status.st_mode & 07777 : 0;
    close(fd);
    return e;
}

/* Lines that begin with `//` are comments: they become blank, so that places in messages stay
 * right. No JSON string can hold a line break, so such a line is never inside of one. */
static void blank_comments(struct buf *b)
{
    struct span rest = buf_span(b);

    while (rest.p != NULL) {
        struct span line = span_split(&rest, '\n');

        if (span_starts(span_trim(line), SPAN("//")))
            memset(b->p + (line.p - b->p), ' ', line.n);
    }
}

static struct err *read_text(struct config *c, struct buf *b)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST, 1u << 27};
    struct json_doc doc;
    struct err *e;
    cJSON *tree;

    blank_comments(b);
    TRY(json_parse(buf_span(b), &limits, &c->arena, &doc));
    TRY(json_check_unique(json_root(&doc), true, &c->arena));
    if (json_type(json_root(&doc)) != JSON_OBJECT)
        return ERR(ERR_INVALID_ENTITY, "it is not a JSON object");
    tree = cJSON_ParseWithLength(buf_text(b), b->n);
    if (tree == NULL)
        return ERR(ERR_FAILED_JSON, "a number is too long, or memory ran out");
    e = read_object(c, top_options, ARRAY_LEN(top_options), tree);
    cJSON_Delete(tree);
    return e;
}

static struct err *check_base_path(const struct config *c)
{
    struct span path = span_str(c->base_path);

    if (!span_starts(path, SPAN("/")) || (path.n > 1 && span_ends(path, SPAN("/"))))
        return ERR(ERR_INVALID_ENTITY, "BasePath: must begin with '/' and not end with it");
    return NULL;
}

static bool holds_secrets(const struct config *c)
{
    bool has_keys = c->api_keys.node_count > 0 && json_exists(json_first(json_root(&c->api_keys)));

    return has_keys || (c->proxy != NULL && strchr(c->proxy, '@') != NULL);
}

/* The group may read: root then owns the file that the server's user reads at SIGHUP. */
static struct err *check_mode(const struct config *c, mode_t mode)
{
    const mode_t too_much = S_IROTH | S_IWOTH | S_IWGRP;

    if (!holds_secrets(c) || (mode & too_much) == 0)
        return NULL;
    return ERR(ERR_UNKNOWN,
               "it holds keys or a password, so nobody but its owner may write it, and nobody but "
               "owner and group may read it, but its mode is %04o: chmod 0640 %s",
               (unsigned)mode, c->file);
}

static const char *directory_of(struct config *c, const char *file)
{
    char *copy = arena_alloc(&c->arena, strlen(file) + 1);

    memcpy(copy, file, strlen(file) + 1);
    return dirname(copy);
}

static struct err *read_configuration(struct config *c, const char *file)
{
    struct buf b;
    struct err *e;
    mode_t mode = 0;

    buf_init(&b, CONFIG_MAX_BYTES);
    c->file = arena_copy(&c->arena, span_str(file)).p;
    c->directory = directory_of(c, file);
    e = read_file(file, &b, &mode);
    if (e == NULL)
        e = read_text(c, &b);
    if (e == NULL)
        e = check_base_path(c);
    if (e == NULL)
        e = check_mode(c, mode);
    mem_wipe(b.p, b.n); /* it may hold what others must not see */
    buf_done(&b);
    return e == NULL ? NULL : err_prefix(e, "%s: ", file);
}

static struct err *apply_arguments(struct config *c, const struct config_arguments *arguments)
{
    if (arguments->data_directory != NULL)
        c->data_directory = arguments->data_directory;
    if (arguments->listen_count > 0) {
        c->listener_count = 0;
        c->listens_by_default = false;
    }
    for (size_t i = 0; i < arguments->listen_count; i++) {
        struct err *e =
            tcp_parse_address(span_str(arguments->listen[i]), &c->listeners[c->listener_count++]);

        if (e != NULL)
            return err_prefix(e, "--listen: ");
    }
    return NULL;
}

static struct err *check_listener(const struct config *c, const struct tcp_address *address)
{
    if (c->require_api_key || address->is_loopback || address->is_unix)
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "RequireApiKey: must be true to listen on %s, which others can reach",
               address->text);
}

struct err *config_add_listener(struct config *c, const struct tcp_address *address)
{
    TRY(check_listener(c, address));
    if (c->listener_count == CONFIG_MAX_LISTENERS)
        return ERR(ERR_INVALID_ENTITY, "Listen: %s is one address too many", address->text);
    c->listeners[c->listener_count++] = *address;
    return NULL;
}

struct err *config_read(struct config *c, const struct config_arguments *arguments)
{
    if (arguments->file != NULL)
        TRY(read_configuration(c, arguments->file));
    TRY(apply_arguments(c, arguments));
    for (size_t i = 0; i < c->listener_count; i++) {
        struct err *e = check_listener(c, &c->listeners[i]);

        if (e != NULL)
            return c->file == NULL ? e : err_prefix(e, "%s: ", c->file);
    }
    return NULL;
}

struct json_value config_resources(const struct config *c)
{
    return c->resources.node_count > 0 ? json_root(&c->resources) : (struct json_value){NULL, NULL};
}

struct err *config_access(const struct config *c, struct access *out_access)
{
    struct json_value keys;
    struct arena a;
    struct err *e = NULL;
    size_t place = 0;

    access_init(out_access);
    out_access->required = c->require_api_key;
    if (c->api_keys.node_count == 0)
        return NULL;
    arena_init(&a);
    keys = json_root(&c->api_keys);
    for (struct json_value v = json_first(keys); json_exists(v) && e == NULL;
         v = json_next(keys, v), place++) {
        e = access_add(out_access, v, &a);
        if (e != NULL)
            e = err_prefix(e, "ApiKeys[%zu]: ", place);
    }
    arena_done(&a);
    if (e != NULL)
        access_done(out_access);
    return e;
}
