/* An account has a number of webhooks at most. What a request adds is counted when all of it is
 * known: it may insert many, for several tenants, and be refused in the end. */
#include "webhook/webhook_account.h"

#include "access/account.h"
#include "base/limits.h"
#include "protocol/schema.h"
#include "rest/call.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "webhook/webhook.h"
#include "webhook/webhook_call.h"
#include "webhook/webhook_draft.h"
#include "webhook/webhook_write.h"

#include <stdlib.h>

void webhook_account_drop(struct rest *rest, struct webhook *w)
{
    if (w->account == NULL)
        return;
    w->account->webhooks--;
    account_unref(rest->accounts, w->account);
    w->account = NULL;
}

void webhook_account_take(struct rest *rest, struct webhook *w, struct json_value json,
                          struct arena *a)
{
    struct account *account =
        rest_account_of(rest, json_string(json_member(json, SPAN("Tenant")), a),
                        json_string(json_member(json, SPAN("Owner")), a));

    account->webhooks++;
    webhook_account_drop(rest, w);
    w->account = account;
}

/* ---- what a request adds ---- */

struct added {
    struct added *next;
    struct span tenant, owner;
};

void webhook_note_account(struct call *call, const struct draft *draft, const struct entity *old)
{
    struct arena *a = call->arena;
    const struct webhook *w = old == NULL ? NULL : old->attached;
    struct span tenant = webhook_draft_string(draft, SPAN("Tenant"), a);
    struct span owner = webhook_draft_string(draft, SPAN("Owner"), a);
    struct webhook_call *own;
    struct added *added;

    if (w != NULL && rest_find_account(call->rest, tenant, owner) == w->account)
        return;
    own = webhook_call_of(call);
    added = ARENA_NEW(a, struct added);
    /* What the draft refers to is given back before all is known. */
    *added = (struct added){own->added, arena_copy(a, tenant), arena_copy(a, owner)};
    own->added = added;
    own->added_count++;
}

static int by_account(const void *a, const void *b)
{
    const struct added *left = *(struct added *const *)a, *right = *(struct added *const *)b;
    int order = span_cmp(left->tenant, right->tenant);

    return order != 0 || left->tenant.n > 0 ? order : span_cmp(left->owner, right->owner);
}

static struct err *check_count(const struct call *call, const struct added *added, size_t count)
{
    struct rest *rest = call->rest;
    int64_t most = rest->limits->account_webhooks;
    const struct account *account = rest_find_account(rest, added->tenant, added->owner);
    size_t there = account == NULL ? 0 : account->webhooks;

    if (there + count <= (size_t)most)
        return NULL;
    rest->metrics->limit_hits[METRIC_ACCOUNT_WEBHOOKS]++;
    return ERR(ERR_CONFLICT,
               "the account has %zu webhooks, and with %zu more it would pass the limit "
               "AccountWebhooks (%lld)",
               there, count, (long long)most);
}

/* In the order of accounts, so that those of one stand together. */
static struct added **sorted(const struct webhook_call *own, struct arena *a)
{
    struct added **all = ARENA_ARRAY(a, struct added *, own->added_count);
    size_t count = 0;

    for (struct added *added = own->added; added != NULL; added = added->next)
        all[count++] = added;
    qsort(all, count, sizeof(struct added *), by_account);
    return all;
}

struct err *webhook_check_accounts(const struct call *call)
{
    const struct webhook_call *own = call->own;
    struct added **all;
    size_t begin = 0;

    if (own == NULL)
        return NULL;
    all = sorted(own, call->arena);
    for (size_t i = 1; i <= own->added_count; i++) {
        if (i < own->added_count && by_account(&all[begin], &all[i]) == 0)
            continue;
        TRY(check_count(call, all[begin], i - begin));
        begin = i;
    }
    return NULL;
}
