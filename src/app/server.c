/* Everything is set up in one list, what can be refused before what others notice, and taken down
 * in its reverse. Signals end the process, drain it, or have the configuration read anew. */
#include "app/server.h"

#include "access/access.h"
#include "admin/service_options.h"
#include "app/activation.h"
#include "app/cluster.h"
#include "app/notify.h"
#include "app/privileges.h"
#include "app/rights.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "dispatch/api_key.h"
#include "hooks/delivery.h"
#include "http/server.h"
#include "journal/join.h"
#include "resource/declaration.h"
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
    COMPARE_MS = 1000,
    ANEW_MS = 1000, /* for answers that are on their way */
    DIGEST_DEADLINE_MS = 5000,
    SIGNALS = 5
};

struct server {
    struct config *config;
    const struct config_arguments *arguments;
    const struct anew *anew;
    struct loop loop;
    struct service *service;
    struct cluster *cluster; /* NULL: the server is alone */
    struct http_server *http;
    struct notify notify;
    struct tcp_passed passed;
    uint16_t ports[CONFIG_MAX_LISTENERS]; /* in use, of each address to listen on */
    struct tcp_passed kept;               /* for the program that follows */
    uv_signal_t signals[SIGNALS];
    size_t signal_count;      /* of those that are watched */
    struct timer drain_timer; /* looks whether all is done, until the deadline */
    uint64_t drain_deadline_ms;
    struct timer digest_timer; /* looks whether nothing moves, until the deadline */
    uint64_t digest_deadline_ms;
    struct turn_line reload;    /* after SIGHUP, while the turn is held */
    struct timer compare_timer; /* of a node: are its declarations the leader's? */
    uint64_t differs_since_ms;  /* 0: they do not, as far as is known */
    bool is_stopping, http_is_drained, is_closing;
    bool starts_anew; /* once it is drained */
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
    cluster_free(TAKE(s->cluster));
    if (s->starts_anew)
        anew_ignore_signals();
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
    timer_stop(&s->loop, &s->compare_timer);
    http_server_close(s->http, on_http_closed, s);
}

/* What a node that does not lead any more has begun, it cannot record: the next leader sends it
 * again. */
static bool is_done(const struct server *s)
{
    if (s->cluster != NULL)
        return s->http_is_drained;
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

static void drain(struct server *s, uint64_t within_ms)
{
    s->drain_deadline_ms = loop_now_ms(&s->loop) + within_ms;
    service_drain(s->service);
    http_server_drain(s->http, on_http_drained, s);
    timer_start(&s->loop, &s->drain_timer, 0);
}

static void drain_usually(struct server *s)
{
    drain(s, (uint64_t)s->service->limits.shutdown_seconds * 1000);
}

static void on_left(void *context)
{
    drain_usually(context);
}

/* Others need not wait for the lease of a node that leads. */
static void hand_over(struct server *s)
{
    if (s->cluster == NULL)
        drain_usually(s);
    else
        cluster_leave(s->cluster, on_left, s);
}

/* Signals. --------------------------------------------------------------------------------- */

static void on_stop_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;

    if (s->is_stopping) {
        log_warn("server", "second signal: exiting at once");
        _exit(SERVER_FAILED);
    }
    s->is_stopping = true;
    log_info("server", "%s: draining", number == SIGTERM ? "SIGTERM" : "SIGINT");
    notify_state(&s->notify, NOTIFY_STOPPING, "draining");
    if (!s->starts_anew) {
        hand_over(s);
        return;
    }
    s->starts_anew = false; /* it drains already, and ends now */
    tcp_passed_done(&s->kept);
}

/* Clients wait in the sockets' queues meanwhile. */
static struct err *keep_sockets(struct server *s)
{
    struct err *e = http_server_keep(s->http, &s->kept);

    if (e != NULL)
        tcp_passed_done(&s->kept);
    return e;
}

static struct err *begin_anew(struct server *s)
{
    TRY(config_check_again(s->arguments));
    TRY(keep_sockets(s));
    log_info("server", "SIGUSR2: draining, to start anew");
    s->starts_anew = true;
    notify_state(&s->notify, NOTIFY_RELOADING, "draining, to start anew");
    hand_over(s);
    return NULL;
}

static void on_anew_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;

    (void)number;
    if (!s->is_stopping && !s->starts_anew)
        log_failed(LOG_ERROR, "server", "SIGUSR2: not started anew", begin_anew(s));
}

