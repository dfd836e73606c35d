#include "dispatch/cors.h"

#include "base/limits.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "json/json.h"
#include "json/member.h"

static const char allowed_headers[] =
    "Authorization, Content-Type, Accept, If-Match, If-None-Match, Idempotency-Key, "
    "Last-Event-ID, Prefer, Svc-min-serial";
static const char exposed_headers[] =
    "ErrorInfo, ETag, Link, Location, Preference-Applied, "
    "Retry-After, Svc-applied, Svc-count, Svc-info, Svc-pager, Svc-serial, Svc-total, Svc-version";

/* By name, or with all others by `*`. NULL lists none. */
static bool is_listed(const char *const *names, struct span name)
{
    for (; names != NULL && *names != NULL; names++)
        if (span_eq(span_str(*names), SPAN("*")) || span_ieq(span_str(*names), name))
            return true;
    return false;
}

bool cors_allows(const struct rest *rest, struct span origin)
{
    return is_listed(rest->cors_origins, origin);
}

/* The request's Origin when it is allowed, else the absent span. */
static struct span allowed_origin(const struct call *call)
{
    struct span origin = request_header(call->request, SPAN("Origin"));

    return origin.p != NULL && cors_allows(call->rest, origin) ? origin : (struct span){NULL, 0};
}

void cors_add_headers(struct call *call)
{
    struct response *response = call->response;
    struct span origin;

    if (call->request->is_local)
        return;
    origin = allowed_origin(call);
    if (origin.p == NULL)
        return;
    response_add_header(response, SPAN("Access-Control-Allow-Origin"), origin);
    response_add_header(response, SPAN("Access-Control-Expose-Headers"), span_str(exposed_headers));
}

static bool answer_preflight(struct call *call)
{
    struct response *response = call->response;

    if (request_header(call->request, SPAN("Access-Control-Request-Method")).p == NULL ||
        allowed_origin(call).p == NULL)
        return false;
    response->status = 200;
    response_add_methods(response, SPAN("Access-Control-Allow-Methods"), METHODS_ALL);
    response_add_header(response, SPAN("Access-Control-Allow-Headers"), span_str(allowed_headers));
    response_add_header(response, SPAN("Access-Control-Max-Age"), SPAN("600"));
    return true;
}

/* Senders of CloudEvents. ------------------------------------------------------------------ */

static bool leads_to_events(struct call *call)
{
    const struct rest *rest = call->rest;
    struct resource *resource;
    struct uri uri;
    struct err *e = uri_parse(call->request->target, rest->base_path,
                              (size_t)rest->limits->conditions, call->arena, &uri);

    if (e == NULL)
        e = resource_find(rest->resources, uri.resource, NULL, &resource);
    if (e == NULL)
        return span_eq(resource->name, SPAN("Svc.Event"));
    err_free(e);
    return false;
}

/* A minute's, of one account. */
static struct span allowed_rate(const struct call *call)
{
    int64_t most = call->rest->limits->account_requests_per_second;

    return most == 0 ? SPAN("*") : arena_u64(call->arena, (uint64_t)most * 60);
}

/* As the webhook specification of CloudEvents has it, section 4.2: who is not allowed is answered
 * as anybody is. */
static bool answer_sender(struct call *call)
{
    struct span origin = request_header(call->request, SPAN("WebHook-Request-Origin"));

    if (origin.n == 0 || !is_listed(call->rest->cloudevents_origins, origin) ||
        !leads_to_events(call))
        return false;
    call->response->status = 200;
    response_add_header(call->response, SPAN("Allow"), SPAN("POST"));
    response_add_header(call->response, SPAN("WebHook-Allowed-Origin"), origin);
    response_add_header(call->response, SPAN("WebHook-Allowed-Rate"), allowed_rate(call));
    return true;
}

bool cors_answer_everybody(struct call *call)
{
    return !call->request->is_local && (answer_preflight(call) || answer_sender(call));
}

struct err *cors_answer_options(struct call *call)
{
    struct response *response = call->response;
    const struct resource *resource = call->resource;
    struct buf *b = &response->body;

    response->status = 200;
    response->content_type = SPAN("application/json");
    buf_add_str(b, "[{");
    member_add_text(b, SPAN("Resource"), resource->name);
    member_add_text(b, SPAN("ResourceKind"), resource_kind_names.values[resource->kind]);
    json_add_plain_name(b, SPAN("Methods"));
    method_add_json(b, resource->methods);
    buf_add_str(b, "}]");
    response_add_methods(response, SPAN("Allow"), resource->methods);
    return NULL;
}
