/* Webhooks: the checks at every write, and what is derived from a stored one
 * (docs/specification.md, section 8). */
#ifndef WEBHOOK_WEBHOOK_H
#define WEBHOOK_WEBHOOK_H

#include "base/list.h"
#include "base/span.h"
#include "match/matcher.h"
#include "protocol/method.h"

struct egress_rules;
struct access_key;
struct account;
struct call;
struct change;
struct collection;
struct conditions;
struct draft;
struct entity;
struct lane;
struct resource;
struct resources;
struct rest;
struct scope;
struct scopes;
struct shape;
struct share;
struct uri;
struct uuid;
struct webhook_lanes;
struct webhook_owner;

/* A resource that the webhook's requests go to: a local Destination, a CustomPayloadRequest. */
struct webhook_target {
    struct list_link link; /* in the resource's referrers */
    struct resource *resource;
    struct webhook *webhook;
};
enum { WEBHOOK_TARGETS_MOST = 2 };

/* What events are found by: a selector of one resource, or a part of a pattern that the webhook's
 * owner may read. */
struct webhook_entry {
    struct matcher_entry entry; /* in a matcher, unless the webhook is paused */
    struct list_link link;      /* in the resource's referrers */
    struct webhook *webhook;
    struct resource *resource; /* NULL: it has a scope */
    struct scope *scope;
    bool is_filtered; /* the owner's right is asked for with each event */
};
enum { WEBHOOK_SELECTORS_MOST = 64 };

/* Derived from the stored entity; small, because there may be a million. What only an attempt needs
 * is read from the entity's text when it is made (webhook_read). */
struct webhook {
    struct webhook_entry one;      /* most have a single entry */
    struct webhook_entry *entries; /* that one, or several of their own */
    uint32_t entry_count;          /* 0: it is detached, or paused and has patterns only */
    bool is_attached;              /* false: some resource that it needs is not there */
    bool has_patterns;
    uint64_t event_seen;    /* the event that it was last found for */
    struct list_link link;  /* among those detached */
    struct list_link owned; /* in its owner's list */
    struct webhook_owner *owner;
    struct entity *entity;
    struct webhook_target *targets; /* WEBHOOK_TARGETS_MOST, or NULL when all is remote */
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
/* The tenant of a webhook; empty: none. */
struct span webhook_tenant(const struct webhook *w);
/* Attaches what was detached, by the resources and keys as they are now. Webhooks that fit no
 * longer are paused, with an ErrorMessage, in one change, whose serial an answer must wait for.
 * Errors of turn_apply: they then stay detached until the next time. */
struct err *webhooks_settle(struct webhooks *w, struct arena *a, uint64_t *out_serial) MUST_USE;

/* The table of a webhook's properties, and of what is stored beside them and never shown. */
extern const struct shape webhook_shape, webhook_stored_shape;
/* For resource_ops.check of Svc.Admin.Webhook. Each error is 400 and names the member, but for
 * ERR_TOO_MANY_REQUESTS: a wrong key in Headers.Authorization counts as a failed sign-in. */
struct err *webhook_check(const struct egress_rules *egress, const struct webhook_lanes *lanes,
                          struct call *call, struct draft *draft,
                          const struct entity *old) MUST_USE;
/* The resource that a local target leads to, which must have the method. Errors of uri_parse and
 * resource_find; ERR_INVALID_ENTITY. */
struct err *webhook_find_target(const struct resources *resources, struct span target,
                                enum method method, const struct access_key *key,
                                size_t max_conditions, struct arena *a, struct uri *out_uri,
                                struct resource **out_resource) MUST_USE;
/* What its Format and Verify need: a CloudEventsSource (`source`; its host: `origin`); and, as
 * CloudEvents, data that is JSON or bytes; of Verify, a host that is asked. For a draft that has
 * passed webhook_check. Each error is 400 and names the member. */
struct err *webhook_check_cloud(struct span source, struct span origin, struct call *call,
                                const struct draft *draft) MUST_USE;
/* Limits.AccountWebhooks. Notes a draft that has passed webhook_check, if it is one more of its
 * account; and looks at all that the request adds, before it is carried out: ERR_CONFLICT. */
void webhook_note_account(struct call *call, const struct draft *draft, const struct entity *old);
struct err *webhook_check_accounts(const struct call *call) MUST_USE;
/* Stored secrets do not travel: `kept`, the paths of those that a write keeps, may go along with
 * what leads elsewhere only when the one who writes is the webhook's owner and has written them.
 * ERR_INVALID_ENTITY names them. */
struct err *webhook_check_kept(bool are_own, bool leads_elsewhere, struct span kept) MUST_USE;

/* Has the request made secrets, which are shown in its answer and never again? */
bool webhook_made_secrets(const struct call *call);
/* Appends a stored webhook as the answer to that request shows it. */
void webhook_add_answer(struct call *call, struct span json, struct buf *b);

/* Adds to a change: pauses the webhook with this ErrorMessage. */
void webhook_pause(const struct webhook *w, struct span why, struct change *change);

#endif
