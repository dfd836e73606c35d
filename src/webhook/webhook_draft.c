/* Members of a webhook that is written, and of the one that is stored. */
#include "webhook/webhook_draft.h"

#include "access/mask.h"
#include "protocol/schema.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "json/json.h"

struct span webhook_json_of(struct arena *a, struct span text)
{
    struct buf b;

    buf_init_arena(&b, a);
    json_add_string(&b, text);
    return buf_span(&b);
}

struct span webhook_draft_string(const struct draft *draft, struct span name, struct arena *a)
{
    return json_string(draft_value(draft, name, a), a);
}

struct json_value webhook_old_member(const struct entity *old, struct span name, struct arena *a)
{
    if (old == NULL)
        return (struct json_value){NULL, NULL};
    return json_member(entity_parse(entity_json(old), a), name);
}

struct span webhook_shown_member(const struct call *call, const struct entity *old,
                                 struct span name)
{
    struct buf b;

    buf_init_arena(&b, call->arena);
    mask_add_value(&b, call->rest->mask, webhook_old_member(old, name, call->arena), call->arena);
    return buf_span(&b);
}

bool webhook_is_unwritten(const struct call *call, const struct draft *draft,
                          const struct entity *old, struct span name)
{
    return old != NULL &&
           span_eq(draft_written(draft, name), webhook_shown_member(call, old, name));
}

bool webhook_keeps(const struct call *call, const struct draft *draft, const struct entity *old,
                   struct span name)
{
    return call->method == METHOD_PATCH && webhook_is_unwritten(call, draft, old, name);
}

bool webhook_keeps_reference(const struct call *call, const struct draft *draft,
                             const struct entity *old, struct span name)
{
    return webhook_keeps(call, draft, old, name) &&
           (webhook_keeps(call, draft, old, SPAN("IsPaused")) ||
            span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("true")));
}

bool webhook_is_same(const struct draft *draft, const struct entity *old, struct span name,
                     struct arena *a)
{
    struct span was = json_text(webhook_old_member(old, name, a));

    return span_eq(draft_get(draft, name), was.p == NULL ? SPAN("null") : was);
}

bool webhook_is_changed(const struct call *call, const struct draft *draft,
                        const struct entity *old, struct span name)
{
    return !webhook_is_unwritten(call, draft, old, name) &&
           !span_eq(draft_get(draft, name), webhook_shown_member(call, old, name));
}
