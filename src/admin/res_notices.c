/* The event resources of notices, which only the server raises (docs/specification.md, section 7).
 */
#include "admin/builtin.h"
#include "hooks/notice.h"

static const struct resource_ops ops = {.open = NULL};

const struct resource_definition res_webhook_paused = {
    .name = SPAN_INIT("Svc.WebhookPaused"),
    .description = SPAN_INIT("The server has paused a webhook"),
    .kind = KIND_EVENT,
    .shape = &notice_webhook_shape,
    .ops = &ops,
};

const struct resource_definition res_webhook_recovered = {
    .name = SPAN_INIT("Svc.WebhookRecovered"),
    .description =
        SPAN_INIT("A webhook delivers again, after the server paused it or a delivery of "
                  "it died"),
    .kind = KIND_EVENT,
    .shape = &notice_webhook_shape,
    .ops = &ops,
};

const struct resource_definition res_delivery_dead = {
    .name = SPAN_INIT("Svc.DeliveryDead"),
    .description = SPAN_INIT("A delivery is given up"),
    .kind = KIND_EVENT,
    .shape = &notice_delivery_shape,
    .ops = &ops,
};
