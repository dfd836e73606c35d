/* What requests are evaluated with, set up and taken down in reverse; and what the resources that
 * the application declares do their own way: entities that raise events tell the observer when they
 * are stored, binary resources answer with their bytes. */
#include "rest/rest.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "access/account.h"
#include "access/clients.h"
#include "access/mask.h"
#include "base/blob.h"
#include "base/mem.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/response.h"
#include "rest/stream.h"

static struct err *stored(struct call *call, enum method verb, struct span json)
{
    const struct rest_observer *observer = &call->rest->observer;

    return observer->entity_stored == NULL
               ? NULL
               : observer->entity_stored(observer->context, call, verb, json);
}

static const struct resource_ops declared_entity_ops = {.stored = stored};

static struct err *get_content(struct call *call)
{
    const struct resource *resource = call->resource;
    struct response *response = call->response;

    response->status = 200;
    response->content_type = resource->content_type;
    buf_add(&response->body, blob_span(resource->content));
    return NULL;
}

static const struct resource_ops declared_binary_ops = {.get = get_content};

void rest_init(struct rest *rest)
{
    rest->prefix = rest->base_path.n == 1 ? span_of(NULL, 0) : rest->base_path;
    rest->access = NEW(struct access);
    rest->accounts = accounts_new();
    rest->clients = clients_new(rest->loop, rest->limits);
    rest->resources = NEW(struct resources);
    rest->mask = NEW(struct mask);
    access_init(rest->access);
    rest->access->accounts = rest->accounts;
    rest->everybody = account_ref(rest->accounts, span_of(NULL, 0), span_of(NULL, 0));
    resources_init(rest->resources, rest->store, rest->turn);
    rest->resources->declared_ops[KIND_ENTITY] = &declared_entity_ops;
    rest->resources->declared_ops[KIND_BINARY] = &declared_binary_ops;
    rest->streams = streams_new(rest);
}

void rest_done(struct rest *rest)
{
    streams_free(rest->streams);
    resources_done(rest->resources);
    clients_free(rest->clients);
    access_done(rest->access);
    account_unref(rest->accounts, rest->everybody);
    accounts_free(rest->accounts);
    mem_free(rest->resources);
    mem_free(rest->access);
    mem_free(rest->mask);
}

struct span rest_link(const struct rest *rest, struct span target, struct arena *a)
{
    return arena_printf(a, "%.*s%.*s", SPAN_FMT(rest->prefix), SPAN_FMT(target));
}

static struct span root_of(const struct rest *rest, struct span owner)
{
    const struct access_key *key =
        owner.n == 0 ? NULL : access_find(rest->access, span_of(NULL, 0), owner);

    return key == NULL ? owner : key->root;
}

struct account *rest_account_of(struct rest *rest, struct span tenant, struct span owner)
{
    return account_ref(rest->accounts, tenant, root_of(rest, owner));
}

struct account *rest_find_account(struct rest *rest, struct span tenant, struct span owner)
{
    return account_find(rest->accounts, tenant, root_of(rest, owner));
}
