/* Webhooks of several accounts, without the keys that it would take. */
#ifndef OWNING_H
#define OWNING_H

#include "admin/service.h"
#include "base/arena.h"
#include "base/span.h"
#include "base/uuid.h"

/* The webhook of this id has this owner from now on. */
void own(struct service *s, struct arena *a, const struct uuid *id, const char *owner);
/* Its members are these from now on, whatever is checked of who writes them. */
void lay_over(struct service *s, struct arena *a, const struct uuid *id, struct span members);

#endif
