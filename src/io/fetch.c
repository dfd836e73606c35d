/* The way of a fetch: queued with its host; begun in a turn's task, when the host and the fetcher
 * have room; its name is resolved; launched in a turn's task; libcurl's until it is done, timed out
 * or cancelled. What runs in a turn's task is bounded by starts_per_turn, and hosts take turns, so
 * that neither a burst nor one fast peer holds up the loop. Nothing is begun inside a completion.
 *
 * Requests to http:// go the way of fetch_plain.c instead of libcurl's, in the same states.
 *
 * Possible failure modes: the URL or a header cannot be used, the name is not resolved (no request
 * is made); the time is up, in any state; libcurl reports one (fetch_answer.c). Each ends in
 * `complete`, the only place that calls on_done. */
#include "fetch_private.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/sm.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    CONNECTIONS = 1024,
    STARTS_PER_TURN = 32,
    TIMEOUT_MS = 30000,
    IDLE_MOST = 256, /* transfers kept for the next */
};

static const struct sm_state states[] = {
    [FETCH_IDLE] = {"idle", SM_TO(FETCH_RESOLVING)},
    [FETCH_RESOLVING] = {"resolving", SM_TO(FETCH_READY) | SM_TO(FETCH_IDLE)},
    [FETCH_READY] = {"ready", SM_TO(FETCH_RUNNING) | SM_TO(FETCH_IDLE)},
    [FETCH_RUNNING] = {"running", SM_TO(FETCH_IDLE)},
};

static const struct sm_table machine = {"fetch", states, FETCH_STATE_COUNT};

const char *fetch_error_text(enum fetch_error error)
{
    static const char *const texts[] = {
#define FETCH_AS_TEXT(symbol, text) [symbol] = text,
        FETCH_ERRORS(FETCH_AS_TEXT)
#undef FETCH_AS_TEXT
    };

    MUST((size_t)error < ARRAY_LEN(texts));
    return texts[error];
}

/* Transfers. */

static void move(struct fetch_transfer *t, enum fetch_state to)
{
    struct fetcher *f = t->fetcher;

    list_remove(&f->transfers[t->state], &t->link);
    sm_move(&machine, &t->state, to);
    list_push_back(&f->transfers[to], &t->link);
}

static void on_deadline(struct timer *timer);
static void on_resolved(struct resolve_query *query, const struct resolve_result *result);

static struct fetch_transfer *transfer_new(struct fetcher *f)
{
    struct fetch_transfer *t = NEW(struct fetch_transfer);

    t->kind = FETCH_KIND_TRANSFER;
    t->fetcher = f;
    t->query.on_done = on_resolved;
    timer_init(&t->deadline, on_deadline);
    buf_init(&t->memory, BUF_NO_CAP);
    buf_init(&t->pin_text, BUF_NO_CAP);
    fetch_plain_begin(t);
    list_push_back(&f->transfers[FETCH_IDLE], &t->link);
    return t;
}

static void transfer_free(struct fetch_transfer *t)
{
    list_remove(&t->fetcher->transfers[t->state], &t->link);
    fetch_easy_close(t);
    fetch_answer_done(&t->answer);
    buf_done(&t->memory);
    buf_done(&t->pin_text);
    mem_free(t);
}

/* The one used last: its memory is warm. */
static struct fetch_transfer *transfer_get(struct fetcher *f)
{
    struct list_link *link = list_last(&f->transfers[FETCH_IDLE]);

    return link != NULL ? CONTAINER_OF(link, struct fetch_transfer, link) : transfer_new(f);
}

static size_t transfers_busy(const struct fetcher *f)
{
    size_t n = 0;

    for (int state = FETCH_RESOLVING; state < FETCH_STATE_COUNT; state++)
        n += list_count(&f->transfers[state]);
    return n;
}

/* Hosts. */

static struct span host_key(const void *item)
{
    const struct fetch_host *host = item;

    return span_of(host->origin, host->origin_bytes);
}

static struct fetch_host *host_get(struct fetcher *f, struct span origin)
{
    struct fetch_host *host = map_find(&f->hosts, origin);

    if (host != NULL)
        return host;
    host = mem_zero(sizeof(*host) + origin.n + 1);
    list_init(&host->queue);
    host->origin_bytes = origin.n;
    memcpy(host->origin, origin.p, origin.n);
    host->usable = fetch_target_parse(host_key(host), &host->target);
    map_add(&f->hosts, host);
    return host;
}

