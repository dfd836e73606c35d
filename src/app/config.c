/* One table of options a section: how a member is checked, its default, and where it goes. The file
 * is parsed once; sections are read like all other objects (rest/schema). Without a file all is
 * read from an empty object: what is left out has the table's default. */
#include "app/config.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/disk.h"
#include "io/process.h"
#include "protocol/cloudevents.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "json/decimal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWN_DESCRIPTORS = 64 }; /* of the journal, listeners, the loop, name resolution */

/* One member of an object in the file. */
struct option {
    struct property property;
    /* `v` is of the property's type, or null when there is no default. */
    struct err *(*read)(struct config *c, const struct option *o, struct json_value v);
    size_t offset;                /* in struct config */
    const struct option *members; /* of a section */
    size_t member_count;
    bool (*fits)(struct span text); /* of an array of texts: which of them may stand in it, and */
    const char *should;             /* how another is told off */
};

static void *target_of(struct config *c, const struct option *o)
{
    return (char *)c + o->offset;
}

/* ---- values ---- */

static struct err *read_integer(struct config *c, const struct option *o, struct json_value v)
{
    double number = decimal_to_double(json_text(v));

    /* A double next to the greatest integer is one more than it. */
    *(int64_t *)target_of(c, o) = number >= 0x1p63 ? INT64_MAX : (int64_t)number;
    return NULL;
}

static struct err *read_boolean(struct config *c, const struct option *o, struct json_value v)
{
    *(bool *)target_of(c, o) = json_is_true(v);
    return NULL;
}

static struct err *read_enum(struct config *c, const struct option *o, struct json_value v)
{
    *(unsigned *)target_of(c, o) =
        (unsigned)enumeration_place(o->property.values, json_string(v, &c->arena));
    return NULL;
}

static struct err *read_document(struct config *c, const struct option *o, struct json_value v)
{
    *(struct json_value *)target_of(c, o) = v;
    return NULL;
}

struct err *config_read_text(struct span name, struct json_value v, struct arena *a,
                             const char **out_text)
{
    struct span text = json_string(v, a);

    if (json_type(v) == JSON_NULL)
        return NULL;
    if (text.n == 0 || span_find_char(text, '\0', 0) < text.n)
        return ERR(ERR_INVALID_ENTITY, "%.*s: must neither be empty nor hold a NUL character",
                   SPAN_FMT(name));
    *out_text = arena_copy(a, text).p;
    return NULL;
}

static struct err *read_text(struct config *c, const struct option *o, struct json_value v)
{
    return config_read_text(o->property.name, v, &c->arena, target_of(c, o));
}

bool config_is_name(struct span text)
{
    return text_is_made_of(text, "-._");
}

/* Parts that no client and no proxy writes in another way. */
static bool is_base_path(struct span path)
{
    struct span rest = span_sub(path, 1, path.n);

    if (!span_starts(path, SPAN("/")))
        return false;
    if (rest.n == 0)
        return true;
    while (rest.p != NULL) {
        struct span part = span_split(&rest, '/');

        if (!config_is_name(part) || span_eq(part, SPAN(".")) || span_eq(part, SPAN("..")))
            return false;
    }
    return true;
}

static struct err *read_base_path(struct config *c, const struct option *o, struct json_value v)
{
    if (!is_base_path(json_string(v, &c->arena)))
        return ERR(ERR_INVALID_ENTITY,
                   "BasePath: must begin with '/' and not end with it, and have parts of letters, "
                   "digits, '-', '.' and '_' between slashes");
    return read_text(c, o, v);
}

/* Ends with NULL; NULL itself for an empty array. */
static struct err *read_texts(struct config *c, const struct option *o, struct json_value v)
{
    const char **texts = ARENA_ARRAY(&c->arena, const char *, (size_t)json_count(v) + 1);
    size_t count = 0;

