/* The steps of an evaluation, in the order in which docs/specification.md section 4 wants them
 * checked: URI, resource, method, rights, conditions, negotiation; then the resource's own work. */
#include "dispatch/steps.h"

#include "access/access.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/room.h"
#include "dispatch/api_key.h"
#include "dispatch/cors.h"
#include "dispatch/node.h"
#include "protocol/negotiate.h"
#include "query/query.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/evaluation.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/stream.h"
#include "rest/tenant.h"
#include "store/entity.h"

#include <string.h>

/* The request has it until it ends, though the key may be withdrawn meanwhile. */
static void use_key(struct call *call)
{
    struct rest *rest = call->rest;

    call->account = access_key_ref(call->key)->account;
    if (clock_unix_s() >= call->key->used_until_unix_s)
        api_key_note_use(rest->api_keys, call->key);
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
        crud_shows(call, call->resource->declaration->version);
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

/* What the service asks of itself is an answer as a whole. */
static struct err *check_client(const struct call *call)
{
    if (!call->request->is_local || !call->resource->ops->is_for_clients)
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "'%.*s' is sent to clients only, over HTTP",
               SPAN_FMT(call->resource->name));
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

/* Past MemoryBytes nothing more is taken in; reading, deleting and delivering go on. */
static struct err *find_room(struct call *call)
{
    TRY(evaluation_wait_turn(call->rest)); /* to make room is a change */
    make_room(call);
    return room_lacking(call->rest->limits) == 0 ? NULL : call_refuse_for_memory(call);
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

/* `OPTIONS *` asks about the server (RFC 9110, section 9.3.7), as does the list of resources. */
static struct span target_meant(const struct call *call)
{
    if (call->asks_for_openapi)
        return rest_link(call->rest, SPAN("/Svc.OpenApi"), call->arena);
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

struct err *steps_take(struct call *call)
{
    struct rest *rest = call->rest;
    const struct request *r = call->request;
    struct span target = r->target;
    struct err *found;
    bool answered = false;

    if (call->key != NULL)
        use_key(call);
    if (rest->limits->account_requests_per_second > 0)
        TRY(evaluation_check_rate(call));
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
    TRY(check_client(call));
    if (call->key != NULL || call->is_node)
        TRY(check_rights(call));
    if (call->method == METHOD_OPTIONS)
        return cors_answer_options(call);
    if (call->uri->is_unread)
        TRY(read_query(call));
    else
        *call->query = (struct query){
            .shape = call->resource->shape, .is_plain = true, .is_form = call->uri->is_query_form};
    if (call->key != NULL && call->key->tenant.n > 0)
        tenant_confine(call);
    TRY(negotiate(call));
    if ((METHODS_BRING & METHOD_BIT(call->method)) != 0 && room_lacking(rest->limits) > 0)
        TRY(find_room(call));
    TRY(execute(call));
    return buf_over(&call->response->body) ? call_refuse_answer(call) : NULL;
}
