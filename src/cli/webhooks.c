/* A Label is nobody's alone: it is turned into the Id before anything is changed, so that a change
 * never means two webhooks. */
#include "cli/webhooks.h"

#include "cli/target.h"

int webhook_find(struct cli *cli, struct span typed, struct json_value *out_webhook)
{
    struct span target = target_named(cli->arena, "Svc.Admin.Webhook", "Label", typed);

    target = arena_printf(cli->arena, "%.*s/add=Status", SPAN_FMT(target));
    return client_get_one(cli, target, "webhook", typed, out_webhook);
}

int webhook_id(struct cli *cli, struct span typed, struct span *out_id)
{
    struct json_value webhook;
    int status;

    if (target_is_id(typed)) {
        *out_id = typed;
        return CLI_DONE;
    }
    status = webhook_find(cli, typed, &webhook);
    if (status == CLI_DONE)
        *out_id = client_text(cli, webhook, "Id");
    return status;
}

int webhook_target(struct cli *cli, struct span typed, struct span *out_target)
{
    struct span id;
    int status = webhook_id(cli, typed, &id);

    if (status == CLI_DONE)
        *out_target = arena_printf(cli->arena, "/Svc.Admin.Webhook/Id=%.*s", SPAN_FMT(id));
    return status;
}
