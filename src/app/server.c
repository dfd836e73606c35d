/* Everything is set up in one list, what can be refused before what others notice, and taken down
 * in its reverse. Signals end the process, drain it, or have the configuration read anew. */
#include "app/server.h"

#include "admin/service_options.h"
#include "app/activation.h"
#include "app/notify.h"
#include "app/privileges.h"
#include "app/rights.h"
#include "base/clock.h"
#include "base/must.h"
#include "hooks/delivery.h"
#include "http/server.h"
#include "io/process.h"
#include "rest/access.h"
#include "rest/api_key.h"
#include "rest/declaration.h"
#include "store/store.h"
#include "store/turn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DRAIN_CHECK_MS = 20,
    DIGEST_CHECK_MS = 5,
    DIGEST_DEADLINE_MS = 5000,
    SIGNALS = 4,
    OWN_DESCRIPTORS = 64 /* of the journal, listeners, the loop, name resolution */
};

struct server {
    struct config *config;
    const struct config_arguments *arguments;
    struct loop loop;
    struct service *service;
    struct http_server *http;
    struct notify notify;
    struct tcp_passed passed;
    uv_signal_t signals[SIGNALS];
    size_t signal_count;      /* of those that are watched */
    struct timer drain_timer; /* looks whether all is done, until the deadline */
    uint64_t drain_deadline_ms;
    struct timer digest_timer; /* looks whether nothing moves, until the deadline */
    uint64_t digest_deadline_ms;
    bool is_draining, http_is_drained, is_closing;
    enum server_exit status;
};

static void log_failure(struct err *e)
{
    log_error("server", "%.*s", SPAN_FMT(err_message(e)));
    err_free(e);
}

/* NULL is allowed. */
static struct err *in_file(const struct config *c, struct err *e)
{
    return e == NULL || c->file == NULL ? e : err_prefix(e, "%s: ", c->file);
}

/* Taking down. ----------------------------------------------------------------------------- */

static void forget_signals(struct server *s)
{
    while (s->signal_count > 0)
        uv_close((uv_handle_t *)&s->signals[--s->signal_count], NULL);
}

static void on_http_closed(void *context)
{
    struct server *s = context;

    s->http = NULL;
    forget_signals(s);
    service_free(TAKE(s->service));
}

static void close_all(struct server *s)
{
    if (s->is_closing)
        return;
    s->is_closing = true;
    notify_done(&s->notify);
    timer_stop(&s->loop, &s->drain_timer);
    timer_stop(&s->loop, &s->digest_timer);
    http_server_close(s->http, on_http_closed, s);
}

static bool is_done(const struct server *s)
{
    return s->http_is_drained && deliveries_in_flight(s->service->hooks.deliveries) == 0 &&
           journal_idle(turn_journal(s->service->turn));
}

static void on_drain_time(struct timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, drain_timer);

    if (is_done(s)) {
        log_info("server", "drained");
        close_all(s);
    } else if (loop_now_ms(&s->loop) >= s->drain_deadline_ms) {
        log_warn("server",
                 "not drained within ShutdownSeconds: %zu attempts are cut off and will "
                 "be made again",
                 deliveries_in_flight(s->service->hooks.deliveries));
        close_all(s);
    } else {
        timer_start(&s->loop, &s->drain_timer, DRAIN_CHECK_MS);
    }
}

static void on_http_drained(void *context)
{
    struct server *s = context;

    s->http_is_drained = true;
}

static void drain(struct server *s)
{
    s->is_draining = true;
    notify_state(&s->notify, NOTIFY_STOPPING, "draining");
    s->drain_deadline_ms =
        loop_now_ms(&s->loop) + (uint64_t)s->service->limits.shutdown_seconds * 1000;
    service_drain(s->service);
    http_server_drain(s->http, on_http_drained, s);
    timer_start(&s->loop, &s->drain_timer, 0);
}

/* Signals. --------------------------------------------------------------------------------- */

static void on_stop_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;

    if (s->is_draining) {
        log_warn("server", "second signal: exiting at once");
        _exit(SERVER_FAILED);
    }
    log_info("server", "%s: draining", number == SIGTERM ? "SIGTERM" : "SIGINT");
    drain(s);
}

static void on_digest_time(struct timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, digest_timer);
    bool is_still =
        journal_idle(turn_journal(s->service->turn)) && retention_idle(s->service->hooks.retention);
    struct store_digest digest;

    if (!is_still && loop_now_ms(&s->loop) < s->digest_deadline_ms) {
        timer_start(&s->loop, &s->digest_timer, DIGEST_CHECK_MS);
        return;
    }
    digest = store_digest(s->service->store);
    log_info("server", "digest %016llx of %llu objects%s", (unsigned long long)digest.sum,
             (unsigned long long)digest.objects, is_still ? "" : ", while they change");
}

/* For tests and for the curious: a digest of the whole state, to compare before and after. It is
 * that of a moment in which all is on disk and nothing is due to be forgotten. */
