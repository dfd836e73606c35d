/* The way of a call:
 *
 *              +-- no token --> UNSIGNED --+
 *   etcd_x ----+                           +--> SENT --> on_done
 *              +---------------------------+     |  ^
 *                                                v  |
 *                                              PAUSED   no answer: the next endpoint
 *
 * An answer that says nothing (UNKNOWN) is the endpoint's failure, and the next one is used from
 * then on, by everybody. Who asked for it (`repeats`) has the call sent again until it is answered.
 * A token that is not taken says that nothing was carried out: the client signs in again, and the
 * call goes out once more, whoever asked.
 *
 * etcd is the operator's choice: no rule for outgoing addresses is applied to it. */
#include "etcd_private.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/sm.h"
#include "fetch/fetch_url.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    ATTEMPT_MS = 3000,
    CONNECT_MS = 1000,
    PAUSE_LEAST_MS = 50,
    PAUSE_MOST_MS = 2000,
    SILENCE_MS = 5000,
    SIGN_INS_MOST = 2, /* for one call: a token that is refused at once is no token */
    PASSWORD_BYTES = 4096,
    PATH_BYTES = 32, /* of the longest path */
    DOUBLINGS_MOST = 16,
};

#define ANSWER_BYTES ((size_t)16 << 20)
#define KINDLESS SM_TO(ETCD_OFF)

static const struct sm_state states[] = {
    [ETCD_OFF] = {"off", SM_TO(ETCD_UNSIGNED) | SM_TO(ETCD_SENT)},
    [ETCD_UNSIGNED] = {"unsigned", SM_TO(ETCD_SENT) | SM_TO(ETCD_PAUSED) | KINDLESS},
    [ETCD_SENT] = {"sent", SM_TO(ETCD_SENT) | SM_TO(ETCD_UNSIGNED) | SM_TO(ETCD_PAUSED) | KINDLESS},
    [ETCD_PAUSED] = {"paused", SM_TO(ETCD_UNSIGNED) | SM_TO(ETCD_SENT) | KINDLESS},
    [ETCD_READING] = {"reading", 0},
};

static const struct sm_table machine = {"etcd call", states, ETCD_STATE_COUNT};

static struct etcd_call *call_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct etcd_call, link);
}

/* By others too, which failed as well: only once for all. */
static void leave_endpoint(struct etcd *e, size_t endpoint)
{
    if (e->endpoint == endpoint)
        e->endpoint = (endpoint + 1) % e->endpoint_count;
}

/* Between half and all of what doubles with each failure. */
uint64_t etcd_pause_ms(const struct etcd *e, unsigned failures)
{
    unsigned doublings = MIN(failures > 0 ? failures - 1 : 0, (unsigned)DOUBLINGS_MOST);
    uint64_t most = MIN((uint64_t)e->pause_least_ms << doublings, (uint64_t)e->pause_most_ms);

    return most - rng_below(most / 2 + 1);
}

void etcd_fill_fetch(struct etcd *e, enum etcd_call_kind kind, size_t endpoint, struct fetch *fetch,
                     char *url, struct header_field *headers)
{
    size_t count = 0;

    headers[count++] = (struct header_field){SPAN("Content-Type"), SPAN("application/json")};
    if (kind != ETCD_CALL_SIGN_IN && e->token != NULL)
        headers[count++] = (struct header_field){SPAN("Authorization"), span_str(e->token)};
    if (kind == ETCD_CALL_WATCH)
        headers[count++] = (struct header_field){SPAN("Grpc-Metadata-hasleader"), SPAN("true")};
    snprintf(url, ETCD_URL_BYTES, "%s%s", e->urls[endpoint], etcd_wire_path(kind));
    fetch->origin = e->origins[endpoint];
    fetch->method = SPAN("POST");
    fetch->url = span_str(url);
    fetch->headers = headers;
    fetch->header_count = count;
}

/* The end of a call. */

