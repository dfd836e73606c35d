/* An evaluation as a whole: who asks and whether he may at all, the steps (steps.h) on a budget,
 * and the answer. The first error ends it and becomes the answer. */
#include "dispatch/dispatch.h"

#include "access/access.h"
#include "base/budget.h"
#include "base/room.h"
#include "dispatch/api_key.h"
#include "dispatch/browser.h"
#include "dispatch/cors.h"
#include "dispatch/handover.h"
#include "dispatch/node.h"
#include "dispatch/passage.h"
#include "dispatch/probe.h"
#include "dispatch/problem.h"
#include "dispatch/steps.h"
#include "protocol/negotiate.h"
#include "query/query.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/evaluation.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/turn.h"

#include <string.h>

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

static struct err *evaluate(struct call *call)
{
    bool answered = false;

    if (call->rest->cluster != NULL)
        TRY(node_enter(call, &answered));
    if (!answered)
        TRY(enter(call, &answered));
    return answered ? NULL : steps_take(call);
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
    if (budget.longest_ns > 0)
        evaluations_note_try(call->rest->evaluations, budget.longest_ns);
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

/* As far as it is known when nothing of the request has been evaluated. */
static struct call begin_call(struct rest *rest, const struct request *request,
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

void dispatch_init(struct rest *rest)
{
    rest->evaluations = evaluations_new(rest, dispatch_run);
    rest->api_keys = api_keys_new(rest);
    rest->passages = passages_new(rest);
    rest->handover = handover_new(rest);
}

void dispatch_done(struct rest *rest)
{
    handover_free(rest->handover);
    passages_free(rest->passages);
    api_keys_free(rest->api_keys);
    evaluations_free(rest->evaluations);
}

bool dispatch_admit(struct rest *rest, const struct request *request, struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct call call = begin_call(rest, request, response, &uri);
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

void dispatch_fail(struct rest *rest, const struct request *request, const struct err *e,
                   struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct call call = begin_call(rest, request, response, &uri);

    response_reset(response);
    answer(&call, e);
}

void dispatch_run(struct rest *rest, const struct request *request, struct response *response)
{
    struct uri uri = {.is_plain = false};
    struct query query = {.shape = NULL};
    struct change change = {.turn = NULL};
    struct negotiation formats = {.in = FORMAT_JSON};
    struct call call = begin_call(rest, request, response, &uri);
    struct err *e;

    call.query = &query;
    call.change = &change;
    call.formats = &formats;
    call.evaluation = rest->running;
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
    if (call.passage != NULL) {
        response->passage = call.passage;
        response->free_passage = passage_free;
    }
    response->gives_way = call.passage != NULL || (e != NULL && err_code(e) == ERR_GIVES_WAY);
    if (!response->gives_way)
        answer(&call, e);
    else if (call.passage == NULL)
        evaluations_are_of(rest->evaluations, call.account);
    if (call.key != NULL)
        access_key_unref(rest->access, call.key);
    err_free(e);
}

void dispatch_refuse(struct response *response, int status, enum err_code code, struct span message,
                     unsigned retry_after_s)
{
    response_reset(response);
    response_set_problem(response, status, code, message, (struct span){NULL, 0});
    if (retry_after_s > 0)
        response_add_header(response, SPAN("Retry-After"),
                            arena_printf(&response->arena, "%u", retry_after_s));
}