    for (struct json_value at = json_first(v); json_exists(at); at = json_next(v, at)) {
        struct span text = json_string(at, &c->arena);

        if (!o->fits(text))
            return ERR(ERR_INVALID_ENTITY, "%.*s[%zu]: '%.*s' %s", SPAN_FMT(o->property.name),
                       count, SPAN_FMT(text), o->should);
        texts[count++] = arena_copy(&c->arena, text).p;
    }
    *(const char ***)target_of(c, o) = count > 0 ? texts : NULL;
    return NULL;
}

/* Nothing, or a colon and a number. */
static bool is_port_or_none(struct span text)
{
    uint64_t port;

    return text.n == 0 || (text.p[0] == ':' && span_to_u64(span_sub(text, 1, text.n), &port) &&
                           port > 0 && port <= UINT16_MAX);
}

/* A name, or an address, an IPv6 one in brackets. */
static bool is_host_with_port(struct span text)
{
    struct in6_addr ip;
    size_t end = span_find_char(text, ':', 0);

    if (span_starts(text, SPAN("["))) {
        end = span_find_char(text, ']', 0);
        return end < text.n && ip_parse(span_sub(text, 1, end), &ip) &&
               is_port_or_none(span_sub(text, end + 1, text.n));
    }
    return config_is_name(span_sub(text, 0, end)) && is_port_or_none(span_sub(text, end, text.n));
}

bool config_is_origin(struct span text)
{
    size_t colon = span_find_char(text, ':', 0);
    char first = '0';

    if (text.n > 0)
        first = span_fold_char(text.p[0]);
    return first >= 'a' && first <= 'z' && config_is_name(span_sub(text, 0, colon)) &&
           span_starts(span_sub(text, colon, text.n), SPAN("://")) &&
           is_host_with_port(span_sub(text, colon + SPAN("://").n, text.n));
}

static bool is_origin_or_any(struct span text)
{
    return span_eq(text, SPAN("*")) || config_is_origin(text);
}

static bool is_host(struct span text)
{
    struct in6_addr ip;

    return config_is_name(text) || ip_parse(text, &ip);
}

/* Of a system that sends. */
static bool is_sender_or_any(struct span text)
{
    return span_eq(text, SPAN("*")) || config_is_name(text);
}

/* Ends with NULL, also when it is empty. */
static struct err *read_hosts(struct config *c, const struct option *o, struct json_value v)
{
    static const char *none[] = {NULL};
    const char ***hosts = target_of(c, o);

    TRY(read_texts(c, o, v));
    if (*hosts == NULL)
        *hosts = none;
    return NULL;
}

static struct err *read_source(struct config *c, const struct option *o, struct json_value v)
{
    if (json_type(v) != JSON_NULL && !cloudevents_is_source(json_string(v, &c->arena)))
        return ERR(ERR_INVALID_ENTITY,
                   "%.*s: '%.*s' is no URI, nor a reference to one (RFC 3986), as in "
                   "https://events.example.com/shop",
                   SPAN_FMT(o->property.name), SPAN_FMT(json_string(v, &c->arena)));
    return read_text(c, o, v);
}

static struct err *read_header_names(struct config *c, const struct option *o, struct json_value v)
{
    if (json_count(v) > CONFIG_MAX_SECRET_HEADERS)
        return ERR(ERR_INVALID_ENTITY, "%.*s: must have at most %d names",
                   SPAN_FMT(o->property.name), CONFIG_MAX_SECRET_HEADERS);
    return read_texts(c, o, v);
}

/* One text, with commas between; NULL for an empty array. */
static struct err *read_list(struct config *c, const struct option *o, struct json_value v)
{
    struct buf list;

    buf_init_arena(&list, &c->arena);
    for (struct json_value at = json_first(v); json_exists(at); at = json_next(v, at)) {
        buf_add_str(&list, list.n > 0 ? "," : "");
        buf_add(&list, json_string(at, &c->arena));
    }
    *(const char **)target_of(c, o) = json_count(v) > 0 ? buf_text(&list) : NULL;
    return NULL;
}

static struct err *read_ranges(struct config *c, const struct option *o, struct json_value v)
{
    struct ip_ranges *ranges = target_of(c, o);