/* To the end of those whose turn it is, if it has work and room; away, if it has nothing at all. */
static void host_place(struct fetcher *f, struct fetch_host *host)
{
    if (list_linked(&host->link))
        list_remove(&f->ready, &host->link);
    if (!list_empty(&host->queue) && host->busy < f->max_connections_per_host) {
        list_push_back(&f->ready, &host->link);
    } else if (list_empty(&host->queue) && host->busy == 0) {
        map_remove(&f->hosts, host_key(host));
        mem_free(host);
    }
}

/* The end of a fetch. */

static void forget(struct fetcher *f, struct fetch *fetch)
{
    f->active--;
    fetch->transfer = NULL;
    blob_unref(fetch->body);
}

/* Back to the idle ones. What it received stays in place until it is used again. */
static void release(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    struct fetch_host *host = TAKE(t->host);

    resolve_cancel(f->resolver, &t->query);
    timer_stop(f->loop, &t->deadline);
    if (t->is_plain)
        fetch_plain_stop(t);
    else if (t->state == FETCH_RUNNING)
        fetch_easy_stop(t);
    fetch_socket_forget(t);
    move(t, FETCH_IDLE);
    forget(f, TAKE(t->fetch));
    host->busy--;
    host_place(f, host);
    fetch_wake(f);
}

static void complete(struct fetch_transfer *t, const struct fetch_result *result)
{
    struct fetch *fetch = t->fetch;

    release(t);
    fetch->on_done(fetch, result);
}

static void fail(struct fetch_transfer *t, enum fetch_error error, const char *why)
{
    struct fetch_result result;

    fetch_answer_fail(t, error, &result, "%s", why);
    complete(t, &result);
}

/* libcurl 7.88.1 keeps the connection when the request could not be written. Should the socket live
 * on, what TLS holds of that request would leave in the place of the next one. */
static void end_connection(const struct fetch_transfer *t)
{
    curl_socket_t fd;

    if (curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK && fd >= 0)
        shutdown(fd, SHUT_RDWR);
}

void fetch_finish(struct fetch_transfer *t, CURLcode code)
{
    struct fetch_result result;

    if (code == CURLE_SEND_ERROR)
        end_connection(t);
    fetch_answer_judge(t, code, &result);
    complete(t, &result);
}

static bool is_connected(const struct fetch_transfer *t)
{
    curl_off_t sent_us = 0;

    if (t->is_plain)
        return t->is_reused || t->connected_ns != 0;
    curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    return sent_us != 0;
}

static const char *phase_text(const struct fetch_transfer *t)
{
    if (t->state != FETCH_RUNNING)
        return t->state == FETCH_RESOLVING ? "resolving the name" : "waiting for its turn";
    if (!is_connected(t))
        return "connecting";
    return t->answer.complete_head ? "reading the answer" : "waiting for the answer";
}

static unsigned timeout_of(const struct fetch *fetch)
{
    return fetch->timeout_ms != 0 ? fetch->timeout_ms : TIMEOUT_MS;
}

static void on_deadline(struct timer *timer)
{
    struct fetch_transfer *t = CONTAINER_OF(timer, struct fetch_transfer, deadline);
    struct fetch_result result;

    fetch_answer_fail(t, FETCH_TIMEOUT, &result, "%u ms were over while %s", timeout_of(t->fetch),
                      phase_text(t));
    complete(t, &result);
}

/* Its beginning. */

static void launch(struct fetch_transfer *t)
{
    if (t->is_plain) {
        move(t, FETCH_RUNNING);
        fetch_plain_launch(t);
        return;
    }
    if (fetch_easy_launch(t))
        move(t, FETCH_RUNNING);
    else
        fail(t, FETCH_OTHER, "libcurl did not take the request");
}

static const struct fetch_target *target_of(const struct fetch_transfer *t)
{
    return t->fetcher->proxy != NULL ? &t->fetcher->proxy_target : &t->host->target;
}

/* False: it has failed, and is gone. */
static bool take_addresses(struct fetch_transfer *t, const struct resolve_result *addresses)
{
    t->resolved_ns = clock_mono_ns();
    if (addresses->count == 0) {
        fail(t, FETCH_NAME, addresses->error);
        return false;
    }
    if (t->is_plain)
        fetch_plain_pin(t, target_of(t), addresses);
    else
        fetch_easy_pin(t, target_of(t), addresses);
    move(t, FETCH_READY);
    return true;
}

static void on_resolved(struct resolve_query *query, const struct resolve_result *result)
{
    struct fetch_transfer *t = CONTAINER_OF(query, struct fetch_transfer, query);

    if (take_addresses(t, result))
        fetch_wake(t->fetcher);
}

