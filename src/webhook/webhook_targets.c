/* Resources of this server that webhooks ask. Each knows who refers to it, so that these are looked
 * at again when it changes or goes. */
#include "webhook/webhook_targets.h"

#include "base/mem.h"
#include "query/uri.h"
#include "resource/referrers.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "webhook/webhook.h"
#include "webhook/webhook_entries.h"

/* A resource that the webhook's requests go to: a local Destination, a CustomPayloadRequest. */
struct webhook_target {
    struct list_link link; /* in the resource's referrers */
    struct resource *resource;
    struct webhook *webhook;
};
enum { WEBHOOK_TARGETS_MOST = 2 };

struct err *webhook_find_target(const struct resources *resources, struct span target,
                                enum method method, const struct access_key *key,
                                size_t max_conditions, struct arena *a, struct uri *out_uri,
                                struct resource **out_resource)
{
    struct resource *resource;

    TRY(uri_parse(target, SPAN("/"), max_conditions, a, out_uri));
    TRY(resource_find(
        resources, out_uri->resource.p == NULL ? SPAN("Svc.AvailableResource") : out_uri->resource,
        key, &resource));
    if ((resource->methods & METHOD_BIT(method)) == 0)
        return ERR(ERR_INVALID_ENTITY, "'%.*s' does not support %.*s", SPAN_FMT(resource->name),
                   SPAN_FMT(method_name(method)));
    *out_resource = resource;
    return NULL;
}

void webhook_targets_drop(struct webhook *w)
{
    for (size_t i = 0; w->targets != NULL && i < WEBHOOK_TARGETS_MOST; i++)
        if (w->targets[i].resource != NULL)
            list_remove(&w->targets[i].resource->referrers->targets, &w->targets[i].link);
    mem_free(w->targets);
    w->targets = NULL;
}

static struct err *add_target(struct webhook *w, struct rest *rest, size_t place,
                              struct span target, enum method method, struct arena *a)
{
    struct resource *resource;
    struct uri uri;

    if (!span_starts(target, SPAN("/")))
        return NULL;
    TRY(webhook_find_target(rest->resources, target, method, &webhook_nobody, SIZE_MAX, a, &uri,
                            &resource));
    if (w->targets == NULL)
        w->targets = mem_zero(WEBHOOK_TARGETS_MOST * sizeof(*w->targets));
    w->targets[place].webhook = w;
    w->targets[place].resource = resource;
    list_push_back(&resource->referrers->targets, &w->targets[place].link);
    return NULL;
}

struct err *webhook_targets_add(struct webhook *w, struct rest *rest, struct json_value json,
                                struct arena *a)
{
    struct json_value custom = json_member(json, SPAN("CustomPayloadRequest"));
    enum method method = method_parse(json_string(json_member(json, SPAN("Method")), a));
    struct err *e =
        add_target(w, rest, 0, json_string(json_member(json, SPAN("Destination")), a), method, a);

    if (e != NULL)
        return err_prefix(e, "Destination: ");
    if (json_type(custom) != JSON_OBJECT)
        return NULL;
    e = add_target(w, rest, 1, json_string(json_member(custom, SPAN("URI")), a), METHOD_GET, a);
    return e == NULL ? NULL : err_prefix(e, "CustomPayloadRequest.URI: ");
}

struct webhook *webhook_targets_first(const struct resource *resource)
{
    struct list_link *at = list_first(&resource->referrers->targets);

    return at == NULL ? NULL : CONTAINER_OF(at, struct webhook_target, link)->webhook;
}
