/* Some members of a JSON object, noted while they are written (member.h), so that nobody has to
 * read what has just been. */
#ifndef JSON_MEMBER_NOTES_H
#define JSON_MEMBER_NOTES_H

#include "json/json.h"

enum { MEMBER_NOTES_MOST = 8 };

struct member_notes {
    struct json_doc doc;
    struct json_node nodes[1 + 2 * MEMBER_NOTES_MOST];
};

/* None yet. Nothing of it needs to be freed. */
void member_notes_init(struct member_notes *notes);
/* Notes the member that was written to `b` from the offset `from` on, its comma included: a text or
 * null. At most MEMBER_NOTES_MOST times. `b` begins with the object, and may move meanwhile. */
void member_notes_add(struct member_notes *notes, const struct buf *b, size_t from);
/* The object of these members alone, as json_parse_front gives it; valid as long as the notes and
 * the bytes of `b`, to which nothing is added any more. */
struct json_value member_notes_end(struct member_notes *notes, const struct buf *b);

#endif