static void release(struct etcd_call *c)
{
    struct etcd *e = c->etcd;

    fetch_cancel(e->fetcher, &c->fetch);
    timer_stop(e->loop, &c->pause);
    blob_unref(TAKE(c->body));
    if (c != &e->sign_in)
        list_remove(&e->calls, &c->link);
    sm_move(&machine, &c->state, ETCD_OFF);
}

/* The answer's memory is the client's arena, which the next answer takes: on_done may start calls,
 * but none is answered inside it. */
static void complete(struct etcd_call *c, struct etcd_answer *answer)
{
    answer->attempts = c->attempts;
    answer->sent_ns = c->sent_ns;
    release(c);
    c->on_done(c, answer);
}

/* Its way. */

static void attempt(struct etcd_call *c)
{
    struct etcd *e = c->etcd;

    if (c->kind != ETCD_CALL_SIGN_IN && etcd_needs_token(e)) {
        if (c->state != ETCD_UNSIGNED)
            sm_move(&machine, &c->state, ETCD_UNSIGNED);
        return;
    }
    sm_move(&machine, &c->state, ETCD_SENT);
    c->endpoint = e->endpoint;
    c->token = e->tokens;
    c->attempts++;
    c->sent_ns = clock_mono_ns();
    c->fetch.timeout_ms = c->attempt_ms != 0 ? c->attempt_ms : e->attempt_ms;
    c->fetch.read_bytes = c->fetch.keep_bytes = e->answer_bytes;
    c->fetch.body = c->body;
    etcd_fill_fetch(e, c->kind, c->endpoint, &c->fetch, c->url, c->headers);
    fetch_start(e->fetcher, &c->fetch);
}

static void on_pause_over(struct timer *timer)
{
    attempt(CONTAINER_OF(timer, struct etcd_call, pause));
}

/* Nothing is known of it. */
static void fail(struct etcd_call *c, struct etcd_answer *answer)
{
    struct etcd *e = c->etcd;

    leave_endpoint(e, c->endpoint);
    if (!c->repeats) {
        complete(c, answer);
        return;
    }
    sm_move(&machine, &c->state, ETCD_PAUSED);
    timer_start(e->loop, &c->pause, etcd_pause_ms(e, c->attempts));
}

static void read_answer(struct etcd_call *c, const struct fetch_result *result,
                        struct etcd_answer *out_answer, struct span *out_token)
{
    struct etcd *e = c->etcd;

    arena_reset(&e->arena);
    *out_token = span_of(NULL, 0);
    if (result->error == FETCH_OK && !result->truncated) {
        etcd_wire_read(c->kind, result->status, result->body, &e->arena, out_answer, out_token);
        return;
    }
    *out_answer = (struct etcd_answer){.outcome = ETCD_UNKNOWN};
    snprintf(out_answer->why, sizeof(out_answer->why), "%s",
             result->truncated ? "the answer is longer than answer_bytes" : result->why);
}

bool etcd_is_other(const struct etcd *e, uint64_t cluster_id, char out_why[ETCD_WHY_BYTES])
{
    if (e->cluster_id == 0 || cluster_id == 0 || cluster_id == e->cluster_id)
        return false;
    snprintf(
        out_why, ETCD_WHY_BYTES,
        "etcd of cluster id %016" PRIx64 " answers instead of %016" PRIx64
        ": if it was set up anew or restored, `svc cluster restore` begins the log anew there; "
        "else an address of Etcd is another etcd's",
        cluster_id, e->cluster_id);
    return true;
}

static void look_at_cluster(const struct etcd_call *c, struct etcd_answer *answer)
{
    struct etcd_answer other = {.outcome = ETCD_UNKNOWN, .is_other = true};

    other.cluster_id = answer->cluster_id;
    if (!c->any_cluster && etcd_is_other(c->etcd, answer->cluster_id, other.why))
        *answer = other;
}

static void take_token(struct etcd *e, struct span token)
{
    e->token = mem_string(token);
    e->tokens++;
}

