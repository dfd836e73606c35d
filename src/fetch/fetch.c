/* The way of a fetch:
 *
 *                +---------- a kept connection ----------+
 *                |                                       v
 *   fetch_start -+-> RESOLVING --> CONNECTING --> EXCHANGING --> on_done
 *                        ^                               |
 *                        +---- had ended while kept -----+
 *
 * It starts inside fetch_start, and ends in `complete`, the only place that calls on_done; what
 * fails inside fetch_start ends at the end of the turn (ENDED). From any state it may time out or
 * be cancelled.
 *
 * Possible failure modes: the URL or a header cannot be used, the name is not resolved, no
 * connection is made (fetch_connect.c), the answer is none (fetch_answer.c), the connection ends
 * (fetch_exchange.c), the time is up. */
#include "fetch_private.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/sm.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    CONNECTIONS = 1024,
    TIMEOUT_MS = 30000,
    UNUSED_MOST = 256,    /* transfers kept for the next */
    AUTHORITY_BYTES = 96, /* of it in `why` */
};

static const struct sm_state states[] = {
    [FETCH_UNUSED] = {"unused", SM_TO(FETCH_RESOLVING)},
    [FETCH_RESOLVING] = {"resolving", SM_TO(FETCH_CONNECTING) | SM_TO(FETCH_EXCHANGING) |
                                          SM_TO(FETCH_ENDED) | SM_TO(FETCH_UNUSED)},
    [FETCH_CONNECTING] = {"connecting",
                          SM_TO(FETCH_EXCHANGING) | SM_TO(FETCH_ENDED) | SM_TO(FETCH_UNUSED)},
    [FETCH_EXCHANGING] = {"exchanging",
                          SM_TO(FETCH_RESOLVING) | SM_TO(FETCH_ENDED) | SM_TO(FETCH_UNUSED)},
    [FETCH_ENDED] = {"ended", SM_TO(FETCH_UNUSED)},
};

static const struct sm_table machine = {"fetch", states, FETCH_STATE_COUNT};

/* Transfers. */

static struct fetch_transfer *transfer_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct fetch_transfer, link);
}

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

    t->fetcher = f;
    t->query.on_done = on_resolved;
    timer_init(&t->deadline, on_deadline);
    buf_init(&t->head, BUF_NO_CAP);
    list_push_back(&f->transfers[FETCH_UNUSED], &t->link);
    return t;
}

static void transfer_free(struct fetch_transfer *t)
{
    list_remove(&t->fetcher->transfers[FETCH_UNUSED], &t->link);
    fetch_answer_done(&t->answer);
    buf_done(&t->head);
    mem_free(t);
}

/* The end of a fetch. */

/* What it received stays in place until the transfer is used again. */
static void release(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    struct fetch *fetch = TAKE(t->fetch);

    resolve_cancel(f->resolver, &t->query);
    timer_stop(f->loop, &t->deadline);
    if (t->conn != NULL)
        fetch_conn_close(t->conn);
    move(t, FETCH_UNUSED);
    fetch_origin_put(TAKE(t->origin));
    f->active--;
    fetch->transfer = NULL;
    blob_unref(fetch->body);
}

static void complete(struct fetch_transfer *t)
{
    struct fetch *fetch = t->fetch;

    release(t);
    fetch->on_done(fetch, &t->result);
}

static uint32_t ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (uint32_t)((to_ns - from_ns) / NS_PER_MS) : 0;
}

uint32_t fetch_age_ms(const struct fetch_transfer *t)
{
    return ms_between(t->begun_ns, clock_mono_ns());
}

