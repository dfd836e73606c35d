#include "rest/cors.h"

#include "base/limits.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "json/json.h"

static const char allowed_headers[] =
    "Authorization, Content-Type, Accept, If-Match, If-None-Match, Idempotency-Key, "
    "Last-Event-ID, Prefer, Svc-min-serial";
static const char exposed_headers[] =
    "ErrorInfo, ETag, Link, Location, Preference-Applied, "
    "Retry-After, Svc-applied, Svc-count, Svc-info, Svc-pager, Svc-serial, Svc-total, Svc-version";

bool cors_allows(const struct rest *rest, struct span origin)
{
    if (rest->cors_origins == NULL)
        return false;
    for (const char **at = rest->cors_origins; *at != NULL; at++)
        if (span_eq(span_str(*at), SPAN("*")) || span_ieq(span_str(*at), origin))
            return true;
    return false;
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
    struct buf methods;

    if (request_header(call->request, SPAN("Access-Control-Request-Method")).p == NULL ||
        allowed_origin(call).p == NULL)
        return false;
    buf_init(&methods, 256);
    method_add_list(&methods, METHODS_ALL);
    response->status = 200;
    response_add_header(response, SPAN("Access-Control-Allow-Methods"), buf_span(&methods));
    response_add_header(response, SPAN("Access-Control-Allow-Headers"), span_str(allowed_headers));
    response_add_header(response, SPAN("Access-Control-Max-Age"), SPAN("600"));
    buf_done(&methods);
    return true;
}

/* Senders of CloudEvents. ------------------------------------------------------------------ */

static bool is_sender(const struct rest *rest, struct span name)
{
    for (const char **at = rest->cloudevents_origins; *at != NULL; at++)
        if (span_eq(span_str(*at), SPAN("*")) || span_ieq(span_str(*at), name))
            return true;
    return false;
}

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

    if (call->rest->cloudevents_origins == NULL || origin.n == 0 ||
        !is_sender(call->rest, origin) || !leads_to_events(call))
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
    struct buf methods;

    response->status = 200;
    response->content_type = SPAN("application/json");
    buf_add_str(b, "[{\"Resource\":");
    json_add_string(b, resource->name);
    json_add_name(b, SPAN("ResourceKind"));
    json_add_string(b, resource_kind_names.values[resource->kind]);
    json_add_name(b, SPAN("Methods"));
    method_add_json(b, resource->methods);
    buf_add_str(b, "}]");
    buf_init(&methods, 256);
    method_add_list(&methods, resource->methods);
    response_add_header(response, SPAN("Allow"), buf_span(&methods));
    buf_done(&methods);
    return NULL;
}