static void on_answer(struct fetch *fetch, const struct fetch_result *result)
{
    struct etcd_call *c = CONTAINER_OF(fetch, struct etcd_call, fetch);
    struct etcd_answer answer;
    struct span token;

    read_answer(c, result, &answer, &token);
    look_at_cluster(c, &answer);
    if (etcd_wire_is_bad_token(result->status, &answer) && c->kind != ETCD_CALL_SIGN_IN &&
        c->etcd->user != NULL && c->sign_ins < SIGN_INS_MOST) {
        c->sign_ins++;
        etcd_drop_token(c->etcd, c->token);
        attempt(c);
    } else if (answer.outcome == ETCD_UNKNOWN) {
        fail(c, &answer);
    } else {
        if (token.n > 0)
            take_token(c->etcd, token);
        complete(c, &answer);
    }
}

static void start(struct etcd *e, struct etcd_call *c, enum etcd_call_kind kind, struct buf *body)
{
    MUST(c->state == ETCD_OFF && c->on_done != NULL);
    c->etcd = e;
    c->kind = (uint8_t)kind;
    c->attempts = c->sign_ins = 0;
    c->is_denied = false;
    c->body = blob_new(buf_span(body));
    c->fetch = (struct fetch){.on_done = on_answer};
    timer_init(&c->pause, on_pause_over);
    if (kind != ETCD_CALL_SIGN_IN)
        list_push_back(&e->calls, &c->link);
    mem_wipe(body->p, kind == ETCD_CALL_SIGN_IN ? body->n : 0);
    buf_done(body);
    attempt(c);
}

bool etcd_is_started(const struct etcd_call *c)
{
    return c->state != ETCD_OFF;
}

void etcd_cancel(struct etcd *e, struct etcd_call *c)
{
    (void)e;
    if (c->state != ETCD_OFF)
        release(c);
}

void etcd_keep_to(struct etcd *e, uint64_t cluster_id)
{
    e->cluster_id = cluster_id;
}

uint64_t etcd_kept_to(const struct etcd *e)
{
    return e->cluster_id;
}

void etcd_leave_endpoint(struct etcd *e)
{
    leave_endpoint(e, e->endpoint);
}

/* Signing in. */

static struct err *read_password(const struct etcd *e, char room[PASSWORD_BYTES],
                                 struct span *out_password)
{
    int fd = open(e->password_file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, room, PASSWORD_BYTES);
    int error = errno;

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return ERR(ERR_UNKNOWN, "PasswordFile '%s': %s", e->password_file, strerror(error));
    *out_password = span_of(room, (size_t)n);
    *out_password = span_sub(*out_password, 0, span_find_char(*out_password, '\n', 0));
    if (out_password->n > 0 && out_password->p[out_password->n - 1] == '\r')
        out_password->n--;
    if (out_password->n == 0)
        return ERR(ERR_UNKNOWN, "PasswordFile '%s' is empty", e->password_file);
    return NULL;
}

static void sign_in(struct etcd *e)
{
    char room[PASSWORD_BYTES];
    struct span password = {"", 0};
    struct buf body;
    struct err *error = read_password(e, room, &password);

    /* Without one etcd says that it is wrong, which is tried again when somebody asks. */
    err_free(error);
    buf_init(&body, BUF_NO_CAP);
    etcd_wire_add_sign_in(&body, span_str(e->user), password);
    mem_wipe(room, sizeof(room));
    start(e, &e->sign_in, ETCD_CALL_SIGN_IN, &body);
}

bool etcd_needs_token(struct etcd *e)
{
    if (e->user == NULL || e->token != NULL)
        return false;
    if (e->sign_in.state == ETCD_OFF)
        sign_in(e);
    return true;
}

void etcd_drop_token(struct etcd *e, unsigned number)
{
    if (number != e->tokens)
        return; /* there is another by now */
    if (e->token != NULL)
        mem_wipe(e->token, strlen(e->token));
    mem_free(TAKE(e->token));
}