    for (struct json_value at = json_first(v); json_exists(at); at = json_next(v, at)) {
        struct err *e = ip_ranges_add(ranges, json_string(at, &c->arena));

        if (e != NULL)
            return err_prefix(e, "%.*s[%zu]: ", SPAN_FMT(o->property.name), ranges->count);
    }
    return NULL;
}

static struct err *read_cluster(struct config *c, const struct option *o, struct json_value v)
{
    struct err *e;

    if (json_type(v) == JSON_NULL)
        return NULL;
    c->cluster = ARENA_NEW(&c->arena, struct cluster_config);
    e = cluster_config_read(v, &c->arena, c->cluster);
    return e == NULL ? NULL : err_prefix(e, "%.*s.", SPAN_FMT(o->property.name));
}

enum { LISTENER_ADDRESS, LISTENER_PROXIED };

static const struct property listener_properties[] = {
    {SPAN_INIT("Address"), TYPE_STRING, PROPERTY_REQUIRED},
    {SPAN_INIT("ProxyProtocol"), TYPE_BOOLEAN, .default_json = SPAN_INIT("false")},
};
static const struct shape listener_shape = {listener_properties, ARRAY_LEN(listener_properties)};

/* An address, or an object with one. */
static struct err *read_listener(struct config *c, struct json_value v, struct tcp_address *out)
{
    struct json_value *values;
    struct err *e;

    if (json_type(v) != JSON_OBJECT)
        return tcp_parse_address(
            json_type(v) == JSON_STRING ? json_string(v, &c->arena) : json_text(v), out);
    TRY(schema_read(&listener_shape, v, &c->arena, &values));
    e = tcp_parse_address(json_string(values[LISTENER_ADDRESS], &c->arena), out);
    out->is_proxied = json_is_true(values[LISTENER_PROXIED]);
    return e == NULL ? NULL : err_prefix(e, "Address: ");
}

static struct err *read_listeners(struct config *c, const struct option *o, struct json_value v)
{
    if (json_count(v) == 0 || json_count(v) > CONFIG_MAX_LISTENERS)
        return ERR(ERR_INVALID_ENTITY, "%.*s: must have 1 to %d addresses",
                   SPAN_FMT(o->property.name), CONFIG_MAX_LISTENERS);
    for (struct json_value at = json_first(v); json_exists(at); at = json_next(v, at)) {
        struct err *e = read_listener(c, at, &c->listeners[c->listener_count]);

        if (e != NULL)
            return err_prefix(e, "%.*s[%zu]%s", SPAN_FMT(o->property.name), c->listener_count,
                              json_type(at) == JSON_OBJECT ? "." : ": ");
        c->listener_count++;
    }
    return NULL;
}

static struct err *read_object(struct config *c, const struct option *options, size_t count,
                               struct json_value object)
{
    struct property *properties = ARENA_ARRAY(&c->arena, struct property, count);
    const struct shape shape = {.properties = properties, .count = count};
    struct json_value *values;

    for (size_t i = 0; i < count; i++)
        properties[i] = options[i].property;
    TRY(schema_read(&shape, object, &c->arena, &values));
    for (size_t i = 0; i < count; i++)
        TRY(options[i].read(c, &options[i], values[i]));
    return NULL;
}

static struct err *read_section(struct config *c, const struct option *o, struct json_value v)
{
    struct err *e = read_object(c, o->members, o->member_count, v);

    return e == NULL ? NULL : err_prefix(e, "%.*s.", SPAN_FMT(o->property.name));
}

/* ---- options ---- */

/* `otherwise`: the default, in JSON. What follows is what else its property has. */
#define OPTION(text, kind, member, reader, otherwise, ...)                                         \
    {                                                                                              \
        {SPAN_INIT(text), (kind), .default_json = SPAN_INIT(otherwise), __VA_ARGS__}, (reader),    \
            offsetof(struct config, member)                                                        \
    }
#define TEXT(text, member, otherwise) OPTION(text, TYPE_STRING, member, read_text, otherwise)
#define INTEGER(text, member, otherwise, from, to)                                                 \
    OPTION(text, TYPE_INTEGER, member, read_integer, otherwise, .least = from, .most = to)
