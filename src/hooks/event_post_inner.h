/* What the files of a POST on Svc.Event share: event_post.c (the service's own forms),
 * event_described.c (what the URI says) and event_cloud.c (CloudEvents). */
#ifndef HOOKS_EVENT_POST_INNER_H
#define HOOKS_EVENT_POST_INNER_H

#include "hooks/event_post.h"
#include "protocol/cloudevents.h"
#include "rest/idempotency.h"

struct event_draft;
struct request;

/* The conditions of a POST describe the event, so that there are no others than these. */
enum described { BY_RESOURCE, BY_CLIENT, BY_TENANT, BY_WEBHOOK, DESCRIBED_COUNT };
extern const struct span event_described_names[DESCRIBED_COUNT];

/* One request: its events are answered in their order. */
struct posting {
    struct hooks *hooks;
    struct call *call;
    struct idempotency idempotency;
    struct span texts[DESCRIBED_COUNT]; /* of the conditions; absent where there is none */
    struct span *answers;               /* room for one; posting_each makes more */
    size_t count;
    uint64_t last_no; /* ObjectNo of the event answered last */
};

/* event_described.c */
/* The texts as they were asked for, absent where nothing was; the condition that confines the call
 * to its tenant is not among them. ERR_INVALID_CONDITION_SYNTAX. */
struct err *event_described_read(const struct call *call,
                                 struct span texts[DESCRIBED_COUNT]) MUST_USE;

/* event_post.c */
/* The event of a payload that is entities: an object, or an array of them. */
struct err *posting_draft_entities(struct call *call, struct resource *resource,
                                   struct json_value payload,
                                   struct event_draft *out_draft) MUST_USE;
/* Of bytes of a media type; absent: of the resource's. */
struct err *posting_draft_bytes(struct call *call, struct resource *resource, struct span type,
                                struct span bytes, struct event_draft *out_draft) MUST_USE;
struct err *posting_answer_repeated(struct posting *p, const struct idempotency_event *event,
                                    struct idempotency_name *out_name, bool *out_repeated) MUST_USE;
/* Raises what was drafted, of the tenant and for the webhook that were sent. */
struct err *posting_raise(struct posting *p, const struct idempotency_event *sent,
                          const struct idempotency_name *name, struct event_draft *draft) MUST_USE;
/* Each of an array, all or none; what one costs besides what asks itself. */
typedef struct err *posting_one_fn(struct posting *p, struct json_value event);
struct err *posting_each(struct posting *p, struct json_value events, posting_one_fn *post,
                         size_t units) MUST_USE;
/* The text of a JSON body without what may stand around it, which the other forms do not have. */
struct span posting_bare_json(struct span body);

/* event_cloud.c */
/* Does the request carry CloudEvents: by its Content-Type, or in header fields? */
bool event_cloud_is_carried(const struct request *request, enum cloudevents_mode *out_mode);
/* Raises what it carries. Of the texts there may be the tenant and the webhook. */
struct err *event_cloud_post(struct posting *p, enum cloudevents_mode mode) MUST_USE;

#endif