static void on_digest_time(struct timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, digest_timer);
    bool is_still = journal_idle(turn_journal(s->service->turn)) &&
                    retention_idle(s->service->hooks.retention) && !turn_is_held(s->service->turn);
    struct store_digest digest;

    if (!is_still && loop_now_ms(&s->loop) < s->digest_deadline_ms) {
        timer_start(&s->loop, &s->digest_timer, DIGEST_CHECK_MS);
        return;
    }
    turn_settle(s->service->turn);
    digest = store_digest(s->service->store);
    log_info("server", "digest %016llx of %llu objects, serial %llu%s",
             (unsigned long long)digest.sum, (unsigned long long)digest.objects,
             (unsigned long long)journal_next_serial(turn_journal(s->service->turn)) - 1,
             is_still ? "" : ", while they change");
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
        e = declarations_configure(s->service->rest.resources, c->resources, c->directory, false);
    if (e != NULL) {
        access_done(&access);
        return e;
    }
    api_keys_replace(s->service->rest.api_keys, &access);
    return NULL;
}

static void reload(struct server *s)
{
    struct config_arguments arguments = *s->arguments;
    struct config c;
    struct err *e;

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

static void on_turn_free(struct turn_line *line)
{
    reload(CONTAINER_OF(line, struct server, reload));
}

/* Not while somebody prepares a change of what it changes. */
static void on_reload_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;

    (void)number;
    s->reload.on_free = on_turn_free;
    if (turn_is_held(s->service->turn))
        turn_line_up(s->service->turn, &s->reload);
    else
        reload(s);
}

