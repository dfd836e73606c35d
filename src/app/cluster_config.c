/* One table of members, read like every other object. What is a mistake in any case is refused
 * here, at --check, and not when the node has left the others: a name that is no part of a key in
 * etcd, a URL with a path, a key without its certificate, a password that everybody can read. */
#include "app/cluster_config.h"

#include "app/config.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "json/decimal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum place {
    NAME,
    NODE,
    URL,
    ETCD,
    CA_FILE,
    CERT_FILE,
    KEY_FILE,
    USER,
    PASSWORD_FILE,
    REDIRECT,
    ADOPT,
    FIRST_NUMBER
};

#define NUMBER_AS_PROPERTY(member, text, value, from, to)                                          \
    {SPAN_INIT(text), TYPE_INTEGER, .default_json = SPAN_INIT(#value), .least = from, .most = to},

static const struct property properties[] = {
    [NAME] = {SPAN_INIT("Name"), TYPE_STRING, PROPERTY_REQUIRED},
    [NODE] = {SPAN_INIT("Node"), TYPE_STRING, PROPERTY_REQUIRED},
    [URL] = {SPAN_INIT("Url"), TYPE_STRING, PROPERTY_REQUIRED},
    [ETCD] = {SPAN_INIT("Etcd"), TYPE_ARRAY, PROPERTY_REQUIRED, .elements = TYPE_STRING},
    [CA_FILE] = {SPAN_INIT("CaFile"), TYPE_STRING},
    [CERT_FILE] = {SPAN_INIT("CertFile"), TYPE_STRING},
    [KEY_FILE] = {SPAN_INIT("KeyFile"), TYPE_STRING},
    [USER] = {SPAN_INIT("User"), TYPE_STRING},
    [PASSWORD_FILE] = {SPAN_INIT("PasswordFile"), TYPE_STRING},
    [REDIRECT] = {SPAN_INIT("Redirect"), TYPE_BOOLEAN, .default_json = SPAN_INIT("false")},
    [ADOPT] = {SPAN_INIT("Adopt"), TYPE_BOOLEAN, .default_json = SPAN_INIT("false")},
    CLUSTER_NUMBERS(NUMBER_AS_PROPERTY)};
static const struct shape shape = {.properties = properties, .count = ARRAY_LEN(properties)};

struct reading {
    struct json_value *values;
    struct arena *arena;
};

static struct span name_of(enum place place)
{
    return properties[place].name;
}

/* ---- texts ---- */

static struct err *read_text(const struct reading *r, enum place place, const char **out_text)
{
    return config_read_text(name_of(place), r->values[place], r->arena, out_text);
}

/* A part of a key in etcd: no slash, and nothing that two programs might write in two ways. */
static struct err *read_name(const struct reading *r, enum place place, const char **out_text)
{
    TRY(read_text(r, place, out_text));
    if (config_is_name(span_str(*out_text)) && strlen(*out_text) <= CLUSTER_NAME_MOST)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "%.*s: must have 1 to %d letters, digits, '-', '.' and '_'",
               SPAN_FMT(name_of(place)), CLUSTER_NAME_MOST);
}

static bool is_url(struct span text)
{
    return config_is_origin(text) &&
           (span_istarts(text, SPAN("http://")) || span_istarts(text, SPAN("https://")));
}

#define URL_SHOULD "http:// or https:// with a host, and a port if it has one, and no path"

static struct err *read_url(const struct reading *r, const char **out_url)
{
    TRY(read_text(r, URL, out_url));
    if (is_url(span_str(*out_url)))
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "Url: '%s' should be " URL_SHOULD, *out_url);
}

static struct err *read_etcd(const struct reading *r, struct cluster_config *c)
{
    struct json_value list = r->values[ETCD];

    if (json_count(list) == 0 || json_count(list) > CLUSTER_ETCD_MOST)
        return ERR(ERR_INVALID_ENTITY, "Etcd: must have 1 to %d addresses", CLUSTER_ETCD_MOST);
    for (struct json_value v = json_first(list); json_exists(v); v = json_next(list, v)) {
        struct span text = json_string(v, r->arena);

        if (!is_url(text))
            return ERR(ERR_INVALID_ENTITY, "Etcd[%zu]: '%.*s' should be " URL_SHOULD, c->etcd_count,
                       SPAN_FMT(text));
        c->etcd[c->etcd_count++] = arena_copy(r->arena, text).p;
    }
    return NULL;
}

