/* The answer object of request.h: headers, body, and the arena of one evaluation. */
#include "rest/response.h"
#include "base/header_field.h"
#include "base/must.h"
#include "protocol/method.h"
#include "protocol/status.h"
#include "rest/download.h"
#include "rest/stream.h"
#include "json/member.h"

void response_init(struct response *r, size_t max_body_bytes)
{
    *r = (struct response){.error = ERR_NO_ERROR, .most_body_bytes = max_body_bytes};
    buf_init(&r->body, max_body_bytes);
    arena_init(&r->arena);
}

void response_drop_flow(struct response *r)
{
    stream_close(TAKE(r->stream));
    download_close(TAKE(r->download));
    r->is_stream = r->has_flow = false;
    r->later_bytes = 0;
}

static void drop_passage(struct response *r)
{
    r->free_passage(TAKE(r->passage));
}

void response_done(struct response *r)
{
    response_drop_flow(r);
    if (r->passage != NULL)
        drop_passage(r);
    buf_done(&r->body);
    arena_done(&r->arena);
}

struct span response_header(const struct response *r, struct span name)
{
    const struct header_field *header = header_field_find(r->headers, r->header_count, name);

    return header != NULL ? header->value : (struct span){NULL, 0};
}

void response_add_own_header(struct response *r, struct span name, struct span value)
{
    MUST(r->header_count < RESPONSE_MAX_HEADERS);
    if (r->header_count == 0)
        r->headers = ARENA_ARRAY(&r->arena, struct header_field, RESPONSE_MAX_HEADERS);
    r->headers[r->header_count++] = (struct header_field){name, value};
}

/* Bytes beyond ASCII as `%C3%A4`: how a client reads others is anybody's guess (RFC 9110, section
 * 5.5). */
static struct span encoded(struct span value, struct arena *a)
{
    static const char digits[] = "0123456789ABCDEF";
    char *p = arena_alloc(a, 3 * value.n), *at = p;

    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];

        if (c < 0x80) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '%';
        *at++ = digits[c >> 4];
        *at++ = digits[c & 15];
    }
    return span_of(p, (size_t)(at - p));
}

static struct span without_controls(struct span value, struct arena *a)
{
    char *p = arena_alloc(a, value.n + 1);

    for (size_t i = 0; i < value.n; i++)
        p[i] = (char)((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f ? ' ' : value.p[i]);
    return span_of(p, value.n);
}

void response_add_header(struct response *r, struct span name, struct span value)
{
    struct arena *a = &r->arena;

    value = span_holds_only(value, ' ', 0x7f, 0x7f) /* as almost all do */
                ? arena_copy(a, value)
                : encoded(without_controls(value, a), a);
    response_add_own_header(r, name, value);
}

void response_add_methods(struct response *r, struct span name, unsigned methods)
{
    struct buf list;

    buf_init_arena(&list, &r->arena);
    method_add_list(&list, methods);
    response_add_own_header(r, name, buf_span(&list));
}

void response_reset(struct response *r)
{
    enum { KEPT_BODY_BYTES = 262144 };

    r->status = 0;
    r->header_count = 0;
    r->content_type = (struct span){NULL, 0};
    r->serial = 0;
    r->error = ERR_NO_ERROR;
    r->message = (struct span){NULL, 0};
    r->gives_way = r->was_long = false;
    if (r->is_stream || r->later_bytes > 0)
        response_drop_flow(r);
    if (r->passage != NULL)
        drop_passage(r);
    buf_shrink(&r->body, KEPT_BODY_BYTES);
    arena_reset(&r->arena);
}

void response_bound(struct response *r, size_t room_bytes)
{
    r->body.max = MAX(MIN(room_bytes, r->most_body_bytes), r->body.size);
}

void response_set_problem(struct response *r, int status, enum err_code code, struct span message,
                          struct span instance)
{
    struct buf *b = &r->body;

    buf_clear(b);
    r->status = status;
    r->error = code;
    r->content_type = SPAN("application/problem+json");
    buf_add_str(b, "{\"type\":\"about:blank\"");
    member_add_text(b, SPAN("title"), span_str(status_reason(status)));
    member_add_u64(b, SPAN("status"), (uint64_t)status);
    member_add_text(b, SPAN("detail"), message);
    if (instance.p != NULL)
        member_add_text(b, SPAN("instance"), instance);
    member_add_text(b, SPAN("ErrorCode"), err_info(code)->name);
    buf_add_char(b, '}');
    r->message = without_controls(message, &r->arena);
    response_add_header(r, SPAN("Svc-info"), message);
}