static void on_digest_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;

    (void)number;
    api_keys_write_uses(s->service->rest.api_keys);
    s->digest_deadline_ms = loop_now_ms(&s->loop) + DIGEST_DEADLINE_MS;
    timer_start(&s->loop, &s->digest_timer, 0);
}

/* Keys are read first and resources declared last: what can fail comes before what changes. */
static struct err *take_over(struct server *s, struct config *c)
{
    struct access access;
    struct err *e;

    TRY(config_access(c, &access));
    e = rights_check(&access, s->service->rest.resources);
    if (e == NULL)
        e = access_check_beside(s->service->rest.access, &access);
    if (e == NULL)
        e = declarations_configure(&s->service->rest, c->resources, c->directory, false);
    if (e != NULL) {
        access_done(&access);
        return e;
    }
    rest_set_access(&s->service->rest, &access);
    return NULL;
}

static void on_reload_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;
    struct config_arguments arguments = *s->arguments;
    struct config c;
    struct err *e;

    (void)number;
    arguments.is_again = true;
    notify_state(&s->notify, NOTIFY_RELOADING, "reading the configuration");
    e = config_read(&c, &arguments);
    if (e == NULL)
        e = in_file(&c, take_over(s, &c));
    config_done(&c);
    if (e == NULL) {
        log_info("server", "SIGHUP: keys, rights and resources are read anew");
        notify_state(&s->notify, NOTIFY_READY, "the configuration has been read anew");
        return;
    }
    log_error("server", "SIGHUP: nothing has changed: %.*s", SPAN_FMT(err_message(e)));
    notify_state(&s->notify, NOTIFY_READY, "the new configuration is refused: %.*s",
                 SPAN_FMT(err_message(e)));
    err_free(e);
}

static void watch_signals(struct server *s)
{
    static const struct {
        int number;
        uv_signal_cb on_signal;
    } table[SIGNALS] = {{SIGTERM, on_stop_signal},
                        {SIGINT, on_stop_signal},
                        {SIGUSR1, on_digest_signal},
                        {SIGHUP, on_reload_signal}};

    for (size_t i = 0; i < SIGNALS; i++) {
        uv_signal_t *signal = &s->signals[s->signal_count++];

        MUST(uv_signal_init(&s->loop.uv, signal) == 0);
        signal->data = s;
        if (uv_signal_start(signal, table[i].on_signal, table[i].number) != 0)
            log_warn("server", "signal %d cannot be watched", table[i].number);
    }
}

static void on_service_failed(void *context)
{
    (void)context;
    /* Nothing that is still in memory may be acknowledged: no draining, no further write. */
    log_error("server", "the journal has failed: exiting");
    _exit(SERVER_FAILED);
}

/* Setting up. ------------------------------------------------------------------------------ */

/* Clients may not take the descriptors that the journal and deliveries need. */
static void fit_connections(struct config *c)
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

static struct err *make_service(struct server *s)
{
    struct config *c = s->config;
    struct service_options options = {
        .limits = c->limits,
        .retention = c->retention,
        .base_path = c->base_path,
        .cors_origins = c->cors_origins,
        .hosts = c->hosts,
        .secret_headers = c->secret_headers,
        .delivery_in_flight = (uint32_t)c->max_in_flight,
        .connections_per_host = (unsigned)c->max_connections_per_host,
        .body_bytes_in_flight = (uint64_t)c->body_bytes_in_flight,
        .fetch =
            {
                .connect_timeout_ms = (unsigned)c->connect_seconds * 1000,
                .max_connections = (unsigned)c->max_in_flight,
                .proxy = c->proxy,
                .ca_file = c->ca_file,
            },
        .resolve = {.hosts_file = c->hosts_file, .servers = c->name_servers},
        .egress = c->egress,
    };
    struct err *e;

    TRY(in_file(c, config_access(c, &options.access)));
    egress_init(&c->egress); /* it moves into the service */
    e = service_new(&s->loop, &options, &s->service);
    return e == NULL ? NULL : in_file(c, err_prefix(e, "Delivery: "));
}

static struct err *declare_resources(struct server *s, bool only_check)
{
    const struct config *c = s->config;

    return in_file(
        c, declarations_configure(&s->service->rest, c->resources, c->directory, only_check));
}

static struct err *open_journal(struct server *s)
{
    const struct journal_options journal = {
        .directory = s->config->data_directory,
        .fsync = s->config->fsync,
        .segment_bytes = (uint64_t)s->config->segment_bytes,
    };
    const struct turn_options options = {.journal = &journal};
    uint64_t started_ns = clock_mono_ns();
    struct journal_stats stats;
    struct err *e;

