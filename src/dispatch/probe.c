/* That anything is answered says that the loop turns, which is all that /livez asks. */
#include "dispatch/probe.h"

#include "protocol/negotiate.h"
#include "rest/call.h"
#include "rest/cluster_view.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"

static void answer_text(struct response *response, int status, struct span text)
{
    response->status = status;
    response->content_type = SPAN("text/plain; charset=utf-8");
    buf_add(&response->body, text);
}

static void answer_not_ready(struct response *response, struct span text)
{
    answer_text(response, 503, text);
    response_add_own_header(response, SPAN("Retry-After"), SPAN("1"));
}

static bool leads(const struct cluster_view *view)
{
    if (view == NULL || view->leads_now == NULL)
        return view == NULL || view->leads;
    return view->leads && view->leads_now(view->context);
}

/* `?leader` is asked by who sends changes where they need no passing on. A server that is alone
 * leads. */
static void answer_ready(const struct rest *rest, struct span target, struct response *response)
{
    struct span query = span_sub(target, span_find_char(target, '?', 0) + 1, target.n);
    bool is_ready = rest->is_ready == NULL || rest->is_ready(rest->ready_context);

    if (!is_ready)
        answer_not_ready(response, SPAN("not ready\n"));
    else if (span_eq(query, SPAN("leader")) && !leads(rest->cluster))
        answer_not_ready(response, SPAN("not the leader\n"));
    else
        answer_text(response, 200, SPAN("ok\n"));
}

enum answer { ANSWERS_TEXT, ANSWERS_NOTHING, ANSWERS_READY, ANSWERS_OPENAPI };

static const struct probe {
    struct span path;
    enum answer answer;
    bool is_host_wide; /* asked for at the root, wherever a service begins */
    struct span text;
} probes[] = {
    {SPAN_INIT("/livez"), ANSWERS_TEXT, false, SPAN_INIT("ok\n")},
    {SPAN_INIT("/readyz"), ANSWERS_READY, false, SPAN_INIT("")},
    {SPAN_INIT("/favicon.ico"), ANSWERS_NOTHING, true, SPAN_INIT("")},
    {SPAN_INIT("/robots.txt"), ANSWERS_TEXT, true, SPAN_INIT("User-agent: *\nDisallow: /\n")},
    /* Another name of a resource, with all that comes of it. */
    {SPAN_INIT("/openapi.json"), ANSWERS_OPENAPI, false, SPAN_INIT("")},
};

/* Of a target, without its query; the absent span when it is not below the base path. */
static struct span path_of(struct span target, struct span prefix)
{
    if (!span_starts(target, prefix))
        return (struct span){NULL, 0};
    return span_sub(target, prefix.n, span_find_char(target, '?', prefix.n));
}

static const struct probe *find_probe(const struct call *call, struct span path)
{
    struct span target = call->request->target;

    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        if (path.n == probes[i].path.n && span_eq(path, probes[i].path))
            return &probes[i];
    if (call->rest->base_path.n == 1) /* looked at already */
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        if (probes[i].is_host_wide && span_eq(path_of(target, SPAN("")), probes[i].path))
            return &probes[i];
    return NULL;
}

static bool is_read(const struct call *call)
{
    return call->method == METHOD_GET || call->method == METHOD_HEAD;
}

static bool only_reads(const struct call *call)
{
    struct response *response = call->response;

    if (is_read(call))
        return true;
    response_set_problem(response, 405, ERR_METHOD_NOT_ALLOWED,
                         SPAN("this path has GET and HEAD only"), (struct span){NULL, 0});
    response_add_own_header(response, SPAN("Allow"), SPAN("GET, HEAD"));
    return false;
}

/* The list of resources is what `/` answers to programs. */
static bool is_front_page(const struct call *call, struct span path)
{
    return path.p != NULL &&
           negotiate_names_html(request_header_all(call->request, SPAN("Accept"), call->arena));
}

/* Without regard to case, as all that is written in targets. Asked by another method, the console
 * is a resource as others. */
static bool is_page(const struct call *call, struct span path)
{
    static const struct span console = SPAN_INIT("/Svc.Console");

    if (path.n <= 1)
        return is_front_page(call, path);
    return path.n >= console.n && span_istarts(path, console) &&
           (path.n == console.n || path.p[console.n] == '/');
}

static bool answer_probe(struct call *call, const struct probe *probe)
{
    call->asks_for_openapi = probe->answer == ANSWERS_OPENAPI;
    if (probe->answer == ANSWERS_READY)
        answer_ready(call->rest, call->request->target, call->response);
    else if (probe->answer == ANSWERS_TEXT)
        answer_text(call->response, 200, probe->text);
    else if (probe->answer == ANSWERS_NOTHING)
        call->response->status = 204;
    return !call->asks_for_openapi;
}

bool probe_answer(struct call *call)
{
    struct span path = path_of(call->request->target, call->rest->prefix);
    const struct probe *probe = find_probe(call, path);

    if (probe != NULL && !only_reads(call))
        return true;
    if (probe != NULL)
        return answer_probe(call, probe);
    if (call->rest->answer_page == NULL || !is_read(call) || !is_page(call, path))
        return false;
    call->rest->answer_page(call, path);
    return true;
}
