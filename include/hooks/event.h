/* Events: raised once, kept for a while, sent to the webhooks that match. Raising is one record
 * that holds the payload and the matched webhooks: there is no state "stored but not queued". */
#ifndef HOOKS_EVENT_H
#define HOOKS_EVENT_H

#include "base/uuid.h"
#include "store/stored.h"

struct change;
struct hooks;
struct payloads;
/* An event that nobody's local request has raised, and all that descend from it: how many they are.
 * There while the process remembers one of them, or a request on behalf of one is evaluated. */
struct event_chain;

struct event_group;

/* What kept events are told apart by: their tenant, the ClientId that they came with. */
enum event_group_kind { EVENT_TENANT, EVENT_CLIENT, EVENT_GROUPS };

/* Its payload lies beside it: see payload.h. */
struct event {
    struct stored stored;
    struct list_link order;                   /* of the events that are kept, by object_no */
    struct list_link of_group[EVENT_GROUPS];  /* the same, among those of each of its groups */
    struct event_group *groups[EVENT_GROUPS]; /* NULL: it has no such name */
    struct uuid id;
    uint64_t object_no;
    int64_t time_unix_ns;
    struct span resource;     /* full name; in `owned` */
    struct span content_type; /* of a binary payload; in `owned` */
    struct span
        ce; /* attributes of a CloudEvent, an object of JSON; empty: it is none; in `owned` */
    char *owned;
    struct event_chain *chain; /* NULL: it is the first of its own, if there is to be one */
    uint64_t payload_bytes;    /* a JSON array of entities, or the bytes of a binary payload */
    uint32_t webhooks;         /* that it matched when it was raised */
    uint32_t deliveries;       /* that refer to it */
    uint8_t depth;             /* how many events caused one another before it */
    bool is_binary;
    bool is_kept;  /* visible in Svc.Event */
    bool is_known; /* false while a replayed delivery refers to an event not read yet */
};

struct events;

struct events *events_new(struct hooks *hooks);
void events_free(struct events *e);

size_t events_count(const struct events *e); /* kept */
/* Of those that are kept: payloads, in memory or in the journal, and what is known of each. */
uint64_t events_bytes(const struct events *e);
size_t event_bytes(const struct event *event);
struct event *events_find(const struct events *e, const struct uuid *id);
struct event *events_find_no(const struct events *e, uint64_t object_no);
struct event *events_first(const struct events *e);
struct event *events_next(const struct events *e, const struct event *event);
struct event *events_previous(const struct events *e, const struct event *event);
/* The newest one; the first one whose object_no is greater. NULL: there is none. */
struct event *events_last(const struct events *e);
struct event *events_after(const struct events *e, uint64_t object_no);
/* Those of one tenant, or of one ClientId, in the same order. */
struct event *events_first_of(const struct events *e, enum event_group_kind kind, struct span name);
struct event *events_next_of(const struct event *event, enum event_group_kind kind);
struct event *events_last_of(const struct events *e, enum event_group_kind kind, struct span name);
struct event *events_previous_of(const struct event *event, enum event_group_kind kind);
/* Is it one of those that the server itself raises about webhooks (notice.h)? */
bool event_is_notice(const struct event *event);
/* Empty: none. */
struct span event_tenant_name(const struct event *event);
uint64_t events_version(const struct events *e);
/* For deliveries: refers to an event, known or still to come; releases it. */
struct event *event_ref(struct events *e, uint64_t object_no);
void event_unref(struct events *e, struct event *event);
/* The chain that requests on behalf of this event belong to: a new reference. */
struct event_chain *event_chain(struct event *event);
/* NULL is allowed. */
void event_chain_unref(struct event_chain *chain);
/* Where their payloads are. */
struct payloads *events_payloads(struct events *e);
/* Appends the event as the JSON text of a Svc.Event entity: Id, Resource, Time, ContentType,
 * Payload (an array of entities; base64 text for a binary one; null when the journal cannot be
 * read, which is logged), ClientId, Tenant, ce, Webhooks, ObjectNo. */
void event_add_json(struct events *e, struct event *event, struct buf *b);
/* No longer keeps this event: adds the record to a change. What deliveries still need stays. */
void event_forget(struct change *change, const struct event *event);

#endif
