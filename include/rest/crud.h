/* The seven methods on entities in a collection, or from a resource's own source: what every
 * resource does that does not do it its own way (docs/specification.md, sections 3 and 4). */
#ifndef REST_CRUD_H
#define REST_CRUD_H

#include "base/err.h"

struct call;
struct entity;
struct json_doc;
struct json_value;
struct query_item;
struct query_result;

/* GET, HEAD and REPORT; POST; PATCH; PUT; DELETE. */
struct err *crud_read(struct call *call) MUST_USE;
struct err *crud_insert(struct call *call) MUST_USE;
struct err *crud_patch(struct call *call) MUST_USE;
struct err *crud_put(struct call *call) MUST_USE;
struct err *crud_delete(struct call *call) MUST_USE;

/* The request's body as a JSON document: one object, or an array of them; NDJSON lines as an array.
 * ERR_NO_DATA_SOURCE without a body, ERR_FAILED_JSON. */
struct err *crud_body(struct call *call, struct json_doc *out_doc) MUST_USE;
/* The same of a method that takes one object; what webhooks send is an array, so that to a local
 * destination an array of one is that one. ERR_DATA_SOURCE_FORMAT for an array, ERR_INVALID_ENTITY
 * for what is none either. */
struct err *crud_body_object(struct call *call, struct json_value *out_object) MUST_USE;
/* Opens the resource's source for the call's conditions, runs the query. With objects_only, what is
 * found is what it is until the call ends: evaluation_begin_change. */
struct err *crud_select(struct call *call, bool objects_only,
                        struct query_result *out_result) MUST_USE;
/* Carries call->change out and notes what the answer waits for. ERR_PAYLOAD_TOO_LARGE, and nothing
 * has changed, when the answer passes AnswerBytes. */
struct err *crud_apply(struct call *call) MUST_USE;
/* The answer shows something of this version. */
void crud_shows(struct call *call, uint64_t version);
/* The text of an entity as the call's key sees it. */
struct span crud_show(const struct call *call, const struct entity *e, struct arena *a);
/* Writes items as the answer's body, in the negotiated format. */
void crud_write_list(struct call *call, const struct span *items, size_t count);
/* Where the one that was inserted is found: its JSON begins with Id. */
void crud_add_location(struct call *call, struct span json);
/* Writes a body of the given JSON array items for a change: honours Prefer: return=minimal, as
 * which it answers a key that may not GET the resource, too; sets Svc-info from verb and count: `2
 * entities inserted into 'X'`, unless `verb` is NULL. To be called before crud_apply, which refuses
 * a change whose answer is too large. */
void crud_answer_changed(struct call *call, int status, const char *verb, const struct span *items,
                         size_t count);
/* The ETag of an answer that shows one entity: of what is stored the serial of its last change, of
 * what never changes its ObjectNo; of what is made for each answer its text, and
 * resource_ops.version or 0. */
void crud_add_version_tag(const struct call *call, uint64_t version);
void crud_add_text_tag(const struct call *call, struct span json, uint64_t version);
/* If-Match and If-None-Match of a change against what it has found (RFC 9110, section 13.2.2):
 * ERR_PRECONDITION_FAILED. NULL: there is nothing. */
struct err *crud_check_preconditions(const struct call *call,
                                     const struct query_item *item) MUST_USE;
/* PATCH of nothing: ERR_UNKNOWN_ENTITY; of several without unsafe=true: ERR_AMBIGUOUS_MATCH with
 * the count. */
struct err *crud_check_found(const struct call *call, size_t count) MUST_USE;

#endif
