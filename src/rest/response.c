/* The answer object of request.h: headers, body, and the arena of one evaluation. */
#include "rest/response.h"
#include "base/json.h"
#include "base/must.h"
#include "rest/status.h"

void response_init(struct response *r, size_t max_body_bytes)
{
    *r = (struct response){.error = ERR_NO_ERROR};
    buf_init(&r->body, max_body_bytes);
    arena_init(&r->arena);
}

void response_done(struct response *r)
{
    buf_done(&r->body);
    arena_done(&r->arena);
}

struct span response_header(const struct response *r, struct span name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (span_ieq(r->headers[i].name, name))
            return r->headers[i].value;
    return (struct span){NULL, 0};
}

void response_add_own_header(struct response *r, struct span name, struct span value)
{
    MUST(r->header_count < RESPONSE_MAX_HEADERS);
    r->headers[r->header_count++] = (struct request_header){name, value};
}

void response_add_header(struct response *r, struct span name, struct span value)
{
    char *p = arena_alloc(&r->arena, value.n + 1);

    for (size_t i = 0; i < value.n; i++)
        p[i] = (char)((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f ? ' ' : value.p[i]);
    response_add_own_header(r, name, span_of(p, value.n));
}

void response_reset(struct response *r)
{
    enum { KEPT_BODY_BYTES = 262144 };

    r->status = 0;
    r->header_count = 0;
    r->content_type = (struct span){NULL, 0};
    r->serial = 0;
    r->error = ERR_NO_ERROR;
    r->gives_way = r->was_long = false;
    buf_shrink(&r->body, KEPT_BODY_BYTES);
    arena_reset(&r->arena);
}

void response_set_problem(struct response *r, int status, enum err_code code, struct span message,
                          struct span instance)
{
    struct buf *b = &r->body;

    buf_clear(b);
    r->status = status;
    r->error = code;
    r->content_type = SPAN("application/problem+json");
    buf_add_str(b, "{\"type\":\"about:blank\",\"title\":");
    json_add_string(b, span_str(status_reason(status)));
    json_add_name(b, SPAN("status"));
    buf_add_i64(b, status);
    json_add_name(b, SPAN("detail"));
    json_add_string(b, message);
    if (instance.p != NULL) {
        json_add_name(b, SPAN("instance"));
        json_add_string(b, instance);
    }
    json_add_name(b, SPAN("ErrorCode"));
    json_add_string(b, err_info(code)->name);
    buf_add_char(b, '}');
    response_add_header(r, SPAN("Svc-info"), message);
}
