/* An error becomes the answer: a problem document (RFC 9457), stored as Svc.Admin.Error first, so
 * that it names where. What a header has to say of it, as when to come back, is said too. */
#include "dispatch/problem.h"

#include "access/mask.h"
#include "dispatch/error_log.h"
#include "journal/journal.h"
#include "protocol/negotiate.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "store/turn.h"
#include "json/json.h"

static struct span accept_of(const struct call *call)
{
    return request_header_all(call->request, SPAN("Accept"), call->arena);
}

/* Whoever is told to come back is told when. */
static unsigned retry_after(const struct err *e)
{
    bool may_come_back = err_code(e) == ERR_OVERLOADED || err_code(e) == ERR_NO_LEADER ||
                         err_code(e) == ERR_TOO_MANY_REQUESTS;

    return may_come_back ? MAX(err_retry_after(e), 1u) : err_retry_after(e);
}

/* Of the two that a browser knows, Basic is what it can ask its user for. */
static void add_challenge(struct call *call, const struct err *e)
{
    struct response *response = call->response;

    switch (err_code(e)) {
    case ERR_NOT_SIGNED_IN:
        response_add_header(response, SPAN("WWW-Authenticate"), SPAN("apikey realm=\"Svc\""));
        if (negotiate_names_html(accept_of(call)))
            response_add_header(response, SPAN("WWW-Authenticate"), SPAN("Basic realm=\"Svc\""));
        break;
    case ERR_METHOD_NOT_ALLOWED:
        response_add_methods(response, SPAN("Allow"), call->resource->methods);
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
               : mask_message(call->rest->mask, err_message(e), call->arena);
}

bool problem_is_stored(const struct call *call, const struct err *e)
{
    return call->method != METHOD_OPTIONS && error_log_keeps(err_code(e));
}

/* Found by looking at what is stored: that may not be on disk yet, or, in a cluster, be lost. */
static bool tells_what_is_stored(enum err_code code)
{
    return code == ERR_PRECONDITION_FAILED || code == ERR_CONFLICT || code == ERR_AMBIGUOUS_MATCH ||
           code == ERR_UNKNOWN_ENTITY || code == ERR_UNKNOWN_RESOURCE;
}

void problem_answer(struct call *call, const struct err *e)
{
    struct response *response = call->response;
    struct span link = {NULL, 0}, instance = {NULL, 0}, message = message_of(call, e);

    response->header_count = 0;
    response->serial = tells_what_is_stored(err_code(e))
                           ? journal_next_serial(turn_journal(call->rest->turn)) - 1
                           : 0;
    if (problem_is_stored(call, e))
        link = error_log_store(call, e, message);
    if (link.p != NULL)
        instance = rest_link(call->rest, link, call->arena);
    response_set_problem(response, err_info(err_code(e))->status, err_code(e), message, instance);
    indent_problem(call);
    if (link.p != NULL)
        response_add_header(response, SPAN("ErrorInfo"), link);
    add_challenge(call, e);
}
