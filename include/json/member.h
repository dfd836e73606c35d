/* Members of a JSON object, written one after the other: name and value of the kinds that the
 * service writes. Each puts a comma before itself unless it follows '{'. Names are our own: of
 * characters that need no escape. */
#ifndef JSON_MEMBER_H
#define JSON_MEMBER_H

#include "base/buf.h"
#include "base/uuid.h"
#include "json/json.h"

/* As json_add_string. */
void member_add_text(struct buf *b, struct span name, struct span text);
/* The same, null for no text. */
void member_add_text_or_null(struct buf *b, struct span name, struct span text);
/* A value that is JSON already. */
void member_add_json(struct buf *b, struct span name, struct span json);
void member_add_u64(struct buf *b, struct span name, uint64_t number);
/* null for 0. */
void member_add_u64_or_null(struct buf *b, struct span name, uint64_t number);
void member_add_bool(struct buf *b, struct span name, bool value);
void member_add_uuid(struct buf *b, struct span name, const struct uuid *id);
/* As datetime_add; null for 0. */
void member_add_time(struct buf *b, struct span name, int64_t unix_ns);

enum { MEMBER_NOTES_MOST = 8 };

/* Some members, noted while they are written, so that nobody has to read what has just been. */
struct member_notes {
    struct json_doc doc;
    struct json_node nodes[1 + 2 * MEMBER_NOTES_MOST];
};

void member_notes_init(struct member_notes *notes);
/* The member that was written from there on, a text or null, at most MEMBER_NOTES_MOST times. */
void member_note(struct member_notes *notes, const struct buf *b, size_t from);
/* The object of these members alone, as json_parse_front gives it; valid as long as the notes and
 * what was written, to which nothing is added any more. */
struct json_value member_noted(struct member_notes *notes, const struct buf *b);

#endif
