/* The nodes that the parser would make of these members, made of where each begins and ends. */
#include "json/member_notes.h"

#include "base/must.h"

void member_notes_init(struct member_notes *notes)
{
    notes->nodes[0] = (struct json_node){.next = 1, .type = JSON_OBJECT};
    notes->doc = (struct json_doc){.nodes = notes->nodes, .node_count = 1, .is_compact = true};
}

void member_notes_add(struct member_notes *notes, const struct buf *b, size_t from)
{
    struct json_node *object = notes->nodes, *name = &notes->nodes[object->next];
    struct span member = span_sub(buf_span(b), from, b->n), value;
    size_t comma = span_starts(member, SPAN(",")) ? 1 : 0;
    bool is_text;
    size_t colon = span_find_char(member, '"', comma + 1) + 1;

    MUST(object->count < MEMBER_NOTES_MOST);
    value = span_sub(member, colon + 1, member.n);
    is_text = span_starts(value, SPAN("\""));
    MUST(is_text || span_eq(value, SPAN("null")));
    name[0] = (struct json_node){.start = (uint32_t)(from + comma),
                                 .end = (uint32_t)(from + colon),
                                 .next = object->next + 1,
                                 .type = JSON_STRING};
    name[1] = (struct json_node){.start = (uint32_t)(from + colon + 1),
                                 .end = (uint32_t)b->n,
                                 .next = object->next + 2,
                                 .type = is_text ? JSON_STRING : JSON_NULL,
                                 .escaped = span_find_char(value, '\\', 0) < value.n};
    object->next += 2;
    object->count++;
    notes->doc.node_count += 2;
}

struct json_value member_notes_end(struct member_notes *notes, const struct buf *b)
{
    notes->doc.text = buf_span(b);
    return json_root(&notes->doc);
}
