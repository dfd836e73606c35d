/* API keys and their rights (docs/specification.md, section 6). Keys are kept as SHA-256 only and
 * compared in constant time. */
#ifndef REST_ACCESS_H
#define REST_ACCESS_H

#include "base/json.h"
#include "rest/method.h"

struct account;
struct accounts;

enum { ACCESS_TENANT_BYTES = 64 };

struct access_entry {
    struct span *resources; /* folded: `shop.person`, `shop.*`, `*` */
    size_t resource_count;
    unsigned methods; /* bits, closed under "GET brings REPORT and HEAD" */
};

struct access_key {
    struct span name;
    struct span tenant; /* absent: none */
    uint8_t sha256[32];
    struct access_entry *entries;
    size_t entry_count;
    struct account *account; /* NULL while the access belongs to no service */
};

struct access {
    struct accounts *accounts; /* its keys refer to; NULL: it belongs to no service yet */
    bool required;
    struct access_key *keys;
    size_t key_count;
    struct arena memory; /* of all of the above */
};

/* 1 to ACCESS_TENANT_BYTES letters, digits, '_', '-' and '.'. */
bool access_is_tenant(struct span text);
void access_init(struct access *access); /* nothing required, no keys */
void access_done(struct access *access);
/* Takes the keys and rights of `with` over, in place of those that there were; they are on accounts
 * of `access` then. */
void access_replace(struct access *access, struct access *with);
/* Adds a key from its declaration {"Name","KeySha256","Tenant","AllowAccess":[{"Resources",
 * "Methods"}]}. Members match with ASCII case folded and are all required but Tenant. Errors of
 * schema_read, and ERR_INVALID_ENTITY for what is no name, digest or method, or is there already;
 * the message begins with the member's path, and nothing is added. The scratch arena is used while
 * reading only. */
struct err *access_add(struct access *access, struct json_value declaration,
                       struct arena *scratch) MUST_USE;

/* The key of an Authorization value: `apikey <KEY>`, or Basic with the key as password. When none
 * is required and `authorization` is absent: *out_key is NULL, which stands for all rights.
 * ERR_NOT_SIGNED_IN otherwise; the message does not repeat the value. */
struct err *access_sign_in(const struct access *access, struct span authorization, struct arena *a,
                           const struct access_key **out_key) MUST_USE;
/* `resource` is a full name in any case. NULL key: everything. `Ns.*` covers names directly in
 * that namespace, not inner ones; `*` alone covers everything. */
bool access_allows(const struct access_key *key, struct span resource, enum method method);
/* The methods out of `methods` that the key may use on the resource. */
unsigned access_methods(const struct access_key *key, struct span resource, unsigned methods);

#endif
