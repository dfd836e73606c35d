/* Svc.Admin.Error: stored records of failed operations, written by error_log
 * (docs/specification.md, section 5). */
#include "admin/builtin.h"
#include "dispatch/error_log.h"

static const struct resource_ops ops = {.open = NULL};

const struct resource_definition res_error = {
    .name = SPAN_INIT("Svc.Admin.Error"),
    .description = SPAN_INIT("Operations that were aborted because of an error"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_DELETE),
    .shape = &error_log_shape,
    .ops = &ops,
    .is_stored = true,
};
