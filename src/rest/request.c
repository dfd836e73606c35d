/* The steps of an evaluation, in the order in which docs/specification.md section 4 wants them
 * checked: key, URI, resource, method, rights, conditions, negotiation; then the resource's own
 * work. The first error ends it and becomes the answer. */
#include "rest/request.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/room.h"
#include "query/query.h"
#include "rest/access.h"
#include "rest/account.h"
#include "rest/api_key.h"
#include "rest/browser.h"
#include "rest/call.h"
#include "rest/clients.h"
#include "rest/cors.h"
#include "rest/crud.h"
#include "rest/error_log.h"
#include "rest/evaluation.h"
#include "rest/metrics.h"
#include "rest/probe.h"
#include "rest/resource.h"
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

/* Of the request itself, not of one that it is made of. */
static struct evaluation *own_evaluation(const struct call *call)
{
    struct evaluation *e = evaluation_running(call->rest);

    return e != NULL && e->request == call->request ? e : NULL;
}

/* Those that the service makes itself are a part of what somebody asked for, or have limits of
 * their own; one that gave way has been counted. */
static struct err *check_rate(const struct call *call)
{
    struct rest *rest = call->rest;
    int64_t most = rest->limits->account_requests_per_second;
    unsigned wait_s;
    struct err *e;

    if (most == 0 || call->request->is_local || own_evaluation(call) != NULL)
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
    struct span authorization = request_header(call->request, SPAN("Authorization"));

    *out_answered = probe_answer(call) || cors_answer_preflight(call);
    if (*out_answered)
        return NULL;
    TRY(call_sign_in(call, authorization, &call->key));
    return browser_check(call);
}

/* Whoever has entered has asked for something. */
static struct err *count(struct call *call)
{
    if (call->key != NULL)
        use_key(call);
    return check_rate(call);
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

static struct err *check_method(struct call *call)
{
    if (call->method == METHOD_OTHER)
        return ERR(ERR_UNKNOWN_METHOD, "the method '%.*s' is not known to this server",
                   SPAN_FMT(call->request->method));
    if (call->method == METHOD_OPTIONS || (call->resource->methods & METHOD_BIT(call->method)) != 0)
        return NULL;
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

    if (access_allows(call->key, call->resource->name, method))
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "the API key may not use %.*s on '%.*s'",
               SPAN_FMT(method_name(call->method)), SPAN_FMT(call->resource->name));
}

static struct span accept_of(const struct call *call)
{
    return request_header_all(call->request, SPAN("Accept"), call->arena);
}

/* Whoever asks for it may be asked by the service itself, which waits for an end. */
static bool may_stream(const struct call *call)
{
    return call->resource->ops->stream != NULL && !call->request->is_local &&
           (call->method == METHOD_GET || call->method == METHOD_HEAD);
}

static struct err *negotiate(struct call *call)
{
    const struct request *r = call->request;
    bool takes_entities =
        call->method == METHOD_POST || call->method == METHOD_PATCH || call->method == METHOD_PUT;

    if (r->body.n > 0)
        TRY(negotiate_content_encoding(request_header(r, SPAN("Content-Encoding"))));
    if (may_stream(call))
        call->is_stream = negotiate_prefers_stream(accept_of(call));
    if (call->resource->kind != KIND_BINARY && !call->is_stream)
        TRY(negotiate_accept(accept_of(call), &call->out));
    if (!takes_entities || call->resource->ops->reads_raw_body)
        return NULL;
    return negotiate_content_type(request_header(r, SPAN("Content-Type")),
                                  call->method == METHOD_POST, &call->in);
}

/* What can be spared goes before a request is refused. That is a change, and the serials of the
 * request's own, still empty, come behind it. */
