/* The steps of an evaluation, in the order in which docs/specification.md section 4 wants them
 * checked: key, URI, resource, method, rights, conditions, negotiation; then the resource's own
 * work. The first error ends it and becomes the answer. */
#include "rest/request.h"

#include "access/access.h"
#include "access/account.h"
#include "access/clients.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/room.h"
#include "io/loop.h"
#include "protocol/negotiate.h"
#include "query/query.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/api_key.h"
#include "rest/browser.h"
#include "rest/call.h"
#include "rest/cors.h"
#include "rest/crud.h"
#include "rest/evaluation.h"
#include "rest/metrics.h"
#include "rest/node.h"
#include "rest/passage.h"
#include "rest/probe.h"
#include "rest/problem.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/stream.h"
#include "rest/tenant.h"
#include "store/change.h"
#include "store/entity.h"
#include "store/turn.h"

#include <string.h>

static struct err *refuse_sign_in(struct call *call, unsigned wait_s)
{
    struct err *e = ERR(ERR_TOO_MANY_REQUESTS,
                        "too many wrong API keys came from this address, or in webhooks from this "
                        "key: the limit FailedSignInsPerMinute");

    call->rest->metrics->limit_hits[METRIC_FAILED_SIGN_INS]++;
    err_set_retry_after(e, wait_s);
    return e;
}

/* The request has it until it ends, though the key may be withdrawn meanwhile. */
static void use_key(struct call *call)
{
    struct rest *rest = call->rest;

    call->account = access_key_ref(call->key)->account;
    if (clock_unix_s() >= call->key->used_until_unix_s)
        api_key_note_use(rest->api_keys, call->key);
}

/* Those that the service makes itself are a part of what somebody asked for, or have limits of
 * their own; one that gave way has been counted. */
static struct err *check_rate(const struct call *call)
{
    struct rest *rest = call->rest;
    int64_t most = rest->limits->account_requests_per_second;
    unsigned wait_s;
    struct err *e;

    if (call->request->is_local ||
        (call->evaluation != NULL && evaluation_is_of(call->evaluation, call->request)))
        return NULL;
    wait_s = account_take_request(call->account, most, loop_now_ms(rest->loop));
    if (wait_s == 0)
        return NULL;
    rest->metrics->limit_hits[METRIC_ACCOUNT_REQUESTS]++;
    e = ERR(ERR_TOO_MANY_REQUESTS, "the limit AccountRequestsPerSecond (%lld) is reached",
            (long long)most);
    err_set_retry_after(e, wait_s);
    return e;
}

/* A request without a key guesses none: it neither counts as a failure nor waits. */
struct err *call_sign_in(struct call *call, struct span authorization, struct access_key **out_key)
{
    struct clients *clients = call->rest->clients;
    const struct in6_addr *client = call->request->client, *key = NULL;
    struct in6_addr of_key;
    unsigned wait_s;
    struct err *e;

    if (authorization.n == 0)
        return access_sign_in(call->rest->access, authorization, call->arena, out_key);
    if (call->key != NULL) {
        of_key = clients_of_key(call->key->tenant, call->key->name);
        key = &of_key;
    }
    wait_s = MAX(clients_sign_in_wait_s(clients, client), clients_sign_in_wait_s(clients, key));
    if (wait_s > 0)
        return refuse_sign_in(call, wait_s);
    e = access_sign_in(call->rest->access, authorization, call->arena, out_key);
    if (e != NULL) {
        clients_sign_in_failed(clients, client);
        clients_sign_in_failed(clients, key);
    }
    return e;
}

/* What comes before the URI: what is answered to everybody, the key, and whether a page of another
 * site asks, of whom none is required. */
static struct err *enter(struct call *call, bool *out_answered)
{
    const struct request *r = call->request;
    struct span authorization;

    *out_answered = (call->method == METHOD_OPTIONS && cors_answer_everybody(call)) ||
                    (!r->is_local && probe_answer(call));
    if (*out_answered)
        return NULL;
    if (r->from != NULL)
        return node_sign_in(call);
    authorization = request_header(r, SPAN("Authorization"));
    if (authorization.p != NULL || access_requires_key(call->rest->access))
        TRY(call_sign_in(call, authorization, &call->key));
    return call->key == NULL && !r->is_local ? browser_check(call) : NULL; /* a key is proof */
}