#define ONE_OF(text, member, names, otherwise)                                                     \
    OPTION(text, TYPE_STRING, member, read_enum, otherwise,                                        \
           .values = &(const struct enumeration){text, names, ARRAY_LEN(names)})
#define ARRAY(text, member, reader, kind, otherwise)                                               \
    OPTION(text, TYPE_ARRAY, member, reader, otherwise, .elements = (kind))
#define TEXTS(text, member, reader, otherwise, test, what)                                         \
    {                                                                                              \
        {SPAN_INIT(text), TYPE_ARRAY, .default_json = SPAN_INIT(otherwise),                        \
         .elements = TYPE_STRING},                                                                 \
            (reader), offsetof(struct config, member), .fits = (test), .should = (what)            \
    }
#define SECTION(text, options)                                                                     \
    {                                                                                              \
        {SPAN_INIT(text), TYPE_OBJECT, .default_json = SPAN_INIT("{}")}, read_section, 0,          \
            (options), ARRAY_LEN(options)                                                          \
    }
#define DIGITS_OF(number) #number
#define DIGITS(macro) DIGITS_OF(macro)

static const struct span fsync_names[] = {JOURNAL_FSYNC_POLICIES(AS_SPAN)};
static const struct span preset_names[] = {EGRESS_PRESETS(AS_SPAN)};
static const struct span level_names[] = {LOG_LEVELS(AS_SPAN)};
static const struct span format_names[] = {LOG_FORMATS(AS_SPAN)};

