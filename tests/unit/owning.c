#include "owning.h"

#include "testing.h"

#include "store/change.h"
#include "store/entity.h"
#include "store/turn.h"
#include "webhook/webhook.h"
#include "json/json.h"

void own(struct service *s, struct arena *a, const struct uuid *id, const char *owner)
{
    lay_over(s, a, id, arena_printf(a, "{\"Owner\":\"%s\"}", owner));
}

void lay_over(struct service *s, struct arena *a, const struct uuid *id, struct span text)
{
    struct json_doc patch;
    struct change change;
    struct entity *entity;
    struct buf json;
    uint64_t serial;

    entity = webhook_find(s->hooks.webhooks, id)->entity;
    ck_ok(json_parse(text, NULL, a, &patch));
    buf_init_arena(&json, a);
    json_add_merged(&json, entity_parse(entity_json(entity), a), json_root(&patch), false, a);
    change_init(&change, s->turn, a);
    change_put_entity(&change, SPAN("Svc.Admin.Webhook"), id, entity->object_no, buf_span(&json));
    ck_ok(turn_apply(s->turn, &change, &serial));
    change_done(&change);
}
