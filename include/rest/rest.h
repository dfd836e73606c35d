/* What the evaluation of requests needs, in one place: who may ask, what there is to be asked, and
 * where changes go. The service sets it up (admin/service.h); everything it points to outlives it.
 *
 * This floor knows nothing of webhooks: whoever has to hear of changes observes them. */
#ifndef REST_REST_H
#define REST_REST_H

#include "base/span.h"
#include "rest/method.h"

#include <stdint.h>

struct access;
struct arena;
struct call;
struct clients;
struct evaluations;
struct limits;
struct loop;
struct metrics;
struct resource;
struct resources;
struct store;
struct turn;

/* What changes, from METHOD_POST (new), METHOD_PATCH (changed), METHOD_DELETE (gone). */
struct rest_observer {
    void *context;
    /* An entity of a declared resource is stored: adds to call->change what follows from it. `verb`
     * and `json` as in resource_ops.stored. An error ends the request. */
    struct err *(*entity_stored)(void *context, struct call *call, enum method verb,
                                 struct span json);
    /* A record of an error is stored. */
    void (*error_stored)(void *context);
    /* The resource is about to change or to go, or the entities that its payloads consist of. */
    void (*resource_changing)(void *context, struct resource *resource);
    /* A change of declarations is complete. *out_serial is what an answer must wait for. */
    struct err *(*resources_changed)(void *context, struct arena *a, uint64_t *out_serial);
};

struct rest_options {
    struct loop *loop;
    struct store *store;
    struct turn *turn;
    const struct limits *limits;
    struct metrics *metrics;   /* counts what happens */
    struct span base_path;     /* "/" or "/x" */
    const char **cors_origins; /* NULL-terminated; NULL: none */
};

struct rest {
    struct loop *loop;
    struct store *store;
    struct turn *turn;
    const struct limits *limits;
    struct metrics *metrics;
    struct access *access;
    struct clients *clients;
    struct resources *resources;
    struct evaluations *evaluations;
    struct span base_path;
    const char **cors_origins;
    struct rest_observer observer; /* members may be NULL */
};

/* No resources, no keys, nobody who observes. What the options point to is borrowed. */
void rest_init(struct rest *rest, const struct rest_options *options);
/* Frees declared and built-in resources; the store's entities are still there. */
void rest_done(struct rest *rest);
/* Takes the keys and rights over, in place of those that there were. A request that is under way on
 * a fiber keeps those that it began with. */
void rest_set_access(struct rest *rest, struct access *access);

#endif
