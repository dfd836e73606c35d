/* API keys and their rights (docs/specification.md, section 6): those of the configuration, and
 * those that are made at run time (api_key.h). Keys are kept as SHA-256 only.
 *
 * A key is found by a map, in a time that does not depend on how many there are, and compared in
 * constant time. One that is withdrawn is found no more, and freed when no request refers to it. */
#ifndef ACCESS_ACCESS_H
#define ACCESS_ACCESS_H

#include "base/list.h"
#include "base/macros.h"
#include "base/span.h"
#include "base/uuid.h"
#include "protocol/method.h"

struct access; /* access_keys.h */
struct account;
struct api_key;
struct arena;
struct buf;
struct err;
struct json_value;
struct shape;

enum { ACCESS_TENANT_BYTES = 64, ACCESS_NAME_SCALARS = 64 };
/* Room for any title. */
#define ACCESS_TITLE_BYTES (ACCESS_TENANT_BYTES + 1 + 4 * ACCESS_NAME_SCALARS)
#define ACCESS_FOREVER INT64_MAX

struct access_entry {
    struct span *resources; /* folded: `shop.person`, `shop.*`, `*` */
    size_t resource_count;
    unsigned methods; /* bits, closed under "GET brings REPORT and HEAD" */
};

struct access_key {
    struct span title;  /* tenant, '/', name: no two keys have the same */
    struct span name;   /* the end of it */
    struct span tenant; /* the beginning of it; absent: none */
    struct span root;   /* the key on whose account it is, where there is no tenant */
    struct span rights; /* of the configuration's: AllowAccess as JSON; absent: made at run time */
    struct uuid id;     /* of its entity; zero: it is the configuration's */
    uint8_t sha256[32];
    struct access_entry *entries;
    size_t entry_count;
    int64_t expires_unix_ns; /* refused from then on; or ACCESS_FOREVER */
    struct account *account; /* NULL while the access belongs to no service */
    struct list_link configured;
    struct api_key *stored;    /* its entity's; NULL: it is not listed */
    int64_t used_until_unix_s; /* no use before is noted anew */
    uint32_t refs;
};

/* 1 to ACCESS_TENANT_BYTES letters, digits, '_', '-' and '.'. */
bool access_is_tenant(struct span text);
/* 1 to ACCESS_NAME_SCALARS characters, none of them a control, a blank, or one that shows nothing.
 */
bool access_is_name(struct span text);
/* ERR_INVALID_ENTITY, which names the member, for what is none of these; a tenant may be absent. */
struct err *access_check_tenant(struct span text) MUST_USE;
struct err *access_check_name(struct span text) MUST_USE;

void access_init(struct access *access); /* nothing required, no keys */
/* Must whoever asks have a key? */
bool access_requires_key(const struct access *access);
void access_done(struct access *access);
size_t access_count(const struct access *access);

/* Adds a key of the configuration from its declaration {"Name","KeySha256","Tenant","AllowAccess":
 * [{"Resources","Methods"}]}. Members match with ASCII case folded and are all required but Tenant.
 * Errors of schema_read, and ERR_INVALID_ENTITY for what is no name, digest or method, or is there
 * already; the message begins with the member's path, and nothing is added. The scratch arena is
 * used while reading only. */
struct err *access_add(struct access *access, struct json_value declaration,
                       struct arena *scratch) MUST_USE;
/* Reads such a declaration alone. What *out_key points to is in the arena, or in the declaration.
 */
struct err *access_read(struct json_value declaration, struct arena *a,
                        struct access_key *out_key) MUST_USE;
/* Would these keys of the configuration stand beside those made at run time? ERR_INVALID_ENTITY
 * names one that is called as one of them. */
struct err *access_check_beside(const struct access *access, const struct access *with) MUST_USE;
/* Takes the configuration's keys of `with` over, and what it requires, in place of those that there
 * were; `with` is empty afterwards. Keys made at run time stay. */
void access_replace(struct access *access, struct access *with);

/* The shape of an entry of AllowAccess. */
extern const struct shape access_entry_shape;
/* Reads an AllowAccess; the entries live in the arena. Errors name the place: `AllowAccess[0].` */
struct err *access_read_rights(struct json_value allow_access, struct arena *a,
                               struct access_key *key) MUST_USE;
/* Appends an AllowAccess that has been read so, in one spelling. */
void access_add_rights(struct buf *b, struct json_value allow_access, struct arena *a);

/* Adds a copy of a key; `title` is made here. NULL: there is one of its digest or title. */
struct access_key *access_put(struct access *access, const struct access_key *key);
/* Nobody finds it any more. */
void access_remove(struct access *access, struct access_key *key);
struct access_key *access_key_ref(struct access_key *key);
/* NULL is allowed. Frees what has been removed, with the last reference. */
void access_key_unref(struct access *access, struct access_key *key);
/* The key of this name, expired or not; without a tenant when `tenant` is absent. NULL: none. */
struct access_key *access_find(const struct access *access, struct span tenant, struct span name);
/* The key that a name stands for in what belongs to this tenant: the tenant's own, else one without
 * a tenant; NULL when there is none. Either text may be absent. */
struct access_key *access_find_named(const struct access *access, struct span tenant,
                                     struct span name);
/* Appends what tells this key from every other, later ones of its name included: `id/tenant/name`.
 * The Id is that of one made at run time; keys of the configuration are known by their names. */
void access_add_identity(struct buf *b, const struct access_key *key);
/* The key of this identity; NULL when it is gone, whoever has its name now. */
struct access_key *access_find_identical(const struct access *access, struct span identity);
bool access_has_expired(const struct access_key *key);

/* The key of an Authorization value: `apikey <KEY>`, `Bearer <KEY>`, or Basic with the key as
 * password. When none is required and `authorization` is absent: *out_key is NULL, which stands for
 * all rights. ERR_NOT_SIGNED_IN otherwise; the message does not repeat the value. Whoever keeps the
 * key for longer than what it does now takes a reference. */
struct err *access_sign_in(const struct access *access, struct span authorization, struct arena *a,
                           struct access_key **out_key) MUST_USE;
/* `resource` is a full name in any case. NULL key: everything. Every key may read
 * Svc.AvailableResource, which shows it only what it may use. `Ns.*` covers names directly in
 * that namespace, not inner ones; `*` alone covers everything. */
bool access_allows(const struct access_key *key, struct span resource, enum method method);
/* May the key GET whatever there is, and will be? NULL key: it may. */
bool access_reads_all(const struct access_key *key);
/* How many patterns its entries have. */
size_t access_count_resources(const struct access_key *key);
/* The parts of a pattern, `shop.*` or `*`, that the key may GET, whether there is such a resource
 * or not: the pattern itself when it may GET all of it, else patterns and names, folded, in the
 * arena. NULL key: the pattern. */
void access_narrow(const struct access_key *key, struct span pattern, struct arena *a,
                   struct span **out_parts, size_t *out_count);
/* The methods out of `methods` that the key may use on the resource. Svc.Admin.Backup, which holds
 * every secret, is covered by its own name, or by `*` with all methods. */
unsigned access_methods(const struct access_key *key, struct span resource, unsigned methods);
/* The first pattern of `granted` for which `key` lacks a method; the absent span: it has them all.
 */
struct span access_lacks(const struct access_key *key, const struct access_key *granted);

#endif
