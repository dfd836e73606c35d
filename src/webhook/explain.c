/* The conditions are judged one by one by the same function that judges stored entities, which the
 * matcher agrees with (tests/unit/match). So what is shown is what happens. */
#include "webhook/explain.h"

#include "query/condition.h"
#include "query/conditions.h"
#include "resource/resource.h"
#include "webhook/selector.h"
#include "json/member.h"

enum { ELEMENTS_MOST = 10 }; /* of what `*` found */

/* As the selector has it, but readable: `Name.Length>10`. */
static struct span condition_text(const struct condition *c, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    buf_add(&b, c->path.text);
    buf_add_str(&b, uri_op_text(c->op));
    literal_add(&b, &c->literal);
    return buf_span(&b);
}

/* Adds one condition, and returns whether it holds. */
static bool add_condition(struct buf *b, const struct condition *c, struct json_value entity,
                          struct arena *a)
{
    bool holds = condition_holds(c, entity, a);
    struct buf value;

    buf_init_arena(&value, a);
    path_add_found(&c->path, entity, ELEMENTS_MOST, a, &value);
    buf_add_char(b, '{');
    member_add_text(b, SPAN("Condition"), condition_text(c, a));
    member_add_json(b, SPAN("Value"), buf_span(&value));
    member_add_bool(b, SPAN("Holds"), holds);
    buf_add_char(b, '}');
    return holds;
}

/* Adds the array, and returns the first condition that does not hold, or NULL. */
static const struct condition *add_conditions(struct buf *b, const struct conditions *conditions,
                                              struct json_value entity, struct arena *a)
{
    const struct condition *failed = NULL;

    buf_add_char(b, '[');
    for (size_t i = 0; json_exists(entity) && i < conditions->count; i++) {
        const struct condition *c = &conditions->items[i];

        json_add_comma(b);
        if (!add_condition(b, c, entity, a) && failed == NULL)
            failed = c;
    }
    buf_add_char(b, ']');
    return failed;
}

static struct span reason_of(const struct selector *selector, const struct condition *failed,
                             bool has_entity, struct arena *a)
{
    if (failed != NULL)
        return arena_printf(a, "The condition %.*s does not hold.",
                            SPAN_FMT(condition_text(failed, a)));
    if (selector->conditions->count == 0)
        return arena_printf(a, "There are no conditions: every event of '%.*s' matches.",
                            SPAN_FMT(selector_name(selector)));
    if (!has_entity)
        return SPAN("The payload has no entity that the conditions could hold for.");
    return SPAN("All conditions hold.");
}

/* `entity` is absent for a payload without entities. */
static struct explanation explain_one(const struct selector *selector,
                                      const struct explain_event *event, struct span refused,
                                      struct json_value entity, struct arena *a)
{
    const struct condition *failed;
    struct explanation explanation;
    struct buf b, conditions;
    bool has_entity = json_exists(entity);
    bool is_judged = selector_covers(selector, event->resource);

    buf_init_arena(&conditions, a);
    failed = add_conditions(&conditions, selector->conditions,
                            is_judged ? entity : (struct json_value){NULL, NULL}, a);
    if (refused.n == 0 && !is_judged)
        refused = arena_printf(a, "The event is of '%.*s', the selector of '%.*s'.",
                               SPAN_FMT(event->resource->name), SPAN_FMT(selector_name(selector)));
    explanation.matches =
        refused.n == 0 && failed == NULL && (has_entity || selector->conditions->count == 0);
    buf_init_arena(&b, a);
    buf_add_char(&b, '{');
    member_add_bool(&b, SPAN("Matches"), explanation.matches);
    member_add_text(&b, SPAN("Reason"),
                    refused.n > 0 ? refused : reason_of(selector, failed, has_entity, a));
    member_add_text(&b, SPAN("Selector"), selector->normal);
    member_add_json(&b, SPAN("Conditions"), buf_span(&conditions));
    buf_add_char(&b, '}');
    explanation.json = buf_span(&b);
    return explanation;
}

struct explanation *explain(const struct selector *selector, const struct explain_event *event,
                            struct span refused, struct arena *a, size_t *out_count)
{
    const struct json_value none = {NULL, NULL};
    bool is_judged = !event->resource->is_binary_event || selector->resource != NULL;
    struct json_value payload = is_judged ? event->payload : none;
    bool is_list = json_type(payload) == JSON_ARRAY && json_count(payload) > 0;
    bool is_one = json_type(payload) == JSON_OBJECT;
    size_t count = is_list ? json_count(payload) : 1;
    struct explanation *all = ARENA_ARRAY(a, struct explanation, count);
    struct json_value entity = is_list ? json_first(payload) : is_one ? payload : none;

    for (size_t i = 0; i < count; i++) {
        all[i] = explain_one(selector, event, refused, entity, a);
        if (is_list)
            entity = json_next(payload, entity);
    }
    *out_count = count;
    return all;
}