    notify_state(&s->notify, NOTIFY_STARTING, "replaying the journal");
    e = service_open(s->service, &options);
    if (e != NULL)
        return s->config->user == NULL ? e : err_prefix(e, "as user '%s': ", s->config->user);
    journal_stats(turn_journal(s->service->turn), &stats);
    log_info("server", "journal %s: %llu records replayed in %llu ms, %zu objects",
             s->config->data_directory, (unsigned long long)stats.replayed_records,
             (unsigned long long)((clock_mono_ns() - started_ns) / 1000000),
             store_live_count(s->service->store));
    return NULL;
}

static struct err *bind_all(struct server *s, bool is_unix)
{
    for (size_t i = 0; i < s->config->listener_count; i++)
        if (s->config->listeners[i].is_unix == is_unix)
            TRY(http_server_bind(s->http, &s->config->listeners[i], &s->passed));
    return NULL;
}

/* Sockets that were passed take the place of the default address. */
static struct err *take_passed(struct server *s)
{
    TRY(activation_take(&s->passed));
    if (s->passed.count > 0 && s->config->listens_by_default)
        s->config->listener_count = 0;
    return NULL;
}

/* Those that are no address of the configuration. */
static struct err *bind_passed(struct server *s)
{
    struct tcp_address address;

    while (tcp_passed_any(&s->passed, &address)) {
        struct err *e = config_add_listener(s->config, &address);

        if (e != NULL)
            return in_file(s->config, err_prefix(e, "a socket that was passed: "));
        TRY(http_server_bind(s->http, &address, &s->passed));
    }
    return NULL;
}

static struct err *drop_privileges(const struct config *c)
{
    TRY(in_file(c, privileges_drop(c->user)));
    if (c->file != NULL && access(c->file, R_OK) != 0)
        log_warn("server", "%s: SIGHUP will not read it: %s", c->file, strerror(errno));
    return NULL;
}

static struct err *start_listening(struct server *s)
{
    TRY(http_server_start(s->http));
    for (size_t i = 0; i < s->config->listener_count; i++) {
        struct tcp_address address = s->config->listeners[i];

        if (!address.is_unix && address.port == 0)
            log_info("server", "listening on %s, port %u", address.text, http_server_port(s->http));
        else
            log_info("server", "listening on %s", address.text);
    }
    return NULL;
}

static void run(struct server *s)
{
    s->service->on_failed = on_service_failed;
    timer_init(&s->drain_timer, on_drain_time);
    timer_init(&s->digest_timer, on_digest_time);
    service_start(s->service);
    notify_state(&s->notify, NOTIFY_READY, "listening on %zu addresses, %zu objects",
                 s->config->listener_count, store_live_count(s->service->store));
    loop_run(&s->loop);
}

static void abandon_http(void *context)
{
    struct server *s = context;

    s->http = NULL;
}

/* What was set up before something failed. */
static void undo(struct server *s)
{
    notify_done(&s->notify);
    tcp_passed_done(&s->passed);
    forget_signals(s);
    if (s->http != NULL)
        http_server_close(s->http, abandon_http, s);
    loop_run(&s->loop);
    service_free(TAKE(s->service));
    loop_run(&s->loop);
}

static struct err *check(struct server *s)
{
    TRY(in_file(s->config, privileges_check(s->config->user)));
    rights_warn(s->service->rest.access, s->config->resources);
    return declare_resources(s, true);
}

/* Ports may need root's rights, nothing after them does; the files that are made, UNIX sockets
 * among them, are the user's. Clients come last: who is answered finds everything in its place. */
static struct err *set_up(struct server *s, bool check_only)
{
    fit_connections(s->config);
    TRY(make_service(s));
    TRY(in_file(s->config, rights_check(s->service->rest.access, s->service->rest.resources)));
    if (check_only)
        return check(s);
    s->http = http_server_new(&s->loop, &s->service->rest);
    http_server_trust(s->http, &s->config->trusted_proxies);
    http_server_distrust(s->http, s->service->fetcher);
    TRY(take_passed(s));
    TRY(bind_all(s, false));
    TRY(drop_privileges(s->config));
    TRY(open_journal(s));
    TRY(declare_resources(s, false));
    TRY(bind_all(s, true));
    TRY(bind_passed(s));
    watch_signals(s); /* whoever reads that it listens may send one */
    return start_listening(s);
}

enum server_exit server_run(struct config *config, const struct config_arguments *arguments,
                            bool check_only)
{
    struct server s = {.config = config, .arguments = arguments, .status = SERVER_STOPPED};
    struct err *e = loop_init(&s.loop);

    if (e != NULL) {
        log_failure(e);
        return SERVER_FAILED;
    }
    notify_init(&s.notify, &s.loop);
    e = set_up(&s, check_only);
    if (e != NULL) {
        notify_state(&s.notify, NOTIFY_STARTING, "failed: %.*s", SPAN_FMT(err_message(e)));
        log_failure(e);
        s.status = SERVER_BAD_CONFIG;
    }
    if (e != NULL || check_only)
        undo(&s);
    else
        run(&s);
    loop_done(&s.loop);
    return s.status;
}
