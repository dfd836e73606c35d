/* What a request to Svc.Admin.Webhook keeps between the steps of its evaluation. */
#ifndef WEBHOOK_WEBHOOK_CALL_H
#define WEBHOOK_WEBHOOK_CALL_H

#include "base/arena.h"
#include "rest/call.h"

struct added;
struct made_secret;

struct webhook_call {
    struct added *added; /* webhooks that an account is to get (webhook_account.c) */
    size_t added_count;
    struct made_secret *made; /* secrets that it has made (webhook_signing.c) */
};

static inline struct webhook_call *webhook_call_of(struct call *call)
{
    if (call->own == NULL)
        call->own = ARENA_NEW(call->arena, struct webhook_call);
    return call->own;
}

#endif
