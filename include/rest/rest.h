/* What the evaluation of requests needs, in one place: who may ask, what there is to be asked, and
 * where changes go. The service sets it up (admin/service.h); everything it points to outlives it.
 *
 * This floor knows nothing of webhooks: whoever has to hear of changes observes them. */
#ifndef REST_REST_H
#define REST_REST_H

#include "base/macros.h"
#include "base/span.h"
#include "protocol/method.h"

#include <stdint.h>

struct access;
struct api_keys;
struct account;
struct accounts;
struct arena;
struct call;
struct clients;
struct cluster_view;
struct evaluation;
struct evaluations;
struct handover;
struct limits;
struct loop;
struct mask;
struct metrics;
struct passages;
struct resource;
struct resources;
struct store;
struct streams;
struct turn;

/* What changes, from METHOD_POST (new), METHOD_PATCH (changed), METHOD_DELETE (gone). */
struct rest_observer {
    void *context;
    /* An entity of a declared resource that has Events is stored: adds to call->change what follows
     * from it. `verb` and `json` as in resource_ops.stored. An error ends the request. */
    struct err *(*entity_stored)(void *context, struct call *call, enum method verb,
                                 struct span json);
    /* A record of an error is stored. */
    void (*error_stored)(void *context);
    /* The heap is beyond MemoryBytes: gives back what can be spared, so that a request need not be
     * refused. No change is under way. */
    void (*make_room)(void *context);
    /* Keys of this name are there, have other rights, another tenant or expiry, have expired, or
     * are gone; any keys, when it is absent. *out_serial is what an answer must wait for. */
    struct err *(*keys_changed)(void *context, struct span name, struct arena *a,
                                uint64_t *out_serial);
};

struct rest {
    /* The caller's, there before rest_init. */
    struct loop *loop;
    struct store *store;
    struct turn *turn;
    const struct limits *limits;
    struct metrics *metrics;   /* counts what happens */
    struct span base_path;     /* "/" or "/x" */
    const char **cors_origins; /* NULL-terminated; NULL: none */
    /* Names and addresses without a port that clients may call this server by, besides the loopback
     * ones: NULL-terminated; NULL: any. */
    const char **hosts;
    /* Who may send CloudEvents, by name, or `*`: NULL-terminated; NULL: nobody is told so. */
    const char **cloudevents_origins;
    /* Whether it takes requests; NULL: it does. */
    bool (*is_ready)(const void *context);
    const void *ready_context;
    /* Answers GET and HEAD of `/`, when HTML is asked for, and of what is below `/Svc.Console`
     * (`path`: below the base path) with files that hold no data and need no key. NULL: there are
     * none. */
    void (*answer_page)(struct call *call, struct span path);
    /* What rest_init makes. */
    /* What stands before `/<resource>/...` in targets that clients and nodes follow as they stand:
     * the base path, but for `/`. Svc-pager and ErrorInfo are relative to it instead. */
    struct span prefix;
    struct access *access;
    struct accounts *accounts;
    struct account *everybody; /* of requests without a key */
    struct clients *clients;
    struct resources *resources;
    struct streams *streams;
    struct mask *mask; /* what is secret */
    /* What dispatch_init makes. */
    struct evaluations *evaluations;
    struct api_keys *api_keys;
    struct passages *passages;
    struct handover *handover; /* of a follower's own records */
    /* Set by whom they are. */
    struct evaluation *running; /* what the request that runs now is evaluated in; NULL: it runs on
                                 * the loop's stack */
    struct cluster_view *cluster;  /* cluster_view.h; NULL: the server is alone */
    struct rest_observer observer; /* members may be NULL */
};

/* No resources, no keys, nothing secret but the usual. What the caller's members point to is
 * borrowed. */
void rest_init(struct rest *rest);
/* Frees declared and built-in resources; the store's entities are still there. */
void rest_done(struct rest *rest);
/* Such a target behind the prefix, in the arena. */
struct span rest_link(const struct rest *rest, struct span target, struct arena *a);
/* A new reference to the account that work is on which belongs to a tenant, else to the key of that
 * name, which may be gone; everybody's where both are absent. For what lasts longer than a call,
 * as a webhook does: to be dropped by account_unref(rest->accounts, ...). */
struct account *rest_account_of(struct rest *rest, struct span tenant, struct span owner) MUST_USE;
/* The same without a reference; NULL: nobody refers to it. */
struct account *rest_find_account(struct rest *rest, struct span tenant, struct span owner);

#endif