static void resolve(struct fetch_transfer *t)
{
    const struct fetch_target *target = target_of(t);
    struct resolve_result addresses;

    if (target->literal && !t->is_plain) {
        t->resolved_ns = t->begun_ns;
        move(t, FETCH_READY);
        launch(t);
    } else if (resolve_start(t->fetcher->resolver, &t->query, target->name, &addresses)) {
        if (take_addresses(t, &addresses))
            launch(t);
    }
}

/* A fetch and a transfer meet. */
static void engage(struct fetch_transfer *t, struct fetch_host *host, struct fetch *fetch)
{
    struct fetcher *f = t->fetcher;

    t->fetch = fetch;
    fetch->transfer = t;
    t->host = host;
    host->busy++;
    host_place(f, host);
    t->begun_ns = clock_mono_ns();
    t->resolved_ns = t->launched_ns = t->connected_ns = t->first_byte_ns = 0;
    t->is_reused = false;
    t->is_plain = fetch_plain_suits(f, fetch->url);
    t->pinned = false;
    t->allowed_addresses = 0;
    t->no_socket = NULL;
    t->fd = CURL_SOCKET_BAD;
    t->refused[0] = t->curl_text[0] = '\0';
    fetch_answer_init(&t->answer, fetch);
    fetch_socket_begin(t);
    timer_start(f->loop, &t->deadline, timeout_of(fetch));
    move(t, FETCH_RESOLVING);
}

static const char *open_handle(struct fetch_transfer *t)
{
    struct err *e;

    if (t->easy != NULL || t->is_plain)
        return NULL;
    e = fetch_easy_open(t);
    if (e == NULL)
        return NULL;
    err_free(e);
    return "libcurl is out of memory";
}

static void begin(struct fetcher *f, struct fetch_host *host)
{
    struct fetch_transfer *t = transfer_get(f);
    enum fetch_error error = FETCH_OTHER;
    const char *why;

    engage(t, host, CONTAINER_OF(list_pop_front(&host->queue), struct fetch, link));
    why = host->usable ? open_handle(t) : "the URL cannot be used";
    if (why == NULL)
        why = t->is_plain ? fetch_plain_prepare(t) : fetch_easy_prepare(t);
    if (why == NULL && f->proxy != NULL) {
        /* The proxy connects to it: no other check would see the address. */
        why = fetch_target_refused(f->rules, &host->target, t->refused);
        error = FETCH_REFUSED_ADDRESS;
    }
    if (why != NULL)
        fail(t, error, why);
    else
        resolve(t);
}

/* A turn's task. */

static bool can_begin(const struct fetcher *f)
{
    return !list_empty(&f->ready) && transfers_busy(f) < f->max_connections;
}

static bool has_to_start(const struct fetcher *f)
{
    return !list_empty(&f->transfers[FETCH_READY]) || can_begin(f);
}

static bool start_next(struct fetcher *f)
{
    struct list_link *link = list_first(&f->transfers[FETCH_READY]);

    if (link != NULL) {
        launch(CONTAINER_OF(link, struct fetch_transfer, link));
        return true;
    }
    if (!can_begin(f))
        return false;
    begin(f, CONTAINER_OF(list_first(&f->ready), struct fetch_host, link));
    return true;
}

static void drop_surplus(struct fetcher *f)
{
    while (list_count(&f->transfers[FETCH_IDLE]) > IDLE_MOST)
        transfer_free(
            CONTAINER_OF(list_first(&f->transfers[FETCH_IDLE]), struct fetch_transfer, link));
}

/* libcurl wants to be called at once after a launch: that is done here too. */
static void on_turn(struct loop_task *task)
{
    struct fetcher *f = CONTAINER_OF(task, struct fetcher, turn);
    unsigned starts = 0;

    f->in_turn = true;
    drop_surplus(f);
    fetch_socket_settle(f, has_to_start(f));
    while (starts < f->starts_per_turn && start_next(f))
        starts++;
    fetch_socket_run_due(f);
    f->in_turn = false;
    if (f->due || has_to_start(f))
        fetch_wake(f);
}

void fetch_wake(struct fetcher *f)
{
    if (!f->in_turn)
        loop_post(f->loop, &f->turn);
}

/* The callers' side. */

void fetch_start(struct fetcher *f, struct fetch *fetch)
{
    struct fetch_host *host = host_get(f, fetch_url_origin(fetch->url));

    MUST(fetch->on_done != NULL);
    fetch->transfer = NULL;
    if (fetch->body != NULL)
        blob_ref(fetch->body);
    f->active++;
    list_push_back(&host->queue, &fetch->link);
    host_place(f, host);
    fetch_wake(f);
}

