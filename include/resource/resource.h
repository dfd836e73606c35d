/* The registry of resources: built-in ones, and those that the application declares
 * (docs/specification.md, sections 1 and 7). Names are found in full or by any dot-delimited suffix
 * that belongs to one.
 *
 * Declarations are the entities of Svc.Admin.Resource (declaration.h); what is here is derived from
 * them. Resources refer to one another by name, so that they may be put in any order. */
#ifndef RESOURCE_RESOURCE_H
#define RESOURCE_RESOURCE_H

#include "base/arena.h"
#include "protocol/method.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_key;
struct json_value;
struct map;
struct referrers;
struct blob;
struct buf;
struct call;
struct change;
struct collection;
struct draft;
struct entity;
struct err;
struct matchers;
struct property;
struct query;
struct shape;
struct store;
struct stream_source;
struct turn;
struct uri;

enum resource_kind { KIND_ENTITY, KIND_EVENT, KIND_BINARY, KIND_COUNT };
extern const struct enumeration resource_kind_names; /* EntityResource, EventResource, ... */

/* What a resource does its own way. Every member may be NULL: then crud.h does it, on the
 * resource's collection. Errors end the request; nothing has been changed then. */
struct resource_ops {
    /* Entities that are in no collection: fills call->source. For GET, REPORT, HEAD, and for what
     * PATCH and DELETE select from. */
    struct err *(*open)(struct call *call);
    /* How many objects of `open`'s, or of the collection, the conditions find, when that is known
     * without reading each one's text; else false. */
    bool (*count)(struct call *call, size_t *out_count);
    /* Checks and normalises what is about to be stored; `old` is NULL for an insert. */
    struct err *(*check)(struct call *call, struct draft *draft, const struct entity *old);
    /* Adds further records to call->change, after the entity's own. `verb` is METHOD_POST for an
     * insert, METHOD_PATCH for an update, METHOD_DELETE for a deletion; `json` is the new text (the
     * old one for a deletion). */
    struct err *(*stored)(struct call *call, enum method verb, struct span json);
    /* Whole methods. */
    struct err *(*get)(struct call *call);
    struct err *(*post)(struct call *call);
    struct err *(*patch)(struct call *call);
    /* DELETE of one object of `open`'s: adds the record to the change. */
    void (*forget)(struct change *change, const void *object);
    /* Carries call->change out, which is complete: for checks of a request as a whole, and for what
     * follows from it. NULL: crud_apply. */
    struct err *(*apply)(struct call *call);
    /* That is more than one change, or more than what is stored changes with it: from there to the
     * request's end all is done in one turn. There are few of these entities. */
    bool changes_at_once;
    /* Objects of `open`'s stay as they are as long as they are there: their ObjectNo is their ETag.
     */
    bool never_changes;
    /* The version of an object of `open`'s, which then opens a struct rendered: for the ETag of
     * what may look again as it did before. NULL: its text tells all. */
    uint64_t (*version)(const void *object);
    /* The method POST reads the body itself, whatever its Content-Type. */
    bool reads_raw_body;
    /* Conditions of a POST that could not be read: says so where they are none that it takes. NULL:
     * what could not be read says all. */
    struct err *(*check_post)(const struct uri *uri);
    /* Another node of the cluster may GET it for itself. */
    bool is_for_nodes;
    /* Sent to who asks over HTTP, and not to what the service asks of itself. */
    bool is_for_clients;
    /* POST asks as GET does, and changes nothing: for clients that send no body with a GET. */
    bool post_asks;
    /* Methods that change nothing, or the node's own affair alone, though methods of that name may:
     * with those that only read, and a POST that asks, they are carried out by the node of a
     * cluster that they come to (resource_may_change). */
    unsigned node_methods;
    /* Methods that are the leader's, and are carried out by the node that they come to while no
     * leader is known: they are about nodes, and no record comes of them. */
    unsigned unled_methods;
    /* PATCH may begin what ends later, and answers 202 then. */
    bool begins;
    /* What is stored, where that is more than the resource's shape, which is all that is shown. Its
     * properties come after those. */
    const struct shape *stored_shape;
    /* Appends what the answer to a POST shows of an entity that it stored, whatever the client
     * prefers: what is shown but once. */
    void (*answer)(struct call *call, struct span json, struct buf *b);
    /* Properties that answers show: to a POST, besides those of the shape; or in their place, where
     * POST asks or the resource is binary, whose answer is one object then. NULL: none. */
    const struct shape *answered;
    /* Has the request, whatever its method, made what is shown but once? Only then `answer` is
     * asked, also for a key that may not GET the resource. NULL: each POST has. */
    bool (*has_made)(const struct call *call);
    /* Appends the entity as this key, which may not GET everything, may see it, by its rights on
     * other resources. `context` is the resource's. NULL: as it is. */
    void (*limit)(void *context, const struct access_key *key, struct buf *b, struct span json,
                  struct arena *a);
    /* Its entities may hold secrets, which are written and never shown (access/mask.h): does this
     * one that is stored? NULL: none does. */
    bool (*holds_secrets)(const struct entity *entity);
    /* Appends the value of a PROPERTY_HIDDEN of a stored entity as JSON, for `add`. */
    void (*hidden)(const struct call *call, const struct entity *entity,
                   const struct property *property, struct buf *b);
    /* What is new can be streamed (rest/stream.h). NULL: it cannot. */
    const struct stream_source *stream;
};

