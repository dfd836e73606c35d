/* Whose webhooks are: those of one tenant and one Owner, an API key, kept together, so that a
 * change of keys is a look at each owner and not at what a million webhooks hold
 * (docs/specification.md, section 6). An owner is one certain key: what is called like it later is
 * another. */
#ifndef WEBHOOK_WEBHOOK_OWNER_H
#define WEBHOOK_WEBHOOK_OWNER_H

#include "base/err.h"
#include "base/list.h"

struct access;
struct access_key;
struct resource;
struct webhook_owners;

struct webhook_owner {
    struct list webhooks; /* struct webhook, by its `owned` */
    struct span tenant;   /* empty: none */
    struct span name;     /* empty: made when no key was required */
    struct span identity; /* access_add_identity; empty: stored by a version that kept names only */
    /* What was asked last: may it have the events of this resource? NULL: nothing was. */
    const struct resource *asked;
    bool reads;
};

struct webhook_owners *webhook_owners_new(void);
/* There are none left. NULL is allowed. */
void webhook_owners_free(struct webhook_owners *o);
size_t webhook_owners_count(const struct webhook_owners *o);
/* The one of these texts, which is made when there is none. */
struct webhook_owner *webhook_owner_get(struct webhook_owners *o, struct span tenant,
                                        struct span name, struct span identity);
/* Frees it when it has no webhooks. */
void webhook_owner_put(struct webhook_owners *o, struct webhook_owner *owner);
void webhook_owners_each(const struct webhook_owners *o, void (*visit)(void *owner, void *arg),
                         void *arg);
/* Its key; NULL: it has all rights. ERR_NOT_AUTHORIZED: it is gone, has expired, or is another
 * tenant's. */
struct err *webhook_owner_key(const struct webhook_owner *owner, const struct access *access,
                              const struct access_key **out_key) MUST_USE;
/* Is it this key, whether keys are required or not? NULL is nobody. */
bool webhook_owner_is(const struct webhook_owner *owner, const struct access *access,
                      const struct access_key *key);
/* The same as webhook_owner_check, remembered for the events that follow. */
bool webhook_owner_reads(struct webhook_owner *owner, const struct access *access,
                         const struct resource *event);
/* May its webhooks have the events of this resource? ERR_NOT_AUTHORIZED says why not: the key is
 * gone, or may not GET it. */
struct err *webhook_owner_check(const struct webhook_owner *owner, const struct access *access,
                                const struct resource *event) MUST_USE;

#endif
