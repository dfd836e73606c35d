/* What the conditions of a POST on Svc.Event say of the event whose payload is the body. */
#include "hooks/event_post_inner.h"
#include "query/condition.h"
#include "query/query.h"
#include "query/uri.h"
#include "rest/call.h"

const struct span event_described_names[DESCRIBED_COUNT] = {
    [BY_RESOURCE] = SPAN_INIT("Resource"),
    [BY_CLIENT] = SPAN_INIT("ClientId"),
    [BY_TENANT] = SPAN_INIT("Tenant"),
    [BY_WEBHOOK] = SPAN_INIT("WebhookId"),
};

/* Which of them it is. */
static struct err *find(struct span key, size_t *out_place)
{
    for (size_t i = 0; i < DESCRIBED_COUNT; i++)
        if (span_ieq(key, event_described_names[i])) {
            *out_place = i;
            return NULL;
        }
    return ERR(ERR_INVALID_CONDITION_SYNTAX,
               "'%.*s' describes no event: a POST takes Resource, ClientId, Tenant and "
               "WebhookId",
               SPAN_FMT(key));
}

struct err *event_post_check_conditions(const struct uri *uri)
{
    size_t place;

    for (size_t i = 0; i < uri->condition_count; i++)
        TRY(find(uri->conditions[i].key, &place));
    return NULL;
}

static struct err *describe(const struct condition *c, struct span texts[DESCRIBED_COUNT])
{
    size_t place;

    TRY(find(c->path.text, &place));
    if (c->op != URI_EQ || c->literal.kind != LITERAL_STRING)
        return ERR(ERR_INVALID_CONDITION_SYNTAX, "%.*s: takes '=' and a text in a POST",
                   SPAN_FMT(event_described_names[place]));
    if (texts[place].p != NULL)
        return ERR(ERR_INVALID_CONDITION_SYNTAX, "%.*s: is there twice",
                   SPAN_FMT(event_described_names[place]));
    texts[place] = c->literal.text;
    return NULL;
}

struct err *event_described_read(const struct call *call, struct span texts[DESCRIBED_COUNT])
{
    for (size_t i = 0; i < call->uri->condition_count; i++)
        TRY(describe(&call->query->conditions.items[i], texts));
    return NULL;
}