void fetch_cancel(struct fetcher *f, struct fetch *fetch)
{
    struct fetch_host *host;

    if (fetch->transfer != NULL) {
        release(fetch->transfer);
    } else if (list_linked(&fetch->link)) {
        host = map_find(&f->hosts, fetch_url_origin(fetch->url));
        list_remove(&host->queue, &fetch->link);
        forget(f, fetch);
        host_place(f, host);
    }
}

size_t fetch_active(const struct fetcher *f)
{
    return f->active;
}

/* The fetcher. */

static char *copy(const char *text)
{
    return text != NULL ? mem_string(span_str(text)) : NULL;
}

static unsigned or_default(unsigned value, unsigned otherwise)
{
    return value != 0 ? value : otherwise;
}

static struct fetcher *fetcher_make(struct loop *loop, struct resolver *resolver,
                                    const struct egress_rules *rules,
                                    const struct fetch_options *options)
{
    struct fetcher *f = NEW(struct fetcher);

    f->kind = FETCH_KIND_FETCHER;
    f->loop = loop;
    f->resolver = resolver;
    f->rules = rules;
    f->connect_timeout_ms = or_default(options->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    f->max_connections = or_default(options->max_connections, CONNECTIONS);
    f->max_connections_per_host =
        or_default(options->max_connections_per_host, FETCH_CONNECTIONS_PER_HOST);
    f->starts_per_turn = or_default(options->starts_per_turn, STARTS_PER_TURN);
    f->proxy = copy(options->proxy);
    f->ca_file = copy(options->ca_file);
    f->user_agent = copy(options->user_agent != NULL ? options->user_agent : "svcd/" SVCD_VERSION);
    f->only_libcurl = options->only_libcurl;
    map_init(&f->hosts, host_key);
    fetch_plain_attach(f);
    list_init(&f->ready);
    for (size_t i = 0; i < FETCH_STATE_COUNT; i++)
        list_init(&f->transfers[i]);
    f->turn.run = on_turn;
    return f;
}

/* One transfer is made at once, to see whether libcurl has all that is needed. */
static struct err *fetcher_open(struct fetcher *f)
{
    if (f->proxy != NULL && !fetch_proxy_parse(span_str(f->proxy), &f->proxy_target))
        return ERR(ERR_UNKNOWN,
                   "proxy '%s': should be http://host:port, https://host:port or "
                   "socks5h://host:port",
                   f->proxy);
    if (f->ca_file != NULL && access(f->ca_file, R_OK) != 0)
        return ERR(ERR_UNKNOWN, "CA file '%s': %s", f->ca_file, strerror(errno));
    f->multi = curl_multi_init();
    f->share = curl_share_init();
    if (f->multi == NULL || f->share == NULL)
        return ERR(ERR_UNKNOWN, "libcurl is out of memory");
    curl_share_setopt(f->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)f->max_connections);
    fetch_socket_attach(f);
    return fetch_easy_open(transfer_new(f));
}

struct err *fetcher_new(struct loop *loop, struct resolver *resolver,
                        const struct egress_rules *rules, const struct fetch_options *options,
                        struct fetcher **out_fetcher)
{
    struct fetcher *f;
    struct err *e;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return ERR(ERR_UNKNOWN, "libcurl cannot begin");
    f = fetcher_make(loop, resolver, rules, options);
    e = fetcher_open(f);
    if (e == NULL)
        *out_fetcher = f;
    else
        fetcher_free(f);
    return e;
}

static void drop_all(struct fetcher *f)
{
    struct list_link *link;

    for (int state = FETCH_RESOLVING; state < FETCH_STATE_COUNT; state++)
        while ((link = list_first(&f->transfers[state])) != NULL)
            release(CONTAINER_OF(link, struct fetch_transfer, link));
    /* With no transfer busy, every host has room and is among those whose turn it is. */
    while ((link = list_first(&f->ready)) != NULL) {
        struct fetch_host *host = CONTAINER_OF(link, struct fetch_host, link);

        forget(f, CONTAINER_OF(list_pop_front(&host->queue), struct fetch, link));
        host_place(f, host);
    }
}

void fetcher_free(struct fetcher *f)
{
    struct list_link *link;

    if (f == NULL)
        return;
    drop_all(f);
    while ((link = list_first(&f->transfers[FETCH_IDLE])) != NULL)
        transfer_free(CONTAINER_OF(link, struct fetch_transfer, link));
    fetch_plain_detach(f);
    curl_multi_cleanup(f->multi);
    curl_share_cleanup(f->share);
    curl_global_cleanup();
    fetch_socket_detach(f);
    loop_unpost(f->loop, &f->turn);
    map_done(&f->hosts);
    mem_free(f->proxy);
    mem_free(f->ca_file);
    mem_free(f->user_agent);
    mem_free(f);
}
