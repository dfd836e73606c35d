/* The configuration file. The input is its text, comments and all. A refusal names the file; what
 * is accepted is within its limits, and means the same when it is written out with other blanks, or
 * with more comments. */
#include "access/access.h"
#include "access/access_keys.h"
#include "app/config.h"
#include "fuzzing.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a file that lives as long as the process ---- */

static struct {
    int fd;
    char name[32];
} file;

static void store_file(struct span text)
{
    if (file.name[0] == '\0') {
        file.fd = memfd_create("svcd.json", MFD_CLOEXEC);
        MUST(file.fd >= 0 && fchmod(file.fd, 0600) == 0);
        snprintf(file.name, sizeof(file.name), "/proc/self/fd/%d", file.fd);
    }
    MUST(ftruncate(file.fd, 0) == 0);
    MUST(pwrite(file.fd, text.p, text.n, 0) == (ssize_t)text.n);
}

/* ---- what was understood, as text ---- */

static void note_text(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, "%s: %s\n", name, text == NULL ? "none" : text);
}

static void note_document(struct buf *b, struct json_value v)
{
    json_add_compact(b, v);
    buf_add_char(b, '\n');
}

static void note_limits(struct buf *b, const struct limits *limits)
{
#define LIMIT_AS_NOTE(member, name, value, from, to, unit, meaning)                                \
    MUST(limits->member >= from && limits->member <= to);                                          \
    buf_printf(b, "%s: %lld\n", name, (long long)limits->member);
    LIMITS(LIMIT_AS_NOTE)
#undef LIMIT_AS_NOTE
}

static void note_retention(struct buf *b, const struct retention_limits *r)
{
#define RETENTION_AS_NOTE(member, name, value, unit)                                               \
    MUST(r->member >= 0);                                                                          \
    buf_printf(b, "%s: %lld\n", name, (long long)r->member);
    RETENTIONS(RETENTION_AS_NOTE)
#undef RETENTION_AS_NOTE
}

static void note_listeners(struct buf *b, const struct config *c)
{
    MUST(c->listener_count > 0 && c->listener_count <= CONFIG_MAX_LISTENERS);
    for (size_t i = 0; i < c->listener_count; i++) {
        const struct tcp_address *address = &c->listeners[i];
        struct tcp_address again;

        MUST(c->require_api_key || address->is_loopback || address->is_unix);
        MUST(tcp_parse_address(span_str(address->text), &again) == NULL);
        MUST(strcmp(again.text, address->text) == 0 && again.port == address->port);
        note_text(b, "listener", address->text);
    }
}

static void note_origins(struct buf *b, const struct config *c)
{
    for (const char **origin = c->cors_origins; origin != NULL && *origin != NULL; origin++)
        note_text(b, "origin", *origin);
}

/* The verdicts on some addresses stand for the rules. */
static void note_egress(struct buf *b, const struct egress_rules *rules)
{
    static const char *const addresses[] = {"10.0.0.1", "10.1.0.0", "127.0.0.1", "1.2.3.4",
                                            "169.254.169.254"};

    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        char why[EGRESS_WHY_BYTES];
        union {
            struct sockaddr_in v4;
            struct sockaddr any;
        } address = {.v4 = {.sin_family = AF_INET}};

        MUST(inet_pton(AF_INET, addresses[i], &address.v4.sin_addr) == 1);
        note_text(b, addresses[i], egress_refuses(rules, &address.any, why));
    }
}

static void note_config(struct buf *b, const struct config *c)
{
    MUST(c->base_path[0] == '/' && c->data_directory[0] != '\0');
    MUST(c->segment_bytes >= 65536 && c->connect_seconds >= 1 && c->max_in_flight >= 1);
    note_listeners(b, c);
    note_text(b, "BasePath", c->base_path);
    note_text(b, "DataDirectory", c->data_directory);
    note_text(b, "User", c->user);
    note_text(b, "Proxy", c->proxy);
    note_text(b, "CaFile", c->ca_file);
    note_text(b, "HostsFile", c->hosts_file);
    note_text(b, "NameServers", c->name_servers);
    buf_printf(b, "%d %lld %d %lld %lld %lld %d %d\n", (int)c->fsync, (long long)c->segment_bytes,
               c->require_api_key, (long long)c->connect_seconds, (long long)c->max_in_flight,
               (long long)c->max_connections_per_host, (int)c->log_level, (int)c->log_format);
    note_origins(b, c);
    note_limits(b, &c->limits);
    note_retention(b, &c->retention);
    note_egress(b, &c->egress);
    note_document(b, c->api_keys);
    note_document(b, c->resources);
}

/* ---- reading ---- */

static void check_access(struct config *c)
{
    struct access access;
    struct err *e = config_access(c, &access);

    if (e == NULL)
        access_done(&access);
    else
        MUST(span_starts(err_message(e), SPAN("ApiKeys[")));
    err_free(e);
}

/* False: refused. */
static bool read_config(struct span text, struct buf *notes)
{
    const struct config_arguments arguments = {.file = file.name};
    struct config c;
    struct err *e;

    store_file(text);
    e = config_read(&c, &arguments);
    if (e == NULL) {
        note_config(notes, &c);
        check_access(&c);
    } else {
        MUST(span_starts(err_message(e), span_str(file.name)) ||
             span_starts(err_message(e), SPAN("RequireApiKey: ")));
    }
    config_done(&c);
    err_free(e);
    return notes->n > 0;
}

/* ---- other texts that mean the same ---- */

static void add_without_comments(struct buf *b, struct span text)
{
    while (text.p != NULL) {
        struct span line = span_split(&text, '\n');

        if (!span_starts(span_trim(line), SPAN("//")))
            buf_add(b, line);
        buf_add_char(b, '\n');
    }
}

static void add_with_more_comments(struct buf *b, struct span text)
{
    while (text.p != NULL) {
        buf_add_str(b, "// \"Listen\": {\n");
        buf_add(b, span_split(&text, '\n'));
        buf_add_str(b, "\n\t// ]\n");
    }
}

static void check_same(struct span text, const struct buf *notes)
{
    struct buf again;

    buf_init(&again, BUF_NO_CAP);
    MUST(read_config(text, &again) && span_eq(buf_span(&again), buf_span(notes)));
    buf_done(&again);
}

static void check_other_texts(struct span text, const struct buf *notes)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST, 1u << 20};
    struct buf bare, other;
    struct json_doc doc;
    struct arena a;

    arena_init(&a);
    buf_init(&bare, BUF_NO_CAP);
    buf_init(&other, BUF_NO_CAP);
    add_without_comments(&bare, text);
    MUST(json_parse(buf_span(&bare), &limits, &a, &doc) == NULL);
    json_add_indented(&other, json_root(&doc), 2);
    check_same(buf_span(&other), notes);
    buf_clear(&other);
    add_with_more_comments(&other, text);
    check_same(buf_span(&other), notes);
    buf_done(&bare);
    buf_done(&other);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span text = span_of((const char *)data, n);
    struct buf notes;

    buf_init(&notes, BUF_NO_CAP);
    if (read_config(text, &notes))
        check_other_texts(text, &notes);
    buf_done(&notes);
    return 0;
}
