/* Who may say whose a request is, what it waits for, and who answers it, by what the view of the
 * cluster tells at that moment. */
#include "dispatch/node.h"

#include "access/access.h"
#include "access/clients.h"
#include "base/clock.h"
#include "dispatch/dispatch.h"
#include "dispatch/handover.h"
#include "dispatch/passage.h"
#include "io/ip.h"
#include "journal/journal.h"
#include "protocol/node_headers.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/cluster_view.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/turn.h"

/* ---- who asks ---- */

bool node_is_passed_on(const struct request *request)
{
    return request_header(request, node_headers_passed_on).p != NULL;
}

static struct err *check_tries(const struct rest *rest, const struct request *request)
{
    unsigned wait_s = clients_sign_in_wait_s(rest->clients, request->client);

    return wait_s == 0 ? NULL
                       : err_set_retry_after(
                             ERR(ERR_TOO_MANY_REQUESTS,
                                 "Svc-cluster: too many wrong ones, or wrong API keys, "
                                 "came from this address: the limit FailedSignInsPerMinute"),
                             wait_s);
}

static struct err *read_passed_on(const struct rest *rest, const struct request *request,
                                  struct arena *a, struct passed_on *out_who)
{
    const struct passed_request passed = {request->method, request->target, request->body};
    struct span secret = rest->cluster->secret;
    struct err *e;

    TRY(check_tries(rest, request));
    if (secret.n < PASSED_ON_SECRET_BYTES)
        return ERR(ERR_NO_LEADER, "this node does not know the cluster's secret yet");
    e = passed_on_read(request_header(request, node_headers_passed_on), secret, &passed,
                       clock_unix_ns() / 1000000, a, out_who);
    if (e != NULL)
        clients_sign_in_failed(rest->clients, request->client);
    return e;
}

bool node_believe(struct rest *rest, struct request *request, struct arena *a,
                  struct response *response)
{
    struct passed_on *who;
    struct in6_addr *client;
    struct err *e;

    if (!node_is_passed_on(request))
        return true;
    who = ARENA_NEW(a, struct passed_on);
    client = ARENA_NEW(a, struct in6_addr);
    e = read_passed_on(rest, request, a, who);
    if (e != NULL) {
        dispatch_fail(rest, request, e, response);
        err_free(e);
        return false;
    }
    request->client = ip_parse(who->client, client) ? client : NULL;
    request->from = who;
    return true;
}

/* What a node asks for itself is for one resource, which holds everything, and for reading it: what
 * the secret opens is no more than a node needs. */
static bool is_own(const struct call *call)
{
    const struct passed_on *from = call->request->from;

    return span_eq(from->client, PASSED_ON_ITSELF) && from->key.p == NULL &&
           call->method == METHOD_GET;
}

struct err *node_check(const struct call *call)
{
    if (call->resource->ops->is_for_nodes && call->method == METHOD_GET)
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "a node of the cluster may not GET '%.*s' for itself",
               SPAN_FMT(call->resource->name));
}

struct err *node_sign_in(struct call *call)
{
    const struct access *access = call->rest->access;
    struct span identity = call->request->from->key;

    call->is_node = is_own(call);
    if (call->is_node)
        return NULL;
    if (identity.p == NULL && !access_requires_key(access))
        return NULL;
    call->key = identity.p == NULL ? NULL : access_find_identical(access, identity);
    if (call->key != NULL && !access_has_expired(call->key))
        return NULL;
    call->key = NULL;
    return ERR(ERR_NOT_SIGNED_IN, identity.p == NULL
                                      ? "the cluster's leader requires an API key"
                                      : "the API key is not known to the cluster's leader");
}

/* ---- what it is to have seen ---- */

static struct err *cannot_wait(const struct call *call, uint64_t serial)
{
    struct journal *journal = turn_journal(call->rest->turn);

    return ERR(ERR_OVERLOADED,
               "Svc-min-serial: this node is at %llu, and the request is to have seen %llu",
               (unsigned long long)journal_committed_serial(journal), (unsigned long long)serial);
}

struct err *node_enter(struct call *call, bool *out_answered)
{
    const struct request *r = call->request;
    uint64_t serial;

    *out_answered = false;
    if (r->is_local)
        return NULL;
    if (handover_is(call->rest, r)) {
        *out_answered = true;
        return handover_take(call);
    }
    TRY(min_serial_read(request_header(r, node_headers_min_serial), &serial));
    if (turn_is_committed(call->rest->turn, serial))
        return NULL;
    if (!r->gives_way)
        return cannot_wait(call, serial);
    call->passage = passage_to_serial(call->rest, serial);
    *out_answered = true;
    return NULL;
}

/* ---- who answers ---- */

static struct err *redirect(struct call *call)
{
    struct response *response = call->response;
    struct span leader = call->rest->cluster->leader_url;

    response->status = 307;
    response_add_header(
        response, SPAN("Location"),
        arena_printf(call->arena, "%.*s%.*s", SPAN_FMT(leader), SPAN_FMT(call->request->target)));
    response_add_header(response, SPAN("Svc-info"),
                        arena_printf(call->arena, "changes are made at the cluster's leader, %.*s",
                                     SPAN_FMT(leader)));
    return NULL;
}

/* A change, on a node that does not lead. */
static struct err *send_to_leader(struct call *call)
{
    const struct cluster_view *view = call->rest->cluster;

    if (call->request->from != NULL)
        return ERR(ERR_NO_LEADER,
                   "this node does not lead, and what '%.*s' has passed on is not "
                   "passed on again; nothing was done",
                   SPAN_FMT(call->request->from->node));
    if (view->leader_url.n == 0)
        return ERR(ERR_NO_LEADER, "no leader of the cluster is known; nothing was done");
    if (view->redirects && !call->request->is_local)
        return redirect(call);
    if (!call->request->gives_way || view->secret.n < PASSED_ON_SECRET_BYTES)
        return ERR(ERR_NO_LEADER, "changes are made at the cluster's leader; nothing was done");
    call->passage = passage_to_leader(call);
    return NULL;
}

static bool is_about_nodes(const struct call *call)
{
    return (call->resource->ops->unled_methods & METHOD_BIT(call->method)) != 0;
}

struct err *node_route(struct call *call, struct err *found, bool *out_answered)
{
    const struct cluster_view *view = call->rest->cluster;

    if (!resource_may_change(found == NULL ? call->resource : NULL, call->method))
        return found;
    if (view->leads) /* if the log confirms nothing, the turn says so */
        return found;
    if (found == NULL && view->leader_url.n == 0 && is_about_nodes(call))
        return NULL;
    err_free(found);
    TRY(send_to_leader(call));
    *out_answered = true;
    return NULL;
}

/* What it changed is committed when the answer leaves; a change that changed nothing has seen what
 * there was. */
void node_add_serial(struct call *call)
{
    struct response *response = call->response;
    uint64_t at = journal_committed_serial(turn_journal(call->rest->turn));

    if (call->request->is_local || call->passage != NULL || response->status >= 300 ||
        call->resource == NULL || !resource_may_change(call->resource, call->method))
        return;
    response_add_own_header(response, node_headers_serial,
                            arena_u64(call->arena, response->serial != 0 ? response->serial : at));
}
