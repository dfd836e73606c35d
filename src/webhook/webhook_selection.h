/* What a webhook that is written selects: its EventSelector, or its EventSelectors. */
#ifndef WEBHOOK_WEBHOOK_SELECTION_H
#define WEBHOOK_WEBHOOK_SELECTION_H

#include "base/err.h"

struct call;
struct draft;
struct selector;

extern const struct span webhook_selector_name, webhook_selectors_name;

struct webhook_selection {
    struct span member; /* the one of the two that is there */
    struct selector *items;
    size_t count; /* 0: the selectors lead nowhere, and need not */
};

bool webhook_has_both(const struct draft *draft);
/* ERR_INVALID_ENTITY unless just one of the two members is there. */
struct err *webhook_choose_selectors(const struct draft *draft,
                                     struct webhook_selection *out_selection) MUST_USE;
/* Reads that member's selectors, and puts it into normal form. Errors of selector_parse;
 * ERR_INVALID_ENTITY: their number. */
struct err *webhook_check_selectors(const struct call *call, struct draft *draft,
                                    struct webhook_selection *selection) MUST_USE;
/* Are there events whose payload is bytes? */
bool webhook_selects_bytes(const struct webhook_selection *selection);
/* Are there, or may there come to be, events that have entities? */
bool webhook_selects_entities(const struct webhook_selection *selection);

#endif
