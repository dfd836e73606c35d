/* Svc.Admin.Webhook: the stored definitions that turn events into outgoing requests
 * (docs/specification.md, section 8). The table of properties is in webhook_shape.c, the checks in
 * webhook_check.c.
 */
#include "admin/builtin.h"
#include "hooks/hooks.h"
#include "hooks/lane.h"
#include "query/query.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "store/collection.h"
#include "store/entity.h"
#include "webhook/webhook.h"
#include "webhook/webhook_write.h"

/* Status, the only one. */
static void add_hidden(const struct call *call, const struct entity *entity,
                       const struct property *property, struct buf *b)
{
    (void)property;
    (void)call;
    lane_add_status(entity->attached, b);
}

static struct err *check(struct call *call, struct draft *draft, const struct entity *old)
{
    const struct hooks *hooks = hooks_of(call);

    TRY(webhook_check(hooks->egress, hooks->lanes, call, draft, old));
    TRY(webhook_check_cloud(hooks->cloudevents_source, hooks->cloudevents_origin, call, draft));
    webhook_note_account(call, draft, old);
    return NULL;
}

static struct err *apply(struct call *call)
{
    TRY(webhook_check_accounts(call));
    return crud_apply(call);
}

static bool holds_secrets(const struct entity *entity)
{
    const struct webhook *w = entity->attached;

    return w == NULL || w->holds_secrets; /* a copy, as of an earlier moment, has no webhook */
}

/* What pages for people ask first. */
static bool count(struct call *call, size_t *out_count)
{
    if (!lanes_count_states(call->resource->collection, &call->query->conditions, call->arena,
                            out_count))
        return false;
    crud_shows(call, collection_version(call->resource->collection));
    return true;
}

static const struct resource_ops ops = {
    .count = count,
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
