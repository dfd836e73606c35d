/* The configuration file (docs/specification.md, section 9): read once, whole, or refused with
 * file, member and reason. */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include "admin/service.h"
#include "app/cluster_config.h"
#include "base/log.h"
#include "fetch/egress.h"
#include "io/tcp.h"
#include "journal/journal.h"
#include "json/json.h"

#define CONFIG_MAX_LISTENERS 16
#define CONFIG_MAX_SECRET_HEADERS 32
#define CONFIG_MAX_BYTES ((size_t)64 << 20)

struct config {
    struct arena arena;    /* everything below points into it, and into the text */
    struct buf text;       /* of the file; owned */
    const char *file;      /* of the command line; NULL: none was given */
    const char *directory; /* of the file: where `File` names of resources are looked up */
    struct tcp_address listeners[CONFIG_MAX_LISTENERS];
    size_t listener_count;
    bool listens_by_default; /* no address was given */
    const char *base_path;
    const char *data_directory;
    const char *user; /* to become when root; NULL: stay */
    enum journal_fsync fsync;
    int64_t segment_bytes;
    bool require_api_key;
    struct ip_ranges trusted_proxies;      /* owned */
    const char **cors_origins;             /* NULL-terminated, or NULL */
    const char **hosts;                    /* NULL-terminated */
    const char *cloudevents_source;        /* NULL: none */
    const char **cloudevents_origins;      /* NULL-terminated, or NULL */
    const char **secret_headers;           /* NULL-terminated, or NULL */
    struct json_value api_keys, resources; /* arrays of objects */
    struct limits limits;
    struct retention_limits retention;
    int64_t connect_seconds, max_in_flight, max_connections_per_host;
    int64_t body_bytes_in_flight;
    int64_t prompt_ms;
    struct egress_rules egress; /* owned */
    const char *proxy, *ca_file;
    const char *hosts_file, *name_servers; /* as in struct resolve_options */
    struct cluster_config *cluster;        /* NULL: none */
    enum log_level log_level;
    enum log_format log_format;
};

/* What the command line says; it wins over the file. */
struct config_arguments {
    const char *file, *data_directory; /* NULL: not given */
    const char *listen[CONFIG_MAX_LISTENERS];
    size_t listen_count;
    bool is_again; /* a server runs, which must not wait for a file that is none */
};

/* Reads the file, with defaults for what it leaves out, then the arguments, and checks the whole:
 * keys are required on every address that is neither loopback nor a UNIX socket. A file that others
 * may write, or that is another user's, is refused. The message begins with the file's name, then
 * the member's path. *c is to be done, also after an error. */
struct err *config_read(struct config *c, const struct config_arguments *arguments) MUST_USE;
/* What a browser writes into `Origin` (RFC 6454, section 6.2): scheme, host, perhaps a port; no
 * path, not even a slash. */
bool config_is_origin(struct span text);
/* ASCII letters, digits, '-', '.' and '_', one at least. */
bool config_is_name(struct span text);
/* A member that is a text, which is neither empty nor holds a NUL character; the error names it.
 * *out_text ends with NUL, and stays as it is for null. */
struct err *config_read_text(struct span name, struct json_value v, struct arena *a,
                             const char **out_text) MUST_USE;
void config_done(struct config *c);
/* One more address; the error is of the kind that config_read tells. */
struct err *config_add_listener(struct config *c, const struct tcp_address *address) MUST_USE;
/* The keys, as the service takes them. */
struct err *config_access(struct config *c, struct access *out_access) MUST_USE;

/* Would it be read as it is now, by a program that starts anew? Errors of config_read. */
struct err *config_check_again(const struct config_arguments *arguments) MUST_USE;
/* Lowers Limits.Connections to what the files that the process may have open leave, and says so. */
void config_fit_connections(struct config *c);

#endif