/* Peers are quoted in some of the words. */
static void say_why(struct fetch_transfer *t, const char *why)
{
    struct fetch_result *r = &t->result;
    struct span origin = fetch_origin_text(t->origin);
    size_t scheme = span_find(origin, SPAN("://"));
    size_t from = scheme == SIZE_MAX ? 0 : scheme + strlen("://");

    snprintf(r->why, sizeof(r->why), "%.*s: %s",
             SPAN_FMT(span_sub(origin, from, from + AUTHORITY_BYTES)), why);
    for (char *c = r->why; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void describe(struct fetch_transfer *t, enum fetch_error error, const char *why)
{
    const struct fetch_answer *a = &t->answer;
    struct fetch_result *r = &t->result;
    bool is_answer = t->state == FETCH_EXCHANGING;
    bool has_status = is_answer && a->complete_head;

    r->error = error;
    r->total_ms = fetch_age_ms(t);
    r->reused = r->reused && has_status;
    if (is_answer) {
        r->body = buf_span(&a->body);
        r->body_bytes = a->body_bytes;
        r->truncated = a->stop == FETCH_BODY_READ;
    }
    if (has_status) {
        r->status = a->status;
        r->retry_after_s = a->retry_after_s;
    }
    for (size_t i = 0; has_status && i < t->fetch->wanted_count; i++)
        if (a->found[i].n > 0 && !buf_over(&a->found[i]))
            r->found[i] = buf_span(&a->found[i]);
    if (error != FETCH_OK)
        say_why(t, why);
}

void fetch_end(struct fetch_transfer *t, enum fetch_error error, const char *why)
{
    struct fetcher *f = t->fetcher;

    describe(t, error, why);
    if (!t->is_starting) {
        complete(t);
        return;
    }
    move(t, FETCH_ENDED);
    timer_stop(f->loop, &t->deadline);
    loop_post(f->loop, &f->turn);
}

static unsigned timeout_of(const struct fetch *fetch)
{
    return fetch->timeout_ms != 0 ? fetch->timeout_ms : TIMEOUT_MS;
}

static const char *phase_text(const struct fetch_transfer *t)
{
    if (t->state == FETCH_RESOLVING)
        return "resolving the name";
    if (t->state == FETCH_CONNECTING)
        return "connecting";
    return t->answer.complete_head ? "reading the answer" : "waiting for the answer";
}

static void on_deadline(struct timer *timer)
{
    struct fetch_transfer *t = CONTAINER_OF(timer, struct fetch_transfer, deadline);
    char why[64];

    snprintf(why, sizeof(why), "%u ms were over while %s", timeout_of(t->fetch), phase_text(t));
    fetch_end(t, FETCH_TIMEOUT, why);
}

void fetch_go_on(struct fetch_transfer *t)
{
    if (!t->is_paused)
        timer_start(t->fetcher->loop, &t->deadline, timeout_of(t->fetch));
}

static void set_paused(struct fetch *fetch, bool is_paused)
{
    struct fetch_transfer *t = fetch->transfer;

    if (t == NULL || t->state != FETCH_EXCHANGING || t->is_paused == is_paused)
        return;
    t->is_paused = is_paused;
    if (is_paused)
        timer_stop(t->fetcher->loop, &t->deadline);
    fetch_go_on(t);
    fetch_exchange_pause(t->conn);
}

void fetch_pause(struct fetch *f)
{
    set_paused(f, true);
}

void fetch_resume(struct fetch *f)
{
    set_paused(f, false);
}

/* Its way. */

void fetch_on_connected(struct fetch_transfer *t, uint32_t connect_ms, uint32_t tls_ms)
{
    uint32_t before_ms = ms_between(t->begun_ns, t->conn->launched_ns);

    t->result.connect_ms = before_ms + connect_ms;
    t->result.tls_ms = tls_ms != 0 ? before_ms + tls_ms : 0;
    move(t, FETCH_EXCHANGING);
    if (t->fetch->on_connected != NULL)
        t->fetch->on_connected(t->fetch);
    fetch_exchange_begin(t->conn);
}

/* `addresses`: NULL when the target is one. */
static void connect_to(struct fetch_transfer *t, const struct resolve_result *addresses)
{
    struct fetch_conn *c;

    t->result.dns_ms = fetch_age_ms(t);
    if (addresses != NULL && addresses->count == 0) {
        fetch_end(t, FETCH_NAME, addresses->error);
        return;
    }
    move(t, FETCH_CONNECTING);
    c = fetch_conn_new(t);
    if (c == NULL || !fetch_connect_launch(c, addresses))
        fetch_end(t, FETCH_OTHER, "libcurl did not take the request");
}

static void on_resolved(struct resolve_query *query, const struct resolve_result *result)
{
    connect_to(CONTAINER_OF(query, struct fetch_transfer, query), result);
}

static void resolve(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    const struct fetch_target *target =
        f->options.proxy != NULL ? &f->proxy_target : &t->origin->target;
    struct resolve_result addresses;

    if (target->literal)
        connect_to(t, NULL);
    else if (resolve_start(f->resolver, &t->query, target->name, &addresses))
        connect_to(t, &addresses);
}

void fetch_try_again(struct fetch_transfer *t)
{
    t->result.reused = false;
    move(t, FETCH_RESOLVING);
    resolve(t);
}

/* NULL, or why it cannot be. A proxy connects to the target itself: no other check would see a
 * refused address. */
static const char *check(struct fetch_transfer *t, enum fetch_error *out_error, char *out_refused)
{
    const char *why = t->origin->is_usable ? fetch_request_write(t) : "the URL cannot be used";

    *out_error = FETCH_OTHER;
    if (why != NULL || t->fetcher->options.proxy == NULL)
        return why;
    *out_error = FETCH_REFUSED_ADDRESS;
    return fetch_target_refused(t->fetcher->rules, &t->origin->target, out_refused);
}

static void begin(struct fetch_transfer *t)
{
    char refused[EGRESS_WHY_BYTES];
    enum fetch_error error;
    const char *why = check(t, &error, refused);

    if (why != NULL) {
        fetch_end(t, error, why);
    } else if (fetch_conn_take(t) != NULL) {
        t->result.reused = true;
        move(t, FETCH_EXCHANGING);
        fetch_exchange_begin(t->conn);
    } else {
        resolve(t);
    }
}

/* The callers' side. */

/* The transfer used last: its memory is warm. */
static struct fetch_transfer *engage(struct fetcher *f, struct fetch *fetch)
{
    struct list *unused = &f->transfers[FETCH_UNUSED];
    struct fetch_transfer *t =
        list_empty(unused) ? transfer_new(f) : transfer_at(list_last(unused));

    t->fetch = fetch;
    t->origin = fetch_origin_ref(fetch->origin);
    fetch->transfer = t;
    if (fetch->body != NULL)
        blob_ref(fetch->body);
    f->active++;
    t->is_paused = false;
    t->result = (struct fetch_result){.retry_after_s = -1};
    t->begun_ns = clock_mono_ns();
    timer_start(f->loop, &t->deadline, timeout_of(fetch));
    move(t, FETCH_RESOLVING);
    return t;
}

void fetch_start(struct fetcher *f, struct fetch *fetch)
{
    struct fetch_transfer *t;

    MUST(fetch->on_done != NULL && fetch->origin != NULL);
    t = engage(f, fetch);
    t->is_starting = true;
    begin(t);
    t->is_starting = false;
}

void fetch_cancel(struct fetcher *f, struct fetch *fetch)
{
    (void)f;
    if (fetch->transfer != NULL)
        release(fetch->transfer);
}

size_t fetch_active(const struct fetcher *f)
{
    return f->active;
}

static void on_turn(struct loop_task *task)
{
    struct fetcher *f = CONTAINER_OF(task, struct fetcher, turn);
    struct list *unused = &f->transfers[FETCH_UNUSED], *ended = &f->transfers[FETCH_ENDED];

    while (list_count(unused) > UNUSED_MOST)
        transfer_free(transfer_at(list_first(unused)));
    while (!list_empty(ended))
        complete(transfer_at(list_first(ended)));
    fetch_sockets_run(f);
}

/* The fetcher. */

static struct fetcher *fetcher_make(struct loop *loop, struct resolver *resolver,
                                    const struct egress_rules *rules,
                                    const struct fetch_options *options)
{
    struct fetcher *f = NEW(struct fetcher);

    f->kind = FETCH_KIND_FETCHER;
    f->loop = loop;
    f->resolver = resolver;
    f->rules = rules;
    f->options = *options;
    if (options->connect_timeout_ms == 0)
        f->options.connect_timeout_ms = CONNECT_TIMEOUT_MS;
    if (options->max_connections == 0)
        f->options.max_connections = CONNECTIONS;
    buf_init(&f->proxy_authorization, BUF_NO_CAP);
    fetch_origins_init(f);
    fetch_conns_init(f);
    for (size_t i = 0; i < FETCH_STATE_COUNT; i++)
        list_init(&f->transfers[i]);
    f->turn.run = on_turn;
    return f;
}

/* `Basic` with the user and the password that the proxy's URL has (RFC 7617), for requests that go
 * to the proxy itself; with tunnels libcurl does it. */
static void add_proxy_authorization(struct fetcher *f, CURLU *url)
{
    char *user = NULL, *password = NULL;
    struct buf pair;

    if (curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK) {
        curl_url_get(url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE);
        buf_init(&pair, BUF_NO_CAP);
        buf_printf(&pair, "%s:%s", user, password != NULL ? password : "");
        buf_add(&f->proxy_authorization, SPAN("Basic "));
        text_add_base64(&f->proxy_authorization, buf_span(&pair));
        buf_done(&pair);
    }
    curl_free(user);
    curl_free(password);
}

static struct err *use_proxy(struct fetcher *f)
{
    CURLU *url;

    if (!fetch_proxy_parse(span_str(f->options.proxy), &f->proxy_target))
        return ERR(ERR_UNKNOWN, /* without its text, which may hold a password */
                   "Proxy: should be http://host:port, https://host:port or socks5h://host:port");
    f->sends_url = span_istarts(span_str(f->options.proxy), SPAN("http"));
    url = curl_url();
    if (url != NULL &&
        curl_url_set(url, CURLUPART_URL, f->options.proxy, CURLU_NON_SUPPORT_SCHEME) == 0)
        add_proxy_authorization(f, url);
    curl_url_cleanup(url);
    return NULL;
}

static struct err *check_file(const char *what, const char *path)
{
    if (path == NULL || access(path, R_OK) == 0)
        return NULL;
    return ERR(ERR_UNKNOWN, "%s: '%s': %s", what, path, strerror(errno));
}

/* One handle is made at once, to see whether libcurl has all that is needed. */
static struct err *fetcher_open(struct fetcher *f)
{
    struct fetch_conn probe = {.kind = FETCH_KIND_CONN, .fetcher = f};

    if (f->options.proxy != NULL)
        TRY(use_proxy(f));
    TRY(check_file("CaFile", f->options.ca_file));
    TRY(check_file("CertFile", f->options.cert_file));
    TRY(check_file("KeyFile", f->options.key_file));
    f->multi = curl_multi_init();
    f->share = fetch_connect_share();
    if (f->multi == NULL || f->share == NULL)
        return ERR(ERR_UNKNOWN, "libcurl is out of memory");
    curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)f->options.max_connections + 1);
    fetch_sockets_init(f);
    TRY(fetch_connect_open(&probe));
    fetch_connect_close(&probe);
    return NULL;
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

void fetcher_free(struct fetcher *f)
{
    if (f == NULL)
        return;
    for (int state = FETCH_RESOLVING; state < FETCH_STATE_COUNT; state++)
        while (!list_empty(&f->transfers[state]))
            release(transfer_at(list_first(&f->transfers[state])));
    while (!list_empty(&f->transfers[FETCH_UNUSED]))
        transfer_free(transfer_at(list_first(&f->transfers[FETCH_UNUSED])));
    fetch_conns_done(f);
    curl_multi_cleanup(f->multi);
    fetch_sockets_done(f);
    fetch_origins_done(f);
    curl_share_cleanup(f->share);
    curl_global_cleanup();
    loop_unpost(f->loop, &f->turn);
    buf_done(&f->proxy_authorization);
    mem_free(f);
}
