/* Each name and value is looked at by itself. */
#include "webhook/webhook_headers.h"

#include "base/text.h"
#include "protocol/negotiate.h"

/* What frames a request, says whose it is, or is ours to say: bodies are not encoded, so that a
 * receiver who is told that they are could not read them. */
static bool is_reserved_header(struct span name)
{
    static const struct span names[] = {
        SPAN_INIT("Host"),
        SPAN_INIT("Content-Length"),
        SPAN_INIT("Transfer-Encoding"),
        SPAN_INIT("Connection"),
        SPAN_INIT("Proxy-Connection"),
        SPAN_INIT("Upgrade"),
        SPAN_INIT("TE"),
        SPAN_INIT("Trailer"),
        SPAN_INIT("Expect"),
        SPAN_INIT("Forwarded"),
        SPAN_INIT("HTTP2-Settings"),
        SPAN_INIT("X-Real-IP"),
        SPAN_INIT("Content-Encoding"),
    };
    static const struct span prefixes[] = {
        SPAN_INIT("X-Forwarded-"),
        SPAN_INIT("webhook-"),
        SPAN_INIT("ce-"),
        SPAN_INIT("Svc-"),
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (span_ieq(name, names[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (span_istarts(name, prefixes[i]))
            return true;
    return false;
}

static struct err *check_header_value(struct span name, struct json_value value, struct arena *a)
{
    struct span text;

    if (json_type(value) != JSON_STRING)
        return ERR(ERR_INVALID_ENTITY, "the value of '%.*s' is not a string", SPAN_FMT(name));
    text = json_string(value, a);
    if (!span_holds_only(text, ' ', 0xff, 0x7f))
        return ERR(ERR_INVALID_ENTITY,
                   "the value of '%.*s' has a line break, or another control character",
                   SPAN_FMT(name));
    if (!span_ieq(name, SPAN("Content-Type")) || negotiate_is_media_type(text))
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "the value of 'Content-Type' is no media type");
}

static struct err *check_header(struct span name, struct json_value value, struct arena *a)
{
    if (!text_is_token(name))
        return ERR(ERR_INVALID_ENTITY, "'%.*s' is not a header name", SPAN_FMT(name));
    if (is_reserved_header(name))
        return ERR(ERR_INVALID_ENTITY, "'%.*s' is set by the server", SPAN_FMT(name));
    return check_header_value(name, value, a);
}

struct err *webhook_check_headers(struct json_value headers, struct arena *a, struct span *out_json)
{
    enum { MOST = 64 };
    struct buf kept;

    if (json_count(headers) > MOST)
        return ERR(ERR_INVALID_ENTITY, "more than %d headers", MOST);
    buf_init_arena(&kept, a);
    buf_add_char(&kept, '{');
    for (struct json_member m = json_first_member(headers); json_exists(m.name);
         m = json_next_member(headers, m)) {
        struct span name = json_string(m.name, a);

        if (json_type(m.value) == JSON_NULL)
            continue;
        TRY(check_header(name, m.value, a));
        json_add_name(&kept, name);
        json_add_compact(&kept, m.value);
    }
    buf_add_char(&kept, '}');
    *out_json = buf_span(&kept);
    return NULL;
}