static void deny_waiting(struct etcd *e, const struct etcd_answer *why)
{
    struct list waiting;
    struct list_link *first;

    list_init(&waiting);
    LIST_EACH(&e->calls, at)
        if (call_at(at)->state == ETCD_UNSIGNED) {
            list_remove(&e->calls, at);
            list_push_back(&waiting, at);
            call_at(at)->is_denied = true;
        }
    /* A callback may start calls, which sign in anew, and cancel calls: those that are denied
     * now stand at the front. */
    list_take_all(&waiting, &e->calls);
    list_take_all(&e->calls, &waiting);
    while ((first = list_first(&e->calls)) != NULL && call_at(first)->state == ETCD_UNSIGNED &&
           call_at(first)->is_denied) {
        struct etcd_answer answer = *why;

        complete(call_at(first), &answer);
    }
}

static void send_waiting(struct etcd *e)
{
    LIST_EACH(&e->calls, at)
        if (call_at(at)->state == ETCD_UNSIGNED)
            attempt(call_at(at));
    etcd_watches_signed_in(e, NULL);
}

static void on_signed_in(struct etcd_call *call, const struct etcd_answer *answer)
{
    struct etcd *e = CONTAINER_OF(call, struct etcd, sign_in);
    struct etcd_answer denied = {.outcome = ETCD_DENIED};

    if (answer->outcome == ETCD_DONE && e->token != NULL) {
        send_waiting(e);
        return;
    }
    snprintf(denied.why, sizeof(denied.why), "signing in as '%.64s': %.128s", e->user, answer->why);
    etcd_watches_signed_in(e, denied.why);
    deny_waiting(e, &denied);
}

/* The calls. */

void etcd_txn(struct etcd *e, struct etcd_call *call, const struct etcd_txn *txn)
{
    struct buf body;

    buf_init(&body, BUF_NO_CAP);
    etcd_wire_add_txn(&body, txn);
    start(e, call, ETCD_CALL_TXN, &body);
}

void etcd_range(struct etcd *e, struct etcd_call *call, const struct etcd_op *get)
{
    struct buf body;

    buf_init(&body, BUF_NO_CAP);
    etcd_wire_add_range(&body, get);
    start(e, call, ETCD_CALL_RANGE, &body);
}

static void start_with_number(struct etcd *e, struct etcd_call *call, enum etcd_call_kind kind,
                              struct span name, int64_t value)
{
    struct buf body;

    buf_init(&body, BUF_NO_CAP);
    etcd_wire_add_number(&body, name, value);
    start(e, call, kind, &body);
}

void etcd_lease_grant(struct etcd *e, struct etcd_call *call, int64_t ttl_s)
{
    start_with_number(e, call, ETCD_CALL_GRANT, SPAN("TTL"), ttl_s);
}

void etcd_lease_keepalive(struct etcd *e, struct etcd_call *call, int64_t lease)
{
    start_with_number(e, call, ETCD_CALL_KEEPALIVE, SPAN("ID"), lease);
}

void etcd_lease_revoke(struct etcd *e, struct etcd_call *call, int64_t lease)
{
    start_with_number(e, call, ETCD_CALL_REVOKE, SPAN("ID"), lease);
}

void etcd_compact(struct etcd *e, struct etcd_call *call, int64_t revision)
{
    start_with_number(e, call, ETCD_CALL_COMPACT, SPAN("revision"), revision);
}

/* The client. */

static unsigned or_default(unsigned value, unsigned instead)
{
    return value != 0 ? value : instead;
}

static struct err *add_endpoint(struct etcd *e, const char *text)
{
    struct span url = span_str(text), normal;
    struct arena a;
    struct err *error;

    while (span_ends(url, SPAN("/")))
        url.n--;
    arena_init(&a);
    error = fetch_check_url(&e->rules, url, &a, &normal);
    if (error == NULL && normal.n + PATH_BYTES >= ETCD_URL_BYTES)
        error = ERR(ERR_UNKNOWN, "it is longer than %d bytes", ETCD_URL_BYTES - PATH_BYTES);
    if (error == NULL) {
        while (span_ends(normal, SPAN("/")))
            normal.n--;
        e->urls[e->endpoint_count] = mem_string(normal);
        e->origins[e->endpoint_count++] = fetch_origin_get(e->fetcher, normal);
    }
    arena_done(&a);
    return error == NULL ? NULL : err_prefix(error, "Etcd '%s': ", text);
}

