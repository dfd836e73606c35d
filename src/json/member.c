/* Writers of JSON objects: one member with its name a call. The server's own answers and log
 * entries, whose names are known and need no escaping, are made of these; entities of clients are
 * stored as text and copied. */
#include "json/member.h"

#include "json/json.h"

void member_add_text(struct buf *b, struct span name, struct span text)
{
    json_add_plain_name(b, name);
    json_add_string(b, text);
}

void member_add_text_or_null(struct buf *b, struct span name, struct span text)
{
    json_add_plain_name(b, name);
    if (text.n == 0)
        buf_add(b, SPAN("null"));
    else
        json_add_string(b, text);
}

void member_add_json(struct buf *b, struct span name, struct span json)
{
    json_add_plain_name(b, name);
    buf_add(b, json);
}

void member_add_u64(struct buf *b, struct span name, uint64_t number)
{
    json_add_plain_name(b, name);
    buf_add_u64(b, number);
}

void member_add_u64_or_null(struct buf *b, struct span name, uint64_t number)
{
    json_add_plain_name(b, name);
    if (number == 0)
        buf_add(b, SPAN("null"));
    else
        buf_add_u64(b, number);
}

void member_add_bool(struct buf *b, struct span name, bool value)
{
    json_add_plain_name(b, name);
    buf_add(b, value ? SPAN("true") : SPAN("false"));
}

void member_add_uuid(struct buf *b, struct span name, const struct uuid *id)
{
    json_add_plain_name(b, name);
    buf_add_char(b, '"');
    uuid_add(b, id);
    buf_add_char(b, '"');
}

void member_add_time(struct buf *b, struct span name, int64_t unix_ns)
{
    json_add_plain_name(b, name);
    if (unix_ns == 0)
        buf_add(b, SPAN("null"));
    else
        json_add_time(b, unix_ns);
}
