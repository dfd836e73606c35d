#include "rest/mask.h"

static const struct span secret_headers[] = {
    SPAN_INIT("Authorization"),
    SPAN_INIT("Proxy-Authorization"),
    SPAN_INIT("Cookie"),
    SPAN_INIT("X-Api-Key"),
};
static const struct span secrets_member = SPAN_INIT("Secrets");

bool mask_names_secret(struct span text)
{
    for (size_t at = 0; at < text.n; at++) {
        struct span rest = span_sub(text, at, text.n);

        if (span_istarts(rest, secrets_member))
            return true;
        for (size_t i = 0; i < ARRAY_LEN(secret_headers); i++)
            if (span_istarts(rest, secret_headers[i]))
                return true;
    }
    return false;
}

bool mask_is_secret_header(struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(secret_headers); i++)
        if (span_ieq(name, secret_headers[i]))
            return true;
    return false;
}

struct span mask_header_value(struct span name, struct span value)
{
    if (span_ieq(name, SPAN("Authorization")))
        return SPAN("apikey " MASK);
    return mask_is_secret_header(name) ? SPAN(MASK) : value;
}

void mask_add_headers(struct buf *b, struct json_value headers, struct arena *a)
{
    if (json_type(headers) != JSON_OBJECT) {
        buf_add_str(b, "null");
        return;
    }
    buf_add_char(b, '{');
    for (struct json_member m = json_first_member(headers); json_exists(m.name);
         m = json_next_member(headers, m)) {
        struct span name = json_string(m.name, a);

        json_add_name(b, name);
        if (mask_is_secret_header(name) && json_type(m.value) != JSON_NULL)
            json_add_string(b, SPAN(MASK));
        else
            json_add_compact(b, m.value);
    }
    buf_add_char(b, '}');
}

static void add_masked_member(struct buf *b, struct json_member m, struct arena *a)
{
    struct span name = json_string(m.name, a);
    bool is_secret = mask_is_secret_header(name) || span_ieq(name, secrets_member);

    json_add_name(b, name);
    if (is_secret && json_type(m.value) != JSON_NULL)
        json_add_string(b, SPAN(MASK));
    else
        mask_add_value(b, m.value, a);
}

/* As deep as the parser let it be, which is bounded. */
void mask_add_value(struct buf *b, struct json_value value, struct arena *a)
{
    if (json_type(value) == JSON_OBJECT) {
        buf_add_char(b, '{');
        for (struct json_member m = json_first_member(value); json_exists(m.name);
             m = json_next_member(value, m))
            add_masked_member(b, m, a);
        buf_add_char(b, '}');
    } else if (json_type(value) == JSON_ARRAY) {
        bool is_first = true;

        buf_add_char(b, '[');
        for (struct json_value v = json_first(value); json_exists(v); v = json_next(value, v)) {
            if (!is_first)
                buf_add_char(b, ',');
            is_first = false;
            mask_add_value(b, v, a);
        }
        buf_add_char(b, ']');
    } else {
        json_add_compact(b, value);
    }
}

bool mask_is(struct json_value value, struct arena *a)
{
    return json_type(value) == JSON_STRING && span_eq(json_string(value, a), SPAN(MASK));
}

struct json_value mask_restore(struct span name, struct json_value value, struct json_value old,
                               struct arena *a)
{
    struct json_value kept;

    if (!mask_is(value, a))
        return value;
    kept = json_member_fold(old, name);
    return json_exists(kept) ? kept : value;
}