static struct err *find_resource(struct call *call)
{
    struct rest *rest = call->rest;
    struct span name = call->uri->resource;

    if (name.p == NULL)
        name = SPAN("Svc.AvailableResource");
    TRY(resource_find(rest->resources, name, call->key, &call->resource));
    call->error_resource = call->resource->name;
    if (call->resource->declaration != NULL)
        call_shows(call, call->resource->declaration->version);
    return NULL;
}

static struct err *refuse_method(const struct call *call)
{
    if (call->method == METHOD_OTHER)
        return ERR(ERR_UNKNOWN_METHOD, "the method '%.*s' is not known to this server",
                   SPAN_FMT(call->request->method));
    if (call->resource->kind == KIND_EVENT && call->method == METHOD_POST)
        return ERR(ERR_METHOD_NOT_ALLOWED,
                   "'%.*s' does not support POST: its events are raised by POST /Svc.Event with "
                   "{\"Resource\":\"%.*s\",\"Payload\":...}",
                   SPAN_FMT(call->resource->name), SPAN_FMT(call->resource->name));
    return ERR(ERR_METHOD_NOT_ALLOWED, "'%.*s' does not support %.*s",
               SPAN_FMT(call->resource->name), SPAN_FMT(method_name(call->method)));
}

/* OPTIONS tells what a GET would. */
static struct err *check_rights(const struct call *call)
{
    enum method method = call->method == METHOD_OPTIONS ? METHOD_GET : call->method;

    if (call->is_node)
        return node_check(call);
    if (access_allows(call->key, call->resource->name, method))
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "the API key may not use %.*s on '%.*s'",
               SPAN_FMT(method_name(call->method)), SPAN_FMT(call->resource->name));
}

/* Whoever asks for it may be asked by the service itself, which waits for an end. */
static bool may_stream(const struct call *call)
{
    return call->resource->ops->stream != NULL && !call->request->is_local &&
           (call->method == METHOD_GET || call->method == METHOD_HEAD);
}

/* Of what it asks for. */
static struct err *negotiate_answer(struct call *call)
{
    struct span accept = request_header_all(call->request, SPAN("Accept"), call->arena);

    if (may_stream(call))
        call->is_stream = negotiate_prefers_stream(accept);
    if (call->resource->kind == KIND_BINARY || call->is_stream)
        return NULL;
    return negotiate_accept(accept, &call->formats->out);
}

/* What is not said is JSON, both ways. */
static struct err *negotiate(struct call *call)
{
    const struct request *r = call->request;
    struct span field;

    if (r->body.n > 0) {
        field = request_header(r, SPAN("Content-Encoding"));
        if (field.n > 0)
            TRY(negotiate_content_encoding(field));
    }
    if (request_header(r, SPAN("Accept")).p != NULL)
        TRY(negotiate_answer(call));
    if ((METHODS_BRING & METHOD_BIT(call->method)) == 0 || call->resource->ops->reads_raw_body)
        return NULL;
    field = request_header(r, SPAN("Content-Type"));
    return field.p == NULL
               ? NULL
               : negotiate_content_type(field, call->method == METHOD_POST, &call->formats->in);
}

/* What can be spared goes before a request is refused. That is a change; the request's own has not
 * begun. */
static void make_room(struct call *call)
{
    const struct rest_observer *observer = &call->rest->observer;

    if (observer->make_room == NULL)
        return;
    budget_hold();
    observer->make_room(observer->context);
    budget_release();
}

static struct err *refuse_for_memory(const struct call *call)
{
    struct err *e = ERR(ERR_OVERLOADED, "the limit MemoryBytes (%lld) is reached",
                        (long long)call->rest->limits->memory_bytes);

    call->rest->metrics->limit_hits[METRIC_MEMORY_BYTES]++;
    err_set_retry_after(e, 5);
    return e;
}

