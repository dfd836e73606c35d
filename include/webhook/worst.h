/* The webhooks that have failed most often since the start of the process, for Svc.Metrics: of a
 * hundred thousand, as many as somebody can look at. Kept up to date by each attempt, so that
 * nobody has to look for them. */
#ifndef WEBHOOK_WORST_H
#define WEBHOOK_WORST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORST_MOST = 20 };

/* Part of what is counted. All zero: it has made no attempt. */
struct worst_entry {
    uint64_t attempts, failures;
    size_t place; /* among the worst, from 1; 0: it is none of them */
};

struct worst {
    struct worst_entry *entries[WORST_MOST]; /* in no order */
    size_t count;
};

void worst_note(struct worst *w, struct worst_entry *entry, bool is_failure);
/* It goes. Its place is for the next one that fails. */
void worst_forget(struct worst *w, const struct worst_entry *entry);

#endif
