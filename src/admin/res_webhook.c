/* Svc.Admin.Webhook: the stored definitions that turn events into outgoing requests
 * (docs/specification.md, section 8). The table of properties is in webhook_shape.c, the checks in
 * webhook_check.c.
 */
#include "admin/builtin.h"
#include "admin/service.h"
#include "hooks/webhook.h"
#include "store/entity.h"

/* Status, the only one. */
static void add_hidden(const struct call *call, const struct entity *entity,
                       const struct property *property, struct buf *b)
{
    (void)property;
    webhook_add_status(&service_of(call)->hooks, entity->attached, b);
}

static struct err *check(struct call *call, struct draft *draft, const struct entity *old)
{
    TRY(webhook_check(service_of(call)->hooks.egress, call, draft, old));
    webhook_note_account(call, draft, old);
    return NULL;
}

static struct err *apply(struct call *call)
{
    TRY(webhook_check_accounts(call));
    return call_apply(call);
}

static bool holds_secrets(const struct entity *entity)
{
    const struct webhook *w = entity->attached;

    return w == NULL || w->holds_secrets; /* a copy, as of an earlier moment, has no webhook */
}

static const struct resource_ops ops = {
    .check = check,
    .apply = apply,
    .answer = webhook_add_answer,
    .has_made = webhook_made_secrets,
    .holds_secrets = holds_secrets,
    .hidden = add_hidden,
    .stored_shape = &webhook_stored_shape,
};

const struct resource_definition res_webhook = {
    .name = SPAN_INIT("Svc.Admin.Webhook"),
    .description = SPAN_INIT("Webhooks: requests that are sent when events match a selector"),
    .kind = KIND_ENTITY,
    .methods = METHODS_ALL,
    .shape = &webhook_shape,
    .ops = &ops,
    .is_stored = true,
};
