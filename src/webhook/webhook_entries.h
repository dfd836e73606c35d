/* The entries of a webhook: what finds it (webhook_entry.h). */
#ifndef WEBHOOK_WEBHOOK_ENTRIES_H
#define WEBHOOK_WEBHOOK_ENTRIES_H

#include "json/json.h"

struct access;
struct access_key;
struct resource;
struct rest;
struct scopes;
struct webhook;
struct webhook_wanted;

/* Messages that are stored are read by whoever may read webhooks: for this key they list no other
 * resources. */
extern const struct access_key webhook_nobody;

/* Zeroed, without entries. */
struct webhook *webhook_entries_new(void);
/* It has none any more. NULL is allowed. */
void webhook_entries_free(struct webhook *w);

/* Of one webhook, in which nothing is changed until all of it fits. */
struct webhook_plan {
    struct webhook *webhook;
    struct rest *rest;
    struct scopes *scopes; /* of those that have patterns */
    struct arena *arena;
    /* What webhook_entries_plan writes. */
    struct webhook_wanted *first;
    uint32_t count;
    bool has_patterns;
};
/* By the selectors in its text. Errors of selector_parse, webhook_owner_key and
 * webhook_owner_check, with the member's name in front. */
struct err *webhook_entries_plan(struct webhook_plan *plan, struct json_value json) MUST_USE;
/* What was planned, unless the webhook is paused. */
void webhook_entries_make(const struct webhook_plan *plan);
/* Out of every list and matcher. */
void webhook_entries_drop(struct webhook *w, struct scopes *scopes);

/* May its owner have all that it waits for? Not known of a pattern, as what it stands for follows
 * the rights. */
bool webhook_entries_are_read(const struct webhook *w, const struct access *access);
/* One of those that wait for the resource's events; NULL: there is none. */
struct webhook *webhook_entries_first(const struct resource *resource);

#endif
