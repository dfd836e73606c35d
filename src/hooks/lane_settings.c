/* What attempts need of their webhook, read and with its keys ready to sign, kept for the attempts
 * to come: of the webhooks that were used last, because there may be a million. An attempt holds on
 * to what it began with while the webhook is changed. */
#include "hooks/lane_settings.h"
#include "base/mem.h"
#include "base/must.h"
#include "hooks/lane_inner.h"
#include "hooks/sign.h"
#include "hooks/webhook.h"
#include "store/entity.h"

enum { KEPT_MOST = 512 };

static struct lane_settings *settings_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct lane_settings, link);
}

void lane_settings_put(struct lane_settings *settings)
{
    if (settings == NULL || --settings->refs > 0)
        return;
    signer_free(settings->signer);
    arena_done(&settings->arena);
    mem_free(settings);
}

void lane_settings_forget(struct lane *lane)
{
    struct lane_settings *settings = TAKE(lane->settings);

    if (settings == NULL)
        return;
    list_remove(&lane->deliveries->settings, &settings->link);
    settings->lane = NULL;
    lane_settings_put(settings);
}

static void settings_read(struct lane *lane)
{
    struct lane_settings *settings = NEW(struct lane_settings);
    struct err *e;

    settings->lane = lane;
    settings->refs = 1; /* the lane's */
    settings->version = lane->webhook->entity->version;
    arena_init(&settings->arena);
    e = webhook_read(lane->webhook, &settings->arena, &settings->webhook);
    MUST(e == NULL); /* it was checked when it was written */
    lane->settings = settings;
    list_push_back(&lane->deliveries->settings, &settings->link);
}

struct lane_settings *lane_settings_get(struct lane *lane)
{
    struct list *kept = &lane->deliveries->settings;

    if (lane->settings != NULL && lane->settings->version != lane->webhook->entity->version)
        lane_settings_forget(lane);
    if (lane->settings == NULL) {
        settings_read(lane);
    } else {
        list_remove(kept, &lane->settings->link);
        list_push_back(kept, &lane->settings->link);
    }
    if (list_count(kept) > KEPT_MOST)
        lane_settings_forget(settings_at(list_first(kept))->lane);
    lane->settings->refs++;
    return lane->settings;
}
