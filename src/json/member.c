/* Writers of JSON objects: one member with its name a call. The server's own answers and log
 * entries, whose names are known and need no escaping, are made of these; entities of clients are
 * stored as text and copied. */
#include "json/member.h"

#include "base/must.h"

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

void member_notes_init(struct member_notes *notes)
{
    notes->nodes[0] = (struct json_node){.next = 1, .type = JSON_OBJECT};
    notes->doc = (struct json_doc){.nodes = notes->nodes, .node_count = 1, .is_compact = true};
}

void member_note(struct member_notes *notes, const struct buf *b, size_t from)
{
    struct json_node *object = notes->nodes, *name = &notes->nodes[object->next];
    struct span member = span_sub(buf_span(b), from, b->n), value;
    size_t comma = span_starts(member, SPAN(",")) ? 1 : 0;
    size_t colon = span_find_char(member, '"', comma + 1) + 1;

    MUST(object->count < MEMBER_NOTES_MOST);
    value = span_sub(member, colon + 1, member.n);
    name[0] = (struct json_node){.start = (uint32_t)(from + comma),
                                 .end = (uint32_t)(from + colon),
                                 .next = object->next + 1,
                                 .type = JSON_STRING};
    name[1] = (struct json_node){.start = (uint32_t)(from + colon + 1),
                                 .end = (uint32_t)b->n,
                                 .next = object->next + 2,
                                 .type = span_starts(value, SPAN("\"")) ? JSON_STRING : JSON_NULL,
                                 .escaped = span_find_char(value, '\\', 0) < value.n};
    object->next += 2;
    object->count++;
    notes->doc.node_count += 2;
}

struct json_value member_noted(struct member_notes *notes, const struct buf *b)
{
    notes->doc.text = buf_span(b);
    return json_root(&notes->doc);
}
