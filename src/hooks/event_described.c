/* What the conditions of a POST on Svc.Event say of the event whose payload is the body. */
#include "hooks/event_post_inner.h"
#include "query/condition.h"
#include "query/query.h"
#include "query/uri.h"
#include "rest/call.h"

static const struct span described_names[DESCRIBED_COUNT] = {
    [BY_RESOURCE] = SPAN_INIT("Resource"),
    [BY_CLIENT] = SPAN_INIT("ClientId"),
    [BY_TENANT] = SPAN_INIT("Tenant"),
    [BY_WEBHOOK] = SPAN_INIT("WebhookId"),
};

static struct err *describes_nothing(struct span key)
{
    return ERR(ERR_INVALID_CONDITION_SYNTAX,
               "'%.*s' describes no event: a POST takes Resource, ClientId, Tenant and "
               "WebhookId",
               SPAN_FMT(key));
}

struct err *event_post_check_conditions(const struct uri *uri)
{
    for (size_t i = 0; i < uri->condition_count; i++) {
        size_t place = 0;

        while (place < DESCRIBED_COUNT && !span_ieq(uri->conditions[i].key, described_names[place]))
            place++;
        if (place == DESCRIBED_COUNT)
            return describes_nothing(uri->conditions[i].key);
    }
    return NULL;
}

static struct err *describe(const struct condition *c, struct span texts[DESCRIBED_COUNT])
{
    for (size_t i = 0; i < DESCRIBED_COUNT; i++) {
        if (!span_ieq(c->path.text, described_names[i]))
            continue;
        if (c->op != URI_EQ || c->literal.kind != LITERAL_STRING)
            return ERR(ERR_INVALID_CONDITION_SYNTAX, "%.*s: takes '=' and a text in a POST",
                       SPAN_FMT(described_names[i]));
        if (texts[i].p != NULL)
            return ERR(ERR_INVALID_CONDITION_SYNTAX, "%.*s: is there twice",
                       SPAN_FMT(described_names[i]));
        texts[i] = c->literal.text;
        return NULL;
    }
    return describes_nothing(c->path.text);
}

struct err *event_described_read(const struct call *call, struct span texts[DESCRIBED_COUNT])
{
    for (size_t i = 0; i < call->uri->condition_count; i++)
        TRY(describe(&call->query->conditions.items[i], texts));
    return NULL;
}
