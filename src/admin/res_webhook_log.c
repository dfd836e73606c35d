/* Svc.Admin.WebhookLog: one entry an attempt, written by webhook_log (docs/specification.md,
 * section 8). */
#include "admin/builtin.h"
#include "hooks/webhook_log.h"

static const struct resource_ops ops = {.open = NULL};

const struct resource_definition res_webhook_log = {
    .name = SPAN_INIT("Svc.Admin.WebhookLog"),
    .description = SPAN_INIT("Attempts to deliver events, and how they went"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_DELETE),
    .shape = &webhook_log_shape,
    .ops = &ops,
    .is_stored = true,
};