/* Past MemoryBytes nothing more is taken in; reading, deleting and delivering go on. */
static struct err *find_room(struct call *call)
{
    TRY(evaluation_wait_turn(call->rest)); /* to make room is a change */
    make_room(call);
    return room_lacking(call->rest->limits) == 0 ? NULL : refuse_for_memory(call);
}

static struct err *refuse_answer(const struct call *call)
{
    if (call->response->body.max < call->response->most_body_bytes)
        return refuse_for_memory(call);
    call->rest->metrics->limit_hits[METRIC_ANSWER_BYTES]++;
    return ERR(ERR_PAYLOAD_TOO_LARGE,
               "the answer would be larger than the limit AnswerBytes (%zu bytes): ask for "
               "fewer entities with limit and offset%s",
               call->response->body.max,
               call->method == METHOD_GET ? "" : ", or for none with Prefer: return=minimal");
}

typedef struct err *method_fn(struct call *call);

static struct err *execute(struct call *call)
{
    static method_fn *const generic[METHOD_COUNT] = {
        [METHOD_POST] = crud_insert,
        [METHOD_PATCH] = crud_patch,
        [METHOD_PUT] = crud_put,
        [METHOD_DELETE] = crud_delete,
    };
    const struct resource_ops *ops = call->resource->ops;
    bool changes = true, looks_first = ops->open == NULL; /* crud_select begins the change then */
    method_fn *own = NULL;

    switch (call->method) {
    case METHOD_GET:
    case METHOD_HEAD:
    case METHOD_REPORT:
        own = call->is_stream ? stream_answer : ops->get;
        changes = false;
        break;
    case METHOD_POST:
        own = ops->post;
        changes = !ops->post_asks;
        looks_first = false;
        break;
    case METHOD_PATCH:
        own = ops->patch;
        break;
    default:
        break;
    }
    if (!changes) {
        if (own == NULL && call->method == METHOD_POST)
            TRY(evaluation_only_asks(call->rest));
        return own != NULL ? own(call) : crud_read(call);
    }
    TRY(looks_first && own == NULL ? evaluation_wait_turn(call->rest)
                                   : evaluation_begin_change(call));
    return own != NULL ? own(call) : generic[call->method](call);
}

static struct span openapi_target(const struct call *call)
{
    struct span base = call->rest->base_path;

    return arena_printf(call->arena, "%.*s%sSvc.OpenApi", SPAN_FMT(base), base.n == 1 ? "" : "/");
}

/* `OPTIONS *` asks about the server (RFC 9110, section 9.3.7), as does the list of resources. */
static struct span target_meant(const struct call *call)
{
    if (call->asks_for_openapi)
        return openapi_target(call);
    return span_eq(call->request->target, SPAN("*")) ? call->rest->base_path
                                                     : call->request->target;
}

/* What is wrong with a POST's conditions and meta-conditions its resource may say better. */
static struct err *refuse_query(const struct call *call, struct err *e)
{
    const struct resource_ops *ops = call->resource->ops;
    struct err *better = NULL;

    if (call->method == METHOD_POST && ops != NULL && ops->check_post != NULL)
        better = ops->check_post(call->uri);
    if (better == NULL)
        return e;
    err_free(e);
    return better;
}

static struct err *read_query(struct call *call)
{
    struct err *wrong;

    TRY(uri_read_conditions(call->uri, call->arena));
    wrong = resource_parse_query(call->resource, call->uri, call->arena, call->query);
    return wrong == NULL ? NULL : refuse_query(call, wrong);
}

static struct err *evaluate(struct call *call)
{
    struct rest *rest = call->rest;
    const struct request *r = call->request;
    struct span target = r->target;
    struct err *found;
    bool answered = false;