static struct err *check_options(const struct etcd_options *o)
{
    if (o->endpoint_count == 0 || o->endpoint_count > ETCD_ENDPOINTS_MOST)
        return ERR(ERR_UNKNOWN, "Etcd: should have 1 to %d addresses", ETCD_ENDPOINTS_MOST);
    if ((o->cert_file == NULL) != (o->key_file == NULL))
        return ERR(ERR_UNKNOWN, "CertFile and KeyFile: one needs the other");
    if ((o->user == NULL) != (o->password_file == NULL))
        return ERR(ERR_UNKNOWN, "User and PasswordFile: one needs the other");
    return NULL;
}

static struct err *check_password(const struct etcd *e)
{
    char room[PASSWORD_BYTES];
    struct span password;

    if (e->user == NULL)
        return NULL;
    TRY(read_password(e, room, &password));
    mem_wipe(room, sizeof(room));
    return NULL;
}

static struct err *open_client(struct etcd *e, struct resolver *resolver,
                               const struct etcd_options *o)
{
    const struct fetch_options fetching = {
        .connect_timeout_ms = or_default(o->connect_ms, CONNECT_MS),
        .max_connections = 64,
        .ca_file = o->ca_file,
        .cert_file = o->cert_file,
        .key_file = o->key_file,
    };

    TRY(ip_ranges_add(&e->rules.allow, SPAN("0.0.0.0/0")));
    TRY(ip_ranges_add(&e->rules.allow, SPAN("::/0")));
    TRY(check_password(e));
    TRY(fetcher_new(e->loop, resolver, &e->rules, &fetching, &e->fetcher));
    for (size_t i = 0; i < o->endpoint_count; i++)
        TRY(add_endpoint(e, o->endpoints[i]));
    return NULL;
}

struct err *etcd_new(struct loop *loop, struct resolver *resolver,
                     const struct etcd_options *options, struct etcd **out_etcd)
{
    struct etcd *e;
    struct err *error;

    TRY(check_options(options));
    e = NEW(struct etcd);
    e->loop = loop;
    e->user = options->user;
    e->password_file = options->password_file;
    e->sign_in = (struct etcd_call){.on_done = on_signed_in, .repeats = true, .any_cluster = true};
    e->attempt_ms = or_default(options->attempt_ms, ATTEMPT_MS);
    e->pause_least_ms = or_default(options->pause_least_ms, PAUSE_LEAST_MS);
    e->pause_most_ms = or_default(options->pause_most_ms, PAUSE_MOST_MS);
    e->silence_ms = or_default(options->silence_ms, SILENCE_MS);
    e->answer_bytes = options->answer_bytes != 0 ? options->answer_bytes : ANSWER_BYTES;
    egress_init(&e->rules);
    list_init(&e->calls);
    list_init(&e->watches);
    arena_init(&e->arena);
    error = open_client(e, resolver, options);
    if (error == NULL)
        *out_etcd = e;
    else
        etcd_free(e);
    return error;
}

void etcd_free(struct etcd *e)
{
    if (e == NULL)
        return;
    while (!list_empty(&e->watches))
        etcd_watch_stop(e, CONTAINER_OF(list_first(&e->watches), struct etcd_watch, link));
    while (!list_empty(&e->calls))
        etcd_cancel(e, call_at(list_first(&e->calls)));
    etcd_cancel(e, &e->sign_in);
    for (size_t i = 0; i < e->endpoint_count; i++) {
        fetch_origin_put(e->origins[i]);
        mem_free(e->urls[i]);
    }
    fetcher_free(e->fetcher);
    egress_done(&e->rules);
    etcd_drop_token(e, e->tokens);
    arena_done(&e->arena);
    mem_free(e);
}
