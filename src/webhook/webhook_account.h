/* Which webhooks are on whose account, and how many may be. */
#ifndef WEBHOOK_WEBHOOK_ACCOUNT_H
#define WEBHOOK_WEBHOOK_ACCOUNT_H

#include "json/json.h"

struct rest;
struct webhook;

/* The webhook is on the account that its text says: its tenant's, else its owner's. */
void webhook_account_take(struct rest *rest, struct webhook *w, struct json_value json,
                          struct arena *a);
/* It is on none. */
void webhook_account_drop(struct rest *rest, struct webhook *w);

#endif