    if (rest->cluster != NULL)
        TRY(node_enter(call, &answered));
    if (answered)
        return NULL;
    TRY(enter(call, &answered));
    if (answered)
        return NULL;
    if (call->key != NULL)
        use_key(call);
    if (rest->limits->account_requests_per_second > 0)
        TRY(check_rate(call));
    if (call->asks_for_openapi || call->method == METHOD_OPTIONS)
        target = target_meant(call);
    TRY(uri_split(target, r->is_local ? SPAN("/") : rest->base_path,
                  (size_t)rest->limits->conditions, call->arena, call->uri));
    call->uri_is_split = true;
    found = find_resource(call);
    if (rest->cluster != NULL)
        found = node_route(call, found, &answered);
    TRY(found);
    if (answered)
        return NULL;
    if (call->method != METHOD_OPTIONS && (call->resource->methods & METHOD_BIT(call->method)) == 0)
        return refuse_method(call);
    if (call->key != NULL || call->is_node)
        TRY(check_rights(call));
    if (call->method == METHOD_OPTIONS)
        return cors_answer_options(call);
    if (call->uri->is_unread)
        TRY(read_query(call));
    else
        *call->query = (struct query){.shape = call->resource->shape, .is_plain = true};
    if (call->key != NULL && call->key->tenant.n > 0)
        tenant_confine(call);
    TRY(negotiate(call));
    if ((METHODS_BRING & METHOD_BIT(call->method)) != 0 && room_lacking(rest->limits) > 0)
        TRY(find_room(call));
    TRY(execute(call));
    return buf_over(&call->response->body) ? refuse_answer(call) : NULL;
}

/* What of the request the answer depends on, for caches: an error is indented for whom that is
 * meant, of whatever resource. */
static void add_vary(struct call *call)
{
    bool by_accept = (call->resource != NULL && call->resource->kind != KIND_BINARY) ||
                     call->response->status >= 400;
    bool by_origin = call->rest->cors_origins != NULL;

    if (by_accept || by_origin)
        response_add_own_header(call->response, SPAN("Vary"),
                                !by_origin   ? SPAN("Accept")
                                : !by_accept ? SPAN("Origin")
                                             : SPAN("Accept, Origin"));
}

/* To store an error is a change. */
static struct err *wait_to_store(struct call *call, struct err *e)
{
    struct err *stopped;

    if (!turn_is_held(call->rest->turn) || err_code(e) == ERR_GIVES_WAY ||
        !problem_is_stored(call, e))
        return e;
    stopped = evaluation_wait_turn(call->rest);
    if (stopped == NULL || err_code(stopped) != ERR_GIVES_WAY) {
        err_free(stopped);
        return e;
    }
    err_free(e);
    return stopped;
}

/* What the budget says comes before what came of it. */
static struct err *evaluate_and_check(struct call *call)
{
    unsigned holds = budget_now.current->holds;
    struct err *e = evaluate(call), *stopped;

    budget_now.current->holds = holds;
    if (call->evaluation != NULL && evaluation_is_of(call->evaluation, call->request))
        evaluation_check_resources(call->evaluation);
    stopped = budget_check();
    if (stopped == NULL)
        return e == NULL ? NULL : wait_to_store(call, e);
    err_free(e);
    return wait_to_store(call, stopped);
}

/* On a budget of its own, unless it is part of something that has one. */
static struct err *evaluate_within(struct call *call)
{
    struct budget budget;
    struct err *e;

    if (budget_now.current != NULL)
        return evaluate_and_check(call);
    budget_init(&budget, (uint64_t)call->rest->limits->request_cpu_ms * 1000000);
    budget.may_begin_anew = call->request->gives_way;
    budget_enter(&budget);
    e = evaluate_and_check(call);
    budget_leave(&budget);
    call->response->was_long = budget.longest_ns > 0;
    if (budget.longest_ns > 0) {
        metrics_note_turn(call->rest->metrics, budget.longest_ns);
        evaluations_note_try(call->rest->evaluations, budget.longest_ns);
    }
    return e;
}

/* An answer is made whatever it costs: the error of one that was stopped too. */
static void answer(struct call *call, const struct err *e)
{
    struct budget_now now = budget_now;

    budget_now = (struct budget_now){INT64_MAX, NULL};
    if (e != NULL)
        problem_answer(call, e);
    else if (call->resource != NULL && call->resource->kind == KIND_BINARY)
        browser_confine(call);
    if (call->rest->cluster != NULL && e == NULL)
        node_add_serial(call);
    if (!call->request->is_local)
        add_vary(call);
    if (call->rest->cors_origins != NULL)
        cors_add_headers(call);
    budget_now = now;
}