/* ---- files ---- */

static struct err *check_open_file(int fd, bool is_secret)
{
    struct stat status;
    char byte;

    if (fstat(fd, &status) != 0)
        return ERR(ERR_UNKNOWN, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return ERR(ERR_UNKNOWN, "it is no file");
    if (is_secret && (status.st_mode & (S_IRWXO | S_IWGRP)) != 0)
        return ERR(ERR_UNKNOWN,
                   "it is secret, so nobody but its owner may write it, and nobody but owner and "
                   "group may read it, but its mode is %04o",
                   (unsigned)(status.st_mode & 07777));
    if (read(fd, &byte, 1) != 1)
        return ERR(ERR_UNKNOWN, "it is empty");
    return NULL;
}

static struct err *check_file(const char *file, enum place place, bool is_secret)
{
    struct err *e;
    int fd;

    if (file == NULL)
        return NULL;
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    e = fd < 0 ? ERR(ERR_UNKNOWN, "%s", strerror(errno)) : check_open_file(fd, is_secret);
    if (fd >= 0)
        close(fd);
    return e == NULL ? NULL : err_prefix(e, "%.*s: file '%s': ", SPAN_FMT(name_of(place)), file);
}

static struct err *check_pair(const char *one, enum place place, const char *other,
                              enum place other_place)
{
    bool lacks_one = one == NULL;

    if (lacks_one == (other == NULL))
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "%.*s: is missing, %.*s is of no use without it",
               SPAN_FMT(name_of(lacks_one ? place : other_place)),
               SPAN_FMT(name_of(lacks_one ? other_place : place)));
}

static struct err *check_password(const char *file)
{
    struct stat status;

    if (file == NULL || stat(file, &status) != 0 || status.st_size <= CLUSTER_PASSWORD_MOST)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "PasswordFile: file '%s': a password has at most %d bytes", file,
               CLUSTER_PASSWORD_MOST);
}

static struct err *read_files(const struct reading *r, struct cluster_config *c)
{
    TRY(read_text(r, CA_FILE, &c->ca_file));
    TRY(read_text(r, CERT_FILE, &c->cert_file));
    TRY(read_text(r, KEY_FILE, &c->key_file));
    TRY(read_text(r, USER, &c->user));
    TRY(read_text(r, PASSWORD_FILE, &c->password_file));
    TRY(check_pair(c->cert_file, CERT_FILE, c->key_file, KEY_FILE));
    TRY(check_pair(c->user, USER, c->password_file, PASSWORD_FILE));
    TRY(check_file(c->ca_file, CA_FILE, false));
    TRY(check_file(c->cert_file, CERT_FILE, false));
    TRY(check_file(c->key_file, KEY_FILE, true));
    TRY(check_file(c->password_file, PASSWORD_FILE, true));
    return check_password(c->password_file);
}

/* ---- the whole ---- */

static int64_t integer_of(struct json_value v)
{
    return (int64_t)decimal_to_double(json_text(v)); /* far below 2^53 */
}

struct err *cluster_config_read(struct json_value object, struct arena *a,
                                struct cluster_config *out_cluster)
{
    struct cluster_config c = {.name = NULL};
    struct reading r = {.arena = a};
    unsigned place = FIRST_NUMBER;

    TRY(schema_read(&shape, object, a, &r.values));
    TRY(read_name(&r, NAME, &c.name));
    TRY(read_name(&r, NODE, &c.node));
    TRY(read_url(&r, &c.url));
    TRY(read_etcd(&r, &c));
    TRY(read_files(&r, &c));
#define NUMBER_AS_READ(member, text, value, from, to) c.member = integer_of(r.values[place++]);
    CLUSTER_NUMBERS(NUMBER_AS_READ)
#undef NUMBER_AS_READ
    c.redirects = json_is_true(r.values[REDIRECT]);
    c.adopts = json_is_true(r.values[ADOPT]);
    *out_cluster = c;
    return NULL;
}

struct err *cluster_config_check_fsync(enum journal_fsync fsync)
{
    static const char *const names[] = {JOURNAL_FSYNC_POLICIES(AS_TEXT)};

    if (fsync == JOURNAL_ALWAYS)
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "Cluster: needs Fsync 'always', and Fsync is '%s': what the cluster has confirmed "
               "must be on the disk of each node",
               names[fsync]);
}
