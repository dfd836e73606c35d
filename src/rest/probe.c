/* That anything is answered says that the loop turns, which is all that /livez asks. */
#include "rest/probe.h"

#include "rest/call.h"
#include "rest/negotiate.h"
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

static bool only_reads(const struct call *call)
{
    struct response *response = call->response;

    if (call->method == METHOD_GET || call->method == METHOD_HEAD)
        return true;
    response_set_problem(response, 405, ERR_METHOD_NOT_ALLOWED,
                         SPAN("this path has GET and HEAD only"), (struct span){NULL, 0});
    response_add_own_header(response, SPAN("Allow"), SPAN("GET, HEAD"));
    return false;
}

/* The list of resources is what `/` answers to programs. */
static bool is_front_page(const struct call *call, struct span path)
{
    return path.p != NULL && path.n <= 1 &&
           (call->method == METHOD_GET || call->method == METHOD_HEAD) &&
           negotiate_names_html(request_header_all(call->request, SPAN("Accept"), call->arena));
}

static bool is_page(const struct call *call, struct span path)
{
    static const struct span console = SPAN_INIT("/Svc.Console");

    if (call->rest->answer_page == NULL)
        return false;
    if (span_starts(path, console))
        return path.n == console.n || path.p[console.n] == '/';
    return is_front_page(call, path);
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
        if (!only_reads(call))
            return true;
        call->asks_for_openapi = probes[i].answer == NULL;
        if (call->asks_for_openapi)
            return false;
        probes[i].answer(call->rest, call->response);
        return true;
    }
    if (!is_page(call, path))
        return false;
    if (only_reads(call))
        call->rest->answer_page(call, path);
    return true;
}
