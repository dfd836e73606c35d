/* The OpenAPI document of Svc.OpenApi while it is written (docs/specification.md, section 10). Its
 * parts follow the registry, and the tables that requests are read and checked by: a part of
 * res_openapi.c, in files by what they write. */
#ifndef ADMIN_OPENAPI_H
#define ADMIN_OPENAPI_H

#include "rest/call.h"
#include "rest/resource.h"

struct buf;

struct openapi {
    struct call *call;
    struct buf *out;   /* the answer's body */
    size_t budgeted;   /* so much of it is on the budget already */
    unsigned methods;  /* all that the key may use on some resource of entities */
    bool has_safepost; /* some POST takes it */
    bool has_asking;   /* some POST asks as a GET does */
    bool raises_events;
    bool has_events; /* the key may use some event resource */
    bool has_entity_events, has_binary_events;
};

/* What of a resource the key may use, as the document has it. */
struct openapi_resource {
    const struct resource *resource;
    unsigned methods;
    bool is_stored; /* its entities are found by their Id */
    bool asks;      /* its POST changes nothing and stores nothing */
};

/* The next resource that the key may use, in the order of their names; `*place` is 0 at first.
 * False at the end, and when the budget says to stop. */
bool openapi_next(struct openapi *d, size_t *place, struct openapi_resource *out_resource);
/* Goes on, as far as the budget is concerned, which is told of what has been written. */
bool openapi_may_go_on(struct openapi *d);

/* The members `paths` and `webhooks`. */
void openapi_add_paths(struct openapi *d);
void openapi_add_webhooks(struct openapi *d);
/* Members of `components.parameters`: what the paths refer to, and the webhooks. */
void openapi_add_parameters(struct openapi *d);
void openapi_add_headers(struct openapi *d); /* of components.headers */
void openapi_add_webhook_parameters(struct openapi *d);

/* Of the schemas of one resource. No resource can be declared that is called as one of them. */
enum openapi_schema {
    OPENAPI_ANSWER,  /* as it is shown: `Shop.Person` */
    OPENAPI_INPUT,   /* as POST and PUT take it: `Svc.Input.Shop.Person` */
    OPENAPI_PATCH,   /* as PATCH does: `Svc.Patch.Shop.Person` */
    OPENAPI_PAYLOAD, /* of an event resource: `Svc.Payload.Shop.PersonCreated` */
};
void openapi_add_reference(struct openapi *d, enum openapi_schema schema, struct span resource);
/* Does the document have this schema of the resource? */
bool openapi_has(const struct openapi_resource *r, enum openapi_schema schema);
/* The member `components.schemas`. */
void openapi_add_schemas(struct openapi *d);

/* The member `example` of a body that the method takes, where there is one that can be sent as it
 * stands. */
void openapi_add_example(struct openapi *d, const struct openapi_resource *r, enum method method);
#endif