static void watch_signals(struct server *s)
{
    static const struct {
        int number;
        uv_signal_cb on_signal;
    } table[SIGNALS] = {{SIGTERM, on_stop_signal},
                        {SIGINT, on_stop_signal},
                        {SIGUSR1, on_digest_signal},
                        {SIGUSR2, on_anew_signal},
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

static struct err *make_service(struct server *s)
{
    struct config *c = s->config;
    struct service_options options = {
        .limits = c->limits,
        .retention = c->retention,
        .base_path = c->base_path,
        .cors_origins = c->cors_origins,
        .hosts = c->hosts,
        .cloudevents_source = c->cloudevents_source,
        .cloudevents_origins = c->cloudevents_origins,
        .secret_headers = c->secret_headers,
        .delivery_in_flight = (uint32_t)c->max_in_flight,
        .connections_per_host = (unsigned)c->max_connections_per_host,
        .body_bytes_in_flight = (uint64_t)c->body_bytes_in_flight,
        .prompt_ms = (uint32_t)c->prompt_ms,
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
    if (e != NULL)
        return in_file(c, err_prefix(e, "Delivery: "));
    if (c->cluster != NULL)
        service_join_cluster(s->service);
    return NULL;
}

static struct err *declare_resources(struct server *s, bool only_check)
{
    const struct config *c = s->config;

    return in_file(c, declarations_configure(s->service->rest.resources, c->resources, c->directory,
                                             only_check));
}

/* That of another node, in the place of the journal. */
static struct err *take_copy(struct server *s)
{
    bool is_refused;

    TRY(join_settle(s->config->data_directory, &is_refused));
    if (is_refused)
        log_error("server", "%s: a copy of another node's journal could not be read: it is deleted",
                  s->config->data_directory);
    return NULL;
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
    TRY(take_copy(s));
    e = service_replay(s->service, &options);
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
            TRY(http_server_bind(s->http, &s->config->listeners[i], &s->passed, &s->ports[i]));
    return NULL;
}

/* Sockets that were passed take the place of the default address. */
static struct err *take_passed(struct server *s)
{
    TRY(activation_take(&s->passed));
    if (tcp_passed_has(&s->passed, TCP_PASSED_BY_OTHERS) && s->config->listens_by_default)
        s->config->listener_count = 0;
    return NULL;
}

/* Those that are no address of the configuration. */
static struct err *bind_passed(struct server *s)
{
    struct tcp_address address;

    tcp_passed_close_own(&s->passed);
    while (tcp_passed_any(&s->passed, &address)) {
        struct err *e = config_add_listener(s->config, &address);

        if (e != NULL)
            return in_file(s->config, err_prefix(e, "a socket that was passed: "));
        TRY(http_server_bind(s->http, &address, &s->passed,
                             &s->ports[s->config->listener_count - 1]));
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
        const struct tcp_address *address = &s->config->listeners[i];

        if (address->port == s->ports[i])
            log_info("server", "listening on %s", address->text);
        else
            log_info("server", "listening on %s, port %u", address->text, s->ports[i]);
    }
    return NULL;
}

/* ---- a node of a cluster ---- */

/* Keys and resources as the configuration has them. */
static struct err *take_configuration(struct server *s)
{
    TRY(api_keys_list_configured(s->service->rest.api_keys));
    return declare_resources(s, false);
}

static void end_refused(struct server *s, struct err *e)
{
    log_failure(e);
    s->status = SERVER_BAD_CONFIG;
    if (s->is_stopping)
        return;
    s->is_stopping = true;
    notify_state(&s->notify, NOTIFY_STOPPING, "refused");
    hand_over(s);
}

static void on_leads(void *context)
{
    struct server *s = context;
    struct err *e = take_configuration(s);

    timer_stop(&s->loop, &s->compare_timer);
    if (e != NULL)
        end_refused(s, e);
    else
        service_start(s->service);
}

/* Differences that last are no matter of what is still on its way. */
static void on_compare_time(struct timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, compare_timer);
    const struct cluster_config *cluster = s->config->cluster;
    uint64_t now_ms = loop_now_ms(&s->loop);
    uint64_t lasts_ms = (uint64_t)(cluster->lease_seconds + cluster->commit_seconds) * 1000;
    struct err *e;

    timer_start(&s->loop, timer, COMPARE_MS);
    if (!cluster_follows(s->cluster) || s->is_stopping)
        return;
    e = declarations_compare(s->service->rest.resources, s->config->resources,
                             s->config->directory);
    if (e == NULL) {
        timer_stop(&s->loop, timer);
        return;
    }
    if (s->differs_since_ms == 0)
        s->differs_since_ms = now_ms;
    if (now_ms - s->differs_since_ms >= lasts_ms)
        end_refused(s, in_file(s->config, err_prefix(e, "Resources: ")));
    else
        err_free(e);
}

/* Without the sockets it takes the addresses again. */
static void on_anew(void *context, const char *why)
{
    struct server *s = context;
    struct err *e = keep_sockets(s);

    log_info("server", "starting anew from the journal: %s", why);
    log_failed(LOG_WARN, "server", "clients are refused meanwhile", e);
    s->starts_anew = true;
    drain(s, ANEW_MS);
}

static void on_refused(void *context, const char *why)
{
    struct server *s = context;

    end_refused(s, in_file(s->config, ERR(ERR_INVALID_ENTITY, "Cluster: %s", why)));
}

static struct err *make_cluster(struct server *s)
{
    const struct cluster_options options = {
        .config = s->config->cluster,
        .directory = s->config->data_directory,
        .base_path = s->config->base_path,
        .service = s->service,
        .callbacks = {on_leads, on_anew, on_refused, s},
    };

    struct err *e;

    if (s->config->cluster == NULL)
        return take_configuration(s);
    TRY(declare_resources(s, true));
    e = cluster_new(&s->loop, &options, &s->cluster);
    return e == NULL ? NULL : in_file(s->config, err_prefix(e, "Cluster: "));
}

static void begin_as_node(struct server *s)
{
    cluster_start(s->cluster);
    timer_start(&s->loop, &s->compare_timer, COMPARE_MS);
}

static void run(struct server *s)
{
    s->service->on_failed = on_service_failed;
    timer_init(&s->drain_timer, on_drain_time);
    timer_init(&s->digest_timer, on_digest_time);
    timer_init(&s->compare_timer, on_compare_time);
    if (s->cluster == NULL)
        service_start(s->service);
    else
        begin_as_node(s);
    notify_state(&s->notify, NOTIFY_READY, "listening on %zu addresses, %zu objects",
                 s->config->listener_count, store_live_count(s->service->store));
    mem_free_large_later(true);
    loop_run(&s->loop);
    mem_free_large_later(false);
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
    cluster_free(TAKE(s->cluster));
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
    config_fit_connections(s->config);
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
    TRY(make_cluster(s));
    TRY(bind_all(s, true));
    TRY(bind_passed(s));
    watch_signals(s); /* whoever reads that it listens may send one */
    return start_listening(s);
}

/* Nothing of it is left but the sockets. */
static enum server_exit start_anew(struct server *s)
{
    log_info("server", "starting anew");
    log_failure(anew_exec(s->anew, &s->kept));
    tcp_passed_done(&s->kept);
    return SERVER_FAILED;
}

enum server_exit server_run(struct config *config, const struct config_arguments *arguments,
                            const struct anew *anew, bool check_only)
{
    struct server s = {
        .config = config, .arguments = arguments, .anew = anew, .status = SERVER_STOPPED};
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
    return s.starts_anew ? start_anew(&s) : s.status;
}