static const struct option limit_options[] = {
#define LIMIT_AS_OPTION(member, text, value, least, most, unit, meaning)                           \
    INTEGER(text, limits.member, #value, least, (double)most),
    LIMITS(LIMIT_AS_OPTION)
        TEXTS("SecretHeaders", secret_headers, read_header_names, "[\"X-Auth-Token\",\"Api-Key\"]",
              text_is_token, "is not a header name"),
};

static const struct option retention_options[] = {
#define RETENTION_AS_OPTION(member, text, value, unit)                                             \
    INTEGER(text, retention.member, #value, 0, 1e15),
    RETENTIONS(RETENTION_AS_OPTION)};

static const struct option egress_options[] = {
    ONE_OF("Preset", egress.preset, preset_names, "\"local-network\""),
    ARRAY("Allow", egress.allow, read_ranges, TYPE_STRING, "[]"),
    ARRAY("Deny", egress.deny, read_ranges, TYPE_STRING, "[]"),
};

static const struct option delivery_options[] = {
    INTEGER("ConnectSeconds", connect_seconds, "5", 1, 300),
    INTEGER("MaxInFlight", max_in_flight, "1024", 1, 100000),
    INTEGER("BodyBytesInFlight", body_bytes_in_flight, "67108864", 65536, 1e15),
    INTEGER("PromptMs", prompt_ms, "1000", 1, 3600000),
    INTEGER("MaxConnectionsPerHost", max_connections_per_host, "32", 1, 10000),
    SECTION("Egress", egress_options),
    TEXT("Proxy", proxy, "null"),
    TEXT("CaFile", ca_file, "null"),
    TEXT("HostsFile", hosts_file, "null"),
    ARRAY("NameServers", name_servers, read_list, TYPE_STRING, "[]"),
};

static const struct option log_options[] = {
    ONE_OF("Level", log_level, level_names, "\"info\""),
    ONE_OF("Format", log_format, format_names, "\"text\""),
};

static const struct option top_options[] = {
    ARRAY("Listen", listeners, read_listeners, TYPE_ANY, "[\"127.0.0.1:8080\"]"),
    OPTION("BasePath", TYPE_STRING, base_path, read_base_path, "\"/\""),
    TEXT("DataDirectory", data_directory, "\"svc-data\""),
    TEXT("User", user, "null"),
    ONE_OF("Fsync", fsync, fsync_names, "\"always\""),
    INTEGER("SegmentBytes", segment_bytes, DIGITS(JOURNAL_SEGMENT_BYTES), 65536, 1073741824),
    OPTION("RequireApiKey", TYPE_BOOLEAN, require_api_key, read_boolean, "false"),
    ARRAY("ApiKeys", api_keys, read_document, TYPE_OBJECT, "[]"),
    TEXTS("AllowedCorsOrigins", cors_origins, read_texts, "[]", is_origin_or_any,
          "is no origin: a scheme and a host, as in https://app.example, with the port if it has "
          "one, and no path; or *"),
    OPTION("CloudEventsSource", TYPE_STRING, cloudevents_source, read_source, "null"),
    TEXTS("AllowedCloudEventsOrigins", cloudevents_origins, read_texts, "[]", is_sender_or_any,
          "is no name of a sender, as in events.example.com, without scheme and port; nor *"),
    TEXTS("Hosts", hosts, read_hosts, "[]", is_host,
          "is neither a name nor an address; it has no port, and an IPv6 address no brackets"),
    ARRAY("TrustedProxies", trusted_proxies, read_ranges, TYPE_STRING, "[\"127.0.0.0/8\",\"::1\"]"),
    ARRAY("Resources", resources, read_document, TYPE_OBJECT, "[]"),
    SECTION("Limits", limit_options),
    SECTION("Retention", retention_options),
    SECTION("Delivery", delivery_options),
    OPTION("Cluster", TYPE_OBJECT, cluster, read_cluster, "null"),
    SECTION("Log", log_options),
};

/* ---- the file ---- */

/* Whoever may write it decides who may do what, and where what is sent goes. */
static struct err *check_owner(const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return NULL;
    if (status->st_uid != 0 && status->st_uid != geteuid())
        return ERR(ERR_UNKNOWN, "it belongs to user %u, neither to root nor to who reads it",
                   (unsigned)status->st_uid);
    return NULL;
}

/* A pipe may be read at the start, which waits for its end then. */
static struct err *check_file(int fd, bool is_again, mode_t *out_mode)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return ERR(ERR_UNKNOWN, "%s", strerror(errno));
    TRY(check_owner(&status));
    *out_mode = S_ISREG(status.st_mode) ? status.st_mode & 07777 : 0;
    if (S_ISREG(status.st_mode))
        return NULL;
    if (is_again || S_ISDIR(status.st_mode))
        return ERR(ERR_UNKNOWN, "it is no file%s", is_again ? ", which could be read anew" : "");
    return fcntl(fd, F_SETFL, 0) == 0 ? NULL : ERR(ERR_UNKNOWN, "%s", strerror(errno));
}

static struct err *read_open_file(int fd, bool is_again, struct buf *b, mode_t *out_mode)
{
    TRY(check_file(fd, is_again, out_mode));
    if (!buf_read_all(b, fd))
        return ERR(ERR_UNKNOWN, "%s", strerror(errno));
    if (buf_over(b))
        return ERR(ERR_UNKNOWN, "larger than %zu bytes", CONFIG_MAX_BYTES);
    return NULL;
}

/* out_mode: the file's permissions; a pipe has none that matter. */
static struct err *read_file(const char *file, bool is_again, struct buf *b, mode_t *out_mode)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct err *e;

    if (fd < 0)
        return ERR(ERR_UNKNOWN, "%s", strerror(errno));
    e = read_open_file(fd, is_again, b, out_mode);
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

static struct err *parse(struct config *c, struct span text)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST, 1u << 27};
    struct json_doc *doc = ARENA_NEW(&c->arena, struct json_doc);

    TRY(json_parse(text, &limits, &c->arena, doc));
    c->listens_by_default =
        json_type(json_member_fold(json_root(doc), SPAN("Listen"))) == JSON_NULL;
    return read_object(c, top_options, ARRAY_LEN(top_options), json_root(doc));
}

/* The group may read: root then owns the file that the server's user reads at SIGHUP. */
static struct err *check_mode(const struct config *c, mode_t mode)
{
    bool has_password = c->proxy != NULL && strchr(c->proxy, '@') != NULL;
    bool has_secrets = json_count(c->api_keys) > 0 || has_password;