static void make_room(struct call *call)
{
    const struct rest_observer *observer = &call->rest->observer;

    if (observer->make_room == NULL)
        return;
    change_done(call->change);
    observer->make_room(observer->context);
    change_init(call->change, call->rest->turn, call->arena);
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
static struct err *check_memory(struct call *call)
{
    bool takes_memory =
        call->method == METHOD_POST || call->method == METHOD_PATCH || call->method == METHOD_PUT;

    if (!takes_memory || room_lacking(call->rest->limits) == 0)
        return NULL;
    make_room(call);
    return room_lacking(call->rest->limits) == 0 ? NULL : refuse_for_memory(call);
}

static struct err *check_answer(const struct call *call)
{
    if (!buf_over(&call->response->body))
        return NULL;
    if (call->response->body.max < call->response->most_body_bytes)
        return refuse_for_memory(call);
    call->rest->metrics->limit_hits[METRIC_ANSWER_BYTES]++;
    return ERR(ERR_PAYLOAD_TOO_LARGE,
               "the answer would be larger than the limit AnswerBytes (%zu bytes): ask for "
               "fewer entities with limit and offset%s",
               call->response->body.max,
               call->method == METHOD_GET ? "" : ", or for none with Prefer: return=minimal");
}

static bool changes(const struct call *call)
{
    enum method method = call->method;

    return (method == METHOD_POST && !call->resource->ops->post_asks) || method == METHOD_PATCH ||
           method == METHOD_PUT || method == METHOD_DELETE;
}

/* For what it changes, in a collection: crud_select begins the change then. */
static bool looks_first(const struct call *call, bool is_own)
{
    return !is_own && call->method != METHOD_POST && call->resource->ops->open == NULL;
}

typedef struct err *method_fn(struct call *call);

static struct err *ask(struct call *call)
{
    if (call->method == METHOD_POST)
        evaluation_begin_reading(call);
    return crud_read(call);
}

static struct err *execute(struct call *call)
{
    static method_fn *const generic[METHOD_COUNT] = {
        [METHOD_POST] = crud_insert,
        [METHOD_PATCH] = crud_patch,
        [METHOD_PUT] = crud_put,
        [METHOD_DELETE] = crud_delete,
    };
    const struct resource_ops *ops = call->resource->ops;
    method_fn *own = NULL;

    switch (call->method) {
    case METHOD_GET:
    case METHOD_HEAD:
    case METHOD_REPORT:
        own = call->is_stream ? stream_answer : ops->get;
        break;
    case METHOD_POST:
        own = ops->post;
        break;
    case METHOD_PATCH:
        own = ops->patch;
        break;
    default:
        break;
    }
    if (!changes(call))
        return own != NULL ? own(call) : ask(call);
    if (!looks_first(call, own != NULL))
        TRY(evaluation_begin_change(call));
    return own != NULL ? own(call) : generic[call->method](call);
}

/* `OPTIONS *` asks about the server (RFC 9110, section 9.3.7), as does the list of resources. */
static struct span target_of(const struct call *call)
{
    bool is_server = call->method == METHOD_OPTIONS && span_eq(call->request->target, SPAN("*"));

    return is_server ? call->rest->base_path : call->request->target;
}

static struct err *evaluate(struct call *call)
{
    struct rest *rest = call->rest;
    const struct request *r = call->request;
    bool answered;

    TRY(enter(call, &answered));
    if (answered)
        return NULL;
    TRY(count(call));
    TRY(uri_split(target_of(call), r->is_local ? SPAN("/") : rest->base_path,
                  (size_t)rest->limits->conditions, call->arena, call->uri));
    call->uri_is_split = true;
    TRY(find_resource(call));
    TRY(check_method(call));
    TRY(check_rights(call));
    if (call->method == METHOD_OPTIONS)
        return cors_answer_options(call);
    TRY(uri_read_conditions(call->uri, call->arena));
    TRY(resource_parse_query(call->resource, call->uri, call->arena, call->query));
    tenant_confine(call);
    TRY(negotiate(call));
    TRY(check_memory(call));
    TRY(execute(call));
    return check_answer(call);
}

/* Whoever is told to come back is told when. */
static unsigned retry_after(const struct err *e)
{
    bool may_come_back = err_code(e) == ERR_OVERLOADED || err_code(e) == ERR_TOO_MANY_REQUESTS;

    return may_come_back ? MAX(err_retry_after(e), 1u) : err_retry_after(e);
}

/* Of the two that a browser knows, Basic is what it can ask its user for. */
static void add_challenge(struct call *call, const struct err *e)
{
    struct response *response = call->response;
    struct buf allow;

    switch (err_code(e)) {
    case ERR_NOT_SIGNED_IN:
        response_add_header(response, SPAN("WWW-Authenticate"), SPAN("apikey realm=\"Svc\""));
        if (negotiate_names_html(accept_of(call)))
            response_add_header(response, SPAN("WWW-Authenticate"), SPAN("Basic realm=\"Svc\""));
        break;
    case ERR_METHOD_NOT_ALLOWED:
        buf_init(&allow, 256);
        method_add_list(&allow, call->resource->methods);
        response_add_header(response, SPAN("Allow"), buf_span(&allow));
        buf_done(&allow);
        break;
    default:
        break;
    }
    if (retry_after(e) > 0)
        response_add_header(response, SPAN("Retry-After"),
                            arena_printf(call->arena, "%u", retry_after(e)));
}

/* An error is JSON whatever was asked for, but indented for whom that is meant. */
static void indent_problem(struct call *call)
{
    struct buf *body = &call->response->body;
    struct negotiated out;
    struct span compact;
    struct err *e = negotiate_accept(accept_of(call), &out);

    if (e == NULL && out.format == FORMAT_JSON && out.indent > 0) {
        compact = arena_copy(call->arena, buf_span(body));
        buf_clear(body);
        json_add_indented(body, entity_parse(compact, call->arena), out.indent);
    }
    err_free(e);
}

/* A message may quote what was sent. One about signing in does not, and speaks of keys. */
static struct span message_of(const struct call *call, const struct err *e)
{
    return err_code(e) == ERR_NOT_SIGNED_IN
               ? err_message(e)
               : mask_message(&call->rest->mask, err_message(e), call->arena);
}

static void answer_error(struct call *call, const struct err *e)
{
    struct response *response = call->response;
    struct span link = {NULL, 0}, instance = {NULL, 0}, message = message_of(call, e);

    response->header_count = 0;
    response->serial = 0;
    if (call->method != METHOD_OPTIONS && error_log_keeps(err_code(e)))
        link = error_log_store(call, e, message);
    if (link.p != NULL)
        instance = crud_link(call, link);
    response_set_problem(response, err_info(err_code(e))->status, err_code(e), message, instance);
    indent_problem(call);
    if (link.p != NULL)
        response_add_header(response, SPAN("ErrorInfo"), link);
    add_challenge(call, e);
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

/* What the budget says comes before what came of it. */
static struct err *evaluate_and_check(struct call *call)
{
    unsigned holds = budget_now.current->holds;
    struct err *e = evaluate(call), *stopped;

    budget_now.current->holds = holds;
    evaluation_check_resources(own_evaluation(call));
    stopped = budget_check();
    if (stopped == NULL)
        return e;
    err_free(e);
    return stopped;
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
    if (budget.longest_ns > 0)
        metrics_note_turn(call->rest->metrics, budget.longest_ns);
    return e;
}

/* An answer is made whatever it costs: the error of one that was stopped too. */
static void answer(struct call *call, const struct err *e)
{
    struct budget_now now = budget_now;

    budget_now = (struct budget_now){INT64_MAX, NULL};
    if (e != NULL)
        answer_error(call, e);
    else
        browser_confine(call);
    if (!call->request->is_local)
        add_vary(call);
    cors_add_headers(call);
    budget_now = now;
}

bool request_admit(struct rest *rest, const struct request *request, struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct call call = {
        .rest = rest,
        .request = request,
        .response = response,
        .arena = &response->arena,
        .account = rest->everybody,
        .method = method_of(request->method),
        .uri = &uri,
    };
    bool answered;
    struct err *e;

    response_reset(response);
    e = enter(&call, &answered);
    if (e == NULL && !answered)
        return true;
    answer(&call, e);
    err_free(e);
    return false;
}

void request_run(struct rest *rest, const struct request *request, struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct query query = {.shape = NULL};
    struct change change;
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
    };
    struct err *e;

    response_reset(response);
    response_bound(response, (size_t)room_most(rest->limits, 0, rest->limits->answer_bytes));
    change_init(&change, rest->turn, call.arena);
    e = evaluate_within(&call);
    change_done(&change);
    query_done(&query);
    if (e != NULL && response->is_stream)
        response_drop_stream(response);
    response->gives_way = e != NULL && err_code(e) == ERR_GIVES_WAY;
    if (!response->gives_way)
        answer(&call, e);
    access_key_unref(rest->access, call.key);
    err_free(e);
}

struct err *call_apply(struct call *call)
{
    uint64_t serial;

    TRY(budget_check());
    TRY(check_answer(call)); /* what is answered with an error must not happen */
    TRY(turn_apply(call->rest->turn, call->change, &serial));
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
