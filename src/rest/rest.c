/* What requests are evaluated with, set up and taken down in reverse. */
#include "rest/rest.h"

#include "base/fiber.h"
#include "base/mem.h"
#include "rest/access.h"
#include "rest/clients.h"
#include "rest/evaluation.h"
#include "rest/resource.h"

void rest_init(struct rest *rest, const struct rest_options *options)
{
    *rest = (struct rest){
        .loop = options->loop,
        .store = options->store,
        .turn = options->turn,
        .limits = options->limits,
        .metrics = options->metrics,
        .access = NEW(struct access),
        .clients = clients_new(options->loop, options->limits),
        .resources = NEW(struct resources),
        .evaluations = NEW(struct evaluations),
        .base_path = options->base_path,
        .cors_origins = options->cors_origins,
    };
    access_init(rest->access);
    resources_init(rest->resources);
    evaluations_init(rest->evaluations, rest->loop);
}

void rest_done(struct rest *rest)
{
    resources_done(rest->resources);
    clients_free(rest->clients);
    access_done(rest->access);
    mem_free(rest->evaluations);
    fiber_forget_stacks();
    mem_free(rest->resources);
    mem_free(rest->access);
}

static void free_access(void *access)
{
    access_done(access);
    mem_free(access);
}

void rest_set_access(struct rest *rest, struct access *access)
{
    struct access *was = NEW(struct access);

    *was = *rest->access;
    *rest->access = *access;
    access_init(access);
    fiber_retire(free_access, was);
}
