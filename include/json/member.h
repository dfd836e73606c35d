/* Members of a JSON object, written one after the other: name and value of the kinds that the
 * service writes. Each puts a comma before itself unless it follows '{'. Names are our own: of
 * characters that need no escape. */
#ifndef JSON_MEMBER_H
#define JSON_MEMBER_H

#include "base/buf.h"
#include "base/uuid.h"

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

#endif
