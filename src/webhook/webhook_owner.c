/* Owners are found by their texts, none of which has a NUL in it, so that one key stands for all.
 */
#include "webhook/webhook_owner.h"

#include "access/access.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "resource/resource.h"

#include <string.h>

struct webhook_owners {
    struct map by_texts;
    struct buf key; /* scratch */
};

/* Tenant, name and identity stand behind the owner, one after the other, with a NUL between. */
static struct span texts_of(const void *item)
{
    const struct webhook_owner *owner = item;

    return span_of(owner->tenant.p, owner->tenant.n + 1 + owner->name.n + 1 + owner->identity.n);
}

struct webhook_owners *webhook_owners_new(void)
{
    struct webhook_owners *o = NEW(struct webhook_owners);

    map_init(&o->by_texts, texts_of);
    buf_init(&o->key, BUF_NO_CAP);
    return o;
}

void webhook_owners_free(struct webhook_owners *o)
{
    if (o == NULL)
        return;
    MUST(map_count(&o->by_texts) == 0);
    map_done(&o->by_texts);
    buf_done(&o->key);
    mem_free(o);
}

size_t webhook_owners_count(const struct webhook_owners *o)
{
    return map_count(&o->by_texts);
}

static struct webhook_owner *make(struct webhook_owners *o, struct span texts)
{
    struct webhook_owner *owner = mem_alloc(sizeof(*owner) + texts.n);
    char *text = (char *)(owner + 1);
    struct span rest = span_of(text, texts.n);

    memcpy(text, texts.p, texts.n);
    owner->tenant = span_split(&rest, 0);
    owner->name = span_split(&rest, 0);
    owner->identity = rest;
    owner->asked = NULL;
    list_init(&owner->webhooks);
    map_add(&o->by_texts, owner);
    return owner;
}

struct webhook_owner *webhook_owner_get(struct webhook_owners *o, struct span tenant,
                                        struct span name, struct span identity)
{
    struct webhook_owner *owner;

    buf_clear(&o->key);
    buf_add(&o->key, tenant);
    buf_add_char(&o->key, 0);
    buf_add(&o->key, name);
    buf_add_char(&o->key, 0);
    buf_add(&o->key, identity);
    owner = map_find(&o->by_texts, buf_span(&o->key));
    return owner != NULL ? owner : make(o, buf_span(&o->key));
}

void webhook_owner_put(struct webhook_owners *o, struct webhook_owner *owner)
{
    if (!list_empty(&owner->webhooks))
        return;
    map_remove(&o->by_texts, texts_of(owner));
    mem_free(owner);
}

void webhook_owners_each(const struct webhook_owners *o, void (*visit)(void *owner, void *arg),
                         void *arg)
{
    map_each(&o->by_texts, visit, arg);
}

static const struct access_key *find_key(const struct webhook_owner *owner,
                                         const struct access *access)
{
    return owner->identity.n > 0 ? access_find_identical(access, owner->identity)
                                 : access_find_named(access, owner->tenant, owner->name);
}

bool webhook_owner_is(const struct webhook_owner *owner, const struct access *access,
                      const struct access_key *key)
{
    return key != NULL && owner->name.n > 0 && find_key(owner, access) == key;
}

struct err *webhook_owner_key(const struct webhook_owner *owner, const struct access *access,
                              const struct access_key **out_key)
{
    const struct access_key *key = NULL;

    if (access_requires_key(access) && owner->name.n > 0) {
        key = find_key(owner, access);
        if (key == NULL)
            return ERR(ERR_NOT_AUTHORIZED, "Owner: there is no API key '%.*s' any more",
                       SPAN_FMT(owner->name));
        if (access_has_expired(key))
            return ERR(ERR_NOT_AUTHORIZED, "Owner: the API key '%.*s' has expired",
                       SPAN_FMT(owner->name));
        if (key->tenant.n > 0 && !span_eq(key->tenant, owner->tenant))
            return ERR(ERR_NOT_AUTHORIZED, "Owner: the API key '%.*s' is another tenant's",
                       SPAN_FMT(owner->name));
    }
    *out_key = key;
    return NULL;
}

struct err *webhook_owner_check(const struct webhook_owner *owner, const struct access *access,
                                const struct resource *event)
{
    const struct access_key *key;

    TRY(webhook_owner_key(owner, access, &key));
    if (access_allows(key, event->name, METHOD_GET))
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "Owner: the API key '%.*s' may not GET '%.*s'",
               SPAN_FMT(owner->name), SPAN_FMT(event->name));
}

bool webhook_owner_reads(struct webhook_owner *owner, const struct access *access,
                         const struct resource *event)
{
    struct err *e;

    if (owner->asked == event)
        return owner->reads;
    e = webhook_owner_check(owner, access, event);
    owner->asked = event;
    owner->reads = e == NULL;
    err_free(e);
    return owner->reads;
}
