/* Svc.Metrics: what the service counts, as Prometheus reads it (protocol.md, section 8). */
#include "admin/builtin.h"
#include "admin/service.h"

static struct err *get(struct call *call)
{
    struct response *response = call->response;

    response->status = 200;
    response->content_type = SPAN("text/plain; version=0.0.4; charset=utf-8");
    metrics_add_text(call->service, &response->body);
    return NULL;
}

static const struct resource_ops ops = {.get = get};

const struct resource_definition res_metrics = {
    .name = SPAN_INIT("Svc.Metrics"),
    .description = SPAN_INIT("Measurements, in the text format of Prometheus"),
    .kind = KIND_BINARY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
