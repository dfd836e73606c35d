/* Two ways to wait, and one way to end: on_done, from the loop.
 *
 * What goes to the leader is the client's request: method, target and body byte for byte, its
 * header fields but those between two ends of one connection, and the key, which does not travel;
 * whose it is says Svc-cluster. Who leads is looked at when its place is free, not before. */
#include "dispatch/passage.h"

#include "access/access.h"
#include "access/account.h"
#include "access/mask.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/room.h"
#include "dispatch/dispatch.h"
#include "fetch/fetch.h"
#include "io/ip.h"
#include "io/loop.h"
#include "io/timer.h"
#include "journal/journal.h"
#include "protocol/node_headers.h"
#include "rest/call.h"
#include "rest/cluster_view.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/turn.h"
#include "store/turn_wait.h"

enum { KEPT_FIELDS = RESPONSE_MAX_HEADERS - 4 }; /* others may be added to the answer */

struct passages {
    struct rest *rest;
    struct list line;   /* struct account with passages that wait, whose turn is next first */
    struct list placed; /* those that have a place */
    size_t under_way, in_line;
    uint64_t sent;
    struct loop_task more; /* there may be a place for the next one */
};

struct passage {
    struct rest *rest;
    const struct request *request; /* NULL: it has not started */
    void (*on_done)(void *context);
    void *context;
    struct arena arena;
    struct response response;
    bool is_answered;
    struct timer timer;    /* of waiting; for an answer, once the leader leads no more */
    struct loop_task done; /* on_done is due */
    /* For a record. */
    uint64_t serial;
    struct turn_wait wait;
    /* For the leader. */
    struct account *account; /* NULL: it waits for a record */
    struct span key;         /* its identity; absent: none */
    struct list_link link;   /* in account->passing: it waits for a place; in passages.placed */
    bool has_place;
    struct fetcher *fetcher;
    struct fetch_origin *origin;
    struct fetch fetch;
    bool has_too_many_fields;
};

static void end(struct passage *p)
{
    timer_stop(p->rest->loop, &p->timer);
    loop_post(p->rest->loop, &p->done);
}

/* Takes the error over. */
static void fail(struct passage *p, struct err *e)
{
    err_set_retry_after(e, 1);
    dispatch_fail(p->rest, p->request, e, &p->response);
    err_free(e);
    p->is_answered = true;
    end(p);
}

static void on_end(struct loop_task *task)
{
    struct passage *p = CONTAINER_OF(task, struct passage, done);

    p->on_done(p->context);
}

/* ---- for a record ---- */

static void on_committed(struct turn_wait *wait)
{
    end(CONTAINER_OF(wait, struct passage, wait));
}

static void give_up_waiting(struct passage *p)
{
    const struct cluster_view *view = p->rest->cluster;
    uint64_t at = journal_committed_serial(turn_journal(p->rest->turn));
    bool is_lost = !view->leads && view->leader_url.n == 0;

    turn_unwait(p->rest->turn, &p->wait);
    fail(p, ERR(is_lost ? ERR_NO_LEADER : ERR_OVERLOADED,
                "Svc-min-serial: this node is at %llu, and the request is to have seen %llu%s",
                (unsigned long long)at, (unsigned long long)p->serial,
                is_lost ? "; no leader of the cluster is known" : ""));
}

static void wait_for_record(struct passage *p)
{
    struct rest *rest = p->rest;

    if (turn_is_committed(rest->turn, p->serial)) {
        end(p);
        return;
    }
    turn_wait(rest->turn, &p->wait, p->serial);
    timer_start(rest->loop, &p->timer, (uint64_t)rest->limits->min_serial_ms);
}

/* ---- places ---- */

static size_t places(const struct rest *rest)
{
    return (size_t)rest->limits->passed_on_requests;
}

static bool may_have_place(const struct rest *rest, const struct account *account)
{
    return account->passing_count < MAX(places(rest) / 2, 1);
}

/* Where the account belongs: in line while it waits for a place and may have one. */
static void put_in_line(struct passages *all, struct account *account)
{
    bool belongs = !list_empty(&account->passing) && may_have_place(all->rest, account);

    if (belongs && !list_linked(&account->in_line))
        list_push_back(&all->line, &account->in_line);
    else if (!belongs && list_linked(&account->in_line))
        list_remove(&all->line, &account->in_line);
    if (!list_empty(&all->line) && all->under_way < places(all->rest))
        loop_post(all->rest->loop, &all->more);
}