/* A built-in resource. */
struct resource_definition {
    struct span name;
    struct span description;
    enum resource_kind kind;
    unsigned methods;
    const struct shape *shape;
    const struct resource_ops *ops;
    bool is_stored;           /* has a collection */
    struct span content_type; /* of a binary resource */
};

struct resource {
    struct span name; /* full, declared spelling */
    struct span folded;
    struct span description;
    enum resource_kind kind;
    unsigned methods; /* closed under "GET brings REPORT and HEAD"; 0 for event resources */
    const struct shape *shape;
    const struct resource_ops *ops;
    void *context;                 /* what the ops of a built-in one work on */
    struct collection *collection; /* NULL when it stores nothing */
    struct referrers *referrers;
    /* Declared ones. */
    struct arena arena;               /* what the following points into */
    const struct entity *declaration; /* NULL: built in */
    bool is_configured;               /* declared by the configuration, not at run time */
    uint64_t shape_since;   /* entities of an older version are in the form of an older shape */
    struct span properties; /* JSON text of the declaration's member, or absent */
    struct span events[3];  /* full names: Inserted, Updated, Deleted; or absent */
    struct span *indexes;
    size_t index_count;
    /* Event resources. */
    struct matchers *matchers;
    struct span payload_resource; /* name, or absent */
    struct span cloudevents_type; /* what it is called as a CloudEvent; absent: by its name */
    bool is_binary_event;
    struct span content_type; /* of a binary resource, or of a binary event */
    struct span file;         /* of a binary resource: where its content is; or absent */
    struct blob *content;     /* of a binary resource */
};

enum resource_event { EVENT_INSERTED, EVENT_UPDATED, EVENT_DELETED };

/* Who hears of declared resources. Members may be NULL. */
struct resources_observer {
    void *context;
    /* The resource is about to change or to go, or the entities that its payloads consist of. */
    void (*changing)(void *context, struct resource *resource);
    /* A change of declarations is complete. *out_serial is what an answer must wait for. */
    struct err *(*changed)(void *context, struct arena *a, uint64_t *out_serial);
};

struct resources {
    struct store *store;
    struct turn *turn;
    struct map *by_suffix;    /* struct suffix: of full names, or such a name */
    struct map *by_type;      /* struct resource, by cloudevents_type */
    struct resource **sorted; /* by name */
    size_t count;
    uint64_t changes; /* so often was one put, or removed */
    /* What declared ones do their own way, by kind: entities that raise events, events, bytes. At
     * first: nothing. */
    const struct resource_ops *declared_ops[KIND_COUNT];
    struct resources_observer observer;
};

/* None, in that store. Without a store and a turn (NULL) nothing can be declared. */
void resources_init(struct resources *r, struct store *store, struct turn *turn);
/* Frees declared and built-in resources alike. */
void resources_done(struct resources *r);
/* Adds a built-in one. */
struct resource *resources_add_builtin(struct resources *r,
                                       const struct resource_definition *definition, void *context);
/* Adds what resource_make made, or replaces the declared resource of that name and kind, which
 * keeps its identity, its matchers, its referrers and its collection. Takes `made` over. */
struct resource *resources_put(struct resources *r, struct resource *made);
/* Frees a declared one. Nothing refers to it any more. */
void resources_remove(struct resources *r, struct resource *resource);

/* All methods that come with these for a resource of this kind. */
unsigned resource_methods(enum resource_kind kind, unsigned methods);
/* An empty one to be made; resource_free takes NULL too. */
struct resource *resource_new(void);
void resource_free(struct resource *resource);
/* Decodes a declaration, an entity of Svc.Admin.Resource. What it keeps is copied into out->arena.
 * References to other resources are not looked at; a File is not read. Errors ERR_INVALID_ENTITY,
 * ERR_INVALID_ENUM_VALUE, ERR_UNKNOWN_MEMBER; the messages name the member. */
struct err *resource_make(struct json_value declaration, struct arena *scratch,
                          struct resource *out) MUST_USE;

/* The resource of that full name; else the built-in one, else the declared one that ends in it.
 * ERR_UNKNOWN_RESOURCE `Svc could not locate any resource by '<name>'.`, ERR_AMBIGUOUS_RESOURCE
 * lists the candidates that `key` may see. */
struct err *resource_find(const struct resources *r, struct span name, const struct access_key *key,
                          struct resource **out_resource) MUST_USE;
/* May the method change something that the nodes of a cluster share? Then it is the leader's. By
 * the definition alone; NULL, a resource that is not known here: by the method. */
bool resource_may_change(const struct resource *resource, enum method method);
/* May the key use it for anything? NULL: everything. */
bool resource_is_visible(const struct resource *resource, const struct access_key *key);
/* query_parse of what is asked of the resource. A binary one is bytes, of which nothing can be
 * chosen: ERR_INVALID_CONDITION_SYNTAX and ERR_INVALID_META_SYNTAX for anything that tries. */
struct err *resource_parse_query(const struct resource *resource, const struct uri *uri,
                                 struct arena *a, struct query *out_query) MUST_USE;
/* The event resource with that cloudevents_type; NULL when there is none. */
struct resource *resource_of_type(const struct resources *r, struct span type);
/* By exact full name, any case; NULL when there is none. */
struct resource *resource_named(const struct resources *r, struct span name);
/* A built-in one that has this folded name, or ends in it after a dot; NULL when there is none. */
const struct resource *resource_builtin_ending(const struct resources *r, struct span folded);
/* The shape of an event resource's payloads: of its Payload's resource, else of its own Properties;
 * dynamic when neither is declared. */
const struct shape *resource_payload_shape(const struct resources *r, const struct resource *event);

#endif
