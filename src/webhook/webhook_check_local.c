/* Targets on this server: the service itself will be asked for them, so that they must make sense
 * when the webhook is written. */
#include "access/access.h"
#include "base/limits.h"
#include "query/query.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "webhook/webhook_checks.h"
#include "webhook/webhook_targets.h"
#include "json/json.h"

static struct err *check_rights(struct call *call, struct json_value headers,
                                const struct resource *resource, enum method method)
{
    struct json_value value = json_member_fold(headers, SPAN("Authorization"));
    struct access_key *key;

    if (!access_requires_key(call->rest->access))
        return NULL;
    TRY(call_sign_in(call, json_string(value, call->arena), &key));
    if (access_allows(key, resource->name, method))
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "the API key in Headers.Authorization may not use %.*s on '%.*s'",
               SPAN_FMT(method_name(method)), SPAN_FMT(resource->name));
}

/* A target that the service itself will be asked for: it must make sense now. */
struct err *webhook_check_local(struct call *call, struct span target, enum method method,
                                struct json_value headers, struct span *out_normal)
{
    struct rest *rest = call->rest;
    struct resource *resource;
    struct query query;
    struct buf normal;
    struct uri uri;

    TRY(webhook_find_target(rest->resources, target, method, call->key,
                            (size_t)rest->limits->conditions, call->arena, &uri, &resource));
    if (resource->ops->is_for_clients)
        return ERR(ERR_INVALID_ENTITY,
                   "'%.*s' is sent to clients only, over HTTP, and not to the service itself",
                   SPAN_FMT(resource->name));
    TRY(resource_parse_query(resource, &uri, call->arena, &query));
    query_done(&query);
    TRY(check_rights(call, headers, resource, method));
    buf_init_arena(&normal, call->arena);
    uri_add_normal(&normal, &uri, resource->name, false);
    *out_normal = buf_span(&normal);
    return NULL;
}
