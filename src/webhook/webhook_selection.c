/* The two members are read alike: one selector is a list of one. */
#include "webhook/webhook_selection.h"

#include "base/limits.h"
#include "protocol/schema.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "webhook/selector.h"
#include "webhook/webhook_write.h"
#include "json/json.h"

const struct span webhook_selector_name = SPAN_INIT("EventSelector");
const struct span webhook_selectors_name = SPAN_INIT("EventSelectors");

static bool is_set(const struct draft *draft, struct span name)
{
    return !span_eq(draft_get(draft, name), SPAN("null"));
}

bool webhook_has_both(const struct draft *draft)
{
    return is_set(draft, webhook_selector_name) && is_set(draft, webhook_selectors_name);
}

struct err *webhook_choose_selectors(const struct draft *draft,
                                     struct webhook_selection *out_selection)
{
    bool has_one = is_set(draft, webhook_selector_name);

    *out_selection = (struct webhook_selection){.member = has_one ? webhook_selector_name
                                                                  : webhook_selectors_name};
    if (webhook_has_both(draft))
        return ERR(ERR_INVALID_ENTITY,
                   "EventSelectors: either EventSelector is given or EventSelectors, not both");
    if (!has_one && !is_set(draft, webhook_selectors_name))
        return ERR(ERR_INVALID_ENTITY, "EventSelector: is required, or EventSelectors");
    return NULL;
}

static struct err *parse_selectors(const struct call *call, struct json_value texts,
                                   struct webhook_selection *selection)
{
    uint32_t count = json_type(texts) == JSON_ARRAY ? json_count(texts) : 1;
    struct json_value text = json_type(texts) == JSON_ARRAY ? json_first(texts) : texts;

    if (count == 0 || count > WEBHOOK_SELECTORS_MOST)
        return ERR(ERR_INVALID_ENTITY, "has %u elements, it must have 1 to %d", count,
                   WEBHOOK_SELECTORS_MOST);
    selection->items = ARENA_ARRAY(call->arena, struct selector, count);
    for (uint32_t i = 0; i < count; i++) {
        struct err *e = selector_parse(call->rest->resources, json_string(text, call->arena),
                                       call->key, (size_t)call->rest->limits->conditions,
                                       call->arena, &selection->items[i]);

        if (e != NULL)
            return e;
        if (i + 1 < count)
            text = json_next(texts, text);
    }
    selection->count = count;
    return NULL;
}

static struct span normal_selectors(const struct webhook_selection *selection, bool is_list,
                                    struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    if (is_list)
        buf_add_char(&b, '[');
    for (size_t i = 0; i < selection->count; i++) {
        json_add_comma(&b);
        json_add_string(&b, selection->items[i].normal);
    }
    if (is_list)
        buf_add_char(&b, ']');
    return buf_span(&b);
}

struct err *webhook_check_selectors(const struct call *call, struct draft *draft,
                                    struct webhook_selection *selection)
{
    struct json_value texts = draft_value(draft, selection->member, call->arena);
    struct err *e = parse_selectors(call, texts, selection);

    if (e != NULL)
        return err_prefix(e, "%.*s: ", SPAN_FMT(selection->member));
    draft_set(draft, selection->member,
              normal_selectors(selection, json_type(texts) == JSON_ARRAY, call->arena));
    return NULL;
}

bool webhook_selects_bytes(const struct webhook_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (selection->items[i].resource != NULL && selection->items[i].resource->is_binary_event)
            return true;
    return false;
}

bool webhook_selects_entities(const struct webhook_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (selection->items[i].resource == NULL || !selection->items[i].resource->is_binary_event)
            return true;
    return false;
}
