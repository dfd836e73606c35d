/* Who answers for what a webhook sends, its owner, and who has written its secrets. */
#include "access/access.h"
#include "protocol/schema.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "webhook/selector.h"
#include "webhook/webhook_checks.h"
#include "webhook/webhook_draft.h"
#include "webhook/webhook_owner.h"
#include "webhook/webhook_selection.h"
#include "webhook/webhook_write.h"
#include "json/json.h"

static bool is_resumed(const struct call *call, const struct draft *draft, const struct entity *old)
{
    return json_is_true(webhook_old_member(old, SPAN("IsPaused"), call->arena)) &&
           span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("false"));
}

static struct span old_string(const struct entity *old, struct span name, struct arena *a)
{
    return json_string(webhook_old_member(old, name, a), a);
}

/* As the text has it: one that this request has written before has nothing attached yet. */
static struct webhook_owner old_owner(const struct call *call, const struct entity *old)
{
    return (struct webhook_owner){.tenant = old_string(old, SPAN("Tenant"), call->arena),
                                  .name = old_string(old, SPAN("Owner"), call->arena),
                                  .identity = old_string(old, SPAN("OwnerKey"), call->arena)};
}

/* May the key have what is selected? Of a pattern, anything. */
static struct err *check_read(const struct call *call, const struct selector *selector,
                              const struct access_key *key)
{
    struct span *parts;
    size_t count = 1;

    if (selector->resource == NULL)
        selector_narrow(selector, call->rest->resources, key, call->arena, &parts, &count);
    else if (!access_allows(key, selector->resource->name, METHOD_GET))
        return ERR(ERR_NOT_AUTHORIZED, "the API key may not GET '%.*s'",
                   SPAN_FMT(selector->resource->name));
    if (count > 0)
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "the API key may GET nothing of '%.*s'",
               SPAN_FMT(selector->normal));
}

/* Is the owner able to have these events, for the tenant that the webhook has from now on? */
static bool is_answered_for(const struct call *call, const struct draft *draft,
                            const struct entity *old, const struct webhook_selection *selection)
{
    const struct access *access = call->rest->access;
    struct webhook_owner owner = old_owner(call, old);
    const struct access_key *key;
    struct err *e = NULL;

    if (!access_requires_key(access) || selection->count == 0)
        return true;
    if (owner.name.n == 0)
        return false;
    owner.tenant = webhook_draft_string(draft, SPAN("Tenant"), call->arena);
    e = webhook_owner_key(&owner, access, &key);
    for (size_t i = 0; i < selection->count && e == NULL; i++)
        e = check_read(call, &selection->items[i], key);
    if (e == NULL)
        return true;
    err_free(e);
    return false;
}

/* What decides where which data goes: who changes it answers for it. Who resumes a webhook, or
 * gives it to another tenant, does so only where its owner cannot. */
static bool is_taken_over(const struct call *call, const struct draft *draft,
                          const struct entity *old, const struct webhook_selection *selection)
{
    static const struct span names[] = {SPAN_INIT("EventSelector"), SPAN_INIT("EventSelectors"),
                                        SPAN_INIT("Destination"), SPAN_INIT("Headers"),
                                        SPAN_INIT("CustomPayloadRequest")};

    if (old == NULL)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (webhook_is_changed(call, draft, old, names[i]))
            return true;
    return (is_resumed(call, draft, old) ||
            !webhook_is_same(draft, old, SPAN("Tenant"), call->arena)) &&
           !is_answered_for(call, draft, old, selection);
}

/* Of the key that asks, as JSON. */
static struct span identity_json(const struct call *call)
{
    struct buf identity;

    if (call->key == NULL)
        return SPAN("null");
    buf_init_arena(&identity, call->arena);
    access_add_identity(&identity, call->key);
    return webhook_json_of(call->arena, buf_span(&identity));
}

struct err *webhook_check_owner(struct call *call, struct draft *draft, const struct entity *old,
                                const struct webhook_selection *selection)
{
    if (!is_taken_over(call, draft, old, selection))
        return NULL;
    draft_set(draft, SPAN("OwnerKey"), identity_json(call));
    if (call->key == NULL) {
        draft_set(draft, SPAN("Owner"), SPAN("null"));
        return NULL;
    }
    for (size_t i = 0; i < selection->count; i++) {
        struct err *e = check_read(call, &selection->items[i], call->key);

        if (e != NULL)
            return err_prefix(e, "%.*s: ", SPAN_FMT(selection->member));
    }
    draft_set(draft, SPAN("Owner"), webhook_json_of(call->arena, call->key->name));
    return NULL;
}

/* Secrets. --------------------------------------------------------------------------------- */

struct err *webhook_check_kept(bool are_own, bool leads_elsewhere, struct span kept)
{
    if (are_own || !leads_elsewhere || kept.n == 0)
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "stored secrets do not travel: another key has written them, so that with this "
               "change they have to be written anew: %.*s",
               SPAN_FMT(kept));
}

/* Where no key is required, a webhook that nobody owns is everybody's. */
static bool is_owner(const struct call *call, const struct entity *old)
{
    struct webhook_owner owner = old_owner(call, old);
    const struct access *access = call->rest->access;

    if (owner.name.n == 0)
        return !access_requires_key(access);
    return webhook_owner_is(&owner, access, call->key);
}

/* Who has taken a webhook over has not written its secrets. Where nothing is noted, a version that
 * noted nothing had them of the owner. */
static bool has_written_secrets(const struct call *call, const struct entity *old)
{
    struct json_value key = webhook_old_member(old, SPAN("WriterKey"), call->arena);

    return json_type(key) != JSON_STRING || span_eq(json_text(key), identity_json(call));
}

/* The key that has written all secrets, as far as none are kept of another. */
void webhook_note_writer(struct call *call, struct draft *draft, const struct entity *old)
{
    struct span name = SPAN("WriterKey");
    bool has_written_all = old == NULL || draft->kept.n == 0;

    if (!has_written_all && !span_eq(draft_get(draft, name), SPAN("null")))
        return;
    if (has_written_all || is_owner(call, old))
        draft_set(draft, name, identity_json(call));
    else if (!webhook_is_same(draft, old, SPAN("OwnerKey"), call->arena))
        draft_set(draft, name, SPAN("\"\"")); /* nobody's who is known */
}

/* Does it send something else, or the same to somebody else? What makes a key the owner counts too:
 * its data would go out in the name of who has written the secrets. */
static bool leads_elsewhere(const struct call *call, const struct draft *draft,
                            const struct entity *old)
{
    static const struct span names[] = {
        SPAN_INIT("Destination"), SPAN_INIT("Method"),        SPAN_INIT("CustomPayloadRequest"),
        SPAN_INIT("Headers"),     SPAN_INIT("EventSelector"), SPAN_INIT("EventSelectors")};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (webhook_is_changed(call, draft, old, names[i]))
            return true;
    return false;
}

struct err *webhook_check_secrets(const struct call *call, const struct draft *draft,
                                  const struct entity *old)
{
    return old == NULL ? NULL
                       : webhook_check_kept(is_owner(call, old) && has_written_secrets(call, old),
                                            leads_elsewhere(call, draft, old), draft->kept);
}
