/* The document while it is written, shared by the files of the floor, which are divided by what
 * they write. */
#ifndef OPENAPI_OPENAPI_INNER_H
#define OPENAPI_OPENAPI_INNER_H

#include "openapi/openapi.h"

#include "base/span.h"
#include "protocol/method.h"

struct resource;

struct openapi {
    struct call *call;
    struct buf *out;
    size_t budgeted;   /* so much of it is on the budget already */
    unsigned methods;  /* all that the key may use on some resource of entities */
    bool has_safepost; /* some POST takes it */
    bool has_asking;   /* some POST asks as a GET does */
    bool raises_events;
    bool has_webhooks;                  /* the key may use some event resource */
    bool has_events;                    /* it may raise some event */
    const struct resource *first_event; /* with entities, one that the key may raise if there is
                                           any; NULL: there is none */
    size_t binary_event_count;
    struct span *names; /* of all resources that the key may use, as generators see them; sorted */
    size_t name_count;
};

/* What of a resource the key may use, as the document has it. */
struct openapi_resource {
    const struct resource *resource;
    unsigned methods;
    unsigned shown; /* those whose answers show entities */
    bool is_stored; /* its entities are found by their Id */
    bool asks;      /* its POST changes nothing and stores nothing */
};

/* The next resource that the key may use, in the order of their names; `*place` is 0 at first.
 * False at the end, and when the budget says to stop. */
bool openapi_next(struct openapi *d, size_t *place, struct openapi_resource *out_resource);
/* Goes on, as far as the budget is concerned, which is told of what has been written. */
bool openapi_may_go_on(struct openapi *d);
/* Is it raised by requests? Notices are the server's own. */
bool openapi_is_raised(const struct resource *event);

/* Takes down what resources are called. */
void openapi_look_at_names(struct openapi *d);
/* What makes names out of this one unlike those out of others; often nothing. */
struct span openapi_mark(const struct openapi *d, struct span name);

/* The members `paths` and `webhooks`. */
void openapi_add_paths(struct openapi *d);
void openapi_add_webhooks(struct openapi *d);
/* Members of `components.parameters`: what the paths refer to, and the webhooks. */
void openapi_add_parameters(struct openapi *d);
void openapi_add_headers(struct openapi *d); /* of components.headers */
void openapi_add_webhook_parameters(struct openapi *d);
/* One more element: a reference to one of them. */
void openapi_refer_to_parameter(struct buf *b, struct span name);

/* Of the schemas of one resource. No resource can be declared that is called as one of them. */
enum openapi_schema {
    OPENAPI_ANSWER,  /* as it is shown: `Shop.Person` */
    OPENAPI_INPUT,   /* as POST and PUT take it: `Svc.Input.Shop.Person` */
    OPENAPI_PATCH,   /* as PATCH does: `Svc.Patch.Shop.Person` */
    OPENAPI_PAYLOAD, /* of an event resource: `Svc.Payload.Shop.PersonCreated` */
};
/* Its name, with the mark behind `Svc.` where there is one. */
void openapi_add_schema_name(struct openapi *d, enum openapi_schema schema, struct span resource);
void openapi_add_reference(struct openapi *d, enum openapi_schema schema, struct span resource);
/* One, or an array of them. */
void openapi_add_one_or_several(struct openapi *d, enum openapi_schema schema,
                                struct span resource);
/* Does the document have this schema of the resource? */
bool openapi_has(const struct openapi_resource *r, enum openapi_schema schema);
/* The member `components.schemas`. */
void openapi_add_schemas(struct openapi *d);

/* The member `example` of a body that the method takes, where there is one that can be sent as it
 * stands. */
void openapi_add_example(struct openapi *d, const struct openapi_resource *r, enum method method);
/* JSON with its places filled: `%` with the first event resource, `$` with an example of its
 * payload. The absent span when the key may use none that carries entities. */
struct span openapi_event_example(struct openapi *d, const char *json);
/* An array of one entity that the event may carry. */
void openapi_add_payload_example(struct openapi *d, const struct resource *event);

/* cloudevents.c: the parameters of binary mode and references to them, the media types of a
 * body, and the schema that these refer to; all but the media types behind others. */
void openapi_add_cloudevent_parameters(struct openapi *d);
void openapi_refer_to_cloudevent_parameters(struct openapi *d);
void openapi_add_cloudevent_bodies(struct openapi *d);
void openapi_add_cloudevent_schema(struct openapi *d);

/* The member `example` or `examples` of an answer that shows something. */
void openapi_add_answer_example(struct openapi *d, const struct openapi_resource *r,
                                enum method method);
void openapi_add_answer_examples(struct openapi *d); /* of components.examples */
#endif
