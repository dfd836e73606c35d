/* The built-in resources. A new one is one file, res_<name>.c, and one line here; those of notices
 * are where notices are raised (hooks/notice.h). The order is that in which their collections are
 * told of a replay: what others refer to comes first. */
#ifndef ADMIN_BUILTIN_H
#define ADMIN_BUILTIN_H

#include "resource/resource.h"
#include "rest/call.h"

struct hooks;
struct service;

#define BUILTIN_RESOURCES(X)                                                                       \
    X(res_api_key)                                                                                 \
    X(res_resource)                                                                                \
    X(res_available_resource)                                                                      \
    X(res_aggregator)                                                                              \
    X(res_echo)                                                                                    \
    X(res_explain)                                                                                 \
    X(res_event)                                                                                   \
    X(notice_webhook_paused)                                                                       \
    X(notice_webhook_recovered)                                                                    \
    X(notice_delivery_dead)                                                                        \
    X(res_error)                                                                                   \
    X(res_error_code)                                                                              \
    X(res_webhook)                                                                                 \
    X(res_webhook_log)                                                                             \
    X(res_delivery)                                                                                \
    X(res_backup)                                                                                  \
    X(res_metrics)                                                                                 \
    X(res_health)                                                                                  \
    X(res_limit)                                                                                   \
    X(res_openapi)                                                                                 \
    X(res_console)

#define BUILTIN_AS_EXTERN(definition) extern const struct resource_definition definition;
BUILTIN_RESOURCES(BUILTIN_AS_EXTERN)
#undef BUILTIN_AS_EXTERN

/* On a node of a cluster besides. */
extern const struct resource_definition res_node;

/* Adds all but the latter to the service's registry. */
struct err *builtin_add_all(struct service *s) MUST_USE;

/* For rest.answer_page. */
void console_answer(struct call *call, struct span path);

/* Whose resource the call is about: for the ops of built-in ones. */
static inline struct service *service_of(const struct call *call)
{
    return call->resource->context;
}

/* What its events, webhooks and deliveries need. */
struct hooks *hooks_of(const struct call *call);
/* The same for ops that get the context of their resource. */
struct hooks *hooks_of_service(struct service *s);
/* resource_ops.apply of what streams show: they are told what is gone. */
struct err *builtin_apply_forgotten(struct call *call) MUST_USE;

#endif