static void leave_line(struct passage *p)
{
    struct passages *all = p->rest->passages;

    list_remove(&p->account->passing, &p->link);
    all->in_line--;
    put_in_line(all, p->account);
}

static void take_place(struct passage *p)
{
    p->has_place = true;
    list_push_back(&p->rest->passages->placed, &p->link);
    p->rest->passages->under_way++;
    p->rest->passages->sent++;
    p->account->passing_count++;
}

static void give_place_back(struct passage *p)
{
    if (!p->has_place)
        return;
    p->has_place = false;
    list_remove(&p->rest->passages->placed, &p->link);
    p->rest->passages->under_way--;
    p->account->passing_count--;
    put_in_line(p->rest->passages, p->account);
}

/* ---- the request ---- */

/* Between the two ends of a connection (RFC 9110, section 7.6.1), or written anew. */
static const struct span own_fields[] = {
    SPAN_INIT("Connection"),
    SPAN_INIT("Keep-Alive"),
    SPAN_INIT("Proxy-Connection"),
    SPAN_INIT("Proxy-Authenticate"),
    SPAN_INIT("Proxy-Authorization"),
    SPAN_INIT("TE"),
    SPAN_INIT("Trailer"),
    SPAN_INIT("Transfer-Encoding"),
    SPAN_INIT("Upgrade"),
    SPAN_INIT("Expect"),
    SPAN_INIT("Host"),
    SPAN_INIT("Content-Length"),
    SPAN_INIT("Svc-cluster"),
};

static bool is_among(struct span name, const struct span *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_ieq(name, names[i]))
            return true;
    return false;
}

/* Does the field Connection name it? */
static bool is_named(struct span connection, struct span name)
{
    while (connection.p != NULL)
        if (span_ieq(span_trim(span_split(&connection, ',')), name))
            return true;
    return false;
}

static struct span client_of(struct passage *p)
{
    char text[INET6_ADDRSTRLEN];

    return p->request->client == NULL
               ? SPAN("-")
               : arena_copy(&p->arena, span_str(ip_text(p->request->client, text)));
}

/* The key does not travel: it shows as it does in records of errors. */
static struct span value_of(struct passage *p, const struct header_field *h)
{
    static const struct span authorization = SPAN_INIT("Authorization");

    return span_ieq(h->name, authorization)
               ? mask_header_value(p->rest->mask, h->name, h->value, &p->arena)
               : h->value;
}

static struct span say_whose(struct passage *p)
{
    const struct cluster_view *view = p->rest->cluster;
    const struct request *r = p->request;
    const struct passed_request request = {r->method, r->target, r->body};
    const struct passed_on who = {
        .node = view->node,
        .client = client_of(p),
        .key = p->key,
        .at_unix_ms = clock_unix_ns() / 1000000,
    };
    struct buf b;

    buf_init_arena(&b, &p->arena);
    passed_on_add(&b, view->secret, &who, &request);
    return buf_span(&b);
}

static void add_fields(struct passage *p)
{
    const struct request *r = p->request;
    struct span connection = request_header_all(r, SPAN("Connection"), &p->arena);
    struct header_field *fields = ARENA_ARRAY(&p->arena, struct header_field, r->header_count + 2);
    size_t count = 0;

    fields[count++] = (struct header_field){node_headers_passed_on, say_whose(p)};
    if (r->host.p != NULL)
        fields[count++] = (struct header_field){SPAN("Host"), r->host};
    for (size_t i = 0; i < r->header_count; i++) {
        const struct header_field *h = &r->headers[i];

        if (!is_among(h->name, own_fields, ARRAY_LEN(own_fields)) && !is_named(connection, h->name))
            fields[count++] = (struct header_field){h->name, value_of(p, h)};
    }
    p->fetch.headers = fields;
    p->fetch.header_count = count;
}

/* ---- the answer ---- */

