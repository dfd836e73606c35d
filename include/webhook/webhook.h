/* Webhooks: what is derived from a stored one (docs/specification.md, section 8). What a write is
 * checked for is in webhook_write.h. */
#ifndef WEBHOOK_WEBHOOK_H
#define WEBHOOK_WEBHOOK_H

#include "base/list.h"
#include "base/span.h"

struct account;
struct arena;
struct change;
struct entity;
struct json_value;
struct lane;
struct resource;
struct rest;
struct scopes;
struct shape;
struct share;
struct uuid;
struct webhook_lanes;
struct webhook_entry;
struct webhook_owner;
struct webhook_target;

/* Derived from the stored entity; small, because there may be a million. What only an attempt needs
 * is read from the entity's text when it is made (webhook_read). */
struct webhook {
    struct webhook_entry *entries; /* webhook_entry.h */
    uint32_t entry_count;          /* 0: it is detached, or paused and has patterns only */
    bool is_attached;              /* false: some resource that it needs is not there */
    bool has_patterns;
    uint64_t event_seen;    /* the event that it was last found for */
    struct list_link link;  /* among those detached */
    struct list_link owned; /* in its owner's list */
    struct webhook_owner *owner;
    struct entity *entity;
    struct webhook_target *targets; /* NULL when all is remote */
    struct lane *lane;              /* its deliveries; NULL while it has none */
    struct account *account;        /* its tenant's, else its owner's */
    struct share *share;            /* of the deliveries, its account's */
    uint64_t change_no;             /* a change, and the deliveries that are counted for it */
    uint32_t change_deliveries;
    uint16_t change_deaths; /* of that change, at once */
    bool is_paused;
    bool holds_secrets; /* its text may: it is to be masked */
};
enum { WEBHOOK_DEATHS_MOST = UINT16_MAX };

struct webhooks;
/* `lanes` is borrowed. */
struct webhooks *webhooks_new(struct rest *rest, const struct webhook_lanes *lanes);
void webhooks_free(struct webhooks *w);
struct webhook *webhook_find(const struct webhooks *w, const struct uuid *id);
/* Those of them that have patterns. */
struct scopes *webhooks_scopes(const struct webhooks *w);
/* Is there a selector, of one that is not paused, that covers this resource? */
bool webhook_selects(const struct webhook *w, const struct resource *event);
/* The texts of its selectors, and in *out_member the member that they are in; in the arena. */
size_t webhook_selectors(struct json_value webhook, struct arena *a, struct span **out_texts,
                         struct span *out_member);

/* The resource is about to change or to go: everything that refers to it is detached, and matches
 * nothing until webhooks_settle has looked at it again. */
void webhooks_detach(struct webhooks *w, struct resource *resource);
/* Keys of this name, or, absent, any, have changed, or their rights have: detaches those webhooks
 * that wait for events and whose owner is gone or may not GET them any more. Says whether
 * webhooks_settle is to be called. */
bool webhooks_detach_unowned(struct webhooks *w, struct span name);
/* Of its entity, as it is stored: when it was changed last, and when it was made. */
uint64_t webhook_version(const struct webhook *w);
uint64_t webhook_object_no(const struct webhook *w);
/* The tenant of a webhook; empty: none. */
struct span webhook_tenant(const struct webhook *w);
/* Attaches what was detached, by the resources and keys as they are now. Webhooks that fit no
 * longer are paused, with an ErrorMessage, in one change, whose serial an answer must wait for.
 * Errors of turn_apply: they then stay detached until the next time. */
struct err *webhooks_settle(struct webhooks *w, struct arena *a, uint64_t *out_serial) MUST_USE;

/* The table of a webhook's properties, and of what is stored beside them and never shown. */
extern const struct shape webhook_shape, webhook_stored_shape;
/* Adds to a change: pauses the webhook with this ErrorMessage. */
void webhook_pause(const struct webhook *w, struct span why, struct change *change);

#endif