    if (!has_secrets && (mode & S_IWOTH) != 0)
        return ERR(ERR_UNKNOWN, "everybody may write it, its mode is %04o: chmod o-w %s",
                   (unsigned)mode, c->file);
    if ((mode & (S_IROTH | S_IWOTH | S_IWGRP)) == 0 || !has_secrets)
        return NULL;
    return ERR(ERR_UNKNOWN,
               "it holds keys or a password, so nobody but its owner may write it, and nobody but "
               "owner and group may read it, but its mode is %04o: chmod 0640 %s",
               (unsigned)mode, c->file);
}

static struct err *read_configuration(struct config *c, bool is_again)
{
    mode_t mode;

    /* dirname writes into what it is given: a copy. */
    c->directory = dirname((char *)(uintptr_t)arena_copy(&c->arena, span_str(c->file)).p);
    TRY(read_file(c->file, is_again, &c->text, &mode));
    blank_comments(&c->text);
    TRY(parse(c, buf_span(&c->text)));
    return check_mode(c, mode);
}

static struct err *apply_arguments(struct config *c, const struct config_arguments *arguments)
{
    if (arguments->data_directory != NULL)
        c->data_directory = arguments->data_directory;
    for (size_t i = 0; i < arguments->listen_count; i++) {
        struct err *e = tcp_parse_address(span_str(arguments->listen[i]), &c->listeners[i]);

        if (e != NULL)
            return err_prefix(e, "--listen: ");
    }
    if (arguments->listen_count > 0) {
        c->listener_count = arguments->listen_count;
        c->listens_by_default = false;
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

static struct err *check_segments(const struct config *c)
{
    if (c->segment_bytes % DISK_BLOCK_BYTES == 0)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "SegmentBytes: is %lld, it must be a multiple of %u",
               (long long)c->segment_bytes, DISK_BLOCK_BYTES);
}

struct err *config_read(struct config *c, const struct config_arguments *arguments)
{
    struct err *e;

    *c = (struct config){.file = arguments->file, .text.max = CONFIG_MAX_BYTES};
    e = c->file != NULL ? read_configuration(c, arguments->is_again) : parse(c, SPAN("{}"));
    if (e == NULL)
        TRY(apply_arguments(c, arguments));
    for (size_t i = 0; i < c->listener_count && e == NULL; i++)
        e = check_listener(c, &c->listeners[i]);
    if (e == NULL)
        e = check_segments(c);
    if (e == NULL && c->cluster != NULL)
        e = cluster_config_check_fsync(c->fsync);
    return e == NULL || c->file == NULL ? e : err_prefix(e, "%s: ", c->file);
}

void config_done(struct config *c)
{
    mem_wipe(c->text.p, c->text.n); /* it may hold what others must not see */
    buf_done(&c->text);
    ip_ranges_done(&c->trusted_proxies);
    egress_done(&c->egress);
    arena_done(&c->arena);
}

struct err *config_access(struct config *c, struct access *out_access)
{
    access_init(out_access);
    out_access->required = c->require_api_key;
    for (struct json_value v = json_first(c->api_keys); json_exists(v);
         v = json_next(c->api_keys, v)) {
        struct err *e = access_add(out_access, v, &c->arena);

        if (e != NULL) {
            e = err_prefix(e, "ApiKeys[%zu].", access_count(out_access));
            access_done(out_access);
            return e;
        }
    }
    return NULL;
}

struct err *config_check_again(const struct config_arguments *arguments)
{
    struct config_arguments again = *arguments;
    struct config c;
    struct err *e;

    again.is_again = true;
    e = config_read(&c, &again);
    config_done(&c);
    return e;
}

/* Clients may not take the descriptors that the journal and deliveries need. */
void config_fit_connections(struct config *c)
{
    uint64_t all = process_descriptors_most();
    int64_t room = (int64_t)(all - MIN(all / 2, (uint64_t)c->max_in_flight + OWN_DESCRIPTORS));

    if (c->limits.connections <= room)
        return;
    log_warn("server",
             "Limits.Connections: %lld are too many for the %llu files that the process may have "
             "open: there will be %lld",
             (long long)c->limits.connections, (unsigned long long)all, (long long)room);
    c->limits.connections = room;
}
