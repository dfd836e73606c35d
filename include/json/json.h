/* JSON (RFC 8259 to the letter) read in place: one strict pass over the text makes a flat table
 * of nodes that point into it. Numbers, member order, escapes and Unicode stay exactly as written,
 * because they are never converted: a value's text is what was received.
 *
 * Why not a cJSON tree: cJSON keeps numbers as doubles, refuses those of more than 63 characters,
 * and ends strings at an escaped NUL. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_node {
    uint32_t start, end; /* offsets into the text; strings with their quotes */
    uint32_t next;       /* index of the node after this one's last descendant */
    uint32_t count : 28; /* elements of an array, members of an object */
    uint32_t type : 3;
    uint32_t escaped : 1; /* a string that holds a backslash */
};

/* nodes[0] is the root. An object's children are name, value, name, value, ...; an array's are its
 * elements. Lives in the arena it was parsed with; the text must stay in place. */
struct json_doc {
    struct span text;
    struct json_node *nodes;
    uint32_t node_count;
    bool is_compact; /* no insignificant blanks anywhere */
    bool is_lines;   /* the root is an array of lines, and its own text no JSON */
};

#define JSON_DEPTH_MOST 1000 /* comparing and merging recurse that deep */

struct json_limits {
    uint32_t depth;   /* of nested arrays and objects, at most JSON_DEPTH_MOST */
    uint32_t members; /* nodes in all */
};

/* A value of a document. node is NULL for a value that is not there. */
struct json_value {
    const struct json_doc *doc;
    const struct json_node *node;
};

/* Errors: ERR_FAILED_JSON; the message says what was expected and where (line, column, both from
 * 1, column in bytes). Duplicate member names are accepted here (see json_check_unique). Text is
 * at most 1 GiB. `limits` NULL: depth 128, members 1 000 000. */
struct err *json_parse(struct span text, const struct json_limits *limits, struct arena *a,
                       struct json_doc *out_doc) MUST_USE;
/* NDJSON: one value a line, none on blank lines. The root is an array of them. */
struct err *json_parse_lines(struct span text, const struct json_limits *limits, struct arena *a,
                             struct json_doc *out_doc) MUST_USE;
/* The beginning of a text that json_parse has accepted: an object's members up to where all of
 * `names` have come, exactly spelled; everything, when one is missing. What comes behind is not
 * looked at. The object has those members alone, and no text. */
struct err *json_parse_front(struct span text, const struct span *names, size_t count,
                             const struct json_limits *limits, struct arena *a,
                             struct json_doc *out_doc) MUST_USE;
/* Error ERR_FAILED_JSON naming the member when any object in the document has two members of one
 * name (compared after unescaping; `fold` folds ASCII case too). Not quadratic. */
struct err *json_check_unique(struct json_value v, bool fold, struct arena *a) MUST_USE;

struct json_value json_root(const struct json_doc *doc);
bool json_exists(struct json_value v);
enum json_type json_type(struct json_value v); /* an absent value is JSON_NULL */
/* The source text, strings with quotes. */
struct span json_text(struct json_value v);
bool json_is_true(struct json_value v);
/* The string's characters, unescaped: into the text when nothing was escaped, else into the
 * arena; the absent span of what is no string. A lone surrogate escape (\ud800), which RFC 8259
 * section 8.2 leaves open, reads as U+FFFD here; its text stays as written. */
struct span json_string(struct json_value v, struct arena *a);
uint32_t json_count(struct json_value v);

/* Children. Of an object: */
struct json_member {
    struct json_value name;
    struct json_value value;
};
/* Iterates: `for (struct json_member m = json_first_member(o); json_exists(m.name); m =
 * json_next_member(o, m))`. */
struct json_member json_first_member(struct json_value object);
struct json_member json_next_member(struct json_value object, struct json_member m);
/* The member of that name, absent when there is none or v is no object. */
struct json_value json_member(struct json_value v, struct span name);
/* ASCII case folded; an exact match wins over a folded one. */
struct json_value json_member_fold(struct json_value v, struct span name);
/* Each of these, as json_member_fold has it; seldom more than one walk through all members. */
void json_members_fold(struct json_value v, const struct span *names, size_t count,
                       struct json_value *out_values);
/* Of an array: */
struct json_value json_first(struct json_value array);
struct json_value json_next(struct json_value array, struct json_value element);
struct json_value json_at(struct json_value array, uint32_t index);

/* Equality as JSON values: member order does not matter, numbers compare by exact value, strings
 * after unescaping. Members of one name pair up in the order they come. json_hash agrees with it:
 * equal values have equal hashes, and the process's secret goes into it from the first token. */
bool json_equal(struct json_value a, struct json_value b);
uint64_t json_hash(struct json_value v);

/* Writing. */
void json_add_string(struct buf *b, struct span text); /* quoted and escaped; bad UTF-8 as U+FFFD */
/* The longest prefix that json_add_string writes in at most `most` bytes, without its quotes, cut
 * on a character boundary; *out_bytes: in how many. */
struct span json_cut_string(struct span text, size_t most, size_t *out_bytes);
/* What stands before an element or a member: a comma, unless it follows '{' or '[', or nothing. */
void json_add_comma(struct buf *b);
/* "name": behind json_add_comma. */
void json_add_name(struct buf *b, struct span name);
/* The same for a name that is there already, as it is written. */
void json_add_written_name(struct buf *b, struct json_value name);
/* As datetime_add, quoted. */
void json_add_time(struct buf *b, int64_t unix_ns);
/* The same for a name that is known to need no escape. */
void json_add_plain_name(struct buf *b, struct span name);
/* The value's text without insignificant blanks, everything else as written. An absent value, here
 * and in the following, is written as null. */
void json_add_compact(struct buf *b, struct json_value v);
/* Printed for people, `indent` (0 to 8) blanks a level, one member or element a line. */
void json_add_indented(struct buf *b, struct json_value v, unsigned indent);
/* `target` with the members of `patch` laid over it: members of patch replace those of the same
 * name (exact; ASCII case folded when `fold`), in place; two objects merge; new members come last;
 * null stays null (docs/specification.md, section 4: "null sets null"). Compact. When either is not
 * an object, patch alone. Names are those of target; patch's are unique (json_check_unique). */
void json_add_merged(struct buf *b, struct json_value target, struct json_value patch, bool fold,
                     struct arena *a);

#endif
