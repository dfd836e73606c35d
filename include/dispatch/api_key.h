/* Svc.Admin.ApiKey as it is kept (docs/specification.md, section 6): the keys that are made at run
 * time are its entities, and rest->access follows them, live and after a replay alike. The
 * configuration's keys are listed beside them, with all but their digests; they are as good as the
 * configuration says, whatever is listed. */
#ifndef DISPATCH_API_KEY_H
#define DISPATCH_API_KEY_H

#include "base/macros.h"
#include "base/span.h"

struct access;
struct access_key;
struct api_keys;
struct arena;
struct entity;
struct rest;
struct shape;
struct uuid;

extern const struct span api_key_resource;
/* What is shown; and what is stored: KeySha256, Account (the key on whose account it is) and
 * IsReadOnly (the configuration's) besides. */
extern const struct shape api_key_shape, api_key_stored_shape;

/* Over an empty store; follows its collection from now on. */
struct api_keys *api_keys_new(struct rest *rest);
/* Withdraws all that were made at run time. NULL is allowed. */
void api_keys_free(struct api_keys *k);

/* A datetime as unix time; what is beyond the range of that is its nearest end. False: it is none.
 */
bool api_key_time(struct span text, int64_t *out_unix_ns);
bool api_key_is_configured(const struct entity *e);
struct entity *api_key_find(const struct api_keys *k, struct span id);

/* Takes the configuration's keys and rights over into rest->access, in place of those that there
 * were. Once the store is loaded access_check_beside has let them pass, they are listed anew, and
 * who observes is told. */
void api_keys_replace(struct api_keys *k, struct access *access);
/* Has the configuration's keys listed as they are now, in one change. ERR_INVALID_ENTITY: one of
 * them has the name, or is the same, as one that was made at run time. Errors of turn_apply. */
struct err *api_keys_list_configured(struct api_keys *k) MUST_USE;

/* Tells who observes that keys are there, are others, or are there no more: those of this name, or
 * any when it is absent. *out_serial is what an answer must wait for. Errors are the observer's. */
struct err *api_keys_tell(struct api_keys *k, struct span name, struct arena *a,
                          uint64_t *out_serial) MUST_USE;

/* Notes the hour of a use; to be called with used_until_unix_s in the past. It is written later,
 * together with those of others. */
void api_key_note_use(struct api_keys *k, struct access_key *key);
/* Notes that the key of this Id, which may be gone, was used in that hour, on another node. */
void api_key_note_hour(struct api_keys *k, const struct uuid *id, int64_t hour_unix_s);
/* Writes what is noted now, before it is looked at, or the process ends. */
void api_keys_write_uses(struct api_keys *k);

#endif
