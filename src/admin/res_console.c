/* Svc.Console: the page for people (docs/specification.md, section 12). Its files are in the
 * program and hold no data: whoever opens the page gets it, and the requests that it makes show a
 * key, as all others do. What the page may do is said with each file. */
#include "admin/builtin.h"
#include "admin/console_files.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "rest/response.h"
#include "rest/rest.h"

#include <string.h>

static const struct span own_path = SPAN_INIT("/Svc.Console");

static const struct console_file *find(struct span name)
{
    for (size_t i = 0; i < console_file_count; i++)
        if (span_eq(console_files[i].name, name))
            return &console_files[i];
    return NULL;
}

/* A file of the same name may be another after the next start: browsers ask each time, and are told
 * that nothing has changed. */
static void add_headers(struct response *response, const struct console_form *form, bool is_packed)
{
    response_add_own_header(response, SPAN("ETag"), form->etag);
    response_add_own_header(response, SPAN("Cache-Control"), SPAN("no-cache"));
    response_add_own_header(response, SPAN("Vary"), SPAN("Accept-Encoding"));
    response_add_own_header(
        response, SPAN("Content-Security-Policy"),
        SPAN("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
             "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
             "require-trusted-types-for 'script'; trusted-types 'none'"));
    response_add_own_header(response, SPAN("Referrer-Policy"), SPAN("no-referrer"));
    response_add_own_header(response, SPAN("Cross-Origin-Opener-Policy"), SPAN("same-origin"));
    if (is_packed)
        response_add_own_header(response, SPAN("Content-Encoding"), SPAN("gzip"));
}

static void answer_file(struct call *call, const struct console_file *file)
{
    const struct request *r = call->request;
    struct response *response = call->response;
    bool is_packed =
        negotiate_takes_gzip(request_header_all(r, SPAN("Accept-Encoding"), call->arena));
    const struct console_form *form = is_packed ? &file->packed : &file->plain;
    struct span known = request_header_all(r, SPAN("If-None-Match"), call->arena);

    add_headers(response, form, is_packed);
    if (known.p != NULL && negotiate_etag_listed(known, form->etag, true)) {
        response->status = 304;
        return;
    }
    response->status = 200;
    response->content_type = file->content_type;
    buf_add(&response->body, form->bytes);
}

static void answer_elsewhere(struct call *call)
{
    call->response->status = 302;
    response_add_header(call->response, SPAN("Location"),
                        rest_link(call->rest, own_path, call->arena));
}

/* The page's own references are relative to its one address: with a slash behind it, or in other
 * letters, it would not find its files. */
static bool is_misspelt(struct span path)
{
    return !span_starts(path, own_path) || path.n == own_path.n + 1;
}

void console_answer(struct call *call, struct span path)
{
    const struct console_file *file;

    if (path.n <= 1) /* programs are answered something else there */
        response_add_own_header(call->response, SPAN("Vary"), SPAN("Accept"));
    if (path.n <= 1 || is_misspelt(path)) {
        answer_elsewhere(call);
        return;
    }
    if (span_eq(path, own_path))
        file = find(SPAN("index.html"));
    else
        file = find(span_sub(path, own_path.n + 1, path.n));
    if (file != NULL)
        answer_file(call, file);
    else
        response_set_problem(call->response, 404, ERR_UNKNOWN_RESOURCE,
                             SPAN("the console has no such file"), span_of(NULL, 0));
}

/* By another name than its own, which is a page (rest.answer_page). */
static struct err *get(struct call *call)
{
    answer_elsewhere(call);
    return NULL;
}

static const struct resource_ops ops = {.get = get};

const struct resource_definition res_console = {
    .name = SPAN_INIT("Svc.Console"),
    .description = SPAN_INIT("The page for people"),
    .kind = KIND_BINARY,
    .content_type = SPAN_INIT("text/html; charset=utf-8"),
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
