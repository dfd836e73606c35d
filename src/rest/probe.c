/* That anything is answered says that the loop turns, which is all that /livez asks. */
#include "rest/probe.h"

#include "rest/call.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"

static void answer_text(struct response *response, int status, struct span text)
{
    response->status = status;
    response->content_type = SPAN("text/plain; charset=utf-8");
    buf_add(&response->body, text);
}

static void answer_live(const struct rest *rest, struct response *response)
{
    (void)rest;
    answer_text(response, 200, SPAN("ok\n"));
}

static void answer_ready(const struct rest *rest, struct response *response)
{
    bool is_ready = rest->is_ready == NULL || rest->is_ready(rest->ready_context);

    if (is_ready) {
        answer_text(response, 200, SPAN("ok\n"));
        return;
    }
    answer_text(response, 503, SPAN("not ready\n"));
    response_add_own_header(response, SPAN("Retry-After"), SPAN("1"));
}

static void answer_icon(const struct rest *rest, struct response *response)
{
    (void)rest;
    response->status = 204;
}

static void answer_robots(const struct rest *rest, struct response *response)
{
    (void)rest;
    answer_text(response, 200, SPAN("User-agent: *\nDisallow: /\n"));
}

static const struct probe {
    struct span path;
    void (*answer)(const struct rest *rest, struct response *response);
} probes[] = {
    {SPAN_INIT("/livez"), answer_live},       {SPAN_INIT("/readyz"), answer_ready},
    {SPAN_INIT("/favicon.ico"), answer_icon}, {SPAN_INIT("/robots.txt"), answer_robots},
    {SPAN_INIT("/openapi.json"), NULL}, /* another name of a resource, with all that comes of it */
};

/* Of a target; the absent span when it is not below the base path. */
static struct span path_of(struct span target, struct span base)
{
    size_t from = base.n == 1 ? 0 : base.n;

    if (from > 0 && !span_starts(target, base))
        return (struct span){NULL, 0};
    return span_sub(target, from, span_find_char(target, '?', from));
}

static void answer(const struct call *call, const struct probe *probe)
{
    struct response *response = call->response;

    if (call->method == METHOD_GET || call->method == METHOD_HEAD) {
        probe->answer(call->rest, response);
        return;
    }
    response_set_problem(response, 405, ERR_METHOD_NOT_ALLOWED,
                         SPAN("this path has GET and HEAD only"), (struct span){NULL, 0});
    response_add_own_header(response, SPAN("Allow"), SPAN("GET, HEAD"));
}

static bool answers_as_resource(struct call *call, const struct probe *probe)
{
    call->asks_for_openapi =
        probe->answer == NULL && (call->method == METHOD_GET || call->method == METHOD_HEAD);
    return call->asks_for_openapi;
}

bool probe_answer(struct call *call)
{
    struct span path;

    if (call->request->is_local)
        return false;
    path = path_of(call->request->target, call->rest->base_path);
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        if (path.n != probes[i].path.n || !span_eq(path, probes[i].path))
            continue;
        if (answers_as_resource(call, &probes[i]))
            return false;
        answer(call, &probes[i]);
        return true;
    }
    return false;
}