/* Of the leader's own connection, or said by this node for itself. */
static const struct span not_passed_back[] = {
    SPAN_INIT("Connection"),  SPAN_INIT("Keep-Alive"),
    SPAN_INIT("Trailer"),     SPAN_INIT("Transfer-Encoding"),
    SPAN_INIT("Upgrade"),     SPAN_INIT("Content-Length"),
    SPAN_INIT("Date"),        SPAN_INIT("Svc-version"),
    SPAN_INIT("Svc-applied"), SPAN_INIT("X-Content-Type-Options"),
};

static void on_field(struct fetch *fetch, struct span name, struct span value)
{
    struct passage *p = CONTAINER_OF(fetch, struct passage, fetch);
    struct response *response = &p->response;

    if (is_among(name, not_passed_back, ARRAY_LEN(not_passed_back)))
        return;
    if (span_ieq(name, SPAN("Content-Type")))
        response->content_type = arena_copy(&response->arena, value);
    else if (response->header_count < KEPT_FIELDS)
        response_add_header(response, arena_copy(&response->arena, name), value);
    else
        p->has_too_many_fields = true;
}

static void take_answer(struct passage *p, const struct fetch_result *result)
{
    p->response.status = result->status;
    buf_add(&p->response.body, result->body);
    p->is_answered = true;
    end(p);
}

/* What is wrong with it; NULL: nothing. */
static const char *fault_of(const struct passage *p, const struct fetch_result *result)
{
    if (result->error != FETCH_OK)
        return result->why;
    if (result->truncated)
        return "its answer is larger than the limit AnswerBytes";
    return p->has_too_many_fields ? "its answer has more header fields than a node's" : NULL;
}

static void fail_lost(struct passage *p, const char *why)
{
    fail(p, ERR(ERR_NO_LEADER,
                "the answer of the cluster's leader was lost, and the change may have been "
                "done (ClientId and If-Match make it safe to repeat): %s",
                why));
}

static void on_fetched(struct fetch *fetch, const struct fetch_result *result)
{
    struct passage *p = CONTAINER_OF(fetch, struct passage, fetch);
    const char *fault = fault_of(p, result);

    give_place_back(p);
    if (fault == NULL)
        take_answer(p, result);
    else if (result->was_sent)
        fail_lost(p, fault);
    else
        fail(p, ERR(ERR_NO_LEADER, "the cluster's leader cannot be reached, nothing was done: %s",
                    fault));
}

static unsigned patience_ms(const struct rest *rest)
{
    return rest->cluster->commit_ms + PASSAGE_MORE_MS;
}

static void pass_on(struct passage *p)
{
    const struct cluster_view *view = p->rest->cluster;
    const struct limits *limits = p->rest->limits;
    size_t room = (size_t)room_most(limits, 0, limits->answer_bytes);

    take_place(p);
    timer_stop(p->rest->loop, &p->timer);
    response_reset(&p->response);
    response_bound(&p->response, room);
    add_fields(p);
    p->fetch.url = arena_printf(&p->arena, "%.*s%.*s", SPAN_FMT(view->leader_url),
                                SPAN_FMT(p->request->target));
    p->fetch.method = p->request->method;
    p->fetch.body = p->request->body.p != NULL ? blob_new(p->request->body) : NULL;
    p->fetch.timeout_ms = patience_ms(p->rest);
    p->fetch.read_bytes = p->fetch.keep_bytes = room;
    p->fetch.is_once = true;
    p->fetch.on_field = on_field;
    p->fetch.on_done = on_fetched;
    p->fetcher = view->fetcher;
    p->origin = p->fetch.origin = fetch_origin_get(p->fetcher, p->fetch.url);
    fetch_start(p->fetcher, &p->fetch);
    blob_unref(p->fetch.body); /* the fetch has its own reference */
}

/* Things may have changed while it waited. */
static void go(struct passage *p)
{
    const struct cluster_view *view = p->rest->cluster;

    if (view->leads)
        end(p); /* it is evaluated here */
    else if (view->leader_url.n == 0 || view->secret.n < PASSED_ON_SECRET_BYTES)
        fail(p, ERR(ERR_NO_LEADER, "no leader of the cluster is known; nothing was done"));
    else
        pass_on(p);
}

