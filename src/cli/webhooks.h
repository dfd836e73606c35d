/* Webhooks by what people call them. */
#ifndef CLI_WEBHOOKS_H
#define CLI_WEBHOOKS_H

#include "cli/client.h"

/* Its entity, by Id or Label; what there is not, or several are called, has been told. */
int webhook_find(struct cli *cli, struct span typed, struct json_value *out_webhook);
/* Its Id; only a Label is looked up. */
int webhook_id(struct cli *cli, struct span typed, struct span *out_id);
/* The target of the one webhook that was typed: `/Svc.Admin.Webhook/Id=...`. */
int webhook_target(struct cli *cli, struct span typed, struct span *out_target);

#endif