/* Of what is not evaluated. */
static struct call call_without(struct rest *rest, const struct request *request,
                                struct response *response, struct uri *uri)
{
    return (struct call){
        .rest = rest,
        .request = request,
        .response = response,
        .arena = &response->arena,
        .account = rest->everybody,
        .method = method_of(request->method),
        .uri = uri,
    };
}

bool request_admit(struct rest *rest, const struct request *request, struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct call call = call_without(rest, request, response, &uri);
    bool answered;
    struct err *e;

    if (rest->cluster != NULL && node_is_passed_on(request))
        return true; /* who asks is known with the body */
    response_reset(response);
    e = enter(&call, &answered);
    if (e == NULL && !answered)
        return true;
    answer(&call, e);
    err_free(e);
    return false;
}

void request_fail(struct rest *rest, const struct request *request, const struct err *e,
                  struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct call call = call_without(rest, request, response, &uri);

    response_reset(response);
    answer(&call, e);
}

void request_run(struct rest *rest, const struct request *request, struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct query query = {.shape = NULL};
    struct change change = {.turn = NULL};
    struct negotiation formats = {.in = FORMAT_JSON};
    struct call call = {
        .rest = rest,
        .request = request,
        .response = response,
        .arena = &response->arena,
        .account = rest->everybody,
        .method = method_of(request->method),
        .uri = &uri,
        .query = &query,
        .change = &change,
        .formats = &formats,
        .evaluation = rest->running,
    };
    struct err *e;

    response_reset(response);
    response_bound(response, (size_t)room_most(rest->limits, 0, rest->limits->answer_bytes));
    e = evaluate_within(&call);
    if (change.turn != NULL)
        change_done(&change);
    if (!query.is_plain)
        query_done(&query);
    if (e != NULL && (response->is_stream || response->later_bytes > 0))
        response_drop_flow(response);
    if (e != NULL)
        passage_free(TAKE(call.passage));
    response->passage = call.passage;
    response->gives_way = call.passage != NULL || (e != NULL && err_code(e) == ERR_GIVES_WAY);
    if (!response->gives_way)
        answer(&call, e);
    else if (call.passage == NULL)
        evaluations_are_of(rest->evaluations, call.account);
    if (call.key != NULL)
        access_key_unref(rest->access, call.key);
    err_free(e);
}

struct err *call_apply(struct call *call)
{
    uint64_t serial;

    TRY(budget_check());
    if (buf_over(&call->response->body)) /* what is answered with an error must not happen */
        return refuse_answer(call);
    TRY(evaluation_apply(call, &serial));
    call_shows(call, serial);
    return NULL;
}

void call_shows(struct call *call, uint64_t version)
{
    call->response->serial = MAX(call->response->serial, version);
}

struct span request_header_all(const struct request *r, struct span name, struct arena *a)
{
    struct span all = {NULL, 0};

    for (size_t i = 0; i < r->header_count; i++) {
        if (!span_ieq(r->headers[i].name, name))
            continue;
        all = all.p == NULL
                  ? r->headers[i].value
                  : arena_printf(a, "%.*s, %.*s", SPAN_FMT(all), SPAN_FMT(r->headers[i].value));
    }
    return all;
}

uint8_t request_depth(const struct request *r)
{
    uint64_t depth;

    if (r->is_local || !span_to_u64(request_header(r, SPAN("Svc-depth")), &depth))
        return r->depth;
    return (uint8_t)MIN(depth, UINT8_MAX);
}

void request_refuse(struct response *response, int status, enum err_code code, struct span message,
                    unsigned retry_after_s)
{
    response_reset(response);
    response_set_problem(response, status, code, message, (struct span){NULL, 0});
    if (retry_after_s > 0)
        response_add_header(response, SPAN("Retry-After"),
                            arena_printf(&response->arena, "%u", retry_after_s));
}