static void on_more(struct loop_task *task)
{
    struct passages *all = CONTAINER_OF(task, struct passages, more);

    while (!list_empty(&all->line) && all->under_way < places(all->rest)) {
        struct account *account = CONTAINER_OF(list_pop_front(&all->line), struct account, in_line);
        struct passage *p = CONTAINER_OF(list_pop_front(&account->passing), struct passage, link);

        all->in_line--;
        go(p);
        put_in_line(all, account);
    }
}

static void wait_for_leader(struct passage *p)
{
    struct passages *all = p->rest->passages;

    list_push_back(&p->account->passing, &p->link);
    all->in_line++;
    timer_start(p->rest->loop, &p->timer, patience_ms(p->rest));
    put_in_line(all, p->account);
}

static void give_up_line(struct passage *p)
{
    leave_line(p);
    fail(p, ERR(ERR_OVERLOADED,
                "the limit PassedOnRequests (%lld) is reached by changes that wait for the "
                "cluster's leader; nothing was done",
                (long long)p->rest->limits->passed_on_requests));
}

static void give_up_answer(struct passage *p)
{
    fetch_cancel(p->fetcher, &p->fetch);
    give_place_back(p);
    fail_lost(p, "it leads no more, and has not answered");
}

static void on_time(struct timer *timer)
{
    struct passage *p = CONTAINER_OF(timer, struct passage, timer);

    if (p->account == NULL)
        give_up_waiting(p);
    else if (p->has_place)
        give_up_answer(p);
    else
        give_up_line(p);
}

/* ---- all of them ---- */

struct passages *passages_new(struct rest *rest)
{
    struct passages *all = NEW(struct passages);

    all->rest = rest;
    list_init(&all->line);
    list_init(&all->placed);
    all->more.run = on_more;
    return all;
}

void passages_free(struct passages *all)
{
    if (all == NULL)
        return;
    MUST(all->under_way == 0 && all->in_line == 0);
    loop_unpost(all->rest->loop, &all->more);
    mem_free(all);
}

size_t passages_under_way(const struct passages *all)
{
    return all->under_way;
}

size_t passages_in_line(const struct passages *all)
{
    return all->in_line;
}

void passages_led(struct passages *all)
{
    LIST_EACH(&all->placed, at) {
        struct passage *p = CONTAINER_OF(at, struct passage, link);

        if (!timer_running(&p->timer))
            timer_start(all->rest->loop, &p->timer, PASSAGE_LAST_MS);
    }
}

uint64_t passages_sent(const struct passages *all)
{
    return all->sent;
}

static struct passage *passage_new(struct rest *rest)
{
    struct passage *p = NEW(struct passage);

    p->rest = rest;
    arena_init(&p->arena);
    response_init(&p->response, (size_t)rest->limits->answer_bytes);
    timer_init(&p->timer, on_time);
    p->done.run = on_end;
    p->wait.on_committed = on_committed;
    return p;
}

struct passage *passage_to_serial(struct rest *rest, uint64_t serial)
{
    struct passage *p = passage_new(rest);

    p->serial = serial;
    return p;
}

struct passage *passage_to_leader(const struct call *call)
{
    struct passage *p = passage_new(call->rest);
    struct buf identity;

    p->account = account_keep(call->account);
    if (call->key == NULL)
        return p;
    buf_init_arena(&identity, &p->arena);
    access_add_identity(&identity, call->key);
    p->key = buf_span(&identity);
    return p;
}

void passage_start(struct passage *p, const struct request *request, void (*on_done)(void *context),
                   void *context)
{
    p->request = request;
    p->on_done = on_done;
    p->context = context;
    if (p->account == NULL)
        wait_for_record(p);
    else
        wait_for_leader(p);
}

struct response *passage_response(struct passage *p)
{
    return p->is_answered ? &p->response : NULL;
}

void passage_free(struct passage *p)
{
    if (p == NULL)
        return;
    turn_unwait(p->rest->turn, &p->wait);
    if (p->has_place)
        fetch_cancel(p->fetcher, &p->fetch);
    give_place_back(p);
    fetch_origin_put(p->origin);
    timer_stop(p->rest->loop, &p->timer);
    loop_unpost(p->rest->loop, &p->done);
    if (p->account != NULL && list_linked(&p->link))
        leave_line(p);
    account_unref(p->rest->accounts, p->account);
    response_done(&p->response);
    arena_done(&p->arena);
    mem_free(p);
}
